use super::*;
use cubinder_model::model::{MAX_RANK, SizeBound};

const ANY: Facts<'_> = Facts {
    attributes: &[Value::Int(2)],
    ranks: &[],
    shapes: &[&[5, 3], &[2]],
    values: &[&[], &[6, 7]],
    sizes: &[],
    device: None,
    alignments: &[],
};

fn shaped(nodes: Vec<Node>, limits: ShapeLimits) -> Plugin {
    let mut plugin = plugin();
    plugin.inputs.push(Input {
        name: "s".to_owned(),
        values: Some(Interval { min: 0, max: 9 }),
        rank_min: 1,
        rank_max: 1,
        ..plugin.inputs[0].clone()
    });
    plugin.outputs[0].shape = Expr { nodes };
    plugin.outputs[0].limits = limits;
    plugin
}

fn shape_of(nodes: Vec<Node>, facts: &Facts<'_>) -> Result<Vec<i64>, String> {
    let plugin = shaped(nodes, ShapeLimits::default());
    let found = output_shapes(&plugin, facts, &mut Steps::default()).map_err(|Unmet(why)| why)?;
    assert_eq!(found.len(), plugin.outputs.len());
    Ok(found[0].clone())
}

fn fixed(shape: &[i64]) -> Vec<Node> {
    let ids = 0..u32::try_from(shape.len()).unwrap();
    let extents = shape.iter().copied().map(Node::Int);
    extents.chain([Node::Array(ids.collect())]).collect()
}

#[test]
fn the_shape_of_an_output_asks_for_attributes_shapes_ranks_and_values() {
    let dim = |array, index| Node::Index { array, index };
    // `[k, x.shape[0], s[1], rank(x), numel(x)]`
    let nodes = vec![
        Node::Attribute(0),
        Node::Int(0),
        Node::Shape(0),
        dim(2, 1),
        Node::Int(1),
        Node::Values(1),
        dim(5, 4),
        Node::Rank(0),
        Node::Numel(0),
        Node::Array(vec![0, 3, 6, 7, 8]),
    ];
    assert_eq!(shape_of(nodes, &ANY), Ok(vec![2, 5, 7, 2, 15]));
    let ranks = Facts { ranks: &[4], shapes: &[], ..ANY };
    assert_eq!(shape_of(vec![Node::Rank(0), Node::Array(vec![0])], &ranks), Ok(vec![4]));
    let whole = |node| shape_of(vec![node], &ANY);
    assert_eq!(whole(Node::Shape(0)), Ok(vec![5, 3]));
    assert_eq!(whole(Node::Values(1)), Ok(vec![6, 7]));
    assert_eq!(
        whole(Node::Attribute(0)).unwrap_err(),
        "the shape of `y`: found 2, expected an array of integers; k = 2, x is 5x3, s is 2, s contains [6, 7]"
    );
    assert_eq!(
        shape_of(vec![Node::Values(1)], &Facts { values: &[], ..ANY }).unwrap_err(),
        format!("the shape of `y`: {}; k = 2, x is 5x3, s is 2", cubinder_expr::EvalError::UnknownValues(1))
    );
}

#[test]
fn a_shape_is_one_that_a_tensor_has() {
    let found = |shape: &[i64]| shape_of(fixed(shape), &ANY);
    assert_eq!(found(&[]), Ok(vec![]));
    assert_eq!(found(&[0, 4]), Ok(vec![0, 4]), "it may be empty");
    let end = "; k = 2, x is 5x3, s is 2, s contains [6, 7]";
    for (shape, text) in [(&[4, -1][..], "[4, -1]"), (&[-7], "[-7]")] {
        assert_eq!(
            found(shape),
            Err(format!("the shape of `y`: {text} has a negative dimension{end}")),
            "a dimension that no kernel decides is never open"
        );
    }
    let most = usize::from(MAX_RANK);
    assert_eq!(found(&vec![1; most]), Ok(vec![1; most]));
    assert_eq!(
        found(&vec![1; most + 1]),
        Err(format!("the shape of `y`: [1, 1, 1, 1, 1, 1, 1, 1, 1] has more than 8 dimensions{end}"))
    );
}

/// Kernels write the `count` of output `y`'s shape `[3, count]`.
fn counting(limits: ShapeLimits) -> Plugin {
    let mut plugin = shaped(vec![Node::Int(3), Node::Size(3), Node::Array(vec![0, 1])], limits);
    let bound = SizeBound { upper: int(100), opt: int(50) };
    let scalar = Expr { nodes: vec![Node::Array(Vec::new())] };
    let count = Output {
        name: "count".to_owned(),
        shape: scalar,
        size: Some(bound),
        limits: ShapeLimits::default(),
        ..plugin.outputs[0].clone()
    };
    plugin.outputs.push(count);
    plugin
}

