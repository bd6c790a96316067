//! What is wrong with a launch that was prepared: the driver or the caller stands in its way.
//!
//! What is wrong with a launch before that is [`cubinder_launch::LaunchError`].

use std::fmt;

use crate::code::KernelLimits;
use crate::driver::sys::{
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY,
};
use crate::driver::{Configuration, DriverError};

/// What comes of a launch.
pub(super) type Result<T, E = EnqueueError> = std::result::Result<T, E>;

/// A launch that was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    /// The caller has other tensors than the plugin.
    #[error("{found} {which} were given to a launch of a plugin that has {expected}")]
    Tensors {
        /// `inputs` or `outputs`.
        which: &'static str,
        /// How many were given.
        found: usize,
        /// How many the plugin has.
        expected: usize,
    },
    /// The driver refuses.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The driver refuses to fill or copy memory.
    #[error("{0}")]
    Memory(Box<MemoryRefusal>),
    /// An output that shares an input's memory lies partly in it, or in another input.
    #[error("{0}")]
    Overlap(Box<Overlap>),
}

/// Where an input and an output were bound whose memory overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// The output's name.
    pub output: String,
    /// The input's name; `None` for the input whose memory the output shares.
    pub other: Option<String>,
    /// Of the input, then of the output.
    pub addresses: [usize; 2],
    /// How many bytes the output has.
    pub bytes: usize,
}

/// What the driver refused to do with memory, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{plugin}` cannot {what}, {bytes} bytes: {error}")]
pub struct MemoryRefusal {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// What was to be done: "fill `partial`".
    pub what: String,
    /// With how many bytes.
    pub bytes: usize,
    /// The driver's own words.
    pub error: DriverError,
}

/// A launch, as messages describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchDescription {
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: Box<str>,
    /// The kernel as its source names it.
    pub kernel: Box<str>,
    /// Grid, block, and dynamic shared memory of a block.
    pub configuration: Configuration,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once.
    pub cooperative: bool,
    /// The limits of the kernel on the device.
    pub limits: KernelLimits,
}

impl LaunchDescription {
    /// `, cluster [2, 1, 1], cooperative`, or less.
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
    /// What to do about it; `None` where the caller is not the user.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        let error = match self {
            // The latter says what to do itself.
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
