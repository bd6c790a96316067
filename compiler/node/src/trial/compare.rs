use cubinder_expr::DataType;
use serde::{Deserialize, Serialize};

use super::array::{Array, Number};

/// Tolerance: `atol + rtol * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

impl Tolerance {
    /// Exact equality.
    pub const EXACT: Tolerance = Tolerance { atol: 0.0, rtol: 0.0 };
}

/// Returns zero for integers and booleans, the tolerance of `torch.testing.assert_close` (PyTorch 2) for floats; for
/// E4M3, which PyTorch lacks, one step of the fraction or of subnormals.
#[must_use]
pub fn default_tolerance(ty: DataType) -> Tolerance {
    match ty {
        DataType::F32 => Tolerance { atol: 1e-5, rtol: 1.3e-6 },
        DataType::F16 => Tolerance { atol: 1e-5, rtol: 1e-3 },
        DataType::Bf16 => Tolerance { atol: 1e-5, rtol: 1.6e-2 },
        DataType::F8 => Tolerance { atol: 0.001_953_125, rtol: 0.125 },
        _ => Tolerance::EXACT,
    }
}

/// Elements that differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Number of differing elements.
    pub count: usize,
    /// Number of compared elements.
    pub of: usize,
    /// First of them.
    pub first: Vec<Element>,
    /// Element that differs most; NaN and infinity outrank numbers.
    pub worst: Element,
    /// Largest finite difference.
    pub largest: Option<f64>,
}

/// Element that differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// Index per dimension.
    pub index: Vec<i64>,
    /// Found value: `1.5`, `nan`.
    pub found: String,
    /// Expected value.
    pub expected: String,
    /// Difference, if finite.
    pub difference: Option<f64>,
}

const SHOWN: usize = 8;

/// Compares equally typed and shaped tensors, except sorted elements `left_out`. NaN equals NaN.
#[must_use]
pub fn compare(
    found: &Array,
    expected: &Array,
    tolerance: Tolerance,
    left_out: &[usize],
) -> Option<Mismatch> {
    let unlike = found.unlike(expected).into_iter().filter(|at| left_out.binary_search(at).is_err());
    let numbers = unlike.map(|at| (at, found.get(at), expected.get(at)));
    elements(found, numbers.filter(|(_, found, expected)| !is_close(*found, *expected, tolerance)))
}

/// Reports elements: index, found and expected number.
#[must_use]
pub fn elements(array: &Array, all: impl Iterator<Item = (usize, Number, Number)>) -> Option<Mismatch> {
    let element = |(index, found, expected)| Element {
        index: index_of(index, array.shape()),
        found: text(array.ty(), found),
        expected: text(array.ty(), expected),
        difference: difference(found, expected),
    };
    let (mut count, mut first, mut worst, mut largest) = (0, Vec::new(), None, None::<f64>);
    for one in all {
        let difference = difference(one.1, one.2);
        largest = largest.into_iter().chain(difference).reduce(f64::max);
        let distance = difference.unwrap_or(f64::INFINITY);
        if worst.is_none_or(|(_, most)| distance > most) {
            worst = Some((one, distance));
        }
        if first.len() < SHOWN {
            first.push(element(one));
        }
        count += 1;
    }
    worst.map(|(worst, _)| Mismatch { count, of: array.len(), first, worst: element(worst), largest })
}

fn text(ty: DataType, number: Number) -> String {
    match (ty, number) {
        (DataType::F32 | DataType::F16 | DataType::Bf16 | DataType::F8, Number::Float(value))
            if !value.is_nan() =>
        {
            #[allow(clippy::cast_possible_truncation)] // exact
            let narrow = value as f32;
            format!("{narrow:?}")
        }
        (_, number) => number.to_string(),
    }
}

/// Converts a row-major element number to an index.
#[must_use]
pub fn index_of(number: usize, shape: &[i64]) -> Vec<i64> {
    let mut rest = i64::try_from(number).unwrap_or(i64::MAX);
    let mut index = vec![0; shape.len()];
    for (at, extent) in index.iter_mut().zip(shape).rev() {
        let extent = (*extent).max(1);
        *at = rest % extent;
        rest /= extent;
    }
    index
}

/// Returns whether an element is within the tolerance.
#[must_use]
pub fn is_close(found: Number, expected: Number, tolerance: Tolerance) -> bool {
    if let (Number::Int(found), Number::Int(expected)) = (found, expected)
        && (found == expected || tolerance == Tolerance::EXACT)
    {
        return found == expected;
    }
    let (found, expected) = (found.as_f64(), expected.as_f64());
    if found.is_nan() || expected.is_nan() {
        return found.is_nan() && expected.is_nan();
    }
    #[allow(clippy::float_cmp)] // includes infinities
    let is_equal = found == expected;
    let allowed = tolerance.atol + tolerance.rtol * expected.abs();
    is_equal || (expected.is_finite() && (found - expected).abs() <= allowed)
}

