//! TensorRT plugins from a bundle or from serialized fields: as `libcubinder.so` this library runs engines; with a
//! bundle (see [`descriptor`]) it is a library of ops or of code.
//!
//! | module | owns |
//! |---|---|
//! | [`descriptor`] | the bundle in this library's file |
//! | `definition`, `identity` | a plugin's model and code; core names |
//! | `engine_model` | the part of a model that an engine keeps |
//! | `creators`, `attributes` | creators; attribute values |
//! | `plugin` | the object that TensorRT calls |
//! | [`launch`] | the steps of an enqueue |
//! | [`code`] | choosing and loading code objects |
//! | [`driver`] | the CUDA driver's C interface |
//! | `nvtx` | ranges in profilers' timelines |
//!
//! Invariants:
//! - It never depends on the compiler, and knows no operator.
//! - It only prints through TensorRT's logger.
//! - No `thread_local` with a destructor: it would keep the library mapped after `dlclose`.
//! - Objects of a build make no CUDA call before `onShapeChange` or `enqueue`.
//! - `enqueue` does not allocate, lock or hash.
#![allow(unsafe_code)]

pub mod code;
pub mod descriptor;
pub mod launch;

pub use cubinder_driver as driver;

mod attributes;
mod creators;
mod definition;
mod engine_model;
mod exclusive;
mod identity;
mod nvtx;
mod plugin;

trt_abi::plugin_library!(creators::creators);
