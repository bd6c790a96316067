use super::*;
use crate::codegen::translation_unit;
use crate::diagnostic::{Diagnostic, Source};
use crate::test_support::{Sample, nvrtc, resolved, show, toolkit, unit};
use cubinder_expr::DataType;
use object::{Object as _, ObjectSection as _};
use std::path::Path;

pub(super) const SCALE: &str = "template <typename T, int N>\n__global__ void __launch_bounds__(256) scale(const T* x, T* y, \
                     cubinder::array<int, N> shape, float factor) {\n    y[threadIdx.x] = x[shape[0]] * T(factor);\n}\n";

pub(super) fn target(name: &str) -> Target {
    name.parse().unwrap()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
    pub(crate) symbol: String,
    pub(crate) log: String,
}

pub(crate) fn compile_unit(
    nvrtc: &Arc<Nvrtc>,
    unit: &TranslationUnit,
    target: Target,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    call(nvrtc, unit, Purpose::Code(target), settings, toolkit_include)
}

pub(crate) fn compile_for_signature(
    nvrtc: &Arc<Nvrtc>,
    unit: &TranslationUnit,
    target: Target,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    call(nvrtc, unit, Purpose::Signature(target.arch), settings, toolkit_include)
}

fn call(
    nvrtc: &Arc<Nvrtc>,
    unit: &TranslationUnit,
    purpose: Purpose,
    settings: &Settings,
    toolkit_include: &[PathBuf],
) -> Result<Raw, Vec<Diagnostic>> {
    let compiler = Compiler::InProcess(Arc::clone(nvrtc));
    let compiled = call_for(&compiler, unit, &[&unit.kernel], purpose, settings, toolkit_include);
    let output = compiled.map_err(diagnostics)?.output;
    let bytes = if output.cubin.is_empty() { output.ptx } else { output.cubin };
    Ok(Raw { bytes, symbol: output.lowered_names[0].clone(), log: output.log })
}

fn errors_of(test: &str, text: &str, kernel: &str, files: &[(&str, &str)]) -> Option<String> {
    let (toolkit, nvrtc) = nvrtc(test)?;
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let settings = Settings { include: vec![folder.path().join("inc")], options: Vec::new() };
    let unit = unit(folder.path(), text, kernel, &[DataType::F32]);
    let errors = compile_unit(nvrtc, &unit, target("sm_89"), &settings, &toolkit.include).unwrap_err();
    Some(show(&errors).replace(&folder.path().display().to_string(), "<folder>"))
}

#[test]
fn a_kernel_compiles_to_machine_code_and_to_ptx() {
    let Some((toolkit, nvrtc)) = nvrtc("a_kernel_compiles_to_machine_code_and_to_ptx") else { return };
    for types in [&[DataType::F32], &[DataType::F16]] {
        let kernel = format!("scale<{}, 8>", types[0].cuda_name());
        let unit = unit(Path::new("."), SCALE, &kernel, types);
        for name in ["sm_89", "sm_90a", "compute_80"] {
            let raw = compile_unit(nvrtc, &unit, target(name), &Settings::default(), &toolkit.include)
                .unwrap_or_else(|errors| panic!("{}", show(&errors)));
            let (kernels, _) = crate::cubin::kernels(target(name), &raw.bytes).unwrap();
            assert_eq!(kernels.len(), 1, "{kernels:?}");
            assert_eq!(kernels[0].symbol, raw.symbol);
            assert_eq!(kernels[0].max_threads, Some(256));
            let params: Vec<(u32, u32)> =
                kernels[0].params.iter().map(|param| (param.offset, param.size)).collect();
            assert_eq!(params, [(0, 8), (8, 8), (16, 32), (48, 4)]);
        }
    }
}

