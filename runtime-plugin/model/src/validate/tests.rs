use super::*;
use crate::container::tests::node;
use crate::model::{
    Attribute, AttributeType, Guard, MAX_SHAPE_VALUES, Output, Scratch, SizeBound, Step, TunedDevice,
    TunedPoint,
};
use cubinder_expr::DeviceFact;
use cubinder_expr::data_type::{DataType, ScalarType};
use cubinder_expr::format::Format;

fn expr(node: Node) -> Expr {
    Expr { nodes: vec![node] }
}

fn int(value: i64) -> Expr {
    expr(Node::Int(value))
}

fn with(change: impl FnOnce(&mut Plugin)) -> Result<(), String> {
    let mut node = node();
    node.input_ranks = None;
    change(&mut node.plugin);
    Container::Node(node).validate()
}

fn with_launch(change: impl FnOnce(&mut Launch)) -> Result<(), String> {
    with(|plugin| change(plugin.variants[0].launch_mut(0).unwrap()))
}

/// Validates a plugin with a shape input `s`, a size output `n`, an output `z` of that size.
fn with_sizes(change: impl FnOnce(&mut Plugin)) -> Result<(), String> {
    with(|plugin| {
        plugin.tuning.clear();
        plugin.inputs.push(Input {
            name: "s".to_owned(),
            rank_min: 1,
            rank_max: 1,
            limits: ShapeLimits {
                every: Interval { min: 0, max: MAX_SHAPE_VALUES },
                ..ShapeLimits::default()
            },
            values: Some(Interval { min: 0, max: 9 }),
            ..plugin.inputs[0].clone()
        });
        let n = Output {
            name: "n".to_owned(),
            shape: expr(Node::Array(Vec::new())),
            size: Some(SizeBound { upper: int(9), opt: int(3) }),
            ..plugin.outputs[0].clone()
        };
        let z = Output { name: "z".to_owned(), shape: sizes(3), ..plugin.outputs[0].clone() };
        plugin.outputs.extend([n, z]);
        let variant = &mut plugin.variants[0];
        variant.types = [DataType::F32, DataType::I64, DataType::F32, DataType::I64, DataType::F32].to_vec();
        variant.formats = vec![Format::Linear; 5];
        let launch = variant.launch_mut(0).unwrap();
        launch.args.truncate(1);
        change(plugin);
    })
}

fn sizes(tensor: u32) -> Expr {
    Expr { nodes: vec![Node::Size(tensor), Node::Array(vec![0])] }
}

fn refused(why: &str) -> Result<(), String> {
    Err(format!("plugin `add`: {why}"))
}

#[test]
fn a_plugin_has_outputs_and_variants() {
    assert_eq!(with(|_| {}), Ok(()));
    assert_eq!(with(|plugin| plugin.variants.clear()), refused("no outputs or no variants"));
    assert_eq!(with(|plugin| plugin.outputs.clear()), refused("no outputs or no variants"));
}

#[test]
fn ranks_are_from_the_least_to_the_greatest() {
    let ranks = |rank_min, rank_max| {
        with(|plugin| {
            plugin.inputs[0].rank_min = rank_min;
            plugin.inputs[0].rank_max = rank_max;
        })
    };
    for (rank_min, rank_max) in [(0, 8), (8, 8), (3, 3)] {
        assert_eq!(ranks(rank_min, rank_max), Ok(()));
    }
    for (rank_min, rank_max) in [(4, 3), (0, 9), (9, 9)] {
        assert_eq!(ranks(rank_min, rank_max), refused("input `x` has invalid ranks"));
    }
}

#[test]
fn limits_of_dimensions_are_one_each() {
    let limited = |ranks: (u8, u8), dims: usize| {
        with(|plugin| {
            let input = &mut plugin.inputs[0];
            (input.rank_min, input.rank_max) = ranks;
            input.limits.dims = vec![Interval { min: 0, max: 0 }; dims];
        })
    };
    for (ranks, dims) in [((0, 8), 0), ((2, 2), 0), ((2, 2), 2), ((8, 8), 8)] {
        assert_eq!(limited(ranks, dims), Ok(()), "{ranks:?} {dims}");
    }
    for (ranks, dims) in [((2, 2), 3), ((2, 2), 1), ((1, 2), 1), ((1, 2), 2)] {
        let why = format!("`x` has limits for {dims} dimensions, which does not match its rank");
        assert_eq!(limited(ranks, dims), refused(&why));
    }
    let output = |dims| with(|plugin| plugin.outputs[0].limits.dims = vec![Interval::ANY_SIZE; dims]);
    assert_eq!(output(8), Ok(()));
    assert!(output(9).is_err());
}

