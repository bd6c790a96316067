//! Parses variable declarations as ptxas 12.9 and 13.0 do: `[.align N] [.v4] .type name[[N]...] [= ...] [,
//! name...]` (PTX ISA 9.0, "Variable Declarations").

use super::scan::{Tokens, integer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable<'t> {
    pub(super) name: &'t str,
    /// `None` if unsized (dynamic shared memory) or unknown.
    pub(super) bytes: Option<u32>,
}

/// Returns an empty list if invalid.
pub(super) fn variables(declaration: &str) -> Vec<Variable<'_>> {
    let mut tokens = Tokens::new(declaration);
    let mut found = Vec::new();
    let Some(Element { bytes, .. }) = element(&mut tokens) else { return found };
    while let Some(name) = tokens.word() {
        found.push(Variable { name, bytes: lengths(&mut tokens, bytes) });
        if tokens.peek() == Some("=") {
            value(&mut tokens);
        }
        if tokens.peek() != Some(",") {
            break;
        }
        tokens.next();
    }
    found
}

pub(super) struct Element<'t> {
    /// `.f32`.
    pub(super) word: &'t str,
    /// Size of all vector lanes in bytes, if known.
    pub(super) bytes: Option<u32>,
    pub(super) align: Option<&'t str>,
}

pub(super) fn element<'t>(tokens: &mut Tokens<'t>) -> Option<Element<'t>> {
    let (mut of_type, mut lanes, mut align) = (None, Some(1), None);
    while let Some(word) = tokens.peek().filter(|word| word.starts_with('.')) {
        tokens.next();
        match word {
            ".align" => align = Some(tokens.word()?).filter(|_| of_type.is_none()).or(align),
            ".attribute" => {
                tokens.next();
                tokens.parentheses()?;
            }
            word => match word.strip_prefix(".v") {
                Some(count) => lanes = integer(count),
                None => of_type = of_type.or(Some(word)),
            },
        }
    }
    let word = of_type?;
    let bytes = size_of_type(word).zip(lanes).and_then(|(bytes, lanes)| bytes.checked_mul(lanes));
    Some(Element { word, bytes, align })
}

pub(super) fn lengths(tokens: &mut Tokens<'_>, element: Option<u32>) -> Option<u32> {
    let mut bytes = element;
    while tokens.peek() == Some("[") {
        tokens.next();
        let length = tokens.word().and_then(integer);
        bytes = bytes.zip(length).and_then(|(bytes, length)| bytes.checked_mul(length));
        if tokens.peek() == Some("]") {
            tokens.next();
        }
    }
    bytes
}

fn value(tokens: &mut Tokens<'_>) {
    tokens.next();
    if tokens.peek() == Some("{") {
        tokens.next();
        tokens.braces();
        return;
    }
    while tokens.peek().is_some_and(|token| token != ",") {
        tokens.next();
    }
}

fn size_of_type(word: &str) -> Option<u32> {
    match word.trim_start_matches(['.', 'b', 'u', 's', 'f']) {
        "8" => Some(1),
        "16" => Some(2),
        "32" | "16x2" => Some(4),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepted or rejected by ptxas 12.9 and 13.0.
    #[test]
    fn numbers_are_read_as_ptxas_reads_them() {
        for (text, number) in [
            ("64", 64),
            ("128U", 128),
            ("0x40", 64),
            ("0X40U", 64),
            ("0100", 64),
            ("0b1000000", 64),
            ("0", 0),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        for text in ["", "U", "0x", "128u", "09", "-64", "+64", "64+64", "0x+1", "4294967296", "1.0"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn declarations_tell_names_and_bytes() {
        let found = |text| variables(text).into_iter().map(|one| (one.name, one.bytes)).collect::<Vec<_>>();
        for (text, expected) in [
            (".align 4 .b8 t[65536]", vec![("t", Some(65536))]),
            (".align 0x10 .b8 t[0x400]", vec![("t", Some(1024))]),
            (".b8 a[20], b[30] , c", vec![("a", Some(20)), ("b", Some(30)), ("c", Some(1))]),
            (".f32 t[200][200]", vec![("t", Some(160_000))]),
            (".v4 .f32 t[16]", vec![("t", Some(256))]),
            (".f16x2 t[2]", vec![("t", Some(8))]),
            (".align 16 .b8 smem[]", vec![("smem", None)]),
            (".attribute(.managed) .align 4 .b8 t[4]", vec![("t", Some(4))]),
            (".b32 a = 1, b[2] = {1, 2}, c", vec![("a", Some(4)), ("b", Some(8)), ("c", Some(4))]),
            (".texref t", vec![("t", None)]),
            (".b8 t[65536][65536][65536]", vec![("t", None)]),
            ("t", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
