//! Reference semantics in 128-bit integers.

use super::generator::Tree;
use super::support::{ATTRIBUTES, World, floor};
use crate::value::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wide {
    Int(i128),
    Float(f64),
    Bool(bool),
    Array(Vec<Wide>),
}

impl Wide {
    pub(super) fn from_value(value: &Value) -> Wide {
        match value {
            Value::Int(value) => Wide::Int((*value).into()),
            Value::Float(value) => Wide::Float(*value),
            Value::Bool(value) => Wide::Bool(*value),
            Value::Str(_) => Wide::Array(vec![]),
            Value::Array(items) => Wide::Array(items.iter().map(Wide::from_value).collect()),
        }
    }

    fn float(&self) -> f64 {
        match self {
            Wide::Float(value) => *value,
            Wide::Int(value) => i64::try_from(*value).unwrap() as f64,
            other => panic!("not a number: {other:?}"),
        }
    }

    fn int(&self) -> i128 {
        match self {
            Wide::Int(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }

    fn ints(&self) -> Vec<i128> {
        match self {
            Wide::Array(items) => items.iter().map(Wide::int).collect(),
            other => panic!("not an array: {other:?}"),
        }
    }
}

pub(super) struct Oracle<'a> {
    pub(super) world: &'a World,
    pub(super) variables: Vec<(String, Wide)>,
    pub(super) steps: usize,
}

impl Oracle<'_> {
    fn fits(value: i128) -> Option<Wide> {
        i64::try_from(value).ok().map(|_| Wide::Int(value))
    }

    fn finite(value: f64) -> Option<Wide> {
        value.is_finite().then_some(Wide::Float(value))
    }

    fn product(items: &[i128]) -> Option<Wide> {
        if items.contains(&0) {
            return Some(Wide::Int(0));
        }
        items.iter().try_fold(1_i128, |product, item| product.checked_mul(*item)).and_then(Self::fits)
    }

    fn element(items: &[Wide], index: i128) -> Option<Wide> {
        let len = items.len() as i128;
        let index = if index < 0 { index + len } else { index };
        (0..len).contains(&index).then(|| items[index as usize].clone())
    }

    fn shape(&self, tensor: usize) -> Vec<Wide> {
        self.world.shapes[tensor].iter().map(|&dim| Wide::Int(dim.into())).collect()
    }

    fn bool(&mut self, tree: &Tree) -> Option<bool> {
        match self.value(tree)? {
            Wide::Bool(value) => Some(value),
            other => panic!("not a boolean: {other:?}"),
        }
    }

    pub(super) fn value(&mut self, tree: &Tree) -> Option<Wide> {
        let value = self.value_of(tree);
        self.steps += match &value {
            Some(Wide::Array(items)) => 1 + items.len(),
            _ => 1,
        };
        value
    }

    fn value_of(&mut self, tree: &Tree) -> Option<Wide> {
        Some(match tree {
            Tree::Int(value) => Wide::Int((*value).into()),
            Tree::Float(value) => Wide::Float(*value),
            Tree::Bool(value) => Wide::Bool(*value),
            Tree::Name(name) => match name.as_str() {
                "BLOCK" => Wide::Int(256),
                "ZERO" => Wide::Int(0),
                "TILE" => Wide::Array(vec![Wide::Int(8), Wide::Int(16)]),
                name => match ATTRIBUTES.iter().position(|attribute| *attribute == name) {
                    Some(index) => Wide::from_value(&self.world.attributes[index]),
                    None => {
                        self.variables.iter().rev().find(|(variable, _)| variable == name).unwrap().1.clone()
                    }
                },
            },
            Tree::Shape(tensor) => Wide::Array(self.shape(*tensor)),
            Tree::Rank(tensor) => Wide::Int(self.world.shapes[*tensor].len() as i128),
            Tree::Numel(tensor) => {
                let dims: Vec<i128> = self.world.shapes[*tensor].iter().map(|&dim| dim.into()).collect();
                return Self::product(&dims);
            }
            Tree::Aligned(tensor, bytes) => {
                Wide::Bool(self.world.addresses[*tensor].trailing_zeros() >= bytes.trailing_zeros())
            }
            Tree::Device(fact) => Wide::Int(self.world.device[*fact as usize].into()),
            Tree::Values => {
                Wide::Array(self.world.values.iter().map(|&value| Wide::Int(value.into())).collect())
            }
            Tree::Size => Wide::Int(self.world.size.into()),
            Tree::Array(items) => {
                Wide::Array(items.iter().map(|item| self.value(item)).collect::<Option<_>>()?)
            }
            Tree::Unary("not", operand) => Wide::Bool(!self.bool(operand)?),
            Tree::Unary(_, operand) => match self.value(operand)? {
                Wide::Int(value) => return Self::fits(-value),
                value => Wide::Float(-value.float()),
            },
            Tree::Binary("and", left, right) => Wide::Bool(self.bool(left)? && self.bool(right)?),
            Tree::Binary("or", left, right) => Wide::Bool(self.bool(left)? || self.bool(right)?),
            Tree::Binary(op, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                return Self::binary(op, &left, &right);
            }
            Tree::Conditional(condition, then, otherwise) => {
                let side = if self.bool(condition)? { then } else { otherwise };
                return self.value(side);
            }
            Tree::Index(array, index) => {
                let (array, index) = (self.value(array)?, self.value(index)?);
                let Wide::Array(items) = array else { panic!("not an array") };
                return Self::element(&items, index.int());
            }
            Tree::Call(function, args) => {
                let args = args.iter().map(|arg| self.value(arg)).collect::<Option<Vec<Wide>>>()?;
                let value = Self::call(function, &args)?;
                let floats = matches!(tree, Tree::Call("sum", args) if matches!(&args[..], [Tree::Name(name)] if name == "weights"));
                if floats { Wide::Float(value.float()) } else { value }
            }
            Tree::For { variable, over, condition, body } => {
                let Wide::Array(over) = self.value(over)? else { panic!("not an array") };
                let mut items = Vec::new();
                for item in over {
                    self.variables.push((variable.clone(), item));
                    let kept = match condition {
                        Some(condition) => self.bool(condition),
                        None => Some(true),
                    };
                    let item =
                        if kept == Some(true) { self.value(body).map(Some) } else { kept.map(|_| None) };
                    self.variables.pop();
                    items.extend(item?);
                }
                Wide::Array(items)
            }
        })
    }

