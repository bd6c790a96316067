//! What TensorRT's runtime asks: shapes have changed, queue the work.

use std::ffi::c_void;
use std::sync::Arc;

use cubinder_bundle::{DataType, Launch, Variant, expr};
use trt_abi::{Dims, Error, PluginTensorDesc, Severity, logger};

use super::NodeData;
use super::environment::{
    NodeEnvironment, check_ranks, check_requirements, describe, impossible_rank, shape_text,
};
use crate::code::{CodeTable, LoadedKernel, Loading, candidates};
use crate::driver::Driver;
use crate::driver::sys::{CUcontext, CUstream};
use crate::launch::{LaunchError, LaunchRecord};

/// What an object keeps from one enqueue to the next. TensorRT-RTX announces shapes before every enqueue, also when they
/// are the same, so the shapes are kept to be compared.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Of the inputs, then the outputs, as they were announced.
    shapes: Vec<(Dims, trt_abi::DataType)>,
    /// The ranks of the inputs when the engine was built, where that is known.
    input_ranks: Option<Arc<[u8]>>,
    tactic: i32,
    state: State,
    loaded: Option<Loaded>,
}

/// The kernels of the variant that was used last.
#[derive(Debug)]
struct Loaded {
    /// What they were loaded into.
    context: CUcontext,
    /// Index of the variant in the plugin.
    variant: usize,
    /// One for each of its launches.
    kernels: Vec<LoadedKernel>,
}

#[derive(Debug, Default)]
enum State {
    /// No shapes are known, or those that were announced were refused.
    #[default]
    Nothing,
    /// Shapes are known, and there is no driver or no current context yet.
    Waiting,
    /// Everything that an enqueue needs.
    Ready { driver: &'static Driver, records: Vec<LaunchRecord> },
}

impl Running {
    /// Takes new shapes; equal ones cost a comparison.
    pub(super) fn on_shape_change(
        &mut self,
        node: &NodeData,
        tactic: i32,
        input_ranks: &dyn Fn() -> Option<Arc<[u8]>>,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<(), Error> {
        if matches!(self.state, State::Ready { .. }) && self.tactic == tactic && self.same(inputs, outputs) {
            return Ok(());
        }
        self.state = State::Nothing;
        self.shapes.clear();
        self.shapes.extend(inputs.iter().chain(outputs).map(|tensor| (tensor.dims, tensor.data_type)));
        self.input_ranks = input_ranks();
        self.prepare(node, tactic)
    }

    #[inline]
    fn same(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> bool {
        self.shapes.len() == inputs.len() + outputs.len()
            && self.shapes.iter().zip(inputs.iter().chain(outputs)).all(|((dims, ty), tensor)| {
                *ty == tensor.data_type && dims.as_slice() == tensor.dims.as_slice()
            })
    }

    /// Queues the launches of the shapes that were announced last, with the tactic that was set last.
    ///
    /// # Safety
    /// `inputs` and `outputs` are the device addresses of the tensors of those shapes, valid until the work has run;
    /// `stream` is a live stream of the current context, or null.
    #[inline]
    pub(super) unsafe fn enqueue(
        &mut self,
        node: &NodeData,
        tactic: i32,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        stream: *mut c_void,
    ) -> Result<(), Error> {
        if !matches!(self.state, State::Ready { .. }) || self.tactic != tactic {
            self.prepare_late(node, tactic)?;
        }
        let State::Ready { driver, records } = &self.state else {
            return Err(Error::internal(format!("{}: nothing is ready to be launched", node.title)));
        };
        for record in records {
            // SAFETY: the caller's promises; the kernels stay loaded until the library's teardown, and `driver` loaded
            // them.
            unsafe { record.enqueue(driver, inputs, outputs, CUstream(stream)) }
                .map_err(|error| Error::new(Error::FAILED_EXECUTION, format!("{}: {error}", node.title)))?;
        }
        Ok(())
    }

    /// The driver or the context may be there by now, or another tactic was set; if nothing can be launched, this is where
    /// the user is told.
    #[cold]
    fn prepare_late(&mut self, node: &NodeData, tactic: i32) -> Result<(), Error> {
        if matches!(self.state, State::Nothing) {
            return Err(Error::new(
                Error::INVALID_STATE,
                format!("{}: enqueue without shapes, or with shapes that were refused", node.title),
            ));
        }
        self.prepare(node, tactic)?;
        if matches!(self.state, State::Ready { .. }) {
            return Ok(());
        }
        let why = match Driver::find() {
            Ok(_) => "the calling thread has no current CUDA context".to_owned(),
            Err(missing) => missing.to_string(),
        };
        Err(Error::new(Error::FAILED_INITIALIZATION, format!("{}: {why}", node.title)))
    }

    /// Checks the shapes, loads the kernels and evaluates the launches. After an error nothing is ready.
    fn prepare(&mut self, node: &NodeData, tactic: i32) -> Result<(), Error> {
        self.state = State::Nothing;
        self.tactic = tactic;
        let announced: Vec<&[i64]> =
            self.shapes.iter().map(|(dims, _)| extents(node, dims)).collect::<Result<_, _>>()?;
        let shapes = true_shapes(node, self.input_ranks.as_deref(), &announced)?;
        let plugin = node.definition.plugin();
        let environment = NodeEnvironment { attributes: &node.attributes, ranks: &[], shapes: &shapes };
        let (index, variant) = self.variant(node)?;
        let invalid = |error: Box<LaunchError>| Error::invalid(format!("{}: {error}", node.title));
        let Some((driver, kernels)) = load_again(&mut self.loaded, node, index, variant)? else {
            let mut launches = variant.launches.iter();
            launches
                .try_for_each(|launch| LaunchRecord::check(plugin, launch, &environment))
                .map_err(invalid)?;
            self.state = State::Waiting;
            return Ok(());
        };
        let mut records = Vec::with_capacity(kernels.len());
        for (launch, kernel) in variant.launches.iter().zip(kernels) {
            let record = LaunchRecord::evaluate(plugin, launch, kernel, &environment).map_err(invalid)?;
            CodeTable::process().allow_shared(driver, kernel, record.shared_bytes()).map_err(|error| {
                Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title))
            })?;
            records.push(record);
        }
        self.state = State::Ready { driver, records };
        Ok(())
    }

