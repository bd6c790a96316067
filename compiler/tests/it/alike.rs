use std::fmt::Write as _;

use crate::support::{Project, Run};

const LIBRARY: &str = "out/libalike.so";

fn variants(numbers: &[i32]) -> String {
    let mut text = String::from(
        "schema = 1\n[plugin]\nname = \"alike\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\
         [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n",
    );
    for (index, number) in numbers.iter().enumerate() {
        let _ = writeln!(text, "[[variants]]\nid = {}\nconstants = {{ NUMBER = {number} }}", index + 1);
        if index + 1 < numbers.len() {
            let _ = writeln!(text, "guard = \"numel(x) < {}\"", 1000 * (index + 1));
        }
    }
    text + "[[launches]]\nsource = \"../kernels/alike.cu\"\nkernel = \"alike<NUMBER>\"\ngrid = [\"ceil_div(numel(y), 256)\"]\n\
            block = [256]\nargs = { x = \"x\", y = \"y\", count = \"numel(y)\" }\n"
}

fn kernel(number: &str) -> String {
    format!(
        "template <int N>\n__global__ void alike(const float* x, float* y, long long count) {{\n    \
         static_assert(N < 100, \"N is too large\");\n    \
         long long i = blockIdx.x * 256LL + threadIdx.x;\n    if (i < count) y[i] = x[i] + {number};\n}}\n"
    )
}

fn project(numbers: &[i32], kernel: &str) -> Option<Project> {
    let project = Project::new()?;
    project.write("manifests/alike.toml", variants(numbers));
    project.write("kernels/alike.cu", kernel);
    Some(project)
}

fn compile(project: &Project, arguments: &[&str]) -> Run {
    let own =
        ["compile", "--name", "alike", "--target", "sm_80,sm_90", "--out-dir", "out", "manifests/alike.toml"];
    project.run(&[&own[..], arguments].concat())
}

fn calls(project: &Project, arguments: &[&str]) -> (u64, u64) {
    let run = compile(project, &[&["--message-format", "json"], arguments].concat());
    let result: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["result"], "compiled", "{}{}", run.stdout, run.stderr);
    (result["nvrtc_calls"].as_u64().unwrap(), result["code_objects"].as_u64().unwrap())
}

#[test]
fn kernels_of_one_text_are_one_program() {
    let Some(project) = project(&[1, 2, 3], &kernel("N")) else { return };
    let expected = "one call for each target, and one for the parameters";
    assert_eq!(calls(&project, &["--no-cache"]), (3, 2), "{expected}");
    project.write("kernels/alike.cu", kernel("manifest::NUMBER"));
    assert_eq!(calls(&project, &["--no-cache"]), (9, 6), "each variant has its own header");
}

#[test]
fn programs_are_the_same_for_any_number_of_jobs_and_any_cache() {
    let numbers: Vec<i32> = (-59..=40).collect();
    let Some(project) = project(&numbers, &kernel("N")) else { return };
    assert_eq!(calls(&project, &["--jobs", "1", "--no-cache"]), (5, 4), "two programs for each target");
    let expected = project.read(LIBRARY);
    project.write("manifests/alike.toml", variants(&numbers[..99]));
    assert_eq!(calls(&project, &["--jobs", "3"]).1, 4);
    project.write("manifests/alike.toml", variants(&numbers));
    assert_eq!(calls(&project, &["--jobs", "3"]).0, 3, "one program for each target, and its parameters");
    assert!(project.read(LIBRARY) == expected, "another library from a cache that has some of it");
    assert_eq!(calls(&project, &[]).0, 0);
    assert!(project.read(LIBRARY) == expected, "another library from a warm cache");
}

#[test]
fn variants_of_other_nodes_are_other_programs() {
    let Some(project) = Project::new() else { return };
    project.write(
        "manifests/alike.toml",
        "schema = 1\n[plugin]\nname = \"alike\"\n[types]\nT = [\"f32\", \"i32\"]\n[[inputs]]\nname = \"x\"\ntype = \"T\"\n\
         [[outputs]]\nname = \"y\"\ntype = \"T\"\nshape = \"x.shape\"\n\
         [[variants]]\nid = 1\nconstants = { N = 1 }\nguard = \"numel(x) < 9\"\n[[variants]]\nid = 10\nconstants = { N = 2 }\n\
         [[launches]]\nsource = \"../kernels/alike.cu\"\nkernel = \"alike<T, N>\"\ngrid = [1]\nblock = [32]\nargs = { x = \"x\", y = \"y\" }\n",
    );
    let kernel = "template <typename T, int N>\n__global__ void alike(const T* x, T* y) { y[N] = x[N]; }\n";
    project.write("kernels/alike.cu", kernel);
    assert_eq!(calls(&project, &["--no-cache"]), (5, 4), "a program for each type and target");
}

/// NVRTC lists dynamic shared memory for all kernels if one has it.
#[test]
fn the_kernel_with_dynamic_shared_memory_is_known() {
    let Some(project) = project(&[1, 2, 3], &kernel("N")) else { return };
    project.write(
        "kernels/alike.cu",
        kernel("N").replace("if (i", "if (N == 2) { extern __shared__ int memory[]; memory[i] = N; __syncthreads(); y[0] = memory[1]; }\n    if (i"),
    );
    let run = compile(&project, &[]);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!("dynamic_shared_memory", project.plain(&run.stderr));
}

