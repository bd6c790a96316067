use std::collections::BTreeSet;

use super::{Code, Diagnostic, Severity};

const SHOWN: usize = 3;

/// Returns ``for more about C0101 and C0103: `cubinder explain C0101` `` for the errors' rules, else the warnings'.
#[must_use]
pub fn explain_hint(diagnostics: &[Diagnostic]) -> Option<String> {
    let severity = if super::has_errors(diagnostics) { Severity::Error } else { Severity::Warning };
    let mut seen = BTreeSet::new();
    let codes = diagnostics.iter().filter(|found| found.severity == severity).filter_map(|found| found.code);
    let codes: Vec<Code> = codes.filter(|code| seen.insert(*code)).collect();
    let first = codes.first()?;
    let named: Vec<&str> = codes.iter().take(SHOWN).map(|code| code.0).collect();
    let named = match named.as_slice() {
        [one] => (*one).to_owned(),
        [before @ .., last] if codes.len() <= SHOWN => format!("{} and {last}", before.join(", ")),
        some => format!("{} and others", some.join(", ")),
    };
    Some(format!("for details on {named}, run `cubinder explain {first}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn names_the_rules_of_the_errors_once() {
        let error = |code| Diagnostic::error("e").code(code);
        let warning = Diagnostic::warning("w").code(rules::UNUSED);
        assert_eq!(explain_hint(&[Diagnostic::error("e"), warning.clone()]), None);
        assert_eq!(
            explain_hint(std::slice::from_ref(&warning)).as_deref(),
            Some("for details on C0107, run `cubinder explain C0107`")
        );
        let two = [error(rules::WRONG_KIND), warning, error(rules::UNKNOWN_NAME), error(rules::WRONG_KIND)];
        assert_eq!(
            explain_hint(&two).as_deref(),
            Some("for details on C0103 and C0101, run `cubinder explain C0103`")
        );
        let many = [rules::NOT_TOML, rules::UNKNOWN_KEY, rules::BAD_NAME, rules::BAD_CALL].map(error);
        assert_eq!(
            explain_hint(&many).as_deref(),
            Some("for details on C0001, C0003, C0006 and others, run `cubinder explain C0001`")
        );
    }
}
