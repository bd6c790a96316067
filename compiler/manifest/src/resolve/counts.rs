//! How many of each thing a plugin may have: as many as the runtime reads from a library or an engine.
//!
//! The limits are those of [`cubinder_model::validate`]. They bound what everything after this has to do, so a manifest beyond them is
//! looked at no further.

use std::ops::Range;
use std::sync::Arc;

use cubinder_model::Guard;
use cubinder_model::model::MAX_ARGUMENTS;
use cubinder_model::validate::{
    MAX_ALIGNMENTS, MAX_ALLOWED_VALUES, MAX_ATTRIBUTES, MAX_REQUIREMENTS, MAX_SCRATCH, MAX_STEPS,
    MAX_TENSORS, alignments,
};

use super::rows::Row;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::manifest::{Manifest, StepDecl};
use crate::rules;

/// The most tables of data. Their texts are part of what is compiled.
const MAX_TABLES: usize = 64;

/// The most type and format parameters, and the most combinations of them: every choice is compared with each.
const MAX_PARAMETERS: usize = 256;
const MAX_COMBINATIONS: usize = 1024;

/// Reports what there is too much of, at the first that is one too many.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let inputs = manifest.inputs.iter().map(|decl| &decl.name.range);
    let tensors = inputs.chain(manifest.outputs.iter().map(|decl| &decl.name.range));
    let attributes = manifest.attributes.iter().map(|decl| &decl.name.range);
    let require = manifest.plugin.require.iter().map(|decl| &decl.expr.range);
    let mut found: Vec<Diagnostic> = [
        beyond("the plugin", "attributes", attributes, MAX_ATTRIBUTES, source),
        beyond("the plugin", "inputs and outputs", tensors, MAX_TENSORS, source),
        beyond("the plugin", "requirements", require, MAX_REQUIREMENTS, source),
    ]
    .into_iter()
    .flatten()
    .collect();
    let steps = manifest.launches.iter().map(|decl| &decl.range);
    found.extend(beyond("the plugin", "steps", steps, MAX_STEPS, source));
    let tables = manifest.tables.iter().map(|decl| &decl.name.range);
    found.extend(beyond("the plugin", "tables", tables, MAX_TABLES, source));
    let formats = manifest.formats.iter().map(|decl| &decl.name.range);
    let parameters = manifest.types.iter().map(|decl| &decl.name.range).chain(formats);
    let what = "type and format parameters";
    found.extend(beyond("the plugin", what, parameters, MAX_PARAMETERS, source));
    let combinations = manifest.combinations.iter().map(|decl| &decl.range);
    found.extend(beyond("the plugin", "combinations", combinations, MAX_COMBINATIONS, source));
    let scratch = manifest.scratch.iter().map(|decl| &decl.name.range);
    found.extend(beyond("the plugin", "scratch buffers", scratch, MAX_SCRATCH, source));
    for launch in manifest.launches.iter().filter_map(StepDecl::launch) {
        let args = launch.args.iter().flatten().map(|arg| &arg.name.range);
        found.extend(beyond("the launch", "arguments", args, MAX_ARGUMENTS, source));
    }
    let allowed = manifest.attributes.iter().flat_map(|decl| decl.one_of.iter().chain(&decl.specialize));
    for values in allowed {
        let places = values.value.iter().map(|_| &values.range);
        found.extend(beyond("the attribute", "allowed values", places, MAX_ALLOWED_VALUES, source));
    }
    found
}

fn beyond<'m>(
    whose: &str,
    what: &str,
    mut places: impl Iterator<Item = &'m Range<usize>>,
    most: usize,
    source: &Arc<Source>,
) -> Option<Diagnostic> {
    let first = places.nth(most)?.clone();
    let count = most + 1 + places.count();
    Some(too_many(whose, what, count, most, Span::new(source, first)))
}

fn too_many(whose: &str, what: &str, count: usize, most: usize, span: Span) -> Diagnostic {
    Diagnostic::error(format!("{whose} has {count} {what}, more than {most}"))
        .code(rules::WRONG_VALUE)
        .at(span, format!("at most {most} {what} fit into a plugin"))
}

