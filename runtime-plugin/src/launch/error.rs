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
    /// Other numbers of tensors than the plugin's.
    #[error("the launch has {found} {which}, but the plugin has {expected}")]
    Tensors {
        /// `inputs` or `outputs`.
        which: &'static str,
        /// Given number.
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
    /// An output overlaps its aliased input partially, or another.
    #[error("{0}")]
    Overlap(Box<Overlap>),
}

/// An input and an output that overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// Full name.
    pub plugin: String,
    /// The output's name.
    pub output: String,
    /// The input's name; `None` for the aliased one.
    pub other: Option<String>,
    /// Addresses of input and output.
    pub addresses: [usize; 2],
    /// Size of the output in bytes.
    pub bytes: usize,
}

/// A refused fill or copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{plugin}` cannot {what}, {bytes} bytes: {error}")]
pub struct MemoryRefusal {
    /// Plugin.
    pub plugin: String,
    /// The operation: "fill `partial`".
    pub what: String,
    /// Number of bytes.
    pub bytes: usize,
    /// The driver's error.
    pub error: DriverError,
}

/// A launch as messages describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDescription {
    /// Full name.
    pub plugin: Box<str>,
    /// Name in its source.
    pub kernel: Box<str>,
    /// Grid, block and shared memory.
    pub configuration: Configuration,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once.
    pub cooperative: bool,
    /// The kernel's limits on the device.
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
    "`{}` cannot launch `{}`: {error}\n  grid {:?}, block {:?}, {} bytes of dynamic shared memory{}\n  the kernel \
     supports at most {} threads in a block and {} bytes of dynamic shared memory on this GPU",
    launch.plugin, launch.kernel, launch.configuration.grid, launch.configuration.block,
    launch.configuration.shared_bytes, launch.options(), launch.limits.max_threads, launch.limits.max_shared_bytes
)]
pub struct Refusal {
    /// Launch.
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
            "`{}`: the output `{}` at {output:#x} partially overlaps the input at {input:#x} whose memory it shares \
             ({} bytes); bind both to one address, or to memory that does not overlap",
            self.plugin, self.output, self.bytes
        )
    }
}

impl EnqueueError {
    /// Returns the fix, if users can apply one.
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
                "the kernel needs more registers or shared memory than a block of this size has: make the block \
                 smaller, use less shared memory, or limit the kernel's registers with `__launch_bounds__`"
            }
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
                "all blocks of a cooperative launch run at once: make the grid smaller, for example a multiple of `device.sms`"
            }
            _ if error.may_come_from_earlier_work() => {
                "work that was enqueued earlier may be the cause: find it with `compute-sanitizer`, or with CUDA_LAUNCH_BLOCKING=1 in the environment"
            }
            CUDA_ERROR_OUT_OF_MEMORY => "free GPU memory that other engines or processes use",
            _ => {
                "check the launch with `cubinder eval`; if it is correct, the stream, the context or an address does not belong to this GPU"
            }
        })
    }
}
