//! Types and formats for TensorRT's builder. Makes no driver call.

use cubinder_expr::{DataType, Format};
use cubinder_launch as launch;
use cubinder_model::Plugin;
use trt_abi::{DynamicPluginTensorDesc, Error, PluginTensorDesc, Result};

use super::node::NamedNode;
use crate::definition::TensorKinds;

pub(super) fn output_types(
    node: &NamedNode,
    inputs: &[trt_abi::DataType],
    outputs: &mut [trt_abi::DataType],
) -> Result<()> {
    check_counts(node, inputs.len(), outputs.len())?;
    let types = known_types(node, inputs)?;
    let fitting = node.kinds.iter().find(|kinds| fits(node, kinds, &types, None));
    let kinds = fitting.ok_or_else(|| no_variant(node, &types, &[]))?;
    let given = &kinds.types[node.definition.plugin().inputs.len()..];
    for (output, ty) in outputs.iter_mut().zip(given) {
        *output = trt_abi::DataType(ty.tensorrt());
    }
    Ok(())
}

pub(super) fn supports(
    node: &NamedNode,
    position: usize,
    in_out: &[DynamicPluginTensorDesc],
    input_count: usize,
) -> bool {
    if input_count != node.counted_inputs() || in_out.len() != node.counted.len() {
        return false;
    }
    let Some(known) = in_out.get(..=position) else { return false };
    let types: Option<Vec<DataType>> =
        known.iter().map(|tensor| DataType::from_tensorrt(tensor.desc.data_type.0)).collect();
    let formats: Option<Vec<Format>> =
        known.iter().map(|tensor| Format::from_tensorrt(tensor.desc.format.0)).collect();
    let (Some(types), Some(formats)) = (types, formats) else { return false };
    if known.iter().zip(&formats).any(|(tensor, format)| rank_below(&tensor.desc, *format).is_some()) {
        return false;
    }
    node.kinds.iter().any(|kinds| fits(node, kinds, &types, Some(&formats)))
}

pub(super) fn configured_kinds<'n>(
    node: &'n NamedNode,
    inputs: &[DynamicPluginTensorDesc],
    outputs: &[DynamicPluginTensorDesc],
) -> Result<&'n TensorKinds> {
    check_counts(node, inputs.len(), outputs.len())?;
    kinds_of(node, inputs.iter().chain(outputs).map(|tensor| &tensor.desc))
}

pub(super) fn kinds_of<'n, 't>(
    node: &'n NamedNode,
    tensors: impl Iterator<Item = &'t PluginTensorDesc> + Clone,
) -> Result<&'n TensorKinds> {
    let types: Vec<_> = tensors.clone().map(|tensor| tensor.data_type).collect();
    let types = known_types(node, &types)?;
    let format = |tensor: &PluginTensorDesc| {
        let format = tensor.format;
        Format::from_tensorrt(format.0)
            .ok_or_else(|| node.invalid(format_args!("no plugin supports tensors in the format {format:?}")))
    };
    let formats: Vec<Format> = tensors.clone().map(format).collect::<Result<_, _>>()?;
    for ((tensor, format), index) in tensors.zip(&formats).zip(&node.counted) {
        if let Some(rank) = rank_below(tensor, *format) {
            let name = node.definition.plugin().tensor_name(*index).unwrap_or_default();
            let (format, least) = (format.name(), format.min_rank());
            return Err(node.invalid(format_args!(
                "`{name}` has rank {rank}, but tensors in the format `{format}` have at least {least} dimensions"
            )));
        }
    }
    let fitting = node.kinds.iter().find(|kinds| fits(node, kinds, &types, Some(&formats)));
    fitting.ok_or_else(|| no_variant(node, &types, &formats))
}

pub(super) fn rank_below(tensor: &PluginTensorDesc, format: Format) -> Option<usize> {
    usize::try_from(tensor.dims.nb_dims).ok().filter(|rank| *rank < format.min_rank())
}

fn fits(node: &NamedNode, kinds: &TensorKinds, types: &[DataType], formats: Option<&[Format]>) -> bool {
    let of_types = |(tensor, ty): (&usize, &DataType)| kinds.types.get(*tensor) == Some(ty);
    let of_formats = |(tensor, format): (&usize, &Format)| kinds.formats.get(*tensor) == Some(format);
    node.counted.iter().zip(types).all(of_types)
        && formats.is_none_or(|formats| node.counted.iter().zip(formats).all(of_formats))
}

fn no_variant(node: &NamedNode, types: &[DataType], formats: &[Format]) -> Error {
    // TensorRT does not announce shape inputs, of only one type.
    let Some(first) = node.kinds.first() else { return node.invalid("it has no variant") };
    let end = node.counted.get(types.len()).copied().unwrap_or(first.types.len());
    let (mut all_types, mut all_formats) = (first.types.clone(), first.formats.clone());
    for (tensor, ty) in node.counted.iter().zip(types) {
        all_types[*tensor] = *ty;
    }
    for (tensor, format) in node.counted.iter().zip(formats) {
        all_formats[*tensor] = *format;
    }
    let formats = if formats.is_empty() { &[] } else { &all_formats[..end] };
    node.invalid(launch::no_variant(node.definition.plugin(), &node.signature(&all_types[..end], formats)))
}

pub(super) fn check_counts(node: &NamedNode, inputs: usize, outputs: usize) -> Result<()> {
    let plugin = node.definition.plugin();
    let expected = node.counted_inputs();
    if inputs != expected {
        let plain = expected == plugin.inputs.len();
        let what = if plain { "inputs" } else { "inputs that are not shape inputs" };
        let remedy = if plain { String::new() } else { shape_inputs_are_named(plugin) };
        return Err(
            node.invalid(format_args!("the node has {inputs} {what}, the plugin expects {expected}{remedy}"))
        );
    }
    let expected = plugin.outputs.len();
    if outputs != expected {
        return Err(node.invalid(format_args!("the node has {outputs} outputs, the plugin has {expected}")));
    }
    Ok(())
}

/// TensorRT's ONNX parser finds shape inputs by an attribute (TensorRT-RTX 1.7).
pub(super) fn shape_inputs_are_named(plugin: &Plugin) -> String {
    let all = plugin.inputs.iter().enumerate().filter(|(_, input)| input.values.is_some());
    let indices: Vec<String> = all.map(|(index, _)| index.to_string()).collect();
    let list = indices.join(", ");
    format!("; the node's attribute `tensorrt_plugin_shape_input_indices` must be [{list}]")
}

fn known_types(node: &NamedNode, types: &[trt_abi::DataType]) -> Result<Vec<DataType>> {
    types
        .iter()
        .map(|ty| {
            DataType::from_tensorrt(ty.0)
                .ok_or_else(|| node.invalid(format_args!("no plugin supports tensors of type {ty:?}")))
        })
        .collect()
}