#[test]
fn parameters_of_one_architecture_do_not_serve_another() {
    let Some(project) = project(&[1], &kernel("N")) else { return };
    let own = kernel("N").replace("long long count", "COUNT count");
    let compile = |condition: &str| {
        let other = format!("{condition}\n#define COUNT double\n#else\n#define COUNT long long\n#endif\n");
        project.write("kernels/alike.cu", format!("{other}{own}"));
        let run = compile(&project, &[]);
        run.assert_refused(condition);
        project.plain(&run.stderr)
    };
    let named = compile("#if __CUDA_ARCH__ >= 900");
    insta::assert_snapshot!("parameters_of_architectures", named);
    for hidden in [
        "#if __CUDA_AR\\\nCH__ >= 900",
        "#include <cooperative_groups.h>\n#ifdef _CG_HAS_CLUSTER_GROUP",
        "#define JOIN(a, b) a##b\n#if JOIN(__CUDA_AR, CH__) >= 900",
    ] {
        assert!(compile(hidden).contains("differ between `sm_80` and `sm_90`"), "{hidden}");
    }
    project.write("include/own.cuh", "#include <cooperative_groups.h>\n");
    let through = compile("#include \"../include/own.cuh\"\n#ifdef _CG_HAS_CLUSTER_GROUP");
    assert!(through.contains("differ between `sm_80` and `sm_90`"), "{through}");
}

#[test]
fn static_shared_memory_needs_no_other_compile() {
    let Some(project) = project(&[1, 2, 3], &kernel("N")) else { return };
    let own = "__shared__ int memory[32]; memory[i & 31] = N; __syncthreads(); y[0] = memory[1];\n    if (i";
    project.write("kernels/alike.cu", kernel("N").replace("if (i", own));
    assert_eq!(calls(&project, &["--no-cache"]), (3, 2));
}

#[test]
fn warnings_of_an_instance_name_its_variant() {
    let Some(project) = project(&[1, 2, 3], &kernel("N")) else { return };
    project.write("kernels/alike.cu", kernel("N / (N - 2)"));
    let run = compile(&project, &[]);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!("warning_of_an_instance", project.plain(&run.stderr));
}

#[test]
fn kernels_that_are_no_templates_are_one_program() {
    let Some(project) = project(&[1, 2], &kernel("N")) else { return };
    let manifest = variants(&[1, 2]).replace("alike<NUMBER>", "alike");
    let second = manifest[manifest.find("[[launches]]").unwrap()..].replace("\"alike\"", "\"second\"");
    project.write("manifests/alike.toml", format!("{manifest}{second}"));
    let alike = kernel("1")
        .replace("template <int N>\n", "")
        .replace("static_assert(N < 100, \"N is too large\");\n", "");
    let padding = format!("// {}\n", "x".repeat(50_000));
    project.write("kernels/alike.cu", format!("{padding}{alike}{}", alike.replace("alike", "second")));
    assert_eq!(calls(&project, &["--no-cache"]), (3, 2), "also in a long text");
}

#[test]
fn a_kernel_that_does_not_compile_is_told_alone() {
    let Some(project) = project(&[1, 200, 3], &kernel("N")) else { return };
    let run = compile(&project, &[]);
    run.assert_refused("one of three does not compile");
    insta::assert_snapshot!("one_of_a_group", project.plain(&run.stderr));
    project.write("manifests/alike.toml", variants(&[1, 2, 3]));
    assert_eq!(calls(&project, &[]), (3, 2), "the parameters of the second alone are missing");
}

#[test]
fn names_are_there_however_they_are_taken() {
    let Some(project) = project(&[1, 2], &kernel("N")) else { return };
    project.write("kernels/alias.cuh", "using m = manifest;\n");
    project.write("kernels/join.cuh", "#define JOIN(a, b) a##b\n#define FIRST NUM\n#define OTHER NUMBER\n");
    let with = |before: &str, number: &str| {
        project.write("kernels/alike.cu", format!("{before}\n{}", kernel(number)));
        let (calls, codes) = calls(&project, &["--no-cache"]);
        let pastes = before.contains("join.cuh") || before.contains("##");
        assert_eq!((calls, codes), (if pastes { 8 } else { 6 }, 4), "{before} {number}");
    };
    with("#include \"alias.cuh\"", "m::NUMBER");
    with("#include \"join.cuh\"", "manifest::JOIN(NUM, BER)");
    with("#include \"join.cuh\"", "manifest::OTHER");
    with("#define OF(name) manifest::NUM##name", "OF(BER)");
    with("struct own : manifest { static constexpr int value = NUMBER; };", "own::value");
    with("", "(manifest::\\\nNUMBER)");
    with("", "manifest::NUM\\\nBER");
    with("", "cubinder::manifest__members<>::NUMBER");
    with("// the manifest's number\n", "(0 /* :: */ + manifest /* :: */ :: /* the */ NUMBER)");
}
