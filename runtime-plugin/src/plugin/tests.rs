//! Plugins without a driver. Each grid is -1, so errors name the chosen kernel.

use cubinder_expr::{BinaryOp, Builtin, DeviceFact, Expr, Node as Part, UnaryOp};
use cubinder_expr::{DataType, Format, Interval};
use cubinder_launch::proof::Domain;
use cubinder_model::{
    AUTO_TACTIC, Attribute, AttributeType, CodeObject, CodeRef, Digest, Guard, Input, KernelFacts, Launch,
    Node, Output, Plugin as Model, Requirement, ShapeLimits, TunedDevice, TunedPoint, Variant, container,
};
use trt_abi::{Dims, TensorFormat};

use super::*;
use crate::definition::{BuildFacts, TensorKinds, restore_node};
use crate::identity;

fn int(value: i64) -> Expr {
    Expr { nodes: vec![Part::Int(value)] }
}

/// Returns `x.shape[-1] % divisor == 0`, optionally with an alignment of `x` in bytes.
pub(super) fn divides(divisor: i64, aligned: Option<u32>) -> Guard {
    let mut nodes = vec![
        Part::Shape(0),
        Part::Int(-1),
        Part::Index { array: 0, index: 1 },
        Part::Int(divisor),
        Part::Binary(BinaryOp::Mod, 2, 3),
        Part::Int(0),
        Part::Binary(BinaryOp::Eq, 4, 5),
    ];
    let mut text = format!("x.shape[-1] % {divisor} == 0");
    if let Some(bytes) = aligned {
        nodes.push(Part::Aligned { tensor: 0, bytes });
        nodes.push(Part::Binary(BinaryOp::And, 6, 7));
        text.push_str(&format!(" and aligned(x, {bytes})"));
    }
    Guard { expr: Expr { nodes }, text }
}

pub(super) fn variant(id: i32, guard: Option<Guard>) -> Variant {
    let launch = Launch {
        cluster: None,
        cooperative: false,
        programmatic: false,
        kernel: format!("kernel_{id}"),
        grid: [int(-1), int(1), int(1)],
        block: [int(1), int(1), int(1)],
        shared_bytes: int(0),
        args: Vec::new(),
        code: Vec::new(),
    };
    Variant {
        id,
        label: String::new(),
        types: vec![DataType::F32, DataType::F32],
        guard,
        formats: vec![Format::Linear; 2],
        specialized: Vec::new(),
        scratch: Vec::new(),
        steps: vec![cubinder_model::Step::launch(launch)],
    }
}

fn limits(every: Interval, dims: Vec<Interval>, numel: Interval) -> ShapeLimits {
    ShapeLimits { every, dims, numel }
}

pub(super) fn model(variants: Vec<Variant>) -> Model {
    let shape = vec![
        Part::Shape(0),
        Part::Int(0),
        Part::Index { array: 0, index: 1 },
        Part::Int(2),
        Part::Binary(BinaryOp::Mul, 2, 3),
        Part::Shape(0),
        Part::Int(1),
        Part::Index { array: 5, index: 6 },
        Part::Array(vec![4, 7]),
    ];
    Model {
        name: "guarded".to_owned(),
        namespace: "test".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: vec![Attribute::new("k", AttributeType::I32)],
        inputs: vec![Input {
            values: None,
            doc: String::new(),
            name: "x".to_owned(),
            rank_min: 2,
            rank_max: 2,
            limits: ShapeLimits::default(),
        }],
        outputs: vec![Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: "y".to_owned(),
            shape: Expr { nodes: shape },
            limits: ShapeLimits::default(),
        }],
        require: Vec::new(),
        timing: None,
        tuning: Vec::new(),
        variants,
    }
}

pub(super) fn made(model: Model) -> Result<KernelPlugin, Error> {
    let attributes = vec![Value::Int(3)];
    let node = Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin: model,
        attributes: attributes.clone(),
        input_ranks: None,
        code: Vec::new(),
    };
    let definition = Definition::bare(Arc::new(node));
    let phase = TensorRTPhase::BUILD;
    KernelPlugin::new(definition, attributes, "n", phase, Form::Fields, identity::generic())
}

