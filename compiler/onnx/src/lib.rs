//! ONNX model files: read as a stream without their weights, and changed node by node; and their nodes of plugins ([`nodes`]).
//!
//! Owns: the types of the format ([`proto`], generated from the ONNX project's own description), reading ([`Model`]), changing
//! ([`Edits`]), and the names of the operators that the ONNX standard has ([`operators`]).
//!
//! A model of 3 GiB with 10,000 nodes costs the memory of 10,000 nodes: weights are skipped, and data that lie in other files are never
//! opened. What an edit does not name comes out byte for byte, fields that this version does not know included.
//!
//! Never: no plugin outside of [`nodes`], no manifest, no `unsafe`, no network, no panic for any input. Bytes are a stranger's.

mod edit;
mod error;
mod model;
pub mod nodes;
pub mod operators;
mod prune;
mod read;
pub mod testing;
mod wire;

/// The messages of the format. Generated: `cargo test -p cubinder-onnx --test it generated` compares them with `onnx.proto` of the
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
