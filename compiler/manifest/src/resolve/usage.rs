//! Which of the manifest's names are used, and the warnings about those that are not.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_expr::{Syntax, SyntaxKind};

use super::rows::tensors;
use crate::diagnostic::{Code, Diagnostic, Source, Span};
use crate::manifest::{AttributeDecl, Located, Manifest};
use crate::rules;

/// A parameter, a constant or an attribute that code is compiled for, which nothing in the manifest uses. The kernel may use it all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusedName {
    /// The name, as kernels see it in `manifest::`.
    pub name: String,
    /// What is to be said where no kernel uses it either.
    pub warning: Diagnostic,
}

/// What is to be said about names that are not used.
#[derive(Debug, Default)]
pub(super) struct Unused {
    /// What only the manifest can use.
    pub(super) warnings: Vec<Diagnostic>,
    /// What a kernel can use.
    pub(super) names: Vec<UnusedName>,
}

/// What nothing uses, given the names that expressions, arguments and kernel names mention.
/// `in_rows` are those that guards and launches mention.
pub(super) fn unused(
    manifest: &Manifest,
    source: &Arc<Source>,
    used: &BTreeSet<String>,
    in_rows: &BTreeSet<String>,
) -> Unused {
    let is_unused = |name: &Located<String>| !name.value.is_empty() && !used.contains(&name.value);
    let warning = |what: &str, name: &Located<String>, code: Code| {
        Diagnostic::warning(format!("the {what} `{}` is never used", name.value))
            .code(code)
            .at(Span::new(source, name.range.clone()), "declared here")
    };
    let mut unused = Unused::default();
    let specialized = |decl: &&AttributeDecl| decl.specialize.is_some();
    // The one value that a node may have is what the kernel computes with anyway: other values are refused, where TensorRT would drop
    // an attribute that no plugin declares without a word.
    let pinned = |decl: &&AttributeDecl| decl.one_of.as_ref().is_some_and(|values| values.value.len() == 1);
    let attributes = manifest.attributes.iter().filter(|decl| !specialized(decl) && !pinned(decl));
    let attributes = attributes.map(|decl| ("attribute", &decl.name));
    let functions = manifest.functions.iter().map(|decl| ("function", &decl.name));
    for (what, name) in attributes.chain(functions).filter(|(_, name)| is_unused(name)) {
        let warning = warning(what, name, rules::UNUSED);
        unused.warnings.push(warning.help("use it in an expression, or leave it out"));
    }
    for decl in manifest.scratch.iter().filter(|decl| is_unused(&decl.name)) {
        let warning = warning("scratch buffer", &decl.name, rules::UNUSED);
        unused.warnings.push(
            warning.help(format!(
                "pass it to a kernel: `<parameter> = \"{}\"`, or leave it out",
                decl.name.value
            )),
        );
    }
    for input in manifest.inputs.iter().filter(|input| is_unused(&input.name)) {
        let name = &input.name.value;
        let help = match input.values {
            Some(_) => format!(
                "use its values in the shape of an output, such as `{name}.values[0]`, or leave it out"
            ),
            None => format!("pass it to the kernel: `<parameter> = \"{name}\"`, or leave it out"),
        };
        unused.warnings.push(warning("input", &input.name, rules::UNREAD_INPUT).help(help));
    }
    let tensor_types: BTreeSet<&String> = tensors(manifest).map(|tensor| &tensor.ty.value).collect();
    let types = manifest.types.iter().filter(|decl| !tensor_types.contains(&decl.name.value));
    let tensor_formats: BTreeSet<&String> =
        tensors(manifest).filter_map(|tensor| tensor.format).map(|name| &name.value).collect();
    let formats = manifest.formats.iter().filter(|decl| !tensor_formats.contains(&decl.name.value));
    let formats = formats.map(|decl| ("format parameter", &decl.name));
    let constants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    let constants = manifest.constants.iter().chain(constants).map(|decl| ("constant", &decl.name));
    let of_kernels = constants.chain(types.map(|decl| ("type parameter", &decl.name))).chain(formats);
    let mut known = BTreeSet::new();
    for (what, name) in of_kernels.filter(|(_, name)| is_unused(name)) {
        // A constant of several variants is one name.
        if known.insert(&name.value) {
            let warning = warning(what, name, rules::UNUSED).help(format!(
                "use it in the manifest, or in the kernel as `manifest::{}`, or leave it out",
                name.value
            ));
            unused.names.push(UnusedName { name: name.value.clone(), warning });
        }
    }
    // Expressions cannot use tables.
    for name in manifest.tables.iter().map(|decl| &decl.name).filter(|name| !name.value.is_empty()) {
        let warning = warning("table", name, rules::UNUSED)
            .help(format!("use it in the kernel as `manifest::{}`, or leave it out", name.value));
        unused.names.push(UnusedName { name: name.value.clone(), warning });
    }
    for decl in manifest.attributes.iter().filter(specialized) {
        let name = &decl.name;
        if name.value.is_empty() || in_rows.contains(&name.value) {
            continue;
        }
        let place = decl.specialize.as_ref().map_or(&name.range, |values| &values.range);
        let warning = Diagnostic::warning(format!("the code is the same for each value of `{}`", name.value))
            .code(rules::UNUSED)
            .at(Span::new(source, place.clone()), "it is compiled once for each of these")
            .help(format!(
                "use it as a template argument, in a launch, or in the kernel as `manifest::{}`, or write `one_of`",
                name.value
            ));
        unused.names.push(UnusedName { name: name.value.clone(), warning });
    }
    unused
}

