//! Laws that hold for every expression: an oracle of its own says what each means.
//!
//! Expressions are made from a tape of random bytes, so that shrinking the tape shrinks the expression.

use proptest::prelude::*;

use super::support::{ATTRIBUTES, Calculator, Plugin, TENSORS, World, floor, scope};
use crate::expr::{
    BinaryOp, Builtin, Environment, EvalError, Expr, Kind, LowerError, Node, RangeEnvironment, UnaryOp, bind,
    bounds, bounds_each, compile, evaluate, lower, lower_scalar, print,
};
use crate::value::Value;

/// An expression as the oracle knows it.
#[derive(Debug, Clone)]
enum Tree {
    Int(i64),
    Float(f64),
    Bool(bool),
    Name(String),
    Shape(usize),
    Rank(usize),
    Numel(usize),
    Array(Vec<Tree>),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Conditional(Box<Tree>, Box<Tree>, Box<Tree>),
    Index(Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
    For { variable: String, over: Box<Tree>, condition: Option<Box<Tree>>, body: Box<Tree> },
}

impl Tree {
    fn text(&self) -> String {
        let list = |items: &[Tree]| items.iter().map(Tree::text).collect::<Vec<_>>().join(", ");
        match self {
            Tree::Int(value) => format!("({value})"),
            Tree::Float(value) => format!("({value:?})"),
            Tree::Bool(value) => value.to_string(),
            Tree::Name(name) => name.clone(),
            Tree::Shape(tensor) => format!("{}.shape", TENSORS[*tensor]),
            Tree::Rank(tensor) => format!("{}.rank", TENSORS[*tensor]),
            Tree::Numel(tensor) => format!("numel({})", TENSORS[*tensor]),
            Tree::Array(items) => format!("[{}]", list(items)),
            Tree::Unary(op, operand) => format!("({op} {})", operand.text()),
            Tree::Binary(op, left, right) => format!("({} {op} {})", left.text(), right.text()),
            Tree::Conditional(condition, then, otherwise) => {
                format!("({} if {} else {})", then.text(), condition.text(), otherwise.text())
            }
            Tree::Index(array, index) => format!("{}[{}]", array.text(), index.text()),
            Tree::Call(function, args) => format!("{function}({})", list(args)),
            Tree::For { variable, over, condition, body } => {
                let condition = condition.as_ref().map_or(String::new(), |c| format!(" if {}", c.text()));
                format!("[{} for {variable} in {}{condition}]", body.text(), over.text())
            }
        }
    }
}

/// Random choices.
struct Tape<'a> {
    bytes: std::slice::Iter<'a, u8>,
    variables: Vec<String>,
    fresh: usize,
}

