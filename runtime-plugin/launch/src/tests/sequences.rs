use super::*;
use crate::proof::Domain;
use cubinder_model::model::{Fill, Memory, Scratch, Work};

fn when(expr: Expr) -> Option<Guard> {
    Some(Guard { expr, text: "when".to_owned() })
}

fn compares(tensor: u32, op: BinaryOp, value: i64) -> Expr {
    Expr { nodes: vec![Node::Numel(tensor), Node::Int(value), Node::Binary(op, 0, 1)] }
}

fn fill(memory: Memory) -> Step {
    Step { when: None, work: Work::Fill(Fill { memory, byte: 7 }) }
}

fn scratch(name: &str, bytes: Expr) -> Scratch {
    Scratch { name: name.to_owned(), bytes }
}

fn over_x(args: &[ArgValue]) -> Launch {
    let all = std::iter::once(ArgValue::Tensor(0)).chain(args.iter().cloned()).enumerate();
    let count =
        Expr { nodes: vec![Node::Numel(0), Node::Int(256), Node::Call(Builtin::CeilDiv, vec![0, 1])] };
    Launch {
        grid: [count, int(1), int(1)],
        args: all.map(|(index, value)| Arg { name: format!("a{index}"), value }).collect(),
        ..plugin().variants[1].launch(0).unwrap().clone()
    }
}

fn reducing() -> Plugin {
    let mut plugin = plugin();
    plugin.outputs[0].shape = Expr { nodes: vec![Node::Int(1), Node::Array(vec![0])] };
    plugin
}

fn found(plugin: &Plugin, variant: &Variant, shapes: &[&[i64]]) -> Result<Sequence, String> {
    let facts = Facts { attributes: &[Value::Int(1)], shapes, ..Facts::default() };
    let found = sequence(plugin, variant, |_| LaunchLimits::ANYTHING, &facts, &mut Steps::default());
    found.map_err(|error| error.to_string())
}

#[test]
fn an_argument_without_a_type_still_needs_a_value() {
    let plugin = plugin();
    let facts = Facts { shapes: &[&[4, 3], &[4, 3]], ..Facts::default() };
    let mut steps = Steps::default();
    let sequencing = Sequencing::new(&plugin, &plugin.variants[1], &facts, &mut steps).unwrap();
    let launch = plugin.variants[1].launch(0).unwrap();
    let quotient = |divisor| Expr {
        nodes: vec![Node::Int(12), Node::Int(divisor), Node::Binary(BinaryOp::FloorDiv, 0, 1)],
    };
    sequencing.check_argument(launch, "n", &quotient(3), &mut steps).unwrap();
    let error = sequencing.check_argument(launch, "n", &quotient(0), &mut steps).unwrap_err();
    assert_eq!(error.subject, Subject::Launch(launch.kernel.clone()));
    assert_eq!(error.role, Role::Argument("n".to_owned()));
    assert_eq!(error.problem, Problem::NoValue("division by zero: 12 // 0".to_owned()));
}

