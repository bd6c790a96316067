//! Encodes values as a kernel's parameters, without truncation.

use super::error::Problem;
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::value::Value;

/// Appends `value` as a little-endian `ty`. Exactly representable integers are valid floats.
pub fn append(bytes: &mut Vec<u8>, ty: ScalarType, value: &Value) -> Result<(), Problem> {
    let unfit = || Problem::DoesNotFit { value: value.clone(), ty };
    match ty {
        ScalarType::Int { .. } | ScalarType::UInt { .. } | ScalarType::Natural { .. } => {
            let value = integer(value)?;
            let fits = |(least, greatest)| (least..=greatest).contains(&i128::from(value));
            append_low(bytes, value, ty.size(), ty.integers().is_some_and(fits)).ok_or_else(unfit)
        }
        ScalarType::F32 => {
            let wide = float(value)?.ok_or_else(unfit)?;
            #[allow(clippy::cast_possible_truncation)] // rounds to nearest, as C does
            let narrow = wide as f32;
            let whole = matches!(value, Value::Int(_));
            #[allow(clippy::float_cmp)] // exactness is the question
            if narrow.is_infinite() != wide.is_infinite() || (whole && f64::from(narrow) != wide) {
                return Err(unfit());
            }
            bytes.extend_from_slice(&narrow.to_le_bytes());
            Ok(())
        }
        ScalarType::F64 => {
            bytes.extend_from_slice(&float(value)?.ok_or_else(unfit)?.to_le_bytes());
            Ok(())
        }
        ScalarType::Bool => match value {
            Value::Bool(value) => {
                bytes.push(u8::from(*value));
                Ok(())
            }
            other => Err(Problem::Kind { found: other.clone(), expected: "a boolean" }),
        },
    }
}

/// Returns a parameter's alignment in bytes.
#[must_use]
pub fn alignment(ty: ScalarType) -> usize {
    (ty.size() as usize).max(1)
}

fn append_low(bytes: &mut Vec<u8>, value: i64, width: u32, fits: bool) -> Option<()> {
    let value = value.to_le_bytes();
    let low = if fits { value.get(..width as usize) } else { None }?;
    bytes.extend_from_slice(low);
    Some(())
}

fn integer(value: &Value) -> Result<i64, Problem> {
    value.as_int().ok_or_else(|| Problem::Kind { found: value.clone(), expected: "an integer" })
}

/// `None` for an integer that no double represents.
fn float(value: &Value) -> Result<Option<f64>, Problem> {
    match value {
        Value::Float(value) => Ok(Some(*value)),
        Value::Int(value) => {
            #[allow(clippy::cast_precision_loss)] // checked below
            let wide = *value as f64;
            #[allow(clippy::cast_possible_truncation)] // far below 128 bits
            Ok((wide as i128 == i128::from(*value)).then_some(wide))
        }
        other => Err(Problem::Kind { found: other.clone(), expected: "a float" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(ty: ScalarType, value: impl std::borrow::Borrow<Value>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        append(&mut bytes, ty, value.borrow()).ok().map(|()| bytes)
    }

    #[test]
    fn integers_fit_or_are_refused() {
        for width in [1_u8, 2, 4, 8] {
            let bits = u32::from(width) * 8;
            let (int, uint) = (ScalarType::Int { bytes: width }, ScalarType::UInt { bytes: width });
            let natural = ScalarType::Natural { bits: width * 8 - 1 };
            let least = (-1_i128) << (bits - 1);
            for value in [least - 1, least, -1, 0, 1, -least - 1, -least, -2 * least - 1, -2 * least] {
                let Ok(given) = i64::try_from(value) else { continue };
                let low = given.to_le_bytes()[..usize::from(width)].to_vec();
                let signed = (least..-least).contains(&value).then(|| low.clone());
                let unsigned = (0..-2 * least).contains(&value).then_some(low);
                let both = signed.clone().filter(|_| given >= 0);
                assert_eq!(packed(natural, Value::Int(given)), both, "{given} of either sign, {bits} bits");
                assert_eq!(packed(int, Value::Int(given)), signed, "{given} as i{bits}");
                assert_eq!(packed(uint, Value::Int(given)), unsigned, "{given} as u{bits}");
            }
        }
        assert_eq!(packed(ScalarType::Int { bytes: 4 }, Value::Bool(true)), None);
        assert_eq!(packed(ScalarType::Int { bytes: 3 }, Value::Int(1)), None, "no such type");
        assert_eq!(packed(ScalarType::UInt { bytes: 0 }, Value::Int(0)), None, "no such type");
        assert_eq!(packed(ScalarType::Int { bytes: 255 }, Value::Int(0)), None, "no such type");
        for bits in [0, 2, 8, 62, 64, 255] {
            assert_eq!(packed(ScalarType::Natural { bits }, Value::Int(0)), None, "no such type");
        }
        let perhaps_bool =
            [-1, 0, 1, 2].map(|value| packed(ScalarType::Natural { bits: 1 }, Value::Int(value)));
        assert_eq!(perhaps_bool, [None, Some(vec![0]), Some(vec![1]), None]);
        assert_eq!(packed(ScalarType::Int { bytes: 0 }, Value::Int(0)), None, "no such type");
    }

    #[test]
    fn floats_are_rounded_and_never_overflow() {
        let f32_of = |value: Value| packed(ScalarType::F32, value);
        assert_eq!(f32_of(Value::Float(0.1)), Some(0.1_f32.to_le_bytes().to_vec()));
        assert_eq!(f32_of(Value::Float(1e39)), None);
        assert_eq!(f32_of(Value::Float(f64::INFINITY)), Some(f32::INFINITY.to_le_bytes().to_vec()));
        assert_eq!(f32_of(Value::Int(1 << 24)), Some(16_777_216_f32.to_le_bytes().to_vec()));
        assert_eq!(f32_of(Value::Int((1 << 24) + 1)), None, "not exact");
        assert_eq!(packed(ScalarType::F64, Value::Int((1 << 53) + 1)), None, "not exact");
        assert_eq!(f32_of(Value::Int((1 << 24) + 2)), Some(16_777_218_f32.to_le_bytes().to_vec()));
        assert_eq!(
            f32_of(Value::Int(i64::MIN)),
            Some((-9_223_372_036_854_775_808_f32).to_le_bytes().to_vec())
        );
        assert_eq!(f32_of(Value::Int(i64::MAX)), None, "not exact");
        let even = packed(ScalarType::F64, Value::Int((1 << 53) + 2));
        assert_eq!(even, Some(9_007_199_254_740_994_f64.to_le_bytes().to_vec()));
        assert_eq!(packed(ScalarType::F64, Value::Int(i64::MAX)), None, "not exact");
        assert_eq!(packed(ScalarType::F64, Value::Float(0.1)), Some(0.1_f64.to_le_bytes().to_vec()));
        assert_eq!(packed(ScalarType::Bool, Value::Int(1)), None);
        assert_eq!(packed(ScalarType::Bool, Value::Bool(true)), Some(vec![1]));
    }
}
