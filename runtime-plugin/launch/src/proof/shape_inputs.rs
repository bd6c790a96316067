use cubinder_expr::value::Value;
use cubinder_model::model::{Attribute, AttributeElement, AttributeType, Input, Interval, Plugin};

pub(super) fn values_attribute(input: &Input, count: Interval) -> Option<Attribute> {
    let values = input.values?;
    let ty = AttributeType { element: AttributeElement::I64, list: true };
    let length = if input.rank_max == 0 { Interval { min: 1, max: 1 } } else { count };
    Some(Attribute {
        length: Some(length),
        minimum: Some(Value::Int(values.min)),
        maximum: Some(Value::Int(values.max)),
        ..Attribute::new(input.name.clone(), ty)
    })
}

pub(super) fn values_by_input(plugin: &Plugin, chosen: &[Value]) -> Option<Vec<Vec<i64>>> {
    let mut chosen = chosen.iter();
    let values_of = |input: &Input| match input.values {
        Some(_) => chosen.next().and_then(Value::as_ints),
        None => Some(Vec::new()),
    };
    let values = plugin.inputs.iter().map(values_of).collect::<Option<Vec<Vec<i64>>>>()?;
    chosen.next().is_none().then_some(values)
}

pub(super) fn shape_of_values(input: &Input, values: &[i64]) -> Vec<i64> {
    if input.rank_max == 0 { Vec::new() } else { vec![i64::try_from(values.len()).unwrap_or(i64::MAX)] }
}