#[test]
fn a_time_depends_on_attributes_that_are_there() {
    assert_eq!(with(|plugin| plugin.timing = Some(vec![0])), Ok(()));
    let why = "the time depends on attribute 1, which does not exist";
    assert_eq!(with(|plugin| plugin.timing = Some(vec![0, 1])), refused(why));
}

#[test]
fn a_variant_is_of_its_plugin() {
    let variant = |change: &dyn Fn(&mut Variant)| with(|plugin| change(&mut plugin.variants[0]));
    assert_eq!(variant(&|it| it.formats.push(Format::Linear)), refused("3 formats for 2 tensors"));
    assert_eq!(variant(&|it| it.types.truncate(1)), refused("1 types for 2 tensors"));
    let fill = |memory| Step { when: None, work: Work::Fill(Fill { memory, byte: 0 }) };
    let nothing = variant(&|it| it.steps = vec![fill(Memory::Output(0))]);
    assert_eq!(nothing, refused("variant 1 launches nothing"));

    let specialized = |values: &[(u32, i64)]| {
        with(|plugin| {
            plugin.attributes.push(Attribute {
                default: Some(Value::Int(0)),
                ..Attribute::new("other", AttributeType::I32)
            });
            let values = values.iter().map(|(index, value)| (*index, Value::Int(*value)));
            plugin.variants[0].specialized = values.collect();
            plugin.tuning.clear();
        })
    };
    let right = Err("found 1 attributes, `add` has 2".to_owned());
    for values in [&[][..], &[(0, 64)], &[(1, 3)], &[(0, 64), (1, 3)]] {
        assert_eq!(specialized(values), right, "{values:?}");
    }
    for (values, index) in [(&[(2, 3)][..], 2), (&[(0, 64), (0, 64)], 0), (&[(1, 3), (0, 64)], 0)] {
        let why = format!("variant 1 is specialized for attribute {index}");
        assert_eq!(specialized(values), refused(&why));
    }
    assert_eq!(specialized(&[(0, 0)]), refused("attribute `block_size` is `0`, the minimum is `1`"));
}

#[test]
fn steps_use_memory_that_is_there() {
    let step = |memory| {
        move |plugin: &mut Plugin| {
            let variant = &mut plugin.variants[0];
            variant.scratch = vec![Scratch { name: "s".to_owned(), bytes: int(8) }];
            variant.steps.push(Step { when: None, work: Work::Fill(Fill { memory, byte: 0 }) });
        }
    };
    for memory in [Memory::Output(0), Memory::Scratch(0)] {
        assert_eq!(with(step(memory)), Ok(()));
    }
    for memory in [Memory::Output(1), Memory::Scratch(1), Memory::Scratch(2)] {
        assert_eq!(with(step(memory)), refused(&format!("variant 1 fills {memory:?}")));
    }
    assert_eq!(with_sizes(step(Memory::Output(1))), Ok(()));
    let depends = refused("variant 1 fills Output(2)");
    assert_eq!(with_sizes(step(Memory::Output(2))), depends, "the size is unknown beforehand");

    let passed = |value: ArgValue| {
        with(|plugin| {
            let variant = &mut plugin.variants[0];
            variant.scratch = vec![Scratch { name: "s".to_owned(), bytes: int(8) }];
            variant.launch_mut(0).unwrap().args[0].value = value;
        })
    };
    for value in [ArgValue::Tensor(0), ArgValue::ReadTensor(1), ArgValue::Scratch(0)] {
        assert_eq!(passed(value.clone()), Ok(()), "{value:?}");
    }
    for (value, why) in [
        (ArgValue::Tensor(2), "argument `x` is tensor 2"),
        (ArgValue::ReadTensor(3), "argument `x` is tensor 3"),
        (ArgValue::Scratch(1), "argument `x` is scratch buffer 1"),
        (ArgValue::Scratch(2), "argument `x` is scratch buffer 2"),
    ] {
        assert_eq!(passed(value), refused(why));
    }
    let widths = [0, 3, 16].map(|bytes| [ScalarType::Int { bytes }, ScalarType::UInt { bytes }]);
    let naturals = [0, 2, 8, 62, 64].map(|bits| ScalarType::Natural { bits });
    for ty in widths.into_iter().flatten().chain(naturals) {
        let why = format!("argument `x` has the type {ty}");
        assert_eq!(passed(ArgValue::Scalar { ty, expr: int(1) }), refused(&why));
    }
    for ty in [ScalarType::F32, ScalarType::F64, ScalarType::Bool, ScalarType::Natural { bits: 1 }] {
        assert_eq!(passed(ArgValue::Scalar { ty, expr: int(1) }), Ok(()), "{ty}");
    }
    let why = "argument `x` is a shape input, which is in host memory";
    for value in [ArgValue::Tensor(1), ArgValue::ReadTensor(1)] {
        let passed = with_sizes(|plugin| plugin.variants[0].launch_mut(0).unwrap().args[0].value = value);
        assert_eq!(passed, refused(why));
    }
}

