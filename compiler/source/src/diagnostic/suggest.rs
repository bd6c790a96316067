/// Generated files have many names.
const MAX_CANDIDATES: usize = 1000;

/// Returns the nearest candidate within a third of the characters; swaps are one edit.
#[must_use]
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let candidates: Vec<&str> = candidates.into_iter().take(MAX_CANDIDATES + 1).collect();
    // The distance takes quadratic time.
    if length > 64 || candidates.len() > MAX_CANDIDATES {
        return None;
    }
    let limit = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let candidate_length = candidate.chars().count();
        if candidate_length.abs_diff(length) > limit || candidate == name {
            continue;
        }
        let same_letters = candidate.eq_ignore_ascii_case(name);
        let distance = if same_letters { 0 } else { strsim::osa_distance(name, candidate) };
        // If all characters differ, names are not similar.
        let plausible = same_letters || (distance <= limit && distance < length.max(candidate_length));
        if plausible && best.is_none_or(|(nearest, _)| distance < nearest) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Suggests a type, preferring other languages' names.
#[must_use]
pub fn suggest_type<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match meant_type(name) {
        Some(wanted) => candidates.into_iter().find(|known| *known == wanted),
        None => suggest(name, candidates),
    }
}

/// Returns the type that a name clearly means, if no candidate is that type.
#[must_use]
pub fn lacking_type<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let wanted = meant_type(name)?;
    candidates.into_iter().all(|known| known != wanted).then_some(wanted)
}

fn meant_type(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let (element, list) = match lower.strip_suffix("[]") {
        Some(element) => (element, "[]"),
        None => (lower.as_str(), ""),
    };
    let short = element.strip_suffix("_t").unwrap_or(element);
    let ours = match short {
        "ints" if list.is_empty() => return Some("i32[]".to_owned()),
        "floats" if list.is_empty() => return Some("f32[]".to_owned()),
        "strings" if list.is_empty() => return Some("string[]".to_owned()),
        "float" | "float32" | "fp32" | "single" | "f32" => "f32",
        "half" | "float16" | "fp16" | "__half" | "f16" => "f16",
        "bfloat16" | "__nv_bfloat16" | "bf16" => "bf16",
        "double" | "float64" | "fp64" | "f64" => "f64",
        "fp8" | "f8" | "float8" | "e4m3" | "f8e4m3" | "float8e4m3fn" | "__nv_fp8_e4m3" => "f8",
        "fp4" | "f4" | "float4" | "e2m1" | "nvfp4" | "float4e2m1" => "f4",
        "int4" | "i4" => "i4",
        "char" | "int8" | "i8" => "i8",
        "short" | "int16" | "i16" => "i16",
        "int" | "int32" | "i32" => "i32",
        "long" | "int64" | "i64" => "i64",
        "uint8" | "byte" | "u8" => "u8",
        "uint16" | "u16" | "ushort" => "u16",
        "uint32" | "u32" | "uint" | "unsigned" => "u32",
        "uint64" | "u64" | "ulong" | "size" => "u64",
        "boolean" | "bool" => "bool",
        "str" | "text" | "string" => "string",
        "complex" | "complex64" => "complex64",
        _ => return None,
    };
    Some(format!("{ours}{list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_other_names() {
        let known = ["T", "f32", "f16", "i32", "i32[]", "bool"];
        for (name, wanted) in [
            ("float32", Some("f32")),
            ("Half", Some("f16")),
            ("int32_t", Some("i32")),
            ("int[]", Some("i32[]")),
            ("boolean", Some("bool")),
            ("i23", Some("i32")),
            ("double", None),
            ("string", None),
            ("u32", None),
            ("f64", None),
            ("uint8_t", None),
        ] {
            assert_eq!(suggest_type(name, known), wanted, "{name}");
        }
    }

    #[test]
    fn types_that_there_are_not_have_a_name() {
        let known = ["T", "f32", "f16", "i32", "i32[]", "bool"];
        let lacking = |name| lacking_type(name, known);
        assert_eq!(lacking("double").as_deref(), Some("f64"));
        assert_eq!(lacking("uint32_t").as_deref(), Some("u32"));
        assert_eq!(lacking("float32"), None);
        assert_eq!(lacking("i23"), None);
        assert_eq!(suggest_type("INTS", known), Some("i32[]"));
    }

    #[test]
    fn finds_slips() {
        let known = ["shared_bytes", "source", "kernel", "grid", "block", "T"];
        assert_eq!(suggest("shared_byte", known), Some("shared_bytes"));
        assert_eq!(suggest("gird", known), Some("grid"));
        assert_eq!(suggest("KERNEL", known), Some("kernel"));
        assert_eq!(suggest("t", known), Some("T"));
        assert_eq!(suggest("U", known), None);
        assert_eq!(suggest("outputs", known), None);
        assert_eq!(suggest("", known), None);
        assert_eq!(suggest(&"x".repeat(100_000), known), None);
    }

    #[test]
    fn long_lists_of_candidates_are_not_searched() {
        let names: Vec<String> = (0..=MAX_CANDIDATES).map(|number| format!("name{number}")).collect();
        let near = |count| suggest("nam7", names.iter().take(count).map(String::as_str));
        assert_eq!(near(MAX_CANDIDATES), Some("name7"));
        assert_eq!(near(MAX_CANDIDATES + 1), None);
    }
}
