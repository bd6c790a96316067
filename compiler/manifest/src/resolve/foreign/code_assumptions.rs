//! Adds precompiled code's assumptions to the guard: code for multiples of 16 accesses wrong memory for others.

use cubinder_expr::Value;
use cubinder_expr::{BinaryOp, Expr, Kind, Node, SyntaxKind, Typed, parse};
use cubinder_model::AttributeElement;

use super::super::conditions::{Condition, condition};
use super::super::declarations::tensors;
use super::super::errors::{AssumptionMisfit, AssumptionNeverHolds, FixedWithoutArgument};
use super::super::expression::{Compiler, Expected, RowScope};
use super::super::rows::Row;
use super::code_for_row;
use crate::diagnostic::Diagnostic;
use crate::manifest::{ArgDecl, LaunchDecl, Manifest, ParameterDecl, ParameterKind};

/// Expressions may repeat. Skips invalid arguments.
pub(in super::super) fn assumptions(compiler: &mut Compiler<'_>, row: &Row) -> Vec<String> {
    let scope = compiler.row_scope(row);
    let mut all: Vec<String> = Vec::new();
    for step in &compiler.declared.manifest.launches {
        let Some(launch) = step.launch().filter(|launch| launch.is_of_code) else { continue };
        let Condition::Done(when) = condition(compiler, step, &scope) else { continue };
        let claims = launch_assumptions(compiler, launch, row, &scope).into_iter();
        all.extend(claims.map(|claim| match &when {
            Some(when) => format!("(not ({}) or {claim})", when.text.trim()),
            None => claim,
        }));
    }
    all
}

fn launch_assumptions(
    compiler: &mut Compiler<'_>,
    launch: &LaunchDecl,
    row: &Row,
    scope: &RowScope,
) -> Vec<String> {
    let Ok(code) = code_for_row(compiler.declared.manifest, launch, row) else { return Vec::new() };
    let mut claims = Vec::new();
    for decl in &code.parameters {
        let assumed = match &decl.kind {
            ParameterKind::Passed(passed) => passed.multiple.map(Assumed::MultipleOf),
            ParameterKind::Fixed(value) => Some(Assumed::Is(value)),
        };
        let Some(assumed) = assumed else { continue };
        let arg = launch.args.iter().flatten().find(|arg| arg.name.value == decl.name.value);
        match (arg, assumed) {
            (Some(arg), assumed) => match argument_assumption(compiler, arg, decl, assumed, scope) {
                Ok(claim) => claims.extend(claim),
                Err(error) => compiler.report(*error, Some(row.index)),
            },
            (None, Assumed::Is(value)) if launch.args.is_some() => {
                let (span, parameter) = (compiler.span(&launch.args_range), compiler.span(&decl.range));
                let name = decl.name.value.as_str();
                compiler.report(FixedWithoutArgument { name, span, parameter, value }, Some(row.index));
            }
            (None, _) => {}
        }
    }
    claims
}

#[derive(Clone, Copy)]
enum Assumed<'m> {
    MultipleOf(u32),
    Is(&'m Value),
}

fn argument_assumption(
    compiler: &mut Compiler<'_>,
    arg: &ArgDecl,
    decl: &ParameterDecl,
    assumed: Assumed<'_>,
    scope: &RowScope,
) -> Result<Option<String>, Box<Diagnostic>> {
    let manifest = compiler.declared.manifest;
    let Some(text) = &arg.value else { return Ok(None) };
    let name = text.value.trim();
    let misfit = |compiler: &Compiler<'_>, found: &str| {
        let wanted = match assumed {
            Assumed::MultipleOf(number) => format!("a multiple of {number}"),
            Assumed::Is(value) => value.to_string(),
        };
        let (span, parameter) = (compiler.span(&text.range), compiler.span(&decl.range));
        Err(Box::new(AssumptionMisfit { name: &decl.name.value, wanted, span, found, parameter }.into()))
    };
    if tensors(manifest).any(|tensor| tensor.name.value == name) {
        compiler.use_name(name);
        return match assumed {
            Assumed::MultipleOf(1) => Ok(None),
            Assumed::MultipleOf(bytes) => Ok(Some(format!("aligned({name}, {bytes})"))),
            Assumed::Is(_) => misfit(compiler, "a tensor"),
        };
    }
    if compiler.declared.scratch_buffer(name).is_some() {
        return match assumed {
            Assumed::MultipleOf(_) => Ok(None),
            Assumed::Is(_) => misfit(compiler, "a scratch buffer"),
        };
    }
    let typed = compiler.expression(text, &arg.name.value, Expected::Argument, scope);
    let Some(typed) = typed else { return Ok(None) };
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
        return misfit(compiler, &format!("a value of kind {}", typed.kind));
    }
    let Some(holds) = compiler.condition(&claim, scope) else { return Ok(None) };
    match holds.expr.nodes.as_slice() {
        [Node::Bool(true)] => Ok(None),
        [Node::Bool(false)] => {
            let (span, parameter) = (compiler.span(&text.range), compiler.span(&decl.range));
            let error = AssumptionNeverHolds { name: &decl.name.value, claim: &claim, span, parameter };
            Err(Box::new(compiler.with_values(error.into(), text, scope.row)))
        }
        _ => Ok(Some(claim)),
    }
}

/// Rounds literals for 32-bit attributes, like the code's constant.
fn equality(manifest: &Manifest, name: &str, value: &Value, typed: &Typed) -> String {
    let is = |value: &Value| format!("{} == {value}", operand(name));
    let Value::Float(exact) = value else { return is(value) };
    let is_single = |node: &Node| match node {
        Node::Attribute(index) => usize::try_from(*index)
            .ok()
            .and_then(|index| manifest.attributes.get(index))
            .is_some_and(|decl| decl.ty.value.element == AttributeElement::F32),
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

/// Falls back to the guard. Compares compiled expressions: texts may differ in spaces.
pub(in super::super) fn conjuncts(guard: &Expr) -> Vec<Expr> {
    const MAX_CONJUNCTS: usize = 256;
    let mut found = Vec::new();
    let mut open = vec![u32::try_from(guard.nodes.len().saturating_sub(1)).unwrap_or(u32::MAX)];
    while let Some(root) = open.pop() {
        match guard.nodes.get(root as usize) {
            Some(Node::Binary(BinaryOp::And, left, right)) => open.extend([*right, *left]),
            _ => found.extend(guard.part(root)),
        }
        if found.len() + open.len() > MAX_CONJUNCTS {
            return vec![guard.clone()];
        }
    }
    found
}

pub(in super::super) fn conjoined(guard: Option<&str>, assumptions: &[String]) -> Option<String> {
    match (guard, assumptions) {
        (guard, []) => guard.map(str::to_owned),
        (None, new) => Some(new.join(" and ")),
        (Some(guard), new) => Some(format!("({}) and {}", guard.trim(), new.join(" and "))),
    }
}

fn operand(text: &str) -> String {
    use SyntaxKind::{Bool, Call, Field, Float, Index, Int, Name};
    let is_simple = parse(text).is_ok_and(|syntax| match syntax.kind {
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
