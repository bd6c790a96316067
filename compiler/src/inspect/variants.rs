//! The table of variants.

use std::collections::BTreeMap;

use cubinder_model::{CodeObject, Plugin, Variant};
use cubinder_node::eval::value_json;
use serde::Serialize;

use super::steps::{self, ConditionReport, ScratchReport, StepReport};

report! {
    /// One row of the table of variants.
    VariantReport {
        /// The tactic id.
        id: i32,
        /// Types, formats and constants.
        label: String,
        /// Type and format of each tensor, in the order of inputs and outputs.
        tensors: Vec<RowTensor>,
        /// The attributes for which it was compiled, with their values.
        [optional] specialized: BTreeMap<String, serde_json::Value>,
        /// When it may run; where there is none, always.
        [optional] guard: Option<ConditionReport>,
        /// The kernels that it launches, as source names them.
        kernels: Vec<String>,
        /// The memory that its steps share.
        [optional] scratch: Vec<ScratchReport>,
        /// Its steps in order.
        steps: Vec<StepReport>,
        /// Target and digest of each code object that it uses.
        code: Vec<(String, String)>,
    }

    /// A tensor as one row has it.
    RowTensor {
        /// Its name.
        name: String,
        /// The type of its elements.
        #[serde(rename = "type")]
        ty: &'static str,
        /// How it lies in memory.
        format: &'static str,
    }
}

pub(super) fn variant(plugin: &Plugin, variant: &Variant, code: &[CodeObject]) -> VariantReport {
    let references = variant.launches().flat_map(|launch| &launch.code);
    let used = references.filter_map(|reference| {
        let object = code.get(reference.code as usize)?;
        Some((reference.target.to_string(), object.digest.to_string()))
    });
    VariantReport {
        id: variant.id,
        label: variant.label.clone(),
        tensors: tensors(plugin, variant),
        specialized: specialized(plugin, variant),
        guard: variant.guard.as_ref().map(|guard| steps::condition(plugin, guard)),
        kernels: variant.launches().map(|launch| launch.kernel.clone()).collect(),
        scratch: steps::scratch(plugin, variant),
        steps: steps::steps(plugin, variant),
        code: used.collect(),
    }
}

fn tensors(plugin: &Plugin, variant: &Variant) -> Vec<RowTensor> {
    let each = variant.types.iter().zip(&variant.formats).enumerate();
    let each = each.map(|(index, (ty, format))| RowTensor {
        name: plugin.tensor_name(index).unwrap_or("?").to_owned(),
        ty: ty.name(),
        format: format.name(),
    });
    each.collect()
}

fn specialized(plugin: &Plugin, variant: &Variant) -> BTreeMap<String, serde_json::Value> {
    let named = variant.specialized.iter().filter_map(|(index, value)| {
        let attribute = plugin.attributes.get(*index as usize)?;
        Some((attribute.name.clone(), value_json(value)))
    });
    named.collect()
}
