//! Outputs that no argument passes: nothing could write them, and a reader would find whatever the memory held.

use super::site::Site;
use crate::diagnostic::Diagnostic;
use crate::resolve::ArgDraftValue;
use crate::rules;

/// An error for each such output. Rows have the same arguments, so the first one tells.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let Some(unit) = site.units().first() else { return Vec::new() };
    let units = || site.units().iter().filter(|other| other.variant == unit.variant);
    if !units().all(|unit| unit.args_are_known) {
        return Vec::new();
    }
    let is_passed = |index: usize| {
        units().flat_map(|unit| &unit.args).any(|arg| match (&arg.broken, &arg.value) {
            (Some(meant), _) => u32::try_from(index).is_ok_and(|index| meant.contains(&index)),
            (None, ArgDraftValue::Tensor(tensor)) => *tensor as usize == index,
            (None, ArgDraftValue::Expr { .. }) => false,
        })
    };
    let outputs = site.plugin.outputs.iter().enumerate();
    let unwritten = outputs.filter(|(index, _)| !is_passed(site.plugin.inputs.len() + index));
    unwritten
        .map(|(_, output)| {
            Diagnostic::error(format!("no argument passes the output `{}` to the kernel", output.name))
                .code(rules::UNWRITTEN_OUTPUT)
                .at(unit.args_span.clone(), "nothing could write it")
                .help(format!("pass it: `<parameter> = \"{}\"`", output.name))
        })
        .collect()
}
