//! Parses manifests and `cubinder.toml`, and resolves manifests to plugin drafts.

pub mod config;
mod errors;
pub mod file_kind;
pub mod library_name;
pub mod manifest;
pub mod nvrtc_option;
pub mod placeholder;
pub mod resolve;
pub mod tables;

use cubinder_code_object::{kernel_signature, loaded};
use cubinder_source::{diagnostic, path, rules, source};
