use std::ffi::c_void;
use std::ptr::without_provenance_mut;

use crate::support::{Clusters, Device, Mock, cubin};
use crate::the_plugin::{I32, Shapes, all_given, int, launch, numel, plugin, scalar, tensor};
use cubinder::code::{Candidate, CodeTable, LoadedKernel, Loading};
use cubinder::driver::sys::{
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUlaunchAttribute, CUstream,
};
use cubinder::launch::{
    Addresses, AliasRecord, EnqueueError, LaunchError, LaunchRecord, MAX_ARGUMENTS, StepRecord, takes,
};
use cubinder_expr::{BinaryOp, Expr, Node};
use cubinder_expr::{DataType, Format, Value};
use cubinder_launch::{EvaluatedArgument, EvaluatedLaunch, EvaluatedStep, Sequence, Steps, sequence};
use cubinder_model::{
    Arg, ArgValue, CodeBytes, Digest, Fill, Guard, Launch, Memory, Plugin, Scratch, Step, Variant, Work,
};

const X: usize = 0x1111_0000;
const Y: usize = 0x2222_0000;
const WORKSPACE: usize = 0x9999_0000;

fn device(capability: (i32, i32)) -> (Mock, LoadedKernel) {
    let target = format!("sm_{}{}", capability.0, capability.1);
    loaded(Device { capability, ..Device::default() }, &target)
}

fn loaded(device: Device, target: &str) -> (Mock, LoadedKernel) {
    let mock = Mock::new(Device { params: vec![8, 8, 8], ..device });
    let bytes = match target.starts_with("compute_") {
        true => format!(".version 8.0 .target sm_80 // {target}").into_bytes(),
        false => cubin("code"),
    };
    let target = target.parse().unwrap();
    let (digest, bytes) = (Digest::compute(&bytes), CodeBytes::from(bytes));
    let candidate = Candidate { target, digest, bytes: &bytes, symbol: "k", facts: None };
    match CodeTable::new().load(&mock.driver, "k", &[candidate]) {
        Ok(Loading::Loaded(kernel)) => (mock, kernel),
        other => panic!("{other:?}"),
    }
}

fn scratch(name: &str, index: u32) -> Arg {
    Arg { name: name.to_owned(), value: ArgValue::Scratch(index) }
}

fn of_three(change: impl FnOnce(&mut Launch)) -> Step {
    let mut launch = Launch { args: vec![tensor("x", 0), scratch("s", 1), tensor("y", 1)], ..launch() };
    change(&mut launch);
    Step::launch(launch)
}

fn fill(memory: Memory, byte: u8) -> Step {
    Step { when: None, work: Work::Fill(Fill { memory, byte }) }
}

fn beyond(least: i64) -> Option<Guard> {
    let nodes = vec![Node::Numel(0), Node::Int(least), Node::Binary(BinaryOp::Gt, 0, 1)];
    Some(Guard { expr: Expr { nodes }, text: format!("numel(x) > {least}") })
}

fn variant(steps: Vec<Step>) -> (Plugin, Variant) {
    let plugin = plugin();
    let buffer = |name: &str, bytes: Expr| Scratch { name: name.to_owned(), bytes };
    let variant = Variant {
        scratch: vec![buffer("first", numel(0)), buffer("second", int(100))],
        steps,
        ..plugin.variants[0].clone()
    };
    (plugin, variant)
}

fn records(
    (plugin, variant): &(Plugin, Variant),
    kernel: &LoadedKernel,
    elements: i64,
) -> Result<Vec<StepRecord>, Box<LaunchError>> {
    let shapes = Shapes(vec![vec![elements], vec![elements]]);
    let found = sequence(plugin, variant, |_| takes(kernel), &shapes, &mut Steps::default())?;
    let kernels = vec![Some(kernel.clone()); variant.steps.len()];
    Ok(StepRecord::all(plugin, variant, &kernels, &found, &all_given(1)).unwrap())
}

