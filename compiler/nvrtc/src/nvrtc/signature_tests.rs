use std::path::Path;

use super::Settings;
use super::tests::compile_for_signature;
use crate::kernel_signature::{Param, ParamType, Signature};
use crate::signature::read_ptx;
use crate::test_support::{nvrtc, show, unit};
use cubinder_expr::{DataType, ScalarType};

fn signature(test: &str, text: &str, kernel: &str, types: &[DataType]) -> Option<Signature> {
    let (toolkit, nvrtc) = nvrtc(test)?;
    let unit = unit(Path::new("."), text, kernel, types);
    let target = "sm_80".parse().unwrap();
    let raw = compile_for_signature(nvrtc, &unit, target, &Settings::default(), &toolkit.include)
        .unwrap_or_else(|errors| panic!("{}", show(&errors)));
    Some(read_ptx(&raw.bytes, &[raw.symbol.as_str()].into()).unwrap().remove(&raw.symbol).unwrap())
}

#[test]
fn parameters_are_read_through_macros_templates_and_typedefs() {
    let text = "
#define P(type, name) type name
typedef const float* input; using index = long long; enum E : unsigned char { A };
struct Dims { int d[8]; }; struct Wrapped { Dims d; }; struct Two { int a; float b; };
struct Grid { int d[2][4]; }; struct One { int a; }; struct Opaque;
namespace ns {
template <typename T, int N>
__global__ void k(input a, P(index, n), T* __restrict__ const out, const __grid_constant__ Dims d, Wrapped w,
                  cubinder::array<index, N> s, cubinder::array<bool, 2> flags, size_t, int unused, volatile int* vp,
                  const void* cv, Opaque* op, float4* f4, const __half2* h2, char c, unsigned char uc, bool b, short sh,
                  unsigned u, double dd, __nv_bfloat16* bf, float** pp, T half, Two two, Grid grid, One one, E e,
                  const int ci, uint2* u2, Two* pt, float (*rows)[4], E* pe,
                  void (*function)(int), float* (*pointers)[2]) {}
}
";
    let name = "parameters_are_read_through_macros_templates_and_typedefs";
    let types = [DataType::F16, DataType::Bf16];
    let Some(signature) = signature(name, text, "ns::k<__half, 3>", &types) else { return };
    let lines: Vec<String> = signature
        .params
        .iter()
        .map(|param| format!("{} | {} | {:?}", param.name, param.spelling, param.ty))
        .collect();
    insta::assert_snapshot!("every_kind_of_parameter", lines.join("\n"));
}

#[test]
fn pointers_to_arrays_of_const_are_const() {
    let text = "
typedef const float In; typedef float Row[4]; typedef const float ConstRow[4]; typedef ConstRow Rows[2];
struct Vector { float of[4]; };
__global__ void k(const float (*a)[1], float const (*b)[2][3], const Row* c, ConstRow* d, const Rows* e, Rows* f,
                  const volatile float (*g)[1], In (*h)[4], const Vector (*i)[2], const Row (*j)[2], const float l[][4],
                  float (*m)[1], Row* n, float (* const o)[2][3], Vector (*p)[2], const float* (*q)[1],
                  const float** r, float* const* s, volatile Row* t, float u[][4]) {}
";
    let Some(found) = signature("pointers_to_arrays_of_const_are_const", text, "k", &[]) else { return };
    let is_const = |param: &Param| match param.ty {
        ParamType::Pointer { is_const, .. } => is_const,
        _ => panic!("{param:?}"),
    };
    let found: String =
        found.params.iter().filter(|param| is_const(param)).map(|param| param.name.as_str()).collect();
    assert_eq!(found, "abcdefghijls");
}

#[test]
fn a_signature_reads_like_cuda() {
    let text = "extern \"C\" __global__ void plain(const float* x, int) {}\n__global__ void none() {}\n";
    let Some(plain) = signature("a_signature_reads_like_cuda", text, "plain", &[]) else { return };
    assert_eq!(plain.to_string(), "plain(const float* x, int)");
    assert_eq!(plain.find("x").map(|(index, _)| index), Some(0));
    let Some(none) = signature("a_signature_reads_like_cuda", text, "none", &[]) else { return };
    assert_eq!(none.to_string(), "none()");
}

