//! Writes `cubinder.h`, the manifest as kernels see it. Unused names must not change machine code. Known unused names
//! are omitted, so variants that differ only in those share one text.

use std::collections::BTreeSet;

use cubinder_expr::{DataType, Format, Value};

use crate::resolve::{Table, Unit};

/// Returns a unit's header: CUDA's headers for used 16-bit and 8-bit floats (10 to 20 ms each), helpers, and
/// `manifest` with parameters, constants and tables, limited to known `names`.
#[must_use]
pub fn header(unit: &Unit, tables: &[&Table], names: Option<&BTreeSet<String>>) -> String {
    let mut text = String::from("#ifndef CUBINDER_H\n#define CUBINDER_H\n");
    let headers =
        [(DataType::F16, "cuda_fp16.h"), (DataType::Bf16, "cuda_bf16.h"), (DataType::F8, "cuda_fp8.h")];
    for (ty, header) in headers {
        let of_table = |table: &&Table| table.ty.name() == ty.name();
        if unit.plugin_types.contains(&ty) || tables.iter().any(of_table) {
            text.push_str(&format!("#include <{header}>\n"));
        }
    }
    text.push_str(ARRAY);
    if unit.plugin_types.contains(&DataType::I4) {
        text.push_str(PAIR);
    }
    if unit.has_formats {
        text.push_str(&formats());
    }
    tables.iter().for_each(|table| text.push_str(&data(table)));
    text.push_str(&manifest(unit, tables, names));
    text.push_str("#endif\n");
    text
}

/// Type of array arguments, laid out like `T[N]`.
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

/// The first element is the lower half (ONNX 1.16, "INT4"; TensorRT).
const PAIR: &str = "\
namespace cubinder {
// Two integers from -8 to 7, side by side in a tensor: the first is `low`.
struct i4x2 {
    unsigned char bits;
    __device__ __forceinline__ constexpr int low() const { return ((bits & 15) ^ 8) - 8; }
    __device__ __forceinline__ constexpr int high() const { return ((bits >> 4) ^ 8) - 8; }
    __device__ __forceinline__ static constexpr i4x2 of(int low, int high)
    {
        return {static_cast<unsigned char>((low & 15) | ((high & 15) << 4))};
    }
};
}
";

fn formats() -> String {
    let names = Format::ALL.map(Format::name).join(", ");
    let each = |value: &dyn Fn(Format) -> String| -> String {
        let of =
            |format: Format| format!("        case format::{}: return {};\n", format.name(), value(format));
        Format::ALL.into_iter().map(of).collect()
    };
    let vectors = each(&|format| format.vector().to_string());
    let channels = each(&|format| format.channel_from_end().to_string());
    let last = each(&|format| format.is_channels_last().to_string());
    format!(
        "namespace cubinder {{\n\
         // How a tensor lies in memory.\n\
         enum class format : int {{ {names} }};\n\
         // To a multiple of what the number of channels is rounded up; 1 where it is not.\n\
         __host__ __device__ constexpr int vector(format f)\n\
         {{\n    switch (f) {{\n{vectors}    }}\n    return 1;\n}}\n\
         // Which dimension counts the channels, from the last one: 3 is the third from the end. 0 where there is none.\n\
         __host__ __device__ constexpr int channel_from_end(format f)\n\
         {{\n    switch (f) {{\n{channels}    }}\n    return 0;\n}}\n\
         // Whether the channels of a place lie side by side.\n\
         __host__ __device__ constexpr bool channels_last(format f)\n\
         {{\n    switch (f) {{\n{last}    }}\n    return false;\n}}\n\
         // The number of channels in memory.\n\
         template <typename I>\n\
         __host__ __device__ constexpr I padded(format f, I channels)\n\
         {{\n    return (channels + (vector(f) - 1)) / vector(f) * vector(f);\n}}\n\
         // Where an element lies: `batch` and `channel`, and the `place` among the `places` of a channel, row by row.\n\
         // Numbers of several types are computed with as C++ adds them.\n\
         template <typename A, typename B, typename C, typename D, typename E>\n\
         __host__ __device__ constexpr auto offset(format f, A batch, B channel, C place, D channels, E places)\n\
             -> decltype(batch + channel + place + channels + places)\n\
         {{\n    \
             using I = decltype(batch + channel + place + channels + places);\n    \
             const I v = vector(f), stored = padded<I>(f, channels);\n    \
             if (channels_last(f))\n        \
                 return (static_cast<I>(batch) * places + place) * stored + channel;\n    \
             return (batch * (stored / v) + static_cast<I>(channel) / v) * places * v + static_cast<I>(place) * v + static_cast<I>(channel) % v;\n\
         }}\n\
         }}\n"
    )
}

/// Writes a table's data as a template, which leaves no code if unused. NVRTC reads strings five times as fast as
/// numbers (a megabyte of `float`, 13.0). The NUL is an extra byte. Empty tables would compile to another kernel's code.
fn data(table: &Table) -> String {
    let Table { name, data, .. } = table;
    if data.is_empty() {
        return format!("#error missing elements of the table {name}\n");
    }
    let length = data.len() + 1;
    format!(
        "{}namespace cubinder {{\n\
         template <typename = void>\n\
         __device__ __align__(16) const char table__{name}[{length}] = \"{}\";\n\
         }}\n",
        no_macro(name),
        quoted(data)
    )
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(*byte));
        } else {
            let digit = |shift: u32| char::from(b'0' + (byte >> shift & 7));
            text.extend(['\\', digit(6), digit(3), digit(0)]);
        }
    }
    text
}