#[test]
fn the_same_text_gives_the_same_bytes_wherever_it_lies() {
    let Some((toolkit, nvrtc)) = nvrtc("the_same_text_gives_the_same_bytes_wherever_it_lies") else { return };
    let text = "namespace { __device__ int counter; template <class T> __global__ void bump(T* p) { *p = counter; } }\n\
                static __device__ const char* file() { return __FILE__; }\n\
                __global__ void where(const char** p) { *p = file(); }\n";
    let compile = |folder: &Path, options: &[String]| {
        let settings = Settings { include: Vec::new(), options: options.to_vec() };
        let unit = unit(folder, text, "bump<int>", &[]);
        compile_unit(nvrtc, &unit, target("sm_89"), &settings, &toolkit.include).unwrap()
    };
    for options in [vec![], vec!["-lineinfo".to_owned()]] {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = compile(one.path(), &options);
        assert_eq!(first, compile(two.path(), &options));
        let bytes = String::from_utf8_lossy(&first.bytes).into_owned();
        assert!(bytes.contains("kernels/test.cu"));
        assert!(!bytes.contains(&one.path().display().to_string()));
        assert!(
            !first.symbol.contains(&format!("{:x}", std::process::id())) || first.symbol.contains("00000000")
        );
    }
}

#[test]
fn errors_stand_in_the_users_file() {
    let text = "#include \"h.h\"\n\n\ttemplate <typename T> __global__ void scale(T* x) {\n\t    x[0] =\ty + 1;\n    \
                ä;\n    x[1] = eight(x[0]);\n    int unused;\n}\n";
    let header = "template <typename T> __device__ T eight(T x) { static_assert(sizeof(T) == 8, \"only eight\"); return x; }\n";
    let Some(shown) =
        errors_of("errors_stand_in_the_users_file", text, "scale<float>", &[("inc/h.h", header)])
    else {
        return;
    };
    insta::assert_snapshot!("errors_in_the_text", shown);
}

#[test]
fn a_kernel_that_is_not_there_is_said_in_the_manifest() {
    let text = "__global__ void plain(int* x) {}\ntemplate <typename T, int N> __global__ void scale(T* x) {}\n\
                __device__ void helper() {}\n";
    let mut all = String::new();
    for kernel in ["scael<float, 4>", "scale<float>", "helper", "scale<"] {
        let Some(shown) = errors_of("a_kernel_that_is_not_there", text, kernel, &[]) else { return };
        all.push_str(&format!("== {kernel}\n{shown}"));
    }
    let overloads = "__global__ void k(float* x) {}\n__global__ void k(int* x) {}\n";
    if let Some(shown) = errors_of("a_kernel_that_is_not_there", overloads, "k", &[]) {
        all.push_str(&format!("== overloads\n{shown}"));
    }
    insta::assert_snapshot!("unknown_kernels", all);
}

#[test]
fn what_only_ptxas_or_the_disk_knows_is_said() {
    let shared =
        "__global__ void big(float* x) { __shared__ float s[20000]; s[threadIdx.x] = 1; x[0] = s[3]; }\n";
    let Some(big) = errors_of("what_only_ptxas_knows", shared, "big", &[]) else { return };
    let Some(missing) = errors_of("what_only_the_disk_knows", "#include <nope.h>\n", "k", &[]) else {
        return;
    };
    insta::assert_snapshot!("ptxas_and_missing_files", format!("{big}{missing}"));
}

#[test]
fn an_instruction_of_newer_gpus_is_told_with_what_helps() {
    let text = "__global__ void k(float* x) { asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); }\n";
    let test = "an_instruction_of_newer_gpus_is_told_with_what_helps";
    let Some(errors) = errors_of(test, text, "k", &[]) else { return };
    assert!(errors.contains("requires .target sm_90 or higher"), "{errors}");
    let help = "help: put this code between `#if __CUDA_ARCH__ >= 900` and `#endif`, or remove targets below `sm_90`";
    assert!(errors.contains(help), "{errors}");
}

#[test]
fn what_nvrtc_does_not_take_is_said() {
    let Some((toolkit, nvrtc)) = nvrtc("what_nvrtc_does_not_take_is_said") else { return };
    let unit = unit(Path::new("."), SCALE, "scale<float, 8>", &[]);
    let errors = |name: &str, options: &[&str]| {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let settings = Settings { include: Vec::new(), options };
        show(&compile_unit(nvrtc, &unit, target(name), &settings, &toolkit.include).unwrap_err())
    };
    insta::assert_snapshot!(
        "refused_options",
        format!("{}{}", errors("sm_35", &[]), errors("sm_80", &["--nope"]))
    );
    assert!(nvrtc.supported_archs().unwrap().contains(&89));
}

