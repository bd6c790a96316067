//! `[compile]`: how this plugin's kernels are compiled, where it is not as the library's.

use std::ops::Range;

use cubinder_model::Target;
use toml::de::DeValue;

use super::super::form::{Entry, Form, Section, found};
use super::super::{CodeKind, CompileDecl, DriverVersion, Located, Route, Text};
use crate::diagnostic::{Diagnostic, suggest};
use crate::rules;

/// The table; all as the library has it where there is none.
pub(super) fn read(form: &mut Form<'_>, root: &mut Section<'_>) -> CompileDecl {
    let section = root.take("compile").and_then(|entry| form.table(&entry, "[compile]".to_owned()));
    let Some(mut section) = section else { return CompileDecl::default() };
    let before = form.count();
    let targets = section.take("targets").map(|entry| targets(form, &entry)).unwrap_or_default();
    let code = section.take("code").map(|entry| code(form, &entry)).unwrap_or_default();
    let targets_are_broken = form.count() > before;
    let decl = CompileDecl {
        targets,
        code,
        targets_are_broken,
        include: section.take("include").map(|entry| include(form, &entry)).unwrap_or_default(),
        line_information: section
            .take("debug")
            .and_then(|entry| form.line_information(&entry))
            .unwrap_or_default(),
        options: section.take("options").map(|entry| options(form, &entry)).unwrap_or_default(),
        min_driver: section.take("min_driver").and_then(|entry| min_driver(form, &entry)),
        route: section.take("route").and_then(|entry| route(form, &entry)),
    };
    form.finish(&section);
    decl
}

fn targets(form: &mut Form<'_>, entry: &Entry<'_>) -> Vec<Located<Target>> {
    let numbers: Vec<String> =
        entry.items().unwrap_or_else(|| vec![entry.clone()]).iter().filter_map(number).collect();
    if !numbers.is_empty() {
        let targets: Vec<String> = numbers
            .iter()
            .map(|number| {
                meant_target(number).map_or_else(|| "sm_89".to_owned(), |target| target.to_string())
            })
            .map(|target| format!("\"{target}\""))
            .collect();
        let diagnostic = form.misfit(entry, "an array of strings such as `\"sm_89\"`");
        form.report(diagnostic.help(format!("write `targets = [{}]`", targets.join(", "))));
        return Vec::new();
    }
    let names = form.strings(entry).unwrap_or_default();
    not_empty(form, entry, "targets of the library are meant where this key is not there");
    let mut targets = Vec::new();
    for name in names {
        match name.value.parse::<Target>() {
            Ok(value) => targets.push(Located { value, range: name.range }),
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string())
                    .code(rules::WRONG_VALUE)
                    .at(form.span(name.range.clone()), "this is no target");
                form.report(match meant_target(&name.value) {
                    Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
                    None => diagnostic,
                });
            }
        }
    }
    once(form, &targets, "target");
    targets
}

/// The number that a value is, as it is written.
fn number(entry: &Entry<'_>) -> Option<String> {
    match entry.value() {
        DeValue::Integer(integer) => Some(integer.to_string()),
        DeValue::Float(float) => Some(float.to_string()),
        _ => None,
    }
}

/// What a text that is no target was probably meant to be: `8.9`, `89`, `sm89` and `compute-80` are clear enough.
fn meant_target(text: &str) -> Option<Target> {
    let plain: String = text.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let (kind, arch) = match plain.strip_prefix("compute") {
        Some(arch) => ("compute", arch),
        None => ("sm", plain.strip_prefix("sm").unwrap_or(&plain)),
    };
    format!("{kind}_{arch}").parse().ok()
}

fn include(form: &mut Form<'_>, entry: &Entry<'_>) -> Vec<Text> {
    let items = form.values(entry, "an array of folders").unwrap_or_default();
    let folders: Vec<Text> = items.iter().filter_map(|item| form.text(item)).collect();
    for folder in folders.iter().filter(|folder| folder.value.trim().is_empty()) {
        let diagnostic = Diagnostic::error("`include` must name folders")
            .code(rules::WRONG_VALUE)
            .at(form.span(folder.range.clone()), "this is empty")
            .help("the manifest's own folder is `.`");
        form.report(diagnostic);
    }
    folders
}

fn options(form: &mut Form<'_>, entry: &Entry<'_>) -> Vec<Located<String>> {
    let options = form.strings(entry).unwrap_or_default();
    for option in options.iter().filter(|option| !option.value.starts_with('-')) {
        let diagnostic = Diagnostic::error("an option of NVRTC begins with `-`")
            .code(rules::WRONG_VALUE)
            .at(form.span(option.range.clone()), found(&option.value));
        let word = !option.value.is_empty() && !option.value.contains(char::is_whitespace);
        form.report(match word {
            true => diagnostic.help(format!("write `--{}`", option.value)),
            false => diagnostic,
        });
    }
    options
}

