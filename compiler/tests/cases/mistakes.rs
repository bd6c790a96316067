use std::fs;
use std::path::Path;

use crate::support::{Project, Run};
use libtest_mimic::Trial;
use serde_json::Value;

const MANIFEST: &str = "manifests/circ_pad.toml";
const KERNEL: &str = "kernels/circ_pad.cu";

type Edits = &'static [(&'static str, &'static str)];

#[derive(Clone, Copy)]
struct Mistake {
    name: &'static str,
    file: &'static str,
    edits: Edits,
    code: &'static str,
    shown: &'static str,
    is_reported_by_check: bool,
}

const fn manifest(name: &'static str, edits: Edits, code: &'static str, shown: &'static str) -> Mistake {
    Mistake { name, file: MANIFEST, edits, code, shown, is_reported_by_check: true }
}

const fn kernel(name: &'static str, edits: Edits, code: &'static str, shown: &'static str) -> Mistake {
    Mistake { file: KERNEL, ..manifest(name, edits, code, shown) }
}

const fn by_a_compile(mistake: Mistake) -> Mistake {
    Mistake { is_reported_by_check: false, ..mistake }
}

const TENSORS: &str = "x = \"x\"\ny = \"y\"";
const COUNT: &str = "count = \"numel(y)\"";
const GRID: &str = "grid = [\"ceil_div(numel(y), BLOCK)\"]";
const BLOCK: &str = "block = [\"BLOCK\"]";
const PADDED: &str = "\"len(pads) // 2\"";
const NAME: &str = "kernel = \"circ_pad<T>\"";
const OUT_EXTENT: &str = "1) for d in range(8)]\"\nshift";
const RANGE_OF_7: &str = "\"[get(y.shape, y.rank - 1 - d, 1) for d in range(7)]\"";

