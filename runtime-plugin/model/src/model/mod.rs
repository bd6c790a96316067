//! The plugin model: a manifest after every name has been resolved and every type parameter expanded.
//!
//! It knows no edition of the manifest language: that is the compiler's business. What the runtime plugin can do is
//! exactly what can be said here.

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
    /// What was measured of them, one for each kind of GPU.
    pub tuning: Vec<TunedDevice>,
}

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
        self.keep_variants(|variant| variant.types == types && variant.formats == formats);
        Ok(())
    }

    /// Leaves these variants alone, with what was measured of them.
    pub fn keep_variants(&mut self, is_kept: impl Fn(&Variant) -> bool) {
        let mut count = 0..;
        let places: Vec<Option<u32>> =
            self.variants.iter().map(|it| is_kept(it).then(|| count.next()).flatten()).collect();
        let place = |row: u32| places.get(row as usize).copied().flatten();
        self.tuning = tuning::of_rows(&self.tuning, place, |_| true);
        self.variants.retain(is_kept);
    }

    /// Returns the name as ONNX and TensorRT users write it: `sample::circ_pad_plugin`.
    #[must_use]
    pub fn full_name(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}::{}", self.name),
        }
    }

    /// Returns the tensor that holds the memory of `tensor`, both by index over inputs, then outputs: the output that shares an
    /// input's memory, otherwise the tensor itself. Every address of a tensor is the address of its storage.
    #[must_use]
    pub fn storage_of(&self, tensor: usize) -> usize {
        let shares = |output: &Output| output.alias.is_some_and(|input| input as usize == tensor);
        self.outputs.iter().position(shares).map_or(tensor, |output| self.inputs.len() + output)
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

impl Names for Plugin {
    fn attribute(&self, index: u32) -> Option<&str> {
        self.attributes.get(index as usize).map(|attribute| attribute.name.as_str())
    }

    fn tensor(&self, index: u32) -> Option<&str> {
        self.tensor_name(index as usize)
    }
}