pub(super) fn plugin(model: Model) -> KernelPlugin {
    made(model).unwrap()
}

fn desc(shape: &[i64]) -> PluginTensorDesc {
    PluginTensorDesc {
        dims: Dims::from_slice(shape).unwrap(),
        data_type: trt_abi::DataType::FLOAT,
        format: TensorFormat::LINEAR,
        scale: 1.0,
    }
}

fn refused(plugin: &KernelPlugin, x: [i64; 2]) -> String {
    let y = [x[0].saturating_mul(2), x[1]];
    plugin.on_shape_change(&[desc(&x)], &[desc(&y)]).unwrap_err().text().to_owned()
}

fn chosen(plugin: &KernelPlugin, x: [i64; 2]) -> String {
    let error = refused(plugin, x);
    let kernel = error.split("cannot launch `").nth(1).and_then(|rest| rest.split('`').next());
    kernel.map_or(error.clone(), str::to_owned)
}

fn configure(plugin: &KernelPlugin, least: [i64; 2], greatest: [i64; 2]) -> Result<(), String> {
    let tensor = |least: [i64; 2], greatest: [i64; 2]| {
        let dims = |shape: [i64; 2]| Dims::from_slice(&shape).unwrap();
        let fixed = |axis: usize| if least[axis] == greatest[axis] { least[axis] } else { -1 };
        DynamicPluginTensorDesc {
            desc: desc(&[fixed(0), fixed(1)]),
            min: dims(least),
            max: dims(greatest),
            opt: dims(greatest),
        }
    };
    let x = tensor(least, greatest);
    let y = tensor([least[0] * 2, least[1]], [greatest[0] * 2, greatest[1]]);
    plugin.configure(&[x], &[y]).map_err(|error| error.text().to_owned())
}

#[test]
fn the_first_variant_whose_guard_holds_runs() {
    let guarded = plugin(model(vec![
        variant(1, Some(divides(4, None))),
        variant(2, Some(divides(2, None))),
        variant(3, None),
    ]));
    for tactic in [0, AUTO_TACTIC] {
        guarded.set_tactic(tactic).unwrap();
        for (x, kernel) in
            [([1, 8], "kernel_1"), ([1, 6], "kernel_2"), ([1, 5], "kernel_3"), ([1, 4], "kernel_1")]
        {
            assert_eq!(chosen(&guarded, x), kernel, "{x:?}");
        }
    }
}

#[test]
fn a_tactic_runs_while_its_guard_holds_and_else_the_next() {
    let guards = [Some(divides(8, None)), Some(divides(4, None)), None, Some(divides(3, None))];
    let variants = (1..).zip(guards).map(|(id, guard)| variant(id, guard)).collect();
    let guarded = plugin(model(variants));
    for (tactic, last, kernel) in [
        (1, 8, "kernel_1"),
        (1, 4, "kernel_2"),
        (1, 3, "kernel_3"),
        (2, 8, "kernel_2"),
        (2, 3, "kernel_3"),
        (3, 8, "kernel_3"),
        (4, 3, "kernel_4"),
        (4, 8, "kernel_1"),
        (4, 4, "kernel_2"),
        (4, 5, "kernel_3"),
    ] {
        guarded.set_tactic(tactic).unwrap();
        assert_eq!(chosen(&guarded, [1, last]), kernel, "tactic {tactic}, {last} columns");
    }
    for tactic in [5, -1, AUTO_TACTIC - 1] {
        let error = guarded.set_tactic(tactic).unwrap_err();
        assert_eq!(error.text(), format!("test::guarded `n`: variant {tactic} does not exist"));
    }
    assert_eq!(chosen(&guarded, [1, 5]), "kernel_3", "a rejected tactic changes nothing");
}