#[test]
fn a_dimension_that_kernels_decide_is_open_until_they_have() {
    let every = |max| ShapeLimits { every: Interval { min: 0, max }, ..ShapeLimits::default() };
    let found = |limits: ShapeLimits, counted: Option<i64>| {
        let facts = Facts { sizes: &[None, None, None, counted], ..ANY };
        output_shapes(&counting(limits), &facts, &mut Steps::default())
            .map(|mut found| (found.remove(0), found))
            .map_err(|Unmet(why)| why)
    };
    let scalar = || vec![vec![]];
    assert_eq!(found(every(9), None), Ok((vec![3, UNKNOWN_EXTENT], scalar())));
    let nothing = output_shapes(&counting(every(9)), &ANY, &mut Steps::default());
    assert_eq!(nothing, Ok(vec![vec![3, UNKNOWN_EXTENT], vec![]]), "all sizes are unknown");
    assert_eq!(found(every(9), Some(9)), Ok((vec![3, 9], scalar())));
    assert_eq!(found(every(9), Some(0)), Ok((vec![3, 0], scalar())));
    let beyond =
        |what: &str, of: &str, allowed: &str| format!("{what} in {of}; the manifest limits it to {allowed}");
    assert_eq!(found(every(9), Some(10)), Err(beyond("dimension 1 of `y` is 10", "3x10", "0..=9")));
    assert_eq!(found(every(2), None), Err(beyond("dimension 0 of `y` is 3", "3x-1", "0..=2")));
    let few = || ShapeLimits { numel: Interval { min: 0, max: 2 }, ..ShapeLimits::default() };
    assert_eq!(found(few(), None), Ok((vec![3, UNKNOWN_EXTENT], scalar())), "the number is unknown");
    assert_eq!(found(few(), Some(1)), Err(beyond("the number of elements of `y` is 3", "3x1", "0..=2")));
    for counted in [UNKNOWN_EXTENT, -2] {
        let error = found(every(9), Some(counted)).unwrap_err();
        assert!(
            error.starts_with(&format!("the shape of `y`: [3, {counted}] has a negative dimension")),
            "{error}"
        );
    }
    // [`UNKNOWN_EXTENT`] is only for data-dependent dimensions.
    let plugin = counting(every(9));
    let check =
        |shape: &[i64]| check_output_limits(&plugin.outputs[0], shape, " here").map_err(|Unmet(why)| why);
    assert_eq!(check(&[3, UNKNOWN_EXTENT]), Ok(()));
    assert_eq!(check(&[UNKNOWN_EXTENT, 3]), Err(beyond("dimension 0 of `y` is -1", "-1x3 here", "0..=9")));
    assert_eq!(check(&[3, -2]), Err(beyond("dimension 1 of `y` is -2", "3x-2 here", "0..=9")));
}

#[test]
fn more_elements_than_64_bits_count_are_refused_where_there_is_a_limit() {
    let numel = |max: i64| ShapeLimits { numel: Interval { min: 0, max }, ..ShapeLimits::default() };
    let found = |shape: &[i64], max| {
        let plugin = shaped(fixed(shape), numel(max));
        output_shapes(&plugin, &ANY, &mut Steps::default()).map(drop).map_err(|Unmet(why)| why)
    };
    let many = [1 << 32, 1 << 32];
    let error = |max: i64| {
        format!(
            "the number of elements of `y` exceeds 64 bits in 4294967296x4294967296; the manifest limits it to 0..={max}"
        )
    };
    assert_eq!(found(&many, i64::MAX), Ok(()));
    assert_eq!(found(&many, i64::MAX - 1), Err(error(i64::MAX - 1)));
    assert_eq!(found(&many, 5), Err(error(5)));
    assert_eq!(found(&[1 << 32, 1 << 32, 0], 5), Ok(()), "a 0 decides");
}

#[test]
fn what_a_shape_input_holds_is_limited() {
    let mut plugin = shaped(vec![Node::Values(1)], ShapeLimits::default());
    let check = |plugin: &Plugin, values: &[&[i64]]| {
        let facts = Facts { values, ..ANY };
        check(plugin, rules_of_shapes(plugin), &facts, &mut Steps::default()).map_err(|Unmet(why)| why)
    };
    assert_eq!(check(&plugin, &[&[], &[0, 9]]), Ok(()));
    let refused = |index, value, allowed: &str| {
        Err(format!("value {index} of the shape input `s` is {value}; the manifest limits it to {allowed}"))
    };
    assert_eq!(check(&plugin, &[&[], &[10, 0]]), refused(0, 10, "0..=9"));
    assert_eq!(check(&plugin, &[&[], &[0, -1]]), refused(1, -1, "0..=9"));
    assert_eq!(check(&plugin, &[]), Ok(()), "the values are unknown");
    plugin.inputs[1].values = Some(Interval { min: 3, max: 3 });
    assert_eq!(check(&plugin, &[&[], &[3, 4]]), refused(1, 4, "3"));
}

#[test]
fn a_rule_is_kept_only_once_it_is_decided() {
    let mut plugin = plugin();
    plugin.variants =
        vec![Variant { specialized: vec![(0, Value::Int(3))], ..variant(1, DataType::F32, None) }];
    let specialized = rules_of_attributes(&plugin).last().unwrap();
    assert_eq!(specialized, Rule::Specialized);
    let check = |attributes| {
        let facts = Facts { attributes, ..Facts::default() };
        specialized.check(&plugin, &facts, &mut Steps::default()).map_err(|Unmet(why)| why)
    };
    assert_eq!(check(&[]), Ok(None));
    assert_eq!(check(&[Value::Int(3)]), Ok(Some(())));
    assert_eq!(
        check(&[Value::Int(4)]),
        Err("the attribute `k` is `4`, but the code is specialized for `3`".to_owned())
    );
}
