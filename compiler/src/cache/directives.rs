//! What a CUDA text may include: a scan that finds too much rather than too little.
//!
//! It does not know which parts of a text are compiled, nor comments or strings as such. It looks for the words of include
//! directives wherever they can stand, after joining continued lines. What it cannot resolve (`#include MACRO`) and
//! what depends on the time is reported as such; a text like that is not cached. What it does not see are words that macros
//! make with `##`, such as `__has_ ## include`.

/// Something in a text that makes the compile depend on more than the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    /// The byte of the text where the word stands.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `"name"`: looked for beside the file first.
    Quoted(String),
    /// `<name>`: looked for in the include folders only.
    Angled(String),
    /// A name that only the preprocessor can tell.
    Computed,
    /// `__DATE__` and the like.
    Time,
}

impl Directive {
    /// The name that is included, where it stands in the text.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Quoted(name) | Kind::Angled(name) => Some(name),
            Kind::Computed | Kind::Time => None,
        }
    }
}

/// The directives of a text, in its order.
pub(crate) fn directives(text: &str) -> Vec<Directive> {
    let joined = Joined::new(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, word)) = next_word(&joined.text, at) {
        at = start + word.len();
        let kind = match word {
            "include" | "include_next" | "import" | "embed" if follows_hash(&joined.text[..start]) => {
                Some(name(&joined.text[at..]))
            }
            "__has_include" | "__has_include_next" | "__has_embed" => {
                match skip_space(&joined.text[at..]).strip_prefix('(') {
                    Some(argument) => Some(name(argument)),
                    None if is_asked_for(&joined.text[..start]) => None,
                    // A macro can stand for it, or bring the parenthesis.
                    None => Some(Kind::Computed),
                }
            }
            "__DATE__" | "__TIME__" | "__TIMESTAMP__" => Some(Kind::Time),
            _ => None,
        };
        found.extend(kind.map(|kind| Directive { at: joined.origin(start), kind }));
    }
    // Trigraphs can hide a `#` or a continued line; nobody uses them.
    for trigraph in ["??=", "??/"] {
        found.extend(text.find(trigraph).map(|at| Directive { at, kind: Kind::Computed }));
    }
    found
}

/// A text whose continued lines are joined, and where its bytes came from.
struct Joined {
    text: String,
    /// Position in the joined text, and how many bytes were left out up to it.
    cuts: Vec<(usize, usize)>,
}

impl Joined {
    fn new(text: &str) -> Joined {
        let mut joined = Joined { text: String::with_capacity(text.len()), cuts: Vec::new() };
        let (mut rest, mut left_out) = (text, 0);
        while let Some(backslash) = rest.find('\\') {
            let after = &rest[backslash + 1..];
            // Compilers allow blanks between the backslash and the line break.
            let blanks = after.len() - after.trim_start_matches([' ', '\t', '\r']).len();
            let continued = after[blanks..].starts_with('\n');
            let kept = if continued { backslash } else { backslash + 1 };
            joined.text.push_str(&rest[..kept]);
            let skipped = if continued { blanks + 2 } else { 0 };
            rest = &rest[kept + skipped..];
            if continued {
                left_out += skipped;
                joined.cuts.push((joined.text.len(), left_out));
            }
        }
        joined.text.push_str(rest);
        joined
    }

    fn origin(&self, at: usize) -> usize {
        let before = self.cuts.partition_point(|(position, _)| *position <= at);
        at + before.checked_sub(1).map_or(0, |last| self.cuts[last].1)
    }
}

/// The next identifier that can matter, from `at` on.
fn next_word(text: &str, at: usize) -> Option<(usize, &str)> {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let start = at + bytes[at..].iter().position(is_word)?;
    let end =
        bytes[start..].iter().position(|byte| !is_word(byte)).map_or(bytes.len(), |length| start + length);
    Some((start, &text[start..end]))
}

/// Whether the text ends in `#` or `%:`, blanks and comments aside.
fn follows_hash(text: &str) -> bool {
    trim_space_end(text).is_none_or(|text| text.ends_with('#') || text.ends_with("%:"))
}

/// Whether the text ends in `#ifdef`, `defined(` or the like: the word that follows is only asked for.
fn is_asked_for(text: &str) -> bool {
    let Some(text) = trim_space_end(text) else { return false };
    let Some(before) = trim_space_end(text.strip_suffix('(').unwrap_or(text)) else { return false };
    let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    match before.get(start..).unwrap_or_default() {
        "defined" => true,
        "ifdef" | "ifndef" | "elifdef" | "elifndef" => {
            before.len() == text.len() && follows_hash(&before[..start])
        }
        _ => false,
    }
}

