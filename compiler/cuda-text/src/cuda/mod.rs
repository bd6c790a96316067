//! Reads kernels of CUDA C++ without a compiler, in linear time. Must not read files or fail: if unknown macros, types
//! or includes matter, returns a [`Doubt`].

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
    /// Declarations in text order.
    pub kernels: Vec<Kernel>,
    /// Unique reasons for possible further kernels.
    pub doubts: Vec<Doubt>,
    /// Functions, perhaps without `__global__`.
    pub functions: Vec<String>,
    /// Whether `using` or a namespace alias adds paths.
    pub has_imports: bool,
    /// Redeclared CUDA types, such as `half`.
    pub own_types: Vec<String>,
}

/// Kernel declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// Range of the name.
    pub name_range: Range<usize>,
    /// Enclosing namespaces, outermost first.
    pub namespaces: Vec<Namespace>,
    /// Template parameters, if any.
    pub template: Option<Vec<TemplateParam>>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Parameter list with parentheses.
    pub params_range: Range<usize>,
    /// Whether a definition.
    pub has_body: bool,
    /// Uncertainty, if any.
    pub doubt: Option<Doubt>,
}

/// Enclosing namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Name, possibly empty.
    pub name: String,
    /// Whether omissible: anonymous or `inline`.
    pub is_transparent: bool,
}

/// Template parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateParam {
    /// Name, possibly empty.
    pub name: String,
    /// Kind.
    pub kind: TemplateKind,
    /// Whether defaulted.
    pub has_default: bool,
}

/// Kind of a template parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// Type.
    Type,
    /// Number or boolean.
    Value,
    /// Template, or unknown.
    Other,
}

/// Parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Name, possibly empty.
    pub name: String,
    /// Range of the whole parameter.
    pub range: Range<usize>,
    /// Type.
    pub ty: Type,
}

/// Type as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Type without `const` and pointers: `unsigned int`, `cubinder::array<int, 4>`, `T`.
    pub base: String,
    /// Pointers, including arrays.
    pub pointers: u8,
    /// Whether the outermost pointee is `const`.
    pub is_const: bool,
    /// Whether unsupported: a reference, a function.
    pub is_other: bool,
    /// Whether it has `__restrict__`.
    pub is_restrict: bool,
}

/// Why a kernel is uncertain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// `#if` in or around the declaration.
    Conditional,
    /// Macro or unknown word.
    Macro(String),
    /// Macro with `__global__`.
    KernelMacro(String),
    /// Unread included file.
    Include(String),
    /// Parameter pack or template.
    Pack,
    /// Template specialization.
    Specialization,
    /// Several kernels with the name.
    Overloaded,
    /// `using` or a namespace alias.
    Import,
    /// Unsupported C++.
    Syntax,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Doubt::Conditional => f.write_str("it depends on `#if`"),
            Doubt::Macro(name) => write!(f, "it depends on the macro `{name}`"),
            Doubt::KernelMacro(name) => write!(f, "the macro `{name}` defines kernels"),
            Doubt::Include(name) => write!(f, "the included `{name}` may declare it"),
            Doubt::Pack => f.write_str("it has a parameter pack"),
            Doubt::Specialization => f.write_str("it is specialized"),
            Doubt::Overloaded => f.write_str("several kernels have this name"),
            Doubt::Import => f.write_str("`using` may declare the name"),
            Doubt::Syntax => f.write_str("its declaration requires a compiler"),
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

/// Returns an unambiguous kernel's parameter range.
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
        // Possible numbers of matched components.
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