#[test]
fn scratch_buffers_lie_one_behind_the_other() {
    let plugin = plugin();
    let mut variant =
        with_steps(&plugin, vec![Step::launch(over_x(&[ArgValue::Scratch(2), ArgValue::Tensor(1)]))]);
    let numel = Expr { nodes: vec![Node::Numel(0)] };
    variant.scratch =
        vec![scratch("a", numel), scratch("b", int(0)), scratch("c", int(256)), scratch("d", int(1))];
    let sequence = found(&plugin, &variant, &[&[300], &[300]]).unwrap();
    let places: Vec<(u64, u64)> = sequence.scratch.iter().map(|place| (place.offset, place.bytes)).collect();
    assert_eq!(places, [(0, 300), (512, 0), (512, 256), (768, 1)]);
    assert_eq!(sequence.workspace_bytes, 1024);
    let EvaluatedStep::Launch(launch) = &sequence.steps[0] else { panic!("{sequence:?}") };
    assert_eq!(
        launch.args,
        [EvaluatedArgument::Input(0), EvaluatedArgument::Scratch(2), EvaluatedArgument::Output(0)]
    );

    for (bytes, why) in [
        (int(-1), "cannot reserve the scratch buffer `c`: its size in bytes is -1, the minimum is 0"),
        (int(i64::MAX), "is 9223372036854775807, the maximum of Cubinder is 9223372036854775295"),
        (
            Expr { nodes: vec![Node::Bool(true)] },
            "its size in bytes is the boolean true, expected an integer",
        ),
    ] {
        variant.scratch[2] = scratch("c", bytes);
        let error = found(&plugin, &variant, &[&[300], &[300]]).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    variant.scratch.truncate(2);
    let error = found(&plugin, &variant, &[&[300], &[300]]).unwrap_err();
    assert!(error.contains("argument `a1` is scratch buffer 2, but the variant has 2"), "{error}");
}

#[test]
fn conditions_leave_steps_out() {
    let plugin = plugin();
    let launch = || over_x(&[ArgValue::Tensor(1)]);
    let mut small = launch();
    small.block[0] = Expr { nodes: vec![Node::Int(1), Node::Int(0), Node::Binary(BinaryOp::FloorDiv, 0, 1)] };
    let steps = vec![
        Step { when: when(compares(0, BinaryOp::Gt, 10)), ..Step::launch(small) },
        Step { when: when(compares(0, BinaryOp::Le, 10)), ..Step::launch(launch()) },
    ];
    let mut variant = with_steps(&plugin, steps);
    let sequence = found(&plugin, &variant, &[&[10], &[10]]).unwrap();
    assert_eq!(sequence.steps[0], EvaluatedStep::LeftOut);
    assert!(matches!(&sequence.steps[1], EvaluatedStep::Launch(launch) if !launch.is_empty()));
    let error = found(&plugin, &variant, &[&[11], &[11]]).unwrap_err();
    assert!(
        error.contains("`test::scale` cannot launch `scale`: block x has no value: division by zero"),
        "{error}"
    );

    variant.steps[0].when = when(compares(0, BinaryOp::Gt, 20));
    let error = found(&plugin, &variant, &[&[15], &[15]]).unwrap_err();
    let why = "`test::scale` cannot run variant 2: the output `y` is not empty, but no step that runs for these shapes writes it";
    assert!(error.starts_with(why) && error.contains("exclude them with a guard"), "{error}");

    variant.steps[0].when = when(Expr { nodes: vec![Node::Numel(0)] });
    let error = found(&plugin, &variant, &[&[15], &[15]]).unwrap_err();
    assert!(error.contains("its condition `when` is the integer 15, expected a boolean"), "{error}");
}

#[test]
fn fills_are_of_whole_memory() {
    let plugin = plugin();
    let steps =
        vec![fill(Memory::Output(0)), fill(Memory::Scratch(0)), Step::launch(over_x(&[ArgValue::Tensor(1)]))];
    let mut variant = with_steps(&plugin, steps);
    variant.scratch = vec![scratch("s", int(10))];
    let of = |variant: &Variant, shape: &[i64]| {
        let sequence = found(&plugin, variant, &[shape, shape])?;
        let fills = sequence.steps.iter().filter_map(|doing| match doing {
            EvaluatedStep::Fill { memory, bytes, byte } => Some((*memory, *bytes, *byte)),
            _ => None,
        });
        Ok::<_, String>(fills.collect::<Vec<_>>())
    };
    let both = |bytes| Ok(vec![(Memory::Output(0), bytes, 7), (Memory::Scratch(0), 10, 7)]);
    assert_eq!(of(&variant, &[3, 5]), both(60));
    assert_eq!(of(&variant, &[3, 0]), both(0));
    variant.types = vec![DataType::F16; 2];
    variant.formats = vec![cubinder_expr::Format::Hwc8; 2];
    assert_eq!(of(&variant, &[3, 5, 7]), both(8 * 5 * 7 * 2), "three channels lie in eight");
    variant.steps[0] = fill(Memory::Scratch(3));
    assert!(of(&variant, &[3]).unwrap_err().contains("is scratch buffer 3, but the variant has 1"));
}

#[test]
fn bytes_of_tensors_are_those_of_their_format() {
    use cubinder_expr::Format;
    let bytes = tensor_bytes;
    assert_eq!(bytes(DataType::F32, Format::Linear, &[]), Some(4));
    assert_eq!(bytes(DataType::F32, Format::Linear, &[3, 5]), Some(60));
    assert_eq!(bytes(DataType::F16, Format::Hwc8, &[1, 3, 5, 7]), Some(8 * 5 * 7 * 2));
    assert_eq!(bytes(DataType::I8, Format::Chw32, &[1, 33, 1, 1]), Some(64));
    assert_eq!(bytes(DataType::I8, Format::Linear, &[0, i64::MAX, i64::MAX]), Some(0));
    assert_eq!(bytes(DataType::I8, Format::Linear, &[i64::MAX, i64::MAX]), None);
    assert_eq!(bytes(DataType::I8, Format::Linear, &[-1]), None);
}

#[test]
fn an_empty_input_is_right_where_another_step_writes_the_output() {
    let plugin = reducing();
    let launch = || Step::launch(over_x(&[ArgValue::Tensor(1)]));
    let variant = with_steps(&plugin, vec![fill(Memory::Output(0)), launch()]);
    let sequence = found(&plugin, &variant, &[&[0], &[1]]).unwrap();
    assert!(matches!(&sequence.steps[1], EvaluatedStep::Launch(launch) if launch.is_empty()));
    let alone = with_steps(&plugin, vec![launch()]);
    let error = found(&plugin, &alone, &[&[0], &[1]]).unwrap_err();
    assert!(
        error.contains("the output `y` is not empty, but no step") && error.contains("with `memset`"),
        "{error}"
    );
    let mut rounded = over_x(&[ArgValue::Tensor(1)]);
    rounded.grid[0] =
        Expr { nodes: vec![Node::Numel(0), Node::Int(256), Node::Binary(BinaryOp::FloorDiv, 0, 1)] };
    let rounded = with_steps(&plugin, vec![fill(Memory::Output(0)), Step::launch(rounded)]);
    let error = found(&plugin, &rounded, &[&[255], &[1]]).unwrap_err();
    assert!(error.contains("grid x is 0") && error.contains("`ceil_div(n, d)`, which includes"), "{error}");
    assert!(found(&plugin, &rounded, &[&[256], &[1]]).is_ok());
    let mut over_scratch = over_x(&[ArgValue::Scratch(0)]);
    over_scratch.grid[0] = int(0);
    let mut variant = with_steps(&plugin, vec![fill(Memory::Output(0)), Step::launch(over_scratch)]);
    for (bytes, is_right) in [(0, true), (1, false)] {
        variant.scratch = vec![scratch("s", int(bytes))];
        assert_eq!(found(&plugin, &variant, &[&[5], &[1]]).is_ok(), is_right);
    }
}

#[test]
fn an_output_in_place_needs_no_step() {
    let mut plugin = plugin();
    plugin.outputs[0].alias = Some(0);
    let launch = Step::launch(over_x(&[ArgValue::Tensor(1)]));
    let variant = with_steps(&plugin, vec![Step { when: when(compares(0, BinaryOp::Gt, 5)), ..launch }]);
    let sequence = found(&plugin, &variant, &[&[5], &[5]]).unwrap();
    assert_eq!(sequence.steps, [EvaluatedStep::LeftOut]);
}

#[test]
fn clusters_divide_the_grid() {
    let plugin = plugin();
    let most = Clusters::Most(8);
    let with = |grid: i64, cluster: [i64; 3], clusters: Clusters| {
        let mut launch = over_x(&[ArgValue::Tensor(1)]);
        launch.grid = [int(grid), int(4), int(2)];
        launch.cluster = Some(cluster.map(int));
        let takes = LaunchLimits { clusters, ..LaunchLimits::ANYTHING };
        let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[5], &[5]], ..Facts::default() };
        numbers(&plugin, &launch, &takes, &facts)
            .map(|found| found.cluster)
            .map_err(|error| error.to_string())
    };
    assert_eq!(with(6, [2, 4, 1], most), Ok(Some([2, 4, 1])));
    for (grid, cluster, why) in [
        (7, [2, 1, 1], "grid x is 7, not a multiple of 2, the cluster's extent"),
        (
            8,
            [4, 4, 1],
            "the number of blocks in a cluster is 16, the maximum of every GPU with clusters is 8",
        ),
        (9, [9, 1, 1], "cluster x is 9, the maximum of every GPU with clusters is 8"),
        (9, [i64::MAX, 1, 1], "cluster x is 9223372036854775807, the maximum"),
        (8, [1, 0, 1], "cluster y is 0, the minimum is 1"),
    ] {
        let error = with(grid, cluster, most).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let old = "compute_80".parse().unwrap();
    for (device_has, target, expected) in [
        (true, "compute_90".parse().unwrap(), most),
        (true, old, Clusters::NotInCode(old)),
        (false, old, Clusters::NotOnDevice),
    ] {
        let clusters = Clusters::for_code(device_has, target);
        assert_eq!((clusters, clusters.or(most), most.or(clusters)), (expected, most, most));
        assert!(with(8, [1, 1, 1], clusters).is_ok(), "one block is not a cluster");
    }
    let error = with(8, [2, 1, 1], Clusters::NotInCode(old)).unwrap_err();
    assert!(
        error.contains("this GPU runs the code for compute_80, which has no clusters")
            && error.contains("--target compute_90"),
        "{error}"
    );
    let error = with(8, [2, 1, 1], Clusters::NotOnDevice).unwrap_err();
    assert!(
        error.contains("this GPU has no clusters") && error.contains("`device.capability >= 90`"),
        "{error}"
    );
}

