//! Reading tables of TOML by hand: every key asked for by name, every mistake reported with its place, none of them fatal.
//!
//! Serde would stop at the first mistake and lose spans under some enums. Serves the manifest's readers and the one of
//! `cubinder.toml`; knows neither of them.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Table;
use super::{Located, Text, syntax};
use crate::diagnostic::{Diagnostic, Source, Span, sort, suggest};
use crate::rules;

/// The longest text of the author's that a help repeats, in bytes.
const LONGEST_QUOTE: usize = 120;

/// The text being read and what has been found wrong with it.
pub struct Form<'s> {
    source: &'s Arc<Source>,
    diagnostics: Vec<Diagnostic>,
    /// Whether a whole section was something else: then too much is missing to look for more mistakes.
    section_lost: bool,
    /// The keys asked of each section. Tests compare them with the reference.
    pub asked: Vec<Asked>,
}

/// What a reader asked of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// How errors call the section.
    pub name: String,
    /// The keys, in the order in which they were asked for.
    pub keys: Vec<&'static str>,
    /// Those that must be there.
    pub required: Vec<&'static str>,
}

/// A table and which of its keys have been asked for.
pub struct Section<'t> {
    /// How errors call it: `[plugin]`.
    name: String,
    /// Where it begins.
    pub range: Range<usize>,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
    required: Vec<&'static str>,
    missing: Vec<(&'static str, Diagnostic)>,
    /// The table that this one stands in, where a key below its header may have been meant for that.
    above: Option<&'static Table>,
}

/// A key with its value.
#[derive(Clone)]
pub struct Entry<'t> {
    /// The key, or for an element of an array the array's key.
    pub key: String,
    /// Where the key is.
    pub key_range: Range<usize>,
    /// Where the value is.
    pub range: Range<usize>,
    value: &'t DeValue<'t>,
}

impl<'s> Form<'s> {
    /// Starts reading a document.
    pub fn new(source: &'s Arc<Source>) -> Form<'s> {
        Form { source, diagnostics: Vec::new(), section_lost: false, asked: Vec::new() }
    }

    /// What has been found, in order of place.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        sort(&mut self.diagnostics);
        self.diagnostics
    }

    /// Whether what was read is whole enough to look for more mistakes in it.
    pub fn is_whole(&self) -> bool {
        !self.section_lost
    }

