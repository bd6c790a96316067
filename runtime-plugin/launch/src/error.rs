//! What is wrong with a launch, for the person who wrote the manifest or chose the shapes.

use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;
use cubinder_model::code::Target;

/// A step of a variant that cannot be made with the shapes at hand.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{plugin}` cannot {subject}: {role} {problem}{}{}", shape_lines(shapes), help_line(role, problem))]
pub struct LaunchError {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// What cannot be done.
    pub subject: Subject,
    /// Which part of it.
    pub role: Role,
    /// What is wrong with it.
    pub problem: Problem,
    /// The tensors' names and shapes, inputs then outputs; none where a shape is not known.
    pub shapes: Vec<(String, Option<Vec<i64>>)>,
}

/// What a variant does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Subject {
    /// It launches a kernel, which its source names so.
    #[error("launch `{0}`")]
    Launch(String),
    /// It fills memory of this name.
    #[error("fill `{0}`")]
    Fill(String),
    /// It takes memory of the workspace for the scratch buffer of this name.
    #[error("reserve the scratch buffer `{0}`")]
    Scratch(String),
    /// All its steps together; the variant's id.
    #[error("run variant {0}")]
    Variant(i32),
}

/// A part of what a variant does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Role {
    /// The condition under which a step is done, as the author wrote it.
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
    /// Blocks of the whole grid.
    #[error("the number of blocks, which all have to run at once,")]
    Blocks,
    /// An output, by its name.
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
    /// An argument, by its name in the kernel.
    #[error("argument `{0}`")]
    Argument(String),
    /// An element of an array argument.
    #[error("argument `{0}[{1}]`")]
    Element(String, usize),
    /// How many arguments there are.
    #[error("the number of arguments")]
    ArgumentCount,
    /// The arguments together.
    #[error("the size of all arguments in bytes")]
    Arguments,
}

/// What is wrong with a part of a launch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Its expression has no value.
    #[error("has no value: {0}")]
    NoValue(String),
    /// Its expression gives another kind of value.
    #[error("is the {} {found}, expected {expected}", found.kind_name())]
    Kind {
        /// The value.
        found: Value,
        /// What it should be, with its article.
        expected: &'static str,
    },
    /// Below what CUDA takes.
    #[error("is {value}, the least is {least}")]
    TooSmall {
        /// The value.
        value: i64,
        /// The least.
        least: i64,
    },
    /// Above what the device or the kernel takes.
    #[error("is {value}, the most{limit} is {most}")]
    TooLarge {
        /// The value.
        value: i64,
        /// The most.
        most: i64,
        /// Whose limit that is.
        limit: Limit,
    },
    /// A grid of 0 where nothing is empty: what the kernel writes would be left as it is.
    #[error("is 0, and no output is empty: nothing would write the outputs")]
    NothingLaunched {
        /// Whether its expression divides and leaves out a rest.
        rounds_down: bool,
    },
    /// No step that is done with these shapes writes the output, which is not empty.
    #[error("is not empty, and no step that is done with these shapes writes it")]
    NotWritten {
        /// Whether a kernel that would write it has a grid of 0.
        grid_is_0: bool,
    },
    /// Of the steps that are done with these shapes one reads the output before any wrote it.
    #[error("is read before any step that is done with these shapes wrote it")]
    ReadUnwritten,
    /// No multiple of the extent of a cluster.
    #[error("is {value}, which is no multiple of the cluster's {of}")]
    NoMultiple {
        /// The value.
        value: i64,
        /// The extent of a cluster.
        of: u32,
    },
    /// The device has no clusters.
    #[error("is set, and this GPU has no clusters: they exist from compute capability 9.0 on")]
    NoClusters,
    /// The device has clusters, and the code that it runs is for GPUs without.
    #[error(
        "is set, and this GPU runs the code for {target}, which has no clusters: they exist from compute capability 9.0 on"
    )]
    NoClustersInCode {
        /// What that code was compiled for.
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
        /// The kernel's.
        expected: u32,
    },
    /// A tensor that the plugin does not have: the model is damaged.
    #[error("is tensor {index}, and the plugin has {count}: its model is damaged")]
    NoSuchTensor {
        /// Its index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// A scratch buffer that the variant does not have: the model is damaged.
    #[error("is scratch buffer {index}, and the variant has {count}: its model is damaged")]
    NoSuchScratch {
        /// Its index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// The loaded kernel has another parameter: the model is damaged.
    #[error(
        "has {found} bytes, and the kernel's parameter has {expected}: code and model do not belong together"
    )]
    ParameterBytes {
        /// The argument's size.
        found: u32,
        /// The parameter's.
        expected: u32,
    },
    /// The loaded kernel has another number of parameters: the model is damaged.
    #[error("is {found}, and the kernel has {expected} parameters: code and model do not belong together")]
    ParameterCount {
        /// How many arguments there are.
        found: usize,
        /// How many parameters.
        expected: usize,
    },
}

/// Whose limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Of every CUDA device.
    #[error("")]
    Cuda,
    /// Of this kernel on this device.
    #[error(" for this kernel on this GPU")]
    Kernel,
    /// Of what runs at once on this device.
    #[error(" that this GPU runs at once")]
    AtOnce,
    /// Of clusters.
    #[error(" of every GPU that has clusters")]
    Cluster,
    /// Ours.
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

/// How to fix it, on a line of its own, when known.
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
