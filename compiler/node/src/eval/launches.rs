use std::cell::RefCell;

use cubinder_expr::{Environment, Expr};
use cubinder_launch as launch;
use cubinder_launch::native::SHARED_BYTES;
use cubinder_launch::{Clusters, EvaluatedLaunch, EvaluatedStep, Facts, LaunchLimits, Sequencing, Steps};
use cubinder_model::attribute_check::Unmet;
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::{Arg, ArgValue, Launch, Plugin, Scratch, Target, TargetKind};

use super::code::{LaunchCode, MachineCode};
use super::occupancy::{Multiprocessor, Needs, occupancy};
use super::report::{ArgReport, Evaluation, LaunchReport, OccupancyReport, StepDoes};
use crate::diagnostic::Diagnostic;
use crate::resolve::{ArgDraft, ArgDraftValue};

pub(super) struct Step<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) launch: &'a Launch,
    pub(super) scratch: &'a [Scratch],
    pub(super) draft: &'a [ArgDraft],
    pub(super) code: &'a LaunchCode,
    /// If not, messages name the architecture.
    pub(super) asked_arch: bool,
    pub(super) sms: Option<i64>,
    pub(super) facts: &'a Facts<'a>,
    pub(super) is_native: bool,
}

impl Step<'_> {
    /// Without a compiled kernel, only pointers have types.
    pub(super) fn typed(&self) -> Launch {
        let mut launch = self.launch.clone();
        if let Some(args) = &self.code.args {
            launch.args.clone_from(args);
        } else if !self.is_typed() {
            launch.args = self.draft.iter().filter_map(memory).collect();
        }
        launch
    }

    fn is_typed(&self) -> bool {
        self.draft.is_empty() || self.code.args.is_some()
    }

    fn check_values(
        &self,
        evaluated: &EvaluatedLaunch,
        sequencing: &Sequencing<'_>,
        steps: &mut Steps,
    ) -> Result<(), Unmet> {
        let needs_values = !self.is_typed() && !evaluated.is_empty();
        for arg in self.draft.iter().filter(|_| needs_values) {
            if let ArgDraftValue::Expr { expr, .. } = &arg.value {
                let checked = sequencing.check_argument(self.launch, &arg.name, expr, steps);
                checked.map_err(|error| Unmet(error.to_string()))?;
            }
        }
        Ok(())
    }

    /// Least restrictive limits of all code; launches above them run nowhere. PTX has none.
    fn takes(&self) -> LaunchLimits<'static> {
        if self.is_native {
            // Without `cuFuncSetAttribute`, static and dynamic shared memory share `SHARED_BYTES`.
            let own = self.code.machine.iter().filter_map(|machine| machine.facts.shared_bytes).min();
            let most = u32::try_from(SHARED_BYTES.saturating_sub(own.unwrap_or_default().into()));
            return LaunchLimits { max_shared_bytes: most.unwrap_or_default(), ..LaunchLimits::ANYTHING };
        }
        let all = self.code.machine.iter().filter(|_| !self.code.has_ptx).map(takes);
        let most = all.reduce(|one, other| LaunchLimits {
            max_threads: one.max_threads.max(other.max_threads),
            max_shared_bytes: one.max_shared_bytes.max(other.max_shared_bytes),
            clusters: one.clusters.or(other.clusters),
            params: None,
        });
        let limit = self.code.uncompiled.and_then(|target| Multiprocessor::for_arch(target.arch));
        most.unwrap_or(LaunchLimits {
            max_shared_bytes: limit.map_or(u32::MAX, |limit| limit.block_shared_bytes),
            ..LaunchLimits::ANYTHING
        })
    }

    fn limited_by(&self, elsewhere: &EvaluatedStep) -> Option<String> {
        let EvaluatedStep::Launch(evaluated) = elsewhere else { return self.held_against() };
        match self.is_native && i64::from(evaluated.shared_bytes) > i64::from(self.takes().max_shared_bytes) {
            true => Some(format!(
                "TensorRT launches the kernel, and does not request more than {SHARED_BYTES} bytes of shared memory from the driver, including the \
                 kernel's static shared memory"
            )),
            false => self.held_against(),
        }
    }

    fn held_against(&self) -> Option<String> {
        let all = self.code.machine.iter().map(|code| code.code).chain(self.code.uncompiled);
        let archs: Vec<String> = all.map(|target| target.to_string()).collect();
        if self.asked_arch || self.code.has_ptx || archs.is_empty() {
            return None;
        }
        let archs = archs.join(", ");
        Some(format!(
            "checked against the limits of {archs}, for which the kernel is compiled; use `--arch` for another GPU"
        ))
    }

    fn refusal(&self, report: &LaunchReport) -> Option<Unmet> {
        let occupancy = report.occupancy.as_slice();
        let name = self.plugin.full_name();
        if let Some(why) = &self.code.refused {
            return Some(Unmet(format!("`{name}`: {why}")));
        }
        let none_holds = occupancy.len() == self.code.machine.len()
            && !occupancy.is_empty()
            && occupancy.iter().all(|found| found.occupancy.blocks == 0);
        if !none_holds || self.code.has_ptx {
            return self.too_many_at_once(report);
        }
        let lacks = |found: &OccupancyReport| {
            let limiters: Vec<&str> =
                found.occupancy.limited_by.iter().map(|limiter| limiter.name()).collect();
            format!(
                "a multiprocessor of {} does not have enough {} for one block",
                found.arch,
                limiters.join(" and ")
            )
        };
        let why: Vec<String> = occupancy.iter().map(lacks).collect();
        Some(Unmet(format!("`{name}` cannot launch `{}`: {}", self.launch.kernel, why.join("; "))))
    }

    fn too_many_at_once(&self, report: &LaunchReport) -> Option<Unmet> {
        let sms = self.sms.and_then(|sms| u64::try_from(sms).ok())?;
        let is_known = !self.code.has_ptx && report.occupancy.len() == self.code.machine.len();
        if !self.launch.cooperative || !is_known {
            return None;
        }
        let of_one = report.occupancy.iter().map(|found| u64::from(found.occupancy.blocks)).max()?;
        let most = of_one.saturating_mul(sms);
        (report.blocks > most).then(|| {
            let error =
                launch::too_many_at_once(self.plugin, &self.launch.kernel, self.facts, report.blocks, most);
            Unmet(error.to_string())
        })
    }
}

