//! Names of plugin libraries: `NAME` of `libNAME.so`.

use crate::diagnostic::Diagnostic;
use crate::errors::{FileAsLibraryName, NotLibraryName, RuntimeLibraryName};

/// Rejects invalid or complete file names, and the runtime library's name.
pub fn check_name(name: &str) -> Result<(), Diagnostic> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !starts || !name.chars().all(is_allowed) {
        return Err(NotLibraryName { name }.into());
    }
    if let Some(stem) = name.strip_suffix(".so") {
        let stem = stem.strip_prefix("lib").filter(|stem| !stem.is_empty()).unwrap_or(stem);
        return Err(FileAsLibraryName { name, stem }.into());
    }
    if name == "cubinder" {
        return Err(RuntimeLibraryName {}.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_stems_of_files_are_names() {
        for name in ["a", "_", "7", "scale", "my-plugins_2", "v1.2", "c++", "a..b", "so", "lib"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "-",
            "-o",
            "+",
            ".hidden",
            "a/b",
            "/",
            "a\0",
            "a b",
            "\u{e4}",
            "a.so",
            "libfoo.so",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("cubinder").is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_name_is_one_part_of_a_path(name in "[a-zA-Z0-9_.+/-]{0,6}|\\PC{0,6}") {
            if check_name(&name).is_ok() {
                let stem = format!("lib{name}");
                let file = std::path::PathBuf::from(format!("{stem}.so"));
                prop_assert_eq!(file.components().count(), 1);
                prop_assert_eq!(file.file_stem().and_then(|stem| stem.to_str()), Some(stem.as_str()));
            }
        }
    }
}
