//! Generates the kernel that TensorRT itself launches. Must not read the user's text.
//!
//! It rebuilds arguments from TensorRT's addresses and 32-bit integers ([`cubinder_launch::native`]) and calls the
//! user's kernel: `__global__` becomes an always-inlined device function (not `inline`, which explicit instantiations
//! reject). `__grid_constant__` and `__cluster_dims__` do not compile so (NVRTC 13.0).

use std::fmt::Write as _;

use cubinder_launch::native::{self, Word};
use cubinder_model::{Arg, ArgValue, Launch, Plugin};

use super::TranslationUnit;

/// Launch bounds of the user's and the generated kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchBounds {
    /// Maximum threads of a block.
    pub max_threads: Option<u32>,
    /// Minimum resident blocks per multiprocessor.
    pub min_blocks: Option<u32>,
}

/// Precedes the user's text, whose macros thus cannot change it; the text after it uses reserved names.
///
/// Converts addresses and words to the kernel's parameter types, already checked against the manifest; checks sizes.
const BEFORE: &str = "\
namespace cubinder_native {
template <int INDEX, typename... PARAMS> struct cubinder_nth;
template <typename FIRST, typename... REST> struct cubinder_nth<0, FIRST, REST...> { using type = FIRST; };
template <int INDEX, typename FIRST, typename... REST>
struct cubinder_nth<INDEX, FIRST, REST...> : cubinder_nth<INDEX - 1, REST...> {};
template <int INDEX, typename KERNEL> struct cubinder_param;
template <int INDEX, typename... PARAMS>
struct cubinder_param<INDEX, void (*)(PARAMS...)> : cubinder_nth<INDEX, PARAMS...> {};
#ifdef __cpp_noexcept_function_type
template <int INDEX, typename... PARAMS>
struct cubinder_param<INDEX, void (*)(PARAMS...) noexcept> : cubinder_nth<INDEX, PARAMS...> {};
#endif
template <typename T> __device__ __forceinline__ T cubinder_address(const void* address) { return static_cast<T>(const_cast<void*>(address)); }
template <typename T, int WIDTH, typename... WORDS>
__device__ __forceinline__ T cubinder_numbers(WORDS... given)
{
    constexpr int COUNT = sizeof...(WORDS), BYTES = WIDTH < 4 ? COUNT * WIDTH : COUNT * 4;
    static_assert(sizeof(T) == BYTES, \"an argument has as many bytes as its parameter\");
    const int words[COUNT] = {given...};
    struct {
        unsigned char at[BYTES];
    } bytes;
    for (int i = 0; i < BYTES; ++i)
        bytes.at[i] = static_cast<unsigned char>(WIDTH < 4 ? words[i / WIDTH] >> (i % WIDTH * 8) : words[i / 4] >> (i % 4 * 8));
    return __builtin_bit_cast(T, bytes);
}
}
#pragma nv_diag_suppress 2473
#undef __global__
#undef __launch_bounds__
#define __global__ __device__ __attribute__((always_inline))
#define __launch_bounds__(...)
";

const BEHIND: &str = "#undef __global__\n#undef __launch_bounds__\n#line 1 \"kernel for TensorRT\"\n";

/// Returns the generated kernel's symbol, shown by profilers and stored in engines.
#[must_use]
pub fn native_symbol(plugin: &Plugin) -> String {
    native::symbol(&plugin.namespace, &plugin.name)
}

/// Returns the generated kernel's unit.
#[must_use]
pub fn native_unit(
    unit: &TranslationUnit,
    plugin: &Plugin,
    launch: &Launch,
    bounds: LaunchBounds,
) -> TranslationUnit {
    let symbol = native_symbol(plugin);
    let head = format!("#include \"{}\"\n", super::PRELUDE_NAME);
    let rest = unit.text.strip_prefix(&head).unwrap_or(&unit.text);
    let kernel = kernel(&symbol, &unit.kernel, plugin, launch, bounds);
    TranslationUnit { text: format!("{head}{BEFORE}{rest}{BEHIND}{kernel}"), kernel: symbol, ..unit.clone() }
}

fn kernel(symbol: &str, author: &str, plugin: &Plugin, launch: &Launch, bounds: LaunchBounds) -> String {
    let words = native::words(launch);
    let inputs = (0..plugin.inputs.len()).map(|index| format!("const void* cubinder_in{index}"));
    let scalars = (0..words.len()).map(|index| format!("int cubinder_w{index}"));
    let outputs = plugin.outputs.iter().enumerate().filter(|(_, output)| output.alias.is_none());
    let outputs = outputs.map(|(index, _)| format!("void* cubinder_out{index}"));
    let params: Vec<String> = inputs.chain(scalars).chain(outputs).collect();
    let args: Vec<String> = launch
        .args
        .iter()
        .enumerate()
        .map(|(index, arg)| argument(author, index, arg, plugin, &words))
        .collect();
    let mut text = String::new();
    let bounds = match (bounds.max_threads, bounds.min_blocks) {
        (Some(threads), Some(blocks)) => format!(" __attribute__((launch_bounds({threads}, {blocks})))"),
        (Some(threads), None) => format!(" __attribute__((launch_bounds({threads})))"),
        (None, _) => String::new(),
    };
    let _ =
        writeln!(text, "extern \"C\" __attribute__((global)) void{bounds} {symbol}({})", params.join(", "));
    let _ = writeln!(
        text,
        "{{\n    if (cubinder_w0 != 0)\n        return;\n    {author}({});\n}}",
        args.join(", ")
    );
    text
}