pub(super) fn check(
    step: &Step<'_>,
    sequencing: &mut Sequencing<'_>,
    steps: &mut Steps,
) -> Result<(), Unmet> {
    let doing = sequencing.step(&step.takes(), steps).map_err(|error| Unmet(error.to_string()))?;
    let EvaluatedStep::Launch(evaluated) = doing.clone() else { return Ok(()) };
    step.check_values(&evaluated, sequencing, steps)?;
    let report = launch_report(step, &step.launch.kernel, Some(&evaluated), Vec::new());
    step.refusal(&report).map_or(Ok(()), Err)
}

pub(super) fn finish(
    step: &Step<'_>,
    sequencing: &mut Sequencing<'_>,
    facts: &Facts<'_>,
    steps: &mut Steps,
    report: &mut Evaluation,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<StepDoes, Unmet> {
    report.notes.extend(step.code.note.clone());
    diagnostics.extend(step.code.diagnostics.iter().cloned());
    let launch = step.typed();
    let evaluated = match sequencing.step(&step.takes(), steps) {
        Ok(EvaluatedStep::Launch(evaluated)) => Ok(evaluated.clone()),
        Ok(EvaluatedStep::LeftOut | EvaluatedStep::Fill { .. }) => {
            return Ok(StepDoes::LeftOut { what: launch.kernel });
        }
        Err(error) => Err(error),
    };
    let valued = evaluated.as_ref().map_or(Ok(()), |found| step.check_values(found, sequencing, steps));
    let args = match &evaluated {
        Ok(evaluated) if evaluated.is_empty() => Vec::new(),
        _ => argument_reports(step, &launch.args, facts),
    };
    report.launches.push(launch_report(step, &launch.kernel, evaluated.as_ref().ok(), args));
    report.notes.extend(step.code.machine.iter().filter_map(without_occupancy));
    let occupancy = report.launches.last().map_or(&[][..], |launch| &launch.occupancy);
    let refused = match evaluated {
        Err(error) => {
            let elsewhere = sequencing.step(&LaunchLimits::ANYTHING, steps);
            report.notes.extend(elsewhere.ok().and_then(|elsewhere| step.limited_by(elsewhere)));
            Some(Unmet(error.to_string()))
        }
        Ok(_) => valued.err().or_else(|| report.launches.last().and_then(|launch| step.refusal(launch))),
    };
    let Some(refused) = refused else {
        let full = occupancy.iter().filter(|found| found.occupancy.blocks == 0);
        let full: Vec<String> = full
            .map(|found| format!("{} cannot launch it: no block fits on a multiprocessor", found.arch))
            .collect();
        report.notes.extend(full);
        return Ok(StepDoes::Launch { launch: report.launches.len().saturating_sub(1) });
    };
    Err(refused)
}

fn without_occupancy(machine: &MachineCode) -> Option<String> {
    let why = if Multiprocessor::for_arch(machine.arch).is_none() {
        "the limits of its multiprocessors are unknown"
    } else if machine.facts.registers.is_none() {
        "the register count of the code is unknown"
    } else {
        return None;
    };
    Some(format!("the occupancy on sm_{} is unknown: {why}", machine.arch))
}

fn takes(machine: &MachineCode) -> LaunchLimits<'static> {
    let shared = Multiprocessor::for_arch(machine.arch).map(|multiprocessor| {
        multiprocessor.block_shared_bytes.saturating_sub(machine.facts.shared_bytes.unwrap_or(0))
    });
    LaunchLimits {
        max_threads: machine.facts.max_threads.unwrap_or(u32::MAX),
        max_shared_bytes: shared.unwrap_or(u32::MAX),
        clusters: Clusters::for_code(machine.arch.major >= HAS_CLUSTERS, machine.code),
        params: None,
    }
}

