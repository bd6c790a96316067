//! The plugin model: a manifest after every name has been resolved and every type parameter expanded.
//!
//! It knows no edition of the manifest language: that is the compiler's business. What the runtime plugin can do is
//! exactly what can be said here.

use serde::{Deserialize, Serialize};

use crate::code::{CodeObject, Target};
use crate::data_type::{DataType, ScalarType};
use crate::digest::ShortDigest;
use crate::expr::{self, Expr, Kind};
use crate::format::Format;
use crate::value::Value;

/// Everything one plugin library carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// What made it: `cubinder 0.1.0, NVRTC 13.0`.
    pub producer: String,
    /// The plugins, in the order of their manifests.
    pub plugins: Vec<Plugin>,
    /// The code objects that the plugins' variants refer to by index; no two have the same digest and target.
    pub code: Vec<CodeObject>,
}

/// What one plugin node leaves in an engine when its code travels in the serialized fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What made it, as in [`Bundle::producer`].
    pub producer: String,
    /// The plugin, with only the variants that the node's types can reach.
    pub plugin: Plugin,
    /// The node's attributes, one for each of the plugin's, defaults filled in.
    pub attributes: Vec<Value>,
    /// The ranks of the node's inputs, where they were known.
    pub input_ranks: Option<Vec<u8>>,
    /// The workspace that the engine reserves for the node, bytes; none where no build has said.
    pub workspace_bytes: Option<u64>,
    /// The code objects of those variants.
    pub code: Vec<CodeObject>,
}

/// What one plugin node leaves in an engine when its code lies in a library inside the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeReference {
    /// The digest of the bundle that holds the plugin, as far as it tells bundles apart.
    pub bundle: ShortDigest,
    /// Index of the plugin in that bundle.
    pub plugin: u32,
    /// The node's attributes, one for each of the plugin's, defaults filled in.
    pub attributes: Vec<Value>,
    /// A variant of the plugin, by index, of which the tensors have the types and formats, where they were known.
    pub row: Option<u32>,
    /// The ranks of the node's inputs, where they were known.
    pub input_ranks: Option<Vec<u8>>,
    /// The workspace that the engine reserves for the node, bytes; none where no build has said.
    pub workspace_bytes: Option<u64>,
}

/// One plugin: an operator with its variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    /// The ONNX op type, TensorRT's plugin name.
    pub name: String,
    /// TensorRT's plugin namespace.
    pub namespace: String,
    /// TensorRT's plugin version.
    pub version: String,
    /// One sentence for people.
    pub summary: String,
    /// What a node can say, in the manifest's order.
    pub attributes: Vec<Attribute>,
    /// The inputs, in the node's order.
    pub inputs: Vec<Input>,
    /// The outputs, in the node's order.
    pub outputs: Vec<Output>,
    /// What must hold of a node's attributes and of its inputs' ranks.
    pub require: Vec<Requirement>,
    /// The attributes on which the time of a node depends, by their indices; none: all of them.
    pub timing: Option<Vec<u32>>,
    /// The table of variants, in order of preference.
    pub variants: Vec<Variant>,
}

/// An attribute of an ONNX node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The attribute's name.
    pub name: String,
    /// What it holds.
    pub ty: AttributeType,
    /// What it is where the node does not say; a node that lacks an attribute without a default is refused.
    pub default: Option<Value>,
    /// How many elements a list or `bytes` may have, or how many bytes of UTF-8 a string.
    pub length: Option<Interval>,
    /// The least number, of a list: of each element. An integer for integers, a float for floats.
    pub minimum: Option<Value>,
    /// The greatest number, likewise.
    pub maximum: Option<Value>,
    /// The only values, of a list: of each element. Empty: any.
    pub one_of: Vec<Value>,
    /// One sentence for people.
    pub doc: String,
}

impl Attribute {
    /// An attribute without default and constraints.
    #[must_use]
    pub fn new(name: impl Into<String>, ty: AttributeType) -> Attribute {
        Attribute {
            name: name.into(),
            ty,
            default: None,
            length: None,
            minimum: None,
            maximum: None,
            one_of: Vec::new(),
            doc: String::new(),
        }
    }
}

/// The type of an attribute: one value or a list of them.
///
/// What TensorRT's ONNX parser can carry of it is another matter: see the compiler's rule about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttributeType {
    /// What one value is.
    pub element: AttributeElement,
    /// Whether it is a list of them; never of [`AttributeElement::Bytes`].
    pub list: bool,
}

