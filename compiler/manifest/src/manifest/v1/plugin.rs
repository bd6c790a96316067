//! `[plugin]`: the operator's name, namespace, version and rules.

use toml::de::DeValue;

use super::super::form::{Entry, Form, Section, found, is_identifier};
use super::super::keys::PLUGIN;
use super::super::{Located, PluginDecl, RequireDecl};
use super::doc;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// TensorRT's limit on a plugin's name, version and namespace, without the final NUL (`NvInferRuntime.h`,
/// TensorRT-RTX 1.7: 1024 bytes with it).
pub(in super::super) const MAX_NAME_BYTES: usize = 1023;

pub(super) fn read(form: &mut Form<'_>, root: &mut Section<'_>) -> PluginDecl {
    let mut decl = PluginDecl {
        name: Located { value: String::new(), range: 0..0 },
        namespace: String::new(),
        version: "1".to_owned(),
        summary: String::new(),
        require: Vec::new(),
        timing: None,
        tune: None,
    };
    let Some(entry) = root.take("plugin") else {
        let diagnostic = Diagnostic::error("the manifest has no `[plugin]` table")
            .code(rules::MISSING_KEY)
            .at(form.span(0..0), "expected `[plugin]` with `name` and `namespace`");
        form.report(diagnostic);
        return decl;
    };
    let Some(mut section) = form.table(&entry, "[plugin]".to_owned()) else { return decl };
    if let Some(name) = form.require(&mut section, "name", "\"...\"").and_then(|entry| form.string(&entry)) {
        form.identifier(&name, "a plugin");
        length(form, &name);
        decl.name = name;
    }
    if let Some(namespace) = section.take("namespace").and_then(|entry| form.string(&entry)) {
        check_namespace(form, &namespace);
        length(form, &namespace);
        decl.namespace = namespace.value;
    }
    if let Some(version) = section.take("version").and_then(|entry| form.string(&entry)) {
        check_version(form, &version);
        length(form, &version);
        decl.version = version.value;
    }
    decl.summary = doc(form, &mut section, "summary");
    if let Some(entry) = section.take("require") {
        let rules = rules(form, &entry);
        if rules.iter().any(|rule| matches!(rule.value(), DeValue::Table(rule) if rule.contains_key("name")))
        {
            // The rule's reader says where it belongs.
            section.forgive("name");
        }
        decl.require = rules.iter().filter_map(|rule| require(form, rule)).collect();
    }
    decl.timing = section.take("timing").and_then(|entry| {
        let names = form.strings(&entry)?;
        Some(Located { value: names, range: entry.range })
    });
    decl.tune = section.take("tune").and_then(|entry| file(form, &entry));
    form.finish(&section);
    decl
}

fn file(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<String>> {
    let file = form.string(entry)?;
    if file.value.trim().is_empty() {
        let diagnostic = Diagnostic::error(format!("`{}` must name a file", entry.key))
            .code(rules::WRONG_VALUE)
            .at(form.span(file.range), "this is empty");
        form.report(diagnostic);
        return None;
    }
    Some(file)
}

fn rules<'t>(form: &mut Form<'_>, entry: &Entry<'t>) -> Vec<Entry<'t>> {
    let items = entry.items();
    if items.is_none() {
        let diagnostic = form.misfit(entry, "an array of tables `{ expr = \"...\", message = \"...\" }`");
        form.report(match entry.value() {
            DeValue::Table(_) => diagnostic.help("write `[[plugin.require]]`, with two brackets"),
            _ => diagnostic,
        });
    }
    items.unwrap_or_default()
}

fn require(form: &mut Form<'_>, rule: &Entry<'_>) -> Option<RequireDecl> {
    let mut section = form.table(rule, "require".to_owned())?.within(&PLUGIN);
    let expr = form.require(&mut section, "expr", "\"...\"").and_then(|entry| form.text(&entry));
    let message = form.require(&mut section, "message", "\"...\"").and_then(|entry| form.string(&entry));
    form.finish(&section);
    let (expr, message) = (expr?, message?);
    if message.value.trim().is_empty() {
        let diagnostic = Diagnostic::error("the `message` of a rule must not be empty")
            .code(rules::WRONG_VALUE)
            .at(form.span(message.range), "this is what the person reads whose node breaks the rule");
        form.report(diagnostic);
    }
    Some(RequireDecl { expr, message: message.value })
}

fn check_namespace(form: &mut Form<'_>, namespace: &Located<String>) {
    if namespace.value.is_empty() || namespace.value.split('.').all(is_identifier) {
        return;
    }
    let diagnostic =
        Diagnostic::error("a namespace must be empty or made of identifiers with dots between them")
            .code(rules::BAD_NAME)
            .at(form.span(namespace.range.clone()), found(&namespace.value))
            .help("write it as `sample` or `com.example`");
    form.report(diagnostic);
}

fn check_version(form: &mut Form<'_>, version: &Located<String>) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if !version.value.is_empty() && version.value.bytes().all(allowed) {
        return;
    }
    let diagnostic = Diagnostic::error("a version must be made of letters, digits, `.`, `_`, `+` and `-`")
        .code(rules::BAD_NAME)
        .at(form.span(version.range.clone()), found(&version.value));
    form.report(diagnostic);
}

fn length(form: &mut Form<'_>, name: &Located<String>) {
    if name.value.len() <= MAX_NAME_BYTES {
        return;
    }
    let diagnostic = Diagnostic::error(format!("a name may have at most {MAX_NAME_BYTES} bytes"))
        .code(rules::BAD_NAME)
        .at(form.span(name.range.clone()), format!("this has {}", name.value.len()))
        .note("this is TensorRT's limit");
    form.report(diagnostic);
}