impl<'a> Tape<'a> {
    fn new(bytes: &'a [u8]) -> Tape<'a> {
        Tape { bytes: bytes.iter(), variables: Vec::new(), fresh: 0 }
    }

    /// A number below `limit`; 0 once the tape has ended.
    fn pick(&mut self, limit: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % limit
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    fn number(&mut self) -> i64 {
        self.of(&[0, 1, 2, 3, -1, -2, 4, 5, 7, -8, 100, 1 << 31, i64::MAX, i64::MIN, 1 << 40])
    }

    fn boxed(&mut self, make: fn(&mut Self, usize) -> Tree, depth: usize) -> Box<Tree> {
        Box::new(make(self, depth))
    }

    fn int(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(6) {
                0 | 1 => Tree::Int(self.number()),
                2 => Tree::Name(self.of(&["n", "BLOCK", "ZERO"]).to_owned()),
                3 => Tree::Rank(self.pick(3)),
                4 => Tree::Numel(self.pick(3)),
                _ => match self.variables.len() {
                    0 => Tree::Index(Box::new(Tree::Shape(self.pick(3))), Box::new(Tree::Int(self.number()))),
                    count => {
                        let at = self.pick(count);
                        Tree::Name(self.variables[at].clone())
                    }
                },
            };
        }
        let depth = depth - 1;
        match self.pick(16) {
            0 => Tree::Unary("-", self.boxed(Tape::int, depth)),
            1..=5 => {
                let op = self.of(&["+", "-", "*", "//", "%"]);
                Tree::Binary(op, self.boxed(Tape::int, depth), self.boxed(Tape::int, depth))
            }
            6 => self.conditional(Tape::int, depth),
            7 => Tree::Index(self.boxed(Tape::ints, depth), self.boxed(Tape::int, depth)),
            8 => Tree::Call(self.of(&["min", "max", "ceil_div"]), vec![self.int(depth), self.int(depth)]),
            9 => Tree::Call(self.of(&["sum", "prod", "min", "max", "len"]), vec![self.ints(depth)]),
            10 => Tree::Call("get", vec![self.ints(depth), self.int(depth), self.int(depth)]),
            11 => Tree::Call("abs", vec![self.int(depth)]),
            12 => Tree::Call("int", vec![self.float(depth)]),
            13 => self.guarded(depth),
            _ => self.int(0),
        }
    }

    /// A division by something of a shape that is often 0, where a condition keeps it from being evaluated.
    fn guarded(&mut self, depth: usize) -> Tree {
        let axis = Tree::Int([0, -1][self.pick(2)]);
        let dim = Tree::Index(Box::new(Tree::Shape([0, 2][self.pick(2)])), Box::new(axis));
        let divisor = Tree::Binary("-", Box::new(dim), Box::new(Tree::Int([0, 1, 2, 3][self.pick(4)])));
        let condition = |op| Box::new(Tree::Binary(op, Box::new(divisor.clone()), Box::new(Tree::Int(0))));
        let (left, right) = (self.boxed(Tape::int, depth), Box::new(divisor.clone()));
        let divided = match self.pick(3) {
            0 => Tree::Binary("//", left, right),
            1 => Tree::Binary("%", left, right),
            _ => Tree::Call("ceil_div", vec![*left, *right]),
        };
        let other = self.boxed(Tape::int, depth);
        let compared = Box::new(Tree::Binary("<", Box::new(divided.clone()), Box::new(Tree::Int(2))));
        let (then, otherwise) = (Box::new(Tree::Int(3)), other.clone());
        match self.pick(4) {
            0 => Tree::Conditional(condition("!="), Box::new(divided), other),
            1 => Tree::Conditional(condition("=="), other, Box::new(divided)),
            2 => Tree::Conditional(Box::new(Tree::Binary("and", condition("!="), compared)), then, otherwise),
            _ => Tree::Conditional(Box::new(Tree::Binary("or", condition("=="), compared)), then, otherwise),
        }
    }

    fn conditional(&mut self, side: fn(&mut Self, usize) -> Tree, depth: usize) -> Tree {
        Tree::Conditional(self.boxed(Tape::bool, depth), self.boxed(side, depth), self.boxed(side, depth))
    }

    fn bool(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return if self.pick(2) == 0 { Tree::Name("flag".into()) } else { Tree::Bool(self.pick(2) == 1) };
        }
        let depth = depth - 1;
        match self.pick(8) {
            0 => Tree::Unary("not", self.boxed(Tape::bool, depth)),
            1 | 2 => {
                let op = self.of(&["and", "or", "==", "!="]);
                Tree::Binary(op, self.boxed(Tape::bool, depth), self.boxed(Tape::bool, depth))
            }
            3 => Tree::Binary(
                self.of(&["==", "!="]),
                self.boxed(Tape::ints, depth),
                self.boxed(Tape::ints, depth),
            ),
            4 => {
                let op = self.of(&["<", "<=", "=="]);
                Tree::Binary(op, self.boxed(Tape::float, depth), self.boxed(Tape::int, depth))
            }
            5 => self.conditional(Tape::bool, depth),
            _ => {
                let op = self.of(&["==", "!=", "<", "<=", ">", ">="]);
                Tree::Binary(op, self.boxed(Tape::int, depth), self.boxed(Tape::int, depth))
            }
        }
    }

