//! Expressions: printing round-trips; node-time expressions bind; bounds contain values; lowering agrees with
//! evaluation.

use std::sync::LazyLock;

use cubinder_expr as expr;
use cubinder_expr::{
    Bounds, DeviceFact, Environment, EvalError, Expr, Function, Kind, LowerError, Names, RangeEnvironment,
    Scope, ShapeBuilder, ShapeOp, TensorKind,
};
use cubinder_expr::{DataType, Value};

use crate::{Target, seeds};

/// Expressions, in all their uses.
pub static TARGET: Target =
    Target::new("expression", run, seeds::expressions, include_str!("../../dictionaries/expression.dict"));

static SCOPE: LazyLock<Scope> = LazyLock::new(scope);

const ATTRIBUTES: [&str; 6] = ["pads", "n", "scale", "flag", "mode", "weights"];
const TENSORS: [&str; 5] = ["x", "y", "z", "target", "total"];
const VALUES: u32 = 3;
const SIZE: u32 = 4;

struct Plugin;

impl Names for Plugin {
    fn attribute(&self, index: u32) -> Option<&str> {
        ATTRIBUTES.get(index as usize).copied()
    }

    fn tensor(&self, index: u32) -> Option<&str> {
        TENSORS.get(index as usize).copied()
    }
}

fn scope() -> Scope {
    let function = |params: &[&str], body: &str| Function {
        params: params.iter().map(|&param| param.to_owned()).collect(),
        body: expr::parse(body).expect("a function's body"),
    };
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
        .tensor_of_kind("target", VALUES, (1, 1), TensorKind::ShapeInput)
        .tensor_of_kind("total", SIZE, (0, 0), TensorKind::Size)
        .constant("BLOCK", Value::Int(256))
        .constant("TILE", Value::Array(vec![Value::Int(8), Value::Int(0)]))
        .ty("T", DataType::F16)
        .function("pad", function(&["pads", "rank", "i", "side"], "get(pads, 2 * (rank - 1 - i) + side, 0)"))
        .function("vectors", function(&["t", "count"], "t.shape[-1] % count == 0 and aligned(t, count * 2)"))
        .function("first", function(&["a"], "[a[i] for i in range(1)][0]"))
        .function("twice", function(&["a"], "a + a"))
        .function("loops", function(&["a"], "loops(a)"))
        .with_sizes()
}

struct World {
    attributes: Vec<Value>,
    shapes: [Vec<i64>; 5],
    values: Vec<i64>,
    size: i64,
    node_time: bool,
}

impl World {
    fn all() -> [World; 3] {
        let world = |pads: &[i64], n, scale, flag, [x, y, z]: [Vec<i64>; 3], values: &[i64]| World {
            attributes: vec![
                Value::Array(pads.iter().copied().map(Value::Int).collect()),
                Value::Int(n),
                Value::Float(scale),
                Value::Bool(flag),
                Value::Str("wrap".into()),
                Value::Array(vec![Value::Float(0.25), Value::Float(scale)]),
            ],
            shapes: [x, y, z, vec![values.len().try_into().unwrap_or(0)], vec![]],
            values: values.to_vec(),
            size: values.first().copied().unwrap_or(0).max(0),
            node_time: false,
        };
        [
            world(&[1, 2, 3, 4], 3, 0.5, true, [vec![10, 3, 32, 32], vec![5, 6], vec![7, 8]], &[4, -8]),
            world(&[], -1, -1e300, false, [vec![0], vec![], vec![1, 2]], &[]),
            world(
                &[i64::MIN, 0],
                i64::MAX,
                0.0,
                true,
                [vec![1 << 40; 8], vec![1; 4], vec![3, 0]],
                &[i64::MAX, i64::MIN, 0],
            ),
        ]
    }

    fn at_node_time(&self) -> World {
        let (attributes, shapes) = (self.attributes.clone(), self.shapes.clone());
        World { attributes, shapes, values: self.values.clone(), size: self.size, node_time: true }
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
        (!self.node_time).then(|| (0x7000_u32 + 8 * tensor).is_multiple_of(bytes))
    }

    fn device(&self, fact: DeviceFact) -> Option<i64> {
        (!self.node_time).then_some(fact.range().0)
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        (tensor == VALUES && !self.node_time).then_some(&self.values)
    }

    fn size(&self, tensor: u32) -> Option<i64> {
        (tensor == SIZE && !self.node_time).then_some(self.size)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.shapes.get(tensor as usize).map(Vec::len)
    }
}

struct Ranges<'a>(&'a World);

impl RangeEnvironment for Ranges<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.attribute(index)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.0.rank(tensor)
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        let dim = *self.0.shapes.get(tensor as usize)?.get(axis)?;
        Some(((dim - 1).max(0), dim + 2))
    }
}

/// Computes as TensorRT does: eagerly, wrapping, no division by zero.
struct Calculator<'a>(&'a World);

