//! A precompiled code object.

use std::collections::BTreeMap;

use cubinder_model::{CodeObject, Digest, KernelFacts, Target};

use crate::cubin::{LaunchRules, PtxOrigin};
use crate::kernel_signature::Signature;

/// A code file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedCode {
    /// Its target.
    pub target: Target,
    /// The code; PTX without NUL.
    pub bytes: Vec<u8>,
    /// The kernels, sorted by symbol; at least one.
    pub kernels: Vec<KernelFacts>,
    /// Launch requirements by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
    /// Parameters by symbol, from debug information.
    pub signatures: BTreeMap<String, Signature>,
    /// A cubin's CUDA release, if known.
    pub release: Option<(u32, u32)>,
    /// A cubin's compiler, or empty.
    pub tool: String,
    /// PTX's version and further facts.
    pub ptx: Option<((u32, u32), PtxOrigin)>,
    /// The contents of Triton's `NAME.ttir` beside the file.
    pub triton: Option<Function>,
    /// Whether the suffix is unknown: the cubin is assumed to run only on its header's architecture.
    pub is_alone: bool,
}

impl LoadedCode {
    /// Returns the code for a bundle.
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

/// Triton's kernel function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub arguments: Vec<Argument>,
    /// Its definition in Python: file, and line from 1.
    pub place: Option<(String, u32)>,
}

/// A Triton kernel's parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its type (`f32`, `i64`) or pointee.
    pub ty: String,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// The divisibility that the code assumes.
    pub divisibility: Option<u32>,
    /// Other specializations, not understood.
    pub unknown: Vec<String>,
}
