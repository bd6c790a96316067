//! Tests of the runtime library with a mock driver. Programs with their own process:
//!
//! - `closing` counts its allocated bytes.
//! - `enqueue_allocates_nothing` and `unloading_frees_everything` replace the allocator.
//! - `gpu` uses the real driver.
//! - `meaning` loads the library and a stand-in driver.

#![allow(unsafe_code)] // functions and addresses for a driver
#![allow(clippy::unwrap_used, clippy::panic)]

mod code_loading;
mod driver_calls;
mod launching;
mod sequences;
mod several_devices;

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/plugin.rs"]
mod the_plugin;
