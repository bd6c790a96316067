use std::ffi::c_void;
use std::marker::PhantomData;

use cubinder_launch::native;
use cubinder_launch::{
    EvaluatedArgument, EvaluatedLaunch, EvaluatedStep, Facts, LaunchError, LaunchLimits, ScratchRange,
    Sequencing, Steps,
};
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::{Launch, Memory, Plugin, TargetKind, Variant};
use cudarc::driver::sys::{
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1 as ClusterDimension, CUlaunchConfig,
};

use crate::code::{Code, Kernel, allow_shared, words};
use crate::context::Context;
use crate::driver::call;
use crate::error::{DriverError, RunError};
use crate::stream::Stream;

/// Variant that lacks only addresses.
#[derive(Debug)]
pub struct Prepared<'k> {
    steps: Vec<Step>,
    scratch: Vec<ScratchRange>,
    _code: PhantomData<&'k Code<'k>>,
}

/// Device addresses by index.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// Inputs; shape inputs are ignored.
    pub inputs: &'a [u64],
    /// Outputs.
    pub outputs: &'a [u64],
    /// Scratch buffers.
    pub scratch: &'a [u64],
}

#[derive(Debug)]
enum Step {
    Launch(Work),
    Fill { memory: Memory, bytes: usize, byte: u8 },
}

#[derive(Debug)]
struct Work {
    kernel: Kernel,
    evaluated: EvaluatedLaunch,
    cooperative: bool,
    programmatic: bool,
    /// Aligned for each number.
    numbers: Vec<u64>,
}

impl<'k> Prepared<'k> {
    /// Evaluates a variant's steps, loads their kernels and checks launches.
    pub fn new(
        code: &'k Code<'k>,
        plugin: &Plugin,
        variant: &Variant,
        facts: &Facts<'_>,
    ) -> Result<Prepared<'k>, RunError> {
        let refused = |error: Box<LaunchError>| RunError::Refused(error.to_string());
        let could_not = |why: String| RunError::Refused(format!("TensorRT cannot launch it: {why}"));
        let mut budget = Steps::default();
        let mut sequencing = Sequencing::new(plugin, variant, facts, &mut budget).map_err(refused)?;
        let mut steps = Vec::new();
        for number in 0..variant.steps.len() {
            let launch = variant.launch(number);
            let kernel = launch.map(|launch| code.kernel(launch)).transpose().map_err(RunError::Refused)?;
            let takes = kernel.as_ref().map_or(LaunchLimits::ANYTHING, Kernel::takes);
            let is_native = |kernel: &Kernel| kernel.target.kind == TargetKind::Native;
            if let (Some(launch), Some(kernel)) = (launch, kernel.clone().filter(is_native)) {
                // TensorRT uses the author's parameters.
                let takes = LaunchLimits { params: None, ..takes };
                sequencing.step(&takes, &mut budget).map_err(refused)?;
                let when = variant.steps.get(number).and_then(|step| step.when.as_ref());
                let evaluated = native::evaluate(plugin, when, launch, facts)
                    .map_err(|fault| could_not(fault.to_string()))?;
                kernel.check_params(&evaluated).map_err(could_not)?;
                // TensorRT may not raise the limit of dynamic shared memory.
                let plain = Launch { cooperative: false, programmatic: false, ..launch.clone() };
                steps.push(Step::Launch(Work::new(code.context, &plain, kernel, evaluated)));
                continue;
            }
            let doing = sequencing.step(&takes, &mut budget).map_err(refused)?.clone();
            match (doing, launch, kernel) {
                (EvaluatedStep::Launch(evaluated), Some(launch), Some(kernel)) if !evaluated.is_empty() => {
                    allow_shared(code.context, &kernel, evaluated.shared_bytes)?;
                    steps.push(Step::Launch(Work::new(code.context, launch, kernel, evaluated)));
                }
                (EvaluatedStep::Fill { memory, bytes, byte }, ..) if bytes > 0 => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    steps.push(Step::Fill { memory, bytes, byte });
                }
                _ => {}
            }
        }
        let sequence = sequencing.finish().map_err(refused)?;
        Ok(Prepared { steps, scratch: sequence.scratch, _code: PhantomData })
    }

    /// Returns the bytes of each scratch buffer.
    pub fn scratch_bytes(&self) -> impl Iterator<Item = u64> {
        self.scratch.iter().map(|place| place.bytes)
    }

    /// Returns the kernels per run.
    #[must_use]
    pub fn launches(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Launch(_))).count()
    }

    /// Returns the fills per run.
    #[must_use]
    pub fn fills(&self) -> usize {
        self.steps.len().saturating_sub(self.launches())
    }

    /// Queues all steps; device errors appear later. Missing addresses are 0.
    pub fn run(&self, addresses: Addresses<'_>, stream: &Stream<'_>) -> Result<(), DriverError> {
        self.steps.iter().try_for_each(|step| match step {
            Step::Launch(work) => work.launch(addresses, stream),
            Step::Fill { memory, bytes, byte } => {
                let to = match memory {
                    Memory::Output(index) => addresses.outputs.get(*index as usize),
                    Memory::Scratch(index) => addresses.scratch.get(*index as usize),
                };
                let to = to.copied().unwrap_or(0);
                // SAFETY: the call writes only device memory, which is not Rust's; the driver returns errors for invalid
                // addresses.
                unsafe { call!(cuMemsetD8Async(to, *byte, *bytes, stream.handle())) }
            }
        })
    }
}

