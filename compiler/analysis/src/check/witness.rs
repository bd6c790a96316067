use std::collections::BTreeSet;

use cubinder_expr::{DeviceFact, Environment, EvalError, Expr, evaluate};
use cubinder_expr::{Interval, Value};
use cubinder_launch::proof::Case;
use cubinder_model::Plugin;

use super::formula::reads;

/// Counterexample by names.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCase {
    /// Attribute values.
    pub attributes: Vec<(String, Value)>,
    /// Shapes of inputs, then outputs.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// Values of shape inputs.
    pub values: Vec<(String, Vec<i64>)>,
    /// Relevant device properties.
    pub device: Vec<(String, i64)>,
}

impl NamedCase {
    pub(super) fn new(plugin: &Plugin, case: &Case) -> NamedCase {
        let attributes = plugin.attributes.iter().map(|attribute| attribute.name.clone());
        let tensors = (0..).map_while(|index| plugin.tensor_name(index).map(str::to_owned));
        let shape_inputs = plugin.inputs.iter().enumerate().filter(|(_, input)| input.values.is_some());
        let values =
            shape_inputs.map(|(index, input)| (input.name.clone(), held_values(case, index).to_vec()));
        NamedCase {
            attributes: attributes.zip(case.attributes.iter().cloned()).collect(),
            shapes: tensors.zip(case.shapes.iter().cloned()).collect(),
            values: values.collect(),
            device: facts(case).map(|(fact, value)| (fact.to_string(), value)).collect(),
        }
    }
}

fn held_values(case: &Case, input: usize) -> &[i64] {
    case.values.get(input).map_or(&[], Vec::as_slice)
}

fn facts(case: &Case) -> impl Iterator<Item = (DeviceFact, i64)> {
    case.device.into_iter().flat_map(|device| DeviceFact::ALL.map(|fact| (fact, device.fact(fact))))
}

/// Addresses are unknown.
struct CaseEnvironment<'c>(&'c Case);

impl Environment for CaseEnvironment<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.attributes.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.shapes.get(tensor as usize).map(Vec::as_slice)
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        self.0.device.map(|device| device.fact(fact))
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        Some(held_values(self.0, tensor as usize))
    }

    fn size(&self, tensor: u32) -> Option<i64> {
        self.0.sizes.get(tensor as usize).copied().flatten()
    }
}

pub(super) fn value(expr: &Expr, case: &Case) -> Result<Value, EvalError> {
    evaluate(expr, &CaseEnvironment(case))
}

/// Returns the first number outside `allowed`, with its index in an array.
pub(super) fn outside(expr: &Expr, case: &Case, allowed: Interval) -> Option<(Option<usize>, i64)> {
    match value(expr, case).ok()? {
        Value::Array(items) => {
            let numbers = items.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_int()?)));
            let mut outside = numbers.filter(|(_, item)| !allowed.contains(*item));
            outside.next().map(|(index, item)| (Some(index), item))
        }
        value => value.as_int().filter(|value| !allowed.contains(*value)).map(|value| (None, value)),
    }
}

/// Formats relevant inputs; empty for constants.
pub(super) fn describe(plugin: &Plugin, case: &Case, exprs: &[&Expr]) -> String {
    let (attributes, tensors) = depends_on(plugin, exprs);
    let shapes = tensors.iter().filter_map(|&tensor| {
        let input = plugin.inputs.get(tensor)?;
        Some(match input.values {
            Some(_) => format!("{}.values = {:?}", input.name, held_values(case, tensor)),
            None => format!("{} = {:?}", input.name, case.shapes.get(tensor)?),
        })
    });
    let looked_at: BTreeSet<DeviceFact> = exprs.iter().flat_map(|expr| reads(expr).device).collect();
    let device = facts(case).filter(|(fact, _)| looked_at.contains(fact));
    let device = device.map(|(fact, value)| format!("{fact} = {value}"));
    let values = attributes.iter().filter_map(|&index| {
        let attribute = plugin.attributes.get(index)?;
        Some(format!("{} = {}", attribute.name, short(case.attributes.get(index)?)))
    });
    shapes.chain(values).chain(device).collect::<Vec<String>>().join(", ")
}

pub(super) fn depends_on(plugin: &Plugin, exprs: &[&Expr]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut attributes, mut inputs) = (BTreeSet::new(), BTreeSet::new());
    let mut outputs = BTreeSet::new();
    let mut left: Vec<&Expr> = exprs.to_vec();
    while let Some(expr) = left.pop() {
        let reads = reads(expr);
        attributes.extend(reads.attributes.iter().map(|&index| index as usize));
        let sizes =
            reads.sizes.iter().filter_map(|&tensor| (tensor as usize).checked_sub(plugin.inputs.len()));
        let bounds = sizes.filter_map(|output| plugin.outputs.get(output)?.size.as_ref());
        left.extend(bounds.map(|bound| &bound.upper));
        for tensor in reads.shapes.iter().chain(&reads.ranks).map(|&tensor| tensor as usize) {
            match tensor.checked_sub(plugin.inputs.len()) {
                None => {
                    inputs.insert(tensor);
                }
                Some(output) if outputs.insert(output) => {
                    left.extend(plugin.outputs.get(output).map(|output| &output.shape));
                }
                Some(_) => {}
            }
        }
    }
    (attributes, inputs)
}

fn short(value: &Value) -> String {
    const SHOWN: usize = 8;
    const CHARACTERS: usize = 40;
    match value {
        Value::Array(items) if items.len() > SHOWN => {
            let first: Vec<String> = items.iter().take(SHOWN).map(short).collect();
            format!("[{}, ... {} more]", first.join(", "), items.len() - SHOWN)
        }
        Value::Str(text) if text.chars().count() > CHARACTERS => {
            let first: String = text.chars().take(CHARACTERS).collect();
            format!("{first:?}...")
        }
        value => value.to_string(),
    }
}
