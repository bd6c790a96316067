//! Parses kernel names and substitutes template arguments in parameter types.

use cubinder_expr::{DataType, ScalarType, Value};

use super::lexer::{Token, TokenKind, at_commas, lex, word};
use super::parameter;
use super::{Kernel, TemplateKind, Type};
use crate::kernel_signature::{Leaf, ParamType};

/// Name: `outer::scale<float, 4>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// `outer::scale`
    pub path: String,
    /// Arguments in angle brackets.
    pub arguments: Option<Vec<Argument>>,
}

/// Template argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Text.
    pub text: String,
    /// Kind, if certain.
    pub kind: Option<TemplateKind>,
}

/// Parses a kernel name.
pub fn parse(name: &str) -> Option<Name> {
    let open = name.find('<').unwrap_or(name.len());
    let path: String = name.get(..open)?.split_whitespace().collect();
    if open == name.len() {
        return Some(Name { path, arguments: None });
    }
    let inner = name.get(open + 1..)?.trim_end().strip_suffix('>')?;
    let lexed = lex(inner);
    let arguments = at_commas(inner, &lexed.tokens)?.into_iter().map(|part| argument(inner, part)).collect();
    Some(Name { path, arguments: Some(arguments) })
}

fn argument(text: &str, tokens: &[Token]) -> Argument {
    let (start, end) = match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => (first.range.start, last.range.end),
        _ => (0, 0),
    };
    let is_number = |token: &Token| token.kind == TokenKind::Number;
    let words: Vec<&str> = tokens.iter().map(|token| word(text, Some(token))).collect();
    let kind = match words.as_slice() {
        ["true" | "false"] => Some(TemplateKind::Value),
        [_] if tokens.first().is_some_and(is_number) => Some(TemplateKind::Value),
        ["-", _] if tokens.last().is_some_and(is_number) => Some(TemplateKind::Value),
        [one] if element(one).is_some() => Some(TemplateKind::Type),
        words if !words.is_empty() && words.iter().all(|word| parameter::is_fundamental(word)) => {
            Some(TemplateKind::Type)
        }
        _ => None,
    };
    Argument { text: text.get(start..end).unwrap_or_default().to_owned(), kind }
}

/// Type after substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// C++ spelling: `const float*`.
    pub spelling: String,
    /// Type, if certain.
    pub ty: Option<ParamType>,
    /// Whether the pointee's `const` is certain.
    pub knows_pointee: bool,
}

/// Meanings of names in a row.
#[derive(Debug, Clone, Copy)]
pub struct TemplateContext<'a> {
    /// Kernel.
    pub kernel: &'a Kernel,
    /// Template arguments.
    pub arguments: &'a [Argument],
    /// Manifest types.
    pub types: &'a [(String, DataType)],
    /// Manifest constants.
    pub constants: &'a [(String, Value)],
    /// Types that the text redeclares.
    pub own_types: &'a [String],
}

impl TemplateContext<'_> {
    fn of_template(&self, name: &str) -> Option<String> {
        let params = self.kernel.template.as_deref().unwrap_or_default();
        let position = params.iter().position(|param| param.name == name && !name.is_empty())?;
        Some(self.arguments.get(position)?.text.clone())
    }

    fn of_manifest(&self, name: &str) -> Option<String> {
        let ty = self.types.iter().find(|(ty, _)| ty == name).map(|(_, ty)| ty.cuda_name().to_owned());
        let constant = || match self.constants.iter().find(|(constant, _)| constant == name) {
            Some((_, Value::Int(value))) => Some(value.to_string()),
            _ => None,
        };
        ty.or_else(constant)
    }
}

