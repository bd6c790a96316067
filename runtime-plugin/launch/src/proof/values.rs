use cubinder_expr::sorted;
use std::collections::{BTreeSet, HashSet};

use super::case::weight;
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, Extent, Ints, Node};
use cubinder_model::model::{Attribute, AttributeElement};

/// Maximum enumerated values of an attribute.
const FEW: usize = 512;

const FEW_LISTS: usize = 64;

const SHORT: i64 = 16;

pub(super) fn landmarks<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Vec<i64> {
    const MOST: usize = 96;
    let mut numbers = BTreeSet::new();
    for node in exprs.flat_map(|expr| &expr.nodes) {
        if let Node::Int(value) = node
            && numbers.len() < MOST
        {
            numbers.extend([
                value.saturating_sub(1),
                *value,
                value.saturating_add(1),
                value.saturating_neg(),
            ]);
        }
    }
    for exponent in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 30, 31, 32, 33, 39, 40, 47, 62] {
        let power = 1_i64 << exponent;
        numbers.extend([power - 1, power, power + 1]);
    }
    numbers.extend([0, 1, 3, 5, 6, 7, 9]);
    numbers.into_iter().collect()
}

pub(super) fn literals<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Vec<Value> {
    const MOST: usize = 32;
    let literal = |node: &Node| match node {
        Node::Str(text) => Some(Value::Str(text.clone())),
        Node::Float(value) if value.is_finite() => Some(Value::Float(*value)),
        _ => None,
    };
    exprs.flat_map(|expr| &expr.nodes).filter_map(literal).take(MOST).collect()
}

pub(super) fn integers(ints: Ints, landmarks: &[i64]) -> Vec<i64> {
    let step = ints.modulus;
    let mut found = BTreeSet::from([ints.low, ints.high]);
    let near = |value: i64| {
        let up = (i128::from(ints.rest) - i128::from(value)).rem_euclid(step.into());
        i64::try_from(i128::from(value) + up).ok()
    };
    for &landmark in landmarks {
        found.extend(near(landmark));
    }
    for steps in 1..4_i64 {
        let distance = step.saturating_mul(steps);
        found.extend([ints.low.saturating_add(distance), ints.high.saturating_sub(distance)]);
    }
    found.into_iter().filter(|&value| ints.contains(value)).collect()
}

pub(super) fn worth_a_try(
    attribute: &Attribute,
    extent: &Extent,
    landmarks: &[i64],
    literals: &[Value],
) -> Vec<Value> {
    let mut values: Vec<Value> = attribute.default.iter().cloned().collect();
    match extent {
        Extent::Known(value) => values.push(value.clone()),
        extent if attribute.ty.list || attribute.ty.element == AttributeElement::Bytes => {
            values.extend(lists(attribute, extent, landmarks, literals));
            values
                .extend(every(attribute, extent).filter(|all| all.len() <= FEW_LISTS).into_iter().flatten());
        }
        extent => values.extend(singles(attribute, extent, landmarks, literals)),
    }
    let mut known = HashSet::new();
    values.retain(|value| {
        known.insert(format!("{value:?}")) && extent.admits(value) && attribute.check(value).is_ok()
    });
    values
}

