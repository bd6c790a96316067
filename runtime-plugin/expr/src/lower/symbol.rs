use crate::value::Value;

/// A value that may depend on shapes.
#[derive(Debug, Clone, PartialEq)]
pub enum Symbol<D> {
    /// Known value.
    Known(Value),
    /// Integer.
    Int(D),
    /// 0 or 1.
    Bool(D),
    /// An array of known length.
    Array(Vec<Symbol<D>>),
}

/// An integer, or a boolean as 0 or 1.
#[derive(Clone)]
pub(super) enum Number<D> {
    Known(i64),
    Dim(D),
}

impl<D: Clone> Symbol<D> {
    pub(super) fn array(items: Vec<Symbol<D>>) -> Symbol<D> {
        let known = Symbol::all_known(&items);
        known.map_or(Symbol::Array(items), |values| Symbol::Known(Value::Array(values)))
    }

    pub(super) fn all_known(items: &[Symbol<D>]) -> Option<Vec<Value>> {
        let known =
            |item: &Symbol<D>| if let Symbol::Known(value) = item { Some(value.clone()) } else { None };
        items.iter().map(known).collect()
    }

    pub(super) fn into_items(self) -> Result<Vec<Symbol<D>>, Symbol<D>> {
        match self {
            Symbol::Known(Value::Array(items)) => Ok(items.into_iter().map(Symbol::Known).collect()),
            Symbol::Array(items) => Ok(items),
            other => Err(other),
        }
    }

    pub(super) fn int(&self) -> Option<Number<D>> {
        match self {
            Symbol::Known(Value::Int(value)) => Some(Number::Known(*value)),
            Symbol::Int(dim) => Some(Number::Dim(dim.clone())),
            _ => None,
        }
    }

    pub(super) fn bool(&self) -> Option<Number<D>> {
        match self {
            Symbol::Known(Value::Bool(value)) => Some(Number::Known(i64::from(*value))),
            Symbol::Bool(dim) => Some(Number::Dim(dim.clone())),
            _ => None,
        }
    }

    pub(super) fn from_int(number: Number<D>) -> Symbol<D> {
        match number {
            Number::Known(value) => Symbol::Known(Value::Int(value)),
            Number::Dim(dim) => Symbol::Int(dim),
        }
    }

    pub(super) fn from_bool(number: Number<D>) -> Symbol<D> {
        match number {
            Number::Known(value) => Symbol::Known(Value::Bool(value != 0)),
            Number::Dim(dim) => Symbol::Bool(dim),
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Symbol::Known(Value::Array(items)) => items.len().saturating_add(1),
            Symbol::Array(items) => {
                items.iter().fold(1, |total: usize, item| total.saturating_add(item.size()))
            }
            _ => 1,
        }
    }
}
