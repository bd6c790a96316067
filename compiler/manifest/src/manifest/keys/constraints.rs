//! Reads attributes' constraints and defaults; checks consistency.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cubinder_expr::{Interval, Value};
use cubinder_model::{AttributeElement, AttributeType};
use toml::de::DeValue;

use super::ranges::{self, Ends, Sizes};
use super::values;
use super::*;
use crate::diagnostic::suggest;

pub(super) type Bounds = (Option<Value>, Option<Value>);

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Constraints {
    pub(super) length: Option<Located<Interval>>,
    pub(super) range: Option<Located<Bounds>>,
    pub(super) one_of: Option<Located<Vec<Value>>>,
    pub(super) specialize: Option<Located<Vec<Value>>>,
}

impl Constraints {
    fn allowed(&self) -> Option<(&'static str, &Located<Vec<Value>>)> {
        let specialize = self.specialize.as_ref().map(|values| ("specialize", values));
        specialize.or(self.one_of.as_ref().map(|values| ("one_of", values)))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) ty: AttributeType,
    pub(super) type_range: &'a Range<usize>,
}

pub(super) fn read(
    toml: &mut TomlReader,
    keys: [Option<&Entry<'_>>; 4],
    subject: Subject<'_>,
) -> Constraints {
    let [lengths, bounds, values, specialized] = keys;
    let length = lengths.and_then(|entry| length(toml, entry, subject));
    let range = bounds.and_then(|entry| range(toml, entry, subject));
    let mut constraints = Constraints { length, range, ..Constraints::default() };
    constraints.one_of = values.and_then(|entry| one_of(toml, entry, subject, &constraints));
    constraints.specialize = specialized.and_then(|entry| specialize(toml, entry, subject, &constraints));
    if let (Some(one_of), Some(entry)) = (values, specialized) {
        let (place, one_of) = (toml.span(entry.key_range.clone()), toml.span(one_of.key_range.clone()));
        toml.report(TwoLists { place, one_of });
    }
    constraints
}

fn length(toml: &mut TomlReader, entry: &Entry<'_>, subject: Subject<'_>) -> Option<Located<Interval>> {
    if !subject.ty.list && !matches!(subject.ty.element, AttributeElement::String | AttributeElement::Bytes) {
        let rule = "`length` applies only to lists, strings and bytes";
        return contradicts_type(toml, entry, subject, rule, "this has no length");
    }
    Sizes::new("a length or a range of lengths").read(toml, entry)
}

fn contradicts_type<T>(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    rule: &'static str,
    label: &'static str,
) -> Option<T> {
    let help = match (entry.key.as_str(), subject.ty.element) {
        ("length", _) => "use `range` to limit numbers, `one_of` to list allowed values",
        (_, AttributeElement::Bytes) => "use `length` to limit their number",
        (_, AttributeElement::String) if !subject.ty.list => {
            "use `length` to limit its length, `one_of` to list allowed values"
        }
        _ => "use `one_of` to list allowed values",
    };
    let (name, ty) = (subject.name.to_owned(), subject.ty.name());
    let (place, declared) = (toml.span(entry.key_range.clone()), toml.span(subject.type_range.clone()));
    toml.report(ConstraintOfOtherType { rule, label, name, ty, help, place, declared });
    None
}

fn range(toml: &mut TomlReader, entry: &Entry<'_>, subject: Subject<'_>) -> Option<Located<Bounds>> {
    let element = subject.ty.element;
    if element.integers().is_none() && !element.is_float() {
        return contradicts_type(toml, entry, subject, "`range` applies only to numbers", "not a number");
    }
    let is_float = element.is_float();
    // Must be exact, as in `default`.
    let float = |text: &str| ranges::float(text).filter(|_| is_float).map(Value::Float);
    let number = |text: &str| ranges::integer(text).map(Value::Int).or_else(|| float(text));
    let (kind, one, example) =
        if is_float { ("numbers", "number", "0.0..=1.0") } else { ("integers", "integer", "1..=16") };
    let single = |number: Value| Ok(Ends { min: Some(number.clone()), max: Some(number) });
    let ends = match entry.value {
        DeValue::Integer(_) => single(toml.integer(entry).map(Value::Int)?),
        DeValue::Float(_) if is_float => single(toml.float(entry).map(Value::Float)?),
        DeValue::String(text) => ranges::ends(text, one, number),
        _ => {
            let example = ranges::from_two(entry).unwrap_or_else(|| example.to_owned());
            let help = Some(format!("write `range = \"{example}\"`"));
            toml.report(WrongType { help, ..toml.wrong_type(entry, format!("a range of {kind}")) });
            return None;
        }
    };
    match ends {
        Ok(ends) => bounds(toml, entry, subject, ends),
        Err(error) => {
            let example = format!("\"{}\"", error.meant.unwrap_or_else(|| example.to_owned()));
            let (key, expected, place) = (entry.key.clone(), format!("a range of {kind}"), toml.span(entry));
            toml.report(BadRange { key, expected, label: error.label, example, place });
            None
        }
    }
}

/// Rounds like the default, which may equal bounds.
fn bounds(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    ends: Ends<Value>,
) -> Option<Located<Bounds>> {
    let mut fits = true;
    let mut of_type = |end: Option<Value>| -> Option<Value> {
        let end = end?;
        match values::number(end.clone(), subject.ty.element) {
            Ok(value) => Some(value),
            Err(why) => {
                fits = false;
                let (end, name, ty) = (format!("{end}{why}"), subject.name.to_owned(), subject.ty.name());
                let (place, declared) = (toml.span(entry), toml.span(subject.type_range.clone()));
                toml.report(RangeBeyondType { end, name, ty, place, declared });
                None
            }
        }
    };
    let bounds = (of_type(ends.min), of_type(ends.max));
    if let (Some(min), Some(max)) = &bounds
        && order(min, max) == Some(Ordering::Greater)
    {
        toml.report(EmptyRange { min: min.to_string(), max: max.to_string(), place: toml.span(entry) });
        return None;
    }
    fits.then(|| Located { value: bounds, range: entry.range.clone() })
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        _ => None,
    }
}

