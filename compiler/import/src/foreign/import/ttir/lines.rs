//! The lines of Triton's text: what stands in them beside locations and strings, and the values that they name.

use super::closing;

/// A text without locations, without comments, and without what stands between quotes but for the name of an operation: of `"tt.reduce"(%0)` the
/// quotes go, and of `tt.print "%d"` the string does.
pub(super) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', ' ', '/']) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let (kept, skipped) = if let Some(location) = rest.strip_prefix(" loc(") {
            ("", closing(location).map(|end| rest.len() - location.len() + end + 1))
        } else if rest.starts_with("//") {
            ("", rest.find('\n'))
        } else if let Some(string) = rest.strip_prefix('"') {
            let end = string.find('"');
            let is_name = |end: &usize| string[end + 1..].starts_with('(');
            (end.filter(is_name).map_or("", |end| &string[..end]), end.map(|end| end + 2))
        } else {
            (&rest[..1], Some(1))
        };
        clean.push_str(kept);
        // What does not end goes on to the end of the text.
        rest = skipped.map_or("", |skipped| &rest[skipped..]);
    }
    clean.push_str(rest);
    clean
}

/// A value that a line names: of `%r#1` the name `%r` and which of the values of that name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Use<'t> {
    pub(super) name: &'t str,
    pub(super) at: usize,
}

/// The values that a text names, in its order.
pub(super) fn uses(text: &str) -> Vec<Use<'_>> {
    let starts = text.match_indices('%').map(|(at, _)| &text[at..]);
    starts.map(used).filter(|value| value.name.len() > 1).collect()
}

fn used(text: &str) -> Use<'_> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '$');
    let mut behind_sign = text.char_indices().skip(1);
    let end = behind_sign.find(|(_, c)| !is_inside(*c)).map_or(text.len(), |(end, _)| end);
    let (name, behind) = text.split_at(end);
    let digits = behind.strip_prefix('#').unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    Use { name, at: digits[..end].parse().unwrap_or(0) }
}

/// What stands before ` = `: names, each with how many values it is for. Nothing where that cannot be right.
pub(super) fn results(text: &str) -> Option<Vec<(&str, usize)>> {
    text.split(',').map(result).collect()
}

fn result(part: &str) -> Option<(&str, usize)> {
    let part = part.trim();
    let (name, count) = match part.split_once(':') {
        Some((name, count)) => (name, count.parse().ok()?),
        None => (part, 1),
    };
    (name.starts_with('%') && used(name).name == name).then_some((name, count))
}

/// The values that a list gives others: `%p = %2, %q = %1`.
pub(super) fn pairs<'t>(list: &'t str) -> Option<Vec<(&'t str, Use<'t>)>> {
    let pairs = uses(list);
    let is_right = pairs.len() == 2 * list.matches('=').count();
    let pair = |pair: &[Use<'t>]| Some((pair.first()?.name, *pair.last()?));
    pairs.chunks_exact(2).map(pair).collect::<Option<_>>().filter(|_| is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_of_a_value_is_no_result() {
        assert_eq!(results("%a, %b:2"), Some(vec![("%a", 1), ("%b", 2)]));
        for text in ["", " ", "%a, ", ":2", "a", "\u{e4}", "\u{e4}:2", "%a b", "%a:x"] {
            assert_eq!(results(text), None, "{text:?}");
        }
        assert_eq!(uses("\u{e4}%\u{e4} %a\u{e4}%"), [Use { name: "%a", at: 0 }]);
    }
}
