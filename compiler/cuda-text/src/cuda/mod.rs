//! A light reader of CUDA C++: which kernels a text declares, with their template parameters and parameters.
//!
//! It reads kernels without a compiler ([`read`]), for `cubinder check`, which has no NVRTC, and for messages. It knows no macros, no types that are declared elsewhere and no
//! included text; where one of these could change what it read it says so ([`Doubt`]), and nothing is an error because of
//! what it does not know. Never reads a file, never fails, and takes time in proportion to the text.

mod declaration;
mod lexer;
pub mod lookup;
pub mod name;
mod parameter;
mod reader;
mod surroundings;

use std::collections::BTreeSet;
use std::ops::Range;

pub use lexer::{Token, TokenKind, lex, word};
pub use reader::read;
pub use surroundings::is_cuda_header;

/// The kernels of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernels {
    /// The kernels that the text declares, in its order: a declaration and its definition are two.
    pub kernels: Vec<Kernel>,
    /// Why the text may have kernels that are not among them, each reason once.
    pub doubts: Vec<Doubt>,
    /// Other functions outside of classes, by name: one may be a kernel that lacks its `__global__`.
    pub functions: Vec<String>,
    /// Whether `using` or a namespace of another name makes names known by more than their own path.
    pub has_imports: bool,
    /// Names that every CUDA text knows as types and that this one declares itself, such as `half`.
    pub own_types: Vec<String>,
}

/// A declaration of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub name_range: Range<usize>,
    /// The namespaces around it, outermost first.
    pub namespaces: Vec<Namespace>,
    /// Its template parameters; absent where it is no template.
    pub template: Option<Vec<TemplateParam>>,
    /// Its parameters in their order.
    pub params: Vec<Param>,
    /// Where the list of parameters stands, with its parentheses.
    pub params_range: Range<usize>,
    /// Whether this is the definition.
    pub has_body: bool,
    /// Why it may be something else than it seems; `None` if the declaration was understood as a whole.
    pub doubt: Option<Doubt>,
}

/// A namespace around a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name; empty where it has none.
    pub name: String,
    /// Whether names in it are known without it: it has no name, or is `inline`.
    pub is_transparent: bool,
}

/// A template parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateParam {
    /// Its name; empty where it has none.
    pub name: String,
    /// What it takes.
    pub kind: TemplateKind,
    /// Whether it can be left out.
    pub has_default: bool,
}

/// What a template parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// A type.
    Type,
    /// A number or a boolean.
    Value,
    /// A template, or something that a declaration elsewhere decides.
    Other,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name; empty where it has none.
    pub name: String,
    /// All of it in the text.
    pub range: Range<usize>,
    /// Its type.
    pub ty: Type,
}

/// A type, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The type without `const` and pointers, words with single blanks: `unsigned int`, `cubinder::array<int, 4>`, `T`.
    pub base: String,
    /// How many pointers are around it; an array parameter is a pointer.
    pub pointers: u8,
    /// Whether what the outermost pointer points to is `const`.
    pub is_const: bool,
    /// Whether it is something that is not read: a reference, a function.
    pub is_other: bool,
    /// Whether it says `__restrict__`.
    pub is_restrict: bool,
}

/// Why the reader cannot tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// `#if` in the declaration or around it.
    Conditional,
    /// A macro, or a word that can only be one.
    Macro(String),
    /// A macro of the text has `__global__` in it.
    KernelMacro(String),
    /// A file that is included and was not read.
    Include(String),
    /// A parameter pack, in the template or in the parameters.
    Pack,
    /// A specialization of a template.
    Specialization,
    /// Several kernels of the name.
    Overloaded,
    /// The name may be made known by `using` or a namespace of another name.
    Import,
    /// C++ that the reader does not understand.
    Syntax,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Doubt::Conditional => f.write_str("it depends on `#if`"),
            Doubt::Macro(name) => write!(f, "it depends on the macro `{name}`"),
            Doubt::KernelMacro(name) => write!(f, "the macro `{name}` makes kernels"),
            Doubt::Include(name) => write!(f, "`{name}`, which is included, may have it"),
            Doubt::Pack => f.write_str("it has a parameter pack"),
            Doubt::Specialization => f.write_str("it is specialized"),
            Doubt::Overloaded => f.write_str("there are several of the name"),
            Doubt::Import => f.write_str("`using` may make the name known"),
            Doubt::Syntax => f.write_str("its declaration is not understood without a compiler"),
        }
    }
}

/// The token that ends last before a place of a text; nothing where a preprocessor line is between them.
pub fn token_before(text: &str, at: usize) -> Option<Range<usize>> {
    let lexed = lexer::lex(text);
    let index = lexed.tokens.partition_point(|token| token.range.end <= at);
    let token = lexed.tokens.get(index.checked_sub(1)?)?;
    let is_between = lexed.directives.iter().any(|line| line.before == index);
    (!is_between).then(|| token.range.clone())
}

/// Where the parameters of a kernel are in its file, where just one declaration can be meant.
pub fn parameters_of(kernel: &str, text: &str) -> Option<Range<usize>> {
    let path = name::parse(kernel)?.path;
    let kernels = read(text).kernels;
    let mut named = kernels.iter().filter(|kernel| kernel.is_named(&path));
    let found = named.next()?;
    named.next().is_none().then(|| found.params_range.clone())
}

impl Kernel {
    /// The name with its namespaces, as a manifest has to write it: those without a name and `inline` ones are left out.
    #[must_use]
    pub fn path(&self) -> String {
        let outer = self.namespaces.iter().filter(|namespace| !namespace.is_transparent);
        outer.map(|namespace| format!("{}::", namespace.name)).chain([self.name.clone()]).collect()
    }

    /// Whether C++ finds it by this path from outside of all namespaces.
    #[must_use]
    pub fn is_named(&self, path: &str) -> bool {
        let mut wanted = path.trim().trim_start_matches("::").rsplit("::").map(str::trim);
        if wanted.next() != Some(&self.name) {
            return false;
        }
        let wanted: Vec<&str> = wanted.collect();
        // How many of them may be found so far: one that is transparent may be written or left out, and another one may have its name.
        let mut found = BTreeSet::from([0]);
        for namespace in self.namespaces.iter().rev() {
            let matched = found.iter().filter(|count| wanted.get(**count) == Some(&namespace.name.as_str()));
            let matched: Vec<usize> = matched.map(|count| count + 1).collect();
            if !namespace.is_transparent {
                found.clear();
            }
            found.extend(matched);
        }
        found.contains(&wanted.len())
    }

    /// The kernel as a manifest could name it, with its own template parameters: `detail::scale<T, N>`.
    #[must_use]
    pub fn usage(&self) -> String {
        let path = self.path();
        let Some(params) = &self.template else { return path };
        let names = params.iter().filter(|param| !param.has_default).enumerate();
        let names: Vec<String> = names
            .map(|(position, param)| match (param.name.as_str(), param.kind) {
                ("", TemplateKind::Type) => "T".to_owned(),
                ("", _) => format!("N{position}"),
                (name, _) => name.to_owned(),
            })
            .collect();
        format!("{path}<{}>", names.join(", "))
    }
}

#[cfg(test)]
mod tests;
