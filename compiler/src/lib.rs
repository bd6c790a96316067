//! From TOML manifests and CUDA C++ kernels to TensorRT plugin libraries.
//!
//! The modules are the pipeline, in reading order; data flows one way through them. Nothing here talks to a GPU.
//! Errors of the user are [`diagnostic::Diagnostic`]s that point into the TOML or the `.cu` file.

pub use cubinder_code_object::{block_limits, cubin, kernel_signature, loaded, signature};
use cubinder_cuda_text::directives;
pub use cubinder_cuda_text::{cuda, manifest_names};
pub use cubinder_import::foreign;
pub use cubinder_library as library;
pub use cubinder_manifest::{config, file_kind, library_name, manifest, nvrtc_option, resolve, tables};
pub use cubinder_nvrtc::{cache, codegen, installation, nvrtc, toolkit};
pub use cubinder_source::{columns, diagnostic, path, reported_path, rules, source, whole};

pub mod check;
pub mod project;

pub mod checkup;

pub mod kernel_text;
pub mod precompiled;
pub mod thin;
pub mod verify;

pub mod pack;

pub mod compile;

pub mod cases;
pub mod eval;
pub mod inspect;
pub mod new;
pub mod onnx;
pub mod query;
pub mod trial;
pub mod tuning;

#[cfg(test)]
#[path = "../testing"]
mod test_support {
    mod cuda_pieces;
    mod sample;
    mod units;

    pub(crate) use cuda_pieces::cuda_pieces;
    pub(crate) use sample::Sample;
    pub(crate) use units::{draft, nvrtc, resolved, show};
}