/// What one value of an attribute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttributeElement {
    /// `i8`: an integer within 8 bits.
    I8,
    /// `i16`: an integer within 16 bits.
    I16,
    /// `i32`: an integer within 32 bits.
    I32,
    /// `i64`: an integer.
    I64,
    /// `f16`: a float that half precision holds exactly.
    F16,
    /// `f32`: a float that single precision holds exactly.
    F32,
    /// `f64`: a float.
    F64,
    /// `bool`: true or false; in ONNX an integer that is 0 or 1.
    Bool,
    /// `string`: text.
    String,
    /// `bytes`: bytes of any value; in expressions an array of integers from 0 to 255.
    Bytes,
}

impl AttributeElement {
    /// Every element type, in the order in which errors list them.
    pub const ALL: [AttributeElement; 10] = [
        AttributeElement::I8,
        AttributeElement::I16,
        AttributeElement::I32,
        AttributeElement::I64,
        AttributeElement::F16,
        AttributeElement::F32,
        AttributeElement::F64,
        AttributeElement::Bool,
        AttributeElement::String,
        AttributeElement::Bytes,
    ];

    /// Whether it is an integer, and which ones it can be.
    #[must_use]
    pub const fn integers(self) -> Option<Interval> {
        match self {
            AttributeElement::I8 => Some(Interval { min: i8::MIN as i64, max: i8::MAX as i64 }),
            AttributeElement::I16 => Some(Interval { min: i16::MIN as i64, max: i16::MAX as i64 }),
            AttributeElement::I32 => Some(Interval { min: i32::MIN as i64, max: i32::MAX as i64 }),
            AttributeElement::I64 => Some(Interval { min: i64::MIN, max: i64::MAX }),
            _ => None,
        }
    }

    /// Whether it is a float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, AttributeElement::F16 | AttributeElement::F32 | AttributeElement::F64)
    }
}

impl AttributeType {
    /// `i32`.
    pub const I32: AttributeType = AttributeType { element: AttributeElement::I32, list: false };
    /// `i32[]`.
    pub const I32_LIST: AttributeType = AttributeType { element: AttributeElement::I32, list: true };

    /// Every attribute type, in the order in which errors list them: single values, then lists.
    pub fn all() -> impl Iterator<Item = AttributeType> {
        let single = AttributeElement::ALL.into_iter().map(|element| AttributeType { element, list: false });
        let lists = AttributeElement::ALL
            .into_iter()
            .filter(|element| *element != AttributeElement::Bytes)
            .map(|element| AttributeType { element, list: true });
        single.chain(lists)
    }

    /// The name used in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.element, self.list) {
            (AttributeElement::I8, false) => "i8",
            (AttributeElement::I16, false) => "i16",
            (AttributeElement::I32, false) => "i32",
            (AttributeElement::I64, false) => "i64",
            (AttributeElement::F16, false) => "f16",
            (AttributeElement::F32, false) => "f32",
            (AttributeElement::F64, false) => "f64",
            (AttributeElement::Bool, false) => "bool",
            (AttributeElement::String, false) => "string",
            (AttributeElement::Bytes, false) => "bytes",
            (AttributeElement::I8, true) => "i8[]",
            (AttributeElement::I16, true) => "i16[]",
            (AttributeElement::I32, true) => "i32[]",
            (AttributeElement::I64, true) => "i64[]",
            (AttributeElement::F16, true) => "f16[]",
            (AttributeElement::F32, true) => "f32[]",
            (AttributeElement::F64, true) => "f64[]",
            (AttributeElement::Bool, true) => "bool[]",
            (AttributeElement::String, true) => "string[]",
            (AttributeElement::Bytes, true) => "bytes[]",
        }
    }

    /// What it is in expressions.
    #[must_use]
    pub fn kind(self) -> Kind {
        let element = match self.element {
            AttributeElement::Bool => Kind::Bool,
            AttributeElement::String => Kind::Str,
            AttributeElement::Bytes => Kind::ints(),
            element if element.is_float() => Kind::Float,
            _ => Kind::Int,
        };
        if self.list { Kind::Array(Box::new(element)) } else { element }
    }

    /// The type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AttributeType> {
        Self::all().find(|ty| ty.name() == name)
    }

    /// Whether `value` is of this type.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (AttributeType { element: AttributeElement::Bytes, .. }, Value::Array(items)) => {
                items.iter().all(|item| item.as_int().is_some_and(|byte| u8::try_from(byte).is_ok()))
            }
            (AttributeType { element, list: true }, Value::Array(items)) => {
                items.iter().all(|item| element.admits(item))
            }
            (AttributeType { element, list: false }, value) => element.admits(value),
            _ => false,
        }
    }
}