#[test]
fn a_header_finds_its_neighbour() {
    let Some((toolkit, nvrtc)) = nvrtc("a_header_finds_its_neighbour") else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("kernels/part/a.h", "#include \"b.h\"\n#include \"cubinder.h\"\n");
    write("kernels/part/b.h", "#define VALUE 3\n");
    write("kernels/part/cubinder.h", "#error not this one\n");
    for include in ["\"part/a.h\"", "<part/a.h>"] {
        let text = format!("#include {include}\n__global__ void k(int* x) {{ *x = VALUE; }}\n");
        let unit = unit(folder.path(), &text, "k", &[]);
        compile_unit(nvrtc, &unit, target("sm_89"), &Settings::default(), &toolkit.include)
            .unwrap_or_else(|errors| panic!("{include}: {}", show(&errors)));
    }
}

#[test]
fn the_headers_of_cuda_can_be_included() {
    let Some((toolkit, nvrtc)) = nvrtc("the_headers_of_cuda_can_be_included") else { return };
    let groups = "#include <cooperative_groups.h>\n__global__ void k(float* y) {\n    \
                  cooperative_groups::this_thread_block().sync();\n    y[0] = 1;\n}\n";
    let tensor_cores = "#include <mma.h>\nusing namespace nvcuda::wmma;\n\
                        __global__ void k(const __half* a, const __half* b, float* y) {\n    \
                        fragment<matrix_a, 16, 16, 16, __half, row_major> x;\n    \
                        fragment<matrix_b, 16, 16, 16, __half, col_major> z;\n    \
                        fragment<accumulator, 16, 16, 16, float> sum;\n    \
                        fill_fragment(sum, 0.0f);\n    load_matrix_sync(x, a, 16);\n    \
                        load_matrix_sync(z, b, 16);\n    mma_sync(sum, x, z, sum);\n    \
                        store_matrix_sync(y, sum, 16, mem_row_major);\n}\n";
    let others = "#include <cuda_runtime.h>\n#include <cuda_fp8.h>\n#include <cuComplex.h>\n\
                  #include <math_constants.h>\n#include <cuda_pipeline.h>\n__global__ void k() {}\n";
    for text in [groups, tensor_cores, others] {
        for name in ["sm_80", "sm_90", "compute_120"] {
            let unit = unit(Path::new("."), text, "k", &[]);
            compile_unit(nvrtc, &unit, target(name), &Settings::default(), &toolkit.include)
                .unwrap_or_else(|errors| panic!("{name}: {text}: {}", show(&errors)));
        }
    }
}

#[test]
fn an_error_in_a_library_is_told_where_it_is_included() {
    let Some((toolkit, nvrtc)) = nvrtc("an_error_in_a_library_is_told_where_it_is_included") else { return };
    let text = "#include <cuda_fp16.h>\n#include <cub/cub.cuh>\n__global__ void k() {}\n";
    let unit = unit(Path::new("."), text, "k", &[]);
    let errors =
        compile_unit(nvrtc, &unit, target("sm_90"), &Settings::default(), &toolkit.include).unwrap_err();
    let [error] = &errors[..] else { panic!("{}", show(&errors)) };
    assert_eq!(error.message, "NVRTC cannot compile `cub/cub.cuh`");
    let place = &error.primary.as_ref().unwrap().span;
    assert_eq!(&place.source.text[place.range.clone()], "#include <cub/cub.cuh>");
    let text = "#include <cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_cluster().sync(); }\n";
    let unit = self::unit(Path::new("."), text, "k", &[]);
    let errors =
        compile_unit(nvrtc, &unit, target("sm_80"), &Settings::default(), &toolkit.include).unwrap_err();
    assert!(errors[0].help.as_ref().unwrap().contains("compute capability 9.0"), "{}", show(&errors));
}

#[test]
fn the_current_folder_is_not_searched() {
    let Some((toolkit, nvrtc)) = nvrtc("the_current_folder_is_not_searched") else { return };
    // Exists relative to the tests' folder, but the unit's folder is `src`.
    assert!(Path::new("src/nvrtc/mod.rs").is_file());
    let folder = tempfile::tempdir().unwrap();
    for (name, header) in [("test.cu", "src/nvrtc/mod.rs"), ("src/test.cu", "nvrtc/mod.rs")] {
        let mut unit = unit(folder.path(), &format!("#include \"{header}\"\n"), "k", &[]);
        unit.text = unit.text.replace("kernels/test.cu", name);
        unit.name = name.to_owned();
        let errors = compile_unit(nvrtc, &unit, target("sm_89"), &Settings::default(), &toolkit.include);
        assert_eq!(errors.unwrap_err()[0].message, format!("cannot open source file `{header}`"));
    }
}

