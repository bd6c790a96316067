//! What an expression may name, and what kinds of values there are.
//!
//! Owns names. Never looks at values of attributes or at shapes: those are an [`super::Environment`]'s.

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
    /// A 64-bit signed integer.
    Int,
    /// A double.
    Float,
    /// A truth value.
    Bool,
    /// Text.
    Str,
    /// An array of one kind; an empty array of no stated kind is one of integers.
    Array(Box<Kind>),
}

impl Kind {
    /// An array of integers: what shapes are.
    #[must_use]
    pub fn ints() -> Kind {
        Kind::Array(Box::new(Kind::Int))
    }

    /// `integers`, `arrays of floats`.
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

/// When the value of an expression is known; each time knows what the ones before it know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BindingTime {
    /// When the plugin is compiled: constants and types.
    Compile,
    /// When TensorRT configures a node: attributes and ranks.
    Node,
    /// When shapes are known.
    Shape,
    /// When the device and the addresses of the tensors are known.
    Launch,
    /// When the kernels have run.
    Run,
}

/// A helper function of a manifest. It is inlined where it is called: it costs nothing at run time, its arguments are
/// evaluated where its body uses them, and it cannot call itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The names of its parameters. An argument is a value, a tensor or a type.
    pub params: Vec<String>,
    /// What it is. It sees its parameters and the scope's names, never the variables around a call.
    pub body: Syntax,
}

/// What an expression may name. Fields and functions are looked up apart from values, so an attribute may be called
/// `len`.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    names: BTreeMap<String, Entity>,
    functions: BTreeMap<String, Function>,
    pub(super) no_addresses: bool,
    formats: Option<BTreeMap<u32, Format>>,
    pub(super) no_device: bool,
    pub(super) has_sizes: bool,
}

/// What sort of tensor a name stands for: it decides what can be asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TensorKind {
    /// One whose shape is known when shapes are.
    #[default]
    Plain,
    /// A shape input where shapes are asked for: its values are known there.
    ShapeInput,
    /// A shape input where launches are made: nothing of it is known there but its rank.
    UnseenShapeInput,
    /// An output that holds a size.
    Size,
    /// An output whose shape depends on data: only its rank is known before the kernels ran.
    DataDependent,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entity {
    Attribute { index: u32, kind: Kind },
    Tensor { index: u32, rank_min: u8, rank_max: u8, kind: TensorKind },
    Constant(Value),
    Type(DataType),
}

impl Scope {
    /// A scope without names.
    #[must_use]
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Adds an attribute by its index in the plugin. Of two things with one name, the later is seen.
    #[must_use]
    pub fn attribute(self, name: impl Into<String>, index: u32, kind: Kind) -> Scope {
        self.with(name, Entity::Attribute { index, kind })
    }

    /// Adds a tensor by its index over inputs, then outputs, with the ranks it may have (both ends included).
    #[must_use]
    pub fn tensor(self, name: impl Into<String>, index: u32, rank_min: u8, rank_max: u8) -> Scope {
        self.tensor_of_kind(name, index, (rank_min, rank_max), TensorKind::Plain)
    }

    /// As [`Scope::tensor`], for one of which other things can be asked.
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

    /// Adds a constant of the variant.
    #[must_use]
    pub fn constant(self, name: impl Into<String>, value: Value) -> Scope {
        self.with(name, Entity::Constant(value))
    }

    /// Adds a type parameter of the variant.
    #[must_use]
    pub fn ty(self, name: impl Into<String>, ty: DataType) -> Scope {
        self.with(name, Entity::Type(ty))
    }

    /// Adds a helper function. Built-in functions come first: see [`is_function_reserved`].
    #[must_use]
    pub fn function(mut self, name: impl Into<String>, function: Function) -> Scope {
        self.functions.insert(name.into(), function);
        self
    }

    /// The same for a place that comes before addresses are known, which is every place but a guard: `aligned` is an error there,
    /// called through a helper function too.
    #[must_use]
    pub fn without_addresses(mut self) -> Scope {
        self.no_addresses = true;
        self
    }

    /// The same for a place where formats are known: those of the tensors, by their indices. Otherwise `x.format` and what follows from it
    /// are errors.
    #[must_use]
    pub fn formats(mut self, formats: impl IntoIterator<Item = (u32, Format)>) -> Scope {
        self.formats = Some(formats.into_iter().collect());
        self
    }

    /// The format of a tensor, where formats are known.
    pub(super) fn format(&self, tensor: u32) -> Option<Format> {
        self.formats.as_ref().map(|formats| formats.get(&tensor).copied().unwrap_or_default())
    }

    /// The same for a place whose value cannot depend on the device: `device.sms` and the like are errors there.
    #[must_use]
    pub fn without_device(mut self) -> Scope {
        self.no_device = true;
        self
    }

    /// The same for the shape of an output, where a size tensor's name can be a dimension.
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

    /// The ranks that a tensor may have.
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

/// Whether no attribute, tensor, constant, type, parameter or variable can have this name, because expressions read it as
/// a word of the language.
#[must_use]
pub fn is_name_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || name == DEVICE
}

/// The name before the facts about a device: `device.sms`.
pub const DEVICE: &str = "device";

/// Whether no helper function can have this name: words of the language and built-in functions.
#[must_use]
pub fn is_function_reserved(name: &str) -> bool {
    is_name_reserved(name) || BUILTIN_FORMS.contains(&name) || Builtin::from_name(name).is_some()
}

/// Built-in functions of a tensor or a type: they are resolved away.
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
