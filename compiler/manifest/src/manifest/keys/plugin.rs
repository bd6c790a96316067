//! `[plugin]`: the operator's name, namespace, version and rules.

use serde_json::json;

use super::{AnyText, ArrayOf, Declaration, Entry, ExpressionText, FilePath, Form, Kinds, Located};
use super::{PluginDecl, RequireDecl, Row, Section, table, value_types};
use crate::manifest::errors::{BadNamespace, BadVersion, EmptyMessage, NameTooLong};
use crate::manifest::form::{found, is_identifier};
use crate::manifest::json::{self, IDENTIFIER, MAX_NAME_BYTES};

table! {
    /// Which operator it is, and what must hold of its nodes.
    struct Plugin = PLUGIN: "plugin" as "[plugin]" {
        /// The ONNX op type, which is TensorRT's plugin name. At most 1023 bytes, as the next two.
        name: PluginName = Required, "\"circ_pad\"" or "\"...\"";
        /// TensorRT's plugin namespace: the node's domain, or its attribute `plugin_namespace`.
        namespace: Namespace = Default("\"\""), "\"com.example\"";
        /// TensorRT's plugin version: the node's attribute `plugin_version`.
        version: Version = Default("\"1\""), "\"1\"";
        /// One sentence for people; `cubinder inspect` shows it.
        summary: AnyText = Optional, "\"Pads the trailing dimensions by wrapping around.\"";
        /// Rules that every node must meet.
        require: ArrayOf<RequireDecl> = Optional;
        /// The attributes on which the time of a node depends: nodes that differ in others alone share what TensorRT measured.
        /// Otherwise all.
        timing: AttributeNames = Optional, "[\"pads\"]";
        /// The file of cases for whose shapes `cubinder tune` measures the variants, relative to the manifest's folder.
        tune: FilePath = Optional, "\"../tests/circ_pad_sizes.toml\"";
    }

    /// One rule. A node that breaks it is refused with the rule's message, when TensorRT builds the network.
    struct Require = REQUIRE: "plugin.require[]" as "require" {
        /// What must hold: a boolean over attributes, and over ranks and shapes of inputs.
        expr: ExpressionText = Required, "\"len(pads) % 2 == 0\"";
        /// What to tell the person whose node breaks the rule.
        message: Message = Required, "\"pads come in pairs\"" or "\"...\"";
    }
}

value_types! {
    /// The name of an operator.
    PluginName -> Located<String>: "identifier", json::identifier(), plugin_name;
    /// Identifiers with dots between them, or nothing.
    Namespace -> String: "identifiers with dots between them, or empty",
        json::text(&format!("^({IDENTIFIER}(\\.{IDENTIFIER})*)?$")), namespace;
    /// Letters, digits, `.`, `_`, `+`, `-`.
    Version -> String: "string of letters, digits, `.`, `_`, `+`, `-`", json::text("^[A-Za-z0-9._+-]+$"), version;
    /// A text that is not empty.
    Message -> String: "string, not empty", json!({ "type": "string", "pattern": "\\S" }), message;
    /// Names of attributes, each once.
    AttributeNames -> Located<Vec<Located<String>>>: "array of names of attributes",
        json!({ "type": "array", "items": json::identifier() }), attribute_names;
}

impl Default for PluginDecl {
    fn default() -> PluginDecl {
        PluginDecl {
            name: Located { value: String::new(), range: 0..0 },
            namespace: String::new(),
            version: "1".to_owned(),
            summary: String::new(),
            require: Vec::new(),
            timing: None,
            tune: None,
        }
    }
}

impl Declaration for PluginDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&PLUGIN], but_for: None };

    fn read(form: &mut Form<'_>, _: Located<String>, section: Section<'_>) -> Option<PluginDecl> {
        let Plugin { name, namespace, version, summary, require, timing, tune } =
            Row::read_all(form, section);
        let default = PluginDecl::default();
        Some(PluginDecl {
            name: name.unwrap_or(default.name),
            namespace: namespace.unwrap_or_default(),
            version: version.unwrap_or(default.version),
            summary: summary.unwrap_or_default(),
            require: require.unwrap_or_default(),
            timing,
            tune,
        })
    }
}

impl Declaration for RequireDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&REQUIRE], but_for: None };

    fn read(form: &mut Form<'_>, _: Located<String>, section: Section<'_>) -> Option<RequireDecl> {
        let Require { expr, message } = Row::read_all(form, section);
        Some(RequireDecl { expr: expr?, message: message? })
    }
}

fn plugin_name(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<String>> {
    let name = form.string(entry)?;
    form.identifier(&name, "a plugin");
    check_length(form, &name);
    Some(name)
}

fn message(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<String> {
    let message = form.string(entry)?;
    if message.value.trim().is_empty() {
        form.report(EmptyMessage { place: form.span(&message) });
    }
    Some(message.value)
}

fn namespace(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<String> {
    let namespace = form.string(entry)?;
    if !namespace.value.is_empty() && !namespace.value.split('.').all(is_identifier) {
        form.report(BadNamespace { found: found(&namespace.value), place: form.span(&namespace) });
    }
    check_length(form, &namespace);
    Some(namespace.value)
}

fn version(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<String> {
    let version = form.string(entry)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if version.value.is_empty() || !version.value.bytes().all(is_allowed) {
        form.report(BadVersion { found: found(&version.value), place: form.span(&version) });
    }
    check_length(form, &version);
    Some(version.value)
}

fn check_length(form: &mut Form<'_>, name: &Located<String>) {
    let length = name.value.len();
    if length > MAX_NAME_BYTES {
        form.report(NameTooLong { most: MAX_NAME_BYTES, length, place: form.span(name) });
    }
}

fn attribute_names(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<Vec<Located<String>>>> {
    Some(Located { value: form.strings(entry)?, range: entry.range.clone() })
}
