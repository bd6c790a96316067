//! Errors of launches.

use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;
use cubinder_model::code::Target;

/// A step of a variant that is invalid for these shapes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{plugin}` cannot {subject}: {role} {problem}{}{}", shape_lines(shapes), help_line(role, problem))]
pub struct LaunchError {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// The failed operation.
    pub subject: Subject,
    /// The part of the operation.
    pub role: Role,
    /// The problem with that part.
    pub problem: Problem,
    /// Of inputs, then outputs.
    pub shapes: Vec<(String, Option<Vec<i64>>)>,
}

/// An operation of a variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Subject {
    /// Launches this kernel.
    #[error("launch `{0}`")]
    Launch(String),
    /// Fills this memory.
    #[error("fill `{0}`")]
    Fill(String),
    /// Reserves this scratch buffer.
    #[error("reserve the scratch buffer `{0}`")]
    Scratch(String),
    /// Runs all steps of this variant.
    #[error("run variant {0}")]
    Variant(i32),
}

/// A part of an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Role {
    /// A step's condition, as written.
    #[error("its condition `{0}`")]
    Condition(String),
    /// A size in bytes.
    #[error("its size in bytes")]
    Bytes,
    /// Blocks of a cluster in `x`, `y` or `z`.
    #[error("cluster {0}")]
    Cluster(char),
    /// Blocks of a cluster.
    #[error("the number of blocks in a cluster")]
    ClusterBlocks,
    /// Blocks of the grid.
    #[error("the number of blocks, which all have to run at once,")]
    Blocks,
    /// An output, by name.
    #[error("the output `{0}`")]
    Output(String),
    /// Blocks in `x`, `y` or `z`.
    #[error("grid {0}")]
    Grid(char),
    /// Threads of a block in `x`, `y` or `z`.
    #[error("block {0}")]
    Block(char),
    /// Threads of a block.
    #[error("the number of threads in a block")]
    Threads,
    /// Dynamic shared memory.
    #[error("dynamic shared memory in bytes")]
    SharedBytes,
    /// An argument.
    #[error("argument `{0}`")]
    Argument(String),
    /// An element of an array argument.
    #[error("argument `{0}[{1}]`")]
    Element(String, usize),
    /// The number of arguments.
    #[error("the number of arguments")]
    ArgumentCount,
    /// The total size of the arguments.
    #[error("the size of all arguments in bytes")]
    Arguments,
}

/// A problem with a part of a launch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Its expression has no value.
    #[error("has no value: {0}")]
    NoValue(String),
    /// Its value is of another kind.
    #[error("is the {} {found}, expected {expected}", found.kind_name())]
    Kind {
        /// The value.
        found: Value,
        /// The expected kind, with its article.
        expected: &'static str,
    },
    /// Below CUDA's minimum.
    #[error("is {value}, the least is {least}")]
    TooSmall {
        /// The value.
        value: i64,
        /// The minimum.
        least: i64,
    },
    /// Above a maximum.
    #[error("is {value}, the most{limit} is {most}")]
    TooLarge {
        /// The value.
        value: i64,
        /// The maximum.
        most: i64,
        /// The source of the maximum.
        limit: Limit,
    },
    /// A grid of 0 although no tensor is empty.
    #[error("is 0, and no output is empty: nothing would write the outputs")]
    NothingLaunched {
        /// Whether its expression rounds down.
        rounds_down: bool,
    },
    /// No executed step writes the nonempty output.
    #[error("is not empty, and no step that is done with these shapes writes it")]
    NotWritten {
        /// Whether a kernel that writes it has a grid of 0.
        grid_is_0: bool,
    },
    /// Read before any executed step writes it.
    #[error("is read before any step that is done with these shapes wrote it")]
    ReadUnwritten,
    /// Not a multiple of the cluster's extent.
    #[error("is {value}, which is no multiple of the cluster's {of}")]
    NoMultiple {
        /// The value.
        value: i64,
        /// The cluster's extent.
        of: u32,
    },
    /// The device has no clusters.
    #[error("is set, and this GPU has no clusters: they exist from compute capability 9.0 on")]
    NoClusters,
    /// The code for this target has no clusters.
    #[error(
        "is set, and this GPU runs the code for {target}, which has no clusters: they exist from compute capability 9.0 on"
    )]
    NoClustersInCode {
        /// Target of that code.
        target: Target,
    },
    /// Not a value of the kernel's type.
    #[error("is {value}, which its type {ty} does not hold{}", range_of(*ty))]
    DoesNotFit {
        /// The value.
        value: Value,
        /// The type.
        ty: ScalarType,
    },
    /// An array of another length.
    #[error("has {found} elements, the kernel takes exactly {expected}")]
    Length {
        /// Its length.
        found: usize,
        /// The kernel's length.
        expected: u32,
    },
    /// The model is damaged: no such tensor.
    #[error("is tensor {index}, and the plugin has {count}: its model is damaged")]
    NoSuchTensor {
        /// Its index.
        index: u32,
        /// Number of tensors.
        count: usize,
    },
    /// The model is damaged: no such scratch buffer.
    #[error("is scratch buffer {index}, and the variant has {count}: its model is damaged")]
    NoSuchScratch {
        /// Its index.
        index: u32,
        /// Number of scratch buffers.
        count: usize,
    },
    /// The model is damaged: another parameter.
    #[error(
        "has {found} bytes, and the kernel's parameter has {expected}: code and model do not belong together"
    )]
    ParameterBytes {
        /// Size of the argument.
        found: u32,
        /// Size of the parameter.
        expected: u32,
    },
    /// The model is damaged: another number of parameters.
    #[error("is {found}, and the kernel has {expected} parameters: code and model do not belong together")]
    ParameterCount {
        /// Number of arguments.
        found: usize,
        /// Number of parameters.
        expected: usize,
    },
}

