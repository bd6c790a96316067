//! `[tables]`: read-only data that is compiled beside the code.

use cubinder_expr::Value;
use toml::de::DeValue;

use super::super::form::{Entry, Form, Section};
use super::super::keys::DATA_FILE;
use super::super::table::MAX_TABLE_BYTES;
use super::super::{Located, TableData, TableDecl, TableType, TableValues};
use super::unknown_type;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A table.
pub(super) fn table(
    form: &mut Form<'_>,
    name: Located<String>,
    mut section: Section<'_>,
) -> Option<TableDecl> {
    form.identifier(&name, "a table");
    if section.has(FILE) {
        return of_file(form, name, section.called(DATA_FILE.title));
    }
    let ty = form.require(&mut section, "type", "\"f32\"").and_then(|entry| element_type(form, &entry));
    let values = form.require(&mut section, "values", "[...]");
    // Without the type nothing can be said of them.
    let values = ty.as_ref().zip(values).and_then(|(ty, entry)| values_of(form, ty, &entry));
    form.finish(&section);
    Some(TableDecl { name, ty: ty?, values: values? })
}

/// The key that makes a table one of a file.
const FILE: &str = "file";

/// A table whose elements are in a file.
fn of_file(form: &mut Form<'_>, name: Located<String>, mut section: Section<'_>) -> Option<TableDecl> {
    let ty = form.require(&mut section, "type", "\"f32\"").and_then(|entry| element_type(form, &entry));
    let file = form.require(&mut section, FILE, "\"window.bin\"").and_then(|entry| form.string(&entry));
    if let Some(file) = file.as_ref().filter(|file| file.value.trim().is_empty()) {
        let diagnostic = Diagnostic::error("`file` must name a file")
            .code(rules::WRONG_VALUE)
            .at(form.span(file.range.clone()), "this is empty");
        form.report(diagnostic);
    }
    let values = section.entries().into_iter().find(|entry| entry.key == "values");
    if let Some(values) = &values {
        let diagnostic = Diagnostic::error("a table has `values` or `file`, and not both")
            .code(rules::WRONG_VALUE)
            .at(form.span(values.key_range.clone()), "the elements are in a file")
            .help("leave one of both out");
        form.report(diagnostic);
    }
    form.finish_except(&section, if values.is_some() { &["values"] } else { &[] });
    let file = file.filter(|file| !file.value.trim().is_empty())?;
    Some(TableDecl { name, ty: ty?, values: TableValues::File(file) })
}

fn element_type(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<TableType>> {
    let name = form.string(entry)?;
    let ty = TableType::from_name(&name.value);
    if ty.is_none() {
        let known = TableType::ALL.map(TableType::name);
        unknown_type(form, &name, "table type", &known);
    }
    Some(Located { value: ty?, range: name.range })
}

fn values_of(form: &mut Form<'_>, ty: &Located<TableType>, entry: &Entry<'_>) -> Option<TableValues> {
    let items = match entry.value() {
        DeValue::String(_) => return form.text(entry).map(TableValues::Computed),
        _ => form.values(entry, "an array of numbers or booleans, or an expression")?,
    };
    if let Some(error) = size_error(ty.value, items.len()) {
        let diagnostic = Diagnostic::error(error.message)
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), error.label);
        form.report(diagnostic);
        return None;
    }
    let mut data = TableData::default();
    for item in &items {
        let value = value(form, item)?;
        match ty.value.bytes(&value) {
            Ok(bytes) => data.push(&bytes),
            // One mistake is enough of an array that may have many thousands.
            Err(why) => {
                let diagnostic = Diagnostic::error(format!(
                    "an element of the table is not of type `{}`",
                    ty.value.name()
                ))
                .code(rules::WRONG_VALUE)
                .at(form.span(item.range.clone()), format!("found {}{why}", item.found()))
                .related(form.span(ty.range.clone()), "the type of its elements");
                form.report(diagnostic);
                return None;
            }
        }
    }
    Some(TableValues::Listed(data))
}

/// A number or a boolean.
fn value(form: &mut Form<'_>, item: &Entry<'_>) -> Option<Value> {
    match item.value() {
        DeValue::Integer(_) => form.integer(item).map(Value::Int),
        // Those that are written; a number that is too large for a double is none.
        DeValue::Float(float) if matches!(float.as_str().trim_start_matches(['+', '-']), "inf" | "nan") => {
            float.as_str().parse().ok().map(Value::Float)
        }
        DeValue::Float(_) => form.float(item).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        _ => {
            let diagnostic = Diagnostic::error("an element of a table must be a number or a boolean")
                .code(rules::WRONG_VALUE)
                .at(form.span(item.range.clone()), format!("found {}", item.found()));
            form.report(diagnostic);
            None
        }
    }
}

/// What is wrong with the size of a table.
pub(crate) struct SizeError {
    pub(crate) message: String,
    pub(crate) label: String,
}

/// A table has an element, and is not larger than what compiles in a second or two.
pub(crate) fn size_error(ty: TableType, length: usize) -> Option<SizeError> {
    let bytes = length.saturating_mul(ty.size());
    if length == 0 {
        return Some(SizeError {
            message: "a table has at least one element".to_owned(),
            label: "this is empty".to_owned(),
        });
    }
    (bytes > MAX_TABLE_BYTES).then(|| SizeError {
        message: format!("a table has at most {MAX_TABLE_BYTES} bytes"),
        label: format!("{length} elements of `{}` are {bytes} bytes", ty.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_something_and_at_most_a_mebibyte() {
        let is_right = |ty, length| size_error(ty, length).is_none();
        assert!(!is_right(TableType::U8, 0));
        assert!(is_right(TableType::U8, 1) && is_right(TableType::U8, 1 << 20));
        assert!(is_right(TableType::F64, 1 << 17) && !is_right(TableType::F64, (1 << 17) + 1));
        let label = size_error(TableType::F32, 300_000).map(|error| error.label);
        assert_eq!(label.as_deref(), Some("300000 elements of `f32` are 1200000 bytes"));
    }
}
