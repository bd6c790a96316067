use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};

use crate::support::{Device, Launched, Mock, cubin};
use crate::the_plugin::{
    I32, Shapes, all_given, array, float, int, ints, launch, numel, plugin, scalar, shape, share, tensor,
};
use cubinder::code::{Candidate, CodeTable, LoadedKernel, Loading};
use cubinder::driver::sys::CUstream;
use cubinder::launch::{Addresses, EnqueueError, LaunchError, LaunchRecord, MAX_ARGUMENTS, Positions, takes};
use cubinder_expr::ScalarType;
use cubinder_expr::{Environment, Expr, Node};
use cubinder_launch as launch;
use cubinder_launch::{EvaluatedArgument, EvaluatedLaunch, EvaluatedStep, LaunchLimits, Steps};
use cubinder_model::{Arg, CodeBytes, Digest, Launch, Step, Variant};
use proptest::prelude::*;

/// Loads a kernel with at most 512 threads, 100352 shared bytes.
fn kernel(params: Vec<usize>) -> (Mock, LoadedKernel) {
    let mock = Mock::new(Device { params, ..Device::default() });
    let bytes = cubin("sm_86");
    let target = "sm_86".parse().unwrap();
    let (digest, bytes) = (Digest::compute(&bytes), CodeBytes::from(bytes));
    let candidate = Candidate { target, digest, bytes: &bytes, symbol: "kernel", facts: None };
    match CodeTable::new().load(&mock.driver, "circ_pad<float, 4>", &[candidate]) {
        Ok(Loading::Loaded(kernel)) => (mock, kernel),
        other => panic!("{other:?}"),
    }
}

fn shapes() -> Shapes {
    Shapes(vec![vec![10, 3, 32, 32], vec![10, 3, 34, 34]])
}

fn prepared(
    launch: &Launch,
    kernel: &LoadedKernel,
    shapes: &dyn Environment,
) -> Result<LaunchRecord, Box<LaunchError>> {
    let numbers = evaluated(launch, &takes(kernel), shapes)?;
    Ok(LaunchRecord::new(&plugin(), launch, kernel, &numbers, &[], &all_given(1)).unwrap())
}

fn evaluated(
    launch: &Launch,
    takes: &LaunchLimits<'_>,
    shapes: &dyn Environment,
) -> Result<EvaluatedLaunch, Box<LaunchError>> {
    let plugin = plugin();
    let steps = vec![Step::launch(launch.clone())];
    let variant = Variant { steps, ..plugin.variants[0].clone() };
    let found = launch::sequence(&plugin, &variant, |_| *takes, shapes, &mut Steps::default())?;
    match found.steps.into_iter().next() {
        Some(EvaluatedStep::Launch(numbers)) => Ok(numbers),
        other => panic!("{other:?}"),
    }
}

fn evaluate(change: impl FnOnce(&mut Launch), params: Vec<usize>) -> Result<LaunchRecord, Box<LaunchError>> {
    let (_mock, kernel) = kernel(params);
    let mut launch = launch();
    change(&mut launch);
    prepared(&launch, &kernel, &shapes())
}

fn enqueue(mock: &Mock, record: &LaunchRecord) -> Result<(), EnqueueError> {
    let inputs: [*const c_void; 1] = [without_provenance_mut::<c_void>(0x1111_2222_3333_4400).cast_const()];
    let outputs: [*mut c_void; 1] = [without_provenance_mut(0x5555_6666_7777_8800)];
    let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: without_provenance_mut(0x9999_0000) };
    // SAFETY: the mock accesses no tensor.
    unsafe { record.enqueue(&mock.driver, &at, CUstream::from_raw(without_provenance_mut(0x42))) }
}

