//! Arguments fit the types of the kernel's parameters.

use cubinder_expr::{Expr, Kind};
use cubinder_expr::{Interval, ScalarType, Value};
use cubinder_launch::append;
use cubinder_launch::proof::Case;
use cubinder_model::ArgValue;

use super::Compiled;
use super::claim::{Claim, What, When};
use super::formula::{has_length, reads};
use super::site::{At, Site};
use super::witness::value;
use crate::resolve::{ArgDraft, ArgDraftValue, Unit};
use crate::rules;

/// A claim for each number whose type can be too narrow, and for each array whose length is not plain.
pub(super) fn claims(site: &Site<'_>, compiled: &[Compiled<'_>]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (unit, compiled) in site.units().iter().zip(compiled) {
        for arg in compiled.args {
            let draft = unit.args.iter().find(|draft| draft.name == arg.name);
            let Some((draft, kind)) = draft.and_then(|draft| Some((draft, kind(draft)?))) else { continue };
            match &arg.value {
                ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => {}
                ArgValue::Scalar { ty, expr } => claims.extend(number(unit, draft, kind, *ty, expr)),
                ArgValue::Array { ty, len, expr } => {
                    claims.extend(number(unit, draft, kind, *ty, expr));
                    claims.push(Claim {
                        must: format!("has {len} elements"),
                        otherwise: "",
                        what: What::Holds(has_length(expr, i64::from(*len))),
                        ..claim(unit, draft, expr)
                    });
                }
            }
        }
    }
    claims
}

fn kind(draft: &ArgDraft) -> Option<&Kind> {
    match &draft.value {
        ArgDraftValue::Expr { kind, .. } => Some(kind),
        ArgDraftValue::Tensor(_) | ArgDraftValue::Scratch(_) => None,
    }
}

const WIDER: &str = ", or take a wider type in the kernel";

const INTEGER: &str = ", or take an integer in the kernel: only the names of an enumeration show its range";

fn number(unit: &Unit, draft: &ArgDraft, kind: &Kind, ty: ScalarType, expr: &Expr) -> Option<Claim> {
    let is_integer = match kind {
        Kind::Array(item) => **item == Kind::Int,
        kind => *kind == Kind::Int,
    };
    if let (ScalarType::F32 | ScalarType::F64, Some(value)) = (ty, known(expr)) {
        let name = if ty == ScalarType::F32 { "float" } else { "double" };
        let exactly = if is_integer { " exactly" } else { "" };
        let must = format!("fits `{name}`{exactly}");
        let what = What::Misfit(misfit(ty, &value)?);
        return Some(Claim { must, what, ..claim(unit, draft, expr) });
    }
    let (what, name) = range(ty).filter(|_| is_integer)?;
    let allowed = match &what {
        What::Within(allowed) | What::Fits(allowed) => *allowed,
        What::HasValue | What::Holds(_) | What::Misfit(_) => return None,
    };
    if expr.constant().is_some_and(|value| allowed.contains(value)) {
        return None;
    }
    let otherwise = if matches!(ty, ScalarType::Natural { .. }) { INTEGER } else { WIDER };
    Some(Claim { must: format!("fits {name}"), otherwise, what, ..claim(unit, draft, expr) })
}

/// What an expression comes to that looks at nothing.
fn known(expr: &Expr) -> Option<Value> {
    let reads = reads(expr);
    let looks = !(reads.attributes.is_empty()
        && reads.shapes.is_empty()
        && reads.ranks.is_empty()
        && reads.device.is_empty());
    let nothing = Case::default();
    value(expr, &nothing).ok().filter(|_| !looks)
}

/// What the runtime's own packing would refuse of a value: `this is 1e300`.
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

fn claim(unit: &Unit, draft: &ArgDraft, expr: &Expr) -> Claim {
    Claim {
        rule: rules::ARGUMENT_OVERFLOW,
        subject: format!("the argument `{}`", draft.name),
        must: String::new(),
        otherwise: WIDER,
        what: What::HasValue,
        expr: expr.clone(),
        span: draft.value_span.clone(),
        when: When::Running(At { row: unit.variant, step: unit.step }),
    }
}

/// The integers that a type holds, and what it is called. A float holds all up to a power of two. Beyond it some fit, which is seen
/// of a constant here, and of what only a node or a shape tells at run time.
fn range(ty: ScalarType) -> Option<(What, String)> {
    let exact = |end: i64, name: &str| Some((What::Fits(Interval { min: -end, max: end }), name.to_owned()));
    let bits = ty.size() * 8;
    let (least, greatest) = match ty {
        ScalarType::F32 => return exact(1 << 24, "`float` exactly"),
        ScalarType::F64 => return exact(1 << 53, "`double` exactly"),
        // Every integer of the language fits into 64 bits with a sign.
        ScalarType::Int { bytes: 8 } => return None,
        ty => ty.integers()?,
    };
    let name = match ty {
        ScalarType::Int { .. } => format!("a signed integer of {bits} bits"),
        ScalarType::UInt { .. } => format!("an unsigned integer of {bits} bits"),
        _ => format!("an enumeration that takes 0 to {greatest}"),
    };
    let end = |end: i128| i64::try_from(end).unwrap_or(i64::MAX);
    Some((What::Within(Interval { min: end(least), max: end(greatest) }), name))
}
