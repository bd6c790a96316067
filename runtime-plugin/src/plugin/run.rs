use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cubinder_launch as launch;
use cubinder_launch::{Choice, EvaluatedStep, Facts, GuardDecision, LaunchLimits, Steps, describe};
use trt_abi::{Error, PluginTensorDesc, Result};

use super::context::{Context, Kernels, SharedAny, VariantKernels};
use super::failure::{failure, node_context};
use super::loading::not_initialized;
use super::node::{EngineFacts, NamedNode};
use super::run_log::{ChoiceLog, LogState, log_running, variant_name};
use super::tensor_descs::TensorDescs;
use crate::code::CodeTable;
use crate::driver::sys::CUstream;
use crate::driver::{Driver, DriverError, EnteredContext};
use crate::launch::{
    Addresses, AliasRecord, EnqueueError, LaunchError, LaunchRecord, Positions, StepRecord, takes,
};
use crate::nvtx;

/// Keeps the shapes: TensorRT-RTX announces them before every enqueue.
#[derive(Debug, Default)]
pub(super) struct RunState {
    descs: TensorDescs,
    built: EngineFacts,
    tactic: i32,
    state: State,
    context: Option<Arc<Context>>,
    /// Kernels in `context` that are not shared, until a failure.
    own_kernels: VariantKernels,
    ranges: Vec<nvtx::Range>,
    log: LogState,
    #[cfg(test)]
    assumed: Option<launch::Device>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    /// Waits for a driver, a context, another tactic, or room for code.
    Waiting,
    Ready(Arc<SharedLaunch>),
}

/// A launch, prepared for tensors, ranks and tactic; equal nodes share it.
#[derive(Debug)]
pub(super) struct SharedLaunch {
    descs: TensorDescs,
    input_ranks: Option<Arc<[u8]>>,
    tactic: i32,
    choice: ChoiceLog,
    launch: PreparedLaunch,
}

#[derive(Debug)]
struct PreparedLaunch {
    driver: &'static Driver,
    records: Vec<StepRecord>,
    aliases: Vec<AliasRecord>,
    workspace_bytes: u64,
    choice: Option<Box<Candidates>>,
    /// By index, with kernels and ranges of `records`.
    variants: Vec<(usize, Arc<Kernels>, Range<usize>)>,
}

impl SharedLaunch {
    fn variants(&self) -> impl Iterator<Item = (usize, &Arc<Kernels>)> {
        self.launch.variants.iter().map(|(index, kernels, _)| (*index, kernels))
    }

    fn is_for(&self, descs: &TensorDescs, input_ranks: Option<&[u8]>, tactic: i32) -> bool {
        self.tactic == tactic && self.descs == *descs && self.input_ranks.as_deref() == input_ranks
    }

    fn is_equal(&self, other: &SharedLaunch) -> bool {
        self.is_for(&other.descs, other.input_ranks.as_deref(), other.tactic)
    }
}

impl Context {
    fn find_launch(&self, matches: impl Fn(&SharedLaunch) -> bool) -> Option<Arc<SharedLaunch>> {
        let found = self.cache().find_launch(|shared| shared.downcast_ref().is_some_and(&matches));
        found?.downcast().ok()
    }

    /// Shares a launch instead of an equal one, if it uses the shared kernels.
    fn share_launch(&self, launch: &Arc<SharedLaunch>) {
        let mut cache = self.cache();
        let is_shared = |(variant, kernels): (usize, &Arc<Kernels>)| {
            cache.kernels.get(&variant).is_some_and(|shared| Arc::ptr_eq(shared, kernels))
        };
        if launch.variants().all(is_shared) {
            let is_equal = |shared: &SharedAny| shared.downcast_ref().is_some_and(|it| launch.is_equal(it));
            cache.add_launch(Arc::<SharedLaunch>::clone(launch), is_equal);
        }
    }
}

impl PreparedLaunch {
    fn running(&self) -> Vec<(usize, &[StepRecord])> {
        let steps = |range: &Range<usize>| self.records.get(range.clone()).unwrap_or_default();
        self.variants.iter().map(|(index, _, range)| (*index, steps(range))).collect()
    }
}

#[derive(Debug)]
struct Candidates {
    choice: Choice,
    positions: Positions,
    records: Vec<Range<usize>>,
}

