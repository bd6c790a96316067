use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Located;
use super::description::{Nested, Table};

/// Table while it is read.
pub struct Section<'t> {
    pub(super) name: String,
    /// Source position.
    pub range: Range<usize>,
    pub(crate) value_range: Range<usize>,
    pub(super) table: &'t DeTable<'t>,
    pub(super) known: Vec<&'static str>,
    pub(super) missing: Vec<(&'static str, String)>,
    pub(super) reported: Vec<String>,
    pub(crate) description: Option<&'static Table>,
    /// Table that stray keys may belong to.
    pub(super) above: Option<&'static Table>,
}

/// Key with its value.
#[derive(Clone)]
pub struct Entry<'t> {
    /// Key; for an element, the array's key.
    pub key: String,
    /// Key's source range.
    pub key_range: Range<usize>,
    /// Value's source range.
    pub range: Range<usize>,
    pub(crate) example: &'static str,
    /// TOML value.
    pub value: &'t DeValue<'t>,
}

impl<'t> Section<'t> {
    /// Opens a table without a description.
    pub fn root(table: &'t DeTable<'t>) -> Section<'t> {
        Section {
            name: String::new(),
            range: 0..0,
            value_range: 0..0,
            table,
            known: Vec::new(),
            missing: Vec::new(),
            reported: Vec::new(),
            description: None,
            above: None,
        }
    }

    pub(crate) fn set_reported(&mut self, key: &str) {
        self.reported.push(key.to_owned());
    }

    pub(crate) fn allow_missing(&mut self) {
        self.missing.clear();
    }

    pub(super) fn is_in_nested_table(&self, key: &str) -> bool {
        let keys = self.description.map_or(&[][..], |table| table.keys);
        let nested = keys.iter().filter(|key| matches!(key.nested, Nested::Table(_) | Nested::Array(_)));
        nested.filter_map(|nested| self.entry(nested.name)).any(|child| {
            let tables = child.items().unwrap_or_else(|| vec![child]);
            tables.iter().any(|table| table.value.get(key).is_some())
        })
    }

    /// Returns whether the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns its name in errors.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the file".to_owned() } else { format!("`{}`", self.name) }
    }

    /// Returns the value of a key, which is then known.
    pub fn take(&mut self, key: &'static str) -> Option<Entry<'t>> {
        self.known.push(key);
        self.entry(key)
    }

    /// Returns the value of a key.
    pub fn entry(&self, key: &str) -> Option<Entry<'t>> {
        self.table.get_key_value(key).map(entry)
    }

    /// Returns all entries, in the file's order.
    pub fn entries(&self) -> Vec<Entry<'t>> {
        entries(self.table)
    }
}

impl From<&Entry<'_>> for Range<usize> {
    fn from(entry: &Entry<'_>) -> Range<usize> {
        entry.range.clone()
    }
}

fn entries<'t>(table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
    let mut entries: Vec<Entry<'t>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_range.start);
    entries
}

fn entry<'t>((name, value): (&Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)) -> Entry<'t> {
    Entry {
        key: name.get_ref().clone().into_owned(),
        key_range: name.span(),
        range: value.span(),
        example: "",
        value: value.get_ref(),
    }
}

impl<'t> Entry<'t> {
    /// Returns the key with its range.
    pub fn name(&self) -> Located<String> {
        Located { value: self.key.clone(), range: self.key_range.clone() }
    }

    /// Describes the value in errors.
    pub fn found(&self) -> String {
        match self.value {
            DeValue::String(text) if text.len() <= 40 => format!("the string `{text}`"),
            DeValue::String(_) => "a string".to_owned(),
            DeValue::Integer(integer) => format!("the integer `{integer}`"),
            DeValue::Float(float) => format!("the float `{float}`"),
            DeValue::Boolean(value) => format!("the boolean `{value}`"),
            DeValue::Datetime(_) => "a date or time".to_owned(),
            DeValue::Array(_) => "an array".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns a table's entries in file order.
    pub fn lines(&self) -> Option<Vec<Entry<'t>>> {
        self.value.as_table().map(entries)
    }

    /// Returns an array's elements.
    pub fn items(&self) -> Option<Vec<Entry<'t>>> {
        let element = |item: &'t Spanned<DeValue<'t>>| Entry {
            key_range: item.span(),
            range: item.span(),
            value: item.get_ref(),
            ..self.clone()
        };
        Some(self.value.as_array()?.iter().map(element).collect())
    }
}

/// Finds the first key that belongs in `[key.NAME]`; returns position and name.
pub(super) fn flat(entry: &Entry<'_>) -> Option<(Range<usize>, String)> {
    let tables = entry.items();
    let lines = tables.as_ref().map_or_else(|| entry.lines(), |tables| tables.first()?.lines())?;
    let name = lines.iter().find(|line| line.key == "name").and_then(|line| line.value.as_str());
    let name = name.filter(|name| is_identifier(name)).unwrap_or("NAME").to_owned();
    let flat = lines.iter().find(|line| matches!(&*line.key, "name" | "type") && line.lines().is_none())?;
    let place = if tables.is_some() { &entry.key_range } else { &flat.key_range };
    Some((place.clone(), name))
}

/// Accepts ASCII letters, digits and `_`, without a leading digit.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
