use cubinder_expr::Node;
use cubinder_model::{Fill, Memory, Work};

use super::claim::StepId;
use super::draft_view::DraftView;
use super::errors::{FilledAlias, FilledDataDependentShape};
use crate::diagnostic::Diagnostic;
use crate::manifest::WorkDecl;

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let is_size = |node: &Node| matches!(node, Node::Size(_));
    let mut outputs: Vec<u32> = Vec::new();
    let mut found: Vec<Diagnostic> = Vec::new();
    for (row, variant) in view.plugin.variants.iter().enumerate() {
        for (step, work) in variant.steps.iter().map(|step| &step.work).enumerate() {
            let Work::Fill(Fill { memory: Memory::Output(index), .. }) = work else { continue };
            let decl = view.step_decl(StepId { row, step });
            let Some(WorkDecl::Fill(decl)) = decl.map(|decl| &decl.work) else { continue };
            let (Some(text), Some(output)) = (&decl.memory, view.plugin.outputs.get(*index as usize)) else {
                continue;
            };
            if outputs.contains(index) {
                continue;
            }
            outputs.push(*index);
            let (span, name) = (view.span(text), output.name.clone());
            if let Some(input) = output.alias {
                let input = view.plugin.tensor_name(input as usize).unwrap_or("?").to_owned();
                found.push(FilledAlias { output: name, input, span }.into());
            } else if output.shape.nodes.iter().any(is_size) {
                found.push(FilledDataDependentShape { output: name, span }.into());
            }
        }
    }
    found
}
