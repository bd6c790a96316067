//! One device and its context.

use std::ffi::c_int;

use cubinder_launch::Device;
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::fit::ComputeCapability;

use crate::driver::Driver;
use crate::error::{DriverError, NoDriver};
use crate::sys::{
    CUcontext, CUdevice, DEVICE_CLUSTERS, DEVICE_MAJOR, DEVICE_MINOR, DEVICE_MULTIPROCESSORS,
    DEVICE_SHARED_BYTES,
};

/// Longest device name that is read, bytes.
const NAME_BYTES: c_int = 256;

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// `NVIDIA H200`.
    pub name: String,
    /// Its compute capability, as the driver reports it.
    pub capability: ComputeCapability,
    /// How many multiprocessors it has.
    pub sms: u32,
    /// The most shared memory of a block, static and dynamic, bytes.
    pub shared_bytes: u32,
    /// Whether it has clusters.
    pub has_clusters: bool,
    /// The newest CUDA that the driver knows: 1000 * major + 10 * minor.
    pub driver: i32,
}

impl DeviceInfo {
    /// What expressions can know of it.
    #[must_use]
    pub fn facts(&self) -> Device {
        let ComputeCapability { major, minor } = self.capability;
        Device {
            sms: i64::from(self.sms),
            shared_bytes: i64::from(self.shared_bytes),
            capability: i64::from(major) * 10 + i64::from(minor),
        }
    }
}

/// A device's primary context, current in this thread for as long as the value lives.
#[derive(Debug)]
pub struct Context {
    pub(crate) driver: Driver,
    pub(crate) device: CUdevice,
    info: DeviceInfo,
    /// It belongs to the thread that pushed it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Context {
    /// Retains the primary context of the device with this number, from 0, and makes it current.
    ///
    /// # Errors
    /// Where there is no such device, or it cannot be used.
    pub fn open(driver: Driver, ordinal: u32) -> Result<Context, NoDriver> {
        let count = driver.device_count().map_err(NoDriver::Unusable)?;
        if ordinal >= count {
            return Err(NoDriver::NoDevice { ordinal, count });
        }
        let (device, info) = find(&driver, ordinal).map_err(NoDriver::Unusable)?;
        let mut context = CUcontext::NULL;
        // SAFETY: `context` is a place for one handle; an unknown device is answered with an error.
        let code = unsafe { (driver.device_primary_ctx_retain)(&raw mut context, device) };
        driver.check("cuDevicePrimaryCtxRetain", code).map_err(NoDriver::Unusable)?;
        // SAFETY: the context has just been retained.
        let pushed = driver.check("cuCtxPushCurrent", unsafe { (driver.ctx_push_current)(context) });
        if let Err(error) = pushed {
            // SAFETY: undoes the retain above. Its own failure would say less than the one at hand.
            let _ = unsafe { (driver.device_primary_ctx_release)(device) };
            return Err(NoDriver::Unusable(error));
        }
        Ok(Context { driver, device, info, _thread: std::marker::PhantomData })
    }

    /// A context of such a driver, without a device.
    #[cfg(test)]
    pub(crate) fn of_nothing(driver: Driver) -> Context {
        let info = DeviceInfo {
            name: String::new(),
            capability: ComputeCapability { major: 9, minor: 0 },
            sms: 1,
            shared_bytes: 0,
            has_clusters: true,
            driver: 0,
        };
        Context { driver, device: 0, info, _thread: std::marker::PhantomData }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.info
    }

    /// The bytes of memory that are free on the device.
    ///
    /// # Errors
    /// The driver's.
    pub fn free_bytes(&self) -> Result<usize, DriverError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are places for one `size_t`.
        let code = unsafe { (self.driver.mem_get_info)(&raw mut free, &raw mut total) };
        self.driver.check("cuMemGetInfo", code)?;
        Ok(free)
    }

    /// Waits until all that was queued is done.
    ///
    /// # Errors
    /// What went wrong on the device, among others.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: it takes nothing.
        self.driver.check("cuCtxSynchronize", unsafe { (self.driver.ctx_synchronize)() })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut context = CUcontext::NULL;
        // SAFETY: undoes the push and the retain of `open`, in this thread, since the type cannot leave it. Destructors report nothing.
        unsafe {
            let _ = (self.driver.ctx_pop_current)(&raw mut context);
            let _ = (self.driver.device_primary_ctx_release)(self.device);
        }
    }
}

fn find(driver: &Driver, ordinal: u32) -> Result<(CUdevice, DeviceInfo), DriverError> {
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: `device` is a place for one handle; any number may be asked for.
    driver.check("cuDeviceGet", unsafe { (driver.device_get)(&raw mut device, ordinal) })?;
    let attribute = |attribute: c_int| {
        let mut value = 0;
        // SAFETY: `value` is a place for one `int`; unknown attributes are answered with an error.
        let code = unsafe { (driver.device_get_attribute)(&raw mut value, attribute, device) };
        driver.check("cuDeviceGetAttribute", code)?;
        Ok::<u32, DriverError>(u32::try_from(value).unwrap_or(0))
    };
    let part = |of| Ok::<u8, DriverError>(u8::try_from(attribute(of)?).unwrap_or(u8::MAX));
    let capability = ComputeCapability { major: part(DEVICE_MAJOR)?, minor: part(DEVICE_MINOR)? };
    // A driver that does not know the question has no clusters to offer but those of the capability.
    let has_clusters =
        attribute(DEVICE_CLUSTERS).map_or(capability.major >= HAS_CLUSTERS, |value| value != 0);
    let mut name = [0_u8; NAME_BYTES as usize];
    // SAFETY: `name` has room for the number of bytes said.
    let code = unsafe { (driver.device_get_name)(name.as_mut_ptr().cast(), NAME_BYTES, device) };
    driver.check("cuDeviceGetName", code)?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    let info = DeviceInfo {
        name: String::from_utf8_lossy(&name).into_owned(),
        capability,
        sms: attribute(DEVICE_MULTIPROCESSORS)?,
        shared_bytes: attribute(DEVICE_SHARED_BYTES)?,
        has_clusters,
        driver: driver.version()?,
    };
    Ok((device, info))
}
