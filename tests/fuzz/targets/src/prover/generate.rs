//! Manifests from bytes, with trees and enumerable domains. Expressions share parts, so conditions matter.

use std::fmt::Write;
use std::ops::Range;

use super::tree::Tree;
use super::world::{ATTRIBUTES, Choices, HELD, OUTPUT, TENSORS};

#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Maximum of numbers, including the attribute `i`.
    pub(super) number: i64,
    pub(super) length: usize,
    pub(super) depth: usize,
    pub(super) worlds: usize,
    /// Whether to search counterexamples and check all rules.
    pub(super) searches: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Require,
    Shape,
    Guard(i32),
    When,
    Grid,
    Block,
    Shared,
    Argument,
}

#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) role: Role,
    pub(super) index: usize,
    pub(super) range: Range<usize>,
    pub(super) tree: Tree,
}

#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) text: String,
    pub(super) slots: Vec<Slot>,
    pub(super) choices: Choices,
    pub(super) limit: (i64, i64),
}

impl Manifest {
    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(move |slot| slot.role == role)
    }
}

/// Choices from the input's bytes; after the last, the first choice, which ends expressions.
struct Tape<'a> {
    bytes: std::slice::Iter<'a, u8>,
    size: Size,
    variables: Vec<String>,
    atoms: Vec<Tree>,
    late: bool,
    addresses: bool,
    /// Launches cannot read a shape input's values.
    values: bool,
}

fn boxed(tree: Tree) -> Box<Tree> {
    Box::new(tree)
}

fn binary(op: &'static str, left: Tree, right: Tree) -> Tree {
    Tree::Binary(op, boxed(left), boxed(right))
}

fn name(text: &str) -> Tree {
    Tree::Name(text.to_owned())
}

