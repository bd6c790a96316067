//! Errors of prepared launches, by the driver or the caller.

use std::fmt;

use crate::code::KernelLimits;
use crate::driver::sys::{
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY,
};
use crate::driver::{Configuration, DriverError};

pub(super) type Result<T, E = EnqueueError> = std::result::Result<T, E>;

/// A launch that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    /// The numbers of tensors are not the plugin's.
    #[error("{found} {which} were given to a launch of a plugin that has {expected}")]
    Tensors {
        /// `inputs` or `outputs`.
        which: &'static str,
        /// The given number.
        found: usize,
        /// The plugin's number.
        expected: usize,
    },
    /// The driver refused the launch.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The driver refused to fill or copy memory.
    #[error("{0}")]
    Memory(Box<MemoryRefusal>),
    /// An output overlaps partially with its aliased input, or with another input.
    #[error("{0}")]
    Overlap(Box<Overlap>),
}

/// An input and an output whose memory overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The plugin's full name.
    pub plugin: String,
    /// The output's name.
    pub output: String,
    /// The input's name; `None` for the aliased one.
    pub other: Option<String>,
    /// The addresses of input and output.
    pub addresses: [usize; 2],
    /// The size of the output in bytes.
    pub bytes: usize,
}

/// A fill or copy that the driver refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{plugin}` cannot {what}, {bytes} bytes: {error}")]
pub struct MemoryRefusal {
    /// The plugin.
    pub plugin: String,
    /// The operation: "fill `partial`".
    pub what: String,
    /// The number of bytes.
    pub bytes: usize,
    /// The driver's error.
    pub error: DriverError,
}

/// A launch as messages describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDescription {
    /// The plugin's full name.
    pub plugin: Box<str>,
    /// The kernel as its source names it.
    pub kernel: Box<str>,
    /// Grid, block and shared memory.
    pub configuration: Configuration,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once.
    pub cooperative: bool,
    /// The limits of the kernel on the device.
    pub limits: KernelLimits,
}

impl LaunchDescription {
    pub(super) fn options(&self) -> String {
        let cluster = self.cluster.map(|cluster| format!(", cluster {cluster:?}")).unwrap_or_default();
        cluster + if self.cooperative { ", cooperative" } else { "" }
    }
}

/// A launch that the driver rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` cannot launch `{}`: {error}\n  grid {:?}, block {:?}, {} bytes of dynamic shared memory{}\n  the kernel takes at most {} threads in a block and {} bytes of dynamic shared memory on this GPU",
    launch.plugin, launch.kernel, launch.configuration.grid, launch.configuration.block,
    launch.configuration.shared_bytes, launch.options(), launch.limits.max_threads, launch.limits.max_shared_bytes
)]
pub struct Refusal {
    /// The launch.
    pub launch: LaunchDescription,
    /// The driver's error.
    pub error: DriverError,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [input, output] = self.addresses;
        if let Some(other) = &self.other {
            return write!(
                f,
                "`{}`: the {} bytes of the output `{}` at {output:#x} overlap the input `{other}` at {input:#x}; bind the output to the \
                 input whose memory it shares, or to memory that no input uses",
                self.plugin, self.bytes, self.output
            );
        }
        write!(
            f,
            "`{}`: the output `{}` lies at {output:#x} and the input whose memory it shares at {input:#x}, so that a part of their {} \
             bytes is the same; bind both to one address, or to memory that does not overlap",
            self.plugin, self.output, self.bytes
        )
    }
}

impl EnqueueError {
    /// Returns the fix, if the user can apply one.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        let error = match self {
            // `Overlap` includes its fix.
            EnqueueError::Tensors { .. } | EnqueueError::Overlap(_) => return None,
            EnqueueError::Refused(refusal) => &refusal.error,
            EnqueueError::Memory(refusal) => &refusal.error,
        };
        Some(match error.code {
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
                "the kernel needs more registers or shared memory than a block of this size gets: make the block smaller, ask for less shared memory, \
                 or have the kernel compiled for this block with `__launch_bounds__`"
            }
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
                "all blocks of a cooperative launch run at once: make the grid smaller, `device.sms` is a measure for it"
            }
            _ if error.may_come_from_earlier_work() => {
                "work that was enqueued earlier may have caused it: CUDA reports it at the next call; `compute-sanitizer`, or CUDA_LAUNCH_BLOCKING=1 in \
                 the environment, shows which"
            }
            CUDA_ERROR_OUT_OF_MEMORY => "free memory of the GPU: other engines or processes hold it",
            _ => {
                "`cubinder eval` shows what the manifest makes of these attributes and shapes; where that is right, the stream, the context or the \
                 addresses that were given are not of this GPU"
            }
        })
    }
}