fn argument(author: &str, index: usize, arg: &Arg, plugin: &Plugin, words: &[Word]) -> String {
    let ty = format!("cubinder_native::cubinder_param<{index}, decltype(&{author})>::type");
    let address = |of: &str| format!("cubinder_native::cubinder_address<{ty}>({of})");
    let number = match &arg.value {
        ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => {
            return address(&tensor_name(*tensor as usize, plugin));
        }
        // Rejected earlier: such launches need the runtime library.
        ArgValue::Scratch(_) => return address("nullptr"),
        ArgValue::Scalar { ty, .. } | ArgValue::Array { ty, .. } => *ty,
    };
    let of_arg = words
        .iter()
        .enumerate()
        .filter(|(_, word)| matches!(word, Word::Element { arg, .. } if *arg == index));
    let of_arg: Vec<String> = of_arg.map(|(word, _)| format!("cubinder_w{word}")).collect();
    format!("cubinder_native::cubinder_numbers<{ty}, {}>({})", number.size().min(4), of_arg.join(", "))
}

/// Aliased outputs use their input's.
fn tensor_name(tensor: usize, plugin: &Plugin) -> String {
    match tensor.checked_sub(plugin.inputs.len()) {
        None => format!("cubinder_in{tensor}"),
        Some(output) => match plugin.outputs.get(output).and_then(|output| output.alias) {
            Some(input) => format!("cubinder_in{input}"),
            None => format!("cubinder_out{output}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cubinder_expr::{DataType, ScalarType};
    use cubinder_expr::{Expr, Node};
    use cubinder_model::Target;

    use super::*;
    use crate::nvrtc::Settings;
    use crate::nvrtc::tests::compile_unit;
    use crate::test_support::{Sample, nvrtc, resolved, show, unit};

    fn int(value: i64) -> Expr {
        Expr { nodes: vec![Node::Int(value)] }
    }

    fn arg(name: &str, value: ArgValue) -> Arg {
        Arg { name: name.to_owned(), value }
    }

    fn plugin() -> Plugin {
        resolved("p.toml", &Sample::PLAIN.text()).draft.plugin
    }

    fn launch(args: Vec<Arg>) -> Launch {
        Launch {
            kernel: String::new(),
            grid: [int(1), int(1), int(1)],
            block: [int(64), int(1), int(1)],
            shared_bytes: int(0),
            cluster: None,
            cooperative: false,
            programmatic: false,
            args,
            code: Vec::new(),
        }
    }

    fn ptx(test: &str, text: &str, kernel: &str, args: Vec<Arg>, bounds: LaunchBounds) -> Option<String> {
        let (toolkit, nvrtc) = nvrtc(test)?;
        let author = unit(Path::new("."), text, kernel, &[DataType::F32]);
        let around = native_unit(&author, &plugin(), &launch(args), bounds);
        let target: Target = "compute_80".parse().unwrap();
        let raw = compile_unit(nvrtc, &around, target, &Settings::default(), &toolkit.include)
            .unwrap_or_else(|errors| panic!("{}\n{}", show(&errors), around.text));
        assert!(raw.log.is_empty(), "{}\n{}", raw.log, around.text);
        Some(String::from_utf8(raw.bytes).unwrap())
    }

    fn tensors() -> [Arg; 2] {
        [arg("x", ArgValue::ReadTensor(0)), arg("y", ArgValue::Tensor(1))]
    }

    fn scalar(ty: ScalarType) -> ArgValue {
        ArgValue::Scalar { ty, expr: int(1) }
    }

    #[test]
    fn kernels_of_every_kind_become_part_of_it() {
        let body = "{ y[threadIdx.x] = x[threadIdx.x]; }";
        let params = "(const float* x, float* y)";
        for (kernel, text) in [
            ("k", format!("__global__ void k{params} {body}")),
            ("k", format!("extern \"C\" __global__ void k{params} {body}")),
            ("k", format!("static __global__ void k{params} {body}")),
            ("k", format!("__global__ static void __launch_bounds__(64) k{params} {body}")),
            ("k", format!("void __global__ __launch_bounds__(64, 2) k{params};\n__global__ void k{params} {body}")),
            ("k<float>", format!("template <typename T> __global__ void k(const T* x, T* y) {body}")),
            ("k<float>", format!("template <typename T> __global__ void k(const T* x, T* y);\ntemplate <> __global__ void k<float>{params} {body}")),
            ("k<float>", format!("template <typename T> __global__ void k(const T* x, T* y) {body}\ntemplate __global__ void k<double>(const double*, double*);")),
            ("k", format!("inline __global__ void k{params} {body}")),
            ("k<float>", format!("template <typename T, typename U = float> __global__ void k(const T* x, U* y) {body}")),
            ("k", format!("#define pointer 1\n#define w0 2\n#define in0 3\n__global__ void k{params} {body}")),
            ("a::b::k", format!("namespace a {{ namespace b {{ __global__ void k{params} {body} }} }}")),
            ("k", format!("namespace {{ __global__ void k{params} {body} }}")),
            ("k", format!("__shared__ float s[64];\n__global__ void k{params} {{ extern __shared__ float d[]; s[0] = d[0] = x[0]; __syncthreads(); y[0] = s[0] + d[1]; }}")),
            ("k", format!("#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n__global__ void k{params} {{ cooperative_groups::this_thread_block().sync(); y[0] = x[0]; }}")),
            ("k", "struct alignas(16) four { float v[4]; };\n__global__ void k(const four* __restrict__ x, void* y) { *static_cast<four*>(y) = *x; }".to_owned()),
        ] {
            let bounds = LaunchBounds { max_threads: Some(64), min_blocks: Some(2) };
            let Some(ptx) = ptx("kernels_of_every_kind", &text, kernel, tensors().into(), bounds) else { return };
            assert_eq!(ptx.matches(".entry").count(), 1, "{text}\n{ptx}");
            assert!(ptx.contains(&format!(".entry {}(", native_symbol(&plugin()))), "{ptx}");
            assert!(ptx.contains(".maxntid 64") && ptx.contains(".minnctapersm 2"), "{ptx}");
            assert!(!ptx.contains("call"), "{text}\n{ptx}");
        }
    }

    #[test]
    fn arguments_of_every_type_are_put_together() {
        let int_of = |bytes| ScalarType::Int { bytes };
        let uint_of = |bytes| ScalarType::UInt { bytes };
        let array = |ty, len| ArgValue::Array { ty, len, expr: int(1) };
        let args = vec![
            arg("s", array(int_of(8), 3)),
            arg("a", scalar(int_of(1))),
            arg("y", ArgValue::Tensor(1)),
            arg("b", scalar(uint_of(2))),
            arg("c", scalar(int_of(4))),
            arg("d", scalar(int_of(8))),
            arg("e", scalar(ScalarType::F32)),
            arg("f", scalar(ScalarType::F64)),
            arg("g", scalar(ScalarType::Bool)),
            arg("t", array(uint_of(2), 3)),
            arg("x", ArgValue::ReadTensor(0)),
        ];
        let text = "enum class mode : int { off };\n\
                    struct celsius { float degrees; __device__ explicit celsius(float of) : degrees(of) {} };\n\
                    struct pair { short of[3]; template <typename T> __device__ pair(T&&) : of{} {} };\n\
                    struct triple { long of[3]; template <typename T> __device__ triple(const T&) : of{} {} };\n\
                    __global__ void k(triple s, signed char a, float* y, unsigned short b, mode c, long long d, celsius e, double f, bool g,\n\
                    pair t, const float* x) noexcept\n\
                    { y[0] = x[0] + s.of[0] + s.of[2] + a + b + static_cast<int>(c) + d + e.degrees + f + g + t.of[1]; }";
        let Some(ptx) = ptx("arguments_of_every_type", text, "k", args, LaunchBounds::default()) else {
            return;
        };
        // Pointers: 1 input, 1 output. Words: whether to run, then 6, 1, 1, 1, 2, 1, 2, 1, 3.
        let entry = ptx.split(".entry").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
        assert_eq!(entry.matches(".param .u64").count(), 2, "{entry}");
        assert_eq!(entry.matches(".param .u32").count(), 1 + 6 + 1 + 1 + 1 + 2 + 1 + 2 + 1 + 3, "{entry}");
        // All but one element of `s` (two words) and two of `t` are read.
        assert_eq!(ptx.matches("ld.param").count(), 2 + 1 + 18 - 4, "{ptx}");
        assert!(!ptx.contains(".local"), "{ptx}");
    }

    #[test]
    fn an_output_in_place_takes_the_address_of_its_input() {
        let mut plugin = plugin();
        plugin.outputs[0].alias = Some(0);
        let launch = launch(vec![arg("y", ArgValue::Tensor(1))]);
        let text = kernel("s", "k", &plugin, &launch, LaunchBounds::default());
        assert!(text.contains("s(const void* cubinder_in0, int cubinder_w0)"), "{text}");
        let param = "cubinder_native::cubinder_param<0, decltype(&k)>::type";
        assert!(
            text.contains(&format!("k(cubinder_native::cubinder_address<{param}>(cubinder_in0));")),
            "{text}"
        );
    }
}
