//! Evaluates expression trees after `docs/expressions.md`, without the product's code: 128-bit integers, checked
//! against 64 bits.

use super::meaning::Meaning;
use super::world::World;

const LONGEST: i128 = 65_536;

#[derive(Debug, Clone)]
pub(super) enum Tree {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'static str),
    Name(String),
    /// A shape, by index in [`super::world::TENSORS`].
    Shape(usize),
    Rank(usize),
    Numel(usize),
    Aligned(usize, u32),
    Values,
    Multiprocessors,
    List(Vec<Tree>),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Index(Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
    For {
        variable: String,
        over: Box<Tree>,
        condition: Option<Box<Tree>>,
        body: Box<Tree>,
    },
}

fn fits(value: i128) -> Option<Meaning> {
    i64::try_from(value).ok().map(|_| Meaning::Int(value))
}

fn finite(value: f64) -> Option<Meaning> {
    value.is_finite().then_some(Meaning::Float(value))
}

fn floor_div(a: i128, b: i128) -> i128 {
    let cut = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { cut - 1 } else { cut }
}

fn product(items: &[i128]) -> Option<Meaning> {
    if items.contains(&0) {
        return Some(Meaning::Int(0));
    }
    items.iter().try_fold(1_i128, |all, &item| all.checked_mul(item)).and_then(fits)
}

fn element(items: &[Meaning], index: i128) -> Option<Meaning> {
    let index = if index < 0 { index + items.len() as i128 } else { index };
    items.get(usize::try_from(index).ok()?).cloned()
}

pub(super) type Variables = Vec<(String, Meaning)>;

impl Tree {
    pub(super) fn text(&self) -> String {
        use super::world::TENSORS;
        let all = |items: &[Tree]| items.iter().map(Tree::text).collect::<Vec<_>>().join(", ");
        match self {
            Tree::Int(value) => format!("({value})"),
            Tree::Float(value) => format!("({value:?})"),
            Tree::Bool(value) => value.to_string(),
            Tree::Text(text) => format!("\"{text}\""),
            Tree::Name(name) => name.clone(),
            Tree::Shape(tensor) => format!("{}.shape", TENSORS[*tensor]),
            Tree::Rank(tensor) => format!("{}.rank", TENSORS[*tensor]),
            Tree::Numel(tensor) => format!("numel({})", TENSORS[*tensor]),
            Tree::Aligned(tensor, bytes) => format!("aligned({}, {bytes})", TENSORS[*tensor]),
            Tree::Values => "k.values".to_owned(),
            Tree::Multiprocessors => "device.sms".to_owned(),
            Tree::List(items) => format!("[{}]", all(items)),
            Tree::Unary(op, operand) => format!("({op} {})", operand.text()),
            Tree::Binary(op, left, right) => format!("({} {op} {})", left.text(), right.text()),
            Tree::If(condition, then, otherwise) => {
                format!("({} if {} else {})", then.text(), condition.text(), otherwise.text())
            }
            Tree::Index(array, index) => format!("{}[{}]", array.text(), index.text()),
            Tree::Call(function, args) => format!("{function}({})", all(args)),
            Tree::For { variable, over, condition, body } => {
                let condition = condition.as_ref().map_or(String::new(), |c| format!(" if {}", c.text()));
                format!("[{} for {variable} in {}{condition}]", body.text(), over.text())
            }
        }
    }

    pub(super) fn visit(&self, visit: &mut impl FnMut(&Tree)) {
        visit(self);
        match self {
            Tree::List(items) | Tree::Call(_, items) => items.iter().for_each(|item| item.visit(visit)),
            Tree::Unary(_, operand) => operand.visit(visit),
            Tree::Binary(_, left, right) | Tree::Index(left, right) => {
                left.visit(visit);
                right.visit(visit);
            }
            Tree::If(condition, then, otherwise) => {
                [condition, then, otherwise].iter().for_each(|part| part.visit(visit));
            }
            Tree::For { over, condition, body, .. } => {
                over.visit(visit);
                condition.iter().for_each(|condition| condition.visit(visit));
                body.visit(visit);
            }
            _ => {}
        }
    }

    pub(super) fn meaning(&self, world: &World) -> Option<Meaning> {
        self.value(world, &mut Vec::new())
    }

