//! The mistakes that people make with a plugin, each made in the circular padding example: what `compile` says to it, and what it
//! takes.

mod support;

use std::fs;
use std::path::Path;

use support::Project;

/// One mistake: the file, what stands there, what is written instead.
type Mistake = (&'static str, &'static str, &'static str, &'static str);

const MANIFEST: &str = "manifests/circ_pad.toml";
const KERNEL: &str = "kernels/circ_pad.cu";

/// What has to be refused, by the name of its snapshot.
const REFUSED: &[Mistake] = &[
    (
        "arguments_swapped",
        MANIFEST,
        "x = \"x\"\ny = \"y\"\ncount = \"numel(y)\"",
        "x = \"numel(y)\"\ny = \"y\"\ncount = \"x\"",
    ),
    ("tensors_swapped", MANIFEST, "x = \"x\"\ny = \"y\"", "x = \"y\"\ny = \"x\""),
    ("argument_missing", MANIFEST, "count = \"numel(y)\"\n", ""),
    ("argument_too_many", MANIFEST, "count = \"numel(y)\"\n", "count = \"numel(y)\"\ntotal = \"numel(x)\"\n"),
    ("argument_misspelt", MANIFEST, "padded = ", "paded = "),
    ("argument_of_another_type", KERNEL, "unsigned count", "const float* count"),
    ("pointer_of_another_type", KERNEL, "const T* __restrict__ x", "const double* __restrict__ x"),
    (
        "array_of_another_length",
        MANIFEST,
        "for d in range(8)]\"\nout_extent",
        "for d in range(7)]\"\nout_extent",
    ),
    ("kernel_misspelt", MANIFEST, "kernel = \"circ_pad<T>\"", "kernel = \"circ_pda<T>\""),
    ("template_argument_missing", MANIFEST, "kernel = \"circ_pad<T>\"", "kernel = \"circ_pad\""),
    ("grid_zero", MANIFEST, "grid = [\"ceil_div(numel(y), BLOCK)\"]", "grid = [0]"),
    ("grid_negative", MANIFEST, "grid = [\"ceil_div(numel(y), BLOCK)\"]", "grid = [-1]"),
    ("grid_fraction", MANIFEST, "grid = [\"ceil_div(numel(y), BLOCK)\"]", "grid = [1.5]"),
    ("grid_word", MANIFEST, "grid = [\"ceil_div(numel(y), BLOCK)\"]", "grid = [\"abc\"]"),
    (
        "grid_no_array",
        MANIFEST,
        "grid = [\"ceil_div(numel(y), BLOCK)\"]",
        "grid = \"ceil_div(numel(y), BLOCK)\"",
    ),
    ("grid_y_too_large", MANIFEST, "grid = [\"ceil_div(numel(y), BLOCK)\"]", "grid = [1, 2147483648]"),
    ("block_too_large", MANIFEST, "block = [\"BLOCK\"]", "block = [4096]"),
    (
        "shared_memory_too_large",
        MANIFEST,
        "block = [\"BLOCK\"]",
        "block = [\"BLOCK\"]\nshared_bytes = \"1024 * 1024\"",
    ),
    ("division_by_zero", MANIFEST, "len(pads) // 2\"\n", "len(pads) // 0\"\n"),
    ("division_of_constants_by_zero", MANIFEST, "len(pads) // 2\"\n", "BLOCK // (BLOCK - 256)\"\n"),
    ("index_out_of_range", MANIFEST, "count = \"numel(y)\"", "count = \"y.shape[8]\""),
    ("element_type_misspelt", MANIFEST, "T = [\"f32\", \"f16\"]", "T = [\"f32\", \"fp16\"]"),
    (
        "variant_id_twice",
        MANIFEST,
        "[[launches]]",
        "[[variants]]\nid = 1\n[[variants]]\nid = 1\n\n[[launches]]",
    ),
    ("variant_id_zero", MANIFEST, "[[launches]]", "[[variants]]\nid = 0\n\n[[launches]]"),
    ("variant_id_negative", MANIFEST, "[[launches]]", "[[variants]]\nid = -4\n\n[[launches]]"),
    ("tensor_unknown", MANIFEST, "count = \"numel(y)\"", "count = \"numel(z)\""),
    ("chained_comparison", MANIFEST, "len(pads) <= 2 * x.rank", "0 <= len(pads) <= 2 * x.rank"),
];

/// What has to be taken.
const TAKEN: &[Mistake] = &[
    ("a number before a dimension", MANIFEST, "count = \"numel(y)\"", "count = \"2 * x.shape[0]\""),
    (
        "vector pointers",
        KERNEL,
        "const T* __restrict__ x, T* __restrict__ y, unsigned count",
        "const float4* __restrict__ x4, T* __restrict__ y, unsigned count",
    ),
    (
        "void pointers",
        KERNEL,
        "const T* __restrict__ x, T* __restrict__ y, unsigned count",
        "const void* __restrict__ v, T* __restrict__ y, unsigned count",
    ),
    ("size_t", KERNEL, "unsigned count", "size_t count"),
];

fn project() -> Option<Project> {
    let project = Project::new()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shipped = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    project.write(MANIFEST, shipped("manifests/circ_pad_plugin.toml"));
    project.write(KERNEL, shipped("kernels/circ_pad.cu"));
    Some(project)
}

const COMPILE: [&str; 6] = ["compile", MANIFEST, "--target", "sm_89,compute_80", "--output", "out"];

#[test]
fn mistakes_are_told_by_cause_and_place() {
    let Some(project) = project() else { return };
    for (name, file, from, to) in REFUSED {
        let sound = project.read(file);
        project.edit(file, from, to);
        let run = project.run(&COMPILE);
        run.assert_refused(name);
        insta::assert_snapshot!(*name, project.plain(&run.stderr));
        project.write(file, sound);
    }
}

#[test]
fn what_is_right_is_taken() {
    let Some(project) = project() else { return };
    for (name, file, from, to) in TAKEN {
        let sound = project.read(file);
        let sound_manifest = project.read(MANIFEST);
        project.edit(file, from, to);
        if *name == "vector pointers" {
            // Four floats at once make sense for floats only.
            project.edit(MANIFEST, "T = [\"f32\", \"f16\"]", "T = [\"f32\"]");
            project.edit(MANIFEST, "x = \"x\"\ny = \"y\"", "x4 = \"x\"\ny = \"y\"");
            project.edit(KERNEL, "{\n", "{\n    const float* x = reinterpret_cast<const float*>(x4);\n");
        }
        if *name == "void pointers" {
            project.edit(MANIFEST, "x = \"x\"\ny = \"y\"", "v = \"x\"\ny = \"y\"");
            project.edit(KERNEL, "{\n", "{\n    const T* x = static_cast<const T*>(v);\n");
        }
        let run = project.run(&COMPILE);
        assert_eq!(run.code, Some(0), "{name}: {}", run.stderr);
        assert!(!run.stderr.contains("error"), "{name}: {}", run.stderr);
        project.write(file, sound);
        project.write(MANIFEST, sound_manifest);
    }
}
