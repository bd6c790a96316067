//! Reads TOML tables by description. Reports every error; Serde stops at the first.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::description::{Kinds, Nested, Presence, Table};
use super::errors::{
    IntegerTooLarge, MisplacedKey, MissingKey, NotFinite, NotIdentifier, Repeated, TableWithoutName,
    UnknownKey, WrongType,
};
use super::section::flat;
pub use super::section::{Entry, Section, is_identifier};
use super::{Located, Text, syntax};
use crate::diagnostic::{Diagnostic, Source, Span, sort, suggest};

const LONGEST_QUOTE: usize = 120;

/// A document's text and errors.
pub struct TomlReader {
    /// Text.
    pub source: Arc<Source>,
    diagnostics: Vec<Diagnostic>,
    /// Whether more errors would be useless.
    pub(super) section_lost: bool,
    pub(crate) above: Option<&'static Table>,
    misplaced: Vec<usize>,
    pub(crate) explained: Vec<String>,
    pub(crate) broken: Vec<String>,
}

impl TomlReader {
    /// Parses a document described by `root`; `None` if not TOML.
    pub fn parse<'s>(
        source: &'s Arc<Source>,
        root: Option<&'static Table>,
    ) -> (TomlReader, Option<Spanned<DeTable<'s>>>) {
        let (document, errors) = DeTable::parse_recoverable(&source.text);
        let reader = TomlReader {
            source: Arc::clone(source),
            diagnostics: syntax::explain(source, root, &errors),
            section_lost: false,
            above: None,
            misplaced: Vec::new(),
            explained: Vec::new(),
            broken: Vec::new(),
        };
        (reader, errors.is_empty().then_some(document))
    }

    /// Returns the diagnostics, ordered by position.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        sort(&mut self.diagnostics);
        self.diagnostics
    }

    /// Adds a diagnostic.
    pub fn report(&mut self, diagnostic: impl Into<Diagnostic>) {
        self.diagnostics.push(diagnostic.into());
    }

    /// Returns the number of diagnostics.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// Returns the span of a byte range.
    pub fn span(&self, range: impl Into<Range<usize>>) -> Span {
        Span::new(&self.source, range.into())
    }

    /// Returns source text if it is short.
    pub fn written(&self, range: &Range<usize>) -> Option<&str> {
        let text = self.source.text.get(range.clone())?;
        (text.len() <= LONGEST_QUOTE && !text.contains('\n')).then_some(text)
    }

    pub(crate) fn root<'t>(&mut self, table: &'t DeTable<'t>, description: &'static Table) -> Section<'t> {
        self.section(table, description, String::new(), 0..0)
    }

    pub(crate) fn open<'t>(&mut self, entry: &Entry<'t>, kinds: &Kinds) -> Option<Section<'t>> {
        let table = entry.value.as_table()?;
        let description = kinds.select(|key| table.contains_key(key))?;
        let title = description.title.replace("NAME", &entry.key);
        let section = self.section(table, description, title, entry.key_range.clone());
        Some(Section { value_range: entry.range.clone(), ..section })
    }

    pub(crate) fn reopen<'t>(&mut self, section: Section<'t>, description: &'static Table) -> Section<'t> {
        self.section(section.table, description, description.title.to_owned(), section.range)
    }

    fn section<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        description: &'static Table,
        name: String,
        range: Range<usize>,
    ) -> Section<'t> {
        let mut section = Section {
            name,
            range,
            known: description.keys.iter().map(|key| key.name).collect(),
            description: Some(description),
            above: self.above.filter(|above| !above.path.is_empty()),
            ..Section::root(table)
        };
        let required = description.keys.iter().filter(|key| key.presence == Presence::Required);
        let missing = required.filter(|key| !section.has(key.name));
        section.missing = missing.map(|key| (key.name, key.expected())).collect();
        if !description.path.is_empty() {
            self.report_misplaced(&mut section, description);
        }
        section
    }

    /// Returns a value that [`TomlReader::finish`] requires.
    pub fn require<'t>(
        &mut self,
        section: &mut Section<'t>,
        key: &'static str,
        expected: &str,
    ) -> Option<Entry<'t>> {
        let entry = section.take(key);
        if entry.is_none() {
            section.missing.push((key, expected.to_owned()));
        }
        entry
    }

    /// Reports unknown keys and missing required keys.
    pub fn finish(&mut self, section: &Section<'_>) {
        let mut explained: Vec<&str> = Vec::new();
        for entry in section.entries() {
            if section.known.contains(&entry.key.as_str()) || section.reported.contains(&entry.key) {
                continue;
            }
            let (mut note, mut help) = (None, None);
            if let Some(parent) = section.above.filter(|table| table.key(&entry.key).is_some()) {
                help = Some(self.belongs_above(&entry.key, parent, section.range.start));
            } else if let Some(known) = suggest(&entry.key, section.known.iter().copied()) {
                explained.push(known);
                help = Some(format!("did you mean `{known}`?"));
            } else {
                note = Some(format!("the keys are {}", list(&section.known)));
            }
            let (table, place) = (section.title(), self.span(entry.key_range));
            self.report(UnknownKey { key: entry.key, table, place, note, help });
        }
        for (key, expected) in &section.missing {
            let is_explained = explained.contains(key) || self.explained.iter().any(|other| other == key);
            if is_explained || section.is_in_nested_table(key) {
                continue;
            }
            let (table, place) = (section.title(), self.span(section.range.clone()));
            self.report(MissingKey { table, key, expected: expected.clone(), place });
        }
    }

    fn belongs_above(&self, key: &str, parent: &Table, child: usize) -> String {
        let place = match self.header(child) {
            Some(header) => format!("move it above `{header}`"),
            None => "move it there".to_owned(),
        };
        format!("`{key}` is a key of `{}`: {place}", parent.header())
    }

    fn header(&self, at: usize) -> Option<&str> {
        let before = self.source.text.get(..at)?;
        let line = self.source.text.get(before.rfind('\n').map_or(0, |end| end + 1)..)?.lines().next()?;
        let line = line.split('#').next()?.trim();
        line.starts_with('[').then_some(line)
    }

    fn report_misplaced(&mut self, section: &mut Section<'_>, table: &'static Table) {
        for key in table.keys {
            let Nested::Lines { strings } = key.nested else { continue };
            let Some(child) = section.entry(key.name) else { continue };
            for line in child.lines().unwrap_or_default() {
                let is_meant = !strings
                    && line.value.is_str()
                    && table.key(&line.key).is_some()
                    && !section.has(&line.key);
                let is_missing = section.missing.iter().any(|(missing, _)| *missing == line.key);
                if !is_missing && !is_meant {
                    continue;
                }
                section.missing.retain(|(missing, _)| *missing != line.key);
                self.misplaced.push(line.key_range.start);
                self.report(MisplacedKey {
                    help: self.belongs_above(&line.key, table, child.key_range.start),
                    place: self.span(line.key_range),
                    key: line.key,
                    table: child.key.clone(),
                    parent: table.header(),
                });
            }
        }
    }

    /// Stops the search for more errors.
    pub fn give_up(&mut self) {
        self.section_lost = true;
    }

    pub(crate) fn wrong_type(&self, entry: &Entry<'_>, expected: impl Into<String>) -> WrongType {
        WrongType {
            key: entry.key.clone(),
            expected: expected.into(),
            found: entry.found(),
            place: self.span(entry),
            note: None,
            help: None,
        }
    }

    /// Reads a string with its span.
    pub fn text(&mut self, entry: &Entry<'_>) -> Option<Text> {
        match entry.value {
            DeValue::String(value) => {
                Some(Text::new(&self.source.text, entry.range.clone(), value.clone().into_owned()))
            }
            _ => {
                self.report(self.wrong_type(entry, "a string"));
                None
            }
        }
    }

    /// Reads a string.
    pub fn string(&mut self, entry: &Entry<'_>) -> Option<Located<String>> {
        self.text(entry).map(|text| Located { value: text.value, range: text.range })
    }

    /// Reads a string, number or boolean.
    pub fn expression(&mut self, entry: &Entry<'_>) -> Option<Text> {
        match entry.value {
            DeValue::String(_) => self.text(entry),
            // Expressions lack underscores and prefixes in numbers.
            DeValue::Integer(_) => {
                let value = self.integer(entry)?;
                Some(Text::stands_for(entry.range.clone(), value.to_string()))
            }
            DeValue::Float(_) => {
                let value = self.float(entry)?;
                Some(Text::stands_for(entry.range.clone(), format!("{value:?}")))
            }
            DeValue::Boolean(value) => Some(Text::stands_for(entry.range.clone(), value.to_string())),
            _ => {
                let help = "write an array as an expression: `\"[1, 2, 3]\"`";
                let help = matches!(entry.value, DeValue::Array(_)).then(|| help.to_owned());
                let expected = "an expression: a string, a number or a boolean";
                self.report(WrongType { help, ..self.wrong_type(entry, expected) });
                None
            }
        }
    }

    /// Reads an integer.
    pub fn integer(&mut self, entry: &Entry<'_>) -> Option<i64> {
        let DeValue::Integer(integer) = entry.value else {
            self.report(self.wrong_type(entry, "an integer"));
            return None;
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if value.is_none() {
            self.report(IntegerTooLarge { key: entry.key.clone(), place: self.span(entry) });
        }
        value
    }

    /// Reads a finite float.
    pub fn float(&mut self, entry: &Entry<'_>) -> Option<f64> {
        let DeValue::Float(float) = entry.value else {
            self.report(self.wrong_type(entry, "a float"));
            return None;
        };
        let value = float.as_str().parse::<f64>().ok().filter(|value| value.is_finite());
        if value.is_none() {
            self.report(NotFinite { key: entry.key.clone(), place: self.span(entry) });
        }
        value
    }

    /// Reads a table; errors call it `name`.
    pub fn table<'t>(&mut self, entry: &Entry<'t>, name: String) -> Option<Section<'t>> {
        let DeValue::Table(table) = entry.value else {
            return self.report_no_table(entry, None);
        };
        Some(Section { name, range: entry.key_range.clone(), ..Section::root(table) })
    }

    pub(crate) fn report_no_table<T>(&mut self, entry: &Entry<'_>, help: Option<String>) -> Option<T> {
        let header = self.header(entry.key_range.start).filter(|_| entry.value.is_array());
        let inner = header.and_then(|header| header.strip_prefix("[[")?.strip_suffix("]]"));
        let help = help.or_else(|| inner.map(|inner| format!("write `[{inner}]`, with one bracket")));
        self.report(WrongType { help, ..self.wrong_type(entry, "a table") });
        None
    }

    /// Reads an array.
    pub fn array<'t>(&mut self, entry: &Entry<'t>, expected: &str) -> Option<Vec<Entry<'t>>> {
        let items = entry.items();
        if items.is_none() {
            self.report(self.wrong_type(entry, expected));
        }
        items
    }

    /// Reads an array; suggests brackets for a single value.
    pub fn values<'t>(&mut self, entry: &Entry<'t>, expected: &str) -> Option<Vec<Entry<'t>>> {
        let items = entry.items();
        if items.is_none() {
            let alone = !matches!(entry.value, DeValue::Table(_) | DeValue::Datetime(_));
            let written = self.written(&entry.range).filter(|_| alone);
            let help = written.map(|written| format!("write `{} = [{written}]`", entry.key));
            self.report(WrongType { help, ..self.wrong_type(entry, expected) });
        }
        items
    }

    /// Reads `[[name]]`; empty if absent.
    pub fn tables<'t>(&mut self, root: &mut Section<'t>, key: &'static str) -> Vec<Section<'t>> {
        let items = root.take(key).and_then(|entry| self.tables_of(&entry, key)).unwrap_or_default();
        items.iter().filter_map(|item| self.table(item, format!("[[{key}]]"))).collect()
    }

    pub(crate) fn tables_of<'t>(&mut self, entry: &Entry<'t>, path: &str) -> Option<Vec<Entry<'t>>> {
        let items = entry.items();
        if items.is_none() {
            let expected = format!("an array of tables, each starting with `[[{path}]]`");
            let header = self.header(entry.key_range.start);
            let is_single = header.is_some_and(|header| header == format!("[{path}]"));
            let help = is_single.then(|| format!("write `[[{path}]]`, with two brackets"));
            self.report(WrongType { help, ..self.wrong_type(entry, expected) });
            self.section_lost = true;
        }
        items
    }

    /// Reads `[key]`; empty if absent.
    pub fn lines<'t>(&mut self, parent: &mut Section<'t>, key: &'static str) -> Vec<Entry<'t>> {
        parent.take(key).and_then(|entry| self.entries_of(&entry)).unwrap_or_default()
    }

    fn entries_of<'t>(&mut self, entry: &Entry<'t>) -> Option<Vec<Entry<'t>>> {
        let lines = entry.lines();
        if lines.is_none() {
            self.section_lost = true;
            return self.report_no_table(entry, None);
        }
        lines
    }

    pub(crate) fn lines_of<'t, T>(
        &mut self,
        entry: &Entry<'t>,
        read: impl Fn(&mut TomlReader, &Entry<'t>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        for line in self.entries_of(entry)? {
            let is_misplaced = self.misplaced.contains(&line.key_range.start);
            match if is_misplaced { None } else { read(self, &line) } {
                Some(item) => items.push(item),
                None => self.broken.push(line.key),
            }
        }
        Some(items)
    }

    pub(crate) fn mark_broken<T>(&mut self, name: Located<String>) -> Option<T> {
        self.broken.push(name.value);
        None
    }

    pub(crate) fn unread<'t>(&mut self, entry: &Entry<'t>) -> Option<Entry<'t>> {
        Some(entry.clone())
    }

    pub(crate) fn report_flat(&mut self, entry: &Entry<'_>) -> bool {
        let Some((place, name)) = flat(entry) else { return false };
        self.report(TableWithoutName { key: entry.key.clone(), name, place: self.span(place) });
        self.give_up();
        true
    }

    /// Reads an array of strings.
    pub fn strings(&mut self, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
        let items = self.values(entry, "an array of strings")?;
        Some(items.iter().filter_map(|item| self.string(item)).collect())
    }

    /// Reads `debug`, which must be `"line"`.
    pub fn line_information(&mut self, entry: &Entry<'_>) -> Option<bool> {
        if entry.value.as_str() == Some("line") {
            return Some(true);
        }
        let note = "it adds line information for profilers; omit the key to disable it";
        self.report(WrongType { note: Some(note.to_owned()), ..self.wrong_type(entry, "`\"line\"`") });
        None
    }

    pub(crate) fn each_once<T: PartialEq>(
        &mut self,
        items: Vec<Located<T>>,
        message: impl Fn(&T) -> String,
    ) -> Vec<Located<T>> {
        let mut kept: Vec<Located<T>> = Vec::with_capacity(items.len());
        for item in items {
            match kept.iter().find(|known| known.value == item.value) {
                Some(first) => {
                    let (second, first) = (self.span(&item), self.span(first));
                    self.report(Repeated { message: message(&item.value), second, first });
                }
                None => kept.push(item),
            }
        }
        kept
    }

    /// Checks names for expressions and C++.
    pub fn identifier(&mut self, name: &Located<String>, what: &str) {
        if !is_identifier(&name.value) {
            let (found, place) = (found(&name.value), self.span(name));
            self.report(NotIdentifier { what: what.to_owned(), found, place });
        }
    }
}

/// Describes a string in errors.
pub fn found(text: &str) -> String {
    if text.is_empty() { "this is empty".to_owned() } else { format!("found `{text}`") }
}

/// Joins names in backticks with commas.
pub fn list<N: std::fmt::Display>(names: impl IntoIterator<Item = N>) -> String {
    const MAX_SHOWN: usize = 40;
    let mut shown: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let more = shown.len().saturating_sub(MAX_SHOWN);
    shown.truncate(MAX_SHOWN);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
