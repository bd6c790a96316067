//! TensorRT's C++ plugin interfaces (V3One, and quick ones of ahead-of-time plugins) in Rust, without a C++ compiler or
//! NVIDIA headers.
//!
//! A library implements [`Creator`] and [`Plugin`], or [`QuickCreator`] and [`QuickPlugin`], and passes its creators to
//! [`plugin_library!`].
//!
//! Sources: NVIDIA's headers of TensorRT-RTX 1.3 to 1.7 and TensorRT Enterprise 11.4, which agree about V3One; only the
//! latter has the quick interfaces. C++ ABI: Itanium (x86-64 and aarch64 Linux).
//!
//! Invariants:
//! - No panic crosses the boundary: thunks return the interface's failure value.
//! - No plugin logic: no CUDA, no bundle, no file.
//! - No `thread_local` with a destructor, which would keep the library mapped after `dlclose`.
#![allow(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!("`panic = \"abort\"` is not supported: thunks must catch panics");

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
pub use thunk::caught;
