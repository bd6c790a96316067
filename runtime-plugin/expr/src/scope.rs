use std::collections::BTreeMap;
use std::fmt;

use super::node::Builtin;
use super::print::Names;
use super::syntax::{KEYWORDS, Syntax};
use crate::data_type::DataType;
use crate::format::Format;
use crate::value::Value;

/// The kind of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit signed integer.
    Int,
    /// Double.
    Float,
    /// Boolean.
    Bool,
    /// String.
    Str,
    /// An array of one kind; empty arrays default to integers.
    Array(Box<Kind>),
}

impl Kind {
    /// Returns the kind of shapes.
    #[must_use]
    pub fn ints() -> Kind {
        Kind::Array(Box::new(Kind::Int))
    }

    fn plural(&self) -> String {
        match self {
            Kind::Array(element) => format!("arrays of {}", element.plural()),
            other => format!("{other}s"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Int => f.write_str("integer"),
            Kind::Float => f.write_str("float"),
            Kind::Bool => f.write_str("boolean"),
            Kind::Str => f.write_str("string"),
            Kind::Array(element) => write!(f, "array of {}", element.plural()),
        }
    }
}

/// When a value is known, including all earlier times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BindingTime {
    /// Constants and types.
    Compile,
    /// Attributes and ranks: TensorRT configures a node.
    Node,
    /// When shapes are known.
    Shape,
    /// Device and addresses are known.
    Launch,
    /// After a run, when data-dependent sizes are known.
    Run,
}

/// A manifest's helper function: inlined, arguments evaluated at each use.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Each for a value, tensor or type.
    pub params: Vec<String>,
    /// Sees parameters and scope only.
    pub body: Syntax,
}

/// Fields and functions have separate namespaces.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: BTreeMap<String, Entity>,
    functions: BTreeMap<String, Function>,
    pub(super) no_addresses: bool,
    formats: Option<BTreeMap<u32, Format>>,
    pub(super) no_device: bool,
    pub(super) has_sizes: bool,
}

/// What expressions may read of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TensorKind {
    /// Its shape is known at shape time.
    #[default]
    Plain,
    /// Shape input in shape expressions, with known values.
    ShapeInput,
    /// Shape input in launches: only its rank is known.
    UnseenShapeInput,
    /// An output that contains the size of others.
    Size,
    /// An output with a data-dependent shape: only its rank is known.
    DataDependent,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entity {
    Attribute { index: u32, kind: Kind },
    Tensor { index: u32, rank_min: u8, rank_max: u8, kind: TensorKind },
    Constant(Value),
    Type(DataType),
}

impl Scope {
    /// Returns an empty scope.
    #[must_use]
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Adds an attribute by index. Later names shadow earlier ones.
    #[must_use]
    pub fn attribute(self, name: impl Into<String>, index: u32, kind: Kind) -> Scope {
        self.with(name, Entity::Attribute { index, kind })
    }

    /// Adds a tensor by index over inputs, then outputs, with its ranks.
    #[must_use]
    pub fn tensor(self, name: impl Into<String>, index: u32, rank_min: u8, rank_max: u8) -> Scope {
        self.tensor_of_kind(name, index, (rank_min, rank_max), TensorKind::Plain)
    }

    /// Adds a tensor of another kind.
    #[must_use]
    pub fn tensor_of_kind(
        self,
        name: impl Into<String>,
        index: u32,
        (rank_min, rank_max): (u8, u8),
        kind: TensorKind,
    ) -> Scope {
        self.with(name, Entity::Tensor { index, rank_min, rank_max, kind })
    }

    /// Adds a variant's constant.
    #[must_use]
    pub fn constant(self, name: impl Into<String>, value: Value) -> Scope {
        self.with(name, Entity::Constant(value))
    }

    /// Adds a variant's type parameter.
    #[must_use]
    pub fn ty(self, name: impl Into<String>, ty: DataType) -> Scope {
        self.with(name, Entity::Type(ty))
    }