    /// Adds a diagnostic.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// How many mistakes have been found.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// The span of a byte range of the document.
    pub fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range)
    }

    /// What the author wrote there, where it is short enough to be repeated in a message.
    pub fn written(&self, range: &Range<usize>) -> Option<&'s str> {
        let text = self.source.text.get(range.clone())?;
        (text.len() <= LONGEST_QUOTE && !text.contains('\n')).then_some(text)
    }

    /// The text as a TOML document. Where it is none, that is reported, and nothing is read from the rest.
    pub fn parse(&mut self) -> Option<Spanned<DeTable<'s>>> {
        let (document, errors) = DeTable::parse_recoverable(&self.source.text);
        self.diagnostics.extend(syntax::explain(self.source, &errors));
        errors.is_empty().then_some(document)
    }

    /// The value of a required key. A missing one is reported by [`Form::finish`], unless a misspelt one explains it.
    pub fn require<'t>(
        &mut self,
        section: &mut Section<'t>,
        key: &'static str,
        expected: &str,
    ) -> Option<Entry<'t>> {
        let entry = section.take(key);
        section.required.push(key);
        if entry.is_none() {
            let diagnostic = Diagnostic::error(format!("{} has no `{key}`", section.title()))
                .code(rules::MISSING_KEY)
                .at(self.span(section.range.clone()), format!("expected `{key} = {expected}` in this table"));
            section.missing.push((key, diagnostic));
        }
        entry
    }

    /// Reports every key that nobody asked for and every required one that is missing.
    pub fn finish(&mut self, section: &Section<'_>) {
        self.finish_except(section, &[]);
    }

    /// The same, but for unknown keys in `reported`, about which more has been said.
    pub fn finish_except(&mut self, section: &Section<'_>, reported: &[&str]) {
        self.asked.push(Asked {
            name: section.name.clone(),
            keys: section.known.clone(),
            required: section.required.clone(),
        });
        let mut explained: Vec<&str> = Vec::new();
        for entry in section.entries() {
            if section.known.contains(&entry.key.as_str()) || reported.contains(&entry.key.as_str()) {
                continue;
            }
            let diagnostic = Diagnostic::error(format!("unknown key `{}` in {}", entry.key, section.title()))
                .code(rules::UNKNOWN_KEY)
                .at(self.span(entry.key_range), "not a key of this table");
            let parent = section.above.filter(|table| table.keys.iter().any(|key| key.name == entry.key));
            if let Some(parent) = parent {
                let help = self.belongs_above(&entry.key, parent, section.range.start);
                self.report(diagnostic.help(help));
                continue;
            }
            let diagnostic = match suggest(&entry.key, section.known.iter().copied()) {
                Some(known) => {
                    explained.push(known);
                    diagnostic.help(format!("did you mean `{known}`?"))
                }
                None => diagnostic.note(format!("the keys are {}", list(&section.known))),
            };
            self.report(diagnostic);
        }
        for (key, diagnostic) in &section.missing {
            if !explained.contains(key) {
                self.report(diagnostic.clone());
            }
        }
    }

    /// How to mend a key that stands in the table at `child` and belongs to the one around it.
    pub fn belongs_above(&self, key: &str, parent: &Table, child: usize) -> String {
        let place = match self.header(child) {
            Some(header) => format!("write it above `{header}`"),
            None => "write it there".to_owned(),
        };
        format!("`{key}` is a key of `{}`: {place}", parent.title)
    }

    /// The header whose line a place is on, as it is written.
    fn header(&self, at: usize) -> Option<&'s str> {
        let before = self.source.text.get(..at)?;
        let line = self.source.text.get(before.rfind('\n').map_or(0, |end| end + 1)..)?.lines().next()?;
        let line = line.split('#').next()?.trim();
        line.starts_with('[').then_some(line)
    }

    /// Reports keys that `section` lacks and that stand in the table `child` of it: these. An optional one is meant for `section`
    /// where `is_meant` says so.
    pub fn below(
        &mut self,
        section: &mut Section<'_>,
        child: &Entry<'_>,
        table: &'static Table,
        is_meant: impl Fn(&Entry<'_>) -> bool,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for entry in child.lines().unwrap_or_default() {
            let meant = !section.has(&entry.key) && is_meant(&entry);
            if !section.lacks(&entry.key) && !meant {
                continue;
            }
            section.forgive(&entry.key);
            let title = table.title;
            let diagnostic = Diagnostic::error(format!("`{}` stands in the wrong table", entry.key))
                .code(rules::UNKNOWN_KEY)
                .at(self.span(entry.key_range), format!("in `{}`, and `{title}` has none", child.key))
                .help(self.belongs_above(&entry.key, table, child.key_range.start));
            self.report(diagnostic);
            found.push(entry.key);
        }
        found
    }

    /// Nothing more is looked for: too much depends on what is wrong.
    pub fn give_up(&mut self) {
        self.section_lost = true;
    }

    fn wrong_type(&mut self, entry: &Entry<'_>, expected: &str) {
        let diagnostic = self.misfit(entry, expected);
        self.report(diagnostic);
    }

    /// The error for a value of another type than its key takes.
    pub fn misfit(&self, entry: &Entry<'_>, expected: &str) -> Diagnostic {
        Diagnostic::error(format!("`{}` must be {expected}", entry.key))
            .code(rules::WRONG_VALUE)
            .at(self.span(entry.range.clone()), format!("found {}", describe(entry.value)))
    }

    /// A string with its place in the file.
    pub fn text(&mut self, entry: &Entry<'_>) -> Option<Text> {
        match entry.value {
            DeValue::String(value) => {
                Some(Text::new(&self.source.text, entry.range.clone(), value.clone().into_owned()))
            }
            _ => {
                self.wrong_type(entry, "a string");
                None
            }
        }
    }

    /// A string.
    pub fn string(&mut self, entry: &Entry<'_>) -> Option<Located<String>> {
        self.text(entry).map(|text| Located { value: text.value, range: text.range })
    }

    /// An expression: a string, or a number or boolean that stands for itself.
    pub fn expression(&mut self, entry: &Entry<'_>) -> Option<Text> {
        match entry.value {
            DeValue::String(_) => self.text(entry),
            // The expression language reads numbers as TOML writes them, save for underscores and prefixes.
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
                let found = self.misfit(entry, "an expression: a string, a number or a boolean");
                self.report(match entry.value {
                    DeValue::Array(_) => found.help("an array is written as an expression: `\"[1, 2, 3]\"`"),
                    _ => found,
                });
                None
            }
        }
    }

    /// An integer.
    pub fn integer(&mut self, entry: &Entry<'_>) -> Option<i64> {
        let DeValue::Integer(integer) = entry.value else {
            self.wrong_type(entry, "an integer");
            return None;
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if value.is_none() {
            let diagnostic =
                Diagnostic::error(format!("`{}` is too large for an integer of 64 bits", entry.key))
                    .code(rules::WRONG_VALUE)
                    .at(self.span(entry.range.clone()), "");
            self.report(diagnostic);
        }
        value
    }

    /// A finite float.
    pub fn float(&mut self, entry: &Entry<'_>) -> Option<f64> {
        let DeValue::Float(float) = entry.value else {
            self.wrong_type(entry, "a float");
            return None;
        };
        let value = float.as_str().parse::<f64>().ok().filter(|value| value.is_finite());
        if value.is_none() {
            let diagnostic = Diagnostic::error(format!("`{}` must be finite", entry.key))
                .code(rules::WRONG_VALUE)
                .at(self.span(entry.range.clone()), "not a number that a double can hold");
            self.report(diagnostic);
        }
        value
    }

    /// A table; errors call it `name`.
    pub fn table<'t>(&mut self, entry: &Entry<'t>, name: String) -> Option<Section<'t>> {
        match entry.value {
            DeValue::Table(table) => Some(Section {
                name,
                range: entry.key_range.clone(),
                table,
                known: Vec::new(),
                required: Vec::new(),
                missing: Vec::new(),
                above: None,
            }),
            _ => {
                let diagnostic = self.misfit(entry, "a table");
                let header = self.header(entry.key_range.start);
                let inner = header
                    .and_then(|header| header.strip_prefix("[["))
                    .and_then(|inner| inner.strip_suffix("]]"));
                self.report(match inner {
                    Some(inner) if matches!(entry.value, DeValue::Array(_)) => {
                        diagnostic.help(format!("write `[{inner}]`, with one bracket"))
                    }
                    _ => diagnostic,
                });
                None
            }
        }
    }

    /// The elements of an array.
    pub fn array<'t>(&mut self, entry: &Entry<'t>, expected: &str) -> Option<Vec<Entry<'t>>> {
        let items = entry.items();
        if items.is_none() {
            self.wrong_type(entry, expected);
        }
        items
    }

    /// The elements of an array of strings or numbers. One that stands alone only lacks its brackets.
    pub fn values<'t>(&mut self, entry: &Entry<'t>, expected: &str) -> Option<Vec<Entry<'t>>> {
        let items = entry.items();
        if items.is_none() {
            let mut diagnostic = self.misfit(entry, expected);
            let alone = !matches!(entry.value, DeValue::Table(_) | DeValue::Datetime(_));
            if let Some(written) = self.written(&entry.range).filter(|_| alone) {
                diagnostic = diagnostic.help(format!("write `{} = [{written}]`", entry.key));
            }
            self.report(diagnostic);
        }
        items
    }

    /// The tables of an array of tables, `[[name]]`; none where the key is absent.
    pub fn tables<'t>(&mut self, root: &mut Section<'t>, key: &'static str) -> Vec<Section<'t>> {
        let Some(entry) = root.take(key) else { return Vec::new() };
        let expected = format!("an array of tables, each beginning with `[[{key}]]`");
        let Some(items) = entry.items() else {
            let diagnostic = self.misfit(&entry, &expected);
            self.report(match self.header(entry.key_range.start) {
                Some(header) if header == format!("[{key}]") => {
                    diagnostic.help(format!("write `[[{key}]]`, with two brackets"))
                }
                _ => diagnostic,
            });
            self.section_lost = true;
            return Vec::new();
        };
        items.iter().filter_map(|item| self.table(item, format!("[[{key}]]"))).collect()
    }

    /// The lines of the table `[key]`, in the file's order; none where the key is absent.
    pub fn lines<'t>(&mut self, parent: &mut Section<'t>, key: &'static str) -> Vec<Entry<'t>> {
        let Some(entry) = parent.take(key) else { return Vec::new() };
        match self.table(&entry, format!("[{key}]")) {
            Some(section) => section.entries(),
            None => {
                self.section_lost = true;
                Vec::new()
            }
        }
    }

    /// An array of strings.
    pub fn strings(&mut self, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
        let items = self.values(entry, "an array of strings")?;
        Some(items.iter().filter_map(|item| self.string(item)).collect())
    }

    /// `debug`: whether line information is asked for. There is nothing else to ask for.
    pub fn line_information(&mut self, entry: &Entry<'_>) -> Option<bool> {
        if entry.value.as_str() == Some("line") {
            return Some(true);
        }
        let diagnostic = self.misfit(entry, "`\"line\"`");
        self.report(
            diagnostic.note(
                "it asks for line information in the code, for profilers; without the key there is none",
            ),
        );
        None
    }

    /// Checks that a name can stand in expressions and in C++. A wrong one is reported and used as it is.
    pub fn identifier(&mut self, name: &Located<String>, what: &str) {
        if is_identifier(&name.value) {
            return;
        }
        let diagnostic = Diagnostic::error(format!("the name of {what} must be an identifier"))
            .code(rules::BAD_NAME)
            .at(self.span(name.range.clone()), found(&name.value))
            .note("an identifier is made of ASCII letters, digits and `_`, and does not begin with a digit");
        self.report(diagnostic);
    }
}

