pub use cubinder_driver::result::DriverError;
use cubinder_driver::result::NO_DEVICE;

/// Why no GPU is usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDriver {
    /// The driver is missing.
    #[error("no CUDA driver: {0}")]
    NotFound(String),
    /// The driver exists but cannot be loaded.
    #[error("cannot load the CUDA driver: {0}")]
    Unloadable(String),
    /// CUDA version of an old driver.
    #[error("the CUDA driver supports CUDA {}.{}; expected 12.0 or later", .0 / 1000, .0 % 1000 / 10)]
    TooOld(i32),
    /// The device does not exist.
    #[error("unknown GPU {ordinal}: the CUDA driver has {count} GPU{s}", s = if *count == 1 { "" } else { "s" })]
    NoDevice {
        /// Device index from 0.
        ordinal: u32,
        /// Number of devices.
        count: u32,
    },
    /// The driver cannot start.
    #[error("cannot initialize the CUDA driver: {0}")]
    Refused(DriverError),
    /// The device is unusable.
    #[error("cannot use the GPU: {0}")]
    Unusable(DriverError),
}

impl NoDriver {
    /// Returns whether the GPU or driver is missing.
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

/// Why a node or variant cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The runtime or TensorRT rejects the node, or code is missing.
    #[error("{0}")]
    Refused(String),
    /// A tensor's size exceeds the address space.
    #[error("the size of a tensor exceeds the address space")]
    TooLarge,
    /// Driver error, possibly sticky.
    #[error("{memory}{0}", memory = if .0.is_out_of_memory() { "not enough free GPU memory: " } else { "" })]
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
