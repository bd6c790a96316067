/// Integers fit in 64 bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    List(Vec<Meaning>),
}

impl Meaning {
    pub(super) fn int(&self) -> i128 {
        match self {
            Meaning::Int(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }

    pub(super) fn bool(&self) -> bool {
        match self {
            Meaning::Bool(value) => *value,
            other => panic!("not a boolean: {other:?}"),
        }
    }

    pub(super) fn float(&self) -> f64 {
        match self {
            Meaning::Float(value) => *value,
            other => other.int() as f64,
        }
    }

    pub(super) fn list(&self) -> &[Meaning] {
        match self {
            Meaning::List(items) => items,
            other => panic!("not an array: {other:?}"),
        }
    }

    pub(super) fn of_ints(items: &[i64]) -> Meaning {
        Meaning::List(items.iter().map(|&item| Meaning::Int(item.into())).collect())
    }
}
