//! `[tables]`: element types and reproducible bytes.

use cubinder_expr::Value;
use cubinder_model::float;

use super::compile::words;

words! {
    /// Element type of a table.
    TableType {
        /// IEEE single precision.
        F32 = "f32",
        /// IEEE double precision.
        F64 = "f64",
        /// IEEE half precision.
        F16 = "f16",
        /// Brain floating point, 16 bits.
        Bf16 = "bf16",
        /// Signed 8-bit integer.
        I8 = "i8",
        /// Signed 16-bit integer.
        I16 = "i16",
        /// Signed 32-bit integer.
        I32 = "i32",
        /// Signed 64-bit integer.
        I64 = "i64",
        /// Unsigned 8-bit integer.
        U8 = "u8",
        /// True or false.
        Bool = "bool",
    }
}

impl TableType {
    /// Returns the CUDA C++ type.
    #[must_use]
    pub const fn cuda_name(self) -> &'static str {
        match self {
            TableType::F32 => "float",
            TableType::F64 => "double",
            TableType::F16 => "__half",
            TableType::Bf16 => "__nv_bfloat16",
            TableType::I8 => "signed char",
            TableType::I16 => "short",
            TableType::I32 => "int",
            TableType::I64 => "long long",
            TableType::U8 => "unsigned char",
            TableType::Bool => "bool",
        }
    }

    /// Returns the element size in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            TableType::I8 | TableType::U8 | TableType::Bool => 1,
            TableType::F16 | TableType::Bf16 | TableType::I16 => 2,
            TableType::F32 | TableType::I32 => 4,
            TableType::F64 | TableType::I64 => 8,
        }
    }

    pub(crate) const fn integers(self) -> Option<(i64, i64)> {
        match self {
            TableType::I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            TableType::I16 => Some((i16::MIN as i64, i16::MAX as i64)),
            TableType::I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            TableType::I64 => Some((i64::MIN, i64::MAX)),
            TableType::U8 => Some((0, u8::MAX as i64)),
            _ => None,
        }
    }

    /// Floats round to nearest even; NaNs become quiet. Errors continue the value's text.
    pub(crate) fn bytes(self, value: &Value) -> Result<Vec<u8>, String> {
        let name = self.name();
        match (self, value) {
            (TableType::Bool, Value::Bool(value)) => Ok(vec![u8::from(*value)]),
            (TableType::Bool, _) => Err(", which is neither `true` nor `false`".to_owned()),
            (_, Value::Int(value)) => match self.integers() {
                Some((least, most)) if (least..=most).contains(value) => Ok(self.cut(value.to_le_bytes())),
                Some((least, most)) => Err(format!(", but `{name}` ranges from {least} to {most}")),
                None => self
                    .whole(*value)
                    .and_then(|value| self.float(value))
                    .ok_or_else(|| format!(", which `{name}` cannot represent exactly")),
            },
            (_, Value::Float(_)) if self.integers().is_some() => {
                Err(format!(", but `{name}` requires an integer"))
            }
            (_, Value::Float(value)) => {
                self.float(*value).ok_or_else(|| format!(", which is too large for `{name}`"))
            }
            _ => Err(", which is not a number".to_owned()),
        }
    }

    fn cut(self, bytes: [u8; 8]) -> Vec<u8> {
        bytes.into_iter().take(self.size()).collect()
    }

    fn whole(self, value: i64) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let (wide, back) = (value as f64, |float: f64| float as i128);
        let held = match self {
            TableType::F16 => float::round_to_f16(wide)?,
            TableType::Bf16 => float::round_to_bf16(wide)?,
            TableType::F32 => float::round_to_f32(wide)?,
            _ => wide,
        };
        (back(held) == i128::from(value)).then_some(held)
    }

    /// `None` if a finite value would become infinite.
    fn float(self, value: f64) -> Option<Vec<u8>> {
        let is_finite = value.is_finite();
        let bits = match self {
            TableType::F16 if is_finite => float::to_f16(value)?.into(),
            TableType::Bf16 if is_finite => float::to_bf16(value)?.into(),
            TableType::F32 if is_finite => {
                #[allow(clippy::cast_possible_truncation)] // already rounded
                let single = float::round_to_f32(value)? as f32;
                single.to_bits().into()
            }
            _ if is_finite => value.to_bits(),
            _ => {
                // Formats differ only in field positions.
                let width = 8 * self.size();
                let fraction = match self {
                    TableType::F16 => 10,
                    TableType::Bf16 => 7,
                    TableType::F32 => 23,
                    _ => 52,
                };
                let exponent = ((1_u64 << (width - 1 - fraction)) - 1) << fraction;
                let quiet = u64::from(value.is_nan()) << (fraction - 1);
                u64::from(value.is_sign_negative()) << (width - 1) | exponent | quiet
            }
        };
        Some(self.cut(bits.to_le_bytes()))
    }
}

