use super::support::{TENSORS, World};
use crate::value::Value;
use crate::{BinaryOp, Builtin, DeviceFact, Node, UnaryOp};

#[derive(Debug, Clone)]
pub(super) enum Tree {
    Int(i64),
    Float(f64),
    Bool(bool),
    Name(String),
    Shape(usize),
    Rank(usize),
    Numel(usize),
    Aligned(usize, u32),
    Device(DeviceFact),
    /// The values of `target`.
    Values,
    /// The size in `total`.
    Size,
    Array(Vec<Tree>),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Conditional(Box<Tree>, Box<Tree>, Box<Tree>),
    Index(Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
    For {
        variable: String,
        over: Box<Tree>,
        condition: Option<Box<Tree>>,
        body: Box<Tree>,
    },
}

impl Tree {
    pub(super) fn text(&self) -> String {
        let list = |items: &[Tree]| items.iter().map(Tree::text).collect::<Vec<_>>().join(", ");
        match self {
            Tree::Int(value) => format!("({value})"),
            Tree::Float(value) => format!("({value:?})"),
            Tree::Bool(value) => value.to_string(),
            Tree::Name(name) => name.clone(),
            Tree::Shape(tensor) => format!("{}.shape", TENSORS[*tensor]),
            Tree::Rank(tensor) => format!("{}.rank", TENSORS[*tensor]),
            Tree::Numel(tensor) => format!("numel({})", TENSORS[*tensor]),
            Tree::Aligned(tensor, bytes) => format!("aligned({}, {bytes})", TENSORS[*tensor]),
            Tree::Device(fact) => fact.to_string(),
            Tree::Values => "target.values".to_owned(),
            Tree::Size => "total".to_owned(),
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

pub(super) struct Tape<'a> {
    bytes: std::slice::Iter<'a, u8>,
    variables: Vec<String>,
    fresh: usize,
}

impl<'a> Tape<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Tape<'a> {
        Tape { bytes: bytes.iter(), variables: Vec::new(), fresh: 0 }
    }

    /// Returns a number below `limit`; 0 after the tape ends.
    pub(super) fn pick(&mut self, limit: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % limit
    }

    fn pick_from<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    fn number(&mut self) -> i64 {
        self.pick_from(&[0, 1, 2, 3, -1, -2, 4, 5, 7, -8, 100, 1 << 31, i64::MAX, i64::MIN, 1 << 40])
    }

    fn boxed(&mut self, make: fn(&mut Self, usize) -> Tree, depth: usize) -> Box<Tree> {
        Box::new(make(self, depth))
    }

    pub(super) fn int(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(8) {
                6 => Tree::Device(self.pick_from(&DeviceFact::ALL)),
                7 => Tree::Index(Box::new(Tree::Values), Box::new(Tree::Int(self.pick_from(&[0, 1, -1])))),
                0 | 1 => Tree::Int(self.number()),
                2 => Tree::Name(self.pick_from(&["n", "BLOCK", "ZERO"]).to_owned()),
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
                let op = self.pick_from(&["+", "-", "*", "//", "%"]);
                Tree::Binary(op, self.boxed(Tape::int, depth), self.boxed(Tape::int, depth))
            }
            6 => self.conditional(Tape::int, depth),
            7 => Tree::Index(self.boxed(Tape::ints, depth), self.boxed(Tape::int, depth)),
            8 => Tree::Call(
                self.pick_from(&["min", "max", "ceil_div"]),
                vec![self.int(depth), self.int(depth)],
            ),
            9 => Tree::Call(self.pick_from(&["sum", "prod", "min", "max", "len"]), vec![self.ints(depth)]),
            10 => Tree::Call("get", vec![self.ints(depth), self.int(depth), self.int(depth)]),
            11 => Tree::Call("abs", vec![self.int(depth)]),
            12 => Tree::Call("int", vec![self.float(depth)]),
            13 => self.guarded(depth),
            _ => self.int(0),
        }
    }

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

    pub(super) fn bool(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(4) {
                0 | 1 => Tree::Name("flag".into()),
                2 => Tree::Bool(self.pick(2) == 1),
                _ => Tree::Aligned(self.pick(3), 1 << self.pick(9)),
            };
        }
        let depth = depth - 1;
        match self.pick(8) {
            0 => Tree::Unary("not", self.boxed(Tape::bool, depth)),
            1 | 2 => {
                let op = self.pick_from(&["and", "or", "==", "!="]);
                Tree::Binary(op, self.boxed(Tape::bool, depth), self.boxed(Tape::bool, depth))
            }
            3 => Tree::Binary(
                self.pick_from(&["==", "!="]),
                self.boxed(Tape::ints, depth),
                self.boxed(Tape::ints, depth),
            ),
            4 => {
                let op = self.pick_from(&["<", "<=", "=="]);
                Tree::Binary(op, self.boxed(Tape::float, depth), self.boxed(Tape::int, depth))
            }
            5 => self.conditional(Tape::bool, depth),
            _ => {
                let op = self.pick_from(&["==", "!=", "<", "<=", ">", ">="]);
                Tree::Binary(op, self.boxed(Tape::int, depth), self.boxed(Tape::int, depth))
            }
        }
    }