/// Resolves a parameter's type.
pub fn resolve(ty: &Type, meanings: TemplateContext<'_>) -> Resolved {
    let own_types = meanings.own_types;
    let pointee = |name: &str| element(name).filter(|_| !own_types.iter().any(|own| own == name));
    let base = put_in(&ty.base, meanings);
    let constness = if ty.is_const { "const " } else { "" };
    // `const` of the outermost pointer.
    let spelling = match ty.pointers {
        0 => base.clone(),
        1 => format!("{constness}{base}*"),
        more => format!("{base}{}", "*".repeat(usize::from(more))),
    };
    if ty.is_other {
        return Resolved { spelling: format!("{spelling}&"), ty: None, knows_pointee: false };
    }
    let known = pointee(&base);
    let resolved = match ty.pointers {
        0 => value(&base, &pointee),
        1 => Some(ParamType::Pointer {
            pointee: base.clone(),
            pointee_size: known.and_then(|(_, size)| size),
            is_const: ty.is_const,
            leaf: known.map_or(Leaf::Opaque, |(leaf, _)| leaf),
        }),
        _ => Some(ParamType::Pointer {
            pointee: spelling.strip_suffix('*').unwrap_or_default().to_owned(),
            pointee_size: Some(8),
            is_const: ty.is_const,
            leaf: Leaf::Address,
        }),
    };
    Resolved { spelling, ty: resolved, knows_pointee: known.is_some() && ty.pointers == 1 }
}

fn put_in(base: &str, meanings: TemplateContext<'_>) -> String {
    let tokens = lex(base).tokens;
    let at = |index: usize| word(base, tokens.get(index));
    let (mut out, mut copied, mut index) = (String::new(), 0, 0);
    while index < tokens.len() {
        let is_member = at(index) == "manifest" && at(index + 1) == "::";
        let (meaning, last) = match is_member {
            true => (meanings.of_manifest(at(index + 2)), index + 2),
            false => (meanings.of_template(at(index)), index),
        };
        if let (Some(meaning), Some(first), Some(last)) = (meaning, tokens.get(index), tokens.get(last)) {
            out.push_str(base.get(copied..first.range.start).unwrap_or_default());
            out.push_str(&meaning);
            copied = last.range.end;
        }
        index = last + 1;
    }
    out.push_str(base.get(copied..).unwrap_or_default());
    out
}

fn value(base: &str, pointee: &dyn Fn(&str) -> Option<Parts>) -> Option<ParamType> {
    if let Some(array) = base.strip_prefix("cubinder::array<").and_then(|rest| rest.strip_suffix('>')) {
        let (element, len) = array.rsplit_once(',')?;
        let (Leaf::Scalar(scalar), size) = pointee(element.trim())? else { return None };
        let is_number = size == Some(scalar.size());
        let len = len.trim().parse().ok()?;
        return is_number.then_some(ParamType::Array { element: scalar, len });
    }
    match pointee(base)? {
        (Leaf::Scalar(scalar), Some(size)) if size == scalar.size() => Some(scalar.into()),
        (Leaf::Half | Leaf::Bfloat16 | Leaf::Float8, size) => {
            Some(ParamType::Other { name: base.to_owned(), size: size.unwrap_or(0) })
        }
        _ => None,
    }
}

/// Returns whether CUDA predeclares this type.
pub fn is_known_type(name: &str) -> bool {
    element(name).is_some()
}

/// Kind; bytes if complete.
type Parts = (Leaf, Option<u32>);

/// Returns kind and bytes of types of C++, `<cstdint>`, CUDA (`vector_types.h` 13.0, small floats) and the generated
/// header (4-bit pairs). `long` has 8 bytes, as on Linux.
pub fn element(name: &str) -> Option<Parts> {
    let scalar = |scalar: ScalarType| Some((Leaf::Scalar(scalar), Some(scalar.size())));
    let int = |bytes: u8| scalar(ScalarType::Int { bytes });
    let uint = |bytes: u8| scalar(ScalarType::UInt { bytes });
    match name.strip_prefix("std::").unwrap_or(name) {
        "void" => return Some((Leaf::Opaque, None)),
        "__half" | "half" => return Some((Leaf::Half, Some(2))),
        "__half2" | "half2" => return Some((Leaf::Half, Some(4))),
        "__nv_bfloat16" | "nv_bfloat16" => return Some((Leaf::Bfloat16, Some(2))),
        "__nv_bfloat162" | "nv_bfloat162" => return Some((Leaf::Bfloat16, Some(4))),
        "__nv_fp8_e4m3" => return Some((Leaf::Float8, Some(1))),
        "__nv_fp8x2_e4m3" => return Some((Leaf::Float8, Some(2))),
        "__nv_fp8x4_e4m3" => return Some((Leaf::Float8, Some(4))),
        "__nv_fp8_e5m2" | "__nv_fp8_e8m0" => return Some((Leaf::OtherFloat8, Some(1))),
        "cubinder::i4x2" => return uint(1),
        "int8_t" => return int(1),
        "int16_t" => return int(2),
        "int32_t" => return int(4),
        "int64_t" | "ptrdiff_t" => return int(8),
        "uint8_t" => return uint(1),
        "uint16_t" => return uint(2),
        "uint32_t" => return uint(4),
        "uint64_t" | "size_t" => return uint(8),
        _ => {}
    }
    if name.split(' ').all(parameter::is_fundamental) {
        return fundamental(name).and_then(scalar);
    }
    vector(name)
}

