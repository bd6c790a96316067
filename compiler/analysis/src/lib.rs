//! Checks manifests, kernel texts, precompiled and compiled code against each other.

pub mod check;
pub mod kernel_text;
pub mod precompiled;
pub mod verify;

use cubinder_code_object::{block_limits, cubin, kernel_signature, loaded};
use cubinder_cuda_text::{cuda, directives, manifest_names};
use cubinder_import::foreign;
use cubinder_manifest::{manifest, nvrtc_option, resolve};
#[cfg(test)]
use cubinder_nvrtc::codegen;
use cubinder_nvrtc::{nvrtc, toolkit};
use cubinder_source::{diagnostic, rules};

#[cfg(test)]
#[path = "../../testing"]
mod test_support {
    mod cuda_pieces;
    mod sample;
    mod units;

    pub(crate) use cuda_pieces::cuda_pieces;
    pub(crate) use sample::Sample;
    pub(crate) use units::{draft, resolved, show, toolkit};
}
