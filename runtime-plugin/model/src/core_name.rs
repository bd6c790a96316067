//! The names under which an engine finds what runs its nodes.
//!
//! The runtime registers them, and who shows an engine says what it asks for. Never an op's own name: see the runtime's
//! `identity`.

use std::ffi::CStr;

use crate::digest::ShortDigest;

/// The namespace of every core name.
pub const NAMESPACE: &CStr = c"cubinder";

/// The core name of plugins whose code is in their serialized fields. It ends with the version of the format.
pub const GENERIC: &CStr = c"Kernel2";

/// The core name of plugins whose code lies in the code library of this bundle.
#[must_use]
pub fn of_library(bundle: ShortDigest) -> String {
    format!("Kernel-{bundle}")
}
