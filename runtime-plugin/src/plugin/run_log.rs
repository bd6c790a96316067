//! What a node logs while it runs.
//!
//! Owns: which messages are logged once ([`LogState`]). Never: a message at every enqueue; a message is formatted only if it is logged.

use cubinder_expr::{DataType, Format};
use cubinder_launch::{Facts, GuardDecision, describe, is_automatic};
use cubinder_model::Variant;
use trt_abi::logger;

use super::node::NodeData;
use super::variants;
use crate::launch::StepRecord;

/// What was logged, and is logged once.
#[derive(Debug, Default)]
pub(super) struct LogState {
    /// The variant that runs in place of the one that was chosen.
    replaced_by: Option<usize>,
    /// That a guard has no value.
    without_value: bool,
    /// That an output does not share the memory that it should.
    copied: bool,
}

impl LogState {
    /// Logs what changed about the choice among variants, of which `first` is the first in order.
    pub(super) fn log_choice(
        &mut self,
        node: &NodeData,
        tactic: i32,
        first: Option<usize>,
        decided: &GuardDecision,
        facts: &Facts<'_>,
    ) {
        if !self.without_value && !decided.without_value.is_empty() {
            self.without_value = true;
            variants::log_without_value(node, decided, facts);
        }
        let is_replaced = |running: &usize| Some(*running) != first && !is_automatic(tactic);
        let replaced_by = decided.candidates.first().copied().filter(is_replaced);
        if let (Some(running), Some(chosen)) = (replaced_by, first)
            && self.replaced_by != replaced_by
        {
            variants::log_replaced(node, chosen, running, facts);
        }
        self.replaced_by = replaced_by;
    }

    /// Logs that a copy is made that sharing memory would save.
    #[cold]
    pub(super) fn log_copy(&mut self, node: &NodeData, output: &str) {
        if std::mem::replace(&mut self.copied, true) {
            return;
        }
        logger::verbose(|| {
            format!(
                "cubinder: {}: the output `{output}` is bound to other memory than the input that it shares memory with, so the \
                 input is copied to it first; bind both to the same memory to save that",
                node.title
            )
        });
    }
}

/// A variant, as the log and profilers name it: `variant 2 (T=f32 VEC=4)`.
pub(super) fn variant_name(variant: &Variant) -> String {
    let Variant { id, label, .. } = variant;
    if label.is_empty() { format!("variant {id}") } else { format!("variant {id} ({label})") }
}

/// Logs what runs from now on: types, formats and steps of each variant that may run.
pub(super) fn log_running(node: &NodeData, running: &[(usize, &[StepRecord])], facts: &Facts<'_>) {
    let plugin = node.definition.plugin();
    for (index, steps) in running {
        let Some(variant) = plugin.variants.get(*index) else { continue };
        logger::verbose(|| {
            let tensors = variant.types.iter().zip(&variant.formats).enumerate();
            let tensor = |(index, (ty, format)): (usize, (&DataType, &Format))| {
                format!("{} {} {}", plugin.tensor_name(index).unwrap_or("?"), ty.name(), format.name())
            };
            let tensors: Vec<String> = tensors.map(tensor).collect();
            let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
            let whether = if running.len() > 1 { "may run" } else { "runs" };
            let steps = if steps.is_empty() { "nothing to do".to_owned() } else { steps.join("; ") };
            format!(
                "cubinder: {}: {} {whether}: {steps}; {}{}",
                node.title,
                variant_name(variant),
                tensors.join(", "),
                describe(plugin, facts)
            )
        });
    }
}