fn enqueue(mock: &Mock, records: &[StepRecord]) -> Result<(), EnqueueError> {
    let inputs: [*const c_void; 1] = [without_provenance_mut::<c_void>(X).cast_const()];
    let outputs: [*mut c_void; 1] = [without_provenance_mut(Y)];
    let workspace = without_provenance_mut(WORKSPACE);
    let at = Addresses { inputs: &inputs, outputs: &outputs, workspace };
    // SAFETY: only the stand-in gets it.
    let stream = unsafe { CUstream::from_raw(without_provenance_mut(0x42)) };
    // SAFETY: the mock accesses no tensor.
    records.iter().try_for_each(|record| unsafe { record.enqueue(&mock.driver, &at, stream) })
}

#[test]
fn steps_are_queued_in_order() {
    let (mock, kernel) = device((8, 6));
    let plan = variant(vec![
        fill(Memory::Scratch(1), 0xff),
        Step { when: beyond(1000), ..of_three(|launch| launch.grid[0] = int(7)) },
        fill(Memory::Output(0), 3),
        of_three(|launch| launch.grid[0] = int(9)),
    ]);
    let queued = |elements| {
        mock.change(|_| {});
        enqueue(&mock, &records(&plan, &kernel, elements).unwrap()).unwrap();
        mock.work()
    };
    // The second buffer starts at a multiple of 256.
    let second = WORKSPACE + 512;
    let filled = [
        format!("cuMemsetD8Async {second:#x} 255 100"),
        format!("cuMemsetD8Async {Y:#x} 3 1200"),
        "cuLaunchKernel code".to_owned(),
    ];
    assert_eq!(queued(300), filled);
    let launched = mock.launched();
    assert_eq!((launched.len(), launched[0].grid), (1, [9, 1, 1]));
    let addresses: Vec<Vec<u8>> =
        [X, second, Y].iter().map(|address| (*address as u64).to_le_bytes().to_vec()).collect();
    assert_eq!(launched[0].args, addresses);
    let calls: Vec<String> =
        queued(1001).iter().map(|call| call.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(calls, ["cuMemsetD8Async", "cuLaunchKernel", "cuMemsetD8Async", "cuLaunchKernel"]);
    assert_eq!(mock.launched()[1].args[1], ((WORKSPACE + 1024) as u64).to_le_bytes());
    let mut empty = plan.clone();
    empty.1.scratch[1].bytes = int(0);
    empty.1.steps[3] = of_three(|launch| launch.grid[0] = numel(0));
    assert!(records(&empty, &kernel, 0).unwrap().is_empty());
}

#[test]
fn a_launch_asks_for_what_its_kernel_needs() {
    let all = |launch: &mut Launch| {
        launch.grid[0] = int(4);
        launch.cluster = Some([int(2), int(1), int(1)]);
        launch.cooperative = true;
        launch.programmatic = true;
    };
    let attributes = |capability, step: Step| {
        let (mock, kernel) = device(capability);
        let plan = variant(vec![step]);
        let found = records(&plan, &kernel, 5).map_err(|error| error.to_string())?;
        enqueue(&mock, &found).unwrap();
        assert_eq!(mock.launched()[0].stream, 0x42);
        Ok::<_, String>(mock.attributes())
    };
    let cluster = CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [2, 1, 1]);
    let cooperative = CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0]);
    let programmatic =
        CUlaunchAttribute::new(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, [1, 0, 0]);
    assert_eq!(attributes((9, 0), of_three(all)), Ok(vec![vec![cluster, cooperative, programmatic]]));
    assert_eq!(attributes((9, 0), of_three(|_| {})), Ok(Vec::new()), "the plain call");
    let alone = |launch: &mut Launch| launch.programmatic = true;
    assert_eq!(attributes((9, 0), of_three(alone)), Ok(vec![vec![programmatic]]));
    assert_eq!(attributes((8, 6), of_three(alone)), Ok(Vec::new()));
    let error = attributes((8, 6), of_three(all)).unwrap_err();
    assert!(error.contains("this GPU has no clusters"), "{error}");
}

