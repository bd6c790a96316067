use cubinder_expr::DataType;
use cubinder_node::trial::Tolerance;

use super::compare::verdict;
use super::*;

fn floats(shape: &[i64], numbers: &[f64]) -> Array {
    Array::of_numbers(DataType::F32, shape.to_vec(), numbers.iter().copied().map(Number::Float)).unwrap()
}

#[test]
fn percentiles_are_times_of_runs() {
    assert_eq!(Times::of(vec![]), None);
    assert_eq!(Times::of(vec![3.0]), Some(Times { median: 3.0, p99: 3.0, least: 3.0 }));
    let hundred = (1..=100).rev().map(f64::from).collect();
    assert_eq!(Times::of(hundred), Some(Times { median: 50.0, p99: 99.0, least: 1.0 }));
}

#[test]
fn a_summary_leaves_nan_out() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let some = Summary::of(&floats(&[4], &[2.0, nan, -1.0, 5.0]));
    let number = |value| Some(Number::Float(value));
    assert_eq!(some, Summary { least: number(-1.0), most: number(5.0), mean: number(2.0), nan: 1 });
    assert_eq!(Summary::of(&floats(&[2], &[inf, 0.0])).mean, number(inf));
    for (array, nan) in [(floats(&[0], &[]), 0), (floats(&[2], &[nan, nan]), 2)] {
        assert_eq!(Summary::of(&array), Summary { least: None, most: None, mean: None, nan });
    }
}

#[test]
fn outputs_are_compared_with_a_tolerance() {
    let tolerance = Tolerance { atol: 0.5, rtol: 0.0 };
    let expected = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let judge = |numbers: &[f64]| verdict(&floats(&[2, 2], numbers), &expected, tolerance);
    assert_eq!(judge(&[1.0, 2.0, 3.0, 4.0]), Verdict::Equal);
    assert_eq!(judge(&[1.0, 2.25, 3.0, 3.5]), Verdict::Close(0.5));
    let index = |verdict| match verdict {
        Verdict::Wrong(mismatch) => (mismatch.count, mismatch.worst.index),
        other => panic!("{other:?}"),
    };
    assert_eq!(index(judge(&[2.0, 2.5, 3.0, 9.0])), (2, vec![1, 1]));
    assert_eq!(index(judge(&[2.0, f64::NAN, 3.0, 9.0])), (3, vec![0, 1]));
    let row = floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(verdict(&row, &expected, tolerance), Verdict::Shape(vec![1, 4], vec![2, 2]));
}