#[test]
fn what_was_measured_comes_first() {
    let mut model = model(vec![variant(1, None), variant(2, None), variant(3, Some(divides(4, None)))]);
    let point = |x: [i64; 2], ranking: &[u32]| TunedPoint {
        attributes: Vec::new(),
        shapes: vec![x.to_vec(), vec![x[0] * 2, x[1]]],
        ranking: ranking.to_vec(),
    };
    let points = vec![point([1, 8], &[2, 1, 0]), point([64, 8], &[1, 0])];
    model.tuning = vec![TunedDevice { name: "a GPU".to_owned(), capability: 90, sms: 132, points }];
    let device = launch::Device { sms: 132, shared_bytes: 49_152, capability: 90 };
    for (tactic, device, x, kernel) in [
        (0, Some(device), [1, 8], "kernel_3"),
        (AUTO_TACTIC, Some(device), [2, 12], "kernel_3"),
        (0, Some(device), [2, 9], "kernel_2"),
        (0, Some(device), [100, 4], "kernel_2"),
        (1, Some(device), [1, 8], "kernel_1"),
        (0, None, [1, 8], "kernel_1"),
        (0, Some(launch::Device { sms: 114, ..device }), [1, 8], "kernel_1"),
    ] {
        let tuned = plugin(model.clone());
        tuned.set_tactic(tactic).unwrap();
        tuned.running.with(|running| running.assume(device)).unwrap();
        assert_eq!(chosen(&tuned, x), kernel, "{tactic} for {x:?} on {device:?}");
        let first = chosen(&tuned, [1, 8]);
        chosen(&tuned, [64, 8]);
        assert_eq!(chosen(&tuned, [1, 8]), first);
    }
    let tuned = plugin(model.clone());
    let known = |ranks| BuildFacts { input_ranks: Some(ranks), ..BuildFacts::default() };
    let kept =
        |ranks| tuned.state.node.definition.node(known(ranks), &tuned.state.node.attributes).plugin.tuning;
    assert_eq!(kept(&[2]), [TunedDevice { name: String::new(), ..model.tuning[0].clone() }]);
    assert_eq!(kept(&[1]), []);
}

#[test]
fn a_tactic_of_another_device_does_not_run() {
    let nodes = vec![Part::Device(DeviceFact::Capability), Part::Int(90), Part::Binary(BinaryOp::Ge, 0, 1)];
    let newer = Guard { expr: Expr { nodes }, text: "device.capability >= 90".to_owned() };
    for tactic in [1, 0, AUTO_TACTIC] {
        for (capability, kernel) in [(75, "kernel_2"), (90, "kernel_1"), (120, "kernel_1")] {
            let guarded = plugin(model(vec![variant(1, Some(newer.clone())), variant(2, None)]));
            guarded.set_tactic(tactic).unwrap();
            let device = launch::Device { sms: 16, shared_bytes: 49_152, capability };
            guarded.running.with(|running| running.assume(Some(device))).unwrap();
            assert_eq!(chosen(&guarded, [1, 8]), kernel, "tactic {tactic} on {capability}");
        }
    }
}

#[test]
fn an_alignment_leaves_candidates_to_be_prepared() {
    let guarded = plugin(model(vec![variant(1, Some(divides(4, Some(16)))), variant(2, None)]));
    assert_eq!(chosen(&guarded, [1, 8]), "kernel_1");
    assert_eq!(chosen(&guarded, [1, 7]), "kernel_2");
}

#[test]
fn where_no_variant_may_run_the_error_says_why() {
    let guards = [divides(4, None), divides(0, None), divides(5, Some(16))];
    let variants = (1..).zip(guards).map(|(id, guard)| variant(id, Some(guard))).collect();
    let guarded = plugin(model(variants));
    let errors = [refused(&guarded, [2, 7]), refused(&guarded, [i64::MAX / 4, 7])];
    insta::assert_snapshot!(errors.join("\n"));
    assert_eq!(chosen(&guarded, [2, 8]), "kernel_1");
}

