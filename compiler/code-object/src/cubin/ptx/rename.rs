//! Renames identifiers in any bytes, without parsing.

/// Renames an identifier outside of comments, quotes, directives and operations. Operations start a statement
/// (after label and guard) or precede a dot (PTX ISA 9.0, "Identifiers", "Statements").
#[must_use]
pub fn renamed(text: &[u8], name: &str, new: &str) -> Vec<u8> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_$%".contains(&byte);
    let mut out = Vec::with_capacity(text.len() + new.len());
    // Whether the next word starts a statement, or is a guard's predicate (`@p`).
    let (mut begins, mut guards) = (true, false);
    // Braces after `=` contain names.
    let mut is_value = false;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let word = rest.iter().take_while(|byte| is_part(**byte)).count();
        let length = match word {
            0 => opaque(rest),
            length => length,
        };
        let (piece, behind) = rest.split_at(length);
        let is_directive = at.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'.');
        let is_name =
            word > 0 && piece == name.as_bytes() && !is_directive && !begins && behind.first() != Some(&b'.');
        out.extend_from_slice(if is_name { new.as_bytes() } else { piece });
        at += length;
        match piece.first() {
            Some(byte) if byte.is_ascii_whitespace() || length > 1 && word == 0 => {}
            Some(b'{' | b'}') if is_value => {}
            Some(b'=') => (begins, is_value) = (false, true),
            Some(b';' | b'{' | b'}' | b':') => (begins, guards, is_value) = (true, false, false),
            Some(b'@') => (begins, guards) = (false, true),
            Some(b'!') if guards => {}
            _ => (begins, guards) = (guards && word > 0, false),
        }
    }
    out
}

/// Returns the length of a leading comment, quoted text, or byte.
pub fn opaque(text: &[u8]) -> usize {
    let until = |from: usize, end: &[u8]| {
        let rest = text.get(from..).unwrap_or_default();
        rest.windows(end.len())
            .position(|window| window == end)
            .map_or(text.len(), |found| from + found + end.len())
    };
    match text {
        [b'/', b'/', ..] => until(2, b"\n"),
        [b'/', b'*', ..] => until(2, b"*/"),
        [b'"', ..] => until(1, b"\""),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_another_one_where_it_is_a_name() {
        let text = ".visible .entry k(\n.param .u64 k_param_0\n)\n.file 1 \"k.cu\"\n{ call k, (k2, %k, $k, .k, k); }\n// k isn't \"it\n/* k \" */ mov.u64 %r, k;";
        let expected = ".visible .entry new_k(\n.param .u64 k_param_0\n)\n.file 1 \"k.cu\"\n{ call new_k, (k2, %k, $k, .k, new_k); }\n// k isn't \"it\n/* k \" */ mov.u64 %r, new_k;";
        assert_eq!(String::from_utf8(renamed(text.as_bytes(), "k", "new_k")).unwrap(), expected);
        assert_eq!(renamed(b"", "k", "l"), b"");
        let table = ".global .u64 t[2] = {k, { k }};\n.entry k()\n{\nret;\n}\n";
        assert_eq!(
            String::from_utf8(renamed(table.as_bytes(), "k", "l")).unwrap(),
            table.replace("{k,", "{l,").replace("{ k }", "{ l }").replace("entry k", "entry l")
        );
        for (name, body) in
            [("add", "add.s32 %r1, %r1, 1;"), ("ret", "ret;"), ("exit", "L: @!%p1 exit;\n@%p2 exit;\n")]
        {
            let text = format!(".entry {name}()\n{{\n\t{body}\n\tmov.u64 %rd1, {name};\n}}\n");
            let expected = format!(".entry other()\n{{\n\t{body}\n\tmov.u64 %rd1, other;\n}}\n");
            assert_eq!(String::from_utf8(renamed(text.as_bytes(), name, "other")).unwrap(), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn renaming_to_itself_changes_nothing(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
            proptest::prop_assert_eq!(&renamed(&text, "k", "k"), &text);
        }
    }
}
