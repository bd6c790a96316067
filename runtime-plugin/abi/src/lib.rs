//! TensorRT's C++ plugin interfaces (V3One, and the quick ones of ahead-of-time plugins) seen from Rust: no C++ compiler, no NVIDIA
//! header is needed to build it.
//!
//! A plugin library implements safe traits, [`Creator`] and [`Plugin`] or [`QuickCreator`] and [`QuickPlugin`] with their base traits, and
//! names a function that lists its creators in [`plugin_library!`]. Everything foreign stays in here:
//!
//! | module | owns |
//! |---|---|
//! | [`raw`] | the structs and enumerations that cross the boundary, with their sizes and offsets asserted |
//! | [`vtable`] | one slot struct for each interface, to be read side by side with NVIDIA's header |
//! | [`rtti`] | the type information that keeps `dynamic_cast` from crashing |
//! | [`fields`] | plugin fields: read from TensorRT, and written for it |
//! | [`expr`] | the client side of `IExprBuilder` and `IDimensionExpr` |
//! | [`plugin`], [`quick`], [`creator`] | the traits, the heap objects that TensorRT holds, and the thunks between both |
//! | [`logger`] | TensorRT's logger, through both generations of its vtable, for every TensorRT in the process |
//! | `image` | the program and libraries in this process, kept mapped while something of theirs is called |
//! | [`library`] | what a plugin library exports |
//!
//! Facts about foreign formats come from NVIDIA's headers: TensorRT-RTX 1.3 to 1.7 and TensorRT Enterprise
//! 11.4 (`NvInferRuntimeBase.h`, `NvInferPluginBase.h`, `NvInferRuntimePlugin.h`, `NvInferRuntime.h`,
//! `NvInferImpl.h`). The V3One interfaces have the same slots in all of them. The quick ones are those of
//! `impl/NvInferPythonPlugin.h`, which Enterprise 11.4 alone has: NVIDIA made them for its Python module, outside of semantic versioning.
//! The C++ ABI is the Itanium one (x86-64 and aarch64 Linux).
//!
//! Invariants:
//! - No panic crosses the boundary: each thunk catches it and answers with the interface's failure value.
//! - Nothing here knows what a plugin does: no CUDA, no bundle, no file.
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
