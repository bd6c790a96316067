use std::fmt;

/// `c10::DeviceType`.
const CPU: i32 = 0;
const CUDA: i32 = 1;

/// `c10::DeviceType`, and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    pub(crate) index: i32,
}

impl Device {
    pub(crate) fn is_cuda(self) -> bool {
        self.kind == CUDA
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CPU => f.write_str("cpu"),
            CUDA => write!(f, "cuda:{}", self.index),
            kind => write!(f, "the device type {kind}"),
        }
    }
}
