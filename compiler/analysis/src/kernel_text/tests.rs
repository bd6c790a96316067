use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::cuda::{name, read};
use crate::diagnostic::{Colour, Diagnostic, Source, has_errors, render};
use crate::kernel_signature::ParamType;
use crate::nvrtc::{Session, Settings, diagnostics};
use crate::resolve::Resolved;
use crate::rules;
use crate::test_support::{Sample, cuda_pieces, draft, resolved, toolkit};
use cubinder_expr::DataType;

fn plugin(kernel: &str, args: &str) -> Resolved {
    let tables = "[attributes.factor]\ntype = \"f32\"\n[types]\nT = [\"f32\", \"f16\"]\n[constants]\nN = 4";
    let launch = "block = [\"256 if factor > 0.0 else 128\"]";
    resolved("/srv/p/m.toml", &Sample { element: "T", tables, kernel, launch, args, ..Sample::PLAIN }.text())
}

fn checked(text: &str, kernel: &str, args: &str) -> CheckedText {
    let resolved = plugin(kernel, args);
    let source = Source::new("/srv/p/k.cu", text);
    check(&resolved, &[], &[], &|path: &Path| {
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
        let checked = checked(&text.replace("float4", "uint4"), kernel, args);
        assert_eq!(render(&checked.diagnostics, Colour::Plain), "", "{text}");
        assert_eq!(checked.unsure, [], "{text}");
    }
}

#[test]
fn mistakes_are_told_once_in_both_texts() {
    let with = |from: &str, to: &str| told(SCALE, "scale<T, N>", &ARGS.replace(from, to));
    let cases = [
        with("count", "cuont"),
        with("count = \"numel(y)\"\n", ""),
        with("factor = ", "whole = \"1\"\nfactor = "),
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
        Some("`f32` is not a C++ name, and `/srv/p/k.cu` does not declare it")
    );
    assert_eq!(
        message(text, "k<factor>").as_deref(),
        Some("the template argument `factor` is an attribute without `specialize`")
    );
    let own =
        "template <int A, typename T, int K> __global__ void k(const T* x, T* y) { y[0] = x[K + (K)]; }";
    assert_eq!(
        message(own, "k<1, float, K>").as_deref(),
        Some("the template parameter `K` of the kernel has no value")
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
fn what_options_define_may_be_declared_nowhere_else() {
    let resolved = plugin("k<T, KK>", TENSORS);
    let source = Source::new("k.cu", "template <typename T, int K> __global__ void k(const T* x, T* y) {}");
    let found = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        check(&resolved, &[], &options, &|_| Ok(Arc::clone(&source)))
    };
    assert!(has_errors(&found(&[]).diagnostics));
    for options in [&["-DKK=3"][..], &["--define-macro", "KK=3"]] {
        let found = found(options);
        assert_eq!((found.diagnostics.len(), found.unsure.len()), (0, 1), "{found:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_once() {
    let resolved = plugin("k", TENSORS);
    let missing = |path: &Path| Err(vec![Diagnostic::error(format!("cannot read `{}`", path.display()))]);
    let checked = check(&resolved, &[], &[], &missing);
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

#[test]
fn any_text_is_checked() {
    let resolved = plugin("k<T, N>", TENSORS);
    proptest::proptest!(|(text in cuda_pieces())| {
        let source = Source::new("k.cu", text);
        let checked = check(&resolved, &[], &[], &|_: &Path| Ok(Arc::clone(&source)));
        let _ = render(&checked.diagnostics, Colour::Plain);
    });
}

#[test]
fn what_is_certain_is_what_the_compiler_says() {
    let test = "what_is_certain_is_what_the_compiler_says";
    let Some(toolkit) = toolkit(test) else { return };
    // Debug information describes only dereferenced pointees.
    let text = "#define R __restrict__\n#define N 3\nusing index = long long; struct Own { int a; };\n\
                template <typename T, int M> __global__ void __launch_bounds__(64 * N)\n\
                k(const T* R a, T *const b, unsigned c, cubinder::array<int, M> d, const float4* e, void* f, \
                long unsigned int g, const cubinder::array< unsigned char , 4 > h, bool i, double j[], short int l, \
                signed char m, size_t n, uint2* o, const unsigned long long int* p, float const* q, T** r, \
                const __half2* s, int t = 3, index u = 1, Own* v = nullptr, char w = 'c', long long x = 1, \
                const bool y[4] = 0, ulonglong2* z = 0) {\n    o->x = e->x; z->x = s->x;\n}\n";
    let (unit, source) = draft(Path::new("."), text, "k<__half, 5>", &[DataType::F16]);
    let translation = crate::codegen::translation_unit(&unit, source, "k.cu", None);
    let target = "sm_80".parse().unwrap();
    let session =
        Session::new(toolkit, Settings::default(), cubinder_nvrtc::cache::Cache::disabled()).unwrap();
    let signature = session.signature(&session.prepare(translation), target).map_err(diagnostics);
    let signature = signature.unwrap_or_else(|errors| panic!("{}", crate::test_support::show(&errors)));
    let kernels = read(text);
    let kernel = &kernels.kernels[0];
    assert_eq!(kernel.doubt, None);
    let arguments = name::parse(&unit.kernel).unwrap().arguments.unwrap();
    let own_types = &kernels.own_types;
    let (types, constants) = (&unit.types, &unit.constants);
    let meanings = name::TemplateContext { kernel, arguments: &arguments, types, constants, own_types };
    assert_eq!(kernel.params.len(), signature.params.len());
    let mut certain = 0;
    for (param, told) in kernel.params.iter().zip(&signature.params) {
        assert_eq!(param.name, told.name);
        let resolved = name::resolve(&param.ty, meanings);
        let Some(found) = resolved.ty else { continue };
        let parts = |ty: ParamType| match ty {
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
    assert_eq!(certain, kernel.params.len() - 3);
}

#[test]
fn the_wait_is_shown_with_what_older_targets_need() {
    let launch = "block = [256]\nprogrammatic = true";
    let text = Sample { launch, ..Sample::PLAIN }.text();
    let resolved = resolved("m.toml", &text);
    let source = Source::new("k.cu", "__global__ void k(const float* x, float* y) {}");
    let help = |targets: &[&str]| {
        let targets: Vec<_> = targets.iter().map(|target| target.parse().unwrap()).collect();
        let found = check(&resolved, &targets, &[], &|_| Ok(Arc::clone(&source))).diagnostics;
        let found = found.into_iter().find(|one| one.code == Some(rules::NO_DEPENDENCY_WAIT)).unwrap();
        found.help.unwrap_or_default()
    };
    let guard = "between `#if __CUDA_ARCH__ >= 900` and `#endif`, because `sm_80` lacks this instruction";
    assert!(help(&["sm_90", "sm_80"]).contains(guard), "{}", help(&["sm_90", "sm_80"]));
    assert!(!help(&["sm_90"]).contains("#if"), "{}", help(&["sm_90"]));
    for wait in ["cudaGridDependencySynchronize();", "cuda::ptx::griddepcontrol_wait();"] {
        let source = Source::new("k.cu", format!("{}\n__device__ void wait() {{ {wait} }}", source.text));
        assert_eq!(check(&resolved, &[], &[], &|_| Ok(Arc::clone(&source))).diagnostics, []);
    }
}
