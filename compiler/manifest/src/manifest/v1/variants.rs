//! `[[variants]]`: the rows of the table, in order of preference.

use cubinder_model::MAX_VARIANT_ID;

use super::super::form::{Entry, Form, Section};
use super::super::keys::VARIANT;
use super::super::{Located, VariantDecl};
use super::{lines, names};
use crate::diagnostic::Diagnostic;
use crate::rules;

/// All of them; where the manifest has none, the one that it then means.
pub(super) fn read(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    broken: &mut Vec<String>,
) -> Vec<VariantDecl> {
    let sections = form.tables(root, "variants");
    if sections.is_empty() {
        return vec![VariantDecl {
            id: Located { value: 1, range: 0..0 },
            types: Vec::new(),
            formats: Vec::new(),
            guard: None,
            constants: Vec::new(),
            range: 0..0,
        }];
    }
    sections.into_iter().filter_map(|section| variant(form, section, broken)).collect()
}

fn variant(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<VariantDecl> {
    let range = section.range.clone();
    let id = form.require(&mut section, "id", "1").and_then(|entry| id(form, &entry));
    let guard = section.take("guard").and_then(|entry| form.expression(&entry));
    // What follows `[variants.constants]` is a constant, whatever was meant.
    let mut misplaced = Vec::new();
    for child in section
        .entries()
        .iter()
        .filter(|entry| matches!(entry.key.as_str(), "types" | "formats" | "constants"))
    {
        let is_guard = |line: &Entry<'_>| line.key == "guard" && line.value().is_str();
        misplaced.extend(form.below(&mut section, child, &VARIANT, is_guard));
    }
    let is_misplaced = |entry: &Entry<'_>| misplaced.contains(&entry.key);
    // What a parameter is there is not known where its line cannot be read.
    let types = lines(form, &mut section, "types", broken, |form, entry| {
        if is_misplaced(entry) { None } else { names::alternatives(form, entry) }
    });
    let formats = lines(form, &mut section, "formats", broken, |form, entry| {
        if is_misplaced(entry) { None } else { names::alternatives(form, entry) }
    });
    let constants = lines(form, &mut section, "constants", broken, |form, entry| {
        if is_misplaced(entry) { None } else { names::constant(form, entry) }
    });
    form.finish(&section);
    id.map(|id| VariantDecl { id, types, formats, guard, constants, range })
}

fn id(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<i32>> {
    let number = form.integer(entry)?;
    let id = i32::try_from(number).ok().filter(|id| (1..=MAX_VARIANT_ID).contains(id));
    if id.is_none() {
        let diagnostic =
            Diagnostic::error(format!("the `id` of a variant must be from 1 to {MAX_VARIANT_ID}"))
                .code(rules::VARIANT_ID)
                .at(form.span(entry.range.clone()), format!("found `{number}`"))
                .note("it is TensorRT's tactic number; TensorRT keeps 0, and Cubinder keeps the highest");
        form.report(diagnostic);
    }
    id.map(|value| Located { value, range: entry.range.clone() })
}