impl Text {
    /// A text that a value of another type stands for.
    pub fn stands_for(range: Range<usize>, value: String) -> Text {
        Text::new("", range, value)
    }
}

impl<'t> Section<'t> {
    /// The document's root table.
    pub fn root(table: &'t DeTable<'t>) -> Section<'t> {
        Section {
            name: String::new(),
            range: 0..0,
            table,
            known: Vec::new(),
            required: Vec::new(),
            missing: Vec::new(),
            above: None,
        }
    }

    /// The same section of a table of `above`.
    pub fn within(self, above: &'static Table) -> Section<'t> {
        Section { above: Some(above), ..self }
    }

    /// The same section, called otherwise in errors.
    pub fn called(self, name: &str) -> Section<'t> {
        Section { name: name.to_owned(), ..self }
    }

    /// Whether a key that must be there is not.
    pub fn lacks(&self, key: &str) -> bool {
        self.missing.iter().any(|(missing, _)| *missing == key)
    }

    /// Says nothing of a missing key: what was said elsewhere explains it.
    pub fn forgive(&mut self, key: &str) {
        self.missing.retain(|(missing, _)| *missing != key);
    }

    /// Whether there is such a key, known or not.
    pub fn has(&self, key: &str) -> bool {
        self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    /// How errors call it.
    pub fn title(&self) -> String {
        if self.name.is_empty() { "the file".to_owned() } else { format!("`{}`", self.name) }
    }

    /// The value of a key, which is now known to belong here.
    pub fn take(&mut self, key: &'static str) -> Option<Entry<'t>> {
        self.known.push(key);
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(entry(name, value))
    }

    /// All keys and values in the file's order.
    pub fn entries(&self) -> Vec<Entry<'t>> {
        let mut entries: Vec<Entry<'t>> = self.table.iter().map(|(name, value)| entry(name, value)).collect();
        entries.sort_by_key(|entry| entry.key_range.start);
        entries
    }
}

