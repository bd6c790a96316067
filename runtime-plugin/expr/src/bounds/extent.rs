use super::ints::Ints;
use crate::node::BinaryOp;
use crate::ops;
use crate::sorting::sorted_set;
use crate::value::Value;

/// A set of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Extent {
    /// One value.
    Known(Value),
    /// Integers in a range.
    Int(Ints),
    /// Both booleans.
    Bool,
    /// Numbers in an inclusive range.
    Float(f64, f64),
    /// Two or more strings, sorted.
    Texts(Vec<String>),
    /// Arrays of these elements.
    Array(Vec<Extent>),
    /// Arrays of these lengths, with elements in one set.
    List(Box<Extent>, Ints),
    /// Any string, or any float including NaN.
    Any,
}

const MOST_TEXTS: usize = 32;

/// Maximum length of arrays with one set per element.
const SPELLED_OUT: i64 = 64;

impl Extent {
    /// Returns a set of integers.
    pub fn of_ints(ints: Ints) -> Extent {
        ints.single().map_or(Extent::Int(ints), |value| Extent::Known(Value::Int(value)))
    }

    pub(super) fn of_bool(value: Option<bool>) -> Extent {
        value.map_or(Extent::Bool, |value| Extent::Known(Value::Bool(value)))
    }

    /// Returns the integers, or `None` for another type.
    pub fn ints(&self) -> Option<Ints> {
        match self {
            Extent::Known(Value::Int(value)) => Some(Ints::exactly(*value)),
            Extent::Int(ints) => Some(*ints),
            _ => None,
        }
    }

    /// Returns `Some` for booleans.
    pub fn bools(&self) -> Option<Option<bool>> {
        match self {
            Extent::Known(Value::Bool(value)) => Some(Some(*value)),
            Extent::Bool => Some(None),
            _ => None,
        }
    }

    /// Returns the range of floats without NaN.
    pub fn floats(&self) -> Option<(f64, f64)> {
        match self {
            Extent::Known(Value::Float(value)) if !value.is_nan() => Some((*value, *value)),
            Extent::Float(low, high) => Some((*low, *high)),
            _ => None,
        }
    }

    pub(super) fn texts(&self) -> Option<Vec<String>> {
        match self {
            Extent::Known(Value::Str(text)) => Some(vec![text.clone()]),
            Extent::Texts(texts) => Some(texts.clone()),
            _ => None,
        }
    }

    pub(super) fn of_texts(mut texts: Vec<String>) -> Option<Extent> {
        match texts.pop() {
            None => None,
            Some(text) if texts.is_empty() => Some(Extent::Known(Value::Str(text))),
            Some(text) => {
                texts.push(text);
                Some(if texts.len() > MOST_TEXTS { Extent::Any } else { Extent::Texts(texts) })
            }
        }
    }

    /// Returns the elements of an array of known length.
    pub fn items(&self) -> Option<Vec<Extent>> {
        match self {
            Extent::Known(Value::Array(items)) => Some(items.iter().cloned().map(Extent::Known).collect()),
            Extent::Array(items) => Some(items.clone()),
            _ => None,
        }
    }

    /// Returns the lengths of an array.
    pub fn length(&self) -> Option<Ints> {
        let known = |len: usize| i64::try_from(len).ok().map(Ints::exactly);
        match self {
            Extent::Known(Value::Array(items)) => known(items.len()),
            Extent::Array(items) => known(items.len()),
            Extent::List(_, length) => Some(*length),
            _ => None,
        }
    }

    /// Returns the union of all elements; `None` if empty.
    pub(super) fn element(&self) -> Option<Extent> {
        match self {
            Extent::List(element, _) => Some((**element).clone()),
            other => other.items()?.into_iter().reduce(|all, item| all.join(&item)),
        }
    }

    /// Returns the arrays with these elements.
    pub fn array(items: Vec<Extent>) -> Extent {
        let known = Extent::all_known(&items);
        known.map_or(Extent::Array(items), |values| Extent::Known(Value::Array(values)))
    }