    /// Adds a helper function. Built-in functions take precedence ([`is_function_reserved`]).
    #[must_use]
    pub fn function(mut self, name: impl Into<String>, function: Function) -> Scope {
        self.functions.insert(name.into(), function);
        self
    }

    /// Rejects `aligned`, outside of guards.
    #[must_use]
    pub fn without_addresses(mut self) -> Scope {
        self.no_addresses = true;
        self
    }

    /// Adds the tensors' formats, by index.
    #[must_use]
    pub fn formats(mut self, formats: impl IntoIterator<Item = (u32, Format)>) -> Scope {
        self.formats = Some(formats.into_iter().collect());
        self
    }

    pub(super) fn format(&self, tensor: u32) -> Option<Format> {
        self.formats.as_ref().map(|formats| formats.get(&tensor).copied().unwrap_or_default())
    }

    /// Rejects device facts.
    #[must_use]
    pub fn without_device(mut self) -> Scope {
        self.no_device = true;
        self
    }

    /// Allows size tensors as dimensions.
    #[must_use]
    pub fn with_sizes(mut self) -> Scope {
        self.has_sizes = true;
        self
    }

    fn with(mut self, name: impl Into<String>, entity: Entity) -> Scope {
        self.names.insert(name.into(), entity);
        self
    }

    pub(super) fn entity(&self, name: &str) -> Option<&Entity> {
        self.names.get(name)
    }

    pub(super) fn helper(&self, name: &str) -> Option<(&String, &Function)> {
        self.functions.get_key_value(name)
    }

    pub(super) fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.names.keys().map(String::as_str)
    }

    pub(super) fn helpers(&self) -> impl Iterator<Item = &str> + Clone {
        self.functions.keys().map(String::as_str)
    }

    fn named(&self, is_it: impl Fn(&Entity) -> bool) -> Option<&str> {
        self.names.iter().find(|(_, entity)| is_it(entity)).map(|(name, _)| name.as_str())
    }

    pub(super) fn ranks(&self, tensor: u32) -> Option<(u8, u8)> {
        self.names.values().find_map(|entity| match entity {
            Entity::Tensor { index, rank_min, rank_max, .. } if *index == tensor => {
                Some((*rank_min, *rank_max))
            }
            _ => None,
        })
    }
}

impl Names for Scope {
    fn attribute(&self, attribute: u32) -> Option<&str> {
        self.named(|entity| matches!(entity, Entity::Attribute { index, .. } if *index == attribute))
    }

    fn tensor(&self, tensor: u32) -> Option<&str> {
        self.named(|entity| matches!(entity, Entity::Tensor { index, .. } if *index == tensor))
    }
}

/// Returns whether a name is a word of the language.
#[must_use]
pub fn is_name_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || name == DEVICE
}

/// `device.sms` is a device fact.
pub const DEVICE: &str = "device";

/// Returns whether a name is a word or a built-in function.
#[must_use]
pub fn is_function_reserved(name: &str) -> bool {
    is_name_reserved(name) || BUILTIN_FORMS.contains(&name) || Builtin::from_name(name).is_some()
}

pub(super) const BUILTIN_FORMS: [&str; 3] = ["numel", "sizeof", "aligned"];

#[cfg(test)]
mod tests {
    use super::{BindingTime, Kind, is_function_reserved, is_name_reserved};

    #[test]
    fn kinds_have_names() {
        assert_eq!(Kind::ints().to_string(), "array of integers");
        assert_eq!(Kind::Array(Box::new(Kind::ints())).to_string(), "array of arrays of integers");
        assert_eq!(Kind::Bool.to_string(), "boolean");
    }

    #[test]
    fn times_are_ordered() {
        assert!(BindingTime::Compile < BindingTime::Node && BindingTime::Node < BindingTime::Shape);
    }

    #[test]
    fn reserved_words() {
        assert!(is_name_reserved("if") && is_name_reserved("device") && !is_name_reserved("len"));
        assert!(
            is_function_reserved("len") && is_function_reserved("sizeof") && !is_function_reserved("pad")
        );
    }
}
