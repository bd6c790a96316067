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
    /// Code; PTX without NUL.
    pub bytes: Vec<u8>,
    /// Kernels by symbol; at least one.
    pub kernels: Vec<KernelFacts>,
    /// Launch requirements by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
    /// Parameters by symbol, from debug information.
    pub signatures: BTreeMap<String, Signature>,
    /// Cubin's CUDA release, if known.
    pub release: Option<(u32, u32)>,
    /// Cubin's compiler, if known.
    pub tool: String,
    /// PTX version and facts.
    pub ptx: Option<((u32, u32), PtxOrigin)>,
    /// Triton's `NAME.ttir` beside the file.
    pub triton: Option<Function>,
    /// Whether the suffix is unknown.
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
    /// Name.
    pub name: String,
    /// Parameters.
    pub arguments: Vec<Argument>,
    /// Python file, and line from 1.
    pub place: Option<(String, u32)>,
}

/// Triton kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Name.
    pub name: String,
    /// Type (`f32`, `i64`) or pointee.
    pub ty: String,
    /// Whether a pointer.
    pub is_pointer: bool,
    /// Assumed divisibility.
    pub divisibility: Option<u32>,
    /// Unsupported specializations.
    pub unknown: Vec<String>,
}
