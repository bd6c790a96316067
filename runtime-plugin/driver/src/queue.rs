use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::result::Result;
use super::sys::{CUDA_SUCCESS, CUdeviceptr, CUkernel, CUlaunchAttribute, CUlaunchConfig, CUstream};
use super::table::Driver;

/// Maximum launch attributes.
pub const MAX_LAUNCH_ATTRIBUTES: usize = 3;

/// A launch's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Blocks (x, y, z).
    pub grid: [u32; 3],
    /// Threads per block (x, y, z).
    pub block: [u32; 3],
    /// Dynamic shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Attributes, at most [`MAX_LAUNCH_ATTRIBUTES`]; the rest are ignored.
    pub attributes: Box<[CUlaunchAttribute]>,
}

impl Configuration {
    /// Copies the attributes: the driver's type allows writing.
    #[inline]
    fn with_config<R>(&self, stream: CUstream, work: impl FnOnce(&CUlaunchConfig) -> R) -> R {
        let mut attributes = [CUlaunchAttribute::IGNORED; MAX_LAUNCH_ATTRIBUTES];
        let mut count = 0;
        for (place, attribute) in attributes.iter_mut().zip(&self.attributes) {
            *place = *attribute;
            count += 1;
        }
        work(&CUlaunchConfig {
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            stream,
            attributes: attributes.as_mut_ptr(),
            attribute_count: count,
        })
    }
}

impl Driver {
    /// Launches a kernel in the context of `stream`. Device errors appear in later calls.
    ///
    /// # Safety
    /// `params` has one pointer per kernel parameter, to as many readable bytes. `stream` is this driver's or null.
    /// Device memory in arguments is valid until the kernel has run, and as large as it assumes.
    #[inline]
    pub unsafe fn launch(
        &self,
        kernel: CUkernel,
        configuration: &Configuration,
        stream: CUstream,
        params: *mut *mut c_void,
    ) -> Result<()> {
        if !configuration.attributes.is_empty() {
            // SAFETY: the caller upholds the callee's contract.
            return unsafe { self.launch_with_attributes(kernel, configuration, stream, params) };
        }
        let Configuration { grid, block, shared_bytes, .. } = configuration;
        // SAFETY: a `CUkernel` is a valid `CUfunction` (`cuda.h` 13.0, `cuLaunchKernel`); the caller guarantees the
        // rest.
        let code = unsafe {
            (self.launch_kernel)(
                kernel.as_function(),
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                *shared_bytes,
                stream,
                params,
                null_mut(),
            )
        };
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuLaunchKernel", code) }
    }

    /// # Safety
    /// As [`Driver::launch`].
    unsafe fn launch_with_attributes(
        &self,
        kernel: CUkernel,
        configuration: &Configuration,
        stream: CUstream,
        params: *mut *mut c_void,
    ) -> Result<()> {
        // SAFETY: as above; the configuration lives during the call.
        let code = configuration.with_config(stream, |config| unsafe {
            (self.launch_kernel_ex)(config, kernel.as_function(), params, null_mut())
        });
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuLaunchKernelEx", code) }
    }

    /// Fills memory with one byte, in stream order.
    ///
    /// # Safety
    /// `to` has `bytes` of device memory, valid until the work is done. `stream` is this driver's or null.
    pub unsafe fn fill(&self, to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) -> Result<()> {
        // SAFETY: the caller upholds the callee's contract.
        let code = unsafe { (self.memset_d8_async)(to, byte, bytes, stream) };
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuMemsetD8Async", code) }
    }

    /// Copies device memory, in stream order.
    ///
    /// # Safety
    /// As [`Driver::fill`] for both addresses, without overlap.
    pub unsafe fn copy(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> Result<()> {
        // SAFETY: the caller upholds the callee's contract.
        let code = unsafe { (self.memcpy_dtod_async)(to, from, bytes, stream) };
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuMemcpyDtoDAsync", code) }
    }

    /// Returns the blocks resident at once on the current device's multiprocessor.
    pub fn blocks_per_multiprocessor(&self, kernel: CUkernel, threads: u32, shared: u32) -> Result<u32> {
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: `blocks` is writable; a `CUkernel` is a valid `CUfunction` (`cuda.h` 13.0).
        let code = unsafe {
            (self.occupancy_max_active_blocks)(
                &raw mut blocks,
                kernel.as_function(),
                threads,
                shared as usize,
            )
        };
        self.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Returns the clusters resident at once on the current device.
    pub fn clusters_at_once(&self, kernel: CUkernel, configuration: &Configuration) -> Result<u32> {
        let mut clusters = 0;
        // SAFETY: `clusters` is writable, a `CUkernel` is a valid `CUfunction`, the configuration lives during the
        // call.
        let code = configuration.with_config(CUstream::NULL, |config| unsafe {
            (self.occupancy_max_active_clusters)(&raw mut clusters, kernel.as_function(), config)
        });
        self.check("cuOccupancyMaxActiveClusters", code)?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }
}
