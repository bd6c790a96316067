//! Tokenizes C++ and preprocessor lines in one pass, without comments. Must not decide which parts are compiled.

use std::ops::Range;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Name or keyword.
    Word,
    /// Number.
    Number,
    /// Quoted string or character.
    Quoted,
    /// `::`, `...`, `->`, or another single character.
    Symbol,
}

/// Token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its byte range.
    pub range: Range<usize>,
}

/// Preprocessor line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Number of preceding tokens.
    pub before: usize,
    /// Tokens after `#`.
    pub tokens: Vec<Token>,
}

/// Returns a token's text, or "".
pub fn word<'t>(text: &'t str, token: Option<&Token>) -> &'t str {
    token.and_then(|token| text.get(token.range.clone())).unwrap_or_default()
}

pub(super) fn after_group(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match word(text, Some(token)) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

pub(super) fn after_angles(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_usize);
    while at < tokens.len() {
        match word(text, tokens.get(at)) {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "(" | "[" | "{" => {
                at = after_group(text, tokens, at)?;
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits at outer commas; `None` if brackets mismatch.
pub(super) fn at_commas<'l>(text: &str, tokens: &'l [Token]) -> Option<Vec<&'l [Token]>> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    if tokens.is_empty() {
        return Some(parts);
    }
    while at < tokens.len() {
        match word(text, tokens.get(at)) {
            "<" => at = after_angles(text, tokens, at)?,
            "(" | "[" | "{" => at = after_group(text, tokens, at)?,
            ">" | ")" | "]" | "}" => return None,
            "," => {
                parts.push(&tokens[start..at]);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    parts.push(&tokens[start..]);
    Some(parts)
}

/// Tokenized text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lexed {
    pub tokens: Vec<Token>,
    pub directives: Vec<Directive>,
    /// Whether unsupported: a name crosses lines, or a digraph occurs.
    pub is_odd: bool,
}

/// Tokenizes a text.
pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, begins_line: true, is_odd: false };
    let mut lexed = Lexed::default();
    while let Some(token) = lexer.next(false) {
        if lexer.begins_line && &text[token.range.clone()] == "#" {
            let tokens = std::iter::from_fn(|| lexer.next(true)).collect();
            lexed.directives.push(Directive { before: lexed.tokens.len(), tokens });
        } else {
            lexed.tokens.push(token);
            lexer.begins_line = false;
        }
    }
    lexed.is_odd = lexer.is_odd;
    lexed
}

struct Lexer<'t> {
    bytes: &'t [u8],
    at: usize,
    begins_line: bool,
    is_odd: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Returns the next token; `in_line` stops at the line's end.
    fn next(&mut self, in_line: bool) -> Option<Token> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.begins_line = true;
                    if in_line {
                        return None;
                    }
                }
                b'\\' if self.continuation(self.at).is_some() => self.join(),
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'/' if self.peek(1) == b'*' => self.block_comment(),
                byte if byte.is_ascii_whitespace() || byte == 0x0b => self.at += 1,
                _ => return Some(self.token(byte)),
            }
        }
        None
    }

    fn continuation(&self, at: usize) -> Option<usize> {
        let blanks =
            self.bytes[at + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
        let newline = at + 1 + blanks;
        (self.bytes.get(newline) == Some(&b'\n')).then_some(newline + 1)
    }

    fn join(&mut self) {
        let Some(next) = self.continuation(self.at) else { return };
        let blank = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        // A token may continue in the next line.
        self.is_odd |= !blank(before) && !blank(self.bytes.get(next));
        self.at = next;
    }

    fn line_comment(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => return,
                b'\\' => self.at = self.continuation(self.at).unwrap_or(self.at + 1),
                _ => self.at += 1,
            }
        }
    }

    fn block_comment(&mut self) {
        let body = self.bytes.get(self.at + 2..).unwrap_or_default();
        let length = body.windows(2).position(|pair| pair == b"*/");
        self.at = length.map_or(self.bytes.len(), |length| self.at + 2 + length + 2);
    }

    fn token(&mut self, first: u8) -> Token {
        let start = self.at;
        let kind = match first {
            b'"' | b'\'' => {
                self.quoted(first);
                TokenKind::Quoted
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            byte if is_word(byte) => self.word(),
            _ => self.symbol(first),
        };
        Token { kind, range: start..self.at }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte)) {
            self.at += 1;
        }
        let quote = self.peek(0);
        match &self.bytes[start..self.at] {
            b"R" | b"u8R" | b"uR" | b"UR" | b"LR" if quote == b'"' => self.raw(),
            b"u8" | b"u" | b"U" | b"L" if matches!(quote, b'"' | b'\'') => self.quoted(quote),
            _ => return TokenKind::Word,
        }
        TokenKind::Quoted
    }

    fn number(&mut self) -> TokenKind {
        let mut last = 0;
        while let Some(&byte) = self.bytes.get(self.at) {
            let goes_on = match byte {
                b'+' | b'-' => matches!(last, b'e' | b'E' | b'p' | b'P'),
                b'\'' => is_word(self.peek(1)),
                byte => is_word(byte) || byte == b'.',
            };
            if !goes_on {
                break;
            }
            last = byte;
            self.at += 1;
        }
        TokenKind::Number
    }

    /// Unclosed literals (disabled text) end with the line.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => return,
                b'\\' => self.at = self.continuation(self.at).unwrap_or(self.at + 2).min(self.bytes.len()),
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }

    fn raw(&mut self) {
        const LONGEST_DELIMITER: usize = 16;
        let body = &self.bytes[self.at + 1..];
        let open = body.iter().take(LONGEST_DELIMITER + 1).position(|&byte| byte == b'(');
        let Some(open) = open.filter(|&open| !body[..open].iter().any(|byte| b" \")\\\n\t".contains(byte)))
        else {
            return self.quoted(b'"');
        };
        let closing = [b")".as_slice(), &body[..open], b"\""].concat();
        let found = body[open..].windows(closing.len()).position(|bytes| bytes == closing);
        self.at = found.map_or(self.bytes.len(), |found| self.at + 1 + open + found + closing.len());
    }

    fn symbol(&mut self, first: u8) -> TokenKind {
        let length = match (first, self.peek(1), self.peek(2)) {
            (b':', b':', _) | (b'-', b'>', _) => 2,
            (b'.', b'.', b'.') => 3,
            (b'<', b':', b':') => 1,
            (b'<', b':' | b'%', _) | (b'%', b'>' | b':', _) => {
                self.is_odd = true;
                1
            }
            _ => 1,
        };
        self.at += length;
        TokenKind::Symbol
    }
}

