//! Instantiates kernel names: `circ_pad<T, VEC>` becomes `circ_pad<float, 4>`. Parses just enough C++ for template arguments.

use std::ops::Range;

use cubinder_cuda_text::cuda::{TokenKind, lex, word};
use cubinder_expr::Value;

use super::errors::{
    BadArgumentCharacter, NoTemplateArgument, NotAKernelName, UnbalancedArguments, UnclosedArguments,
};
use super::rows::Row;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::toml_reader::{found, is_identifier};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) used: Vec<String>,
}

pub(super) fn instantiate(
    text: &str,
    row: &Row,
    span: &dyn Fn(Range<usize>) -> Span,
) -> Result<Kernel, Box<Diagnostic>> {
    let end = text.trim_end().len();
    let open = text.find('<').unwrap_or(text.len());
    if open < end && !text.trim_end().ends_with('>') {
        return Err(boxed(UnclosedArguments { span: span(open..end) }));
    }
    let base = text[..open].trim();
    if !base.strip_prefix("::").unwrap_or(base).split("::").all(is_identifier) {
        let end = text[..open].trim_end().len().max(usize::from(!text.is_empty()));
        return Err(boxed(NotAKernelName { span: span(0..end), found: found(base) }));
    }
    let mut kernel = Kernel { name: base.to_owned(), used: Vec::new() };
    let arguments = text.get(open..end).unwrap_or_default();
    let span = |range: Range<usize>| span(open + range.start..open + range.end);
    check_characters(arguments, &span)?;
    check_nesting(arguments, &span)?;
    let mut copied = 0;
    for token in lex(arguments).tokens.iter().filter(|token| token.kind == TokenKind::Word) {
        let (name, range) = (word(arguments, Some(token)), token.range.clone());
        let is_qualified = arguments[..range.start].trim_end().ends_with("::")
            || arguments[range.end..].trim_start().starts_with("::");
        let Some(replacement) = (if is_qualified { None } else { replacement(name, row) }) else { continue };
        let replacement = replacement.map_err(|value| {
            let (kind, span) = (value.kind_name(), span(range.clone()));
            boxed(NoTemplateArgument { name, kind, value, span })
        })?;
        kernel.name.push_str(&arguments[copied..range.start]);
        kernel.name.push_str(&replacement);
        kernel.used.push(name.to_owned());
        copied = range.end;
    }
    kernel.name.push_str(&arguments[copied..]);
    Ok(kernel)
}

fn boxed(error: impl Into<Diagnostic>) -> Box<Diagnostic> {
    Box::new(error.into())
}

/// Value or text; `None` for C++ names.
fn replacement<'r>(name: &str, row: &'r Row) -> Option<Result<String, &'r Value>> {
    if let Some((_, ty)) = row.types.iter().find(|(parameter, _)| parameter == name) {
        return Some(Ok(ty.cuda_name().to_owned()));
    }
    if let Some((_, format)) = row.formats.iter().find(|(parameter, _)| parameter == name) {
        return Some(Ok(format!("cubinder::format::{}", format.name())));
    }
    row.values().find(|(constant, _)| *constant == name).map(|(_, value)| match value {
        Value::Int(value) => Ok(integer(*value)),
        Value::Bool(value) => Ok(value.to_string()),
        value => Err(value),
    })
}

/// One operand: no decrement in `-LOW`; `i64::MIN` has no literal.
fn integer(value: i64) -> String {
    const SECOND_LEAST: i64 = i64::MIN + 1;
    match value {
        i64::MIN => format!("({SECOND_LEAST} - 1)"),
        SECOND_LEAST..0 => format!("({value})"),
        _ => value.to_string(),
    }
}

fn check_characters(arguments: &str, span: &dyn Fn(Range<usize>) -> Span) -> Result<(), Box<Diagnostic>> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_<>:,()+-*/%&|!=.?^~' ".contains(c);
    match arguments.char_indices().find(|&(_, c)| !allowed(c)) {
        None => Ok(()),
        Some((at, c)) => {
            let span = span(at..at + c.len_utf8());
            Err(boxed(BadArgumentCharacter { character: c.escape_default().to_string(), span }))
        }
    }
}

