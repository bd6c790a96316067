//! What TensorRT's runtime asks: shapes have changed, queue the work.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cubinder_bundle::launch::{
    self, Choice, Decided, Facts, Steps, Takes, describe, is_automatic, output_shapes, rules_of_shapes,
    shape_text,
};
use cubinder_bundle::{DataType, Format, Launch, Variant};
use trt_abi::{Dims, Error, PluginTensorDesc, Severity, TensorFormat, logger};

use super::node::NodeData;
use super::{profile, variants};
use crate::code::{CodeTable, LoadedKernel, Loading, candidates};
use crate::driver::Driver;
use crate::driver::sys::{CUcontext, CUstream};
use crate::launch::{LaunchError, LaunchRecord};

/// What an object keeps from one enqueue to the next. TensorRT-RTX announces shapes before every enqueue, also when they
/// are the same, so the shapes are kept to be compared.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Of the inputs, then the outputs, as they were announced.
    shapes: Vec<Announced>,
    /// The ranks of the inputs when the engine was built, where that is known.
    input_ranks: Option<Arc<[u8]>>,
    tactic: i32,
    state: State,
    loaded: Loaded,
    said: Said,
}

/// The kernels of the variants that were used last.
#[derive(Debug, Default)]
struct Loaded {
    /// What they were loaded into.
    context: Option<CUcontext>,
    /// Indices of variants in the plugin, each with one kernel for each of its launches.
    variants: Vec<(usize, Vec<LoadedKernel>)>,
}

/// What the log was told, which is told once.
#[derive(Debug, Default)]
struct Said {
    /// The variant that runs in place of the one that was chosen.
    replaced_by: Option<usize>,
    /// That a guard has no value.
    without_value: bool,
}

impl Said {
    /// Tells what is new about the choice among variants of which `first` is asked first.
    fn tell(
        &mut self,
        node: &NodeData,
        tactic: i32,
        first: Option<usize>,
        decided: &Decided,
        facts: &Facts<'_>,
    ) {
        if !self.without_value && !decided.without_value.is_empty() {
            self.without_value = true;
            variants::say_without_value(node, decided, facts);
        }
        let is_replaced = |running: &usize| Some(*running) != first && !is_automatic(tactic);
        let replaced_by = decided.candidates.first().copied().filter(is_replaced);
        if let (Some(running), Some(chosen)) = (replaced_by, first)
            && self.replaced_by != replaced_by
        {
            variants::say_replaced(node, chosen, running, facts);
        }
        self.replaced_by = replaced_by;
    }
}

#[derive(Debug, Default)]
enum State {
    /// No shapes are known, or those that were announced were refused.
    #[default]
    Nothing,
    /// Shapes are known, and there is no driver or no current context yet.
    Waiting,
    /// Everything that an enqueue needs.
    Ready {
        driver: &'static Driver,
        /// The launches of the variant that runs; of all candidates, one after the other, where there is a choice.
        records: Vec<LaunchRecord>,
        choice: Option<Box<Candidates>>,
    },
}

/// Variants of which one runs, depending on the tensors' addresses.
#[derive(Debug)]
struct Candidates {
    choice: Choice,
    /// How many of the tensors are inputs.
    inputs: usize,
    /// Where each one's launches lie among the records.
    records: Vec<Range<usize>>,
}

