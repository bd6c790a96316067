//! The CUDA driver for tools that run plugins: one GPU, memory whose surroundings are watched, and a node's launches.
//!
//! Owns: finding the driver and its functions ([`Driver`]), its errors as values ([`DriverError`]), a context of one device
//! ([`Context`]), memory between guard bands ([`Guarded`]), code objects in the driver ([`Code`]), queueing what
//! [`cubinder_launch`] says of a variant ([`Prepared`]), how long what is queued takes on the device ([`timing`]), and the
//! measurement of all variants of a node ([`measure`]).
//!
//! Never: no manifest, no TensorRT, no link against `libcuda`, no panic where there is no driver or device, no opinion about results, no
//! printing. The runtime plugin has a driver table of its own, because it lives in processes of others, with their contexts and
//! captures; here the process is ours.
//!
//! A kernel is as trustworthy as its author: on a GPU that shares its address space with the host it can write anywhere. Who runs one
//! whose author they do not know runs it in a process that may be lost, as `cubinder test` does with all of them.

#![allow(unsafe_code)] // calls into C

mod code;
mod context;
mod driver;
mod error;
pub mod measure;
mod memory;
mod node;
mod node_memory;
mod prepared;
mod stream;
pub mod timing;

pub use code::Code;
pub use context::{Context, DeviceInfo};
pub use driver::Driver;
pub use error::{DriverError, NoDriver, RunError};
pub use memory::{BAND, Guarded, Side, Stray};
pub use node::Node;
pub use node_memory::{ALIGNMENT, NodeAddresses, NodeMemory};
pub use prepared::{Addresses, Prepared};
pub use stream::Stream;
