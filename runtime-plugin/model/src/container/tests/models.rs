use super::*;

#[test]
fn a_model_that_refers_to_nothing_is_refused() {
    let refused = |change: &dyn Fn(&mut Node)| {
        let mut node = node();
        change(&mut node);
        match read(&write_node(&node)) {
            Err(ReadError::Malformed(error)) => error,
            other => panic!("expected malformed, found {other:?}"),
        }
    };
    let errors = [
        refused(&|node| node.attributes.clear()),
        refused(&|node| node.attributes[0] = Value::Float(0.5)),
        refused(&|node| node.plugin.variants[0].types.clear()),
        refused(&|node| node.plugin.variants[0].id = 0),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().code[0].code = 9),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().code[0].symbol.push('x')),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = ArgValue::Tensor(2)),
        refused(&|node| {
            node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = ArgValue::ReadTensor(2);
        }),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().block[0] = and_attribute(int(1), 7)),
        refused(&|node| node.plugin.outputs[0].shape = Expr { nodes: vec![expr::Node::Shape(1)] }),
        refused(&|node| node.plugin.name.push('\0')),
        refused(&|node| node.plugin.inputs[0].rank_max = 9),
        refused(&|node| node.code.push(node.code[0].clone())),
        refused(&|node| node.input_ranks = Some(vec![])),
        refused(&|node| node.input_ranks = Some(vec![9])),
        refused(&|node| {
            let arg = node.plugin.variants[0].launch(0).unwrap().args[0].clone();
            node.plugin.variants[0].launch_mut(0).unwrap().args = vec![arg; 513];
        }),
        refused(&|node| {
            let value = ArgValue::Array { ty: ScalarType::F64, len: 4096, expr: int(0) };
            node.plugin.variants[0].launch_mut(0).unwrap().args[0].value = value;
        }),
        refused(&|node| node.plugin.require = vec![node.plugin.require[0].clone(); 257]),
        refused(&|node| node.attributes[0] = Value::Int(1025)),
        refused(&|node| node.plugin.attributes[0].default = Some(Value::Int(0))),
        refused(&|node| node.plugin.attributes[0].maximum = Some(Value::Int(0))),
        refused(&|node| node.plugin.attributes[0].one_of = (1..=1025).map(Value::Int).collect()),
        refused(&|node| node.plugin.variants[0].id = MAX_VARIANT_ID + 1),
        refused(&|node| node.plugin.variants.push(node.plugin.variants[0].clone())),
        refused(&|node| node.plugin.inputs[0].limits.every = Interval { min: 3, max: 2 }),
        refused(&|node| node.plugin.outputs[0].limits.numel.min = -1),
        refused(&|node| node.plugin.inputs[0].limits.dims = vec![Interval::ANY_SIZE; 2]),
        refused(&|node| node.plugin.outputs[0].limits.dims = vec![Interval::ANY_SIZE; 9]),
        refused(&|node| node.plugin.variants[0].launch_mut(0).unwrap().grid[0] = aligned(0, 16)),
        refused(&|node| node.plugin.outputs[0].shape = aligned(0, 16)),
        refused(&|node| node.plugin.require[0].expr = aligned(0, 16)),
        refused(&|node| guard(node, aligned(0, 24))),
        refused(&|node| guard(node, aligned(2, 16))),
        refused(&|node| guard(node, all_aligned(17))),
        refused(&|node| node.plugin.tuning = vec![tuned(90, 132, Vec::new()); 65]),
        refused(&|node| node.plugin.tuning.push(tuned(90, 132, Vec::new()))),
        refused(&|node| node.plugin.tuning = vec![tuned(90, 1, vec![tuned_point(); 4097])]),
        refused(&|node| first_point(node).shapes = vec![vec![1; 1 << 16], vec![1]]),
        refused(&|node| first_point(node).shapes = vec![vec![1; 9]; 2]),
        refused(&|node| first_point(node).shapes.clear()),
        refused(&|node| first_point(node).attributes.push((0, Value::Int(64)))),
        refused(&|node| first_point(node).attributes[0].0 = 1),
        refused(&|node| first_point(node).attributes[0].1 = Value::Int(0)),
        refused(&|node| node.plugin.tuning[0].points = vec![long_point(node); 2]),
        refused(&|node| first_point(node).ranking.clear()),
        refused(&|node| first_point(node).ranking = vec![1]),
        refused(&|node| first_point(node).ranking.push(0)),
        refused(&|node| first_point(node).ranking = vec![0; 65]),
        refused(&|node| {
            let other = Variant { types: vec![DataType::F16; 2], ..node.plugin.variants[0].clone() };
            node.plugin.variants.push(other);
            first_point(node).ranking.push(1);
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn what_is_not_known_where_it_is_asked_for_is_refused() {
    let leaf = |leaf: expr::Node| Expr { nodes: vec![leaf] };
    let refused = |change: &dyn Fn(&mut Plugin)| {
        let mut node = node();
        change(&mut node.plugin);
        node.input_ranks = None;
        match read(&write_node(&node)) {
            Err(ReadError::Malformed(error)) => error,
            other => panic!("expected malformed, found {other:?}"),
        }
    };
    let any = Interval { min: 0, max: 9 };
    let guard = |plugin: &mut Plugin, expr: Expr| {
        plugin.variants[0].guard = Some(Guard { expr, text: "as a test".to_owned() });
    };
    let sizes = Expr { nodes: vec![expr::Node::Size(1), expr::Node::Array(vec![0])] };
    let bound = || SizeBound { upper: int(9), opt: int(3) };
    let scalar = Expr { nodes: vec![expr::Node::Array(Vec::new())] };
    let device = expr::Node::Device(expr::DeviceFact::Sms);
    let errors = [
        refused(&|plugin| guard(plugin, leaf(expr::Node::Values(0)))),
        refused(&|plugin| guard(plugin, leaf(expr::Node::Values(7)))),
        refused(&|plugin| guard(plugin, leaf(expr::Node::Size(1)))),
        refused(&|plugin| plugin.outputs[0].shape = sizes.clone()),
        refused(&|plugin| plugin.outputs[0].shape = leaf(device.clone())),
        refused(&|plugin| plugin.require[0].expr = leaf(device.clone())),
        refused(&|plugin| plugin.outputs[0].size = Some(bound())),
        refused(&|plugin| {
            plugin.outputs[0].shape = scalar.clone();
            plugin.outputs[0].size = Some(bound());
        }),
        refused(&|plugin| plugin.outputs[0].alias = Some(1)),
        refused(&|plugin| {
            plugin.outputs[0].shape = scalar.clone();
            plugin.outputs[0].alias = Some(0);
        }),
        refused(&|plugin| plugin.inputs[0].values = Some(any)),
        refused(&|plugin| {
            plugin.inputs[0] =
                Input { values: Some(any), rank_min: 1, rank_max: 1, ..plugin.inputs[0].clone() };
        }),
        refused(&|plugin| {
            let limits = ShapeLimits { every: Interval { min: 0, max: 8 }, ..ShapeLimits::default() };
            let input =
                Input { values: Some(any), rank_min: 1, rank_max: 1, limits, ..plugin.inputs[0].clone() };
            plugin.inputs[0] = input;
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"));
    let mut node = node();
    guard(&mut node.plugin, leaf(device));
    assert_eq!(read(&write_node(&node)).unwrap().container, Container::Node(node));
}

#[test]
fn references_that_take_long_to_follow_are_refused() {
    let mut node = node();
    let kernel = KernelFacts { symbol: "_".to_owned(), ..node.code[0].kernels[0].clone() };
    let mut kernels = vec![kernel; 20_000];
    kernels.extend(node.code[0].kernels.clone());
    node.code[0].kernels = kernels;
    let launch = node.plugin.variants[0].launch_mut(0).unwrap();
    launch.code.truncate(1);
    assert_eq!(launch.code[0].code, 0);
    let launch = launch.clone();
    assert!(read(&write_node(&node)).is_ok());
    node.plugin.variants[0].steps = vec![Step::launch(launch); 256];
    let error = read(&write_node(&node)).unwrap_err().to_string();
    assert!(error.contains("5120256 symbols to search, the maximum is 4194304"), "{error}");
}

fn aligned(tensor: u32, bytes: u32) -> Expr {
    Expr { nodes: vec![expr::Node::Aligned { tensor, bytes }] }
}

fn all_aligned(count: u32) -> Expr {
    let mut nodes: Vec<expr::Node> =
        (0..count).map(|index| expr::Node::Aligned { tensor: index % 2, bytes: 1 << (index / 2) }).collect();
    nodes.push(expr::Node::Array((0..count).collect()));
    Expr { nodes }
}

fn first_point(node: &mut Node) -> &mut TunedPoint {
    &mut node.plugin.tuning[0].points[0]
}

const STRING: AttributeType = AttributeType { element: AttributeElement::String, list: false };

fn long_point(node: &mut Node) -> TunedPoint {
    node.plugin.attributes[0] = Attribute::new("name", STRING);
    node.attributes[0] = Value::Str(String::new());
    let attributes = vec![(0, Value::Str("a".repeat(520 << 10)))];
    TunedPoint { attributes, ..first_point(node).clone() }
}

#[test]
fn reading_compares_no_ranked_row_more_than_once() {
    let mut node = node();
    node.plugin.attributes[0] = Attribute::new("name", STRING);
    let name = Value::Str("a".repeat(4 << 20));
    node.attributes[0] = name.clone();
    let row = Variant { specialized: vec![(0, name)], ..node.plugin.variants[0].clone() };
    node.plugin.variants = (1..=3).map(|id| Variant { id, ..row.clone() }).collect();
    let point =
        TunedPoint { attributes: Vec::new(), ranking: vec![2, 0, 1], ..first_point(&mut node).clone() };
    node.plugin.tuning[0].points = vec![point; 4096];
    let bytes = write_node(&node);
    let start = std::time::Instant::now();
    assert_eq!(read(&bytes).map(|_| ()), Ok(()));
    assert!(start.elapsed() < std::time::Duration::from_secs(3), "{:?}", start.elapsed());
}

fn guard(node: &mut Node, expr: Expr) {
    node.plugin.variants[0].guard = Some(Guard { expr, text: "as a test".to_owned() });
}

#[test]
fn sixteen_questions_about_addresses_are_not_too_many() {
    let mut node = node();
    guard(&mut node, all_aligned(16));
    assert_eq!(read(&write_node(&node)).unwrap().container, Container::Node(node));
}

fn and_attribute(mut expr: Expr, index: u32) -> Expr {
    expr.nodes.push(expr::Node::Attribute(index));
    expr
}
