//! Parses TOML into a spanned syntax tree ([`Manifest`]) in file order, for [`crate::resolve`]. Must not read files.

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

/// Newest schema edition.
pub const NEWEST_SCHEMA: i64 = 1;

pub(crate) use cubinder_model::model::MAX_RANK;

/// Value with its source range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// Value.
    pub value: T,
    /// Byte range in the file.
    pub range: Range<usize>,
}

impl<T> From<&Located<T>> for Range<usize> {
    fn from(located: &Located<T>) -> Range<usize> {
        located.range.clone()
    }
}

/// Parsed manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `[plugin]`.
    pub plugin: PluginDecl,
    /// `[attributes.NAME]`.
    pub attributes: Vec<AttributeDecl>,
    /// `[[inputs]]`.
    pub inputs: Vec<InputDecl>,
    /// `[[outputs]]`.
    pub outputs: Vec<OutputDecl>,
    /// `[types]`.
    pub types: Vec<TypeDecl>,
    /// `[formats]`.
    pub formats: Vec<FormatDecl>,
    /// `[[combinations]]`; empty: all.
    pub combinations: Vec<CombinationDecl>,
    /// `[constants]`.
    pub constants: Vec<ConstantDecl>,
    /// `[functions]`.
    pub functions: Vec<FunctionDecl>,
    /// `[[variants]]`.
    pub variants: Vec<VariantDecl>,
    /// `[tables.NAME]`.
    pub tables: Vec<TableDecl>,
    /// `[scratch.NAME]`.
    pub scratch: Vec<ScratchDecl>,
    /// `[[code]]`.
    pub code: Vec<CodeDecl>,
    /// `[[launches]]`; not empty in valid manifests.
    pub launches: Vec<StepDecl>,
    /// `[compile]`.
    pub compile: CompileDecl,
    /// Names of invalid declarations, whose uses are not reported.
    pub broken: Vec<String>,
}

/// `[plugin]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDecl {
    /// ONNX op type.
    pub name: Located<String>,
    /// Dotted or empty.
    pub namespace: String,
    /// Version.
    pub version: String,
    /// One sentence.
    pub summary: String,
    /// Rules that nodes must satisfy.
    pub require: Vec<RequireDecl>,
    /// Attributes that affect a node's time; `None`: all.
    pub timing: Option<Located<Vec<Located<String>>>>,
    /// Test cases to measure.
    pub tune: Option<Located<String>>,
}

/// One rule of `require`.
#[derive(Debug, Clone, PartialEq)]
pub struct RequireDecl {
    /// Boolean expression.
    pub expr: Text,
    /// Shown when a node violates this rule.
    pub message: String,
}

/// `[attributes.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeDecl {
    /// Name.
    pub name: Located<String>,
    /// Type.
    pub ty: Located<AttributeType>,
    /// Default, which satisfies the constraints.
    pub default: Option<Value>,
    /// Allowed number of elements or bytes.
    pub length: Option<Located<Interval>>,
    /// Minimum and maximum.
    pub range: Option<Located<(Option<Value>, Option<Value>)>>,
    /// Allowed values; never empty.
    pub one_of: Option<Located<Vec<Value>>>,
    /// Values with specialized code; never empty.
    pub specialize: Option<Located<Vec<Value>>>,
    /// One sentence.
    pub doc: String,
}

/// `[[inputs]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDecl {
    /// Name.
    pub name: Located<String>,
    /// Type parameter or element type.
    pub ty: Located<String>,
    /// `None`: row major.
    pub format: Option<Located<String>>,
    /// `None`: any rank.
    pub rank_range: Option<Range<usize>>,
    /// Lowest and highest rank.
    pub rank: (u8, u8),
    /// Limits of the shape.
    pub limits: LimitsDecl,
    /// Limits of a shape input's values.
    pub values: Option<Located<Interval>>,
    /// One sentence.
    pub doc: String,
}

