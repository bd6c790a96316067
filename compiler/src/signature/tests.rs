use super::*;
use crate::kernel_signature::{Leaf, Param, ParamType, Signature};
use crate::nvrtc::{Settings, compile_for_signature};
use crate::test_support::{nvrtc, show, unit};
use cubinder_expr::{DataType, ScalarType};
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
    // `Narrow` has a name that `bool` does not hold; `Truth` and `Flag` differ in nothing.
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
    // One without names is written as the integer that it is.
    assert_eq!(types[9], ParamType::Int { bytes: 4 });
    // The names of both are -1.
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
fn what_has_no_debug_information_is_an_error() {
    assert!(matches!(read_cubin(b"", &["k"].into()), Err(SignatureError::Elf(_))));
    let program = std::fs::read("/proc/self/exe").unwrap();
    assert_eq!(read_cubin(&program, &["no such kernel"].into()), Ok(std::collections::BTreeMap::new()));
    for text in ["", ".version 9.0\n.target sm_80\n.visible .entry k()\n{\n\tret;\n}\n"] {
        let missing = SignatureError::MissingFunction("k".to_owned());
        assert_eq!(read(text.as_bytes(), "k").unwrap_err(), missing);
    }
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

/// A file with these sections and nothing else, as `object` reads it.
fn elf(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let long = u64::to_le_bytes;
    let names: String = [".shstrtab"]
        .into_iter()
        .chain(sections.iter().map(|(name, _)| *name))
        .map(|it| format!("{it}\0"))
        .collect();
    let (mut body, mut table) = (vec![0; 64], vec![0; 64]);
    let mut name = 0_u64;
    let own = (".shstrtab", names.clone().into_bytes());
    for (index, (called, content)) in [own].iter().chain(sections).enumerate() {
        let kind = if index == 0 { 3 } else { 1 };
        let header = [kind << 32 | name, 0, 0, body.len() as u64, content.len() as u64, 0, 1, 0];
        table.extend(header.iter().flat_map(|it| long(*it)));
        name += called.len() as u64 + 1;
        body.extend(content);
    }
    let count = u8::try_from(sections.len() + 2).unwrap();
    let head = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0";
    let tail = [0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0, count, 0, 1, 0];
    let header = [&head[..], &long(0), &long(0), &long(body.len() as u64), &tail].concat();
    body[..64].copy_from_slice(&header);
    [body, table].concat()
}

/// Debug information of `k(S* x)`, where each of so many structs consists of two of the one before it, and the first of two `float`.
fn nested(levels: u32) -> Vec<u8> {
    let abbreviations = [
        &[1, 0x11, 1, 0, 0][..],                     // a unit, with entries in it
        &[2, 0x24, 0, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0], // a number: bytes, encoding
        &[3, 0x13, 1, 0x0b, 0x07, 0, 0],             // a struct: bytes
        &[4, 0x0d, 0, 0x49, 0x13, 0, 0],             // a part of it: type
        &[5, 0x0f, 0, 0x49, 0x13, 0, 0],             // a pointer: type
        &[6, 0x2e, 1, 0x03, 0x08, 0, 0],             // a function: name
        &[7, 0x05, 0, 0x03, 0x08, 0x49, 0x13, 0, 0], // a parameter: name, type
        &[0],
    ];
    let head = [4, 0, 0, 0, 0, 0, 8];
    // Places count from the length on, which stands before all this.
    let place = |unit: &Vec<u8>| u32::try_from(unit.len() + 4).unwrap().to_le_bytes();
    let mut unit = [&head[..], &[1]].concat();
    let mut last = place(&unit);
    unit.extend([2, 4, 4]);
    for level in 0..levels {
        let this = place(&unit);
        unit.push(3);
        unit.extend((8_u64 << level).to_le_bytes());
        for _ in 0..2 {
            unit.push(4);
            unit.extend(last);
        }
        unit.push(0);
        last = this;
    }
    let pointer = place(&unit);
    unit.push(5);
    unit.extend(last);
    unit.extend(b"\x06k\0\x07x\0");
    unit.extend(pointer);
    unit.extend([0, 0]);
    let length = u32::try_from(unit.len()).unwrap().to_le_bytes();
    elf(&[(".debug_abbrev", abbreviations.concat()), (".debug_info", [&length[..], &unit].concat())])
}

/// Looking at every part would take 2 to the power of 50 steps.
#[test]
fn a_type_that_is_a_part_of_many_is_looked_at_once() {
    for levels in [1, 2, 50] {
        let began = std::time::Instant::now();
        let found = read_cubin(&nested(levels), &["k"].into()).unwrap().remove("k").unwrap();
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
        let ParamType::Pointer { leaf, pointee_size, .. } = &found.params[0].ty else { panic!("{found:?}") };
        let size = u32::try_from(8_u64 << (levels - 1)).ok();
        assert_eq!((*leaf, *pointee_size), (Leaf::Scalar(ScalarType::F32), size), "{levels}");
    }
}
