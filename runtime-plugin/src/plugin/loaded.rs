//! Kernels of a node's variants in the current context.

use cubinder_launch as launch;
use cubinder_launch::{Device, Facts, Steps};
use cubinder_model::{Launch, Variant, Work};
use trt_abi::{Error, Result, Severity};

use super::failure::{failure, node_context};
use super::node::NodeData;
use crate::code::{CodeTable, LoadError, LoadedKernel, Loading, candidates};
use crate::driver::sys::{
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    CUcontext, CUdevice,
};
use crate::driver::{Driver, DriverError};

/// Kernels by the variant's steps; `None` for a step that launches no kernel on this device.
type Kernels = Vec<Option<LoadedKernel>>;

#[derive(Debug, Default)]
pub(super) struct LoadedVariants {
    /// Context and device: another device's context can reuse the address of a destroyed one.
    context: Option<(CUcontext, CUdevice)>,
    device: Option<Device>,
    variants: Vec<(usize, Kernels)>,
    #[cfg(test)]
    pub(super) assumed: Option<Device>,
}

impl LoadedVariants {
    pub(super) fn kernels(&self, variant: usize) -> &[Option<LoadedKernel>] {
        let found = self.variants.iter().find(|(index, _)| *index == variant);
        found.map_or(&[], |(_, kernels)| kernels.as_slice())
    }

    /// Drops other contexts' kernels. `None` without driver or context.
    pub(super) fn follow_context(&mut self, node: &NodeData) -> Result<Option<&'static Driver>> {
        let driver = self.update(node)?;
        if driver.is_none() {
            self.context = None;
            self.device = self.assumed_device();
        }
        Ok(driver)
    }

    fn update(&mut self, node: &NodeData) -> Result<Option<&'static Driver>> {
        let Ok(driver) = Driver::find() else { return Ok(None) };
        let failed = |error| not_initialized(node, &error);
        let Some(context) = driver.current_context().map_err(failed)? else { return Ok(None) };
        let current = (context, driver.current_device().map_err(failed)?);
        if self.context != Some(current) {
            self.context = None;
            self.variants.clear();
            self.device = Some(device(driver, current.1).map_err(failed)?);
            self.context = Some(current);
        }
        Ok(Some(driver))
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)] // the test's version reads it
    fn assumed_device(&self) -> Option<Device> {
        None
    }

    #[cfg(test)]
    fn assumed_device(&self) -> Option<Device> {
        self.assumed
    }

    pub(super) fn device(&self) -> Option<Device> {
        self.device
    }

    /// Forgets what was loaded: after an unclear driver error other code may load.
    pub(super) fn forget(&mut self) {
        self.variants.clear();
    }

    pub(super) fn load(
        &mut self,
        node: &NodeData,
        running: &[usize],
        told: &Facts<'_>,
        steps: &mut Steps,
    ) -> Result<bool> {
        let facts = Facts { device: self.device, ..node.facts() };
        for index in running {
            if self.variants.iter().any(|(kept, _)| kept == index) {
                continue;
            }
            let Some(variant) = node.definition.plugin().variants.get(*index) else { continue };
            let Some(kernels) = load_all(node, variant, (&facts, told), steps)? else { return Ok(false) };
            self.variants.push((*index, kernels));
        }
        Ok(true)
    }
}

fn device(driver: &Driver, device: CUdevice) -> Result<Device, DriverError> {
    let attribute = |attribute| driver.device_attribute(device, attribute).map(i64::from);
    let capability = driver.compute_capability(device)?;
    Ok(Device {
        sms: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_bytes: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        capability: i64::from(capability.major) * 10 + i64::from(capability.minor),
    })
}

pub(super) fn not_initialized(node: &NodeData, error: &DriverError) -> Error {
    Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title))
}

/// Skips variants whose guard is false on this device.
pub(super) fn preload<'a>(node: &NodeData, variants: impl Iterator<Item = &'a Variant>) -> Result<()> {
    let mut loaded = LoadedVariants::default();
    if loaded.follow_context(node)?.is_none() {
        return Ok(());
    }
    let facts = Facts { device: loaded.device(), ..node.facts() };
    let mut steps = Steps::default();
    for variant in variants {
        if !launch::is_excluded(variant.guard.as_ref(), &facts, &mut steps) {
            load_all(node, variant, (&facts, &facts), &mut steps)?;
        }
    }
    Ok(())
}

/// Loads all kernels; `None` without driver or context. Skips steps whose condition is false on this device.
fn load_all(
    node: &NodeData,
    variant: &Variant,
    (facts, known): (&Facts<'_>, &Facts<'_>),
    steps: &mut Steps,
) -> Result<Option<Kernels>> {
    let Ok(driver) = Driver::find() else { return Ok(None) };
    let mut kernels = Kernels::with_capacity(variant.steps.len());
    for step in &variant.steps {
        let is_done = !launch::is_excluded(step.when.as_ref(), facts, steps);
        kernels.push(match &step.work {
            Work::Launch(launch) if is_done => match load(node, driver, launch, known)? {
                Some(kernel) => Some(kernel),
                None => return Ok(None),
            },
            Work::Launch(_) | Work::Fill(_) => None,
        });
    }
    Ok(Some(kernels))
}

fn load(
    node: &NodeData,
    driver: &Driver,
    launch: &Launch,
    facts: &Facts<'_>,
) -> Result<Option<LoadedKernel>> {
    let failed = |error: LoadError| {
        // `NothingFits` names the device.
        let driver = Some(driver).filter(|_| !matches!(error, LoadError::NothingFits { .. }));
        let context = node_context(node, facts, driver);
        failure(Error::FAILED_INITIALIZATION, node, &error, &context, Some(&error.help()))
    };
    let candidates = candidates(launch, node.definition.code()).map_err(failed)?;
    match CodeTable::process().load(driver, &launch.kernel, &candidates).map_err(failed)? {
        Loading::Loaded(kernel) => {
            log_refused(node, launch, &kernel);
            Ok(Some(kernel))
        }
        Loading::NoContext => Ok(None),
    }
}

/// Warns once about a possibly slower replacement.
fn log_refused(node: &NodeData, launch: &Launch, kernel: &LoadedKernel) {
    if kernel.refused.is_empty() || !kernel.is_first {
        return;
    }
    let refused: Vec<String> = kernel.refused.iter().map(ToString::to_string).collect();
    let (name, target, refused) = (&launch.kernel, kernel.target, refused.join("; "));
    let text = format_args!("`{name}` runs the code for {target}, because the driver refused {refused}");
    node.log(Severity::WARNING, text);
}