#[test]
fn the_first_tactic_leaves_the_choice_and_the_others_always_hold() {
    let alignment = || Some(divides(4, Some(16)));
    let always = Guard { expr: divides(1, None).expr, text: "x.shape[-1] % 1 == 0".to_owned() };
    let guarded = plugin(model(vec![
        variant(7, alignment()),
        variant(5, Some(always.clone())),
        variant(3, None),
        variant(1, None),
    ]));
    let offered = |is_proved: bool| {
        let ids = [(AUTO_TACTIC, true), (5, is_proved), (3, true), (1, true)];
        ids.into_iter().filter(|(_, holds)| *holds).map(|(id, _)| id).collect::<Vec<i32>>()
    };
    let domain =
        Domain::new(guarded.state.node.definition.plugin()).with_attributes(&guarded.state.node.attributes);
    assert_eq!(guarded.tactics().unwrap(), offered(domain.proves(&always.expr)));
    configure(&guarded, [1, 4], [2, 8]).unwrap();
    let profile = [vec![Interval { min: 1, max: 2 }, Interval { min: 4, max: 8 }]];
    let is_proved = domain.clone().with_profile(&profile).proves(&always.expr);
    assert_eq!(guarded.profile.get().unwrap().inputs, profile);
    assert_eq!(guarded.tactics().unwrap(), offered(is_proved));
    assert_eq!(guarded.clone().tactics().unwrap(), offered(is_proved), "a clone knows the profile");
    for one in [vec![variant(1, None)], vec![variant(1, alignment())]] {
        let plugin = plugin(model(one));
        assert_eq!(plugin.tactics().unwrap(), [0; 0], "no choice, no tactics");
        for tactic in [AUTO_TACTIC, 0] {
            plugin.set_tactic(tactic).unwrap();
            assert_eq!(chosen(&plugin, [1, 8]), "kernel_1", "tactic {tactic}");
        }
    }
}

#[test]
fn shapes_beyond_the_limits_are_refused() {
    let range = |min, max| Interval { min, max };
    let mut limited = model(vec![variant(1, None)]);
    limited.inputs[0].limits = limits(Interval::ANY_SIZE, vec![range(1, 100), range(4, 64)], range(8, 1000));
    limited.outputs[0].limits = limits(range(0, 150), vec![], range(0, 1600));
    let limited = plugin(limited);
    let at_run_time = [[0, 8], [101, 4], [2, 3], [1, 65], [1, 4], [20, 60], [80, 8], [27, 32]];
    let mut errors: Vec<String> = at_run_time.into_iter().map(|x| refused(&limited, x)).collect();
    assert_eq!(chosen(&limited, [25, 32]), "kernel_1", "1600 elements in `y`");
    let profiles = [
        ([1, 8], [101, 8]),
        ([1, 3], [1, 8]),
        ([1, 8], [20, 60]),
        ([1, 8], [80, 8]),
        ([1, 4], [2, 8]),
        ([3, 70], [3, 70]),
    ];
    errors.push(String::new());
    for (least, greatest) in profiles {
        errors.push(configure(&limited, least, greatest).unwrap_err());
        assert_eq!(limited.profile.get(), None, "a rejected profile is not stored");
    }
    insta::assert_snapshot!(errors.join("\n"));
    configure(&limited, [1, 8], [25, 32]).unwrap();
    configure(&limited, [0, 8], [25, 32]).unwrap();
}

