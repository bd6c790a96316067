//! The facts of a device that expressions can read.

use cubinder_expr::DeviceFact;

/// What expressions can know of the device that a launch runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// How many multiprocessors it has.
    pub sms: i64,
    /// The most dynamic shared memory that a block can ask for, bytes.
    pub shared_bytes: i64,
    /// Its compute capability: 90 for 9.0.
    pub capability: i64,
}

impl Device {
    /// One of the facts.
    #[must_use]
    pub const fn fact(&self, fact: DeviceFact) -> i64 {
        match fact {
            DeviceFact::Sms => self.sms,
            DeviceFact::SharedBytes => self.shared_bytes,
            DeviceFact::Capability => self.capability,
        }
    }
}