#[test]
fn the_kernel_sees_every_argument_as_it_is() {
    let args: Vec<Arg> = vec![
        scalar(
            "flag",
            ScalarType::Bool,
            cubinder_expr::Expr { nodes: vec![cubinder_expr::Node::Bool(true)] },
        ),
        tensor("y", 1),
        scalar("count", I32, numel(1)),
        scalar("tiny", ScalarType::Int { bytes: 1 }, int(-128)),
        array("in_shape", ScalarType::Int { bytes: 8 }, 4, shape(0)),
        scalar("scale", ScalarType::F32, float(0.1)),
        tensor("x", 0),
        scalar("wide", ScalarType::UInt { bytes: 8 }, int(i64::MAX)),
        array("pads", ScalarType::Int { bytes: 2 }, 3, ints(&[1, -2, 3])),
        array("none", I32, 0, ints(&[])),
        scalar("precise", ScalarType::F64, float(0.1)),
    ];
    let (mock, kernel) = kernel(vec![1, 8, 4, 1, 32, 4, 8, 8, 6, 1, 8]);
    let launch = Launch {
        grid: [numel(1), int(65535), int(2)],
        block: [int(64), int(2), int(4)],
        shared_bytes: int(100_352),
        args,
        ..launch()
    };
    let record = prepared(&launch, &kernel, &shapes()).unwrap();
    assert_eq!(
        (record.description().configuration.grid, record.description().configuration.block),
        ([34680, 65535, 2], [64, 2, 4])
    );
    assert_eq!(record.description().configuration.shared_bytes, 100_352);
    // Records have no pointers to themselves.
    let record = Box::new(record.clone());
    enqueue(&mock, &record).unwrap();
    let expected: Vec<Vec<u8>> = vec![
        vec![1],
        0x5555_6666_7777_8800_u64.to_le_bytes().to_vec(),
        34680_i32.to_le_bytes().to_vec(),
        vec![0x80],
        [10_i64, 3, 32, 32].iter().flat_map(|extent| extent.to_le_bytes()).collect(),
        0.1_f32.to_le_bytes().to_vec(),
        0x1111_2222_3333_4400_u64.to_le_bytes().to_vec(),
        i64::MAX.to_le_bytes().to_vec(),
        [1_i16, -2, 3].iter().flat_map(|pad| pad.to_le_bytes()).collect(),
        vec![0],
        0.1_f64.to_le_bytes().to_vec(),
    ];
    let launched = Launched {
        kernel: kernel.handle.as_raw() as usize,
        grid: [34680, 65535, 2],
        block: [64, 2, 4],
        shared_bytes: 100_352,
        stream: 0x42,
        args: expected,
    };
    assert_eq!(mock.launched(), [launched]);
}

#[test]
fn sixteen_threads_may_launch_one_record() {
    let (mock, kernel) = kernel(vec![8, 8, 4]);
    let record = prepared(&launch(), &kernel, &shapes()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16_usize {
            let (mock, record) = (&mock, &record);
            scope.spawn(move || {
                for round in 1..=20_usize {
                    let address = thread << 32 | round << 8;
                    let inputs = [without_provenance_mut::<c_void>(address).cast_const()];
                    let outputs = [without_provenance_mut::<c_void>(address + 1)];
                    let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: null_mut() };
                    // SAFETY: the mock accesses no tensor.
                    unsafe { record.enqueue(&mock.driver, &at, CUstream::NULL) }.unwrap();
                }
            });
        }
    });
    let launched = mock.launched();
    assert_eq!(launched.len(), 320);
    for one in launched {
        let address = |index: usize| u64::from_le_bytes(one.args[index].clone().try_into().unwrap());
        assert_eq!(address(1), address(0) + 1);
    }
}

#[test]
fn an_empty_grid_launches_nothing_and_asks_for_nothing_else() {
    let (mock, kernel) = kernel(vec![8, 8, 4]);
    let empty = Shapes(vec![vec![0, 3], vec![0, 3]]);
    for zero in 0..3 {
        let mut launch = launch();
        launch.grid = [share(0), share(0), share(0)];
        launch.grid[zero] = numel(0);
        launch.block = [int(-1), share(0), int(1)];
        launch.args.push(scalar("share", I32, share(0)));
        let record = prepared(&launch, &kernel, &empty).unwrap();
        assert!(record.is_empty());
        enqueue(&mock, &record).unwrap();
    }
    assert!(mock.launched().is_empty());
}

