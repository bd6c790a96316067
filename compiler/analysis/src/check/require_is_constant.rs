use cubinder_expr::Node;
use cubinder_launch::proof::Verdict;

use super::draft_view::DraftView;
use super::errors::{RuleAlwaysHolds, RuleNeverHolds};
use super::formula::truth;
use crate::diagnostic::Diagnostic;

/// Literal `true` and `false` were already reported.
pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let require = &view.plugin.require;
    let decls = &view.resolved.manifest.plugin.require;
    let mut diagnostics = Vec::new();
    let domain = view.domain().hasty();
    let alone = domain.clone().with_requirements(0);
    let can_be_met = matches!(domain.never(&truth()), Verdict::Refuted(_));
    for (index, (rule, decl)) in require.iter().zip(decls).enumerate() {
        if matches!(rule.expr.nodes.as_slice(), [Node::Bool(_)]) {
            continue;
        }
        let span = view.span(&decl.expr);
        let before = || domain.clone().with_requirements(index);
        if !can_be_met && before().never(&rule.expr) == Verdict::Proved {
            diagnostics.push(RuleNeverHolds { span }.into());
            // No node reaches the following rules.
            break;
        }
        if alone.always(&rule.expr) == Verdict::Proved {
            diagnostics.push(RuleAlwaysHolds { span }.into());
        }
    }
    diagnostics
}
