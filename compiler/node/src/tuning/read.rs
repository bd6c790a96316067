use std::sync::Arc;

use cubinder_model::MAX_VARIANT_ID;
use cubinder_model::fit::ComputeCapability;

use super::{Device, File, Places, Point, SCHEMA, Tuning};
use crate::diagnostic::{Diagnostic, Source};
use crate::errors::{NoDevice, UnknownEdition, VariantIdOutOfRange};
use crate::manifest::toml_reader::{Entry, Section, TomlReader};
use crate::query::Part;
use crate::query::read::{add, part, wrong};

/// Parses a tuning file; reports every syntax error.
pub fn read(source: &Arc<Source>) -> Result<File, Vec<Diagnostic>> {
    let (mut toml, document) = TomlReader::parse(source, None);
    let read = document.and_then(|document| tuning(&mut toml, Section::root(document.get_ref())));
    let diagnostics = toml.into_diagnostics();
    match read {
        Some((tuning, places)) if diagnostics.is_empty() => {
            Ok(File { source: Arc::clone(source), tuning, places })
        }
        _ => Err(diagnostics),
    }
}

fn tuning(toml: &mut TomlReader, mut root: Section<'_>) -> Option<(Tuning, Vec<Places>)> {
    let schema = toml.require(&mut root, "schema", &SCHEMA.to_string());
    let is_known = schema.is_none_or(|entry| edition(toml, &entry));
    if !is_known {
        // Other editions have other keys.
        return None;
    }
    let device = match root.take("device") {
        Some(entry) => toml.table(&entry, "[device]".to_owned()),
        None => {
            toml.report(NoDevice { start: toml.span(0..0) });
            None
        }
    };
    let device = device.and_then(|section| device_section(toml, section));
    let points = toml.tables(&mut root, "points");
    let points: Vec<(Point, Places)> = points.into_iter().map(|section| point(toml, section)).collect();
    toml.finish(&root);
    let (points, places) = points.into_iter().unzip();
    Some((Tuning { device: device?, points }, places))
}

fn edition(toml: &mut TomlReader, entry: &Entry<'_>) -> bool {
    let Some(found) = toml.integer(entry) else { return false };
    if found == SCHEMA {
        return true;
    }
    toml.report(UnknownEdition { found, known: SCHEMA, span: toml.span(entry.range.clone()) });
    false
}

fn device_section(toml: &mut TomlReader, mut section: Section<'_>) -> Option<Device> {
    let name = toml.require(&mut section, "name", "\"NVIDIA H200\"").and_then(|entry| shown(toml, &entry));
    let capability = toml.require(&mut section, "capability", "\"9.0\"");
    let capability = capability.and_then(|entry| capability_of(toml, &entry));
    let sms = toml.require(&mut section, "sms", "132").and_then(|entry| number(toml, &entry));
    let driver = section.take("driver").and_then(|entry| number(toml, &entry));
    toml.finish(&section);
    Some(Device { name: name?, capability: capability?, sms: sms?, driver })
}

/// The string is shown verbatim.
fn shown(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let text = toml.string(entry)?.value;
    if text.chars().any(char::is_control) {
        wrong(toml, entry, format!("{text:?} contains control characters, expected the name of a GPU"));
        return None;
    }
    Some(text)
}

fn number(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<u32> {
    let found = toml.integer(entry)?;
    let number = u32::try_from(found).ok().filter(|number| *number > 0);
    if number.is_none() {
        wrong(toml, entry, format!("expected a number from 1 to {}, found {found}", u32::MAX));
    }
    number
}

fn capability_of(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<ComputeCapability> {
    let text = toml.string(entry)?.value;
    let parts = text.split_once('.').and_then(|(major, minor)| Some((digits(major)?, digits(minor)?)));
    // One digit: 9.0 may be written 90.
    let Some((major, minor)) = parts.filter(|(major, minor)| *major > 0 && *minor < 10) else {
        wrong(toml, entry, format!("invalid compute capability `{text}`, expected a value such as `9.0`"));
        return None;
    };
    Some(ComputeCapability { major, minor })
}

/// Accepts only the canonical form.
fn digits(text: &str) -> Option<u8> {
    text.parse().ok().filter(|number: &u8| number.to_string() == text)
}

fn point(toml: &mut TomlReader, mut section: Section<'_>) -> (Point, Places) {
    let mut point = Point::default();
    let mut places = Places { header: section.range.clone(), ..Places::default() };
    if let Some(entry) = toml.require(&mut section, "plugin", "\"namespace::name\"") {
        places.plugin = entry.range.clone();
        point.plugin = toml.string(&entry).map(|text| text.value).unwrap_or_default();
    }
    if let Some(entry) = toml.require(&mut section, "version", "\"1\"") {
        places.version = entry.range.clone();
        point.version = toml.string(&entry).map(|text| text.value).unwrap_or_default();
    }
    point.case = section.take("case").and_then(|entry| toml.string(&entry)).map(|text| text.value);
    let (query, parts) = (&mut point.query, &mut places.query);
    for each in [Part::Type, Part::Format, Part::Attribute] {
        part(toml, &mut section, each, query, parts);
    }
    // Without shapes, the node would have no inputs.
    let shapes = toml.require(&mut section, Part::Shape.key(), "{ NAME = [512, 4096] }");
    let shapes = shapes.and_then(|entry| toml.table(&entry, "[points.shapes]".to_owned()));
    for entry in shapes.map(|table| table.entries()).unwrap_or_default() {
        add(toml, &entry, Part::Shape, query, parts);
    }
    part(toml, &mut section, Part::Values, query, parts);
    point.code = section.take("code").and_then(|entry| toml.string(&entry)).map(|text| text.value);
    if let Some(entry) = toml.require(&mut section, "microseconds", "{ ID = TIME }") {
        for (id, range, time) in times(toml, &entry) {
            places.variants.push((id, range));
            point.microseconds.push((id, time));
        }
    }
    toml.finish(&section);
    (point, places)
}

fn times(toml: &mut TomlReader, entry: &Entry<'_>) -> Vec<(i32, std::ops::Range<usize>, f64)> {
    let Some(table) = toml.table(entry, "[points.microseconds]".to_owned()) else { return Vec::new() };
    let lines = table.entries();
    if lines.is_empty() {
        wrong(toml, entry, "expected at least one variant");
    }
    let mut times = Vec::new();
    for line in lines {
        let range = line.key_range.start..line.range.end;
        let id = line.key.parse().ok().filter(|id: &i32| id.to_string() == line.key);
        let id = id.filter(|id| (1..=MAX_VARIANT_ID).contains(id));
        let time = match line.value {
            toml::de::DeValue::Integer(_) => {
                #[allow(clippy::cast_precision_loss)] // rounds like a parser
                toml.integer(&line).map(|time| time as f64)
            }
            _ => toml.float(&line),
        };
        match (id, time) {
            (None, _) => {
                toml.report(VariantIdOutOfRange { id: line.key, span: toml.span(line.key_range) });
            }
            (Some(_), None) => {}
            (Some(_), Some(time)) if time < 0.0 => {
                wrong(toml, &line, format!("expected at least 0, found {time}"));
            }
            (Some(id), Some(time)) => times.push((id, range, time)),
        }
    }
    times
}
