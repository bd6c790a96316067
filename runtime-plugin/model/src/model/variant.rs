use serde::{Deserialize, Serialize};

use crate::code::Target;
use cubinder_expr::Expr;
use cubinder_expr::data_type::{DataType, ScalarType};
use cubinder_expr::format::Format;
use cubinder_expr::value::Value;

/// A row of the table of variants; expressions contain its constants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Tactic id, from 1 to [`MAX_VARIANT_ID`].
    pub id: i32,
    /// Description of types and constants: `T=f16 VEC=4`.
    pub label: String,
    /// Element types of inputs, then outputs.
    pub types: Vec<DataType>,
    /// Formats of inputs, then outputs.
    pub formats: Vec<Format>,
    /// Attributes that the code is compiled for, by ascending index.
    pub specialized: Vec<(u32, Value)>,
    /// When it may run; `None`: always.
    pub guard: Option<Guard>,
    /// Memory for its steps.
    pub scratch: Vec<Scratch>,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

impl Variant {
    /// Returns the launches among the steps, in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| step.work.launch())
    }

    /// Returns all its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let conditions = self.steps.iter().filter_map(|step| step.when.as_ref()).chain(&self.guard);
        let sizes = self.scratch.iter().map(|scratch| &scratch.bytes);
        conditions.map(|guard| &guard.expr).chain(sizes).chain(self.launches().flat_map(Launch::exprs))
    }

    /// Returns the launches for changes.
    pub fn launches_mut(&mut self) -> impl Iterator<Item = &mut Launch> {
        self.steps.iter_mut().filter_map(|step| step.work.launch_mut())
    }

    /// Returns the launch of a step, if it is one.
    #[must_use]
    pub fn launch(&self, step: usize) -> Option<&Launch> {
        self.steps.get(step)?.work.launch()
    }

    /// Returns the launch of a step for changes.
    pub fn launch_mut(&mut self, step: usize) -> Option<&mut Launch> {
        self.steps.get_mut(step)?.work.launch_mut()
    }
}

/// A buffer in a node's workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scratch {
    /// Name in arguments.
    pub name: String,
    /// Size in bytes; TensorRT reserves the profile's maximum.
    pub bytes: Expr,
}

/// Alignment of scratch buffers in bytes; TensorRT-RTX 1.7's workspaces have 512 (seen).
pub const SCRATCH_ALIGNMENT: u64 = 256;

/// A unit of queued work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Condition on shapes; `None`: always.
    pub when: Option<Guard>,
    /// Work.
    pub work: Work,
}

impl Step {
    /// Returns an unconditional launch.
    #[must_use]
    pub fn launch(launch: Launch) -> Step {
        Step { when: None, work: Work::Launch(Box::new(launch)) }
    }
}

/// The work of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Launches a kernel.
    Launch(Box<Launch>),
    /// Fills memory with one byte.
    Fill(Fill),
}

impl Work {
    fn launch(&self) -> Option<&Launch> {
        if let Work::Launch(launch) = self { Some(launch) } else { None }
    }

    fn launch_mut(&mut self) -> Option<&mut Launch> {
        if let Work::Launch(launch) = self { Some(launch) } else { None }
    }
}

/// Memory to fill with one byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Memory, filled completely.
    pub memory: Memory,
    /// Value.
    pub byte: u8,
}

/// Memory that a step can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// Output without a data-dependent size, by index.
    Output(u32),
    /// Scratch buffer of the variant, by index.
    Scratch(u32),
}

/// The condition for launching a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Boolean over attributes, shapes and alignments.
    pub expr: Expr,
    /// Expression as written.
    pub text: String,
}

/// The tactic "the first variant whose guard is satisfied", which TensorRT-RTX uses.
pub const AUTO_TACTIC: i32 = i32::MAX;

/// Highest tactic id of a variant.
pub const MAX_VARIANT_ID: i32 = 1_000_000;

/// Maximum arguments: TensorRT's 192 inputs, 64 outputs, as many numbers.
pub const MAX_ARGUMENTS: usize = 512;

/// Maximum bytes of kernel parameters since sm_70 (CUDA C++ programming guide 13.0, "function parameters").
pub const MAX_PARAMETER_BYTES: usize = 32_764;

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Name in its source: `circ_pad<float, 4>`.
    pub kernel: String,
    /// Blocks (x, y, z); 0 skips the launch.
    pub grid: [Expr; 3],
    /// Threads per block (x, y, z).
    pub block: [Expr; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: Expr,
    /// Blocks of a cluster (x, y, z), since compute capability 9.0.
    pub cluster: Option<[Expr; 3]>,
    /// Whether all blocks must run at once, for grid synchronization.
    pub cooperative: bool,
    /// Whether the kernel may start before earlier work ends.
    pub programmatic: bool,
    /// Arguments in the kernel's order.
    pub args: Vec<Arg>,
    /// Code, one for each target.
    pub code: Vec<CodeRef>,
}

impl Launch {
    /// Returns its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let extents = self.grid.iter().chain(&self.block).chain(self.cluster.iter().flatten());
        let args = self.args.iter().filter_map(|arg| arg.value.expr());
        extents.chain([&self.shared_bytes]).chain(args)
    }
}

/// Code of one launch for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRef {
    /// Target of the code.
    pub target: Target,
    /// Index into the code objects of the bundle or node.
    pub code: u32,
    /// Symbol in it.
    pub symbol: String,
}

/// One argument of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arg {
    /// Name in the kernel.
    pub name: String,
    /// Value.
    pub value: ArgValue,
}

/// Value of an argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ArgValue {
    /// Device pointer of a tensor, except shape inputs, by index.
    Tensor(u32),
    /// Device pointer of the variant's scratch buffer, by index.
    Scratch(u32),
    /// A number by value; overflow is an error.
    Scalar {
        /// The kernel's type.
        ty: ScalarType,
        /// Value.
        expr: Expr,
    },
    /// An array of numbers by value: `cubinder::array<ty, len>`.
    Array {
        /// Type of an element.
        ty: ScalarType,
        /// Number of elements, exactly.
        len: u32,
        /// Values.
        expr: Expr,
    },
    /// Like [`ArgValue::Tensor`], for a parameter that points to `const`.
    ReadTensor(u32),
}

impl ArgValue {
    /// Returns the parameter's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => 8,
            ArgValue::Scalar { ty, .. } => ty.size().into(),
            // An empty class has one byte in C++.
            ArgValue::Array { ty, len, .. } => (u64::from(ty.size()) * u64::from(*len)).max(1),
        }
    }

    /// Returns the tensor, by index over inputs, then outputs.
    #[must_use]
    pub const fn tensor(&self) -> Option<u32> {
        match self {
            ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => Some(*tensor),
            ArgValue::Scratch(_) | ArgValue::Scalar { .. } | ArgValue::Array { .. } => None,
        }
    }

    /// Returns the value of a number or array.
    #[must_use]
    pub const fn expr(&self) -> Option<&Expr> {
        match self {
            ArgValue::Scalar { expr, .. } | ArgValue::Array { expr, .. } => Some(expr),
            ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => None,
        }
    }
}
