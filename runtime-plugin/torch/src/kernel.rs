//! A plugin as a kernel of PyTorch.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::error::{Counts, Error};
use crate::functions::{Attribute, Call, Functions, Operator};
use crate::tensor::{Shape, Tensor};

/// `CUBINDER_MAX_RANK`.
const MAX_RANK: usize = 8;

/// `c10::ScalarType::Byte`.
const BYTE: i32 = 0;

/// `c10::ScalarType` and `nvinfer1::DataType`: f32, f16, i8, i32, bool, u8, f8 (e4m3fn), bf16, i64.
const TYPES: [(i32, i32); 9] = [(6, 0), (5, 1), (1, 2), (3, 3), (11, 4), (BYTE, 5), (24, 6), (15, 7), (4, 8)];

/// `nvinfer1::PluginFieldType`.
const FLOAT32: i32 = 1;
const INT8: i32 = 3;

/// `FLOAT32` is PyTorch's `float`, `INT8` its `bool`, `INT64` its `int`.
pub(crate) struct Parameter {
    pub(crate) name: CString,
    pub(crate) ty: i32,
}

impl Parameter {
    /// Returns the significant bits: PyTorch sets one byte for a `bool`.
    fn bits(&self, word: u64) -> i64 {
        let [first, ..] = word.to_ne_bytes();
        if self.ty == INT8 { i64::from(first != 0) } else { word.cast_signed() }
    }

    /// Returns the value as in ONNX nodes, whose floats have 32 bits, in the first bytes.
    fn data(&self, bits: i64) -> Result<[u8; 8], Error> {
        let mut data = bits.to_ne_bytes();
        if self.ty == FLOAT32 {
            let value = f64::from_bits(bits.cast_unsigned());
            #[expect(clippy::cast_possible_truncation, reason = "rounds; the range is checked next")]
            let single = value as f32;
            if value.is_finite() && !single.is_finite() {
                return Err(Error::Single { name: self.name.to_string_lossy().into_owned(), value });
            }
            let [a, b, c, d] = single.to_ne_bytes();
            data = [a, b, c, d, 0, 0, 0, 0];
        }
        Ok(data)
    }
}

pub(crate) struct Kernel {
    pub(crate) functions: Functions,
    plugin: CString,
    attributes: Vec<Parameter>,
    tensors: usize,
    outputs: usize,
    prepared: Mutex<HashMap<Vec<i64>, Arc<Prepared>>>,
}

/// Above this number of operators, a plugin forgets all: attributes may vary per call.
const MAX_OPERATORS: usize = 4096;

struct Prepared {
    operator: Operator,
    destroy: unsafe extern "C" fn(Operator),
    types: Vec<i32>,
    last: Mutex<Arc<Shapes>>,
}

// SAFETY: several threads may use the library's operators.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the operator exists, and no call uses it.
        unsafe { (self.destroy)(self.operator) };
    }
}

#[derive(Default)]
struct Shapes {
    ranks: Vec<i32>,
    extents: Vec<i64>,
    outputs: Vec<Shape>,
    workspace_bytes: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count<T>(slice: &[T]) -> i32 {
    i32::try_from(slice.len()).unwrap_or(i32::MAX)
}

impl Kernel {
    pub(crate) fn new(
        functions: Functions,
        plugin: CString,
        attributes: Vec<Parameter>,
        tensors: usize,
        outputs: usize,
    ) -> Kernel {
        Kernel { functions, plugin, attributes, tensors, outputs, prepared: Mutex::default() }
    }

