use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use cubinder_model::{CodeBytes, CodeObject, Digest, Target, TargetKind};
use nvrtc_sys::Output;
use serde::{Deserialize, Serialize};

use crate::cubin::{self, LaunchRules};

/// Result with paths that only the compiler knows and the key lacks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored<T> {
    pub(super) value: T,
    /// A file there would take precedence over one that was read.
    pub(super) absent: Vec<OsString>,
    /// Key of the entry with the files that were read; `None` without a trace.
    pub(super) read: Option<Digest>,
}

/// Code packed as in bundles, compressed once by the compiling thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CodeEntry {
    pub(super) nvrtc: (i32, i32),
    /// In the order of the units.
    pub(super) symbols: Vec<String>,
    pub(super) log: String,
    /// Digest of the unpacked code.
    pub(super) digest: Digest,
    /// Unpacked length if the code is packed.
    pub(super) unpacked: Option<usize>,
    pub(super) stored: Vec<u8>,
}

/// A program's code and the launch requirements of its kernels by symbol.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) object: Arc<CodeObject>,
    pub(super) rules: BTreeMap<String, LaunchRules>,
}

impl CodeEntry {
    pub(super) fn new(output: Output, nvrtc: (i32, i32), target: Target) -> Option<CodeEntry> {
        let Output { log, lowered_names: symbols, cubin, ptx } = output;
        let bytes = if target.kind == TargetKind::Cubin { cubin } else { ptx };
        if bytes.is_empty() || symbols.iter().any(String::is_empty) {
            return None;
        }
        let digest = Digest::compute(&bytes);
        let packed = CodeBytes::pack(bytes);
        let unpacked = packed.is_packed().then(|| packed.unpacked_length());
        Some(CodeEntry { nvrtc, symbols, log, digest, unpacked, stored: packed.stored().to_vec() })
    }

    /// Returns NVRTC's output.
    pub(super) fn output(&self, target: Target) -> Option<Output> {
        let bytes = CodeBytes::from_stored(self.stored.clone(), self.unpacked)?;
        let code = bytes.unpack(self.digest).ok()?.to_vec();
        let (cubin, ptx) =
            if target.kind == TargetKind::Cubin { (code, Vec::new()) } else { (Vec::new(), code) };
        Some(Output { log: self.log.clone(), lowered_names: self.symbols.clone(), cubin, ptx })
    }

    pub(super) fn code(&self, target: Target, count: usize) -> Result<Code, String> {
        if self.symbols.len() != count {
            return Err(format!("{} symbols for {count} kernels", self.symbols.len()));
        }
        let bytes = CodeBytes::from_stored(self.stored.clone(), self.unpacked);
        let bytes = bytes.ok_or_else(|| "invalid stored code".to_owned())?;
        let raw = bytes.unpack(self.digest).map_err(|error| error.to_string())?;
        let (kernels, rules) = cubin::kernels(target, &raw).map_err(|error| error.to_string())?;
        drop(raw);
        Ok(Code { object: Arc::new(CodeObject { target, digest: self.digest, kernels, bytes }), rules })
    }
}