impl Candidates {
    #[inline]
    fn pick<'a>(
        &self,
        records: &'a [StepRecord],
        addresses: &Addresses<'_>,
    ) -> Option<(usize, &'a [StepRecord])> {
        let candidate = self.choice.pick(|tensor| self.positions.address(addresses, tensor))?;
        Some((candidate, records.get(self.records.get(candidate)?.clone())?))
    }
}

impl RunState {
    /// Prepares for new shapes. Unchanged ones return early: objects stay on their first device, as in TensorRT.
    pub(super) fn on_shape_change(
        &mut self,
        node: &NamedNode,
        tactic: i32,
        built: &dyn Fn() -> EngineFacts,
        inputs: &[PluginTensorDesc],
        outputs: &[PluginTensorDesc],
    ) -> Result<()> {
        let is_ready = matches!(self.state, State::Ready(_)) && self.tactic == tactic;
        if is_ready && self.descs.is(inputs, outputs) {
            return Ok(());
        }
        self.state = State::Nothing;
        self.descs.set(inputs, outputs);
        self.built = built();
        self.state = self.prepare(node, tactic)?;
        Ok(())
    }

    /// Returns the prepared launch's workspace; fails without driver or context.
    pub(super) fn workspace_bytes(&self, node: &NamedNode) -> Result<u64> {
        match &self.state {
            State::Ready(shared) => Ok(shared.launch.workspace_bytes),
            State::Nothing | State::Waiting => Err(no_context(node)),
        }
    }

    /// # Safety
    /// `addresses` holds device addresses of the last announced tensors and of the reserved workspace, valid until the
    /// work has run; `stream` is live, or a default stream of the current context.
    #[inline]
    pub(super) unsafe fn enqueue(
        &mut self,
        node: &NamedNode,
        tactic: i32,
        addresses: &Addresses<'_>,
        stream: *mut c_void,
    ) -> Result<()> {
        // SAFETY: the caller upholds the callee's contract.
        let stream = unsafe { CUstream::from_raw(stream) };
        if !matches!(self.state, State::Ready(_)) || self.tactic != tactic {
            // SAFETY: as above.
            unsafe { self.prepare_late(node, tactic, stream) }?;
        }
        let State::Ready(shared) = &self.state else {
            return Err(Error::internal(format!("{}: no launch is prepared", node.title())));
        };
        let ready = &shared.launch;
        let running = match &ready.choice {
            None => Some((0, ready.records.as_slice())),
            Some(candidates) => candidates.pick(&ready.records, addresses),
        };
        let Some((candidate, running)) = running else { return Err(self.none_holds(node, addresses)) };
        if ready.workspace_bytes != 0 && addresses.workspace.is_null() {
            return Err(no_workspace(node, ready.workspace_bytes));
        }
        let _range = self.ranges.get(candidate).map(nvtx::Range::enter);
        let mut needs_copies = false;
        for alias in &ready.aliases {
            let needs_copy = alias.needs_copy(addresses);
            needs_copies |= needs_copy.map_err(|error| self.failed(node, ready.driver, &error))?;
        }
        // Checks all bindings before queuing any work.
        for alias in ready.aliases.iter().filter(|_| needs_copies) {
            if alias.needs_copy(addresses).is_ok_and(|needs_copy| needs_copy) {
                // SAFETY: the caller upholds the callee's contract.
                unsafe { alias.copy(ready.driver, addresses, stream) }
                    .map_err(|error| self.failed(node, ready.driver, &error))?;
                self.log.log_copy(node, alias.name());
            }
        }
        for record in running {
            // SAFETY: the caller guarantees tensors and stream; kernels stay loaded until teardown; `check_workspace`
            // succeeded.
            unsafe { record.enqueue(ready.driver, addresses, stream) }
                .map_err(|error| self.failed(node, ready.driver, &error))?;
        }
        Ok(())
    }

    /// Enters the context of `stream` if the thread has none.
    ///
    /// # Safety
    /// `stream` is live, or a default stream.
    #[cold]
    unsafe fn prepare_late(&mut self, node: &NamedNode, tactic: i32, stream: CUstream) -> Result<()> {
        if matches!(self.state, State::Nothing) {
            return Err(Error::new(
                Error::INVALID_STATE,
                format!("{}: enqueue without shapes, or with rejected shapes", node.title()),
            ));
        }
        // The next enqueue may succeed.
        self.state = State::Waiting;
        // SAFETY: the caller upholds the callee's contract.
        let enter = |driver: &'static Driver| unsafe { driver.enter_context_of(stream) };
        let entered =
            Driver::find().ok().map(enter).transpose().map_err(|error| not_initialized(node, &error))?;
        let prepared = self.prepare(node, tactic);
        let left = entered.flatten().map_or(Ok(()), EnteredContext::leave);
        self.state = prepared?;
        left.map_err(|error| not_initialized(node, &error))?;
        if matches!(self.state, State::Ready(_)) {
            return Ok(());
        }
        Err(no_context(node))
    }

