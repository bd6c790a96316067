//! Types of `[[code]]` parameters: the manifest's and CUDA's names.

use cubinder_cuda_text::cuda::name;
use cubinder_expr::{DataType, ScalarType};

use super::super::errors::{NoMultiple, NotByValue, UnknownParameterType};
use super::super::expression::Compiler;
use super::super::rows::Row;
use crate::diagnostic::{Diagnostic, suggest};
use crate::kernel_signature::{Leaf, Param, ParamType};
use crate::manifest::{ParameterDecl, PassedDecl};

/// Candidates for misspelt types.
const COMMON_NAMES: &str = "f32, f64, f16, bf16, f8, bool, i8, i16, i32, i64, u8, u16, u32, u64, float, double, half, __half, \
    __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2, __nv_fp8_e8m0, char, signed char, unsigned char, short, unsigned short, int, \
    unsigned, unsigned int, long, unsigned long, long long, unsigned long long, int32_t, int64_t, uint64_t, size_t, void";

pub(super) fn param(
    compiler: &mut Compiler<'_>,
    decl: &ParameterDecl,
    passed: &PassedDecl,
    row: &Row,
) -> Result<Param, Box<Diagnostic>> {
    let base = passed.base.value.as_str();
    let of_row = row.types.iter().find(|(name, _)| name == base).map(|(_, ty)| ty.cuda_name());
    if of_row.is_some() {
        compiler.use_name(base);
    }
    let span = compiler.span(&passed.base.range);
    let name = of_row.unwrap_or(base);
    let Some((leaf, size)) = element(name) else {
        let types = row.types.iter().map(|(name, _)| name.as_str());
        let near = suggest(base, types.chain(COMMON_NAMES.split(", ")));
        let is_value = !passed.is_pointer && near.is_none();
        let note =
            is_value.then_some("structs of several types cannot be passed by value, regardless of size");
        return Err(Box::new(UnknownParameterType { base, span, note, near }.into()));
    };
    let spelling = match (passed.is_pointer, passed.is_const, passed.len) {
        (true, true, _) => format!("const {name}*"),
        (true, false, _) => format!("{name}*"),
        (false, _, Some(len)) => format!("{name}[{len}]"),
        (false, _, None) => name.to_owned(),
    };
    let scalar = || match leaf {
        Leaf::Scalar(scalar) if size == Some(scalar.size()) => Ok(scalar),
        _ => Err(Box::new(NotByValue { name, span: span.clone() }.into())),
    };
    let ty = match (passed.is_pointer, passed.len) {
        (true, _) => ParamType::Pointer {
            pointee: name.to_owned(),
            pointee_size: size,
            is_const: passed.is_const,
            leaf,
        },
        (false, Some(len)) => ParamType::Array { element: scalar()?, len },
        (false, None) => scalar()?.into(),
    };
    let is_integer = matches!(ty, ParamType::Scalar(ScalarType::Int { .. } | ScalarType::UInt { .. }));
    if passed.multiple.is_some() && !passed.is_pointer && !is_integer {
        return Err(Box::new(NoMultiple { span }.into()));
    }
    Ok(Param { name: decl.name.value.clone(), ty, spelling })
}

/// Returns a type's element and size in bytes (`None` for `void`).
pub fn element(name: &str) -> Option<(Leaf, Option<u32>)> {
    name::element(match name {
        "f64" => "double",
        "i16" => "short",
        "u16" => "unsigned short",
        "u32" => "unsigned",
        "u64" => "unsigned long long",
        _ => match DataType::from_name(name) {
            Some(ty) => ty.cuda_name(),
            None => name,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_types() {
        let uint = |bytes| Leaf::Scalar(ScalarType::UInt { bytes });
        assert_eq!(element("float4"), Some((Leaf::Scalar(ScalarType::F32), Some(16))));
        assert_eq!(element("ulonglong2"), Some((uint(8), Some(16))));
        assert_eq!(element("u32"), Some((uint(4), Some(4))));
        assert_eq!(element("i4"), Some((uint(1), Some(1))));
        assert_eq!(element("void"), Some((Leaf::Opaque, None)));
        assert_eq!(element("__half2").and_then(|found| found.1), Some(4));
        for name in ["float5", "float0", "", "é", "x", "long double"] {
            assert_eq!(element(name), None, "{name}");
        }
        assert!(COMMON_NAMES.split(", ").all(|name| element(name).is_some()));
    }
}
