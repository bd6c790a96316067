//! Checks a node's attributes against their declarations.

use crate::model::Attribute;
use cubinder_expr::value::Value;

/// A violated rule: lower case, without full stop and node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unmet(pub String);

/// Returns the error for a missing attribute.
#[must_use]
pub fn missing_attribute(attribute: &Attribute) -> Unmet {
    Unmet(format!("missing attribute `{}` (`{}`), which has no default", attribute.name, attribute.ty.name()))
}

/// Checks a value; fails with the first violated rule.
pub fn check_attribute(attribute: &Attribute, value: &Value) -> Result<(), Unmet> {
    attribute.check(value).map_err(|error| Unmet(format!("the {error}")))
}
