//! Paths for JSON output (`docs/json.md`) and workers. Serde rejects invalid UTF-8, and `json!` panics.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// Path in a report: a string if UTF-8, else an object with `text` (`U+FFFD` for invalid bytes) and `bytes`, an array of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedPath(PathBuf);

impl<P: AsRef<Path> + ?Sized> From<&P> for ReportedPath {
    fn from(path: &P) -> ReportedPath {
        ReportedPath(path.as_ref().to_owned())
    }
}

impl fmt::Display for ReportedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for ReportedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = self.0.to_str() {
            return serializer.serialize_str(text);
        }
        let mut object = serializer.serialize_struct("ReportedPath", 2)?;
        object.serialize_field("text", &self.0.to_string_lossy())?;
        object.serialize_field("bytes", self.0.as_os_str().as_bytes())?;
        object.end()
    }
}

/// Path between `cubinder` processes, for `#[serde(with = "as_bytes")]`.
pub mod as_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the path's bytes.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(serializer)
    }

    /// Reads a path from [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(OsString::from_vec(Vec::deserialize(deserializer)?).into())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    use super::*;

    fn path(bytes: &[u8]) -> ReportedPath {
        ReportedPath::from(OsStr::from_bytes(bytes))
    }

    #[test]
    fn only_a_path_that_is_not_utf8_is_an_object() {
        assert_eq!(json!(path("caf\u{e9}/x".as_bytes())), json!("caf\u{e9}/x"));
        let latin = path(b"caf\xe9/x");
        assert_eq!(latin.to_string(), "caf\u{fffd}/x");
        assert_eq!(json!(latin), json!({"text": "caf\u{fffd}/x", "bytes": [99, 97, 102, 233, 47, 120]}));
    }

    fn read_back(value: &Value) -> Option<Vec<u8>> {
        match value {
            Value::String(text) => Some(text.clone().into_bytes()),
            other => serde_json::from_value(other.get("bytes")?.clone()).ok(),
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Message {
        #[serde(with = "as_bytes")]
        path: PathBuf,
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![any::<Vec<u8>>(), any::<String>().prop_map(String::into_bytes)]
    }

    proptest! {
        #[test]
        fn no_path_is_lost_or_panics(bytes in bytes()) {
            let reported = path(&bytes);
            let text = serde_json::to_string(&reported).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let value: Value = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(read_back(&value), Some(bytes.clone()));
            prop_assert_eq!(value.is_string(), std::str::from_utf8(&bytes).is_ok());
        }

        #[test]
        fn processes_exchange_any_path(bytes in bytes()) {
            let sent = Message { path: OsStr::from_bytes(&bytes).into() };
            let encoded = postcard::to_allocvec(&sent).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let received: Message = postcard::from_bytes(&encoded).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(received.path, sent.path);
        }
    }
}
