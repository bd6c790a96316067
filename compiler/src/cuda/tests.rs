use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::diagnostic::{Colour, Diagnostic, Source, render};
use crate::kernel_signature::ParamType;
use crate::nvrtc::{Settings, compile_for_signature};
use crate::resolve::Resolved;
use crate::rules;
use crate::test_support::{Sample, draft, nvrtc, resolved};
use cubinder_bundle::DataType;

/// A kernel in one line.
fn line(text: &str, kernel: &Kernel) -> String {
    assert_eq!(text.get(kernel.name_range.clone()), Some(kernel.name.as_str()));
    let params: Vec<String> = kernel
        .params
        .iter()
        .map(|param| {
            let Type { base, pointers, is_const, is_other, .. } = &param.ty;
            let constness = if *is_const { "const " } else { "" };
            let other = if *is_other { "&" } else { "" };
            format!("{}: {constness}{base}{}{other}", param.name, "*".repeat(usize::from(*pointers)))
        })
        .collect();
    let template = kernel.template.as_ref().map_or_else(String::new, |params| {
        let shown = params.iter().map(|param| {
            format!("{:?} {}{}", param.kind, param.name, if param.has_default { " =" } else { "" })
        });
        format!("<{}>", shown.collect::<Vec<_>>().join(", "))
    });
    let certainty = match &kernel.certainty {
        Certainty::Exact => String::new(),
        Certainty::Unsure(doubt) => format!(" -- {doubt}"),
    };
    format!("{}{template}({}){certainty}", kernel.path(), params.join(", "))
}

fn lines(text: &str) -> Vec<String> {
    read(text).kernels.iter().map(|kernel| line(text, kernel)).collect()
}

#[track_caller]
fn assert_kernel(text: &str, expected: &str) {
    assert_eq!(lines(text), [expected], "{text}");
    assert_eq!(read(text).doubts, [], "{text}");
}

#[test]
fn kernels_are_read_as_people_write_them() {
    assert_kernel(
        "__global__ void k(const float* x, float *y, int n) {}",
        "k(x: const float*, y: float*, n: int)",
    );
    assert_kernel("extern \"C\" __global__ void k() {}", "k()");
    assert_kernel("static __global__ void\nk(void);", "k()");
    assert_kernel(
        "template <typename T, int N = 4, class = void, bool>\n__global__ void __launch_bounds__(256, f(2, 3)) \
         k(const T* __restrict__ x, T const* const y, T* __restrict__ const z, const T a[], float b[4][N]) {}",
        "k<Type T, Value N =, Type  =, Value >(x: const T*, y: const T*, z: T*, a: const T*, b: float*&)",
    );
    assert_kernel(
        "namespace a::b { namespace { inline namespace v1 { extern \"C\" { __global__ void k(unsigned long long n, \
         std::size_t m, const __grid_constant__ cubinder::array< unsigned int,4 > s, ::half h = 0.5f, T& r, \
         const float* const* rows) {} } } } }",
        "a::b::k(n: unsigned long long, m: std::size_t, s: cubinder::array<unsigned int, 4>, h: half, r: T&, \
         rows: const float**)",
    );
    assert_kernel("[[maybe_unused]] __global__ [[a(1)]] auto k([[b]] int n) noexcept -> void;", "k(n: int)");
    assert_kernel("namespace a {} __global__ void a::k(int, float*) {}", "a::k(: int, : float*)");
}

#[test]
fn what_stands_around_a_kernel_is_told_from_it() {
    assert_kernel(
        "#include <cstdint>\n#include <cuda_fp16.h>\n#define BLOCK 256\n#define R __restrict__\n\
         // __global__ void no() {}\nconst char* s = \"__global__ void no() {}\"; struct S { int k(int); };\n\
         enum E { A, B }; int a[] = { 1, 2 }; template <class T> struct V { T v; };\n\
         #if 0\nint x;\n#else\nint y;\n#endif\n\
         __device__ int helper(int n) { if (n) { return '{'; } return 0; }\n\
         __global__ void __launch_bounds__(BLOCK) k(const float* R x, cubinder::array<int, BLOCK> s) { if (1) {} }\n\
         template __global__ void t<float>(float*);",
        "k(x: const float*, s: cubinder::array<int, BLOCK>)",
    );
    let kernels =
        read("__global__ void __launch_bounds__(256, f(2, 3)) k() {} __device__ int g(int) {} int h = 1;");
    assert_eq!(kernels.kernels[0].launch_bounds, ["256", "f(2, 3)"]);
    assert_eq!(kernels.functions, ["g"]);
    // The guard of a header is no condition.
    assert_kernel("#ifndef H\n#define H\n#if A\nint x;\n#endif\n__global__ void k() {}\n#endif\n", "k()");
}

