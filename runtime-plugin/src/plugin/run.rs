//! What TensorRT's runtime asks: shapes have changed, queue the work.

use std::ffi::c_void;

use cubinder_bundle::{DataType, Launch, Variant, expr};
use trt_abi::{Dims, Error, PluginTensorDesc};

use super::NodeData;
use super::environment::{
    NodeEnvironment, check_ranks, check_requirements, describe, impossible_rank, shape_text,
};
use crate::code::{CodeTable, LoadedKernel, Loading, candidates};
use crate::driver::Driver;
use crate::driver::sys::CUstream;
use crate::launch::{LaunchError, LaunchRecord};

/// What an object keeps from one enqueue to the next. TensorRT-RTX announces shapes before every enqueue, also when they
/// are the same, so the shapes are kept to be compared.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Of the inputs, then the outputs.
    shapes: Vec<(Dims, trt_abi::DataType)>,
    tactic: i32,
    state: State,
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
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<(), Error> {
        if matches!(self.state, State::Ready { .. }) && self.same(tactic, inputs, outputs) {
            return Ok(());
        }
        self.state = State::Nothing;
        self.tactic = tactic;
        self.shapes.clear();
        self.shapes.extend(inputs.iter().chain(outputs).map(|tensor| (tensor.dims, tensor.data_type)));
        self.state = self.prepare(node)?;
        Ok(())
    }

    #[inline]
    fn same(&self, tactic: i32, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> bool {
        self.tactic == tactic
            && self.shapes.len() == inputs.len() + outputs.len()
            && self.shapes.iter().zip(inputs.iter().chain(outputs)).all(|((dims, ty), tensor)| {
                *ty == tensor.data_type && dims.as_slice() == tensor.dims.as_slice()
            })
    }

    /// Queues the launches of the shapes that were announced last.
    ///
    /// # Safety
    /// `inputs` and `outputs` are the device addresses of the tensors of those shapes, valid until the work has run;
    /// `stream` is a live stream of the current context, or null.
    #[inline]
    pub(super) unsafe fn enqueue(
        &mut self,
        node: &NodeData,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        stream: *mut c_void,
    ) -> Result<(), Error> {
        if !matches!(self.state, State::Ready { .. }) {
            self.prepare_late(node)?;
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

    /// The driver or the context may be there by now; if they are not, this is where the user is told.
    #[cold]
    fn prepare_late(&mut self, node: &NodeData) -> Result<(), Error> {
        if matches!(self.state, State::Nothing) {
            return Err(Error::new(
                Error::INVALID_STATE,
                format!("{}: enqueue without shapes, or with shapes that were refused", node.title),
            ));
        }
        self.state = self.prepare(node)?;
        if matches!(self.state, State::Ready { .. }) {
            return Ok(());
        }
        let why = match Driver::find() {
            Ok(_) => "the calling thread has no current CUDA context".to_owned(),
            Err(missing) => missing.to_string(),
        };
        Err(Error::new(Error::FAILED_INITIALIZATION, format!("{}: {why}", node.title)))
    }

    /// Checks the shapes, loads the kernels and evaluates the launches.
    fn prepare(&self, node: &NodeData) -> Result<State, Error> {
        let shapes: Vec<&[i64]> =
            self.shapes.iter().map(|(dims, _)| extents(node, dims)).collect::<Result<_, _>>()?;
        let plugin = node.definition.plugin();
        let environment = NodeEnvironment { attributes: &node.attributes, ranks: &[], shapes: &shapes };
        check_shapes(node, &environment)?;
        let variant = self.variant(node)?;
        let invalid = |error: Box<LaunchError>| Error::invalid(format!("{}: {error}", node.title));
        let Some((driver, kernels)) = load_all(node, variant)? else {
            let mut launches = variant.launches.iter();
            launches
                .try_for_each(|launch| LaunchRecord::check(plugin, launch, &environment))
                .map_err(invalid)?;
            return Ok(State::Waiting);
        };
        let mut records = Vec::with_capacity(kernels.len());
        for (launch, kernel) in variant.launches.iter().zip(&kernels) {
            let record = LaunchRecord::evaluate(plugin, launch, kernel, &environment).map_err(invalid)?;
            CodeTable::process().allow_shared(driver, kernel, record.shared_bytes()).map_err(|error| {
                Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title))
            })?;
            records.push(record);
        }
        Ok(State::Ready { driver, records })
    }

    /// The variant that TensorRT chose, or the first that takes the types.
    fn variant<'a>(&self, node: &'a NodeData) -> Result<&'a Variant, Error> {
        let types: Option<Vec<DataType>> =
            self.shapes.iter().map(|(_, ty)| DataType::from_tensorrt(ty.0)).collect();
        let types = types.unwrap_or_default();
        let mut variants = node.definition.plugin().variants.iter();
        variants
            .find(|variant| variant.types == types && (self.tactic == 0 || variant.id == self.tactic))
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

/// Holds the shapes against what the plugin takes and gives. A kernel that was launched for other shapes would write
/// somewhere else.
fn check_shapes(node: &NodeData, environment: &NodeEnvironment<'_>) -> Result<(), Error> {
    let plugin = node.definition.plugin();
    let shapes = environment.shapes;
    if shapes.len() != plugin.tensor_count() {
        return Err(Error::invalid(format!(
            "{}: the node has {} tensors, the plugin has {}",
            node.title,
            shapes.len(),
            plugin.tensor_count()
        )));
    }
    check_ranks(node, shapes.iter().map(|shape| shape.len()))?;
    check_requirements(node, Some(environment))?;
    for (output, found) in plugin.outputs.iter().zip(&shapes[plugin.inputs.len()..]) {
        let wrong = |what: String| {
            let facts = describe(node, environment);
            Error::invalid(format!("{}: the shape of `{}`: {what}{facts}", node.title, output.name))
        };
        let expected =
            expr::evaluate(&output.shape, environment).map_err(|error| wrong(error.to_string()))?;
        if expected.as_ints().as_deref() != Some(*found) {
            return Err(wrong(format!("found {}, expected {expected}", shape_text(found))));
        }
    }
    Ok(())
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
        Loading::Loaded(kernel) => Ok(Some(kernel)),
        Loading::NoContext => Ok(None),
    }
}