impl AttributeElement {
    /// Whether `value` is one of these; floats are not held against the precision, which rounding gives them.
    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (AttributeElement::Bool, Value::Bool(_)) | (AttributeElement::String, Value::Str(_)) => true,
            (element, Value::Float(_)) => element.is_float(),
            (element, Value::Int(value)) => element.integers().is_some_and(|range| range.contains(*value)),
            _ => false,
        }
    }
}

/// Integers from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The least.
    pub min: i64,
    /// The greatest.
    pub max: i64,
}

impl Interval {
    /// What a dimension, a length or a number of elements can be at all.
    pub const ANY_SIZE: Interval = Interval { min: 0, max: i64::MAX };

    /// Whether `value` is among them.
    #[must_use]
    pub const fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

impl std::fmt::Display for Interval {
    /// As manifests write it: `1..=8`, `1..`, `4`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, i64::MAX) => write!(f, "{min}.."),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}..={max}"),
        }
    }
}

/// TensorRT's highest rank (`nvinfer1::Dims::MAX_DIMS`, `NvInferRuntimeBase.h`, TensorRT-RTX 1.7).
pub const MAX_RANK: u8 = 8;

/// The most values of a shape input: TensorRT tells as many when it asks for the outputs' shapes (`nvinfer1::DimsExprs`, `NvInferRuntime.h`,
/// TensorRT-RTX 1.7).
pub const MAX_SHAPE_VALUES: i64 = MAX_RANK as i64;

/// What a tensor's shape may be, beside its rank. Proofs rely on it; the runtime refuses every other shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeLimits {
    /// What every dimension may be.
    pub every: Interval,
    /// What single dimensions may be, from the first on; only where the rank is fixed, and then one for each. Else empty.
    pub dims: Vec<Interval>,
    /// How many elements there may be.
    pub numel: Interval,
}

impl Default for ShapeLimits {
    fn default() -> ShapeLimits {
        ShapeLimits { every: Interval::ANY_SIZE, dims: Vec::new(), numel: Interval::ANY_SIZE }
    }
}

impl ShapeLimits {
    /// What dimension `axis` may be.
    #[must_use]
    pub fn dim(&self, axis: usize) -> Interval {
        self.dims.get(axis).copied().unwrap_or(self.every)
    }
}

/// An input tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its name in expressions.
    pub name: String,
    /// The lowest rank it may have.
    pub rank_min: u8,
    /// The highest rank it may have; TensorRT's limit is 8.
    pub rank_max: u8,
    /// What its shape may be.
    pub limits: ShapeLimits,
    /// Where it is a shape input, what each of its values may be. A shape input holds integers (`i32` or `i64`) in host memory, in one
    /// dimension or none, and its values are known when shapes are.
    pub values: Option<Interval>,
    /// One sentence for people.
    pub doc: String,
}

/// An output tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Its name in expressions.
    pub name: String,
    /// Its shape: an array of integers over attributes, the inputs' shapes, the values of shape inputs, and sizes that other outputs hold.
    pub shape: Expr,
    /// What the shape may come to.
    pub limits: ShapeLimits,
    /// The input whose memory it shares, by index: the kernel changes it in place. Shape, type and format are that input's.
    pub alias: Option<u32>,
    /// Where it is a size tensor: how large the size can be that the kernels write into it. Its own shape is `[]`.
    pub size: Option<SizeBound>,
    /// One sentence for people.
    pub doc: String,
}

impl Output {
    /// Whether its shape has a size that the kernels write: then only its rank is known before they ran.
    #[must_use]
    pub fn depends_on_data(&self) -> bool {
        self.shape.nodes.iter().any(|node| matches!(node, expr::Node::Size(_)))
    }
}

/// What is known beforehand of a size that depends on data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeBound {
    /// The most that it can be: an integer over attributes and the inputs' shapes.
    pub upper: Expr,
    /// What TensorRT optimizes for: likewise.
    pub opt: Expr,
}