#[test]
fn what_cannot_be_known_is_said() {
    let cases = [
        "#if A\n__global__ void k() {}\n#endif",
        "__global__ void k(int a\n#ifdef B\n, int b\n#endif\n) {}",
        "#ifndef H\n#define H\n#endif\n#if 0\n#else\n__global__ void k() {}\n#endif",
        "#define ARGS int a, int b\n__global__ void k(ARGS) {}",
        "__global__ void k(int a, REST) {}",
        "__global__ void LAUNCH(256) k(int a) {}",
        "KERNEL __global__ void k(int a) {}",
        "__global__ void k(int a INPUT) {}",
        "template <class... Ts> __global__ void k(Ts... n) {}",
        "template <> __global__ void k<float>(float* x) {}",
        "template <class T> requires C<T> && requires(T t) { t; } __global__ void k(T* x) {}",
        "__global__ void k(auto* x) {}",
        "__global__ void k(void (*f)(int)) {}",
        "__global__ void k(int a = b < c) {}",
        "namespace a {\n#if X\n}\n#endif\n__global__ void k() {}",
        "__global__ void k() {} }",
        "#define k other\n__global__ void k() {}",
        "template <template <class> class C> template <class T> __global__ void k(int n) {}",
    ];
    let shown: Vec<String> =
        cases.iter().map(|text| format!("{text}\n    => {}\n", lines(text).join("\n    => "))).collect();
    insta::assert_snapshot!("unsure", shown.join("\n"));
}

#[test]
fn kernels_that_are_not_seen_are_said() {
    let doubts = |text: &str| read(text).doubts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        doubts("#include \"kernels.cuh\"\n#include <cutlass/a.h>\n#include \"cubinder.h\"\n#include <map>"),
        ["`kernels.cuh`, which is included, may have it", "`cutlass/a.h`, which is included, may have it"]
    );
    assert_eq!(doubts("#define K(n) __global__ void n() {}\nK(a)"), ["the macro `K` makes kernels"]);
    for text in [
        "struct S { friend __global__ void k(); };",
        "__attribute__((global)) void k() {}",
        "__global__",
        "__global__ void k(",
        "__glo\\\nbal__ void k() {}",
        "void f() {",
    ] {
        assert_eq!(doubts(text), ["its declaration is not understood without a compiler"], "{text}");
    }
}

#[test]
fn names_are_found_as_cpp_finds_them() {
    let text = "namespace a { inline namespace v1 { namespace { __global__ void k() {} } } }";
    let kernels = read(text);
    for (path, found) in [
        ("a::k", true),
        ("::a :: k", true),
        ("a::v1::k", true),
        ("k", false),
        ("v1::k", false),
        ("b::a::k", false),
        ("a::a::k", false),
    ] {
        assert_eq!(kernels.kernels[0].is_named(path), found, "{path}");
    }
}

/// A plugin with the attribute `factor`, the constant `N` and rows of `f32` and `f16`.
fn plugin(kernel: &str, args: &str) -> Resolved {
    let tables = "[attributes.factor]\ntype = \"f32\"\n[types]\nT = [\"f32\", \"f16\"]\n[constants]\nN = 4";
    let launch = "block = [\"256 if factor > 0.0 else 128\"]";
    resolved("/srv/p/m.toml", &Sample { element: "T", tables, kernel, launch, args, ..Sample::PLAIN }.text())
}

fn checked(text: &str, kernel: &str, args: &str) -> Checked {
    let resolved = plugin(kernel, args);
    let source = Source::new("/srv/p/k.cu", text);
    check(&resolved, &|path: &Path| {
        assert_eq!(path, Path::new("/srv/p/k.cu"));
        Ok(Arc::clone(&source))
    })
}

fn told(text: &str, kernel: &str, args: &str) -> String {
    let checked = checked(text, kernel, args);
    assert_eq!(checked.unsure, [], "{text}");
    render(&checked.diagnostics, Colour::Plain)
}