fn code(form: &mut Form<'_>, entry: &Entry<'_>) -> Vec<Located<CodeKind>> {
    let names = form.strings(entry).unwrap_or_default();
    not_empty(form, entry, "all kinds are meant where this key is not there");
    let mut kinds = Vec::new();
    for name in names {
        match CodeKind::from_name(&name.value) {
            Some(value) => kinds.push(Located { value, range: name.range }),
            None => {
                let all = CodeKind::ALL.map(CodeKind::name);
                let diagnostic = Diagnostic::error(format!("unknown kind of code `{}`", name.value))
                    .code(rules::WRONG_VALUE)
                    .at(form.span(name.range.clone()), "expected `cubin` or `ptx`");
                form.report(match suggest(&name.value, all) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic,
                });
            }
        }
    }
    once(form, &kinds, "kind of code");
    kinds
}

fn not_empty(form: &mut Form<'_>, entry: &Entry<'_>, otherwise: &str) {
    if entry.items().is_some_and(|items| items.is_empty()) {
        let diagnostic = Diagnostic::error(format!("`{}` must name at least one", entry.key))
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), "this is empty")
            .note(otherwise);
        form.report(diagnostic);
    }
}

/// Reports each item that stands there before.
fn once<T: PartialEq>(form: &mut Form<'_>, items: &[Located<T>], what: &str) {
    for (index, item) in items.iter().enumerate() {
        if let Some(first) = items.iter().take(index).find(|first| first.value == item.value) {
            let diagnostic = Diagnostic::error(format!("this {what} is named twice"))
                .code(rules::DECLARED_TWICE)
                .at(form.span(item.range.clone()), "the second time")
                .related(form.span(first.range.clone()), "the first time");
            form.report(diagnostic);
        }
    }
}

fn route(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<Route>> {
    let name = form.string(entry)?;
    let route = Route::from_name(&name.value);
    if route.is_none() {
        let diagnostic = Diagnostic::error(format!("unknown route `{}`", name.value))
            .code(rules::WRONG_VALUE)
            .at(form.span(name.range.clone()), "expected `plugin` or `native`");
        form.report(match suggest(&name.value, Route::ALL.map(Route::name)) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }
    route.map(|value| Located { value, range: name.range })
}

fn min_driver(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<DriverVersion>> {
    let DeValue::String(text) = entry.value() else {
        let diagnostic = form.misfit(entry, "a string");
        let number = matches!(entry.value(), DeValue::Integer(_) | DeValue::Float(_));
        let written = form.written(&entry.range).filter(|_| number);
        form.report(match written {
            Some(written) => diagnostic.help(format!("write `min_driver = \"{written}\"`")),
            None => diagnostic.help("write `min_driver = \"580.65.06\"`"),
        });
        return None;
    };
    let version = driver_version(text);
    if version.is_none() {
        let diagnostic = Diagnostic::error("`min_driver` must be a release of NVIDIA's driver")
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), found(text))
            .help("write it as `nvidia-smi` shows it: `580.65.06`, `580.65` or `580`");
        form.report(diagnostic);
    }
    let range: Range<usize> = entry.range.clone();
    version.map(|value| Located { value, range })
}

/// One to three numbers with dots between them.
fn driver_version(text: &str) -> Option<DriverVersion> {
    let mut parts = [0; 3];
    let mut rest = text.split('.');
    for (index, part) in parts.iter_mut().enumerate() {
        let Some(digits) = rest.next() else { break };
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        *part = number.then(|| digits.parse::<u16>().ok())??;
        if index == 0 && *part == 0 {
            return None;
        }
    }
    rest.next().is_none().then_some(DriverVersion(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_releases() {
        assert_eq!(driver_version("580"), Some(DriverVersion([580, 0, 0])));
        assert_eq!(driver_version("580.65.06"), Some(DriverVersion([580, 65, 6])));
        for text in ["", "580.", ".65", "r580", "580.65.06.1", "0.1", "580.99999", "+580", "-1"] {
            assert_eq!(driver_version(text), None, "{text}");
        }
    }

    #[test]
    fn targets_are_recognised_in_other_spellings() {
        for (text, meant) in
            [("8.9", "sm_89"), ("SM_90a", "sm_90a"), ("sm89", "sm_89"), ("compute-80", "compute_80")]
        {
            assert_eq!(meant_target(text).map(|target| target.to_string()).as_deref(), Some(meant), "{text}");
        }
        assert_eq!(meant_target("hopper"), None);
    }
}