/// Calls `visit` with every name and every function name that is not bound in the expression itself: not a variable of a
/// comprehension, and none of `bound`. The parser bounds the depth of the tree.
pub(super) fn free_names<'s>(syntax: &'s Syntax, bound: &mut Vec<&'s str>, visit: &mut dyn FnMut(&str)) {
    match &syntax.kind {
        SyntaxKind::Int(_) | SyntaxKind::Float(_) | SyntaxKind::Bool(_) | SyntaxKind::Str(_) => {}
        SyntaxKind::Name(name) => {
            if !bound.contains(&name.as_str()) {
                visit(name);
            }
        }
        SyntaxKind::Array(items) => items.iter().for_each(|item| free_names(item, bound, visit)),
        SyntaxKind::Unary(_, operand) => free_names(operand, bound, visit),
        SyntaxKind::Binary(_, left, right) => {
            free_names(left, bound, visit);
            free_names(right, bound, visit);
        }
        SyntaxKind::Conditional { condition, then, otherwise } => {
            free_names(condition, bound, visit);
            free_names(then, bound, visit);
            free_names(otherwise, bound, visit);
        }
        SyntaxKind::Index { array, index } => {
            free_names(array, bound, visit);
            free_names(index, bound, visit);
        }
        SyntaxKind::Field { object, .. } => free_names(object, bound, visit),
        // Functions are looked up apart from values.
        SyntaxKind::Call { function, args, .. } => {
            visit(function);
            args.iter().for_each(|arg| free_names(arg, bound, visit));
        }
        SyntaxKind::Comprehension { body, variable, over, condition, .. } => {
            free_names(over, bound, visit);
            bound.push(variable);
            free_names(body, bound, visit);
            condition.iter().for_each(|condition| free_names(condition, bound, visit));
            bound.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::parse;

    use super::*;

    fn names(text: &str, params: &[&'static str]) -> Vec<String> {
        let mut names = Vec::new();
        free_names(&parse(text).unwrap(), &mut params.to_vec(), &mut |name| names.push(name.to_owned()));
        names
    }

    #[test]
    fn variables_and_parameters_are_no_uses() {
        assert_eq!(names("[x + n for x in x.shape if x > k]", &[]), ["x", "n", "k"]);
        assert_eq!(names("f(x) + y[i] - (a if b else 'c')", &["i", "y"]), ["f", "x", "b", "a"]);
        assert_eq!(names("[1 for i in range(3)] == [i]", &[]), ["range", "i"]);
    }
}
