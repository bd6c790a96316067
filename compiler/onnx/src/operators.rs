//! Names of all standard ONNX operators. Generated from the pinned `onnx` package (`tests/it/generated.rs`).

const TEXT: &str = include_str!("generated/operators.txt");

/// Returns operators' domains (empty: default) and op types.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXT.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let domain = words.next()?;
        Some((if domain == "ai.onnx" { "" } else { domain }, words.next()?))
    })
}

/// Returns whether a domain is the standard's.
#[must_use]
pub fn is_domain(domain: &str) -> bool {
    // Most operators have the default domain.
    domain.is_empty()
        || domain == "ai.onnx"
        || (domain.starts_with("ai.onnx.") && operators().any(|(known, _)| known == domain))
}

/// Returns whether the standard has an operator.
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
