//! TOML to a spanned syntax tree.
//!
//! Owns the tree ([`Manifest`]) and its reader ([`keys`]), which checks keys, types of values, names, and each number. What names
//! and expressions mean is the next stage's ([`crate::resolve`]). Never reads a file: the text is given.

mod compile;
pub(crate) mod description;
pub(crate) mod errors;
pub(crate) mod json;
pub mod json_schema;
pub mod keys;
mod literal;
mod section;
mod syntax;
mod table;
pub mod toml_reader;
pub(crate) mod value_type;

use std::ops::Range;
use std::sync::Arc;

use cubinder_expr::{DataType, Format, Interval, Value};
use cubinder_model::{AttributeType, ShapeLimits};

use crate::diagnostic::{Diagnostic, Source, suggest};
pub use compile::{CodeKind, CompileDecl, DriverVersion, Route};
pub(crate) use keys::names::unknown_format;
pub(crate) use keys::no_tensors_of;
pub(crate) use keys::tables::size_error as table_size_error;
pub use literal::Text;
pub(crate) use table::MAX_TABLE_BYTES;
pub use table::TableType;

/// The newest schema edition that [`read`] understands.
pub const NEWEST_SCHEMA: i64 = 1;

pub(crate) use cubinder_model::model::MAX_RANK;

/// Something of the manifest with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The thing.
    pub value: T,
    /// Its bytes in the file.
    pub range: Range<usize>,
}

impl<T> From<&Located<T>> for Range<usize> {
    fn from(located: &Located<T>) -> Range<usize> {
        located.range.clone()
    }
}

/// A manifest as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `[plugin]`.
    pub plugin: PluginDecl,
    /// `[attributes.NAME]`, in the file's order.
    pub attributes: Vec<AttributeDecl>,
    /// `[[inputs]]`.
    pub inputs: Vec<InputDecl>,
    /// `[[outputs]]`.
    pub outputs: Vec<OutputDecl>,
    /// `[types]`.
    pub types: Vec<TypeDecl>,
    /// `[formats]`.
    pub formats: Vec<FormatDecl>,
    /// `[[combinations]]`; none: all combinations.
    pub combinations: Vec<CombinationDecl>,
    /// `[constants]`: the same for every variant.
    pub constants: Vec<ConstantDecl>,
    /// `[functions]`.
    pub functions: Vec<FunctionDecl>,
    /// `[[variants]]`; where the file has none, one with id 1.
    pub variants: Vec<VariantDecl>,
    /// `[tables.NAME]`, in the file's order.
    pub tables: Vec<TableDecl>,
    /// `[scratch.NAME]`, in the file's order.
    pub scratch: Vec<ScratchDecl>,
    /// `[[code]]`, in the file's order.
    pub code: Vec<CodeDecl>,
    /// `[[launches]]`, in order; at least one where the manifest is right.
    pub launches: Vec<StepDecl>,
    /// `[compile]`.
    pub compile: CompileDecl,
    /// Names whose declarations could not be read. That was reported; an expression that uses one is not at fault.
    pub broken: Vec<String>,
}

/// `[plugin]`: which operator it is.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDecl {
    /// The ONNX op type.
    pub name: Located<String>,
    /// The namespace, dotted or empty.
    pub namespace: String,
    /// The version.
    pub version: String,
    /// One sentence.
    pub summary: String,
    /// What must hold of a node.
    pub require: Vec<RequireDecl>,
    /// The attributes on which a node's time depends; none: all.
    pub timing: Option<Located<Vec<Located<String>>>>,
    /// The file of cases for whose shapes variants are measured.
    pub tune: Option<Located<String>>,
}

/// One rule of `require`.
#[derive(Debug, Clone, PartialEq)]
pub struct RequireDecl {
    /// A boolean expression.
    pub expr: Text,
    /// What to tell the person whose node breaks it.
    pub message: String,
}

