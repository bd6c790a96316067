//! Reads kernels' parameter names and types from the debug information of a compile.
//!
//! It comes from `--device-debug`, in PTX or in cubins. No C++ text is read, and no argument is checked.

mod dwarf;
mod ptx;

pub use dwarf::{SignatureError, read_cubin, read_ptx};

#[cfg(test)]
mod tests;
