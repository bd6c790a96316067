//! The plugin model: a manifest with resolved names and expanded type parameters.

mod attribute;
mod attribute_range;
pub mod tuning;
mod variant;

use serde::{Deserialize, Serialize};

use crate::code::CodeObject;
use crate::digest::ShortDigest;
use cubinder_expr as expr;
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, Names};

pub use cubinder_expr::interval::{Interval, MAX_RANK};

pub use attribute::{Attribute, AttributeElement, AttributeType};
pub use tuning::{TunedDevice, TunedPoint};
pub use variant::{
    AUTO_TACTIC, Arg, ArgValue, CodeRef, Fill, Guard, Launch, MAX_ARGUMENTS, MAX_PARAMETER_BYTES,
    MAX_VARIANT_ID, Memory, SCRATCH_ALIGNMENT, Scratch, Step, Variant, Work,
};

/// All plugins of a plugin library.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Writer: `cubinder 0.1.0, NVRTC 13.0`.
    pub producer: String,
    /// Plugins.
    pub plugins: Vec<Plugin>,
    /// Code objects; digest and target are unique.
    pub code: Vec<CodeObject>,
}

/// A node in an engine, with its code in serialized fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The compiler, as in [`Bundle::producer`].
    pub producer: String,
    /// Plugin, with only the node's variants.
    pub plugin: Plugin,
    /// Values of all the plugin's attributes.
    pub attributes: Vec<Value>,
    /// The inputs' ranks, if known.
    pub input_ranks: Option<Vec<u8>>,
    /// Reserved workspace in bytes, if known.
    pub workspace_bytes: Option<u64>,
    /// Code objects of those variants.
    pub code: Vec<CodeObject>,
}

/// A node in an engine, with its code in the plan's library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeReference {
    /// Shortened digest of the plugin's bundle.
    pub bundle: ShortDigest,
    /// Index of the plugin.
    pub plugin: u32,
    /// As [`Node::attributes`].
    pub attributes: Vec<Value>,
    /// Variant with the tensors' types and formats, if known.
    pub row: Option<u32>,
    /// As [`Node::input_ranks`].
    pub input_ranks: Option<Vec<u8>>,
    /// As [`Node::workspace_bytes`].
    pub workspace_bytes: Option<u64>,
}

/// An operator with its variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    /// TensorRT's plugin name, the ONNX op type.
    pub name: String,
    /// TensorRT's plugin namespace.
    pub namespace: String,
    /// TensorRT's plugin version.
    pub version: String,
    /// Description in one sentence.
    pub summary: String,
    /// Attributes, in the manifest's order.
    pub attributes: Vec<Attribute>,
    /// Inputs, in the node's order.
    pub inputs: Vec<Input>,
    /// Outputs, in the node's order.
    pub outputs: Vec<Output>,
    /// Rules about attributes and inputs' ranks.
    pub require: Vec<Requirement>,
    /// Attributes that affect a node's time; `None`: all.
    pub timing: Option<Vec<u32>>,
    /// Variants, in order of preference.
    pub variants: Vec<Variant>,
    /// Measured times of each kind of GPU.
    pub tuning: Vec<TunedDevice>,
}

/// Maximum values of a shape input (`nvinfer1::DimsExprs`, `NvInferRuntime.h`, TensorRT-RTX 1.7).
pub const MAX_SHAPE_VALUES: i64 = MAX_RANK as i64;

/// Limits of a tensor's shape, beside its rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeLimits {
    /// Limits of every dimension.
    pub every: Interval,
    /// Limits of single dimensions, if the rank is fixed.
    pub dims: Vec<Interval>,
    /// Limits of the number of elements.
    pub numel: Interval,
}

impl Default for ShapeLimits {
    fn default() -> ShapeLimits {
        ShapeLimits { every: Interval::ANY_SIZE, dims: Vec::new(), numel: Interval::ANY_SIZE }
    }
}

