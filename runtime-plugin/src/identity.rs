//! The core names, under which an engine finds its runtime.
//!
//! They differ from the ops' names: a TensorRT registry rejects a library if it already has one of its creators, so the
//! names of builds and of runs must be disjoint.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use cubinder_model::{Digest, container, core_name};
use trt_abi::Identity;

pub(crate) const NAMESPACE: &CStr = core_name::NAMESPACE;

/// The core name of plugins whose code is in their serialized fields. It ends with the format's version, although the
/// version is also separate: among creators of one name and namespace TensorRT-RTX 1.7 removes the one registered last,
/// or none. One library can follow that order (`abi/src/library.rs`), two libraries with different formats cannot.
pub(crate) const GENERIC_NAME: &CStr = core_name::GENERIC;

/// The name of the one serialized field: a container.
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

/// The cores of older formats: their nodes are rejected with a fix, where TensorRT would only report an unknown plugin.
pub(crate) const OLD_VERSIONS: [Identity; 1] = [Identity::new(c"Kernel", c"1", NAMESPACE)];
