//! The key table: every table and key of the newest schema edition, what its value is, and what it is for.
//!
//! The JSON Schema ([`super::json_schema`]) and the tables of the reference (`docs/manifest.md`) are made from it. Tests hold
//! it against the reader: both know the same keys, the same keys are required, and every example is read without a word.
//! Never reads anything itself.

mod code;
mod launches;
mod plugin;
mod tensors;
mod variants;

pub use code::{CODE, LAUNCH_OF_CODE};
pub use launches::{COMPILE, DATA, DATA_FILE, LAUNCH, MEMSET, SCRATCH};
pub use plugin::{ATTRIBUTE, PLUGIN, REQUIRE, ROOT};
pub use tensors::{ALIAS, INPUT, LIMITS, OUTPUT, SHAPE_INPUT, SIZE_BOUND, SIZE_TENSOR};
pub use variants::{COMBINATION, FUNCTION, VARIANT};

/// A table of a manifest.
#[derive(Debug)]
pub struct Table {
    /// Its place in the manifest: `attributes.*`, `inputs[]`; empty for the file itself.
    pub path: &'static str,
    /// How errors call it; `NAME` stands for the author's name.
    pub title: &'static str,
    /// What it declares, in one sentence.
    pub doc: &'static str,
    /// Its keys, in the order in which the reference lists them.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What its value is.
    pub form: Form,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it is for, in one or two sentences.
    pub doc: &'static str,
    /// A value, as TOML; empty where the value is a table, whose keys have examples. All examples together are one manifest.
    pub example: &'static str,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// Nothing is meant where it is not there.
    Optional,
    /// This is meant where it is not there.
    Default(&'static str),
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// The schema edition.
    Edition,
    /// Any text.
    Text,
    /// A text that is not empty.
    Message,
    /// A name for expressions and C++.
    Identifier,
    /// Several of them.
    Identifiers,
    /// Identifiers with dots between them, or nothing.
    Namespace,
    /// Letters, digits, `.`, `_`, `+`, `-`.
    Version,
    /// An expression: text, or a number or boolean that stands for itself.
    Expression,
    /// An expression that can only be text.
    ExpressionText,
    /// One to three expressions: x, y and z.
    Expressions,
    /// An element type or a type parameter.
    TensorType,
    /// Element types, each once.
    ElementTypes,
    /// A memory layout or a format parameter.
    TensorFormat,
    /// Memory layouts, each once.
    Formats,
    /// Names of attributes, each once.
    AttributeNames,
    /// The type of an attribute.
    AttributeType,
    /// A value of the attribute's type.
    AttributeValue,
    /// Values of the attribute's type; of a list, of its elements.
    AttributeValues,
    /// A rank or a range of ranks.
    Rank,
    /// A size or a range of sizes.
    Size,
    /// A size, a range of sizes, or one for each dimension.
    Sizes,
    /// A number or a range of numbers of the attribute's type.
    NumberRange,
    /// A number or a boolean.
    Constant,
    /// An element type of tables.
    TableType,
    /// The elements of a table.
    TableValues,
    /// The number of a variant.
    VariantId,
    /// The name of an output or a scratch buffer.
    Memory,
    /// `i32` or `i64`.
    Integers,
    /// The rank of a shape input.
    ShapeInputRank,
    /// An integer or a range of integers.
    IntegerRange,
    /// Nothing but true.
    True,
    /// A byte.
    Byte,
    /// True or false.
    Switch,
    /// A file, relative to the manifest's folder.
    Path,
    /// Folders, relative to the manifest's folder.
    Paths,
    /// A kernel as C++ names it.
    Kernel,
    /// The symbol of a kernel in a file of code.
    Symbol,
    /// Files, relative to the manifest's folder, each once.
    Files,
    /// Parameters of a kernel that another compiler made.
    Parameters,
    /// The name of a type or a format, a number or a boolean.
    Choice,
    /// Options of NVRTC.
    Options,
    /// Targets, each once.
    Targets,
    /// Kinds of code, each once.
    CodeKinds,
    /// What is there for debuggers and profilers.
    Debug,
    /// A release of NVIDIA's driver.
    Driver,
    /// Who launches kernels.
    Route,
    /// A table.
    Table(&'static Table),
    /// An array of tables.
    Tables(&'static Table),
    /// An array of tables of several kinds.
    Kinds(&'static Kinds),
    /// A table of tables, each under a name of the author's.
    Named(&'static Table, Naming),
    /// The same, of several kinds.
    NamedKinds(&'static Kinds, Naming),
    /// A table whose keys are names of the author's.
    Lines(&'static Form, Naming),
}

/// The kinds of the tables of an array, or of those under names.
#[derive(Debug)]
pub struct Kinds {
    /// The keys that decide: a table that has one of them is of the kind at the same place; any other is of the last kind.
    pub keys: &'static [&'static str],
    /// The kinds; one more than there are keys.
    pub tables: &'static [&'static Table],
    /// There must be a table that does not have this key.
    pub but_for: Option<&'static str>,
}

impl Kinds {
    /// The place of the kind of a table that has the keys for which `has` says so.
    pub fn of(&self, has: impl Fn(&str) -> bool) -> usize {
        self.keys.iter().position(|key| has(key)).unwrap_or(self.keys.len())
    }
}

/// The names that an author gives in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// What is named: `an attribute`.
    pub what: &'static str,
    /// Identifiers that cannot be names here.
    pub reserved: Reserved,
    /// A name with the value that it has in the example; no value where that is a table.
    pub example: (&'static str, &'static str),
}

/// Which identifiers cannot be names in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// None that the form knows of.
    None,
    /// Those of TensorRT's ONNX parser.
    OnnxParser,
    /// Those of the element types.
    ElementTypes,
    /// Those of the memory layouts.
    Formats,
}

impl Form {
    /// What the value is, for the reference.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Form::Edition => "the integer 1",
            Form::Text => "string",
            Form::Message => "string, not empty",
            Form::Identifier => "identifier",
            Form::Identifiers => "array of identifiers",
            Form::Namespace => "identifiers with dots between them, or empty",
            Form::Version => "string of letters, digits, `.`, `_`, `+`, `-`",
            Form::Expression => "expression",
            Form::ExpressionText => "expression (a string)",
            Form::Expressions => "array of one to three expressions",
            Form::TensorType => "element type or type parameter",
            Form::ElementTypes => "array of element types",
            Form::TensorFormat => "format or format parameter",
            Form::Formats => "array of formats",
            Form::AttributeNames => "array of names of attributes",
            Form::AttributeType => "attribute type",
            Form::AttributeValue => "value of the attribute's type",
            Form::AttributeValues => "array of values",
            Form::Rank => "integer or range from 0 to 8",
            Form::Size => "integer or range",
            Form::Sizes => "integer, range, or array of them",
            Form::NumberRange => "number or range",
            Form::Constant => "integer, float or boolean",
            Form::TableType => "table type",
            Form::TableValues => "array of numbers or booleans, or an expression",
            Form::VariantId => "integer from 1 to 1000000",
            Form::Memory => "name of an output or a scratch buffer",
            Form::Integers => "`\"i32\"` or `\"i64\"`",
            Form::ShapeInputRank => "0 or 1",
            Form::IntegerRange => "integer or range",
            Form::True => "`true`",
            Form::Byte => "integer from 0 to 255",
            Form::Switch => "boolean",
            Form::Path => "path",
            Form::Paths => "array of paths",
            Form::Kernel => "string, C++",
            Form::Symbol => "symbol",
            Form::Files => "array of paths",
            Form::Parameters => "array of `\"name: type\"` and `\"name == value\"`",
            Form::Choice => "type, format, number or boolean",
            Form::Options => "array of strings",
            Form::Targets => "array of targets",
            Form::CodeKinds => "array of `\"cubin\"` and `\"ptx\"`",
            Form::Debug => "`\"line\"`",
            Form::Driver => "string, a driver's release",
            Form::Route => "`\"plugin\"` or `\"native\"`",
            Form::Table(_) => "table",
            Form::Tables(_) | Form::Kinds(..) => "array of tables",
            Form::Named(..) | Form::NamedKinds(..) => "table of tables",
            Form::Lines(of, _) => match of {
                Form::ElementTypes => "table: name to array of element types",
                Form::Formats => "table: name to array of formats",
                Form::Constant => "table: name to constant",
                Form::Choice => "table: name to type, format, number or boolean",
                _ => "table: name to expression",
            },
        }
    }
}

const fn required(name: &'static str, form: Form, example: &'static str, doc: &'static str) -> Key {
    Key { name, form, presence: Presence::Required, doc, example }
}

const fn optional(name: &'static str, form: Form, example: &'static str, doc: &'static str) -> Key {
    Key { name, form, presence: Presence::Optional, doc, example }
}

const fn otherwise(
    name: &'static str,
    default: &'static str,
    form: Form,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, form, presence: Presence::Default(default), doc, example }
}

const DOC: Key =
    optional("doc", Form::Text, "\"what it is\"", "One sentence for people; `cubinder inspect` shows it.");

/// Every table once, in the order of the reference.
#[must_use]
pub fn tables() -> [&'static Table; 22] {
    [
        &ROOT,
        &PLUGIN,
        &REQUIRE,
        &ATTRIBUTE,
        &INPUT,
        &SHAPE_INPUT,
        &OUTPUT,
        &ALIAS,
        &SIZE_TENSOR,
        &SIZE_BOUND,
        &LIMITS,
        &FUNCTION,
        &COMBINATION,
        &VARIANT,
        &DATA,
        &DATA_FILE,
        &SCRATCH,
        &CODE,
        &MEMSET,
        &LAUNCH,
        &LAUNCH_OF_CODE,
        &COMPILE,
    ]
}

impl Form {
    /// The tables of the keys that a value of this form has, directly or in arrays and tables of the author's names.
    #[must_use]
    pub fn tables(&self) -> &[&'static Table] {
        match self {
            Form::Table(inner) | Form::Tables(inner) | Form::Named(inner, _) => std::slice::from_ref(inner),
            Form::Kinds(kinds) | Form::NamedKinds(kinds, _) => kinds.tables,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