fn singles(attribute: &Attribute, extent: &Extent, landmarks: &[i64], literals: &[Value]) -> Vec<Value> {
    if !attribute.one_of.is_empty() {
        return attribute.one_of.clone();
    }
    if let Extent::Known(value) = extent {
        return vec![value.clone()];
    }
    if let Some(ints) = extent.ints() {
        let values = integers(ints, landmarks).into_iter();
        let values = sorted(values.map(|value| (value.unsigned_abs(), value < 0, value)).collect());
        return values.into_iter().map(|(.., value)| Value::Int(value)).collect();
    }
    let literals = literals.iter().cloned();
    match attribute.ty.element {
        AttributeElement::Bool => vec![Value::Bool(false), Value::Bool(true)],
        AttributeElement::String => {
            let lengths = attribute.length.map(|length| length.min.clamp(0, SHORT));
            let filled = "a".repeat(usize::try_from(lengths.unwrap_or(1)).unwrap_or(1));
            [String::new(), "a".to_owned(), filled].map(Value::Str).into_iter().chain(literals).collect()
        }
        element if element.is_float() => {
            let ends = attribute.minimum.iter().chain(&attribute.maximum).cloned();
            let plain = [0.0, 1.0, -1.0, 0.5, 2.0, -0.5, 1e-6, 1e6, f64::from(f32::MAX)].map(Value::Float);
            plain.into_iter().chain(ends).chain(literals).collect()
        }
        _ => Vec::new(),
    }
}

fn lists(attribute: &Attribute, extent: &Extent, landmarks: &[i64], literals: &[Value]) -> Vec<Value> {
    if let Some(items) = extent.items() {
        let singles: Vec<Vec<Value>> =
            items.iter().map(|item| singles(attribute, item, landmarks, literals)).collect();
        let least: Option<Vec<Value>> = singles.iter().map(|values| values.first().cloned()).collect();
        return least.map(|least| varied(&least, &singles)).unwrap_or_default();
    }
    let Some(length) = extent.length() else { return Vec::new() };
    let Extent::List(element, _) = extent else { return Vec::new() };
    let singles = singles(attribute, element, landmarks, literals);
    let mut lengths = integers(length, landmarks);
    lengths.retain(|&length| length <= SHORT);
    if length.high <= SHORT * 4 || lengths.is_empty() {
        lengths.push(length.high.min(SHORT * 4).max(length.low.min(SHORT * 4)));
    }
    let mut values = Vec::new();
    for length in lengths {
        let length = usize::try_from(length).unwrap_or(0);
        let Some(first) = singles.first() else {
            values.extend((length == 0).then(|| Value::Array(Vec::new())));
            continue;
        };
        let least = vec![first.clone(); length];
        values.extend(varied(&least, &vec![singles.clone(); length]));
    }
    values
}

fn varied(least: &[Value], choices: &[Vec<Value>]) -> Vec<Value> {
    const MOST: usize = 12;
    let mut values = vec![Value::Array(least.to_vec())];
    let most = choices.iter().map(Vec::len).max().unwrap_or(0);
    for choice in spread(most, MOST) {
        let pick = |values: &Vec<Value>| values.get(choice).or(values.last()).cloned();
        let alike: Option<Vec<Value>> = choices.iter().map(pick).collect();
        values.extend(alike.map(Value::Array));
        for place in [least.len().saturating_sub(1), 0] {
            let mut one = least.to_vec();
            if let (Some(item), Some(value)) = (one.get_mut(place), choices.get(place).and_then(pick)) {
                *item = value;
                values.push(Value::Array(one));
            }
        }
    }
    values
}

/// Returns up to `most` numbers below `count`, dense at first, with the last.
pub(super) fn spread(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let dense = most / 2;
    let sparse = (1..=most - dense).map(|at| dense + (count - 1 - dense) * at / (most - dense));
    (0..dense).chain(sparse).collect()
}

