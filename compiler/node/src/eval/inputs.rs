//! The inputs of a query: shapes, and what shape inputs hold.
//!
//! Owns what is said of those that are missing or misspelt.

use cubinder_model::{Input, Plugin};

use super::node::{meant, unknown};
use crate::diagnostic::Diagnostic;
use crate::query::{Mistake, Part, Query};

/// What each input holds: nothing for an input that is no shape input. Where a value is missing that is told.
pub(super) fn values(plugin: &Plugin, query: &Query, mistakes: &mut Vec<Mistake>) -> Vec<Vec<i64>> {
    let shape_inputs = plugin.inputs.iter().filter(|input| input.values.is_some());
    let names: Vec<&str> = shape_inputs.map(|input| input.name.as_str()).collect();
    for (name, _) in query.values.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        mistakes.push(unknown(Part::Values, "shape input", name, &names));
    }
    let misspelt = meant(query.values.iter().map(|(name, _)| name), &names);
    let mut all = Vec::new();
    for input in &plugin.inputs {
        let given = query.values.iter().find(|(name, _)| *name == input.name && input.values.is_some());
        let name = &input.name;
        let told = |diagnostic| Mistake { part: Part::Values, name: name.clone(), diagnostic };
        if let Some(mistake) = query.shapes.iter().find(|(shape, _)| shape == name && input.values.is_some())
        {
            let error =
                Diagnostic::error(format!("`{}` is a shape input: its values decide its shape", mistake.0))
                    .help(format!("say what it holds: `--values {name}=...`"));
            mistakes.push(Mistake { part: Part::Shape, name: name.clone(), diagnostic: error });
        }
        match given {
            Some((_, values)) if input.rank_max == 0 && values.len() != 1 => {
                let error =
                    Diagnostic::error(format!("`{name}` holds one value, and {} are given", values.len()));
                mistakes.push(told(error));
            }
            Some((_, values)) => {
                all.push(values.clone());
                continue;
            }
            None if input.values.is_none() || misspelt.contains(&name.as_str()) => {}
            None => {
                let error = Diagnostic::error(format!("what the shape input `{name}` holds is not given"))
                    .help(format!("say what it is: `--values {name}=...`"));
                mistakes.push(told(error));
            }
        }
        all.push(Vec::new());
    }
    all
}

fn shape_of_values(input: &Input, values: &[i64]) -> Vec<i64> {
    if input.rank_max == 0 { Vec::new() } else { vec![i64::try_from(values.len()).unwrap_or(i64::MAX)] }
}

/// The shapes of the inputs, as far as they are given. `values` are those of the shape inputs, which decide their shapes.
pub(super) fn shapes(
    plugin: &Plugin,
    query: &Query,
    values: &[Vec<i64>],
    mistakes: &mut Vec<Mistake>,
) -> Vec<Vec<i64>> {
    let names: Vec<&str> = plugin.inputs.iter().map(|input| input.name.as_str()).collect();
    for (name, _) in query.shapes.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        let is_output = plugin.outputs.iter().any(|output| output.name == *name);
        let mut mistake = unknown(Part::Shape, "input", name, &names);
        if is_output {
            mistake.diagnostic =
                Diagnostic::error(format!("`{name}` is an output: its shape follows from the inputs'"));
        }
        mistakes.push(mistake);
    }
    let mut shapes = Vec::new();
    let misspelt = meant(query.shapes.iter().map(|(name, _)| name), &names);
    for (index, input) in plugin.inputs.iter().enumerate() {
        if input.values.is_some() {
            shapes.push(shape_of_values(input, values.get(index).map_or(&[][..], Vec::as_slice)));
            continue;
        }
        match query.shapes.iter().find(|(name, _)| *name == input.name) {
            Some((_, shape)) => shapes.push(shape.clone()),
            None if misspelt.contains(&input.name.as_str()) => {}
            None => {
                let rank = if input.rank_min == input.rank_max {
                    format!("rank {}", input.rank_min)
                } else {
                    format!("rank {} to {}", input.rank_min, input.rank_max)
                };
                let example = match input.rank_max.min(input.rank_min.max(2)) {
                    0 => "scalar".to_owned(),
                    rank => vec!["32"; usize::from(rank)].join("x"),
                };
                let error = Diagnostic::error(format!(
                    "the shape of the input `{}` ({rank}) is not given",
                    input.name
                ))
                .help(format!("say what it is: `--shape {}={example}`", input.name));
                mistakes.push(Mistake { part: Part::Shape, name: input.name.clone(), diagnostic: error });
            }
        }
    }
    shapes
}
