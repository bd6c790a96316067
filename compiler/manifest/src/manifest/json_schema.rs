//! JSON Schema (draft 7) of manifests; a superset of the reader's, except numbers such as `+0_8` in ranges.

use serde_json::{Value, json};

use super::NEWEST_SCHEMA;
use super::keys::ROOT;

/// Returns the newest edition's schema.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = ROOT.schema();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["$id"] = json!(format!("urn:cubinder:manifest:{NEWEST_SCHEMA}"));
    schema["title"] = json!("Cubinder plugin manifest");
    schema
}
