use std::ffi::c_int;
use std::ptr::null_mut;

use cubinder_launch::Device;
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::fit::ComputeCapability;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute};
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, call};
use crate::error::{DriverError, NoDriver};

/// Maximum length of a device name, bytes.
const NAME_BYTES: c_int = 256;

/// Describes a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Device name: `NVIDIA H200`.
    pub name: String,
    /// Compute capability.
    pub capability: ComputeCapability,
    /// Multiprocessors.
    pub sms: u32,
    /// Maximum shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Whether clusters are supported.
    pub has_clusters: bool,
    /// Driver's CUDA version: 1000 * major + 10 * minor.
    pub driver: i32,
}

impl DeviceInfo {
    /// Describes a device without a context.
    pub fn query(driver: Driver, ordinal: u32) -> Result<DeviceInfo, NoDriver> {
        find(driver, ordinal).map(|(_, info)| info).map_err(NoDriver::Unusable)
    }

    /// Describes all devices; fails without one.
    pub fn query_all(driver: Driver) -> Result<Vec<DeviceInfo>, NoDriver> {
        match driver.device_count().map_err(NoDriver::Unusable)? {
            0 => Err(NoDriver::NoDevice { ordinal: 0, count: 0 }),
            count => (0..count).map(|ordinal| DeviceInfo::query(driver, ordinal)).collect(),
        }
    }

    /// Returns the driver's CUDA version: `13.0`.
    #[must_use]
    pub fn driver_cuda(&self) -> String {
        format!("{}.{}", self.driver / 1000, self.driver % 1000 / 10)
    }

    /// Returns the device facts for expressions.
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

/// A device's primary context, current in this thread until dropped.
#[derive(Debug)]
pub struct Context {
    pub(crate) device: CUdevice,
    info: DeviceInfo,
    /// Not `Send`: the context is current in this thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Context {
    /// Retains the primary context and makes it current.
    pub fn open(driver: Driver, ordinal: u32) -> Result<Context, NoDriver> {
        let count = driver.device_count().map_err(NoDriver::Unusable)?;
        if ordinal >= count {
            return Err(NoDriver::NoDevice { ordinal, count });
        }
        let (device, info) = find(driver, ordinal).map_err(NoDriver::Unusable)?;
        let mut context = null_mut();
        // SAFETY: `context` has room for a handle; unknown devices return errors.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }.map_err(NoDriver::Unusable)?;
        // SAFETY: the context was retained above.
        if let Err(error) = unsafe { call!(cuCtxPushCurrent_v2(context)) } {
            // SAFETY: the context was retained above and is not used later. The first error is reported.
            let _ = unsafe { call!(cuDevicePrimaryCtxRelease_v2(device)) };
            return Err(NoDriver::Unusable(error));
        }
        Ok(Context { device, info, _thread: std::marker::PhantomData })
    }

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

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &DeviceInfo {
        &self.info
    }

    /// Waits for all queued work; the error may be an earlier launch's.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the call has no arguments.
        unsafe { call!(cuCtxSynchronize()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: undoes `open`, in the same thread (not `Send`); `context` has room for a handle.
        unsafe {
            let _ = call!(cuCtxPopCurrent_v2(&raw mut context));
            let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
        }
    }
}

fn find(driver: Driver, ordinal: u32) -> Result<(CUdevice, DeviceInfo), DriverError> {
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: `device` has room for a handle; the driver checks the ordinal.
    unsafe { call!(cuDeviceGet(&raw mut device, ordinal)) }?;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: `value` has room for an `int`; unknown attributes return errors.
        unsafe { call!(cuDeviceGetAttribute(&raw mut value, attribute, device)) }?;
        Ok::<u32, DriverError>(u32::try_from(value).unwrap_or(0))
    };
    let part = |of| Ok::<u8, DriverError>(u8::try_from(attribute(of)?).unwrap_or(u8::MAX));
    let capability = ComputeCapability {
        major: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        minor: part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    };
    // Older drivers lack this attribute.
    let has_clusters = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)
        .map_or(capability.major >= HAS_CLUSTERS, |value| value != 0);
    let mut name = [0_u8; NAME_BYTES as usize];
    // SAFETY: `name` has room for `NAME_BYTES` bytes.
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
