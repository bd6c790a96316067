//! What the type of a parameter of `[[code]]` is: names of the manifest's types, type parameters, and CUDA's own names.

use cubinder_expr::{DataType, ScalarType};

use super::super::expression::Compiler;
use super::super::rows::Row;
use crate::diagnostic::{Diagnostic, suggest};
use crate::kernel_signature::{Leaf, Param, ParamType};
use crate::manifest::{ParameterDecl, PassedDecl};
use crate::rules;

/// What a type is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Element {
    leaf: Leaf,
    /// Bytes; absent for `void`.
    size: Option<u32>,
}

const fn int(bytes: u8) -> Leaf {
    Leaf::Scalar(ScalarType::Int { bytes })
}

const fn uint(bytes: u8) -> Leaf {
    Leaf::Scalar(ScalarType::UInt { bytes })
}

/// CUDA's names of single numbers, and those that the manifest has for them.
const NUMBERS: [(&str, Leaf); 38] = [
    ("f32", Leaf::Scalar(ScalarType::F32)),
    ("f64", Leaf::Scalar(ScalarType::F64)),
    ("f16", Leaf::Half),
    ("bf16", Leaf::Bfloat16),
    ("f8", Leaf::Float8),
    ("bool", Leaf::Scalar(ScalarType::Bool)),
    ("i8", int(1)),
    ("i16", int(2)),
    ("i32", int(4)),
    ("i64", int(8)),
    ("u8", uint(1)),
    ("u16", uint(2)),
    ("u32", uint(4)),
    ("u64", uint(8)),
    ("float", Leaf::Scalar(ScalarType::F32)),
    ("double", Leaf::Scalar(ScalarType::F64)),
    ("half", Leaf::Half),
    ("__half", Leaf::Half),
    ("__nv_bfloat16", Leaf::Bfloat16),
    ("__nv_fp8_e4m3", Leaf::Float8),
    ("__nv_fp8_e5m2", Leaf::OtherFloat8),
    ("__nv_fp8_e8m0", Leaf::OtherFloat8),
    ("char", int(1)),
    ("signed char", int(1)),
    ("unsigned char", uint(1)),
    ("short", int(2)),
    ("unsigned short", uint(2)),
    ("int", int(4)),
    ("unsigned", uint(4)),
    ("unsigned int", uint(4)),
    ("long", int(8)),
    ("unsigned long", uint(8)),
    ("long long", int(8)),
    ("unsigned long long", uint(8)),
    ("int32_t", int(4)),
    ("int64_t", int(8)),
    ("uint64_t", uint(8)),
    ("size_t", uint(8)),
];

/// CUDA's vectors: the name before the number of elements (`vector_types.h`).
const VECTORS: [(&str, Leaf); 12] = [
    ("float", Leaf::Scalar(ScalarType::F32)),
    ("double", Leaf::Scalar(ScalarType::F64)),
    ("char", int(1)),
    ("uchar", uint(1)),
    ("short", int(2)),
    ("ushort", uint(2)),
    ("int", int(4)),
    ("uint", uint(4)),
    ("long", int(8)),
    ("ulong", uint(8)),
    ("longlong", int(8)),
    ("ulonglong", uint(8)),
];

