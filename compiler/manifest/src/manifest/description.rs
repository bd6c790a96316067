//! What tables of a TOML file can have: the description from which reader, reference and JSON Schema come.

use serde_json::{Map, Value, json};

use super::json;

/// A table of a file.
#[derive(Debug)]
pub struct Table {
    /// Its path in the file: `attributes.*`, `inputs[]`; empty for the file itself.
    pub path: &'static str,
    /// Its name in errors; `NAME` stands for the author's name.
    pub title: &'static str,
    /// What it declares, in one sentence.
    pub doc: &'static str,
    /// Its keys, in the order in which the reference lists them.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// Whether it must be there.
    pub presence: Presence,
    /// What it is for, in one or two sentences.
    pub doc: &'static str,
    /// A value, as TOML; for a table of the author's names a line, or the name of a table. Empty for tables with keys of
    /// their own. All examples together are one manifest.
    pub example: &'static str,
    /// The value that an error about a missing key shows: the example, or a simpler one that fits any manifest.
    pub expected: &'static str,
    /// What its value is, for the reference.
    pub value: &'static str,
    /// The JSON Schema of its value.
    pub schema: fn() -> Value,
    /// The tables that its value consists of.
    pub nested: Nested,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It has no default.
    Optional,
    /// It has this default.
    Default(&'static str),
}

/// The tables that a value consists of.
#[derive(Debug, Clone, Copy)]
pub enum Nested {
    /// It is no table.
    None,
    /// A table.
    Table(&'static Kinds),
    /// An array of tables.
    Array(&'static Kinds),
    /// A table of tables, each under a name of the author's.
    Named(&'static Kinds),
    /// A table whose keys are names of the author's.
    Lines {
        /// Whether a line can have a string.
        strings: bool,
    },
}

/// The kinds of tables that one place can have.
#[derive(Debug)]
pub struct Kinds {
    /// The keys that decide: a table with one of them is of the kind at the same index, any other of the last kind.
    pub keys: &'static [&'static str],
    /// The kinds; one more than there are keys.
    pub tables: &'static [&'static Table],
    /// There must be a table without this key.
    pub but_for: Option<&'static str>,
}

impl Table {
    /// The key of this name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The header of the table in a file.
    pub(super) fn header(&self) -> &'static str {
        self.title.split(" with ").next().unwrap_or(self.title)
    }

    /// Its JSON Schema.
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
    /// What is expected where the key is missing.
    pub(super) fn expected(&self) -> String {
        match self.nested {
            Nested::None => self.expected.to_owned(),
            Nested::Array(_) => "[{ ... }]".to_owned(),
            _ => "{ ... }".to_owned(),
        }
    }

    /// The JSON Schema of the value, with what an editor shows of the key.
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

/// A value of TOML as JSON; `None` if the text is empty.
fn from_toml(text: &str) -> Option<Value> {
    let document: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(document.get("value")?).ok()
}

impl Nested {
    /// The tables with keys of their own.
    #[must_use]
    pub fn tables(self) -> &'static [&'static Table] {
        match self {
            Nested::Table(kinds) | Nested::Array(kinds) | Nested::Named(kinds) => kinds.tables,
            Nested::None | Nested::Lines { .. } => &[],
        }
    }
}

impl Kinds {
    /// The kind of a table that has the keys for which `has` is true.
    #[must_use]
    pub fn select(&self, has: impl Fn(&str) -> bool) -> Option<&'static Table> {
        let index = self.keys.iter().position(|key| has(key)).unwrap_or(self.keys.len());
        self.tables.get(index).copied()
    }

    /// The JSON Schema of a table of one of the kinds.
    pub(super) fn schema(&self) -> Value {
        let mut tables = self.tables.iter().rev();
        let last = tables.next().map_or_else(|| json!(true), |last| last.schema());
        self.keys.iter().rev().zip(tables).fold(
            last,
            |other, (key, kind)| json!({ "if": { "required": [key] }, "then": kind.schema(), "else": other }),
        )
    }

    /// The JSON Schema of an array of such tables.
    pub(super) fn array_schema(&self) -> Value {
        let mut array = json!({ "type": "array", "items": self.schema() });
        if let Some(key) = self.but_for {
            array["contains"] = json!({ "not": { "required": [key] } });
        }
        array
    }
}

/// Joins the lines of a doc comment.
pub(crate) const fn sentence(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}
