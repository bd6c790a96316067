use std::fmt;

use cubinder_model::{Arch, ArchSuffix, BadCode, Target, TargetKind};

use super::image::Malformed;
use crate::driver::sys::{CUDA_ERROR_OUT_OF_MEMORY, CUdevice};
use crate::driver::{ComputeCapability, Driver, DriverError};

/// Why a kernel cannot be loaded on the current device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The driver fails at present (no memory, lost context, capture).
    #[error("cannot load the code of `{kernel}`: {error}")]
    Driver {
        /// Kernel.
        kernel: String,
        /// Failed call.
        error: DriverError,
    },
    /// All code objects were rejected, or none exists.
    #[error("no code of `{kernel}` runs on this GPU, {device}{}", lines(refused))]
    NothingFits {
        /// Kernel.
        kernel: String,
        /// Device.
        device: DeviceFacts,
        /// Rejected candidates, in order.
        refused: Vec<Refused>,
    },
    /// The model names a missing code object.
    #[error("the plugin's model is damaged: the {target} code of `{kernel}` is number {index} of {count}")]
    NoSuchCode {
        /// Kernel.
        kernel: String,
        /// Target in the model.
        target: Target,
        /// Index.
        index: u32,
        /// Number of code objects.
        count: usize,
    },
}

/// A rejected code object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{target}: {reason}")]
pub struct Refused {
    /// Its target.
    pub target: Target,
    /// Reason.
    pub reason: Reason,
}

/// Why a code object was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The driver rejects it.
    #[error("{0}")]
    Driver(DriverError),
    /// It was rejected before a driver call.
    #[error("{0}")]
    Malformed(Malformed),
    /// It does not unpack to the expected code.
    #[error("it is damaged: {0}")]
    Damaged(BadCode),
    /// The kernel's symbol contains a NUL.
    #[error("the kernel's symbol has a NUL inside")]
    NulInSymbol,
    /// Neither driver (before CUDA 12.4) nor model has parameter sizes.
    #[error(
        "the kernel's parameters are unknown: the driver is older than CUDA 12.4, and the model does not list them"
    )]
    UnknownParameters,
}

/// A device in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// `NVIDIA H200`.
    pub name: String,
    /// Reported compute capability.
    pub capability: ComputeCapability,
    /// The newest supported CUDA, 1000 * major + 10 * minor, if known.
    pub cuda: Option<i32>,
}

impl DeviceFacts {
    pub(super) fn query(driver: &Driver, device: CUdevice, capability: ComputeCapability) -> DeviceFacts {
        let name = driver.device_name(device).unwrap_or_else(|_| format!("device {device}"));
        DeviceFacts { name, capability, cuda: driver.version().ok() }
    }

    pub(crate) fn current(driver: &Driver) -> Option<DeviceFacts> {
        let device = driver.current_device().ok()?;
        let capability = driver.compute_capability(device).ok()?;
        Some(DeviceFacts::query(driver, device, capability))
    }
}

impl fmt::Display for DeviceFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (compute capability {}", self.name, self.capability)?;
        match self.cuda {
            Some(cuda) => write!(f, ", driver for CUDA {}.{})", cuda / 1000, cuda % 1000 / 10),
            None => f.write_str(")"),
        }
    }
}

fn lines(refused: &[Refused]) -> String {
    if refused.is_empty() {
        return "\n  no code for any GPU".to_owned();
    }
    refused.iter().map(|refused| format!("\n  {refused}")).collect()
}

impl LoadError {
    /// Returns the fix.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            LoadError::Driver { error, .. } if error.code == CUDA_ERROR_OUT_OF_MEMORY => {
                "free GPU memory that other engines or processes use".to_owned()
            }
            LoadError::Driver { .. } => {
                "the code is not the cause: fix the error that the driver reported earlier, or start a new process"
                    .to_owned()
            }
            LoadError::NothingFits { device, refused, .. } => help(device, refused),
            LoadError::NoSuchCode { .. } => DAMAGED.to_owned(),
        }
    }
}

const DAMAGED: &str = "copy the engine and its library again, or rebuild them";

/// Suggests more code only without machine code for this device.
fn help(device: &DeviceFacts, refused: &[Refused]) -> String {
    if refused
        .iter()
        .any(|refused| matches!(refused.reason, Reason::Damaged(BadCode::Digest | BadCode::Packed { .. })))
    {
        return DAMAGED.to_owned();
    }
    let ComputeCapability { major, minor } = device.capability;
    let target = Target { kind: TargetKind::Cubin, arch: Arch { major, minor, suffix: ArchSuffix::None } };
    let carried = refused.iter().any(|refused| {
        refused.target.kind == TargetKind::Cubin
            && (refused.target.arch.major, refused.target.arch.minor) == (major, minor)
    });
    if carried {
        format!(
            "the driver refused the code for {target}: install a newer driver, or recompile the plugin with `cubinder \
             compile` for this driver and rebuild the engine"
        )
    } else {
        format!("add code for it with `cubinder compile --target {target}` and rebuild the engine")
    }
}
