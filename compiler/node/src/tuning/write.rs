//! Formats tuning files, one line per item, for readable diffs.

use std::fmt::Write as _;

use cubinder_expr::Value;

use super::{Point, SCHEMA, Tuning};
use crate::manifest::toml_reader::is_identifier;
use crate::query::RawAttributeValue;

const COMMENT: &str = "# Written by `cubinder tune`; `cubinder compile` embeds it into the plugins.\n";

/// Formats `tuning`, a point's variants by time.
#[must_use]
pub fn write(tuning: &Tuning) -> String {
    let device = &tuning.device;
    let mut text = format!("{COMMENT}\nschema = {SCHEMA}\n\n[device]\n");
    let _ = writeln!(text, "name = {}", string(&device.name));
    let _ = writeln!(text, "capability = {}", string(&device.capability.to_string()));
    let _ = writeln!(text, "sms = {}", device.sms);
    if let Some(driver) = device.driver {
        let _ = writeln!(text, "driver = {driver}");
    }
    for point in &tuning.points {
        text.push_str("\n[[points]]\n");
        write_point(point, &mut text);
    }
    text
}

fn write_point(point: &Point, text: &mut String) {
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("plugin", string(&point.plugin));
    line("version", string(&point.version));
    if let Some(case) = &point.case {
        line("case", string(case));
    }
    let of_strings = |pairs: &[(String, String)]| -> Vec<String> {
        pairs.iter().map(|(name, it)| pair(name, &string(it))).collect()
    };
    let of_integers = |pairs: &[(String, Vec<i64>)]| -> Vec<String> {
        pairs.iter().map(|(name, list)| pair(name, &array(list.iter().map(i64::to_string)))).collect()
    };
    let query = &point.query;
    let attributes = query.attributes.iter().map(|(name, given)| match given {
        RawAttributeValue::Text(text) => pair(name, &string(text)),
        RawAttributeValue::Value(it) => pair(name, &value(it)),
    });
    for (key, pairs) in [
        ("types", of_strings(&query.types)),
        ("formats", of_strings(&query.formats)),
        ("attributes", attributes.collect()),
        ("shapes", of_integers(&query.shapes)),
        ("values", of_integers(&query.values)),
    ] {
        if !pairs.is_empty() || key == "shapes" {
            line(key, table(&pairs));
        }
    }
    if let Some(code) = &point.code {
        line("code", string(code));
    }
    let time = |id: &i32| point.microseconds.iter().find(|(known, _)| known == id);
    let times = point.ranking();
    let times = times.iter().filter_map(time).map(|(id, time)| pair(&id.to_string(), &float(*time)));
    line("microseconds", table(&times.collect::<Vec<_>>()));
}

fn pair(name: &str, value: &str) -> String {
    // TOML keys may be numbers.
    let is_bare = is_identifier(name) || name.parse::<u32>().is_ok_and(|number| number.to_string() == name);
    let name = if is_bare { name.to_owned() } else { string(name) };
    format!("{name} = {value}")
}

fn table(pairs: &[String]) -> String {
    if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn string(text: &str) -> String {
    let escaped = text.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        character if character.is_control() => format!("\\u{:04X}", u32::from(character)),
        character => character.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn float(value: f64) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") }
}

fn value(of: &Value) -> String {
    match of {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float(*value),
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => string(text),
        Value::Array(items) => array(items.iter().map(value)),
    }
}
