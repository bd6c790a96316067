//! Tensors of PyTorch.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::device::Device;
use crate::error::Error;
use crate::functions::{Functions, Get, Handle};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    extents: Vec<i64>,
    strides: Vec<i64>,
}

impl Shape {
    pub(crate) fn new(extents: &[i64]) -> Shape {
        let mut strides = vec![1; extents.len()];
        let mut step = 1_i64;
        for (stride, extent) in strides.iter_mut().zip(extents).rev() {
            *stride = step;
            step = step.saturating_mul((*extent).max(1));
        }
        Shape { extents: extents.to_vec(), strides }
    }
}

/// A tensor, deleted when dropped.
pub(crate) struct Tensor<'f> {
    functions: &'f Functions,
    handle: Handle,
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is owned. If this fails, the tensor leaks.
        let _error = unsafe { (self.functions.delete_tensor_object)(self.handle) };
    }
}

impl<'f> Tensor<'f> {
    /// # Safety
    /// `word` is an owned handle.
    pub(crate) unsafe fn from_word(functions: &'f Functions, word: u64) -> Tensor<'f> {
        Tensor { functions, handle: std::ptr::with_exposed_provenance_mut(word as usize) }
    }

    pub(crate) fn into_word(self) -> u64 {
        let handle = self.handle;
        std::mem::forget(self);
        handle.expose_provenance() as u64
    }

    pub(crate) fn new(
        functions: &'f Functions,
        shape: &Shape,
        dtype: i32,
        device: Device,
    ) -> Result<Tensor<'f>, Error> {
        let mut handle = null_mut();
        let (extents, strides) = (shape.extents.as_ptr(), shape.strides.as_ptr());
        let (rank, Device { kind, index }) = (shape.extents.len() as i64, device);
        // SAFETY: both arrays have the shape's length, and the place is writable.
        let code =
            unsafe { (functions.empty_strided)(rank, extents, strides, dtype, kind, index, &raw mut handle) };
        functions.torch_error("aoti_torch_empty_strided", code)?;
        Ok(Tensor { functions, handle })
    }

    fn get<T>(&self, name: &'static str, get: Get<T>, mut value: T) -> Result<T, Error> {
        // SAFETY: the handle is valid, and `value` is writable.
        let code = unsafe { get(self.handle, &raw mut value) };
        self.functions.torch_error(name, code)?;
        Ok(value)
    }

    pub(crate) fn address(&self) -> Result<*mut c_void, Error> {
        self.get("aoti_torch_get_data_ptr", self.functions.get_data_ptr, null_mut())
    }

    pub(crate) fn dtype(&self) -> Result<i32, Error> {
        self.get("aoti_torch_get_dtype", self.functions.get_dtype, 0)
    }

    pub(crate) fn device(&self) -> Result<Device, Error> {
        let kind = self.get("aoti_torch_get_device_type", self.functions.get_device_type, 0)?;
        Ok(Device {
            kind,
            index: self.get("aoti_torch_get_device_index", self.functions.get_device_index, 0)?,
        })
    }

    pub(crate) fn extents(&self) -> Result<&[i64], Error> {
        let rank = self.get("aoti_torch_get_dim", self.functions.get_dim, 0)?;
        let extents = self.get("aoti_torch_get_sizes", self.functions.get_sizes, null_mut())?;
        let rank = usize::try_from(rank).unwrap_or(0);
        if rank == 0 || extents.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the tensor owns as many extents as dimensions; nothing resizes it during the call.
        Ok(unsafe { std::slice::from_raw_parts(extents, rank) })
    }

    pub(crate) fn requires_grad(&self) -> bool {
        // SAFETY: a handle is the address of an `at::Tensor`, whose only field is the address of its `TensorImpl`.
        let tensor = unsafe { self.handle.cast::<*const c_void>().read() };
        // SAFETY: the method of `c10::TensorImpl` takes this address.
        unsafe { (self.functions.requires_grad)(tensor) }
    }

    pub(crate) fn contiguous(self, dtype: i32, device: Device) -> Result<Tensor<'f>, Error> {
        if self.get("aoti_torch_is_contiguous", self.functions.is_contiguous, false)? {
            return Ok(self);
        }
        let copy = Tensor::new(self.functions, &Shape::new(self.extents()?), dtype, device)?;
        // SAFETY: both handles are valid.
        let code = unsafe { (self.functions.copy_)(copy.handle, self.handle, 0) };
        self.functions.torch_error("aoti_torch_copy_", code)?;
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_those_of_pytorch() {
        assert_eq!(Shape::new(&[2, 3, 4]).strides, [12, 4, 1]);
        assert_eq!(Shape::new(&[2, 0, 4]).strides, [4, 4, 1]);
        assert_eq!(Shape::new(&[]).strides, []);
    }
}
