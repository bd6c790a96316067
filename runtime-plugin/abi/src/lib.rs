//! TensorRT's C++ plugin interfaces (V3One, and the quick ones of ahead-of-time plugins) in Rust, without a C++
//! compiler or NVIDIA headers.
//!
//! A plugin library implements safe traits, [`Creator`] and [`Plugin`] or [`QuickCreator`] and [`QuickPlugin`] with
//! their base traits, and passes a function that lists its creators to [`plugin_library!`].
//!
//! | module | owns |
//! |---|---|
//! | [`raw`] | foreign structs and enumerations, with asserted sizes and offsets |
//! | [`vtable`] | one slot struct per interface, in the order of NVIDIA's headers |
//! | [`rtti`] | the type information that keeps `dynamic_cast` from crashing |
//! | [`fields`] | plugin fields, from and to TensorRT |
//! | [`expr`] | the client side of `IExprBuilder` and `IDimensionExpr` |
//! | [`plugin`], [`quick`], [`creator`] | the traits, the heap objects that TensorRT holds, and the thunks between both |
//! | [`logger`] | TensorRT's logger, for both generations of its vtable and every TensorRT in the process |
//! | `image` | the program and libraries in this process, kept mapped during calls |
//! | [`library`] | the exports of a plugin library |
//!
//! Sources: NVIDIA's headers of TensorRT-RTX 1.3 to 1.7 and TensorRT Enterprise 11.4 (`NvInferRuntimeBase.h`,
//! `NvInferPluginBase.h`, `NvInferRuntimePlugin.h`, `NvInferRuntime.h`, `NvInferImpl.h`), whose V3One slots agree. The
//! quick interfaces are those of `impl/NvInferPythonPlugin.h`, only in Enterprise 11.4, for NVIDIA's Python module and
//! without semantic versioning. The C++ ABI is Itanium's (x86-64 and aarch64 Linux).
//!
//! Invariants:
//! - No panic crosses the boundary: each thunk catches it and returns the interface's failure value.
//! - It does not know what a plugin does: no CUDA, no bundle, no file.
//! - Messages go to TensorRT's logger, or to stderr while TensorRT has none.
//! - No `thread_local` with a destructor: it would keep the library mapped after `dlclose`.
#![allow(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!("`panic = \"abort\"` would end TensorRT's process where a thunk has to catch a panic");

#[macro_use]
mod layout;

pub mod creator;
pub mod error;
pub mod expr;
pub mod fields;
pub mod identity;
mod image;
pub mod library;
pub mod logger;
mod object;
mod panics;
pub mod plugin;
pub mod quick;
pub mod raw;
pub mod rtti;
#[cfg(test)]
mod tests;
mod thunk;
pub mod vtable;

pub use creator::{Creator, CreatorBase, CreatorList, QuickCreator};
pub use error::{Error, Result};
pub use expr::{Expr, ExprBuilder, Shape};
pub use fields::{Field, FieldNames, FieldSet, FieldValue};
pub use identity::Identity;
pub use library::Library;
pub use logger::Severity;
pub use object::PluginBase;
pub use plugin::Plugin;
pub use quick::{QuickKernel, QuickLaunch, QuickPlugin};
pub use raw::{
    DataType, DimensionOperation, Dims, DynamicPluginTensorDesc, PluginFieldType, PluginTensorDesc,
    QuickPluginCreationRequest, TensorFormat, TensorRTPhase,
};
