//! What code was made for beyond its types becomes a part of the guard: multiples, alignments, fixed values.
//!
//! A compiler that was told that a number is a multiple of 16 reads memory in steps that are wrong for every other number. So nothing is left
//! to the author to remember: what a parameter says is asked of its argument wherever the launch is done.

use cubinder_expr::Value;
use cubinder_expr::{BinaryOp, Expr, Kind, Node, SyntaxKind, Typed, parse};
use cubinder_model::AttributeElement;

use super::super::expression::{Compiler, Expected, Place};
use super::super::rows::Row;
use super::super::steps::scratch_buffer;
use super::of_row;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{ArgDecl, LaunchDecl, Manifest, ParameterDecl, ParameterKind, StepDecl, Text};
use crate::rules;

/// What all launches of a row assume, as expressions for its guard, some of them perhaps twice. What is wrong with an argument is told, and
/// assumes nothing.
pub(in super::super) fn assumptions(
    compiler: &mut Compiler<'_>,
    row: &Row,
    place: &Place,
    index: usize,
) -> Vec<String> {
    let manifest = compiler.manifest;
    let mut all: Vec<String> = Vec::new();
    for step in &manifest.launches {
        let Some(launch) = step.launch().filter(|launch| launch.is_of_code) else { continue };
        let Some(condition) = condition(compiler, step, place) else { continue };
        for text in of_launch(compiler, launch, row, place, index) {
            let text = match &condition {
                Some(when) => format!("(not ({when}) or {text})"),
                None => text,
            };
            all.push(text);
        }
    }
    all
}

/// The condition of a step, where it has one that is not decided; nothing where the step is not done, or where that is not known.
fn condition(compiler: &mut Compiler<'_>, step: &StepDecl, place: &Place) -> Option<Option<String>> {
    let Some(text) = &step.when else { return Some(None) };
    let typed = compiler.expression(text, "when", Expected::Bool, place)?;
    match typed.expr.nodes.as_slice() {
        [Node::Bool(true)] => Some(None),
        [Node::Bool(false)] => None,
        _ => Some(Some(text.value.trim().to_owned())),
    }
}

fn of_launch(
    compiler: &mut Compiler<'_>,
    launch: &LaunchDecl,
    row: &Row,
    place: &Place,
    index: usize,
) -> Vec<String> {
    let Ok(code) = of_row(compiler.manifest, launch, row) else { return Vec::new() };
    let mut texts = Vec::new();
    for decl in &code.parameters {
        let assumed = match &decl.kind {
            ParameterKind::Passed(passed) => passed.multiple.map(Assumed::MultipleOf),
            ParameterKind::Fixed(value) => Some(Assumed::Is(value)),
        };
        let Some(assumed) = assumed else { continue };
        let arg = launch.args.iter().flatten().find(|arg| arg.name.value == decl.name.value);
        match arg {
            Some(arg) => texts.extend(of_argument(compiler, arg, decl, &assumed, place, index)),
            None => {
                if let (Assumed::Is(value), Some(_)) = (&assumed, &launch.args) {
                    let error = no_argument(compiler, launch, decl, value);
                    compiler.report(error, Some(index));
                }
            }
        }
    }
    texts
}

/// What is assumed of an argument.
enum Assumed<'m> {
    MultipleOf(u32),
    Is(&'m Value),
}

fn no_argument(
    compiler: &Compiler<'_>,
    launch: &LaunchDecl,
    decl: &ParameterDecl,
    value: &Value,
) -> Diagnostic {
    let name = &decl.name.value;
    Diagnostic::error(format!("`{name}`, for which the code was made, gets no argument"))
        .code(rules::MISSING_ARGUMENT)
        .at(compiler.span(launch.args_range.clone()), "not among these")
        .related(compiler.span(decl.range.clone()), format!("the code is right where it is {value}"))
        .help(format!("say what it is in this launch, `{name} = \"...\"`: nothing is passed, and the guard holds it against {value}"))
}

fn of_argument(
    compiler: &mut Compiler<'_>,
    arg: &ArgDecl,
    decl: &ParameterDecl,
    assumed: &Assumed<'_>,
    place: &Place,
    index: usize,
) -> Option<String> {
    let manifest = compiler.manifest;
    let text = arg.value.as_ref()?;
    let name = text.value.trim();
    if is_tensor(manifest, name) {
        compiler.use_name(name);
        return match assumed {
            Assumed::MultipleOf(1) => None,
            Assumed::MultipleOf(bytes) => Some(format!("aligned({name}, {bytes})")),
            Assumed::Is(_) => {
                misfit(compiler, text, decl, assumed, "a tensor", index);
                None
            }
        };
    }
    // Scratch memory begins at multiples of 256, and no alignment is larger.
    if scratch_buffer(manifest, text).is_some() {
        if let Assumed::Is(_) = assumed {
            misfit(compiler, text, decl, assumed, "a scratch buffer", index);
        }
        return None;
    }
    let typed = compiler.expression(text, &arg.name.value, Expected::Argument, place)?;
    let (claim, fits) = match assumed {
        Assumed::MultipleOf(number) => {
            (format!("{} % {number} == 0", operand(name)), typed.kind == Kind::Int)
        }
        Assumed::Is(value) => {
            let fits = match value {
                Value::Bool(_) => typed.kind == Kind::Bool,
                Value::Float(_) => matches!(typed.kind, Kind::Float | Kind::Int),
                _ => typed.kind == Kind::Int,
            };
            (equality(manifest, name, value, &typed), fits)
        }
    };
    if !fits {
        misfit(compiler, text, decl, assumed, &format!("a value of the kind {}", typed.kind), index);
        return None;
    }
    // The parts are right, so the whole is.
    let holds =
        compiler.expression(&Text::stands_for(0..0, claim.clone()), "guard", Expected::Bool, place)?;
    match holds.expr.nodes.as_slice() {
        [Node::Bool(true)] => None,
        [Node::Bool(false)] => {
            let error = Diagnostic::error(format!("the code was made for another `{}`", decl.name.value))
                .code(rules::CODE_ASSUMPTION)
                .at(compiler.span_of(text), format!("`{claim}` never holds"))
                .related(span(compiler, decl), "what the code was made for")
                .help("pass what the code was made for, or have the code made for this");
            let error = compiler.with_values(error, text, Some(index));
            compiler.report(error, Some(index));
            None
        }
        _ => Some(claim),
    }
}

