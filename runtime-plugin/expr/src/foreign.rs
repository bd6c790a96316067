//! Help for other languages' syntax.

use super::error::ExprError;
use super::node::Builtin;
use super::scope::BUILTIN_FORMS;

/// Longer operators precede their prefixes.
const OPERATORS: [(&str, &str); 20] = [
    ("**", "there is no power operator: multiply, or use `prod`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("===", "write `==`"),
    ("<<", BITS),
    (">>", BITS),
    ("!", "write `not`"),
    ("=", "write `==` to compare"),
    ("?", "write `a if condition else b`"),
    (":", "there are no slices: write `[x.shape[i] for i in range(a, b)]`"),
    ("&", BITS),
    ("|", BITS),
    ("^", BITS),
    ("~", BITS),
    (";", "an expression is one value: leave it out"),
    ("{", "there are no dictionaries and no sets: an array is written `[a, b]`"),
    ("\u{201c}", QUOTES),
    ("\u{201d}", QUOTES),
    ("\u{2018}", QUOTES),
    ("\u{2019}", QUOTES),
];

const BITS: &str =
    "there are no bit operators: write `and`, `or`, `not` between booleans, `%`, `*`, `//` between integers";
const QUOTES: &str = "strings stand in plain quotes: `'wrap'`";

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
        Some(exact) => format!("there are no bit operators: write {exact}"),
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
        return format!("numbers are decimal: write `{value}`");
    }
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match lower.get(digits.len()..) {
        Some("l" | "ll" | "u" | "ul" | "ull" | "lu" | "llu" | "f" | "h" | "d") => {
            format!("numbers have no suffixes: write `{digits}`")
        }
        _ => "numbers are decimal, such as `42`, `1_000`, `0.5` or `1e-5`, without a suffix".to_owned(),
    }
}

pub(super) fn function(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "ceil" | "cdiv" | "ceildiv" | "div_up" | "divup" | "div_ceil" | "divceil" | "ceil_divide" => {
            "`ceil_div(a, b)` divides integers and rounds up"
        }
        "floor" | "floor_div" | "trunc" => {
            "`a // b` divides integers and rounds down; `int(a)` cuts the fraction of a float"
        }
        "round" | "rint" => "`int(a)` cuts the fraction: `int(a + 0.5)` rounds what is not negative",
        "pow" | "power" => "there is no power: multiply, or write `prod([a for i in range(n)])`",
        "log2" => "write `log(a) / log(2)`",
        "mod" | "fmod" => "write `a % b`",
        "size" | "volume" | "num_elements" | "element_count" => {
            "`numel(x)` is the number of elements of a tensor, `len(a)` that of an array"
        }
        "shape" | "dims" => "write `x.shape`",
        "rank" | "ndim" | "dim" => "write `x.rank`; one dimension is `x.shape[0]`",
        "all" => "`len([a for a in array if not a]) == 0` says that all hold",
        "any" => "`len([a for a in array if a]) > 0` says that one holds",
        "bool" => "compare: `a != 0`",
        "zip" | "enumerate" => "go over the indices: `range(len(a))`",
        "list" | "tuple" => "`x.shape` and `range(n)` are arrays already",
        "concat" | "cat" | "append" => CONCATENATION,
        _ => return None,
    })
}

pub(super) const CONCATENATION: &str = "`+` adds numbers: two shapes one behind the other are `[a.shape[i] if i < a.rank else b.shape[i - a.rank] \
     for i in range(a.rank + b.rank)]`, and elements one by one `[a[i] + b[i] for i in range(len(a))]`";

pub(super) fn method(error: ExprError, object: &str, name: &str) -> ExprError {
    error.help(match name {
        "shape" => format!("write `{object}.shape[0]` for one dimension"),
        "dim" | "rank" | "ndim" => format!("write `{object}.rank`; one dimension is `{object}.shape[0]`"),
        "numel" | "size" => format!("write `numel({object})`"),
        "padded" | "values" => format!("write `{object}.{name}[0]` for one of them"),
        _ if Builtin::from_name(name).is_some() || BUILTIN_FORMS.contains(&name) => {
            format!("functions stand before what they take: write `{name}({object})`")
        }
        _ => "there are no methods: functions stand before what they take, such as `numel(x)`".to_owned(),
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
