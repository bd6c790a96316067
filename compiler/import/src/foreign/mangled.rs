//! Parses parameter types of mangled C++ and Numba symbols.

use cubinder_cuda_text::cuda::name;
use cubinder_expr::DataType;

use crate::kernel_signature::Leaf;
use crate::resolve;

const MAX_SYMBOL: usize = 4096;

/// Parameter in a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mangled {
    /// Pointer to this type, and whether it is `const`.
    Pointer(String, bool),
    /// Number and its bytes.
    Number(String, u32),
    /// Array by value: element, bytes per element, length.
    Array(String, u32, u32),
    /// Numba array: element, dimensions, whether it is C-contiguous.
    Numba(String, usize, bool),
}

/// Demangled C++ symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demangled {
    /// Unqualified name: `perm`.
    pub name: String,
    /// Qualified name: `ops::Outer<int>::perm`.
    pub qualified: String,
    /// Name with template arguments: `ops::Outer<int>::perm<float, 1>`.
    pub full: String,
    /// Parameter types: `float const*`.
    pub params: Vec<String>,
}

/// Back-references can double the length every few characters.
const MAX_DEMANGLED: usize = 1 << 14;

struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MAX_DEMANGLED {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Demangles a symbol, if mangled and not too long.
pub fn demangle(symbol: &str) -> Option<Demangled> {
    if symbol.len() > MAX_SYMBOL || !symbol.starts_with("_Z") {
        return None;
    }
    let mut text = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::default();
    cpp_demangle::Symbol::new(symbol).ok()?.structured_demangle(&mut text, &options).ok()?;
    let inner = text.0.strip_suffix(')')?;
    let open = closed(&text.0)?;
    let (head, params) = (inner.get(..open)?, inner.get(open + 1..)?);
    // Template instances start with the return type.
    let called = head.get(outside(head, " ")..).unwrap_or_default();
    let end = called.ends_with('>').then(|| closed(called)).flatten().unwrap_or(called.len());
    let (qualified, arguments) = called.split_at_checked(end)?;
    // Drops Numba's ABI tags.
    let qualified = qualified.split('[').next().unwrap_or_default().to_owned();
    let name = qualified.get(outside(&qualified, "::")..).unwrap_or_default().to_owned();
    let full = format!("{qualified}{arguments}");
    let params = match parts(params).as_slice() {
        [] | ["void" | ""] => Vec::new(),
        params => params.iter().map(|param| (*param).to_owned()).collect(),
    };
    Some(Demangled { name, qualified, full, params })
}

fn outside(text: &str, separator: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' | b'>' | b']' | b'}' => depth += 1,
            b'(' | b'<' | b'[' | b'{' => depth = depth.saturating_sub(1),
            _ if depth == 0 && text.get(at..).is_some_and(|rest| rest.starts_with(separator)) => {
                return at + separator.len();
            }
            _ => {}
        }
    }
    0
}

