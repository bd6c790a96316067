//! What TensorRT's runtime asks: shapes have changed, queue the work.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cubinder_bundle::launch::{
    self, Choice, Decided, Doing, Facts, Steps, Takes, describe, is_automatic, output_shapes,
    rules_of_shapes, shape_text,
};
use cubinder_bundle::{DataType, Format, Work};
use trt_abi::{Dims, Error, PluginTensorDesc, Severity, TensorFormat, logger};

use super::loaded::Loaded;
use super::node::NodeData;
use super::{profile, variants};
use crate::code::CodeTable;
use crate::driver::sys::CUstream;
use crate::driver::{Driver, DriverError};
use crate::launch::{Addresses, AliasRecord, EnqueueError, LaunchError, LaunchRecord, StepRecord, takes};

/// What an object keeps from one enqueue to the next. TensorRT-RTX announces shapes before every enqueue, also when they
/// are the same, so the shapes are kept to be compared.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Of the inputs, then the outputs, as they were announced.
    shapes: Vec<Announced>,
    built: Built,
    tactic: i32,
    state: State,
    loaded: Loaded,
    said: Said,
}

/// What the log was told, which is told once.
#[derive(Debug, Default)]
struct Said {
    /// The variant that runs in place of the one that was chosen.
    replaced_by: Option<usize>,
    /// That a guard has no value.
    without_value: bool,
    /// That an output does not share the memory that it should.
    copied: bool,
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

/// What the build has settled.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// The ranks of the inputs when the engine was built, where that is known.
    pub(super) input_ranks: Option<Arc<[u8]>>,
    /// The workspace that the engine reserves, bytes, where that is known.
    pub(super) workspace_bytes: Option<u64>,
}

#[derive(Debug, Default)]
enum State {
    /// No shapes are known, or those that were announced were refused.
    #[default]
    Nothing,
    /// Shapes are known, and there is no driver or no current context yet.
    Waiting,
    /// Work can be queued.
    Ready(Ready),
}

/// Everything that an enqueue needs.
#[derive(Debug)]
struct Ready {
    driver: &'static Driver,
    /// The steps of the variant that runs; of all candidates, one after the other, where there is a choice.
    records: Vec<StepRecord>,
    /// The outputs that share an input's memory.
    aliases: Vec<AliasRecord>,
    /// The workspace that any of the candidates needs.
    workspace_bytes: u64,
    choice: Option<Box<Candidates>>,
}

/// Variants of which one runs, depending on the tensors' addresses.
#[derive(Debug)]
struct Candidates {
    choice: Choice,
    /// How many of the tensors are inputs.
    inputs: usize,
    /// Where each one's steps lie among the records.
    records: Vec<Range<usize>>,
}

