//! Evaluates launches without a GPU, by [`cubinder_launch`]. Unknown facts become notes. Never requires NVRTC.

mod checks;
mod code;
mod device;
mod guard;
mod inputs;
mod launches;
mod names;
mod node;
pub mod occupancy;
mod report;
mod resolved;
mod steps;
mod subject;
mod table;
mod tuned;
mod types;

pub use code::{Compiler, Environment};
pub use guard::{Reason, reasons};
pub use launches::arg_type;
pub use node::{EvaluatedNode, evaluate, stated_alignment};
pub use report::{
    ArgReport, AttributeReport, Check, Evaluation, FactOrigin, FactReport, FormatReport, GuardReport,
    LaunchReport, OccupancyReport, Origin, Report, TensorReport, TypeReport, VariantReport, value_json,
};
pub use resolved::{ResolvedQuery, resolve_query, slices};
pub use subject::{
    Choice, Origin as SubjectOrigin, Subject, Subjects, choose, compiled, manifest, open, read_subjects,
    referred_plugin,
};
pub use table::table;
