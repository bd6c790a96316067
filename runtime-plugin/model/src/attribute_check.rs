//! Whether a node's attributes keep the rules of their declarations.

use crate::model::Attribute;
use cubinder_expr::value::Value;

/// A message about a rule that a node breaks: in lower case, without a full stop and the node's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unmet(pub String);

/// The error for an attribute that a node lacks and that has no default.
#[must_use]
pub fn missing_attribute(attribute: &Attribute) -> Unmet {
    Unmet(format!(
        "the node lacks the attribute `{}` (`{}`), which has no default",
        attribute.name,
        attribute.ty.name()
    ))
}

/// Checks a value against the attribute's type and rules.
///
/// # Errors
/// The first that it breaks.
pub fn check_attribute(attribute: &Attribute, value: &Value) -> Result<(), Unmet> {
    attribute.check(value).map_err(|error| Unmet(format!("the {error}")))
}