fn launch_report(
    step: &Step<'_>,
    kernel: &str,
    evaluated: Option<&EvaluatedLaunch>,
    args: Vec<ArgReport>,
) -> LaunchReport {
    let product = |extents: [u32; 3]| extents.into_iter().map(u64::from).fold(1, u64::saturating_mul);
    let grid = evaluated.map(|evaluated| evaluated.grid);
    let block = evaluated.map(|evaluated| evaluated.block);
    let shared_bytes = evaluated.map_or(0, |evaluated| evaluated.shared_bytes);
    let threads = block.map_or(0, product);
    let blocks = grid.map_or(0, product);
    let machine = if threads == 0 { &[] } else { step.code.machine.as_slice() };
    let occupancy = machine.iter().filter_map(|machine| occupancy_report(machine, threads, shared_bytes));
    LaunchReport {
        kernel: kernel.to_owned(),
        grid,
        block,
        blocks,
        threads: blocks.saturating_mul(threads),
        shared_bytes,
        cluster: evaluated.and_then(|evaluated| evaluated.cluster),
        cooperative: step.launch.cooperative,
        programmatic: step.launch.programmatic,
        args,
        empty: evaluated.is_some_and(EvaluatedLaunch::is_empty),
        occupancy: occupancy.collect(),
    }
}

fn occupancy_report(machine: &MachineCode, threads: u64, shared_bytes: u32) -> Option<OccupancyReport> {
    let multiprocessor = Multiprocessor::for_arch(machine.arch)?;
    let registers = machine.facts.registers?;
    let fixed = machine.facts.shared_bytes.unwrap_or(0);
    let needs = Needs {
        threads: u32::try_from(threads).ok()?,
        registers,
        shared_bytes: u64::from(fixed) + u64::from(shared_bytes),
    };
    let arch = Target { kind: TargetKind::Cubin, arch: machine.arch };
    Some(OccupancyReport {
        arch: arch.to_string(),
        code: machine.code.to_string(),
        registers,
        static_shared_bytes: fixed,
        occupancy: occupancy(&multiprocessor, &needs),
    })
}

