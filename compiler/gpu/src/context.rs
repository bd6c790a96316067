//! One device and its context.

use std::ffi::c_int;
use std::ptr::null_mut;

use cubinder_launch::Device;
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::fit::ComputeCapability;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute};
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, call};
use crate::error::{DriverError, NoDriver};

/// Longest device name that is read, bytes.
const NAME_BYTES: c_int = 256;

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The newest CUDA that the driver knows: `13.0`.
    #[must_use]
    pub fn driver_cuda(&self) -> String {
        format!("{}.{}", self.driver / 1000, self.driver % 1000 / 10)
    }

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
        let (device, info) = find(driver, ordinal).map_err(NoDriver::Unusable)?;
        let mut context = null_mut();
        // SAFETY: `context` is a place for one handle; an unknown device is answered with an error.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }.map_err(NoDriver::Unusable)?;
        // SAFETY: the context has just been retained.
        if let Err(error) = unsafe { call!(cuCtxPushCurrent_v2(context)) } {
            // SAFETY: undoes the retain above. Its own failure would say less than the one at hand.
            let _ = unsafe { call!(cuDevicePrimaryCtxRelease_v2(device)) };
            return Err(NoDriver::Unusable(error));
        }
        Ok(Context { device, info, _thread: std::marker::PhantomData })
    }

    /// A context of the stand-in for the driver.
    #[cfg(test)]
    pub(crate) fn without_device() -> Context {
        let info = DeviceInfo {
            name: String::new(),
            capability: ComputeCapability { major: 9, minor: 0 },
            sms: 1,
            shared_bytes: 0,
            has_clusters: true,
            driver: 0,
        };
        Context { device: 0, info, _thread: std::marker::PhantomData }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.info
    }

    /// Waits until all that was queued is done.
    ///
    /// # Errors
    /// What went wrong on the device, among others.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: it takes nothing.
        unsafe { call!(cuCtxSynchronize()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: undoes the push and the retain of `open`, in this thread, since the type cannot leave it. Destructors report nothing.
        unsafe {
            let _ = call!(cuCtxPopCurrent_v2(&raw mut context));
            let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
        }
    }
}

fn find(driver: Driver, ordinal: u32) -> Result<(CUdevice, DeviceInfo), DriverError> {
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: `device` is a place for one handle; any number may be asked for.
    unsafe { call!(cuDeviceGet(&raw mut device, ordinal)) }?;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: `value` is a place for one `int`; unknown attributes are answered with an error.
        unsafe { call!(cuDeviceGetAttribute(&raw mut value, attribute, device)) }?;
        Ok::<u32, DriverError>(u32::try_from(value).unwrap_or(0))
    };
    let part = |of| Ok::<u8, DriverError>(u8::try_from(attribute(of)?).unwrap_or(u8::MAX));
    let capability = ComputeCapability {
        major: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    };
    // A driver that does not know the question has no clusters to offer but those of the capability.
    let has_clusters = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)
        .map_or(capability.major >= HAS_CLUSTERS, |value| value != 0);
    let mut name = [0_u8; NAME_BYTES as usize];
    // SAFETY: `name` has room for the number of bytes said.
    unsafe { call!(cuDeviceGetName(name.as_mut_ptr().cast(), NAME_BYTES, device)) }?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    let info = DeviceInfo {
        name: String::from_utf8_lossy(&name).into_owned(),
        capability,
        sms: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        has_clusters,
        driver: driver.version()?,
    };
    Ok((device, info))
}
