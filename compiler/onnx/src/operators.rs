//! The operators of the ONNX standard, by name.
//!
//! Generated from the pinned `onnx` package (`tests/generated.rs`), functions of the standard and deprecated operators included.

/// An operator of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator {
    /// Its domain: empty for the default one, else as `ai.onnx.ml`.
    pub domain: &'static str,
    /// Its name, which is the nodes' op type.
    pub name: &'static str,
    /// The version of the operator set that brought it.
    pub since: i64,
}

const TEXT: &str = include_str!("generated/operators.txt");

/// Every operator, by domain and name.
pub fn all() -> impl Iterator<Item = Operator> {
    TEXT.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (domain, name, since) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(Operator { domain: if domain == "ai.onnx" { "" } else { domain }, name, since })
    })
}

/// Whether a domain is one of the standard's: its nodes are not for plugins.
#[must_use]
pub fn is_domain(domain: &str) -> bool {
    // There are four or five, and most operators are of the default one.
    domain.is_empty()
        || domain == "ai.onnx"
        || (domain.starts_with("ai.onnx.") && all().any(|known| known.domain == domain))
}

/// The operator of that name; the default domain is the empty one.
#[must_use]
pub fn find(domain: &str, name: &str) -> Option<Operator> {
    all().find(|known| known.name == name && known.domain == domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_everybody_knows() {
        assert_eq!(find("", "Relu"), Some(Operator { domain: "", name: "Relu", since: 1 }));
        assert_eq!(find("ai.onnx.ml", "Relu"), None);
        assert!(find("", "Relo").is_none() && find("", "Gelu").is_some_and(|gelu| gelu.since == 20));
        assert_eq!(all().count(), TEXT.lines().count(), "every line is read");
        assert!(is_domain("") && is_domain("ai.onnx") && is_domain("ai.onnx.ml"));
        assert!(!is_domain("sample") && !is_domain("ai.onnx.mine"));
    }
}
