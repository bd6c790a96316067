//! Schema edition 1: one module a section.
//!
//! A key stands here when something executes it; any other key is unknown. Every key is described in [`super::keys`]: a
//! test holds both against each other.

pub(super) mod attributes;
mod code;
mod combinations;
mod compile;
mod constraints;
mod launches;
pub(super) mod names;
pub(super) mod plugin;
mod ranges;
pub(super) mod tables;
mod tensors;
mod values;
mod variants;

use super::form::{Entry, Form, Section, is_identifier, list};
use super::keys::ROOT;
use super::{Located, Manifest};
use crate::diagnostic::{Diagnostic, lacking_type, suggest, suggest_type};
use crate::rules;

/// Reads everything but `schema`.
pub(super) fn read(form: &mut Form<'_>, mut root: Section<'_>) -> Manifest {
    let mut broken = Vec::new();
    let plugin = plugin::read(form, &mut root);
    let attributes = named_tables(form, &mut root, "attributes", &mut broken, attributes::read);
    let inputs = list_of(form, &mut root, "inputs", &mut broken, tensors::input);
    let mut outputs = list_of(form, &mut root, "outputs", &mut broken, tensors::output);
    outputs.iter_mut().for_each(|output| tensors::take_over(output, &inputs));
    let types = lines(form, &mut root, "types", &mut broken, names::parameter);
    let formats = lines(form, &mut root, "formats", &mut broken, names::parameter);
    let combinations = combinations::read(form, &mut root, &mut broken);
    let constants = lines(form, &mut root, "constants", &mut broken, names::constant);
    let functions = lines(form, &mut root, "functions", &mut broken, names::function);
    let variants = variants::read(form, &mut root, &mut broken);
    let tables = named_tables(form, &mut root, "tables", &mut broken, tables::table);
    let scratch = named_tables(form, &mut root, "scratch", &mut broken, launches::scratch);
    let code = code::read(form, &mut root);
    let launches = launches::read(form, &mut root, &outputs);
    let compile = compile::read(form, &mut root);
    finish(form, &root);
    Manifest {
        plugin,
        attributes,
        inputs,
        outputs,
        types,
        formats,
        combinations,
        constants,
        functions,
        variants,
        tables,
        scratch,
        code,
        launches,
        compile,
        broken,
    }
}

/// Reports the file's unknown keys; where one is a table of another name or place, nothing more is looked for.
fn finish(form: &mut Form<'_>, root: &Section<'_>) {
    let mut reported = Vec::new();
    let names = || ROOT.keys.iter().map(|key| key.name);
    for entry in root.entries().into_iter().filter(|entry| names().all(|name| name != entry.key)) {
        if let Some(header) = header_of(&entry.key) {
            let message = format!("unknown key `{}` in the file", entry.key);
            let diagnostic = Diagnostic::error(message)
                .code(rules::UNKNOWN_KEY)
                .at(form.span(entry.key_range), "not a key of this table");
            form.report(diagnostic.help(format!("write `{header}`")));
            reported.push(entry.key);
        } else if suggest(&entry.key, names()).is_none() {
            continue;
        }
        form.give_up();
    }
    let reported: Vec<&str> = reported.iter().map(String::as_str).collect();
    form.finish_except(root, &reported);
}

/// The header of a table that stands in one of the file's: `[launches.args]`.
fn header_of(key: &str) -> Option<String> {
    use super::keys::Form;
    let is_named = |outer: &super::keys::Key| matches!(outer.form, Form::Named(..) | Form::NamedKinds(..));
    let tables = ROOT.keys.iter().filter(|outer| !is_named(outer));
    let mut inner = tables.flat_map(|outer| outer.form.tables().iter().map(|table| (outer.name, *table)));
    inner.find_map(|(outer, table)| {
        let found = table.keys.iter().find(|inner| inner.name == key)?;
        match found.form {
            Form::Table(_) | Form::Lines(..) => Some(format!("[{outer}.{key}]")),
            Form::Tables(..) => Some(format!("[[{outer}.{key}]]")),
            _ => None,
        }
    })
}

