//! Explains the first TOML syntax error; later ones are often consequences.

use std::ops::Range;
use std::sync::Arc;

use super::description::{Key, Nested, Table};
use super::errors::{KeyTwice, NotToml};
use crate::diagnostic::{Diagnostic, Source, Span, suggest};

const MAX_REPORTED: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Unclosed {
    at: usize,
    opener: &'static str,
}

pub(super) fn explain(
    source: &Arc<Source>,
    root: Option<&'static Table>,
    errors: &[toml::de::Error],
) -> Vec<Diagnostic> {
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    let is_twice = |error: &&toml::de::Error| error.message().starts_with("duplicate key");
    let explainer = Explainer { source, root };
    let first = errors.iter().filter(|error| !is_twice(error)).min_by_key(|error| start(error));
    match first {
        Some(first) => vec![explainer.syntax(first)],
        None => explainer.twice(errors),
    }
}

struct Explainer<'s> {
    source: &'s Arc<Source>,
    root: Option<&'static Table>,
}

impl Explainer<'_> {
    fn text(&self) -> &str {
        &self.source.text
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range)
    }

    fn error(&self, cause: impl Into<String>, range: Range<usize>, label: impl Into<String>) -> Diagnostic {
        NotToml { cause: cause.into(), place: self.span(range), label: label.into() }.into()
    }

    fn syntax(&self, error: &toml::de::Error) -> Diagnostic {
        let range = error.span().unwrap_or(0..0);
        let (cause, expected) = match error.message().split_once(", expected ") {
            Some((cause, expected)) => (cause, expected),
            None => (error.message(), ""),
        };
        if let Some(unclosed) = self.unclosed(&range, cause, expected) {
            return unclosed;
        }
        let found = self.text().get(range.start..).unwrap_or_default();
        // The parser expects floats after `n`, `i` and in `1.0.0`.
        let is_word_as_float = matches!(expected, "`nan`" | "`inf`") || found.starts_with('.');
        if matches!(cause, "invalid boolean" | "string values must be quoted")
            || cause == "invalid float" && is_word_as_float
        {
            return self.word(&range);
        }
        if let Some(quote) = self.string_before(&range).filter(|_| found.starts_with(is_word)) {
            let end = range.start + found.find(|c: char| !is_word(c)).unwrap_or(found.len());
            let word = self.text().get(range.start..end).unwrap_or_default();
            let inner = if quote == '"' { '\'' } else { '"' };
            let label = "the string ends before this";
            let diagnostic = self.error("unexpected text after a string", range.start..end, label);
            let help = "use the other quotes inside the string";
            return diagnostic.help(format!("{help}: `{inner}{word}{inner}`"));
        }
        if found.starts_with("//") {
            return self.slashes(range.start).help("a comment starts with `#`");
        }
        if found.starts_with(';') {
            return self.semicolon(range.start);
        }
        if let Some(curly) = found.chars().next().filter(|&c| is_curly(c)) {
            return self.curly(range.start..range.start + curly.len_utf8());
        }
        if cause == "invalid unquoted key" && found.starts_with(':') {
            let diagnostic =
                self.error("expected `=`, found `:`", range.start..range.start + 1, "expected `=`");
            return diagnostic.help("write `key = value`");
        }
        if cause == "extra `=`" {
            return self.error(cause, range, "one `=` is enough");
        }
        let label = match expected {
            "" => String::new(),
            "nothing" => "unexpected text".to_owned(),
            expected => format!("expected {expected}"),
        };
        self.error(cause, range, label)
    }

    fn semicolon(&self, at: usize) -> Diagnostic {
        let diagnostic = self.error("unexpected `;`", at..at + 1, "not TOML");
        diagnostic.help("remove it; a value ends with its line")
    }

    fn slashes(&self, at: usize) -> Diagnostic {
        self.error("`//` does not start a comment", at..at + 2, "not TOML")
    }

    /// Reports a word that lacks quotes or is not a TOML value.
    fn word(&self, range: &Range<usize>) -> Diagnostic {
        let line = self.line_of(range.start);
        let start = self.value_start(range.start);
        let alone = open_at(self.text(), range.start).is_empty();
        let written = self.text().get(start..line.end).map(without_comment).unwrap_or_default();
        let key = self.text().get(line.start..start).unwrap_or_default();
        let key = key.trim_end().strip_suffix('=').map(str::trim).filter(|key| key.chars().all(is_key));
        let call = range.start..range.end + self.call_behind(range);
        let word = self.text().get(call.clone()).unwrap_or_default();
        let (value, place) = if alone { (written, start..start + written.len()) } else { (word, call) };
        let digit = value.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
        if value.is_empty() {
            return self.error("missing value", place, "expected a value");
        }
        if value.contains(is_curly) {
            return self.curly(place);
        }
        if let Some(value) = value.strip_suffix(';') {
            return self.semicolon(place.start + value.len());
        }
        if let Some((number, _)) = value.split_once("//")
            && is_plain(number.trim())
        {
            let diagnostic = self.slashes(place.start + number.len());
            return diagnostic.help("a comment starts with `#`; an expression needs quotes");
        }
        let lower = value.to_ascii_lowercase();
        if matches!(lower.as_str(), "true" | "false") {
            let expected = "expected `true`, `false`, or a string in quotes";
            return self.error("a word is not a value", place, expected).help(format!("write `{lower}`"));
        }
        let (message, expected) = match digit {
            true => ("invalid number", "a number"),
            false => ("a word is not a value", "`true`, `false`"),
        };
        let diagnostic = self.error(message, place, format!("expected {expected}, or a string in quotes"));
        let count = |c: char| value.matches(c).count();
        if count('(') != count(')') {
            return diagnostic.help("put the entire expression in quotes");
        }
        let quotable = value.len() <= 80 && !value.contains(['"', '\\']);
        match key.filter(|_| alone) {
            Some(key) if quotable => diagnostic.help(format!("write `{key} = \"{value}\"`")),
            None if quotable && !alone => diagnostic.help(format!("write `\"{value}\"`")),
            _ => diagnostic,
        }
    }

    /// Returns a call's bytes after `range`: the parser ends a word at a comma. 0 if unclosed.
    fn call_behind(&self, range: &Range<usize>) -> usize {
        let text = self.text();
        let line = text.get(range.start..self.line_of(range.start).end).map_or("", without_comment);
        let mut depth = 0_usize;
        let is_end = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            matches!(c, '"' | '\'') || depth == 0 && matches!(c, ',' | ']' | '}')
        };
        let (call, end) = line.find(is_end).map_or(("", ""), |end| line.split_at(end));
        let length = if end.starts_with(['"', '\'']) { 0 } else { call.trim_end().len() };
        length.saturating_sub(range.len())
    }

    fn curly(&self, range: Range<usize>) -> Diagnostic {
        self.error("typographic quotes", range, "expected plain quotes").help("write strings in `\"` or `'`")
    }

    fn unclosed(&self, range: &Range<usize>, cause: &str, expected: &str) -> Option<Diagnostic> {
        let text = self.text();
        let in_string = cause.ends_with("string") && matches!(expected, "`\"`" | "`'`");
        let at_end = cause == "unclosed array" || cause == "unclosed inline table";
        let at = if in_string || at_end { range.start } else { self.line_of(range.start).start };
        let line = text.get(self.line_of(range.start)).unwrap_or_default();
        if !(in_string || at_end || begins_something(line)) {
            return None;
        }
        let open = open_at(text, at).pop()?;
        let end = open.at + open.opener.len();
        let (what, closer) = match open.opener {
            "[" => ("array", "]"),
            "{" => ("inline table", "}"),
            quotes if in_string => {
                let end = if quotes.len() == 1 { self.line_of(open.at).end.max(end) } else { end };
                let label = format!("expected `{quotes}` at its end");
                return Some(self.error("unclosed string", open.at..end, label));
            }
            _ => return None,
        };
        if in_string {
            return None;
        }
        let label = format!("missing `{closer}`");
        let diagnostic = self.error(format!("unclosed {what}"), open.at..end, label);
        if at_end {
            return Some(diagnostic);
        }
        let start = at + (line.len() - line.trim_start().len());
        Some(diagnostic.related(
            self.span(start..at + line.trim_end().len()),
            format!("expected `{closer}` before this"),
        ))
    }

    fn twice(&self, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
        let mut reported: Vec<Diagnostic> = Vec::new();
        let mut tables: Vec<Range<usize>> = Vec::new();
        let mut errors: Vec<&toml::de::Error> = errors.iter().collect();
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        for error in errors.into_iter().take(MAX_REPORTED) {
            let range = error.span().unwrap_or(0..0);
            let key = self.text().get(range.clone()).unwrap_or_default();
            let line = self.line_of(range.start);
            let is_header =
                self.text().get(line.clone()).is_some_and(|line| line.trim_start().starts_with('['));
            let second = self.span(range.clone());
            let twice = KeyTwice { key: key.to_owned(), second, first: None, misspelt: None, help: None };
            if is_header {
                tables.push(line.end..self.next_header(line.end));
                let first = self.first_header(key, line.start);
                reported.push(self.table_twice(key, twice, first).into());
            } else if !tables.iter().any(|table| table.contains(&range.start)) {
                // The first table absorbs its lines.
                reported.push(twice.into());
            }
        }
        reported
    }

    fn table_twice(&self, key: &str, twice: KeyTwice, first: Option<Range<usize>>) -> KeyTwice {
        let Some(first) = first else { return twice };
        let header = self.text().get(first.clone()).unwrap_or_default();
        // TOML reads misspelt headers as other tables.
        let misspelt = self.header_before(first.start).filter(|range| {
            let name = self.text().get(range.clone()).unwrap_or_default().trim_matches(['[', ']']).trim();
            self.key(name).is_none() && suggest(name, [key]).is_some()
        });
        let twice = KeyTwice { first: Some(self.span(first.clone())), ..twice };
        if !self.key(key).is_some_and(|key| matches!(key.nested, Nested::Array(_))) {
            return twice;
        }
        let outer = header.trim_matches(['[', ']']).split_once('.').map(|(table, _)| table.trim());
        let misspelt = misspelt.filter(|_| outer == Some(key)).map(|range| self.span(range));
        let help = match (outer == Some(key), &misspelt) {
            (true, Some(_)) => format!("did you mean `[[{key}]]`?"),
            (true, None) => {
                format!("`{header}` belongs to the `[[{key}]]` that precedes it: move it below that table")
            }
            _ => format!("write `[[{key}]]`, with two brackets, for each table"),
        };
        KeyTwice { misspelt, help: Some(help), ..twice }
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        let keys = self.root?.keys;
        let inner = keys.iter().filter(|key| matches!(key.nested, Nested::Table(_)));
        let inner = inner.flat_map(|key| key.nested.tables()).flat_map(|table| table.keys);
        keys.iter().chain(inner).find(|key| key.name == name)
    }

    fn first_header(&self, key: &str, end: usize) -> Option<Range<usize>> {
        let before = self.text().get(..end)?;
        let mut at = 0;
        for line in before.split_inclusive('\n') {
            let header = without_comment(line.trim());
            let name = header.trim_start_matches('[').trim_end_matches(']');
            let first = name.rsplit_once('.').map_or(name, |(_, last)| last).trim();
            let table = name.split('.').next().unwrap_or_default().trim();
            if header.starts_with('[') && (first == key || table == key) {
                let start = at + (line.len() - line.trim_start().len());
                return Some(start..start + header.len());
            }
            at += line.len();
        }
        None
    }

    fn header_before(&self, end: usize) -> Option<Range<usize>> {
        let before = self.text().get(..end)?;
        let mut start = before.len();
        before.split_inclusive('\n').rev().find_map(|line| {
            start -= line.len();
            let at = start + (line.len() - line.trim_start().len());
            let header = without_comment(line.trim());
            header.starts_with('[').then(|| at..at + header.len())
        })
    }

    fn next_header(&self, from: usize) -> usize {
        let rest = self.text().get(from..).unwrap_or_default();
        rest.find("\n[").map_or(self.text().len(), |found| from + found + 1)
    }

    fn line_of(&self, at: usize) -> Range<usize> {
        let text = self.text();
        let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end);
        let end = text.get(start..end).map_or(end, |line| start + line.trim_end_matches('\r').len());
        start..end.max(start)
    }

    fn value_start(&self, at: usize) -> usize {
        let line = self.line_of(at);
        let before = self.text().get(line.start..at).unwrap_or_default();
        let Some(equals) = before.find('=') else { return at };
        let start = line.start + equals + 1;
        let spaces = self.text().get(start..at).map_or(0, |text| text.len() - text.trim_start().len());
        start + spaces
    }

    fn string_before(&self, range: &Range<usize>) -> Option<char> {
        self.text().get(..range.start)?.chars().next_back().filter(|c| matches!(c, '"' | '\''))
    }
}

