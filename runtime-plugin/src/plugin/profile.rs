//! A build's shapes. Rejects profiles outside of limits, which proofs rely on.

use cubinder_expr::Interval;
use cubinder_launch::proof::Domain;
use cubinder_launch::{Facts, Steps, check_limits, check_output_limits, output_shape, workspace_bound};
use cubinder_model::Input;
use cubinder_model::model::MAX_RANK;
use trt_abi::{Dims, DynamicPluginTensorDesc, Result};

use super::node::NamedNode;
use crate::definition::TensorKinds;

/// Returns whether the network's input is a scalar: TensorRT-RTX 1.7 passes shape `[1]`.
pub(super) fn was_scalar(input: &Input, index: usize, input_ranks: Option<&[u8]>) -> bool {
    match input_ranks.and_then(|ranks| ranks.get(index)) {
        Some(rank) => *rank == 0,
        None => input.rank_max == 0,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) inputs: Vec<Vec<Interval>>,
}

impl Profile {
    pub(super) fn from_tensors(
        node: &NamedNode,
        input_ranks: Option<&[u8]>,
        tensors: &[DynamicPluginTensorDesc],
    ) -> Result<Profile> {
        let mut counted = tensors.iter();
        let inputs = node.definition.plugin().inputs.iter().enumerate();
        let inputs = inputs.map(|(index, input)| {
            if input.values.is_some() {
                // TensorRT hides shape inputs; a fixed number of values is known.
                let count = input.limits.dim(0);
                let count = if count.min == count.max { count } else { UNKNOWN };
                return Ok(vec![count; input.rank_max.min(1).into()]);
            }
            let tensor = counted.next().ok_or_else(|| node.invalid("an input is missing"))?;
            let ranges = ranges(node, tensor)?;
            let is_scalar = was_scalar(input, index, input_ranks);
            Ok(if is_scalar && ranges == [Interval { min: 1, max: 1 }] { Vec::new() } else { ranges })
        });
        Ok(Profile { inputs: inputs.collect::<Result<_, _>>()? })
    }

    /// Returns whether proofs about `all` apply: ranges are unknown or subsets.
    pub(super) fn is_among(&self, all: &Profile) -> bool {
        let is_among = |one: &Interval, all: &Interval| {
            *one == UNKNOWN || (all.contains(one.min) && all.contains(one.max))
        };
        self.inputs.len() == all.inputs.len()
            && self.inputs.iter().zip(&all.inputs).all(|(one, all)| {
                one.len() == all.len() && one.iter().zip(all).all(|(one, all)| is_among(one, all))
            })
    }

    pub(super) fn workspace_bytes(&self, node: &NamedNode, kinds: &TensorKinds) -> Result<u64> {
        let domain = Domain::new(node.definition.plugin()).with_attributes(&node.attributes);
        let bound = workspace_bound(&domain.with_profile(&self.inputs), node.reachable(Some(kinds)));
        bound.map_err(|unbounded| node.invalid(unbounded))
    }

    pub(super) fn check(&self, node: &NamedNode) -> Result<()> {
        let is_fixed = self.inputs.iter().flatten().all(|range| range.min == range.max);
        // TensorRT-RTX 1.7 also announces 0 for data-dependent sizes.
        let least = |range: &Interval| if range.min == 0 && range.max > 0 { UNKNOWN.max } else { range.min };
        let place = |place: &'static str| if is_fixed { "" } else { place };
        self.check_corner(node, place(", the minimum of the profile"), &least)?;
        self.check_corner(node, place(", the maximum of the profile"), &|range| range.max)
    }

    fn check_corner(&self, node: &NamedNode, place: &str, end: &dyn Fn(&Interval) -> i64) -> Result<()> {
        let plugin = node.definition.plugin();
        let shapes: Vec<Vec<i64>> =
            self.inputs.iter().map(|ranges| ranges.iter().map(end).collect()).collect();
        // Others are checked at run time.
        let is_known = |shape: &[i64]| !shape.contains(&UNKNOWN.max);
        for (input, shape) in plugin.inputs.iter().zip(&shapes).filter(|(_, shape)| is_known(shape)) {
            check_limits(&input.name, shape, &input.limits, place).map_err(|unmet| node.invalid(unmet))?;
        }
        let unseen = |shape: &[i64]| UNSEEN.get(..shape.len()).unwrap_or(&UNSEEN);
        let seen = shapes.iter().map(|shape| if is_known(shape) { shape.as_slice() } else { unseen(shape) });
        let shapes: Vec<&[i64]> = seen.collect();
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let mut steps = Steps::default();
        for output in &plugin.outputs {
            // Invalid shapes are reported later, in more detail.
            if let Ok(shape) = output_shape(plugin, output, &facts, &mut steps) {
                check_output_limits(output, &shape, place).map_err(|unmet| node.invalid(unmet))?;
            }
        }
        Ok(())
    }
}

const UNKNOWN: Interval = Interval::ANY_SIZE;

/// Only the rank is known.
const UNSEEN: [i64; MAX_RANK as usize] = [-1; MAX_RANK as usize];

/// TensorRT announces both ends of dynamic dimensions (-1).
fn ranges(node: &NamedNode, tensor: &DynamicPluginTensorDesc) -> Result<Vec<Interval>> {
    let extents = announced(node, &tensor.desc.dims)?;
    let (least, greatest) = (tensor.min.as_slice(), tensor.max.as_slice());
    let range = |(axis, extent): (usize, &i64)| {
        if *extent >= 0 {
            return Interval { min: *extent, max: *extent };
        }
        match (least.get(axis), greatest.get(axis)) {
            (Some(min), Some(max)) if 0 <= *min && min <= max && least.len() == greatest.len() => {
                Interval { min: *min, max: *max }
            }
            _ => UNKNOWN,
        }
    };
    Ok(extents.iter().enumerate().map(range).collect())
}

pub(super) fn announced<'a>(node: &NamedNode, dims: &'a Dims) -> Result<&'a [i64]> {
    let extents = dims.as_slice();
    if usize::try_from(dims.nb_dims) == Ok(extents.len()) {
        return Ok(extents);
    }
    Err(node.impossible_rank(dims.nb_dims))
}