#[test]
fn a_kernel_has_code_of_its_target_with_its_symbol() {
    assert_eq!(with_launch(|launch| launch.code.clear()), refused("kernel `add<float>` has no code"));
    let refusal = with_launch(|launch| launch.code[0].target = launch.code[1].target).unwrap_err();
    assert!(refusal.ends_with(" for compute_89 has no kernel `_Z3addPKfPf`"), "{refusal}");
    let refusal = with_launch(|launch| launch.code[1].symbol = "_Z3add".to_owned()).unwrap_err();
    assert!(refusal.ends_with(" for compute_89 has no kernel `_Z3add`"), "{refusal}");
    let mut node = node();
    node.code[0].kernels[0].symbol.push('\0');
    node.plugin.variants[0].launch_mut(0).unwrap().code[0].symbol.push('\0');
    let refusal = Container::Node(node).validate().unwrap_err();
    assert!(refusal.ends_with(" for sm_89 has no kernel `_Z3addPKfPf\0`"), "{refusal}");
}

#[test]
fn two_targets_may_have_the_same_bytes() {
    let mut node = node();
    node.code[1].digest = node.code[0].digest;
    assert_eq!(Container::Node(node).validate(), Ok(()));
}

#[derive(Debug, Clone, Copy)]
enum At {
    Shape,
    Require,
    Guard,
    Launch,
}

fn placed(at: At, expr: Expr) -> Result<(), String> {
    with_sizes(|plugin| match at {
        At::Shape => plugin.outputs[0].shape = expr,
        At::Require => plugin.require[0].expr = expr,
        At::Guard => plugin.variants[0].guard = Some(Guard { expr, text: String::new() }),
        At::Launch => plugin.variants[0].launch_mut(0).unwrap().grid[0] = expr,
    })
}

fn assert_placed(node: &Node, [shape, require, guard, launch]: [&str; 4]) {
    let guard = if guard.is_empty() { String::new() } else { format!("the guard of variant 1: {guard}") };
    let said = [(At::Shape, shape), (At::Require, require), (At::Guard, &*guard), (At::Launch, launch)];
    for (at, why) in said {
        let expected = if why.is_empty() { Ok(()) } else { refused(why) };
        assert_eq!(placed(at, expr(node.clone())), expected, "{node:?} at {at:?}");
    }
}

#[test]
fn expressions_read_what_is_known_where_they_stand() {
    let guards = "only a guard can use `aligned`";
    assert_placed(&Node::Aligned { tensor: 0, bytes: 16 }, [guards, guards, "", guards]);
    assert_placed(&Node::Aligned { tensor: 1, bytes: 16 }, ["`s` has no address on the device"; 4]);
    let device = "only guards and launches can depend on the device";
    assert_placed(&Node::Device(DeviceFact::Sms), [device, device, "", ""]);

    let values = "only the shape of an output can depend on the values of a shape input";
    assert_placed(&Node::Values(1), ["", "", values, values]);
    let none = "tensor 0 is not a shape input";
    assert_placed(&Node::Values(0), [none, none, values, values]);

    let beyond = |tensor: u32| format!("node 0 refers to tensor {tensor} of 2");
    let size = "only the shape of an output can have a size that kernels write";
    assert_placed(&Node::Size(3), ["an expression computes with a size", &beyond(3), size, size]);
    assert_eq!(placed(At::Shape, sizes(3)), Ok(()));
    let none = "tensor 2 does not contain a size";
    assert_placed(&Node::Size(2), [none, &beyond(2), none, none]);
    let none = "tensor 1 does not contain a size";
    assert_placed(&Node::Size(1), [none; 4]);

    let extents = "only the shape of an output can depend on the extents of a shape input";
    for node in [Node::Shape, Node::Numel] {
        assert_placed(&node(0), [""; 4]);
        assert_placed(&node(1), ["", "", extents, extents]);
        assert_placed(&node(2), ["tensor 2 is not an input", &beyond(2), "", ""]);
        let depends = "the shape of tensor 4 depends on data";
        assert_placed(&node(4), ["tensor 4 is not an input", &beyond(4), depends, depends]);
    }
    assert_placed(&Node::Rank(1), [""; 4]);
    assert_placed(&Node::Rank(2), ["tensor 2 is not an input", &beyond(2), "", ""]);
    assert_placed(&Node::Rank(4), ["tensor 4 is not an input", &beyond(4), "", ""]);
    assert_placed(&Node::Attribute(0), [""; 4]);
}