/// `[attributes.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeDecl {
    /// Its name.
    pub name: Located<String>,
    /// Its type.
    pub ty: Located<AttributeType>,
    /// Its default, of that type and within what follows.
    pub default: Option<Value>,
    /// How many elements or bytes it may have.
    pub length: Option<Located<Interval>>,
    /// The least and the greatest number, each where it is given: integers or floats as the type is.
    pub range: Option<Located<(Option<Value>, Option<Value>)>>,
    /// The only values; never empty.
    pub one_of: Option<Located<Vec<Value>>>,
    /// The values that code is compiled for, where it is compiled for each: integers or booleans, never empty.
    pub specialize: Option<Located<Vec<Value>>>,
    /// One sentence.
    pub doc: String,
}

/// `[[inputs]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDecl {
    /// Its name.
    pub name: Located<String>,
    /// A type parameter or an element type.
    pub ty: Located<String>,
    /// A format parameter or a format; none: row major.
    pub format: Option<Located<String>>,
    /// Where its rank is given; none: any.
    pub rank_range: Option<Range<usize>>,
    /// The lowest and the highest rank.
    pub rank: (u8, u8),
    /// What its shape may be.
    pub limits: LimitsDecl,
    /// Where it is a shape input: what each of its values may be, as far as that is said.
    pub values: Option<Located<Interval>>,
    /// One sentence.
    pub doc: String,
}

/// `[[outputs]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDecl {
    /// Its name.
    pub name: Located<String>,
    /// A type parameter or an element type.
    pub ty: Located<String>,
    /// A format parameter or a format; none: row major.
    pub format: Option<Located<String>>,
    /// An expression: an array of integers.
    pub shape: Text,
    /// What its shape may come to.
    pub limits: LimitsDecl,
    /// The input whose memory it shares: then type and shape are that input's.
    pub alias: Option<Located<String>>,
    /// Where it holds a size that the kernels find out: what is known of that beforehand.
    pub size: Option<SizeDecl>,
    /// One sentence.
    pub doc: String,
}

/// `size = { upper = ..., opt = ... }` of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeDecl {
    /// An integer expression: the most that it can be.
    pub upper: Text,
    /// What TensorRT optimizes for; where it is not given, the same.
    pub opt: Option<Text>,
}

/// `limits = { dims = ..., numel = ... }` of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitsDecl {
    /// The limits; where nothing is said, those that hold anyway.
    pub limits: ShapeLimits,
    /// Where they are; empty where nothing is said.
    pub range: Range<usize>,
}

/// A parameter of the table of variants with what it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter<T> {
    /// The parameter.
    pub name: Located<String>,
    /// What it can be.
    pub alternatives: Vec<T>,
    /// Where the list of these is.
    pub range: Range<usize>,
}

/// One line of `[types]`.
pub type TypeDecl = Parameter<DataType>;

/// One line of `[formats]`.
pub type FormatDecl = Parameter<Format>;

/// What a parameter of the table of variants stands for.
pub trait Alternative: Copy + Ord + 'static {
    /// `type`
    const WHAT: &'static str;
    /// `an element type`
    const ONE: &'static str;
    /// `element types`
    const MANY: &'static str;
    /// Each once, in the order in which errors list them.
    const EACH: &'static [Self];

    /// The name used in manifests.
    fn word(self) -> &'static str;
}

impl Alternative for DataType {
    const WHAT: &'static str = "type";
    const ONE: &'static str = "an element type";
    const MANY: &'static str = "element types";
    const EACH: &'static [DataType] = &DataType::ALL;

    fn word(self) -> &'static str {
        self.name()
    }
}

impl Alternative for Format {
    const WHAT: &'static str = "format";
    const ONE: &'static str = "a format";
    const MANY: &'static str = "formats";
    const EACH: &'static [Format] = &Format::ALL;

    fn word(self) -> &'static str {
        self.name()
    }
}

/// One table of `[[combinations]]`: what its parameters may be together. Those that are not named may be anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationDecl {
    /// Alternatives of type parameters.
    pub types: Vec<TypeDecl>,
    /// Alternatives of format parameters.
    pub formats: Vec<FormatDecl>,
    /// Where it begins.
    pub range: Range<usize>,
}

