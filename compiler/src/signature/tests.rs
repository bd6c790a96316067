use super::*;
use crate::nvrtc::{Settings, compile_for_signature};
use crate::test_support::{nvrtc, show, unit};
use cubinder_bundle::DataType;
use std::path::Path;

fn signature(test: &str, text: &str, kernel: &str, types: &[DataType]) -> Option<Signature> {
    let (toolkit, nvrtc) = nvrtc(test)?;
    let unit = unit(Path::new("."), text, kernel, types);
    let target = "sm_80".parse().unwrap();
    let raw = compile_for_signature(nvrtc, &unit, target, &Settings::default(), &toolkit.include)
        .unwrap_or_else(|errors| panic!("{}", show(&errors)));
    Some(read(&raw.bytes, &raw.symbol).unwrap())
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
fn a_signature_reads_like_cuda() {
    let text = "extern \"C\" __global__ void plain(const float* x, int) {}\n__global__ void none() {}\n";
    let Some(plain) = signature("a_signature_reads_like_cuda", text, "plain", &[]) else { return };
    assert_eq!(plain.to_string(), "plain(const float* x, int)");
    assert_eq!(plain.find("x").map(|(index, _)| index), Some(0));
    let Some(none) = signature("a_signature_reads_like_cuda", text, "none", &[]) else { return };
    assert_eq!(none.to_string(), "none()");
}

/// Both are called `n`: what binds by name has to look.
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
__global__ void k(Plain p, const Byte b, Below n, Large l, Long w, None z) {}
";
    let Some(found) = signature("enumerations_are_integers_of_their_width", text, "k", &[]) else { return };
    let types: Vec<ParamType> = found.params.into_iter().map(|param| param.ty).collect();
    let named = [(4, false), (1, false), (2, true), (4, false), (8, false)];
    assert_eq!(types[..5], named.map(|(bytes, has_negative)| ParamType::Enum { bytes, has_negative }));
    // One without names is written as the integer that it is.
    assert_eq!(types[5], ParamType::Int { bytes: 4 });
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
fn what_has_no_debug_information_is_an_error() {
    assert!(matches!(read(b"", "k"), Err(SignatureError::Elf(_))));
    let program = std::fs::read("/proc/self/exe").unwrap();
    assert_eq!(
        read(&program, "no such kernel").unwrap_err(),
        SignatureError::MissingFunction("no such kernel".to_owned())
    );
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
        let _ = read(&bytes, &raw.symbol);
    }
}
