use std::ffi::c_void;
use std::mem::MaybeUninit;

use cubinder_launch::{Clusters, EvaluatedArgument, EvaluatedLaunch, LaunchLimits, ScratchRange};
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::model::MAX_ARGUMENTS;
use cubinder_model::{Arg, ArgValue, Digest, Launch, Plugin, Target};

use super::addresses::{Addresses, Positions};
use super::error::{EnqueueError, LaunchDescription, Refusal, Result};
use crate::code::LoadedKernel;
use crate::driver::sys::{
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUkernel, CUlaunchAttribute, CUstream,
};
use crate::driver::{Configuration, Driver, DriverError};

/// A launch that lacks only addresses, for any number of threads.
///
/// `cuLaunchKernel` reads pointers to arguments: numbers are in the record, tensor addresses in TensorRT's array,
/// scratch addresses on the stack.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    pub(super) launch: LaunchDescription,
    kernel: CUkernel,
    target: Target,
    digest: Digest,
    arguments: Box<[Argument]>,
    /// `u64` aligns them.
    numbers: Box<[u64]>,
    inputs: usize,
    outputs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument {
    /// Offset in `numbers`, in bytes.
    Number(usize),
    /// Index of an input.
    Input(usize),
    /// Index of an output.
    Output(usize),
    /// Offset in the workspace, in bytes.
    Scratch(u64),
}

/// Returns a kernel's launch limits.
#[must_use]
pub fn takes(kernel: &LoadedKernel) -> LaunchLimits<'_> {
    LaunchLimits {
        max_threads: kernel.limits.max_threads,
        max_shared_bytes: kernel.limits.max_shared_bytes,
        clusters: Clusters::for_code(kernel.has_clusters, kernel.target),
        params: kernel.params.as_deref(),
    }
}

impl LaunchRecord {
    /// Creates the record of a launch evaluated for `kernel` with limits from [`takes`]; `scratch` has the buffers'
    /// offsets. `None` for a missing input, or `numbers` of another launch or kernel.
    ///
    /// Before enqueuing, call [`crate::code::CodeTable::allow_shared`] with [`LaunchRecord::description`]'s
    /// `shared_bytes`.
    #[must_use]
    pub fn new(
        plugin: &Plugin,
        launch: &Launch,
        kernel: &LoadedKernel,
        numbers: &EvaluatedLaunch,
        scratch: &[ScratchRange],
        positions: &Positions,
    ) -> Option<LaunchRecord> {
        let storage = |tensor: &u32| plugin.storage_of(*tensor as usize);
        let output = |tensor: &u32| storage(tensor).checked_sub(plugin.inputs.len());
        let place = |(passed, arg): (&EvaluatedArgument, &Arg)| {
            Some(match (passed, &arg.value) {
                (EvaluatedArgument::Input(index), ArgValue::Tensor(of) | ArgValue::ReadTensor(of))
                    if *index == storage(of) && *index < plugin.inputs.len() =>
                {
                    Argument::Input(positions.position(*index)?)
                }
                (EvaluatedArgument::Output(index), ArgValue::Tensor(of) | ArgValue::ReadTensor(of))
                    if output(of) == Some(*index) && *index < plugin.outputs.len() =>
                {
                    Argument::Output(*index)
                }
                (
                    EvaluatedArgument::Numbers { start, .. },
                    ArgValue::Scalar { .. } | ArgValue::Array { .. },
                ) if reach(*start, arg)? <= numbers.numbers.len() => Argument::Number(*start),
                (EvaluatedArgument::Scratch(index), ArgValue::Scratch(_)) => {
                    Argument::Scratch(scratch.get(*index)?.offset)
                }
                _ => return None,
            })
        };
        let arguments = numbers.args.iter().zip(&launch.args).map(place).collect::<Option<Box<_>>>()?;
        if !numbers.is_empty() && !are_all(&arguments, launch, kernel) {
            return None;
        }
        Some(LaunchRecord {
            launch: LaunchDescription {
                plugin: plugin.full_name().into_boxed_str(),
                kernel: launch.kernel.as_str().into(),
                configuration: Configuration {
                    grid: numbers.grid,
                    block: numbers.block,
                    shared_bytes: numbers.shared_bytes,
                    attributes: attributes(launch, kernel, numbers),
                },
                cluster: numbers.cluster,
                cooperative: launch.cooperative,
                limits: kernel.limits,
            },
            kernel: kernel.handle,
            target: kernel.target,
            digest: kernel.digest,
            arguments,
            numbers: words(&numbers.numbers),
            inputs: positions.given(),
            outputs: plugin.outputs.len(),
        })
    }

    /// Returns the launch for messages.
    #[must_use]
    pub fn description(&self) -> &LaunchDescription {
        &self.launch
    }

