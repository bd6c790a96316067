use cubinder_expr::{BinaryOp, Expr, Interval, Kind, ScalarType, Value};
use cubinder_launch::append;
use cubinder_launch::proof::Case;
use cubinder_model::ArgValue;

use super::UnitCode;
use super::claim::{Claim, Must, Predicate, Remedy, StepId, Term, When};
use super::draft_view::DraftView;
use super::formula::{Reads, binary, int, length, reads};
use super::witness::value;
use crate::resolve::ArgDraftValue;
use crate::rules;

pub(super) fn claims(view: &DraftView<'_>, compiled: &[UnitCode<'_>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (unit, compiled) in view.units().iter().zip(compiled) {
        for arg in compiled.args {
            let Some(draft) = unit.args.iter().find(|draft| draft.name == arg.name) else { continue };
            let ArgDraftValue::Expr { kind, .. } = &draft.value else { continue };
            let (ty, len, expr) = match &arg.value {
                ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => continue,
                ArgValue::Scalar { ty, expr } => (*ty, None, expr),
                ArgValue::Array { ty, len, expr } => (*ty, Some(*len), expr),
            };
            let term = Term {
                subject: format!("the argument `{}`", draft.name),
                expr: expr.clone(),
                span: draft.value_span.clone(),
                when: When::Running(StepId { row: unit.variant, step: unit.step }),
            };
            claims.extend(number(&term, kind, ty));
            claims.extend(len.map(|len| {
                let has_length = binary(BinaryOp::Eq, &length(expr), &int(i64::from(len)));
                let must = Must::Have(format!("length {len}"));
                term.claim(rules::ARGUMENT_OVERFLOW, must, Predicate::Holds(has_length))
            }));
        }
    }
    claims
}

const WIDER: &str = ", or use a wider type in the kernel";

const INTEGER: &str =
    ", or use an integer in the kernel: the range of an enumeration is inferred from its names";

fn number(term: &Term, kind: &Kind, ty: ScalarType) -> Option<Claim> {
    let claim = |name: String, predicate: Predicate, remedy: &'static str| Claim {
        remedy: Remedy::Limit(remedy),
        ..term.claim(rules::ARGUMENT_OVERFLOW, Must::Fit(name), predicate)
    };
    let is_integer = match kind {
        Kind::Array(item) => **item == Kind::Int,
        kind => *kind == Kind::Int,
    };
    if let (ScalarType::F32 | ScalarType::F64, Some(value)) = (ty, constant_value(&term.expr)) {
        let name = if ty == ScalarType::F32 { "float" } else { "double" };
        let exactly = if is_integer { " exactly" } else { "" };
        return Some(claim(format!("`{name}`{exactly}"), Predicate::Misfit(misfit(ty, &value)?), WIDER));
    }
    let (is_exact, allowed, name) = range(ty).filter(|_| is_integer)?;
    if term.expr.constant().is_some_and(|value| allowed.contains(value)) {
        return None;
    }
    let predicate = if is_exact { Predicate::Fits(allowed) } else { Predicate::Within(allowed) };
    let remedy = if matches!(ty, ScalarType::Natural { .. }) { INTEGER } else { WIDER };
    Some(claim(name, predicate, remedy))
}

fn constant_value(expr: &Expr) -> Option<Value> {
    value(expr, &Case::default()).ok().filter(|_| reads(expr) == Reads::default())
}

fn misfit(ty: ScalarType, value: &Value) -> Option<String> {
    let fits = |value: &Value| append(&mut Vec::new(), ty, value).is_ok();
    match value {
        Value::Array(items) => {
            let (index, item) = items.iter().enumerate().find(|(_, item)| !fits(item))?;
            Some(format!("element {index} is {item}"))
        }
        value => (!fits(value)).then(|| format!("this is {value}")),
    }
}

/// Returns whether it is a float, its range of exact integers, and its name. Larger floats are checked per value.
fn range(ty: ScalarType) -> Option<(bool, Interval, String)> {
    let exact = |end: i64, name: &str| Some((true, Interval { min: -end, max: end }, name.to_owned()));
    let bits = ty.size() * 8;
    let (least, greatest) = match ty {
        ScalarType::F32 => return exact(1 << 24, "`float` exactly"),
        ScalarType::F64 => return exact(1 << 53, "`double` exactly"),
        ScalarType::Int { bytes: 8 } => return None,
        ty => ty.integers()?,
    };
    let name = match ty {
        ScalarType::Int { .. } => format!("a signed integer of {bits} bits"),
        ScalarType::UInt { .. } => format!("an unsigned integer of {bits} bits"),
        _ => format!("an enumeration of 0 to {greatest}"),
    };
    let end = |end: i128| i64::try_from(end).unwrap_or(i64::MAX);
    Some((false, Interval { min: end(least), max: end(greatest) }, name))
}
