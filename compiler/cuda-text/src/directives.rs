//! Finds a CUDA text's possible includes, with false positives but no omissions: works on bytes with joined lines,
//! ignoring conditions, comments and strings. Computed includes (`#include MACRO`) and time macros prevent caching.
//! [`Pasting`] finds pasted words (`__has_ ## include`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Dependency of a compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Byte offset of the word.
    pub at: usize,
    /// Kind.
    pub kind: Kind,
}

/// Kind of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `"name"`: searched beside the file first.
    Quoted(Vec<u8>),
    /// `<name>`: searched in include folders only.
    Angled(Vec<u8>),
    /// Known only to the preprocessor.
    Computed,
    /// `__DATE__` and similar.
    Time,
}

impl Directive {
    /// Returns the included name, if explicit and UTF-8.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Quoted(name) | Kind::Angled(name) => str::from_utf8(name).ok(),
            Kind::Computed | Kind::Time => None,
        }
    }
}

/// Returns a directive's path.
pub fn path_of(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Returns whether all includes are CUDA's, without manifest names.
pub fn includes_only_cuda_headers(text: &str) -> bool {
    directives(text).iter().all(|directive| match &directive.kind {
        Kind::Angled(name) => name.starts_with(b"cuda_"),
        Kind::Quoted(_) | Kind::Computed => false,
        Kind::Time => true,
    })
}

/// Returns whether a text may depend on the architecture.
pub fn may_name_architecture(text: impl AsRef<[u8]>) -> bool {
    let text = Joined::new(text.as_ref()).text;
    let has = |part: &[u8]| text.windows(part.len()).any(|bytes| bytes == part);
    [&b"ARCH"[..], b"NV_", b"##", b"%:%:"].into_iter().any(has)
}

const LOOKUPS: [&str; 3] = ["__has_include", "__has_include_next", "__has_embed"];
const TIMES: [&str; 3] = ["__DATE__", "__TIME__", "__TIMESTAMP__"];

/// Returns a text's directives in order.
pub fn directives(text: impl AsRef<[u8]>) -> Vec<Directive> {
    let text = text.as_ref();
    let joined = Joined::new(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, word)) = next_word(&joined.text, at) {
        at = start + word.len();
        let (before, after) = (&joined.text[..start], &joined.text[at..]);
        let kind = match str::from_utf8(word).unwrap_or_default() {
            "include" | "include_next" | "import" | "embed" if follows_hash(before) => Some(name(after)),
            word if LOOKUPS.contains(&word) => match skip_space(after).strip_prefix(b"(") {
                Some(argument) => Some(name(argument)),
                None if is_asked_for(before) => None,
                // A macro may be the operand or supply the parenthesis.
                None => Some(Kind::Computed),
            },
            word if TIMES.contains(&word) => Some(Kind::Time),
            // Toolkit macros such as `_CCCL_HAS_INCLUDE` may be operators.
            word if is_named_as_lookup(word) && !is_asked_for(before) => Some(Kind::Computed),
            _ => None,
        };
        found.extend(kind.map(|kind| Directive { at: joined.origin(start), kind }));
    }
    // Trigraphs can hide a `#` or a continued line.
    for trigraph in [b"??=", b"??/"] {
        let at = text.windows(trigraph.len()).position(|bytes| bytes == trigraph);
        found.extend(at.map(|at| Directive { at, kind: Kind::Computed }));
    }
    found
}

fn is_named_as_lookup(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["has_include", "has_embed"].iter().any(|name| word.contains(name))
}

/// Pieces of words for `##`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pasting {
    /// Parts of relevant words: `__has_`, `TIME__`.
    pub piece: bool,
    /// Word `_` or `__`.
    pub underscore: bool,
    /// Operator `##`.
    pub operator: bool,
}

impl Pasting {
    /// Scans a text.
    pub fn scan(text: &[u8]) -> Pasting {
        let joined = Joined::new(text);
        let has = |operator: &[u8]| joined.text.windows(operator.len()).any(|bytes| bytes == operator);
        let mut found = Pasting { operator: has(b"##") || has(b"%:%:"), ..Pasting::default() };
        let mut at = 0;
        while let Some((start, word)) = next_word(&joined.text, at) {
            at = start + word.len();
            match word {
                b"_" | b"__" => found.underscore = true,
                word => found.piece |= is_piece(word),
            }
        }
        found
    }

    /// Merges another result.
    pub fn add(&mut self, other: Pasting) {
        self.piece |= other.piece;
        self.underscore |= other.underscore;
        self.operator |= other.operator;
    }

    /// Returns whether macros may build a relevant word; built-in headers may paste, and `_` may be a name.
    pub fn may_build_a_word(self) -> bool {
        self.piece || (self.underscore && self.operator)
    }
}

/// Matches a relevant word's first part, or all but leading underscores.
fn is_piece(word: &[u8]) -> bool {
    LOOKUPS.iter().chain(&TIMES).any(|full| {
        let full = full.as_bytes();
        let is_first = full.starts_with(word) && word.len() < full.len();
        let is_last = full.ends_with(word) && (1..3).contains(&(full.len() - word.len()));
        // The scan finds `__has_include`, a prefix of `__has_include_next`.
        (is_first || is_last) && !LOOKUPS.iter().any(|lookup| lookup.as_bytes() == word)
    })
}

struct Joined {
    text: Vec<u8>,
    /// Joined offset; bytes removed so far.
    cuts: Vec<(usize, usize)>,
}