const TENSORS: &str = "x = \"x\"\ny = \"y\"";
const SCALE: &str = "template <typename T, int N>\n__global__ void scale(const T* x, T* y, unsigned count, \
                     cubinder::array<int, N> shape, float factor) {}\n";
const ARGS: &str =
    "x = \"x\"\ny = \"y\"\ncount = \"numel(y)\"\nshape = \"[1, 2, 3, 4]\"\nfactor = \"factor\"";

#[test]
fn what_is_right_passes() {
    let cases = [
        (SCALE, "scale<T, N>", ARGS),
        (
            "__global__ void k(const manifest::T* x, manifest::T* y, cubinder::array<int, manifest::N> s) {}",
            "k",
            &*format!("{TENSORS}\ns = \"[1, 2, 3, 4]\""),
        ),
        ("struct half { float a, b; }; __global__ void k(const half* x, half* y) {}", "k", TENSORS),
        (
            "__global__ void k(const void* x, float4* y, size_t n) {}",
            "k",
            &*format!("{TENSORS}\nn = \"numel(x)\""),
        ),
        (
            "template <class T> __global__ void k(const T* x, T* y, int n);\n\
          template <class T> __global__ void k(const T* from, T* to, int n) {}",
            "k<T>",
            "from = \"x\"\nto = \"y\"\nn = \"1\"",
        ),
        (
            "using in = const float*; typedef float* out; __global__ void k(in x, out y, my::t n) {}",
            "k",
            &*format!("{TENSORS}\nn = \"factor\""),
        ),
    ];
    for (text, kernel, args) in cases {
        // There are rows of `f32` and `f16`: what is no template has to take both.
        let checked = checked(&text.replace("float4", "uint4"), kernel, args);
        assert_eq!(render(&checked.diagnostics, Colour::Plain), "", "{text}");
        assert_eq!(checked.unsure, [], "{text}");
    }
}

#[test]
fn mistakes_are_told_once_in_both_texts() {
    let with = |from: &str, to: &str| told(SCALE, "scale<T, N>", &ARGS.replace(from, to));
    let cases = [
        // Names.
        with("count", "cuont"),
        with("count = \"numel(y)\"\n", ""),
        with("factor = ", "whole = \"1\"\nfactor = "),
        // Kinds.
        with("count = \"numel(y)\"", "count = \"x.shape\""),
        with("count = \"numel(y)\"", "count = \"x\""),
        with("x = \"x\"", "x = \"numel(x)\""),
        with("[1, 2, 3, 4]", "[1, 2, 3]"),
        with("x = \"x\"\ny = \"y\"", "x = \"y\"\ny = \"x\""),
        told("__global__ void k(float* x, float* y) {}", "k", TENSORS),
        told(
            "__global__ void k(const float4* x, manifest::T* y, cubinder::array<int, manifest::N> s) {}",
            "k",
            &format!("{TENSORS}\ns = \"[1]\""),
        ),
    ];
    insta::assert_snapshot!("arguments", cases.join("\n"));
}

#[test]
fn kernels_that_are_not_there_are_told() {
    let text = format!(
        "{SCALE}namespace ns {{ __global__ void plain(int n) {{}} }}\n__device__ void helper(int) {{}}\n"
    );
    let kernels =
        ["scael<T, N>", "plain", "helper", "other", "scale<T>", "scale", "scale<N, T>", "ns::plain<T>"];
    let mut shown: Vec<String> = kernels.iter().map(|kernel| told(&text, kernel, TENSORS)).collect();
    shown.push(told("int x;", "k", TENSORS));
    insta::assert_snapshot!("kernels", shown.join("\n"));
}

#[test]
fn what_only_a_compile_can_tell_is_no_mistake() {
    let cases = [
        ("#include \"kernels.cuh\"\n__global__ void other() {}", "k"),
        ("namespace a { __global__ void k() {} } using namespace a;", "k"),
        ("__global__ void k(int n) {} __global__ void k(float n) {}", "k"),
        ("__global__ void k(ARGS) {}", "k"),
        ("#define K gather\n__global__ void K(const float* x, float* y) {}", "gather"),
        ("struct U {};\ntemplate <class T> __global__ void k(T*) {}\n#include \"own.h\"", "other<U>"),
        (
            "template <class T> __global__ void k(T*) {} template <> __global__ void k<float>(float*) {}",
            "k<T>",
        ),
    ];
    for (text, kernel) in cases {
        let checked = checked(text, kernel, TENSORS);
        assert_eq!(checked.diagnostics, [], "{text}");
        assert_eq!(checked.unsure.len(), 1, "{text}: {:?}", checked.unsure);
    }
}