    /// The variant that TensorRT chose, or the first that takes the types, and its index in the plugin.
    fn variant<'a>(&self, node: &'a NodeData) -> Result<(usize, &'a Variant), Error> {
        let types: Option<Vec<DataType>> =
            self.shapes.iter().map(|(_, ty)| DataType::from_tensorrt(ty.0)).collect();
        let types = types.unwrap_or_default();
        let mut variants = node.definition.plugin().variants.iter().enumerate();
        variants
            .find(|(_, variant)| variant.types == types && (self.tactic == 0 || variant.id == self.tactic))
            .ok_or_else(|| node.no_variant(&types))
    }
}

/// The extents that TensorRT announced, if they can be a shape.
fn extents<'a>(node: &NodeData, dims: &'a Dims) -> Result<&'a [i64], Error> {
    let extents = dims.as_slice();
    if usize::try_from(dims.nb_dims) == Ok(extents.len()) {
        return Ok(extents);
    }
    Err(impossible_rank(node, dims.nb_dims))
}

/// The shapes as the build knew them, held against what the plugin takes and gives: a kernel that was launched for other
/// shapes would write somewhere else.
///
/// TensorRT-RTX 1.7 announces a 0-d tensor as one of shape [1]: that is undone here, for inputs by the rank that the build
/// knew, for outputs by the shape that the plugin gives.
fn true_shapes<'a>(
    node: &NodeData,
    input_ranks: Option<&[u8]>,
    announced: &[&'a [i64]],
) -> Result<Vec<&'a [i64]>, Error> {
    let plugin = node.definition.plugin();
    if announced.len() != plugin.tensor_count() {
        return Err(Error::invalid(format!(
            "{}: the node has {} tensors, the plugin has {}",
            node.title,
            announced.len(),
            plugin.tensor_count()
        )));
    }
    let (inputs, outputs) = announced.split_at(plugin.inputs.len());
    let mut shapes = Vec::with_capacity(announced.len());
    for (index, (input, shape)) in plugin.inputs.iter().zip(inputs).enumerate() {
        let is_scalar = match input_ranks.and_then(|ranks| ranks.get(index)) {
            Some(rank) => *rank == 0,
            None => input.rank_max == 0,
        };
        shapes.push(if is_scalar && **shape == [1] { &[] } else { *shape });
    }
    check_ranks(node, shapes.iter().map(|shape| shape.len()))?;
    let environment = NodeEnvironment { attributes: &node.attributes, ranks: &[], shapes: &shapes };
    check_requirements(node, Some(&environment))?;
    let mut true_outputs: Vec<&[i64]> = Vec::with_capacity(outputs.len());
    for (output, found) in plugin.outputs.iter().zip(outputs) {
        let wrong = |what: String| {
            let facts = describe(node, &environment);
            Error::invalid(format!("{}: the shape of `{}`: {what}{facts}", node.title, output.name))
        };
        let value = expr::evaluate(&output.shape, &environment).map_err(|error| wrong(error.to_string()))?;
        let expected = value.as_ints();
        true_outputs.push(match expected.as_deref() {
            Some([]) if **found == [1] => &[],
            Some(expected) if expected == *found => *found,
            _ => return Err(wrong(format!("found {}, expected {value}", shape_text(found)))),
        });
    }
    shapes.extend(true_outputs);
    Ok(shapes)
}

