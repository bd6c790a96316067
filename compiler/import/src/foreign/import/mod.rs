//! Writes manifests for precompiled code.
//!
//! Owns the facts ([`FoundPlugin`]) and their text ([`write()`]). Must not guess or write files: unknown facts become
//! undeclared words in capitals, which `cubinder check` reports.

mod files;
mod text;
mod triton;

pub use files::{files, found};
pub use text::{check_paths, write};
pub use triton::{Constant, Fixed, mistake_of_metadata, triton};

use std::path::PathBuf;

use crate::manifest::CodeKind;

/// The facts about a plugin in its files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundPlugin {
    /// The name of the plugin and its code.
    pub name: String,
    /// The compiler of the files; empty if unknown.
    pub made_by: String,
    /// The types of the parameter `T`; empty without it.
    pub types: Vec<String>,
    /// Constants of all code, with values.
    pub constants: Vec<(String, String)>,
    /// The variants, most specific first.
    pub variants: Vec<FoundVariant>,
    /// Whether the grid counts Triton programs, each a cluster in x.
    pub counts_programs: bool,
    /// Comments for the top of the manifest.
    pub remarks: Vec<String>,
}

/// A launch variant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundVariant {
    /// One per type `T`, or one.
    pub codes: Vec<FoundCode>,
    /// The variant's own constants, with values.
    pub constants: Vec<(String, String)>,
    /// Its condition, if known.
    pub guard: Option<String>,
    /// Its distinction from the others, as a description.
    pub about: String,
    /// The block, if known.
    pub block: Option<[u32; 3]>,
    /// An expression of the dynamic shared bytes, if known.
    pub shared_bytes: Option<String>,
    /// Whether some types need fewer bytes.
    pub shared_differs_by_type: bool,
    /// The cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once.
    pub cooperative: bool,
    /// Whether it may start before the previous step ends.
    pub programmatic: bool,
}

/// A variant's code for one type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundCode {
    /// The type `T`.
    pub ty: Option<String>,
    /// The kernel's symbol.
    pub kernel: String,
    /// Its parameters.
    pub params: Vec<FoundParam>,
    /// Its files.
    pub files: Vec<(CodeKind, PathBuf)>,
}

/// A kernel parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundParam {
    /// Its name.
    pub name: String,
    /// The text after the name: `: const f32* aligned(16)`, ` == 1`.
    pub rest: String,
    /// Its binding.
    pub role: Role,
    /// A comment, possibly empty.
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

/// The binding of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// An input of this element type.
    Input(String),
    /// An output of this element type.
    Output(String),
    /// A tensor, input or output.
    Tensor,
    /// A value that the user must supply.
    Unknown,
    /// A TOML expression.
    Is(String),
    /// A scratch buffer of this many bytes per block.
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
