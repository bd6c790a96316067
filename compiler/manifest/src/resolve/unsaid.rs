//! The words in capitals that `cubinder import` leaves in a manifest: while any of them is there, nothing else that is wrong is worth telling.
//!
//! Reports all of them as one error. [`crate::placeholder`] has the words.

use std::collections::BTreeSet;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::placeholder::is_unsaid;
use crate::rules;

/// What all these words have in one of their forms: most manifests have none, and are read once only.
const MARKS: [&str; 4] = ["_OF_", "TENSOR_", "CONSTANT_", "WHERE_"];

/// Keys whose texts are for people, or name files and what is in them.
const NOT_READ: [&str; 7] = ["message", "kernel", "cubin", "ptx", "source", "made_by", "file"];

/// What is still to be said in a manifest that was imported; nothing where all is said, or where the text is no TOML.
pub(super) fn check(source: &Arc<Source>) -> Option<Diagnostic> {
    if !MARKS.iter().any(|mark| source.text.contains(mark)) {
        return None;
    }
    let document = DeTable::parse(&source.text).ok()?;
    let (mut names, mut texts) = (BTreeSet::new(), Vec::new());
    look(&document, &mut names, &mut texts);
    let mut found: Vec<(&str, usize, std::ops::Range<usize>)> = Vec::new();
    texts.sort_by_key(|(_, range)| range.start);
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
    let list: Vec<String> =
        found.iter().map(|(word, places, range)| place(source, word, *places, range)).collect();
    Some(
        Diagnostic::error(format!("still to be said: {}", list.join(", ")))
            .code(rules::UNKNOWN_NAME)
            .at(Span::new(source, first.clone()), "the first of them")
            .note("`cubinder import` leaves such words where files do not tell what stands there; nothing else is checked before all are replaced")
            .help("put in their place what the comments beside them say; docs/kernels-from-elsewhere.md has examples"),
    )
}

fn place(source: &Source, word: &str, places: usize, range: &std::ops::Range<usize>) -> String {
    let before = source.text.get(..range.start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    match places {
        1 => format!("{word} (line {line})"),
        places => format!("{word} (line {line}, {places} places)"),
    }
}

/// All strings that are values, and the names that the manifest declares: keys, and what stands behind `name`.
fn look<'t>(
    document: &'t Spanned<DeTable<'t>>,
    names: &mut BTreeSet<&'t str>,
    texts: &mut Vec<(&'t str, std::ops::Range<usize>)>,
) {
    let mut tables: Vec<&DeTable<'t>> = vec![document.get_ref()];
    let mut values: Vec<&Spanned<DeValue<'t>>> = Vec::new();
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            names.insert(key.get_ref());
            if let ("name", DeValue::String(name)) = (key.get_ref().as_ref(), value.get_ref()) {
                names.insert(name);
            }
            match (key.get_ref().as_ref(), value.get_ref()) {
                // A function's parameters are names, too.
                ("params", DeValue::Array(items)) => {
                    names.extend(items.iter().filter_map(|item| item.get_ref().as_str()));
                }
                (key, _) if NOT_READ.contains(&key) => {}
                _ => values.push(value),
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

    fn said(text: &str) -> Option<String> {
        check(&Source::new("a.toml", text)).map(|diagnostic| diagnostic.message)
    }

    #[test]
    fn words_are_told_together() {
        let text = "a = \"VALUE_OF_n + VALUE_OF_n\"\n[b]\nc = [\"x: TYPE_OF_ELEMENTS*\", \"p: TYPE_OF_4_BYTES\"]\nd = \"SHAPE_OF_y\"\n";
        assert_eq!(
            said(text).unwrap(),
            "still to be said: VALUE_OF_n (line 1, 2 places), TYPE_OF_ELEMENTS (line 3), TYPE_OF_4_BYTES (line 3), SHAPE_OF_y (line 4)"
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
            assert_eq!(said(text), None, "{text}");
        }
    }
}
