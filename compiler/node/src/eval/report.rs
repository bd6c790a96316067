//! What an evaluation found: values for people ([`super::table`]) and, as JSON, for programs.

use cubinder_expr::Value;
use serde::{Serialize, Serializer};

use super::guard::Reason;
use super::occupancy::Occupancy;
use crate::reported_path::ReportedPath;

/// Everything that was evaluated in one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The file, as the user named it.
    pub file: ReportedPath,
    /// What the file is.
    pub kind: &'static str,
    /// One for each node or plugin.
    pub evaluations: Vec<Evaluation>,
}

/// One node with its shapes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Which node of an engine: the number, from 1, and how many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<(usize, usize)>,
    /// The plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The type parameters.
    pub types: Vec<TypeReport>,
    /// The format parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<FormatReport>,
    /// The attributes.
    pub attributes: Vec<AttributeReport>,
    /// The facts about the device that anything in the plugin asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<FactReport>,
    /// The inputs, then the outputs as far as their shapes are known.
    pub tensors: Vec<TensorReport>,
    /// What must hold of the node, in the order in which it is looked at.
    pub checks: Vec<Check>,
    /// The variants of these types, in order of preference; none where a check failed.
    pub variants: Vec<VariantReport>,
    /// The memory that the steps of the chosen variant share, in the order in which it lies in the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<ScratchReport>,
    /// The workspace that the scratch buffers take together, bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub workspace_bytes: u64,
    /// The steps of the chosen variant in order, where it has more than one launch without a condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    /// What the chosen variant launches, in order.
    pub launches: Vec<LaunchReport>,
    /// Why the run time would refuse the node, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What could not be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A type parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeReport {
    /// Its name.
    pub name: String,
    /// What it is here.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// What else it can be.
    pub others: Vec<&'static str>,
}

/// A format parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormatReport {
    /// Its name.
    pub name: String,
    /// What it is here.
    pub format: &'static str,
    /// What else it can be.
    pub others: Vec<&'static str>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttributeReport {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Its value.
    #[serde(serialize_with = "plain")]
    pub value: Value,
    /// Where the value comes from.
    pub from: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The query.
    Given,
    /// The manifest's default.
    Default,
    /// The engine.
    Engine,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// `input` or `output`.
    pub role: &'static str,
    /// Its element type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// How it lies in memory.
    pub format: &'static str,
    /// Its shape.
    pub shape: Vec<i64>,
    /// Its elements and its bytes, where 64 bits hold them.
    pub elements: Option<u64>,
    /// Its bytes in memory, with what its format adds.
    pub bytes: Option<u64>,
    /// Of what its address is taken to be a multiple, bytes.
    pub alignment: u64,
    /// What a shape input holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<i64>>,
    /// The input whose memory an output shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// A fact about the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactReport {
    /// Its name: `sms`.
    pub name: &'static str,
    /// What it is here.
    pub value: i64,
    /// Where that comes from.
    pub from: FactOrigin,
}

/// Where a fact about the device comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOrigin {
    /// The query.
    Given,
    /// The architecture that was asked for.
    Arch,
}

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why not, in the run time's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A row of the table of variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantReport {
    /// The tactic id.
    pub id: i32,
    /// Types and constants.
    pub label: String,
    /// The guard, as its author wrote it.
    pub guard: Option<String>,
    /// Whether it is the one that runs.
    pub chosen: bool,
    /// What its guard came to.
    pub verdict: GuardReport,
    /// The parts of the guard that decide.
    pub reasons: Vec<Reason>,
}

/// What a guard came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardReport {
    /// There is none.
    None,
    /// It holds.
    Holds,
    /// It is false.
    Fails,
    /// It has no value.
    NoValue(String),
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde gives it so
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// A scratch buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScratchReport {
    /// Its name.
    pub name: String,
    /// Its start from that of the workspace, bytes.
    pub offset: u64,
    /// Its size, bytes.
    pub bytes: u64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepReport {
    /// Its condition, as its author wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What it does.
    #[serde(flatten)]
    pub does: StepDoes,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum StepDoes {
    /// It launches a kernel.
    Launch {
        /// Which of the launches, from 0.
        launch: usize,
    },
    /// It fills memory with a byte.
    Fill {
        /// The name of the output or the scratch buffer.
        memory: String,
        /// How much of it: all.
        bytes: u64,
        /// What every byte becomes.
        byte: u8,
    },
    /// Nothing: its condition is false.
    LeftOut {
        /// The kernel, or the memory that would be filled.
        what: String,
    },
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchReport {
    /// The kernel, as its source names it.
    pub kernel: String,
    /// Blocks in x, y and z; none where the launch is refused.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Blocks in all.
    pub blocks: u64,
    /// Threads in all.
    pub threads: u64,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y and z, where it is launched in clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether all blocks run at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
    /// Whether it may begin before the step before it has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// The arguments.
    pub args: Vec<ArgReport>,
    /// Whether nothing is launched: an extent of the grid is 0, and an output is empty.
    pub empty: bool,
    /// How many blocks a multiprocessor holds, for each architecture that there is machine code for or that was asked for.
    pub occupancy: Vec<OccupancyReport>,
}

/// An argument.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArgReport {
    /// The parameter's name.
    pub name: String,
    /// `tensor`, `scratch`, or the kernel's type: `i32`, `i64[4]`. None where it is not known.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// The tensor or the scratch buffer that it points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// The number or the numbers.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "plain_option")]
    pub value: Option<Value>,
}

/// The occupancy of a launch on an architecture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OccupancyReport {
    /// The architecture: `sm_90`.
    pub arch: String,
    /// The code that it runs: `sm_90`.
    pub code: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, bytes.
    pub static_shared_bytes: u32,
    /// What a multiprocessor holds.
    #[serde(flatten)]
    pub occupancy: Occupancy,
}

/// A value as JSON has it: not tagged with its kind. A float that JSON has no number for is an object, so that it cannot be taken
/// for a string: `{"float": "inf"}`, `{"float": "-inf"}`, `{"float": "nan"}`.
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

#[allow(clippy::ref_option)] // serde gives it so
fn plain_option<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(value_json).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/json.md` promises it: finite floats are numbers, the others objects and not strings.
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
