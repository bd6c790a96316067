//! The conditions of steps.

use cubinder_expr::Node;
use cubinder_model::Guard;

use super::expression::{Compiler, Expected, RowScope};
use crate::manifest::StepDecl;

/// A step's condition in a row.
pub(super) enum Condition {
    /// It is done, always or where this holds.
    Done(Option<Guard>),
    /// It is left out.
    Never,
    /// The condition is wrong, which was reported.
    Wrong,
}

/// Compiles the condition of a step in a row.
pub(super) fn condition(compiler: &mut Compiler<'_>, decl: &StepDecl, scope: &RowScope) -> Condition {
    let Some(text) = &decl.when else { return Condition::Done(None) };
    let typed = compiler.expression(text, "when", Expected::Bool, scope);
    let Some(typed) = typed else { return Condition::Wrong };
    match typed.expr.nodes.as_slice() {
        [Node::Bool(true)] => Condition::Done(None),
        [Node::Bool(false)] => Condition::Never,
        _ => Condition::Done(Some(Guard { expr: typed.expr, text: text.value.clone() })),
    }
}
