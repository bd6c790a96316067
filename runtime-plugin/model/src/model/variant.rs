//! The table of variants: when each may run, and what it queues.

use serde::{Deserialize, Serialize};

use crate::code::Target;
use cubinder_expr::Expr;
use cubinder_expr::data_type::{DataType, ScalarType};
use cubinder_expr::format::Format;
use cubinder_expr::value::Value;

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
    /// The launches among the steps, in order.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| step.work.launch())
    }

    /// The expressions of its guard, of its steps and of the sizes of its scratch buffers.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let conditions = self.steps.iter().filter_map(|step| step.when.as_ref()).chain(&self.guard);
        let sizes = self.scratch.iter().map(|scratch| &scratch.bytes);
        conditions.map(|guard| &guard.expr).chain(sizes).chain(self.launches().flat_map(Launch::exprs))
    }

    /// The launches, to change.
    pub fn launches_mut(&mut self) -> impl Iterator<Item = &mut Launch> {
        self.steps.iter_mut().filter_map(|step| step.work.launch_mut())
    }

    /// The launch of a step; `None` if the step is another or does not exist.
    #[must_use]
    pub fn launch(&self, step: usize) -> Option<&Launch> {
        self.steps.get(step)?.work.launch()
    }

    /// The same, to change.
    pub fn launch_mut(&mut self, step: usize) -> Option<&mut Launch> {
        self.steps.get_mut(step)?.work.launch_mut()
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

impl Work {
    fn launch(&self) -> Option<&Launch> {
        if let Work::Launch(launch) = self { Some(launch) } else { None }
    }

    fn launch_mut(&mut self) -> Option<&mut Launch> {
        if let Work::Launch(launch) = self { Some(launch) } else { None }
    }
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

impl Launch {
    /// The expressions of its extents, its shared memory and its arguments.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let extents = self.grid.iter().chain(&self.block).chain(self.cluster.iter().flatten());
        let args = self.args.iter().filter_map(|arg| arg.value.expr());
        extents.chain([&self.shared_bytes]).chain(args)
    }
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
    /// As [`ArgValue::Tensor`], where the kernel's parameter is a pointer to `const`: it reads the tensor and does not write it.
    ReadTensor(u32),
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
