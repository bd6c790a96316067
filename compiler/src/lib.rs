//! From TOML manifests and CUDA C++ kernels to TensorRT plugin libraries.
//!
//! The phases over the crates of the compiler; data flows one way through them. Nothing here talks to a GPU.
//! Errors of the user are [`diagnostic::Diagnostic`]s that point into the TOML or the `.cu` file.

pub use cubinder_analysis::{check, kernel_text, precompiled, verify};
pub use cubinder_code_object::{block_limits, cubin, kernel_signature, loaded, signature};
pub use cubinder_cuda_text::{cuda, manifest_names};
pub use cubinder_import::foreign;
pub use cubinder_library as library;
pub use cubinder_manifest::{config, file_kind, library_name, manifest, nvrtc_option, resolve, tables};
pub use cubinder_node::{cases, eval, query, trial, tuning};
pub use cubinder_nvrtc::{cache, codegen, installation, nvrtc, toolkit};
pub use cubinder_onnx::nodes as onnx;
pub use cubinder_source::{columns, diagnostic, path, reported_path, rules, source, whole};

pub mod checkup;
pub mod compile;
pub mod inspect;
pub mod new;
pub mod pack;
pub mod project;
pub mod thin;