#[test]
fn too_many_blocks_at_once_are_told() {
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[5], &[5]], ..Facts::default() };
    let error = too_many_at_once(&plugin(), "k", &facts, 300, 264).to_string();
    assert!(error.starts_with(
        "`test::scale` cannot launch `k`: the number of blocks of the cooperative launch is 300, the maximum of \
         blocks that run at once on this GPU is 264"
    ), "{error}");
}

#[test]
fn the_workspace_is_bounded_over_a_profile() {
    let mut plugin = plugin();
    let numel = || Expr { nodes: vec![Node::Numel(0), Node::Int(4), Node::Binary(BinaryOp::Mul, 0, 1)] };
    let small = Guard { expr: compares(0, BinaryOp::Le, 1000), text: String::new() };
    plugin.variants[0].guard = Some(small);
    plugin.variants[0].scratch = vec![scratch("a", numel()), scratch("b", int(1))];
    let bound = |plugin: &Plugin, extents: &[(i64, i64)]| {
        let profile = vec![extents.iter().map(|(min, max)| Interval { min: *min, max: *max }).collect()];
        let domain = Domain::new(plugin).with_profile(&profile);
        workspace_bound(&domain, &plugin.variants).map_err(|error| error.to_string())
    };
    // One buffer has up to 4000 bytes, rounded up to 4096; the other 256.
    assert_eq!(bound(&plugin, &[(1, 50_000)]), Ok(4096 + 256));
    assert_eq!(bound(&plugin, &[(1, 10)]), Ok(256 + 256));
    assert_eq!(bound(&plugin, &[(1, 10), (3, 20)]), Ok(1024 + 256));
    assert_eq!(bound(&plugin, &[(2000, 3000)]), Ok(0));
    plugin.variants[1].scratch = vec![scratch("c", numel())];
    assert_eq!(bound(&plugin, &[(2000, 3000)]), Ok(12_032));
    assert_eq!(bound(&plugin, &[(1, 10)]), Ok(512), "the largest of the variants'");
    plugin.inputs[0].limits = ShapeLimits::default();
    let error = bound(&plugin, &[(1, i64::MAX)]).unwrap_err();
    assert!(
        error.starts_with("the size of the scratch buffer `c` of variant 2 has no upper bound"),
        "{error}"
    );
}