/// The source of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Every CUDA device.
    #[error("")]
    Cuda,
    /// This kernel on this device.
    #[error(" for this kernel on this GPU")]
    Kernel,
    /// Blocks resident at once on this device.
    #[error(" that this GPU runs at once")]
    AtOnce,
    /// Clusters on every device.
    #[error(" of every GPU that has clusters")]
    Cluster,
    /// Cubinder.
    #[error(" that Cubinder passes")]
    Cubinder,
}

fn range_of(ty: ScalarType) -> String {
    ty.integers().map_or_else(String::new, |(least, most)| format!(": {least} to {most}"))
}

fn shape_lines(shapes: &[(String, Option<Vec<i64>>)]) -> String {
    let line = |(name, shape): &(String, Option<Vec<i64>>)| match shape {
        Some(shape) => format!("\n  {name}: {shape:?}"),
        None => format!("\n  {name}: shape not known"),
    };
    shapes.iter().map(line).collect()
}

fn help_line(role: &Role, problem: &Problem) -> String {
    let help = match (role, problem) {
        (Role::Grid(_), Problem::NothingLaunched { rounds_down: true }) => {
            "`ceil_div(n, d)` counts the block that `n // d` leaves out"
        }
        (Role::Grid(_), Problem::NothingLaunched { rounds_down: false }) => {
            "where there is rightly nothing to launch, say so: `when = \"...\"` leaves the launch out"
        }
        (Role::Output(_), Problem::NotWritten { grid_is_0: true }) => {
            "fill it before the launch whose grid is 0, with `memset`, or launch a block for it"
        }
        (Role::Output(_), Problem::NotWritten { grid_is_0: false }) => {
            "add a step for the shapes for which every `when` is false, or a guard against them"
        }
        (Role::Output(_), Problem::ReadUnwritten) => {
            "change the order of the steps, or fill it first with `memset`"
        }
        (Role::Grid(_), Problem::NoMultiple { .. }) => {
            "round the grid up, `ceil_div(n, cluster) * cluster`, and let the kernel skip what is too much"
        }
        (_, Problem::NoClusters) => {
            "guard the variant with `device.capability >= 90`, and add one without clusters"
        }
        (_, Problem::NoClustersInCode { .. }) => {
            "compile for this GPU, or PTX for one with clusters: `cubinder compile --arch compute_90`"
        }
        (Role::Blocks, Problem::TooLarge { .. }) => {
            "bound the grid by the device, `min(n, device.sms)`, and loop over the rest in the kernel"
        }
        (Role::Grid('y' | 'z'), Problem::TooLarge { .. }) => {
            "put the largest extent into grid x, which goes up to 2147483647"
        }
        (Role::Grid(_), Problem::TooLarge { .. }) => {
            "let a block do more, or loop over the grid in the kernel"
        }
        (Role::Threads, Problem::TooLarge { limit: Limit::Kernel, .. }) => {
            "make the block smaller, or have the kernel compiled for it with `__launch_bounds__`, which bounds its \
             registers"
        }
        (
            Role::Argument(_) | Role::Element(..),
            Problem::DoesNotFit {
                ty: ScalarType::Int { bytes: 1..=4 } | ScalarType::UInt { bytes: 1..=4 },
                ..
            },
        ) => "take a wider type in the kernel, or limit the shapes",
        _ => return String::new(),
    };
    format!("\n{help}")
}