const REJECTED: &[Mistake] = &[
    manifest("tensors_swapped", &[(TENSORS, "x = \"y\"\ny = \"x\"")], "C0405", "\"y\""),
    manifest(
        "arguments_swapped",
        &[("y = \"y\"\ncount = \"numel(y)\"", "y = \"numel(y)\"\ncount = \"y\"")],
        "C0405",
        "\"numel(y)\"",
    ),
    manifest(
        "array_and_number_swapped",
        &[(
            "padded = \"len(pads) // 2\"\n# The kernel counts dimensions from the last one.\nin_extent = \"[get(x.shape, x.rank - 1 - d, 1) \
             for d in range(8)]\"",
            "in_extent = \"len(pads) // 2\"\npadded = \"[get(x.shape, x.rank - 1 - d, 1) for d in range(8)]\"",
        )],
        "C0405",
        "\"len(pads) // 2\"",
    ),
    manifest("argument_missing", &[("count = \"numel(y)\"\n", "")], "C0404", "args"),
    manifest("argument_too_many", &[(COUNT, "count = \"numel(y)\"\ntotal = \"numel(x)\"")], "C0403", "total"),
    manifest("argument_misspelt", &[("padded = ", "paded = ")], "C0403", "paded"),
    kernel("parameter_too_many", &[("int padded,", "int padded, float value,")], "C0404", "args"),
    manifest("number_for_a_pointer", &[("x = \"x\"", "x = \"numel(x)\"")], "C0405", "\"numel(x)\""),
    manifest("tensor_for_a_number", &[(COUNT, "count = \"x\"")], "C0405", "\"x\""),
    kernel(
        "pointer_to_another_type",
        &[("const T* __restrict__ x", "const double* __restrict__ x")],
        "C0405",
        "\"x\"",
    ),
    manifest(
        "a_float_for_an_integer",
        &[(COUNT, "count = \"float(numel(y))\"")],
        "C0405",
        "\"float(numel(y))\"",
    ),
    manifest(
        "array_of_another_length",
        &[(OUT_EXTENT, "1) for d in range(7)]\"\nshift")],
        "C0405",
        RANGE_OF_7,
    ),
    manifest("kernel_misspelt", &[(NAME, "kernel = \"circ_pda<T>\"")], "C0402", "\"circ_pda<T>\""),
    manifest("template_argument_missing", &[(NAME, "kernel = \"circ_pad\"")], "C0402", "\"circ_pad\""),
    manifest("grid_zero", &[(GRID, "grid = [0]")], "C0301", "0"),
    manifest("grid_negative", &[(GRID, "grid = [-1]")], "C0301", "-1"),
    manifest("grid_always_negative", &[(GRID, "grid = [\"-1 - numel(y)\"]")], "C0301", "\"-1 - numel(y)\""),
    manifest("grid_fraction", &[(GRID, "grid = [1.5]")], "C0103", "1.5"),
    manifest("grid_of_a_division", &[(GRID, "grid = [\"numel(y) / BLOCK\"]")], "C0103", "numel(y) / BLOCK"),
    manifest("grid_word", &[(GRID, "grid = [\"abc\"]")], "C0101", "abc"),
    manifest(
        "grid_no_array",
        &[(GRID, "grid = \"ceil_div(numel(y), BLOCK)\"")],
        "C0005",
        "\"ceil_div(numel(y), BLOCK)\"",
    ),
    manifest("grid_y_too_large", &[(GRID, "grid = [1, 2147483648]")], "C0301", "2147483648"),
    manifest("block_too_large", &[(BLOCK, "block = [4096]")], "C0302", "4096"),
    manifest("block_of_a_constant_too_large", &[("BLOCK = 256", "BLOCK = 4096")], "C0302", "\"BLOCK\""),
    manifest(
        "shared_memory_too_large",
        &[(BLOCK, "block = [\"BLOCK\"]\nshared_bytes = \"1024 * 1024\"")],
        "C0303",
        "\"1024 * 1024\"",
    ),
    by_a_compile(kernel(
        "static_shared_memory_too_large",
        &[(
            "    unsigned from = 0;",
            "    __shared__ unsigned tile[262144];\n    unsigned from = index ? tile[index] : 0;",
        )],
        "C0503",
        "\"circ_pad<T>\"",
    )),
    manifest("division_by_zero", &[(PADDED, "\"len(pads) // 0\"")], "C0104", "len(pads) // 0"),
    manifest(
        "division_of_constants_by_zero",
        &[(PADDED, "\"BLOCK // (BLOCK - 256)\"")],
        "C0104",
        "BLOCK // (BLOCK - 256)",
    ),
    manifest("index_beyond_every_rank", &[(COUNT, "count = \"y.shape[8]\"")], "C0104", "y.shape[8]"),
    manifest(
        "index_beyond_the_length_of_an_attribute",
        &[("type = \"i32[]\"", "type = \"i32[]\"\nlength = 4"), (PADDED, "\"pads[4]\"")],
        "C0104",
        "\"pads[4]\"",
    ),
    manifest("tensor_unknown", &[(COUNT, "count = \"numel(z)\"")], "C0101", "z"),
    manifest(
        "chained_comparison",
        &[("len(pads) <= 2 * x.rank", "0 <= len(pads) <= 2 * x.rank")],
        "C0102",
        "<=",
    ),
    manifest(
        "element_type_misspelt",
        &[("T = [\"f32\", \"f16\"]", "T = [\"f32\", \"fp16\"]")],
        "C0008",
        "\"fp16\"",
    ),
    manifest(
        "variant_id_twice",
        &[(
            "[[launches]]",
            "[[variants]]\nid = 1\nguard = \"numel(y) > 1\"\n[[variants]]\nid = 1\n\n[[launches]]",
        )],
        "C0009",
        "1",
    ),
    manifest("variant_id_zero", &[("[[launches]]", "[[variants]]\nid = 0\n\n[[launches]]")], "C0011", "0"),
    manifest(
        "variant_id_negative",
        &[("[[launches]]", "[[variants]]\nid = -4\n\n[[launches]]")],
        "C0011",
        "-4",
    ),
];

const WARNED: &[Mistake] = &[
    manifest(
        "division_by_an_attribute",
        &[(PADDED, "\"len(pads) // len(pads)\"")],
        "C0108",
        "\"len(pads) // len(pads)\"",
    ),
    manifest("index_of_an_attribute", &[(PADDED, "\"pads[2]\"")], "C0108", "\"pads[2]\""),
    manifest("grid_of_an_attribute", &[(GRID, "grid = [\"1 - len(pads)\"]")], "C0301", "\"1 - len(pads)\""),
    manifest("block_of_an_attribute", &[(BLOCK, "block = [\"len(pads)\"]")], "C0302", "\"len(pads)\""),
];

