use cubinder_expr::DataType;
use cubinder_model::float;

/// Row-major tensor. The first of two elements in a byte is the lower half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    ty: DataType,
    shape: Vec<i64>,
    bytes: Vec<u8>,
}

/// Element.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Number {
    /// Element of an integer type or `bool`.
    Int(i64),
    /// Element of a float type.
    Float(f64),
}

impl Number {
    /// Returns the nearest double.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss)] // rounds to nearest
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Int(value) => value.fmt(f),
            Number::Float(value) if value.is_nan() => f.write_str("nan"),
            // The shortest exact text.
            Number::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// Returns the number of elements; `None` on overflow.
#[must_use]
pub fn count(shape: &[i64]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |count, extent| count.checked_mul(usize::try_from(*extent).ok()?))
}

impl Array {
    /// Creates a tensor from bytes; fails if their number is wrong.
    pub fn new(ty: DataType, shape: Vec<i64>, bytes: Vec<u8>) -> Result<Array, String> {
        let expected = count(&shape).and_then(|count| ty.bytes(count as u64));
        if expected != Some(bytes.len() as u64) {
            let expected = expected.map_or_else(|| "more".to_owned(), |expected| expected.to_string());
            return Err(format!(
                "found {} bytes, but a tensor of {} in {shape:?} has {expected}",
                bytes.len(),
                ty.name()
            ));
        }
        Ok(Array { ty, shape, bytes })
    }

    /// Rounds numbers to the type; fails if they do not fit.
    pub fn of_numbers(
        ty: DataType,
        shape: Vec<i64>,
        numbers: impl Iterator<Item = Number>,
    ) -> Result<Array, String> {
        Array::try_of_numbers(ty, shape, numbers.map(Ok))
    }

    /// As [`Array::of_numbers`].
    pub(super) fn try_of_numbers(
        ty: DataType,
        shape: Vec<i64>,
        numbers: impl Iterator<Item = Result<Number, String>>,
    ) -> Result<Array, String> {
        let (mut bytes, mut len) = (Vec::new(), 0_usize);
        for number in numbers {
            let code = encode(ty, number?)?.to_le_bytes();
            match (ty.size(), bytes.last_mut()) {
                (Some(size), _) => bytes.extend(code.into_iter().take(size as usize)),
                (None, Some(last)) if !len.is_multiple_of(2) => *last |= code[0] << 4,
                (None, _) => bytes.push(code[0] & 15),
            }
            len += 1;
        }
        let expected =
            count(&shape).ok_or_else(|| format!("the size of {shape:?} exceeds the address space"))?;
        if len != expected {
            return Err(format!("found {len} elements, but {shape:?} has {expected}"));
        }
        Array::new(ty, shape, bytes)
    }