    pub(super) fn float(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(3) {
                0 => Tree::Name("scale".into()),
                1 => Tree::Float(self.pick_from(&[0.0, 0.5, -1.5, 1e300, 3.0, -0.0, 1e-7])),
                _ => Tree::Call("sum", vec![Tree::Name("weights".into())]),
            };
        }
        let depth = depth - 1;
        match self.pick(5) {
            0 => Tree::Call("float", vec![self.int(depth)]),
            1 => Tree::Unary("-", self.boxed(Tape::float, depth)),
            2 => self.conditional(Tape::float, depth),
            _ => {
                let op = self.pick_from(&["+", "-", "*", "/"]);
                let right = if self.pick(2) == 0 { Tape::int } else { Tape::float };
                Tree::Binary(op, self.boxed(Tape::float, depth), self.boxed(right, depth))
            }
        }
    }

    pub(super) fn ints(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(4) {
                3 => Tree::Values,
                0 => Tree::Shape(self.pick(3)),
                1 => Tree::Name(self.pick_from(&["pads", "TILE"]).to_owned()),
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

    pub(super) fn dimensions(&mut self, depth: usize) -> Tree {
        let count = self.pick(4);
        let dimension = |tape: &mut Self| if tape.pick(2) == 0 { Tree::Size } else { tape.int(depth) };
        Tree::Array((0..count).map(|_| dimension(self)).collect())
    }

    pub(super) fn world(&mut self) -> World {
        let shape = |tape: &mut Self, least: usize, most: usize| -> Vec<i64> {
            let rank = least + tape.pick(most - least + 1);
            (0..rank).map(|_| tape.pick_from(&[1, 2, 3, 0, 5, 7, 32, 1 << 31, 1 << 40])).collect()
        };
        let values: Vec<i64> = (0..self.pick(4)).map(|_| self.number()).collect();
        let target = vec![i64::try_from(values.len()).unwrap_or(0)];
        let shapes = vec![shape(self, 1, 8), shape(self, 0, 4), shape(self, 2, 2), target, vec![]];
        let count = self.pick(4);
        let pads = (0..count).map(|_| Value::Int(self.number())).collect();
        let weights = (0..self.pick(3)).map(|_| Value::Float(self.pick_from(&[0.25, -3.0]))).collect();
        let attributes = vec![
            Value::Array(pads),
            Value::Int(self.number()),
            Value::Float(self.pick_from(&[0.5, 0.0, -2.0, 1e300])),
            Value::Bool(self.pick(2) == 1),
            Value::Str(self.pick_from(&["wrap", "edge"]).to_owned()),
            Value::Array(weights),
        ];
        let addresses = [(); 3].map(|()| 0x7000 + self.pick_from(&[0, 2, 4, 16, 24, 64, 0x100]));
        let size = self.pick_from(&[0, 1, 7, 1 << 31]);
        let device = [
            self.pick_from(&[1, 7, 132]),
            self.pick_from(&[48 << 10, 232_448]),
            self.pick_from(&[75, 90, 120]),
        ];
        World { attributes, shapes, values, size, device, addresses, node_time: false }
    }
}

pub(super) fn nodes(tape: &mut Tape<'_>) -> Vec<Node> {
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
                let back = tape.pick(5);
                if back == 4 { tape.pick(30) as u32 } else { (at as u32).saturating_sub(1 + back as u32) }
            };
            match tape.pick(20) {
                17 => Node::Device(tape.pick_from(&DeviceFact::ALL)),
                18 => Node::Values(tape.pick(7) as u32),
                19 => Node::Size(tape.pick(7) as u32),
                0 => Node::Int(tape.number()),
                1 => Node::Float(tape.pick_from(&[0.0, -1.5, f64::NAN, f64::INFINITY])),
                2 => Node::Bool(tape.pick(2) == 0),
                3 => Node::Str("wrap".into()),
                4 => Node::Attribute(tape.pick(8) as u32),
                5 => Node::Shape(tape.pick(4) as u32),
                6 => Node::Numel(tape.pick(4) as u32),
                7 => Node::Local(tape.pick(3) as u32),
                8 => Node::Array((0..tape.pick(4)).map(|_| child(tape)).collect()),
                9 => Node::Unary(tape.pick_from(&[UnaryOp::Neg, UnaryOp::Not]), child(tape)),
                10 | 11 => Node::Binary(tape.pick_from(&ops), child(tape), child(tape)),
                12 => Node::Conditional { condition: child(tape), then: child(tape), otherwise: child(tape) },
                13 => Node::Index { array: child(tape), index: child(tape) },
                14 => Node::Call(
                    tape.pick_from(&Builtin::ALL),
                    (0..tape.pick(4)).map(|_| child(tape)).collect(),
                ),
                15 => {
                    Node::Aligned { tensor: tape.pick(4) as u32, bytes: tape.pick_from(&[0, 1, 3, 16, 512]) }
                }
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
