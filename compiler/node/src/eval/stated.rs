//! A query whose names are the plugin's, for those who do something else with it than show it.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Facts, Steps};
use cubinder_model::attribute_check::Unmet;

use super::checks::checks;
use super::node::attributes;
use super::subject::Subject;
use super::{inputs, types};
use crate::query::{Mistake, Query};

/// A node with its shapes, in the plugin's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    /// One value for each attribute, defaults filled in.
    pub attributes: Vec<Value>,
    /// The inputs' shapes.
    pub inputs: Vec<Vec<i64>>,
    /// What shape inputs hold, by input; nothing for others.
    pub values: Vec<Vec<i64>>,
    /// The types of the inputs, then of the outputs.
    pub types: Vec<DataType>,
    /// The formats, likewise.
    pub formats: Vec<Format>,
    /// The type parameters and what they are, as a query names them.
    pub type_parameters: Vec<(String, String)>,
    /// The format parameters, likewise.
    pub format_parameters: Vec<(String, String)>,
}

/// The node that a query asks about. Alignments and facts about devices are the caller's.
///
/// # Errors
/// As [`super::evaluate`].
pub fn state(subject: &Subject, query: &Query) -> Result<Stated, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let plugin = &subject.plugin;
    let (attributes, _) = attributes(subject, query, &mut mistakes);
    let values = inputs::values(plugin, query, &mut mistakes);
    let inputs = inputs::shapes(plugin, query, &values, &mut mistakes);
    let types = types::choose(plugin, &attributes, query, &mut mistakes);
    match types {
        Some(chosen) if mistakes.is_empty() => Ok(Stated {
            attributes,
            inputs,
            values,
            types: chosen.variant.types.clone(),
            formats: chosen.variant.formats.clone(),
            type_parameters: chosen.types.into_iter().map(|it| (it.name, it.ty.to_owned())).collect(),
            format_parameters: chosen.formats.into_iter().map(|it| (it.name, it.format.to_owned())).collect(),
        }),
        _ => Err(mistakes),
    }
}

/// Why the runtime would refuse such a node, whatever its variants are.
#[must_use]
pub fn unmet(subject: &Subject, stated: &Stated) -> Option<Unmet> {
    let inputs: Vec<&[i64]> = stated.inputs.iter().map(Vec::as_slice).collect();
    let values: Vec<&[i64]> = stated.values.iter().map(Vec::as_slice).collect();
    let facts =
        Facts { attributes: &stated.attributes, shapes: &inputs, values: &values, ..Facts::default() };
    checks(subject, &facts, &mut Steps::default()).into_iter().find_map(|check| check.why).map(Unmet)
}