/// `n == 4`. An attribute of 32 bits that a node says to be 0.1 is the float that is nearest to it, and so was what the code was made for,
/// whatever its compiler printed.
fn equality(manifest: &Manifest, name: &str, value: &Value, typed: &Typed) -> String {
    let is = |value: &Value| format!("{} == {value}", operand(name));
    let Value::Float(exact) = value else { return is(value) };
    let is_single = |node: &Node| match node {
        Node::Attribute(index) => usize::try_from(*index)
            .ok()
            .and_then(|index| manifest.attributes.get(index))
            .is_some_and(|decl| decl.ty.element == AttributeElement::F32),
        _ => false,
    };
    #[allow(clippy::cast_possible_truncation, reason = "rounding to 32 bits is what is wanted")]
    let single = Value::Float(f64::from(*exact as f32));
    match typed.expr.nodes.as_slice() {
        _ if single == *value => is(value),
        [one] | [one, Node::Int(_), Node::Index { .. }] if is_single(one) => is(&single),
        nodes if nodes.iter().any(is_single) => format!("({} or {})", is(value), is(&single)),
        _ => is(value),
    }
}

fn span(compiler: &Compiler<'_>, decl: &ParameterDecl) -> Span {
    compiler.span(decl.range.clone())
}

fn is_tensor(manifest: &Manifest, name: &str) -> bool {
    let inputs = manifest.inputs.iter().map(|input| &input.name.value);
    inputs.chain(manifest.outputs.iter().map(|output| &output.name.value)).any(|known| known == name)
}

fn misfit(
    compiler: &mut Compiler<'_>,
    text: &Text,
    decl: &ParameterDecl,
    assumed: &Assumed<'_>,
    found: &str,
    index: usize,
) {
    let wanted = match assumed {
        Assumed::MultipleOf(number) => format!("a multiple of {number}"),
        Assumed::Is(value) => format!("{value}"),
    };
    let error = Diagnostic::error(format!("it cannot be held that `{}` is {wanted}", decl.name.value))
        .code(rules::CODE_ASSUMPTION)
        .at(compiler.span_of(text), format!("this is {found}"))
        .related(span(compiler, decl), "what the code was made for")
        .help("pass a number of the same kind");
    compiler.report(error, Some(index));
}

/// What a guard asks for side by side; the whole of it where that is one thing, or very many.
///
/// Compiled expressions are compared, never texts: what a text asks for depends on every blank and parenthesis in it.
pub(in super::super) fn conjuncts(guard: &Expr) -> Vec<Expr> {
    const MOST: usize = 256;
    let mut found = Vec::new();
    let mut open = vec![u32::try_from(guard.nodes.len().saturating_sub(1)).unwrap_or(u32::MAX)];
    while let Some(root) = open.pop() {
        match guard.nodes.get(root as usize) {
            Some(Node::Binary(BinaryOp::And, left, right)) => open.extend([*right, *left]),
            _ => found.extend(guard.part(root)),
        }
        if found.len() + open.len() > MOST {
            return vec![guard.clone()];
        }
    }
    found
}

/// The guard of a variant and what its launches assume.
pub(in super::super) fn conjoined(guard: Option<&str>, assumptions: &[String]) -> Option<String> {
    match (guard, assumptions) {
        (guard, []) => guard.map(str::to_owned),
        (None, new) => Some(new.join(" and ")),
        (Some(guard), new) => Some(format!("({}) and {}", guard.trim(), new.join(" and "))),
    }
}

/// An expression as a part of another: in parentheses, but where it is a name, a number, or what stands behind a name.
fn operand(text: &str) -> String {
    use SyntaxKind::{Bool, Call, Field, Float, Index, Int, Name};
    let is_simple = parse(text).is_ok_and(|syntax| match syntax.kind {
        // A number with a sign is one number.
        Int(_) | Float(_) => !text.starts_with('-'),
        Bool(_) | Name(_) | Field { .. } | Index { .. } | Call { .. } => !text.starts_with('('),
        _ => false,
    });
    if is_simple { text.to_owned() } else { format!("({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_parts() {
        for (text, whole) in [
            ("n", "n"),
            ("x.shape[1 + 2]", "x.shape[1 + 2]"),
            ("(x.shape)[0]", "((x.shape)[0])"),
            ("n + 8", "(n + 8)"),
            ("-1", "(-1)"),
            ("(a) + (b)", "((a) + (b))"),
            ("a if b else c", "(a if b else c)"),
            // Parentheses in a text open nothing.
            ("f(\"(\") + g(\")\")", "(f(\"(\") + g(\")\"))"),
        ] {
            assert_eq!(operand(text), whole);
        }
        let both = ["a".to_owned(), "b".to_owned()];
        assert_eq!(conjoined(None, &[]), None);
        assert_eq!(conjoined(Some("n > 1"), &[]).as_deref(), Some("n > 1"));
        assert_eq!(conjoined(None, &both).as_deref(), Some("a and b"));
        assert_eq!(conjoined(Some(" n or m "), &both).as_deref(), Some("(n or m) and a and b"));
    }
}
