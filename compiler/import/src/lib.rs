//! Reads precompiled cubins and PTX, also those of Triton, and writes manifests for them.

pub mod foreign;

use cubinder_code_object::{block_limits, cubin, kernel_signature, loaded, signature};
use cubinder_manifest::{manifest, placeholder, resolve};
use cubinder_source::{diagnostic, path, rules, source};
