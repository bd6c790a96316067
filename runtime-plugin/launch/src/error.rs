use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;
use cubinder_model::code::Target;

/// A step that is invalid for these shapes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{plugin}` cannot {subject}: {role} {problem}{}{}", shape_lines(shapes), help_line(role, problem))]
pub struct LaunchError {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// Failed operation.
    pub subject: Subject,
    /// Part of the operation.
    pub role: Role,
    /// Problem with that part.
    pub problem: Problem,
    /// Shapes of inputs, then outputs, if known.
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
    /// A step's condition.
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
    #[error("the number of blocks of the cooperative launch")]
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
    /// Number of arguments.
    #[error("the number of arguments")]
    ArgumentCount,
    /// Total size of the arguments.
    #[error("the size of all arguments in bytes")]
    Arguments,
}

/// A problem of a part.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The expression has no value.
    #[error("has no value: {0}")]
    NoValue(String),
    /// The value has another kind.
    #[error("is the {} {found}, expected {expected}", found.kind_name())]
    Kind {
        /// Value.
        found: Value,
        /// The expected kind, with its article.
        expected: &'static str,
    },
    /// Below CUDA's minimum.
    #[error("is {value}, the minimum is {least}")]
    TooSmall {
        /// Value.
        value: i64,
        /// Minimum.
        least: i64,
    },
    /// Above a maximum.
    #[error("is {value}, the maximum{limit} is {most}")]
    TooLarge {
        /// Value.
        value: i64,
        /// Maximum.
        most: i64,
        /// Source of the maximum.
        limit: Limit,
    },
    /// A grid of 0 without an empty tensor.
    #[error("is 0, but no output is empty: the outputs would not be written")]
    NothingLaunched {
        /// Whether its expression rounds down.
        rounds_down: bool,
    },
    /// No executed step writes the nonempty output.
    #[error("is not empty, but no step that runs for these shapes writes it")]
    NotWritten {
        /// Whether its writer has a grid of 0.
        grid_is_0: bool,
    },
    /// Read before written.
    #[error("is read before a step that runs for these shapes writes it")]
    ReadUnwritten,
    /// Not a multiple of the cluster's extent.
    #[error("is {value}, not a multiple of {of}, the cluster's extent")]
    NoMultiple {
        /// Value.
        value: i64,
        /// The cluster's extent.
        of: u32,
    },
    /// The device has no clusters.
    #[error("is set, but this GPU has no clusters: they require compute capability 9.0 or later")]
    NoClusters,
    /// The target's code has no clusters.
    #[error(
        "is set, but this GPU runs the code for {target}, which has no clusters: they require compute capability 9.0 or later"
    )]
    NoClustersInCode {
        /// Target of that code.
        target: Target,
    },
    /// Outside of the kernel's type.
    #[error("is {value}, which does not fit its type {ty}{}", range_of(*ty))]
    DoesNotFit {
        /// Value.
        value: Value,
        /// Type.
        ty: ScalarType,
    },
    /// An array of another length.
    #[error("has length {found}, the kernel expects exactly {expected}")]
    Length {
        /// Its length.
        found: usize,
        /// The kernel's length.
        expected: u32,
    },
    /// Damaged model: no such tensor.
    #[error("is tensor {index}, but the plugin has {count} tensors: its model is damaged")]
    NoSuchTensor {
        /// Its index.
        index: u32,
        /// Number of tensors.
        count: usize,
    },
    /// Damaged model: no such buffer.
    #[error("is scratch buffer {index}, but the variant has {count} scratch buffers: its model is damaged")]
    NoSuchScratch {
        /// Its index.
        index: u32,
        /// Number of scratch buffers.
        count: usize,
    },
    /// Damaged model: another parameter.
    #[error("has {found} bytes, but the kernel's parameter has {expected}: code and model do not match")]
    ParameterBytes {
        /// Size of the argument.
        found: u32,
        /// Size of the parameter.
        expected: u32,
    },
    /// Damaged model: other parameters.
    #[error("is {found}, but the kernel has {expected} parameters: code and model do not match")]
    ParameterCount {
        /// Number of arguments.
        found: usize,
        /// Number of parameters.
        expected: usize,
    },
}

/// Source of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Every CUDA device.
    #[error("")]
    Cuda,
    /// This kernel on this device.
    #[error(" for this kernel on this GPU")]
    Kernel,
    /// Blocks resident at once on this device.
    #[error(" of blocks that run at once on this GPU")]
    AtOnce,
    /// Clusters on every device.
    #[error(" of every GPU with clusters")]
    Cluster,
    /// Cubinder.
    #[error(" of Cubinder")]
    Cubinder,
}

fn range_of(ty: ScalarType) -> String {
    ty.integers().map_or_else(String::new, |(least, most)| format!(": {least} to {most}"))
}

fn shape_lines(shapes: &[(String, Option<Vec<i64>>)]) -> String {
    let line = |(name, shape): &(String, Option<Vec<i64>>)| match shape {
        Some(shape) => format!("\n  {name}: {shape:?}"),
        None => format!("\n  {name}: unknown shape"),
    };
    shapes.iter().map(line).collect()
}

fn help_line(role: &Role, problem: &Problem) -> String {
    let help = match (role, problem) {
        (Role::Grid(_), Problem::NothingLaunched { rounds_down: true }) => {
            "use `ceil_div(n, d)`, which includes the block that `n // d` omits"
        }
        (Role::Grid(_), Problem::NothingLaunched { rounds_down: false }) => {
            "if these shapes need no launch, skip it with `when = \"...\"`"
        }
        (Role::Output(_), Problem::NotWritten { grid_is_0: true }) => {
            "fill it with `memset` before the launch whose grid is 0, or launch at least one block"
        }
        (Role::Output(_), Problem::NotWritten { grid_is_0: false }) => {
            "add a step for the shapes for which every `when` is false, or exclude them with a guard"
        }
        (Role::Output(_), Problem::ReadUnwritten) => {
            "change the order of the steps, or fill it first with `memset`"
        }
        (Role::Grid(_), Problem::NoMultiple { .. }) => {
            "round the grid up with `ceil_div(n, cluster) * cluster`, and return early in the extra blocks"
        }
        (_, Problem::NoClusters) => {
            "guard the variant with `device.capability >= 90`, and add one without clusters"
        }
        (_, Problem::NoClustersInCode { .. }) => {
            "compile for this GPU, or add PTX that supports clusters: `cubinder compile --target compute_90`"
        }
        (Role::Blocks, Problem::TooLarge { .. }) => {
            "limit the grid with `min(n, device.sms)`, and loop over the rest in the kernel"
        }
        (Role::Grid('y' | 'z'), Problem::TooLarge { .. }) => {
            "put the largest extent into grid x, whose maximum is 2147483647"
        }
        (Role::Grid(_), Problem::TooLarge { .. }) => {
            "process more elements in a block, or loop over the grid in the kernel"
        }
        (Role::Threads, Problem::TooLarge { limit: Limit::Kernel, .. }) => {
            "make the block smaller, or limit the kernel's registers with `__launch_bounds__`"
        }
        (
            Role::Argument(_) | Role::Element(..),
            Problem::DoesNotFit {
                ty: ScalarType::Int { bytes: 1..=4 } | ScalarType::UInt { bytes: 1..=4 },
                ..
            },
        ) => "use a wider type in the kernel, or limit the shapes",
        _ => return String::new(),
    };
    format!("\n{help}")
}
