use cubinder_expr::{DataType, ScalarType};

use crate::kernel_signature::Leaf;

/// Returns why elements of `ty` do not match a pointee of `size` bytes with parts `leaf`. `size` is `None` for `void` and incomplete types.
///
/// The pointee must contain whole elements. Accepted are
/// 1. numbers of the element's type or vectors of them: `float`, `float4` for `f32`;
/// 2. integers or enumerations of the element's width, or vectors;
/// 3. integers of any width as a vector: `uint4` for eight `f16`;
/// 4. other numbers as a vector of at least two elements: `float4` for eight `f16`;
/// 5. integers for elements that share a byte (`i4`);
/// 6. opaque contents: `void`, incomplete types, unions, mixed structs.
///
/// Rejected are parts of the element's width but another kind (`float` for `i32`), wider numbers (`double` for `f32`:
/// indexing would exceed the tensor), enumerations of another width, pointers and functions.
pub(crate) fn misfit(ty: DataType, size: Option<u32>, leaf: Leaf) -> Option<String> {
    if leaf == Leaf::Address {
        return Some("tensors contain elements, not addresses".to_owned());
    }
    let size = size?;
    let element = ty.size().unwrap_or(1);
    if size == 0 || !size.is_multiple_of(element) {
        return Some("not a multiple of the element size".to_owned());
    }
    let part = leaf.size()?;
    let is_vector = size > part;
    let fits = match leaf {
        Leaf::Enum { .. } => part == element,
        Leaf::Scalar(ScalarType::Int { .. } | ScalarType::UInt { .. }) => {
            part == element || is_vector || ty.size().is_none()
        }
        Leaf::OtherFloat8 if element == 1 => matches!(ty, DataType::I8 | DataType::U8),
        _ if is_own(ty, leaf) => true,
        _ => part != element && is_vector && size > element,
    };
    let count = u64::from(size) * 8 / u64::from(ty.bits());
    match (fits, leaf) {
        (true, _) => None,
        (false, Leaf::Enum { .. }) => Some("an enumeration must have the width of the element".to_owned()),
        (false, _) if part > element => Some(format!("{count} elements would be read as one number")),
        (false, _) if part < element => Some("one element would be read as several numbers".to_owned()),
        (false, _) => Some("each element would be read as another kind of number".to_owned()),
    }
}

