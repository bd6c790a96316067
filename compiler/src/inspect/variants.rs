use std::collections::BTreeMap;

use cubinder_model::{CodeObject, Plugin, Variant};
use cubinder_node::eval::value_json;
use serde::Serialize;

use super::steps::{self, ConditionReport, ScratchReport, StepReport};

report! {
    /// A row of the table of variants.
    VariantReport {
        /// Tactic id.
        id: i32,
        /// Types, formats and constants.
        label: String,
        /// Types and formats of tensors.
        tensors: Vec<RowTensor>,
        /// Compiled attributes with values.
        [optional] specialized: BTreeMap<String, serde_json::Value>,
        /// Guard, unless always satisfied.
        [optional] guard: Option<ConditionReport>,
        /// Kernels' source names.
        kernels: Vec<String>,
        /// Scratch buffers.
        [optional] scratch: Vec<ScratchReport>,
        /// Steps in order.
        steps: Vec<StepReport>,
        /// Target and digest of used code objects.
        code: Vec<(String, String)>,
    }

    /// A tensor in one row.
    RowTensor {
        /// Its name.
        name: String,
        /// Element type.
        #[serde(rename = "type")]
        ty: &'static str,
        /// Memory format.
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
