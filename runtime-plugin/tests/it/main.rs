//! Integration tests of the runtime library above a driver made of functions of this program, which tests use one at a time.
//!
//! These need a process of their own and are programs beside this one:
//! - `closing` counts the bytes that the process has allocated.
//! - `enqueue_allocates_nothing` and `unloading_frees_everything` replace the allocator.
//! - `gpu` uses the real driver, whose contexts belong to the process.
//! - `meaning` loads the library and a stand-in for the driver, whose device belongs to the process.

#![allow(unsafe_code)] // functions and addresses for a driver
#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod code_loading;
mod driver_calls;
mod launching;
mod sequences;
mod several_devices;

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/plugin.rs"]
mod the_plugin;
