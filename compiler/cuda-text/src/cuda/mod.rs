//! Reads kernels of CUDA C++ without a compiler, for `cubinder check` and messages.
//!
//! Macros, external types and includes are unknown; if they matter, the result is a [`Doubt`], not an error. Must not
//! read files or fail; linear time.

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

/// A text's kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernels {
    /// The declarations in text order.
    pub kernels: Vec<Kernel>,
    /// Why further kernels may exist, without duplicates.
    pub doubts: Vec<Doubt>,
    /// Functions outside of classes, which may lack `__global__`.
    pub functions: Vec<String>,
    /// Whether `using` or a namespace alias adds paths.
    pub has_imports: bool,
    /// Redeclared CUDA types, such as `half`.
    pub own_types: Vec<String>,
}

/// A kernel declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// The name's range.
    pub name_range: Range<usize>,
    /// The enclosing namespaces, outermost first.
    pub namespaces: Vec<Namespace>,
    /// The template parameters of a template.
    pub template: Option<Vec<TemplateParam>>,
    /// The parameters in order.
    pub params: Vec<Param>,
    /// The parameter list with parentheses.
    pub params_range: Range<usize>,
    /// Whether it is a definition.
    pub has_body: bool,
    /// Why it is uncertain, if so.
    pub doubt: Option<Doubt>,
}

/// An enclosing namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name, possibly empty.
    pub name: String,
    /// Whether names may omit it: anonymous or `inline`.
    pub is_transparent: bool,
}

/// A template parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateParam {
    /// Its name, possibly empty.
    pub name: String,
    /// Its kind.
    pub kind: TemplateKind,
    /// Whether it has a default.
    pub has_default: bool,
}

/// The kind of a template parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// A type.
    Type,
    /// A number or boolean.
    Value,
    /// A template, or decided by a declaration in another text.
    Other,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name, possibly empty.
    pub name: String,
    /// Its whole range.
    pub range: Range<usize>,
    /// Its type.
    pub ty: Type,
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Without `const` and pointers: `unsigned int`, `cubinder::array<int, 4>`, `T`.
    pub base: String,
    /// The number of pointers; arrays count as pointers.
    pub pointers: u8,
    /// Whether the outermost pointer's target is `const`.
    pub is_const: bool,
    /// Whether it is unsupported: a reference, a function.
    pub is_other: bool,
    /// Whether it has `__restrict__`.
    pub is_restrict: bool,
}

/// Why a kernel is uncertain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// `#if` in or around the declaration.
    Conditional,
    /// A macro, or a word that must be one.
    Macro(String),
    /// A macro with `__global__`.
    KernelMacro(String),
    /// An included file that was not read.
    Include(String),
    /// A template or parameter pack.
    Pack,
    /// A template specialization.
    Specialization,
    /// Several kernels with the name.
    Overloaded,
    /// `using` or a namespace alias may declare the name.
    Import,
    /// Unsupported C++.
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

/// Returns the last token before an offset, unless a preprocessor line intervenes.
pub fn token_before(text: &str, at: usize) -> Option<Range<usize>> {
    let lexed = lexer::lex(text);
    let index = lexed.tokens.partition_point(|token| token.range.end <= at);
    let token = lexed.tokens.get(index.checked_sub(1)?)?;
    let is_between = lexed.directives.iter().any(|line| line.before == index);
    (!is_between).then(|| token.range.clone())
}

/// Returns the parameters' range of an unambiguous kernel.
pub fn parameters_of(kernel: &str, text: &str) -> Option<Range<usize>> {
    let path = name::parse(kernel)?.path;
    let kernels = read(text).kernels;
    let mut named = kernels.iter().filter(|kernel| kernel.is_named(&path));
    let found = named.next()?;
    named.next().is_none().then(|| found.params_range.clone())
}

impl Kernel {
    /// Returns the qualified name without anonymous and `inline` namespaces.
    #[must_use]
    pub fn path(&self) -> String {
        let outer = self.namespaces.iter().filter(|namespace| !namespace.is_transparent);
        outer.map(|namespace| format!("{}::", namespace.name)).chain([self.name.clone()]).collect()
    }

    /// Returns whether C++ finds the kernel by this path.
    #[must_use]
    pub fn is_named(&self, path: &str) -> bool {
        let mut wanted = path.trim().trim_start_matches("::").rsplit("::").map(str::trim);
        if wanted.next() != Some(&self.name) {
            return false;
        }
        let wanted: Vec<&str> = wanted.collect();
        // Possible numbers of matched components: transparent namespaces are optional.
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

    /// Returns the name with template parameters: `detail::scale<T, N>`.
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