impl ShapeLimits {
    /// Returns the limits of dimension `axis`.
    #[must_use]
    pub fn dim(&self, axis: usize) -> Interval {
        self.dims.get(axis).copied().unwrap_or(self.every)
    }
}

/// An input tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Name in expressions.
    pub name: String,
    /// Minimum rank.
    pub rank_min: u8,
    /// Maximum rank, at most 8.
    pub rank_max: u8,
    /// Limits of its shape.
    pub limits: ShapeLimits,
    /// Limits of a shape input's values; `None` for other inputs. Shape inputs have up to one dimension of `i32` or
    /// `i64`, in host memory.
    pub values: Option<Interval>,
    /// Description in one sentence.
    pub doc: String,
}

/// An output tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Name in expressions.
    pub name: String,
    /// Shape, over attributes, inputs' shapes and values, outputs' sizes.
    pub shape: Expr,
    /// Limits of its shape.
    pub limits: ShapeLimits,
    /// Input whose memory, shape, type and format it shares.
    pub alias: Option<u32>,
    /// Bounds of a size tensor's value; its shape is `[]`.
    pub size: Option<SizeBound>,
    /// Description in one sentence.
    pub doc: String,
}

impl Output {
    /// Returns whether the kernels write a size of its shape.
    #[must_use]
    pub fn depends_on_data(&self) -> bool {
        self.shape.nodes.iter().any(|node| matches!(node, expr::Node::Size(_)))
    }
}

/// Bounds of a data-dependent size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeBound {
    /// Maximum, over attributes and the inputs' shapes.
    pub upper: Expr,
    /// Size that TensorRT optimizes for.
    pub opt: Expr,
}

/// A rule about a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Boolean over attributes and the inputs' ranks.
    pub expr: Expr,
    /// Expression as written.
    pub text: String,
    /// Message for a node that violates it.
    pub message: String,
}

impl Plugin {
    /// Keeps only the variants with variant `row`'s types and formats, if any.
    pub fn keep_row(&mut self, row: Option<u32>) -> Result<(), String> {
        let Some(row) = row else { return Ok(()) };
        let count = self.variants.len();
        let named = self.variants.get(row as usize);
        let named = named.ok_or_else(|| format!("it names variant {row} of {count}"))?;
        let (types, formats) = (named.types.clone(), named.formats.clone());
        self.keep_variants(|variant| variant.types == types && variant.formats == formats);
        Ok(())
    }

    /// Keeps only these variants, with their measured times.
    pub fn keep_variants(&mut self, is_kept: impl Fn(&Variant) -> bool) {
        let mut count = 0..;
        let places: Vec<Option<u32>> =
            self.variants.iter().map(|it| is_kept(it).then(|| count.next()).flatten()).collect();
        let place = |row: u32| places.get(row as usize).copied().flatten();
        self.tuning = tuning::of_rows(&self.tuning, place, |_| true);
        self.variants.retain(is_kept);
    }

    /// Returns the name for users: `sample::circ_pad_plugin`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}::{}", self.name),
        }
    }

    /// Returns the tensor whose address `tensor` has.
    #[must_use]
    pub fn storage_of(&self, tensor: usize) -> usize {
        let shares = |output: &Output| output.alias.is_some_and(|input| input as usize == tensor);
        self.outputs.iter().position(shares).map_or(tensor, |output| self.inputs.len() + output)
    }

    /// Returns the number of inputs and outputs.
    #[must_use]
    pub fn tensor_count(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }

    /// Returns a tensor's name, by index over inputs, then outputs.
    #[must_use]
    pub fn tensor_name(&self, index: usize) -> Option<&str> {
        match self.inputs.get(index) {
            Some(input) => Some(&input.name),
            None => self.outputs.get(index - self.inputs.len()).map(|output| output.name.as_str()),
        }
    }
}

impl Names for Plugin {
    fn attribute(&self, index: u32) -> Option<&str> {
        self.attributes.get(index as usize).map(|attribute| attribute.name.as_str())
    }

    fn tensor(&self, index: u32) -> Option<&str> {
        self.tensor_name(index as usize)
    }
}
