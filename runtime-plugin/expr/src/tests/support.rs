use std::fmt::Write;

use crate::data_type::DataType;
use crate::value::Value;
use crate::{
    DeviceFact, Environment, ExprError, Function, Kind, Names, Scope, ShapeBuilder, ShapeOp, TensorKind,
    evaluate, parse,
};

pub(super) const ATTRIBUTES: [&str; 6] = ["pads", "n", "scale", "flag", "mode", "weights"];
/// Three plain tensors, a shape input, a size tensor, an output of that size.
pub(super) const TENSORS: [&str; 6] = ["x", "y", "z", "target", "total", "found"];

pub(super) struct Plugin;

impl Names for Plugin {
    fn attribute(&self, index: u32) -> Option<&str> {
        ATTRIBUTES.get(index as usize).copied()
    }

    fn tensor(&self, index: u32) -> Option<&str> {
        TENSORS.get(index as usize).copied()
    }
}

fn function(params: &[&str], body: &str) -> Function {
    Function {
        params: params.iter().map(|&param| param.to_owned()).collect(),
        body: parse(body).expect("a function's body"),
    }
}

pub(super) fn scope() -> Scope {
    Scope::new()
        .attribute("pads", 0, Kind::ints())
        .attribute("n", 1, Kind::Int)
        .attribute("scale", 2, Kind::Float)
        .attribute("flag", 3, Kind::Bool)
        .attribute("mode", 4, Kind::Str)
        .attribute("weights", 5, Kind::Array(Box::new(Kind::Float)))
        .tensor("x", 0, 1, 8)
        .tensor("y", 1, 0, 4)
        .tensor("z", 2, 2, 2)
        .tensor_of_kind("target", 3, (1, 1), TensorKind::ShapeInput)
        .tensor_of_kind("total", 4, (0, 0), TensorKind::Size)
        .tensor_of_kind("found", 5, (2, 2), TensorKind::DataDependent)
        .constant("BLOCK", Value::Int(256))
        .constant("ZERO", Value::Int(0))
        .constant("TILE", Value::Array(vec![Value::Int(8), Value::Int(16)]))
        .ty("T", DataType::F16)
        .function("pad", function(&["pads", "rank", "i", "side"], "get(pads, 2 * (rank - 1 - i) + side, 0)"))
        .function("last", function(&["t"], "t.shape[-1]"))
        .function("clamp", function(&["a", "low", "high"], "min(max(a, low), high)"))
        .function("first", function(&["a"], "[a[i] for i in range(1)][0]"))
        .function("loops", function(&["a"], "loops(a)"))
        .function("ping", function(&["a"], "pong(a) + 1"))
        .function("pong", function(&["a"], "ping(a) + 1"))
        .function("half", function(&["a"], "a // 2"))
        .function(
            "vectors",
            function(&["t", "count"], "t.shape[-1] % count == 0 and aligned(t, count * sizeof(T))"),
        )
        .function("twice", function(&["a"], "a + a"))
}

pub(super) struct World {
    pub(super) attributes: Vec<Value>,
    /// Shapes, except the last tensor's.
    pub(super) shapes: Vec<Vec<i64>>,
    pub(super) values: Vec<i64>,
    pub(super) size: i64,
    pub(super) device: [i64; 3],
    pub(super) addresses: [u64; 3],
    pub(super) node_time: bool,
}

impl World {
    pub(super) fn example() -> World {
        let ints = |items: &[i64]| Value::Array(items.iter().copied().map(Value::Int).collect());
        World {
            attributes: vec![
                ints(&[1, 2, 3, 4]),
                Value::Int(3),
                Value::Float(0.5),
                Value::Bool(true),
                Value::Str("wrap".into()),
                Value::Array(vec![Value::Float(0.25), Value::Float(0.75)]),
            ],
            shapes: vec![vec![10, 3, 32, 32], vec![5, 6], vec![7, 8], vec![2], vec![]],
            values: vec![4, -8],
            size: 9,
            device: [132, 232_448, 90],
            addresses: [0x7000, 0x7010, 0x7004],
            node_time: false,
        }
    }