    fn prepare(&mut self, node: &NamedNode, tactic: i32) -> Result<State> {
        self.tactic = tactic;
        let (driver, context) = Context::current(node)?.unzip();
        let id = |context: &Option<Arc<Context>>| context.as_ref().map(|context| context.id);
        if id(&context) != id(&self.context) {
            self.own_kernels.clear();
        }
        self.context = context;
        let shared = match self.shared() {
            Some(shared) => shared,
            None => match self.prepare_own(node, driver)? {
                Some(own) => own,
                None => return Ok(State::Waiting),
            },
        };
        self.log.follow(shared.choice);
        let variants =
            shared.variants().filter_map(|(index, _)| node.definition.plugin().variants.get(index));
        let range = |variant| nvtx::Range::new(|| format!("{} {}", node.title(), variant_name(variant)));
        self.ranges = variants.filter_map(range).collect();
        Ok(State::Ready(shared))
    }

    /// Returns a launch prepared for these shapes, unless this node must report about it.
    fn shared(&self) -> Option<Arc<SharedLaunch>> {
        let EngineFacts { input_ranks, workspace_bytes, .. } = &self.built;
        self.context.as_ref()?.find_launch(|shared| {
            shared.is_for(&self.descs, input_ranks.as_deref(), self.tactic)
                && shared.launch.workspace_bytes <= workspace_bytes.unwrap_or(0)
                && self.log.covers(shared.choice)
        })
    }

    fn device(&self) -> Option<launch::Device> {
        let device = self.context.as_ref().map(|context| context.device);
        #[cfg(test)]
        let device = device.or(self.assumed);
        device
    }

    /// `None` without driver or context, after other checks.
    fn prepare_own(
        &mut self,
        node: &NamedNode,
        driver: Option<&'static Driver>,
    ) -> Result<Option<Arc<SharedLaunch>>> {
        let tactic = self.tactic;
        let mut steps = Steps::default();
        let positions = self.descs.positions(node)?;
        let ranks = self.built.input_ranks.as_deref();
        let shapes = self.descs.shapes(node, ranks, &positions, &mut steps)?;
        let device = self.device();
        let facts = Facts { shapes: &shapes, device, ..node.facts() };
        let order = self.descs.in_order(node, &positions, tactic, &facts)?;
        let plugin = node.definition.plugin();
        let variants = order.iter().filter_map(|index| plugin.variants.get(*index));
        if device.is_none() && variants.into_iter().any(launch::asks_for_device) {
            return Ok(None);
        }
        let decided = launch::decide(plugin, &order, tactic, &facts, &mut steps);
        let decided = decided.map_err(|unmet| node.invalid(unmet))?;
        let choice = self.log.log_choice(node, tactic, order.first().copied(), &decided, &facts);
        let context = self.context.as_deref();
        let current = driver.zip(context);
        let own = &mut self.own_kernels;
        let prepared = prepare_launches(current, node, decided, &positions, &facts, &mut steps, own);
        // Other code may load after an unclear error.
        let prepared = prepared.inspect_err(|_| self.own_kernels.clear())?;
        let (Some(launch), Some(context)) = (prepared, context) else { return Ok(None) };
        check_workspace(node, launch.workspace_bytes, self.built.workspace_bytes, &facts)?;
        log_running(node, &launch.running(), &facts);
        let (descs, input_ranks) = (self.descs.clone(), self.built.input_ranks.clone());
        let shared = Arc::new(SharedLaunch { descs, input_ranks, tactic, choice, launch });
        context.share_launch(&shared);
        Ok(Some(shared))
    }