#[test]
fn a_shape_input_is_one_that_tensorrt_can_have() {
    let shape_input = |change: &dyn Fn(&mut Input)| with_sizes(|plugin| change(&mut plugin.inputs[1]));
    let ranks =
        |rank_min, rank_max| move |input: &mut Input| (input.rank_min, input.rank_max) = (rank_min, rank_max);
    let cannot_be = || refused("`s` is not a valid shape input");
    assert_eq!(shape_input(&|_| {}), Ok(()));
    assert_eq!(shape_input(&|input| input.values = Some(Interval { min: 5, max: 5 })), Ok(()));
    assert_eq!(shape_input(&|input| input.values = Some(Interval { min: 5, max: 4 })), cannot_be());
    assert_eq!(shape_input(&ranks(0, 0)), Ok(()));
    assert_eq!(shape_input(&ranks(0, 1)), cannot_be());
    assert_eq!(shape_input(&ranks(2, 2)), cannot_be());
    let most = |max| move |input: &mut Input| input.limits.every.max = max;
    let too_many = || refused(&format!("shape input `s` may have more than {MAX_SHAPE_VALUES} values"));
    assert_eq!(shape_input(&most(MAX_SHAPE_VALUES + 1)), too_many());
    let scalar = |input: &mut Input| {
        ranks(0, 0)(input);
        most(i64::MAX)(input);
    };
    assert_eq!(shape_input(&scalar), Ok(()), "a scalar is one value, whatever an extent might be");
}

#[test]
fn outputs_share_memory_with_an_input_like_them() {
    let cannot = || refused("output `y` shares the memory of an incompatible input");
    let in_place = |index: u32, shape: Expr, change: &dyn Fn(&mut Plugin)| {
        with_sizes(|plugin| {
            plugin.outputs[0].alias = Some(index);
            plugin.outputs[0].shape = shape;
            change(plugin);
        })
    };
    let of_x = || expr(Node::Shape(0));
    assert_eq!(in_place(0, of_x(), &|_| {}), Ok(()));
    assert_eq!(in_place(0, expr(Node::Shape(1)), &|_| {}), cannot());
    assert_eq!(in_place(1, expr(Node::Shape(1)), &|_| {}), cannot(), "which is not on the device");
    assert_eq!(in_place(7, of_x(), &|_| {}), cannot());
    let size = |plugin: &mut Plugin| plugin.outputs[0].size = plugin.outputs[1].size.clone();
    assert_eq!(in_place(0, of_x(), &size), cannot());
    let twice = |plugin: &mut Plugin| {
        plugin.outputs[2].alias = Some(0);
        plugin.outputs[2].shape = of_x();
    };
    let second = "output `z` shares the memory of an incompatible input";
    assert_eq!(in_place(0, of_x(), &twice), refused(second));

    let other = || refused("`y` differs in type or format from the input that it shares");
    assert_eq!(in_place(0, of_x(), &|plugin| plugin.variants[0].types[2] = DataType::F16), other());
    assert_eq!(in_place(0, of_x(), &|plugin| plugin.variants[0].formats[2] = Format::Hwc8), other());
}

#[test]
fn sizes_are_integers_in_a_scalar() {
    let of_n = |change: &dyn Fn(&mut Output)| with_sizes(|plugin| change(&mut plugin.outputs[1]));
    assert_eq!(of_n(&|n| n.shape = expr(Node::Shape(0))), refused("`n` contains a size but is not a scalar"));
    let device = || expr(Node::Device(DeviceFact::Sms));
    let why = "only guards and launches can depend on the device";
    assert_eq!(of_n(&|n| n.size = Some(SizeBound { upper: device(), opt: int(3) })), refused(why));
    assert_eq!(of_n(&|n| n.size = Some(SizeBound { upper: int(3), opt: device() })), refused(why));
    let of_x = || Expr { nodes: vec![Node::Numel(0)] };
    assert_eq!(of_n(&|n| n.size = Some(SizeBound { upper: of_x(), opt: of_x() })), Ok(()));

    let typed = |tensor: usize, ty, format| {
        with_sizes(|plugin| {
            plugin.variants[0].types[tensor] = ty;
            plugin.variants[0].formats[tensor] = format;
        })
    };
    for (tensor, why) in
        [(1, "shape input `s` does not contain integers"), (3, "`n` contains a size but not integers")]
    {
        assert_eq!(typed(tensor, DataType::I32, Format::Linear), Ok(()));
        for (ty, format) in
            [(DataType::F32, Format::Linear), (DataType::I8, Format::Linear), (DataType::I64, Format::Hwc8)]
        {
            assert_eq!(typed(tensor, ty, format), refused(why), "{ty:?} {format:?}");
        }
    }
}

