//! The text of `cubinder.h`: what every kernel sees of its manifest.
//!
//! Owns how types and constants of a variant are said in C++. What a kernel does not use must leave nothing in its machine
//! code: a variant's code depends on the names that its kernel reads, not on those that are there. Where these names are known no other is in the
//! text, so that variants which differ in others have the same text.

use std::collections::BTreeSet;

use cubinder_expr::{DataType, Format, Value};

use crate::resolve::{Table, Unit};

/// The header of a unit: CUDA's headers for 16-bit and 8-bit floats where the plugin has such types (each costs 10 to 20 ms a compile),
/// `cubinder::array`, what the manifest needs besides, and the variant's parameters and constants as members of `manifest`, with
/// these of its tables; where the `names` that the kernel takes are known, with these alone.
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

/// What a tensor of `i4` is to the kernel: a byte with two elements. The one with the lower index is in the lower half (ONNX 1.16, "INT4";
/// TensorRT stores them alike).
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

/// The formats, and what they make of a shape: what [`Format`] says, in C++.
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

/// The data of a table. It is made from a template for the reason for which `manifest` is: without a use nothing is left of it.
///
/// NVRTC reads a string much faster than numbers: a megabyte of `float` takes about a fifth of the time (13.0, measured). The byte that ends
/// the string is one more than the elements have. No table is empty: code with one whose file was not read would be that of another kernel.
fn data(table: &Table) -> String {
    let Table { name, data, .. } = table;
    if data.is_empty() {
        return format!("#error the elements of the table {name} are not there\n");
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

/// Bytes as a string of C++ has them: letters and digits as they are, all others by three octal digits, so that nothing in it looks like
/// anything else.
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

/// What `manifest` has of a table. NVRTC (12.9 and 13.0, tried) refuses arrays in device memory as members, and references to them:
/// it is an object that stands for the array, and is seen through when code is made.
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

/// `manifest`, with the parameters and constants of a variant.
///
/// It is a class made from a template, because NVRTC keeps every constant of a namespace in the machine code, used or not
/// (13.0, tried: some 600 bytes, and other bytes for each value), and of such a class only the members that are used. No
/// constant can have the class's own name: two underscores in a row are refused.
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
        // What no kernel takes is not in it: variants that differ in nothing else have one text.
        let taken = ["EPS".to_owned(), "other".to_owned()].into();
        let text = manifest(&unit, &[], Some(&taken));
        assert!(text.contains("EPS") && !text.contains("BLOCK") && !text.contains("using T"), "{text}");
    }
}