    pub(super) fn all_known(items: &[Extent]) -> Option<Vec<Value>> {
        let known = |item: &Extent| if let Extent::Known(value) = item { Some(value.clone()) } else { None };
        items.iter().map(known).collect()
    }

    /// Returns the arrays of these elements and lengths.
    pub fn list(element: Extent, length: Ints) -> Extent {
        match length.single().filter(|&length| length <= SPELLED_OUT) {
            Some(length) => Extent::array((0..length).map(|_| element.clone()).collect()),
            None => Extent::List(Box::new(element), length),
        }
    }

    /// Returns a superset of the union.
    pub fn join(&self, other: &Extent) -> Extent {
        if self == other {
            return self.clone();
        }
        if let (Some(left), Some(right)) = (self.ints(), other.ints()) {
            return Extent::of_ints(left.join(right));
        }
        if self.bools().is_some() && other.bools().is_some() {
            return Extent::Bool;
        }
        if let (Some(left), Some(right)) = (self.floats(), other.floats()) {
            return Extent::Float(left.0.min(right.0), left.1.max(right.1));
        }
        if let (Some(left), Some(right)) = (self.texts(), other.texts()) {
            return Extent::of_texts(sorted_set([left, right].concat())).unwrap_or(Extent::Any);
        }
        let (Some(left_length), Some(right_length)) = (self.length(), other.length()) else {
            return Extent::Any;
        };
        if let (Some(left), Some(right)) = (self.items(), other.items())
            && left.len() == right.len()
        {
            return Extent::array(left.iter().zip(&right).map(|(left, right)| left.join(right)).collect());
        }
        let element = match (self.element(), other.element()) {
            (Some(left), Some(right)) => left.join(&right),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Extent::Known(Value::Array(Vec::new())),
        };
        Extent::list(element, left_length.join(right_length))
    }

    /// Returns the intersection; `None` if empty.
    pub fn meet(&self, other: &Extent) -> Option<Extent> {
        match (self, other) {
            (Extent::Any, one) | (one, Extent::Any) => return Some(one.clone()),
            (Extent::Bool, one) | (one, Extent::Bool) if one.bools().is_some() => return Some(one.clone()),
            (Extent::Known(Value::Bool(left)), Extent::Known(Value::Bool(right))) => {
                return (left == right).then(|| self.clone());
            }
            _ => {}
        }
        if let (Some(left), Some(right)) = (self.ints(), other.ints()) {
            return left.meet(right).map(Extent::of_ints);
        }
        if let (Some(left), Some(right)) = (self.floats(), other.floats()) {
            let (low, high) = (left.0.max(right.0), left.1.min(right.1));
            return match (self, other) {
                _ if low > high => None,
                // A known zero keeps its sign.
                (known @ Extent::Known(_), _) | (_, known @ Extent::Known(_)) => Some(known.clone()),
                _ => Some(Extent::Float(low, high)),
            };
        }
        if let (Some(left), Some(right)) = (self.texts(), other.texts()) {
            return Extent::of_texts(left.into_iter().filter(|text| right.contains(text)).collect());
        }
        let (Some(left_length), Some(right_length)) = (self.length(), other.length()) else {
            return Some(self.clone());
        };
        let length = left_length.meet(right_length)?;
        if let (Some(left), Some(right)) = (self.items(), other.items()) {
            let items = left.iter().zip(&right).map(|(left, right)| left.meet(right));
            return items.collect::<Option<Vec<Extent>>>().map(Extent::array);
        }
        let (list, items) = if self.items().is_some() { (other, self) } else { (self, other) };
        match (list, items.items()) {
            (Extent::List(element, _), Some(items)) => {
                let items = items.iter().map(|item| item.meet(element));
                items.collect::<Option<Vec<Extent>>>().map(Extent::array)
            }
            (Extent::List(left, _), None) => match other.element().and_then(|right| left.meet(&right)) {
                Some(element) => Some(Extent::list(element, length)),
                None => length.contains(0).then(|| Extent::Known(Value::Array(Vec::new()))),
            },
            _ => Some(self.clone()),
        }
    }

