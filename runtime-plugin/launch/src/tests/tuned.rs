use proptest::prelude::*;

use super::*;
use cubinder_model::model::{TunedDevice, TunedPoint};

const DEVICE: Device = Device { sms: 132, shared_bytes: 232_448, capability: 90 };

fn point(shape: &[i64], k: Option<i64>, ranking: &[u32]) -> TunedPoint {
    let attributes = k.map(|k| (0, Value::Int(k))).into_iter().collect();
    TunedPoint { attributes, shapes: vec![shape.to_vec(); 2], ranking: ranking.to_vec() }
}

fn tuned(capability: u16, sms: u32, points: Vec<TunedPoint>) -> TunedDevice {
    TunedDevice { name: String::new(), capability, sms, points }
}

/// Rows 0 to 3 are for `f32`: the first needs a multiple of 4 and an address, the third of 8; the last is for `f16`.
fn measured(points: Vec<TunedPoint>) -> Plugin {
    let rows = vec![
        variant(1, DataType::F32, Some(vectorised(4))),
        variant(2, DataType::F32, None),
        variant(3, DataType::F32, Some(vectorised(8))),
        variant(4, DataType::F32, None),
        variant(1, DataType::F16, None),
    ];
    Plugin { variants: rows, tuning: vec![tuned(80, 108, Vec::new()), tuned(90, 132, points)], ..plugin() }
}

fn order(plugin: &Plugin, shape: &[i64], device: Option<Device>, tactic: i32) -> Vec<usize> {
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[shape, shape], device, ..Facts::default() };
    in_order(plugin, &linear(&[DataType::F32; 2]), tactic, &facts).unwrap()
}

#[test]
fn the_nearest_point_says_the_order() {
    let plugin = measured(vec![
        point(&[1, 16], None, &[1, 3, 0, 2]),
        point(&[64, 16], None, &[3, 0, 1, 2]),
        point(&[8, 8, 8], None, &[2, 0, 1, 3]),
        point(&[1, 16], None, &[4]),
    ]);
    let of = |shape: &[i64]| order(&plugin, shape, Some(DEVICE), AUTO_TACTIC);
    assert_eq!(of(&[1, 16]), [1, 3, 0, 2]);
    assert_eq!(of(&[64, 16]), [3, 0, 1, 2]);
    assert_eq!(of(&[1000, 1]), [3, 0, 1, 2]);
    assert_eq!(of(&[0, 0]), [1, 3, 0, 2]);
    assert_eq!(of(&[i64::MAX, i64::MAX]), [3, 0, 1, 2]);
    // 9 is 4.5 times 2, and 65 is 7.2 times 9.
    assert_eq!(of(&[8, 16]), [1, 3, 0, 2]);
    assert_eq!(of(&[16]), [0, 1, 2, 3], "no point has this rank");
    assert_eq!(order(&plugin, &[64, 16], Some(DEVICE), 0), [3, 0, 1, 2]);
    assert_eq!(order(&plugin, &[64, 16], Some(DEVICE), 3), [2, 3, 0, 1], "a tactic keeps its place");
    for other in [
        None,
        Some(Device { sms: 114, ..DEVICE }),
        Some(Device { capability: 89, ..DEVICE }),
        Some(Device { sms: 108, capability: 80, ..DEVICE }),
    ] {
        assert_eq!(order(&plugin, &[64, 16], other, AUTO_TACTIC), [0, 1, 2, 3], "{other:?}");
    }
    let unknown = Facts { shapes: &[&[1, 16]], device: Some(DEVICE), ..Facts::default() };
    let node = linear(&[DataType::F32; 2]);
    assert_eq!(in_order(&plugin, &node, 0, &unknown), Ok(vec![0, 1, 2, 3]), "a shape is not known");
}

