//! Guards of rows: variants' and precompiled code's assumptions.

use cubinder_expr::Node;
use cubinder_model::Guard;

use super::excluded_rows::never_holds;
use super::expression::{Compiler, Expected};
use super::foreign;
use super::rows::Row;
use crate::manifest::StepDecl;

/// `None` if absent, invalid or of a duplicate id.
pub(super) fn guard(compiler: &mut Compiler<'_>, row: &Row) -> Option<Guard> {
    let variants = &compiler.declared.manifest.variants;
    let guard = match &variants.get(row.variant)?.guard {
        Some(text) => {
            let scope = compiler.guard_scope(row);
            let typed = compiler.expression(text, "guard", Expected::Bool, &scope)?;
            Some(Guard { expr: typed.expr, text: text.value.clone() })
        }
        None => None,
    };
    let guard = with_assumptions(compiler, guard, row);
    let same_id = variants.iter().filter(|variant| variant.id.value == row.id).count();
    guard.filter(|_| same_id == 1)
}

/// Unless the guard is never satisfied.
fn with_assumptions(compiler: &mut Compiler<'_>, guard: Option<Guard>, row: &Row) -> Option<Guard> {
    let of_code = |step: &StepDecl| step.launch().is_some_and(|launch| launch.is_of_code);
    if never_holds(guard.as_ref()) || !compiler.declared.manifest.launches.iter().any(of_code) {
        return guard;
    }
    let assumptions = foreign::assumptions(compiler, row);
    let scope = compiler.guard_scope(row);
    let mut known = guard.as_ref().map(|guard| foreign::conjuncts(&guard.expr)).unwrap_or_default();
    let mut new: Vec<String> = Vec::new();
    for text in assumptions {
        let Some(typed) = compiler.condition(&text, &scope) else { continue };
        if typed.expr.nodes.as_slice() != [Node::Bool(true)] && !known.contains(&typed.expr) {
            known.push(typed.expr);
            new.push(text);
        }
    }
    if new.is_empty() {
        return guard;
    }
    let text = foreign::conjoined(guard.as_ref().map(|guard| guard.text.as_str()), &new)?;
    let typed = compiler.condition(&text, &scope);
    typed.map(|typed| Guard { expr: typed.expr, text }).or(guard)
}