fn closed(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().enumerate().rev().find_map(|(at, byte)| {
        match byte {
            b')' | b'>' | b']' | b'}' => depth += 1,
            b'(' | b'<' | b'[' | b'{' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

pub(super) fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    text.split(|c: char| {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0 && !is_quoted
    })
    .map(str::trim)
    .collect()
}

/// Parses a C++ parameter; `None` if unsupported.
pub fn mangled(text: &str) -> Option<Mangled> {
    if let Some((name, arguments)) = text.split_once('<')
        && let Some(arguments) = arguments.strip_suffix('>')
    {
        return match (name.rsplit("::").next()?, parts(arguments).as_slice()) {
            ("Array", [element, dimensions, layout, ..]) => {
                let dimensions = dimensions.parse().ok().filter(|dimensions| *dimensions <= 8)?;
                Some(Mangled::Numba(number(element)?.0, dimensions, *layout == "C"))
            }
            ("array", [element, length]) => {
                let (element, size) = number(element)?;
                Some(Mangled::Array(element, size, length.trim_end_matches(['u', 'l', 'i']).parse().ok()?))
            }
            _ => None,
        };
    }
    if let Some(pointee) = text.strip_suffix('*') {
        let words = pointee.split_whitespace();
        let (consts, base): (Vec<&str>, Vec<&str>) = words.partition(|word| *word == "const");
        return Some(Mangled::Pointer(element(&base.join(" "))?, !consts.is_empty()));
    }
    number(text).map(|(name, size)| Mangled::Number(name, size))
}

/// Unreserved names, such as `half` or `int8_t`, may be the user's classes.
fn builtin(name: &str) -> Option<(Leaf, Option<u32>)> {
    let is_reserved = name.starts_with("__") || !name.contains(['_', ':']) && !name.starts_with("half");
    name::element(name).filter(|_| is_reserved)
}

fn number_name(leaf: Leaf) -> Option<String> {
    match leaf {
        Leaf::Scalar(scalar) => Some(scalar.to_string()),
        Leaf::Half => Some("f16".to_owned()),
        Leaf::Bfloat16 => Some("bf16".to_owned()),
        Leaf::Float8 => Some("f8".to_owned()),
        _ => None,
    }
}

fn number(text: &str) -> Option<(String, u32)> {
    let (leaf, size) = builtin(text)?;
    Some((number_name(leaf)?, size.filter(|_| size == leaf.size())?))
}

/// Returns a pointee's manifest name: number, CUDA vector, `void`, or a float without tensors.
pub fn element(text: &str) -> Option<String> {
    builtin(text)?;
    Some(number(text).map_or_else(|| text.to_owned(), |(name, _)| name))
}

/// `None` if no tensor has such elements.
pub(super) fn tensor_element(pointee: &str) -> Option<&'static str> {
    let (leaf, _) = resolve::element(pointee)?;
    DataType::from_name(&number_name(leaf)?).map(DataType::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_tell_types() {
        let types = |symbol: &str| {
            let Demangled { name, params, .. } = demangle(symbol).unwrap();
            (name, params.iter().filter_map(|param| mangled(param)).collect::<Vec<_>>())
        };
        let (name, params) = types("_Z8circ_padIfEvPKT_PS0_xiii");
        assert_eq!(name, "circ_pad");
        assert_eq!(
            params[..3],
            [
                Mangled::Pointer("f32".into(), true),
                Mangled::Pointer("f32".into(), false),
                Mangled::Number("i64".into(), 8),
            ]
        );
        let (name, params) = types("_ZN3ops5scaleEP6__halfPK6float4N8cubinder5arrayIiLi4EEE");
        assert_eq!(name, "scale");
        assert_eq!(
            params,
            [
                Mangled::Pointer("f16".into(), false),
                Mangled::Pointer("float4".into(), true),
                Mangled::Array("i32".into(), 4, 4),
            ]
        );
        assert_eq!(types("_Z1kv"), ("k".to_owned(), Vec::new()));
        // Outer<int>::k, ops::Outer<float>::perm<float, 1>, k<(anonymous namespace)::A>, k<&f>
        for (symbol, name, full) in [
            ("_ZN5OuterIiE1kEPKfPf", "k", "Outer<int>::k"),
            ("_ZN3ops5OuterIfE4permIfLi1EEEvPKT_", "perm", "ops::Outer<float>::perm<float, 1>"),
            ("_Z1kIN12_GLOBAL__N_11AEEvT_", "k", "k<(anonymous namespace)::A>"),
            ("_ZN12_GLOBAL__N_11kEPf", "k", "(anonymous namespace)::k"),
            ("_Z1kIXadL_Z1fvEEEvPf", "k", "k<&f()>"),
            ("_ZN8__main__4turnB2v1E5ArrayIfLi2E1C7mutable7alignedEi", "turn", "__main__::turn"),
        ] {
            let found = demangle(symbol).unwrap();
            assert_eq!((found.name.as_str(), found.full.as_str()), (name, full), "{symbol}");
        }
        for symbol in ["scale", "_Z", "_Z9999k", ""] {
            assert_eq!(demangle(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn builtin_types_have_names_in_manifests() {
        for (text, name, of_tensor) in [
            ("float", "f32", Some("f32")),
            ("double", "f64", None),
            ("unsigned long long", "u64", None),
            ("signed char", "i8", Some("i8")),
            ("float4", "float4", Some("f32")),
            ("longlong2", "longlong2", Some("i64")),
            ("__half", "f16", Some("f16")),
            ("__half2", "__half2", Some("f16")),
            ("__nv_fp8_e4m3", "f8", Some("f8")),
            ("__nv_fp8_e5m2", "__nv_fp8_e5m2", None),
            ("void", "void", None),
        ] {
            assert_eq!(element(text).as_deref(), Some(name), "{text}");
            assert_eq!(tensor_element(name), of_tensor, "{text}");
        }
        for text in ["half", "half2", "int8_t", "nv_bfloat16", "std::size_t", "f32", "u8", "A", ""] {
            assert_eq!(element(text), None, "{text}");
        }
    }

    #[test]
    fn what_doubles_with_every_level_is_not_written_out() {
        let mut symbol = "_Z1k1A1pIS_S_ES0_IS1_S1_E".to_owned();
        for level in 2..60_u32 {
            let digit = |number: u32| match number {
                0 => String::new(),
                number => char::from_digit(number - 1, 36).unwrap_or('z').to_uppercase().to_string(),
            };
            let last = digit(level.min(35));
            symbol.push_str(&format!("S0_IS{last}_S{last}_E"));
        }
        let began = std::time::Instant::now();
        let _ = demangle(&symbol);
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn arrays_of_numba_are_recognised() {
        let symbol =
            "_ZN8__main__8circ_padB2v1E5ArrayIfLi2E1C7mutable7alignedE5ArrayIdLi1E1A8readonly7alignedEi";
        let Demangled { name, params, .. } = demangle(symbol).unwrap();
        let params: Vec<Mangled> = params.iter().filter_map(|param| mangled(param)).collect();
        assert_eq!(name, "circ_pad");
        assert_eq!(
            params,
            [
                Mangled::Numba("f32".into(), 2, true),
                Mangled::Numba("f64".into(), 1, false),
                Mangled::Number("i32".into(), 4),
            ]
        );
    }
}
