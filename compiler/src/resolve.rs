//! Names, types and expressions of a manifest become a draft of the plugin model.
//!
//! A draft lacks what only a compile can tell: the order and types of the kernels' parameters, and the code.

use std::path::PathBuf;

use cubinder_bundle::expr::Expr;
use cubinder_bundle::{DataType, Plugin, Value};

use crate::diagnostic::Span;

/// A plugin before its kernels are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDraft {
    /// The model; its launches have no arguments and no code yet.
    pub plugin: Plugin,
    /// One unit for each launch of each variant.
    pub units: Vec<Unit>,
}

/// What has to be compiled for one launch of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Index of the variant in the plugin.
    pub variant: usize,
    /// Index of the launch in the variant.
    pub launch: usize,
    /// The CUDA source, resolved against the manifest's folder.
    pub source: PathBuf,
    /// Where the manifest names the source.
    pub source_span: Span,
    /// The kernel as C++ names it, type parameters and constants replaced: `circ_pad<float, 4>`.
    pub kernel: String,
    /// Where the manifest names the kernel.
    pub kernel_span: Span,
    /// The variant's type parameters: `T` and what it is.
    pub types: Vec<(String, DataType)>,
    /// The variant's constants.
    pub constants: Vec<(String, Value)>,
    /// The arguments by name, in the manifest's order.
    pub args: Vec<ArgDraft>,
    /// Where the table of arguments is.
    pub args_span: Span,
}

/// An argument before the kernel's parameters are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgDraft {
    /// The parameter's name.
    pub name: String,
    /// Where the name is.
    pub name_span: Span,
    /// What is passed.
    pub value: ArgDraftValue,
    /// Where the value is.
    pub value_span: Span,
}

/// What an argument passes.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgDraftValue {
    /// A tensor's device pointer: index over inputs, then outputs.
    Tensor(u32),
    /// A value.
    Expr(Expr),
}
