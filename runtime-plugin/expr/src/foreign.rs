//! Help for other languages' syntax.

use super::error::ExprError;
use super::node::Builtin;
use super::scope::BUILTIN_FORMS;

/// Longer ones precede their prefixes.
const OPERATORS: [(&str, &str); 20] = [
    ("**", "powers are not supported: multiply, or use `prod`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("===", "write `==`"),
    ("<<", BITS),
    (">>", BITS),
    ("!", "write `not`"),
    ("=", "write `==` to compare"),
    ("?", "write `a if condition else b`"),
    (":", "slices are not supported: write `[x.shape[i] for i in range(a, b)]`"),
    ("&", BITS),
    ("|", BITS),
    ("^", BITS),
    ("~", BITS),
    (";", "remove it; an expression is a single value"),
    ("{", "dictionaries and sets are not supported: write an array, `[a, b]`"),
    ("\u{201c}", QUOTES),
    ("\u{201d}", QUOTES),
    ("\u{2018}", QUOTES),
    ("\u{2019}", QUOTES),
];

const BITS: &str =
    "bit operators are not supported: use `and`, `or`, `not` for booleans, `%`, `*`, `//` for integers";
const QUOTES: &str = "write strings in plain quotes: `'wrap'`";

pub(super) fn operator(rest: &str) -> Option<(&'static str, String)> {
    let (symbol, help) = OPERATORS.into_iter().find(|(symbol, _)| rest.starts_with(symbol))?;
    let number = rest.get(symbol.len()..).and_then(leading_integer);
    let exact = match (symbol, number) {
        ("<<", Some(bits @ 0..=62)) => Some(format!("`* {}`", 1_u64 << bits)),
        (">>", Some(bits @ 0..=62)) => Some(format!("`// {}`", 1_u64 << bits)),
        ("&", Some(mask)) if mask.checked_add(1).is_some_and(u64::is_power_of_two) => {
            Some(format!("`% {}`", mask + 1))
        }
        _ => None,
    };
    let help = match exact {
        Some(exact) => format!("bit operators are not supported: write {exact}"),
        None => help.to_owned(),
    };
    Some((symbol, help))
}

fn leading_integer(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

pub(super) fn number(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let radix = |prefix, radix| {
        let digits = lower.strip_prefix(prefix)?;
        i64::from_str_radix(digits, radix).ok()
    };
    let value = radix("0x", 16).or_else(|| radix("0b", 2)).or_else(|| radix("0o", 8));
    if let Some(value) = value {
        return format!("write the number in decimal: `{value}`");
    }
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match lower.get(digits.len()..) {
        Some("l" | "ll" | "u" | "ul" | "ull" | "lu" | "llu" | "f" | "h" | "d") => {
            format!("remove the suffix: `{digits}`")
        }
        _ => "write a decimal number without a suffix, such as `42`, `1_000`, `0.5` or `1e-5`".to_owned(),
    }
}

pub(super) fn function(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ceil" | "cdiv" | "ceildiv" | "div_up" | "divup" | "div_ceil" | "divceil" | "ceil_divide" => {
            "use `ceil_div(a, b)`, which divides integers and rounds up"
        }
        "floor" | "floor_div" | "trunc" => {
            "use `a // b`, which divides integers and rounds down, or `int(a)`, which truncates a float"
        }
        "round" | "rint" => "use `int(a + 0.5)` to round a nonnegative number; `int(a)` truncates",
        "pow" | "power" => "multiply, or write `prod([a for i in range(n)])`",
        "log2" => "write `log(a) / log(2)`",
        "mod" | "fmod" => "write `a % b`",
        "size" | "volume" | "num_elements" | "element_count" => {
            "use `numel(x)` for the number of elements of a tensor, `len(a)` for an array"
        }
        "shape" | "dims" => "write `x.shape`",
        "rank" | "ndim" | "dim" => "write `x.rank`; one dimension is `x.shape[0]`",
        "all" => "write `len([a for a in array if not a]) == 0`",
        "any" => "write `len([a for a in array if a]) > 0`",
        "bool" => "write `a != 0`",
        "zip" | "enumerate" => "iterate over the indices: `range(len(a))`",
        "list" | "tuple" => "`x.shape` and `range(n)` are arrays already",
        "concat" | "cat" | "append" => CONCATENATION,
        _ => return None,
    })
}

pub(super) const CONCATENATION: &str = "`+` adds only numbers: concatenate shapes with `[a.shape[i] if i < a.rank else b.shape[i - a.rank] \
     for i in range(a.rank + b.rank)]`, add elements with `[a[i] + b[i] for i in range(len(a))]`";

pub(super) fn method(error: ExprError, object: &str, name: &str) -> ExprError {
    error.help(match name {
        "shape" => format!("write `{object}.shape[0]` for one dimension"),
        "dim" | "rank" | "ndim" => format!("write `{object}.rank`; one dimension is `{object}.shape[0]`"),
        "numel" | "size" => format!("write `numel({object})`"),
        "padded" | "values" => format!("write `{object}.{name}[0]` for one of them"),
        _ if Builtin::from_name(name).is_some() || BUILTIN_FORMS.contains(&name) => {
            format!("write `{name}({object})`")
        }
        _ => "pass the object as an argument, as in `numel(x)`".to_owned(),
    })
}

pub(super) fn cast(ty: &str) -> Option<&'static str> {
    match ty {
        "int" | "long" | "unsigned" | "size_t" | "short" | "int32_t" | "int64_t" | "i32" | "i64" => {
            Some("int")
        }
        "float" | "double" | "f32" | "f64" => Some("float"),
        _ => None,
    }
}