/// The tables `[key.NAME]`.
fn named_tables<T>(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, Located<String>, Section<'_>) -> Option<T>,
) -> Vec<T> {
    if let Some(header) = flat(root, key) {
        let (entry, name) = header;
        let expected = format!("tables, each beginning with `[{key}.NAME]`");
        let diagnostic = Diagnostic::error(format!("`{key}` must be made of {expected}"))
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.key_range.clone()), format!("not in a table `[{key}.NAME]`"))
            .help(format!("write `[{key}.{name}]` before its keys"));
        form.report(diagnostic);
        form.give_up();
        root.take(key);
        return Vec::new();
    }
    let read = |form: &mut Form<'_>, entry: &Entry<'_>| {
        let section = form.table(entry, format!("[{key}.{}]", entry.key))?;
        read(form, entry.name(), section)
    };
    lines(form, root, key, broken, read)
}

/// The first key that stands in `[key]` or `[[key]]` where it should stand in `[key.NAME]`, with that name.
fn flat<'t>(root: &Section<'t>, key: &str) -> Option<(Entry<'t>, String)> {
    let entry = root.entries().into_iter().find(|entry| entry.key == key)?;
    let (lines, is_list) = match entry.items() {
        Some(tables) => (tables.first()?.lines()?, true),
        None => (entry.lines()?, false),
    };
    let name = lines.iter().find(|line| line.key == "name").and_then(|line| line.value().as_str());
    let name = name.filter(|name| is_identifier(name)).unwrap_or("NAME").to_owned();
    let flat =
        lines.into_iter().find(|line| matches!(line.key.as_str(), "name" | "type") && line.lines().is_none());
    match flat {
        Some(_) if is_list => Some((entry, name)),
        flat => flat.map(|flat| (flat, name)),
    }
}

/// The lines of the table `[key]`, in the file's order; the names of those that cannot be read become broken ones.
fn lines<T>(
    form: &mut Form<'_>,
    parent: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, &Entry<'_>) -> Option<T>,
) -> Vec<T> {
    let mut items = Vec::new();
    for entry in form.lines(parent, key) {
        match read(form, &entry) {
            Some(item) => items.push(item),
            None => broken.push(entry.key),
        }
    }
    items
}

/// The tables `[[key]]`.
fn list_of<T>(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, Section<'_>, &mut Vec<String>) -> Option<T>,
) -> Vec<T> {
    let sections = form.tables(root, key);
    sections.into_iter().filter_map(|section| read(form, section, broken)).collect()
}

fn doc(form: &mut Form<'_>, section: &mut Section<'_>, key: &'static str) -> String {
    section.take(key).and_then(|entry| form.string(&entry)).map(|text| text.value).unwrap_or_default()
}

/// Why there are no tensors of a type that other languages have.
pub(crate) fn no_tensors_of(lacking: &str) -> String {
    match lacking {
        "f4" => "TensorRT has tensors of 4-bit floats; Cubinder has none yet".to_owned(),
        lacking => format!("TensorRT has no tensors of `{lacking}`"),
    }
}

fn unknown_type(form: &mut Form<'_>, name: &Located<String>, what: &str, known: &[&str]) {
    let diagnostic = Diagnostic::error(format!("unknown {what} `{}`", name.value))
        .code(rules::UNKNOWN_TYPE)
        .at(
            form.span(name.range.clone()),
            format!("not {} {what}", if what.starts_with('a') || what.starts_with('e') { "an" } else { "a" }),
        )
        .note(format!("the {what}s are {}", list(known)));
    if let Some(lacking) = lacking_type(&name.value, known.iter().copied()) {
        let diagnostic = match what {
            "attribute type" if lacking.starts_with('u') => {
                diagnostic.help("a signed type with a `range` holds what is not negative: `range = \"0..\"`")
            }
            "attribute type" | "table type" => diagnostic,
            _ => diagnostic.note(no_tensors_of(&lacking)),
        };
        form.report(diagnostic);
        return;
    }
    let diagnostic = match suggest_type(&name.value, known.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    form.report(diagnostic);
}