    /// Returns whether `value` is a member, without allocating.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Extent::Any, _) | (Extent::Bool, Value::Bool(_)) => true,
            (Extent::Int(ints), Value::Int(value)) => ints.contains(*value),
            (Extent::Float(low, high), Value::Float(value)) => low <= value && value <= high,
            (Extent::Texts(texts), Value::Str(text)) => texts.contains(text),
            (Extent::Array(items), Value::Array(values)) => {
                items.len() == values.len()
                    && items.iter().zip(values).all(|(item, value)| item.admits(value))
            }
            (Extent::List(element, length), Value::Array(values)) => {
                i64::try_from(values.len()).is_ok_and(|count| length.contains(count))
                    && values.iter().all(|value| element.admits(value))
            }
            _ => self.meet(&Extent::Known(value.clone())).is_some(),
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Extent::Known(Value::Array(items)) => items.len().saturating_add(1),
            Extent::Known(Value::Str(text)) => text.len() / 16 + 1,
            Extent::Texts(texts) => texts.len(),
            Extent::Array(items) => {
                items.iter().fold(1, |total: usize, item| total.saturating_add(item.size()))
            }
            Extent::List(element, _) => element.size().saturating_add(1),
            _ => 1,
        }
    }

    pub(super) fn most_values(&self) -> u64 {
        match self {
            Extent::List(element, length) => u64::try_from(length.high)
                .unwrap_or(0)
                .saturating_mul(element.most_values())
                .saturating_add(1),
            Extent::Any => 1,
            other => other.size() as u64,
        }
    }

    pub(super) fn show(&self) -> String {
        match self {
            Extent::Known(value) => value.to_string(),
            Extent::Int(ints) => format!("({} to {})", ints.low, ints.high),
            Extent::Bool => "(true or false)".into(),
            Extent::Float(low, high) => format!("({low:?} to {high:?})"),
            Extent::Texts(_) | Extent::Array(_) | Extent::List(..) | Extent::Any => "(...)".into(),
        }
    }
}

pub(super) fn less(left: &Extent, right: &Extent) -> Option<bool> {
    if let (Some(left), Some(right)) = (left.floats(), right.floats()) {
        return if left.1 < right.0 { Some(true) } else { (left.0 >= right.1).then_some(false) };
    }
    let (left, right) = (left.ints()?, right.ints()?);
    if left.high < right.low { Some(true) } else { (left.low >= right.high).then_some(false) }
}

/// Decides `left <= right`; because of NaN not the opposite of `right < left`.
pub(super) fn at_most(left: &Extent, right: &Extent) -> Option<bool> {
    if let (Some(left), Some(right)) = (left.floats(), right.floats()) {
        return if left.1 <= right.0 { Some(true) } else { (left.0 > right.1).then_some(false) };
    }
    less(right, left).map(|less| !less)
}

pub(super) fn equal(left: &Extent, right: &Extent) -> Option<bool> {
    if let (Extent::Known(left), Extent::Known(right)) = (left, right) {
        return ops::binary(BinaryOp::Eq, left, right).ok().map(|same| same == Value::Bool(true));
    }
    if let (Some(left), Some(right)) = (left.ints(), right.ints()) {
        return left.meet(right).is_none().then_some(false);
    }
    if let (Some(left), Some(right)) = (left.floats(), right.floats()) {
        return (left.1 < right.0 || right.1 < left.0).then_some(false);
    }
    if let (Some(left), Some(right)) = (left.texts(), right.texts()) {
        return (!left.iter().any(|text| right.contains(text))).then_some(false);
    }
    left.length()?.meet(right.length()?).map_or(Some(false), |_| {
        let mut same = Some(true);
        for (left, right) in left.items()?.iter().zip(&right.items()?) {
            match equal(left, right) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => same = None,
            }
        }
        same
    })
}
