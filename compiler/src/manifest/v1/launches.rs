//! `[[launches]]`: kernel, grid, block, shared memory and arguments.

use toml::de::DeValue;

use super::super::form::{Entry, Form, Section};
use super::super::keys::LAUNCH;
use super::super::{ArgDecl, LaunchDecl, OutputDecl, Text};
use crate::diagnostic::Diagnostic;
use crate::rules;

/// All of them. `outputs` gives the examples in messages the author's own names.
pub(super) fn read(form: &mut Form<'_>, root: &mut Section<'_>, outputs: &[OutputDecl]) -> Vec<LaunchDecl> {
    let before = form.count();
    let sections = form.tables(root, "launches");
    if sections.is_empty() && form.count() == before {
        let diagnostic = Diagnostic::error("the manifest launches nothing")
            .code(rules::MISSING_KEY)
            .at(form.span(0..0), "expected one `[[launches]]` table")
            .note("a launch names a CUDA source, a kernel in it, grid, block and arguments");
        form.report(diagnostic);
    }
    if let Some(second) = sections.get(1) {
        let diagnostic = Diagnostic::error("a plugin has one launch")
            .code(rules::WRONG_VALUE)
            .at(form.span(second.range.clone()), "this is a second one");
        form.report(diagnostic);
    }
    let output = outputs.first().map_or("y", |output| output.name.value.as_str());
    let has_args = root.has("args");
    sections.into_iter().map(|section| launch(form, section, output, has_args)).collect()
}

/// One launch. Where the file has a table `args`, which was meant for it, that is said elsewhere. What is wrong with one key does not
/// hide what is wrong with the others.
fn launch(form: &mut Form<'_>, mut section: Section<'_>, output: &str, has_args: bool) -> LaunchDecl {
    let range = section.range.clone();
    let blocks = format!("[\"ceil_div(numel({output}), 256)\"]");
    let source = form.require(&mut section, "source", "\"kernel.cu\"").and_then(|entry| form.text(&entry));
    let kernel = form.require(&mut section, "kernel", "\"...\"").and_then(|entry| form.text(&entry));
    let grid = form.require(&mut section, "grid", &blocks).and_then(|entry| dimensions(form, &entry));
    let block = form.require(&mut section, "block", "[256]").and_then(|entry| dimensions(form, &entry));
    let shared_bytes = section.take("shared_bytes").and_then(|entry| form.expression(&entry));
    let args_entry = form.require(&mut section, "args", "{ ... }");
    let args_range = args_entry.as_ref().map_or(0..0, |entry| entry.key_range.clone());
    if has_args {
        section.forgive("args");
    }
    let args = args_entry.and_then(|entry| arguments(form, &mut section, &entry));
    form.finish(&section);
    if let Some(source) = source.as_ref().filter(|source| source.value.trim().is_empty()) {
        let diagnostic = Diagnostic::error("`source` must name a CUDA file")
            .code(rules::WRONG_VALUE)
            .at(form.span(source.range.clone()), "this is empty");
        form.report(diagnostic);
    }
    LaunchDecl {
        range,
        source: source.filter(|source| !source.value.trim().is_empty()),
        kernel,
        grid: grid.unwrap_or_default(),
        block: block.unwrap_or_default(),
        shared_bytes,
        args,
        args_range,
    }
}

/// One to three expressions. What is wrong with one does not hide what is wrong with the others.
fn dimensions(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Text>> {
    const EXPECTED: &str = "an array of one to three expressions: x, y and z";
    let Some(items) = entry.items() else {
        let diagnostic = form.misfit(entry, EXPECTED);
        let diagnostic = match in_brackets(form, entry) {
            Some(value) => diagnostic.help(format!("write `{} = {value}`", entry.key)),
            None => diagnostic,
        };
        form.report(diagnostic);
        return None;
    };
    if items.is_empty() || items.len() > 3 {
        let diagnostic =
            Diagnostic::error(format!("`{}` must have one to three expressions: x, y and z", entry.key))
                .code(rules::WRONG_VALUE)
                .at(form.span(entry.range.clone()), format!("found {}", items.len()));
        form.report(diagnostic);
    }
    Some(items.iter().filter_map(|item| form.expression(item)).collect())
}

/// The author's own value as the array that it was meant to be: `"64, 2"` is `["64", "2"]`.
fn in_brackets(form: &Form<'_>, entry: &Entry<'_>) -> Option<String> {
    match entry.value() {
        DeValue::String(text) if text.contains(',') && !text.contains(['"', '\\', '\n']) => {
            let parts = top_level_parts(text);
            // Brackets around the whole are meant as the array's.
            let parts = match text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
                Some(inner) if parts.len() == 1 => top_level_parts(inner),
                _ => parts,
            };
            let parts: Vec<String> = parts.iter().map(|part| format!("\"{}\"", part.trim())).collect();
            (parts.len() <= 3).then(|| format!("[{}]", parts.join(", ")))
        }
        DeValue::String(_) | DeValue::Integer(_) => {
            form.written(&entry.range).map(|written| format!("[{written}]"))
        }
        _ => None,
    }
}

/// The parts between commas that stand in no bracket.
fn top_level_parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn arguments(form: &mut Form<'_>, section: &mut Section<'_>, entry: &Entry<'_>) -> Option<Vec<ArgDecl>> {
    if matches!(entry.value(), DeValue::Array(items) if items.iter().all(|item| item.get_ref().is_str())) {
        let diagnostic = form.misfit(entry, "a table");
        form.report(
            diagnostic.help("arguments go by the names of the kernel's parameters: `args = { x = \"x\" }`"),
        );
        return None;
    }
    let misplaced = form.below(section, entry, &LAUNCH, |_| false);
    let table = form.table(entry, "[launches.args]".to_owned())?;
    let mut args = Vec::new();
    for entry in table.entries().into_iter().filter(|entry| !misplaced.contains(&entry.key)) {
        let name = entry.name();
        form.identifier(&name, "an argument");
        let value = form.expression(&entry);
        args.push(ArgDecl { name, value });
    }
    Some(args)
}
