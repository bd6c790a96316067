//! Parts of a query in files of cases and of measured times.

use std::ops::Range;

use cubinder_expr::Value;
use toml::de::DeValue;

use super::{Part, Query, RawAttributeValue, alignment, check_shape};
use crate::errors::WrongValue;
use crate::manifest::form::{Entry, Form, Section};

/// The parts of a query that a file gives, with their names and places.
pub(crate) type Places = Vec<(Part, String, Range<usize>)>;

/// Reads the table of a part, if `section` has it.
pub(crate) fn part(
    form: &mut Form<'_>,
    section: &mut Section<'_>,
    part: Part,
    query: &mut Query,
    places: &mut Places,
) {
    for entry in form.lines(section, part.key()) {
        add(form, &entry, part, query, places);
    }
}

/// Adds a part of a query.
pub(crate) fn add(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    part: Part,
    query: &mut Query,
    places: &mut Places,
) {
    places.push((part, entry.key.clone(), entry.range.clone()));
    let name = entry.key.clone();
    match part {
        Part::Shape => query.shapes.extend(shape(form, entry).map(|shape| (name, shape))),
        Part::Values => {
            query.values.extend(integers(form, entry, "an array of integers").map(|held| (name, held)));
        }
        Part::Device => query.device.extend(form.integer(entry).map(|fact| (name, fact))),
        Part::Attribute => {
            query
                .attributes
                .extend(value(form, entry, true).map(|value| (name, RawAttributeValue::Value(value))));
        }
        Part::Type => query.types.extend(form.string(entry).map(|ty| (name, ty.value))),
        Part::Format => query.formats.extend(form.string(entry).map(|format| (name, format.value))),
        Part::Aligned => {
            let Some(bytes) = form.integer(entry) else { return };
            let bytes = u64::try_from(bytes).map_err(|_| format!("{bytes} is no power of two"));
            let bytes = right(form, entry, bytes.and_then(alignment));
            query.aligned.extend(bytes.map(|bytes| (name, bytes)));
        }
    }
}

/// Reports that an entry's value cannot be what it is.
pub(crate) fn wrong(form: &mut Form<'_>, entry: &Entry<'_>, why: impl Into<String>) {
    let (key, span) = (entry.key.clone(), form.span(entry.range.clone()));
    form.report(WrongValue { key, why: why.into(), span });
}

/// The value of an entry; reports why there is none.
pub(crate) fn right<T>(form: &mut Form<'_>, entry: &Entry<'_>, value: Result<T, String>) -> Option<T> {
    value.map_err(|why| wrong(form, entry, why)).ok()
}

pub(crate) fn integers(form: &mut Form<'_>, entry: &Entry<'_>, expected: &str) -> Option<Vec<i64>> {
    form.array(entry, expected)?.iter().map(|item| form.integer(item)).collect()
}

pub(crate) fn shape(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<i64>> {
    let dims = integers(form, entry, "an array of dimensions, such as `[2, 3]`")?;
    right(form, entry, check_shape(dims))
}

/// A number, a boolean, a string or, if `list` allows it, an array of them.
pub(crate) fn value(form: &mut Form<'_>, entry: &Entry<'_>, list: bool) -> Option<Value> {
    match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Value::Int),
        DeValue::Float(_) => form.float(entry).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::String(_) => form.string(entry).map(|text| Value::Str(text.value)),
        DeValue::Array(_) if list => {
            let items = form.array(entry, "an array")?;
            items.iter().map(|item| value(form, item, false)).collect::<Option<_>>().map(Value::Array)
        }
        _ => {
            wrong(form, entry, "expected a number, a boolean, a string or an array of them");
            None
        }
    }
}
