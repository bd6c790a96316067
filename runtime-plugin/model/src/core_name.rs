//! Core names, by which an engine finds its nodes' runtime.

use std::ffi::CStr;

use crate::digest::ShortDigest;

/// The namespace of every core name.
pub const NAMESPACE: &CStr = c"cubinder";

/// The core name of plugins with code in their serialized fields; ends with the format's version.
pub const GENERIC: &CStr = c"Kernel2";

/// Returns the core name of plugins with code in this bundle's code library.
#[must_use]
pub fn of_library(bundle: ShortDigest) -> String {
    format!("Kernel-{bundle}")
}