pub(super) fn every(attribute: &Attribute, extent: &Extent) -> Option<Vec<Value>> {
    if let Extent::Known(value) = extent {
        return Some(vec![value.clone()]);
    }
    if !attribute.ty.list && attribute.ty.element != AttributeElement::Bytes {
        return every_single(attribute, extent);
    }
    let length = extent.length()?;
    let mut all = Vec::new();
    for length in length.low..=length.high.min(i64::try_from(FEW).ok()?) {
        if !extent.length()?.contains(length) {
            continue;
        }
        let length = usize::try_from(length).ok()?;
        let choices: Vec<Vec<Value>> = match extent {
            Extent::List(element, _) if length > 0 => vec![every_single(attribute, element)?; length],
            Extent::List(..) => Vec::new(),
            other => {
                other.items()?.iter().map(|item| every_single(attribute, item)).collect::<Option<_>>()?
            }
        };
        let mut lists: Vec<Vec<Value>> = vec![Vec::new()];
        for choice in &choices {
            if lists.len().saturating_mul(choice.len()) > FEW {
                return None;
            }
            let longer = lists.iter().flat_map(|list| {
                choice.iter().map(|value| list.iter().cloned().chain([value.clone()]).collect())
            });
            lists = longer.collect();
        }
        all.extend(lists.into_iter().map(Value::Array));
        if all.len() > FEW {
            return None;
        }
    }
    i64::try_from(FEW).ok().filter(|&few| length.high <= few).map(|_| all)
}

pub(super) fn plainest(attribute: &Attribute, extent: &Extent) -> Option<Vec<Value>> {
    let (values, is_all) = match every(attribute, extent) {
        Some(values) => (values, true),
        None => (worth_a_try(attribute, extent, &[], &[]), false),
    };
    let valid = values.into_iter().filter(|value| attribute.check(value).is_ok());
    let least = valid.min_by_key(|value| weight(value, attribute.default.as_ref()));
    (least.is_some() || is_all).then(|| least.into_iter().collect())
}

pub(super) fn one_of_each_length(attribute: &Attribute, extent: &Extent) -> Option<Vec<Value>> {
    if let Extent::Known(value) = extent {
        return Some(vec![value.clone()]);
    }
    let lengths =
        attribute.length.filter(|lengths| i64::try_from(FEW).is_ok_and(|few| lengths.max <= few))?;
    let end = |bound: &Option<Value>| bound.as_ref().and_then(Value::as_int);
    let (least, most) = (end(&attribute.minimum)?, end(&attribute.maximum)?);
    let plain = if least > 0 { least } else { most.min(0) };
    let of_length = |length: i64| {
        let length = usize::try_from(length).ok()?;
        Some(Value::Array(vec![Value::Int(plain); length]))
    };
    (lengths.min..=lengths.max).map(of_length).collect()
}

fn every_single(attribute: &Attribute, extent: &Extent) -> Option<Vec<Value>> {
    if let Extent::Known(value) = extent {
        return Some(vec![value.clone()]);
    }
    if !attribute.one_of.is_empty() {
        return Some(attribute.one_of.clone());
    }
    if let Some(ints) = extent.ints() {
        let few = ints.count() <= u128::try_from(FEW).unwrap_or(0);
        return few.then(|| ints.members().map(Value::Int).collect());
    }
    extent.bools().map(|_| vec![Value::Bool(false), Value::Bool(true)])
}

pub(super) fn groups(ranks: &[usize]) -> Vec<Vec<usize>> {
    const MOST_PAIRS: usize = 36;
    let starts: Vec<usize> = ranks
        .iter()
        .scan(0, |next, &rank| {
            let start = *next;
            *next += rank;
            Some(start)
        })
        .collect();
    let count: usize = ranks.iter().sum();
    let mut groups = vec![(0..count).collect::<Vec<usize>>()];
    let highest = ranks.iter().copied().max().unwrap_or(0);
    if ranks.len() > 1 {
        for from_end in 1..=highest {
            let place =
                |(start, &rank): (&usize, &usize)| rank.checked_sub(from_end).map(|axis| start + axis);
            groups.push(starts.iter().zip(ranks).filter_map(place).collect());
        }
        for axis in 0..highest {
            let place = |(start, &rank): (&usize, &usize)| (axis < rank).then_some(start + axis);
            groups.push(starts.iter().zip(ranks).filter_map(place).collect());
        }
    }
    let pairs = (0..count).rev().flat_map(|second| (0..second).rev().map(move |first| vec![first, second]));
    groups.extend(pairs.take(MOST_PAIRS));
    groups.retain(|group| group.len() > 1);
    groups
}
