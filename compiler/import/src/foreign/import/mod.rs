//! Writes manifests for precompiled code: facts ([`FoundPlugin`]) and text ([`write()`]). Never guesses: unknown
//! facts become undeclared words in capitals, which `cubinder check` reports.

mod files;
mod text;
mod triton;

pub use files::{files, found};
pub use text::{check_paths, write};
pub use triton::{Constant, ConstantValue, mistake_of_metadata, triton};

use std::path::PathBuf;

use crate::manifest::CodeKind;

/// Facts about a plugin in its files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundPlugin {
    /// Name of plugin and code.
    pub name: String,
    /// Compiler; empty if unknown.
    pub made_by: String,
    /// Types of `T`; may be empty.
    pub types: Vec<String>,
    /// Constants of all code, with values.
    pub constants: Vec<(String, String)>,
    /// Variants, most specific first.
    pub variants: Vec<FoundVariant>,
    /// Whether the grid counts Triton programs, each a cluster in x.
    pub counts_programs: bool,
    /// Comments for the manifest's top.
    pub remarks: Vec<String>,
}

/// Launch variant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundVariant {
    /// One code per type `T`, or one code.
    pub codes: Vec<FoundCode>,
    /// Own constants, with values.
    pub constants: Vec<(String, String)>,
    /// Condition, if known.
    pub guard: Option<String>,
    /// Description that distinguishes it from other variants.
    pub about: String,
    /// Block, if known.
    pub block: Option<[u32; 3]>,
    /// Expression of the dynamic shared bytes, if known.
    pub shared_bytes: Option<String>,
    /// Whether some types need fewer bytes.
    pub shared_differs_by_type: bool,
    /// Cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once.
    pub cooperative: bool,
    /// Whether it may start early.
    pub programmatic: bool,
}

/// A variant's code for one type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundCode {
    /// Type `T`.
    pub ty: Option<String>,
    /// Kernel symbol.
    pub kernel: String,
    /// Parameters.
    pub params: Vec<FoundParam>,
    /// Files.
    pub files: Vec<(CodeKind, PathBuf)>,
}

/// Kernel parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundParam {
    /// Name.
    pub name: String,
    /// Text after the name: `: const f32* aligned(16)`, ` == 1`.
    pub rest: String,
    /// Binding.
    pub role: Role,
    /// Comment, possibly empty.
    pub about: String,
}

impl FoundParam {
    fn new(name: &str, rest: String, role: Role) -> FoundParam {
        FoundParam { name: name.to_owned(), rest, role, about: String::new() }
    }

    fn about(mut self, text: String) -> FoundParam {
        self.about = text;
        self
    }
}

/// Binding of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// Input of this element type.
    Input(String),
    /// Output of this element type.
    Output(String),
    /// Tensor, input or output.
    Tensor,
    /// Value that the user must supply.
    Unknown,
    /// TOML expression.
    Is(String),
    /// Scratch buffer of this many bytes per block.
    Scratch(u64),
}

/// Converts a text to a name that manifests accept.
#[must_use]
pub fn identifier(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let clean = clean.trim_matches('_');
    match clean.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => clean.to_owned(),
        Some(_) => format!("k{clean}"),
        None => "plugin".to_owned(),
    }
}