impl Work {
    fn new(context: &Context, launch: &Launch, kernel: Kernel, evaluated: EvaluatedLaunch) -> Work {
        // As in the runtime library: code for older devices does not wait.
        let waits = context.device().capability.major.min(kernel.target.arch.major) >= HAS_CLUSTERS;
        let numbers = words(&evaluated.numbers);
        let (cooperative, programmatic) = (launch.cooperative, launch.programmatic && waits);
        Work { kernel, evaluated, cooperative, programmatic, numbers }
    }

    fn attributes(&self) -> Vec<CUlaunchAttribute> {
        use CUlaunchAttributeID as Id;
        // The driver may read all bytes of a value.
        let zero = CUlaunchAttributeValue { pad: [0; 64] };
        let attribute = |id, value| CUlaunchAttribute { id, pad: [0; 4], value };
        let mut all = Vec::new();
        let mut value = zero;
        if let Some([x, y, z]) = self.evaluated.cluster {
            value.clusterDim = ClusterDimension { x, y, z };
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
        }
        let mut value = zero;
        if self.cooperative {
            value.cooperative = 1;
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
        }
        let mut value = zero;
        if self.programmatic {
            value.programmaticStreamSerializationAllowed = 1;
            all.push(attribute(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value));
        }
        all
    }

    fn launch(&self, addresses: Addresses<'_>, stream: &Stream<'_>) -> Result<(), DriverError> {
        let of = |list: &[u64], index: usize| list.get(index).copied().unwrap_or(0);
        let mut tensors: Vec<u64> = Vec::with_capacity(self.evaluated.args.len());
        for passed in &self.evaluated.args {
            tensors.push(match passed {
                EvaluatedArgument::Input(index) => of(addresses.inputs, *index),
                EvaluatedArgument::Output(index) => of(addresses.outputs, *index),
                EvaluatedArgument::Scratch(index) => of(addresses.scratch, *index),
                EvaluatedArgument::Numbers { .. } => 0,
            });
        }
        let numbers = self.numbers.as_ptr().cast::<u8>();
        let place = |(passed, tensor): (&EvaluatedArgument, &u64)| match passed {
            // `EvaluatedLaunch` keeps `start` in range.
            EvaluatedArgument::Numbers { start, .. } => {
                numbers.wrapping_add(*start).cast::<c_void>().cast_mut()
            }
            _ => std::ptr::from_ref(tensor).cast::<c_void>().cast_mut(),
        };
        let mut params: Vec<*mut c_void> = self.evaluated.args.iter().zip(&tensors).map(place).collect();
        let mut attributes = self.attributes();
        let EvaluatedLaunch { grid, block, shared_bytes, .. } = self.evaluated;
        let config = CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: shared_bytes,
            hStream: stream.handle(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: u32::try_from(attributes.len()).unwrap_or(0),
        };
        // SAFETY: each pointer refers to at least its parameter's bytes, as `Sequencing` or `Kernel::check_params`
        // verified; the driver reads them during the call. A `CUkernel` may replace a `CUfunction` (`cuda.h` 13.0,
        // `cuLaunchKernelEx`). The kernel's author is responsible for its writes.
        unsafe {
            call!(cuLaunchKernelEx(
                &raw const config,
                self.kernel.handle.cast(),
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            ))
        }
    }
}
