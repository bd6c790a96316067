//! Evaluates, tests and compares single nodes of a plugin, and handles measured times.

pub mod cases;
mod errors;
pub mod eval;
pub mod query;
pub mod trial;
pub mod tuning;

use cubinder_analysis::{precompiled, verify};
use cubinder_import::foreign;
use cubinder_manifest::{file_kind, manifest, resolve, tables};
use cubinder_nvrtc::{cache, codegen, nvrtc, toolkit};
use cubinder_source::{columns, diagnostic, path, reported_path, rules, source};

#[cfg(test)]
#[path = "../../testing"]
mod test_support {
    mod sample;
    mod units;

    pub(crate) use sample::Sample;
    pub(crate) use units::{resolved, show, toolkit};
}