    /// Returns whether the grid has a 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.launch.configuration.grid.contains(&0)
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.launch.configuration.grid.iter().map(|extent| u64::from(*extent)).fold(1, u64::saturating_mul)
    }

    /// Returns the blocks resident at once on the current device.
    pub fn blocks_at_once(&self, driver: &Driver, multiprocessors: u32) -> Result<u64, DriverError> {
        if let Some(cluster) = self.launch.cluster {
            let clusters = driver.clusters_at_once(self.kernel, &self.launch.configuration)?;
            return Ok(cluster
                .iter()
                .map(|extent| u64::from(*extent))
                .fold(clusters.into(), u64::saturating_mul));
        }
        // CUDA limits the product to 1024.
        let threads = self.launch.configuration.block.iter().product();
        let blocks =
            driver.blocks_per_multiprocessor(self.kernel, threads, self.launch.configuration.shared_bytes)?;
        Ok(u64::from(blocks) * u64::from(multiprocessors))
    }

    /// Launches the kernel. Never allocates, locks or changes shared state, unless the driver refuses.
    ///
    /// # Safety
    /// `at` holds device addresses of the workspace and of tensors of the evaluated shapes, valid until the kernel has
    /// run. `stream` is null or of the kernel's device. `driver` has loaded the kernel.
    pub unsafe fn enqueue(&self, driver: &Driver, at: &Addresses<'_>, stream: CUstream) -> Result<()> {
        at.check(self.inputs, self.outputs)?;
        if self.is_empty() {
            return Ok(());
        }
        let mut pointers = [const { MaybeUninit::<*mut c_void>::uninit() }; MAX_ARGUMENTS];
        let mut scratch = [const { MaybeUninit::<u64>::uninit() }; MAX_ARGUMENTS];
        for ((pointer, argument), address) in pointers.iter_mut().zip(&self.arguments).zip(&mut scratch) {
            // SAFETY: `LaunchRecord::new` checked offsets and indices; lengths were compared.
            let place: *const c_void = unsafe {
                match *argument {
                    Argument::Number(offset) => self.numbers.as_ptr().cast::<u8>().add(offset).cast(),
                    Argument::Input(index) => at.inputs.as_ptr().add(index).cast(),
                    Argument::Output(index) => at.outputs.as_ptr().add(index).cast(),
                    Argument::Scratch(offset) => {
                        let address = address.write((at.workspace.addr() as u64).wrapping_add(offset));
                        std::ptr::from_ref(address).cast()
                    }
                }
            };
            // The driver only reads; its type lacks `const`.
            pointer.write(place.cast_mut());
        }
        // SAFETY: `pointers` has a pointer per argument, to the parameter's bytes (`LaunchRecord::new`). The caller
        // promises tensors and stream.
        let launched = unsafe {
            driver.launch(self.kernel, &self.launch.configuration, stream, pointers.as_mut_ptr().cast())
        };
        launched.map_err(|error| self.refused(error))
    }

    #[cold]
    fn refused(&self, error: DriverError) -> EnqueueError {
        EnqueueError::Refused(Box::new(Refusal { launch: self.launch.clone(), error }))
    }
}

impl std::fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Configuration { grid, block, shared_bytes, .. } = &self.launch.configuration;
        write!(f, "launch `{}` from the code for {}", self.launch.kernel, self.target)?;
        write!(f, " ({}) with grid {grid:?}, block {block:?}", self.digest.short())?;
        if *shared_bytes != 0 {
            write!(f, ", {shared_bytes} bytes of dynamic shared memory")?;
        }
        f.write_str(&self.launch.options())
    }
}

fn reach(start: usize, arg: &Arg) -> Option<usize> {
    start.checked_add(usize::try_from(arg.value.size()).ok()?)
}

fn are_all(arguments: &[Argument], launch: &Launch, kernel: &LoadedKernel) -> bool {
    let sizes = || launch.args.iter().map(|arg| arg.value.size());
    let are_its = |params: &[u32]| params.iter().map(|bytes| u64::from(*bytes)).eq(sizes());
    arguments.len() == launch.args.len()
        && arguments.len() <= MAX_ARGUMENTS
        && kernel.params.as_deref().is_none_or(are_its)
}

/// PTX for older targets lacks the instruction.
fn can_wait(kernel: &LoadedKernel) -> bool {
    kernel.capability.major.min(kernel.target.arch.major) >= HAS_CLUSTERS
}

/// Omits programmatic dependent launch if the kernel cannot wait.
fn attributes(launch: &Launch, kernel: &LoadedKernel, numbers: &EvaluatedLaunch) -> Box<[CUlaunchAttribute]> {
    let cluster = numbers.cluster.map(|it| CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, it));
    let flag = |id, is_set: bool| is_set.then(|| CUlaunchAttribute::new(id, [1, 0, 0]));
    let programmatic = launch.programmatic && can_wait(kernel);
    let programmatic = flag(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, programmatic);
    let cooperative = flag(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, launch.cooperative);
    [cluster, cooperative, programmatic].into_iter().flatten().collect()
}

fn words(bytes: &[u8]) -> Box<[u64]> {
    bytes
        .chunks(8)
        .map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_ne_bytes(word)
        })
        .collect()
}
