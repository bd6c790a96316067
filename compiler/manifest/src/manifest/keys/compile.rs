//! `[compile]`.

use cubinder_model::Target;
use toml::de::DeValue;

use super::*;
use crate::diagnostic::suggest;
use crate::manifest::json::{DRIVER, TARGET};
use crate::manifest::toml_reader::found;

table! {
    /// How the kernels of this plugin are compiled.
    struct Compile = COMPILE: "compile" as "[compile]" {
        /// Architectures: `sm_*` for machine code, `compute_*` for PTX. Default: the library's targets.
        targets: Targets = Optional, "[\"sm_89\", \"compute_80\"]";
        /// Folders for `#include`, searched before the library's.
        include: Folders = Optional, "[\"../include\"]";
        /// NVRTC options, appended to the library's.
        options: Options = Optional, "[\"--use_fast_math\"]";
        /// Kinds of code to embed. Default: all. The native route always embeds PTX.
        code: CodeKinds = Optional, "[\"cubin\", \"ptx\"]";
        /// Adds line information for profilers. Default: the library's setting.
        debug: Debug = Optional, "\"line\"";
        /// The oldest driver that must be able to load the code.
        min_driver: Driver = Optional, "\"580.65.06\"";
        /// What launches the kernel: a plugin library (`plugin`, the default) or TensorRT itself (`native`,
        /// experimental, full TensorRT only).
        route: RouteName = Optional, "\"native\"";
    }
}

value_types! {
    /// Distinct targets.
    Targets -> Vec<Located<Target>>: "array of targets", json!({
        "type": "array", "items": { "type": "string", "pattern": TARGET }, "minItems": 1, "uniqueItems": true,
    }), targets;
    /// Folders.
    Folders -> Vec<Text>: "array of paths",
        json!({ "type": "array", "items": { "type": "string", "pattern": "\\S" } }), include;
    /// NVRTC options.
    Options -> Vec<Located<String>>: "array of strings",
        json!({ "type": "array", "items": { "type": "string", "pattern": "^-" } }), options;
    /// Distinct kinds of code.
    CodeKinds -> Vec<Located<CodeKind>>: "array of `\"cubin\"` and `\"ptx\"`", json!({
        "type": "array", "items": { "enum": CodeKind::ALL.map(CodeKind::name) }, "minItems": 1, "uniqueItems": true,
    }), code;
    /// Driver release.
    Driver -> Located<DriverVersion>: "string, a driver version", json!({ "type": "string", "pattern": DRIVER }), min_driver;
    /// Route.
    RouteName -> Located<Route>: "`\"plugin\"` or `\"native\"`", json!({ "enum": Route::ALL.map(Route::name) }), route;
}

impl Declaration for CompileDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&COMPILE], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<CompileDecl> {
        let Compile { targets, include, options, code, debug, min_driver, route } = Row::read(toml, &section);
        toml.finish(&section);
        let (targets, code) = (targets.unwrap_or_default(), code.unwrap_or_default());
        let is_broken = |key: &str, read: usize| {
            let items = section.entry(key).map(|entry| entry.items().map_or(0, |items| items.len()));
            items.is_some_and(|items| items != read || read == 0)
        };
        Some(CompileDecl {
            targets_are_broken: is_broken("targets", targets.len()) || is_broken("code", code.len()),
            targets,
            code,
            include: include.unwrap_or_default(),
            line_information: debug.unwrap_or_default(),
            options: options.unwrap_or_default(),
            min_driver,
            route,
        })
    }
}

