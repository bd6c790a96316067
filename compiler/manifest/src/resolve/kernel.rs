//! The kernel's name with its template arguments: `circ_pad<T, VEC>` becomes `circ_pad<float, 4>`.
//!
//! Reads just enough of C++ to replace names and to keep what is no template argument out of the translation unit.

use std::ops::Range;

use cubinder_expr::Value;

use super::rows::Row;

/// A mistake in the kernel's name: bytes of the text, message, label, help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelError {
    pub(super) range: Range<usize>,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
}

/// The kernel as C++ names it for a row, and which of the manifest's names it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) used: Vec<String>,
}

/// Replaces type and format parameters, constants and attributes that the row is compiled for among the template arguments.
pub(super) fn instantiate(text: &str, row: &Row) -> Result<Kernel, KernelError> {
    let (base, arguments) = split(text)?;
    check_base(text, base)?;
    let mut kernel = Kernel { name: base.trim().to_owned(), used: Vec::new() };
    let Some(arguments) = arguments else { return Ok(kernel) };
    check_characters(text, &arguments)?;
    check_nesting(text, &arguments)?;
    let mut position = arguments.start;
    for word in words(text, &arguments) {
        let name = text.get(word.clone()).unwrap_or_default();
        kernel.name.push_str(text.get(position..word.start).unwrap_or_default());
        position = word.end;
        match replacement(text, name, &word, row)? {
            Some(replacement) => {
                kernel.used.push(name.to_owned());
                kernel.name.push_str(&replacement);
            }
            None => kernel.name.push_str(name),
        }
    }
    kernel.name.push_str(text.get(position..arguments.end).unwrap_or_default());
    Ok(kernel)
}

/// What a name among the template arguments stands for; nothing where it is C++'s own.
fn replacement(
    text: &str,
    name: &str,
    word: &Range<usize>,
    row: &Row,
) -> Result<Option<String>, KernelError> {
    let qualified = text.get(..word.start).is_some_and(|before| before.trim_end().ends_with("::"))
        || text.get(word.end..).is_some_and(|after| after.trim_start().starts_with("::"));
    if qualified {
        return Ok(None);
    }
    if let Some((_, ty)) = row.types.iter().find(|(parameter, _)| parameter == name) {
        return Ok(Some(ty.cuda_name().to_owned()));
    }
    if let Some((_, format)) = row.formats.iter().find(|(parameter, _)| parameter == name) {
        return Ok(Some(format!("cubinder::format::{}", format.name())));
    }
    match row.values().find(|(constant, _)| *constant == name) {
        None => Ok(None),
        Some((_, Value::Int(value))) => Ok(Some(integer(*value))),
        Some((_, Value::Bool(value))) => Ok(Some(value.to_string())),
        Some((_, value)) => Err(KernelError {
            range: word.clone(),
            message: format!("the constant `{name}` cannot be a template argument"),
            label: format!("this is a {}: {value}", value.kind_name()),
            help: Some(format!("use `manifest::{name}` in the kernel, or pass it in `[launches.args]`")),
        }),
    }
}

/// An integer as one operand of C++, so that `-LOW` does not become a decrement. C++ has no literal for the least one.
fn integer(value: i64) -> String {
    const SECOND_LEAST: i64 = i64::MIN + 1;
    match value {
        i64::MIN => format!("({SECOND_LEAST} - 1)"),
        SECOND_LEAST..0 => format!("({value})"),
        _ => value.to_string(),
    }
}

/// The name before the template arguments and the range of these, angle brackets included.
fn split(text: &str) -> Result<(&str, Option<Range<usize>>), KernelError> {
    let Some(open) = text.find('<') else { return Ok((text, None)) };
    let end = text.trim_end().len();
    let base = text.get(..open).unwrap_or_default();
    if text.trim_end().ends_with('>') {
        return Ok((base, Some(open..end)));
    }
    Err(KernelError {
        range: open..end,
        message: "the template arguments do not end".to_owned(),
        label: "expected `>` at the end".to_owned(),
        help: None,
    })
}

/// `name` or `outer::name`.
fn check_base(text: &str, base: &str) -> Result<(), KernelError> {
    let path = base.trim();
    let path = path.strip_prefix("::").unwrap_or(path);
    if path.split("::").all(crate::manifest::form::is_identifier) {
        return Ok(());
    }
    Err(KernelError {
        range: 0..base.trim_end().len().max(usize::from(!text.is_empty())),
        message: "`kernel` must be the name of a kernel".to_owned(),
        label: crate::manifest::form::found(base.trim()),
        help: Some("write it as C++ names it: `scale`, `detail::scale`, `scale<T, 4>`".to_owned()),
    })
}

