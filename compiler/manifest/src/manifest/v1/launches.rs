//! `[[launches]]` and `[scratch]`: the steps, each a launch or memory to fill, and the memory that they share.

use toml::de::DeValue;

use super::super::form::{Entry, Form, Section};
use super::super::keys::{LAUNCH, LAUNCH_OF_CODE, MEMSET};
use super::super::{
    ArgDecl, FillDecl, LaunchDecl, Located, OutputDecl, ScratchDecl, StepDecl, Text, WorkDecl,
};
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A scratch buffer.
pub(super) fn scratch(
    form: &mut Form<'_>,
    name: Located<String>,
    mut section: Section<'_>,
) -> Option<ScratchDecl> {
    form.identifier(&name, "a scratch buffer");
    let bytes =
        form.require(&mut section, "bytes", "\"numel(x) * 4\"").and_then(|entry| form.expression(&entry));
    form.finish(&section);
    Some(ScratchDecl { name, bytes })
}

/// All of them. `outputs` gives the examples in messages the author's own names.
pub(super) fn read(form: &mut Form<'_>, root: &mut Section<'_>, outputs: &[OutputDecl]) -> Vec<StepDecl> {
    let before = form.count();
    let sections = form.tables(root, "launches");
    if sections.is_empty() && form.count() == before {
        let diagnostic = Diagnostic::error("the manifest launches nothing")
            .code(rules::MISSING_KEY)
            .at(form.span(0..0), "expected one `[[launches]]` table")
            .note("a launch names a CUDA source and a kernel in it, or code that another compiler made; grid, block and arguments");
        form.report(diagnostic);
    }
    if let Some(first) = sections.first().filter(|_| sections.iter().all(is_fill)) {
        let diagnostic = Diagnostic::error("the manifest launches nothing")
            .code(rules::MISSING_KEY)
            .at(form.span(first.range.clone()), "a memset, and there is no launch beside it")
            .note("a launch names a CUDA source and a kernel in it, or code that another compiler made; grid, block and arguments");
        form.report(diagnostic);
    }
    let output = outputs.first().map_or("y", |output| output.name.value.as_str());
    let has_args = root.has("args");
    let step = |section: Section<'_>| match is_fill(&section) {
        true => fill(form, section),
        false => {
            let section = without_fill(form, section);
            launch(form, section, output, has_args)
        }
    };
    sections.into_iter().map(step).collect()
}

/// The key that makes a step a memset.
const MEMSET_KEY: &str = "memset";

/// The key with which a launch names code that is there already.
const CODE_KEY: &str = "code";

/// Whether a step is a memset and nothing else.
fn is_fill(section: &Section<'_>) -> bool {
    section.has(MEMSET_KEY) && !section.has("source") && !section.has("kernel") && !section.has(CODE_KEY)
}

/// A launch without the memset that stands in the same table: that is a step of its own.
fn without_fill<'t>(form: &mut Form<'_>, mut section: Section<'t>) -> Section<'t> {
    if !section.has(MEMSET_KEY) {
        return section;
    }
    let Some(entry) = section.take(MEMSET_KEY) else { return section };
    section.take("byte");
    let diagnostic = Diagnostic::error("a memset and a launch in one step")
        .code(rules::WRONG_VALUE)
        .at(form.span(entry.key_range.start..entry.range.end), "the memset")
        .note("steps run in the order in which they stand")
        .help(
            "make two steps of it: a `[[launches]]` table with the memset, and one for the launch behind it",
        );
    form.report(diagnostic);
    section
}

/// Memory to fill.
fn fill(form: &mut Form<'_>, section: Section<'_>) -> StepDecl {
    let mut section = section.called(MEMSET.title);
    let range = section.range.clone();
    let memory = form.require(&mut section, MEMSET_KEY, "\"...\"").and_then(|entry| form.text(&entry));
    let byte = section.take("byte").and_then(|entry| byte(form, &entry));
    let when = when(form, &mut section);
    form.finish(&section);
    StepDecl { range, when, work: WorkDecl::Fill(FillDecl { memory, byte: byte.unwrap_or(0) }) }
}