/// Assumes that the kernel writes the memory.
fn memory(arg: &ArgDraft) -> Option<Arg> {
    let value = match arg.value {
        ArgDraftValue::Tensor(tensor) => ArgValue::Tensor(tensor),
        ArgDraftValue::Scratch(index) => ArgValue::Scratch(index),
        ArgDraftValue::Expr { .. } => return None,
    };
    Some(Arg { name: arg.name.clone(), value })
}

/// Formats `tensor`, `scratch`, `i32` or `i64[4]`.
pub fn arg_type(value: &ArgValue) -> String {
    match value {
        ArgValue::Tensor(_) | ArgValue::ReadTensor(_) => "tensor".to_owned(),
        ArgValue::Scratch(_) => "scratch".to_owned(),
        ArgValue::Scalar { ty, .. } => ty.to_string(),
        ArgValue::Array { ty, len, .. } => format!("{ty}[{len}]"),
    }
}

fn argument_reports(step: &Step<'_>, typed: &[Arg], environment: &dyn Environment) -> Vec<ArgReport> {
    let steps = RefCell::new(Steps::default());
    let value = |expr: &Expr| steps.borrow_mut().value(expr, environment).ok();
    let tensor = |index: u32| step.plugin.tensor_name(index as usize).map(str::to_owned);
    let buffer = |index: u32| step.scratch.get(index as usize).map(|scratch| scratch.name.clone());
    let of_typed = |arg: &Arg| {
        let (tensor, value) = match &arg.value {
            ArgValue::Tensor(index) | ArgValue::ReadTensor(index) => (tensor(*index), None),
            ArgValue::Scratch(index) => (buffer(*index), None),
            ArgValue::Scalar { expr, .. } | ArgValue::Array { expr, .. } => (None, value(expr)),
        };
        ArgReport { name: arg.name.clone(), ty: Some(arg_type(&arg.value)), tensor, value }
    };
    let of_draft = |arg: &ArgDraft| match (memory(arg), &arg.value) {
        (None, ArgDraftValue::Expr { expr, .. }) => {
            Some(ArgReport { name: arg.name.clone(), ty: None, tensor: None, value: value(expr) })
        }
        (memory, _) => memory.as_ref().map(of_typed),
    };
    match step.is_typed() {
        true => typed.iter().map(of_typed).collect(),
        false => step.draft.iter().filter_map(of_draft).collect(),
    }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::Node;
    use cubinder_expr::ScalarType;

    use super::*;

    #[test]
    fn arguments_are_shown_with_their_types() {
        let expr = Expr { nodes: vec![Node::Int(1)] };
        let scalar = |ty| arg_type(&ArgValue::Scalar { ty, expr: expr.clone() });
        assert_eq!(arg_type(&ArgValue::Tensor(0)), "tensor");
        assert_eq!(arg_type(&ArgValue::ReadTensor(0)), "tensor");
        assert_eq!(arg_type(&ArgValue::Scratch(0)), "scratch");
        assert_eq!(scalar(ScalarType::Int { bytes: 4 }), "i32");
        assert_eq!(scalar(ScalarType::UInt { bytes: 1 }), "u8");
        assert_eq!(scalar(ScalarType::F32), "f32");
        assert_eq!(scalar(ScalarType::F64), "f64");
        assert_eq!(scalar(ScalarType::Bool), "bool");
        assert_eq!(scalar(ScalarType::Natural { bits: 15 }), "enum of 16 bits");
        assert_eq!(scalar(ScalarType::Natural { bits: 7 }), "enum of 8 bits");
        assert_eq!(scalar(ScalarType::Natural { bits: 1 }), "enum of 0 and 1");
        let array = ArgValue::Array { ty: ScalarType::Int { bytes: 8 }, len: 4, expr: expr.clone() };
        assert_eq!(arg_type(&array), "i64[4]");
    }
}
