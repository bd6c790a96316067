//! One precompiled code object, as read from its file.

use std::collections::BTreeMap;

use cubinder_model::{CodeObject, Digest, KernelFacts, Target};

use crate::cubin::{LaunchRules, PtxOrigin};
use crate::kernel_signature::Signature;

/// What a file of code holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedCode {
    /// What it is for.
    pub target: Target,
    /// The code as the run time takes it: PTX has no NUL.
    pub bytes: Vec<u8>,
    /// The kernels, sorted by symbol; at least one.
    pub kernels: Vec<KernelFacts>,
    /// What each of them demands of its launch, by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
    /// The kernels' parameters from the debug information of a cubin, by symbol.
    pub signatures: BTreeMap<String, Signature>,
    /// The release of CUDA that made a cubin, where it says so.
    pub release: Option<(u32, u32)>,
    /// What made a cubin, where it says so; else empty.
    pub tool: String,
    /// Of PTX: its version, and what else it says.
    pub ptx: Option<((u32, u32), PtxOrigin)>,
    /// What `NAME.ttir` beside the file says, where Triton wrote one.
    pub triton: Option<Function>,
    /// Whether a cubin does not tell what architecture it was compiled for, and is therefore taken to run on that of its header alone.
    pub is_alone: bool,
}

impl LoadedCode {
    /// The code as a bundle has it.
    #[must_use]
    pub fn object(&self) -> CodeObject {
        CodeObject {
            target: self.target,
            digest: Digest::compute(&self.bytes),
            kernels: self.kernels.clone(),
            bytes: self.bytes.clone().into(),
        }
    }
}

/// The function of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub arguments: Vec<Argument>,
    /// The Python file that defines it and the line there, from 1, where the text says so.
    pub place: Option<(String, u32)>,
}

/// A parameter of a kernel of Triton's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What the author calls it.
    pub name: String,
    /// Its type: `f32`, `i64`; of a pointer what it points to.
    pub ty: String,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// What the value is a multiple of, for which the code was made.
    pub divisibility: Option<u32>,
    /// What else the code was made for that is not understood here.
    pub unknown: Vec<String>,
}
