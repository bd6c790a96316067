//! `[tables]`: what the elements of a table can be, and how C++ writes them.
//!
//! Owns the element types of tables and the literals of their values. A literal is exact: it is the very number that the type holds,
//! so a table is the same bytes in every build.

use cubinder_bundle::{Value, float};

/// The element type of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableType {
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// IEEE half precision.
    F16,
    /// Brain floating point, 16 bits.
    Bf16,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// True or false.
    Bool,
}

impl TableType {
    /// Each once, in the order in which errors list them.
    pub const ALL: [TableType; 10] = [
        TableType::F32,
        TableType::F64,
        TableType::F16,
        TableType::Bf16,
        TableType::I8,
        TableType::I16,
        TableType::I32,
        TableType::I64,
        TableType::U8,
        TableType::Bool,
    ];

    /// The name used in manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TableType::F32 => "f32",
            TableType::F64 => "f64",
            TableType::F16 => "f16",
            TableType::Bf16 => "bf16",
            TableType::I8 => "i8",
            TableType::I16 => "i16",
            TableType::I32 => "i32",
            TableType::I64 => "i64",
            TableType::U8 => "u8",
            TableType::Bool => "bool",
        }
    }

    /// The type with this manifest name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<TableType> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// How CUDA C++ spells it.
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

    /// Size of one element in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            TableType::I8 | TableType::U8 | TableType::Bool => 1,
            TableType::F16 | TableType::Bf16 | TableType::I16 => 2,
            TableType::F32 | TableType::I32 => 4,
            TableType::F64 | TableType::I64 => 8,
        }
    }

    /// The least and the greatest integer; none where it holds none.
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

    /// A value as C++ writes it. Floats are rounded to the nearest that the type holds, of two as near the even one.
    ///
    /// # Errors
    /// Why the type does not hold it, to follow upon the value.
    pub(crate) fn literal(self, value: &Value) -> Result<String, String> {
        let name = self.name();
        match (self, value) {
            (TableType::Bool, Value::Bool(value)) => Ok(value.to_string()),
            (TableType::Bool, _) => Err(", which is neither `true` nor `false`".to_owned()),
            (_, Value::Int(value)) => match self.integers() {
                Some((least, most)) if (least..=most).contains(value) => Ok(integer(*value)),
                Some((least, most)) => Err(format!(", but `{name}` is from {least} to {most}")),
                None => self
                    .whole(*value)
                    .and_then(|value| self.float(value))
                    .ok_or_else(|| format!(", which `{name}` does not hold exactly")),
            },
            (_, Value::Float(_)) if self.integers().is_some() => {
                Err(format!(", which is no integer, as `{name}` needs"))
            }
            (_, Value::Float(value)) if !value.is_finite() => Err(", which is not finite".to_owned()),
            (_, Value::Float(value)) => {
                self.float(*value).ok_or_else(|| format!(", which is too large for `{name}`"))
            }
            _ => Err(", which is no number".to_owned()),
        }
    }

    /// The float that is this integer exactly.
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

    /// A finite float as C++ writes it; none where it rounds to infinity.
    fn float(self, value: f64) -> Option<String> {
        Some(match self {
            TableType::F16 => format!("__half_raw{{{}}}", float::to_f16(value)?),
            TableType::Bf16 => format!("__nv_bfloat16_raw{{{}}}", float::to_bf16(value)?),
            TableType::F32 => {
                #[allow(clippy::cast_possible_truncation)] // it was rounded
                let single = float::round_to_f32(value)? as f32;
                match single.is_normal() || single == 0.0 {
                    // The shortest decimal that rounds to the very number; it has a point or an exponent.
                    true => format!("{single:?}f"),
                    false => format!("__builtin_bit_cast(float,{}u)", single.to_bits()),
                }
            }
            _ if value.is_normal() || value == 0.0 => format!("{value:?}"),
            _ => format!("__builtin_bit_cast(double,{}ull)", value.to_bits()),
        })
    }
}

/// An integer as C++ reads it; the least ones have no literals of their own.
fn integer(value: i64) -> String {
    match i32::try_from(value) {
        Ok(i32::MIN) => format!("-{}-1", i32::MAX),
        Ok(value) => value.to_string(),
        Err(_) if value == i64::MIN => format!("-{}LL-1", i64::MAX),
        Err(_) => format!("{value}LL"),
    }
}

/// The most bytes of a table.
pub(crate) const MAX_TABLE_BYTES: usize = 1 << 20;

/// The data of a table, as C++ writes them between braces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableData {
    /// The literals, with commas between them.
    pub text: String,
    /// How many there are.
    pub length: usize,
}

impl TableData {
    /// One more element.
    pub(crate) fn push(&mut self, literal: &str) {
        if self.length > 0 {
            self.text.push(',');
        }
        self.text.push_str(literal);
        self.length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_what_the_type_holds() {
        let cases = [
            (TableType::F32, Value::Float(0.1), Ok("0.1f")),
            (TableType::F32, Value::Float(-0.0), Ok("-0.0f")),
            (TableType::F32, Value::Float(1e-45), Ok("__builtin_bit_cast(float,1u)")),
            (TableType::F32, Value::Float(1e39), Err(", which is too large for `f32`")),
            (TableType::F32, Value::Int(3), Ok("3.0f")),
            (TableType::F32, Value::Int((1 << 24) + 1), Err(", which `f32` does not hold exactly")),
            (TableType::F64, Value::Float(0.1), Ok("0.1")),
            (TableType::F64, Value::Float(5e-324), Ok("__builtin_bit_cast(double,1ull)")),
            (TableType::F16, Value::Float(1.0), Ok("__half_raw{15360}")),
            (TableType::F16, Value::Float(65520.0), Err(", which is too large for `f16`")),
            (TableType::Bf16, Value::Float(1.0), Ok("__nv_bfloat16_raw{16256}")),
            (TableType::I8, Value::Int(-128), Ok("-128")),
            (TableType::I8, Value::Int(128), Err(", but `i8` is from -128 to 127")),
            (TableType::I16, Value::Float(1.0), Err(", which is no integer, as `i16` needs")),
            (TableType::I32, Value::Int(i32::MIN.into()), Ok("-2147483647-1")),
            (TableType::I64, Value::Int(i64::MIN), Ok("-9223372036854775807LL-1")),
            (TableType::U8, Value::Int(255), Ok("255")),
            (TableType::Bool, Value::Bool(true), Ok("true")),
            (TableType::Bool, Value::Int(1), Err(", which is neither `true` nor `false`")),
        ];
        for (ty, value, expected) in cases {
            let found = ty.literal(&value);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{} {value}", ty.name());
        }
    }
}