#[test]
fn half_types_are_there_for_all_rows_of_a_plugin_that_has_them() {
    let Some((toolkit, nvrtc)) = nvrtc("half_types_are_there_for_all_rows_of_a_plugin_that_has_them") else {
        return;
    };
    let manifest = r#"schema = 1
[plugin]
name = "up"
namespace = "test"
summary = "Adds."
[[inputs]]
name = "x"
type = "T"
[[inputs]]
name = "b"
type = "bf16"
[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"
[types]
T = ["f32", "f16"]
[[launches]]
source = "up.cu"
kernel = "add<T>"
grid = ["1"]
block = [32]
[launches.args]
x = "x"
b = "b"
y = "y"
"#;
    let text = "__device__ float up(float v) { return v; }\n\
                __device__ float up(__half v) { return __half2float(v); }\n\
                template <typename T> __global__ void add(const T* x, const __nv_bfloat16* b, float* y) {\n    \
                y[threadIdx.x] = up(x[threadIdx.x]) + __bfloat162float(b[0]);\n}\n";
    let draft = resolved("m.toml", manifest).draft;
    assert_eq!(draft.units.len(), 2);
    for unit in &draft.units {
        let unit = translation_unit(unit, Source::new("up.cu", text), "up.cu", None);
        compile_unit(nvrtc, &unit, target("sm_89"), &Settings::default(), &toolkit.include)
            .unwrap_or_else(|errors| panic!("{}: {}", unit.kernel, show(&errors)));
    }
}

#[test]
fn tables_are_in_the_code_that_uses_them_bit_by_bit() {
    let Some((toolkit, nvrtc)) = nvrtc("tables_are_in_the_code_that_uses_them_bit_by_bit") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ok");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let path = folder.join("tables.toml");
    let mut resolved = resolved(path.to_str().unwrap(), &read("tables.toml"));
    assert_eq!(cubinder_manifest::tables::read(&mut resolved), []);
    let draft = resolved.draft;
    let code = |text: &str| {
        let unit = translation_unit(&draft.units[0], Source::new("tables.cu", text), "tables.cu", None);
        let raw = compile_unit(nvrtc, &unit, target("sm_89"), &Settings::default(), &toolkit.include);
        raw.unwrap_or_else(|errors| panic!("{}", show(&errors))).bytes
    };
    let text = read("tables.cu");
    let used = code(&text);
    let has = |bytes: &[u8]| used.windows(bytes.len()).any(|window| window == bytes);
    let wide = [0.1_f64, 5e-324, -0.0, 1.0].map(f64::to_le_bytes).concat();
    let window: Vec<u8> =
        (-8..8_i32).flat_map(|i| ((-0.5 * f64::from(i * i)).exp() as f32).to_le_bytes()).collect();
    let half = [0x3c00_u16, 0x2e66, 0xfbff].map(u16::to_le_bytes).concat();
    let brain = [0x3f80_u16, 0x3dcd].map(u16::to_le_bytes).concat();
    let order = [3_i32, 1, 2, i32::MIN].map(i32::to_le_bytes).concat();
    let large = [i64::MIN, i64::MAX].map(i64::to_le_bytes).concat();
    let shorts: Vec<u8> = (0..100_i16).flat_map(|i| (i * i).to_le_bytes()).collect();
    let noise = std::fs::read(folder.join("noise.bin")).unwrap();
    let masked = [0.0, f32::NEG_INFINITY, f32::INFINITY].map(f32::to_le_bytes).concat();
    let masked = [masked, 0x7fc0_0000_u32.to_le_bytes().to_vec()].concat();
    let unmasked = [0xfc00_u16, 0].map(u16::to_le_bytes).concat();
    for bytes in [noise, masked, unmasked] {
        assert!(has(&bytes), "{bytes:?}");
    }
    for bytes in [wide, window, half, brain, order, large.clone(), shorts, vec![0x80, 0x7f]] {
        assert!(has(&bytes), "{bytes:?}");
    }
    let unused = text.replace(" + manifest::large[i % 2]", "");
    assert_ne!(unused, text);
    let unused = code(&format!("#if __has_include(\"none.cuh\")\n#endif\n{unused}"));
    assert!(!unused.windows(large.len()).any(|window| window == large));
}

/// Kernels may read tables as vectors.
#[test]
fn tables_lie_at_multiples_of_16_bytes() {
    let Some((toolkit, nvrtc)) = nvrtc("tables_lie_at_multiples_of_16_bytes") else { return };
    let tables = "[tables.order]\ntype = \"u8\"\nvalues = [3, 1, 2]";
    let mut resolved = resolved("m.toml", &Sample { tables, ..Sample::PLAIN }.text());
    assert_eq!(cubinder_manifest::tables::read(&mut resolved), []);
    let text = "__global__ void k(const float* x, float* y) { y[0] = x[manifest::order[threadIdx.x]]; }";
    let unit = translation_unit(&resolved.draft.units[0], Source::new("k.cu", text), "k.cu", None);
    let raw =
        compile_unit(nvrtc, &unit, target("compute_80"), &Settings::default(), &toolkit.include).unwrap();
    let ptx = String::from_utf8(raw.bytes).unwrap();
    let table = ptx.lines().find(|line| line.contains(".global ") && line.contains("table__order")).unwrap();
    assert!(table.contains(".align 16 "), "{table}");
}

/// Times measured without line information must apply with it.
#[test]
fn line_information_leaves_the_machine_code_as_it_is() {
    let Some((toolkit, nvrtc)) = nvrtc("line_information_leaves_the_machine_code_as_it_is") else { return };
    let folder = tempfile::tempdir().unwrap();
    let unit = unit(folder.path(), SCALE, "scale<float, 8>", &[DataType::F32]);
    let code = |options: &[&str]| {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let settings = Settings { include: Vec::new(), options };
        let raw = compile_unit(nvrtc, &unit, target("sm_89"), &settings, &toolkit.include).unwrap();
        let file = object::File::parse(raw.bytes.as_slice()).unwrap();
        let section =
            file.sections().find(|section| section.name().is_ok_and(|name| name.starts_with(".text.")));
        (section.unwrap().data().unwrap().to_vec(), raw.bytes.len())
    };
    let (plain, lines) = (code(&[]), code(&["-lineinfo"]));
    assert!(plain.0 == lines.0 && !plain.0.is_empty());
    assert!(plain.1 < lines.1, "line information adds bytes");
}

#[test]
fn a_table_of_a_mebibyte_is_compiled_in_reasonable_time() {
    let Some((toolkit, nvrtc)) = nvrtc("a_table_of_a_mebibyte_is_compiled_in_reasonable_time") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let mut element = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(state)
    };
    let bytes: Vec<u8> = (0..1 << 18).flat_map(|_| element().to_le_bytes()).collect();
    std::fs::write(folder.path().join("noise.bin"), &bytes).unwrap();
    let path = folder.path().join("m.toml");
    let tables = "[tables.noise]\ntype = \"f32\"\nfile = \"noise.bin\"";
    let text = Sample { tables, ..Sample::PLAIN }.text();
    let mut resolved = resolved(path.to_str().unwrap(), &text);
    assert_eq!(cubinder_manifest::tables::read(&mut resolved), []);
    let kernel = "static_assert(manifest::noise.size() == 1 << 18, \"\");\n\
                  __global__ void k(const float* x, float* y) { y[0] = manifest::noise[threadIdx.x] * x[0]; }";
    let unit = translation_unit(&resolved.draft.units[0], Source::new("k.cu", kernel), "k.cu", None);
    let start = std::time::Instant::now();
    let raw = compile_unit(nvrtc, &unit, target("sm_90"), &Settings::default(), &toolkit.include)
        .unwrap_or_else(|errors| panic!("{}", show(&errors)));
    let time = start.elapsed();
    println!("{time:?}");
    assert!(raw.bytes.windows(bytes.len()).any(|window| window == bytes));
    assert!(time < std::time::Duration::from_secs(60), "{time:?}");
    let start = std::time::Instant::now();
    let signature =
        compile_for_signature(nvrtc, &unit, target("sm_90"), &Settings::default(), &toolkit.include);
    assert!(signature.is_ok());
    println!("for its parameters: {:?}", start.elapsed());
}