fn targets(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<Target>>> {
    let numbers: Vec<String> =
        entry.items().unwrap_or_else(|| vec![entry.clone()]).iter().filter_map(number).collect();
    if !numbers.is_empty() {
        let target = |number: &String| match meant_target(number) {
            Some(target) => format!("\"{target}\""),
            None => "\"sm_89\"".to_owned(),
        };
        let targets: Vec<String> = numbers.iter().map(target).collect();
        let help = Some(format!("write `targets = [{}]`", targets.join(", ")));
        toml.report(WrongType { help, ..toml.wrong_type(entry, "an array of strings such as `\"sm_89\"`") });
        return None;
    }
    let names = toml.strings(entry).unwrap_or_default();
    not_empty(toml, entry, "without this key, the library's targets apply");
    let targets = parse_targets(toml, names);
    Some(toml.each_once(targets, |_| "duplicate target".to_owned()))
}

pub(crate) fn parse_targets(toml: &mut TomlReader, names: Vec<Located<String>>) -> Vec<Located<Target>> {
    let mut targets = Vec::new();
    for name in names {
        match name.value.parse::<Target>() {
            Ok(value) => targets.push(Located { value, range: name.range }),
            Err(error) => {
                let near = meant_target(&name.value).map(|near| near.to_string());
                toml.report(BadTarget { message: error.to_string(), place: toml.span(&name), near });
            }
        }
    }
    targets
}

fn number(entry: &Entry<'_>) -> Option<String> {
    match entry.value {
        DeValue::Integer(integer) => Some(integer.to_string()),
        DeValue::Float(float) => Some(float.to_string()),
        _ => None,
    }
}

/// Knows `8.9`, `89`, `sm89` and `compute-80`.
fn meant_target(text: &str) -> Option<Target> {
    let plain: String = text.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let (kind, arch) = match plain.strip_prefix("compute") {
        Some(arch) => ("compute", arch),
        None => ("sm", plain.strip_prefix("sm").unwrap_or(&plain)),
    };
    format!("{kind}_{arch}").parse().ok()
}

fn include(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let items = toml.values(entry, "an array of folders")?;
    let folders: Vec<Text> = items.iter().filter_map(|item| toml.text(item)).collect();
    for folder in folders.iter().filter(|folder| folder.value.trim().is_empty()) {
        let (key, what) = (entry.key.clone(), "folders");
        let help = Some("write `.` for the manifest's folder");
        toml.report(EmptyPath { key, what, place: toml.span(folder), help });
    }
    Some(folders)
}

fn options(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let options = toml.strings(entry)?;
    for option in options.iter().filter(|option| !option.value.starts_with('-')) {
        let is_word = !option.value.is_empty() && !option.value.contains(char::is_whitespace);
        let help = is_word.then(|| format!("write `--{}`", option.value));
        toml.report(NotOption { found: found(&option.value), place: toml.span(option), help });
    }
    Some(options)
}

fn code(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<CodeKind>>> {
    let names = toml.strings(entry).unwrap_or_default();
    not_empty(toml, entry, "without this key, all kinds are embedded");
    let words = CodeKind::ALL.map(CodeKind::name);
    let kind = |name: Located<String>| {
        let kind = CodeKind::from_name(&name.value);
        word(toml, name, "kind of code", "`cubin` or `ptx`", &words, kind)
    };
    let kinds = names.into_iter().filter_map(kind).collect();
    Some(toml.each_once(kinds, |_| "duplicate kind of code".to_owned()))
}

fn word<T>(
    toml: &mut TomlReader,
    word: Located<String>,
    what: &'static str,
    expected: &'static str,
    words: &[&'static str],
    value: Option<T>,
) -> Option<Located<T>> {
    if value.is_none() {
        let (near, place) = (suggest(&word.value, words.iter().copied()), toml.span(&word));
        toml.report(UnknownWord { what, word: word.value, expected, place, near });
    }
    value.map(|value| Located { value, range: word.range })
}

fn not_empty(toml: &mut TomlReader, entry: &Entry<'_>, otherwise: &'static str) {
    if entry.items().is_some_and(|items| items.is_empty()) {
        let message = format!("`{}` must not be empty", entry.key);
        let (label, place) = ("this is empty", toml.span(entry));
        toml.report(EmptyArray { message, label, place, note: Some(otherwise) });
    }
}

fn route(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<Route>> {
    let name = toml.string(entry)?;
    let route = Route::from_name(&name.value);
    word(toml, name, "route", "`plugin` or `native`", &Route::ALL.map(Route::name), route)
}

fn min_driver(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<DriverVersion>> {
    let DeValue::String(text) = entry.value else {
        let number = matches!(entry.value, DeValue::Integer(_) | DeValue::Float(_));
        let written = toml.written(&entry.range).filter(|_| number).unwrap_or("580.65.06");
        let help = Some(format!("write `min_driver = \"{written}\"`"));
        toml.report(WrongType { help, ..toml.wrong_type(entry, "a string") });
        return None;
    };
    let version = driver_version(text);
    if version.is_none() {
        toml.report(BadDriver { found: found(text), place: toml.span(entry) });
    }
    version.map(|value| Located { value, range: entry.range.clone() })
}

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