#[test]
fn limits_are_met_exactly() {
    let exact = |change: fn(&mut Launch)| evaluate(change, vec![8, 8, 4]).unwrap();
    exact(|launch| launch.grid = [int(2_147_483_647), int(65535), int(65535)]);
    exact(|launch| launch.block = [int(512), int(1), int(1)]);
    exact(|launch| launch.block = [int(1), int(8), int(64)]);
    exact(|launch| launch.shared_bytes = int(100_352));
    exact(|launch| launch.args[2] = scalar("count", I32, int(2_147_483_647)));
    exact(|launch| launch.args[2] = scalar("count", I32, int(-2_147_483_648)));
    // 16 bytes of pointers, 32744 of an array.
    let most = vec![7; 4093];
    evaluate(
        |launch| launch.args[2] = array("table", ScalarType::Int { bytes: 8 }, 4093, ints(&most)),
        vec![8, 8, 32744],
    )
    .unwrap();
    let arguments = |count: usize| {
        evaluate(
            |launch| {
                launch.args = (0..count).map(|index| scalar(&format!("a{index}"), I32, int(1))).collect();
            },
            vec![4; count],
        )
    };
    arguments(MAX_ARGUMENTS).unwrap();
    arguments(MAX_ARGUMENTS + 1).unwrap_err();
}

#[test]
fn what_cuda_does_not_take_is_said() {
    let one_over = vec![7; 4094];
    let mut report = String::new();
    let mut refused = |change: &dyn Fn(&mut Launch), params: &[usize]| {
        let error = evaluate(|launch| change(launch), params.to_vec()).unwrap_err();
        report.push_str(
            &error.to_string().replace("\n  x: [10, 3, 32, 32]\n  y: [10, 3, 34, 34]", " (shapes)"),
        );
        report.push_str("\n\n");
    };
    let usual = [8, 8, 4];
    refused(&|launch| launch.grid[0] = int(2_147_483_648), &usual);
    refused(&|launch| launch.grid[1] = int(65536), &usual);
    refused(&|launch| launch.grid[2] = int(i64::MAX), &usual);
    refused(&|launch| launch.grid[0] = int(-1), &usual);
    refused(&|launch| launch.grid[0] = float(1.5), &usual);
    refused(&|launch| launch.grid[0] = numel(7), &usual);
    refused(&|launch| launch.block[0] = int(0), &usual);
    refused(&|launch| launch.block[0] = int(1025), &usual);
    refused(&|launch| launch.block[2] = int(65), &usual);
    refused(&|launch| launch.block = [int(1024), int(1024), int(64)], &usual);
    refused(&|launch| launch.block = [int(513), int(1), int(1)], &usual);
    refused(&|launch| launch.shared_bytes = int(-1), &usual);
    refused(&|launch| launch.shared_bytes = int(2_147_483_648), &usual);
    refused(&|launch| launch.shared_bytes = int(100_353), &usual);
    refused(&|launch| launch.args[2] = scalar("count", I32, int(2_147_483_648)), &usual);
    refused(&|launch| launch.args[2] = scalar("count", ScalarType::UInt { bytes: 1 }, int(-1)), &usual);
    refused(&|launch| launch.args[2] = scalar("count", I32, float(1.0)), &usual);
    refused(&|launch| launch.args[2] = scalar("scale", ScalarType::F32, float(1e39)), &usual);
    refused(&|launch| launch.args[2] = scalar("scale", ScalarType::F32, shape(0)), &usual);
    refused(&|launch| launch.args[2] = array("in_shape", I32, 8, shape(0)), &usual);
    refused(&|launch| launch.args[2] = array("in_shape", I32, 8, int(1)), &usual);
    refused(&|launch| launch.args[2] = array("table", I32, 2, ints(&[1, i64::MAX])), &usual);
    refused(
        &|launch| launch.args[2] = array("table", ScalarType::Int { bytes: 8 }, 4094, ints(&one_over)),
        &[8, 8, 32752],
    );
    refused(&|launch| launch.args[2] = tensor("z", 2), &usual);
    refused(&|_| {}, &[8, 8]);
    refused(&|_| {}, &[8, 8, 8]);
    refused(
        &|launch| launch.args = (0..513).map(|index| scalar(&format!("a{index}"), I32, int(1))).collect(),
        &usual,
    );
    insta::assert_snapshot!("refused_launches", report);
}