type EditOf = (&'static str, &'static str, &'static str);

const ACCEPTED: &[(&str, &[EditOf])] = &[
    ("a number before a dimension", &[(MANIFEST, COUNT, "count = \"2 * x.shape[0]\"")]),
    (
        "vector pointers",
        &[
            // `float4` fits only `float`.
            (MANIFEST, "T = [\"f32\", \"f16\"]", "T = [\"f32\"]"),
            (MANIFEST, TENSORS, "x4 = \"x\"\ny = \"y\""),
            (KERNEL, "const T* __restrict__ x", "const float4* __restrict__ x4"),
            (KERNEL, "{\n", "{\n    const float* x = reinterpret_cast<const float*>(x4);\n"),
        ],
    ),
    (
        "void pointers",
        &[
            (MANIFEST, TENSORS, "from_any = \"x\"\ny = \"y\""),
            (KERNEL, "const T* __restrict__ x", "const void* __restrict__ from_any"),
            (KERNEL, "{\n", "{\n    const T* x = static_cast<const T*>(from_any);\n"),
        ],
    ),
    ("size_t", &[(KERNEL, "unsigned count", "size_t count")]),
    (
        "an array of size_t",
        &[(KERNEL, "cubinder::array<unsigned, 8> in_extent", "cubinder::array<size_t, 8> in_extent")],
    ),
];

fn set_up(project: &Project) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shipped = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let text = shipped("tests/data/run/circ_pad_plugin.toml");
    project.write(MANIFEST, text.replace("\"circ_pad.cu\"", "\"../kernels/circ_pad.cu\""));
    project.write(KERNEL, shipped("tests/data/run/circ_pad.cu"));
}

const COMPILE: [&str; 6] = ["compile", MANIFEST, "--target", "sm_89,compute_80", "--out-dir", "out"];

fn messages(run: &Run) -> Vec<Value> {
    let messages = run.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message.get("severity").is_some()).collect()
}

fn code_and_place(project: &Project, message: &Value) -> (String, String) {
    let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let place = &message["primary"];
    let Some(path) = place["path"].as_str() else { return (text("code"), String::new()) };
    let file = project.read(path);
    let byte = |key: &str| usize::try_from(place[key].as_u64().unwrap()).unwrap();
    (text("code"), String::from_utf8(file[byte("byte_start")..byte("byte_end")].to_vec()).unwrap())
}

const JSON: [&str; 2] = ["--message-format", "json"];

pub(crate) fn trials() -> Vec<Trial> {
    let rejected = REJECTED.iter().map(|mistake| reported(mistake, 1));
    let warned = WARNED.iter().map(|mistake| reported(mistake, 0));
    let accepted = ACCEPTED.iter().map(|(name, edits)| {
        crate::with_project(format!("accepted/{}", name.replace(' ', "_")), |project| {
            set_up(project);
            edits.iter().for_each(|(file, from, to)| project.edit(file, from, to));
            for command in [&COMPILE[..], &["check", MANIFEST]] {
                let run = project.run(command);
                assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{command:?}");
            }
        })
    });
    rejected.chain(warned).chain(accepted).collect()
}

fn reported(mistake: &'static Mistake, exit_code: i32) -> Trial {
    crate::with_project(format!("mistakes/{}", mistake.name), move |project| {
        set_up(project);
        mistake.edits.iter().for_each(|(from, to)| project.edit(mistake.file, from, to));
        is_reported(project, mistake, exit_code);
        insta::assert_snapshot!(mistake.name, project.plain(&project.run(&COMPILE).stderr));
    })
}

fn is_reported(project: &Project, mistake: &Mistake, exit_code: i32) {
    let wanted = (mistake.code.to_owned(), mistake.shown.to_owned());
    let run = |command: &[&str]| {
        let run = project.run(&[command, &JSON].concat());
        let reported: Vec<_> =
            messages(&run).iter().map(|message| code_and_place(project, message)).collect();
        (run.code, reported)
    };
    let (code, compiled) = run(&COMPILE);
    assert_eq!(code, Some(exit_code));
    assert!(compiled.contains(&wanted) && compiled.len() <= 2, "compile {compiled:?}");
    let (_, checked) = run(&["check", MANIFEST]);
    assert_eq!(checked.contains(&wanted), mistake.is_reported_by_check, "check {checked:?}");
}