#[test]
fn a_guard_excludes_a_device_whatever_else_is_not_known() {
    use cubinder_expr::DeviceFact;
    // `numel(x) > 0 and (device.capability >= 90 and aligned(x, 16))`
    let nodes = vec![
        Node::Numel(0),
        Node::Int(0),
        Node::Binary(BinaryOp::Gt, 0, 1),
        Node::Device(DeviceFact::Capability),
        Node::Int(90),
        Node::Binary(BinaryOp::Ge, 3, 4),
        Node::Aligned { tensor: 0, bytes: 16 },
        Node::Binary(BinaryOp::And, 5, 6),
        Node::Binary(BinaryOp::And, 2, 7),
    ];
    let guard = Guard { expr: Expr { nodes }, text: String::new() };
    let on = |capability: Option<i64>| {
        let device = capability.map(|capability| Device { sms: 1, shared_bytes: 1, capability });
        let facts = Facts { device, ..Facts::default() };
        is_excluded(Some(&guard), &facts, &mut Steps::default())
    };
    assert!(on(Some(89)));
    assert!(!on(Some(90)), "it may be true for some shapes");
    assert!(!on(None), "nothing is known of the device");
    assert!(!is_excluded(None, &Facts::default(), &mut Steps::default()));

    let plugin = plugin();
    let plain = with_steps(&plugin, vec![Step::launch(over_x(&[ArgValue::Tensor(1)]))]);
    assert!(!asks_for_device(&plain));
    assert!(asks_for_device(&Variant { guard: Some(guard), ..plain.clone() }));
    let sms = Expr { nodes: vec![Node::Device(DeviceFact::Sms)] };
    assert!(asks_for_device(&Variant { scratch: vec![scratch("s", sms.clone())], ..plain.clone() }));
    let mut asking = plain;
    asking.launch_mut(0).unwrap().grid[2] = sms;
    assert!(asks_for_device(&asking));
}