    fn binary(op: &str, left: &Wide, right: &Wide) -> Option<Wide> {
        match op {
            "==" | "!=" => {
                let same = match (left, right) {
                    (Wide::Float(_), _) | (_, Wide::Float(_)) => left.float() == right.float(),
                    _ => left == right,
                };
                return Some(Wide::Bool(same == (op == "==")));
            }
            _ => {}
        }
        if let (Wide::Int(left), Wide::Int(right)) = (left, right) {
            let (left, right) = (*left, *right);
            return match op {
                "+" => Self::fits(left + right),
                "-" => Self::fits(left - right),
                "*" => Self::fits(left * right),
                "//" | "%" if right == 0 => None,
                "//" => Self::fits(floor(left, right)),
                "%" => Self::fits(left - floor(left, right) * right),
                "<" => Some(Wide::Bool(left < right)),
                "<=" => Some(Wide::Bool(left <= right)),
                ">" => Some(Wide::Bool(left > right)),
                ">=" => Some(Wide::Bool(left >= right)),
                other => panic!("{other}"),
            };
        }
        let (left, right) = (left.float(), right.float());
        match op {
            "+" => Self::finite(left + right),
            "-" => Self::finite(left - right),
            "*" => Self::finite(left * right),
            "/" => Self::finite(left / right),
            "<" => Some(Wide::Bool(left < right)),
            "<=" => Some(Wide::Bool(left <= right)),
            other => panic!("{other}"),
        }
    }

    fn call(function: &str, args: &[Wide]) -> Option<Wide> {
        let ints = || {
            if let [array @ Wide::Array(_)] = args {
                array.ints()
            } else {
                args.iter().map(Wide::int).collect()
            }
        };
        match function {
            "min" => ints().into_iter().min().map(Wide::Int),
            "max" => ints().into_iter().max().map(Wide::Int),
            "abs" => Self::fits(args[0].int().abs()),
            "ceil_div" => match args[1].int() {
                0 => None,
                divisor => Self::fits(-floor(-args[0].int(), divisor)),
            },
            "len" => Some(Wide::Int(ints().len() as i128)),
            "get" => {
                let Wide::Array(items) = &args[0] else { panic!("not an array") };
                let index = args[1].int();
                if index < 0 {
                    Some(args[2].clone())
                } else {
                    Self::element(items, index).or(Some(args[2].clone()))
                }
            }
            "range" => {
                let (start, end) =
                    if let [end] = args { (0, end.int()) } else { (args[0].int(), args[1].int()) };
                (end - start <= 65_536).then(|| Wide::Array((start..end).map(Wide::Int).collect()))
            }
            "sum" => match args {
                [Wide::Array(items)] if matches!(items.first(), Some(Wide::Float(_))) => {
                    Self::finite(items.iter().map(Wide::float).sum())
                }
                _ => Self::fits(ints().into_iter().sum()),
            },
            "prod" => Self::product(&ints()),
            "float" => Some(Wide::Float(args[0].float())),
            "int" => {
                let value = args[0].float().trunc();
                if value.abs() > 1e19 { None } else { Self::fits(value as i128) }
            }
            other => panic!("{other}"),
        }
    }
}
