//! Reads kernel parameters from debug information (`--device-debug`) of PTX or cubins.

mod dwarf;
mod ptx;

pub use dwarf::{SignatureError, read_cubin, read_ptx};

#[cfg(test)]
mod tests;
