//! The core names, unlike the ops': a registry rejects libraries with a known creator.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use cubinder_model::{Digest, container, core_name};
use trt_abi::Identity;

pub(crate) const NAMESPACE: &CStr = core_name::NAMESPACE;

/// Ends with the format's version: of equally named creators TensorRT-RTX 1.7 removes the last or none, which two
/// libraries cannot follow.
pub(crate) const GENERIC_NAME: &CStr = core_name::GENERIC;

/// The serialized field: a container.
pub(crate) const NODE_FIELD: &CStr = c"node";

pub(crate) fn generic() -> Identity {
    core(GENERIC_NAME.into())
}

pub(crate) fn of_library(bundle: &Digest) -> Identity {
    core(CString::new(core_name::of_library(bundle.shortened())).unwrap_or_default().into())
}

fn core(name: Cow<'static, CStr>) -> Identity {
    let version = CString::new(container::FORMAT_VERSION.to_string()).unwrap_or_default();
    Identity { name, version: version.into(), namespace: NAMESPACE.into() }
}

/// Rejects older formats with a fix.
pub(crate) const OLD_VERSIONS: [Identity; 1] = [Identity::new(c"Kernel", c"1", NAMESPACE)];