fn check_characters(text: &str, arguments: &Range<usize>) -> Result<(), KernelError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_<>:,()+-*/%&|!=.?^~' ".contains(c);
    let body = text.get(arguments.clone()).unwrap_or_default();
    match body.char_indices().find(|&(_, c)| !allowed(c)) {
        None => Ok(()),
        Some((at, c)) => {
            let start = arguments.start + at;
            Err(KernelError {
                range: start..start + c.len_utf8(),
                message: format!("`{}` cannot stand in template arguments", c.escape_default()),
                label: String::new(),
                help: None,
            })
        }
    }
}

/// Round brackets close, and angle brackets outside of them: nothing can end the argument list early.
fn check_nesting(text: &str, arguments: &Range<usize>) -> Result<(), KernelError> {
    let body = text.get(arguments.clone()).unwrap_or_default();
    let mut open: Vec<u8> = Vec::new();
    for (at, byte) in body.bytes().enumerate() {
        let matches = match byte {
            b'(' => {
                open.push(byte);
                true
            }
            b'<' if open.last() != Some(&b'(') => {
                open.push(byte);
                true
            }
            b')' => open.pop() == Some(b'('),
            // The last bracket closes the list; before that it must not be closed.
            b'>' if open.last() != Some(&b'(') => {
                open.pop() == Some(b'<') && (!open.is_empty() || at + 1 == body.len())
            }
            _ => true,
        };
        if !matches {
            // What is missing or too much can be anywhere before.
            return Err(unbalanced(
                arguments.start..arguments.start + at + 1,
                "up to here one has no partner",
            ));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unbalanced(arguments.clone(), "one is never closed")) }
}

fn unbalanced(range: Range<usize>, label: &str) -> KernelError {
    KernelError {
        range,
        message: "the brackets of the template arguments do not match".to_owned(),
        label: label.to_owned(),
        help: None,
    }
}

/// The ranges of the identifiers; digits begin numbers, whose letters (`4u`, `0xff`) are none.
fn words(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start: Option<usize> = None;
    let body = text.get(range.clone()).unwrap_or_default();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    for (at, byte) in body.bytes().enumerate() {
        match start {
            None if is_word(byte) => start = Some(at),
            Some(from) if !is_word(byte) => {
                words.push(range.start + from..range.start + at);
                start = None;
            }
            _ => {}
        }
    }
    words.retain(|word| !text.as_bytes().get(word.start).is_some_and(u8::is_ascii_digit));
    words
}

#[cfg(test)]
mod tests {
    use cubinder_expr::DataType;

    use super::*;

    fn row() -> Row {
        Row::of(
            &[("T", DataType::F16)],
            &[
                ("VEC", Value::Int(4)),
                ("LOW", Value::Int(i64::MIN)),
                ("BELOW", Value::Int(-3)),
                ("FAST", Value::Bool(true)),
            ],
        )
    }

    fn name(text: &str) -> String {
        instantiate(text, &row()).expect("it is a kernel").name
    }

    fn mistake(text: &str) -> (String, Range<usize>) {
        let error = instantiate(text, &row()).expect_err("it is no kernel");
        (error.message, error.range)
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
        let used = instantiate("f<T, int, VEC, VEC>", &row()).expect("it is a kernel").used;
        assert_eq!(used, ["T", "VEC", "VEC"]);
    }

    #[test]
    fn refuses_what_could_end_the_argument_list() {
        let unbalanced = "the brackets of the template arguments do not match";
        assert_eq!(mistake("f<T>>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(mistake("f<T>, g<T>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(mistake("f<(T>"), (unbalanced.to_owned(), 1..5));
        assert_eq!(mistake("f<T)>"), (unbalanced.to_owned(), 1..4));
        assert_eq!(mistake("f<T").1, 1..3);
        assert_eq!(mistake("f<T\u{e9}>").1, 3..5);
        assert_eq!(mistake("f<T> g").0, "the template arguments do not end");
        assert_eq!(mistake("f g<T>").0, "`kernel` must be the name of a kernel");
        assert_eq!(mistake("").1, 0..0);
    }

    #[test]
    fn any_text_is_answered() {
        proptest::proptest!(|(text in "[a-zT<>(): ,é0-9]{0,24}")| {
            if let Err(error) = instantiate(&text, &row()) {
                proptest::prop_assert!(text.get(error.range).is_some());
            }
        });
    }
}
