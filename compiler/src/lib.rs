//! From TOML manifests and CUDA C++ kernels to TensorRT plugin libraries.
//!
//! The phases over the crates of the compiler; data flows one way through them. Nothing here talks to a GPU.
//! Errors of the user are [`cubinder_source::diagnostic::Diagnostic`]s that point into the TOML or the `.cu` file.

pub mod check_plugins;
pub mod compile;
mod errors;
pub mod inspect;
pub mod new;
pub mod pack;
pub mod project;
pub mod thin;