impl Tape<'_> {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())].clone()
    }

    fn tensor(&mut self) -> usize {
        self.of(match (self.late, self.values) {
            (true, _) => &[0, 1, OUTPUT, OUTPUT],
            (false, true) => &[0, 0, 1, HELD],
            (false, false) => &[0, 0, 1],
        })
    }

    fn leaf(&mut self) -> Tree {
        match self.pick(14) {
            0 | 1 => Tree::Int(self.of(&[0, 1, 2, 3, -1, 4, 7, -3])),
            2 => name("i"),
            3 => name("j"),
            4 => name(self.of(&["n", "i", "j"])),
            5 => Tree::Index(boxed(Tree::Shape(self.tensor())), boxed(Tree::Int(self.of(&[0, -1])))),
            6 => match self.pick(3) {
                0 => Tree::Rank(self.tensor()),
                _ => Tree::Numel(self.tensor()),
            },
            7 => {
                let list = name(self.of(&["u", "v"]));
                Tree::Index(boxed(list), boxed(name(self.of(&["i", "j"]))))
            }
            8 if self.late => Tree::Multiprocessors,
            8 if self.values => Tree::Index(boxed(Tree::Values), boxed(Tree::Int(0))),
            9 | 10 if !self.variables.is_empty() => Tree::Name(self.of(&self.variables.clone())),
            _ if !self.atoms.is_empty() => self.of(&self.atoms.clone()),
            _ => name("i"),
        }
    }

    fn int(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return self.leaf();
        }
        let depth = depth - 1;
        match self.pick(20) {
            0 | 1 => self.leaf(),
            2..=5 => {
                let op = self.of(&["+", "-", "*", "//", "%", "+"]);
                binary(op, self.int(depth), self.int(depth))
            }
            6..=9 => Tree::If(boxed(self.bool(depth)), boxed(self.int(depth)), boxed(self.int(depth))),
            10 => Tree::Index(boxed(self.ints(depth)), boxed(self.int(depth))),
            11 => Tree::Call(self.of(&["min", "max", "ceil_div"]), vec![self.int(depth), self.int(depth)]),
            12 | 13 => Tree::Call(self.of(&["sum", "prod", "min", "max", "len"]), vec![self.ints(depth)]),
            14 => Tree::Call("get", vec![self.ints(depth), self.int(depth), self.int(0)]),
            15 => match self.pick(3) {
                0 => Tree::Call("abs", vec![self.int(depth)]),
                1 => Tree::Unary("-", boxed(self.int(depth))),
                _ => Tree::Call("int", vec![self.float(depth)]),
            },
            16 | 17 => self.protected(depth),
            _ => self.leaf(),
        }
    }

    fn protected(&mut self, depth: usize) -> Tree {
        let (part, other) = (self.int(depth.min(1)), self.int(0));
        let list = name(self.of(&["u", "v"]));
        let limit = Tree::Int(self.of(&[0, 1, 2, 3, 4]));
        let op = self.of(&["<", "<=", "==", "!=", ">="]);
        let condition = match self.pick(3) {
            0 => binary("!=", part.clone(), Tree::Int(0)),
            1 => binary("<", part.clone(), Tree::Call("len", vec![list.clone()])),
            _ => binary(op, part.clone(), limit),
        };
        let inner = binary(
            self.of(&[">", "<=", "=="]),
            Tree::Index(boxed(list.clone()), boxed(self.leaf())),
            Tree::Index(boxed(name("v")), boxed(self.leaf())),
        );
        let side = match self.pick(4) {
            0 => binary(self.of(&["//", "%"]), other.clone(), part),
            1 => Tree::Index(boxed(list), boxed(part)),
            _ => Tree::If(boxed(inner), boxed(part.clone()), boxed(binary("+", part, Tree::Int(1)))),
        };
        match self.pick(2) {
            0 => Tree::If(boxed(condition), boxed(side), boxed(other)),
            _ => Tree::If(boxed(condition), boxed(other), boxed(side)),
        }
    }

    fn ints(&mut self, depth: usize) -> Tree {
        if depth == 0 {
            return match self.pick(5) {
                0 => name(self.of(&["u", "v"])),
                1 => Tree::Shape(self.tensor()),
                2 if self.values => Tree::Values,
                3 => Tree::Call("range", vec![self.of(&[Tree::Rank(0), Tree::Int(2), name("i")])]),
                _ => name("u"),
            };
        }
        let depth = depth - 1;
        match self.pick(7) {
            0 => self.ints(0),
            1 => {
                let count = 1 + self.pick(3);
                Tree::List((0..count).map(|_| self.int(depth)).collect())
            }
            2 => Tree::If(boxed(self.bool(depth)), boxed(self.ints(depth)), boxed(self.ints(depth))),
            3 => Tree::Call("range", vec![self.int(depth), self.int(depth)]),
            _ => {
                let over = boxed(self.ints(depth));
                let variable = format!("v{}", self.variables.len());
                self.variables.push(variable.clone());
                let condition = (self.pick(2) == 1).then(|| boxed(self.bool(depth)));
                let body = boxed(self.int(depth));
                self.variables.pop();
                Tree::For { variable, over, condition, body }
            }
        }
    }

    fn float(&mut self, depth: usize) -> Tree {
        match self.pick(4) {
            0 => name("s"),
            1 => Tree::Float(self.of(&[0.0, 0.5, -1.5, 1e300])),
            2 => Tree::Call("float", vec![self.int(depth.min(1))]),
            _ => {
                let op = self.of(&["+", "-", "*", "/"]);
                binary(op, name("s"), Tree::Call("float", vec![self.int(depth.min(1))]))
            }
        }
    }

    fn bool(&mut self, depth: usize) -> Tree {
        let below = depth.saturating_sub(1);
        match if depth == 0 { 9 } else { self.pick(13) } {
            0 => Tree::Unary("not", boxed(self.bool(below))),
            1..=3 => binary(self.of(&["and", "or"]), self.bool(below), self.bool(below)),
            4 | 5 => Tree::If(boxed(self.bool(below)), boxed(self.bool(below)), boxed(self.bool(below))),
            6 => binary(self.of(&["==", "!="]), self.ints(below), self.ints(below)),
            7 => match self.pick(4) {
                0 => name("flag"),
                1 => binary(self.of(&["==", "!="]), name("mode"), Tree::Text(self.of(&["a", "b", "c"]))),
                2 => binary(self.of(&["==", "!="]), name("flag"), self.bool(below)),
                _ => Tree::Bool(self.pick(2) == 1),
            },
            8 => match self.addresses {
                true => Tree::Aligned(self.of(&[0, 1, OUTPUT]), self.of(&[16, 4, 1])),
                false => binary(self.of(&["<", "<=", "==", ">"]), self.float(below), self.float(below)),
            },
            _ => {
                let op = self.of(&["==", "!=", "<", "<=", ">", ">="]);
                binary(op, self.int(below), self.int(below))
            }
        }
    }
}

