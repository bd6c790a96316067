use std::sync::Arc;

use cubinder_launch as launch;
use cubinder_launch::{Device, Facts, Steps};
use cubinder_model::{Launch, Variant, Work};
use trt_abi::{Error, Result, Severity};

use super::context::{Context, Kernels, VariantKernels};
use super::failure::{failure, node_context};
use super::node::NamedNode;
use super::state::NodeState;
use crate::code::{CodeTable, LoadError, LoadedKernel, Loading, candidates};
use crate::driver::sys::{
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CUdevice,
};
use crate::driver::{Driver, DriverError};

impl Context {
    /// `None` without driver or context.
    pub(super) fn current(node: &NamedNode) -> Result<Option<(&'static Driver, Arc<Context>)>> {
        let Ok(driver) = Driver::find() else { return Ok(None) };
        let failed = |error| not_initialized(node, &error);
        let Some(id) = driver.current_context_id().map_err(failed)? else { return Ok(None) };
        if let Some(context) = node.contexts.find(id) {
            return Ok(Some((driver, context)));
        }
        let current = driver.current_device().and_then(|current| device(driver, current));
        Ok(Some((driver, node.contexts.add(id, current.map_err(failed)?))))
    }

    /// Returns a variant's kernels, loaded if necessary; `None` without a context. Nodes share only kernels that later
    /// loads also return; replacements after unclear errors go to `own`. Errors contain `known`.
    pub(super) fn kernels(
        &self,
        node: &NamedNode,
        driver: &'static Driver,
        (index, variant): (usize, &Variant),
        known: &Facts<'_>,
        steps: &mut Steps,
        own: &mut VariantKernels,
    ) -> Result<Option<Arc<Kernels>>> {
        let loaded = self.cache().kernels.get(&index).or_else(|| own.get(&index)).cloned();
        if loaded.is_some() {
            return Ok(loaded);
        }
        let facts = Facts { device: Some(self.device), ..node.facts() };
        let Some(kernels) = load_all(node, driver, variant, (&facts, known), steps)? else { return Ok(None) };
        let mut cache = self.cache();
        let loaded = if are_settled(&kernels) { &mut cache.kernels } else { own };
        Ok(Some(Arc::clone(loaded.entry(index).or_insert_with(|| Arc::new(kernels)))))
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

pub(super) fn not_initialized(node: &NamedNode, error: &DriverError) -> Error {
    Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title()))
}

/// Loads the reachable variants in the current context, once for equal nodes, unless a guard is false.
pub(super) fn preload(state: &NodeState) -> Result<()> {
    let node = &state.node;
    let Some((driver, context)) = Context::current(node)? else { return Ok(()) };
    let kinds = state.built().kinds;
    if context.cache().preloaded.contains(&kinds) {
        return Ok(());
    }
    let facts = Facts { device: Some(context.device), ..node.facts() };
    let mut steps = Steps::default();
    let (mut is_loaded, mut own) = (true, VariantKernels::new());
    for (index, variant) in node.reachable_rows(kinds.and_then(|index| node.kinds.get(index))) {
        if !launch::is_excluded(variant.guard.as_ref(), &facts, &mut steps) {
            let kernels = context.kernels(node, driver, (index, variant), &facts, &mut steps, &mut own)?;
            is_loaded &= kernels.is_some();
        }
    }
    if is_loaded && own.is_empty() {
        context.cache().preloaded.push(kinds);
    }
    Ok(())
}

/// Returns whether later loads get the same kernels.
fn are_settled(kernels: &Kernels) -> bool {
    kernels.iter().flatten().all(|kernel| kernel.is_settled)
}

/// Loads all kernels; `None` without a context. Skips steps with a false condition.
fn load_all(
    node: &NamedNode,
    driver: &'static Driver,
    variant: &Variant,
    (facts, known): (&Facts<'_>, &Facts<'_>),
    steps: &mut Steps,
) -> Result<Option<Kernels>> {
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
    node: &NamedNode,
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

/// Warns once: it may be slower.
fn log_refused(node: &NamedNode, launch: &Launch, kernel: &LoadedKernel) {
    if kernel.refused.is_empty() || !kernel.is_first {
        return;
    }
    let refused: Vec<String> = kernel.refused.iter().map(ToString::to_string).collect();
    let (name, target, refused) = (&launch.kernel, kernel.target, refused.join("; "));
    let text = format_args!("`{name}` runs the code for {target}, because the driver refused {refused}");
    node.log(Severity::WARNING, text);
}
