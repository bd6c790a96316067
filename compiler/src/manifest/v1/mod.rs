//! Schema edition 1: one module a section.
//!
//! A key stands here when something executes it; any other key is unknown. Every key is described in [`super::keys`]: a
//! test holds both against each other.

pub(super) mod attributes;
mod compile;
mod constraints;
mod launches;
mod names;
pub(super) mod plugin;
mod ranges;
mod tensors;
mod values;
mod variants;

use super::form::{Entry, Form, Section, list};
use super::{Located, Manifest};
use crate::diagnostic::{Diagnostic, suggest_type};
use crate::rules;

/// Reads everything but `schema`.
pub(super) fn read(form: &mut Form<'_>, mut root: Section<'_>) -> Manifest {
    let mut broken = Vec::new();
    let plugin = plugin::read(form, &mut root);
    let attributes = named_tables(form, &mut root, "attributes", &mut broken, attributes::read);
    let inputs = list_of(form, &mut root, "inputs", &mut broken, tensors::input);
    let outputs = list_of(form, &mut root, "outputs", &mut broken, tensors::output);
    let types = lines(form, &mut root, "types", &mut broken, names::type_parameter);
    let constants = lines(form, &mut root, "constants", &mut broken, names::constant);
    let functions = lines(form, &mut root, "functions", &mut broken, names::function);
    let variants = variants::read(form, &mut root, &mut broken);
    let launches = launches::read(form, &mut root, &outputs);
    let compile = compile::read(form, &mut root);
    form.finish(&root);
    Manifest {
        plugin,
        attributes,
        inputs,
        outputs,
        types,
        constants,
        functions,
        variants,
        launches,
        compile,
        broken,
    }
}

/// The tables `[key.NAME]`.
fn named_tables<T>(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, Located<String>, Section<'_>) -> Option<T>,
) -> Vec<T> {
    let read = |form: &mut Form<'_>, entry: &Entry<'_>| {
        let section = form.table(entry, format!("[{key}.{}]", entry.key))?;
        read(form, entry.name(), section)
    };
    lines(form, root, key, broken, read)
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

fn unknown_type(form: &mut Form<'_>, name: &Located<String>, what: &str, known: &[&str]) {
    let diagnostic = Diagnostic::error(format!("unknown {what} `{}`", name.value))
        .code(rules::UNKNOWN_TYPE)
        .at(
            form.span(name.range.clone()),
            format!("not {} {what}", if what.starts_with('a') || what.starts_with('e') { "an" } else { "a" }),
        )
        .note(format!("the {what}s are {}", list(known)));
    let diagnostic = match suggest_type(&name.value, known.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    form.report(diagnostic);
}
