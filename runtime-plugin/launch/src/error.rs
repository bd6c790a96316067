//! What is wrong with a launch, for the person who wrote the manifest or chose the shapes.

use std::fmt;

use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;
use cubinder_model::code::Target;

/// A step of a variant that cannot be made with the shapes at hand.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// It launches a kernel, which its source names so.
    Launch(String),
    /// It fills memory of this name.
    Fill(String),
    /// It takes memory of the workspace for the scratch buffer of this name.
    Scratch(String),
    /// All its steps together; the variant's id.
    Variant(i32),
}

/// A part of what a variant does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The condition under which a step is done, as the author wrote it.
    Condition(String),
    /// A size in bytes.
    Bytes,
    /// Blocks of a cluster in `x`, `y` or `z`.
    Cluster(char),
    /// Blocks of a cluster.
    ClusterBlocks,
    /// Blocks of the whole grid.
    Blocks,
    /// An output, by its name.
    Output(String),
    /// Blocks in `x`, `y` or `z`.
    Grid(char),
    /// Threads of a block in `x`, `y` or `z`.
    Block(char),
    /// Threads of a block.
    Threads,
    /// Dynamic shared memory.
    SharedBytes,
    /// An argument, by its name in the kernel.
    Argument(String),
    /// An element of an array argument.
    Element(String, usize),
    /// How many arguments there are.
    ArgumentCount,
    /// The arguments together.
    Arguments,
}

/// What is wrong with a part of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// Its expression has no value.
    NoValue(String),
    /// Its expression gives another kind of value.
    Kind {
        /// The value.
        found: Value,
        /// What it should be, with its article.
        expected: &'static str,
    },
    /// Below what CUDA takes.
    TooSmall {
        /// The value.
        value: i64,
        /// The least.
        least: i64,
    },
    /// Above what the device or the kernel takes.
    TooLarge {
        /// The value.
        value: i64,
        /// The most.
        most: i64,
        /// Whose limit that is.
        limit: Limit,
    },
    /// A grid of 0 where nothing is empty: what the kernel writes would be left as it is.
    NothingLaunched {
        /// Whether its expression divides and leaves out a rest.
        rounds_down: bool,
    },
    /// No step that is done with these shapes writes the output, which is not empty.
    NotWritten {
        /// Whether a kernel that would write it has a grid of 0.
        grid_is_0: bool,
    },
    /// Of the steps that are done with these shapes one reads the output before any wrote it.
    ReadUnwritten,
    /// No multiple of the extent of a cluster.
    NoMultiple {
        /// The value.
        value: i64,
        /// The extent of a cluster.
        of: u32,
    },
    /// The device has no clusters.
    NoClusters,
    /// The device has clusters, and the code that it runs is for GPUs without.
    NoClustersInCode {
        /// What that code was compiled for.
        target: Target,
    },
    /// Not a value of the kernel's type.
    DoesNotFit {
        /// The value.
        value: Value,
        /// The type.
        ty: ScalarType,
    },
    /// An array of another length.
    Length {
        /// Its length.
        found: usize,
        /// The kernel's.
        expected: u32,
    },
    /// A tensor that the plugin does not have: the model is damaged.
    NoSuchTensor {
        /// Its index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// A scratch buffer that the variant does not have: the model is damaged.
    NoSuchScratch {
        /// Its index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// The loaded kernel has another parameter: the model is damaged.
    ParameterBytes {
        /// The argument's size.
        found: u32,
        /// The parameter's.
        expected: u32,
    },
    /// The loaded kernel has another number of parameters: the model is damaged.
    ParameterCount {
        /// How many arguments there are.
        found: usize,
        /// How many parameters.
        expected: usize,
    },
}

/// Whose limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Of every CUDA device.
    Cuda,
    /// Of this kernel on this device.
    Kernel,
    /// Of what runs at once on this device.
    AtOnce,
    /// Of clusters.
    Cluster,
    /// Ours.
    Cubinder,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Condition(text) => write!(f, "its condition `{text}`"),
            Role::Bytes => f.write_str("its size in bytes"),
            Role::Cluster(axis) => write!(f, "cluster {axis}"),
            Role::ClusterBlocks => f.write_str("the number of blocks in a cluster"),
            Role::Blocks => f.write_str("the number of blocks, which all have to run at once,"),
            Role::Output(name) => write!(f, "the output `{name}`"),
            Role::Grid(axis) => write!(f, "grid {axis}"),
            Role::Block(axis) => write!(f, "block {axis}"),
            Role::Threads => f.write_str("the number of threads in a block"),
            Role::SharedBytes => f.write_str("dynamic shared memory in bytes"),
            Role::Argument(name) => write!(f, "argument `{name}`"),
            Role::Element(name, index) => write!(f, "argument `{name}[{index}]`"),
            Role::ArgumentCount => f.write_str("the number of arguments"),
            Role::Arguments => f.write_str("the size of all arguments in bytes"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoValue(why) => write!(f, "has no value: {why}"),
            Problem::Kind { found, expected } => {
                write!(f, "is the {} {found}, expected {expected}", found.kind_name())
            }
            Problem::TooSmall { value, least } => write!(f, "is {value}, the least is {least}"),
            Problem::TooLarge { value, most, limit } => {
                let whose = match limit {
                    Limit::Cuda => "",
                    Limit::Kernel => " for this kernel on this GPU",
                    Limit::AtOnce => " that this GPU runs at once",
                    Limit::Cluster => " of every GPU that has clusters",
                    Limit::Cubinder => " that Cubinder passes",
                };
                write!(f, "is {value}, the most{whose} is {most}")
            }
            Problem::NothingLaunched { .. } => {
                f.write_str("is 0, and no output is empty: nothing would write the outputs")
            }
            Problem::NotWritten { .. } => {
                f.write_str("is not empty, and no step that is done with these shapes writes it")
            }
            Problem::ReadUnwritten => {
                f.write_str("is read before any step that is done with these shapes wrote it")
            }
            Problem::NoMultiple { value, of } => {
                write!(f, "is {value}, which is no multiple of the cluster's {of}")
            }
            Problem::NoClusters => {
                f.write_str("is set, and this GPU has no clusters: they exist from compute capability 9.0 on")
            }
            Problem::NoClustersInCode { target } => write!(
                f,
                "is set, and this GPU runs the code for {target}, which has no clusters: they exist from compute capability 9.0 on"
            ),
            Problem::DoesNotFit { value, ty } => {
                write!(f, "is {value}, which its type {ty} does not hold")?;
                match ty.integers() {
                    Some((least, most)) => write!(f, ": {least} to {most}"),
                    None => Ok(()),
                }
            }
            Problem::Length { found, expected } => {
                write!(f, "has {found} elements, the kernel takes exactly {expected}")
            }
            Problem::NoSuchTensor { index, count } => {
                write!(f, "is tensor {index}, and the plugin has {count}: its model is damaged")
            }
            Problem::NoSuchScratch { index, count } => {
                write!(f, "is scratch buffer {index}, and the variant has {count}: its model is damaged")
            }
            Problem::ParameterBytes { found, expected } => write!(
                f,
                "has {found} bytes, and the kernel's parameter has {expected}: code and model do not belong together"
            ),
            Problem::ParameterCount { found, expected } => write!(
                f,
                "is {found}, and the kernel has {expected} parameters: code and model do not belong together"
            ),
        }
    }
}