    fn value(&self, world: &World, variables: &mut Variables) -> Option<Meaning> {
        Some(match self {
            Tree::Int(value) => Meaning::Int((*value).into()),
            Tree::Float(value) => Meaning::Float(*value),
            Tree::Bool(value) => Meaning::Bool(*value),
            Tree::Text(text) => Meaning::Text((*text).to_owned()),
            Tree::Name(name) => match variables.iter().rev().find(|(variable, _)| variable == name) {
                Some((_, value)) => value.clone(),
                None => world.attribute(name),
            },
            Tree::Shape(tensor) => Meaning::of_ints(world.shape(*tensor)),
            Tree::Rank(tensor) => Meaning::Int(world.shape(*tensor).len() as i128),
            Tree::Numel(tensor) => {
                return product(&world.shape(*tensor).iter().map(|&dim| dim.into()).collect::<Vec<i128>>());
            }
            Tree::Aligned(tensor, bytes) => Meaning::Bool(*bytes == 1 || world.is_aligned(*tensor)),
            Tree::Values => Meaning::of_ints(&world.held),
            Tree::Multiprocessors => Meaning::Int(world.multiprocessors.into()),
            Tree::List(items) => {
                let items = items.iter().map(|item| item.value(world, variables));
                Meaning::List(items.collect::<Option<_>>()?)
            }
            Tree::Unary("not", operand) => Meaning::Bool(!operand.value(world, variables)?.bool()),
            Tree::Unary(_, operand) => match operand.value(world, variables)? {
                Meaning::Float(value) => Meaning::Float(-value),
                value => return fits(-value.int()),
            },
            Tree::Binary(op @ ("and" | "or"), left, right) => {
                let left = left.value(world, variables)?.bool();
                if left == (*op == "or") { Meaning::Bool(left) } else { right.value(world, variables)? }
            }
            Tree::Binary(op, left, right) => {
                return binary(op, &left.value(world, variables)?, &right.value(world, variables)?);
            }
            Tree::If(condition, then, otherwise) => {
                let side = if condition.value(world, variables)?.bool() { then } else { otherwise };
                return side.value(world, variables);
            }
            Tree::Index(array, index) => {
                let array = array.value(world, variables)?;
                return element(array.list(), index.value(world, variables)?.int());
            }
            Tree::Call(function, args) => {
                let args = args.iter().map(|arg| arg.value(world, variables)).collect::<Option<Vec<_>>>()?;
                return call(function, &args);
            }
            Tree::For { variable, over, condition, body } => {
                let over = over.value(world, variables)?;
                let mut items = Vec::new();
                for item in over.list() {
                    variables.push((variable.clone(), item.clone()));
                    let kept = condition
                        .as_ref()
                        .map_or(Some(true), |it| it.value(world, variables).map(|it| it.bool()));
                    let item = match kept {
                        Some(true) => body.value(world, variables).map(Some),
                        kept => kept.map(|_| None),
                    };
                    variables.pop();
                    items.extend(item?);
                }
                Meaning::List(items)
            }
        })
    }
}

fn same(left: &Meaning, right: &Meaning) -> bool {
    match (left, right) {
        (Meaning::Float(_), _) | (_, Meaning::Float(_)) => left.float() == right.float(),
        (Meaning::List(left), Meaning::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

fn binary(op: &str, left: &Meaning, right: &Meaning) -> Option<Meaning> {
    if op == "==" || op == "!=" {
        return Some(Meaning::Bool(same(left, right) == (op == "==")));
    }
    if let (Meaning::Int(left), Meaning::Int(right)) = (left, right) {
        let (left, right) = (*left, *right);
        return match op {
            "+" => fits(left + right),
            "-" => fits(left - right),
            "*" => fits(left * right),
            "//" => {
                if right == 0 {
                    None
                } else {
                    fits(floor_div(left, right))
                }
            }
            "%" => {
                if right == 0 {
                    None
                } else {
                    fits(left - floor_div(left, right) * right)
                }
            }
            "<" => Some(Meaning::Bool(left < right)),
            "<=" => Some(Meaning::Bool(left <= right)),
            ">" => Some(Meaning::Bool(left > right)),
            ">=" => Some(Meaning::Bool(left >= right)),
            other => panic!("`{other}` of integers"),
        };
    }
    let (left, right) = (left.float(), right.float());
    match op {
        "+" => finite(left + right),
        "-" => finite(left - right),
        "*" => finite(left * right),
        "/" => finite(left / right),
        "<" => Some(Meaning::Bool(left < right)),
        "<=" => Some(Meaning::Bool(left <= right)),
        ">" => Some(Meaning::Bool(left > right)),
        ">=" => Some(Meaning::Bool(left >= right)),
        other => panic!("`{other}` of floats"),
    }
}

fn call(function: &str, args: &[Meaning]) -> Option<Meaning> {
    let numbers = || -> Vec<i128> {
        match args {
            [Meaning::List(items)] => items.iter().map(Meaning::int).collect(),
            args => args.iter().map(Meaning::int).collect(),
        }
    };
    match (function, args) {
        ("min", _) => numbers().into_iter().min().map(Meaning::Int),
        ("max", _) => numbers().into_iter().max().map(Meaning::Int),
        ("sum", _) => fits(numbers().into_iter().sum()),
        ("prod", _) => product(&numbers()),
        ("len", [array]) => Some(Meaning::Int(array.list().len() as i128)),
        ("abs", [value]) => fits(value.int().abs()),
        ("ceil_div", [a, b]) => match b.int() {
            0 => None,
            b => fits(-floor_div(-a.int(), b)),
        },
        ("get", [array, index, default]) => {
            let found = (index.int() >= 0).then(|| element(array.list(), index.int())).flatten();
            Some(found.unwrap_or_else(|| default.clone()))
        }
        ("range", ends) => {
            let (start, end) = match ends {
                [end] => (0, end.int()),
                ends => (ends[0].int(), ends[1].int()),
            };
            (end - start <= LONGEST).then(|| Meaning::List((start..end).map(Meaning::Int).collect()))
        }
        ("float", [value]) => Some(Meaning::Float(value.float())),
        ("int", [Meaning::Float(value)]) => {
            let whole = value.trunc();
            if whole.abs() > 1e19 { None } else { fits(whole as i128) }
        }
        ("int", [value]) => Some(value.clone()),
        other => panic!("{other:?}"),
    }
}
