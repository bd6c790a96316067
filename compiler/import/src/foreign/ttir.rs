//! Reads parameters and specializations from `NAME.ttir` (Triton 3.9.0): `tt.func public @NAME(%x: !tt.ptr<f16>
//! {tt.divisibility = 16 : i32} loc("x"(#loc)), ...)`. Code has up to two more pointers.

use std::collections::BTreeMap;

use super::mangled::parts;
use crate::loaded::{Argument, Function};

/// Parses the text's kernel.
pub fn function(text: &str) -> Result<Function, String> {
    let (_, rest) = text.split_once("tt.func public @").ok_or("it has no `tt.func public`")?;
    let (name, rest) = rest.split_once('(').ok_or("the kernel has no parameters")?;
    let name = name.trim().trim_matches('"').to_owned();
    let end = closing(rest).ok_or("the parameter list is not closed")?;
    let list = &rest[..end];
    let locations = locations(text);
    let mut arguments = Vec::new();
    let mut place = None;
    for part in parts(list).into_iter().filter(|part| !part.is_empty()) {
        let argument = argument(part, &locations).ok_or_else(|| format!("invalid parameter `{part}`"))?;
        if place.is_none() {
            place = part.rsplit_once(" loc(").and_then(|(_, location)| named(location, &locations).1);
        }
        arguments.push(argument);
    }
    Ok(Function { name, arguments, place })
}

fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0_usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parses `#loc12 = loc("x_ptr"(#loc))` without `loc(`.
fn locations(text: &str) -> BTreeMap<&str, &str> {
    let line = |line| str::split_once(line, " = loc(").filter(|(place, _)| place.starts_with('#'));
    text.lines().filter_map(line).collect()
}

/// Local variables' names enclose the argument's: use the innermost.
fn named<'t>(
    location: &'t str,
    locations: &BTreeMap<&'t str, &'t str>,
) -> (Option<&'t str>, Option<(String, u32)>) {
    const DEEPEST: usize = 64;
    let (mut name, mut rest) = (None, location);
    for _ in 0..DEEPEST {
        if rest.starts_with('#') {
            let end = rest.find(')').unwrap_or(rest.len());
            match locations.get(&rest[..end]) {
                Some(inner) => rest = inner,
                None => break,
            }
        }
        let Some((text, behind)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
            break;
        };
        if let Some(place) = behind.strip_prefix(':') {
            let line = place.split(':').next().unwrap_or_default().parse().ok();
            return (name, line.map(|line| (text.to_owned(), line)));
        }
        name = Some(text);
        match behind.strip_prefix('(') {
            Some(inner) => rest = inner,
            None => break,
        }
    }
    (name, None)
}

fn argument<'t>(part: &'t str, locations: &BTreeMap<&'t str, &'t str>) -> Option<Argument> {
    let (value, rest) = part.split_once(':')?;
    let value = value.trim();
    let (rest, location) = match rest.rsplit_once(" loc(") {
        Some((rest, location)) => (rest, Some(location)),
        None => (rest, None),
    };
    let (ty, attributes) = match rest.split_once('{') {
        Some((ty, attributes)) => (ty.trim(), attributes.rsplit_once('}')?.0),
        None => (rest.trim(), ""),
    };
    let name = location.and_then(|location| named(location, locations).0);
    let name = name.unwrap_or_else(|| value.trim_start_matches('%')).to_owned();
    let pointee = ty.strip_prefix("!tt.ptr<").and_then(|ty| ty.strip_suffix('>'));
    let mut argument = Argument {
        name,
        ty: pointee.map_or(ty, |pointee| pointee.split(',').next().unwrap_or_default()).trim().to_owned(),
        is_pointer: pointee.is_some(),
        divisibility: None,
        unknown: Vec::new(),
    };
    for attribute in parts(attributes).into_iter().filter(|attribute| !attribute.is_empty()) {
        let (key, number) = attribute.split_once('=').unwrap_or((attribute, ""));
        let number = number.split(':').next().unwrap_or_default().trim().parse::<u32>().ok();
        match (key.trim(), number) {
            ("tt.divisibility", Some(number)) if number > 0 => argument.divisibility = Some(number),
            (key, _) => argument.unknown.push(key.to_owned()),
        }
    }
    value.starts_with('%').then_some(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#loc = loc(\"k.py\":7:1)\n#loc12 = loc(\"y_ptr\"(#loc))\nmodule {\n  \
        tt.func public @add(%x_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc(\"x_ptr\"(#loc)), %arg1: !tt.ptr<f32, 1> loc(#loc12), \
        %n: i64 {tt.divisibility = 8 : i32, tt.odd = 1 : i32} loc(\"n\"(#loc)), %alpha: f32) attributes {noinline = false} {\n    \
        %0 = tt.splat %x_ptr : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>> loc(#loc)\n    \
        %1 = tt.load %0 : tensor<4x!tt.ptr<f16>> loc(#loc)\n    \
        %2 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>> loc(#loc)\n    \
        %3:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %2, %q = %1) -> (tensor<4xf32>) {\n    \
        tt.store %p, %1 : tensor<4x!tt.ptr<f32>> loc(#loc)\n    }\n    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n";

    #[test]
    fn parameters_are_read() {
        let function = function(TEXT).unwrap();
        assert_eq!(function.name, "add");
        let shown: Vec<String> = function
            .arguments
            .iter()
            .map(|it| {
                format!(
                    "{} {}{} {:?} {:?}",
                    it.name,
                    it.ty,
                    if it.is_pointer { "*" } else { "" },
                    it.divisibility,
                    it.unknown
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "x_ptr f16* Some(16) []",
                "y_ptr f32* None []",
                "n i64 Some(8) [\"tt.odd\"]",
                "alpha f32 None []",
            ]
        );
    }

    #[test]
    fn the_innermost_name_is_the_parameters() {
        let text = "#loc = loc(\"k.py\":7:1)\n#loc10 = loc(\"y_ptr\"(#loc))\n#loc11 = loc(\"p\"(#loc10))\nmodule {\n \
            tt.func public @k(%p: !tt.ptr<f32> loc(\"p\"(#loc10)), %p_0: !tt.ptr<f32> loc(#loc11), %z: i32 loc(\"z\"), %a: i32) {\n }\n}\n";
        let function = function(text).unwrap();
        let names: Vec<&str> = function.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["y_ptr", "y_ptr", "z", "a"]);
        assert_eq!(function.place, Some(("k.py".to_owned(), 7)));
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        for text in [
            "",
            "tt.func public @k",
            "tt.func public @k(",
            "tt.func public @k(x: i32)",
            "tt.func public @k(%x)",
        ] {
            assert!(function(text).is_err(), "{text}");
        }
    }
}