#[test]
fn readers_of_an_output_write_nothing() {
    let plugin = plugin();
    let write = |least| Step {
        when: when(compares(0, BinaryOp::Ge, least)),
        ..Step::launch(over_x(&[ArgValue::Tensor(1)]))
    };
    let read = |least| Step {
        when: when(compares(0, BinaryOp::Ge, least)),
        ..Step::launch(over_x(&[ArgValue::ReadTensor(1)]))
    };
    let both = || Step::launch(over_x(&[ArgValue::ReadTensor(1), ArgValue::Tensor(1)]));
    let not_written = "is not empty, but no step that runs for these shapes writes it";
    let read_first = "is read before a step that runs for these shapes writes it";
    for (steps, why) in [
        (vec![write(0), read(0)], None),
        (vec![write(6), read(0)], Some(not_written)),
        (vec![write(6), read(6), both()], None),
        (vec![read(0)], Some(not_written)),
        (vec![read(0), write(0)], Some(read_first)),
        (vec![write(6), read(0), write(0)], Some(read_first)),
        (vec![read(6), write(0)], None),
        (vec![fill(Memory::Output(0)), read(0)], None),
        (vec![both(), read(0)], None),
    ] {
        let variant = with_steps(&plugin, steps.clone());
        let found = found(&plugin, &variant, &[&[5], &[5]]).err();
        match (why, &found) {
            (None, None) => {}
            (Some(why), Some(error)) => assert!(error.contains(why), "{error}"),
            _ => panic!("{steps:?}: {found:?}"),
        }
    }
    let reads = with_steps(&plugin, vec![read(0), write(0)]);
    let Sequence { steps, .. } = found(&plugin, &reads, &[&[0], &[0]]).unwrap();
    assert!(
        steps.iter().all(|step| *step == EvaluatedStep::LeftOut
            || matches!(step, EvaluatedStep::Launch(it) if it.is_empty()))
    );
    let mut aliased = plugin;
    aliased.outputs[0].alias = Some(0);
    assert!(found(&aliased, &reads, &[&[5], &[5]]).is_ok());
}

#[test]
fn long_text_in_a_guard_takes_steps() {
    let excluded_by = |text: usize, parts: u32| {
        let mut nodes = vec![Node::Str("a".repeat(text)), Node::Bool(true), Node::Bool(true)];
        for at in 2..parts + 2 {
            nodes.push(Node::Binary(BinaryOp::And, at, 1));
        }
        let guard = Guard { expr: Expr { nodes }, text: String::new() };
        let mut steps = Steps::default();
        assert!(!is_excluded(Some(&guard), &Facts::default(), &mut steps));
        steps.is_spent()
    };
    assert!(!excluded_by(1 << 20, 20), "a million bytes twenty times");
    assert!(!excluded_by(16, 500));
    assert!(excluded_by(1 << 20, 500), "half a gigabyte");
}