#[test]
fn an_access_of_dynamic_shared_memory_in_every_run_is_seen() {
    let array = "extern __shared__ float s[];";
    let accesses = |text: &str| -> Vec<bool> {
        read(text).kernels.iter().map(|kernel| kernel.dynamic_shared.is_some()).collect()
    };
    for text in [
        format!("__global__ void k(int n) {{ {array} s[n] = 0; }}"),
        "__global__ void k() { extern __shared__ __align__(16) unsigned char s[]; s[0] = 0; }".to_owned(),
        "__global__ void k() { __shared__ extern float s[]; s[0] = 0; }".to_owned(),
        format!("{array} __global__ void k() {{ s[0] = 0; }}"),
        format!("{array} __global__ void k(int n) {{ if (n) f(); s[0] = 0; }}"),
        format!("{array} __global__ void k(float* y) {{ y[0] = s[0] * 2; }}"),
    ] {
        assert_eq!(accesses(&text), [true], "{text}");
        let place = read(&text).kernels[0].dynamic_shared.clone().unwrap();
        assert_eq!(&text[place], "s", "{text}");
    }
    for text in [
        "__global__ void k() { __shared__ float s[4]; s[0] = 0; }".to_owned(),
        // Beside static memory it may lie within the block's.
        format!("__global__ void k() {{ {array} __shared__ float t[4]; s[0] = t[1]; }}"),
        format!(
            "__device__ void f() {{ __shared__ float t[4]; }} __global__ void k() {{ {array} s[0] = 0; }}"
        ),
        // Another variable of the name.
        format!("{array} __global__ void k(float* s) {{ s[0] = 0; }}"),
        format!("{array} __global__ void k(float* t) {{ float* s = t; s[0] = 0; }}"),
        format!("{array} __global__ void k() {{ float t, s[4]; s[0] = 0; }}"),
        format!("{array} __global__ void k() {{ a.s[0] = 0; }}"),
        // In some runs, or in none.
        format!("{array} __global__ void k(int n) {{ if (n) s[0] = 0; }}"),
        format!("{array} template <bool B> __global__ void k() {{ if (B) {{ s[0] = 0; }} }}"),
        format!("template <bool B> __global__ void k() {{ if constexpr (B) {{ {array} s[0] = 0; }} }}"),
        format!("{array} __global__ void k(int n) {{ if (n) return; s[0] = 0; }}"),
        format!("{array} __global__ void k(int n) {{ for (int i = 0; i < n; ++i) s[i] = 0; }}"),
        format!("{array} __global__ void k(bool b) {{ float v = b ? s[0] : 0; }}"),
        format!("{array} __global__ void k() {{ float* t = &s[0]; int n = sizeof(s[0]); }}"),
        format!("{array} __device__ void f() {{ s[0] = 1; }} __global__ void k() {{ f(); }}"),
        format!("#ifdef SHARED\n{array}\n#endif\n__global__ void k() {{ s[0] = 0; }}"),
        format!("{array}\n__global__ void k() {{\n#ifdef SHARED\ns[0] = 0;\n#endif\n}}"),
        format!("#define s t\n{array} __global__ void k() {{ s[0] = 0; }}"),
        format!("#define CHECK if (true) return\n{array} __global__ void k() {{ CHECK; s[0] = 0; }}"),
        format!("// {array}\n__global__ void k() {{}}"),
    ] {
        assert!(accesses(&text).iter().all(|access| !access), "{text}");
    }
    let two = format!("{array} __global__ void a() {{ s[0] = 0; }} __global__ void b() {{}}");
    assert_eq!(accesses(&two), [true, false]);
}