fn is_own(ty: DataType, leaf: Leaf) -> bool {
    matches!(
        (ty, leaf),
        (DataType::F32, Leaf::Scalar(ScalarType::F32))
            | (DataType::F16, Leaf::Half)
            | (DataType::Bf16, Leaf::Bfloat16)
            | (DataType::F8, Leaf::Float8)
            | (DataType::Bool, Leaf::Scalar(ScalarType::Bool))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_fit_by_what_they_point_to() {
        let int = |bytes: u8| Leaf::Scalar(ScalarType::Int { bytes });
        let unsigned = |bytes: u8| Leaf::Scalar(ScalarType::UInt { bytes });
        let (f32, f64) = (Leaf::Scalar(ScalarType::F32), Leaf::Scalar(ScalarType::F64));
        let bool = Leaf::Scalar(ScalarType::Bool);
        let accepted = [
            (DataType::F32, Some(4), f32),
            (DataType::F32, Some(16), f32),
            (DataType::F16, Some(2), Leaf::Half),
            (DataType::F16, Some(4), Leaf::Half),
            (DataType::Bf16, Some(2), Leaf::Bfloat16),
            (DataType::Bool, Some(1), bool),
            (DataType::F8, Some(1), Leaf::Float8),
            (DataType::F8, Some(4), Leaf::Float8),
            (DataType::U8, Some(1), Leaf::OtherFloat8),
            (DataType::I8, Some(4), Leaf::OtherFloat8),
            (DataType::F32, Some(4), unsigned(4)),
            (DataType::F32, Some(16), unsigned(4)),
            (DataType::I32, Some(4), unsigned(4)),
            (DataType::Bool, Some(1), unsigned(1)),
            (DataType::F8, Some(1), unsigned(1)),
            (DataType::I4, Some(1), unsigned(1)),
            (DataType::I4, Some(4), unsigned(4)),
            (DataType::I4, Some(16), unsigned(4)),
            (DataType::I32, Some(4), Leaf::Enum { bytes: 4 }),
            (DataType::F16, Some(16), unsigned(4)),
            (DataType::F16, Some(16), f32),
            (DataType::F16, Some(8), f32),
            (DataType::F32, Some(4), unsigned(1)),
            (DataType::F32, Some(16), f64),
            (DataType::I64, Some(16), f32),
            (DataType::F16, Some(4), Leaf::OtherFloat8),
            (DataType::Bool, Some(16), int(4)),
            (DataType::I8, Some(4), unsigned(1)),
            (DataType::F32, None, Leaf::Opaque),
            (DataType::F32, Some(8), Leaf::Opaque),
        ];
        for (ty, size, leaf) in accepted {
            assert_eq!(misfit(ty, size, leaf), None, "{ty:?} {size:?} {leaf:?}");
        }
    }

    #[test]
    fn pointers_to_something_else_are_refused() {
        let unsigned = |bytes: u8| Leaf::Scalar(ScalarType::UInt { bytes });
        let (f32, f64) = (Leaf::Scalar(ScalarType::F32), Leaf::Scalar(ScalarType::F64));
        let refused = [
            (DataType::F32, Some(8), Leaf::Address, "tensors contain elements, not addresses"),
            (DataType::I64, Some(8), Leaf::Address, "tensors contain elements, not addresses"),
            (DataType::F32, None, Leaf::Address, "tensors contain elements, not addresses"),
            (DataType::F32, Some(2), Leaf::Half, "not a multiple of the element size"),
            (DataType::F32, Some(1), unsigned(1), "not a multiple of the element size"),
            (DataType::F32, Some(6), Leaf::Opaque, "not a multiple of the element size"),
            (DataType::I64, Some(4), unsigned(4), "not a multiple of the element size"),
            (
                DataType::F8,
                Some(1),
                Leaf::OtherFloat8,
                "each element would be read as another kind of number",
            ),
            (
                DataType::F8,
                Some(4),
                Leaf::OtherFloat8,
                "each element would be read as another kind of number",
            ),
            (DataType::F32, Some(8), f64, "2 elements would be read as one number"),
            (DataType::F16, Some(4), f32, "2 elements would be read as one number"),
            (DataType::I32, Some(8), unsigned(8), "2 elements would be read as one number"),
            (DataType::Bool, Some(4), unsigned(4), "4 elements would be read as one number"),
            (DataType::I8, Some(4), unsigned(4), "4 elements would be read as one number"),
            (DataType::U8, Some(2), unsigned(2), "2 elements would be read as one number"),
            (DataType::F8, Some(8), unsigned(8), "8 elements would be read as one number"),
            (DataType::F16, Some(4), unsigned(4), "2 elements would be read as one number"),
            (DataType::Bf16, Some(8), unsigned(8), "4 elements would be read as one number"),
            (DataType::F32, Some(4), Leaf::Half, "one element would be read as several numbers"),
            (DataType::I64, Some(8), f32, "one element would be read as several numbers"),
            (DataType::F16, Some(2), Leaf::Bfloat16, "each element would be read as another kind of number"),
            (
                DataType::F8,
                Some(1),
                Leaf::Scalar(ScalarType::Bool),
                "each element would be read as another kind of number",
            ),
            (DataType::F8, Some(4), f32, "4 elements would be read as one number"),
            (DataType::I8, Some(1), Leaf::Float8, "each element would be read as another kind of number"),
            (DataType::I4, Some(1), Leaf::Float8, "each element would be read as another kind of number"),
            (DataType::F16, Some(4), Leaf::Bfloat16, "each element would be read as another kind of number"),
            (DataType::I32, Some(4), f32, "each element would be read as another kind of number"),
            (DataType::I32, Some(16), f32, "each element would be read as another kind of number"),
            (
                DataType::U8,
                Some(1),
                Leaf::Scalar(ScalarType::Bool),
                "each element would be read as another kind of number",
            ),
            (
                DataType::F16,
                Some(4),
                Leaf::Enum { bytes: 4 },
                "an enumeration must have the width of the element",
            ),
        ];
        for (ty, size, leaf, reason) in refused {
            assert_eq!(misfit(ty, size, leaf).as_deref(), Some(reason), "{ty:?} {size:?} {leaf:?}");
        }
    }
}
