//! Rules about nodes that no node can meet, or that every node meets without them.

use cubinder_bundle::expr::Node;
use cubinder_bundle::proof::{Domain, Verdict};
use cubinder_bundle::{Plugin, Requirement};

use super::site::Site;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A message for each such rule. What folds to a constant was told when the manifest was resolved.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let require = &site.plugin.require;
    let decls = &site.resolved.manifest.plugin.require;
    let mut diagnostics = Vec::new();
    for (index, (rule, decl)) in require.iter().zip(decls).enumerate() {
        if matches!(rule.expr.nodes.as_slice(), [Node::Bool(_)]) {
            continue;
        }
        let before = with_rules(site.plugin, require.get(..index).unwrap_or_default());
        let domain = Domain::of(&before);
        let span = site.span(&decl.expr);
        if domain.never(&rule.expr) == Verdict::Proved {
            let diagnostic = Diagnostic::error("no node can meet this rule")
                .code(rules::REQUIRE_IS_CONSTANT)
                .at(span, "false for every node that the manifest allows otherwise")
                .help("correct it, or what contradicts it: attributes, ranks, `limits`, the rules before it");
            diagnostics.push(diagnostic);
            // What follows holds for no node either.
            break;
        }
        let alone = with_rules(site.plugin, &[]);
        if Domain::of(&alone).always(&rule.expr) == Verdict::Proved {
            let diagnostic = Diagnostic::warning("this rule always holds")
                .code(rules::REQUIRE_IS_CONSTANT)
                .at(span, "true for every node that the manifest allows")
                .help("take it out, or say what was meant");
            diagnostics.push(diagnostic);
        }
    }
    diagnostics
}

/// The plugin with other rules about its nodes.
fn with_rules(plugin: &Plugin, rules: &[Requirement]) -> Plugin {
    Plugin { require: rules.to_vec(), ..plugin.clone() }
}
