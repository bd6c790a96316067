use cubinder_expr::Value;
use serde::{Serialize, Serializer};

use super::guard::Reason;
use super::occupancy::Occupancy;
use crate::reported_path::ReportedPath;

/// Evaluations of one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// File, as the user named it.
    pub file: ReportedPath,
    /// File kind.
    pub kind: &'static str,
    /// Evaluations, one per node or plugin.
    pub evaluations: Vec<Evaluation>,
}

/// Evaluation of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Engine node's number, from 1, and the number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<(usize, usize)>,
    /// Plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// Version.
    pub version: String,
    /// Type parameters.
    pub types: Vec<TypeReport>,
    /// Format parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<FormatReport>,
    /// Attributes.
    pub attributes: Vec<AttributeReport>,
    /// Device facts that the plugin uses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<FactReport>,
    /// Inputs, then the outputs with known shapes.
    pub tensors: Vec<TensorReport>,
    /// Checks of the node, in order.
    pub checks: Vec<Check>,
    /// Variants, in order of preference.
    pub variants: Vec<VariantReport>,
    /// Chosen variant's scratch buffers, by offset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<ScratchReport>,
    /// Workspace in bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub workspace_bytes: u64,
    /// Chosen variant's steps, if not one plain launch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    /// Chosen variant's launches, in order.
    pub launches: Vec<LaunchReport>,
    /// Reason for rejecting the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Facts that could not be determined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Type parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeReport {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Alternatives.
    pub others: Vec<&'static str>,
}

/// Format parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormatReport {
    /// Name.
    pub name: String,
    /// Format.
    pub format: &'static str,
    /// Alternatives.
    pub others: Vec<&'static str>,
}

/// Attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttributeReport {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Value.
    #[serde(serialize_with = "plain")]
    pub value: Value,
    /// Origin of the value.
    pub from: Origin,
}

/// Origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Query.
    Given,
    /// Manifest default.
    Default,
    /// Engine.
    Engine,
}

/// Tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorReport {
    /// Name.
    pub name: String,
    /// `input` or `output`.
    pub role: &'static str,
    /// Element type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Memory layout.
    pub format: &'static str,
    /// Shape.
    pub shape: Vec<i64>,
    /// Number of elements, if it fits.
    pub elements: Option<u64>,
    /// Bytes in memory, with padding.
    pub bytes: Option<u64>,
    /// Assumed alignment in bytes.
    pub alignment: u64,
    /// Values of a shape input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<i64>>,
    /// Input that shares its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// Fact about the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactReport {
    /// Name: `sms`.
    pub name: &'static str,
    /// Value.
    pub value: i64,
    /// Origin of the value.
    pub from: FactOrigin,
}

/// Origin of a device fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOrigin {
    /// Query.
    Given,
    /// Requested architecture.
    Arch,
}

/// Check of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Condition.
    pub text: String,
    /// Whether it is satisfied.
    pub holds: bool,
    /// Reason, if not satisfied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Row of the table of variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantReport {
    /// Tactic id.
    pub id: i32,
    /// Types and constants.
    pub label: String,
    /// Guard as written.
    pub guard: Option<String>,
    /// Whether it is chosen.
    pub chosen: bool,
    /// Result of its guard.
    pub verdict: GuardReport,
    /// Deciding parts of the guard.
    pub reasons: Vec<Reason>,
}

/// Result of a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardReport {
    /// The variant has no guard.
    None,
    /// Satisfied.
    Holds,
    /// False.
    Fails,
    /// The guard has no value.
    NoValue(String),
}

#[allow(clippy::trivially_copy_pass_by_ref)] // required by serde
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Scratch buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScratchReport {
    /// Name.
    pub name: String,
    /// Offset in the workspace in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Condition as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Effect.
    #[serde(flatten)]
    pub does: StepDoes,
}

/// Effect of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepDoes {
    /// Launches a kernel.
    Launch {
        /// Launch index, from 0.
        launch: usize,
    },
    /// Fills memory with a byte.
    Fill {
        /// Output or scratch buffer.
        memory: String,
        /// Size.
        bytes: u64,
        /// Value of each byte.
        byte: u8,
    },
    /// Skipped.
    LeftOut {
        /// Kernel or memory.
        what: String,
    },
}

/// Launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchReport {
    /// Kernel name in its source.
    pub kernel: String,
    /// Blocks in x, y and z.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Total number of blocks.
    pub blocks: u64,
    /// Total number of threads.
    pub threads: u64,
    /// Dynamic shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Blocks per cluster in x, y and z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks run at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
    /// Whether it may start early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// Arguments.
    pub args: Vec<ArgReport>,
    /// Whether grid and output are empty.
    pub empty: bool,
    /// Occupancy per architecture.
    pub occupancy: Vec<OccupancyReport>,
}

/// Argument.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArgReport {
    /// Parameter name.
    pub name: String,
    /// `tensor`, `scratch`, `i32` or `i64[4]`, if known.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Passed tensor or scratch buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// Passed value.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "plain_option")]
    pub value: Option<Value>,
}

/// Occupancy of a launch on an architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OccupancyReport {
    /// Architecture: `sm_90`.
    pub arch: String,
    /// Code that runs there: `sm_90`.
    pub code: String,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block in bytes.
    pub static_shared_bytes: u32,
    /// Resident blocks and warps.
    #[serde(flatten)]
    pub occupancy: Occupancy,
}

/// Converts a value to untagged JSON. Non-finite floats are objects, distinct from strings: `{"float": "inf"}`, `"-inf"` or `"nan"`.
#[must_use]
pub fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(value) => (*value).into(),
        Value::Float(value) => serde_json::Number::from_f64(*value).map_or_else(
            || serde_json::json!({"float": if value.is_nan() { "nan".to_owned() } else { format!("{value}") }}),
            serde_json::Value::Number,
        ),
        Value::Bool(value) => (*value).into(),
        Value::Str(value) => value.as_str().into(),
        Value::Array(items) => items.iter().map(value_json).collect(),
    }
}

fn plain<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    value_json(value).serialize(serializer)
}

#[allow(clippy::ref_option)] // required by serde
fn plain_option<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(value_json).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_without_a_number_are_objects() {
        let all = [1.5, 0.1, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(Value::Float);
        let json = value_json(&Value::Array(all.to_vec()));
        let expected = r#"[1.5,0.1,1e+300,{"float":"inf"},{"float":"-inf"},{"float":"nan"}]"#;
        assert_eq!(json.to_string(), expected);
        assert_eq!(value_json(&Value::Str("inf".to_owned())).to_string(), r#""inf""#);
        assert_eq!(value_json(&Value::Int(i64::MIN)).to_string(), "-9223372036854775808");
    }
}