/// A rule about a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// A boolean over attributes and the inputs' ranks.
    pub expr: Expr,
    /// The expression as the author wrote it.
    pub text: String,
    /// What to tell the person whose node breaks it.
    pub message: String,
}

/// One row of the table of variants: types, constants (already folded into the expressions) and launches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The tactic id, from 1 to [`MAX_VARIANT_ID`]; rows that differ only in types share it.
    pub id: i32,
    /// Types and constants for people: `T=f16 VEC=4`.
    pub label: String,
    /// The types of the inputs, then of the outputs.
    pub types: Vec<DataType>,
    /// The formats of the inputs, then of the outputs.
    pub formats: Vec<Format>,
    /// The attributes for which the code was compiled, by index, with their values: it serves nodes with just these. In order of index.
    pub specialized: Vec<(u32, Value)>,
    /// When it may run; none: always.
    pub guard: Option<Guard>,
    /// Memory that its steps share and that nobody else sees.
    pub scratch: Vec<Scratch>,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

impl Variant {
    /// The kernel launches among the steps, in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| match &step.work {
            Work::Launch(launch) => Some(&**launch),
            Work::Fill(_) => None,
        })
    }

    /// As [`Variant::launches`], to be changed.
    pub fn launches_mut(&mut self) -> impl Iterator<Item = &mut Launch> {
        self.steps.iter_mut().filter_map(|step| match &mut step.work {
            Work::Launch(launch) => Some(&mut **launch),
            Work::Fill(_) => None,
        })
    }

    /// The launch that step number `step` is.
    #[must_use]
    pub fn launch(&self, step: usize) -> Option<&Launch> {
        match &self.steps.get(step)?.work {
            Work::Launch(launch) => Some(&**launch),
            Work::Fill(_) => None,
        }
    }

    /// As [`Variant::launch`], to be changed.
    pub fn launch_mut(&mut self, step: usize) -> Option<&mut Launch> {
        match &mut self.steps.get_mut(step)?.work {
            Work::Launch(launch) => Some(&mut **launch),
            Work::Fill(_) => None,
        }
    }
}

/// Memory of a node's workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scratch {
    /// Its name in arguments.
    pub name: String,
    /// How many bytes. TensorRT reserves what this comes to at most over the profile. It begins at a multiple of [`SCRATCH_ALIGNMENT`].
    pub bytes: Expr,
}

/// Of what the address of every scratch buffer is a multiple, bytes. TensorRT-RTX 1.7 gives workspaces at multiples of 512 (seen).
pub const SCRATCH_ALIGNMENT: u64 = 256;

/// One thing that a variant queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Whether it is done: a boolean, known when shapes are; none: always.
    pub when: Option<Guard>,
    /// What is done.
    pub work: Work,
}

impl Step {
    /// A launch that always happens.
    #[must_use]
    pub fn launch(launch: Launch) -> Step {
        Step { when: None, work: Work::Launch(Box::new(launch)) }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// A kernel is launched.
    Launch(Box<Launch>),
    /// Memory is filled with one byte.
    Fill(Fill),
}

/// Memory that is filled with one byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// All of what.
    pub memory: Memory,
    /// With what.
    pub byte: u8,
}

/// Memory that a step can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// An output, by its index among the outputs; one without a size that depends on data.
    Output(u32),
    /// A scratch buffer of the variant, by index.
    Scratch(u32),
}

/// The condition under which a variant may run. It is correctness: a variant whose guard does not hold is never launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// A boolean over attributes, every tensor's shape and the alignment of their addresses.
    pub expr: Expr,
    /// The expression as the author wrote it.
    pub text: String,
}

/// The tactic that stands for "the first variant whose guard holds", chosen anew for every shape and alignment. It is the first
/// that a plugin with several variants offers, because TensorRT-RTX takes the first.
pub const AUTO_TACTIC: i32 = i32::MAX;

/// The highest tactic id that a variant may have.
pub const MAX_VARIANT_ID: i32 = 1_000_000;

/// The most arguments of a launch: TensorRT's 192 inputs and 64 outputs and as many numbers.
pub const MAX_ARGUMENTS: usize = 512;