#[test]
fn what_was_not_measured_keeps_its_place_before_what_comes_after_it() {
    let of = |ranking: &[u32]| order(&measured(vec![point(&[7], None, ranking)]), &[8], Some(DEVICE), 0);
    assert_eq!(of(&[3]), [0, 1, 2, 3], "the last resort alone ran");
    assert_eq!(of(&[1, 0]), [1, 0, 2, 3]);
    assert_eq!(of(&[3, 1]), [0, 2, 3, 1]);
    assert_eq!(of(&[3, 2, 1, 0]), [3, 2, 1, 0]);
    assert_eq!(of(&[2, 3]), [0, 1, 2, 3]);
}

#[test]
fn of_points_as_near_the_first_decides_and_equal_attributes_before_nearness() {
    let of = |points: &[TunedPoint]| order(&measured(points.to_vec()), &[7], Some(DEVICE), AUTO_TACTIC)[0];
    let (below, above) = (point(&[3], None, &[3, 0, 1, 2]), point(&[15], None, &[1, 0]));
    assert_eq!(of(&[below.clone(), above.clone()]), 3);
    assert_eq!(of(&[above.clone(), below.clone()]), 1);
    let far = point(&[100_000], Some(1), &[2, 0, 1]);
    let other = point(&[7], Some(2), &[1, 0]);
    assert_eq!(of(&[other.clone(), far.clone()]), 2, "its attribute is the node's");
    assert_eq!(of(&[other, point(&[9], Some(3), &[3, 0, 1, 2])]), 1, "none is");
    assert_eq!(of(&[point(&[7], Some(1), &[1, 0]), below]), 1);
}

#[test]
fn a_point_with_the_nodes_attributes_is_not_replaced_by_a_nearer_one_with_others() {
    let of = |points: &[TunedPoint]| order(&measured(points.to_vec()), &[7], Some(DEVICE), AUTO_TACTIC)[0];
    let own = point(&[100_000], Some(1), &[2, 0, 1]);
    let other = point(&[7], Some(2), &[1, 0]);
    assert_eq!(of(&[own.clone(), other.clone()]), 2);
    assert_eq!(of(&[other.clone(), own.clone(), other]), 2);
    assert_eq!(
        of(&[own, point(&[7], None, &[3, 0, 1, 2])]),
        3,
        "one that is for any attribute is the node's"
    );
}

#[test]
fn a_point_for_other_nodes_decides_nothing() {
    // The first row of `far` is for f16.
    let (others, far) = (point(&[7], None, &[4, 1]), point(&[100], None, &[3, 0, 1, 2]));
    for points in [vec![others.clone(), far.clone()], vec![far, others]] {
        assert_eq!(order(&measured(points), &[7], Some(DEVICE), AUTO_TACTIC), [3, 0, 1, 2]);
    }
}

#[test]
fn the_tensors_distances_are_multiplied() {
    let with = |input: i64, output: i64, ranking: &[u32]| TunedPoint {
        shapes: vec![vec![input - 1], vec![output - 1]],
        ..point(&[], None, ranking)
    };
    let (six, five) = (with(20, 30, &[1, 0]), with(50, 10, &[3, 0, 1, 2]));
    for points in [vec![six.clone(), five.clone()], vec![five, six]] {
        assert_eq!(order(&measured(points), &[9], Some(DEVICE), AUTO_TACTIC)[0], 3);
    }
}

#[test]
fn what_depends_on_data_and_shape_inputs_are_not_compared() {
    let mut plugin = measured(vec![point(&[5, 9], None, &[3, 0, 1, 2]), point(&[5, 8], None, &[1, 0])]);
    plugin.tuning[1].points[0].shapes[1] = vec![-1];
    plugin.tuning[1].points[1].shapes[1] = vec![-1];
    let of = |plugin: &Plugin, output: &[i64]| {
        let facts = Facts { shapes: &[&[5, 8], output], device: Some(DEVICE), ..Facts::default() };
        in_order(plugin, &linear(&[DataType::F32; 2]), 0, &facts).unwrap()[0]
    };
    assert_eq!(of(&plugin, &[7]), 1, "an unknown dimension is ignored");
    assert_eq!(of(&plugin, &[7, 7]), 0, "another rank");
    plugin.inputs[0].values = Some(Interval::ANY_SIZE);
    assert_eq!(of(&plugin, &[7]), 3, "nothing remains to compare, so the first decides");
}