    fn shapes<'a>(
        &'a self,
        node: &NamedNode,
        positions: &Positions,
        steps: &mut Steps,
    ) -> Result<Vec<&'a [i64]>> {
        self.descs.shapes(node, self.built.input_ranks.as_deref(), positions, steps)
    }

    #[cfg(test)]
    pub(super) fn assume(&mut self, device: Option<cubinder_launch::Device>) {
        self.assumed = device;
    }

    #[cfg(test)]
    pub(super) fn step_descriptions(&self) -> Vec<(usize, Vec<String>)> {
        let State::Ready(shared) = &self.state else { return Vec::new() };
        let description = |(index, steps): (usize, &[StepRecord])| {
            (index, steps.iter().map(StepRecord::to_string).collect())
        };
        shared.launch.running().into_iter().map(description).collect()
    }

    #[cfg(test)]
    pub(super) fn launch_in_use(&self) -> std::sync::Weak<SharedLaunch> {
        let State::Ready(shared) = &self.state else { return std::sync::Weak::new() };
        Arc::downgrade(shared)
    }

    #[cfg(test)]
    pub(super) fn shares_launch(&self, other: &RunState) -> bool {
        let (own, others) = (self.launch_in_use(), other.launch_in_use());
        own.strong_count() > 0 && own.ptr_eq(&others)
    }

    #[cfg(test)]
    pub(super) fn has_own_kernels(&self) -> bool {
        !self.own_kernels.is_empty()
    }

    #[cfg(test)]
    pub(super) fn share_again(&self) {
        let (Some(context), State::Ready(shared)) = (&self.context, &self.state) else { return };
        context.share_launch(shared);
    }

    #[cfg(test)]
    pub(super) fn none_runs(&self, node: &NamedNode, addresses: &Addresses<'_>) -> Option<Error> {
        let plugin = node.definition.plugin();
        let mut steps = Steps::default();
        let positions = self.descs.positions(node).unwrap();
        let shapes = self.shapes(node, &positions, &mut steps).unwrap();
        let facts = Facts { shapes: &shapes, device: self.device(), ..node.facts() };
        let order = self.descs.in_order(node, &positions, self.tactic, &facts).unwrap();
        let choice = launch::decide(plugin, &order, self.tactic, &facts, &mut steps).unwrap().choice?;
        let records = vec![0..0; order.len()];
        let candidates = Candidates { choice, positions, records };
        candidates.pick(&[], addresses).is_none().then(|| self.none_holds(node, addresses))
    }

    #[cold]
    fn failed(&self, node: &NamedNode, driver: &Driver, error: &EnqueueError) -> Error {
        let shaped = || {
            let positions = self.descs.positions(node)?;
            let shapes = self.shapes(node, &positions, &mut Steps::default())?;
            let facts = Facts { shapes: &shapes, ..node.facts() };
            Ok(node_context(node, &facts, Some(driver)))
        };
        let description = shaped().unwrap_or_else(|_: Error| node_context(node, &node.facts(), Some(driver)));
        failure(Error::FAILED_EXECUTION, node, error, &description, error.help())
    }

    #[cold]
    fn none_holds(&self, node: &NamedNode, addresses: &Addresses<'_>) -> Error {
        let description = || {
            let plugin = node.definition.plugin();
            let positions = self.descs.positions(node)?;
            let tensors = (0..plugin.tensor_count()).map(|tensor| plugin.storage_of(tensor));
            let addresses: Vec<u64> =
                tensors.map(|tensor| positions.address(addresses, tensor).unwrap_or(0)).collect();
            let shapes = self.shapes(node, &positions, &mut Steps::default())?;
            let device = self.device();
            let facts = Facts { shapes: &shapes, device, alignments: &addresses, ..node.facts() };
            let order = self.descs.in_order(node, &positions, self.tactic, &facts)?;
            Ok(node.invalid(launch::none_holds(plugin, &order, &facts)))
        };
        description().unwrap_or_else(|error: Error| error)
    }
}

#[cold]
fn no_context(node: &NamedNode) -> Error {
    let why = match Driver::find() {
        Ok(_) => "the calling thread has no current CUDA context, which a default stream requires; make a context current, or enqueue into a created stream"
            .to_owned(),
        Err(missing) => missing.to_string(),
    };
    Error::new(Error::FAILED_INITIALIZATION, format!("{}: {why}", node.title()))
}

#[cold]
fn no_workspace(node: &NamedNode, needed: u64) -> Error {
    node.invalid(format_args!("enqueue without a workspace, expected {needed} bytes"))
}

pub(super) fn check_workspace(
    node: &NamedNode,
    needed: u64,
    reserved: Option<u64>,
    facts: &Facts<'_>,
) -> Result<()> {
    if needed <= reserved.unwrap_or(0) {
        return Ok(());
    }
    let reserved = match reserved {
        Some(reserved) => format!("{reserved} bytes are reserved"),
        None => "no reserved size is known".to_owned(),
    };
    Err(node.invalid(format_args!(
        "these shapes need {needed} bytes of workspace, but {reserved}; rebuild the engine with a profile that includes these shapes{}",
        describe(node.definition.plugin(), facts)
    )))
}