/// Writes a table's member, an object that replaces the array and optimizes away: NVRTC rejects member arrays and
/// references on the device (12.9, 13.0).
fn table(table: &Table) -> String {
    let Table { name, ty, data, .. } = table;
    let (length, ty) = (data.len() / ty.size(), ty.cuda_name());
    format!(
        "    struct table__{name} {{\n        \
         __device__ __forceinline__ operator const {ty}*() const\n        \
         {{\n            \
         return reinterpret_cast<const {ty}*>(cubinder::table__{name}<>);\n        \
         }}\n        \
         __device__ __forceinline__ static constexpr int size() {{ return {length}; }}\n    \
         }};\n    \
         static constexpr table__{name} {name}{{}};\n"
    )
}

/// Writes `manifest` as a class template, of which NVRTC keeps only used members; a namespace's unused constants stay in
/// machine code (13.0: some 600 bytes). Double underscores are reserved, so no constant has its name.
fn manifest(unit: &Unit, tables: &[&Table], names: Option<&BTreeSet<String>>) -> String {
    let declared = |name: &String| !name.is_empty() && names.is_none_or(|names| names.contains(name));
    let types = unit.types.iter().map(|(name, ty)| (name, format!("using {name} = {}", ty.cuda_name())));
    let formats = unit.formats.iter().map(|(name, format)| {
        let format = format.name();
        (name, format!("static constexpr cubinder::format {name} = cubinder::format::{format}"))
    });
    let constants = unit.constants.iter().filter_map(|(name, value)| {
        let (ty, literal) = constant(value)?;
        Some((name, format!("static constexpr {ty} {name} = {literal}")))
    });
    let (mut macros, mut members) = (String::new(), String::new());
    for (name, member) in types.chain(formats).chain(constants).filter(|(name, _)| declared(name)) {
        macros += &no_macro(name);
        members += &format!("    {member};\n");
    }
    tables.iter().for_each(|one| members.push_str(&table(one)));
    format!(
        "{macros}\
         namespace cubinder {{\n\
         // The parameters and constants of this variant. An integer is an `int` where it fits, else a `long long`.\n\
         // A float is a `float`, rounded as any argument is, and a `double` only where it is beyond a `float`'s range.\n\
         template <typename = void>\n\
         struct manifest__members {{\n\
         {members}\
         }};\n\
         }}\n\
         using manifest = cubinder::manifest__members<>;\n"
    )
}

/// Rejects a macro of this name, whose errors would be incomprehensible.
fn no_macro(name: &str) -> String {
    format!(
        "#ifdef {name}\n\
         #error \"{name} is a macro and a name in the manifest: rename one of them, or remove the option that defines it\"\n\
         #endif\n"
    )
}

/// Type and literal.
fn constant(value: &Value) -> Option<(&'static str, String)> {
    match value {
        Value::Bool(value) => Some(("bool", value.to_string())),
        Value::Int(value) => Some(match i32::try_from(*value) {
            // The minimum has no literal.
            Ok(i32::MIN) => ("int", format!("-{} - 1", i32::MAX)),
            Ok(value) => ("int", value.to_string()),
            Err(_) if *value == i64::MIN => ("long long", format!("-{}LL - 1", i64::MAX)),
            Err(_) => ("long long", format!("{value}LL")),
        }),
        Value::Float(value) if value.is_finite() => Some(match single(*value) {
            // The shortest exact decimal, with a point or exponent.
            Some(single) => ("float", format!("{single:?}f")),
            None => ("double", format!("{value:?}")),
        }),
        _ => None,
    }
}

/// `None` out of range, and for subnormal numbers, which lose digits.
fn single(value: f64) -> Option<f32> {
    let single = value as f32;
    (single.is_normal() || f64::from(single) == value).then_some(single)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::test_support::draft;

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
    fn a_table_that_was_not_read_is_no_code() {
        let of = |bytes: &[u8]| {
            data(&Table {
                name: "window".to_owned(),
                ty: crate::manifest::TableType::F32,
                data: bytes.to_vec(),
                file: None,
            })
        };
        assert!(of(&[]).starts_with("#error"));
        assert!(of(&[0; 4]).contains("table__window[5]"));
    }

    #[test]
    fn the_manifest_as_kernels_see_it() {
        let unit = Unit {
            types: vec![("T".to_owned(), DataType::Bf16), ("I".to_owned(), DataType::U8)],
            formats: vec![("F".to_owned(), Format::Hwc8)],
            constants: vec![("BLOCK".to_owned(), Value::Int(256)), ("EPS".to_owned(), Value::Float(1e-5))],
            ..draft(Path::new(""), "", "k", &[]).0
        };
        insta::assert_snapshot!(manifest(&unit, &[], None));
        let taken = ["EPS".to_owned(), "other".to_owned()].into();
        let text = manifest(&unit, &[], Some(&taken));
        assert!(text.contains("EPS") && !text.contains("BLOCK") && !text.contains("using T"), "{text}");
    }
}
