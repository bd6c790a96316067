//! What the end-to-end tests share.
//!
//! Owns: compiling the plugins that ship, finding NVIDIA's headers, building and running the
//! conformance oracle, the stand-in for the CUDA driver, the reference plugin and the quick one, the plugins of the native route and cases for them, following pages of the documentation.
//! Never: product logic, and never NVIDIA's files in this repository.

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
