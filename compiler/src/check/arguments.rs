//! Arguments fit the types of the kernel's parameters.

use cubinder_bundle::expr::{Expr, Kind};
use cubinder_bundle::{ArgValue, Interval, ScalarType};

use super::Compiled;
use super::claim::{Claim, What, When};
use super::formula::{constant, has_length};
use super::site::Site;
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
                ArgValue::Tensor(_) => {}
                ArgValue::Scalar { ty, expr } => claims.extend(number(unit, draft, kind, *ty, expr)),
                ArgValue::Array { ty, len, expr } => {
                    claims.extend(number(unit, draft, kind, *ty, expr));
                    claims.push(Claim {
                        must: format!("has {len} elements"),
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
        ArgDraftValue::Tensor(_) => None,
    }
}

fn number(unit: &Unit, draft: &ArgDraft, kind: &Kind, ty: ScalarType, expr: &Expr) -> Option<Claim> {
    let is_integer = match kind {
        Kind::Array(item) => **item == Kind::Int,
        kind => *kind == Kind::Int,
    };
    let (what, name) = range(ty).filter(|_| is_integer)?;
    let allowed = match &what {
        What::Within(allowed) | What::Fits(allowed) => *allowed,
        What::HasValue | What::Holds(_) => return None,
    };
    if constant(expr).is_some_and(|value| allowed.contains(value)) {
        return None;
    }
    Some(Claim { must: format!("fits {name}"), what, ..claim(unit, draft, expr) })
}

fn claim(unit: &Unit, draft: &ArgDraft, expr: &Expr) -> Claim {
    Claim {
        rule: rules::ARGUMENT_OVERFLOW,
        subject: format!("the argument `{}`", draft.name),
        must: String::new(),
        what: What::HasValue,
        expr: expr.clone(),
        span: draft.value_span.clone(),
        when: When::Running(unit.variant),
    }
}

/// The integers that a type holds, and what it is called. A float holds those up to a power of two, and beyond it some.
fn range(ty: ScalarType) -> Option<(What, String)> {
    let within = |min, max| What::Within(Interval { min, max });
    let bits = |bytes: u8| u32::from(bytes) * 8;
    Some(match ty {
        // Every integer of the language fits into 64 bits with a sign.
        ScalarType::Int { bytes } if bytes >= 8 => return None,
        ScalarType::Int { bytes } => {
            let end = 1_i64 << (bits(bytes).max(1) - 1);
            (within(-end, end - 1), format!("a signed integer of {} bits", bits(bytes)))
        }
        ScalarType::UInt { bytes } => {
            let max = if bytes >= 8 { i64::MAX } else { (1_i64 << bits(bytes)) - 1 };
            (within(0, max), format!("an unsigned integer of {} bits", bits(bytes)))
        }
        ScalarType::F32 => {
            let end = 1_i64 << 24;
            (What::Fits(Interval { min: -end, max: end }), "`float` exactly".to_owned())
        }
        ScalarType::F64 => {
            let end = 1_i64 << 53;
            (What::Fits(Interval { min: -end, max: end }), "`double` exactly".to_owned())
        }
        ScalarType::Bool => return None,
    })
}