fn tuned(change: impl FnOnce(&mut Vec<Variant>, &mut Vec<TunedDevice>)) -> Result<(), String> {
    with(|plugin| {
        let row = plugin.variants[0].clone();
        plugin.variants.extend((2..=3).map(|id| Variant { id, ..row.clone() }));
        change(&mut plugin.variants, &mut plugin.tuning);
    })
}

#[test]
fn a_kind_of_gpu_was_measured_once() {
    let also = |capability, sms| {
        tuned(|_, tuning| {
            let first = tuning[0].clone();
            assert_eq!((first.capability, first.sms), (90, 132));
            tuning.push(TunedDevice { capability, sms, ..first });
        })
    };
    assert_eq!(also(90, 114), Ok(()));
    assert_eq!(also(89, 132), Ok(()));
    let twice = "duplicate measurements for compute capability 90 with 132 multiprocessors";
    assert_eq!(also(90, 132), refused(twice));
}

#[test]
fn measured_nodes_are_nodes_of_the_plugin() {
    let point = |change: &dyn Fn(&mut TunedPoint)| tuned(|_, tuning| change(&mut tuning[0].points[0]));
    assert_eq!(point(&|_| {}), Ok(()));
    assert_eq!(point(&|it| it.attributes.clear()), Ok(()));
    assert_eq!(point(&|it| it.shapes = vec![vec![1; 8]; 2]), Ok(()));
    let why = "a measured node has a tensor with too many dimensions";
    assert_eq!(point(&|it| it.shapes = vec![vec![1; 8], vec![1; 9]]), refused(why));
    let why = "a measured node has 3 tensors, the plugin has 2";
    assert_eq!(point(&|it| it.shapes.push(Vec::new())), refused(why));
    for index in [1, 2] {
        let why = format!("a measured node has attribute {index}");
        assert_eq!(point(&|it| it.attributes = vec![(index, Value::Int(64))]), refused(&why));
    }
}

#[test]
fn ranked_rows_are_for_the_same_nodes() {
    let ranked = |rankings: &[&[u32]], change: &dyn Fn(&mut Variant)| {
        tuned(|variants, tuning| {
            change(&mut variants[2]);
            let point = tuning[0].points[0].clone();
            let points = rankings.iter().map(|it| TunedPoint { ranking: it.to_vec(), ..point.clone() });
            tuning[0].points = points.collect();
        })
    };
    let same = |_: &mut Variant| {};
    for rankings in [&[&[2][..]][..], &[&[2, 0, 1]], &[&[0, 1], &[1, 2], &[2, 0, 1]]] {
        assert_eq!(ranked(rankings, &same), Ok(()), "{rankings:?}");
    }
    let types = |variant: &mut Variant| variant.types = vec![DataType::F16; 2];
    let formats = |variant: &mut Variant| variant.formats = vec![Format::Hwc8; 2];
    let attributes = |variant: &mut Variant| variant.specialized = vec![(0, Value::Int(64))];
    let others: [&dyn Fn(&mut Variant); 3] = [&types, &formats, &attributes];
    for change in others {
        assert_eq!(ranked(&[&[1, 0], &[2]], change), Ok(()));
        let other = refused("a measured node ranks variant 2 of 3");
        assert_eq!(ranked(&[&[0, 2]], change), other);
        assert_eq!(ranked(&[&[1, 0], &[0, 1], &[1, 2]], change), other, "also once others were compared");
    }
    assert_eq!(ranked(&[&[0, 1, 0]], &same), refused("a measured node ranks variant 0 of 3"));
    assert_eq!(ranked(&[&[0, 3]], &same), refused("a measured node ranks variant 3 of 3"));
    for wrong in [&[3][..], &[4], &[]] {
        assert_eq!(ranked(&[wrong], &same), refused("a measured node ranks no variant"));
    }
}