impl LaunchError {
    /// What mends it, where that is known.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match (&self.role, &self.problem) {
            (Role::Grid(_), Problem::NothingLaunched { rounds_down: true }) => {
                Some("`ceil_div(n, d)` counts the block that `n // d` leaves out")
            }
            (Role::Grid(_), Problem::NothingLaunched { rounds_down: false }) => Some(
                "where there is rightly nothing to launch, say so: `when = \"...\"` leaves the launch out",
            ),
            (Role::Output(_), Problem::NotWritten { grid_is_0: true }) => {
                Some("fill it before the launch whose grid is 0, with `memset`, or launch a block for it")
            }
            (Role::Output(_), Problem::NotWritten { grid_is_0: false }) => {
                Some("add a step for the shapes for which every `when` is false, or a guard against them")
            }
            (Role::Output(_), Problem::ReadUnwritten) => {
                Some("change the order of the steps, or fill it first with `memset`")
            }
            (Role::Grid(_), Problem::NoMultiple { .. }) => Some(
                "round the grid up, `ceil_div(n, cluster) * cluster`, and let the kernel skip what is too much",
            ),
            (_, Problem::NoClusters) => {
                Some("guard the variant with `device.capability >= 90`, and add one without clusters")
            }
            (_, Problem::NoClustersInCode { .. }) => Some(
                "compile for this GPU, or PTX for one with clusters: `cubinder compile --arch compute_90`",
            ),
            (Role::Blocks, Problem::TooLarge { .. }) => Some(
                "bound the grid by the device, `min(n, device.sms)`, and loop over the rest in the kernel",
            ),
            (Role::Grid('y' | 'z'), Problem::TooLarge { .. }) => {
                Some("put the largest extent into grid x, which goes up to 2147483647")
            }
            (Role::Grid(_), Problem::TooLarge { .. }) => {
                Some("let a block do more, or loop over the grid in the kernel")
            }
            (Role::Threads, Problem::TooLarge { limit: Limit::Kernel, .. }) => Some(
                "make the block smaller, or have the kernel compiled for it with `__launch_bounds__`, which bounds its \
                 registers",
            ),
            (Role::Argument(_) | Role::Element(..), Problem::DoesNotFit { ty, .. }) => match ty {
                ScalarType::Int { bytes: 1..=4 } | ScalarType::UInt { bytes: 1..=4 } => {
                    Some("take a wider type in the kernel, or limit the shapes")
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugin = &self.plugin;
        match &self.subject {
            Subject::Launch(kernel) => write!(f, "`{plugin}` cannot launch `{kernel}`: ")?,
            Subject::Fill(memory) => write!(f, "`{plugin}` cannot fill `{memory}`: ")?,
            Subject::Scratch(name) => write!(f, "`{plugin}` cannot reserve the scratch buffer `{name}`: ")?,
            Subject::Variant(id) => write!(f, "`{plugin}` cannot run variant {id}: ")?,
        }
        write!(f, "{} {}", self.role, self.problem)?;
        for (name, shape) in &self.shapes {
            match shape {
                Some(shape) => write!(f, "\n  {name}: {shape:?}")?,
                None => write!(f, "\n  {name}: shape not known")?,
            }
        }
        match self.help() {
            Some(help) => write!(f, "\n{help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LaunchError {}
