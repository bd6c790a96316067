use super::*;
use cubinder_expr::Environment;
use cubinder_model::cuda_limits::*;
use cubinder_model::model::{MAX_PARAMETER_BYTES, Scratch};

const SHAPES: &[&[i64]] = &[&[1, 1], &[1, 1]];

fn launched(change: impl Fn(&mut Launch), takes: &LaunchLimits<'_>) -> Result<EvaluatedLaunch, String> {
    let plugin = plugin();
    let mut launch = plugin.variants[1].launch(0).unwrap().clone();
    change(&mut launch);
    let facts = Facts { attributes: &[Value::Int(1)], shapes: SHAPES, ..Facts::default() };
    numbers(&plugin, &launch, takes, &facts).map_err(|error| error.to_string())
}

#[test]
fn the_most_of_everything_can_be_launched() {
    let grid = MAX_GRID.map(|most| u32::try_from(most).unwrap());
    let found = launched(|launch| launch.grid = MAX_GRID.map(int), &LaunchLimits::ANYTHING).unwrap();
    assert_eq!(found.grid, grid);
    for axis in 0..3 {
        let beyond = launched(|launch| launch.grid[axis] = int(MAX_GRID[axis] + 1), &LaunchLimits::ANYTHING);
        assert!(beyond.unwrap_err().contains(&format!("the maximum is {}", MAX_GRID[axis])));
        let block = |extent: i64| {
            launched(
                |launch| {
                    launch.block = [int(1), int(1), int(1)];
                    launch.block[axis] = int(extent);
                },
                &LaunchLimits::ANYTHING,
            )
        };
        assert_eq!(i64::from(block(MAX_BLOCK[axis]).unwrap().block[axis]), MAX_BLOCK[axis]);
        assert!(
            block(MAX_BLOCK[axis] + 1).unwrap_err().contains(&format!("the maximum is {}", MAX_BLOCK[axis]))
        );
        assert!(block(0).unwrap_err().contains("is 0, the minimum is 1"));
    }
    let takes = LaunchLimits { max_threads: 256, max_shared_bytes: 64, ..LaunchLimits::ANYTHING };
    assert_eq!(
        launched(|_| {}, &takes).map(|found| (found.block, found.shared_bytes)),
        Ok(([256, 1, 1], 64))
    );
    let error = launched(|launch| launch.shared_bytes = int(65), &takes).unwrap_err();
    assert!(error.contains("is 65, the maximum for this kernel on this GPU is 64"), "{error}");
    let error = launched(|launch| launch.block[1] = int(2), &takes).unwrap_err();
    assert!(error.contains("is 512, the maximum for this kernel on this GPU is 256"), "{error}");
}

#[test]
fn arguments_fill_what_a_kernel_takes() {
    let bytes = |length: i64| {
        let ty = ScalarType::Int { bytes: 4 };
        let expr = Expr { nodes: vec![Node::Int(length), Node::Call(Builtin::Range, vec![0])] };
        let value = ArgValue::Array { ty, len: u32::try_from(length).unwrap(), expr };
        launched(
            move |launch| launch.args = vec![Arg { name: "a".to_owned(), value: value.clone() }],
            &LaunchLimits::ANYTHING,
        )
    };
    let most = i64::try_from(MAX_PARAMETER_BYTES).unwrap();
    assert_eq!(bytes(most / 4).unwrap().numbers.len(), MAX_PARAMETER_BYTES);
    let error = bytes(most / 4 + 1).unwrap_err();
    assert!(error.contains(&format!("is {}, the maximum is {most}", most + 4)), "{error}");
    let two = |launch: &mut Launch| {
        let expr = Expr { nodes: vec![Node::Int(most / 4 - 2), Node::Call(Builtin::Range, vec![0])] };
        let ty = ScalarType::Int { bytes: 4 };
        let value = ArgValue::Array { ty, len: u32::try_from(most / 4 - 2).unwrap(), expr };
        launch.args.insert(0, Arg { name: "a".to_owned(), value });
        launch.args.truncate(2);
    };
    let error = launched(two, &LaunchLimits::ANYTHING).unwrap_err();
    assert!(error.contains(&format!("is {}, the maximum is {most}", most + 4)), "{error}");
}

#[test]
fn only_tensors_that_are_there_are_passed() {
    let with = |value: ArgValue| {
        launched(move |launch| launch.args[0].value = value.clone(), &LaunchLimits::ANYTHING)
    };
    for (tensor, passed) in [(0, EvaluatedArgument::Input(0)), (1, EvaluatedArgument::Output(0))] {
        assert_eq!(with(ArgValue::Tensor(tensor)).unwrap().args[0], passed);
        assert_eq!(with(ArgValue::ReadTensor(tensor)).unwrap().args[0], passed);
    }
    for tensor in [2, u32::MAX] {
        let error = with(ArgValue::Tensor(tensor)).unwrap_err();
        assert!(
            error.contains(&format!("argument `in` is tensor {tensor}, but the plugin has 2")),
            "{error}"
        );
    }
    let error = with(ArgValue::Scratch(0)).unwrap_err();
    assert!(error.contains("is scratch buffer 0, but the variant has 0"), "{error}");
}

#[test]
fn an_empty_array_is_passed_as_one_byte() {
    let empty = Expr { nodes: vec![Node::Array(Vec::new())] };
    let value = ArgValue::Array { ty: ScalarType::F64, len: 0, expr: empty };
    let takes = LaunchLimits { params: Some(&[1]), ..LaunchLimits::ANYTHING };
    let found =
        launched(|launch| launch.args = vec![Arg { name: "a".to_owned(), value: value.clone() }], &takes);
    assert_eq!(found.unwrap().numbers, [0]);
}

#[test]
fn scratch_buffers_are_known_before_the_steps() {
    let plugin = plugin();
    let mut variant = plugin.variants[1].clone();
    variant.scratch = vec![
        Scratch { name: "a".to_owned(), bytes: int(3) },
        Scratch { name: "b".to_owned(), bytes: int(5) },
    ];
    let facts = Facts { attributes: &[Value::Int(1)], shapes: SHAPES, ..Facts::default() };
    let environment: &dyn Environment = &facts;
    let mut steps = Steps::default();
    let mut sequencing = Sequencing::new(&plugin, &variant, environment, &mut steps).unwrap();
    let places = [ScratchRange { offset: 0, bytes: 3 }, ScratchRange { offset: 256, bytes: 5 }];
    assert_eq!(sequencing.scratch(), places);
    let shown = format!("{sequencing:?}");
    assert!(
        shown.starts_with("Sequencing { sequence: Sequence {") && shown.contains("offset: 256"),
        "{shown}"
    );
    let doing = sequencing.step(&LaunchLimits::ANYTHING, &mut steps).unwrap().clone();
    assert!(matches!(&doing, EvaluatedStep::Launch(launch) if launch.grid == [1, 1, 1]));
    assert_eq!(sequencing.step(&LaunchLimits::ANYTHING, &mut steps).unwrap(), &doing);
    assert_eq!(sequencing.finish().unwrap().steps, [doing]);
}
