use cubinder_expr::Value;
use cubinder_model::attribute_check::missing_attribute;
use cubinder_model::{Input, Plugin};

use super::checks::allowed_ranks;
use super::names::{check_names, unknown};
use super::subject::Subject;
use crate::diagnostic::suggest;
use crate::errors::{
    FixedAttribute, MissingAttribute, MissingShape, MissingValues, NotOneValue, ShapeOfOutput,
    ShapeOfShapeInput, WrongAttribute,
};
use crate::query::{Mistake, Part, Query, attribute};

pub(super) fn attributes(subject: &Subject, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<Value> {
    let plugin = &subject.plugin;
    let names: Vec<&str> = plugin.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    let misspelt = check_names(Part::Attribute, "attribute", &query.attributes, &names, mistakes);
    if let Some(fixed) = &subject.attributes {
        if let Some((name, _)) = query.attributes.iter().find(|(name, _)| names.contains(&name.as_str())) {
            mistakes.push(Mistake::new(Part::Attribute, name, FixedAttribute { name }));
        }
        return fixed.clone();
    }
    let mut values = Vec::new();
    for declared in &plugin.attributes {
        let name = declared.name.as_str();
        let given = query.attributes.iter().find(|(given, _)| given == name);
        match (given, &declared.default) {
            (Some((_, given)), _) => match attribute(declared.ty, given) {
                Ok(value) => values.push(value),
                Err(why) => {
                    mistakes.push(Mistake::new(Part::Attribute, name, WrongAttribute { name, why }));
                }
            },
            (None, Some(default)) => values.push(default.clone()),
            // The misspelt name was reported.
            (None, None) if misspelt.contains(&name) => {}
            (None, None) => {
                let why = missing_attribute(declared).to_string();
                mistakes.push(Mistake::new(Part::Attribute, name, MissingAttribute { name, why }));
            }
        }
    }
    values
}

/// Empty for other than shape inputs.
pub(super) fn values(plugin: &Plugin, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<Vec<i64>> {
    let shape_inputs = plugin.inputs.iter().filter(|input| input.values.is_some());
    let names: Vec<&str> = shape_inputs.map(|input| input.name.as_str()).collect();
    let misspelt = check_names(Part::Values, "shape input", &query.values, &names, mistakes);
    let mut all = Vec::new();
    for input in &plugin.inputs {
        let name = input.name.as_str();
        if input.values.is_none() {
            all.push(Vec::new());
            continue;
        }
        if query.shapes.iter().any(|(shape, _)| shape == name) {
            mistakes.push(Mistake::new(Part::Shape, name, ShapeOfShapeInput { name }));
        }
        let given = query.values.iter().find(|(given, _)| given == name).map(|(_, values)| values.as_slice());
        match given {
            Some(values) if input.rank_max == 0 && values.len() != 1 => {
                let error = NotOneValue { name, count: values.len() };
                mistakes.push(Mistake::new(Part::Values, name, error));
            }
            None if !misspelt.contains(&name) => {
                mistakes.push(Mistake::new(Part::Values, name, MissingValues { name }));
            }
            _ => {}
        }
        all.push(given.unwrap_or_default().to_vec());
    }
    all
}

fn shape_of_values(input: &Input, values: &[i64]) -> Vec<i64> {
    if input.rank_max == 0 { Vec::new() } else { vec![i64::try_from(values.len()).unwrap_or(i64::MAX)] }
}

pub(super) fn shapes(
    plugin: &Plugin,
    query: &Query,
    values: &[Vec<i64>],
    mistakes: &mut Vec<Mistake>,
) -> Vec<Vec<i64>> {
    let names: Vec<&str> = plugin.inputs.iter().map(|input| input.name.as_str()).collect();
    let misnamed = query.shapes.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    mistakes.extend(misnamed.clone().map(|(name, _)| {
        match plugin.outputs.iter().any(|output| output.name == *name) {
            true => Mistake::new(Part::Shape, name, ShapeOfOutput { name }),
            false => unknown(Part::Shape, "input", name, &names),
        }
    }));
    let misspelt = misnamed.filter_map(|(name, _)| suggest(name, names.iter().copied()));
    let misspelt: Vec<&str> = misspelt.collect();
    let mut shapes = Vec::new();
    for (input, values) in plugin.inputs.iter().zip(values) {
        let name = input.name.as_str();
        if input.values.is_some() {
            shapes.push(shape_of_values(input, values));
            continue;
        }
        match query.shapes.iter().find(|(given, _)| given == name) {
            Some((_, shape)) => shapes.push(shape.clone()),
            None if misspelt.contains(&name) => {}
            None => {
                let rank = format!("rank {}", allowed_ranks(input));
                let example = match input.rank_max.min(input.rank_min.max(2)) {
                    0 => "scalar".to_owned(),
                    rank => vec!["32"; usize::from(rank)].join("x"),
                };
                mistakes.push(Mistake::new(Part::Shape, name, MissingShape { name, rank, example }));
            }
        }
    }
    shapes
}
