//! Variants with equal kernel texts share compiles.

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
        ["compile", "--name", "alike", "--target", "sm_80,sm_90", "--output", "out", "manifests/alike.toml"];
    project.run(&[&own[..], arguments].concat())
}

fn calls(project: &Project, arguments: &[&str]) -> (u64, u64) {
    let run = compile(project, &[&["--message-format", "json"], arguments].concat());
    let result: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["result"], "compiled", "{}{}", run.stdout, run.stderr);
    (result["nvrtc_calls"].as_u64().unwrap(), result["code_objects"].as_u64().unwrap())
}

#[test]
fn one_compile_tells_the_parameters_of_several_kernels() {
    let Some(project) = project(&[1, 2, 3], &kernel("N")) else { return };
    assert_eq!(
        calls(&project, &["--no-cache"]),
        (8, 6),
        "two for each, and one of each target for the parameters of all"
    );
    project.write("kernels/alike.cu", kernel("manifest::NUMBER"));
    assert_eq!(calls(&project, &["--no-cache"]), (12, 6));
}

#[test]
fn the_library_is_the_same_however_kernels_are_grouped() {
    let numbers: Vec<i32> = (1..=20).collect();
    let Some(project) = project(&numbers, &kernel("N")) else { return };
    assert_eq!(calls(&project, &["--jobs", "1", "--no-cache"]).0, 40 + 2);
    let expected = project.read(LIBRARY);
    for some in [&numbers[3..4], &numbers[2..9]] {
        project.write("manifests/alike.toml", variants(some));
        compile(&project, &[]).assert_ok();
    }
    project.write("manifests/alike.toml", variants(&numbers));
    assert_eq!(calls(&project, &["--jobs", "3"]).0, 26 + 4, "13 are missing, of two groups for each target");
    assert!(project.read(LIBRARY) == expected, "another library from a cache that has some of it");
    assert_eq!(calls(&project, &[]).0, 0);
    assert!(project.read(LIBRARY) == expected, "another library from a warm cache");
}

#[test]
fn a_kernel_that_does_not_compile_is_told_alone() {
    let Some(project) = project(&[1, 200, 3], &kernel("N")) else { return };
    let run = compile(&project, &[]);
    run.assert_refused("one of three does not compile");
    insta::assert_snapshot!("one_of_a_group", project.plain(&run.stderr));
    project.write("manifests/alike.toml", variants(&[1, 2, 3]));
    assert_eq!(calls(&project, &[]).0, 4, "the second alone is missing");
}

#[test]
fn names_are_there_however_they_are_taken() {
    let Some(project) = project(&[1, 2], &kernel("N")) else { return };
    project.write("kernels/alias.cuh", "using m = manifest;\n");
    project.write("kernels/join.cuh", "#define JOIN(a, b) a##b\n#define FIRST NUM\n#define OTHER NUMBER\n");
    let with = |before: &str, number: &str| {
        project.write("kernels/alike.cu", format!("{before}\n{}", kernel(number)));
        let (calls, codes) = calls(&project, &["--no-cache"]);
        assert_eq!((calls, codes), (8, 4), "{before} {number}");
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
