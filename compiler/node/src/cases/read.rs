//! The reader of test files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data::{self, Data};
use super::{Case, Cases, Expected};
use crate::diagnostic::{Diagnostic, Source};
use crate::errors::NoCases;
use crate::manifest::form::{Entry, Form, Section};
use crate::query::Part;
use crate::query::read::{integers, part, shape, value, wrong};

/// Reads a test file.
///
/// # Errors
/// Every mistake of form.
pub fn read(source: &Arc<Source>) -> Result<Cases, Vec<Diagnostic>> {
    let mut form = Form::new(source);
    let cases = document(&mut form, source);
    let diagnostics = form.into_diagnostics();
    match cases {
        Some(cases) if diagnostics.is_empty() => Ok(cases),
        _ => Err(diagnostics),
    }
}

pub(super) fn document(form: &mut Form<'_>, source: &Arc<Source>) -> Option<Cases> {
    let document = form.parse(None)?;
    let mut root = Section::root(document.get_ref());
    let subject = form.require(&mut root, "manifest", "\"../manifests/NAME.toml\"");
    let subject = subject.and_then(|entry| form.string(&entry));
    let folder = source.path.parent().map(PathBuf::from).unwrap_or_default();
    let data = Data::read(form, &mut root, &folder);
    let tables = form.tables(&mut root, "cases");
    if tables.is_empty() {
        form.report(NoCases { start: form.span(0..0) });
    }
    let list: Vec<Case> = tables.into_iter().map(|table| case(form, table, &folder)).collect();
    form.finish(&root);
    Some(Cases { source: Arc::clone(source), subject: folder.join(subject?.value), list, data })
}

fn case(form: &mut Form<'_>, mut table: Section<'_>, folder: &Path) -> Case {
    let mut case = Case { range: table.range.clone(), ..Case::default() };
    let name = form.require(&mut table, "name", "\"what it is about\"");
    case.name = name.and_then(|entry| form.string(&entry)).map(|name| name.value).unwrap_or_default();
    for each in
        [Part::Shape, Part::Values, Part::Device, Part::Attribute, Part::Type, Part::Format, Part::Aligned]
    {
        part(form, &mut table, each, &mut case.query, &mut case.places);
    }
    case.data = Data::read(form, &mut table, folder);
    if let Some(entry) = table.take("expect")
        && let Some(section) = form.table(&entry, "[cases.expect]".to_owned())
    {
        expect(form, section, &mut case, folder);
    }
    form.finish(&table);
    case
}

fn expect(form: &mut Form<'_>, mut table: Section<'_>, case: &mut Case, folder: &Path) {
    for entry in form.lines(&mut table, "shapes") {
        let shape = shape(form, &entry).map(|shape| Expected::Shape(entry.key, shape));
        case.expected.extend(shape.map(|expected| (entry.range, expected)));
    }
    let mut one = |key, read: &mut dyn FnMut(&mut Form<'_>, &Entry<'_>) -> Option<Expected>| {
        let Some(entry) = table.take(key) else { return };
        case.expected.extend(read(form, &entry).map(|expected| (entry.range, expected)));
    };
    one("variant", &mut |form, entry| form.integer(entry).map(Expected::Variant));
    one("grid", &mut |form, entry| extents(form, entry).map(Expected::Grid));
    one("block", &mut |form, entry| extents(form, entry).map(Expected::Block));
    one("shared_bytes", &mut |form, entry| form.integer(entry).map(Expected::SharedBytes));
    for entry in form.lines(&mut table, "args") {
        let value = value(form, &entry, true).map(|value| Expected::Arg(entry.key, value));
        case.expected.extend(value.map(|expected| (entry.range, expected)));
    }
    case.outputs = data::outputs(form, &mut table, folder);
    let error = table.take("error").and_then(|entry| form.string(&entry));
    case.error = error.map(|text| (text.range, text.value));
    form.finish(&table);
}

/// One to three numbers; 1 for those that are missing.
fn extents(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<[i64; 3]> {
    match integers(form, entry, "an array of one to three numbers")?[..] {
        [x] => Some([x, 1, 1]),
        [x, y] => Some([x, y, 1]),
        [x, y, z] => Some([x, y, z]),
        ref found => {
            wrong(form, entry, format!("it has {} numbers, expected one to three", found.len()));
            None
        }
    }
}
