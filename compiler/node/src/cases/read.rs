use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data::{self, CaseData};
use super::{Case, Cases, Expected};
use crate::diagnostic::{Diagnostic, Source};
use crate::errors::NoCases;
use crate::manifest::toml_reader::{Entry, Section, TomlReader};
use crate::query::Part;
use crate::query::read::{integers, part, shape, value, wrong};

/// Parses a test file; reports every syntax error.
pub fn read(source: &Arc<Source>) -> Result<Cases, Vec<Diagnostic>> {
    let (mut toml, document) = TomlReader::parse(source, None);
    let cases = document.and_then(|document| cases(&mut toml, Section::root(document.get_ref())));
    let diagnostics = toml.into_diagnostics();
    match cases {
        Some(cases) if diagnostics.is_empty() => Ok(cases),
        _ => Err(diagnostics),
    }
}

fn cases(toml: &mut TomlReader, mut root: Section<'_>) -> Option<Cases> {
    let source = Arc::clone(&toml.source);
    let subject = toml.require(&mut root, "manifest", "\"../manifests/NAME.toml\"");
    let subject = subject.and_then(|entry| toml.string(&entry));
    let folder = source.path.parent().map(PathBuf::from).unwrap_or_default();
    let data = CaseData::read(toml, &mut root, &folder);
    let tables = toml.tables(&mut root, "cases");
    if tables.is_empty() {
        toml.report(NoCases { start: toml.span(0..0) });
    }
    let list: Vec<Case> = tables.into_iter().map(|table| case(toml, table, &folder)).collect();
    toml.finish(&root);
    Some(Cases { source, subject: folder.join(subject?.value), list, data })
}

fn case(toml: &mut TomlReader, mut table: Section<'_>, folder: &Path) -> Case {
    let mut case = Case { range: table.range.clone(), ..Case::default() };
    let name = toml.require(&mut table, "name", "\"a description\"");
    case.name = name.and_then(|entry| toml.string(&entry)).map(|name| name.value).unwrap_or_default();
    for each in
        [Part::Shape, Part::Values, Part::Device, Part::Attribute, Part::Type, Part::Format, Part::Aligned]
    {
        part(toml, &mut table, each, &mut case.query, &mut case.places);
    }
    case.data = CaseData::read(toml, &mut table, folder);
    if let Some(entry) = table.take("expect")
        && let Some(section) = toml.table(&entry, "[cases.expect]".to_owned())
    {
        expect(toml, section, &mut case, folder);
    }
    toml.finish(&table);
    case
}

fn expect(toml: &mut TomlReader, mut table: Section<'_>, case: &mut Case, folder: &Path) {
    for entry in toml.lines(&mut table, "shapes") {
        let shape = shape(toml, &entry).map(|shape| Expected::Shape(entry.key, shape));
        case.expected.extend(shape.map(|expected| (entry.range, expected)));
    }
    let mut one = |key, read: &mut dyn FnMut(&mut TomlReader, &Entry<'_>) -> Option<Expected>| {
        let Some(entry) = table.take(key) else { return };
        case.expected.extend(read(toml, &entry).map(|expected| (entry.range, expected)));
    };
    one("variant", &mut |toml, entry| toml.integer(entry).map(Expected::Variant));
    one("grid", &mut |toml, entry| extents(toml, entry).map(Expected::Grid));
    one("block", &mut |toml, entry| extents(toml, entry).map(Expected::Block));
    one("shared_bytes", &mut |toml, entry| toml.integer(entry).map(Expected::SharedBytes));
    for entry in toml.lines(&mut table, "args") {
        let value = value(toml, &entry, true).map(|value| Expected::Arg(entry.key, value));
        case.expected.extend(value.map(|expected| (entry.range, expected)));
    }
    case.outputs = data::outputs(toml, &mut table, folder);
    let error = table.take("error").and_then(|entry| toml.string(&entry));
    case.error = error.map(|text| (text.range, text.value));
    toml.finish(&table);
}

/// Omitted extents are 1.
fn extents(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<[i64; 3]> {
    match integers(toml, entry, "an array of one to three numbers")?[..] {
        [x] => Some([x, 1, 1]),
        [x, y] => Some([x, y, 1]),
        [x, y, z] => Some([x, y, z]),
        ref found => {
            wrong(toml, entry, format!("expected one to three numbers, found {}", found.len()));
            None
        }
    }
}
