//! The plugin model: a manifest after every name has been resolved and every type parameter expanded.
//!
//! It knows no edition of the manifest language: that is the compiler's business. What the runtime plugin can do is
//! exactly what can be said here.

use serde::{Deserialize, Serialize};

use crate::code::{CodeObject, Target};
use crate::data_type::{DataType, ScalarType};
use crate::digest::Digest;
use crate::expr::Expr;
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
    /// The code objects of those variants.
    pub code: Vec<CodeObject>,
}

/// What one plugin node leaves in an engine when its code lies in a library inside the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeReference {
    /// The digest of the bundle that holds the plugin.
    pub bundle: Digest,
    /// Index of the plugin in that bundle.
    pub plugin: u32,
    /// The node's attributes, one for each of the plugin's, defaults filled in.
    pub attributes: Vec<Value>,
    /// The types of the node's inputs, then outputs, where they were known.
    pub types: Option<Vec<DataType>>,
    /// The ranks of the node's inputs, where they were known.
    pub input_ranks: Option<Vec<u8>>,
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
}

/// The type of an attribute, as far as TensorRT's ONNX parser can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttributeType {
    /// `i32`: an ONNX INT, which arrives truncated to 32 bits.
    I32,
    /// `i32[]`: an ONNX INTS.
    I32Array,
    /// `f32`: an ONNX FLOAT.
    F32,
    /// `f32[]`: an ONNX FLOATS.
    F32Array,
    /// `bool`: an ONNX INT that is 0 or 1.
    Bool,
    /// `string`: an ONNX STRING.
    String,
}

impl AttributeType {
    /// Every attribute type, in the order in which errors list them.
    pub const ALL: [AttributeType; 6] = [
        AttributeType::I32,
        AttributeType::I32Array,
        AttributeType::F32,
        AttributeType::F32Array,
        AttributeType::Bool,
        AttributeType::String,
    ];

    /// The name used in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AttributeType::I32 => "i32",
            AttributeType::I32Array => "i32[]",
            AttributeType::F32 => "f32",
            AttributeType::F32Array => "f32[]",
            AttributeType::Bool => "bool",
            AttributeType::String => "string",
        }
    }

    /// The type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<AttributeType> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether `value` is of this type (integers within 32 bits, floats exact in `f32` or not).
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        let int32 = |value: &Value| value.as_int().is_some_and(|value| i32::try_from(value).is_ok());
        let float = |value: &Value| matches!(value, Value::Float(_));
        match (self, value) {
            (AttributeType::I32, value) => int32(value),
            (AttributeType::F32, value) => float(value),
            (AttributeType::Bool, value) => matches!(value, Value::Bool(_)),
            (AttributeType::String, value) => matches!(value, Value::Str(_)),
            (AttributeType::I32Array, Value::Array(items)) => items.iter().all(int32),
            (AttributeType::F32Array, Value::Array(items)) => items.iter().all(float),
            _ => false,
        }
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
}

/// An output tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Its name in expressions.
    pub name: String,
    /// Its shape: an array of integers over attributes and the inputs' shapes.
    pub shape: Expr,
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
    /// The tactic id, at least 1; rows that differ only in types share it.
    pub id: i32,
    /// Types and constants for people: `T=f16 VEC=4`.
    pub label: String,
    /// The types of the inputs, then of the outputs.
    pub types: Vec<DataType>,
    /// What to launch, in order.
    pub launches: Vec<Launch>,
}

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
    /// The device pointer of a tensor: index over inputs, then outputs.
    Tensor(u32),
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
            ArgValue::Tensor(_) => 8,
            ArgValue::Scalar { ty, .. } => ty.size().into(),
            // An empty class has one byte in C++.
            ArgValue::Array { ty, len, .. } => (u64::from(ty.size()) * u64::from(*len)).max(1),
        }
    }
}

impl Plugin {
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