fn byte(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<u8> {
    let number = form.integer(entry)?;
    let byte = u8::try_from(number).ok();
    if byte.is_none() {
        let diagnostic = Diagnostic::error("`byte` must be from 0 to 255")
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), format!("found `{number}`"))
            .note(
                "memory is filled with one byte: numbers other than 0 are rarely what all of its bytes are",
            );
        form.report(diagnostic);
    }
    byte
}

fn when(form: &mut Form<'_>, section: &mut Section<'_>) -> Option<Text> {
    section.take("when").and_then(|entry| form.expression(&entry))
}

/// A boolean that is written out.
fn switch(form: &mut Form<'_>, section: &mut Section<'_>, key: &'static str) -> Option<Located<bool>> {
    let entry = section.take(key)?;
    let DeValue::Boolean(value) = entry.value() else {
        let diagnostic = form.misfit(&entry, "`true` or `false`");
        form.report(diagnostic);
        return None;
    };
    Some(Located { value: *value, range: entry.key_range.start..entry.range.end })
}

/// One launch. Where the file has a table `args`, which was meant for it, that is said elsewhere. What is wrong with one key does not
/// hide what is wrong with the others.
fn launch(form: &mut Form<'_>, mut section: Section<'_>, output: &str, has_args: bool) -> StepDecl {
    let range = section.range.clone();
    let blocks = format!("[\"ceil_div(numel({output}), 256)\"]");
    let has_code = section.has(CODE_KEY);
    let (code, source, kernel) = match has_code {
        true => {
            section = without_source(form, section.called(LAUNCH_OF_CODE.title));
            let code = form.require(&mut section, CODE_KEY, "\"...\"").and_then(|entry| form.string(&entry));
            (code, None, None)
        }
        false => {
            let source =
                form.require(&mut section, "source", "\"kernel.cu\"").and_then(|entry| form.text(&entry));
            let kernel = form.require(&mut section, "kernel", "\"...\"").and_then(|entry| form.text(&entry));
            (None, source, kernel)
        }
    };
    let grid = form.require(&mut section, "grid", &blocks).and_then(|entry| dimensions(form, &entry));
    let block = form.require(&mut section, "block", "[256]").and_then(|entry| dimensions(form, &entry));
    let shared_bytes = section.take("shared_bytes").and_then(|entry| form.expression(&entry));
    let cluster = section.take("cluster").and_then(|entry| dimensions(form, &entry));
    let cooperative = switch(form, &mut section, "cooperative");
    let programmatic = switch(form, &mut section, "programmatic");
    let when = when(form, &mut section);
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
    let launch = LaunchDecl {
        source: source.filter(|source| !source.value.trim().is_empty()),
        kernel,
        code,
        is_of_code: has_code,
        grid: grid.unwrap_or_default(),
        block: block.unwrap_or_default(),
        shared_bytes,
        cluster,
        cooperative,
        programmatic,
        args,
        args_range,
    };
    StepDecl { range, when, work: WorkDecl::Launch(Box::new(launch)) }
}

/// A launch of code without the source that stands in the same table: one of both is meant.
fn without_source<'t>(form: &mut Form<'_>, mut section: Section<'t>) -> Section<'t> {
    let keys = ["source", "kernel"].into_iter().filter(|key| section.has(key)).collect::<Vec<_>>();
    let entries: Vec<Entry<'t>> = keys.into_iter().filter_map(|key| section.take(key)).collect();
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return section };
    let diagnostic = Diagnostic::error("a launch of code that is there already compiles nothing")
        .code(rules::WRONG_VALUE)
        .at(form.span(first.key_range.start..last.range.end), "this belongs to launches of CUDA sources");
    form.report(match first.key.as_str() {
        "kernel" => diagnostic.help("say `kernel` in the `[[code]]` that `code` names, or leave it out"),
        _ => diagnostic.help("leave it out; or leave `code` out, and the source is compiled"),
    });
    section
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
