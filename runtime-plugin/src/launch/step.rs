use cubinder_launch::{EvaluatedStep, Sequence, tensor_bytes};
use cubinder_model::{Memory, Plugin, Variant};

use super::addresses::{Addresses, Positions};
use super::error::{EnqueueError, MemoryRefusal, Overlap, Result};
use super::record::LaunchRecord;
use crate::code::LoadedKernel;
use crate::driver::sys::{CUdeviceptr, CUstream};
use crate::driver::{Driver, DriverError};

/// A step that lacks only addresses.
#[derive(Debug, Clone)]
pub enum StepRecord {
    /// Launches a kernel.
    Launch(Box<LaunchRecord>),
    /// Fills memory.
    Fill(FillRecord),
}

impl StepRecord {
    /// Returns a sequence's steps with effect, for the variant's `kernels`. `None` if one is missing, or as
    /// [`LaunchRecord::new`].
    #[must_use]
    pub fn all(
        plugin: &Plugin,
        variant: &Variant,
        kernels: &[Option<LoadedKernel>],
        sequence: &Sequence,
        positions: &Positions,
    ) -> Option<Vec<StepRecord>> {
        let mut records = Vec::new();
        for (number, doing) in sequence.steps.iter().enumerate() {
            match doing {
                EvaluatedStep::Launch(numbers) if !numbers.is_empty() => {
                    let launch = variant.launch(number)?;
                    let kernel = kernels.get(number)?.as_ref()?;
                    let record =
                        LaunchRecord::new(plugin, launch, kernel, numbers, &sequence.scratch, positions)?;
                    records.push(StepRecord::Launch(Box::new(record)));
                }
                EvaluatedStep::Fill { memory, bytes, byte } if *bytes != 0 => {
                    let mut record = FillRecord::new(plugin, variant, sequence, *memory, *bytes, *byte)?;
                    record.inputs = positions.given();
                    records.push(StepRecord::Fill(record));
                }
                EvaluatedStep::LeftOut | EvaluatedStep::Launch(_) | EvaluatedStep::Fill { .. } => {}
            }
        }
        Some(records)
    }

    /// Returns the launch of a [`StepRecord::Launch`].
    #[must_use]
    pub fn launch(&self) -> Option<&LaunchRecord> {
        match self {
            StepRecord::Launch(record) => Some(record),
            StepRecord::Fill(_) => None,
        }
    }

    /// Queues the step.
    ///
    /// # Safety
    /// As [`LaunchRecord::enqueue`].
    #[inline]
    pub unsafe fn enqueue(&self, driver: &Driver, at: &Addresses<'_>, stream: CUstream) -> Result<()> {
        // SAFETY: the caller upholds the callee's contract.
        unsafe {
            match self {
                StepRecord::Launch(record) => record.enqueue(driver, at, stream),
                StepRecord::Fill(record) => record.enqueue(driver, at, stream),
            }
        }
    }
}

impl std::fmt::Display for StepRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StepRecord::Launch(record) => write!(f, "{record}"),
            StepRecord::Fill(FillRecord { name, bytes, byte, .. }) => {
                write!(f, "fill the {bytes} bytes of `{name}` with {byte}")
            }
        }
    }
}

/// Memory to fill with one byte.
#[derive(Debug, Clone)]
pub struct FillRecord {
    plugin: Box<str>,
    name: Box<str>,
    to: FillTarget,
    bytes: usize,
    byte: u8,
    inputs: usize,
    outputs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FillTarget {
    /// Index of an output.
    Output(usize),
    /// Offset in the workspace, in bytes.
    Scratch(u64),
}

impl FillRecord {
    fn new(
        plugin: &Plugin,
        variant: &Variant,
        sequence: &Sequence,
        memory: Memory,
        bytes: u64,
        byte: u8,
    ) -> Option<FillRecord> {
        let (name, to) = match memory {
            Memory::Output(index) => {
                (&plugin.outputs.get(index as usize)?.name, FillTarget::Output(index as usize))
            }
            Memory::Scratch(index) => {
                let place = sequence.scratch.get(index as usize)?;
                (&variant.scratch.get(index as usize)?.name, FillTarget::Scratch(place.offset))
            }
        };
        Some(FillRecord {
            plugin: plugin.full_name().into_boxed_str(),
            name: name.as_str().into(),
            to,
            bytes: usize::try_from(bytes).ok()?,
            byte,
            inputs: plugin.inputs.len(),
            outputs: plugin.outputs.len(),
        })
    }