    /// Returns the element type.
    #[must_use]
    pub fn ty(&self) -> DataType {
        self.ty
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        count(&self.shape).unwrap_or(0)
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an element; 0 if out of range.
    #[must_use]
    pub fn get(&self, index: usize) -> Number {
        decode(self.ty, self.code(index))
    }

    /// Returns all elements, in order.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns an element's bits.
    #[must_use]
    pub fn code(&self, index: usize) -> u64 {
        let Some(size) = self.ty.size() else {
            let byte = self.bytes.get(index / 2).copied().unwrap_or(0);
            return u64::from(if index.is_multiple_of(2) { byte & 15 } else { byte >> 4 });
        };
        let size = size as usize;
        let start = index.saturating_mul(size);
        let bytes = self.bytes.get(start..start.saturating_add(size)).unwrap_or(&[]);
        bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
    }

    /// Returns the indices of elements with different bits.
    #[must_use]
    pub fn unlike(&self, other: &Array) -> Vec<usize> {
        // Correct results are mostly identical.
        if self.bytes == other.bytes {
            return Vec::new();
        }
        (0..self.len()).filter(|at| self.code(*at) != other.code(*at)).collect()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // reinterprets bits
pub(super) fn decode(ty: DataType, code: u64) -> Number {
    match ty {
        DataType::F32 => Number::Float(f64::from(f32::from_bits(code as u32))),
        DataType::F16 => Number::Float(float::from_f16(code as u16)),
        DataType::Bf16 => Number::Float(float::from_bf16(code as u16)),
        DataType::F8 => Number::Float(from_e4m3(code as u8)),
        DataType::U8 | DataType::Bool => Number::Int(i64::from(code as u8)),
        DataType::I4 | DataType::I8 | DataType::I32 | DataType::I64 => {
            let unused = 64 - ty.bits();
            Number::Int((code << unused) as i64 >> unused)
        }
    }
}

/// Rounds to nearest even. Overflow becomes infinity, in 8 bits the maximum, as in CUDA; for integers it fails.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // assembles bits
fn encode(ty: DataType, number: Number) -> Result<u64, String> {
    let infinite = |value: f64, bits: u16| bits | if value.is_sign_negative() { 0x8000 } else { 0 };
    let value = number.as_f64();
    if value.is_nan() {
        match ty {
            DataType::F16 => return Ok(0x7e00),
            DataType::Bf16 => return Ok(0x7fc0),
            _ => {}
        }
    }
    Ok(match ty {
        DataType::F32 => u64::from((value as f32).to_bits()),
        DataType::F16 => u64::from(float::to_f16(value).unwrap_or_else(|| infinite(value, 0x7c00))),
        DataType::Bf16 => u64::from(float::to_bf16(value).unwrap_or_else(|| infinite(value, 0x7f80))),
        DataType::F8 => u64::from(to_e4m3(value)),
        DataType::U8 => integer(ty, number, 0, u8::MAX.into())? as u64,
        DataType::Bool => integer(ty, number, 0, 1)? as u64,
        DataType::I4 | DataType::I8 | DataType::I32 | DataType::I64 => {
            let unused = 64 - ty.bits();
            integer(ty, number, i64::MIN >> unused, i64::MAX >> unused)? as u64 & u64::MAX >> unused
        }
    })
}

fn integer(ty: DataType, number: Number, least: i64, most: i64) -> Result<i64, String> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let value = match number {
        Number::Int(value) => Some(value),
        // 2^63 does not fit; -2^63 does.
        #[allow(clippy::cast_possible_truncation)] // whole and in range
        Number::Float(value) if value.trunc() == value && (-LIMIT..LIMIT).contains(&value) => {
            Some(value as i64)
        }
        Number::Float(_) => None,
    };
    let fits = value.filter(|value| (least..=most).contains(value));
    fits.ok_or_else(|| format!("{number} is not a valid `{}`", ty.name()))
}

/// Decodes E4M3 (OCP 8-bit floating point specification 1.0): no infinities, one NaN per sign.
fn from_e4m3(bits: u8) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    sign * match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction * 2_f64.powi(-9),
        (exponent, _) => (8.0 + fraction) * 2_f64.powi(exponent - 10),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small integers
fn to_e4m3(value: f64) -> u8 {
    const GREATEST: f64 = 448.0;
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let value = value.abs();
    if value.is_nan() {
        return sign | 0x7f;
    }
    if value >= GREATEST {
        return sign | 0x7e;
    }
    let exponent = if value < 2_f64.powi(-6) { -6 } else { (value.to_bits() >> 52 & 0x7ff) as i32 - 1023 };
    let steps = (value * 2_f64.powi(3 - exponent)).round_ties_even() as u8;
    let magnitude = (((exponent + 6) as u8) << 3) + steps;
    sign | magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_every_short_type_is_its_number() {
        for ty in DataType::ALL {
            let bits = ty.bits().min(16);
            for code in 0..1_u64 << bits {
                let number = decode(ty, code);
                if ty == DataType::Bool && code > 1 {
                    assert!(encode(ty, number).is_err());
                } else if number.as_f64().is_nan() {
                    assert!(decode(ty, encode(ty, number).unwrap()).as_f64().is_nan());
                } else if matches!(ty, DataType::F8 | DataType::F16 | DataType::Bf16) || bits < 16 {
                    assert_eq!(encode(ty, number), Ok(code), "{} {number}", ty.name());
                }
            }
        }
    }

    #[test]
    fn floats_of_8_bits_are_rounded_to_the_nearest() {
        for (value, expected) in [
            (17.0, 16.0),
            (19.0, 20.0),
            (18.9, 18.0),
            (15.6, 16.0),
            (1e9, 448.0),
            (-1e9, -448.0),
            (460.0, 448.0),
            (2_f64.powi(-10), 0.0),
            (1.1 * 2_f64.powi(-10), 2_f64.powi(-9)),
            (7.6 * 2_f64.powi(-9), 2_f64.powi(-6)),
            (-0.0, -0.0),
        ] {
            assert_eq!(from_e4m3(to_e4m3(value)), expected, "{value}");
        }
    }

    #[test]
    fn numbers_become_elements() {
        let numbers = [1, -8, 7].map(Number::Int);
        let array = Array::of_numbers(DataType::I4, vec![3], numbers.into_iter()).unwrap();
        assert_eq!(array.bytes(), [0x81, 0x07]);
        assert_eq!(array.numbers().collect::<Vec<_>>(), numbers);
        assert!(Array::of_numbers(DataType::I4, vec![1], [Number::Int(8)].into_iter()).is_err());
        assert!(Array::of_numbers(DataType::I32, vec![1], [Number::Float(0.5)].into_iter()).is_err());
        assert!(Array::of_numbers(DataType::I32, vec![2], numbers.into_iter()).is_err());
        let whole = Array::of_numbers(DataType::I64, vec![], [Number::Float(-3.0)].into_iter()).unwrap();
        assert_eq!(whole.get(0), Number::Int(-3));
        let ends =
            [(-9_223_372_036_854_775_808.0, true), (-9.25e18, false), (9.21e18, true), (9.25e18, false)];
        for (value, is_one) in ends {
            let array = Array::of_numbers(DataType::I64, vec![], [Number::Float(value)].into_iter());
            assert_eq!(array.map(|array| array.get(0).as_f64()).ok(), is_one.then_some(value));
        }
        let beyond = Array::of_numbers(DataType::F16, vec![1], [Number::Float(-1e9)].into_iter()).unwrap();
        assert_eq!(beyond.get(0), Number::Float(f64::NEG_INFINITY));
    }
}
