use crate::model::{Input, MAX_SHAPE_VALUES, Output, Plugin, Variant};
use cubinder_expr::data_type::DataType;
use cubinder_expr::format::Format;
use cubinder_expr::{Expr, Node, sizes_are_dimensions};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExprRole {
    Shape,
    Inputs,
    Guard,
    Launch,
}

pub(super) fn validate_expr(plugin: &Plugin, expr: &Expr, role: ExprRole) -> Result<(), String> {
    let tensors = match role {
        ExprRole::Shape | ExprRole::Guard | ExprRole::Launch => plugin.tensor_count(),
        ExprRole::Inputs => plugin.inputs.len(),
    };
    expr.validate(plugin.attributes.len(), tensors).map_err(|error| error.to_string())?;
    if let Some(wrong) = expr.nodes.iter().find_map(|node| misplaced(plugin, node, role)) {
        return Err(wrong);
    }
    if sizes_are_dimensions(expr) { Ok(()) } else { Err("an expression computes with a size".to_owned()) }
}

fn misplaced(plugin: &Plugin, node: &Node, role: ExprRole) -> Option<String> {
    let is_launch = matches!(role, ExprRole::Guard | ExprRole::Launch);
    match *node {
        Node::Aligned { tensor, .. } => match plugin.inputs.get(tensor as usize) {
            Some(input) if input.values.is_some() => {
                Some(format!("`{}` has no address on the device", input.name))
            }
            _ if role != ExprRole::Guard => Some("only a guard can use `aligned`".to_owned()),
            _ => None,
        },
        Node::Device(_) if !is_launch => Some("only guards and launches can depend on the device".to_owned()),
        Node::Values(_) if is_launch => {
            Some("only the shape of an output can depend on the values of a shape input".to_owned())
        }
        Node::Values(tensor) => {
            (!is_shape_input(plugin, tensor)).then(|| format!("tensor {tensor} is not a shape input"))
        }
        Node::Size(tensor) => match output(plugin, tensor).is_some_and(|output| output.size.is_some()) {
            true if role == ExprRole::Shape => None,
            true => Some("only the shape of an output can have a size that kernels write".to_owned()),
            false => Some(format!("tensor {tensor} does not contain a size")),
        },
        Node::Shape(tensor) | Node::Numel(tensor) | Node::Rank(tensor) if !is_launch => {
            let is_input = (tensor as usize) < plugin.inputs.len();
            (!is_input).then(|| format!("tensor {tensor} is not an input"))
        }
        Node::Shape(tensor) | Node::Numel(tensor) if is_shape_input(plugin, tensor) => {
            Some("only the shape of an output can depend on the extents of a shape input".to_owned())
        }
        Node::Shape(tensor) | Node::Numel(tensor) => {
            let depends = output(plugin, tensor).is_some_and(Output::depends_on_data);
            depends.then(|| format!("the shape of tensor {tensor} depends on data"))
        }
        _ => None,
    }
}

fn is_shape_input(plugin: &Plugin, tensor: u32) -> bool {
    plugin.inputs.get(tensor as usize).is_some_and(|input| input.values.is_some())
}

fn output(plugin: &Plugin, tensor: u32) -> Option<&Output> {
    (tensor as usize).checked_sub(plugin.inputs.len()).and_then(|index| plugin.outputs.get(index))
}

pub(super) fn validate_shape_input(input: &Input) -> Result<(), String> {
    let Some(values) = input.values else { return Ok(()) };
    let most = if input.rank_max == 0 { 1 } else { input.limits.dim(0).max };
    if input.rank_min == input.rank_max && input.rank_max <= 1 && values.min <= values.max {
        return match most <= MAX_SHAPE_VALUES {
            true => Ok(()),
            false => {
                Err(format!("shape input `{}` may have more than {MAX_SHAPE_VALUES} values", input.name))
            }
        };
    }
    Err(format!("`{}` is not a valid shape input", input.name))
}

pub(super) fn validate_outputs(plugin: &Plugin) -> Result<(), String> {
    let mut aliased = Vec::new();
    for output in &plugin.outputs {
        if let Some(index) = output.alias {
            let can_be = plugin.inputs.get(index as usize).is_some_and(|input| input.values.is_none());
            let is_alike = output.shape.nodes == [Node::Shape(index)] && output.size.is_none();
            if !can_be || !is_alike || aliased.contains(&index) {
                return Err(format!("output `{}` shares the memory of an incompatible input", output.name));
            }
            aliased.push(index);
        }
        if let Some(bound) = &output.size {
            if output.shape.nodes != [Node::Array(Vec::new())] {
                return Err(format!("`{}` contains a size but is not a scalar", output.name));
            }
            for expr in [&bound.upper, &bound.opt] {
                validate_expr(plugin, expr, ExprRole::Inputs)?;
            }
        }
    }
    Ok(())
}

pub(super) fn validate_tensors(plugin: &Plugin, variant: &Variant) -> Result<(), String> {
    let kind = |index: usize| (variant.types.get(index).copied(), variant.formats.get(index).copied());
    let integers =
        |index: usize| matches!(kind(index), (Some(DataType::I32 | DataType::I64), Some(Format::Linear)));
    let shape_inputs = plugin.inputs.iter().enumerate().filter(|(_, input)| input.values.is_some());
    for (index, input) in shape_inputs {
        if !integers(index) {
            return Err(format!("shape input `{}` does not contain integers", input.name));
        }
    }
    for (index, output) in (plugin.inputs.len()..).zip(&plugin.outputs) {
        if output.size.is_some() && !integers(index) {
            return Err(format!("`{}` contains a size but not integers", output.name));
        }
        if let Some(input) = output.alias
            && kind(input as usize) != kind(index)
        {
            return Err(format!("`{}` differs in type or format from the input that it shares", output.name));
        }
    }
    Ok(())
}