    fn float(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(3) {
                0 => Tree::Name("scale".into()),
                1 => Tree::Float(self.of(&[0.0, 0.5, -1.5, 1e300, 3.0, -0.0, 1e-7])),
                _ => Tree::Call("sum", vec![Tree::Name("weights".into())]),
            };
        }
        let depth = depth - 1;
        match self.pick(5) {
            0 => Tree::Call("float", vec![self.int(depth)]),
            1 => Tree::Unary("-", self.boxed(Tape::float, depth)),
            2 => self.conditional(Tape::float, depth),
            _ => {
                let op = self.of(&["+", "-", "*", "/"]);
                let right = if self.pick(2) == 0 { Tape::int } else { Tape::float };
                Tree::Binary(op, self.boxed(Tape::float, depth), self.boxed(right, depth))
            }
        }
    }

    fn ints(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(3) {
                0 => Tree::Shape(self.pick(3)),
                1 => Tree::Name(self.of(&["pads", "TILE"]).to_owned()),
                _ => Tree::Call("range", vec![Tree::Int([0, 1, 2, 3, 5][self.pick(5)])]),
            };
        }
        let depth = depth - 1;
        match self.pick(6) {
            0 => {
                let count = self.pick(4);
                Tree::Array((0..count).map(|_| self.int(depth)).collect())
            }
            1 => self.conditional(Tape::ints, depth),
            2 => Tree::Call("range", vec![self.int(depth), self.int(depth)]),
            3 => Tree::Call("range", vec![Tree::Rank(self.pick(3))]),
            _ => {
                let over = self.boxed(Tape::ints, depth);
                let variable = format!("v{}", self.fresh);
                self.fresh += 1;
                self.variables.push(variable.clone());
                let condition = (self.pick(3) == 0).then(|| self.boxed(Tape::bool, depth));
                let body = self.boxed(Tape::int, depth);
                self.variables.pop();
                Tree::For { variable, over, condition, body }
            }
        }
    }

    fn world(&mut self) -> World {
        let shape = |tape: &mut Self, least: usize, most: usize| -> Vec<i64> {
            let rank = least + tape.pick(most - least + 1);
            (0..rank).map(|_| tape.of(&[1, 2, 3, 0, 5, 7, 32, 1 << 31, 1 << 40])).collect()
        };
        let shapes = vec![shape(self, 1, 8), shape(self, 0, 4), shape(self, 2, 2)];
        let count = self.pick(4);
        let pads = (0..count).map(|_| Value::Int(self.number())).collect();
        let weights = (0..self.pick(3)).map(|_| Value::Float(self.of(&[0.25, -3.0]))).collect();
        let attributes = vec![
            Value::Array(pads),
            Value::Int(self.number()),
            Value::Float(self.of(&[0.5, 0.0, -2.0, 1e300])),
            Value::Bool(self.pick(2) == 1),
            Value::Str(self.of(&["wrap", "edge"]).to_owned()),
            Value::Array(weights),
        ];
        World { attributes, shapes, node_time: false }
    }
}

/// The oracle's values: integers are wide.
#[derive(Debug, Clone, PartialEq)]
enum Wide {
    Int(i128),
    Float(f64),
    Bool(bool),
    Array(Vec<Wide>),
}

