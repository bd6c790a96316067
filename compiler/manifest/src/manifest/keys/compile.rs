//! `[compile]`: how this plugin's kernels are compiled, where it is not as the library's.

use std::ops::Range;

use cubinder_model::Target;
use serde_json::json;
use toml::de::DeValue;

use super::{
    CodeKind, CompileDecl, Debug, Declaration, DriverVersion, Entry, Form, Kinds, Located, Route, Row,
};
use super::{Section, Text, table, value_types};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::form::found;
use crate::manifest::json::{DRIVER, TARGET};
use crate::rules;

table! {
    /// How the kernels of this plugin are compiled.
    struct Compile = COMPILE: "compile" as "[compile]" {
        /// What to compile for: `sm_*` is machine code, `compute_*` PTX. Otherwise what the library is compiled for.
        targets: Targets = Optional, "[\"sm_89\", \"compute_80\"]";
        /// Folders for `#include`, relative to the manifest's folder, before those of the library.
        include: Folders = Optional, "[\"../include\"]";
        /// Options of NVRTC, after those of the library.
        options: Options = Optional, "[\"--use_fast_math\"]";
        /// Which kinds of the targets to embed. Otherwise all. What TensorRT launches itself is PTX, whatever this says.
        code: CodeKinds = Optional, "[\"cubin\", \"ptx\"]";
        /// Line information in the code, for profilers. Otherwise what the library says, which is none if it says nothing.
        debug: Debug = Optional, "\"line\"";
        /// The oldest driver that must be able to load the code; checked against what NVRTC makes.
        min_driver: Driver = Optional, "\"580.65.06\"";
        /// Who launches the kernel: a plugin library (`plugin`, which is meant where nothing is said), or TensorRT itself (`native`,
        /// experimental, full TensorRT alone).
        route: RouteName = Optional, "\"native\"";
    }
}

value_types! {
    /// Targets, each once.
    Targets -> Checked<Located<Target>>: "array of targets", json!({
        "type": "array", "items": { "type": "string", "pattern": TARGET }, "minItems": 1, "uniqueItems": true,
    }), |form: &mut Form<'_>, entry| Some(Checked::of(form, entry, targets));
    /// Folders, relative to the manifest's folder.
    Folders -> Vec<Text>: "array of paths",
        json!({ "type": "array", "items": { "type": "string", "pattern": "\\S" } }), include;
    /// Options of NVRTC.
    Options -> Vec<Located<String>>: "array of strings",
        json!({ "type": "array", "items": { "type": "string", "pattern": "^-" } }), options;
    /// Kinds of code, each once.
    CodeKinds -> Checked<Located<CodeKind>>: "array of `\"cubin\"` and `\"ptx\"`", json!({
        "type": "array", "items": { "enum": CodeKind::ALL.map(CodeKind::name) }, "minItems": 1, "uniqueItems": true,
    }), |form: &mut Form<'_>, entry| Some(Checked::of(form, entry, code));
    /// A release of NVIDIA's driver.
    Driver -> Located<DriverVersion>: "string, a driver's release", json!({ "type": "string", "pattern": DRIVER }), min_driver;
    /// Who launches kernels.
    RouteName -> Located<Route>: "`\"plugin\"` or `\"native\"`", json!({ "enum": Route::ALL.map(Route::name) }), route;
}

/// Values, and whether all could be read.
struct Checked<T> {
    values: Vec<T>,
    is_broken: bool,
}

impl<T> Checked<T> {
    fn of(form: &mut Form<'_>, entry: &Entry<'_>, read: fn(&mut Form<'_>, &Entry<'_>) -> Vec<T>) -> Self {
        let before = form.count();
        let values = read(form, entry);
        Checked { values, is_broken: form.count() > before }
    }
}

impl Declaration for CompileDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&COMPILE], but_for: None };

    fn read(form: &mut Form<'_>, _: Located<String>, section: Section<'_>) -> Option<CompileDecl> {
        let Compile { targets, include, options, code, debug, min_driver, route } =
            Row::read_all(form, section);
        let is_broken = |broken: Option<bool>| broken.unwrap_or(false);
        Some(CompileDecl {
            targets_are_broken: is_broken(targets.as_ref().map(|targets| targets.is_broken))
                || is_broken(code.as_ref().map(|code| code.is_broken)),
            targets: targets.map(|targets| targets.values).unwrap_or_default(),
            code: code.map(|code| code.values).unwrap_or_default(),
            include: include.unwrap_or_default(),
            line_information: debug.unwrap_or_default(),
            options: options.unwrap_or_default(),
            min_driver,
            route,
        })
    }
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

fn include(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let items = form.values(entry, "an array of folders")?;
    let folders: Vec<Text> = items.iter().filter_map(|item| form.text(item)).collect();
    for folder in folders.iter().filter(|folder| folder.value.trim().is_empty()) {
        let diagnostic = Diagnostic::error("`include` must name folders")
            .code(rules::WRONG_VALUE)
            .at(form.span(folder.range.clone()), "this is empty")
            .help("the manifest's own folder is `.`");
        form.report(diagnostic);
    }
    Some(folders)
}

fn options(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let options = form.strings(entry)?;
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
    Some(options)
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
