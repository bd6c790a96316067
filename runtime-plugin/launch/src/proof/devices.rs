use crate::device::{Device, PerDeviceFact};
use cubinder_expr::DeviceFact;
use cubinder_model::model::Interval;

/// Ranges of a device's facts.
pub type Devices = PerDeviceFact<Interval>;

impl Devices {
    /// Every device.
    pub const ANY: Devices = Devices {
        sms: any(DeviceFact::Sms),
        shared_bytes: any(DeviceFact::SharedBytes),
        capability: any(DeviceFact::Capability),
    };

    /// Returns known devices in range, then each fact's ends.
    pub(super) fn tried(&self) -> Vec<Option<Device>> {
        let is_one = |device: &Device| {
            DeviceFact::ALL.iter().all(|fact| self.fact(*fact).contains(device.fact(*fact)))
        };
        let corner = |end: fn(Interval) -> i64| Device {
            sms: end(self.sms),
            shared_bytes: end(self.shared_bytes),
            capability: end(self.capability),
        };
        let corners = [corner(|fact| fact.min), corner(|fact| fact.max)];
        KNOWN.into_iter().filter(is_one).chain(corners).map(Some).collect()
    }
}

/// H100 SXM, GeForce GTX 1650.
const KNOWN: [Device; 2] = [
    Device { sms: 132, shared_bytes: 232_448, capability: 90 },
    Device { sms: 14, shared_bytes: 65_536, capability: 75 },
];

const fn any(fact: DeviceFact) -> Interval {
    let (min, max) = fact.range();
    Interval { min, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_devices_that_can_be_are_tried() {
        let capabilities = |devices: Devices| -> Vec<i64> {
            devices.tried().into_iter().flatten().map(|device| device.capability).collect()
        };
        assert_eq!(capabilities(Devices::ANY), [90, 75, 50, 999]);
        let capability = Interval { min: 80, max: 99 };
        assert_eq!(capabilities(Devices { capability, ..Devices::ANY }), [90, 80, 99]);
    }
}