/// `[[outputs]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDecl {
    /// Name.
    pub name: Located<String>,
    /// Type parameter or element type.
    pub ty: Located<String>,
    /// `None`: row major.
    pub format: Option<Located<String>>,
    /// Expression: an array of integers.
    pub shape: Text,
    /// Limits of the shape.
    pub limits: LimitsDecl,
    /// Input that shares its memory.
    pub alias: Option<Located<String>>,
    /// Bounds of a size that kernels compute.
    pub size: Option<SizeDecl>,
    /// One sentence.
    pub doc: String,
}

/// `size` of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeDecl {
    /// Integer expression: the maximum.
    pub upper: Text,
    /// Default: `upper`.
    pub opt: Option<Text>,
}

/// `limits` of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitsDecl {
    /// Limits; TensorRT's own by default.
    pub limits: ShapeLimits,
    /// Source range; empty if absent.
    pub range: Range<usize>,
}

/// Type or format parameter with its alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter<T> {
    /// Parameter.
    pub name: Located<String>,
    /// Alternatives.
    pub alternatives: Vec<T>,
    /// Source position of the alternatives.
    pub range: Range<usize>,
}

/// One line of `[types]`.
pub type TypeDecl = Parameter<DataType>;

/// One line of `[formats]`.
pub type FormatDecl = Parameter<Format>;

/// Value of type or format parameters.
pub trait Alternative: Copy + Ord + 'static {
    /// `type`
    const WHAT: &'static str;
    /// `an element type`
    const ONE: &'static str;
    /// `element types`
    const MANY: &'static str;
    /// All values, in the order of errors.
    const EACH: &'static [Self];

    /// Returns the name used in manifests.
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

/// `[[combinations]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinationDecl {
    /// Alternatives of type parameters.
    pub types: Vec<TypeDecl>,
    /// Alternatives of format parameters.
    pub formats: Vec<FormatDecl>,
    /// Source position.
    pub range: Range<usize>,
}

/// `[constants]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantDecl {
    /// Name.
    pub name: Located<String>,
    /// Integer, float or boolean.
    pub value: Value,
    /// Value's source range.
    pub value_range: Range<usize>,
}

/// `[functions]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDecl {
    /// Name.
    pub name: Located<String>,
    /// Names of its parameters.
    pub params: Vec<Located<String>>,
    /// Source range of `params`.
    pub params_range: Range<usize>,
    /// Expression.
    pub body: Text,
}

/// `[[variants]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantDecl {
    /// Tactic id, at least 1.
    pub id: Located<i32>,
    /// Omitted parameters are unrestricted.
    pub types: Vec<TypeDecl>,
    /// Omitted parameters are unrestricted.
    pub formats: Vec<FormatDecl>,
    /// Boolean expression.
    pub guard: Option<Text>,
    /// Constants of this variant.
    pub constants: Vec<ConstantDecl>,
    /// Source position; empty without `[[variants]]`.
    pub range: Range<usize>,
}

/// `[tables.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDecl {
    /// Name.
    pub name: Located<String>,
    /// Element type.
    pub ty: Located<TableType>,
    /// Elements.
    pub values: TableValues,
}

/// Elements of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableValues {
    /// Little-endian bytes.
    Listed(Vec<u8>),
    /// Array expression.
    Computed(Text),
    /// File, relative to the manifest's folder.
    File(Located<String>),
}

/// `[scratch.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchDecl {
    /// Name.
    pub name: Located<String>,
    /// Size in bytes; `Some` in valid manifests.
    pub bytes: Option<Text>,
}

/// `[[launches]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDecl {
    /// Source position.
    pub range: Range<usize>,
    /// Boolean expression.
    pub when: Option<Text>,
    /// Work.
    pub work: WorkDecl,
}

impl StepDecl {
    /// Returns the launch, if any.
    #[must_use]
    pub fn launch(&self) -> Option<&LaunchDecl> {
        match &self.work {
            WorkDecl::Launch(launch) => Some(launch),
            WorkDecl::Fill(_) => None,
        }
    }
}

/// Work of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkDecl {
    /// Launches a kernel.
    Launch(Box<LaunchDecl>),
    /// Fills memory.
    Fill(FillDecl),
}

