use cubinder_expr::Node;
use cubinder_model::Guard;

use super::expression::{Compiler, Expected, RowScope};
use crate::manifest::StepDecl;

pub(super) enum Condition {
    /// Always, or if the guard is satisfied.
    Done(Option<Guard>),
    Never,
    /// Already reported.
    Wrong,
}

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