/// Reports guards that ask too many questions about addresses, each once for its place, and takes them out.
pub(super) fn check_guards(
    manifest: &Manifest,
    rows: &[Row],
    guards: &mut [Option<Guard>],
    source: &Arc<Source>,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (row, guard) in rows.iter().zip(guards) {
        let count = guard.as_ref().map_or(0, |guard| alignments(&guard.expr).len());
        let decl = manifest.variants.get(row.variant).and_then(|decl| decl.guard.as_ref());
        let Some(text) = decl.filter(|_| count > MAX_ALIGNMENTS) else { continue };
        *guard = None;
        let span = Span::new(source, text.range.clone());
        let is_known = |known: &Diagnostic| known.primary.as_ref().is_some_and(|label| label.span == span);
        if !found.iter().any(is_known) {
            let what = "different questions `aligned`";
            found.push(too_many("the guard", what, count, MAX_ALIGNMENTS, span));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Source;
    use crate::resolve::compile;

    fn manifest(require: usize, attributes: usize, inputs: usize, args: usize, guard: &str) -> String {
        let require = vec!["{ expr = \"x0.rank > 0\", message = \"m\" }"; require].join(",");
        let mut text = format!(
            "schema = 1\n[plugin]\nname = \"f\"\nnamespace = \"f\"\nversion = \"1\"\nrequire = [{require}]\n"
        );
        for index in 0..attributes {
            text += &format!("[attributes.a{index}]\ntype = \"i32\"\n");
        }
        for index in 0..inputs {
            text += &format!("[[inputs]]\nname = \"x{index}\"\ntype = \"f32\"\nrank = 1\n");
        }
        text += "[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x0.shape\"\n";
        text += &format!("[[variants]]\nid = 1\nguard = \"{guard}\"\n[[variants]]\nid = 2\n");
        text += "[[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\n[launches.args]\n";
        for index in 0..args {
            text += &format!("p{index} = {index}\n");
        }
        text
    }

    fn errors(text: &str) -> Vec<String> {
        let found = compile(&Source::new("f.toml", text)).err().unwrap_or_default();
        found.into_iter().map(|diagnostic| diagnostic.message).collect()
    }

    fn aligned(count: usize) -> String {
        (0..count).map(|bit| format!("aligned(x{bit}, 4)")).collect::<Vec<_>>().join(" and ")
    }

    #[test]
    fn as_many_as_fit_are_taken() {
        assert_eq!(errors(&manifest(256, 1024, 255, 512, &aligned(16))), [""; 0]);
    }

    #[test]
    fn one_more_is_too_many() {
        let many = manifest(257, 1026, 256, 513, "true");
        assert_eq!(
            errors(&many),
            [
                "the plugin has 1026 attributes, more than 1024",
                "the plugin has 257 inputs and outputs, more than 256",
                "the plugin has 257 requirements, more than 256",
                "the launch has 513 arguments, more than 512",
            ]
        );
        assert_eq!(
            errors(&manifest(0, 1, 20, 1, &aligned(17))),
            ["the guard has 17 different questions `aligned`, more than 16"]
        );
    }

    #[test]
    fn parameters_and_combinations_are_counted() {
        let text = |parameters: usize, combinations: usize| {
            let names: String = (0..parameters).map(|index| format!("T{index} = [\"f32\"]\n")).collect();
            let combination = "[[combinations]]\ntypes = { T0 = [\"f32\"] }\n".repeat(combinations);
            format!(
                "{}[types]\n{names}[formats]\nF = [\"linear\"]\n{combination}",
                manifest(0, 1, 1, 1, "true")
            )
        };
        assert_eq!(errors(&text(255, 1024)), [""; 0]);
        assert_eq!(
            errors(&text(256, 1025)),
            [
                "the plugin has 257 type and format parameters, more than 256",
                "the plugin has 1025 combinations, more than 1024",
            ]
        );
    }

    #[test]
    fn allowed_values_are_counted() {
        let values: Vec<String> = (0..1025).map(|value| value.to_string()).collect();
        let one_of = format!("type = \"i32\"\none_of = [{}]\n", values.join(","));
        let text = manifest(0, 1, 1, 1, "true").replace("type = \"i32\"\n", &one_of);
        assert_eq!(errors(&text), ["the attribute has 1025 allowed values, more than 1024"]);
    }
}
