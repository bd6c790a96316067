//! Identities in TensorRT's registry.

use std::borrow::Cow;
use std::ffi::CStr;

/// The identity of a creator or a plugin's core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The ONNX op type, or an engine's core name.
    pub name: Cow<'static, CStr>,
    /// "1" if an ONNX node has none.
    pub version: Cow<'static, CStr>,
    /// The namespace; may be empty.
    pub namespace: Cow<'static, CStr>,
}

impl Identity {
    /// Creates an identity.
    pub const fn new(name: &'static CStr, version: &'static CStr, namespace: &'static CStr) -> Self {
        Self {
            name: Cow::Borrowed(name),
            version: Cow::Borrowed(version),
            namespace: Cow::Borrowed(namespace),
        }
    }
}
