//! Evaluates a variant for concrete shapes.
//!
//! A grid of 0 needs an empty output, or an empty input or scratch buffer of the launch; otherwise it was probably
//! rounded down. A used nonempty output must be written before it is read (exempt: in place, data-dependent shape);
//! pointers to `const` only read.

use super::error::{LaunchError, Limit, Problem, Role, Subject};
use super::evaluation::{
    Checked, EvaluatedLaunch, ExprContext, LaunchLimits, LaunchMemory, evaluate_launch, is_empty,
};
use super::steps::Steps;
use super::workspace::{ScratchRange, reserved};
use cubinder_expr::data_type::DataType;
use cubinder_expr::format::Format;
use cubinder_expr::value::Value;
use cubinder_expr::{Environment, Expr};
use cubinder_model::model::{ArgValue, Fill, Guard, Launch, Memory, Plugin, Scratch, Step, Variant, Work};

/// A variant's evaluated steps, without addresses.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Sequence {
    /// Steps in order.
    pub steps: Vec<EvaluatedStep>,
    /// Scratch buffers in the workspace.
    pub scratch: Vec<ScratchRange>,
    /// Total, in bytes.
    pub workspace_bytes: u64,
}

/// An evaluated step.
#[derive(Debug, Clone, PartialEq)]
pub enum EvaluatedStep {
    /// Skipped: false condition.
    LeftOut,
    /// A kernel launch, possibly empty.
    Launch(EvaluatedLaunch),
    /// Fills memory.
    Fill {
        /// Memory, in range.
        memory: Memory,
        /// 0 if empty.
        bytes: u64,
        /// Value of each byte.
        byte: u8,
    },
}

/// Returns a tensor's padded bytes; `None` above 64 bits.
#[must_use]
pub fn tensor_bytes(ty: DataType, format: Format, shape: &[i64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let extents = format.padded(shape)?;
    let elements = extents
        .iter()
        .try_fold(1_u64, |product, extent| product.checked_mul(u64::try_from(*extent).ok()?))?;
    ty.bytes(elements)
}

/// Evaluates a variant step by step.
pub struct Sequencing<'a> {
    plugin: &'a Plugin,
    variant: &'a Variant,
    environment: &'a dyn Environment,
    sequence: Sequence,
}

impl std::fmt::Debug for Sequencing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequencing").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

/// Evaluates a variant; `limits` are those of a step's kernel.
pub fn sequence<'t>(
    plugin: &Plugin,
    variant: &Variant,
    mut limits: impl FnMut(usize) -> LaunchLimits<'t>,
    environment: &dyn Environment,
    steps: &mut Steps,
) -> Result<Sequence, Box<LaunchError>> {
    let mut sequencing = Sequencing::new(plugin, variant, environment, steps)?;
    for number in 0..variant.steps.len() {
        sequencing.step(&limits(number), steps)?;
    }
    sequencing.finish()
}

