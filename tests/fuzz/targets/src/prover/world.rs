use cubinder_expr::Value;
use cubinder_expr::{DeviceFact, Environment};
use cubinder_launch::proof::Case;

use super::meaning::Meaning;

pub(super) const TENSORS: [&str; 4] = ["x", "w", "k", "y"];
pub(super) const HELD: usize = 2;
pub(super) const OUTPUT: usize = 3;

pub(super) const ATTRIBUTES: [&str; 8] = ["i", "j", "n", "u", "v", "flag", "mode", "s"];

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) numbers: [i64; 3],
    pub(super) lists: [Vec<i64>; 2],
    pub(super) flag: bool,
    pub(super) mode: &'static str,
    pub(super) scale: f64,
    /// Shapes in the order of [`TENSORS`]; the output's is empty until known.
    pub(super) shapes: [Vec<i64>; 4],
    pub(super) held: Vec<i64>,
    /// Whether addresses of `x`, and of others, are multiples of 256; else odd.
    pub(super) aligned: [bool; 2],
    pub(super) multiprocessors: i64,
    pub(super) values: Vec<Value>,
}

impl World {
    pub(super) fn attribute(&self, name: &str) -> Meaning {
        match name {
            "i" => Meaning::Int(self.numbers[0].into()),
            "j" => Meaning::Int(self.numbers[1].into()),
            "n" => Meaning::Int(self.numbers[2].into()),
            "u" => Meaning::of_ints(&self.lists[0]),
            "v" => Meaning::of_ints(&self.lists[1]),
            "flag" => Meaning::Bool(self.flag),
            "mode" => Meaning::Text(self.mode.to_owned()),
            "s" => Meaning::Float(self.scale),
            other => panic!("no attribute `{other}`"),
        }
    }

    pub(super) fn shape(&self, tensor: usize) -> &[i64] {
        &self.shapes[tensor]
    }

    pub(super) fn is_aligned(&self, tensor: usize) -> bool {
        self.aligned[usize::from(tensor != 0)]
    }

    fn with_values(mut self) -> World {
        let list = |items: &[i64]| Value::Array(items.iter().copied().map(Value::Int).collect());
        self.values = self.numbers.map(Value::Int).to_vec();
        self.values.extend(self.lists.iter().map(|items| list(items)));
        self.values.extend([
            Value::Bool(self.flag),
            Value::Str(self.mode.to_owned()),
            Value::Float(self.scale),
        ]);
        self
    }

    pub(super) fn of(case: &Case, modes: &[&'static str]) -> Option<World> {
        let int = |at: usize| case.attributes.get(at)?.as_int();
        let list = |at: usize| case.attributes.get(at)?.as_ints();
        let (Some(Value::Bool(flag)), Some(Value::Str(mode)), Some(Value::Float(scale))) =
            (case.attributes.get(5), case.attributes.get(6), case.attributes.get(7))
        else {
            return None;
        };
        let shape = |at: usize| case.shapes.get(at).cloned().unwrap_or_default();
        let world = World {
            numbers: [int(0)?, int(1)?, int(2)?],
            lists: [list(3)?, list(4)?],
            flag: *flag,
            mode: modes.iter().copied().find(|known| known == mode)?,
            scale: *scale,
            shapes: [shape(0), shape(1), shape(2), Vec::new()],
            held: case.values.get(HELD).cloned().unwrap_or_default(),
            aligned: [true; 2],
            multiprocessors: case.device.map_or(1, |device| device.sms),
            values: Vec::new(),
        };
        Some(world.with_values())
    }
}

impl Environment for World {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.values.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.shapes.get(tensor as usize).map(Vec::as_slice)
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        Some(bytes == 1 || self.is_aligned(tensor as usize))
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        (fact == DeviceFact::ALL[0]).then_some(self.multiprocessors)
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        (tensor as usize == HELD).then_some(&self.held)
    }
}

/// One value if unread.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    pub(super) numbers: [Vec<i64>; 3],
    pub(super) lists: [Vec<Vec<i64>>; 2],
    pub(super) flags: Vec<bool>,
    pub(super) modes: Vec<&'static str>,
    pub(super) scales: Vec<f64>,
    pub(super) shapes: [Vec<Vec<i64>>; 2],
    pub(super) held: Vec<Vec<i64>>,
    pub(super) aligned: [Vec<bool>; 2],
    pub(super) multiprocessors: Vec<i64>,
}

impl Choices {
    fn sizes(&self) -> [usize; 14] {
        [
            self.numbers[0].len(),
            self.numbers[1].len(),
            self.numbers[2].len(),
            self.lists[0].len(),
            self.lists[1].len(),
            self.flags.len(),
            self.modes.len(),
            self.scales.len(),
            self.shapes[0].len(),
            self.shapes[1].len(),
            self.held.len(),
            self.aligned[0].len(),
            self.aligned[1].len(),
            self.multiprocessors.len(),
        ]
    }

    fn world(&self, mut number: usize) -> World {
        let at = self.sizes().map(|size| {
            let at = number % size;
            number /= size;
            at
        });
        let held = self.held[at[10]].clone();
        let world = World {
            numbers: [self.numbers[0][at[0]], self.numbers[1][at[1]], self.numbers[2][at[2]]],
            lists: [self.lists[0][at[3]].clone(), self.lists[1][at[4]].clone()],
            flag: self.flags[at[5]],
            mode: self.modes[at[6]],
            scale: self.scales[at[7]],
            shapes: [
                self.shapes[0][at[8]].clone(),
                self.shapes[1][at[9]].clone(),
                vec![held.len() as i64],
                Vec::new(),
            ],
            held,
            aligned: [self.aligned[0][at[11]], self.aligned[1][at[12]]],
            multiprocessors: self.multiprocessors[at[13]],
            values: Vec::new(),
        };
        world.with_values()
    }

    pub(super) fn worlds(&self, most: usize) -> impl Iterator<Item = World> + '_ {
        let all: usize = self.sizes().iter().product();
        // Odd strides also vary the fast parts.
        let stride = if all <= most { 1 } else { (all / most) | 1 };
        (0..all).step_by(stride).map(|number| self.world(number))
    }
}
