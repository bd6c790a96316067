use std::ops::Range;

use cubinder_expr::Value;
use toml::de::DeValue;

use super::{Part, Query, RawAttributeValue, alignment, check_shape};
use crate::errors::WrongValue;
use crate::manifest::toml_reader::{Entry, Section, TomlReader};

pub(crate) type Places = Vec<(Part, String, Range<usize>)>;

pub(crate) fn part(
    toml: &mut TomlReader,
    section: &mut Section<'_>,
    part: Part,
    query: &mut Query,
    places: &mut Places,
) {
    for entry in toml.lines(section, part.key()) {
        add(toml, &entry, part, query, places);
    }
}

pub(crate) fn add(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    part: Part,
    query: &mut Query,
    places: &mut Places,
) {
    places.push((part, entry.key.clone(), entry.range.clone()));
    let name = entry.key.clone();
    match part {
        Part::Shape => query.shapes.extend(shape(toml, entry).map(|shape| (name, shape))),
        Part::Values => {
            query.values.extend(integers(toml, entry, "an array of integers").map(|held| (name, held)));
        }
        Part::Device => query.device.extend(toml.integer(entry).map(|fact| (name, fact))),
        Part::Attribute => {
            query
                .attributes
                .extend(value(toml, entry, true).map(|value| (name, RawAttributeValue::Value(value))));
        }
        Part::Type => query.types.extend(toml.string(entry).map(|ty| (name, ty.value))),
        Part::Format => query.formats.extend(toml.string(entry).map(|format| (name, format.value))),
        Part::Aligned => {
            let Some(bytes) = toml.integer(entry) else { return };
            let bytes = u64::try_from(bytes).map_err(|_| format!("{bytes} is not a power of two"));
            let bytes = right(toml, entry, bytes.and_then(alignment));
            query.aligned.extend(bytes.map(|bytes| (name, bytes)));
        }
    }
}

pub(crate) fn wrong(toml: &mut TomlReader, entry: &Entry<'_>, why: impl Into<String>) {
    let (key, span) = (entry.key.clone(), toml.span(entry.range.clone()));
    toml.report(WrongValue { key, why: why.into(), span });
}

/// Reports errors.
pub(crate) fn right<T>(toml: &mut TomlReader, entry: &Entry<'_>, value: Result<T, String>) -> Option<T> {
    value.map_err(|why| wrong(toml, entry, why)).ok()
}

pub(crate) fn integers(toml: &mut TomlReader, entry: &Entry<'_>, expected: &str) -> Option<Vec<i64>> {
    toml.array(entry, expected)?.iter().map(|item| toml.integer(item)).collect()
}

pub(crate) fn shape(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<i64>> {
    let dims = integers(toml, entry, "an array of dimensions, such as `[2, 3]`")?;
    right(toml, entry, check_shape(dims))
}

/// Accepts arrays if `list`.
pub(crate) fn value(toml: &mut TomlReader, entry: &Entry<'_>, list: bool) -> Option<Value> {
    match entry.value {
        DeValue::Integer(_) => toml.integer(entry).map(Value::Int),
        DeValue::Float(_) => toml.float(entry).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::String(_) => toml.string(entry).map(|text| Value::Str(text.value)),
        DeValue::Array(_) if list => {
            let items = toml.array(entry, "an array")?;
            items.iter().map(|item| value(toml, item, false)).collect::<Option<_>>().map(Value::Array)
        }
        _ => {
            wrong(toml, entry, "expected a number, a boolean, a string or an array of them");
            None
        }
    }
}
