//! Safe wrappers around what puts work into a stream, and around what is asked before that.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::result::Result;
use super::sys::{CUDA_SUCCESS, CUdeviceptr, CUkernel, CUlaunchAttribute, CUlaunchConfig, CUstream};
use super::table::Driver;

/// The most attributes of a launch.
pub const MAX_LAUNCH_ATTRIBUTES: usize = 3;

/// How a kernel is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// What else is asked for; what comes after [`MAX_LAUNCH_ATTRIBUTES`] is passed over. Where there is none the driver is called in
    /// the plain way.
    pub attributes: Box<[CUlaunchAttribute]>,
}

impl Configuration {
    /// Calls `work` with the driver's form of it. The attributes are copied: the driver's type lets it write to them.
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
    /// Launches a kernel in the context of `stream`.
    ///
    /// # Errors
    /// What the driver refuses at once. What goes wrong on the device shows in later calls.
    ///
    /// # Safety
    /// `params` points to one pointer for each parameter of the kernel, each to as many readable bytes as that parameter
    /// has; the driver reads them during the call. `stream` is a stream of this driver or null. Device memory that the
    /// arguments name is valid until the kernel has run, and as large as the kernel assumes.
    #[inline]
    pub unsafe fn launch(
        &self,
        kernel: CUkernel,
        configuration: &Configuration,
        stream: CUstream,
        params: *mut *mut c_void,
    ) -> Result<()> {
        if !configuration.attributes.is_empty() {
            // SAFETY: the caller's promise.
            return unsafe { self.launch_with_attributes(kernel, configuration, stream, params) };
        }
        let Configuration { grid, block, shared_bytes, .. } = configuration;
        // SAFETY: a `CUkernel` may stand where a `CUfunction` is asked for (`cuda.h` 13.0, `cuLaunchKernel`); `extra` is
        // null, as it must be where `params` is given; the rest is the caller's promise.
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
        // SAFETY: a `CUkernel` may stand where a `CUfunction` is asked for (`cuda.h` 13.0, `cuLaunchKernelEx`); the
        // configuration and its attributes live during the call; the rest is the caller's promise.
        let code = configuration.with_config(stream, |config| unsafe {
            (self.launch_kernel_ex)(config, kernel.as_function(), params, null_mut())
        });
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuLaunchKernelEx", code) }
    }

    /// Fills memory with one byte, in the order of `stream`.
    ///
    /// # Errors
    /// What the driver refuses at once.
    ///
    /// # Safety
    /// `to` is the address of as many `bytes` of device memory, which are valid until the work is done. `stream` is a stream of this
    /// driver or null.
    pub unsafe fn fill(&self, to: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) -> Result<()> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.memset_d8_async)(to, byte, bytes, stream) };
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuMemsetD8Async", code) }
    }

    /// Copies memory of the device, in the order of `stream`.
    ///
    /// # Errors
    /// What the driver refuses at once.
    ///
    /// # Safety
    /// `from` and `to` are the addresses of as many `bytes` of device memory, which do not overlap and are valid until the work is
    /// done. `stream` is a stream of this driver or null.
    pub unsafe fn copy(
        &self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: usize,
        stream: CUstream,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let code = unsafe { (self.memcpy_dtod_async)(to, from, bytes, stream) };
        if code == CUDA_SUCCESS { Ok(()) } else { self.check("cuMemcpyDtoDAsync", code) }
    }

    /// How many blocks of a kernel one multiprocessor of the current context's device runs at once.
    ///
    /// # Errors
    /// The driver's.
    pub fn blocks_per_multiprocessor(&self, kernel: CUkernel, threads: u32, shared: u32) -> Result<u32> {
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: `blocks` is a place for one `int`; a `CUkernel` may stand where a `CUfunction` is asked for, and the current
        // context's device is meant then (`cuda.h` 13.0).
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

    /// How many clusters of a kernel the current context's device runs at once.
    ///
    /// # Errors
    /// The driver's.
    pub fn clusters_at_once(&self, kernel: CUkernel, configuration: &Configuration) -> Result<u32> {
        let mut clusters = 0;
        // SAFETY: `clusters` is a place for one `int`; the configuration and its attributes live during the call; the null stream
        // stands for the current context; a `CUkernel` may stand for a `CUfunction` (`cuda.h` 13.0).
        let code = configuration.with_config(CUstream::NULL, |config| unsafe {
            (self.occupancy_max_active_clusters)(&raw mut clusters, kernel.as_function(), config)
        });
        self.check("cuOccupancyMaxActiveClusters", code)?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }
}
