//! What an attribute may be beside its type: `length`, `range`, `one_of` and `specialize`, and whether its default keeps to them.
//!
//! The runtime holds nodes against the same constraints; here they are read, held against each other, and shown with their
//! places.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cubinder_expr::{Interval, Value};
use cubinder_model::{AttributeElement, AttributeType};
use toml::de::DeValue;

use super::ranges::{self, Ends, Mistake, Sizes};
use super::values;
use super::{Entry, Form, Located};
use crate::diagnostic::{Diagnostic, suggest};
use crate::rules;

/// The least and the greatest number, each where it is given.
pub(super) type Bounds = (Option<Value>, Option<Value>);

/// The constraints of one attribute.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Constraints {
    pub(super) length: Option<Located<Interval>>,
    pub(super) range: Option<Located<Bounds>>,
    pub(super) one_of: Option<Located<Vec<Value>>>,
    pub(super) specialize: Option<Located<Vec<Value>>>,
}

impl Constraints {
    /// The only values, and the key that says so.
    fn allowed(&self) -> Option<(&'static str, &Located<Vec<Value>>)> {
        let specialize = self.specialize.as_ref().map(|values| ("specialize", values));
        specialize.or(self.one_of.as_ref().map(|values| ("one_of", values)))
    }
}

/// An attribute's name and its type with its place.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) ty: AttributeType,
    pub(super) type_range: &'a Range<usize>,
}

const LENGTH: Sizes<'_> =
    Sizes { what: "a length or a range of lengths", least: 0, most: i64::MAX, example: "\"1..=16\"" };

/// Reads the constraints of an attribute: `length`, `range`, `one_of` and `specialize`.
pub(super) fn read(form: &mut Form<'_>, keys: [Option<&Entry<'_>>; 4], subject: Subject<'_>) -> Constraints {
    let [lengths, bounds, values, specialized] = keys;
    let length = lengths.and_then(|entry| length(form, entry, subject));
    let range = bounds.and_then(|entry| range(form, entry, subject));
    let mut constraints = Constraints { length, range, ..Constraints::default() };
    constraints.one_of = values.and_then(|entry| one_of(form, entry, subject, &constraints));
    constraints.specialize = specialized.and_then(|entry| specialize(form, entry, subject, &constraints));
    if let (Some(one_of), Some(entry)) = (values, specialized) {
        let diagnostic = Diagnostic::error("`specialize` and `one_of` say the same thing twice")
            .code(rules::BAD_CONSTRAINT)
            .at(
                form.span(entry.key_range.clone()),
                "code is compiled for these values, and others are refused",
            )
            .related(form.span(one_of.key_range.clone()), "this says what is refused, too")
            .help("leave `one_of` out");
        form.report(diagnostic);
    }
    constraints
}

/// What one of `one_of`'s values is: of a list an element.
fn element_type(ty: AttributeType) -> AttributeType {
    AttributeType { list: false, ..ty }
}

/// Whether values of the type have a length.
fn has_length(ty: AttributeType) -> bool {
    ty.list || matches!(ty.element, AttributeElement::String | AttributeElement::Bytes)
}

fn length(form: &mut Form<'_>, entry: &Entry<'_>, subject: Subject<'_>) -> Option<Located<Interval>> {
    if !has_length(subject.ty) {
        contradicts_type(
            form,
            entry,
            subject,
            "`length` is for lists, strings and bytes",
            "this has no length",
        );
        return None;
    }
    LENGTH.read(form, entry)
}

/// Reports a constraint that makes no sense for the attribute's type.
fn contradicts_type(form: &mut Form<'_>, entry: &Entry<'_>, subject: Subject<'_>, rule: &str, label: &str) {
    let help = match (entry.key.as_str(), subject.ty.element) {
        ("length", _) => "`range` limits numbers, and `one_of` lists the only values",
        (_, AttributeElement::Bytes) => "`length` limits how many there may be",
        (_, AttributeElement::String) if !subject.ty.list => {
            "`length` limits how long it may be, and `one_of` lists the only values"
        }
        _ => "`one_of` lists the only values",
    };
    let diagnostic = Diagnostic::error(rule)
        .code(rules::BAD_CONSTRAINT)
        .at(form.span(entry.key_range.clone()), label)
        .related(
            form.span(subject.type_range.clone()),
            format!("`{}` is of type `{}`", subject.name, subject.ty.name()),
        )
        .help(help);
    form.report(diagnostic);
}