/// Macros that may differ between both compiles, besides those in NVRTC's headers.
const MACROS: [&str; 16] = [
    "__CUDACC_DEBUG__",
    "__CUDACC_RTC__",
    "__CUDACC_RDC__",
    "__CUDACC_EWP__",
    "__CUDACC_LTO__",
    "__CUDA_ARCH__",
    "__CUDA_ARCH_LIST__",
    "__CUDA_ARCH_FEAT_SM90_ALL",
    "__CUDA_ARCH_SPECIFIC__",
    "__CUDA_ARCH_FAMILY_SPECIFIC__",
    "__NVCC_DIAG_PRAGMA_SUPPORT__",
    "__OPTIMIZE__",
    "__OPTIMIZE_SIZE__",
    "__NO_INLINE__",
    "NDEBUG",
    "_DEBUG",
];

/// Returns possible macros in NVRTC's files; some strings are unreadable, hence [`MACROS`].
fn macro_names(nvrtc: &Path) -> std::collections::BTreeSet<String> {
    let mut names: std::collections::BTreeSet<String> = MACROS.map(str::to_owned).into();
    let folder = nvrtc.parent().unwrap();
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.to_string_lossy().contains("libnvrtc-builtins.so")) {
        let bytes = std::fs::read(file).unwrap();
        let words = bytes.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let words = words.filter(|word| (5..64).contains(&word.len()) && word.starts_with(b"__"));
        names.extend(words.filter_map(|word| String::from_utf8(word.to_vec()).ok()));
    }
    names.retain(|name| name != "__TIME__" && !name.starts_with("__VA_") && !name.starts_with("__has_"));
    names
}