/// The most bytes of a kernel's parameters: CUDA C++ programming guide 13.0, "function parameters", from sm_70 on.
pub const MAX_PARAMETER_BYTES: usize = 32_764;

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel as source names it: `circ_pad<float, 4>`.
    pub kernel: String,
    /// Blocks in x, y and z. Where one is 0 nothing is launched.
    pub grid: [Expr; 3],
    /// Threads of a block in x, y and z.
    pub block: [Expr; 3],
    /// Dynamic shared memory, bytes.
    pub shared_bytes: Expr,
    /// Blocks of a cluster in x, y and z, where the kernel runs in clusters (from compute capability 9.0 on).
    pub cluster: Option<[Expr; 3]>,
    /// Whether all blocks must run at once, so that the kernel can synchronize the whole grid.
    pub cooperative: bool,
    /// Whether the kernel may begin before the work that was queued before it has ended (programmatic dependent launch): it then
    /// waits by itself, with `cudaGridDependencySynchronize`.
    pub programmatic: bool,
    /// The kernel's arguments in the kernel's own order.
    pub args: Vec<Arg>,
    /// Where the code is, one for each target.
    pub code: Vec<CodeRef>,
}

/// The code of one launch for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRef {
    /// What it was compiled for.
    pub target: Target,
    /// Index into the code objects of the bundle or node.
    pub code: u32,
    /// The symbol of the kernel in it.
    pub symbol: String,
}

/// One argument of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arg {
    /// The parameter's name in the kernel.
    pub name: String,
    /// What is passed.
    pub value: ArgValue,
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ArgValue {
    /// The device pointer of a tensor: index over inputs, then outputs. Never a shape input, whose memory is the host's.
    Tensor(u32),
    /// The same where the kernel's parameter is a pointer to `const`: it reads the tensor and does not write it.
    ReadTensor(u32),
    /// The device pointer of a scratch buffer of the variant, by index.
    Scratch(u32),
    /// A number by value. A value that does not fit the type is an error when shapes are known.
    Scalar {
        /// The kernel's type.
        ty: ScalarType,
        /// The value.
        expr: Expr,
    },
    /// An array of numbers by value: `cubinder::array<ty, len>`.
    Array {
        /// The type of an element.
        ty: ScalarType,
        /// How many elements the kernel takes; the expression must give exactly as many.
        len: u32,
        /// The values.
        expr: Expr,
    },
}

impl ArgValue {
    /// Size among the kernel's parameters, bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => 8,
            ArgValue::Scalar { ty, .. } => ty.size().into(),
            // An empty class has one byte in C++.
            ArgValue::Array { ty, len, .. } => (u64::from(ty.size()) * u64::from(*len)).max(1),
        }
    }

    /// The tensor whose pointer it is, over inputs, then outputs.
    #[must_use]
    pub const fn tensor(&self) -> Option<u32> {
        match self {
            ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => Some(*tensor),
            ArgValue::Scratch(_) | ArgValue::Scalar { .. } | ArgValue::Array { .. } => None,
        }
    }

    /// The value of a number or of an array of them.
    #[must_use]
    pub const fn expr(&self) -> Option<&Expr> {
        match self {
            ArgValue::Scalar { expr, .. } | ArgValue::Array { expr, .. } => Some(expr),
            ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => None,
        }
    }
}

impl Plugin {
    /// Leaves the variants for tensors of the types and formats of variant number `row` alone; all of them where none is named.
    ///
    /// # Errors
    /// There is no such variant.
    pub fn keep_row(&mut self, row: Option<u32>) -> Result<(), String> {
        let Some(row) = row else { return Ok(()) };
        let count = self.variants.len();
        let named = self.variants.get(row as usize);
        let named = named.ok_or_else(|| format!("it names variant {row} of {count}"))?;
        let (types, formats) = (named.types.clone(), named.formats.clone());
        self.variants.retain(|variant| variant.types == types && variant.formats == formats);
        Ok(())
    }

    /// Inputs and outputs together: how many tensors the expressions number.
    #[must_use]
    pub fn tensor_count(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }

    /// The name of a tensor by its index over inputs, then outputs.
    #[must_use]
    pub fn tensor_name(&self, index: usize) -> Option<&str> {
        match self.inputs.get(index) {
            Some(input) => Some(&input.name),
            None => self.outputs.get(index - self.inputs.len()).map(|output| output.name.as_str()),
        }
    }
}