fn range(form: &mut Form<'_>, entry: &Entry<'_>, subject: Subject<'_>) -> Option<Located<Bounds>> {
    let element = subject.ty.element;
    if element.integers().is_none() && !element.is_float() {
        contradicts_type(form, entry, subject, "`range` is for numbers", "this is no number");
        return None;
    }
    let number = |text: &str| match element.is_float() {
        // An integer that stands for a float is exactly it, here as in `default`.
        true => ranges::integer(text).map(Number::Int).or_else(|| ranges::float(text).map(Number::Float)),
        false => ranges::integer(text).map(Number::Int),
    };
    let ends = match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Number::Int).map(Ok),
        DeValue::Float(_) if element.is_float() => form.float(entry).map(Number::Float).map(Ok),
        DeValue::String(text) => Some(Err(text)),
        _ => {
            let example = if element.is_float() { "0.0..=1.0" } else { "1..=16" };
            let example = ranges::from_two(entry).unwrap_or_else(|| example.to_owned());
            let kind = if element.is_float() { "numbers" } else { "integers" };
            let diagnostic = form.misfit(entry, &format!("a range of {kind}"));
            form.report(diagnostic.help(format!("write `range = \"{example}\"`")));
            None
        }
    };
    let ends = match ends? {
        Ok(number) => Ok(Ends { min: Some(number), max: Some(number) }),
        Err(text) => ranges::ends(text, if element.is_float() { "number" } else { "integer" }, number),
    };
    match ends {
        Ok(ends) => bounds(form, entry, subject, ends),
        Err(mistake) => {
            unreadable(form, entry, element, mistake);
            None
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    const fn value(self) -> Value {
        match self {
            Number::Int(value) => Value::Int(value),
            Number::Float(value) => Value::Float(value),
        }
    }
}

fn unreadable(form: &mut Form<'_>, entry: &Entry<'_>, element: AttributeElement, mistake: Mistake) {
    let kind = if element.is_float() { "numbers" } else { "integers" };
    let example = mistake
        .meant
        .unwrap_or_else(|| if element.is_float() { "0.0..=1.0".to_owned() } else { "1..=16".to_owned() });
    let diagnostic = Diagnostic::error(format!("`range` must be a range of {kind}"))
        .code(rules::BAD_RANGE)
        .at(form.span(entry.range.clone()), mistake.label)
        .help(format!("write `range = \"{example}\"`; both ends belong to a range"));
    form.report(diagnostic);
}

/// The ends as the type holds them: what a default is rounded to must not fall out of the range that names the same number.
fn bounds(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    ends: Ends<Number>,
) -> Option<Located<Bounds>> {
    let mut fits = true;
    let mut of_type = |end: Option<Number>| -> Option<Value> {
        let end = end?.value();
        match values::number(end.clone(), subject.ty.element) {
            Ok(value) => Some(value),
            Err(why) => {
                fits = false;
                let diagnostic = Diagnostic::error("this range goes beyond the attribute's type")
                    .code(rules::BAD_CONSTRAINT)
                    .at(form.span(entry.range.clone()), format!("{end}{why}"))
                    .related(
                        form.span(subject.type_range.clone()),
                        format!("`{}` is of type `{}`", subject.name, subject.ty.name()),
                    );
                form.report(diagnostic);
                None
            }
        }
    };
    let bounds = (of_type(ends.min), of_type(ends.max));
    if let (Some(min), Some(max)) = &bounds
        && order(min, max) == Some(Ordering::Greater)
    {
        let diagnostic = Diagnostic::error("no number is in this range")
            .code(rules::BAD_CONSTRAINT)
            .at(form.span(entry.range.clone()), format!("{min} is more than {max}"))
            .help(format!("write `range = \"{max}..={min}\"`"));
        form.report(diagnostic);
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

/// How a number breaks the bounds, if it does.
fn outside(value: &Value, bounds: &Bounds) -> Option<String> {
    let (min, max) = bounds;
    if let Some(min) = min.as_ref().filter(|min| order(value, min) == Some(Ordering::Less)) {
        return Some(format!("{value} is less than {min}"));
    }
    let max = max.as_ref().filter(|max| order(value, max) == Some(Ordering::Greater))?;
    Some(format!("{value} is more than {max}"))
}

/// How many elements or bytes a value has; none where it is a number or a truth value.
fn length_of(value: &Value) -> Option<i64> {
    match value {
        Value::Str(text) => i64::try_from(text.len()).ok(),
        Value::Array(items) => i64::try_from(items.len()).ok(),
        _ => None,
    }
}

/// A length with what it counts.
fn counted(length: i64, ty: AttributeType) -> String {
    match (ty.list, ty.element) {
        (true, _) => ranges::counted(length, "element", "elements"),
        (false, AttributeElement::String) => ranges::counted(length, "byte of UTF-8", "bytes of UTF-8"),
        (false, _) => ranges::counted(length, "byte", "bytes"),
    }
}

/// Values that code is compiled for: the one kind of value that a kernel's template can take.
fn specialize(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    others: &Constraints,
) -> Option<Located<Vec<Value>>> {
    let element = subject.ty.element;
    if subject.ty.list || !(element.integers().is_some() || element == AttributeElement::Bool) {
        let rule = "`specialize` is for single integers and booleans";
        contradicts_type(form, entry, subject, rule, "this is none");
        return None;
    }
    one_of(form, entry, subject, others)
}

/// The values of `one_of` or `specialize`.
fn one_of(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    others: &Constraints,
) -> Option<Located<Vec<Value>>> {
    let element = element_type(subject.ty);
    if subject.ty.element == AttributeElement::Bytes {
        contradicts_type(form, entry, subject, "`one_of` is not for bytes", "these are bytes");
        return None;
    }
    let items = form.values(entry, "an array of values")?;
    if items.is_empty() {
        let diagnostic = Diagnostic::error(format!("`{}` leaves no value for `{}`", entry.key, subject.name))
            .code(rules::BAD_CONSTRAINT)
            .at(form.span(entry.range.clone()), "expected at least one value");
        form.report(diagnostic);
        return None;
    }
    let mut values: Vec<Value> = Vec::with_capacity(items.len());
    let mut places: BTreeMap<String, &Range<usize>> = BTreeMap::new();
    let mut whole = true;
    for item in &items {
        match values::of_type(item, element) {
            Ok(value) => {
                check_allowed(form, item, &value, subject, others);
                check_new(form, item, &value, &mut places);
                values.push(value);
            }
            Err(misfits) => {
                whole = false;
                for misfit in misfits {
                    let message = format!("a value of `{}` is not of type `{}`", entry.key, element.name());
                    let diagnostic = Diagnostic::error(message)
                        .code(rules::BAD_CONSTRAINT)
                        .at(form.span(misfit.range), misfit.label)
                        .related(form.span(subject.type_range.clone()), "the attribute's type");
                    form.report(diagnostic);
                }
            }
        }
    }
    whole.then(|| Located { value: values, range: entry.range.clone() })
}

fn check_new<'t>(
    form: &mut Form<'_>,
    item: &'t Entry<'_>,
    value: &Value,
    places: &mut BTreeMap<String, &'t Range<usize>>,
) {
    match places.get(&identity(value)) {
        Some(first) => {
            let diagnostic = Diagnostic::error(format!("`{}` lists {value} twice", item.key))
                .code(rules::DECLARED_TWICE)
                .at(form.span(item.range.clone()), "the second time")
                .related(form.span((*first).clone()), "the first time");
            form.report(diagnostic);
        }
        None => {
            places.insert(identity(value), &item.range);
        }
    }
}

/// A text that equal values of one kind share, so that many can be compared in little time. The two zeros are equal.
fn identity(value: &Value) -> String {
    match value {
        Value::Float(value) => (value + 0.0).to_string(),
        value => value.to_string(),
    }
}

/// Reports a value of `one_of` or `specialize` that `range` or `length` refuses.
fn check_allowed(
    form: &mut Form<'_>,
    item: &Entry<'_>,
    value: &Value,
    subject: Subject<'_>,
    others: &Constraints,
) {
    let (key, range) = (&item.key, &item.range);
    if let Some(bounds) = &others.range
        && let Some(label) = outside(value, &bounds.value)
    {
        let diagnostic = Diagnostic::error(format!("a value of `{key}` is outside `range`"))
            .code(rules::BAD_CONSTRAINT)
            .at(form.span(range.clone()), label)
            .related(form.span(bounds.range.clone()), "the range");
        form.report(diagnostic);
    }
    // The length of a list is not that of its elements.
    if let Some(lengths) = others.length.as_ref().filter(|_| !subject.ty.list)
        && let Some(length) = length_of(value).filter(|length| !lengths.value.contains(*length))
    {
        let diagnostic = Diagnostic::error(format!("a value of `{key}` has a length that `length` refuses"))
            .code(rules::BAD_CONSTRAINT)
            .at(form.span(range.clone()), counted(length, subject.ty))
            .related(form.span(lengths.range.clone()), "the lengths");
        form.report(diagnostic);
    }
}

/// The default of an attribute, as its type holds it and within its constraints.
pub(super) fn default(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    subject: Subject<'_>,
    constraints: &Constraints,
) -> Option<Value> {
    let value = match values::of_type(entry, subject.ty) {
        Ok(value) => value,
        Err(misfits) => {
            let brackets = form
                .written(&entry.range)
                .filter(|_| {
                    subject.ty.list && !matches!(entry.value(), DeValue::Array(_) | DeValue::Table(_))
                })
                .map(|written| format!("write `default = [{written}]`"));
            for misfit in misfits {
                let message = format!("the default is not of type `{}`", subject.ty.name());
                let diagnostic = Diagnostic::error(message)
                    .code(rules::BAD_DEFAULT)
                    .at(form.span(misfit.range), misfit.label);
                form.report(match &brackets {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
            }
            return None;
        }
    };
    let before = form.count();
    check_default_length(form, entry, &value, subject, constraints);
    let elements: Vec<(Value, Range<usize>)> = match (&value, subject.ty.list, entry.items()) {
        (Value::Array(values), true, Some(items)) => {
            values.iter().cloned().zip(items.into_iter().map(|item| item.range)).collect()
        }
        _ => vec![(value.clone(), entry.range.clone())],
    };
    let allowed: Option<BTreeSet<String>> =
        constraints.allowed().map(|(_, allowed)| allowed.value.iter().map(identity).collect());
    for (element, range) in &elements {
        check_default_range(form, range, element, constraints);
        if allowed.as_ref().is_some_and(|allowed| !allowed.contains(&identity(element))) {
            not_allowed(form, range, element, constraints);
        }
    }
    (form.count() == before).then_some(value)
}

fn check_default_length(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    value: &Value,
    subject: Subject<'_>,
    constraints: &Constraints,
) {
    if let Some(lengths) = &constraints.length
        && let Some(length) = length_of(value).filter(|length| !lengths.value.contains(*length))
    {
        let diagnostic = Diagnostic::error("the default breaks the attribute's own `length`")
            .code(rules::BAD_DEFAULT)
            .at(form.span(entry.range.clone()), counted(length, subject.ty))
            .related(form.span(lengths.range.clone()), "the lengths");
        form.report(diagnostic);
    }
}

fn check_default_range(form: &mut Form<'_>, range: &Range<usize>, value: &Value, constraints: &Constraints) {
    if let Some(bounds) = &constraints.range
        && let Some(label) = outside(value, &bounds.value)
    {
        let diagnostic = Diagnostic::error("the default breaks the attribute's own `range`")
            .code(rules::BAD_DEFAULT)
            .at(form.span(range.clone()), label)
            .related(form.span(bounds.range.clone()), "the range");
        form.report(diagnostic);
    }
}

/// The default, or one of its elements, is none of the values that are allowed.
fn not_allowed(form: &mut Form<'_>, range: &Range<usize>, value: &Value, constraints: &Constraints) {
    let Some((key, allowed)) = constraints.allowed() else { return };
    let diagnostic = Diagnostic::error(format!("the default breaks the attribute's own `{key}`"))
        .code(rules::BAD_DEFAULT)
        .at(form.span(range.clone()), "none of the values")
        .related(form.span(allowed.range.clone()), "the only values");
    let texts = allowed.value.iter().filter_map(|value| match value {
        Value::Str(text) => Some(text.as_str()),
        _ => None,
    });
    let near = match value {
        Value::Str(text) => suggest(text, texts),
        _ => None,
    };
    form.report(match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    });
}