/// The kernels of a variant, kept from the last time where variant and context are the same.
fn load_again<'a>(
    kept: &'a mut Option<Loaded>,
    node: &NodeData,
    index: usize,
    variant: &Variant,
) -> Result<Option<(&'static Driver, &'a [LoadedKernel])>, Error> {
    let Ok(driver) = Driver::find() else { return Ok(None) };
    let current = driver
        .current_context()
        .map_err(|error| Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title)))?;
    let Some(context) = current else { return Ok(None) };
    if !kept.as_ref().is_some_and(|kept| kept.context == context && kept.variant == index) {
        *kept = None;
        let Some((_, kernels)) = load_all(node, variant)? else { return Ok(None) };
        *kept = Some(Loaded { context, variant: index, kernels });
    }
    Ok(kept.as_ref().map(|kept| (driver, kept.kernels.as_slice())))
}

/// Loads the kernels of `variants`; without a driver or a current context there is nothing to do yet.
pub(super) fn preload<'a>(
    node: &NodeData,
    mut variants: impl Iterator<Item = &'a Variant>,
) -> Result<(), Error> {
    variants.try_for_each(|variant| load_all(node, variant).map(drop))
}

/// The kernels of a variant's launches; `None` where there is no driver or the thread has no current context.
fn load_all(
    node: &NodeData,
    variant: &Variant,
) -> Result<Option<(&'static Driver, Vec<LoadedKernel>)>, Error> {
    let Ok(driver) = Driver::find() else { return Ok(None) };
    let kernels = variant.launches.iter().map(|launch| load(node, driver, launch));
    let kernels: Option<Vec<LoadedKernel>> = kernels.collect::<Result<_, _>>()?;
    Ok(kernels.map(|kernels| (driver, kernels)))
}

/// The kernel of a launch on the current device; `None` where the thread has no current context.
fn load(node: &NodeData, driver: &Driver, launch: &Launch) -> Result<Option<LoadedKernel>, Error> {
    let failed = |error: crate::code::LoadError| {
        Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title))
    };
    let candidates = candidates(launch, node.definition.code()).map_err(failed)?;
    match CodeTable::process().load(driver, &launch.kernel, &candidates).map_err(failed)? {
        Loading::Loaded(kernel) => {
            say_what_was_refused(node, launch, &kernel);
            Ok(Some(kernel))
        }
        Loading::NoContext => Ok(None),
    }
}

/// Other code than the best is taken where the driver refuses the best; it may be slower, so the user is told, once.
fn say_what_was_refused(node: &NodeData, launch: &Launch, kernel: &LoadedKernel) {
    if kernel.refused.is_empty() || !kernel.is_first {
        return;
    }
    let refused: Vec<String> = kernel.refused.iter().map(ToString::to_string).collect();
    logger::log(
        Severity::WARNING,
        &format!(
            "cubinder: {}: `{}` runs the code for {}, because the driver refused {}",
            node.title,
            launch.kernel,
            kernel.target,
            refused.join("; ")
        ),
    );
}
