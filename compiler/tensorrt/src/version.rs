use std::path::Path;

/// A release of TensorRT: `1.7.1.116`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    parts: (u32, u32),
}

impl Version {
    /// Parses a version with at least two numbers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.split('.').map(|part| part.parse().ok());
        let parts = (numbers.next()??, numbers.next()??);
        Some(Version { text: text.to_owned(), parts })
    }

    /// Reads the version of `libnvinfer.so.10.15.1`, a resolved name.
    pub(crate) fn of_library(folder: &Path, name: &str) -> Option<Version> {
        let names =
            std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let suffix = |other: &str| other.strip_prefix(name)?.strip_prefix('.').and_then(Version::parse);
        names.filter_map(|name| suffix(&name)).max_by_key(|version| version.parts)
    }

    /// Returns the major and minor number.
    #[must_use]
    pub fn release(&self) -> (u32, u32) {
        self.parts
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_two_numbers() {
        assert_eq!(Version::parse("1.7.1.116").map(|version| version.release()), Some((1, 7)));
        assert_eq!(Version::parse("10.15").map(|version| version.to_string()), Some("10.15".to_owned()));
        for text in ["", "1", "a.b", "1.x", "-1.2"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn libraries_name_their_version() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Version::of_library(folder.path(), "libnvinfer.so"), None);
        for name in [
            "libnvinfer.so",
            "libnvinfer.so.10",
            "libnvinfer.so.10.9.0",
            "libnvinfer.so.10.15.1",
            "libnvinfer_x.so.99.1",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = Version::of_library(folder.path(), "libnvinfer.so").unwrap();
        assert_eq!(found.to_string(), "10.15.1");
    }
}
