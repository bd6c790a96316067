use super::error::{Limit, Problem, Role};
use super::pack;
use super::steps::Steps;
use super::workspace::ScratchRange;
use cubinder_expr::value::Value;
use cubinder_expr::{BinaryOp, Environment, Expr, Node};
use cubinder_model::code::Target;
use cubinder_model::cuda_limits::{
    HAS_CLUSTERS, MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS,
};
use cubinder_model::model::{Arg, ArgValue, Launch, MAX_ARGUMENTS, MAX_PARAMETER_BYTES, Plugin};

const AXES: [char; 3] = ['x', 'y', 'z'];

/// A kernel's limits on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchLimits<'a> {
    /// Maximum threads per block.
    pub max_threads: u32,
    /// Maximum dynamic shared bytes per block.
    pub max_shared_bytes: u32,
    /// Cluster sizes that the kernel can use.
    pub clusters: Clusters,
    /// The kernel's parameter sizes in bytes, when known.
    pub params: Option<&'a [u32]>,
}

impl LaunchLimits<'_> {
    /// No known limits: nothing is checked.
    pub const ANYTHING: LaunchLimits<'static> = LaunchLimits {
        max_threads: u32::MAX,
        max_shared_bytes: u32::MAX,
        clusters: Clusters::Most(MAX_CLUSTER),
        params: None,
    };
}

/// Cluster sizes that a kernel can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clusters {
    /// At most this many blocks.
    Most(u32),
    /// None: the device has no clusters.
    NotOnDevice,
    /// None: code for this target has no clusters.
    NotInCode(Target),
}

impl Clusters {
    /// Returns the clusters of code for `target`. PTX before [`HAS_CLUSTERS`] cannot read a block's rank.
    #[must_use]
    pub fn for_code(device_has: bool, target: Target) -> Clusters {
        match (device_has, target.arch.major >= HAS_CLUSTERS) {
            (false, _) => Clusters::NotOnDevice,
            (true, false) => Clusters::NotInCode(target),
            (true, true) => Clusters::Most(MAX_CLUSTER),
        }
    }

    /// Returns the larger of two limits.
    #[must_use]
    pub fn or(self, other: Clusters) -> Clusters {
        match (self, other) {
            (Clusters::Most(one), Clusters::Most(other)) => Clusters::Most(one.max(other)),
            (most @ Clusters::Most(_), _) | (_, most @ Clusters::Most(_)) => most,
            (code @ Clusters::NotInCode(_), _) | (_, code @ Clusters::NotInCode(_)) => code,
            (Clusters::NotOnDevice, Clusters::NotOnDevice) => Clusters::NotOnDevice,
        }
    }
}

/// An evaluated launch. [`super::Sequencing`] guarantees its invariants.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct EvaluatedLaunch {
    /// Blocks in x, y and z. With a 0 nothing else is evaluated; extents without a value are 0.
    pub grid: [u32; 3],
    /// Threads per block; 0 if empty.
    pub block: [u32; 3],
    /// Dynamic shared bytes per block.
    pub shared_bytes: u32,
    /// Blocks of a cluster, if used.
    pub cluster: Option<[u32; 3]>,
    /// Arguments in the kernel's order, at most [`MAX_ARGUMENTS`]; none if empty.
    pub args: Vec<EvaluatedArgument>,
    /// Numeric arguments, aligned to their types, little-endian.
    pub numbers: Vec<u8>,
}

/// Value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum EvaluatedArgument {
    /// Address of an input without aliases.
    Input(usize),
    /// Address of an output, or of its aliased input ([`Plugin::storage_of`]).
    Output(usize),
    /// Address of this scratch buffer.
    Scratch(usize),
    /// Numbers by value.
    Numbers {
        /// Offset in [`EvaluatedLaunch::numbers`], of [`ArgValue::size`] bytes.
        start: usize,
        /// One value or an array.
        value: Value,
    },
}

