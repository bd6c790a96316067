use cubinder_expr::DeviceFact;

/// A value for each [`DeviceFact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerDeviceFact<T> {
    /// Number of multiprocessors.
    pub sms: T,
    /// Maximum dynamic shared bytes of a block.
    pub shared_bytes: T,
    /// Compute capability: 90 for 9.0.
    pub capability: T,
}

/// Facts of the device of a launch.
pub type Device = PerDeviceFact<i64>;

impl<T: Copy> PerDeviceFact<T> {
    /// Returns the value of one fact.
    #[must_use]
    pub const fn fact(&self, fact: DeviceFact) -> T {
        match fact {
            DeviceFact::Sms => self.sms,
            DeviceFact::SharedBytes => self.shared_bytes,
            DeviceFact::Capability => self.capability,
        }
    }
}
