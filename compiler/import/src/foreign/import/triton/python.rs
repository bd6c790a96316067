//! Parses a Python `def`, without running it: Triton's text lacks parameters that became constants.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: String,
    /// Whether it is a `tl.constexpr`.
    pub is_constexpr: bool,
}

/// Maximum length in bytes.
const LONGEST: usize = 1 << 16;

/// `line` counts from 1. `None` without such a function of plain parameters.
pub(super) fn parameters(text: &str, line: u32, name: &str) -> Option<Vec<Parameter>> {
    let skipped = usize::try_from(line).ok()?.checked_sub(1)?;
    let start: usize = text.split_inclusive('\n').take(skipped).map(str::len).sum();
    let rest = text.get(start..)?.trim_start().strip_prefix("def")?.trim_start();
    let list = rest.strip_prefix(name)?.trim_start().strip_prefix('(')?;
    let mut parameters = Vec::new();
    for part in parts(list)? {
        let (declared, _) = cut(&part, '=');
        let (name, annotation) = cut(declared, ':');
        let name = name.trim();
        match name {
            "" | "*" | "/" => continue,
            _ if !name.chars().all(|c| c.is_alphanumeric() || c == '_') => return None,
            _ => {}
        }
        parameters.push(Parameter { name: name.to_owned(), is_constexpr: annotation.contains("constexpr") });
    }
    Some(parameters)
}

fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_once(at).unwrap_or((text, ""))
}

/// Stops at the closing parenthesis; omits comments.
fn parts(list: &str) -> Option<Vec<String>> {
    let (mut depth, mut quote, mut comment) = (0_usize, None, false);
    let mut parts = vec![String::new()];
    for (at, c) in list.char_indices() {
        if at > LONGEST {
            return None;
        }
        match (c, quote) {
            ('\n', _) => comment = false,
            _ if comment => {}
            (_, Some(open)) if c == open => quote = None,
            // Annotations may be quoted.
            (':' | '=', Some(_)) => {}
            (c, Some(_)) => parts.last_mut()?.push(c),
            ('"' | '\'', None) => quote = Some(c),
            ('#', None) => comment = true,
            (')', None) if depth == 0 => return Some(parts),
            (',', None) if depth == 0 => parts.push(String::new()),
            _ => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                // In brackets, `:` and `=` are not the parameter's.
                if depth == 0 || !matches!(c, ':' | '=') {
                    parts.last_mut()?.push(c);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let text = "import triton\n\n@triton.jit\ndef copy(x_ptr, y_ptr,  # both (of one type)\n    n: int, stride=1,\n    \
            mode: 'a, b' = \"c,)\", pair: Dict[str, int] = f(1, b=2), *, BLOCK: tl.constexpr, ACT: \"tl.constexpr\" = None, LAST: constexpr = 2,\n):\n    pass\n";
        let read = parameters(text, 4, "copy").unwrap();
        let shown: Vec<String> =
            read.iter().map(|it| format!("{}{}", it.name, if it.is_constexpr { "!" } else { "" })).collect();
        assert_eq!(shown, ["x_ptr", "y_ptr", "n", "stride", "mode", "pair", "BLOCK!", "ACT!", "LAST!"]);
        for (line, name) in [(3, "copy"), (4, "cop"), (4, "other"), (0, "copy"), (99, "copy")] {
            assert_eq!(parameters(text, line, name), None, "{line} {name}");
        }
        for text in ["def k(", "def k(*rest)", "def k(**rest)", "def k", ""] {
            assert_eq!(parameters(text, 1, "k"), None, "{text}");
        }
    }
}