impl<'a> Sequencing<'a> {
    /// Lays out scratch buffers at multiples of
    /// [`SCRATCH_ALIGNMENT`](cubinder_model::model::SCRATCH_ALIGNMENT).
    pub fn new(
        plugin: &'a Plugin,
        variant: &'a Variant,
        environment: &'a dyn Environment,
        steps: &mut Steps,
    ) -> Result<Sequencing<'a>, Box<LaunchError>> {
        let mut this = Sequencing { plugin, variant, environment, sequence: Sequence::default() };
        for scratch in &variant.scratch {
            let fault = |fault| this.error(Subject::Scratch(scratch.name.clone()), fault);
            let offset = this.sequence.workspace_bytes;
            let bytes = scratch_bytes(scratch, &mut ExprContext { environment, steps }).map_err(fault)?;
            let end = reserved(bytes).and_then(|bytes| offset.checked_add(bytes)).and_then(reserved);
            let beyond = Problem::TooLarge {
                value: i64::try_from(bytes).unwrap_or(i64::MAX),
                most: i64::try_from(i64::MAX.unsigned_abs().saturating_sub(offset)).unwrap_or(0),
                limit: Limit::Cubinder,
            };
            this.sequence.workspace_bytes = end.ok_or_else(|| fault((Role::Bytes, beyond)))?;
            this.sequence.scratch.push(ScratchRange { offset, bytes });
        }
        Ok(this)
    }

    /// Returns the ranges of the scratch buffers.
    #[must_use]
    pub fn scratch(&self) -> &[ScratchRange] {
        &self.sequence.scratch
    }

    /// Evaluates and checks the next step; after the last, repeats it. `limits` are its kernel's.
    pub fn step(
        &mut self,
        limits: &LaunchLimits<'_>,
        steps: &mut Steps,
    ) -> Result<&EvaluatedStep, Box<LaunchError>> {
        if let Some(step) = self.variant.steps.get(self.sequence.steps.len()) {
            let evaluated = self.evaluated(step, limits, steps);
            let evaluated = evaluated.map_err(|fault| self.error(self.subject(&step.work), fault))?;
            self.sequence.steps.push(evaluated);
        }
        Ok(self.sequence.steps.last().unwrap_or(&EvaluatedStep::LeftOut))
    }

    /// Evaluates an argument, ignoring its type.
    pub fn check_argument(
        &self,
        launch: &Launch,
        name: &str,
        expr: &Expr,
        steps: &mut Steps,
    ) -> Result<(), Box<LaunchError>> {
        let value = ExprContext { environment: self.environment, steps }.value(expr);
        value.map(drop).map_err(|problem| {
            self.error(Subject::Launch(launch.kernel.clone()), (Role::Argument(name.to_owned()), problem))
        })
    }

    /// Returns the result; fails for an unwritten output.
    pub fn finish(self) -> Result<Sequence, Box<LaunchError>> {
        match self.unwritten() {
            None => Ok(self.sequence),
            Some(fault) => Err(self.error(Subject::Variant(self.variant.id), fault)),
        }
    }

    fn evaluated(&self, step: &Step, limits: &LaunchLimits<'_>, steps: &mut Steps) -> Checked<EvaluatedStep> {
        let mut context = ExprContext { environment: self.environment, steps };
        if let Some(when) = &step.when
            && !is_true(when, &mut context)?
        {
            return Ok(EvaluatedStep::LeftOut);
        }
        match &step.work {
            Work::Launch(launch) => {
                let memory = LaunchMemory { plugin: self.plugin, scratch: &self.sequence.scratch };
                evaluate_launch(memory, launch, limits, &mut context).map(EvaluatedStep::Launch)
            }
            Work::Fill(fill) => {
                let bytes = self.filled_bytes(fill)?;
                Ok(EvaluatedStep::Fill { memory: fill.memory, bytes, byte: fill.byte })
            }
        }
    }

    fn filled_bytes(&self, fill: &Fill) -> Checked<u64> {
        match fill.memory {
            Memory::Scratch(index) => {
                let count = self.sequence.scratch.len();
                let place = self.sequence.scratch.get(index as usize);
                let place = place.ok_or((Role::Bytes, Problem::NoSuchScratch { index, count }))?;
                Ok(place.bytes)
            }
            Memory::Output(index) => {
                let count = self.plugin.tensor_count();
                let tensor = self.plugin.inputs.len().saturating_add(index as usize);
                let number = u32::try_from(tensor).unwrap_or(u32::MAX);
                let types = self.variant.types.get(tensor).zip(self.variant.formats.get(tensor));
                let (ty, format) =
                    types.ok_or((Role::Bytes, Problem::NoSuchTensor { index: number, count }))?;
                let no_value = |why: &str| (Role::Bytes, Problem::NoValue(why.to_owned()));
                let shape = self.environment.shape(number);
                let shape = shape.ok_or_else(|| no_value("the tensor's shape is unknown"))?;
                tensor_bytes(*ty, *format, shape).ok_or_else(|| no_value("it exceeds 64 bits"))
            }
        }
    }

    fn unwritten(&self) -> Option<(Role, Problem)> {
        let inputs = self.plugin.inputs.len();
        (inputs..).zip(&self.plugin.outputs).find_map(|(tensor, output)| {
            // Kernels determine data-dependent sizes.
            if is_empty(self.environment, tensor) || output.alias.is_some() || output.depends_on_data() {
                return None;
            }
            let problem = self.never_written(tensor)?;
            Some((Role::Output(output.name.clone()), problem))
        })
    }

    fn never_written(&self, tensor: usize) -> Option<Problem> {
        let (mut is_used, mut is_read, mut grid_is_0) = (false, false, false);
        for (step, evaluated) in self.variant.steps.iter().zip(&self.sequence.steps) {
            let Some(writes) = self.writes(step, tensor) else { continue };
            is_used = true;
            let is_done = match evaluated {
                EvaluatedStep::LeftOut => false,
                EvaluatedStep::Launch(launch) => !launch.is_empty(),
                EvaluatedStep::Fill { .. } => true,
            };
            match (writes, is_done) {
                (true, true) => return is_read.then_some(Problem::ReadUnwritten),
                (true, false) => grid_is_0 |= *evaluated != EvaluatedStep::LeftOut,
                (false, is_done) => is_read |= is_done,
            }
        }
        is_used.then_some(Problem::NotWritten { grid_is_0 })
    }

    fn writes(&self, step: &Step, tensor: usize) -> Option<bool> {
        match &step.work {
            Work::Fill(Fill { memory: Memory::Output(index), .. }) => {
                (self.plugin.inputs.len().checked_add(*index as usize) == Some(tensor)).then_some(true)
            }
            Work::Fill(_) => None,
            Work::Launch(launch) => {
                let values = launch.args.iter().map(|arg| &arg.value);
                let uses = values.filter(|value| value.tensor().is_some_and(|it| it as usize == tensor));
                uses.map(|value| matches!(value, ArgValue::Tensor(_))).reduce(|one, other| one || other)
            }
        }
    }

    fn subject(&self, work: &Work) -> Subject {
        match work {
            Work::Launch(launch) => Subject::Launch(launch.kernel.clone()),
            Work::Fill(fill) => {
                let name = match fill.memory {
                    Memory::Scratch(index) => self.variant.scratch.get(index as usize).map(|it| &it.name),
                    Memory::Output(index) => self.plugin.outputs.get(index as usize).map(|it| &it.name),
                };
                Subject::Fill(name.cloned().unwrap_or_default())
            }
        }
    }

    #[cold]
    fn error(&self, subject: Subject, (role, problem): (Role, Problem)) -> Box<LaunchError> {
        launch_error(self.plugin, self.environment, subject, role, problem)
    }
}