impl ShapeBuilder for Calculator<'_> {
    type Dim = i64;
    type Error = String;

    fn constant(&mut self, value: i64) -> Result<i64, String> {
        Ok(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<i64, String> {
        let dim = self.0.shapes.get(tensor as usize).and_then(|shape| shape.get(axis));
        dim.copied().ok_or_else(|| "no such dimension".to_owned())
    }

    fn value_count(&mut self, tensor: u32) -> Result<usize, String> {
        if tensor == VALUES { Ok(self.0.values.len()) } else { Err("no shape input".to_owned()) }
    }

    fn value(&mut self, tensor: u32, index: usize) -> Result<i64, String> {
        let value = self.0.values.get(index).filter(|_| tensor == VALUES);
        value.copied().ok_or_else(|| "no such value".to_owned())
    }

    fn size(&mut self, tensor: u32) -> Result<i64, String> {
        if tensor == SIZE { Ok(self.0.size) } else { Err("no size tensor".to_owned()) }
    }

    fn operation(&mut self, op: ShapeOp, a: &i64, b: &i64) -> Result<i64, String> {
        let (a, b) = (i128::from(*a), i128::from(*b));
        if b == 0 && matches!(op, ShapeOp::FloorDiv | ShapeOp::CeilDiv) {
            return Err("division by zero".to_owned());
        }
        let floor = |a: i128, b: i128| if b > 0 { a.div_euclid(b) } else { (-a).div_euclid(-b) };
        let exact = match op {
            ShapeOp::Sum => a + b,
            ShapeOp::Prod => a * b,
            ShapeOp::Max => a.max(b),
            ShapeOp::Min => a.min(b),
            ShapeOp::Sub => a - b,
            ShapeOp::Equal => i128::from(a == b),
            ShapeOp::Less => i128::from(a < b),
            ShapeOp::FloorDiv => floor(a, b),
            ShapeOp::CeilDiv => -floor(-a, b),
        };
        Ok(exact as i64)
    }
}

/// Equivalent trees may differ in exceeding the step limit.
fn is_limit(error: &EvalError) -> bool {
    matches!(error, EvalError::TooManySteps)
}

fn check_bind(tree: &Expr, world: &World, value: &Result<Value, EvalError>) {
    let bound = expr::bind(tree, &world.at_node_time());
    bound.validate(ATTRIBUTES.len(), TENSORS.len()).expect("binding produces trees");
    match (value, &expr::evaluate(&bound, world)) {
        (Err(error), _) | (_, Err(error)) if is_limit(error) => {}
        // As text, because of NaN.
        (value, bound) => assert_eq!(format!("{bound:?}"), format!("{value:?}")),
    }
}

fn check_lower(tree: &Expr, kind: &Kind, world: &World, value: &Result<Value, EvalError>) {
    let node = world.at_node_time();
    let lowered = match kind {
        Kind::Int => expr::lower_scalar(tree, &node, &mut Calculator(world)).map(|dim| vec![dim]),
        Kind::Array(element) if **element == Kind::Int => expr::lower(tree, &node, &mut Calculator(world)),
        _ => return,
    };
    let Ok(value) = value else { return };
    let expected = value.as_ints().or_else(|| value.as_int().map(|value| vec![value]));
    match lowered {
        Ok(dims) => assert_eq!(Some(dims), expected),
        Err(LowerError::Unsupported { .. }) => {}
        Err(LowerError::Evaluate(error)) if is_limit(&error) => {}
        Err(error) => panic!("{value} is lowered to: {error}"),
    }
}

fn check_bounds(tree: &Expr, world: &World, value: &Result<Value, EvalError>) {
    let within = |value: i64, bounds: Bounds| bounds.min <= value && value <= bounds.max;
    if let Ok(Value::Array(items)) = value {
        let Ok(Some(each)) = expr::bounds_each(tree, &Ranges(world)) else { return };
        assert_eq!(items.len(), each.len());
        for (item, bounds) in items.iter().zip(each) {
            assert!(item.as_int().is_none_or(|item| within(item, bounds)), "{item}: {bounds:?}");
        }
        return;
    }
    match (value, expr::bounds(tree, &Ranges(world))) {
        (Ok(Value::Int(value)), Ok(bounds)) => assert!(within(*value, bounds), "{value}: {bounds:?}"),
        (Ok(Value::Bool(value)), Ok(bounds)) => {
            assert!(within(i64::from(*value), bounds), "{value}: {bounds:?}");
        }
        (Ok(value @ (Value::Int(_) | Value::Bool(_))), Err(error)) => {
            assert!(is_limit(&error), "{value} has no bounds: {error}");
        }
        (Err(error), Ok(bounds)) => assert!(!bounds.total || is_limit(error), "{error}: {bounds:?}"),
        _ => {}
    }
}

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(syntax) = expr::parse(text) else { return };
    let scope = &*SCOPE;
    let function = Function { params: vec!["t".into(), "a".into()], body: syntax.clone() };
    for error in expr::check_function("f", &function, scope) {
        assert!(text.get(error.span.clone()).is_some(), "{error:?}");
    }
    let _ = expr::compile_syntax(&syntax, &scope.clone().without_addresses());
    let typed = match expr::compile_syntax(&syntax, scope) {
        Ok(typed) => typed,
        Err(errors) => {
            assert!(!errors.is_empty(), "rejected without a message");
            assert!(errors.iter().all(|error| text.get(error.span.clone()).is_some()), "{errors:?}");
            return;
        }
    };
    typed.expr.validate(ATTRIBUTES.len(), TENSORS.len()).expect("the compiler produces trees");
    let printed = expr::print(&typed.expr, &Plugin);
    let is_empty =
        matches!(typed.expr.nodes.as_slice(), [expr::Node::Array(elements)] if elements.is_empty());
    match expr::compile(&printed, scope) {
        Ok(again) if is_empty => assert_eq!(again.expr, typed.expr, "prints as {printed}"),
        Ok(again) => assert_eq!(format!("{again:?}"), format!("{typed:?}"), "prints as {printed}"),
        Err(errors) => panic!("prints as {printed}, which does not compile: {errors:?}"),
    }
    // The text selects a world, so slow inputs stay slow.
    let sum = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte)));
    let Some(world) = World::all().into_iter().nth(sum % 3) else { return };
    let value = expr::evaluate(&typed.expr, &world);
    check_bind(&typed.expr, &world, &value);
    check_lower(&typed.expr, &typed.kind, &world, &value);
    check_bounds(&typed.expr, &world, &value);
}
