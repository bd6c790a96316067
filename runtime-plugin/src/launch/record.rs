//! One launch, evaluated.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use cubinder_bundle::expr::Environment;
use cubinder_bundle::launch::{self, Evaluated, LaunchError, Passed, Steps, Takes};
use cubinder_bundle::model::MAX_ARGUMENTS;
use cubinder_bundle::{Launch, Plugin};

use super::error::{EnqueueError, Refusal};
use crate::code::{KernelLimits, LoadedKernel};
use crate::driver::sys::{CUkernel, CUstream};
use crate::driver::{Driver, DriverError};

/// One launch with everything known but the tensors' addresses. It is not changed by launching, so it may be launched from
/// any number of threads at a time.
///
/// `cuLaunchKernel` wants an array of pointers to the arguments. The numbers lie in the record; a tensor's argument is its
/// address, which lies in the array that TensorRT passes to `enqueue`: a pointer to that place is what the driver needs, so
/// nothing is copied or patched, and the array of pointers itself is built on the stack.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    plugin: Box<str>,
    kernel_name: Box<str>,
    kernel: CUkernel,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    limits: KernelLimits,
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
}

impl LaunchRecord {
    /// Evaluates and checks a launch of `plugin` with the shapes in `environment`, for a kernel that has been loaded: see
    /// [`launch::evaluate`].
    ///
    /// Before it is enqueued, [`crate::code::CodeTable::allow_shared`] must have been told of
    /// [`LaunchRecord::shared_bytes`].
    ///
    /// # Errors
    /// [`LaunchError`] where an expression has no value or a value that CUDA, the kernel or the kernel's types do not take.
    pub fn evaluate(
        plugin: &Plugin,
        launch: &Launch,
        kernel: &LoadedKernel,
        environment: &dyn Environment,
        steps: &mut Steps,
    ) -> Result<LaunchRecord, Box<LaunchError>> {
        let takes = Takes {
            max_threads: kernel.limits.max_threads,
            max_shared_bytes: kernel.limits.max_shared_bytes,
            params: kernel.params.as_deref(),
        };
        let numbers = launch::evaluate(plugin, launch, &takes, environment, steps)?;
        Ok(LaunchRecord::of(plugin, launch, kernel, &numbers))
    }

    fn of(plugin: &Plugin, launch: &Launch, kernel: &LoadedKernel, numbers: &Evaluated) -> LaunchRecord {
        let place = |passed: &Passed| match *passed {
            Passed::Input(index) => Argument::Input(index),
            Passed::Output(index) => Argument::Output(index),
            Passed::Numbers { start, .. } => Argument::Number(start),
            // `launch::evaluate` refuses scratch buffers: nothing reserves them yet.
            Passed::Scratch(_) => Argument::Number(0),
        };
        LaunchRecord {
            plugin: launch::full_name(plugin).into_boxed_str(),
            kernel_name: launch.kernel.as_str().into(),
            kernel: kernel.handle,
            grid: numbers.grid,
            block: numbers.block,
            shared_bytes: numbers.shared_bytes,
            limits: kernel.limits,
            arguments: numbers.args.iter().map(place).collect(),
            numbers: words(&numbers.numbers),
            inputs: plugin.inputs.len(),
            outputs: plugin.outputs.len(),
        }
    }

    /// Whether there is nothing to launch: an extent of the grid is 0, and an output is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }

    /// Blocks in x, y and z.
    #[must_use]
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Threads of a block in x, y and z; 0 where there is nothing to launch.
    #[must_use]
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Dynamic shared memory of a block, bytes.
    #[must_use]
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Launches. Nothing is allocated, locked or changed, unless the driver refuses.
    ///
    /// # Errors
    /// [`EnqueueError::Refused`] with what the driver says; [`EnqueueError::Tensors`] where the numbers of tensors are not
    /// the plugin's.
    ///
    /// # Safety
    /// `inputs` and `outputs` are the device addresses of the plugin's tensors in its order, with the shapes that the record
    /// was evaluated for, valid until the kernel has run. `stream` is a stream of the device that the kernel was loaded for
    /// (or null). The kernel has not been unloaded, and `driver` is the one that loaded it.
    pub unsafe fn enqueue(
        &self,
        driver: &Driver,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        stream: CUstream,
    ) -> Result<(), EnqueueError> {
        if inputs.len() != self.inputs {
            return Err(EnqueueError::Tensors {
                which: "inputs",
                found: inputs.len(),
                expected: self.inputs,
            });
        }
        if outputs.len() != self.outputs {
            return Err(EnqueueError::Tensors {
                which: "outputs",
                found: outputs.len(),
                expected: self.outputs,
            });
        }
        if self.is_empty() {
            return Ok(());
        }
        let mut pointers = [const { MaybeUninit::<*mut c_void>::uninit() }; MAX_ARGUMENTS];
        for (pointer, argument) in pointers.iter_mut().zip(&self.arguments) {
            // SAFETY: `launch::evaluate`, which alone makes the numbers, keeps every offset and index below the length of what it
            // points into, and the lengths of the slices have been compared.
            let place: *const c_void = unsafe {
                match *argument {
                    Argument::Number(offset) => self.numbers.as_ptr().cast::<u8>().add(offset).cast(),
                    Argument::Input(index) => inputs.as_ptr().add(index).cast(),
                    Argument::Output(index) => outputs.as_ptr().add(index).cast(),
                }
            };
            // The driver's type has no `const`; it reads only.
            pointer.write(place.cast_mut());
        }
        // SAFETY: `pointers` has one initialized pointer for each argument (`launch::evaluate` bounds their number), each to as many
        // bytes as the kernel's parameter has (it compares the sizes wherever the driver or the code object says
        // them; where neither does, where it is the model that says them, it is taken at its word: model and code have one author); the tensors and the
        // stream are the caller's promise.
        let launched = unsafe {
            driver.launch(
                self.kernel,
                self.grid,
                self.block,
                self.shared_bytes,
                stream,
                pointers.as_mut_ptr().cast(),
            )
        };
        launched.map_err(|error| self.refused(error))
    }

    #[cold]
    fn refused(&self, error: DriverError) -> EnqueueError {
        EnqueueError::Refused(Box::new(Refusal {
            plugin: self.plugin.to_string(),
            kernel: self.kernel_name.to_string(),
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            limits: self.limits,
            error,
        }))
    }
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