fn fundamental(name: &str) -> Option<ScalarType> {
    match name {
        "float" => return Some(ScalarType::F32),
        "double" => return Some(ScalarType::F64),
        "bool" => return Some(ScalarType::Bool),
        _ => {}
    }
    let width = name.split(' ').filter(|word| !matches!(*word, "int" | "signed" | "unsigned"));
    let bytes = match width.collect::<Vec<_>>().as_slice() {
        ["char"] => 1,
        ["short"] => 2,
        [] => 4,
        ["long"] | ["long", "long"] => 8,
        _ => return None,
    };
    let is_unsigned = name.split(' ').any(|word| word == "unsigned");
    Some(if is_unsigned { ScalarType::UInt { bytes } } else { ScalarType::Int { bytes } })
}

/// Parses vector types: `float4`, `uchar2`.
fn vector(name: &str) -> Option<Parts> {
    let (element, count) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let count: u32 = count.parse().ok().filter(|count| (1..=4).contains(count))?;
    let scalar = fundamental(match element {
        "char" | "short" | "int" | "long" | "float" | "double" => element,
        "uchar" => "unsigned char",
        "ushort" => "unsigned short",
        "uint" => "unsigned",
        "ulong" => "unsigned long",
        "longlong" => "long long",
        "ulonglong" => "unsigned long long",
        _ => return None,
    })?;
    Some((Leaf::Scalar(scalar), Some(scalar.size() * count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let name = parse("a::k<__half, 4, (3 > 2), pair<int, 2>, -1, true, unsigned long>").unwrap();
        assert_eq!(name.path, "a::k");
        let arguments: Vec<(String, Option<TemplateKind>)> =
            name.arguments.unwrap().into_iter().map(|argument| (argument.text, argument.kind)).collect();
        let (a_type, value) = (Some(TemplateKind::Type), Some(TemplateKind::Value));
        let expected = [
            ("__half", a_type),
            ("4", value),
            ("(3 > 2)", None),
            ("pair<int, 2>", None),
            ("-1", value),
            ("true", value),
            ("unsigned long", a_type),
        ];
        assert_eq!(arguments, expected.map(|(text, kind)| (text.to_owned(), kind)));
        assert_eq!(parse("k").unwrap().arguments, None);
        assert_eq!(parse("k<>").unwrap().arguments, Some(Vec::new()));
        assert_eq!(parse("k<"), None);
        assert_eq!(parse("k<a>>"), None);
    }

    #[test]
    fn types_have_their_sizes() {
        let size = |name: &str| element(name).map(|(leaf, size)| (leaf.size(), size));
        assert_eq!(size("unsigned"), Some((Some(4), Some(4))));
        assert_eq!(size("long long int"), Some((Some(8), Some(8))));
        assert_eq!(size("signed char"), Some((Some(1), Some(1))));
        assert_eq!(size("std::size_t"), Some((Some(8), Some(8))));
        assert_eq!(size("float4"), Some((Some(4), Some(16))));
        assert_eq!(size("void"), Some((None, None)));
        for unknown in ["long double", "wchar_t", "float5", "T", "", "half4", "é"] {
            assert_eq!(size(unknown), None, "{unknown}");
        }
    }
}