/// The parameter in a row.
pub(super) fn param(
    compiler: &mut Compiler<'_>,
    decl: &ParameterDecl,
    passed: &PassedDecl,
    row: &Row,
) -> Result<Param, Box<Diagnostic>> {
    let base = passed.base.value.as_str();
    let of_row = row.types.iter().find(|(name, _)| name == base).map(|(_, ty)| *ty);
    if of_row.is_some() {
        compiler.use_name(base);
    }
    let span = compiler.span(passed.base.range.clone());
    let error = |message: String, label: &'static str| {
        Diagnostic::error(message).code(rules::UNKNOWN_TYPE).at(span.clone(), label)
    };
    let Some(element) = of_row.map(of_tensor).or_else(|| named(base)) else {
        let types = row.types.iter().map(|(name, _)| name.as_str());
        let known = types.chain(NUMBERS.iter().map(|(name, _)| *name)).chain(["void"]);
        let error = error(format!("unknown type `{base}`"), "no type of a parameter");
        let near = suggest(base, known);
        let error = match (passed.is_pointer, near) {
            (false, None) => {
                error.note("structs of several types cannot be passed by value, whatever their size")
            }
            _ => error,
        };
        return Err(Box::new(match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(
                "a type is `f32`, `f16`, `bf16`, `i8` to `i64`, `u8` to `u64`, `bool`, `f64`, a type parameter, or CUDA's own name of a number or a vector; \
                 pointers have a `*`, arrays by value a length, as a struct that holds nothing else: `i64[4]`",
            ),
        }));
    };
    let name = match of_row {
        Some(ty) => ty.cuda_name(),
        None => base,
    };
    let spelling = match (passed.is_pointer, passed.is_const, passed.len) {
        (true, true, _) => format!("const {name}*"),
        (true, false, _) => format!("{name}*"),
        (false, _, Some(len)) => format!("{name}[{len}]"),
        (false, _, None) => name.to_owned(),
    };
    let scalar = || match element.leaf {
        Leaf::Scalar(scalar) if element.size == Some(scalar.size()) => Ok(scalar),
        _ => Err(Box::new(
            error(format!("a `{name}` cannot be passed by value"), "passed by value")
                .help("numbers of 8 to 64 bits, `f32`, `f64` and `bool` can be; what is a pointer has a `*`"),
        )),
    };
    let ty = match (passed.is_pointer, passed.len) {
        (true, _) => ParamType::Pointer {
            pointee: name.to_owned(),
            pointee_size: element.size,
            is_const: passed.is_const,
            leaf: element.leaf,
        },
        (false, Some(len)) => ParamType::Array { element: scalar()?, len },
        (false, None) => match scalar()? {
            ScalarType::Int { bytes } => ParamType::Int { bytes },
            ScalarType::UInt { bytes } => ParamType::UInt { bytes },
            ScalarType::F32 => ParamType::F32,
            ScalarType::F64 => ParamType::F64,
            ScalarType::Bool => ParamType::Bool,
            ty @ ScalarType::Natural { .. } => ParamType::Enum(ty),
        },
    };
    if passed.multiple.is_some()
        && !matches!(ty, ParamType::Pointer { .. } | ParamType::Int { .. } | ParamType::UInt { .. })
    {
        let error =
            error("only pointers and integers are multiples of something".to_owned(), "this is neither");
        return Err(Box::new(error.help("leave `multiple_of` out")));
    }
    Ok(Param { name: decl.name.value.clone(), ty, spelling })
}

/// What all parts of a type with this name are, and its bytes; absent for `void`. Nothing where it is no name of the manifest's or CUDA's.
pub fn element(name: &str) -> Option<(Leaf, Option<u32>)> {
    named(name).map(|element| (element.leaf, element.size))
}

fn named(name: &str) -> Option<Element> {
    if name == "void" {
        return Some(Element { leaf: Leaf::Opaque, size: None });
    }
    if name == "i4" {
        return Some(of_tensor(DataType::I4));
    }
    let number = NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, leaf)| *leaf);
    let number = number.and_then(|leaf| Some(Element { leaf, size: Some(leaf.size()?) }));
    number.or_else(|| match name {
        "__half2" | "half2" => Some(Element { leaf: Leaf::Half, size: Some(4) }),
        "__nv_bfloat162" => Some(Element { leaf: Leaf::Bfloat16, size: Some(4) }),
        _ => vector(name),
    })
}

fn vector(name: &str) -> Option<Element> {
    let (base, count) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let count = count.parse::<u32>().ok().filter(|count| (1..=4).contains(count))?;
    let (_, leaf) = VECTORS.iter().find(|(known, _)| *known == base)?;
    Some(Element { leaf: *leaf, size: Some(leaf.size()?.checked_mul(count)?) })
}

fn of_tensor(ty: DataType) -> Element {
    let leaf = match ty {
        DataType::F32 => Leaf::Scalar(ScalarType::F32),
        DataType::F16 => Leaf::Half,
        DataType::Bf16 => Leaf::Bfloat16,
        DataType::F8 => Leaf::Float8,
        DataType::I8 => int(1),
        DataType::I32 => int(4),
        DataType::I64 => int(8),
        DataType::U8 | DataType::I4 => uint(1),
        DataType::Bool => Leaf::Scalar(ScalarType::Bool),
    };
    Element { leaf, size: leaf.size() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_types() {
        assert_eq!(named("float4"), Some(Element { leaf: Leaf::Scalar(ScalarType::F32), size: Some(16) }));
        assert_eq!(named("ulonglong2"), Some(Element { leaf: uint(8), size: Some(16) }));
        assert_eq!(named("void").map(|found| found.size), Some(None));
        assert_eq!(named("__half2").and_then(|found| found.size), Some(4));
        for name in ["float5", "float0", "", "é", "x", "long double"] {
            assert_eq!(named(name), None, "{name}");
        }
        let mut names: Vec<&str> = NUMBERS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