#[test]
fn a_shape_input_hides_no_limit_of_other_outputs() {
    let range = |min, max| Interval { min, max };
    let with_counts = |count: Interval, y_reads_it: bool| {
        let mut limited = model(vec![variant(1, None)]);
        limited.inputs.push(Input {
            name: "target".to_owned(),
            values: Some(range(0, 9)),
            rank_min: 1,
            rank_max: 1,
            limits: limits(range(0, 8), vec![count], Interval::ANY_SIZE),
            doc: String::new(),
        });
        limited.outputs[0].limits.numel.max = 1000;
        if y_reads_it {
            // y = [numel(target), x.shape[-1]].
            limited.outputs[0].shape.nodes[4] = Part::Numel(1);
        }
        for variant in &mut limited.variants {
            variant.types.insert(1, DataType::I64);
            variant.formats.insert(1, Format::Linear);
        }
        plugin(limited)
    };
    let open = range(0, 8);
    configure(&with_counts(open, false), [1, 8], [50, 10]).unwrap();
    let error = configure(&with_counts(open, false), [1, 8], [51, 10]).unwrap_err();
    assert!(error.contains("of `y` is 1020 in 102x10, the maximum of the profile;"), "{error}");
    configure(&with_counts(open, true), [1, 8], [1, 1 << 20]).unwrap();
    let mut by_rank = model(vec![variant(1, None)]);
    by_rank.outputs[0].shape.nodes = vec![Part::Rank(0), Part::Array(vec![0])];
    by_rank.outputs[0].limits.numel.max = 1;
    let error = configure(&plugin(by_rank), [0, 8], [1, i64::MAX]).unwrap_err();
    assert!(error.contains("of `y` is 2 in 2, the minimum of the profile;"), "{error}");
    let error = configure(&with_counts(range(4, 4), true), [1, 8], [1, 251]).unwrap_err();
    assert!(error.contains("of `y` is 1004 in 4x251, the maximum of the profile;"), "{error}");
}

#[test]
fn more_elements_than_64_bits_count_are_beyond_a_limit() {
    let mut limited = model(vec![variant(1, None)]);
    let huge = [i64::MAX / 4, 1 << 40];
    assert_eq!(chosen(&plugin(limited.clone()), huge), "kernel_1");
    limited.inputs[0].limits.numel.max = i64::MAX - 1;
    let error = refused(&plugin(limited), huge);
    assert!(
        error.contains("the number of elements of `x` exceeds 64 bits in 2305843009213693951x1099511627776"),
        "{error}"
    );
}

/// True but slow.
fn slow() -> Guard {
    let nodes = vec![
        Part::Int(60_000),
        Part::Call(Builtin::Range, vec![0]),
        Part::Local(0),
        Part::Comprehension { slot: 0, over: 1, condition: None, body: 2 },
        Part::Call(Builtin::Sum, vec![3]),
        Part::Int(0),
        Part::Binary(BinaryOp::Ge, 4, 5),
    ];
    Guard { expr: Expr { nodes }, text: "slow".to_owned() }
}

#[test]
fn what_an_engine_asks_for_takes_a_bounded_time() {
    let together = "the expressions of the node exceed 8000000 evaluation steps";
    let fails = |guard: Guard| {
        let mut nodes = guard.expr.nodes;
        nodes.push(Part::Unary(UnaryOp::Not, 6));
        Guard { expr: Expr { nodes }, ..guard }
    };
    let asks = |guard: Guard| {
        let mut nodes = guard.expr.nodes;
        nodes.extend([Part::Aligned { tensor: 0, bytes: 16 }, Part::Binary(BinaryOp::And, 6, 7)]);
        Guard { expr: Expr { nodes }, ..guard }
    };
    for guard in [fails(slow()), asks(slow())] {
        let guarded = plugin(model((1..=4096).map(|id| variant(id, Some(guard.clone()))).collect()));
        let error = refused(&guarded, [1, 8]);
        assert!(error.contains(together), "{error}");
    }
    let require = Requirement { expr: slow().expr, text: "slow".to_owned(), message: "m".to_owned() };
    let mut slow_rules = model(vec![variant(1, None)]);
    slow_rules.require = vec![require; 256];
    assert!(made(slow_rules.clone()).unwrap_err().text().contains(together));
    let mut slow_launch = model(vec![variant(1, None)]);
    let mut launch = slow_launch.variants[0].launch(0).unwrap().clone();
    launch.grid[0] = int(1);
    launch.shared_bytes = Expr { nodes: slow().expr.nodes[..5].to_vec() };
    slow_launch.variants[0].steps = vec![cubinder_model::Step::launch(launch); 256];
    let error = refused(&plugin(slow_launch), [1, 8]);
    assert!(error.contains(together), "{error}");
}

