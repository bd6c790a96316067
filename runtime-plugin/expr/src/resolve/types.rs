use std::fmt;

use crate::scope::Kind;
use crate::value::Value;

/// A kind, or unknown: an empty array's element, a reported error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Float,
    Bool,
    Str,
    Array(Box<Type>),
    Unknown,
}

impl Type {
    pub(super) fn array(element: Type) -> Type {
        Type::Array(Box::new(element))
    }

    pub(super) fn of_kind(kind: &Kind) -> Type {
        match kind {
            Kind::Int => Type::Int,
            Kind::Float => Type::Float,
            Kind::Bool => Type::Bool,
            Kind::Str => Type::Str,
            Kind::Array(element) => Type::array(Type::of_kind(element)),
        }
    }

    pub(super) fn of_value(value: &Value) -> Type {
        match value {
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Bool(_) => Type::Bool,
            Value::Str(_) => Type::Str,
            Value::Array(items) => {
                let element =
                    items.iter().try_fold(Type::Unknown, |ty, item| ty.unify(&Type::of_value(item)));
                Type::array(element.unwrap_or(Type::Unknown))
            }
        }
    }

    /// Arrays of unknown elements are integer arrays.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Type::Int | Type::Unknown => Kind::Int,
            Type::Float => Kind::Float,
            Type::Bool => Kind::Bool,
            Type::Str => Kind::Str,
            Type::Array(element) => Kind::Array(Box::new(element.kind())),
        }
    }

    pub(super) fn unify(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (Type::Int, Type::Float) | (Type::Float, Type::Int) => Some(Type::Float),
            _ => self.same(other),
        }
    }

    fn same(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (Type::Unknown, ty) | (ty, Type::Unknown) => Some(ty.clone()),
            (Type::Array(left), Type::Array(right)) => left.same(right).map(Type::array),
            (left, right) => (left == right).then(|| left.clone()),
        }
    }

    pub(super) fn is_unknown(&self) -> bool {
        *self == Type::Unknown
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Type::Int | Type::Float | Type::Unknown)
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self, Type::Array(_) | Type::Unknown)
    }

    pub(super) fn element(&self) -> Type {
        match self {
            Type::Array(element) => (**element).clone(),
            _ => Type::Unknown,
        }
    }

    pub(super) fn with_article(&self) -> String {
        let article = if matches!(self, Type::Int | Type::Array(_)) { "an" } else { "a" };
        format!("{article} {self}")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Unknown => f.write_str("anything"),
            Type::Array(element) if element.is_unknown() => f.write_str("empty array"),
            _ => self.kind().fmt(f),
        }
    }
}
