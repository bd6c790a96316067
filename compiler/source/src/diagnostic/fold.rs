use std::collections::HashMap;

use super::{Diagnostic, Label, Span};

const MOST: usize = 3;

/// Merges equal diagnostics into the first, with the others' spans, if `is_foldable`. Counts omitted places.
#[must_use]
pub fn fold(diagnostics: Vec<Diagnostic>, is_foldable: impl Fn(&Diagnostic) -> bool) -> Vec<Diagnostic> {
    let mut folded: Vec<(Diagnostic, Vec<Diagnostic>)> = Vec::new();
    let mut first = HashMap::new();
    for one in diagnostics {
        let says = (one.severity, one.code, one.message.clone(), one.help.clone());
        let known = *first.entry(says).or_insert(folded.len());
        match folded.get_mut(known).filter(|_| is_foldable(&one)) {
            Some((_, others)) => others.push(one),
            None => folded.push((one, Vec::new())),
        }
    }
    folded.into_iter().map(|(first, others)| with_places(first, &others)).collect()
}

fn with_places(first: Diagnostic, others: &[Diagnostic]) -> Diagnostic {
    if others.is_empty() {
        return first;
    }
    let text = first.primary.as_ref().map(|label| label.text.clone());
    let mut joined = first;
    joined.notes.retain(|note| others.iter().all(|other| other.notes.contains(note)));
    let mut places: Vec<Label> = Vec::new();
    let mut spans: HashMap<usize, Vec<Span>> = HashMap::new();
    for label in joined.primary.iter().chain(others.iter().filter_map(|other| other.primary.as_ref())) {
        let known = spans.entry(label.span.range.start).or_default();
        if !known.contains(&label.span) {
            known.push(label.span.clone());
            places.push(label.clone());
        }
    }
    let more = places.len().saturating_sub(1 + MOST);
    for label in places.into_iter().skip(1).take(MOST) {
        let is_the_same = text.as_ref() == Some(&label.text);
        joined = joined.related(label.span, if is_the_same { "here as well".to_owned() } else { label.text });
    }
    match more {
        0 => joined,
        1 => joined.note("and in 1 more place"),
        more => joined.note(format!("and in {more} more places")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Source, Span};

    fn said(at: usize, message: &str) -> Diagnostic {
        let source = Source::new("m.toml", "0123456789");
        Diagnostic::error(message).at(Span::new(&source, at..at + 1), "here").note("of all")
    }

    fn places(diagnostic: &Diagnostic) -> Vec<usize> {
        let labels = diagnostic.primary.iter().chain(&diagnostic.related);
        labels.map(|label| label.span.range.start).collect()
    }

    #[test]
    fn what_is_said_of_several_places_is_said_once_with_all_of_them() {
        let all: Vec<Diagnostic> =
            (0..6).map(|at| said(at, "a")).chain([said(0, "a"), said(1, "b")]).collect();
        let folded = fold(all, |_| true);
        assert_eq!(folded.iter().map(places).collect::<Vec<_>>(), [vec![0, 1, 2, 3], vec![1]]);
        assert_eq!(folded[0].notes, ["of all", "and in 2 more places"]);
        assert_eq!(folded[1], said(1, "b"));
    }

    #[test]
    fn what_is_so_of_one_place_is_not_said_of_all() {
        let folded = fold(vec![said(0, "a").note("in variant 1 only"), said(1, "a")], |_| true);
        assert_eq!(folded.iter().map(|one| one.notes.as_slice()).collect::<Vec<_>>(), [["of all"]]);
    }

    #[test]
    fn what_a_place_says_of_itself_stays() {
        let mut other = said(1, "a");
        other.primary.iter_mut().for_each(|label| label.text = "another".to_owned());
        let folded = fold(vec![said(0, "a"), other, said(2, "a")], |_| true);
        let texts: Vec<&str> = folded[0].related.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["another", "here as well"]);
    }

    #[test]
    fn what_differs_or_may_not_be_joined_stays() {
        let other_help = said(1, "a").help("do it");
        let all = vec![said(0, "a"), other_help, said(2, "a")];
        assert_eq!(fold(all.clone(), |_| false), all);
        assert_eq!(fold(all, |_| true).iter().map(places).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
    }
}