#[test]
fn a_launch_without_shared_memory_is_told() {
    let text =
        "template <class T> __global__ void k(const T* x, T* y) { extern __shared__ float s[]; s[0] = 0; }";
    let told = checked(text, "k<T>", TENSORS).diagnostics;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].code, Some(crate::rules::NO_DYNAMIC_SHARED_MEMORY));
    // What is wrong for certain goes first.
    let told = checked(&text.replace("T* y", "const T* y"), "k<T>", TENSORS).diagnostics;
    assert!(told.iter().all(|told| told.code == Some(crate::rules::ARGUMENT_MISFIT)), "{told:?}");
}

#[test]
fn template_arguments_that_nothing_declares_are_told() {
    let text = "template <typename T> __global__ void k(const T* x, T* y) {}";
    let message = |text: &str, kernel: &str| {
        let found = checked(text, kernel, TENSORS).diagnostics;
        found.first().map(|found| found.message.clone())
    };
    assert_eq!(
        message(text, "k<U>").as_deref(),
        Some("`U` is declared neither in the manifest nor in `/srv/p/k.cu`")
    );
    assert_eq!(
        message(text, "k<f32>").as_deref(),
        Some("`f32` is no name of C++, and `/srv/p/k.cu` does not declare it")
    );
    assert_eq!(
        message(text, "k<factor>").as_deref(),
        Some("`factor` is an attribute that no code is compiled for")
    );
    let own =
        "template <int A, typename T, int K> __global__ void k(const T* x, T* y) { y[0] = x[K + (K)]; }";
    assert_eq!(
        message(own, "k<1, float, K>").as_deref(),
        Some("`K` is a template parameter of the kernel, and nothing says what it is")
    );
    assert_eq!(message(&format!("enum {{ J, K }}; {own}"), "k<1, T, K>"), None);
    assert_eq!(message(&format!("constexpr int K = 3; {own}"), "k<1, T, K>"), None);
    for declared in
        ["struct U {};", "using U = float;", "#define U float\n", "enum { U };", "#include <a.h>\n"]
    {
        assert_eq!(message(&format!("{declared} {text}"), "k<U>"), None, "{declared}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_once() {
    let resolved = plugin("k", TENSORS);
    let missing = |path: &Path| Err(vec![Diagnostic::error(format!("cannot read `{}`", path.display()))]);
    let checked = check(&resolved, &missing);
    assert_eq!(checked.diagnostics.len(), 1);
    assert_eq!(checked.diagnostics[0].code, Some(crate::rules::SOURCE_NOT_FOUND));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scale.cu"), "").unwrap();
    std::fs::write(folder.path().join("other.cu"), "").unwrap();
    let help = |name: &str| {
        let mut unit = resolved.draft.units[0].clone();
        unit.source = folder.path().join(name);
        open_source(&unit, &missing).unwrap_err()[0].help.clone()
    };
    assert_eq!(help("scael.cu").unwrap(), "did you mean `scale.cu`?");
    let listed = help("wholly_else.cu").unwrap();
    assert!(
        listed.contains("relative to the manifest's folder") && listed.ends_with("`other.cu`, `scale.cu`"),
        "{listed}"
    );
    assert_eq!(help("other.cu"), None, "this file exists");
}

/// Pieces of CUDA in any order: more of them are almost kernels than random characters would be.
fn pieces() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let piece = prop::sample::select(vec![
        "__global__ ",
        "void ",
        "k",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        ",",
        ";",
        "template ",
        "typename T",
        "int ",
        "const ",
        "*",
        "x",
        "\n#if A\n",
        "\n#else\n",
        "\n#endif\n",
        "\n#define k x\n",
        "namespace a",
        "::",
        ":",
        "extern \"C\" ",
        "...",
        "[",
        "]",
        "=",
        "\"",
        "'",
        "/*",
        "*/",
        "//",
        "\n",
        "\\\n",
        "R\"(",
        ")\"",
        "requires ",
        "__launch_bounds__",
        "0",
        "é",
        "using ",
        "&",
        "->",
    ]);
    prop::collection::vec(piece, 0..48).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_namespace_that_need_not_be_said_may_have_the_name_of_one_that_must() {
    let kernels = read(
        "namespace a { inline namespace a { namespace b { inline namespace c { __global__ void k() {} } } } }",
    );
    let kernel = &kernels.kernels[0];
    assert_eq!(kernel.path(), "a::b::k");
    for path in ["a::b::k", "a::a::b::k", "a::b::c::k", "a::a::b::c::k", "::a::b::k"] {
        assert!(kernel.is_named(path), "{path}");
    }
    for path in ["b::k", "a::k", "a::a::a::b::k", "c::a::b::k", "a::c::b::k", "a::b"] {
        assert!(!kernel.is_named(path), "{path}");
    }
}

/// The name of a namespace of which the text makes no sense was the sign that stands there, and no path named the kernel.
#[test]
fn a_sign_is_no_namespace() {
    for text in ["namespace a : { __global__ void k() {} }", "namespace a::: { __global__ void k() {} }"] {
        let kernels = read(text);
        assert!(kernels.kernels.iter().all(|kernel| kernel.is_named(&kernel.path())), "{kernels:?}");
        assert!(!kernels.kernels.is_empty());
    }
}

#[test]
fn any_text_is_read() {
    proptest::proptest!(|(text in pieces())| {
        for kernel in read(&text).kernels {
            line(&text, &kernel);
            proptest::prop_assert!(kernel.is_named(&kernel.path()), "{kernel:?}");
            proptest::prop_assert!(text.get(kernel.params_range.clone()).is_some());
            for param in &kernel.params {
                proptest::prop_assert!(text.get(param.range.clone()).is_some());
            }
        }
    });
}

#[test]
fn any_text_is_checked() {
    let resolved = plugin("k<T, N>", TENSORS);
    proptest::proptest!(|(text in pieces())| {
        let source = Source::new("k.cu", text);
        let checked = check(&resolved, &|_: &Path| Ok(Arc::clone(&source)));
        let _ = render(&checked.diagnostics, Colour::Plain);
    });
}

/// What could make a reader go over a text again and again.
#[test]
fn time_grows_with_the_text_alone() {
    let start = std::time::Instant::now();
    for piece in [
        "(",
        "<",
        "{",
        "template <",
        "__global__ ",
        "__global__ void k<",
        "__global__ void k(a<",
        "A(",
        "A() noexcept ",
        "namespace a{",
        "namespace a{__global__ void k();",
        "\n#if 1\n__global__ void k();",
        "requires {}",
        "requires(1) __global__ k() {}",
        "R\"(",
        "/*",
        "\\\n",
        "__global__ void k(int a, ",
        "a::",
        "extern \"C\" {",
        "[[",
        "__global__ template<>",
        "\"",
        "using a;",
        "(}",
        "})",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        let _ = read(&text);
        let _ = read(&format!("__global__ void {text}"));
        let _ = read(&format!("template <{text}"));
    }
    // 80 texts of 200 kB: a second where time is linear and code is not optimized, minutes where it is not linear.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// The oracle is NVRTC: what its debug information says of the same kernel.
#[test]
fn what_is_certain_is_what_the_compiler_says() {
    let test = "what_is_certain_is_what_the_compiler_says";
    let Some((toolkit, nvrtc)) = nvrtc(test) else { return };
    // What a pointer points to is described only where the kernel looks into it.
    let text = "#define R __restrict__\n#define N 3\nusing index = long long; struct Own { int a; };\n\
                template <typename T, int M> __global__ void __launch_bounds__(64 * N)\n\
                k(const T* R a, T *const b, unsigned c, cubinder::array<int, M> d, const float4* e, void* f, \
                long unsigned int g, const cubinder::array< unsigned char , 4 > h, bool i, double j[], short int l, \
                signed char m, size_t n, uint2* o, const unsigned long long int* p, float const* q, T** r, \
                const __half2* s, int t = 3, index u = 1, Own* v = nullptr, char w = 'c', long long x = 1, \
                const bool y[4] = 0, ulonglong2* z = 0) {\n    o->x = e->x; z->x = s->x;\n}\n";
    let (mut unit, source) = draft(Path::new("."), text, "k<__half, 5>", &[DataType::F16]);
    unit.plugin_types = vec![DataType::F16];
    let translation = crate::codegen::translation_unit(&unit, source, "k.cu", None);
    let target = "sm_80".parse().unwrap();
    let raw = compile_for_signature(nvrtc, &translation, target, &Settings::default(), &toolkit.include)
        .unwrap_or_else(|errors| panic!("{}", crate::test_support::show(&errors)));
    let signature = crate::signature::read(&raw.bytes, &raw.symbol).unwrap();
    let kernels = read(text);
    let kernel = &kernels.kernels[0];
    assert_eq!(kernel.certainty, Certainty::Exact);
    let arguments = name::parse(&unit.kernel).unwrap().arguments.unwrap();
    let own_types = &kernels.own_types;
    let (types, constants) = (&unit.types, &unit.constants);
    let meanings = name::Meanings { kernel, arguments: &arguments, types, constants, own_types };
    assert_eq!(kernel.params.len(), signature.params.len());
    let mut certain = 0;
    for (param, told) in kernel.params.iter().zip(&signature.params) {
        assert_eq!(param.name, told.name);
        let resolved = name::resolve(&param.ty, meanings);
        let Some(found) = resolved.ty else { continue };
        let parts = |ty: ParamType| match ty {
            // How a type is spelt is another matter.
            ParamType::Pointer { pointee_size, is_const, leaf, .. } => {
                ParamType::Pointer { pointee: String::new(), pointee_size, is_const, leaf }
            }
            ty => ty,
        };
        if resolved.knows_pointee || !matches!(found, ParamType::Pointer { .. }) {
            assert_eq!(parts(found), parts(told.ty.clone()), "{}", param.name);
            certain += 1;
        }
    }
    // All but the author's own types and the pointer to pointers.
    assert_eq!(certain, kernel.params.len() - 3);
}

#[test]
fn kernels_that_may_wait_are_known() {
    let may_wait = |text: &str| -> Vec<bool> {
        read(text).kernels.iter().filter(|kernel| kernel.has_body).map(|kernel| kernel.may_wait).collect()
    };
    let wait = "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");";
    assert_eq!(
        may_wait(&format!("__global__ void a() {{ {wait} }}\n__global__ void b() {{}}")),
        [true, false]
    );
    assert_eq!(may_wait("__global__ void a() { cudaGridDependencySynchronize(); }"), [true]);
    assert_eq!(may_wait("__global__ void a() { /* griddepcontrol.wait */ } // griddepcontrol.wait"), [false]);
    // Through functions, in any order.
    let through = format!(
        "__device__ void outer();\n__device__ void inner() {{ {wait} }}\n__global__ void a() {{ outer(); }}\n\
         __device__ void outer() {{ inner(); }}\n__global__ void b() {{ other(); }}"
    );
    assert_eq!(may_wait(&through), [true, false]);
    // What a name may hide counts.
    assert_eq!(may_wait(&format!("#define WAIT {wait}\n__global__ void a() {{ WAIT }}")), [true]);
    assert_eq!(
        may_wait(&format!(
            "struct S {{ __device__ void f() {{ {wait} }} }};\n__global__ void a(S s) {{ s.f(); }}"
        )),
        [true]
    );
    assert_eq!(may_wait("__global__ void a() {"), [true]);
    // Each function is looked at once, however long the chain is: otherwise this takes minutes.
    let mut chain = format!("__device__ void f0() {{ {wait} }}\n");
    for call in 0..20_000 {
        chain += &format!("__device__ void f{}() {{ f{call}(); }}\n", call + 1);
    }
    let start = std::time::Instant::now();
    assert_eq!(
        may_wait(&(chain + "__global__ void a() { f20000(); }\n__global__ void b() {}")),
        [true, false]
    );
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn the_wait_is_shown_with_what_older_targets_need() {
    let launch = "block = [256]\nprogrammatic = true";
    let text = Sample { launch, ..Sample::PLAIN }.text();
    let resolved = resolved("m.toml", &text);
    let source = Source::new("k.cu", "__global__ void k(const float* x, float* y) {}");
    let help = |targets: &[&str]| {
        let targets: Vec<_> = targets.iter().map(|target| target.parse().unwrap()).collect();
        let found = check_for(&resolved, &targets, &|_| Ok(Arc::clone(&source))).diagnostics;
        let found = found.into_iter().find(|one| one.code == Some(rules::NO_DEPENDENCY_WAIT)).unwrap();
        found.help.unwrap_or_default()
    };
    let guard = "between lines `#if __CUDA_ARCH__ >= 900` and `#endif`, as `sm_80` has no such instruction";
    assert!(help(&["sm_90", "sm_80"]).contains(guard), "{}", help(&["sm_90", "sm_80"]));
    assert!(!help(&["sm_90"]).contains("#if"), "{}", help(&["sm_90"]));
}
