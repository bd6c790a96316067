use cubinder_launch::{EvaluatedStep, ScratchRange};
use cubinder_model::{Memory, Plugin, Step, Variant, Work};

use super::report::{Evaluation, ScratchReport, StepDoes, StepReport};

pub(super) fn scratch(variant: &Variant, places: &[ScratchRange], report: &mut Evaluation) {
    let buffers = variant.scratch.iter().zip(places);
    let buffers = buffers.map(|(scratch, place)| ScratchReport {
        name: scratch.name.clone(),
        offset: place.offset,
        bytes: place.bytes,
    });
    report.scratch = buffers.collect();
}

/// Omits a single unconditional launch.
pub(super) fn add(variant: &Variant, step: &Step, does: StepDoes, report: &mut Evaluation) {
    let is_plain = variant.steps.len() == 1 && step.when.is_none() && matches!(does, StepDoes::Launch { .. });
    if !is_plain {
        let when = step.when.as_ref().map(|when| when.text.clone());
        report.steps.push(StepReport { when, does });
    }
}

pub(super) fn without_launch(
    plugin: &Plugin,
    variant: &Variant,
    step: &Step,
    doing: &EvaluatedStep,
) -> StepDoes {
    match (doing, &step.work) {
        (EvaluatedStep::Fill { memory, bytes, byte }, _) => {
            StepDoes::Fill { memory: name(plugin, variant, *memory), bytes: *bytes, byte: *byte }
        }
        (_, Work::Fill(fill)) => StepDoes::LeftOut { what: name(plugin, variant, fill.memory) },
        (_, Work::Launch(launch)) => StepDoes::LeftOut { what: launch.kernel.clone() },
    }
}

fn name(plugin: &Plugin, variant: &Variant, memory: Memory) -> String {
    let name = match memory {
        Memory::Output(index) => plugin.outputs.get(index as usize).map(|output| &output.name),
        Memory::Scratch(index) => variant.scratch.get(index as usize).map(|scratch| &scratch.name),
    };
    name.map_or_else(|| "?".to_owned(), Clone::clone)
}