/// Returns the error for more than `most` resident blocks.
#[must_use]
pub fn too_many_at_once(
    plugin: &Plugin,
    kernel: &str,
    environment: &dyn Environment,
    blocks: u64,
    most: u64,
) -> Box<LaunchError> {
    let int = |value| i64::try_from(value).unwrap_or(i64::MAX);
    let problem = Problem::TooLarge { value: int(blocks), most: int(most), limit: Limit::AtOnce };
    launch_error(plugin, environment, Subject::Launch(kernel.to_owned()), Role::Blocks, problem)
}

fn launch_error(
    plugin: &Plugin,
    environment: &dyn Environment,
    subject: Subject,
    role: Role,
    problem: Problem,
) -> Box<LaunchError> {
    let shapes = (0..plugin.tensor_count()).filter_map(|index| {
        let name = plugin.tensor_name(index)?.to_owned();
        let shape = environment.shape(u32::try_from(index).ok()?);
        Some((name, shape.map(<[i64]>::to_vec)))
    });
    Box::new(LaunchError { plugin: plugin.full_name(), subject, role, problem, shapes: shapes.collect() })
}

fn is_true(when: &Guard, context: &mut ExprContext<'_>) -> Checked<bool> {
    let fault = |problem| (Role::Condition(when.text.clone()), problem);
    match context.value(&when.expr).map_err(fault)? {
        Value::Bool(value) => Ok(value),
        found => Err(fault(Problem::Kind { found, expected: "a boolean" })),
    }
}

fn scratch_bytes(scratch: &Scratch, context: &mut ExprContext<'_>) -> Checked<u64> {
    let fault = |problem| (Role::Bytes, problem);
    match context.value(&scratch.bytes as &Expr).map_err(fault)? {
        Value::Int(value) => u64::try_from(value).map_err(|_| fault(Problem::TooSmall { value, least: 0 })),
        found => Err(fault(Problem::Kind { found, expected: "an integer" })),
    }
}
