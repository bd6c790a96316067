//! `[plugin]`.

use super::*;
use crate::manifest::json::{self, IDENTIFIER, MAX_NAME_BYTES};
use crate::manifest::toml_reader::{found, is_identifier};

table! {
    /// The operator, and rules for its nodes.
    struct Plugin = PLUGIN: "plugin" as "[plugin]" {
        /// The ONNX op type, which is TensorRT's plugin name. At most 1023 bytes, like the next two.
        name: PluginName = Required, "\"circ_pad\"" or "\"...\"";
        /// TensorRT's plugin namespace: the node's domain, or its attribute `plugin_namespace`.
        namespace: Namespace = Default("\"\""), "\"com.example\"";
        /// TensorRT's plugin version: the node's attribute `plugin_version`.
        version: Version = Default("\"1\""), "\"1\"";
        /// A description, shown by `inspect --plugin`.
        summary: AnyText = Optional, "\"Pads the trailing dimensions by wrapping around.\"";
        /// Rules that every node must satisfy.
        require: ArrayOf<RequireDecl> = Optional;
        /// Attributes that affect run time; nodes that differ only in others share measurements. Default: all.
        timing: AttributeNames = Optional, "[\"pads\"]";
        /// The file of cases whose shapes `cubinder tune` measures.
        tune: FilePath = Optional, "\"../tests/circ_pad_sizes.toml\"";
    }

    /// A rule. TensorRT's builder rejects nodes that violate it, with the rule's message.
    struct Require = REQUIRE: "plugin.require[]" as "require" {
        /// A boolean over attributes, and over ranks and shapes of inputs.
        expr: ExpressionText = Required, "\"len(pads) % 2 == 0\"";
        /// The error shown when a node violates the rule.
        message: Message = Required, "\"pads come in pairs\"" or "\"...\"";
    }
}

value_types! {
    /// Operator name.
    PluginName -> Located<String>: "identifier", json::identifier(), plugin_name;
    /// May be empty.
    Namespace -> String: "identifiers separated by dots, or empty",
        json::text(&format!("^({IDENTIFIER}(\\.{IDENTIFIER})*)?$")), namespace;
    /// Letters, digits, `.`, `_`, `+`, `-`.
    Version -> String: "string of letters, digits, `.`, `_`, `+`, `-`", json::text("^[A-Za-z0-9._+-]+$"), version;
    /// Not empty.
    Message -> String: "non-empty string", json!({ "type": "string", "pattern": "\\S" }), message;
    /// Distinct attribute names.
    AttributeNames -> Located<Vec<Located<String>>>: "array of attribute names",
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

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<PluginDecl> {
        let Plugin { name, namespace, version, summary, require, timing, tune } =
            Row::read_all(toml, section);
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

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<RequireDecl> {
        let Require { expr, message } = Row::read_all(toml, section);
        Some(RequireDecl { expr: expr?, message: message? })
    }
}

fn plugin_name(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<String>> {
    let name = toml.string(entry)?;
    toml.identifier(&name, "a plugin");
    check_length(toml, &name);
    Some(name)
}

fn message(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let message = toml.string(entry)?;
    if message.value.trim().is_empty() {
        toml.report(EmptyMessage { place: toml.span(&message) });
    }
    Some(message.value)
}

fn namespace(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let namespace = toml.string(entry)?;
    if !namespace.value.is_empty() && !namespace.value.split('.').all(is_identifier) {
        toml.report(BadNamespace { found: found(&namespace.value), place: toml.span(&namespace) });
    }
    check_length(toml, &namespace);
    Some(namespace.value)
}

fn version(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let version = toml.string(entry)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if version.value.is_empty() || !version.value.bytes().all(is_allowed) {
        toml.report(BadVersion { found: found(&version.value), place: toml.span(&version) });
    }
    check_length(toml, &version);
    Some(version.value)
}

fn check_length(toml: &mut TomlReader, name: &Located<String>) {
    let length = name.value.len();
    if length > MAX_NAME_BYTES {
        toml.report(NameTooLong { most: MAX_NAME_BYTES, length, place: toml.span(name) });
    }
}

fn attribute_names(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<Vec<Located<String>>>> {
    Some(Located { value: toml.strings(entry)?, range: entry.range.clone() })
}
