//! The CUDA driver for tools that run plugins: one GPU, guarded memory, launches, times. Never panics without a driver.
//!
//! Kernels can write host memory on some GPUs: run unknown ones in a child process, as `cubinder test` does.

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