impl Wide {
    fn of(value: &Value) -> Wide {
        match value {
            Value::Int(value) => Wide::Int((*value).into()),
            Value::Float(value) => Wide::Float(*value),
            Value::Bool(value) => Wide::Bool(*value),
            Value::Str(_) => Wide::Array(vec![]),
            Value::Array(items) => Wide::Array(items.iter().map(Wide::of).collect()),
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

/// What an expression means; none where it has no value.
struct Oracle<'a> {
    world: &'a World,
    variables: Vec<(String, Wide)>,
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

    fn at(items: &[Wide], index: i128) -> Option<Wide> {
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

    fn value(&mut self, tree: &Tree) -> Option<Wide> {
        Some(match tree {
            Tree::Int(value) => Wide::Int((*value).into()),
            Tree::Float(value) => Wide::Float(*value),
            Tree::Bool(value) => Wide::Bool(*value),
            Tree::Name(name) => match name.as_str() {
                "BLOCK" => Wide::Int(256),
                "ZERO" => Wide::Int(0),
                "TILE" => Wide::Array(vec![Wide::Int(8), Wide::Int(16)]),
                name => match ATTRIBUTES.iter().position(|attribute| *attribute == name) {
                    Some(index) => Wide::of(&self.world.attributes[index]),
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
                return Self::at(&items, index.int());
            }
            Tree::Call(function, args) => {
                let args = args.iter().map(|arg| self.value(arg)).collect::<Option<Vec<Wide>>>()?;
                let value = Self::call(function, &args)?;
                // Of no weights it is 0 all the same, and a float by its kind.
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
                    Self::at(items, index).or(Some(args[2].clone()))
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

/// Ranges of dimensions that hold the world's.
struct Ranges<'a> {
    world: &'a World,
    slack: i64,
}

impl RangeEnvironment for Ranges<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        // One attribute can be anything.
        self.world.attribute(index).filter(|_| self.slack < 2 || index != 1)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.world.rank(tensor).filter(|_| self.slack < 2 || tensor != 1)
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        let dim = *self.world.shapes.get(tensor as usize)?.get(axis)?;
        (self.slack < 3).then_some(((dim - self.slack).max(0), dim + self.slack * 3))
    }
}

/// Only shapes: what a bound expression still needs.
struct ShapesOnly<'a>(&'a World);

impl Environment for ShapesOnly<'_> {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.shape(tensor)
    }
}

fn check(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let world = tape.world();
    let depth = tape.pick(5);
    let tree = match tape.pick(5) {
        0 | 1 => tape.int(depth),
        2 => tape.bool(depth),
        3 => tape.float(depth),
        _ => tape.ints(depth),
    };
    let text = tree.text();
    let expected = Oracle { world: &world, variables: vec![] }.value(&tree);
    let typed = match compile(&text, &scope()) {
        Ok(typed) => typed,
        Err(errors) => {
            assert!(errors.iter().all(|error| error.label == "this always fails"), "{text}: {errors:?}");
            assert_eq!(expected, None, "{text}: {errors:?}");
            return;
        }
    };
    assert_eq!(typed.expr.validate(6, 3), Ok(()), "{text}");
    let value = evaluate(&typed.expr, &world);
    assert_eq!(value.as_ref().ok().map(Wide::of), expected, "{text}: {value:?}");

    let printed = print(&typed.expr, &Plugin);
    let again = compile(&printed, &scope()).unwrap_or_else(|errors| panic!("{printed}: {errors:?}"));
    assert_eq!(again.expr, typed.expr, "{text} prints as {printed}");
    assert_eq!(again.time, typed.time, "{text} prints as {printed}");

    check_bind(&text, &typed.expr, &world, &value);
    check_lower(&text, &typed.expr, &typed.kind, &world, &value);
    for slack in 0..4 {
        check_bounds(&text, &typed.expr, &Ranges { world: &world, slack }, &value);
    }
}

fn check_bind(text: &str, expr: &Expr, world: &World, value: &Result<Value, EvalError>) {
    let bound = bind(expr, &world.at_node_time());
    assert_eq!(bound.validate(6, 3), Ok(()), "{text}");
    let printed = print(&bound, &Plugin);
    assert_eq!(&evaluate(&bound, world), value, "{text} binds to {printed}");
    assert_eq!(&evaluate(&bound, &ShapesOnly(world)), value, "{text} binds to {printed}");
    assert_eq!(bind(&bound, &world.at_node_time()), bound, "{text} binds to {printed}");
    if let Ok(again) = compile(&printed, &scope()) {
        assert_eq!(again.expr, bound, "{text} binds to {printed}");
    }
}

fn check_lower(text: &str, expr: &Expr, kind: &Kind, world: &World, value: &Result<Value, EvalError>) {
    let mut builder = Calculator { shapes: &world.shapes, operations: 0 };
    let node = world.at_node_time();
    let lowered = match kind {
        Kind::Int => lower_scalar(expr, &node, &mut builder).map(|dim| vec![dim]),
        Kind::Array(_) => lower(expr, &node, &mut builder),
        _ => return,
    };
    let Ok(value) = value else { return };
    let expected = value.as_ints().or_else(|| value.as_int().map(|value| vec![value]));
    match lowered {
        Ok(dims) => assert_eq!(Some(dims), expected, "{text}"),
        Err(LowerError::Unsupported { .. }) => {}
        Err(error) => panic!("{text} is {value} and is lowered to: {error}"),
    }
}

fn check_bounds(text: &str, expr: &Expr, ranges: &Ranges<'_>, value: &Result<Value, EvalError>) {
    let each = match value {
        Ok(Value::Float(_)) => return,
        Ok(Value::Array(items)) => {
            let Some(each) = bounds_each(expr, ranges).expect(text) else { return };
            assert_eq!(each.len(), items.len(), "{text}");
            items.iter().zip(each).map(|(item, bounds)| (item.clone(), bounds)).collect()
        }
        Ok(value) => {
            vec![(value.clone(), bounds(expr, ranges).unwrap_or_else(|error| panic!("{text}: {error}")))]
        }
        Err(error) => {
            if let Ok(bounds) = bounds(expr, ranges) {
                assert!(!bounds.total, "{text} fails with {error}");
            }
            return;
        }
    };
    for (value, bounds) in each {
        let value = match value {
            Value::Bool(value) => i64::from(value),
            value => value.as_int().unwrap(),
        };
        assert!(bounds.min <= value && value <= bounds.max, "{text} is {value}, not within {bounds:?}");
    }
}

/// A list of nodes that nobody checked.
fn nodes(tape: &mut Tape<'_>) -> Vec<Node> {
    let count = 1 + tape.pick(24);
    let ops = [
        BinaryOp::Add,
        BinaryOp::Mul,
        BinaryOp::FloorDiv,
        BinaryOp::Mod,
        BinaryOp::Eq,
        BinaryOp::Lt,
        BinaryOp::And,
        BinaryOp::Or,
    ];
    (0..count)
        .map(|at| {
            let child = |tape: &mut Tape<'_>| -> u32 {
                // Mostly the nodes before, seldom this one or one beyond.
                let back = tape.pick(5);
                if back == 4 { tape.pick(30) as u32 } else { (at as u32).saturating_sub(1 + back as u32) }
            };
            match tape.pick(16) {
                0 => Node::Int(tape.number()),
                1 => Node::Float(tape.of(&[0.0, -1.5, f64::NAN, f64::INFINITY])),
                2 => Node::Bool(tape.pick(2) == 0),
                3 => Node::Str("wrap".into()),
                4 => Node::Attribute(tape.pick(8) as u32),
                5 => Node::Shape(tape.pick(4) as u32),
                6 => Node::Numel(tape.pick(4) as u32),
                7 => Node::Local(tape.pick(3) as u32),
                8 => Node::Array((0..tape.pick(4)).map(|_| child(tape)).collect()),
                9 => Node::Unary(tape.of(&[UnaryOp::Neg, UnaryOp::Not]), child(tape)),
                10 | 11 => Node::Binary(tape.of(&ops), child(tape), child(tape)),
                12 => Node::Conditional { condition: child(tape), then: child(tape), otherwise: child(tape) },
                13 => Node::Index { array: child(tape), index: child(tape) },
                14 => Node::Call(tape.of(&Builtin::ALL), (0..tape.pick(4)).map(|_| child(tape)).collect()),
                _ => Node::Comprehension {
                    slot: tape.pick(3) as u32,
                    over: child(tape),
                    condition: (tape.pick(3) == 0).then(|| child(tape)),
                    body: child(tape),
                },
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reader_agrees_with_the_oracle(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn no_list_of_nodes_makes_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut tape = Tape::new(&bytes);
        let world = tape.world();
        let expr = Expr { nodes: nodes(&mut tape) };
        let valid = expr.validate(6, 3).is_ok();
        let value = evaluate(&expr, &world);
        let bound = bind(&expr, &world.at_node_time());
        prop_assert!(!valid || bound.validate(6, 3).is_ok());
        let _ = print(&expr, &Plugin);
        let mut builder = Calculator { shapes: &world.shapes, operations: 0 };
        let _ = lower(&expr, &world.at_node_time(), &mut builder);
        let _ = lower_scalar(&expr, &world.at_node_time(), &mut builder);
        let _ = bounds(&expr, &Ranges { world: &world, slack: 1 });
        let _ = bounds_each(&expr, &Ranges { world: &world, slack: 3 });
        if valid && value.is_ok() {
            let bytes = postcard::to_allocvec(&expr).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Expr>(&bytes).map(|read| evaluate(&read, &world).is_ok()), Ok(true));
        }
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in "[-+*/%<>=!()\\[\\],. \"'a-fn0-9_x]{0,40}|(x\\.shape|numel\\(x\\)|n|for i in|if|else|not|and|\\[|\\]|\\(|\\)|\\+|//|-|1|2\\.5|\\?| ){0,20}|\\PC{0,20}") {
        if let Err(errors) = compile(&text, &scope()) {
            for error in errors {
                prop_assert!(text.get(error.span.clone()).is_some(), "{:?}", error);
            }
        }
    }
}
