//! Errors of the driver and of runs.

pub use cubinder_driver::result::DriverError;
use cubinder_driver::result::NO_DEVICE;

/// Why no GPU is usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDriver {
    /// The driver is missing.
    #[error("there is no CUDA driver: {0}")]
    NotFound(String),
    /// The loader finds the driver and cannot load it.
    #[error("the CUDA driver cannot be loaded: {0}")]
    Unloadable(String),
    /// The newest CUDA that it supports: 1000 * major + 10 * minor.
    #[error("the CUDA driver supports CUDA {}.{}; version 12.0 or newer is required", .0 / 1000, .0 % 1000 / 10)]
    TooOld(i32),
    /// The device does not exist.
    #[error("the CUDA driver shows {count} GPUs, and number {ordinal} was asked for")]
    NoDevice {
        /// The requested device, from 0.
        ordinal: u32,
        /// The number of devices.
        count: u32,
    },
    /// The driver does not start.
    #[error("the CUDA driver does not start: {0}")]
    Refused(DriverError),
    /// The device cannot be used.
    #[error("the GPU cannot be used: {0}")]
    Unusable(DriverError),
}

impl NoDriver {
    /// Whether the machine has no GPU or driver.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        match self {
            NoDriver::NotFound(_) | NoDriver::NoDevice { count: 0, .. } => true,
            NoDriver::Refused(error) => error.code == NO_DEVICE,
            NoDriver::Unloadable(_)
            | NoDriver::TooOld(_)
            | NoDriver::NoDevice { .. }
            | NoDriver::Unusable(_) => false,
        }
    }
}

/// Why a variant or a node cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// No code for the device, or rejected by the runtime or TensorRT.
    #[error("{0}")]
    Refused(String),
    /// A tensor's size exceeds the address space.
    #[error("a tensor has more bytes than memory holds")]
    TooLarge,
    /// The driver's, possibly sticky.
    #[error("{memory}{0}", memory = if .0.is_out_of_memory() { "the GPU has not enough memory left: " } else { "" })]
    Driver(#[from] DriverError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_cannot_be_used_is_one() {
        let error = |code| DriverError { call: "cuInit", code, name: None, text: None };
        let absences = [
            NoDriver::NotFound(String::new()),
            NoDriver::NoDevice { ordinal: 0, count: 0 },
            NoDriver::Refused(error(100)),
        ];
        assert!(absences.iter().all(NoDriver::is_absence));
        let mistakes = [
            NoDriver::Unloadable(String::new()),
            NoDriver::TooOld(11080),
            NoDriver::NoDevice { ordinal: 7, count: 1 },
            NoDriver::Refused(error(999)),
            NoDriver::Unusable(error(2)),
        ];
        assert!(!mistakes.iter().any(NoDriver::is_absence));
        assert!(NoDriver::TooOld(11080).to_string().contains("supports CUDA 11.8;"));
    }
}
