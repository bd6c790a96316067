//! A query whose names are the plugin's.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Facts, Signature, Steps, output_shapes};
use cubinder_model::Plugin;
use cubinder_model::attribute_check::Unmet;

use super::checks::checks;
use super::report::{FormatReport, TypeReport};
use super::subject::Subject;
use super::{inputs, types};
use crate::query::{Mistake, Query};

/// A node with its shapes, in the plugin's order.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedQuery {
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
    /// The type parameters.
    pub type_parameters: Vec<TypeReport>,
    /// The format parameters.
    pub format_parameters: Vec<FormatReport>,
}

/// Resolves a query but for alignments and facts about devices.
///
/// # Errors
/// As [`super::evaluate`].
pub fn resolve_query(subject: &Subject, query: &Query) -> Result<ResolvedQuery, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let resolved = resolve(subject, query, &mut mistakes);
    resolved.filter(|_| mistakes.is_empty()).ok_or(mistakes)
}

/// The same; `None` if there is a mistake.
pub(super) fn resolve(
    subject: &Subject,
    query: &Query,
    mistakes: &mut Vec<Mistake>,
) -> Option<ResolvedQuery> {
    let plugin = &subject.plugin;
    let attributes = inputs::attributes(subject, query, mistakes);
    let values = inputs::values(plugin, query, mistakes);
    let inputs = inputs::shapes(plugin, query, &values, mistakes);
    let types::ChosenRow { variant, types, formats } = types::choose(plugin, &attributes, query, mistakes)?;
    Some(ResolvedQuery {
        attributes,
        inputs,
        values,
        types: variant.types.clone(),
        formats: variant.formats.clone(),
        type_parameters: types,
        format_parameters: formats,
    })
}

impl ResolvedQuery {
    /// What decides which variants serve the node.
    #[must_use]
    pub fn signature(&self) -> Signature<'_> {
        Signature { attributes: &self.attributes, types: &self.types, formats: &self.formats }
    }

    /// Calls `work` with the facts about attributes and inputs.
    pub fn with_facts<T>(&self, work: impl FnOnce(Facts<'_>) -> T) -> T {
        let (shapes, values) = (slices(&self.inputs), slices(&self.values));
        work(Facts { attributes: &self.attributes, shapes: &shapes, values: &values, ..Facts::default() })
    }

    /// The outputs' shapes.
    ///
    /// # Errors
    /// Why the runtime would refuse the node.
    pub fn outputs(&self, plugin: &Plugin) -> Result<Vec<Vec<i64>>, Unmet> {
        self.with_facts(|facts| output_shapes(plugin, &facts, &mut Steps::default()))
    }

    /// Why the runtime would refuse such a node, whatever its variants are.
    #[must_use]
    pub fn unmet(&self, subject: &Subject) -> Option<Unmet> {
        let checks = self.with_facts(|facts| checks(subject, &facts, &mut Steps::default()));
        checks.into_iter().find_map(|check| check.why).map(Unmet)
    }
}

/// Shapes as [`Facts`] have them.
#[must_use]
pub fn slices(shapes: &[Vec<i64>]) -> Vec<&[i64]> {
    shapes.iter().map(Vec::as_slice).collect()
}