#[test]
fn the_parameters_of_a_pack_share_its_name() {
    let text = "template <class... Ts> __global__ void k(const float* x, Ts... n) {}\n";
    let test = "the_parameters_of_a_pack_share_its_name";
    let Some(found) = signature(test, text, "k<int, float>", &[]) else { return };
    let names: Vec<&str> = found.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["x", "n", "n"]);
}

#[test]
fn enumerations_are_integers_of_their_width() {
    let text = "
enum Plain { A, B }; enum class Byte : unsigned char { A, B = 200 }; enum class Below : short { A = -3, B };
enum Large { HUGE_ONE = 0xffffffffu }; enum class Long : long long { A = 7 }; enum class None : int {};
enum class Narrow : signed char { A, B = 127 }; enum class Truth : bool { NO, YES }; enum class Half : short { A = 32767 };
enum class Flag : unsigned char { NO, YES };
enum class AllOnes : unsigned long long { A = 0xffffffffffffffff }; enum class Negative : long long { A = -1 };
__global__ void k(Plain p, const Byte b, Below n, Large l, Long w, Narrow c, Truth t, Flag f, Half h, None z,
                  AllOnes a, Negative m) {}
";
    let Some(found) = signature("enumerations_are_integers_of_their_width", text, "k", &[]) else { return };
    let types: Vec<ParamType> = found.params.into_iter().map(|param| param.ty).collect();
    let (natural, unsigned) = (|bits| ScalarType::Natural { bits }, |bytes| ScalarType::UInt { bytes });
    let short = ScalarType::Int { bytes: 2 };
    // `bool` cannot represent a name of `Narrow`; `Truth` and `Flag` are alike.
    let expected = [
        natural(31),
        unsigned(1),
        short,
        unsigned(4),
        natural(63),
        natural(7),
        natural(1),
        natural(1),
        natural(15),
    ];
    assert_eq!(types[..9], expected.map(ParamType::Enum));
    assert_eq!(types[9], ParamType::Scalar(ScalarType::Int { bytes: 4 }));
    assert_eq!(types[10..], [natural(63), natural(63)].map(ParamType::Enum));
}

#[test]
fn a_kernel_in_an_unnamed_namespace_is_found() {
    let text = "namespace { template <class T> __global__ void k(T* p) {} }\n";
    let Some(found) = signature("a_kernel_in_an_unnamed_namespace_is_found", text, "k<int>", &[]) else {
        return;
    };
    assert_eq!(found.to_string(), "k<int>(int* p)");
}

#[test]
fn damage_never_panics() {
    let Some((toolkit, nvrtc)) = nvrtc("damage_never_panics") else { return };
    let unit =
        unit(Path::new("."), "__global__ void k(const float* x, cubinder::array<int, 4> s) {}\n", "k", &[]);
    let target = "sm_80".parse().unwrap();
    let raw = compile_for_signature(nvrtc, &unit, target, &Settings::default(), &toolkit.include).unwrap();
    for at in (0..raw.bytes.len()).step_by(5) {
        let mut bytes = raw.bytes.clone();
        bytes[at] ^= 0xff;
        let _ = read_ptx(&bytes, &[raw.symbol.as_str()].into());
    }
}

#[test]
fn several_kernels_are_read_at_once() {
    let text =
        "extern \"C\" __global__ void a(const float* x) {}\nextern \"C\" __global__ void b(int n) {}\n";
    let Some((toolkit, nvrtc)) = nvrtc("several_kernels_are_read_at_once") else { return };
    let unit = unit(Path::new("."), text, "a", &[]);
    let target = "sm_80".parse().unwrap();
    let raw = compile_for_signature(nvrtc, &unit, target, &Settings::default(), &toolkit.include).unwrap();
    let found = read_ptx(&raw.bytes, &["a", "b", "c"].into()).unwrap();
    let shown: Vec<String> = found.values().map(Signature::to_string).collect();
    assert_eq!(shown, ["a(const float* x)", "b(int n)"]);
}
