use super::error::ExprError;
use super::foreign;
use super::syntax::KEYWORDS;
use crate::error::Span;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    /// Up to 2^64 - 1, for `-9223372036854775808`.
    Int(u64),
    Float(f64),
    Str(String),
    Name(&'t str),
    Symbol(&'static str),
    End,
}

/// Longest first.
const PUNCTUATION: [&str; 18] =
    ["//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", ",", "."];

pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Span)>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, text.len()..text.len()));
            return Ok(tokens);
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = if first.is_ascii_digit() {
            number(rest, at)?
        } else if first == '_' || first.is_alphabetic() {
            name(rest)
        } else if first == '"' || first == '\'' {
            string(rest, at, first, &tokens)?
        } else {
            punctuation(rest, at, first).map_err(|error| after_lambda(error, &tokens))?
        };
        tokens.push((token, at..at + length));
        at += length;
    }
}

/// Adds a label: an earlier string may lack its closing quote.
fn after_strings(error: ExprError, before: &[(Token<'_>, Span)]) -> ExprError {
    let mut strings = before.iter().filter(|(token, _)| matches!(token, Token::Str(_))).map(|(_, span)| span);
    match (strings.next(), strings.next_back()) {
        (Some(only), None) => error.also(only.clone(), "or this string should end earlier"),
        (Some(first), Some(last)) => {
            error.also(first.start..last.end, "or one of these strings should end earlier")
        }
        _ => error,
    }
}

fn name(rest: &str) -> (Token<'_>, usize) {
    let length = rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(rest.len());
    let name = rest.get(..length).unwrap_or_default();
    let token = match KEYWORDS.into_iter().find(|&keyword| keyword == name) {
        Some("inf") => Token::Float(f64::INFINITY),
        Some("nan") => Token::Float(f64::NAN),
        Some(keyword) => Token::Symbol(keyword),
        None => Token::Name(name),
    };
    (token, length)
}

fn punctuation(rest: &str, at: usize, first: char) -> Result<(Token<'_>, usize), ExprError> {
    // `!=` and `==` are supported; `!`, `=` and `**` are not.
    let ours = PUNCTUATION.into_iter().find(|symbol| rest.starts_with(symbol));
    let foreign = foreign::operator(rest);
    match (ours, foreign) {
        (Some(symbol), None) => Ok((Token::Symbol(symbol), symbol.len())),
        (Some(symbol), Some((other, _))) if symbol.len() >= other.len() => {
            Ok((Token::Symbol(symbol), symbol.len()))
        }
        (_, Some((symbol, help))) => Err(ExprError::syntax(
            at..at + symbol.len(),
            format!("unexpected `{symbol}`"),
            "not supported in expressions",
        )
        .help(help)),
        _ => Err(ExprError::syntax(
            at..at + first.len_utf8(),
            format!("unexpected `{}`", first.escape_debug()),
            "not supported in expressions",
        )),
    }
}

/// Reports a preceding `lambda` instead of the error at its `:`.
#[cold]
fn after_lambda(error: ExprError, before: &[(Token<'_>, Span)]) -> ExprError {
    let lambda = before.iter().find(|(token, _)| matches!(token, Token::Name("lambda")));
    match lambda {
        Some((_, span)) => {
            ExprError::syntax(span.clone(), "unexpected `lambda`", "not supported in expressions")
                .help("use a comprehension for each element, or declare a function in `[functions]`")
        }
        None => error,
    }
}

fn number(rest: &str, at: usize) -> Result<(Token<'_>, usize), ExprError> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count()
    };
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut length = digits(0);
    let mut float = false;
    if bytes.get(length) == Some(&b'.') && digit(length + 1) {
        float = true;
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        if digit(length + 1 + sign) {
            float = true;
            length += 1 + sign + digits(length + 1 + sign);
        }
    }
    let tail = rest.get(length..).unwrap_or_default();
    if let Some(next) = tail.chars().next().filter(|c| c.is_alphanumeric()) {
        let end = tail.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(tail.len());
        return Err(ExprError::syntax(
            at..at + length + end,
            "unexpected letters after a number".to_owned(),
            format!("unexpected `{next}`"),
        )
        .help(foreign::number(rest.get(..length + end).unwrap_or_default())));
    }
    let text: String = rest.get(..length).unwrap_or_default().chars().filter(|&c| c != '_').collect();
    let span = at..at + length;
    if float {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok((Token::Float(value), length)),
            _ => Err(ExprError::syntax(span, format!("`{text}` does not fit in a float"), "too large")
                .help("the largest float is about 1.8e308; infinity is `inf`")),
        }
    } else {
        match text.parse::<u64>() {
            Ok(value) => Ok((Token::Int(value), length)),
            Err(_) => Err(too_large(span, &text)),
        }
    }
}

pub(super) fn too_large(span: Span, text: &str) -> ExprError {
    ExprError::syntax(span, format!("`{text}` does not fit in an integer"), "too large")
        .help("integers have 64 bits and a sign: at most 9223372036854775807")
}

fn string<'t>(
    rest: &str,
    at: usize,
    quote: char,
    before: &[(Token<'t>, Span)],
) -> Result<(Token<'t>, usize), ExprError> {
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((offset, c)) = chars.next() {
        match c {
            '\n' => break,
            _ if c == quote => return Ok((Token::Str(value), offset + 1)),
            '\\' => {
                let escape = chars.next();
                value.push(match escape.map(|(_, c)| c) {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(c @ ('\\' | '\'' | '"')) => c,
                    Some(c) => {
                        let span = at + offset..at + offset + 1 + c.len_utf8();
                        let message = format!("unknown escape `\\{}`", c.escape_debug());
                        return Err(ExprError::syntax(span, message, "not an escape")
                            .help("escapes are `\\n`, `\\r`, `\\t`, `\\\\`, `\\'` and `\\\"`"));
                    }
                    None => break,
                });
            }
            c => value.push(c),
        }
    }
    let length = rest.find('\n').unwrap_or(rest.len());
    let error = ExprError::syntax(at..at + length, "unclosed string", "opened here")
        .help(format!("close it with `{quote}`; write a line break inside as `\\n`"));
    Err(after_strings(error, before))
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};

    fn kinds(text: &str) -> Vec<Token<'_>> {
        tokens(text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn numbers_names_and_symbols() {
        use Token::{End, Float, Int, Name, Symbol};
        assert_eq!(
            kinds("1_000 // x1"),
            [Int(1000), Symbol("//"), Name("x1"), End],
            "separators and two-letter operators"
        );
        assert_eq!(kinds("1.5e-3"), [Float(0.0015), End]);
        assert_eq!(kinds("1e3"), [Float(1000.0), End]);
        assert_eq!(kinds("not nota"), [Symbol("not"), Name("nota"), End]);
        assert_eq!(kinds("a!=b"), [Name("a"), Symbol("!="), Name("b"), End]);
        assert_eq!(kinds("a<=b==c"), [Name("a"), Symbol("<="), Name("b"), Symbol("=="), Name("c"), End]);
        assert_eq!(kinds("18446744073709551615"), [Int(u64::MAX), End]);
    }

    #[test]
    fn strings_have_two_quotes_and_escapes() {
        assert_eq!(
            kinds(r#"'a"b' "c'd" "\n\\\"""#)[..3],
            [Token::Str("a\"b".into()), Token::Str("c'd".into()), Token::Str("\n\\\"".into())]
        );
    }

    #[test]
    fn spans_are_bytes() {
        let spans: Vec<_> = tokens("é + 'ü' x").unwrap().into_iter().map(|(_, span)| span).collect();
        assert_eq!(spans, [0..2, 3..4, 5..9, 10..11, 11..11]);
    }

    #[test]
    fn mistakes_are_placed() {
        for (text, span) in [
            ("1 + 5x", 4..6),
            ("99999999999999999999", 0..20),
            ("1e999", 0..5),
            ("a && b", 2..4),
            ("a = b", 2..3),
            ("2 ** 3", 2..4),
            ("a + 'bc", 4..7),
            ("'\\q'", 1..3),
            ("a $ b", 2..3),
            ("a € b", 2..5),
        ] {
            assert_eq!(tokens(text).unwrap_err().span, span, "{text}");
        }
    }

    #[test]
    fn a_missing_quote_may_be_missing_before() {
        let also = |text: &str| tokens(text).unwrap_err().also.map(|(span, _)| span);
        assert_eq!(also("a == 'b"), None);
        assert_eq!(also("a == 'b or a == 'c'"), Some(5..17));
        assert_eq!(also("a == 'b or a == 'c' or a == 'd'"), Some(5..29));
        assert_eq!(also("'a' + 'b\\q'"), None);
    }
}
