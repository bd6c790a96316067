//! A node's run-time log messages. Never logs at every enqueue, or formats without logging.

use cubinder_expr::{DataType, Format};
use cubinder_launch::{Facts, GuardDecision, describe, is_automatic};
use cubinder_model::Variant;
use trt_abi::logger;

use super::node::NamedNode;
use super::variants;
use crate::launch::StepRecord;

#[derive(Debug, Default)]
pub(super) struct LogState {
    replaced_by: Option<usize>,
    without_value: bool,
    copied: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChoiceLog {
    replaced_by: Option<usize>,
    without_value: bool,
}

impl LogState {
    pub(super) fn covers(&self, choice: ChoiceLog) -> bool {
        (self.without_value || !choice.without_value)
            && (choice.replaced_by.is_none() || choice.replaced_by == self.replaced_by)
    }

    pub(super) fn follow(&mut self, choice: ChoiceLog) {
        self.replaced_by = choice.replaced_by;
        self.without_value |= choice.without_value;
    }

    pub(super) fn log_choice(
        &mut self,
        node: &NamedNode,
        tactic: i32,
        first: Option<usize>,
        decided: &GuardDecision,
        facts: &Facts<'_>,
    ) -> ChoiceLog {
        let is_replaced = |running: &usize| Some(*running) != first && !is_automatic(tactic);
        let replaced_by = decided.candidates.first().copied().filter(is_replaced);
        let choice = ChoiceLog { replaced_by, without_value: !decided.without_value.is_empty() };
        if choice.without_value && !self.without_value {
            variants::log_without_value(node, decided, facts);
        }
        if let (Some(running), Some(chosen)) = (replaced_by, first)
            && self.replaced_by != replaced_by
        {
            variants::log_replaced(node, chosen, running, facts);
        }
        self.follow(choice);
        choice
    }

    #[cold]
    pub(super) fn log_copy(&mut self, node: &NamedNode, output: &str) {
        if std::mem::replace(&mut self.copied, true) {
            return;
        }
        logger::verbose(|| {
            format!(
                "cubinder: {}: the output `{output}` is not bound to the memory of the input that it shares, so the \
                 input is copied first; bind both to one address to avoid the copy",
                node.title()
            )
        });
    }
}

pub(super) fn variant_name(variant: &Variant) -> String {
    let Variant { id, label, .. } = variant;
    if label.is_empty() { format!("variant {id}") } else { format!("variant {id} ({label})") }
}

/// Equal nodes that share the launch log nothing.
pub(super) fn log_running(node: &NamedNode, running: &[(usize, &[StepRecord])], facts: &Facts<'_>) {
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
                node.title(),
                variant_name(variant),
                tensors.join(", "),
                describe(plugin, facts)
            )
        });
    }
}
