//! The file that tells Make and Ninja what a library was made from.
//!
//! Owns its form: one rule, and an empty rule for each input, so that one that is removed is no error and makes the library anew.
//! Never looks for inputs.
//!
//! Facts: GNU Make's manual, "What Makefiles Contain" and "Rule Syntax"; GCC's `-MD -MP`; Ninja's reader of depfiles, which takes what
//! GCC and Clang write. Spaces, `#` and `:` are escaped by a backslash, `$` is doubled, and backslashes before one of them too.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cubinder_source::diagnostic::Diagnostic;

/// The text for `outputs`, made from `inputs`.
///
/// # Errors
/// Where a path holds a line break, which has no escape.
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

/// A path as Make and Ninja read it.
fn escaped(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    // Make takes `./a` and `a` for one file, but a rule of the user's names it `a`.
    let path: PathBuf = path.strip_prefix(".").map_or_else(|_| path.to_owned(), Path::to_owned);
    let bytes = path.as_os_str().as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut backslashes = 0;
    for &byte in bytes {
        match byte {
            b'\n' | b'\r' => {
                return Err(Diagnostic::error(format!("{path:?} cannot stand in a depfile"))
                    .note("its name has a line break, for which Make and Ninja have no escape")
                    .help("rename it, or leave `--depfile` out"));
            }
            b' ' | b'\t' | b'#' | b':' => {
                // A backslash before an escape would take its meaning away.
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
        assert_eq!(rule(&["a\nb"], &[]).unwrap_err(), "\"a\\nb\" cannot stand in a depfile");
        assert!(rule(&["a"], &["b\r"]).is_err());
    }
}
