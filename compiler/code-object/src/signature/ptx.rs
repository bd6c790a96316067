//! Reads debug sections of PTX (PTX ISA 9.0, "Debugging Directives: .section"; NVRTC 12.9 to 13.5): a directive per
//! line, `.b8` to `.b64`, with numbers or labels.

use std::collections::BTreeMap;

/// An empty line table (DWARF 2, 6.2.4): length, version, header length, instruction length, statement flag, minimum step, steps, opcode base.
const NO_LINES: [u8; 17] = [13, 0, 0, 0, 2, 0, 7, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0];

/// Sections by name. Labels become zero, and line tables empty; names and types need neither.
pub(super) fn sections(text: &str) -> BTreeMap<&str, Vec<u8>> {
    let mut found: BTreeMap<&str, Vec<u8>> = BTreeMap::from([(".debug_line", NO_LINES.into())]);
    let mut open: Option<&mut Vec<u8>> = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix(".section") {
            open = Some(found.entry(name.trim().trim_end_matches('{').trim_end()).or_default());
        } else if line.starts_with('}') {
            open = None;
        } else if let (Some(bytes), Some((width, values))) = (&mut open, data(line)) {
            for value in values.split(',') {
                bytes.extend_from_slice(number(value.trim()).to_le_bytes().get(..width).unwrap_or_default());
            }
        }
    }
    found
}

fn data(line: &str) -> Option<(usize, &str)> {
    let (directive, values) = line.split_once([' ', '\t'])?;
    let width = match directive {
        ".b8" => 1,
        ".b16" => 2,
        ".b32" => 4,
        ".b64" => 8,
        _ => return None,
    };
    Some((width, values))
}

fn number(value: &str) -> u64 {
    let negative = || value.parse().map(i64::cast_unsigned);
    value.parse().or_else(|_| negative()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_the_bytes_that_they_say() {
        let text = ".visible .entry k()\n{\n\tret;\n}\n\t.section\t.debug_abbrev\n\t{\n.b8 1,2\n\n.b8 255\n\t}\n\
                    \t.section .debug_info {\n.b32 258\n.b16 -2\n.b64 $L__func_begin0\nlabel:\n.b32 .debug_abbrev\n\t}\n.b8 9\n";
        let found = sections(text);
        assert_eq!(found[".debug_abbrev"], [1, 2, 255]);
        assert_eq!(found[".debug_info"], [2, 1, 0, 0, 254, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((&found[".debug_line"][..], found.len()), (&NO_LINES[..], 3));
    }
}
