use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{Facts, Signature, Steps, output_shapes};
use cubinder_model::Plugin;
use cubinder_model::attribute_check::Unmet;

use super::checks::checks;
use super::report::{FormatReport, TypeReport};
use super::subject::Subject;
use super::{inputs, types};
use crate::query::{Mistake, Query};

/// Resolved node, in the plugin's order.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedQuery {
    /// All attributes, with defaults.
    pub attributes: Vec<Value>,
    /// Input shapes.
    pub inputs: Vec<Vec<i64>>,
    /// Values of shape inputs; empty for others.
    pub values: Vec<Vec<i64>>,
    /// Types of inputs, then outputs.
    pub types: Vec<DataType>,
    /// Formats, likewise.
    pub formats: Vec<Format>,
    /// Type parameters.
    pub type_parameters: Vec<TypeReport>,
    /// Format parameters.
    pub format_parameters: Vec<FormatReport>,
}

/// Resolves all but alignments and device facts; fails as [`super::evaluate`].
pub fn resolve_query(subject: &Subject, query: &Query) -> Result<ResolvedQuery, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let resolved = resolve(subject, query, &mut mistakes);
    resolved.filter(|_| mistakes.is_empty()).ok_or(mistakes)
}

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
    /// Returns what selects the serving variants.
    #[must_use]
    pub fn signature(&self) -> Signature<'_> {
        Signature { attributes: &self.attributes, types: &self.types, formats: &self.formats }
    }

    /// Calls `work` with facts about attributes and inputs.
    pub fn with_facts<T>(&self, work: impl FnOnce(Facts<'_>) -> T) -> T {
        let (shapes, values) = (slices(&self.inputs), slices(&self.values));
        work(Facts { attributes: &self.attributes, shapes: &shapes, values: &values, ..Facts::default() })
    }

    /// Returns the outputs' shapes, or why the runtime rejects the node.
    pub fn outputs(&self, plugin: &Plugin) -> Result<Vec<Vec<i64>>, Unmet> {
        self.with_facts(|facts| output_shapes(plugin, &facts, &mut Steps::default()))
    }

    /// Returns the runtime's variant-independent reason for rejecting the node.
    #[must_use]
    pub fn unmet(&self, subject: &Subject) -> Option<Unmet> {
        let checks = self.with_facts(|facts| checks(subject, &facts, &mut Steps::default()));
        checks.into_iter().find_map(|check| check.why).map(Unmet)
    }
}

/// Converts shapes for [`Facts`].
#[must_use]
pub fn slices(shapes: &[Vec<i64>]) -> Vec<&[i64]> {
    shapes.iter().map(Vec::as_slice).collect()
}