impl EvaluatedLaunch {
    /// Returns whether the launch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}

pub(super) type Checked<T> = Result<T, (Role, Problem)>;

pub(super) struct ExprContext<'a> {
    pub(super) environment: &'a dyn Environment,
    pub(super) steps: &'a mut Steps,
}

impl ExprContext<'_> {
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value, Problem> {
        let value = self.steps.value(expr, self.environment);
        value.map_err(|error| Problem::NoValue(self.steps.why(&error)))
    }
}

pub(super) fn is_empty(environment: &dyn Environment, tensor: usize) -> bool {
    let shape = u32::try_from(tensor).ok().and_then(|tensor| environment.shape(tensor));
    shape.is_some_and(|shape| shape.contains(&0))
}

#[derive(Clone, Copy)]
pub(super) struct LaunchMemory<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) scratch: &'a [ScratchRange],
}

pub(super) fn evaluate_launch(
    memory: LaunchMemory<'_>,
    launch: &Launch,
    limits: &LaunchLimits<'_>,
    context: &mut ExprContext<'_>,
) -> Checked<EvaluatedLaunch> {
    let grid = context.grid(memory, launch)?;
    if grid.contains(&0) {
        return Ok(EvaluatedLaunch { grid, ..EvaluatedLaunch::default() });
    }
    let block = context.block(launch, limits)?;
    let shared_bytes = context.shared_bytes(launch, limits)?;
    let cluster = context.cluster(launch, grid, limits)?;
    let mut arguments = Arguments::default();
    for arg in &launch.args {
        arguments.add(memory, arg, context)?;
    }
    arguments.check(launch, limits.params)?;
    let Arguments { list: args, numbers, .. } = arguments;
    Ok(EvaluatedLaunch { grid, block, shared_bytes, cluster, args, numbers })
}