#[test]
fn thousands_of_lists_of_types_are_told_apart_at_once() {
    let mut wide = model(Vec::new());
    wide.inputs = vec![wide.inputs[0].clone(); 255];
    let rows = (0..4096_u32).map(|row| {
        let mut types = vec![DataType::F32; 256];
        for (bit, ty) in types.iter_mut().rev().take(12).enumerate() {
            *ty = if row >> bit & 1 == 1 { DataType::F16 } else { DataType::I8 };
        }
        Variant { types, ..variant(1, None) }
    });
    wide.variants = rows.collect();
    let started = std::time::Instant::now();
    let wide = plugin(wide);
    assert_eq!(wide.state.node.kinds.len(), 4096);
    assert!(
        wide.state
            .set_kinds(&TensorKinds { types: vec![DataType::I64; 256], formats: vec![Format::Linear; 256] })
            .unwrap_err()
            .text()
            .len()
            < 100_000
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(3), "{:?}", started.elapsed());
}

#[test]
fn an_empty_tensor_has_no_elements_whatever_else_is_large() {
    let mut limited = model(vec![variant(1, None)]);
    limited.inputs[0].limits.numel.max = 1000;
    limited.outputs[0].shape = Expr { nodes: vec![Part::Shape(0)] };
    let limited = plugin(limited);
    let huge = desc(&[i64::MAX, 0]);
    let error = limited.on_shape_change(&[huge], &[huge]).unwrap_err();
    assert!(error.text().contains("cannot launch `kernel_1`"), "{error}");
}

fn seal(bytes: &mut [u8]) {
    let digest = Digest::compute(&[&bytes[..32], &bytes[64..]].concat());
    bytes[32..64].copy_from_slice(&digest.0);
}

#[test]
fn sealed_damage_of_an_engine_is_answered() {
    let mut guarded = model(vec![variant(1, Some(divides(4, Some(16)))), variant(2, None)]);
    guarded.inputs[0].limits = limits(Interval::ANY_SIZE, vec![], Interval { min: 0, max: 1 << 40 });
    let code = vec![CodeObject {
        target: "sm_89".parse().unwrap(),
        digest: Digest::compute(b"code"),
        kernels: vec![KernelFacts {
            symbol: "k".to_owned(),
            registers: None,
            shared_bytes: None,
            local_bytes: None,
            max_threads: None,
            params: Vec::new(),
        }],
        bytes: b"code".to_vec().into(),
    }];
    let reference = CodeRef { target: code[0].target, code: 0, symbol: "k".to_owned() };
    for variant in &mut guarded.variants {
        variant.launch_mut(0).unwrap().grid[0] = int(7);
        variant.launch_mut(0).unwrap().code = vec![reference.clone()];
    }
    let node = Node {
        workspace_bytes: None,
        producer: "p".to_owned(),
        plugin: guarded,
        attributes: vec![Value::Int(3)],
        input_ranks: Some(vec![2]),
        code,
    };
    let bytes = container::write_node(&node);
    let mut outcomes = [0; 3];
    let started = std::time::Instant::now();
    for index in 64..bytes.len() {
        for flip in [0x01, 0x02, 0x40, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[index] ^= flip;
            seal(&mut changed);
            outcomes[outcome(&changed)] += 1;
        }
    }
    assert!(
        outcomes.iter().all(|count| *count > 10),
        "rejected when read, rejected later, accepted: {outcomes:?}"
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
}

/// Returns 0 if the field is rejected, 1 for node or shapes, else 2.
fn outcome(field: &[u8]) -> usize {
    let Ok(restored) = restore_node(&field.into()) else { return 0 };
    let phase = TensorRTPhase::RUNTIME;
    let made = KernelPlugin::new(
        restored.definition,
        restored.attributes,
        "",
        phase,
        Form::Fields,
        identity::generic(),
    );
    let Ok(made) = made else { return 1 };
    made.state.set_input_ranks(restored.input_ranks);
    made.fields_to_serialize().unwrap();
    let shapes = [[1, 8], [0, 0], [i64::MAX, 2], [5, 3]];
    let taken = shapes.map(|x| {
        let y = [x[0].saturating_mul(2), x[1]];
        made.on_shape_change(&[desc(&x)], &[desc(&y)]).is_ok()
    });
    1 + usize::from(taken.contains(&true))
}
