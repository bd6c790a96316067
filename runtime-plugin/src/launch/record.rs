//! One launch, evaluated.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use cubinder_bundle::expr::{Environment, Expr, evaluate};
use cubinder_bundle::model::{MAX_ARGUMENTS, MAX_PARAMETER_BYTES};
use cubinder_bundle::{Arg, ArgValue, Launch, Plugin, Value};

use super::error::{EnqueueError, LaunchError, Limit, Problem, Refusal, Role};
use super::pack;
use crate::code::{KernelLimits, LoadedKernel};
use crate::driver::sys::{CUkernel, CUstream};
use crate::driver::{Driver, DriverError};

/// Blocks in x, y and z: CUDA C++ programming guide 13.0, "technical specifications per compute capability"; the same for
/// every device.
const MAX_GRID: [i64; 3] = [2_147_483_647, 65535, 65535];
/// Threads of a block in x, y and z, from the same table.
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
/// Threads of a block, from the same table.
const MAX_THREADS: i64 = 1024;
/// `sharedMemBytes` is an `unsigned`, and the attribute that allows it an `int`.
const MAX_SHARED_BYTES: i64 = 2_147_483_647;

const AXES: [char; 3] = ['x', 'y', 'z'];

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
    /// Evaluates and checks a launch of `plugin` with the shapes in `environment`, for a kernel that has been loaded. Where
    /// one of the grid's extents is 0 (an empty tensor) nothing is to be launched, and nothing else is evaluated.
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
    ) -> Result<LaunchRecord, Box<LaunchError>> {
        let takes = Takes { handle: kernel.handle, limits: kernel.limits, params: kernel.params.as_deref() };
        numbers_of(plugin, launch, &takes, environment)
            .map_err(|fault| launch_error(plugin, launch, environment, fault))
    }

    /// As [`LaunchRecord::evaluate`], for a kernel that is not loaded: on a machine without a GPU. What only the kernel and the
    /// device decide is left to be found when it is.
    ///
    /// # Errors
    /// As [`LaunchRecord::evaluate`].
    pub fn check(
        plugin: &Plugin,
        launch: &Launch,
        environment: &dyn Environment,
    ) -> Result<(), Box<LaunchError>> {
        let limits = KernelLimits { max_threads: u32::MAX, max_shared_bytes: u32::MAX };
        let takes = Takes { handle: CUkernel(std::ptr::null_mut()), limits, params: None };
        numbers_of(plugin, launch, &takes, environment)
            .map(drop)
            .map_err(|fault| launch_error(plugin, launch, environment, fault))
    }

    /// Whether there is nothing to launch.
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
            // SAFETY: `evaluate` keeps every offset and index below the length of what it points into, and the lengths
            // of the slices have been compared.
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
        // SAFETY: `pointers` has one initialized pointer for each argument (`evaluate` bounds their number), each to as many
        // bytes as the kernel's parameter has (`evaluate` compares the sizes wherever the driver or the code object says
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

type Fault = (Role, Problem);

/// What a launch must suit.
struct Takes<'a> {
    handle: CUkernel,
    limits: KernelLimits,
    /// Sizes of the kernel's parameters in bytes, where they are known.
    params: Option<&'a [u32]>,
}

#[cold]
fn launch_error(
    plugin: &Plugin,
    launch: &Launch,
    environment: &dyn Environment,
    (role, problem): Fault,
) -> Box<LaunchError> {
    Box::new(LaunchError {
        plugin: full_name(plugin),
        kernel: launch.kernel.clone(),
        role,
        problem,
        shapes: shapes(plugin, environment),
    })
}

fn numbers_of(
    plugin: &Plugin,
    launch: &Launch,
    kernel: &Takes<'_>,
    environment: &dyn Environment,
) -> Result<LaunchRecord, Fault> {
    let mut record = LaunchRecord {
        plugin: full_name(plugin).into_boxed_str(),
        kernel_name: launch.kernel.as_str().into(),
        kernel: kernel.handle,
        grid: [0; 3],
        block: [0; 3],
        shared_bytes: 0,
        limits: kernel.limits,
        arguments: Box::default(),
        numbers: Box::default(),
        inputs: plugin.inputs.len(),
        outputs: plugin.outputs.len(),
    };
    let Some(grid) = grid(launch, environment)? else {
        return Ok(record);
    };
    record.grid = grid;
    record.block = block(launch, kernel.limits, environment)?;
    record.shared_bytes = shared_bytes(launch, kernel.limits, environment)?;
    let mut arguments = Arguments::default();
    for arg in &launch.args {
        arguments.add(plugin, arg, environment)?;
    }
    arguments.check(launch, kernel.params)?;
    record.arguments = arguments.list.into_boxed_slice();
    record.numbers = words(&arguments.numbers);
    Ok(record)
}

/// None where there is nothing to launch: a zero decides, also where another extent has no value for an empty tensor.
fn grid(launch: &Launch, environment: &dyn Environment) -> Result<Option<[u32; 3]>, Fault> {
    let extent = |axis: usize| {
        let role = Role::Grid(AXES[axis]);
        bounded(role, &launch.grid[axis], 0, MAX_GRID[axis], Limit::Cuda, environment)
    };
    let extents = [extent(0), extent(1), extent(2)];
    if extents.contains(&Ok(0)) {
        return Ok(None);
    }
    let [x, y, z] = extents;
    Ok(Some([x?, y?, z?]))
}