const fn is_curly(c: char) -> bool {
    matches!(c, '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2018}' | '\u{2019}' | '\u{201a}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_plain(text: &str) -> bool {
    matches!(text, "true" | "false") || text.replace('_', "").parse::<f64>().is_ok()
}

fn without_comment(text: &str) -> &str {
    text.split('#').next().unwrap_or_default().trim_end()
}

fn begins_something(line: &str) -> bool {
    let line = without_comment(line).trim();
    let is_name = |name: &str| !name.is_empty() && name.trim().chars().all(is_key);
    if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        let inner = header.strip_prefix('[').and_then(|header| header.strip_suffix(']')).unwrap_or(header);
        return is_name(inner) && inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    }
    line.split_once('=').is_some_and(|(key, _)| is_name(key))
}

fn open_at(text: &str, end: usize) -> Vec<Unclosed> {
    let text = text.get(..end).unwrap_or(text);
    let mut open: Vec<Unclosed> = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| rest.starts_with(quotes));
        if let Some(quotes) = quotes {
            match string_length(rest, quotes) {
                Some(length) => at += length,
                None if quotes.len() == 1 && rest.contains('\n') => {
                    at += rest.find('\n').unwrap_or(rest.len());
                }
                None => {
                    open.push(Unclosed { at, opener: quotes });
                    return open;
                }
            }
            continue;
        }
        let mut step = 1;
        match rest.as_bytes().first() {
            Some(b'#') => step = rest.find('\n').unwrap_or(rest.len()),
            Some(b'[') => open.push(Unclosed { at, opener: "[" }),
            Some(b'{') => open.push(Unclosed { at, opener: "{" }),
            Some(b']' | b'}') => {
                open.pop();
            }
            _ => step = rest.chars().next().map_or(1, char::len_utf8),
        }
        at += step;
    }
    open
}

