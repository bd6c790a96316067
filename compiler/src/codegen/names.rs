//! A light reader of CUDA text: names of kernels, and names taken from the manifest.
//!
//! Macros and conditional parts are not understood: what is found here serves messages only.

use std::collections::BTreeSet;

/// The names after `__global__` in a CUDA text, for messages.
#[must_use]
pub fn kernel_names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, keyword) in text.match_indices("__global__") {
        let mut rest = &text[at + keyword.len()..];
        let mut last = "";
        loop {
            rest = rest.trim_start();
            let word = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
            if word.is_empty() {
                break;
            }
            rest = &rest[word.len()..];
            last = word;
            if let Some(arguments) = rest.trim_start().strip_prefix('(').filter(|_| word.starts_with("__")) {
                let Some(end) = closing_parenthesis(arguments) else { break };
                rest = &arguments[end + 1..];
                last = "";
            }
        }
        if rest.starts_with('(') && !last.is_empty() && !names.iter().any(|name| name == last) {
            names.push(last.to_owned());
        }
    }
    names
}

/// Where the parenthesis that is already open closes.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The names that a text takes from the generated header: those after `manifest::`. Where it takes `manifest` in another way
/// (an alias, a macro that joins names), every name of the text counts.
#[must_use]
pub fn manifest_names(text: &str) -> BTreeSet<String> {
    let words: Vec<(usize, &str)> = words(text).collect();
    let mut names = BTreeSet::new();
    for (index, (at, _)) in words.iter().enumerate().filter(|(_, (_, word))| *word == "manifest") {
        let rest = &text[at + "manifest".len()..];
        let member = rest.trim_start().strip_prefix("::").map(str::trim_start);
        let next = words.get(index + 1).map(|(_, word)| *word);
        match (member, next) {
            (Some(member), Some(next)) if member.starts_with(next) && !is_in_a_macro(text, *at) => {
                names.insert(next.to_owned());
            }
            _ => return words.into_iter().map(|(_, word)| word.to_owned()).collect(),
        }
    }
    names
}

/// The identifiers of a text, and what looks like one in comments and strings.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut position = 0;
    std::iter::from_fn(move || {
        let start = position + text[position..].find(is_word)?;
        let rest = &text[start..];
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        position = start + length;
        Some((start, &rest[..length]))
    })
}

/// Whether a place is in the definition of a macro; only its own line is looked at, and those that continue it.
fn is_in_a_macro(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let mut start = before.rfind('\n').map_or(0, |newline| newline + 1);
    while before[..start].trim_end_matches(['\n', '\r']).ends_with('\\') && start > 0 {
        start = before[..start - 1].rfind('\n').map_or(0, |newline| newline + 1);
    }
    let line = before[start..].trim_start();
    line.strip_prefix('#').is_some_and(|line| line.trim_start().starts_with("define"))
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
    fn any_text_can_be_searched_for_names() {
        proptest::proptest!(|(text in "(manifest|::|#define|\\\\|\n|[ -~é]){0,20}")| {
            let _ = manifest_names(&text);
            let _ = kernel_names(&text);
        });
    }

    #[test]
    fn kernels_are_found_by_name() {
        let text = "template <typename T> __global__ void __launch_bounds__(256, f(2))\n scale(const T* x) {}\n\
                    extern \"C\" __global__ void plain() {}\n static __global__ void\nodd (int);\n __global__ void plain();\n\
                    // __global__";
        assert_eq!(kernel_names(text), ["scale", "plain", "odd"]);
    }

    #[test]
    fn any_text_can_be_searched_for_kernels() {
        for text in [
            "__global__",
            "__global__(",
            "__global__ void __x__(",
            "__global__ ä(",
            "__global__ __global__ a(",
        ] {
            let _ = kernel_names(text);
        }
    }
}
