//! Checks plugin nodes of ONNX models as TensorRT's parser does (observed with TensorRT-RTX 1.7.1;
//! `tests/tests/it/onnx.rs` compares findings). [`cubinder_model::field`] and [`cubinder_launch`] decide what a plugin
//! rejects. Never runs TensorRT or reads weights.

mod annotate;
mod bind;
mod calls;
mod check;
mod errors;
mod find;
mod finding;
mod infer;
mod inputs;
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
pub use inputs::{NetworkInput, network_inputs};
pub use list::{NodeReport, Report, TensorReport, list, table};
pub use plugins::{Plugins, open_model};
pub use shapes::{EvaluatedNode, ShapesReport, only, shapes, shapes_table};
pub use tensors::Dim;
pub use write::{changed, weights_left_behind, write};

#[cfg(test)]
mod tests;
