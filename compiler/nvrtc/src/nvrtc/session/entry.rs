//! The cache entries of compiles.

use std::ffi::OsString;

use cubinder_model::{CodeBytes, CodeObject, Digest, Target, TargetKind};
use nvrtc_sys::Output;
use serde::{Deserialize, Serialize};

use crate::cubin;

/// A result with paths that only the compiler knows and the key lacks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored<T> {
    pub(super) value: T,
    /// A file there would take precedence over one that was read.
    pub(super) absent: Vec<OsString>,
}

/// Code packed as in bundles, compressed once by the compiling thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CodeEntry {
    pub(super) nvrtc: (i32, i32),
    pub(super) symbol: String,
    pub(super) log: String,
    /// Digest of the unpacked code.
    pub(super) digest: Digest,
    /// Unpacked length if the code is packed.
    pub(super) unpacked: Option<usize>,
    pub(super) stored: Vec<u8>,
}

impl CodeEntry {
    pub(super) fn new(output: Output, nvrtc: (i32, i32), target: Target) -> Option<CodeEntry> {
        let Output { log, lowered_names, cubin, ptx } = output;
        let bytes = if target.kind == TargetKind::Cubin { cubin } else { ptx };
        let symbol =
            lowered_names.into_iter().next().filter(|symbol| !symbol.is_empty() && !bytes.is_empty())?;
        let digest = Digest::compute(&bytes);
        let packed = CodeBytes::pack(bytes);
        let unpacked = packed.is_packed().then(|| packed.unpacked_length());
        Some(CodeEntry { nvrtc, symbol, log, digest, unpacked, stored: packed.stored().to_vec() })
    }

    pub(super) fn object(&self, target: Target) -> Result<CodeObject, String> {
        let bytes = CodeBytes::from_stored(self.stored.clone(), self.unpacked);
        let bytes = bytes.ok_or_else(|| "invalid stored code".to_owned())?;
        let raw = bytes.unpack(self.digest).map_err(|error| error.to_string())?;
        let kernels = cubin::kernels(target, &raw).map_err(|error| error.to_string())?;
        drop(raw);
        Ok(CodeObject { target, digest: self.digest, kernels, bytes })
    }
}
