//! ONNX model files: streamed without weights, edited node by node; plugin nodes ([`nodes`]).
//!
//! Owns the format's types ([`proto`]), reading ([`Model`]), editing ([`Edits`]) and standard operators' names
//! ([`operators`]). Memory grows with nodes, not weights; never opens external data. Never panics.

mod edit;
mod error;
mod model;
pub mod nodes;
pub mod operators;
mod prune;
mod read;
pub mod testing;
mod wire;

/// The format's messages. `cargo test -p cubinder-onnx --test it generated` compares them with `onnx.proto` of the
/// pinned `onnx` package; `CUBINDER_UPDATE_ONNX=1` rewrites them.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod proto {
    include!("generated/onnx.rs");
}

pub use edit::{EditedModel, Edits};
pub use error::Error;
pub use model::{Graph, Model, Node, NodeId, Owner, Value};

use cubinder_library as library;
use cubinder_node::{eval, query};
use cubinder_source::{columns, diagnostic, reported_path, source};