fn difference(found: Number, expected: Number) -> Option<f64> {
    let difference = match (found, expected) {
        #[allow(clippy::cast_precision_loss)] // only shown
        (Number::Int(found), Number::Int(expected)) => found.abs_diff(expected) as f64,
        (found, expected) => (found.as_f64() - expected.as_f64()).abs(),
    };
    difference.is_finite().then_some(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64]) -> Array {
        let shape = vec![values.len() as i64];
        Array::of_numbers(DataType::F32, shape, values.iter().copied().map(Number::Float)).unwrap()
    }

    #[test]
    fn nan_and_infinities_are_equal_to_themselves() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let all = floats(&[nan, inf, -inf, 0.0]);
        assert_eq!(compare(&all, &floats(&[nan, inf, -inf, -0.0]), Tolerance::EXACT, &[]), None);
        let found =
            compare(&floats(&[1.0, -inf, inf, nan]), &all, Tolerance { atol: 1e30, rtol: 1.0 }, &[]).unwrap();
        assert_eq!((found.count, found.of, found.largest), (4, 4, None));
    }

    #[test]
    fn tolerances_add_up() {
        let tolerance = Tolerance { atol: 0.5, rtol: 0.25 };
        assert_eq!(compare(&floats(&[5.5, 2.5]), &floats(&[4.0, 4.0]), tolerance, &[]), None);
        let found = compare(&floats(&[1.0, 5.75, -1.0]), &floats(&[1.0, 4.0, 1.0]), tolerance, &[]).unwrap();
        assert_eq!(found.count, 2);
        assert_eq!(found.largest, Some(2.0));
        assert_eq!(found.first[0].index, [1]);
        assert_eq!((found.first[0].found.as_str(), found.first[0].expected.as_str()), ("5.75", "4.0"));
    }

    #[test]
    fn the_worst_element_differs_most() {
        let expected = floats(&[1.0, 2.0, 3.0, 4.0]);
        let worst = |numbers: &[f64]| {
            let found =
                compare(&floats(numbers), &expected, Tolerance { atol: 0.5, rtol: 0.0 }, &[]).unwrap();
            (found.count, found.first[0].index[0], found.worst.index[0], found.largest)
        };
        assert_eq!(worst(&[2.0, 2.5, 3.0, 9.0]), (2, 0, 3, Some(5.0)));
        assert_eq!(worst(&[2.0, f64::NAN, f64::INFINITY, 9.0]), (4, 0, 1, Some(5.0)));
    }

    #[test]
    fn integers_are_exact() {
        let ints = |values: &[i64]| {
            let shape = vec![1, values.len() as i64];
            Array::of_numbers(DataType::I64, shape, values.iter().copied().map(Number::Int)).unwrap()
        };
        let found =
            compare(&ints(&[0, i64::MAX]), &ints(&[0, i64::MAX - 1]), default_tolerance(DataType::I64), &[]);
        assert_eq!(found.unwrap().first[0].index, [0, 1]);
        let loose = Tolerance { atol: 1.0, rtol: 0.0 };
        assert_eq!(compare(&ints(&[0, 8]), &ints(&[1, 7]), loose, &[]), None);
    }

    #[test]
    fn default_tolerances_are_those_of_the_page() {
        let number = |text: &str| match text.split_once('^') {
            Some((base, exponent)) => base.parse::<f64>().unwrap().powi(exponent.parse().unwrap()),
            None => text.parse().unwrap(),
        };
        let page = include_str!("../../../../docs/testing.md");
        let table = page.split("| type | `atol` | `rtol` | |\n|---|---|---|---|\n").nth(1).unwrap();
        let mut checked = 0;
        for line in table.lines().take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let expected = Tolerance { atol: number(cells[1]), rtol: number(cells[2]) };
            let named = DataType::from_name(cells[0].trim_matches('`'));
            for ty in DataType::ALL.into_iter().filter(|ty| match named {
                Some(named) => *ty == named,
                None => !matches!(ty, DataType::F32 | DataType::F16 | DataType::Bf16 | DataType::F8),
            }) {
                assert_eq!(default_tolerance(ty), expected, "{ty:?}");
                checked += 1;
            }
        }
        assert_eq!(checked, DataType::ALL.len());
    }

    #[test]
    fn places_have_a_number_for_each_dimension() {
        assert_eq!(index_of(7, &[2, 3, 2]), [1, 0, 1]);
        assert_eq!(index_of(0, &[]), [] as [i64; 0]);
    }

    #[test]
    fn what_is_left_out_is_not_held_against_anything() {
        let (found, expected) = (floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[1.0, 0.0, 0.0, 0.0]));
        assert_eq!(found.unlike(&expected), [1, 2, 3]);
        let mismatch = compare(&found, &expected, Tolerance::EXACT, &[0, 2]).unwrap();
        let places: Vec<_> = mismatch.first.iter().map(|element| element.index.clone()).collect();
        assert_eq!((mismatch.count, places), (2, vec![vec![1], vec![3]]));
        assert_eq!(compare(&found, &expected, Tolerance::EXACT, &[1, 2, 3]), None);
        let short = |bytes: Vec<u8>| Array::new(DataType::I4, vec![3], bytes).unwrap();
        assert_eq!(short(vec![0x21, 0x03]).unlike(&short(vec![0x31, 0xf3])), [1]);
    }
}