    /// Replaces the arguments by the results.
    ///
    /// # Safety
    /// The first arguments are owned handles of tensors, as many as the kernel has.
    pub(crate) unsafe fn call(
        &self,
        stack: &mut [u64],
        arguments: usize,
        results: usize,
    ) -> Result<(), Error> {
        let functions = &self.functions;
        let (words, attributes) = stack.split_at(self.tensors.min(arguments).min(stack.len()));
        // SAFETY: the caller passes owned handles.
        let tensor = |word: &u64| unsafe { Tensor::from_word(functions, *word) };
        let tensors: Vec<Tensor<'_>> = words.iter().map(tensor).collect();
        let found = Counts(arguments, results);
        let expected = Counts(self.tensors + self.attributes.len(), self.outputs);
        if found != expected {
            return Err(Error::Count { plugin: self.name(), found, expected });
        }
        if functions.is_grad_enabled() && tensors.iter().any(Tensor::requires_grad) {
            return Err(Error::Gradient(self.name()));
        }
        let device = self.device(&tensors)?;
        let types = tensors.iter().map(Tensor::dtype).collect::<Result<Vec<_>, _>>()?;
        let _entered = if device.is_cuda() { functions.enter(device.index)? } else { None };
        let prepared = self.prepared(device, &types, attributes)?;
        let tensors = tensors.into_iter().zip(types).map(|(tensor, dtype)| tensor.contiguous(dtype, device));
        let outputs = self.run(&prepared, &tensors.collect::<Result<Vec<_>, _>>()?, device)?;
        for (word, output) in stack.iter_mut().zip(outputs) {
            *word = output.into_word();
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.plugin.to_string_lossy().split('@').next().unwrap_or_default().to_owned()
    }

    fn device(&self, tensors: &[Tensor<'_>]) -> Result<Device, Error> {
        let devices = tensors.iter().map(Tensor::device).collect::<Result<Vec<_>, _>>()?;
        // `cubinder.torch` makes no kernels without tensors.
        let first = devices.first().copied().unwrap_or(Device { kind: 0, index: -1 });
        match devices.into_iter().find(|device| *device != first) {
            Some(other) => Err(Error::Devices { plugin: self.name(), first, other }),
            None => Ok(first),
        }
    }

    fn prepared(&self, device: Device, types: &[i32], attributes: &[u64]) -> Result<Arc<Prepared>, Error> {
        let values = self.attributes.iter().zip(attributes).map(|(parameter, word)| parameter.bits(*word));
        let head = [device.kind, device.index].into_iter().chain(types.iter().copied()).map(i64::from);
        let key: Vec<i64> = head.chain(values).collect();
        let mut all = locked(&self.prepared);
        if let Some(found) = all.get(&key) {
            return Ok(Arc::clone(found));
        }
        let prepared = Arc::new(self.prepare(&key, types)?);
        if all.len() >= MAX_OPERATORS {
            all.clear();
        }
        all.insert(key, Arc::clone(&prepared));
        Ok(prepared)
    }

    fn prepare(&self, key: &[i64], types: &[i32]) -> Result<Prepared, Error> {
        let functions = &self.functions;
        let of_torch = |ty: &i32| {
            let found = TYPES.iter().find(|(torch, _)| torch == ty);
            found
                .map(|(_, number)| *number)
                .ok_or_else(|| Error::InputType { plugin: self.name(), number: *ty })
        };
        let inputs = types.iter().map(of_torch).collect::<Result<Vec<i32>, _>>()?;
        let words = key.iter().skip(2 + types.len());
        let data = self.attributes.iter().zip(words).map(|(one, bits)| one.data(*bits));
        let data = data.collect::<Result<Vec<_>, _>>()?;
        let attributes = self.attributes.iter().zip(&data).map(|(one, data)| Attribute {
            name: one.name.as_ptr(),
            data: data.as_ptr().cast(),
            ty: one.ty,
            length: 1,
        });
        let attributes: Vec<Attribute> = attributes.collect();
        let mut operator = null_mut();
        // SAFETY: the name is a C string; arrays have as many elements as their counts say; attributes refer to live
        // data of their types' sizes; the place is writable.
        functions.plugin_error(unsafe {
            (functions.cubinder_operator_create)(
                self.plugin.as_ptr(),
                attributes.as_ptr(),
                count(&attributes),
                inputs.as_ptr(),
                count(&inputs),
                &raw mut operator,
            )
        })?;
        let mut prepared = Prepared {
            operator,
            destroy: functions.cubinder_operator_destroy,
            types: vec![0; self.outputs],
            last: Mutex::default(),
        };
        // SAFETY: the operator was just created, and the array has as many elements as its count says.
        functions.plugin_error(unsafe {
            (functions.cubinder_operator_output_types)(
                operator,
                prepared.types.as_mut_ptr(),
                count(&prepared.types),
            )
        })?;
        for ty in &mut prepared.types {
            let found = TYPES.iter().find(|(_, number)| number == ty);
            *ty = found.ok_or_else(|| Error::OutputType(self.name()))?.0;
        }
        Ok(prepared)
    }

    fn shapes(&self, prepared: &Prepared, tensors: &[Tensor<'_>]) -> Result<Arc<Shapes>, Error> {
        let (mut ranks, mut extents) = (Vec::with_capacity(tensors.len()), Vec::new());
        for tensor in tensors {
            let of_tensor = tensor.extents()?;
            ranks.push(count(of_tensor));
            extents.extend_from_slice(of_tensor);
        }
        let last = Arc::clone(&locked(&prepared.last));
        if last.ranks == ranks && last.extents == extents {
            return Ok(last);
        }
        let (mut output_ranks, mut output_extents) =
            (vec![0; self.outputs], vec![0; self.outputs * MAX_RANK]);
        // SAFETY: the operator exists; arrays have as many elements as their counts say; output extents have room for
        // maximum ranks; sizes may be null.
        self.functions.plugin_error(unsafe {
            (self.functions.cubinder_operator_output_shapes)(
                prepared.operator,
                ranks.as_ptr(),
                count(&ranks),
                extents.as_ptr(),
                count(&extents),
                null(),
                output_ranks.as_mut_ptr(),
                output_extents.as_mut_ptr(),
                count(&output_ranks),
            )
        })?;
        let rows = output_ranks.iter().zip(output_extents.chunks(MAX_RANK));
        let outputs = rows.map(|(rank, row)| {
            let rank = usize::try_from(*rank).unwrap_or(0);
            Shape::new(row.get(..rank).unwrap_or_default())
        });
        let outputs = outputs.collect();
        let made = Arc::new(Shapes { ranks, extents, outputs, workspace_bytes: AtomicU64::new(0) });
        *locked(&prepared.last) = Arc::clone(&made);
        Ok(made)
    }

    fn run<'f>(
        &'f self,
        prepared: &Prepared,
        tensors: &[Tensor<'_>],
        device: Device,
    ) -> Result<Vec<Tensor<'f>>, Error> {
        let functions = &self.functions;
        let shapes = self.shapes(prepared, tensors)?;
        let outputs = shapes.outputs.iter().zip(&prepared.types);
        let outputs = outputs.map(|(shape, dtype)| Tensor::new(functions, shape, *dtype, device));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let stream = if device.is_cuda() { functions.current_stream(device.index)? } else { null_mut() };
        let inputs = tensors.iter().map(Tensor::address).collect::<Result<Vec<*mut c_void>, _>>()?;
        let places = outputs.iter().map(Tensor::address).collect::<Result<Vec<*mut c_void>, _>>()?;
        loop {
            // Other threads change it.
            let workspace_bytes = shapes.workspace_bytes.load(Ordering::Relaxed);
            let memory = match workspace_bytes {
                0 => None,
                bytes => Some(Tensor::new(functions, &Shape::new(&[bytes.cast_signed()]), BYTE, device)?),
            };
            let workspace = memory.as_ref().map_or(Ok(null_mut()), Tensor::address)?;
            let call = Call {
                ranks: shapes.ranks.as_ptr(),
                extents: shapes.extents.as_ptr(),
                inputs: inputs.as_ptr(),
                outputs: places.as_ptr(),
                workspace,
                workspace_bytes,
                stream,
                rank_count: count(&shapes.ranks),
                extent_count: count(&shapes.extents),
                input_count: count(&inputs),
                output_count: count(&places),
            };
            let mut needed = 0;
            // SAFETY: the operator exists, and all its calls have the device of its key, whose context is current. The
            // tensors have these shapes; PyTorch reuses the memory of deleted ones for later work of the stream only.
            functions.plugin_error(unsafe {
                (functions.cubinder_operator_run)(prepared.operator, &raw const call, &raw mut needed)
            })?;
            if needed <= workspace_bytes {
                return Ok(outputs);
            }
            shapes.workspace_bytes.store(needed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(ty: i32) -> Parameter {
        Parameter { name: c"x".to_owned(), ty }
    }

    #[test]
    fn arguments_have_the_bits_that_count() {
        assert_eq!(parameter(INT8).bits(0xff00), 0);
        assert_eq!(parameter(INT8).bits(0xff01), 1);
        assert_eq!(parameter(FLOAT32).bits(u64::MAX), -1);
    }

    #[test]
    fn floats_are_rounded_to_single_precision_within_its_range() {
        let bits = |value: f64| value.to_bits().cast_signed();
        let single = |value: f64| parameter(FLOAT32).data(bits(value)).map(|data| data[..4].to_vec());
        assert_eq!(single(0.1).unwrap(), 0.1_f32.to_ne_bytes());
        assert_eq!(single(-0.0).unwrap(), (-0.0_f32).to_ne_bytes());
        assert_eq!(single(f64::INFINITY).unwrap(), f32::INFINITY.to_ne_bytes());
        let error = single(1e300).unwrap_err().to_string();
        assert!(error.starts_with("the attribute `x` is 1e300, beyond the range"), "{error}");
    }
}