impl Joined {
    fn new(text: &[u8]) -> Joined {
        let mut joined = Joined { text: Vec::with_capacity(text.len()), cuts: Vec::new() };
        let (mut rest, mut left_out) = (text, 0);
        while let Some(backslash) = rest.iter().position(|byte| *byte == b'\\') {
            let after = &rest[backslash + 1..];
            // Compilers allow blanks before the line break.
            let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            let continued = after[blanks..].starts_with(b"\n");
            let kept = if continued { backslash } else { backslash + 1 };
            joined.text.extend_from_slice(&rest[..kept]);
            let skipped = if continued { blanks + 2 } else { 0 };
            rest = &rest[kept + skipped..];
            if continued {
                left_out += skipped;
                joined.cuts.push((joined.text.len(), left_out));
            }
        }
        joined.text.extend_from_slice(rest);
        joined
    }

    fn origin(&self, at: usize) -> usize {
        let before = self.cuts.partition_point(|(position, _)| *position <= at);
        at + before.checked_sub(1).map_or(0, |last| self.cuts[last].1)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

fn next_word(text: &[u8], at: usize) -> Option<(usize, &[u8])> {
    let start = at + text[at..].iter().position(|byte| is_word(*byte))?;
    let length = text[start..].iter().take_while(|byte| is_word(**byte)).count();
    Some((start, &text[start..start + length]))
}

/// Matches a final `#` or `%:` before blanks and comments.
fn follows_hash(text: &[u8]) -> bool {
    trim_space_end(text).is_none_or(|text| text.ends_with(b"#") || text.ends_with(b"%:"))
}

/// `#ifdef`, `defined(` and similar only test the next word.
fn is_asked_for(text: &[u8]) -> bool {
    let Some(text) = trim_space_end(text) else { return false };
    let Some(before) = trim_space_end(text.strip_suffix(b"(").unwrap_or(text)) else { return false };
    let start = before.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
    match &before[start..] {
        b"defined" => true,
        b"ifdef" | b"ifndef" | b"elifdef" | b"elifndef" => {
            before.len() == text.len() && follows_hash(&before[..start])
        }
        _ => false,
    }
}

/// Returns `None` if a comment has no start.
fn trim_space_end(text: &[u8]) -> Option<&[u8]> {
    let mut text = text;
    loop {
        let kept = text.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
        text = &text[..kept];
        match text.strip_suffix(b"*/") {
            Some(comment) => text = &comment[..comment.windows(2).rposition(|bytes| bytes == b"/*")?],
            None => return Some(text),
        }
    }
}

fn skip_space(text: &[u8]) -> &[u8] {
    let mut text = text;
    loop {
        text = &text[text.iter().take_while(|byte| is_blank(**byte)).count()..];
        let comment = text.strip_prefix(b"/*");
        match comment.and_then(|comment| Some(&comment[position(comment, b"*/")? + 2..])) {
            Some(rest) => text = rest,
            None => return text,
        }
    }
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|bytes| bytes == wanted)
}

fn name(text: &[u8]) -> Kind {
    let text = skip_space(text);
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let within = |open: &[u8], close: &[u8]| {
        let rest = line.strip_prefix(open)?;
        Some(rest[..position(rest, close)?].to_vec())
    };
    match (within(b"\"", b"\""), within(b"<", b">")) {
        (Some(name), _) => Kind::Quoted(name),
        (None, Some(name)) => Kind::Angled(name),
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
        Kind::Quoted(name.as_bytes().to_vec())
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
        assert_eq!(kinds("#include <nv/target>\n"), [Kind::Angled(b"nv/target".to_vec())]);
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
            "ifdef __has_include",
            "#ifdef (__has_include)",
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
    fn a_name_need_not_be_utf_8() {
        let found: Vec<Kind> = directives(b"\xff\n#include \"caf\xe9.h\"\n#include <\xfe>")
            .into_iter()
            .map(|d| d.kind)
            .collect();
        assert_eq!(found, [Kind::Quoted(b"caf\xe9.h".to_vec()), Kind::Angled(b"\xfe".to_vec())]);
    }

    #[test]
    fn a_directive_has_the_name_that_its_text_has() {
        let found = directives(b"#include \"a.h\"\n#include <b.h>\n#include H\n#include <\xfe>");
        let names: Vec<Option<&str>> = found.iter().map(Directive::name).collect();
        assert_eq!(names, [Some("a.h"), Some("b.h"), None, None]);
    }

    #[test]
    fn a_macro_named_as_an_operator_may_stand_for_it() {
        assert_eq!(kinds("#if _CCCL_HAS_INCLUDE(<a.h>)"), [Kind::Computed]);
        assert_eq!(kinds("#if MY_HAS_EMBED(<a.h>)"), [Kind::Computed]);
        assert_eq!(kinds("#if defined(_CCCL_HAS_INCLUDE)"), []);
    }

    #[test]
    fn pieces_of_words_are_found() {
        let of = |text: &str| Pasting::scan(text.as_bytes()).may_build_a_word();
        for text in [
            "C(__has_, include)",
            "C(__has_include_, next)",
            "C(_, _has_include)",
            "C(__, has_embed)",
            "C(__has_in\\\nclu, de)",
            "__DA ## TE__",
            "P(TIME__)",
            "__TIMESTAMP",
            "a ## b _",
            "a %:%: b __",
        ] {
            assert!(of(text), "{text}");
        }
        for text in [
            "_",
            "__ # _",
            "a ## b",
            "x_ ## y",
            "__has_include",
            "include",
            "__DATE__",
            "has",
            "__hash",
            "E__",
        ] {
            assert!(!of(text), "{text}");
        }
        let mut apart = Pasting::scan(b"int _;");
        assert!(!apart.may_build_a_word());
        apart.add(Pasting::scan(b"a ## b"));
        assert!(apart.may_build_a_word());
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
