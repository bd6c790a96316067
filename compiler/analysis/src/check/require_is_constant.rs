//! Rules about nodes that no node can meet, or that every node meets without them.

use cubinder_expr::Node;
use cubinder_launch::proof::Verdict;

use super::formula::truth;
use super::site::Site;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A message for each such rule. What folds to a constant was told when the manifest was resolved.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let require = &site.plugin.require;
    let decls = &site.resolved.manifest.plugin.require;
    let mut diagnostics = Vec::new();
    let domain = site.domain().hasty();
    let alone = domain.clone().with_requirements(0);
    // A node that meets all rules meets each of them.
    let can_be_met = matches!(domain.never(&truth()), Verdict::Refuted(_));
    for (index, (rule, decl)) in require.iter().zip(decls).enumerate() {
        if matches!(rule.expr.nodes.as_slice(), [Node::Bool(_)]) {
            continue;
        }
        let span = site.span(&decl.expr);
        let before = || domain.clone().with_requirements(index);
        if !can_be_met && before().never(&rule.expr) == Verdict::Proved {
            let diagnostic = Diagnostic::error("no node can meet this rule")
                .code(rules::REQUIRE_IS_CONSTANT)
                .at(span, "false for every node that the manifest allows otherwise")
                .help("correct it, or what contradicts it: attributes, ranks, `limits`, the rules before it");
            diagnostics.push(diagnostic);
            // What follows holds for no node either.
            break;
        }
        if alone.always(&rule.expr) == Verdict::Proved {
            let diagnostic = Diagnostic::warning("this rule always holds")
                .code(rules::REQUIRE_IS_CONSTANT)
                .at(span, "true for every node that the manifest allows")
                .help("take it out, or say what was meant");
            diagnostics.push(diagnostic);
        }
    }
    diagnostics
}