fn outside(value: &Value, bounds: &Bounds) -> Option<String> {
    let (min, max) = bounds;
    if let Some(min) = min.as_ref().filter(|min| order(value, min) == Some(Ordering::Less)) {
        return Some(format!("{value} is less than {min}"));
    }
    let max = max.as_ref().filter(|max| order(value, max) == Some(Ordering::Greater))?;
    Some(format!("{value} is greater than {max}"))
}

fn length_of(value: &Value) -> Option<i64> {
    match value {
        Value::Str(text) => i64::try_from(text.len()).ok(),
        Value::Array(items) => i64::try_from(items.len()).ok(),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

fn counted(length: i64, ty: AttributeType) -> String {
    match (ty.list, ty.element) {
        (true, _) => ranges::counted(length, "element", "elements"),
        (false, AttributeElement::String) => ranges::counted(length, "byte of UTF-8", "bytes of UTF-8"),
        (false, _) => ranges::counted(length, "byte", "bytes"),
    }
}

/// Only integers and booleans can be template arguments.
fn specialize(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    others: &Constraints,
) -> Option<Located<Vec<Value>>> {
    let element = subject.ty.element;
    if subject.ty.list || !(element.integers().is_some() || element == AttributeElement::Bool) {
        let rule = "`specialize` applies only to single integers and booleans";
        return contradicts_type(toml, entry, subject, rule, "not a single integer or boolean");
    }
    one_of(toml, entry, subject, others)
}

fn one_of(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    others: &Constraints,
) -> Option<Located<Vec<Value>>> {
    let element = AttributeType { list: false, ..subject.ty };
    if subject.ty.element == AttributeElement::Bytes {
        return contradicts_type(toml, entry, subject, "`one_of` does not apply to bytes", "these are bytes");
    }
    let items = toml.values(entry, "an array of values")?;
    if items.is_empty() {
        let (key, name) = (entry.key.clone(), subject.name.to_owned());
        toml.report(NoValueLeft { key, name, place: toml.span(entry) });
        return None;
    }
    let mut values: Vec<Value> = Vec::with_capacity(items.len());
    let mut places: BTreeMap<String, &Range<usize>> = BTreeMap::new();
    let mut is_complete = true;
    for item in &items {
        match values::convert(item, element) {
            Ok(value) => {
                check_allowed(toml, item, &value, subject, others);
                if let Some(first) = places.insert(identity(&value), &item.range) {
                    let message = format!("`{}` lists {value} twice", item.key);
                    let (second, first) = (toml.span(item), toml.span(first.clone()));
                    toml.report(Repeated { message, second, first });
                }
                values.push(value);
            }
            Err(mismatches) => {
                is_complete = false;
                for mismatch in mismatches {
                    let (key, ty, label) = (entry.key.clone(), element.name(), mismatch.label);
                    let (place, declared) =
                        (toml.span(mismatch.range), toml.span(subject.type_range.clone()));
                    toml.report(ListedValueType { key, ty, label, place, declared });
                }
            }
        }
    }
    is_complete.then(|| Located { value: values, range: entry.range.clone() })
}

/// Equal values have equal texts; 0.0 equals -0.0.
fn identity(value: &Value) -> String {
    match value {
        Value::Float(value) => (value + 0.0).to_string(),
        value => value.to_string(),
    }
}

fn check_allowed(
    toml: &mut TomlReader,
    item: &Entry<'_>,
    value: &Value,
    subject: Subject<'_>,
    others: &Constraints,
) {
    let (key, place) = (item.key.clone(), toml.span(item));
    if let Some(bounds) = &others.range
        && let Some(label) = outside(value, &bounds.value)
    {
        let (key, place, range) = (key.clone(), place.clone(), toml.span(bounds));
        toml.report(ListedOutsideRange { key, label, place, range });
    }
    // `length` limits the list, not its elements.
    if let Some(lengths) = others.length.as_ref().filter(|_| !subject.ty.list)
        && let Some(length) = length_of(value).filter(|length| !lengths.value.contains(*length))
    {
        let (length, lengths) = (counted(length, subject.ty), toml.span(lengths));
        toml.report(ListedLength { key, length, place, lengths });
    }
}

pub(super) fn default(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    constraints: &Constraints,
) -> Option<Value> {
    let value = match values::convert(entry, subject.ty) {
        Ok(value) => value,
        Err(mismatches) => {
            let brackets = toml
                .written(&entry.range)
                .filter(|_| subject.ty.list && !matches!(entry.value, DeValue::Array(_) | DeValue::Table(_)))
                .map(|written| format!("write `default = [{written}]`"));
            let unquoted = values::unquoted(entry, subject.ty);
            let help = brackets.or_else(|| unquoted.map(|value| format!("write `default = {value}`")));
            for mismatch in mismatches {
                let (ty, label, place) = (subject.ty.name(), mismatch.label, toml.span(mismatch.range));
                toml.report(DefaultType { ty, label, place, help: help.clone() });
            }
            return None;
        }
    };
    let before = toml.count();
    if let Some(lengths) = &constraints.length
        && let Some(length) = length_of(&value).filter(|length| !lengths.value.contains(*length))
    {
        let (key, label, constraint) = ("length", counted(length, subject.ty), toml.span(lengths));
        let place = toml.span(entry);
        toml.report(RejectedDefault { key, label, place, constraint, what: "allowed lengths", near: None });
    }
    let elements: Vec<(Value, Range<usize>)> = match (&value, subject.ty.list, entry.items()) {
        (Value::Array(values), true, Some(items)) => {
            values.iter().cloned().zip(items.into_iter().map(|item| item.range)).collect()
        }
        _ => vec![(value.clone(), entry.range.clone())],
    };
    let allowed: Option<BTreeSet<String>> =
        constraints.allowed().map(|(_, allowed)| allowed.value.iter().map(identity).collect());
    for (element, range) in elements {
        if let Some(bounds) = &constraints.range
            && let Some(label) = outside(&element, &bounds.value)
        {
            let (key, place, constraint) = ("range", toml.span(range.clone()), toml.span(bounds));
            toml.report(RejectedDefault { key, label, place, constraint, what: "range", near: None });
        }
        if let Some((key, values)) = constraints.allowed()
            && allowed.as_ref().is_some_and(|allowed| !allowed.contains(&identity(&element)))
        {
            let texts = values.value.iter().filter_map(text_of);
            let near = text_of(&element).and_then(|text| suggest(text, texts)).map(str::to_owned);
            let (label, place) = ("not an allowed value".to_owned(), toml.span(range));
            let constraint = toml.span(values);
            toml.report(RejectedDefault { key, label, place, constraint, what: "allowed values", near });
        }
    }
    (toml.count() == before).then_some(value)
}