    /// # Safety
    /// As [`LaunchRecord::enqueue`].
    unsafe fn enqueue(&self, driver: &Driver, at: &Addresses<'_>, stream: CUstream) -> Result<()> {
        at.check(self.inputs, self.outputs)?;
        let to = match self.to {
            FillTarget::Output(index) => {
                at.outputs.get(index).map_or(0, |output| output.addr() as CUdeviceptr)
            }
            FillTarget::Scratch(offset) => (at.workspace.addr() as CUdeviceptr).wrapping_add(offset),
        };
        // SAFETY: the caller guarantees `bytes` of device memory, valid until the work is done.
        let filled = unsafe { driver.fill(to, self.byte, self.bytes, stream) };
        filled
            .map_err(|error| memory_refusal(&self.plugin, format!("fill `{}`", self.name), self.bytes, error))
    }
}

/// An output that shares an input's memory, and the copy if bound to other memory.
///
/// TensorRT-RTX 1.7 passes one address, unless the user binds the output elsewhere. Steps use the output's
/// ([`Plugin::storage_of`]).
#[derive(Debug, Clone)]
pub struct AliasRecord {
    plugin: Box<str>,
    name: Box<str>,
    /// Index among the given inputs.
    input: usize,
    output: usize,
    bytes: usize,
    others: Box<[OtherInput]>,
    inputs: usize,
    outputs: usize,
}

#[derive(Debug, Clone)]
struct OtherInput {
    name: Box<str>,
    /// Index among the given inputs.
    place: usize,
    bytes: usize,
}

impl AliasRecord {
    /// Returns a record per aliased output of a variant; `shape` returns a tensor's. `None` if a size overflows or an
    /// input is missing.
    #[must_use]
    pub fn all<'s>(
        plugin: &Plugin,
        variant: &Variant,
        positions: &Positions,
        shape: impl Fn(usize) -> Option<&'s [i64]>,
    ) -> Option<Vec<AliasRecord>> {
        let bytes = |input: usize| {
            let (ty, format) = (*variant.types.get(input)?, *variant.formats.get(input)?);
            usize::try_from(tensor_bytes(ty, format, shape(input)?)?).ok()
        };
        let other = |(input, of): (usize, &cubinder_model::Input)| {
            let place = positions.position(input)?;
            Some(bytes(input).map(|bytes| OtherInput { name: of.name.as_str().into(), place, bytes }))
        };
        let record = |(output, of): (usize, &cubinder_model::Output)| {
            let input = of.alias? as usize;
            let others = plugin.inputs.iter().enumerate().filter(|(other, _)| *other != input);
            let others = others.filter_map(other).collect::<Option<_>>();
            Some(positions.position(input).zip(bytes(input)).zip(others).map(|((place, bytes), others)| {
                AliasRecord {
                    plugin: plugin.full_name().into_boxed_str(),
                    name: of.name.as_str().into(),
                    input: place,
                    output,
                    bytes,
                    others,
                    inputs: positions.given(),
                    outputs: plugin.outputs.len(),
                }
            }))
        };
        plugin.outputs.iter().enumerate().filter_map(record).collect()
    }

    /// Returns the output's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether input and output have different memory; [`EnqueueError::Overlap`] if they overlap partially, or
    /// the output another input.
    #[inline]
    pub fn needs_copy(&self, at: &Addresses<'_>) -> Result<bool> {
        at.check(self.inputs, self.outputs)?;
        let [from, to] = self.addresses(at);
        if from == to || self.bytes == 0 {
            return Ok(false);
        }
        if overlap((from, self.bytes), (to, self.bytes)) {
            return Err(self.overlap(None, [from, to]));
        }
        for other in &self.others {
            let place = at.inputs.get(other.place).map_or(0, |input| input.addr());
            if overlap((place, other.bytes), (to, self.bytes)) {
                return Err(self.overlap(Some(&other.name), [place, to]));
            }
        }
        Ok(true)
    }

    /// Copies the input to the output.
    ///
    /// # Safety
    /// As [`LaunchRecord::enqueue`], and [`AliasRecord::needs_copy`] returned `true` for these addresses.
    pub unsafe fn copy(&self, driver: &Driver, at: &Addresses<'_>, stream: CUstream) -> Result<()> {
        let [from, to] = self.addresses(at);
        // SAFETY: the caller guarantees that both tensors have this size and do not overlap.
        let copied = unsafe { driver.copy(to as CUdeviceptr, from as CUdeviceptr, self.bytes, stream) };
        copied.map_err(|error| {
            let what = format!("copy the input to the output `{}`, which shares its memory", self.name);
            memory_refusal(&self.plugin, what, self.bytes, error)
        })
    }

    fn addresses(&self, at: &Addresses<'_>) -> [usize; 2] {
        let input = at.inputs.get(self.input).map_or(0, |input| input.addr());
        let output = at.outputs.get(self.output).map_or(0, |output| output.addr());
        [input, output]
    }

    #[cold]
    fn overlap(&self, other: Option<&str>, addresses: [usize; 2]) -> EnqueueError {
        EnqueueError::Overlap(Box::new(Overlap {
            plugin: self.plugin.to_string(),
            output: self.name.to_string(),
            other: other.map(str::to_owned),
            addresses,
            bytes: self.bytes,
        }))
    }
}

#[cold]
fn memory_refusal(plugin: &str, what: String, bytes: usize, error: DriverError) -> EnqueueError {
    EnqueueError::Memory(Box::new(MemoryRefusal { plugin: plugin.to_owned(), what, bytes, error }))
}

fn overlap((one, one_bytes): (usize, usize), (other, other_bytes): (usize, usize)) -> bool {
    one.max(other) < one.saturating_add(one_bytes).min(other.saturating_add(other_bytes))
}
