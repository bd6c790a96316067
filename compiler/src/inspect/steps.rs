//! What a variant does, step by step, and the memory that its steps share.

use cubinder_bundle::expr::{Expr, print};
use cubinder_bundle::{Memory, Plugin, Step, Variant, Work};
use serde::Serialize;

/// A scratch buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScratchReport {
    /// Its name.
    pub name: String,
    /// Its size in bytes, as an expression.
    pub bytes: String,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepReport {
    /// A kernel is launched.
    Launch {
        /// The kernel as source names it.
        kernel: String,
        /// Blocks of a cluster in x, y and z, as expressions.
        #[serde(skip_serializing_if = "Option::is_none")]
        cluster: Option<[String; 3]>,
        /// Whether all blocks run at once.
        cooperative: bool,
        /// Whether it may begin before the step before it has ended.
        programmatic: bool,
        /// Its condition, as its author wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        when: Option<String>,
    },
    /// Memory is filled.
    Fill {
        /// The name of the output or the scratch buffer.
        memory: String,
        /// What every byte becomes.
        byte: u8,
        /// Its condition, as its author wrote it.
        #[serde(skip_serializing_if = "Option::is_none")]
        when: Option<String>,
    },
}

/// The scratch buffers of a variant.
pub(super) fn scratch(plugin: &Plugin, variant: &Variant) -> Vec<ScratchReport> {
    let report = |scratch: &cubinder_bundle::Scratch| ScratchReport {
        name: scratch.name.clone(),
        bytes: print(&scratch.bytes, plugin),
    };
    variant.scratch.iter().map(report).collect()
}

/// The steps of a variant; none where it is one launch of which nothing more is to be said.
pub(super) fn steps(plugin: &Plugin, variant: &Variant) -> Vec<StepReport> {
    let steps: Vec<StepReport> = variant.steps.iter().map(|step| one(plugin, variant, step)).collect();
    match steps.as_slice() {
        [StepReport::Launch { cluster: None, cooperative: false, programmatic: false, when: None, .. }] => {
            Vec::new()
        }
        _ => steps,
    }
}

fn one(plugin: &Plugin, variant: &Variant, step: &Step) -> StepReport {
    let when = step.when.as_ref().map(|when| when.text.clone());
    let printed = |expr: &Expr| print(expr, plugin);
    match &step.work {
        Work::Launch(launch) => StepReport::Launch {
            kernel: launch.kernel.clone(),
            cluster: launch.cluster.as_ref().map(|axes| axes.each_ref().map(printed)),
            cooperative: launch.cooperative,
            programmatic: launch.programmatic,
            when,
        },
        Work::Fill(fill) => {
            StepReport::Fill { memory: memory(plugin, variant, fill.memory), byte: fill.byte, when }
        }
    }
}

/// The name of what a step fills.
fn memory(plugin: &Plugin, variant: &Variant, memory: Memory) -> String {
    let name = match memory {
        Memory::Output(index) => plugin.outputs.get(index as usize).map(|output| &output.name),
        Memory::Scratch(index) => variant.scratch.get(index as usize).map(|scratch| &scratch.name),
    };
    name.map_or_else(|| "?".to_owned(), Clone::clone)
}

/// A step for people: `launch sum_parts<float> in clusters of 2 x 1 x 1, when numel(x) > 4096`.
pub(super) fn line(step: &StepReport) -> String {
    let condition = |when: &Option<String>| -> String {
        let words = when.iter().map(|when| when.split_whitespace().collect::<Vec<_>>().join(" "));
        words.map(|when| format!(", when {when}")).collect()
    };
    match step {
        StepReport::Launch { kernel, cluster, cooperative, programmatic, when } => {
            let cluster = cluster.iter().map(|axes| format!(", in clusters of {}", axes.join(" x ")));
            let said = [(*cooperative, ", cooperative"), (*programmatic, ", programmatic")];
            let said = said.into_iter().filter(|(is, _)| *is).map(|(_, word)| word.to_owned());
            let rest: String = cluster.chain(said).collect();
            format!("launch {kernel}{rest}{}", condition(when))
        }
        StepReport::Fill { memory, byte, when } => format!("fill {memory} with {byte}{}", condition(when)),
    }
}