/// Non-ASCII bytes count as letters.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        lex(text).tokens.into_iter().map(|token| &text[token.range]).collect()
    }

    #[test]
    fn comments_and_literals_hide_what_is_in_them() {
        assert_eq!(words("a // b \\\n c\nd /* e\n*/ f/*"), ["a", "d", "f"]);
        assert_eq!(words(r#"a "b // \" c" 'd' '"' e"#), ["a", r#""b // \" c""#, "'d'", "'\"'", "e"]);
        assert_eq!(
            words("R\"x( \" )\" )x\" u8R\"(a\n)\" R\"\\\" b"),
            ["R\"x( \" )\" )x\"", "u8R\"(a\n)\"", "R\"\\\" b"]
        );
        assert_eq!(words("'not closed\nb"), ["'not closed", "b"]);
    }

    #[test]
    fn numbers_names_and_symbols_are_told_apart() {
        assert_eq!(words("1'000u+.5e-3f 0x1p+2"), ["1'000u", "+", ".5e-3f", "0x1p+2"]);
        assert_eq!(words("a::b->c>>d...e"), ["a", "::", "b", "->", "c", ">", ">", "d", "...", "e"]);
        assert_eq!(words("größe L'x' Lx"), ["größe", "L'x'", "Lx"]);
    }

    #[test]
    fn preprocessor_lines_are_kept_apart() {
        let text = "a\n # define X(a) \\\n  b // c\nd # e\n#if 'x\nf";
        let lexed = lex(text);
        assert_eq!(words(text), ["a", "d", "#", "e", "f"]);
        let lines: Vec<(usize, Vec<&str>)> = lexed
            .directives
            .iter()
            .map(|line| (line.before, line.tokens.iter().map(|token| &text[token.range.clone()]).collect()))
            .collect();
        assert_eq!(lines, [(1, vec!["define", "X", "(", "a", ")", "b"]), (4, vec!["if", "'x"])]);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        assert!(lex("ker\\\nnel").is_odd && lex("a <% b").is_odd && lex("a<:1:>").is_odd);
        assert!(!lex("a \\\n b\\\n c").is_odd && !lex("f<::a::b>").is_odd);
    }

    #[test]
    fn any_text_has_tokens_in_order() {
        proptest::proptest!(|(text in "[a-zR\"'()/*\\\\\n#<%:>.0-9 é]{0,64}")| {
            let lexed = lex(&text);
            let mut end = 0;
            for token in &lexed.tokens {
                proptest::prop_assert!(token.range.start >= end && !token.range.is_empty());
                proptest::prop_assert!(text.get(token.range.clone()).is_some());
                end = token.range.end;
            }
            proptest::prop_assert!(lexed.directives.iter().all(|line| line.before <= lexed.tokens.len()));
        });
    }
}
