use cubinder::launch::Positions;
use cubinder_expr::{BinaryOp, Environment, Expr, Node};
use cubinder_expr::{DataType, ScalarType, Value};
use cubinder_model::{Arg, ArgValue, Input, Launch, Output, Plugin, ShapeLimits, Variant};

pub(crate) const I32: ScalarType = ScalarType::Int { bytes: 4 };

pub(crate) struct Shapes(pub(crate) Vec<Vec<i64>>);

impl Environment for Shapes {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.get(tensor as usize).map(Vec::as_slice)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.shape(tensor).map(<[i64]>::len)
    }
}

pub(crate) fn all_given(count: usize) -> Positions {
    Positions::new((0..count).map(Some).collect(), count)
}

pub(crate) fn int(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

pub(crate) fn float(value: f64) -> Expr {
    Expr { nodes: vec![Node::Float(value)] }
}

pub(crate) fn ints(values: &[i64]) -> Expr {
    let mut nodes: Vec<Node> = values.iter().map(|value| Node::Int(*value)).collect();
    nodes.push(Node::Array((0..values.len() as u32).collect()));
    Expr { nodes }
}

pub(crate) fn numel(tensor: u32) -> Expr {
    Expr { nodes: vec![Node::Numel(tensor)] }
}

pub(crate) fn shape(tensor: u32) -> Expr {
    Expr { nodes: vec![Node::Shape(tensor)] }
}

pub(crate) fn share(tensor: u32) -> Expr {
    Expr { nodes: vec![Node::Int(1024), Node::Numel(tensor), Node::Binary(BinaryOp::FloorDiv, 0, 1)] }
}

pub(crate) fn tensor(name: &str, index: u32) -> Arg {
    Arg { name: name.to_owned(), value: ArgValue::Tensor(index) }
}

pub(crate) fn scalar(name: &str, ty: ScalarType, expr: Expr) -> Arg {
    Arg { name: name.to_owned(), value: ArgValue::Scalar { ty, expr } }
}

pub(crate) fn array(name: &str, ty: ScalarType, len: u32, expr: Expr) -> Arg {
    Arg { name: name.to_owned(), value: ArgValue::Array { ty, len, expr } }
}

pub(crate) fn launch() -> Launch {
    Launch {
        cluster: None,
        cooperative: false,
        programmatic: false,
        kernel: "circ_pad<float, 4>".to_owned(),
        grid: [int(1), int(1), int(1)],
        block: [int(256), int(1), int(1)],
        shared_bytes: int(0),
        args: vec![tensor("x", 0), tensor("y", 1), scalar("count", I32, numel(1))],
        code: Vec::new(),
    }
}

pub(crate) fn plugin() -> Plugin {
    Plugin {
        name: "circ_pad_plugin".to_owned(),
        namespace: "sample".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: Vec::new(),
        inputs: vec![Input {
            values: None,
            doc: String::new(),
            name: "x".to_owned(),
            rank_min: 1,
            rank_max: 8,
            limits: ShapeLimits::default(),
        }],
        outputs: vec![Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: "y".to_owned(),
            shape: shape(0),
            limits: ShapeLimits::default(),
        }],
        require: Vec::new(),
        timing: None,
        tuning: Vec::new(),
        variants: vec![Variant {
            id: 1,
            label: String::new(),
            types: vec![DataType::F32, DataType::F32],
            guard: None,
            formats: vec![cubinder_expr::Format::Linear; 2],
            specialized: Vec::new(),
            scratch: Vec::new(),
            steps: vec![cubinder_model::Step::launch(launch())],
        }],
    }
}