/// Is true for an odd number of 16 aligned addresses.
fn odd() -> Guard {
    let mut nodes = vec![Node::Aligned { tensor: 0, bytes: 2 }];
    for index in 1..16 {
        nodes.push(Node::Aligned { tensor: index, bytes: 2 });
        let last = u32::try_from(nodes.len()).unwrap() - 1;
        nodes.push(Node::Binary(BinaryOp::Ne, last - 1, last));
    }
    Guard { expr: Expr { nodes }, text: "odd".to_owned() }
}

#[test]
fn a_node_that_runs_in_the_order_of_the_manifest_runs_in_that_of_times() {
    let mut plugin = measured(vec![point(&[4], None, &(1..64).rev().collect::<Vec<u32>>())]);
    let rows = (1..64).map(|id| variant(id, DataType::F32, Some(odd())));
    plugin.variants = [variant(100, DataType::F32, None)].into_iter().chain(rows).collect();
    let facts = Facts { attributes: &[Value::Int(1)], shapes: &[&[4], &[4]], ..Facts::default() };
    let decided = |device: Option<Device>, tactic: i32| {
        let facts = Facts { device, ..facts };
        let order = in_order(&plugin, &linear(&[DataType::F32; 2]), tactic, &facts).unwrap();
        decide(&plugin, &order, tactic, &facts, &mut Steps::default())
    };
    let by_manifest = decided(None, AUTO_TACTIC).unwrap();
    assert_eq!(by_manifest.candidates, [0]);
    assert_eq!(decided(Some(DEVICE), AUTO_TACTIC), Ok(by_manifest.clone()));
    assert_eq!(decided(Some(DEVICE), 0), Ok(by_manifest));
    // The caller chose the variant.
    let error = decided(Some(DEVICE), 1).unwrap_err().to_string();
    assert!(error.contains("in more than 2048 combinations"), "{error}");
    plugin.variants.rotate_left(1);
    let order: Vec<usize> = (0..64).collect();
    assert!(decide(&plugin, &order, AUTO_TACTIC, &facts, &mut Steps::default()).is_err());
}

#[test]
fn a_search_compares_no_row_more_than_once() {
    let text = |last: char| Value::Str(format!("{}{last}", "a".repeat(16 << 20)));
    let mut plugin = measured((0..4096).map(|row| point(&[5], None, &[row % 2])).collect());
    plugin.variants.truncate(2);
    for (variant, last) in plugin.variants.iter_mut().zip(['b', 'c']) {
        variant.types = vec![DataType::F32; 2];
        variant.specialized = vec![(0, text(last))];
    }
    let attributes = [text('c')];
    let node = Signature { attributes: &attributes, ..linear(&[DataType::F32; 2]) };
    let facts =
        Facts { attributes: &attributes, shapes: &[&[5], &[5]], device: Some(DEVICE), ..Facts::default() };
    let start = std::time::Instant::now();
    assert_eq!(in_order(&plugin, &node, AUTO_TACTIC, &facts), Ok(vec![1]));
    // Comparing every row takes seconds.
    assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn what_is_left_out_of_the_table_is_left_out_of_the_measurements() {
    let mut plugin = measured(vec![point(&[1], None, &[3, 1]), point(&[2], None, &[4])]);
    plugin.keep_variants(|variant| variant.id != 3 && variant.types[0] == DataType::F32);
    assert_eq!(plugin.variants.len(), 3);
    assert_eq!(plugin.tuning, [tuned(90, 132, vec![point(&[1], None, &[2, 1])])]);
    let mut plugin = measured(vec![point(&[1], None, &[3, 1]), point(&[2], None, &[4])]);
    plugin.keep_row(Some(4)).unwrap();
    assert_eq!(plugin.tuning, [tuned(90, 132, vec![point(&[2], None, &[0])])]);
}

fn rankings() -> impl Strategy<Value = Vec<u32>> {
    Just(vec![0, 1, 2, 3])
        .prop_shuffle()
        .prop_flat_map(|rows| (1..=4_usize).prop_map(move |most| rows[..most].to_vec()))
}

fn shapes() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(prop_oneof![0..9_i64, 0..=i64::MAX], 1..=2)
}