    pub(super) fn at_node_time(&self) -> World {
        let (attributes, shapes) = (self.attributes.clone(), self.shapes.clone());
        World { attributes, shapes, values: self.values.clone(), node_time: true, ..*self }
    }
}

impl Environment for World {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.shapes.get(tensor as usize).filter(|_| !self.node_time).map(Vec::as_slice)
    }

    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let address = self.addresses.get(tensor as usize).filter(|_| !self.node_time)?;
        Some(address % u64::from(bytes) == 0)
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        self.device.get(fact as usize).filter(|_| !self.node_time).copied()
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        (tensor == 3 && !self.node_time).then_some(&self.values)
    }

    fn size(&self, tensor: u32) -> Option<i64> {
        (tensor == 4 && !self.node_time).then_some(self.size)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.shapes.get(tensor as usize).map(Vec::len)
    }
}

/// Computes as TensorRT does: eagerly, wrapping, no division by zero.
pub(super) struct Calculator<'a> {
    world: &'a World,
    pub(super) operations: usize,
}

impl Calculator<'_> {
    pub(super) fn new(world: &World) -> Calculator<'_> {
        Calculator { world, operations: 0 }
    }
}

impl ShapeBuilder for Calculator<'_> {
    type Dim = i64;
    type Error = String;

    fn constant(&mut self, value: i64) -> Result<i64, String> {
        Ok(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<i64, String> {
        let shape = self.world.shapes.get(tensor as usize).ok_or("no such tensor")?;
        shape.get(axis).copied().ok_or_else(|| "no such axis".to_owned())
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize, String> {
        if tensor == 3 { Ok(self.world.values.len()) } else { Err("no shape input".to_owned()) }
    }

    fn value(&mut self, tensor: u32, index: usize) -> Result<i64, String> {
        let value = self.world.values.get(index).filter(|_| tensor == 3);
        value.copied().ok_or_else(|| "no such value".to_owned())
    }

    fn size(&mut self, tensor: u32) -> Result<i64, String> {
        if tensor == 4 { Ok(self.world.size) } else { Err("no size tensor".to_owned()) }
    }

    fn operation(&mut self, op: ShapeOp, a: &i64, b: &i64) -> Result<i64, String> {
        self.operations += 1;
        let (wide_a, wide_b) = (i128::from(*a), i128::from(*b));
        let divisor = || if wide_b == 0 { Err("Divide by zero".to_owned()) } else { Ok(wide_b) };
        let exact = match op {
            ShapeOp::Sum => wide_a + wide_b,
            ShapeOp::Prod => wide_a * wide_b,
            ShapeOp::Max => wide_a.max(wide_b),
            ShapeOp::Min => wide_a.min(wide_b),
            ShapeOp::Sub => wide_a - wide_b,
            ShapeOp::Equal => i128::from(a == b),
            ShapeOp::Less => i128::from(a < b),
            ShapeOp::FloorDiv => floor(wide_a, divisor()?),
            ShapeOp::CeilDiv => -floor(-wide_a, divisor()?),
        };
        Ok(exact as i64)
    }
}

/// By Euclidean division, unlike the implementation.
pub(super) fn floor(a: i128, b: i128) -> i128 {
    if b > 0 { a.div_euclid(b) } else { (-a).div_euclid(-b) }
}

pub(super) fn value(text: &str) -> Result<Value, String> {
    let typed = crate::compile(text, &scope()).map_err(|errors| errors[0].message.clone())?;
    evaluate(&typed.expr, &World::example()).map_err(|error| error.to_string())
}

pub(super) fn render(text: &str, errors: &[ExprError]) -> String {
    let mut rendered = String::new();
    for error in errors {
        let before = text[..error.span.start].chars().count();
        let width = text[error.span.clone()].chars().count().max(1);
        let _ = writeln!(rendered, "error[{:?}]: {}", error.class, error.message);
        let _ = writeln!(rendered, "  | {text}");
        let _ = writeln!(rendered, "  | {}{} {}", " ".repeat(before), "^".repeat(width), error.label);
        if let Some(help) = &error.help {
            let _ = writeln!(rendered, "  = help: {help}");
        }
    }
    rendered
}
