//! Compiles TOML manifests and CUDA C++ kernels to TensorRT plugin libraries. User errors are
//! [`cubinder_source::diagnostic::Diagnostic`]s with locations.

pub mod build;
pub mod check_plugins;
pub mod compile;
pub mod doctor;
mod errors;
pub mod extract;
pub mod inspect;
pub mod new;
pub mod pack;
pub mod project;
pub mod remote;
pub mod run;
pub mod target_choice;
pub mod thin;

pub use errors::WarningsDenied;