/// Includes the quotes; `None` if unclosed.
fn string_length(rest: &str, quotes: &str) -> Option<usize> {
    let mut at = quotes.len();
    loop {
        let tail = rest.get(at..)?;
        if tail.starts_with(quotes) {
            // Two quotes may precede a multi-line delimiter.
            let more = tail.get(quotes.len()..).unwrap_or_default();
            let quote = quotes.get(..1).unwrap_or_default();
            let extra = if quotes.len() == 3 { more.len() - more.trim_start_matches(quote).len() } else { 0 };
            return Some(at + quotes.len() + extra.min(2));
        }
        let next = tail.chars().next()?;
        at += match next {
            '\n' if quotes.len() == 1 => return None,
            '\\' if quotes.starts_with('"') => {
                1 + tail.get(1..).and_then(|tail| tail.chars().next()).map_or(0, char::len_utf8)
            }
            next => next.len_utf8(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Colour, render};

    fn explained(text: &str) -> String {
        let source = Source::new("m.toml", text);
        let (_, errors) = toml::de::DeTable::parse_recoverable(&source.text);
        render(&explain(&source, Some(&crate::manifest::keys::ROOT), &errors), Colour::Plain)
    }

    #[test]
    fn what_is_open() {
        let open = |text: &str| {
            let all = open_at(text, text.len());
            all.into_iter().map(|open| (open.at, open.opener)).collect::<Vec<_>>()
        };
        assert_eq!(open("[a]\nb = [\"]\", ']' # ]\n"), [(8, "[")]);
        assert_eq!(open("a = { b = [1"), [(4, "{"), (10, "[")]);
        assert_eq!(open("a = \"\"\"x\n\"\"\"\"\nb = '''y"), [(18, "'''")]);
        assert_eq!(open("a = \"\\\"x"), [(4, "\"")]);
        assert_eq!(open("a = \"x\nb = ["), [(11, "[")]);
        assert_eq!(open("ä = ]]"), []);
    }

    /// Quadratic work would take minutes.
    #[test]
    fn a_line_of_brackets_is_read_once() {
        let brackets = "[".repeat(300_000);
        let report = explained(&format!("[plugins]\na = '{brackets}'\n[plugin]\n[plugin]\n"));
        assert!(report.contains("`plugin`"), "{}", report.len());
    }

    #[test]
    fn words_without_quotes() {
        let values = [
            "norm",
            "i64[]",
            "inf_norm",
            "-numel(y)",
            "numel(y) # all",
            "x.shape[0]",
            "2 * n",
            "[i64, n]",
            "[f32, f16]",
            "True",
            "1.0.0",
            "256u",
            "f == \"a\"",
            "",
            "256;",
            "256 // all",
            "\u{201c}a\u{201d}",
            "[ceil_div(numel(x), 256)]",
            "[ceil_div(numel(x), 256), 1] # all",
            "[ceil_div(numel(x), 256]",
            "{ b = max(1, n) }",
            "[ceil_div(numel(x), \"a\")]",
        ];
        let all: Vec<String> = values.iter().map(|value| explained(&format!("a = {value}\n"))).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn what_is_not_closed() {
        let texts = [
            "a = [\"x\", \"y\"\n\n[b]\nc = 1\n",
            "a = [\"x\",\n[[b]]\nc = 1\n",
            "a = [\"x\", \"y\"\nb = [1]\n",
            "a = [\n  \"x\",\n  \"y\"\n",
            "a = { b = 1\n[c]\nd = 1\n",
            "a = [\"x\", \"y\n[b]\n",
            "a = \"x\nb = 1\n",
            "a = 'x\n",
            "a = \"\"\"x\nb = 1\n",
            "[a\nb = 1\n",
            "[[a]\nb = 1\n",
        ];
        insta::assert_snapshot!(texts.map(explained).join("\n"));
    }

    #[test]
    fn what_other_languages_write() {
        let texts = [
            "a = \"m == \"tanh\"\"\n",
            "a = [\"b\", \"m == \"tanh\"\"]\n",
            "a = \"x\";\n",
            "a = \"x\" // all\n",
            "// all\na = 1\n",
            "a: 1\n",
            "a == 1\n",
            "\u{201c}a\u{201d} = 1\n",
            "a = [\"x\" \"y\"]\n",
        ];
        insta::assert_snapshot!(texts.map(explained).join("\n"));
    }

    #[test]
    fn what_is_given_twice() {
        let texts = [
            "a = 1\nb = 2\na = 3\nb = 4\n",
            "[inputs]\nname = \"x\"\n\n[inputs]\nname = \"y\"\n",
            "[inputs] # first\nname = \"x\"\n[[inputs]]\nname = \"y\"\n",
            "[launches.args]\nx = \"x\"\n\n[[launches]]\nblock = [1]\n",
            "[[launch]] # misspelt\n\n[launches.args]\nx = \"x\"\n\n[[launches]]\nblock = [1]\n",
            "[types]\nT = 1\n[types]\nT = 2\n",
        ];
        insta::assert_snapshot!(texts.map(explained).join("\n"));
    }
}