impl Candidates {
    /// The launches of the one that runs; none where no guard holds.
    #[inline]
    fn pick<'a>(
        &self,
        records: &'a [LaunchRecord],
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
    ) -> Option<&'a [LaunchRecord]> {
        let address = |tensor: usize| match tensor.checked_sub(self.inputs) {
            None => inputs.get(tensor).map(|address| address.addr() as u64),
            Some(output) => outputs.get(output).map(|address| address.addr() as u64),
        };
        let range = self.records.get(self.choice.pick(address)?)?;
        records.get(range.clone())
    }
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
        let announced = |tensor: &PluginTensorDesc| (tensor.dims, tensor.data_type, tensor.format);
        self.shapes.extend(inputs.iter().chain(outputs).map(announced));
        self.input_ranks = input_ranks();
        self.prepare(node, tactic)
    }

    #[inline]
    fn same(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> bool {
        self.shapes.len() == inputs.len() + outputs.len()
            && self.shapes.iter().zip(inputs.iter().chain(outputs)).all(|((dims, ty, format), tensor)| {
                *ty == tensor.data_type
                    && *format == tensor.format
                    && dims.as_slice() == tensor.dims.as_slice()
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
        let State::Ready { driver, records, choice } = &self.state else {
            return Err(Error::internal(format!("{}: nothing is ready to be launched", node.title)));
        };
        let running = match choice {
            None => Some(records.as_slice()),
            Some(candidates) => candidates.pick(records, inputs, outputs),
        };
        let Some(running) = running else { return Err(self.none_holds(node, inputs, outputs)) };
        for record in running {
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

    /// Checks the shapes, chooses the variants that may run, loads their kernels and evaluates their launches. After an error
    /// nothing is ready.
    fn prepare(&mut self, node: &NodeData, tactic: i32) -> Result<(), Error> {
        self.state = State::Nothing;
        self.tactic = tactic;
        let plugin = node.definition.plugin();
        let mut steps = Steps::default();
        let announced = announced(node, &self.shapes)?;
        let shapes = true_shapes(node, self.input_ranks.as_deref(), &announced, &mut steps)?;
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let order = in_order(node, &self.shapes, tactic)?;
        let decided = launch::decide(plugin, &order, &facts, &mut steps);
        let decided = decided.map_err(|unmet| node.invalid(unmet))?;
        self.said.tell(node, tactic, order.first().copied(), &decided, &facts);
        let made = make_records(&mut self.loaded, node, &decided.candidates, &facts, &mut steps)?;
        self.state = match (made, decided.choice) {
            (None, _) => State::Waiting,
            (Some((driver, records, _)), None) => State::Ready { driver, records, choice: None },
            (Some((driver, records, places)), Some(choice)) => {
                let candidates = Candidates { choice, inputs: plugin.inputs.len(), records: places };
                State::Ready { driver, records, choice: Some(Box::new(candidates)) }
            }
        };
        Ok(())
    }

    /// What an enqueue with these addresses would say where no variant may run, on a machine without a driver too.
    #[cfg(test)]
    pub(super) fn none_runs(
        &self,
        node: &NodeData,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
    ) -> Option<Error> {
        let plugin = node.definition.plugin();
        let mut steps = Steps::default();
        let announced = announced(node, &self.shapes).unwrap();
        let shapes = true_shapes(node, self.input_ranks.as_deref(), &announced, &mut steps).unwrap();
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let order = in_order(node, &self.shapes, self.tactic).unwrap();
        let choice = launch::decide(plugin, &order, &facts, &mut steps).unwrap().choice?;
        let records = vec![0..0; order.len()];
        let candidates = Candidates { choice, inputs: plugin.inputs.len(), records };
        let picked = candidates.pick(&[], inputs, outputs);
        picked.is_none().then(|| self.none_holds(node, inputs, outputs))
    }

    /// The error for addresses for which no variant may run: what was decided is worked out again, to be told.
    #[cold]
    fn none_holds(&self, node: &NodeData, inputs: &[*const c_void], outputs: &[*mut c_void]) -> Error {
        let inputs = inputs.iter().map(|address| address.addr() as u64);
        let addresses: Vec<u64> = inputs.chain(outputs.iter().map(|address| address.addr() as u64)).collect();
        let told = || {
            let plugin = node.definition.plugin();
            let announced = announced(node, &self.shapes)?;
            let shapes = true_shapes(node, self.input_ranks.as_deref(), &announced, &mut Steps::default())?;
            let facts = Facts { shapes: &shapes, alignments: &addresses, ..node.facts() };
            let order = in_order(node, &self.shapes, self.tactic)?;
            Ok(node.invalid(launch::none_holds(plugin, &order, &facts)))
        };
        told().unwrap_or_else(|error: Error| error)
    }
}

type Announced = (Dims, trt_abi::DataType, TensorFormat);

fn announced<'a>(node: &NodeData, tensors: &'a [Announced]) -> Result<Vec<&'a [i64]>, Error> {
    tensors.iter().map(|(dims, ..)| profile::announced(node, dims)).collect()
}

/// The variants that serve tensors of the announced types and formats, in order.
fn in_order(node: &NodeData, tensors: &[Announced], tactic: i32) -> Result<Vec<usize>, Error> {
    // Too few where one is of no plugin.
    let types: Vec<DataType> =
        tensors.iter().filter_map(|(_, ty, _)| DataType::from_tensorrt(ty.0)).collect();
    let formats: Vec<Format> =
        tensors.iter().filter_map(|(.., format)| Format::from_tensorrt(format.0)).collect();
    let order = launch::in_order(node.definition.plugin(), &node.signature(&types, &formats), tactic);
    order.map_err(|unmet| node.invalid(unmet))
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
    steps: &mut Steps,
) -> Result<Vec<&'a [i64]>, Error> {
    let plugin = node.definition.plugin();
    if announced.len() != plugin.tensor_count() {
        return Err(node.invalid(format_args!(
            "the node has {} tensors, the plugin has {}",
            announced.len(),
            plugin.tensor_count()
        )));
    }
    let (inputs, outputs) = announced.split_at(plugin.inputs.len());
    let mut shapes = Vec::with_capacity(announced.len());
    for (index, (input, shape)) in plugin.inputs.iter().zip(inputs).enumerate() {
        let is_scalar = profile::was_scalar(input, index, input_ranks);
        shapes.push(if is_scalar && **shape == [1] { &[] } else { *shape });
    }
    let facts = Facts { shapes: &shapes, ..node.facts() };
    launch::check(plugin, rules_of_shapes(plugin), &facts, steps).map_err(|unmet| node.invalid(unmet))?;
    let expected = output_shapes(plugin, &facts, steps).map_err(|unmet| node.invalid(unmet))?;
    let mut true_outputs: Vec<&[i64]> = Vec::with_capacity(outputs.len());
    for ((output, expected), found) in plugin.outputs.iter().zip(&expected).zip(outputs) {
        true_outputs.push(match expected.as_slice() {
            [] if **found == [1] => &[],
            expected if expected == *found => *found,
            expected => {
                let (found, expected) = (shape_text(found), shape_text(expected));
                return Err(node.invalid(format_args!(
                    "the shape of `{}`: found {found}, expected {expected}{}",
                    output.name,
                    describe(plugin, &facts)
                )));
            }
        });
    }
    shapes.extend(true_outputs);
    Ok(shapes)
}

/// The launches of the variants with these indices, evaluated, and where those of each lie; `None` where there is no driver or no
/// context yet: then they are checked as far as they can be.
type Made = (&'static Driver, Vec<LaunchRecord>, Vec<Range<usize>>);

fn make_records(
    loaded: &mut Loaded,
    node: &NodeData,
    running: &[usize],
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Option<Made>, Error> {
    let plugin = node.definition.plugin();
    let invalid = |error: Box<LaunchError>| node.invalid(error);
    let Some(driver) = load_again(loaded, node, running)? else {
        // On a machine without a GPU. What only the kernel and the device decide is left to be found when they are there.
        for launch in running.iter().flat_map(|index| plugin.variants[*index].launches()) {
            launch::evaluate(plugin, launch, &Takes::ANYTHING, facts, steps).map_err(invalid)?;
        }
        return Ok(None);
    };
    let (mut records, mut places) = (Vec::new(), Vec::new());
    for index in running {
        let start = records.len();
        for (launch, kernel) in plugin.variants[*index].launches().zip(loaded.kernels(*index)) {
            let record = LaunchRecord::evaluate(plugin, launch, kernel, facts, steps).map_err(invalid)?;
            CodeTable::process().allow_shared(driver, kernel, record.shared_bytes()).map_err(|error| {
                Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title))
            })?;
            records.push(record);
        }
        places.push(start..records.len());
    }
    Ok(Some((driver, records, places)))
}

impl Loaded {
    fn kernels(&self, variant: usize) -> &[LoadedKernel] {
        let found = self.variants.iter().find(|(index, _)| *index == variant);
        found.map_or(&[], |(_, kernels)| kernels.as_slice())
    }
}

/// Has the kernels of the variants with these indices in `kept`, which keeps what it has where the context is the same. `None`
/// where there is no driver or the thread has no current context.
fn load_again(
    kept: &mut Loaded,
    node: &NodeData,
    running: &[usize],
) -> Result<Option<&'static Driver>, Error> {
    let Ok(driver) = Driver::find() else { return Ok(None) };
    let current = driver
        .current_context()
        .map_err(|error| Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title)))?;
    let Some(context) = current else { return Ok(None) };
    if kept.context != Some(context) {
        *kept = Loaded { context: Some(context), variants: Vec::new() };
    }
    for index in running {
        if kept.variants.iter().any(|(kept, _)| kept == index) {
            continue;
        }
        let Some(variant) = node.definition.plugin().variants.get(*index) else { continue };
        let Some((_, kernels)) = load_all(node, variant)? else { return Ok(None) };
        kept.variants.push((*index, kernels));
    }
    Ok(Some(driver))
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
    let kernels = variant.launches().map(|launch| load(node, driver, launch));
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
