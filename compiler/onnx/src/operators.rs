//! The operators of the ONNX standard, by name.
//!
//! Generated from the pinned `onnx` package (`tests/generated.rs`), functions of the standard and deprecated operators included.

const TEXT: &str = include_str!("generated/operators.txt");

/// Every operator: its domain, which is empty for the default one, and its name, which is the nodes' op type.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXT.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let domain = words.next()?;
        Some((if domain == "ai.onnx" { "" } else { domain }, words.next()?))
    })
}

/// Whether a domain is one of the standard's: its nodes are not for plugins.
#[must_use]
pub fn is_domain(domain: &str) -> bool {
    // There are four or five, and most operators are of the default one.
    domain.is_empty()
        || domain == "ai.onnx"
        || (domain.starts_with("ai.onnx.") && operators().any(|(known, _)| known == domain))
}

/// Whether the standard has an operator of that name; the default domain is the empty one.
#[must_use]
pub fn is_operator(domain: &str, name: &str) -> bool {
    operators().any(|operator| operator == (domain, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_everybody_knows() {
        assert!(is_operator("", "Relu") && is_operator("", "Gelu") && is_operator("ai.onnx.ml", "Scaler"));
        assert!(!is_operator("ai.onnx.ml", "Relu") && !is_operator("", "Relo"));
        assert_eq!(operators().count(), TEXT.lines().count(), "every line is read");
        assert!(is_domain("") && is_domain("ai.onnx") && is_domain("ai.onnx.ml"));
        assert!(!is_domain("sample") && !is_domain("ai.onnx.mine"));
    }
}