pub(crate) const MAX_TABLE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (TableType, Value, Result<Vec<u8>, &'static str>);

    #[test]
    fn bytes_are_what_the_type_holds() {
        let f = f32::to_le_bytes;
        let cases: Vec<Case> = vec![
            (TableType::F32, Value::Float(0.1), Ok(f(0.1).to_vec())),
            (TableType::F32, Value::Float(-0.0), Ok(f(-0.0).to_vec())),
            (TableType::F32, Value::Float(1e-45), Ok(vec![1, 0, 0, 0])),
            (TableType::F32, Value::Float(1e39), Err(", which is too large for `f32`")),
            (TableType::F32, Value::Float(f64::NEG_INFINITY), Ok(f(f32::NEG_INFINITY).to_vec())),
            (TableType::F32, Value::Float(f64::NAN), Ok(vec![0, 0, 0xc0, 0x7f])),
            (TableType::F32, Value::Int(3), Ok(f(3.0).to_vec())),
            (TableType::F32, Value::Int((1 << 24) + 1), Err(", which `f32` cannot represent exactly")),
            (TableType::F64, Value::Float(0.1), Ok(0.1_f64.to_le_bytes().to_vec())),
            (TableType::F64, Value::Float(5e-324), Ok(vec![1, 0, 0, 0, 0, 0, 0, 0])),
            (TableType::F64, Value::Float(f64::INFINITY), Ok(f64::INFINITY.to_le_bytes().to_vec())),
            (TableType::F64, Value::Float(-f64::NAN), Ok(vec![0, 0, 0, 0, 0, 0, 0xf8, 0xff])),
            (TableType::F16, Value::Float(1.0), Ok(vec![0, 0x3c])),
            (TableType::F16, Value::Float(65520.0), Err(", which is too large for `f16`")),
            (TableType::F16, Value::Float(f64::INFINITY), Ok(vec![0, 0x7c])),
            (TableType::F16, Value::Float(f64::NAN), Ok(vec![0, 0x7e])),
            (TableType::Bf16, Value::Float(1.0), Ok(vec![0x80, 0x3f])),
            (TableType::Bf16, Value::Float(f64::NEG_INFINITY), Ok(vec![0x80, 0xff])),
            (TableType::Bf16, Value::Float(f64::NAN), Ok(vec![0xc0, 0x7f])),
            (TableType::I8, Value::Int(-128), Ok(vec![0x80])),
            (TableType::I8, Value::Int(128), Err(", but `i8` ranges from -128 to 127")),
            (TableType::I16, Value::Int(-2), Ok(vec![0xfe, 0xff])),
            (TableType::I16, Value::Float(1.0), Err(", but `i16` requires an integer")),
            (TableType::I32, Value::Float(f64::NAN), Err(", but `i32` requires an integer")),
            (TableType::I32, Value::Int(i32::MIN.into()), Ok(vec![0, 0, 0, 0x80])),
            (TableType::I64, Value::Int(i64::MIN), Ok(i64::MIN.to_le_bytes().to_vec())),
            (TableType::U8, Value::Int(255), Ok(vec![255])),
            (TableType::Bool, Value::Bool(true), Ok(vec![1])),
            (TableType::Bool, Value::Int(1), Err(", which is neither `true` nor `false`")),
        ];
        for (ty, value, expected) in cases {
            let found = ty.bytes(&value);
            assert_eq!(
                found.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|why| *why),
                "{} {value}",
                ty.name()
            );
        }
    }
}