impl ExprContext<'_> {
    /// An extent of 0 makes the grid empty even if another has no value.
    fn grid(&mut self, memory: LaunchMemory<'_>, launch: &Launch) -> Checked<[u32; 3]> {
        let extents = [0, 1, 2].map(|axis| {
            self.bounded(Role::Grid(AXES[axis]), &launch.grid[axis], 0, MAX_GRID[axis], Limit::Cuda)
        });
        if let Some(axis) = extents.iter().position(|extent| *extent == Ok(0)) {
            let mut outputs = memory.plugin.inputs.len()..memory.plugin.tensor_count();
            let takes_nothing = |arg: &Arg| match arg.value {
                ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => {
                    is_empty(self.environment, tensor as usize)
                }
                ArgValue::Scratch(index) => {
                    memory.scratch.get(index as usize).is_some_and(|scratch| scratch.bytes == 0)
                }
                ArgValue::Scalar { .. } | ArgValue::Array { .. } => false,
            };
            let has_nothing = outputs.any(|output| is_empty(self.environment, output));
            if has_nothing || launch.args.iter().any(takes_nothing) {
                return Ok(extents.map(|extent| extent.unwrap_or(0)));
            }
            let divides = |node: &Node| matches!(node, Node::Binary(BinaryOp::FloorDiv, ..));
            let rounds_down = launch.grid[axis].nodes.iter().any(divides);
            return Err((Role::Grid(AXES[axis]), Problem::NothingLaunched { rounds_down }));
        }
        let [x, y, z] = extents;
        Ok([x?, y?, z?])
    }

    /// Must divide the grid (`cuda.h` 13.0, `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`).
    fn cluster(
        &mut self,
        launch: &Launch,
        grid: [u32; 3],
        limits: &LaunchLimits<'_>,
    ) -> Checked<Option<[u32; 3]>> {
        let Some(extents) = &launch.cluster else { return Ok(None) };
        let (most, missing) = match limits.clusters {
            Clusters::Most(most) => (most, None),
            Clusters::NotOnDevice => (MAX_CLUSTER, Some(Problem::NoClusters)),
            Clusters::NotInCode(target) => (MAX_CLUSTER, Some(Problem::NoClustersInCode { target })),
        };
        let most = i64::from(most);
        let cluster = self.bounded_each(Role::Cluster, extents, 1, [most; 3], Limit::Cluster)?;
        // Cannot overflow: factors are at most `most`.
        let blocks = cluster.iter().copied().map(i64::from).fold(1, i64::saturating_mul);
        at_most(Role::ClusterBlocks, blocks, most, Limit::Cluster)?;
        if let Some(missing) = missing {
            // Works on every device.
            return if blocks == 1 { Ok(None) } else { Err((Role::ClusterBlocks, missing)) };
        }
        match (0..3).find(|&axis| !grid[axis].is_multiple_of(cluster[axis])) {
            Some(axis) => {
                let problem = Problem::NoMultiple { value: i64::from(grid[axis]), of: cluster[axis] };
                Err((Role::Grid(AXES[axis]), problem))
            }
            None => Ok(Some(cluster)),
        }
    }

    fn block(&mut self, launch: &Launch, limits: &LaunchLimits<'_>) -> Checked<[u32; 3]> {
        let block = self.bounded_each(Role::Block, &launch.block, 1, MAX_BLOCK, Limit::Cuda)?;
        // At most 1024 * 1024 * 64.
        let threads: i64 = block.iter().copied().map(i64::from).product();
        at_most(Role::Threads, threads, MAX_THREADS, Limit::Cuda)?;
        at_most(Role::Threads, threads, i64::from(limits.max_threads), Limit::Kernel)?;
        Ok(block)
    }

    fn shared_bytes(&mut self, launch: &Launch, limits: &LaunchLimits<'_>) -> Checked<u32> {
        let bytes =
            self.bounded(Role::SharedBytes, &launch.shared_bytes, 0, MAX_SHARED_BYTES, Limit::Cuda)?;
        at_most(Role::SharedBytes, i64::from(bytes), i64::from(limits.max_shared_bytes), Limit::Kernel)?;
        Ok(bytes)
    }

    fn bounded(&mut self, role: Role, expr: &Expr, least: i64, most: i64, limit: Limit) -> Checked<u32> {
        let problem = match self.value(expr) {
            Ok(Value::Int(value)) if value < least => Problem::TooSmall { value, least },
            Ok(Value::Int(value)) => match u32::try_from(value) {
                Ok(fits) if value <= most => return Ok(fits),
                _ => Problem::TooLarge { value, most, limit },
            },
            Ok(found) => Problem::Kind { found, expected: "an integer" },
            Err(problem) => problem,
        };
        Err((role, problem))
    }

    fn bounded_each(
        &mut self,
        role: fn(char) -> Role,
        exprs: &[Expr; 3],
        least: i64,
        most: [i64; 3],
        limit: Limit,
    ) -> Checked<[u32; 3]> {
        let mut extents = [0; 3];
        for axis in 0..3 {
            extents[axis] = self.bounded(role(AXES[axis]), &exprs[axis], least, most[axis], limit)?;
        }
        Ok(extents)
    }
}

fn at_most(role: Role, value: i64, most: i64, limit: Limit) -> Checked<()> {
    if value > most { Err((role, Problem::TooLarge { value, most, limit })) } else { Ok(()) }
}

#[derive(Default)]
struct Arguments {
    list: Vec<EvaluatedArgument>,
    sizes: Vec<usize>,
    numbers: Vec<u8>,
    end: usize,
}

