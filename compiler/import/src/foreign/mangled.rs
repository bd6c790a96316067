//! The types of a kernel's parameters out of its symbol: C++ writes them there, and so does Numba.

/// The longest symbol that is taken apart.
const MAX_SYMBOL: usize = 4096;

/// A parameter as a symbol has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mangled {
    /// A pointer to this, to `const` or not.
    Pointer(String, bool),
    /// A number.
    Number(String),
    /// An array of numbers by value.
    Array(String, u32),
    /// An array of Numba's: its element, how many dimensions it has, and whether it lies row by row.
    Numba(String, usize, bool),
    /// Anything else.
    Other,
}

/// What a symbol of C++ says, as it is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demangled {
    /// The name alone: `perm`.
    pub name: String,
    /// The name with all that it stands in: `ops::Outer<int>::perm`.
    pub qualified: String,
    /// Both: `ops::Outer<int>::perm<float, 1>`.
    pub full: String,
    /// The types of its parameters: `float const*`.
    pub params: Vec<String>,
}

/// The most bytes that a symbol is written out to: what it repeats by reference can double with every few letters.
const MAX_DEMANGLED: usize = 1 << 14;

/// A text that takes no more than [`MAX_DEMANGLED`] bytes.
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

/// What a symbol tells; nothing where it is a plain one, or too long.
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
    // What it gives back stands before it where it is an instance of a template.
    let called = head.get(outside(head, " ")..).unwrap_or_default();
    let end = called.ends_with('>').then(|| closed(called)).flatten().unwrap_or(called.len());
    let (qualified, arguments) = called.split_at_checked(end)?;
    // Tags of an ABI, as Numba has them, are no part of what people call it.
    let qualified = qualified.split('[').next().unwrap_or_default().to_owned();
    let name = qualified.get(outside(&qualified, "::")..).unwrap_or_default().to_owned();
    let full = format!("{qualified}{arguments}");
    let params = match parts(params).as_slice() {
        [] | ["void" | ""] => Vec::new(),
        params => params.iter().map(|param| (*param).to_owned()).collect(),
    };
    Some(Demangled { name, qualified, full, params })
}

/// Where what follows the last of these that stands in no bracket begins; else 0.
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

/// The bracket that the last one of a text closes.
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

/// The name and the parameters that a symbol tells; nothing where it is a plain one.
pub(super) fn demangled(symbol: &str) -> Option<(String, Vec<Mangled>)> {
    let Demangled { name, params, .. } = demangle(symbol)?;
    Some((name, params.iter().map(|param| mangled(param)).collect()))
}

/// The parts between commas that are in no bracket and in no quotes.
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

/// A parameter as C++ writes it.
pub fn mangled(text: &str) -> Mangled {
    if let Some((of, rest)) =
        text.split_once('<').and_then(|(head, rest)| Some((head, rest.strip_suffix('>')?)))
    {
        let arguments = parts(rest);
        return match (of.rsplit("::").next().unwrap_or_default(), arguments.as_slice()) {
            ("Array", [element, dimensions, layout, ..]) => match (number(element), dimensions.parse()) {
                (Some(element), Ok(dimensions)) if dimensions <= 8 => {
                    Mangled::Numba(element.to_owned(), dimensions, *layout == "C")
                }
                _ => Mangled::Other,
            },
            ("array", [element, length]) => {
                let length = length.trim_end_matches(['u', 'l', 'i']).parse();
                match (number(element), length) {
                    (Some(element), Ok(length)) => Mangled::Array(element.to_owned(), length),
                    _ => Mangled::Other,
                }
            }
            _ => Mangled::Other,
        };
    }
    if let Some(pointee) = text.strip_suffix('*') {
        let words: Vec<&str> = pointee.split_whitespace().collect();
        let is_const = words.contains(&"const");
        let base: Vec<&str> = words.into_iter().filter(|word| *word != "const").collect();
        return match element(&base.join(" ")) {
            Some(element) => Mangled::Pointer(element, is_const),
            None => Mangled::Other,
        };
    }
    number(text).map_or(Mangled::Other, |number| Mangled::Number(number.to_owned()))
}