/// One constant.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantDecl {
    /// Its name.
    pub name: Located<String>,
    /// An integer, a float or a boolean.
    pub value: Value,
    /// Where the value is.
    pub value_range: Range<usize>,
}

/// One line of `[functions]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDecl {
    /// Its name.
    pub name: Located<String>,
    /// The names of its parameters.
    pub params: Vec<Located<String>>,
    /// Where the list of them is.
    pub params_range: Range<usize>,
    /// The expression it stands for.
    pub body: Text,
}

/// `[[variants]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantDecl {
    /// The tactic id, at least 1.
    pub id: Located<i32>,
    /// Which alternatives of the type parameters it serves, where not all.
    pub types: Vec<TypeDecl>,
    /// Which alternatives of the format parameters it serves, where not all.
    pub formats: Vec<FormatDecl>,
    /// When it may run: a boolean expression.
    pub guard: Option<Text>,
    /// Constants of this variant.
    pub constants: Vec<ConstantDecl>,
    /// Where it begins; empty where the manifest has no `[[variants]]`.
    pub range: Range<usize>,
}

/// `[tables.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDecl {
    /// Its name.
    pub name: Located<String>,
    /// What its elements are.
    pub ty: Located<TableType>,
    /// Its elements.
    pub values: TableValues,
}

/// The elements of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableValues {
    /// They are listed; their bytes, little-endian.
    Listed(Vec<u8>),
    /// An expression makes them: an array of numbers or booleans.
    Computed(Text),
    /// They are in this file, named relative to the manifest's folder.
    File(Located<String>),
}

/// `[scratch.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchDecl {
    /// Its name.
    pub name: Located<String>,
    /// Its size in bytes: an expression; there where the manifest is right.
    pub bytes: Option<Text>,
}

/// `[[launches]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDecl {
    /// Where it begins.
    pub range: Range<usize>,
    /// Whether it is done: a boolean expression, where it is given.
    pub when: Option<Text>,
    /// What is done.
    pub work: WorkDecl,
}

impl StepDecl {
    /// The launch, where it is one.
    #[must_use]
    pub fn launch(&self) -> Option<&LaunchDecl> {
        match &self.work {
            WorkDecl::Launch(launch) => Some(launch),
            WorkDecl::Fill(_) => None,
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkDecl {
    /// A kernel is launched.
    Launch(Box<LaunchDecl>),
    /// Memory is filled.
    Fill(FillDecl),
}

/// `[[launches]]` with `memset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillDecl {
    /// The name of what is filled; there where the manifest is right.
    pub memory: Option<Text>,
    /// With what.
    pub byte: u8,
}

/// `[[code]]`: a kernel that another compiler made.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeDecl {
    /// What launches call it. Several may have one name: then `serves` tells them apart.
    pub name: Located<String>,
    /// `for`: the types, formats, constants and values of attributes that it is made for. Of what is not named, all.
    pub serves: Vec<ServeDecl>,
    /// The kernel's symbol in the files; none where they have one kernel only.
    pub kernel: Option<Located<String>>,
    /// The kernel's parameters in its own order, and what else it was made for.
    pub parameters: Vec<ParameterDecl>,
    /// Whether nothing in it is wrong. Of what is, that was told, and nothing is said of what follows from it.
    pub is_whole: bool,
    /// The files, cubins first, relative to the manifest's folder.
    pub files: Vec<(CodeKind, Located<String>)>,
    /// Whether there is a key for files at all.
    pub has_files: bool,
    /// What made them, for people; empty where it is not said.
    pub made_by: String,
    /// Where it begins.
    pub range: Range<usize>,
}

/// One line of `for` of a `[[code]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeDecl {
    /// A type or format parameter, a constant or an attribute that code is compiled for.
    pub name: Located<String>,
    /// What it is there: a text for types and formats.
    pub value: Located<Value>,
}

/// One parameter of a `[[code]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterDecl {
    /// Its name.
    pub name: Located<String>,
    /// All of it.
    pub range: Range<usize>,
    /// What it takes.
    pub kind: ParameterKind,
}