#[test]
fn steps_say_what_they_do() {
    let (_mock, kernel) = device((9, 0));
    let clustered = of_three(|launch| {
        launch.grid[0] = int(4);
        launch.cluster = Some([int(2), int(1), int(1)]);
        launch.cooperative = true;
    });
    let found = records(&variant(vec![clustered, fill(Memory::Output(0), 7)]), &kernel, 5).unwrap();
    let record = found[0].launch().unwrap();
    assert_eq!((record.description().cluster, record.description().cooperative), (Some([2, 1, 1]), true));
    let told = found[0].to_string();
    assert_eq!(told, record.to_string());
    assert!(
        told.ends_with(" with grid [4, 1, 1], block [256, 1, 1], cluster [2, 1, 1], cooperative"),
        "{told}"
    );
    assert!(found[1].launch().is_none());
    assert_eq!(found[1].to_string(), "fill the 20 bytes of `y` with 7");
}

/// It lacks the parts in `#if __CUDA_ARCH__ >= 900`.
#[test]
fn code_for_older_devices_is_launched_as_on_those() {
    let launched = |clusters, target: &str, cluster: Option<i64>| {
        let (mock, kernel) = loaded(Device { capability: (9, 0), clusters, ..Device::default() }, target);
        let step = of_three(|launch| {
            launch.grid[0] = int(4);
            launch.cluster = cluster.map(|blocks| [int(blocks), int(1), int(1)]);
            launch.programmatic = true;
        });
        let found = records(&variant(vec![step]), &kernel, 5).map_err(|error| error.to_string())?;
        enqueue(&mock, &found).unwrap();
        assert_eq!(mock.launched().len(), 1);
        let ids = mock.attributes().into_iter().flatten().map(|attribute| attribute.id);
        Ok::<_, String>(ids.collect::<Vec<_>>())
    };
    let (cluster, early) =
        (CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    // Without the query, or with a failing one.
    for known in [Clusters::AsCapability, Clusters::Fails(1), Clusters::Fails(999)] {
        assert_eq!(launched(known, "compute_90", Some(2)), Ok(vec![cluster, early]));
        assert_eq!(launched(known, "compute_80", None), Ok(vec![]), "it does not wait");
        assert_eq!(launched(known, "compute_80", Some(1)), Ok(vec![]), "one block is not a cluster");
        let error = launched(known, "compute_80", Some(2)).unwrap_err();
        assert!(error.contains("this GPU runs the code for compute_80, which has no clusters"), "{error}");
    }
    let error = launched(Clusters::Not, "compute_90", Some(2)).unwrap_err();
    assert!(error.contains("this GPU has no clusters"), "{error}");
}

#[test]
fn numbers_of_another_launch_make_no_record() {
    let (_mock, kernel) = device((8, 6));
    let (plugin, variant) = variant(vec![of_three(|_| {}), fill(Memory::Scratch(1), 0)]);
    let shapes = Shapes(vec![vec![5], vec![5]]);
    let found = sequence(&plugin, &variant, |_| takes(&kernel), &shapes, &mut Steps::default()).unwrap();
    let EvaluatedStep::Launch(numbers) = &found.steps[0] else { panic!("{found:?}") };
    let launch = variant.launch(0).unwrap();
    let is_made = |launch: &Launch, kernel: &LoadedKernel, change: &dyn Fn(&mut EvaluatedLaunch)| {
        let mut numbers = numbers.clone();
        change(&mut numbers);
        let positions = all_given(1);
        LaunchRecord::new(&plugin, launch, kernel, &numbers, &found.scratch, &positions).is_some()
    };
    assert!(is_made(launch, &kernel, &|_| {}));
    let ints = |start| EvaluatedArgument::Numbers { start, value: Value::Int(1) };
    let others = [
        EvaluatedArgument::Output(1),
        EvaluatedArgument::Input(1),
        EvaluatedArgument::Scratch(2),
        ints(0),
        ints(usize::MAX),
    ];
    for other in others {
        assert!(!is_made(launch, &kernel, &|numbers| numbers.args[2] = other.clone()), "{other:?}");
    }
    let number = Launch { args: vec![scalar("n", I32, int(1)); 3], ..launch.clone() };
    let mut of_numbers = kernel.clone();
    of_numbers.params = Some(vec![4; 3].into());
    for (bytes, is_there) in [(4, true), (3, false)] {
        let change = |numbers: &mut EvaluatedLaunch| {
            numbers.args = vec![ints(0); 3];
            numbers.numbers = vec![0; bytes];
        };
        assert_eq!(is_made(&number, &of_numbers, &change), is_there, "{bytes} bytes");
    }
    assert!(!is_made(&number, &of_numbers, &|numbers| numbers.args = vec![EvaluatedArgument::Input(0); 3]));
    assert!(!is_made(&number, &of_numbers, &|numbers| numbers.args = vec![EvaluatedArgument::Scratch(0); 3]));
    let long = Launch { args: vec![tensor("x", 0); MAX_ARGUMENTS + 1], ..launch.clone() };
    of_numbers.params = None;
    for (count, is_made_of) in [(MAX_ARGUMENTS + 1, false), (MAX_ARGUMENTS, true)] {
        let launch = Launch { args: long.args[..count].to_vec(), ..long.clone() };
        let change = |numbers: &mut EvaluatedLaunch| numbers.args = vec![EvaluatedArgument::Input(0); count];
        assert_eq!(is_made(&launch, &of_numbers, &change), is_made_of, "{count} arguments");
    }
    for params in [vec![8, 8], vec![8, 8, 4]] {
        of_numbers.params = Some(params.clone().into());
        assert!(!is_made(launch, &of_numbers, &|_| {}), "{params:?}");
    }
    let all = |kernels: &[Option<LoadedKernel>], found: &Sequence| {
        StepRecord::all(&plugin, &variant, kernels, found, &all_given(1)).map(|records| records.len())
    };
    assert_eq!(all(&[Some(kernel.clone())], &found), Some(2));
    assert_eq!(all(&[None, Some(kernel.clone())], &found), None);
    assert_eq!(all(&[], &found), None);
    let mut changed = found.clone();
    changed.scratch.truncate(1);
    assert_eq!(all(&[Some(kernel.clone())], &changed), None, "the filled memory is missing");
    changed = found.clone();
    changed.steps.swap(0, 1);
    assert_eq!(all(&[Some(kernel.clone()), Some(kernel)], &changed), None, "step 1 is not a launch");
}

#[test]
fn what_runs_at_once_is_asked_of_the_driver() {
    let (mock, kernel) = device((9, 0));
    let at_once = |step: Step| {
        let found = records(&variant(vec![step]), &kernel, 5).unwrap();
        let record = found[0].launch().unwrap();
        (record.blocks(), record.blocks_at_once(&mock.driver, 10).unwrap())
    };
    let grid = |launch: &mut Launch| launch.grid = [int(6), int(4), int(2)];
    assert_eq!(at_once(of_three(grid)), (48, 80), "8 blocks of 256 threads on each of 10 multiprocessors");
    let clustered = |launch: &mut Launch| {
        grid(launch);
        launch.cluster = Some([int(2), int(2), int(1)]);
    };
    assert_eq!(at_once(of_three(clustered)), (48, 12), "3 clusters of 4 blocks");
}

#[test]
fn a_refusal_shows_everything_that_was_asked_for() {
    let (mock, kernel) = device((9, 0));
    let plan = variant(vec![
        of_three(|launch| {
            launch.grid[0] = int(4);
            launch.cluster = Some([int(2), int(1), int(1)]);
            launch.cooperative = true;
        }),
        fill(Memory::Scratch(1), 0),
    ]);
    let records = records(&plan, &kernel, 5).unwrap();
    let mut report = String::new();
    for (call, index) in [("cuLaunchKernel", 0), ("cuMemsetD8Async", 1)] {
        mock.change(|device| {
            device.fail_at = Some((1, 719));
            device.refuses.clear();
        });
        let error = enqueue(&mock, &records[index..=index]).unwrap_err();
        report.push_str(&format!("{call}:\n{error}\n{}\n\n", error.help().unwrap_or_default()));
    }
    insta::assert_snapshot!("refused_steps", report);
}

#[test]
fn an_output_elsewhere_gets_a_copy_of_the_input() {
    let (mock, _) = device((8, 6));
    let (mut plugin, mut variant) = variant(vec![of_three(|_| {})]);
    plugin.outputs[0].alias = Some(0);
    variant.types = vec![DataType::F16; 2];
    variant.formats = vec![Format::Hwc8; 2];
    let shape = [3_i64, 5, 7];
    let aliases = AliasRecord::all(&plugin, &variant, &all_given(1), |_| Some(&shape)).unwrap();
    assert_eq!((aliases.len(), aliases[0].name()), (1, "y"));
    let copied = |x: usize, y: usize| {
        mock.change(|_| {});
        let inputs = [without_provenance_mut::<c_void>(x).cast_const()];
        let outputs = [without_provenance_mut(y)];
        let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
        let needs_copy = aliases[0].needs_copy(&at).unwrap();
        if needs_copy {
            // SAFETY: the mock accesses no tensor.
            unsafe { aliases[0].copy(&mock.driver, &at, CUstream::NULL) }.unwrap();
        }
        (needs_copy, mock.work())
    };
    assert_eq!(copied(X, X), (false, vec![]));
    // Three channels, padded to eight.
    let expected = format!("cuMemcpyDtoDAsync {Y:#x} {X:#x} {}", 8 * 5 * 7 * 2);
    assert_eq!(copied(X, Y), (true, vec![expected]));
    assert!(copied(X, X + 560).0 && copied(X + 560, X).0, "one behind the other");
    for (x, y) in [(X, X + 559), (X + 559, X), (X, X + 1)] {
        mock.change(|_| {});
        let inputs = [without_provenance_mut::<c_void>(x).cast_const()];
        let outputs = [without_provenance_mut(y)];
        let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
        let error = aliases[0].needs_copy(&at).unwrap_err().to_string();
        assert!(error.contains(&format!("{x:#x}")) && error.contains(&format!("{y:#x}")), "{error}");
    }
    let address = [without_provenance_mut::<c_void>(X)];
    for (inputs, outputs, text) in [
        (0, 1, "the launch has 0 inputs, but the plugin has 1"),
        (1, 0, "the launch has 0 outputs, but the plugin has 1"),
        (0, 0, "the launch has 0 inputs, but the plugin has 1"),
    ] {
        let given = [address[0].cast_const()];
        let at = Addresses {
            inputs: &given[..inputs],
            outputs: &address[..outputs],
            workspace: std::ptr::null_mut(),
        };
        assert_eq!(aliases[0].needs_copy(&at).unwrap_err().to_string(), text);
    }
    assert!(AliasRecord::all(&plugin, &variant, &all_given(1), |_| None).is_none());
    plugin.outputs[0].alias = None;
    assert!(AliasRecord::all(&plugin, &variant, &all_given(1), |_| None).unwrap().is_empty());
}

fn two_in_place() -> (Plugin, Variant) {
    let (mut plugin, mut variant) = variant(vec![of_three(|_| {})]);
    plugin.inputs.push(cubinder_model::Input { name: "z".to_owned(), ..plugin.inputs[0].clone() });
    plugin.outputs[0].alias = Some(0);
    let second = cubinder_model::Output { name: "w".to_owned(), alias: Some(1), ..plugin.outputs[0].clone() };
    plugin.outputs.push(second);
    variant.types = vec![DataType::F32; 4];
    variant.formats = vec![Format::Linear; 4];
    (plugin, variant)
}

#[test]
fn no_copy_overwrites_another_input() {
    const BYTES: usize = 16;
    let (plugin, variant) = two_in_place();
    let shape = [4_i64];
    let aliases = AliasRecord::all(&plugin, &variant, &all_given(2), |_| Some(&shape)).unwrap();
    assert_eq!(aliases.iter().map(AliasRecord::name).collect::<Vec<_>>(), ["y", "w"]);
    let needs_copy = |record: usize, places: [usize; 4], outputs: usize| {
        let [x, z, y, w] = places.map(without_provenance_mut::<c_void>);
        let (inputs, both) = ([x.cast_const(), z.cast_const()], [y, w]);
        let at = Addresses { inputs: &inputs, outputs: &both[..outputs], workspace: std::ptr::null_mut() };
        aliases[record].needs_copy(&at).map_err(|error| error.to_string())
    };
    assert_eq!(needs_copy(0, [X, X + 32, Y, Y + 32], 2), Ok(true));
    assert_eq!(needs_copy(1, [X, X + 32, Y, X + 32], 2), Ok(false));
    for z in [Y + 1 - BYTES, Y, Y + BYTES - 1] {
        let refused = needs_copy(0, [X, z, Y, X + 64], 2).unwrap_err();
        assert!(
            refused.contains("`y`") && refused.contains(&format!("the input `z` at {z:#x}")),
            "{refused}"
        );
        assert_eq!(needs_copy(0, [Y, z, Y, X + 64], 2), Ok(false), "nothing is copied");
    }
    for z in [Y - BYTES, Y + BYTES] {
        assert_eq!(needs_copy(0, [X, z, Y, X + 64], 2), Ok(true), "one behind the other");
    }
    assert!(needs_copy(0, [X, Y, Y, X], 2).is_err() && needs_copy(1, [X, Y, Y, X], 2).is_err());
    assert!(needs_copy(0, [X, X + 32, Y, Y + 32], 1).unwrap_err().contains("the launch has 1 outputs"));

    let empty = [0_i64];
    let shapes = |tensor: usize| Some(if tensor == 1 { empty.as_slice() } else { shape.as_slice() });
    let of_empty = AliasRecord::all(&plugin, &variant, &all_given(2), shapes).unwrap();
    let inputs = [X, Y + 4].map(|place| without_provenance_mut::<c_void>(place).cast_const());
    let outputs = [Y, X + 64].map(without_provenance_mut::<c_void>);
    let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
    assert_eq!(of_empty[0].needs_copy(&at), Ok(true), "an input without elements has nothing to overwrite");

    let aliases = AliasRecord::all(&plugin, &variant, &all_given(2), |_| Some(&empty)).unwrap();
    let inputs = [X, Y].map(|place| without_provenance_mut::<c_void>(place).cast_const());
    let outputs = [Y, X].map(without_provenance_mut::<c_void>);
    let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
    assert_eq!(aliases[0].needs_copy(&at), Ok(false));
}

#[test]
fn an_argument_by_the_inputs_name_is_the_outputs_address() {
    let (mock, kernel) = device((8, 6));
    let (mut plan, variant) = variant(vec![of_three(|_| {})]);
    let passed = |plan: &(Plugin, Variant)| {
        mock.change(|_| {});
        let records = records(plan, &kernel, 5).unwrap();
        enqueue(&mock, &records).unwrap();
        let launched = mock.launched().pop().unwrap();
        launched
            .args
            .iter()
            .filter_map(|arg| Some(usize::from_le_bytes(arg.as_slice().try_into().ok()?)))
            .collect::<Vec<_>>()
    };
    let apart = (plan.clone(), variant.clone());
    assert!(passed(&apart).contains(&X));
    plan.outputs[0].alias = Some(0);
    let found = passed(&(plan, variant));
    assert!(found.contains(&Y) && !found.contains(&X), "{found:x?}");
}
