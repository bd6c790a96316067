//! Helpers of end-to-end tests, without product logic or NVIDIA's files.

pub mod application;
pub mod compiled;
pub mod cxx;
pub mod driver_faults;
pub mod fake_driver;
pub mod faults;
pub mod handmade;
pub mod headers;
pub mod installed;
pub mod native_cases;
pub mod native_route;
pub mod oracle;
pub mod own_time;
pub mod player;
pub mod quick_plugin;
pub mod reference_plugin;
pub mod registry;
pub mod rival_plugin;
pub mod walkthrough;