/// What a parameter of a `[[code]]` is.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterKind {
    /// It is passed to the kernel.
    Passed(PassedDecl),
    /// The code was made for this value, and nothing is passed.
    Fixed(Value),
}

/// A parameter that is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedDecl {
    /// The type without `const`, the pointer and the length: `f32`, `unsigned int`, `T`.
    pub base: Located<String>,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// Whether it is one to `const`.
    pub is_const: bool,
    /// How many elements it has, where it is an array by value.
    pub len: Option<u32>,
    /// What the address or the number is a multiple of, for which the code was made.
    pub multiple: Option<u32>,
}

/// `[[launches]]` without `memset`.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchDecl {
    /// The CUDA file, relative to the manifest's folder; there where the manifest is right and has no `code`.
    pub source: Option<Located<String>>,
    /// The kernel, with type parameters and constants as template arguments; there where the manifest is right and has no `code`.
    pub kernel: Option<Text>,
    /// The name of the `[[code]]` that is launched, in the place of source and kernel.
    pub code: Option<Located<String>>,
    /// Whether it launches a `[[code]]`, known or not.
    pub is_of_code: bool,
    /// One to three expressions where the manifest is right.
    pub grid: Vec<Text>,
    /// One to three expressions where the manifest is right.
    pub block: Vec<Text>,
    /// An expression, where it is given.
    pub shared_bytes: Option<Text>,
    /// One to three expressions, where it is given and right.
    pub cluster: Option<Vec<Text>>,
    /// Whether all blocks run at once, where it is said.
    pub cooperative: Option<Located<bool>>,
    /// Whether the kernel may begin before the step before it has ended, where it is said.
    pub programmatic: Option<Located<bool>>,
    /// The arguments by name, in the file's order; there where the manifest is right.
    pub args: Option<Vec<ArgDecl>>,
    /// Where the table of arguments is.
    pub args_range: Range<usize>,
}

/// One line of `[launches.args]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgDecl {
    /// The parameter's name in the kernel.
    pub name: Located<String>,
    /// A tensor's name, a scratch buffer's or an expression; there where the manifest is right.
    pub value: Option<Text>,
}

/// A manifest as far as it could be read, and every error of its form.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadManifest {
    /// The tree; absent where the text is no TOML, its schema edition is not known or a whole section is something else.
    /// Where there are errors it lacks what they are about, and serves only to look for more of them.
    pub manifest: Option<Manifest>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a manifest.
#[must_use]
pub fn read(source: &Arc<Source>) -> ReadManifest {
    let (mut toml, document) = toml_reader::TomlReader::parse(source, Some(&keys::ROOT));
    let manifest = document.and_then(|document| {
        let root = toml.root(document.get_ref(), &keys::ROOT);
        schema(&mut toml, &root)?;
        keys::read(&mut toml, root)
    });
    let manifest = manifest.filter(|_| !toml.section_lost);
    ReadManifest { manifest, diagnostics: toml.into_diagnostics() }
}

/// The schema edition, if this version knows it.
fn schema(toml: &mut toml_reader::TomlReader, root: &toml_reader::Section<'_>) -> Option<i64> {
    let note = format!("this version of cubinder understands `schema = {NEWEST_SCHEMA}`");
    let Some(entry) = root.entry("schema") else {
        let near = root.entries().into_iter().find(|entry| suggest(&entry.key, ["schema"]).is_some());
        toml.report(match near {
            Some(entry) => {
                let (place, label) = (toml.span(entry.key_range), "no key of the file");
                errors::NoSchema { place, label, note, near: Some("schema") }
            }
            None => {
                let label = "expected `schema = 1` before the first table";
                errors::NoSchema { place: toml.span(0..0), label, note, near: None }
            }
        });
        return None;
    };
    let edition = toml.integer(&entry)?;
    if (1..=NEWEST_SCHEMA).contains(&edition) {
        return Some(edition);
    }
    let help = (edition > NEWEST_SCHEMA).then_some("a newer version of cubinder may understand it");
    toml.report(errors::UnknownSchema { edition, place: toml.span(&entry), note, help });
    None
}

#[cfg(test)]
mod tests;
