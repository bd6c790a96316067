//! What a memset must not fill.

use cubinder_bundle::{Fill, Memory, Work};

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
            let Some(input) = output.alias.filter(|_| !told.contains(index)) else { continue };
            told.push(*index);
            let input = site.plugin.tensor_name(input as usize).unwrap_or("?");
            let name = &output.name;
            found.push(
                Diagnostic::error(format!("`{name}` shares the memory of `{input}`, and must not be filled"))
                    .code(rules::NOT_FILLABLE)
                    .at(site.span(text), format!("what `{input}` holds would be lost"))
                    .help("let the kernel write what it wants to change"),
            );
        }
    }
    found
}
