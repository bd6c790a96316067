//! The node's own words around what is wrong with it.

use std::fmt::Display;

use cubinder_bundle::launch::Facts;
use trt_abi::Error;

use super::NodeData;

impl NodeData {
    /// What expressions see of the node while nothing but its attributes is known.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { attributes: &self.attributes, ..Facts::default() }
    }

    /// An error about the node.
    pub(super) fn invalid(&self, why: impl Display) -> Error {
        Error::invalid(format!("{}: {why}", self.title))
    }

    /// The error for a rank that no tensor of TensorRT has.
    pub(super) fn impossible_rank(&self, rank: i32) -> Error {
        self.invalid(format_args!("a tensor of rank {rank}, expected 0 to 8"))
    }
}
