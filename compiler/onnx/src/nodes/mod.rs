//! ONNX models against plugins: what TensorRT's parser would make of a model's plugin nodes.
//!
//! Owns: which node is whose (`find`), what the parser passes of it (`plugin_fields`), what is known of its tensors (`tensors`, `standard`, `infer`), and
//! what is wrong with it (`check`, `errors`); the list of them ([`list()`]), and what is written into them ([`annotate()`]); their
//! shapes and launches ([`shapes()`]). What a plugin refuses is decided by [`cubinder_model::field`] and
//! [`cubinder_launch`], which the runtime decides by as well. Never runs TensorRT, and never reads weights.
//!
//! Statements about TensorRT's parser were verified with TensorRT-RTX 1.7.1; `tests/tests/it/onnx.rs` compares the findings with it.

mod annotate;
mod bind;
mod calls;
mod check;
mod errors;
mod find;
mod finding;
mod infer;
mod list;
mod names;
mod plugin_fields;
mod plugins;
mod producers;
mod shapes;
mod standard;
mod tensors;
mod write;

pub use annotate::{Annotated, AnnotationScope, Change, Import, Mapping, NodeChanges, annotate, diff};
pub use bind::NetworkShapes;
pub use finding::Finding;
pub use list::{NodeReport, Report, TensorReport, list, table};
pub use plugins::{Plugins, open_model};
pub use shapes::{EvaluatedNode, ShapesReport, only, shapes, shapes_table};
pub use tensors::Dim;
pub use write::{changed, weights_left_behind, write};

#[cfg(test)]
mod tests;
