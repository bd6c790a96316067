use serde_json::{Map, Value, json};

use super::json;

/// Table of a file.
#[derive(Debug)]
pub struct Table {
    /// Path, `attributes.*`; empty for the file.
    pub path: &'static str,
    /// Name in errors.
    pub title: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Keys, in the reference's order.
    pub keys: &'static [Key],
}

/// Key of a table.
#[derive(Debug)]
pub struct Key {
    /// Key.
    pub name: &'static str,
    /// Whether it is required.
    pub presence: Presence,
    /// Description.
    pub doc: &'static str,
    /// TOML value, entry or name.
    pub example: &'static str,
    /// Example in errors about a missing key.
    pub expected: &'static str,
    /// Type in the reference.
    pub value: &'static str,
    /// JSON Schema.
    pub schema: fn() -> Value,
    /// Nested tables.
    pub nested: Nested,
}

/// Whether a key is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Required,
    /// The key may be absent and has no default.
    Optional,
    /// The key has this default.
    Default(&'static str),
}

/// Tables in a value.
#[derive(Debug, Clone, Copy)]
pub enum Nested {
    /// The value is not a table.
    None,
    /// Table.
    Table(&'static Kinds),
    /// Array of tables.
    Array(&'static Kinds),
    /// Tables with user-defined names.
    Named(&'static Kinds),
    /// Table with user-defined keys.
    Lines {
        /// Whether entries may be strings.
        strings: bool,
    },
}

/// Kinds of tables in one position.
#[derive(Debug)]
pub struct Kinds {
    /// The first present key selects the kind at its index; without any, the last kind applies.
    pub keys: &'static [&'static str],
    /// Kinds; one more than `keys`.
    pub tables: &'static [&'static Table],
    /// At least one table must lack this key.
    pub but_for: Option<&'static str>,
}

impl Table {
    /// Returns the key with this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn header(&self) -> &'static str {
        self.title.split(" with ").next().unwrap_or(self.title)
    }

    pub(super) fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.keys.iter().map(|key| (key.name.to_owned(), key.property())).collect();
        let required = self.keys.iter().filter(|key| key.presence == Presence::Required);
        let required: Vec<&str> = required.map(|key| key.name).collect();
        let mut schema = json!({
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if let Some(rules) = json::rules(self.path) {
            schema["allOf"] = rules;
        }
        schema
    }
}

impl Key {
    pub(super) fn expected(&self) -> String {
        match self.nested {
            Nested::None => self.expected.to_owned(),
            Nested::Array(_) => "[{ ... }]".to_owned(),
            _ => "{ ... }".to_owned(),
        }
    }

    fn property(&self) -> Value {
        let mut schema = (self.schema)();
        schema["description"] = json!(self.doc);
        if let (Nested::None, Some(example)) = (self.nested, from_toml(self.example)) {
            schema["examples"] = json!([example]);
        }
        if let Presence::Default(default) = self.presence
            && let Some(default) = from_toml(default)
        {
            schema["default"] = default;
        }
        schema
    }
}

fn from_toml(text: &str) -> Option<Value> {
    let document: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(document.get("value")?).ok()
}

impl Nested {
    /// Returns the tables with fixed keys.
    #[must_use]
    pub fn tables(self) -> &'static [&'static Table] {
        match self {
            Nested::Table(kinds) | Nested::Array(kinds) | Nested::Named(kinds) => kinds.tables,
            Nested::None | Nested::Lines { .. } => &[],
        }
    }
}

impl Kinds {
    /// Returns the kind of a table.
    #[must_use]
    pub fn select(&self, has: impl Fn(&str) -> bool) -> Option<&'static Table> {
        let index = self.keys.iter().position(|key| has(key)).unwrap_or(self.keys.len());
        self.tables.get(index).copied()
    }

    pub(super) fn schema(&self) -> Value {
        let mut tables = self.tables.iter().rev();
        let last = tables.next().map_or_else(|| json!(true), |last| last.schema());
        self.keys.iter().rev().zip(tables).fold(
            last,
            |other, (key, kind)| json!({ "if": { "required": [key] }, "then": kind.schema(), "else": other }),
        )
    }

    pub(super) fn array_schema(&self) -> Value {
        let mut array = json!({ "type": "array", "items": self.schema() });
        if let Some(key) = self.but_for {
            array["contains"] = json!({ "not": { "required": [key] } });
        }
        array
    }
}

pub(crate) const fn sentence(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}
