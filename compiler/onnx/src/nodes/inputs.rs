//! The network's inputs, for optimization profiles.

use std::collections::HashSet;

use crate::Model;
use crate::proto::TensorProto;

use super::tensors::{Dim, Tensor, Tensors};

/// Input of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkInput {
    /// Name.
    pub name: String,
    /// Dimensions; `None` if the rank is unknown.
    pub dims: Option<Vec<Dim>>,
    /// Whether its elements are 32-bit or 64-bit integers.
    pub is_integer: bool,
}

/// Returns the network's inputs, without weights.
#[must_use]
pub fn network_inputs(model: &Model) -> Vec<NetworkInput> {
    let tensors = Tensors::new(model);
    let Some(network) = model.graphs.first() else { return Vec::new() };
    let weights: HashSet<&str> = network.initializers.iter().map(TensorProto::name).collect();
    let inputs = network.inputs.iter().filter(|input| !weights.contains(input.name.as_str()));
    let described = |name: &String| {
        let tensor = tensors.get(0, name);
        let dims = tensor.and_then(|tensor| tensor.dims.clone());
        NetworkInput { name: name.clone(), dims, is_integer: tensor.is_some_and(Tensor::is_integer) }
    };
    inputs.map(|input| described(&input.name)).collect()
}