fn entry<'t>(name: &Spanned<std::borrow::Cow<'t, str>>, value: &'t Spanned<DeValue<'t>>) -> Entry<'t> {
    Entry {
        key: name.get_ref().clone().into_owned(),
        key_range: name.span(),
        range: value.span(),
        value: value.get_ref(),
    }
}

impl<'t> Entry<'t> {
    /// The key as a name with its place.
    pub fn name(&self) -> Located<String> {
        Located { value: self.key.clone(), range: self.key_range.clone() }
    }

    /// What the value is, for errors.
    pub fn found(&self) -> String {
        describe(self.value)
    }

    /// The value as TOML.
    pub fn value(&self) -> &'t DeValue<'t> {
        self.value
    }

    /// The lines in the file's order, where the value is a table.
    pub fn lines(&self) -> Option<Vec<Entry<'t>>> {
        let DeValue::Table(table) = self.value else { return None };
        let mut entries: Vec<Entry<'t>> = table.iter().map(|(name, value)| entry(name, value)).collect();
        entries.sort_by_key(|entry| entry.key_range.start);
        Some(entries)
    }

    /// The elements, where the value is an array.
    pub fn items(&self) -> Option<Vec<Entry<'t>>> {
        match self.value {
            DeValue::Array(items) => Some(items.iter().map(|item| self.element(item)).collect()),
            _ => None,
        }
    }

    fn element(&self, item: &'t Spanned<DeValue<'t>>) -> Entry<'t> {
        Entry { key: self.key.clone(), key_range: item.span(), range: item.span(), value: item.get_ref() }
    }
}

/// Whether a name is made of ASCII letters, digits and `_`, and does not begin with a digit.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What a string holds, for errors.
pub fn found(text: &str) -> String {
    if text.is_empty() { "this is empty".to_owned() } else { format!("found `{text}`") }
}

/// Names between backticks, with commas.
pub fn list(names: &[&str]) -> String {
    const MAX_SHOWN: usize = 40;
    let shown: Vec<String> = names.iter().take(MAX_SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(MAX_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
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
