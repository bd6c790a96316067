//! Tests of the runtime library with a mock driver. `closing`, `enqueue_allocates_nothing`, `gpu`, `meaning` and
//! `unloading_frees_everything` need their own processes.

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
