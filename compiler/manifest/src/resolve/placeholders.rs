use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::PlaceholdersLeft;
use crate::diagnostic::{Diagnostic, Source, Span};
use crate::placeholder::is_unsaid;

/// Avoids parsing most manifests twice.
const MARKS: [&str; 4] = ["_OF_", "TENSOR_", "CONSTANT_", "WHERE_"];

/// Descriptions and file names.
const SKIPPED_KEYS: [&str; 7] = ["message", "kernel", "cubin", "ptx", "source", "made_by", "file"];

pub(super) fn check(source: &Arc<Source>) -> Option<Diagnostic> {
    if !MARKS.iter().any(|mark| source.text.contains(mark)) {
        return None;
    }
    let document = DeTable::parse(&source.text).ok()?;
    let (mut names, mut texts) = (BTreeSet::new(), Vec::new());
    collect(&document, &mut names, &mut texts);
    texts.sort_by_key(|(_, range)| range.start);
    let mut found: Vec<(&str, usize, Range<usize>)> = Vec::new();
    for (text, range) in texts {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for word in words.filter(|word| is_unsaid(word) && !names.contains(word)) {
            match found.iter_mut().find(|(known, ..)| *known == word) {
                Some((_, places, _)) => *places += 1,
                None => found.push((word, 1, range.clone())),
            }
        }
    }
    let (_, _, first) = found.first()?;
    let words = found.iter().map(|(word, places, range)| {
        let line = source.line_column(range.start).line;
        match places {
            1 => format!("{word} (line {line})"),
            places => format!("{word} (line {line}, {places} places)"),
        }
    });
    let words = words.collect::<Vec<_>>().join(", ");
    Some(PlaceholdersLeft { words, first: Span::new(source, first.clone()) }.into())
}

fn collect<'t>(
    document: &'t Spanned<DeTable<'t>>,
    names: &mut BTreeSet<&'t str>,
    texts: &mut Vec<(&'t str, Range<usize>)>,
) {
    let mut tables: Vec<&DeTable<'t>> = vec![document.get_ref()];
    let mut values: Vec<&Spanned<DeValue<'t>>> = Vec::new();
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            names.insert(key.get_ref());
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("params", DeValue::Array(items)) => {
                    names.extend(items.iter().filter_map(|item| item.get_ref().as_str()));
                }
                (key, _) if SKIPPED_KEYS.contains(&key) => {}
                (key, text) => {
                    names.extend(text.as_str().filter(|_| key == "name"));
                    values.push(value);
                }
            }
        }
        while let Some(value) = values.pop() {
            match value.get_ref() {
                DeValue::String(text) => texts.push((text, value.span())),
                DeValue::Array(items) => values.extend(items.iter()),
                DeValue::Table(table) => tables.push(table),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Option<String> {
        check(&Source::new("a.toml", text)).map(|diagnostic| diagnostic.message)
    }

    #[test]
    fn placeholders_are_reported_together() {
        let text = "a = \"VALUE_OF_n + VALUE_OF_n\"\n[b]\nc = [\"x: TYPE_OF_ELEMENTS*\", \"p: TYPE_OF_4_BYTES\"]\nd = \"SHAPE_OF_y\"\n";
        assert_eq!(
            message(text).unwrap(),
            "unresolved placeholders: VALUE_OF_n (line 1, 2 places), TYPE_OF_ELEMENTS (line 3), TYPE_OF_4_BYTES (line 3), SHAPE_OF_y (line 4)"
        );
    }

    #[test]
    fn names_of_the_manifest_are_its_own() {
        for text in [
            "",
            "a = \"n + x.shape[0]\" # VALUE_OF_n",
            "[constants]\nVALUE_OF_n = 3\n[x]\na = \"VALUE_OF_n\"",
            "[[inputs]]\nname = \"TENSOR_x\"\n[x]\na = \"TENSOR_x.shape\"",
            "[f]\na = { params = [\"TYPE_OF_ELEMENTS\"], body = \"sizeof(TYPE_OF_ELEMENTS)\", message = \"WHERE_x\" }",
            "a = \"THE_SHAPE_OF_y\"\nb = \"TENSOR_\"",
            "a = \"VALUE_OF_n\nb",
        ] {
            assert_eq!(message(text), None, "{text}");
        }
    }
}