/// Parameter names and code come from different compiles.
#[test]
fn the_compile_of_a_signature_sees_the_macros_of_the_code() {
    let Some((toolkit, nvrtc)) = nvrtc("the_compile_of_a_signature_sees_the_macros_of_the_code") else {
        return;
    };
    let mut text = "#define SHOWN_(...) #__VA_ARGS__\n#define SHOWN(...) SHOWN_(__VA_ARGS__)\n".to_owned();
    for name in macro_names(&toolkit.nvrtc) {
        text += &format!("#ifdef {name}\n__device__ char probe_{name}[] = SHOWN({name}) \"!\";\n#endif\n");
    }
    text += "__global__ void k() {}\n";
    let unit = unit(Path::new("."), &text, "k", &[]);
    let probes = |raw: Result<Raw, Vec<Diagnostic>>| -> std::collections::BTreeSet<String> {
        let raw = raw.unwrap_or_else(|errors| panic!("{}", show(&errors)));
        let text = String::from_utf8(raw.bytes).unwrap();
        text.lines()
            .filter(|line| line.starts_with(".global") && line.contains(" probe_"))
            .map(str::to_owned)
            .collect()
    };
    for options in [&[][..], &["--use_fast_math"], &["-D__CUDACC_DEBUG__=7"], &["-lineinfo", "-dopt=on"]] {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let settings = Settings { options, ..Settings::default() };
        for name in ["compute_75", "compute_90a", "compute_120f"] {
            let of_code = probes(compile_unit(nvrtc, &unit, target(name), &settings, &toolkit.include));
            let of_signature =
                probes(compile_for_signature(nvrtc, &unit, target(name), &settings, &toolkit.include));
            assert!(of_code.iter().any(|probe| probe.contains("probe___CUDA_ARCH__[")), "{of_code:?}");
            assert_eq!(of_signature, of_code, "{name} {settings:?}");
        }
    }
}

#[test]
fn compiles_run_side_by_side() {
    let Some((toolkit, nvrtc)) = nvrtc("compiles_run_side_by_side") else { return };
    let unit = unit(Path::new("."), SCALE, "scale<float, 8>", &[]);
    let compile =
        || compile_unit(nvrtc, &unit, target("sm_89"), &Settings::default(), &toolkit.include).unwrap();
    let expected = compile();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(compile)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

#[test]
fn built_in_headers_that_are_missing_are_said() {
    let Some(toolkit) = toolkit("built_in_headers_that_are_missing_are_said") else { return };
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("libnvrtc.so.13");
    std::os::unix::fs::symlink(&toolkit.nvrtc, &link).unwrap();
    let error = Nvrtc::load(&link).unwrap_err();
    assert!(matches!(error, nvrtc_sys::LoadError::MissingBuiltins(..)), "{error}");
}