/// What manifests call CUDA's numbers.
fn number(text: &str) -> Option<&'static str> {
    Some(match text {
        "float" => "f32",
        "double" => "f64",
        "__half" => "f16",
        "__nv_bfloat16" => "bf16",
        "__nv_fp8_e4m3" => "f8",
        "bool" => "bool",
        "char" | "signed char" => "i8",
        "unsigned char" => "u8",
        "short" => "i16",
        "unsigned short" => "u16",
        "int" => "i32",
        "unsigned int" => "u32",
        "long" | "long long" => "i64",
        "unsigned long" | "unsigned long long" => "u64",
        _ => return None,
    })
}

/// What a pointer of C++ points to, as manifests call it: numbers, vectors of CUDA's, `void`, and floats that no tensor has.
pub fn element(text: &str) -> Option<String> {
    const OF_VECTORS: &str = "float double char uchar short ushort int uint longlong ulonglong __half";
    let is_vector = |base: &str| OF_VECTORS.split(' ').any(|known| known == base);
    let is_vector = text.strip_suffix(['1', '2', '3', '4']).is_some_and(is_vector);
    let is_known = is_vector || ["void", "__nv_fp8_e5m2", "__nv_fp8_e8m0"].contains(&text);
    number(text).or(is_known.then_some(text)).map(str::to_owned)
}

/// Bytes of a number of the manifest.
pub(super) fn size(ty: &str) -> Option<u32> {
    match ty {
        "f64" | "i64" | "u64" => Some(8),
        "f32" | "i32" | "u32" => Some(4),
        "f16" | "bf16" | "i16" | "u16" => Some(2),
        "i8" | "u8" | "bool" | "f8" => Some(1),
        _ => None,
    }
}

/// The element of a tensor that a pointer to this can read; nothing where no tensor has such elements.
pub(super) fn of_tensor(pointee: &str) -> Option<&str> {
    let base = match pointee {
        "float1" | "float2" | "float3" | "float4" => "f32",
        "int1" | "int2" | "int3" | "int4" => "i32",
        "__half2" => "f16",
        other => other,
    };
    ["f32", "f16", "bf16", "f8", "i8", "i32", "i64", "u8", "bool"].contains(&base).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_tell_types() {
        let (name, params) = demangled("_Z8circ_padIfEvPKT_PS0_xiii").unwrap();
        assert_eq!(name, "circ_pad");
        assert_eq!(
            params[..3],
            [
                Mangled::Pointer("f32".into(), true),
                Mangled::Pointer("f32".into(), false),
                Mangled::Number("i64".into()),
            ]
        );
        let (name, params) = demangled("_ZN3ops5scaleEP6__halfPK6float4N8cubinder5arrayIiLi4EEE").unwrap();
        assert_eq!(name, "scale");
        assert_eq!(
            params,
            [
                Mangled::Pointer("f16".into(), false),
                Mangled::Pointer("float4".into(), true),
                Mangled::Array("i32".into(), 4),
            ]
        );
        assert_eq!(demangled("_Z1kv"), Some(("k".to_owned(), Vec::new())));
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
            assert_eq!(demangled(symbol), None, "{symbol}");
        }
    }

    /// Each level names the one before twice, by reference.
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
        let _ = demangled(&symbol);
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn arrays_of_numba_are_recognised() {
        let symbol =
            "_ZN8__main__8circ_padB2v1E5ArrayIfLi2E1C7mutable7alignedE5ArrayIdLi1E1A8readonly7alignedEi";
        let (name, params) = demangled(symbol).unwrap();
        assert_eq!(name, "circ_pad");
        assert_eq!(
            params,
            [
                Mangled::Numba("f32".into(), 2, true),
                Mangled::Numba("f64".into(), 1, false),
                Mangled::Number("i32".into()),
            ]
        );
    }
}
