//! What a memset must not fill.

use cubinder_expr::Node;
use cubinder_model::{Fill, Memory, Output, Work};

use super::site::{At, Site};
use crate::diagnostic::Diagnostic;
use crate::manifest::WorkDecl;
use crate::rules;

/// An error for each output that must not be filled. Rows have the same outputs, so the first that fills one tells.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let mut told: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for (row, variant) in site.plugin.variants.iter().enumerate() {
        for (step, work) in variant.steps.iter().map(|step| &step.work).enumerate() {
            let Work::Fill(Fill { memory: Memory::Output(index), .. }) = work else { continue };
            let decl = site.step_decl(At { row, step });
            let Some(WorkDecl::Fill(decl)) = decl.map(|decl| &decl.work) else { continue };
            let (Some(text), Some(output)) = (&decl.memory, site.plugin.outputs.get(*index as usize)) else {
                continue;
            };
            if told.contains(index) {
                continue;
            }
            let Some((message, label, help)) = reason(site, output) else { continue };
            told.push(*index);
            found.push(
                Diagnostic::error(message).code(rules::NOT_FILLABLE).at(site.span(text), label).help(help),
            );
        }
    }
    found
}

/// Why an output must not be filled: message, label and help.
fn reason(site: &Site<'_>, output: &Output) -> Option<(String, String, &'static str)> {
    let name = &output.name;
    if let Some(input) = output.alias {
        let input = site.plugin.tensor_name(input as usize).unwrap_or("?");
        let message = format!("`{name}` shares the memory of `{input}` and must not be filled");
        let label = format!("what `{input}` holds would be lost");
        return Some((message, label, "let a kernel write the elements that change"));
    }
    let is_size = |node: &Node| matches!(node, Node::Size(_));
    output.shape.nodes.iter().any(is_size).then(|| {
        let message = format!("`{name}` has a shape that depends on data, and cannot be filled");
        let label = "how large it is, the kernels only find out".to_owned();
        (message, label, "fill a scratch buffer, or let the kernel write all of it")
    })
}