impl Arguments {
    fn add(&mut self, memory: LaunchMemory<'_>, arg: &Arg, context: &mut ExprContext<'_>) -> Checked<()> {
        let fault = |problem| (Role::Argument(arg.name.clone()), problem);
        match &arg.value {
            ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => {
                let tensor = tensor_place(memory.plugin, *tensor).map_err(fault)?;
                self.push(tensor, size_of::<u64>(), align_of::<u64>());
            }
            ArgValue::Scratch(index) => {
                let (index, count) = (*index, memory.scratch.len());
                let buffer = usize::try_from(index).ok().filter(|index| *index < count);
                let buffer = buffer.ok_or_else(|| fault(Problem::NoSuchScratch { index, count }))?;
                self.push(EvaluatedArgument::Scratch(buffer), size_of::<u64>(), align_of::<u64>());
            }
            ArgValue::Scalar { ty, expr } => {
                let value = context.value(expr).map_err(fault)?;
                let start = self.align_numbers(pack::alignment(*ty));
                pack::append(&mut self.numbers, *ty, &value).map_err(fault)?;
                self.push_numbers(start, value, pack::alignment(*ty));
            }
            ArgValue::Array { ty, len, expr } => {
                let values = match context.value(expr).map_err(fault)? {
                    Value::Array(values) => values,
                    found => return Err(fault(Problem::Kind { found, expected: "an array" })),
                };
                if u32::try_from(values.len()) != Ok(*len) {
                    return Err(fault(Problem::Length { found: values.len(), expected: *len }));
                }
                let start = self.align_numbers(pack::alignment(*ty));
                for (index, value) in values.iter().enumerate() {
                    pack::append(&mut self.numbers, *ty, value)
                        .map_err(|problem| (Role::Element(arg.name.clone(), index), problem))?;
                }
                if values.is_empty() {
                    // An empty class has one byte in C++.
                    self.numbers.push(0);
                }
                self.push_numbers(start, Value::Array(values), pack::alignment(*ty));
            }
        }
        Ok(())
    }

    fn align_numbers(&mut self, alignment: usize) -> usize {
        let start = self.numbers.len().next_multiple_of(alignment);
        self.numbers.resize(start, 0);
        start
    }

    fn push_numbers(&mut self, start: usize, value: Value, alignment: usize) {
        self.push(EvaluatedArgument::Numbers { start, value }, self.numbers.len() - start, alignment);
    }

    fn push(&mut self, argument: EvaluatedArgument, size: usize, alignment: usize) {
        self.list.push(argument);
        self.sizes.push(size);
        self.end = self.end.next_multiple_of(alignment) + size;
    }

    /// The driver reads as many bytes as the kernel declares.
    fn check(&self, launch: &Launch, params: Option<&[u32]>) -> Checked<()> {
        let as_int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        at_most(Role::ArgumentCount, as_int(self.list.len()), as_int(MAX_ARGUMENTS), Limit::Cubinder)?;
        at_most(Role::Arguments, as_int(self.end), as_int(MAX_PARAMETER_BYTES), Limit::Cuda)?;
        let Some(params) = params else {
            return Ok(());
        };
        if params.len() != self.list.len() {
            let problem = Problem::ParameterCount { found: self.list.len(), expected: params.len() };
            return Err((Role::ArgumentCount, problem));
        }
        for ((arg, size), expected) in launch.args.iter().zip(&self.sizes).zip(params) {
            if u32::try_from(*size) != Ok(*expected) {
                let found = u32::try_from(*size).unwrap_or(u32::MAX);
                let problem = Problem::ParameterBytes { found, expected: *expected };
                return Err((Role::Argument(arg.name.clone()), problem));
            }
        }
        Ok(())
    }
}

fn tensor_place(plugin: &Plugin, tensor: u32) -> Result<EvaluatedArgument, Problem> {
    let (inputs, count) = (plugin.inputs.len(), plugin.tensor_count());
    match usize::try_from(tensor).map(|index| plugin.storage_of(index)) {
        Ok(index) if index < inputs => Ok(EvaluatedArgument::Input(index)),
        Ok(index) if index < count => Ok(EvaluatedArgument::Output(index - inputs)),
        _ => Err(Problem::NoSuchTensor { index: tensor, count }),
    }
}
