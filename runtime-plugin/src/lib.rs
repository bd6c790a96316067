//! TensorRT plugins from a bundle or serialized fields: `libcubinder.so` runs engines; with a bundle ([`descriptor`]),
//! this library has ops or code.
//!
//! Invariants:
//! - Never depends on the compiler; knows no operator.
//! - Prints only through TensorRT's logger.
//! - No `thread_local` with a destructor, which would keep the library mapped after `dlclose`.
//! - A build's objects make no CUDA call before `onShapeChange` or `enqueue`.
//! - `enqueue` does not allocate, lock or hash.
#![allow(unsafe_code)]

pub mod code;
pub mod descriptor;
pub mod fuzzing;
pub mod launch;

pub use cubinder_driver as driver;

mod attributes;
mod creators;
mod definition;
mod engine_model;
mod exclusive;
mod identity;
mod interface;
mod nvtx;
mod plugin;

trt_abi::plugin_library!(creators::creators);