impl Candidates {
    /// The steps of the one that runs; none where no guard holds.
    #[inline]
    fn pick<'a>(&self, records: &'a [StepRecord], at: &Addresses<'_>) -> Option<&'a [StepRecord]> {
        let address = |tensor: usize| match tensor.checked_sub(self.inputs) {
            None => at.inputs.get(tensor).map(|address| address.addr() as u64),
            Some(output) => at.outputs.get(output).map(|address| address.addr() as u64),
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
        built: &dyn Fn() -> Built,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<(), Error> {
        if matches!(self.state, State::Ready(_)) && self.tactic == tactic && self.same(inputs, outputs) {
            return Ok(());
        }
        self.state = State::Nothing;
        self.shapes.clear();
        let announced = |tensor: &PluginTensorDesc| (tensor.dims, tensor.data_type, tensor.format);
        self.shapes.extend(inputs.iter().chain(outputs).map(announced));
        self.built = built();
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

    /// Queues the steps for the shapes that were announced last, with the tactic that was set last.
    ///
    /// # Safety
    /// `at` holds the device addresses of the tensors of those shapes and of the workspace that the engine reserves, valid until the
    /// work has run; `stream` is a live stream of the current context, or null.
    #[inline]
    pub(super) unsafe fn enqueue(
        &mut self,
        node: &NodeData,
        tactic: i32,
        at: &Addresses<'_>,
        stream: *mut c_void,
    ) -> Result<(), Error> {
        if !matches!(self.state, State::Ready(_)) || self.tactic != tactic {
            self.prepare_late(node, tactic)?;
        }
        let State::Ready(ready) = &self.state else {
            return Err(Error::internal(format!("{}: nothing is ready to be launched", node.title)));
        };
        let running = match &ready.choice {
            None => Some(ready.records.as_slice()),
            Some(candidates) => candidates.pick(&ready.records, at),
        };
        let Some(running) = running else { return Err(self.none_holds(node, at)) };
        if ready.workspace_bytes != 0 && at.workspace.is_null() {
            return Err(no_workspace(node, ready.workspace_bytes));
        }
        for alias in &ready.aliases {
            // SAFETY: the caller's promises; tensors that TensorRT binds are the same memory or do not overlap.
            let copied = unsafe { alias.enqueue(ready.driver, at, CUstream(stream)) };
            if copied.map_err(|error| failed(node, &error))? && !self.said.copied {
                self.said.copied = true;
                say_copied(node, alias.name());
            }
        }
        for record in running {
            // SAFETY: the caller's promises; the kernels stay loaded until the library's teardown, and `driver` loaded
            // them. The workspace was compared with what is reserved when the shapes changed.
            unsafe { record.enqueue(ready.driver, at, CUstream(stream)) }
                .map_err(|error| failed(node, &error))?;
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
        if matches!(self.state, State::Ready(_)) {
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
        let shapes = true_shapes(node, self.built.input_ranks.as_deref(), &announced, &mut steps)?;
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let order = in_order(node, &self.shapes, tactic)?;
        let decided = launch::decide(plugin, &order, &facts, &mut steps);
        let decided = decided.map_err(|unmet| node.invalid(unmet))?;
        self.said.tell(node, tactic, order.first().copied(), &decided, &facts);
        let made = make_ready(&mut self.loaded, node, decided, &facts, &mut steps)?;
        if let Some(ready) = &made {
            check_workspace(node, ready.workspace_bytes, self.built.workspace_bytes, &facts)?;
        }
        self.state = made.map_or(State::Waiting, State::Ready);
        Ok(())
    }

    /// What an enqueue with these addresses would say where no variant may run, on a machine without a driver too.
    #[cfg(test)]
    pub(super) fn none_runs(&self, node: &NodeData, at: &Addresses<'_>) -> Option<Error> {
        let plugin = node.definition.plugin();
        let mut steps = Steps::default();
        let announced = announced(node, &self.shapes).unwrap();
        let shapes = true_shapes(node, self.built.input_ranks.as_deref(), &announced, &mut steps).unwrap();
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let order = in_order(node, &self.shapes, self.tactic).unwrap();
        let choice = launch::decide(plugin, &order, &facts, &mut steps).unwrap().choice?;
        let records = vec![0..0; order.len()];
        let candidates = Candidates { choice, inputs: plugin.inputs.len(), records };
        candidates.pick(&[], at).is_none().then(|| self.none_holds(node, at))
    }

    /// The error for addresses for which no variant may run: what was decided is worked out again, to be told.
    #[cold]
    fn none_holds(&self, node: &NodeData, at: &Addresses<'_>) -> Error {
        let inputs = at.inputs.iter().map(|address| address.addr() as u64);
        let outputs = at.outputs.iter().map(|address| address.addr() as u64);
        let addresses: Vec<u64> = inputs.chain(outputs).collect();
        let told = || {
            let plugin = node.definition.plugin();
            let announced = announced(node, &self.shapes)?;
            let shapes =
                true_shapes(node, self.built.input_ranks.as_deref(), &announced, &mut Steps::default())?;
            let facts = Facts { shapes: &shapes, alignments: &addresses, ..node.facts() };
            let order = in_order(node, &self.shapes, self.tactic)?;
            Ok(node.invalid(launch::none_holds(plugin, &order, &facts)))
        };
        told().unwrap_or_else(|error: Error| error)
    }
}

fn failed(node: &NodeData, error: &EnqueueError) -> Error {
    Error::new(Error::FAILED_EXECUTION, format!("{}: {error}", node.title))
}

#[cold]
fn no_workspace(node: &NodeData, needed: u64) -> Error {
    node.invalid(format_args!("enqueue without a workspace, of which {needed} bytes are needed"))
}

/// The workspace that the engine reserves is what was bounded when it was built, over all shapes that it was built for.
fn check_workspace(
    node: &NodeData,
    needed: u64,
    reserved: Option<u64>,
    facts: &Facts<'_>,
) -> Result<(), Error> {
    if needed <= reserved.unwrap_or(0) {
        return Ok(());
    }
    let reserved = match reserved {
        Some(reserved) => format!("{reserved} bytes are reserved"),
        None => "nothing says that any is reserved".to_owned(),
    };
    Err(node.invalid(format_args!(
        "these shapes need {needed} bytes of workspace, and {reserved}; build the engine again, with a profile that has these shapes{}",
        describe(node.definition.plugin(), facts)
    )))
}

/// Says, where somebody asked to be told everything, that a copy is made that sharing memory would save.
#[cold]
fn say_copied(node: &NodeData, output: &str) {
    logger::log(
        Severity::VERBOSE,
        &format!(
            "cubinder: {}: the output `{output}` is bound to other memory than the input that it shares memory with, so the input is \
             copied to it first; bind both to the same memory to save that",
            node.title
        ),
    );
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

/// What an enqueue needs, for the variants with these indices; `None` where there is no driver or no context yet: then they are checked
/// as far as they can be.
fn make_ready(
    loaded: &mut Loaded,
    node: &NodeData,
    decided: Decided,
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<Option<Ready>, Error> {
    let plugin = node.definition.plugin();
    let invalid = |error: Box<LaunchError>| node.invalid(error);
    let running = decided.candidates.iter().filter_map(|index| Some((*index, plugin.variants.get(*index)?)));
    let Some(driver) = loaded.load(node, &decided.candidates)? else {
        // On a machine without a GPU. What only the kernel and the device decide is left to be found when they are there.
        for (_, variant) in running {
            launch::sequence(plugin, variant, |_| Takes::ANYTHING, facts, steps).map_err(invalid)?;
        }
        return Ok(None);
    };
    let failed =
        |error: DriverError| Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title));
    let mut ready =
        Ready { driver, records: Vec::new(), aliases: Vec::new(), workspace_bytes: 0, choice: None };
    let mut places = Vec::new();
    for (index, variant) in running {
        let kernels = loaded.kernels(index);
        let of_step = |step: usize| {
            let before = variant.steps.iter().take(step).filter(|step| matches!(step.work, Work::Launch(_)));
            kernels.get(before.count())
        };
        let takes = |step: usize| match variant.launch(step).and_then(|_| of_step(step)) {
            Some(kernel) => takes(kernel),
            None => Takes::ANYTHING,
        };
        let sequence = launch::sequence(plugin, variant, takes, facts, steps).map_err(invalid)?;
        for (step, doing) in sequence.steps.iter().enumerate() {
            if let (Doing::Launch(numbers), Some(kernel)) = (doing, of_step(step)) {
                CodeTable::process().allow_shared(driver, kernel, numbers.shared_bytes).map_err(failed)?;
            }
        }
        let start = ready.records.len();
        ready.records.extend(StepRecord::all(plugin, variant, kernels, &sequence));
        places.push(start..ready.records.len());
        for record in ready.records.iter().skip(start).filter_map(StepRecord::launch) {
            check_at_once(node, loaded, driver, record, facts)?;
        }
        ready.workspace_bytes = ready.workspace_bytes.max(sequence.workspace_bytes);
        // The candidates are for the same tensors.
        let aliases = AliasRecord::all(plugin, variant, |tensor| facts.shapes.get(tensor).copied());
        ready.aliases =
            aliases.ok_or_else(|| node.invalid("the size of a tensor in bytes is beyond 64 bits"))?;
    }
    ready.choice = decided
        .choice
        .map(|choice| Box::new(Candidates { choice, inputs: plugin.inputs.len(), records: places }));
    Ok(Some(ready))
}

/// All blocks of a cooperative launch run at once, or the kernel would wait for ever for those that do not.
fn check_at_once(
    node: &NodeData,
    loaded: &Loaded,
    driver: &Driver,
    record: &LaunchRecord,
    facts: &Facts<'_>,
) -> Result<(), Error> {
    if !record.is_cooperative() {
        return Ok(());
    }
    let multiprocessors = loaded.multiprocessors(driver);
    let most = multiprocessors.and_then(|count| record.blocks_at_once(driver, count));
    let most =
        most.map_err(|error| Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title)))?;
    if record.blocks() <= most {
        return Ok(());
    }
    let plugin = node.definition.plugin();
    Err(node.invalid(launch::too_many_at_once(plugin, record.kernel_name(), facts, record.blocks(), most)))
}
