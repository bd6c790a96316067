//! The names under which an engine finds what runs it.
//!
//! They are not the ops' names: a TensorRT registry refuses a library whole when it holds one of its creators already,
//! so what a build registers and what a run registers must never meet.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

use cubinder_model::{Digest, container, core_name};
use trt_abi::Identity;

/// The namespace of every core name.
pub(crate) const NAMESPACE: &CStr = core_name::NAMESPACE;

/// The core name of plugins whose code is in their serialized fields; `libcubinder.so` registers it. It ends with the version of the
/// format, though its version says it too: of creators that share a name and a namespace TensorRT-RTX 1.7 takes out the one that it was given last
/// or none. One library can mind that order (`abi/src/library.rs`); two libraries with cores of two formats could not be unloaded in any order.
pub(crate) const GENERIC_NAME: &CStr = core_name::GENERIC;

/// The name of the one serialized field: a container.
pub(crate) const NODE_FIELD: &CStr = c"node";

/// The core that runs plugins whose code is in their serialized fields. Its version is that of the format of those fields.
pub(crate) fn generic() -> Identity {
    core(GENERIC_NAME.into())
}

/// The core that runs plugins whose code is in the code library of this bundle.
pub(crate) fn of_library(bundle: &Digest) -> Identity {
    core(CString::new(core_name::of_library(bundle.shortened())).unwrap_or_default().into())
}

fn core(name: Cow<'static, CStr>) -> Identity {
    let version = CString::new(container::FORMAT_VERSION.to_string()).unwrap_or_default();
    Identity { name, version: version.into(), namespace: NAMESPACE.into() }
}

/// The core names and versions of older formats: nodes of them are refused, by name and with what to do, where TensorRT could only say that it does not
/// know the plugin.
pub(crate) const OLD_VERSIONS: [Identity; 1] = [Identity::new(c"Kernel", c"1", NAMESPACE)];
