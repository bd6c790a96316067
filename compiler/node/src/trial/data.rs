//! Random data from a seed.

use cubinder_expr::DataType;

use super::array::{Array, Number, count};

/// Derives an independent seed for `name`.
#[must_use]
pub fn seed_of(seed: u64, name: &str) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(&seed.to_le_bytes()).update(name.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Returns -1 to 1 for floats, -100 to 100 within the type for integers.
#[must_use]
pub fn default_range(ty: DataType) -> (f64, f64) {
    match ty {
        DataType::F32 | DataType::F16 | DataType::Bf16 | DataType::F8 => (-1.0, 1.0),
        DataType::I8 | DataType::I32 | DataType::I64 => (-100.0, 100.0),
        DataType::U8 => (0.0, 100.0),
        DataType::Bool => (0.0, 1.0),
        DataType::I4 => (-8.0, 7.0),
    }
}

/// Returns random numbers in the inclusive `range`; fails for too small types or memory.
pub fn random(ty: DataType, shape: &[i64], range: (f64, f64), seed: u64) -> Result<Array, String> {
    of_columns(ty, shape, &[range], seed)
}

/// Returns [`random`] numbers with a range per last position; fails for a wrong number of ranges.
pub fn columns(ty: DataType, shape: &[i64], ranges: &[(f64, f64)], seed: u64) -> Result<Array, String> {
    check_columns(ranges.len(), shape)?;
    of_columns(ty, shape, ranges, seed)
}

pub(super) fn check_columns(ranges: usize, shape: &[i64]) -> Result<(), String> {
    let places = shape.last().copied().unwrap_or(1);
    if usize::try_from(places) == Ok(ranges) {
        return Ok(());
    }
    Err(format!("`range` has {ranges} pairs, but the last dimension is {places}"))
}

fn of_columns(ty: DataType, shape: &[i64], ranges: &[(f64, f64)], seed: u64) -> Result<Array, String> {
    let mut source = fastrand::Rng::with_seed(seed);
    let elements = count(shape).ok_or_else(|| format!("the size of {shape:?} exceeds the address space"))?;
    let is_float = matches!(ty, DataType::F32 | DataType::F16 | DataType::Bf16 | DataType::F8);
    #[allow(clippy::cast_possible_truncation)] // saturates
    let whole = |&(least, most): &(f64, f64)| (least.ceil() as i64, most.floor() as i64);
    for range in ranges {
        let ((least, most), (lowest, highest)) = (*range, whole(range));
        if least.is_nan() || most.is_nan() || least > most || (!is_float && lowest > highest) {
            return Err(format!("no `{}` is from {least} to {most}", ty.name()));
        }
    }
    let number = |range: &(f64, f64)| match is_float {
        true => Number::Float(range.0 + (range.1 - range.0) * source.f64()),
        false => {
            let (lowest, highest) = whole(range);
            Number::Int(source.i64(lowest..=highest))
        }
    };
    Array::of_numbers(ty, shape.to_vec(), ranges.iter().cycle().take(elements).map(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_of_the_type_and_the_same_every_time() {
        for ty in DataType::ALL {
            let make = |seed| random(ty, &[7, 11], default_range(ty), seed).unwrap();
            assert_eq!(make(1), make(1));
            assert_ne!(make(1), make(2), "{}", ty.name());
            let (least, most) = default_range(ty);
            assert!(make(3).numbers().all(|number| (least..=most).contains(&number.as_f64())));
        }
        let pairs = columns(DataType::I32, &[100, 2], &[(3.0, 3.0), (5.0, 9.0)], 1).unwrap();
        assert!(pairs.numbers().enumerate().all(|(index, number)| match index % 2 {
            0 => number == Number::Int(3),
            _ => (5.0..=9.0).contains(&number.as_f64()),
        }));
        assert!(columns(DataType::I32, &[100, 3], &[(3.0, 3.0), (5.0, 9.0)], 1).is_err());
        assert!(random(DataType::U8, &[1], (-1.0, -1.0), 0).is_err());
        assert!(random(DataType::I32, &[1], (0.2, 0.8), 0).is_err());
        assert!(random(DataType::F32, &[1], (1.0, 0.0), 0).is_err());
        assert_eq!(random(DataType::I64, &[0, 3], (0.0, 1.0), 0).unwrap().len(), 0);
        assert_ne!(seed_of(1, "x"), seed_of(1, "y"));
    }
}
