//! The facts of a device that expressions can read.

use cubinder_expr::DeviceFact;

/// Something about each of the facts: see [`DeviceFact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerDeviceFact<T> {
    /// How many multiprocessors it has.
    pub sms: T,
    /// The most dynamic shared memory that a block can ask for, bytes.
    pub shared_bytes: T,
    /// Its compute capability: 90 for 9.0.
    pub capability: T,
}

/// What expressions can know of the device that a launch runs on.
pub type Device = PerDeviceFact<i64>;

impl<T: Copy> PerDeviceFact<T> {
    /// One of the facts.
    #[must_use]
    pub const fn fact(&self, fact: DeviceFact) -> T {
        match fact {
            DeviceFact::Sms => self.sms,
            DeviceFact::SharedBytes => self.shared_bytes,
            DeviceFact::Capability => self.capability,
        }
    }
}
