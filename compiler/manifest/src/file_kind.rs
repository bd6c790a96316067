//! Detects a TOML file's kind by its top-level keys.

use std::path::Path;

use toml::de::DeTable;

use crate::diagnostic::Diagnostic;
use crate::errors::OtherKindOfFile;
use crate::path;

/// Kind of TOML file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Plugin manifest.
    Manifest,
    /// Test cases for `cubinder eval --cases`.
    Cases,
    /// `cubinder.toml`.
    Config,
    /// Tuning file.
    Tuning,
}

impl Kind {
    /// Returns the kind of a text, if known.
    #[must_use]
    pub fn detect(text: &str) -> Option<Kind> {
        let (table, _) = DeTable::parse_recoverable(text);
        let table = table.get_ref();
        let has = |key| table.contains_key(key);
        match () {
            () if (has("points") || has("device")) && !has("plugin") => Some(Kind::Tuning),
            () if has("schema") || has("plugin") || has("launches") => Some(Kind::Manifest),
            () if has("cases") => Some(Kind::Cases),
            () if has("library") => Some(Kind::Config),
            () => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Manifest => "a manifest",
            Kind::Cases => "a file of cases",
            Kind::Config => "a `cubinder.toml`",
            Kind::Tuning => "a tuning file",
        }
    }

    fn command(self, path: &str) -> String {
        match self {
            Kind::Manifest => {
                format!("use `cubinder check {path}`, `cubinder compile {path}` or `cubinder eval {path}`")
            }
            Kind::Cases => format!("use `cubinder eval --cases {path}`"),
            Kind::Tuning => format!("use `cubinder compile --tuning {path}`, in addition to manifests"),
            Kind::Config => {
                format!("use `cubinder check --config {path}` or `cubinder compile --config {path}`")
            }
        }
    }
}

/// Rejects texts of another kind; names its command.
pub fn expect(expected: Kind, path: &Path, text: &str) -> Result<(), Diagnostic> {
    match Kind::detect(text) {
        Some(found) if found != expected => {
            let path = path::shown(path).display().to_string();
            let (command, expected, found) = (found.command(&path), expected.name(), found.name());
            Err(OtherKindOfFile { path, found, expected, command }.into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let manifest = "schema = 1\n[plugin]\nname = \"a\"\n";
        let cases = "manifest = \"a.toml\"\n[[cases]]\nname = \"a\"\n";
        let config = "[library]\nname = \"a\"\n";
        let tuning = "schema = 1\n[device]\nname = \"a\"\n[[points]]\nplugin = \"a\"\n";
        for (text, kind) in
            [(manifest, Kind::Manifest), (cases, Kind::Cases), (config, Kind::Config), (tuning, Kind::Tuning)]
        {
            assert_eq!(Kind::detect(text), Some(kind));
            assert_eq!(
                Kind::detect(&format!("{text}\nbroken = tru\n")),
                Some(kind),
                "errors must not hide the kind"
            );
        }
        for text in ["", "a = 1", "= = ="] {
            assert_eq!(Kind::detect(text), None, "{text}");
        }
        let error = expect(Kind::Manifest, Path::new("tests/./a.toml"), cases).unwrap_err();
        assert_eq!(error.message, "`tests/a.toml` is a file of cases, expected a manifest");
        assert_eq!(error.help.as_deref(), Some("use `cubinder eval --cases tests/a.toml`"));
        assert!(
            expect(Kind::Cases, Path::new("a"), cases).is_ok()
                && expect(Kind::Cases, Path::new("a"), "").is_ok()
        );
    }
}