fn prepare_launches(
    current: Option<(&'static Driver, &Context)>,
    node: &NamedNode,
    decided: GuardDecision,
    positions: &Positions,
    facts: &Facts<'_>,
    steps: &mut Steps,
    own: &mut VariantKernels,
) -> Result<Option<PreparedLaunch>> {
    let plugin = node.definition.plugin();
    let driver = current.map(|(driver, _)| driver);
    let invalid = |error: Box<LaunchError>| {
        failure(Error::INVALID_ARGUMENT, node, &error, &node_context(node, &node.facts(), driver), None)
    };
    let running = decided.candidates.iter().filter_map(|index| Some((*index, plugin.variants.get(*index)?)));
    let kernels = match current {
        Some((driver, context)) => running
            .clone()
            .map(|(index, variant)| context.kernels(node, driver, (index, variant), facts, steps, own))
            .collect::<Result<Option<Vec<_>>>>()?,
        None => None,
    };
    let Some((driver, kernels)) = driver.zip(kernels) else {
        // Kernel and device limits stay unchecked.
        for (_, variant) in running {
            launch::sequence(plugin, variant, |_| LaunchLimits::ANYTHING, facts, steps).map_err(invalid)?;
        }
        return Ok(None);
    };
    let failed = |error: DriverError| {
        failure(Error::FAILED_INITIALIZATION, node, &error, &node_context(node, facts, Some(driver)), None)
    };
    let mut ready = PreparedLaunch {
        driver,
        records: Vec::new(),
        aliases: Vec::new(),
        workspace_bytes: 0,
        choice: None,
        variants: Vec::new(),
    };
    for ((index, variant), kernels) in running.zip(kernels) {
        let of_step = |step: usize| kernels.get(step).and_then(Option::as_ref);
        let takes = |step: usize| of_step(step).map_or(LaunchLimits::ANYTHING, takes);
        let sequence = launch::sequence(plugin, variant, takes, facts, steps).map_err(invalid)?;
        for (step, doing) in sequence.steps.iter().enumerate() {
            if let (EvaluatedStep::Launch(numbers), Some(kernel)) = (doing, of_step(step)) {
                CodeTable::process().allow_shared(driver, kernel, numbers.shared_bytes).map_err(failed)?;
            }
        }
        let start = ready.records.len();
        let records = StepRecord::all(plugin, variant, &kernels, &sequence, positions);
        ready.records.extend(
            records.ok_or_else(|| node.invalid("a step has no kernel, or an argument has no value"))?,
        );
        ready.variants.push((index, kernels, start..ready.records.len()));
        for record in ready.records.iter().skip(start).filter_map(StepRecord::launch) {
            check_at_once(node, driver, record, facts)?;
        }
        ready.workspace_bytes = ready.workspace_bytes.max(sequence.workspace_bytes);
        let aliases =
            AliasRecord::all(plugin, variant, positions, |tensor| facts.shapes.get(tensor).copied());
        ready.aliases =
            aliases.ok_or_else(|| node.invalid("the size of a tensor in bytes exceeds 64 bits"))?;
    }
    let places: Vec<Range<usize>> = ready.variants.iter().map(|(.., range)| range.clone()).collect();
    ready.choice = decided
        .choice
        .map(|choice| Box::new(Candidates { choice, positions: positions.clone(), records: places }));
    Ok(Some(ready))
}

/// Rejects cooperative launches that do not fit at once: they would deadlock.
fn check_at_once(node: &NamedNode, driver: &Driver, record: &LaunchRecord, facts: &Facts<'_>) -> Result<()> {
    if !record.description().cooperative {
        return Ok(());
    }
    let multiprocessors = facts.device.map_or(0, |device| u32::try_from(device.sms).unwrap_or(0));
    let most = record.blocks_at_once(driver, multiprocessors);
    let most =
        most.map_err(|error| Error::new(Error::FAILED_INITIALIZATION, format!("{}: {error}", node.title())))?;
    if record.blocks() <= most {
        return Ok(());
    }
    let plugin = node.definition.plugin();
    Err(node.invalid(launch::too_many_at_once(
        plugin,
        &record.description().kernel,
        facts,
        record.blocks(),
        most,
    )))
}
