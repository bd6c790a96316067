//! Compiles kernels with NVRTC: finds the toolkit, writes translation units, caches compiled code.

pub mod cache;
pub mod codegen;
pub mod installation;
pub mod nvrtc;
pub mod toolkit;

use cubinder_code_object::{cubin, kernel_signature, signature};
use cubinder_cuda_text::{cuda, directives, manifest_names};
use cubinder_manifest::{manifest, nvrtc_option, resolve};
use cubinder_source::{diagnostic, path, rules, source};

#[cfg(test)]
#[path = "../../testing"]
mod test_support {
    mod sample;
    mod units;

    pub(crate) use sample::Sample;
    pub(crate) use units::{draft, nvrtc, resolved, show, toolkit, unit};
}
