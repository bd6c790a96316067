//! [`cubinder_model::validate`]'s limits on a plugin's size, which bound later work.

use std::collections::BTreeSet;
use std::ops::Range;

use cubinder_model::model::MAX_ARGUMENTS;
use cubinder_model::validate::{
    MAX_ALIGNMENTS, MAX_ALLOWED_VALUES, MAX_ATTRIBUTES, MAX_REQUIREMENTS, MAX_SCRATCH, MAX_STEPS,
    MAX_TENSORS, alignments,
};

use super::declarations::{Declarations, tensors};
use super::errors::TooMany;
use super::rows::Candidate;
use crate::diagnostic::Diagnostic;
use crate::manifest::StepDecl;

/// Part of every compile.
const MAX_TABLES: usize = 64;

/// Choices are compared with combinations.
const MAX_PARAMETERS: usize = 256;
const MAX_COMBINATIONS: usize = 1024;

pub(super) fn check(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let manifest = declared.manifest;
    let formats = manifest.formats.iter().map(|decl| &decl.name.range);
    let parameters = manifest.types.iter().map(|decl| &decl.name.range).chain(formats);
    let counted: [(_, Vec<&Range<usize>>, _); 8] = [
        ("attributes", manifest.attributes.iter().map(|decl| &decl.name.range).collect(), MAX_ATTRIBUTES),
        ("inputs and outputs", tensors(manifest).map(|tensor| &tensor.name.range).collect(), MAX_TENSORS),
        (
            "requirements",
            manifest.plugin.require.iter().map(|decl| &decl.expr.range).collect(),
            MAX_REQUIREMENTS,
        ),
        ("steps", manifest.launches.iter().map(|decl| &decl.range).collect(), MAX_STEPS),
        ("tables", manifest.tables.iter().map(|decl| &decl.name.range).collect(), MAX_TABLES),
        ("type and format parameters", parameters.collect(), MAX_PARAMETERS),
        ("combinations", manifest.combinations.iter().map(|decl| &decl.range).collect(), MAX_COMBINATIONS),
        ("scratch buffers", manifest.scratch.iter().map(|decl| &decl.name.range).collect(), MAX_SCRATCH),
    ];
    let mut counted: Vec<_> =
        counted.into_iter().map(|(what, ranges, most)| ("the plugin", what, ranges, most)).collect();
    for launch in manifest.launches.iter().filter_map(StepDecl::launch) {
        let args = launch.args.iter().flatten().map(|arg| &arg.name.range).collect();
        counted.push(("the launch", "arguments", args, MAX_ARGUMENTS));
    }
    for values in manifest.attributes.iter().flat_map(|decl| decl.one_of.iter().chain(&decl.specialize)) {
        let ranges = vec![&values.range; values.value.len()];
        counted.push(("the attribute", "allowed values", ranges, MAX_ALLOWED_VALUES));
    }
    let too_many = |(owner, what, ranges, most): (_, _, Vec<&Range<usize>>, usize)| {
        let span = declared.span(ranges.get(most)?);
        Some(TooMany { owner, what, count: ranges.len(), most, span }.into())
    };
    counted.into_iter().filter_map(too_many).collect()
}

pub(super) fn check_guards(declared: Declarations<'_>, candidates: &mut [Candidate]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut reported = BTreeSet::new();
    for Candidate { row, guard, .. } in candidates {
        let count = guard.as_ref().map_or(0, |guard| alignments(&guard.expr).len());
        let decl = declared.manifest.variants.get(row.variant).and_then(|decl| decl.guard.as_ref());
        let Some(text) = decl.filter(|_| count > MAX_ALIGNMENTS) else { continue };
        *guard = None;
        if reported.insert(row.variant) {
            let what = "different `aligned` calls";
            let span = declared.span(&text.range);
            found.push(TooMany { owner: "the guard", what, count, most: MAX_ALIGNMENTS, span }.into());
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
            ["the guard has 17 different `aligned` calls, more than 16"]
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