prop_compose! {
    fn points()(shape in shapes(), k in proptest::option::of(0..3_i64), ranking in rankings()) -> TunedPoint {
        point(&shape, k, &ranking)
    }
}

/// By differences of logarithms.
fn logarithms(one: &[i64], other: &[i64]) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let log = |extent: &i64| (*extent as f64 + 1.0).log2();
    2.0 * one.iter().zip(other).map(|(one, other)| (log(one) - log(other)).abs()).sum::<f64>()
}

fn place(row: usize, ranking: &[u32]) -> (usize, bool, usize) {
    match ranking.iter().position(|ranked| *ranked as usize == row) {
        Some(rank) => (rank, true, row),
        None => (ranking.iter().position(|ranked| *ranked as usize > row).unwrap_or(usize::MAX), false, row),
    }
}

proptest! {
    #[test]
    fn what_runs_may_run_and_is_the_fastest_that_may(
        points in proptest::collection::vec(points(), 0..6),
        shape in shapes(),
        aligned in any::<bool>(),
        ranking in rankings(),
    ) {
        let alignments = if aligned { [256, 256] } else { [8, 8] };
        let run = |plugin: &Plugin| {
            let facts = Facts {
                attributes: &[Value::Int(1)], shapes: &[&shape, &shape], device: Some(DEVICE), ..Facts::default()
            };
            let node = linear(&[DataType::F32; 2]);
            let order = in_order(plugin, &node, AUTO_TACTIC, &facts).unwrap();
            let decided = decide(plugin, &order, AUTO_TACTIC, &facts, &mut Steps::default()).unwrap();
            let runs = decided.pick(|tensor| alignments.get(tensor).copied()).unwrap();
            let all = Facts { alignments: &alignments, ..facts };
            let holds = |row: usize| {
                let guard = plugin.variants[row].guard.as_ref();
                verdict(guard, &all, &mut Steps::default()) == GuardVerdict::Holds
            };
            assert!(holds(runs), "row {runs}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3], "each once");
            let best = |ranking: &[u32]| {
                let mut rows: Vec<usize> = (0..4).collect();
                rows.sort_by_key(|row| place(*row, ranking));
                rows.into_iter().find(|row| holds(*row)).unwrap()
            };
            let found = nearest_point(plugin, &node, &serving(plugin, &node), &facts).cloned();
            assert_eq!(runs, best(found.as_ref().map_or(&[], |point| &point.ranking)));
            (found, best(&ranking), runs)
        };
        let here = point(&shape, Some(1), &ranking);
        let mut with = points.clone();
        with.retain(|point| point.shapes != here.shapes);
        with.push(here.clone());
        let (found, best, runs) = run(&measured(with));
        prop_assert_eq!(found, Some(here));
        prop_assert_eq!(runs, best);
        let (found, _, runs) = run(&measured(Vec::new()));
        prop_assert_eq!(found, None);
        prop_assert_eq!(runs, run(&Plugin { tuning: Vec::new(), ..measured(points.clone()) }).2);
        let (found, ..) = run(&measured(points.clone()));
        let suits = |point: &&TunedPoint| point.shapes[0].len() == shape.len();
        prop_assert_eq!(found.is_some(), points.iter().any(|point| suits(&point)));
        let Some(found) = found else { return Ok(()) };
        let is_other = |point: &TunedPoint| point.attributes.iter().any(|(_, k)| *k != Value::Int(1));
        for other in points.iter().filter(suits) {
            let nearer = logarithms(&found.shapes[0], &shape) <= logarithms(&other.shapes[0], &shape) + 1e-9;
            prop_assert!((is_other(&found), !nearer) <= (is_other(other), false));
        }
    }
}
