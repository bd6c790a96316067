//! TensorRT plugins driven by a bundle or by serialized fields.
//!
//! This crate is the shared library: as `libcubinder.so` it runs engines, and with a bundle put into it (see
//! [`descriptor`]) it is a library of ops or of code. Reading order:
//!
//! | module | owns |
//! |---|---|
//! | [`descriptor`] | the bundle in this library's own file |
//! | `definition`, `identity` | what a plugin is made from; the names under which engines find it |
//! | `engine_model` | what an engine keeps of a model |
//! | `creators`, `attributes` | what TensorRT registers; from a node's attributes to values |
//! | `plugin` | the object that TensorRT holds: what the builder asks, what the runtime asks |
//! | [`launch`] | everything that one enqueue needs, evaluated once for each change of shapes |
//! | [`code`] | choosing and loading code objects |
//! | [`driver`] | the CUDA driver's C interface, found at run time |
//! | `nvtx` | ranges in the timelines of profilers, where they are asked for |
//!
//! Invariants:
//! - It never depends on the compiler, and knows no operator.
//! - No panic leaves it (`trt-abi` catches them); nothing is printed except through TensorRT's logger.
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
