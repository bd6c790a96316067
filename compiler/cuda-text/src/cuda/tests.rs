use super::*;
use crate::test_support::cuda_pieces;

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
    let doubt = kernel.doubt.as_ref().map_or_else(String::new, |doubt| format!(" -- {doubt}"));
    format!("{}{template}({}){doubt}", kernel.path(), params.join(", "))
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
    assert_eq!(kernels.kernels.len(), 1);
    assert_eq!(kernels.functions, ["g"]);
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
        ["the included `kernels.cuh` may declare it", "the included `cutlass/a.h` may declare it"]
    );
    assert_eq!(doubts("#define K(n) __global__ void n() {}\nK(a)"), ["the macro `K` defines kernels"]);
    for text in [
        "struct S { friend __global__ void k(); };",
        "__attribute__((global)) void k() {}",
        "__global__",
        "__global__ void k(",
        "__glo\\\nbal__ void k() {}",
        "void f() {",
    ] {
        assert_eq!(doubts(text), ["its declaration requires a compiler"], "{text}");
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
    proptest::proptest!(|(text in cuda_pieces())| {
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
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
