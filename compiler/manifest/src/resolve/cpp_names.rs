//! Names reserved by C++: kernels see type parameters and constants (`manifest::BLOCK`).

pub(super) fn reserved(name: &str) -> Option<&'static str> {
    let is_in = |list: &str| list.split_whitespace().any(|word| word == name);
    if is_in(KEYWORDS) {
        return Some("a C++ keyword");
    }
    if name.contains("__") {
        return Some("C++ reserves names with two consecutive underscores");
    }
    let mut bytes = name.bytes();
    if bytes.next() == Some(b'_') && bytes.next().is_some_and(|second| second.is_ascii_uppercase()) {
        return Some("C++ reserves names that start with an underscore and a capital letter");
    }
    is_in(MACROS).then_some("a macro of the C++ standard headers")
}

/// C++20 (ISO/IEC 14882:2020, 5.5 and 5.11), sorted.
const KEYWORDS: &str = "
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
";

/// Object-like macros of C++ headers and GNU dialects; others do not expand bare names.
const MACROS: &str = "
    CHAR_BIT CHAR_MAX CHAR_MIN DBL_EPSILON DBL_MAX DBL_MIN EOF FLT_EPSILON FLT_MAX FLT_MIN INFINITY
    INT_MAX INT_MIN LLONG_MAX LLONG_MIN LONG_MAX LONG_MIN M_E M_PI NAN NULL SCHAR_MAX SCHAR_MIN
    SHRT_MAX SHRT_MIN UCHAR_MAX UINT_MAX ULLONG_MAX ULONG_MAX USHRT_MAX errno linux unix
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cpp_keeps_is_refused() {
        for name in ["float", "int", "class", "xor", "char8_t", "NULL", "linux", "__T", "a__b", "_Tile"] {
            assert!(reserved(name).is_some(), "{name}");
        }
    }

    #[test]
    fn other_names_are_free() {
        for name in ["T", "BLOCK", "vec", "_x", "half", "float4", "Int", "assert", "a_b", ""] {
            assert_eq!(reserved(name), None, "{name}");
        }
    }
}