fn check_nesting(arguments: &str, span: &dyn Fn(Range<usize>) -> Span) -> Result<(), Box<Diagnostic>> {
    let unbalanced = |end: usize, problem| Err(boxed(UnbalancedArguments { span: span(0..end), problem }));
    let mut open: Vec<u8> = Vec::new();
    for (at, byte) in arguments.bytes().enumerate() {
        let in_round = open.last() == Some(&b'(');
        let matches = match byte {
            b'<' if in_round => true,
            b'(' | b'<' => {
                open.push(byte);
                true
            }
            b')' => open.pop() == Some(b'('),
            b'>' if !in_round => open.pop() == Some(b'<') && (!open.is_empty() || at + 1 == arguments.len()),
            _ => true,
        };
        if !matches {
            return unbalanced(at + 1, "unmatched bracket before this");
        }
    }
    if open.is_empty() { Ok(()) } else { unbalanced(arguments.len(), "a bracket is not closed") }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::DataType;

    use super::*;
    use crate::diagnostic::Source;

    fn row() -> Row {
        Row::for_test(
            &[("T", DataType::F16)],
            &[
                ("VEC", Value::Int(4)),
                ("LOW", Value::Int(i64::MIN)),
                ("BELOW", Value::Int(-3)),
                ("FAST", Value::Bool(true)),
            ],
        )
    }

    fn kernel(text: &str) -> Result<Kernel, (String, Range<usize>)> {
        let source = Source::new("m.toml", text);
        let kernel = instantiate(text, &row(), &|range| Span::new(&source, range));
        kernel.map_err(|error| (error.message, error.primary.expect("it has a place").span.range))
    }

    fn name(text: &str) -> String {
        kernel(text).expect("a kernel name").name
    }

    fn rejected(text: &str) -> (String, Range<usize>) {
        kernel(text).expect_err("an invalid kernel name")
    }

    #[test]
    fn replaces_whole_names_only() {
        assert_eq!(name("f"), "f");
        assert_eq!(name(" a::b::f "), "a::b::f");
        assert_eq!(name("f<T, VEC>"), "f<__half, 4>");
        assert_eq!(name("f< TT, T2, 4T, VECS, T >"), "f< TT, T2, 4T, VECS, __half >");
        assert_eq!(
            name("f<pair<T, VEC * 2>, (VEC < 3), (VEC > 3)>"),
            "f<pair<__half, 4 * 2>, (4 < 3), (4 > 3)>"
        );
        assert_eq!(name("f<T::T, ns::VEC, FAST>"), "f<T::T, ns::VEC, true>");
        assert_eq!(name("f<LOW>"), "f<(-9223372036854775807 - 1)>");
        assert_eq!(name("f<-BELOW, 4-BELOW, BELOW, -VEC>"), "f<-(-3), 4-(-3), (-3), -4>");
    }

    #[test]
    fn remembers_what_it_used() {
        let used = kernel("f<T, int, VEC, VEC>").expect("a kernel name").used;
        assert_eq!(used, ["T", "VEC", "VEC"]);
    }

    #[test]
    fn refuses_what_could_end_the_argument_list() {
        let unbalanced = "mismatched brackets in the template arguments";
        assert_eq!(rejected("f<T>>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(rejected("f<T>, g<T>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(rejected("f<(T>"), (unbalanced.to_owned(), 1..5));
        assert_eq!(rejected("f<T)>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(rejected("f<T").1, 1..3);
        assert_eq!(rejected("f<T\u{e9}>").1, 3..5);
        assert_eq!(rejected("f<T> g").0, "unclosed template arguments");
        assert_eq!(rejected("f g<T>").0, "`kernel` must be the name of a kernel");
        assert_eq!(rejected("").1, 0..0);
    }

    #[test]
    fn any_text_is_answered() {
        proptest::proptest!(|(text in "[a-zT<>(): ,é0-9]{0,24}")| {
            if let Err((_, range)) = kernel(&text) {
                proptest::prop_assert!(text.get(range).is_some());
            }
        });
    }
}