fn lists(lengths: (usize, usize), items: &[i64]) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    let mut longest = vec![Vec::new()];
    for length in 0..=lengths.1 {
        if length >= lengths.0 {
            all.extend(longest.iter().cloned());
        }
        let longer = longest.iter().flat_map(|list| {
            items.iter().map(move |&item| {
                let mut longer: Vec<i64> = list.clone();
                longer.push(item);
                longer
            })
        });
        longest = longer.collect();
    }
    all
}

fn listed(items: &[i64]) -> String {
    items.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn manifest(bytes: &[u8], size: Size) -> Manifest {
    let mut tape = Tape {
        bytes: bytes.iter(),
        size,
        variables: Vec::new(),
        atoms: Vec::new(),
        late: false,
        addresses: false,
        values: false,
    };
    let tape = &mut tape;
    let most = tape.size.number;
    let lengths = tape.of(&[(1, 1), (0, 1), (1, 2), (0, tape.size.length), (2, 2)]);
    let items = tape.of(&[vec![0, 1], vec![-1, 0, 2], vec![1, 2], vec![0, 1, i64::from(i32::MAX)]]);
    let extremes =
        tape.of(&[vec![0, 1], vec![-1, 0, 2], vec![i64::MIN, -1, 0, 3, i64::MAX], vec![2, 1 << 40]]);
    let below = tape.of(&[0, -2, 1]);
    let ranks = tape.of(&[(1, 1), (1, 2), (2, 2), (0, 2)]);
    let dims = tape.of(&[(0, most), (0, 1), (1, most)]);
    let counts = tape.of(&[(1, 1), (0, 2), (1, 2)]);
    let held = tape.of(&[(0, 1), (-1, 1), (2, 2)]);
    let limit = tape.of(&[(0, i64::MAX), (0, 4), (1, 2)]);
    for depth in [0, 1, 1] {
        let atom = match tape.pick(3) {
            0 => binary("+", name("i"), name("j")),
            _ => tape.int(depth),
        };
        tape.atoms.push(atom);
    }
    tape.values = true;
    let most_depth = tape.size.depth;
    let depth = |tape: &mut Tape<'_>| 1 + tape.pick(most_depth);

    let mut text = String::from("schema = 1\n\n[plugin]\nname = \"p\"\nnamespace = \"t\"\nrequire = [\n");
    let mut slots = Vec::new();
    let mut put = |text: &mut String, role, before: &str, tree: Tree, after: &str| {
        let _ = write!(text, "{before}'");
        let start = text.len();
        text.push_str(&tree.text());
        slots.push(Slot { role, index: slots.len(), range: start..text.len(), tree });
        let _ = writeln!(text, "'{after}");
    };
    for _ in 0..tape.of(&[0, 0, 1, 2]) {
        let depth = depth(tape);
        put(&mut text, Role::Require, "  { expr = ", tape.bool(depth), ", message = \"m\" },");
    }
    text.push_str("]\n");
    let list = |name: &str| {
        format!(
            "\n[attributes.{name}]\ntype = \"i32[]\"\nlength = \"{}..={}\"\none_of = [{}]\n",
            lengths.0,
            lengths.1,
            listed(&items)
        )
    };
    let _ = write!(text, "\n[attributes.i]\ntype = \"i32\"\nrange = \"0..={most}\"\n");
    let _ = write!(text, "\n[attributes.j]\ntype = \"i32\"\nrange = \"{below}..={most}\"\n");
    let _ = write!(text, "\n[attributes.n]\ntype = \"i64\"\none_of = [{}]\n", listed(&extremes));
    text += &(list("u") + &list("v"));
    text += "\n[attributes.flag]\ntype = \"bool\"\n\n[attributes.mode]\ntype = \"string\"\none_of = [\"a\", \"b\"]\n";
    text += "\n[attributes.s]\ntype = \"f64\"\none_of = [0.0, 0.5, -1.5]\n";
    let _ = write!(
        text,
        "\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = \"{}..={}\"\nlimits = {{ dims = \"{}..={}\" }}\n",
        ranks.0, ranks.1, dims.0, dims.1
    );
    let _ = write!(
        text,
        "\n[[inputs]]\nname = \"w\"\ntype = \"f32\"\nrank = 1\nlimits = {{ dims = \"0..=2\" }}\n"
    );
    let _ = write!(
        text,
        "\n[[inputs]]\nname = \"k\"\nshape_input = true\ntype = \"i64\"\nlimits = {{ dims = \"{}..={}\" }}\nvalues = \"{}..={}\"\n",
        counts.0, counts.1, held.0, held.1
    );
    let shape = match tape.pick(4) {
        0 | 1 => Tree::Shape(0),
        2 => Tree::List(vec![tape.int(2), Tree::Index(boxed(Tree::Shape(1)), boxed(Tree::Int(0)))]),
        _ => {
            tape.variables.push("d".to_owned());
            let (condition, body) = (tape.pick(2) == 1, tape.int(2));
            let condition = condition.then(|| boxed(binary("!=", name("d"), name("i"))));
            tape.variables.pop();
            Tree::For { variable: "d".to_owned(), over: boxed(Tree::Shape(0)), condition, body: boxed(body) }
        }
    };
    text += "\n[[outputs]]\nname = \"y\"\ntype = \"f32\"\n";
    put(&mut text, Role::Shape, "shape = ", shape, "");
    let _ = writeln!(text, "limits = {{ dims = \"{}..={}\" }}", limit.0, limit.1);
    (tape.late, tape.addresses, tape.values) = (true, true, false);
    for id in 1..=1 + i32::from(tape.pick(2) == 1) {
        let _ = write!(text, "\n[[variants]]\nid = {id}\n");
        let depth = depth(tape);
        put(&mut text, Role::Guard(id), "guard = ", tape.bool(depth), "");
    }
    tape.addresses = false;
    text += "\n[[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\n";
    let places = [
        (Role::Grid, "grid = [", "]"),
        (Role::Block, "block = [", "]"),
        (Role::Shared, "shared_bytes = ", ""),
        (Role::Argument, "args = { x = \"x\", y = \"y\", a = ", " }"),
    ];
    for (role, before, after) in places {
        let depth = depth(tape);
        put(&mut text, role, before, tape.int(depth), after);
    }
    if tape.pick(2) == 1 {
        let depth = depth(tape);
        put(&mut text, Role::When, "when = ", tape.bool(depth), "");
    }

    // Unread parts keep their first value.
    let mut read = Vec::new();
    for slot in &slots {
        slot.tree.visit(&mut |tree| {
            read.push(match tree {
                Tree::Name(name) => name.clone(),
                Tree::Shape(tensor) | Tree::Rank(tensor) | Tree::Numel(tensor) => TENSORS[*tensor].to_owned(),
                Tree::Values => "k".to_owned(),
                Tree::Aligned(0, _) => "aligned x".to_owned(),
                Tree::Aligned(..) => "aligned".to_owned(),
                Tree::Multiprocessors => "sms".to_owned(),
                _ => return,
            });
        });
    }
    let is_read = |name: &str| read.iter().any(|read| read == name);
    fn keep<T>(is_read: bool, mut all: Vec<T>) -> Vec<T> {
        all.truncate(if is_read { usize::MAX } else { 1 });
        all
    }
    let range = |(low, high): (i64, i64)| (low..=high).collect::<Vec<i64>>();
    let shapes = |(low, high): (usize, usize), dims| lists((low, high), &range(dims));
    let [i, j, n, u, v, flag, mode, s] = ATTRIBUTES.map(&is_read);
    let choices = Choices {
        numbers: [keep(i, range((0, most))), keep(j, range((below, most))), keep(n, extremes)],
        lists: [keep(u, lists(lengths, &items)), keep(v, lists(lengths, &items))],
        flags: keep(flag, vec![false, true]),
        modes: keep(mode, vec!["a", "b"]),
        scales: keep(s, vec![0.0, 0.5, -1.5]),
        shapes: [shapes(ranks, dims), keep(is_read("w"), shapes((1, 1), (0, 2)))],
        held: keep(is_read("k"), lists(counts, &range(held))),
        aligned: [keep(is_read("aligned x"), vec![true, false]), keep(is_read("aligned"), vec![true, false])],
        multiprocessors: keep(is_read("sms"), vec![1, 2, 3, 132, 1024]),
    };
    Manifest { text, slots, choices, limit }
}
