//! What a part of an expression can be, and what follows for operations on ranges.

use crate::expr::node::BinaryOp;
use crate::expr::ops;
use crate::value::Value;

/// What a part can be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extent {
    Known(Value),
    /// Both ends included.
    Int(i64, i64),
    /// Either.
    Bool,
    /// Of known length.
    Array(Vec<Extent>),
    /// Anything of its kind: a float, an array of unknown length.
    Any,
}

impl Extent {
    pub(super) fn of_ints((low, high): (i64, i64)) -> Extent {
        if low == high { Extent::Known(Value::Int(low)) } else { Extent::Int(low, high) }
    }

    pub(super) fn of_bool(value: Option<bool>) -> Extent {
        value.map_or(Extent::Bool, |value| Extent::Known(Value::Bool(value)))
    }

    pub(super) fn ints(&self) -> Option<(i64, i64)> {
        match self {
            Extent::Known(Value::Int(value)) => Some((*value, *value)),
            Extent::Int(low, high) => Some((*low, *high)),
            _ => None,
        }
    }

    /// Whether it is a boolean, and which where that is known.
    pub(super) fn bools(&self) -> Option<Option<bool>> {
        match self {
            Extent::Known(Value::Bool(value)) => Some(Some(*value)),
            Extent::Bool => Some(None),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> Option<Vec<Extent>> {
        match self {
            Extent::Known(Value::Array(items)) => Some(items.iter().cloned().map(Extent::Known).collect()),
            Extent::Array(items) => Some(items.clone()),
            _ => None,
        }
    }

    pub(super) fn array(items: Vec<Extent>) -> Extent {
        let known: Option<Vec<Value>> = items
            .iter()
            .map(|item| match item {
                Extent::Known(value) => Some(value.clone()),
                _ => None,
            })
            .collect();
        known.map_or(Extent::Array(items), |values| Extent::Known(Value::Array(values)))
    }

    /// Everything that is one or the other.
    pub(super) fn join(&self, other: &Extent) -> Extent {
        if self == other {
            return self.clone();
        }
        if let (Some(left), Some(right)) = (self.ints(), other.ints()) {
            return Extent::of_ints((left.0.min(right.0), left.1.max(right.1)));
        }
        if self.bools().is_some() && other.bools().is_some() {
            return Extent::Bool;
        }
        match (self.items(), other.items()) {
            (Some(left), Some(right)) if left.len() == right.len() => {
                Extent::array(left.iter().zip(&right).map(|(left, right)| left.join(right)).collect())
            }
            _ => Extent::Any,
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Extent::Known(Value::Array(items)) => items.len().saturating_add(1),
            Extent::Array(items) => {
                items.iter().fold(1, |total: usize, item| total.saturating_add(item.size()))
            }
            _ => 1,
        }
    }

    pub(super) fn show(&self) -> String {
        match self {
            Extent::Known(value) => value.to_string(),
            Extent::Int(low, high) => format!("({low} to {high})"),
            Extent::Bool => "(true or false)".into(),
            Extent::Array(_) | Extent::Any => "(...)".into(),
        }
    }
}

/// The least and the greatest of an operation that is monotone in each operand.
pub(super) fn corners(a: (i128, i128), b: (i128, i128), apply: impl Fn(i128, i128) -> i128) -> (i128, i128) {
    let all = [apply(a.0, b.0), apply(a.0, b.1), apply(a.1, b.0), apply(a.1, b.1)];
    let least = all.iter().copied().fold(all[0], i128::min);
    let most = all.iter().copied().fold(all[0], i128::max);
    (least, most)
}

/// A range of divisors without 0: the negative and the positive part.
pub(super) fn divisors((low, high): (i128, i128)) -> impl Iterator<Item = (i128, i128)> {
    let negative = (low < 0).then_some((low, high.min(-1)));
    let positive = (high > 0).then_some((low.max(1), high));
    negative.into_iter().chain(positive)
}

/// The quotient rounded down; the divisor is not 0 and both fit 64 bits.
pub(super) fn floor(a: i128, b: i128) -> i128 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

pub(super) fn less(left: &Extent, right: &Extent) -> Option<bool> {
    let (left, right) = (left.ints()?, right.ints()?);
    if left.1 < right.0 {
        Some(true)
    } else if left.0 >= right.1 {
        Some(false)
    } else {
        None
    }
}

pub(super) fn equal(left: &Extent, right: &Extent) -> Option<bool> {
    if let (Extent::Known(left), Extent::Known(right)) = (left, right) {
        return ops::binary(BinaryOp::Eq, left, right).ok().map(|same| same == Value::Bool(true));
    }
    if let (Some(left), Some(right)) = (left.ints(), right.ints()) {
        let apart = left.1 < right.0 || right.1 < left.0;
        return apart.then_some(false);
    }
    let (left, right) = (left.items()?, right.items()?);
    if left.len() != right.len() {
        return Some(false);
    }
    let mut same = Some(true);
    for (left, right) in left.iter().zip(&right) {
        match equal(left, right) {
            Some(true) => {}
            Some(false) => return Some(false),
            None => same = None,
        }
    }
    same
}