/// The text without blanks and comments at its end; nothing where a comment ends that began nowhere.
fn trim_space_end(text: &str) -> Option<&str> {
    let mut text = text;
    loop {
        text = text.trim_end_matches([' ', '\t', '\r', '\x0b', '\x0c']);
        match text.strip_suffix("*/") {
            Some(comment) => text = &comment[..comment.rfind("/*")?],
            None => return Some(text),
        }
    }
}

/// The text after blanks and comments.
fn skip_space(text: &str) -> &str {
    let mut text = text;
    loop {
        text = text.trim_start_matches([' ', '\t', '\r', '\x0b', '\x0c']);
        match text.strip_prefix("/*").and_then(|comment| comment.split_once("*/")) {
            Some((_, rest)) => text = rest,
            None => return text,
        }
    }
}

/// The name after the word of a directive.
fn name(text: &str) -> Kind {
    let text = skip_space(text);
    let line = text.split('\n').next().unwrap_or_default();
    let quoted = line.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let angled = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match (quoted, angled) {
        (Some((name, _)), _) => Kind::Quoted(name.to_owned()),
        (None, Some((name, _))) => Kind::Angled(name.to_owned()),
        (None, None) => Kind::Computed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<Kind> {
        directives(text).into_iter().map(|directive| directive.kind).collect()
    }

    fn quoted(name: &str) -> Kind {
        Kind::Quoted(name.to_owned())
    }

    #[test]
    fn every_way_to_include_is_found() {
        for text in [
            "#include \"a.h\"",
            "  #  include\t\"a.h\" // why",
            "/* x */ # /* y */ include /* z */ \"a.h\"",
            "%:include \"a.h\"",
            "#inc\\\nlude \\\r\n\"a.\\\nh\"",
            "#include \\  \n \"a.h\"",
            "#include_next \"a.h\"",
            "#import \"a.h\"",
            "#if 0\n#include \"a.h\"\n#endif",
            "#if defined(X) && __has_include(\"a.h\")",
            "#if __has_include ( /* x */ \"a.h\" )",
            "#include \"a.h",
            "R\"(\n#include \"a.h\"\n)\"",
            "/*\n*/ #include \"a.h\"",
        ] {
            let expected = if text.ends_with("a.h") { Kind::Computed } else { quoted("a.h") };
            assert_eq!(kinds(text), [expected], "{text}");
        }
        assert_eq!(kinds("#include <nv/target>\n"), [Kind::Angled("nv/target".to_owned())]);
    }

    #[test]
    fn what_only_the_preprocessor_knows_is_said() {
        assert_eq!(kinds("#define H <a.h>\n#include H\n"), [Kind::Computed]);
        assert_eq!(kinds("#if __has_include(H)\n"), [Kind::Computed]);
        for text in [
            "#define HI __has_include\n",
            "#if Q(__has_include)",
            "__has_include",
            "#if a_defined(__has_include)",
        ] {
            assert_eq!(kinds(text), [Kind::Computed], "{text}");
        }
        assert_eq!(kinds("??=include \"a.h\""), [Kind::Computed]);
        assert_eq!(kinds("const char* t = __DATE__ __TIME__;"), [Kind::Time, Kind::Time]);
    }

    #[test]
    fn what_includes_nothing_is_left_alone() {
        for text in [
            "int include = 1;",
            "#ifdef __has_include\n",
            "# /* x */ ifndef /* y */ __has_include // z",
            "#if defined(__has_include)",
            "#if !defined __has_include && defined /* x */ ( /* y */ __has_embed )",
            "# define embed 1",
            "included \"a.h\"",
            "importé",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn the_place_is_that_in_the_text() {
        let text = "a \\\n b \\\n\n  #include \"a.h\"\nc\\\n\n#include <b.h>";
        let found = directives(text);
        assert!(found.iter().all(|directive| text[directive.at..].starts_with("include")), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_scanned(text in "([ -~\n]|#|include|/\\*|\\*/|\\\\\n|\"|<|>|ä|__has_include|\\?\\?=){0,40}") {
            for directive in directives(&text) {
                prop_assert!(directive.at <= text.len());
            }
        }

        #[test]
        fn an_include_is_found_in_any_text(before in "[ -~\n]{0,40}", name in "[a-z/.]{1,12}") {
            let text = format!("{before}\n#include \"{name}\"\n");
            prop_assert!(kinds(&text).contains(&quoted(&name)), "{text}");
        }
    }
}
