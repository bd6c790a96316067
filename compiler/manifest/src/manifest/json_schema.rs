//! The description of manifests as JSON Schema (draft 7), for editors that complete and check TOML by it.
//!
//! It says what can be said of a value on its own, and of the values of an attribute by its type. It never refuses what the
//! reader accepts (save for numbers in ranges that nobody writes, such as `+0_8`); what it cannot say (an empty range, a name
//! twice) only the reader tells.

use serde_json::{Value, json};

use super::NEWEST_SCHEMA;
use super::keys::ROOT;

/// The JSON Schema of manifests of the newest edition.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = ROOT.schema();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["$id"] = json!(format!("urn:cubinder:manifest:{NEWEST_SCHEMA}"));
    schema["title"] = json!("Cubinder plugin manifest");
    schema
}
