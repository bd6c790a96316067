//! Maps parts of TOML strings to the file; the parser reports only whole literals.

use std::ops::Range;

/// String with its source range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Value.
    pub value: String,
    /// Literal's range, including quotes.
    pub range: Range<usize>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    value: Range<usize>,
    file: Range<usize>,
    escaped: bool,
}

impl Text {
    pub(crate) fn new(file: &str, range: Range<usize>, value: String) -> Text {
        let pieces = file
            .get(range.clone())
            .and_then(|literal| decode(literal, range.start))
            .filter(|(decoded, _)| *decoded == value)
            .map(|(_, pieces)| pieces)
            .unwrap_or_default();
        Text { value, range, pieces }
    }

    /// Replaces a value of another type.
    pub fn stands_for(range: Range<usize>, value: String) -> Text {
        Text::new("", range, value)
    }

    /// Returns a part's range in the file, else the literal's.
    #[must_use]
    pub fn locate(&self, part: Range<usize>) -> Range<usize> {
        let Some(last) = self.pieces.last() else { return self.range.clone() };
        let boundary =
            |byte: usize, is_end: usize| match self.pieces.iter().find(|it| it.value.contains(&byte)) {
                Some(piece) if piece.escaped => [piece.file.start, piece.file.end][is_end],
                Some(piece) => piece.file.start + (byte + is_end - piece.value.start),
                None => last.file.end,
            };
        let start = boundary(part.start, 0);
        let end = if part.is_empty() { start } else { boundary(part.end - 1, 1) };
        start..end.max(start)
    }
}

impl From<&Text> for Range<usize> {
    fn from(text: &Text) -> Range<usize> {
        text.range.clone()
    }
}

/// Callers compare with the TOML parser's value.
fn decode(literal: &str, offset: usize) -> Option<(String, Vec<Piece>)> {
    let is_quoted = |quotes: &&str| literal.starts_with(*quotes) && literal.len() >= 2 * quotes.len();
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(is_quoted)?;
    let (escapes, multi_line) = (quotes.starts_with('"'), quotes.len() == 3);
    let body = literal.strip_prefix(quotes)?.strip_suffix(quotes)?;
    let mut position = offset + quotes.len();
    let mut rest = body;
    if multi_line {
        // The value omits a line break after opening quotes.
        let trimmed = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        position += rest.len() - trimmed.len();
        rest = trimmed;
    }
    let mut value = String::new();
    let mut pieces = Vec::new();
    loop {
        let verbatim = if escapes { rest.find('\\').unwrap_or(rest.len()) } else { rest.len() };
        let (plain, tail) = rest.split_at(verbatim);
        if !plain.is_empty() || tail.is_empty() {
            let from = value.len();
            value.push_str(plain);
            let file = position..position + plain.len();
            pieces.push(Piece { value: from..value.len(), file, escaped: false });
        }
        position += plain.len();
        let Some(escape) = tail.strip_prefix('\\') else { return Some((value, pieces)) };
        let (decoded, length) = unescape(escape, multi_line)?;
        let from = value.len();
        value.extend(decoded);
        let file = position..position + 1 + length;
        if decoded.is_some() {
            pieces.push(Piece { value: from..value.len(), file: file.clone(), escaped: true });
        }
        position = file.end;
        rest = escape.get(length..)?;
    }
}

/// Returns the character (`None`: an escaped line break) and its bytes.
fn unescape(escape: &str, multi_line: bool) -> Option<(Option<char>, usize)> {
    let simple = |c: char| Some((Some(c), 1));
    let hex = |digits: usize| {
        let number = u32::from_str_radix(escape.get(1..=digits)?, 16).ok()?;
        Some((Some(char::from_u32(number)?), digits + 1))
    };
    match escape.chars().next()? {
        'b' => simple('\u{8}'),
        't' => simple('\t'),
        'n' => simple('\n'),
        'f' => simple('\u{c}'),
        'r' => simple('\r'),
        'e' => simple('\u{1b}'),
        '"' => simple('"'),
        '\\' => simple('\\'),
        'x' => hex(2),
        'u' => hex(4),
        'U' => hex(8),
        ' ' | '\t' | '\r' | '\n' if multi_line => {
            let trimmed = escape.trim_start_matches([' ', '\t', '\r', '\n']);
            Some((None, escape.len() - trimmed.len()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(literal: &str, part: &str) -> String {
        let file = format!("x = {literal}\n");
        let table = toml::de::DeTable::parse(&file).expect("valid TOML");
        let value = table.get_ref().get("x").expect("the key exists");
        let text = Text::new(&file, value.span(), value.get_ref().as_str().expect("a string").to_owned());
        let start = text.value.find(part).expect("the part is in the value");
        file[text.locate(start..start + part.len())].to_owned()
    }

    #[test]
    fn plain_strings() {
        assert_eq!(behind("\"abc def\"", "def"), "def");
        assert_eq!(behind("'a\\c def'", "def"), "def");
        assert_eq!(behind("\"größe + x\"", "x"), "x");
    }

    #[test]
    fn escapes() {
        assert_eq!(behind(r#""a\tb c""#, "b"), "b");
        assert_eq!(behind(r#""a\tb c""#, "\t"), r"\t");
        assert_eq!(behind(r#""\u00e4\\ + y""#, "y"), "y");
        assert_eq!(behind(r#""\U0001F980 z""#, "\u{1f980} z"), r"\U0001F980 z");
    }

    #[test]
    fn several_lines() {
        assert_eq!(behind("\"\"\"\na +\n  b\"\"\"", "b"), "b");
        assert_eq!(behind("\"\"\"\r\na + \\\r\n   b \\\n\n c\"\"\"", "b"), "b");
        assert_eq!(behind("'''\na +\r\n b'''", "b"), "b");
        assert_eq!(behind("\"\"\"a\"\"\"\"", "a\""), "a\"");
    }

    #[test]
    fn the_ends() {
        let file = "x = \"ab\"";
        let text = Text::new(file, 4..8, "ab".to_owned());
        assert_eq!(text.locate(2..2), 7..7);
        assert_eq!(text.locate(0..2), 5..7);
        assert_eq!(text.locate(5..9), 7..7);
        let empty = Text::new("x = \"\"", 4..6, String::new());
        assert_eq!(empty.locate(0..0), 5..5);
    }

    #[test]
    fn a_literal_that_says_something_else_is_shown_whole() {
        let text = Text::new("x = \"ab\"", 4..8, "other".to_owned());
        assert_eq!(text.locate(0..2), 4..8);
    }
}
