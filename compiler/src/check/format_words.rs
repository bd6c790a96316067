//! Words that a guard compares a tensor's format with and that are none of its formats.
//!
//! Owns finding them in the guard's text: in the folded guard nothing is left of them. Only messages need it.

use std::collections::BTreeSet;

use cubinder_bundle::expr::{BinaryOp, Syntax, SyntaxKind, parse};

use super::site::Site;
use crate::diagnostic::{Diagnostic, suggest};

/// Says of each such word of the variant that `rows` are of which formats the tensor has.
pub(super) fn explain(site: &Site<'_>, rows: &[usize], diagnostic: Diagnostic) -> Diagnostic {
    let guard = rows.first().and_then(|&row| site.variant_decl(row)?.guard.as_ref());
    let Some(syntax) = guard.and_then(|guard| parse(&guard.value).ok()) else { return diagnostic };
    let mut said: BTreeSet<(&str, &str)> = BTreeSet::new();
    comparisons(&syntax).into_iter().filter(|it| said.insert(*it)).fold(
        diagnostic,
        |diagnostic, (tensor, word)| {
            let formats = formats_of(site, rows, tensor);
            if formats.is_empty() || formats.contains(word) {
                return diagnostic;
            }
            let known: Vec<String> = formats.iter().map(|format| format!("`{format}`")).collect();
            let list = match known.as_slice() {
                [one] => one.clone(),
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
                [] => String::new(),
            };
            let note = format!("`{tensor}.format` is {list} in this variant, never `{word}`");
            let plain = word.to_lowercase();
            let same = formats.get(plain.as_str()).copied();
            let near = same.or_else(|| suggest(&plain, formats.iter().copied()));
            let near = near.map(|near| format!("did you mean `{near}`?"));
            near.into_iter().fold(diagnostic.note(note), Diagnostic::help)
        },
    )
}

/// The tensors whose format is compared, each with the word.
fn comparisons(syntax: &Syntax) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut left = vec![syntax];
    while let Some(syntax) = left.pop() {
        match &syntax.kind {
            SyntaxKind::Binary(BinaryOp::Eq, one, other) => {
                found.extend(of_format(one, other).or_else(|| of_format(other, one)));
            }
            SyntaxKind::Binary(BinaryOp::And | BinaryOp::Or, one, other) => {
                left.extend([other.as_ref(), one.as_ref()]);
            }
            _ => {}
        }
    }
    found
}

/// `tensor.format` and a word.
fn of_format<'s>(field: &'s Syntax, word: &'s Syntax) -> Option<(&'s str, &'s str)> {
    let (SyntaxKind::Field { object, name, .. }, SyntaxKind::Str(word)) = (&field.kind, &word.kind) else {
        return None;
    };
    match &object.kind {
        SyntaxKind::Name(tensor) if name == "format" => Some((tensor, word)),
        _ => None,
    }
}

/// What the formats of a tensor are in these rows; none where there is no such tensor.
fn formats_of<'s>(site: &Site<'s>, rows: &[usize], tensor: &str) -> BTreeSet<&'s str> {
    let index = (0..site.plugin.tensor_count()).find(|index| site.plugin.tensor_name(*index) == Some(tensor));
    let of_row = |row: &usize| Some(site.variant(*row)?.formats.get(index?)?.name());
    rows.iter().filter_map(of_row).collect()
}
