//! The dependency file for Make and Ninja: a rule, and an empty rule per input, so that removing an input causes a
//! rebuild.
//!
//! Sources: GNU Make's manual, "What Makefiles Contain" and "Rule Syntax"; GCC's `-MD -MP`; Ninja's depfile parser.
//! A backslash escapes spaces, `#` and `:`; `$` is doubled, as are backslashes before escaped characters.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cubinder_source::diagnostic::Diagnostic;

/// Returns the rules; rejects line breaks in paths, which cannot be escaped.
pub(super) fn text<'p>(
    outputs: impl IntoIterator<Item = &'p Path>,
    inputs: impl IntoIterator<Item = &'p Path>,
) -> Result<Vec<u8>, Diagnostic> {
    let outputs: Vec<Vec<u8>> = outputs.into_iter().map(escaped).collect::<Result<_, _>>()?;
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(escaped).collect::<Result<_, _>>()?;
    let mut text = outputs.join(&b' ');
    text.push(b':');
    text.extend(inputs.iter().flat_map(|input| [b" \\\n  ", input.as_slice()].concat()));
    text.push(b'\n');
    text.extend(inputs.iter().flat_map(|input| [b"\n", input.as_slice(), b":\n"].concat()));
    Ok(text)
}

fn escaped(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    // Make equates `./a` with the `a` in users' rules.
    let path: PathBuf = path.strip_prefix(".").map_or_else(|_| path.to_owned(), Path::to_owned);
    let bytes = path.as_os_str().as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut backslashes = 0;
    for &byte in bytes {
        match byte {
            b'\n' | b'\r' => {
                return Err(Diagnostic::error(format!("{path:?} cannot be written to a depfile"))
                    .note("its name contains a line break, which Make and Ninja cannot escape")
                    .help("rename it, or remove `--depfile`"));
            }
            b' ' | b'\t' | b'#' | b':' => {
                // A preceding backslash would cancel the escape.
                text.extend(std::iter::repeat_n(b'\\', backslashes));
                text.push(b'\\');
            }
            b'$' => text.push(b'$'),
            _ => {}
        }
        backslashes = if byte == b'\\' { backslashes + 1 } else { 0 };
        text.push(byte);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(outputs: &[&str], inputs: &[&str]) -> Result<String, String> {
        let text = text(outputs.iter().map(Path::new), inputs.iter().map(Path::new));
        text.map(|text| String::from_utf8(text).unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn every_input_has_a_rule_of_its_own() {
        assert_eq!(
            rule(&["./liba.so", "out/b.so"], &["k.cu", "../h.h"]).unwrap(),
            "liba.so out/b.so: \\\n  k.cu \\\n  ../h.h\n\nk.cu:\n\n../h.h:\n"
        );
        assert_eq!(rule(&["a"], &[]).unwrap(), "a:\n");
    }

    #[test]
    fn what_means_something_is_escaped() {
        let escaped = |path: &str| String::from_utf8(super::escaped(Path::new(path)).unwrap()).unwrap();
        assert_eq!(escaped("a b/c#d"), r"a\ b/c\#d");
        assert_eq!(escaped("$HOME/c:d"), r"$$HOME/c\:d");
        assert_eq!(escaped(r"a\b"), r"a\b");
        assert_eq!(escaped(r"a\ b"), r"a\\\ b");
        assert_eq!(escaped("ä.h"), "ä.h");
    }

    #[test]
    fn a_line_break_is_refused() {
        assert_eq!(rule(&["a\nb"], &[]).unwrap_err(), "\"a\\nb\" cannot be written to a depfile");
        assert!(rule(&["a"], &["b\r"]).is_err());
    }
}