/// `[[launches]]` with `memset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillDecl {
    /// Memory to fill; `Some` in valid manifests.
    pub memory: Option<Text>,
    /// Value of each byte.
    pub byte: u8,
}

/// `[[code]]`: a precompiled kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeDecl {
    /// Name; several `[[code]]` may share one.
    pub name: Located<String>,
    /// `for`; omitted names are unrestricted.
    pub serves: Vec<ServeDecl>,
    /// Kernel symbol; optional in files with one kernel.
    pub kernel: Option<Located<String>>,
    /// Parameters.
    pub parameters: Vec<ParameterDecl>,
    /// Whether valid; otherwise later errors are consequences.
    pub is_whole: bool,
    /// Cubins first, relative to the manifest's folder.
    pub files: Vec<(CodeKind, Located<String>)>,
    /// Whether a key for files is present.
    pub has_files: bool,
    /// May be empty.
    pub made_by: String,
    /// Source position.
    pub range: Range<usize>,
}

/// `for` of a `[[code]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServeDecl {
    /// Parameter, constant or specialized attribute.
    pub name: Located<String>,
    /// Value; a string for types and formats.
    pub value: Located<Value>,
}

/// Parameter of a `[[code]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterDecl {
    /// Name.
    pub name: Located<String>,
    /// Source range.
    pub range: Range<usize>,
    /// Passed or fixed.
    pub kind: ParameterKind,
}

/// Passed or fixed.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterKind {
    /// Passed to the kernel.
    Passed(PassedDecl),
    /// Value that the code was compiled for.
    Fixed(Value),
}

/// Passed parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedDecl {
    /// Type without `const`, `*` and length: `f32`, `T`.
    pub base: Located<String>,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// Whether it points to `const`.
    pub is_const: bool,
    /// Length of a by-value array.
    pub len: Option<u32>,
    /// Assumed divisor of the address or number.
    pub multiple: Option<u32>,
}

/// `[[launches]]` without `memset`.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchDecl {
    /// Path relative to the manifest's folder.
    pub source: Option<Located<String>>,
    /// Kernel with its template arguments.
    pub kernel: Option<Text>,
    /// Name of a `[[code]]`.
    pub code: Option<Located<String>>,
    /// Whether it launches a `[[code]]`.
    pub is_of_code: bool,
    /// One to three expressions.
    pub grid: Vec<Text>,
    /// One to three expressions.
    pub block: Vec<Text>,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: Option<Text>,
    /// One to three expressions.
    pub cluster: Option<Vec<Text>>,
    /// Whether all blocks run at once.
    pub cooperative: Option<Located<bool>>,
    /// Whether it may start early.
    pub programmatic: Option<Located<bool>>,
    /// Arguments.
    pub args: Option<Vec<ArgDecl>>,
    /// Source range of `args`.
    pub args_range: Range<usize>,
}

/// `[launches.args]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgDecl {
    /// Parameter name.
    pub name: Located<String>,
    /// Tensor, scratch buffer or expression.
    pub value: Option<Text>,
}

/// Manifest without invalid parts, and its errors.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadManifest {
    /// `None` if too much is invalid.
    pub manifest: Option<Manifest>,
    /// Errors and warnings.
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

fn schema(toml: &mut toml_reader::TomlReader, root: &toml_reader::Section<'_>) -> Option<i64> {
    let note = format!("this version of cubinder supports `schema = {NEWEST_SCHEMA}`");
    let Some(entry) = root.entry("schema") else {
        let near = root.entries().into_iter().find(|entry| suggest(&entry.key, ["schema"]).is_some());
        toml.report(match near {
            Some(entry) => {
                let (place, label) = (toml.span(entry.key_range), "not a key of a manifest");
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
    let help = (edition > NEWEST_SCHEMA).then_some("a newer version of cubinder may support it");
    toml.report(errors::UnknownSchema { edition, place: toml.span(&entry), note, help });
    None
}

#[cfg(test)]
mod tests;
