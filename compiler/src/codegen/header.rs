//! The text of `cubinder.h`: what every kernel sees of its manifest.
//!
//! Owns how types and constants of a variant are said in C++. What a kernel does not use must leave nothing in its machine
//! code: a variant's code depends on the names that its kernel reads, not on those that are there.

use cubinder_bundle::{DataType, Value};

use crate::resolve::Unit;

/// The header of a unit: the half precision headers where the plugin has such types (each costs 10 to 20 ms a compile),
/// `cubinder::array`, and the variant's type parameters and constants as members of `manifest`.
#[must_use]
pub fn header(unit: &Unit) -> String {
    let mut text = String::from("#ifndef CUBINDER_H\n#define CUBINDER_H\n");
    for (ty, header) in [(DataType::F16, "cuda_fp16.h"), (DataType::Bf16, "cuda_bf16.h")] {
        if unit.plugin_types.contains(&ty) {
            text.push_str(&format!("#include <{header}>\n"));
        }
    }
    text.push_str(ARRAY);
    text.push_str(&manifest(&unit.types, &unit.constants));
    text.push_str("#endif\n");
    text
}

/// What an array argument of a manifest is to the kernel. An aggregate without padding: its layout is that of `T[N]`.
const ARRAY: &str = "\
namespace cubinder {
// N numbers passed by value.
template <typename T, int N>
struct array {
    static_assert(N > 0, \"an array has at least one element\");
    T data[N];
    __device__ __forceinline__ constexpr T& operator[](int index) { return data[index]; }
    __device__ __forceinline__ constexpr const T& operator[](int index) const { return data[index]; }
    __device__ __forceinline__ static constexpr int size() { return N; }
};
}
";

/// `manifest`, with the type parameters and constants of a variant.
///
/// It is a class made from a template, because NVRTC keeps every constant of a namespace in the machine code, used or not
/// (13.0, tried: some 600 bytes, and other bytes for each value), and of such a class only the members that are used. No
/// constant can have the class's own name: two underscores in a row are refused.
fn manifest(types: &[(String, DataType)], constants: &[(String, Value)]) -> String {
    let declared = |name: &String| !name.is_empty();
    let types = types.iter().filter(|(name, _)| declared(name));
    let constants = constants.iter().filter_map(|(name, value)| {
        let (ty, literal) = constant(value).filter(|_| declared(name))?;
        Some((name, ty, literal))
    });
    let mut macros = String::new();
    let mut members = String::new();
    for (name, ty) in types {
        macros.push_str(&no_macro(name));
        members.push_str(&format!("    using {name} = {};\n", ty.cuda_name()));
    }
    for (name, ty, literal) in constants {
        macros.push_str(&no_macro(name));
        members.push_str(&format!("    static constexpr {ty} {name} = {literal};\n"));
    }
    format!(
        "{macros}\
         namespace cubinder {{\n\
         // The type parameters and constants of this variant. An integer is an `int` where it fits, else a `long long`.\n\
         // A float is a `float`, rounded as any argument is, and a `double` only where it is beyond a `float`'s range.\n\
         template <typename = void>\n\
         struct manifest__members {{\n\
         {members}\
         }};\n\
         }}\n\
         using manifest = cubinder::manifest__members<>;\n"
    )
}

/// A macro would replace the name in its declaration, and what is said about that explains nothing.
fn no_macro(name: &str) -> String {
    format!(
        "#ifdef {name}\n\
         #error \"{name} is a macro and a name of the manifest: rename one of them, or leave the option out that defines it\"\n\
         #endif\n"
    )
}

/// The type and the literal of a constant; nothing for what cannot be one.
fn constant(value: &Value) -> Option<(&'static str, String)> {
    match value {
        Value::Bool(value) => Some(("bool", value.to_string())),
        Value::Int(value) => Some(match i32::try_from(*value) {
            // The least one has no literal of its own.
            Ok(i32::MIN) => ("int", format!("-{} - 1", i32::MAX)),
            Ok(value) => ("int", value.to_string()),
            Err(_) if *value == i64::MIN => ("long long", format!("-{}LL - 1", i64::MAX)),
            Err(_) => ("long long", format!("{value}LL")),
        }),
        Value::Float(value) if value.is_finite() => Some(match single(*value) {
            // The shortest decimal that rounds to the very number; it has a point or an exponent.
            Some(single) => ("float", format!("{single:?}f")),
            None => ("double", format!("{value:?}")),
        }),
        _ => None,
    }
}

/// The nearest `float`, where it says the value as well as a `float` can: not beyond the range, and not below the least normal
/// number, where digits are lost.
fn single(value: f64) -> Option<f32> {
    let single = value as f32;
    (single.is_normal() || f64::from(single) == value).then_some(single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_have_the_type_that_kernels_expect() {
        let said = |value: Value| constant(&value).map(|(ty, literal)| format!("{ty} {literal}"));
        let cases = [
            (Value::Int(256), "int 256"),
            (Value::Int(-1), "int -1"),
            (Value::Int(i32::MAX.into()), "int 2147483647"),
            (Value::Int(i32::MIN.into()), "int -2147483647 - 1"),
            (Value::Int(1 << 31), "long long 2147483648LL"),
            (Value::Int(i64::MIN), "long long -9223372036854775807LL - 1"),
            (Value::Bool(true), "bool true"),
            (Value::Float(0.5), "float 0.5f"),
            (Value::Float(1e-5), "float 1e-5f"),
            (Value::Float(3.0), "float 3.0f"),
            (Value::Float(-0.0), "float -0.0f"),
            (Value::Float(1e16), "float 1e16f"),
            (Value::Float(1e39), "double 1e39"),
            (Value::Float(1e-40), "double 1e-40"),
        ];
        for (value, expected) in cases {
            assert_eq!(said(value).as_deref(), Some(expected));
        }
        assert_eq!(said(Value::Float(f64::NAN)), None);
        assert_eq!(said(Value::Str("text".to_owned())), None);
    }

    #[test]
    fn the_manifest_as_kernels_see_it() {
        let types = [("T".to_owned(), DataType::Bf16), ("I".to_owned(), DataType::U8)];
        let constants = [("BLOCK".to_owned(), Value::Int(256)), ("EPS".to_owned(), Value::Float(1e-5))];
        insta::assert_snapshot!(manifest(&types, &constants));
    }
}
