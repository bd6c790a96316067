//! Manifests out of files that other compilers made: what the files tell, and marks where they do not.
//!
//! Owns what is found ([`FoundPlugin`]) and the text that is made of it ([`write()`]). Nothing is guessed: where a person has to decide there stands a
//! word in capitals that no manifest declares, so that `cubinder check` asks for each of them. Writes no file.

mod files;
mod text;
mod triton;

pub use files::{files, found};
pub use text::{check_paths, write};
pub use triton::{Constant, Fixed, mistake_of_metadata, triton};

use std::path::PathBuf;

use crate::manifest::CodeKind;

/// What files tell of a plugin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundPlugin {
    /// What the plugin and its code are called.
    pub name: String,
    /// What made the files; empty where they do not say.
    pub made_by: String,
    /// What the type parameter `T` can be; none where there is no such parameter.
    pub types: Vec<String>,
    /// Constants that all code was made for, with their values.
    pub constants: Vec<(String, String)>,
    /// The variants, the most particular one first.
    pub variants: Vec<FoundVariant>,
    /// Whether the grid is said in programs, each of which is a whole cluster in x, as Triton does.
    pub counts_programs: bool,
    /// What a person should know, as comments at the top.
    pub remarks: Vec<String>,
}

/// One way of launching.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundVariant {
    /// One for each type that `T` can be, else one.
    pub codes: Vec<FoundCode>,
    /// Constants of its own, with their values.
    pub constants: Vec<(String, String)>,
    /// When it is right, where that is known to be not always.
    pub guard: Option<String>,
    /// What tells it apart, for people.
    pub about: String,
    /// The block, where the files say which it is.
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes, as an expression, where the files say how much; none where they do not.
    pub shared_bytes: Option<String>,
    /// Whether some types take less of it.
    pub shared_differs_by_type: bool,
    /// Clusters.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks run at once.
    pub cooperative: bool,
    /// Whether it may begin before the step before it has ended.
    pub programmatic: bool,
}

/// The code of a variant for one type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundCode {
    /// What `T` is.
    pub ty: Option<String>,
    /// The kernel's symbol.
    pub kernel: String,
    /// Its parameters.
    pub params: Vec<FoundParam>,
    /// The files.
    pub files: Vec<(CodeKind, PathBuf)>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundParam {
    /// Its name.
    pub name: String,
    /// What stands behind the name: `: const f32* aligned(16)`, ` == 1`.
    pub rest: String,
    /// What it is bound to.
    pub role: Role,
    /// What a person should know of it; empty where that is nothing.
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

/// What a parameter is bound to.
#[derive(Debug, Clone, PartialEq)]
pub enum Role {
    /// An input of this element type.
    Input(String),
    /// An output of this element type.
    Output(String),
    /// A tensor of which it is not known whether it is read or written.
    Tensor,
    /// Something that only a person knows.
    Unknown,
    /// This expression, as TOML.
    Is(String),
    /// A scratch buffer of these many bytes for each block.
    Scratch(u64),
}

/// A name that can stand in a manifest.
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
