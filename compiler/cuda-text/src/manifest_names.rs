//! Finds the generated header's names. Unsupported: pasting the word `manifest` (`mani ## fest`).

use std::collections::BTreeSet;

use crate::cuda::{Token, TokenKind, lex, word};

/// Qualifies manifest declarations in kernels.
pub const MANIFEST: &str = "manifest";

/// Returns used header names; `None` if uncertain: aliases, macros, inheritance, other texts.
#[must_use]
pub fn names_taken(text: &str) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if !text.contains(MANIFEST) {
        return Some(names);
    }
    let lexed = lex(text);
    for directive in &lexed.directives {
        match word(text, directive.tokens.first()) {
            "include" => {}
            "define" if directive.tokens.iter().any(|token| word(text, Some(token)).contains(MANIFEST)) => {
                return None;
            }
            _ => of_tokens(text, &directive.tokens, &mut names)?,
        }
    }
    of_tokens(text, &lexed.tokens, &mut names)?;
    (!lexed.is_odd).then_some(names)
}

/// Returns `None` if `manifest` is used as a whole.
fn of_tokens(text: &str, tokens: &[Token], names: &mut BTreeSet<String>) -> Option<()> {
    for (at, token) in tokens.iter().enumerate() {
        let found = word(text, Some(token));
        let before = |count: usize| word(text, at.checked_sub(count).and_then(|at| tokens.get(at)));
        match token.kind {
            TokenKind::Word if found == MANIFEST => {
                let member = tokens.get(at + 2).filter(|member| member.kind == TokenKind::Word)?;
                if word(text, tokens.get(at + 1)) != "::" {
                    return None;
                }
                names.insert(word(text, Some(member)).to_owned());
            }
            // The class that `manifest` aliases.
            TokenKind::Word if found.starts_with("manifest__") => return None,
            TokenKind::Quoted if before(2) == "_Pragma" => {
                names.extend(names_taken(found.trim_matches('"'))?);
            }
            _ => {}
        }
    }
    Some(())
}

/// Returns used header names, else all words.
#[must_use]
pub fn manifest_names(text: &str) -> BTreeSet<String> {
    names_taken(text).unwrap_or_else(|| words(text).map(str::to_owned).collect())
}

/// Returns a header's names, which options must not define.
#[must_use]
pub fn header_names(header: &str) -> BTreeSet<String> {
    let code = header.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.filter(|line| !line.starts_with('#'));
    let names = code.flat_map(words).filter(|name| !name.starts_with(|c: char| c.is_ascii_digit()));
    names.map(str::to_owned).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        manifest_names(text).into_iter().collect()
    }

    #[test]
    fn names_of_the_manifest_are_found() {
        assert_eq!(names("int x = manifest::BLOCK + manifest :: EPS;"), ["BLOCK", "EPS"]);
        assert_eq!(names("int x = my_manifest::BLOCK; // manifests"), [""; 0]);
        assert_eq!(names("::manifest::\n  T y;"), ["T"]);
        assert_eq!(names(""), [""; 0]);
    }

    #[test]
    fn what_takes_the_manifest_otherwise_may_use_all() {
        assert_eq!(names("using m = manifest; m::BLOCK"), ["BLOCK", "m", "manifest", "using"]);
        assert!(names("#define C(n) manifest::n\nint x = C(BLOCK);").contains(&"BLOCK".to_owned()));
        assert!(names("#define C(n) \\\n  manifest::n\nint x = C(BLOCK);").contains(&"BLOCK".to_owned()));
        assert!(names("manifest::").contains(&"manifest".to_owned()));
    }

    #[test]
    fn names_that_a_header_needs_are_known_or_not() {
        let taken =
            |text: &str| names_taken(text).map(|names| names.into_iter().collect::<Vec<_>>().join(" "));
        for (text, names) in [
            ("", ""),
            ("using m = own; m::BLOCK", ""),
            ("int x = manifest::BLOCK + ::manifest /* of it */ :: EPS; // the manifest", "BLOCK EPS"),
            ("printf(\"the manifest\"); int my_manifest, manifests;", ""),
            ("#include <manifest>\n#include \"manifest.h\"\n#pragma unroll manifest::N\n", "N"),
            ("_Pragma(\"unroll manifest::N\") for (;;)", "N"),
        ] {
            assert_eq!(taken(text).as_deref(), Some(names), "{text}");
        }
        for text in [
            "using m = manifest;",
            "#define M manifest\n",
            "#define OF(name) \\\n    manifest::name\n",
            "#define UNROLL _Pragma(\"unroll manifest::N\")\n",
            "_Pragma(\"unroll (manifest)\")",
            "struct own : manifest {};",
            "manifest::BLO\\\nCK",
            "manifest",
            "manifest::",
            "cubinder::manifest__members<>::BLOCK",
        ] {
            assert_eq!(taken(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_a_header_are_those_of_its_code() {
        let header =
            "#include <a.h>\nnamespace n {\n// Not this.\ntemplate <typename T> struct s { T v[4]; };\n}\n";
        let names: Vec<String> = header_names(header).into_iter().collect();
        assert_eq!(names, ["T", "n", "namespace", "s", "struct", "template", "typename", "v"]);
    }

    #[test]
    fn any_text_can_be_searched_for_names() {
        proptest::proptest!(|(text in "(manifest|::|#define|\\\\|\n|[ -~é]){0,20}")| {
            let _ = (manifest_names(&text), names_taken(&text));
        });
    }
}