#[test]
fn errors_show_the_shapes() {
    let (_mock, kernel) = kernel(vec![8, 8, 4]);
    let huge = Shapes(vec![vec![65536, 32768]]);
    let mut launch = launch();
    launch.args[2] = scalar("count", I32, numel(0));
    let error = prepared(&launch, &kernel, &huge).unwrap_err();
    insta::assert_snapshot!("count_overflows", error.to_string());
}

#[test]
fn a_refused_launch_names_its_numbers_and_limits() {
    let (mock, kernel) = kernel(vec![8, 8, 4]);
    let record = prepared(&launch(), &kernel, &shapes()).unwrap();
    let mut report = String::new();
    for code in [701, 719] {
        mock.change(|device| device.refuses = vec![("cuLaunchKernel", "*", code)]);
        report.push_str(&told(&enqueue(&mock, &record).unwrap_err()));
        report.push_str("\n\n");
    }
    let at = Addresses { inputs: &[], outputs: &[], workspace: null_mut() };
    // SAFETY: nothing is launched.
    let error = unsafe { record.enqueue(&mock.driver, &at, CUstream::NULL) }.unwrap_err();
    report.push_str(&told(&error));
    insta::assert_snapshot!("refused_by_the_driver", report);
}

fn number() -> impl Strategy<Value = (ScalarType, Expr, usize)> {
    let types = [
        (ScalarType::Bool, 1),
        (ScalarType::Int { bytes: 1 }, 1),
        (ScalarType::UInt { bytes: 2 }, 2),
        (ScalarType::Int { bytes: 4 }, 4),
        (ScalarType::UInt { bytes: 8 }, 8),
        (ScalarType::F32, 4),
        (ScalarType::F64, 8),
    ];
    (0..types.len(), -2_i64..200).prop_map(move |(index, value)| {
        let (ty, bytes) = types[index];
        let value = match ty {
            ScalarType::Bool => Node::Bool(value % 2 == 0),
            ScalarType::F32 | ScalarType::F64 => Node::Float(value as f64 / 4.0),
            _ => Node::Int(value),
        };
        (ty, Expr { nodes: vec![value] }, bytes)
    })
}

