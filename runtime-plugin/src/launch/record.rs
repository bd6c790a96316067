//! One launch, evaluated.

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

/// One launch with everything known but the tensors' addresses and the workspace's. It is not changed by launching, so it may be
/// launched from any number of threads at a time.
///
/// `cuLaunchKernel` wants an array of pointers to the arguments. The numbers lie in the record; a tensor's argument is its
/// address, which lies in the array that TensorRT passes to `enqueue`: a pointer to that place is what the driver needs, so
/// nothing is copied or patched, and the array of pointers itself is built on the stack, as are the addresses of scratch buffers.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    pub(super) launch: LaunchDescription,
    kernel: CUkernel,
    target: Target,
    digest: Digest,
    arguments: Box<[Argument]>,
    /// The bytes of the numbers; `u64` for their alignment.
    numbers: Box<[u64]>,
    inputs: usize,
    outputs: usize,
}

/// Where an argument's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument {
    /// In the record, at this many bytes from the start; below the length of `numbers` in bytes.
    Number(usize),
    /// In the array of the inputs' addresses, at this index; below `inputs`.
    Input(usize),
    /// In the array of the outputs' addresses, at this index; below `outputs`.
    Output(usize),
    /// The address so many bytes behind that of the workspace.
    Scratch(u64),
}

/// What a kernel takes on the device that it was loaded for.
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
    /// A launch that was evaluated for `kernel`, with what [`takes`] says of it, among scratch buffers that lie at `scratch`. `None`
    /// where it is passed an input that is not given, and where `numbers` are of another launch or kernel: a number, tensor or scratch
    /// buffer that is not there, other arguments than the kernel's parameters.
    ///
    /// Before it is enqueued, [`crate::code::CodeTable::allow_shared`] must have been called with the `shared_bytes` of its
    /// [`LaunchRecord::description`].
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

    /// The launch, as messages describe it.
    #[must_use]
    pub fn description(&self) -> &LaunchDescription {
        &self.launch
    }

    /// Whether there is rightly nothing to launch: an extent of the grid is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.launch.configuration.grid.contains(&0)
    }

    /// How many blocks there are.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.launch.configuration.grid.iter().map(|extent| u64::from(*extent)).fold(1, u64::saturating_mul)
    }

    /// How many blocks the current context's device, which has so many multiprocessors, runs at once.
    ///
    /// # Errors
    /// The driver's.
    pub fn blocks_at_once(&self, driver: &Driver, multiprocessors: u32) -> Result<u64, DriverError> {
        if let Some(cluster) = self.launch.cluster {
            let clusters = driver.clusters_at_once(self.kernel, &self.launch.configuration)?;
            return Ok(cluster
                .iter()
                .map(|extent| u64::from(*extent))
                .fold(clusters.into(), u64::saturating_mul));
        }
        // At most 1024.
        let threads = self.launch.configuration.block.iter().product();
        let blocks =
            driver.blocks_per_multiprocessor(self.kernel, threads, self.launch.configuration.shared_bytes)?;
        Ok(u64::from(blocks) * u64::from(multiprocessors))
    }

    /// Launches. Nothing is allocated, locked or changed, unless the driver refuses.
    ///
    /// # Errors
    /// [`EnqueueError::Refused`] with what the driver says; [`EnqueueError::Tensors`] where the numbers of tensors are not
    /// the plugin's.
    ///
    /// # Safety
    /// `at` holds the device addresses of the inputs that are given and of the outputs, in that order, with the shapes that the record was evaluated for, and of
    /// as much workspace as the record's sequence needs, all valid until the kernel has run. `stream` is a stream of the device that
    /// the kernel was loaded for (or null). The kernel has not been unloaded, and `driver` is the one that loaded it.
    pub unsafe fn enqueue(&self, driver: &Driver, at: &Addresses<'_>, stream: CUstream) -> Result<()> {
        at.check(self.inputs, self.outputs)?;
        if self.is_empty() {
            return Ok(());
        }
        let mut pointers = [const { MaybeUninit::<*mut c_void>::uninit() }; MAX_ARGUMENTS];
        let mut scratch = [const { MaybeUninit::<u64>::uninit() }; MAX_ARGUMENTS];
        for ((pointer, argument), address) in pointers.iter_mut().zip(&self.arguments).zip(&mut scratch) {
            // SAFETY: `LaunchRecord::new` refuses an offset or index beyond what it points into, and the lengths of the slices have
            // been compared.
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
            // The driver's type has no `const`; it reads only.
            pointer.write(place.cast_mut());
        }
        // SAFETY: `pointers` has one initialized pointer for each argument, each to as many bytes as the kernel's parameter has:
        // `LaunchRecord::new` bounds their number and compares the sizes with those that the driver or the code object says; where neither
        // says them the model is taken at its word, because model and code have one author. The tensors and the stream are the caller's
        // promise.
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

/// Where a number that begins at `start` ends, bytes. `None` beyond what can be counted.
fn reach(start: usize, arg: &Arg) -> Option<usize> {
    start.checked_add(usize::try_from(arg.value.size()).ok()?)
}

/// Whether these are all arguments of the launch, no more than a launch passes, and of the sizes of the kernel's parameters.
fn are_all(arguments: &[Argument], launch: &Launch, kernel: &LoadedKernel) -> bool {
    let sizes = || launch.args.iter().map(|arg| arg.value.size());
    let are_its = |params: &[u32]| params.iter().map(|bytes| u64::from(*bytes)).eq(sizes());
    arguments.len() == launch.args.len()
        && arguments.len() <= MAX_ARGUMENTS
        && kernel.params.as_deref().is_none_or(are_its)
}

/// Whether a kernel waits by itself for what comes before it: the device has programmatic dependent launches, and the code was made for such
/// a device. PTX for an older one, which a newer one runs too, was compiled without the waiting.
fn can_wait(kernel: &LoadedKernel) -> bool {
    kernel.capability.major.min(kernel.target.arch.major) >= HAS_CLUSTERS
}

/// What is asked for beside grid, block and shared memory. On a device without programmatic dependent launches a kernel waits for what
/// comes before it, as any other does; so does code for such a device where a newer one runs it, because it does not wait by itself.
fn attributes(launch: &Launch, kernel: &LoadedKernel, numbers: &EvaluatedLaunch) -> Box<[CUlaunchAttribute]> {
    let cluster = numbers.cluster.map(|it| CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, it));
    let flag = |id, is_set: bool| is_set.then(|| CUlaunchAttribute::new(id, [1, 0, 0]));
    let programmatic = launch.programmatic && can_wait(kernel);
    let programmatic = flag(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, programmatic);
    let cooperative = flag(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, launch.cooperative);
    [cluster, cooperative, programmatic].into_iter().flatten().collect()
}

/// The bytes in memory that is aligned for every number.
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
