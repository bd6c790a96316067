//! Finds words in guards that are not formats of the compared tensor. Folding removes them, so reads text.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use cubinder_expr::{BinaryOp, Syntax, SyntaxKind, parse};

use super::draft_view::DraftView;
use super::syntax::children;
use crate::diagnostic::{Diagnostic, suggest};

pub(super) fn explain(view: &DraftView<'_>, rows: &[usize], diagnostic: Diagnostic) -> Diagnostic {
    let guard = rows.first().and_then(|&row| view.variant_decl(row)?.guard.as_ref());
    let Some(syntax) = guard.and_then(|guard| parse(&guard.value).ok()) else { return diagnostic };
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    comparisons(&syntax).into_iter().filter(|it| seen.insert(*it)).fold(
        diagnostic,
        |diagnostic, (tensor, word)| {
            let formats = formats_of(view, rows, tensor);
            if formats.is_empty() || formats.contains(word) {
                return diagnostic;
            }
            let known: Vec<String> = formats.iter().map(|format| format!("`{format}`")).collect();
            let list = match known.as_slice() {
                [one] => one.clone(),
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
                [] => String::new(),
            };
            let note = format!("`{tensor}.format` is {list} in this variant, never `{}`", shown(word));
            let plain = word.to_lowercase();
            let same = formats.get(plain.as_str()).copied();
            let near = same.or_else(|| suggest(&plain, formats.iter().copied()));
            let near = near.map(|near| format!("did you mean `{near}`?"));
            near.into_iter().fold(diagnostic.note(note), Diagnostic::help)
        },
    )
}

fn comparisons(syntax: &Syntax) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut left = vec![syntax];
    while let Some(syntax) = left.pop() {
        let comparison = match &syntax.kind {
            SyntaxKind::Binary(BinaryOp::Eq | BinaryOp::Ne, one, other) => {
                of_format(one, other).or_else(|| of_format(other, one))
            }
            _ => None,
        };
        match (comparison, &syntax.kind) {
            (Some(comparison), _) => found.push(comparison),
            // A variable may have a tensor's name.
            (None, SyntaxKind::Comprehension { over, .. }) => left.push(over),
            (None, SyntaxKind::Field { .. }) => {}
            (None, _) => {
                let mut parts = children(syntax);
                parts.sort_by_key(|part| Reverse(part.span.start));
                left.extend(parts);
            }
        }
    }
    found
}

fn shown(word: &str) -> Cow<'_, str> {
    const MOST: usize = 32;
    match word.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}...", word.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(word),
    }
}

fn of_format<'s>(field: &'s Syntax, word: &'s Syntax) -> Option<(&'s str, &'s str)> {
    let (SyntaxKind::Field { object, name, .. }, SyntaxKind::Str(word)) = (&field.kind, &word.kind) else {
        return None;
    };
    match &object.kind {
        SyntaxKind::Name(tensor) if name == "format" => Some((tensor, word)),
        _ => None,
    }
}

fn formats_of<'s>(view: &DraftView<'s>, rows: &[usize], tensor: &str) -> BTreeSet<&'s str> {
    let index = (0..view.plugin.tensor_count()).find(|index| view.plugin.tensor_name(*index) == Some(tensor));
    let of_row = |row: &usize| Some(view.variant(*row)?.formats.get(index?)?.name());
    rows.iter().filter_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use crate::diagnostic::Diagnostic;
    use crate::manifest::Route;
    use crate::test_support::resolved;

    fn findings(guard: &str) -> Vec<Diagnostic> {
        let text = format!(
            "schema = 1\n[plugin]\nname = \"p\"\n[formats]\nF = [\"linear\", \"hwc8\"]\n\
             [[inputs]]\nname = \"x\"\ntype = \"f16\"\nformat = \"F\"\nrank = 4\n\
             [[outputs]]\nname = \"y\"\ntype = \"f16\"\nshape = \"x.shape\"\n\
             [[variants]]\nid = 1\nguard = \"{guard}\"\n[[variants]]\nid = 2\n\
             [[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [128]\nblock = [256]\nargs = {{ x = \"x\", y = \"y\" }}\n"
        );
        check(&resolved("m.toml", &text), &[], Route::Plugin).diagnostics
    }

    #[test]
    fn a_word_is_explained_wherever_it_is_compared() {
        for guard in [
            "x.format == 'hwc9'",
            "not (x.format != 'hwc9')",
            "[x.format == 'hwc9'][0]",
            "(x.format == 'hwc9') == true",
            "(true if x.format == 'hwc9' else false)",
        ] {
            let found = findings(guard);
            let note = "`x.format` is `hwc8` or `linear` in this variant, never `hwc9`";
            assert!(found.iter().any(|it| it.notes.iter().any(|it| it == note)), "{guard}: {found:?}");
        }
        for guard in ["x.format == 'hwc8' and numel(x) < 0", "numel(x) < 0"] {
            let found = findings(guard);
            assert!(
                found.iter().all(|it| it.notes.iter().all(|it| !it.contains("never"))),
                "{guard}: {found:?}"
            );
        }
    }

    #[test]
    fn words_are_explained_in_the_order_of_the_text() {
        let found = findings("x.format == 'hwc9' if x.format == 'chw9' else false");
        let words = |it: &Diagnostic| -> Vec<String> {
            it.notes.iter().filter_map(|note| Some(note.split_once("never ")?.1.to_owned())).collect()
        };
        assert!(found.iter().any(|it| words(it) == ["`hwc9`", "`chw9`"]), "{found:?}");
    }

    #[test]
    fn of_a_long_word_the_beginning_is_shown() {
        let found = findings(&format!("x.format == '{}'", "é".repeat(100_000)));
        let notes: Vec<&String> = found.iter().flat_map(|it| &it.notes).collect();
        assert!(notes.iter().any(|note| note.ends_with("é...`")), "{}", notes.len());
        assert!(notes.iter().all(|note| note.len() < 200), "{}", notes.len());
    }
}