proptest! {
    #[test]
    fn the_kernel_sees_what_was_evaluated(
        numbers in prop::collection::vec((number(), 0_usize..4, any::<bool>()), 0..12),
        grid in -1_i64..4,
        block in 0_i64..600,
        shared in -1_i64..200_000,
    ) {
        let (mut args, mut sizes) = (vec![tensor("y", 1)], vec![8]);
        for (index, ((ty, expr, bytes), len, is_array)) in numbers.into_iter().enumerate() {
            let name = format!("a{index}");
            if is_array {
                let nodes = vec![expr.nodes[0].clone(); len];
                let items = (0..len as u32).collect();
                let nodes = nodes.into_iter().chain([Node::Array(items)]).collect();
                args.push(array(&name, ty, len as u32, Expr { nodes }));
                sizes.push((len * bytes).max(1));
            } else {
                args.push(scalar(&name, ty, expr));
                sizes.push(bytes);
            }
            args.push(tensor("x", 0));
            sizes.push(8);
        }
        let wanted = Launch {
            grid: [int(grid), int(2), int(1)],
            block: [int(block), int(1), int(1)],
            shared_bytes: int(shared),
            args,
            ..launch()
        };
        let (mock, kernel) = kernel(sizes.clone());
        let takes = LaunchLimits {
            max_threads: kernel.limits.max_threads,
            max_shared_bytes: kernel.limits.max_shared_bytes,
            ..LaunchLimits::ANYTHING
        };
        let shown = evaluated(&wanted, &takes, &shapes());
        let record = prepared(&wanted, &kernel, &shapes());
        prop_assert_eq!(shown.as_ref().err(), record.as_ref().err());
        let (Ok(shown), Ok(record)) = (shown, record) else { return Ok(()) };
        enqueue(&mock, &record).unwrap();
        let launched = mock.launched();
        prop_assert_eq!(launched.is_empty(), shown.is_empty());
        let Some(launched) = launched.first() else { return Ok(()) };
        prop_assert_eq!(
            (launched.grid, launched.block, launched.shared_bytes),
            (shown.grid, shown.block, shown.shared_bytes)
        );
        for ((passed, size), seen) in shown.args.iter().zip(&sizes).zip(&launched.args) {
            let expected = match *passed {
                EvaluatedArgument::Input(0) => 0x1111_2222_3333_4400_u64.to_le_bytes().to_vec(),
                EvaluatedArgument::Output(0) => 0x5555_6666_7777_8800_u64.to_le_bytes().to_vec(),
                EvaluatedArgument::Numbers { start, .. } => shown.numbers[start..start + size].to_vec(),
                ref other => panic!("{other:?}"),
            };
            prop_assert_eq!(seen, &expected);
        }
    }
}

fn told(error: &EnqueueError) -> String {
    format!("{error}\n{}", error.help().unwrap_or_default())
}

#[test]
fn a_record_says_what_it_launches() {
    let told = |change: &dyn Fn(&mut Launch)| {
        let record = evaluate(change, vec![8, 8, 4]).unwrap();
        assert_eq!(&*record.description().kernel, "circ_pad<float, 4>");
        let text = record.to_string();
        let (begin, rest) = text.split_once(" (").unwrap();
        assert_eq!(begin, "launch `circ_pad<float, 4>` from the code for sm_86");
        let (digest, rest) = rest.split_once(") with ").unwrap();
        assert_eq!(digest, Digest::compute(&cubin("sm_86")).short());
        ((record.description().cluster, record.description().cooperative), rest.to_owned())
    };
    let plain = "grid [1, 1, 1], block [256, 1, 1]";
    assert_eq!(told(&|_| {}), ((None, false), plain.to_owned()));
    let shared = format!("{plain}, 64 bytes of dynamic shared memory");
    assert_eq!(told(&|launch| launch.shared_bytes = int(64)), ((None, false), shared));
    assert_eq!(told(&|launch| launch.cooperative = true), ((None, true), format!("{plain}, cooperative")));
}

#[test]
fn positions_are_those_that_are_given() {
    let positions = Positions::new(vec![Some(1), None, Some(0), Some(2)], 2);
    assert_eq!(positions.given(), 2);
    assert_eq!([0, 1, 2, 3, 4].map(|input| positions.position(input)), [Some(1), None, Some(0), None, None]);
    assert_eq!(all_given(3).given(), 3);

    let [first, second, output] = [0x100, 0x200, 0x300].map(without_provenance_mut::<c_void>);
    let inputs = [first.cast_const(), second.cast_const()];
    let at = Addresses { inputs: &inputs, outputs: &[output], workspace: std::ptr::null_mut() };
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|tensor| positions.address(&at, tensor)),
        [Some(0x200), None, Some(0x100), None, Some(0x300), None]
    );
}