fn block(launch: &Launch, limits: KernelLimits, environment: &dyn Environment) -> Result<[u32; 3], Fault> {
    let mut block = [0; 3];
    for axis in 0..3 {
        let role = Role::Block(AXES[axis]);
        block[axis] = bounded(role, &launch.block[axis], 1, MAX_BLOCK[axis], Limit::Cuda, environment)?;
    }
    // At most 1024 * 1024 * 64.
    let threads: i64 = block.iter().copied().map(i64::from).product();
    at_most(Role::Threads, threads, MAX_THREADS, Limit::Cuda)?;
    at_most(Role::Threads, threads, i64::from(limits.max_threads), Limit::Kernel)?;
    Ok(block)
}

fn shared_bytes(launch: &Launch, limits: KernelLimits, environment: &dyn Environment) -> Result<u32, Fault> {
    let bytes =
        bounded(Role::SharedBytes, &launch.shared_bytes, 0, MAX_SHARED_BYTES, Limit::Cuda, environment)?;
    at_most(Role::SharedBytes, i64::from(bytes), i64::from(limits.max_shared_bytes), Limit::Kernel)?;
    Ok(bytes)
}

fn at_most(role: Role, value: i64, most: i64, limit: Limit) -> Result<(), Fault> {
    if value > most { Err((role, Problem::TooLarge { value, most, limit })) } else { Ok(()) }
}

/// The integer that `expr` gives, between `least` and `most`, which lie within `u32`.
fn bounded(
    role: Role,
    expr: &Expr,
    least: i64,
    most: i64,
    limit: Limit,
    environment: &dyn Environment,
) -> Result<u32, Fault> {
    let found = match value(expr, environment) {
        Ok(found) => found,
        Err(problem) => return Err((role, problem)),
    };
    let Value::Int(value) = found else {
        return Err((role, Problem::Kind { found, expected: "an integer" }));
    };
    if value < least {
        return Err((role, Problem::TooSmall { value, least }));
    }
    match u32::try_from(value) {
        Ok(fits) if value <= most => Ok(fits),
        _ => Err((role, Problem::TooLarge { value, most, limit })),
    }
}

fn value(expr: &Expr, environment: &dyn Environment) -> Result<Value, Problem> {
    evaluate(expr, environment).map_err(|error| Problem::NoValue(error.to_string()))
}

/// The arguments so far.
#[derive(Default)]
struct Arguments {
    list: Vec<Argument>,
    /// Each argument's size in the kernel's parameters, bytes.
    sizes: Vec<usize>,
    /// The numbers' bytes, each argument aligned to its type.
    numbers: Vec<u8>,
    /// Where the next parameter would start in the kernel's own layout, bytes.
    end: usize,
}

impl Arguments {
    fn add(&mut self, plugin: &Plugin, arg: &Arg, environment: &dyn Environment) -> Result<(), Fault> {
        let fault = |problem| (Role::Argument(arg.name.clone()), problem);
        match &arg.value {
            ArgValue::Tensor(tensor) => {
                let place = tensor_place(plugin, *tensor).map_err(fault)?;
                self.push(place, size_of::<u64>(), align_of::<u64>());
            }
            ArgValue::Scalar { ty, expr } => {
                let value = value(expr, environment).map_err(fault)?;
                let start = self.align_numbers(pack::alignment(*ty));
                pack::append(&mut self.numbers, *ty, &value).map_err(fault)?;
                self.push(Argument::Number(start), self.numbers.len() - start, pack::alignment(*ty));
            }
            ArgValue::Array { ty, len, expr } => {
                let values = match value(expr, environment).map_err(fault)? {
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
                self.push(Argument::Number(start), self.numbers.len() - start, pack::alignment(*ty));
            }
        }
        Ok(())
    }

    fn align_numbers(&mut self, alignment: usize) -> usize {
        let start = self.numbers.len().next_multiple_of(alignment);
        self.numbers.resize(start, 0);
        start
    }

    fn push(&mut self, argument: Argument, size: usize, alignment: usize) {
        self.list.push(argument);
        self.sizes.push(size);
        self.end = self.end.next_multiple_of(alignment) + size;
    }

    /// Compares the arguments with the parameters of the kernel that was loaded: the driver reads as many bytes as those
    /// have.
    fn check(&self, launch: &Launch, params: Option<&[u32]>) -> Result<(), Fault> {
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

fn tensor_place(plugin: &Plugin, tensor: u32) -> Result<Argument, Problem> {
    let (inputs, count) = (plugin.inputs.len(), plugin.tensor_count());
    match usize::try_from(tensor) {
        Ok(index) if index < inputs => Ok(Argument::Input(index)),
        Ok(index) if index < count => Ok(Argument::Output(index - inputs)),
        _ => Err(Problem::NoSuchTensor { index: tensor, count }),
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

fn full_name(plugin: &Plugin) -> String {
    if plugin.namespace.is_empty() {
        plugin.name.clone()
    } else {
        format!("{}::{}", plugin.namespace, plugin.name)
    }
}

fn shapes(plugin: &Plugin, environment: &dyn Environment) -> Vec<(String, Option<Vec<i64>>)> {
    (0..plugin.tensor_count())
        .filter_map(|index| {
            let name = plugin.tensor_name(index)?.to_owned();
            let shape = environment.shape(u32::try_from(index).ok()?);
            Some((name, shape.map(<[i64]>::to_vec)))
        })
        .collect()
}
