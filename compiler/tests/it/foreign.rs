use std::path::{Path, PathBuf};

use cubinder_expr::Node;
use cubinder_model::container::{self, Container};
use cubinder_model::{Arg, ArgValue, Bundle, Variant};
use cubinder_skip::skip;

use crate::support::Project;

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(file)
}

fn project() -> Option<Project> {
    let project = Project::without_tools();
    if std::env::var_os("CUBINDER_RUNTIME_LIBRARY").is_none() {
        skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
        return None;
    }
    for file in ["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx"] {
        let to = project.path("code").join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(data("code").join(file), to).unwrap();
    }
    let text = std::fs::read_to_string(data("ok/code.toml")).unwrap();
    project.write("manifests/code.toml", &text);
    // Its targets conflict with the code's.
    std::fs::remove_file(project.path("cubinder.toml")).unwrap();
    Some(project)
}

fn bundle(project: &Project, library: &str) -> Bundle {
    let path = project.path(library);
    let attached = cubinder_library::read(&path).unwrap().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let range = usize::try_from(attached.range.start).unwrap()..usize::try_from(attached.range.end).unwrap();
    match container::read(&bytes[range]).unwrap().container {
        Container::Bundle(bundle) => bundle,
        other => panic!("{other:?}"),
    }
}

fn targets(variant: &Variant) -> Vec<String> {
    let launch = variant.launches().next().unwrap();
    launch.code.iter().map(|reference| reference.target.to_string()).collect()
}

#[test]
fn code_is_embedded_as_it_is_and_needs_no_nvrtc() {
    let Some(project) = project() else { return };
    let arguments = ["compile", "manifests/code.toml", "--name", "code", "--nvrtc", "nowhere"];
    let run = project.run(&[arguments.as_slice(), &["--depfile", "code.d"]].concat());
    run.assert_ok();
    let depfile = String::from_utf8(project.read("code.d")).unwrap();
    for file in ["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx", "code.toml"] {
        assert!(depfile.contains(file), "{file}: {depfile}");
    }
    let bundle = bundle(&project, "libcode.so");
    assert!(bundle.producer.contains("; scale by NVRTC 13.0"), "{}", bundle.producer);
    let plugin = &bundle.plugins[0];
    assert_eq!(plugin.variants.len(), 4);
    for variant in &plugin.variants {
        assert_eq!(targets(variant), ["sm_80", "sm_90", "compute_80"], "{}", variant.label);
        let guard = variant.guard.as_ref().map_or("", |guard| guard.text.as_str());
        let alignment = if variant.label.contains("T=f32") { 16 } else { 8 };
        let both = format!(
            "(numel(x) % 4 == 0 and numel(x) > 1000) and \
             (not (numel(y) > 0) or aligned(x, {alignment})) and (not (numel(y) > 0) or aligned(y, {alignment})) and \
             (not (numel(y) > 0) or numel(y) % 4 == 0)"
        );
        assert_eq!(guard, if variant.id == 1 { both.as_str() } else { "" }, "{}", variant.label);
        let launch = variant.launches().next().unwrap();
        let names: Vec<&str> = launch.args.iter().map(|arg| arg.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "factor", "count"]);
    }
    let of_file = |file: &str| std::fs::read(data("code").join(file)).unwrap();
    let codes: Vec<Vec<u8>> = bundle.code.iter().map(|object| object.raw().unwrap().into_owned()).collect();
    assert_eq!(codes.len(), 3);
    for (code, file) in codes.iter().zip(["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx"]) {
        assert!(*code == of_file(file), "{file} is embedded as it is");
    }
    let inspected = project.run(&["inspect", "libcode.so", "--verbose"]);
    inspected.assert_ok();
    assert!(
        inspected.stdout.contains("scale_f32_4") && inspected.stdout.contains("NVRTC 13.0"),
        "{}",
        inspected.stdout
    );
    let evaluated = project.run(&["eval", "manifests/code.toml", "--shape", "x=64x32", "--arch", "sm_89"]);
    evaluated.assert_ok();
    assert!(evaluated.stdout.contains("launch: scale_f32_4"), "{}", evaluated.stdout);
}

#[test]
fn only_what_is_asked_for_is_embedded() {
    let Some(project) = project() else { return };
    let compile = |targets: &str| {
        let arguments = ["compile", "manifests/code.toml", "--name", "code", "--target", targets];
        project.run(&arguments)
    };
    for (asked, embedded) in [
        ("sm_86", vec!["sm_80"]),
        ("sm_90,sm_80", vec!["sm_90", "sm_80"]),
        ("sm_120", vec!["compute_80"]),
        ("compute_90,sm_89", vec!["compute_80", "sm_80"]),
    ] {
        let run = compile(asked);
        run.assert_ok();
        assert!(run.stdout.contains("(all precompiled, no NVRTC calls)"), "{}", run.stdout);
        let note = "note: `scale` has no machine code for sm_120: the driver compiles its PTX for compute_80 when an engine is loaded\n";
        assert_eq!(run.stdout.contains(note), asked == "sm_120", "{}", run.stdout);
        let bundle = bundle(&project, "libcode.so");
        assert_eq!(targets(&bundle.plugins[0].variants[0]), embedded, "{asked}");
    }
    let refused = compile("sm_75,compute_75");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("error[C0904]"), "{}", refused.stderr);
}

#[test]
fn code_that_is_there_and_sources_are_launched_side_by_side() {
    let Some(_) = project() else { return };
    let Some(project) = Project::new() else { return };
    std::fs::create_dir_all(project.path("code")).unwrap();
    std::fs::copy(data("code/scale.ptx"), project.path("code/scale.ptx")).unwrap();
    let text = "schema = 1\n\n[plugin]\nname = \"both\"\n\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\n\
        [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\nlimits = { numel = \"..=2147483647\" }\n\n\
        [scratch.half]\nbytes = \"numel(x) * 4\"\n\n\
        [[code]]\nname = \"scale\"\nkernel = \"scale_f32_1\"\nptx = [\"../code/scale.ptx\"]\n\
        parameters = [\"x: const f32*\", \"y: f32*\", \"factor: f32\", \"count: i32\"]\n\n\
        [[launches]]\nsource = \"../kernels/scale.cu\"\nkernel = \"scale<float>\"\ngrid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]\n\
        args = { x = \"x\", y = \"half\", count = \"numel(y)\", factor = 0.5 }\n\n\
        [[launches]]\ncode = \"scale\"\ngrid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]\n\
        args = { x = \"half\", y = \"y\", count = \"numel(y)\", factor = 4.0 }\n";
    project.write("manifests/both.toml", text);
    std::fs::remove_file(project.path("cubinder.toml")).unwrap();
    project.run(&["check", "manifests/both.toml"]).assert_ok();
    project.run(&["compile", "manifests/both.toml", "--name", "both"]).assert_ok();
    let compiled = bundle(&project, "libboth.so");
    let launches: Vec<_> = compiled.plugins[0].variants[0].launches().collect();
    let kernels: Vec<&str> = launches.iter().map(|launch| launch.kernel.as_str()).collect();
    assert_eq!(kernels, ["scale<float>", "scale_f32_1"]);
    for launch in &launches {
        assert_eq!(launch.code.len(), 1);
        assert_eq!(launch.code[0].target.to_string(), "compute_80");
    }
    let read = |arg: &Arg| matches!(&arg.value, ArgValue::Scratch(0));
    assert!(read(&launches[1].args[0]));
    let is_four =
        |arg: &Arg| matches!(&arg.value, ArgValue::Scalar { expr, .. } if expr.nodes == [Node::Float(4.0)]);
    assert!(is_four(&launches[1].args[2]), "{:?}", launches[1].args);
}

fn filled(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (word, value)| {
        assert!(text.contains(word), "`{word}` is missing in {text}");
        text.replace(word, value)
    })
}

fn said(project: &Project, manifest: &str) -> Vec<String> {
    let run = project.run(&["check", "--message-format", "json", manifest]);
    let lines = run.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter_map(|line| Some(line.get("code")?.as_str()?.to_owned())).collect()
}

#[test]
fn what_triton_compiled_becomes_a_manifest() {
    let project = Project::without_tools();
    let folder = data("code/triton");
    let cache = project.path("cache");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap().path();
        if !entry.is_dir() {
            continue;
        }
        let to = cache.join(entry.file_name().unwrap());
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(&entry).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
    let run =
        project.run(&["import", "triton", "cache", "--constant", "BLOCK=1024", "-o", "manifests/axpy.toml"]);
    run.assert_ok();
    let written = String::from_utf8(project.read("manifests/axpy.toml")).unwrap();
    insta::assert_snapshot!("imported_from_triton", written);
    let again = project.run(&["import", "triton", "cache", "-o", "manifests/axpy.toml"]);
    again.assert_refused("what is there is not overwritten");
    let codes = said(&project, "manifests/axpy.toml");
    assert_eq!(codes, ["C0101"], "tensors, grid, n, alpha in one");
    let words = [
        ("name = \"x\"\n", "name = \"x_ptr\"\n"),
        (
            "[[outputs]]\nname = \"y\"",
            "[[inputs]]\nname = \"y_ptr\"\ntype = \"T\"\n\n[[outputs]]\nname = \"out_ptr\"",
        ),
        ("TYPE_OF_ELEMENTS", "T"),
        ("SHAPE_OF_y", "x_ptr.shape"),
        ("TENSOR_", ""),
        ("\"x_ptr: T*", "\"x_ptr: const T*"),
        ("\"y_ptr: T*", "\"y_ptr: const T*"),
        ("NUMBER_OF_PROGRAMS", "ceil_div(numel(out_ptr), BLOCK)"),
        ("VALUE_OF_n", "numel(out_ptr)"),
        ("\"VALUE_OF_alpha\"", "2.0"),
    ];
    project.write("manifests/axpy.toml", filled(&written, &words));
    let run = project.run(&["check", "manifests/axpy.toml"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    // Only the sidecar describes pointees.
    let word = "pointee types of `x_ptr`, `y_ptr`, `out_ptr` in `axpy` are assumed from the manifest";
    assert!(!run.stdout.contains("assumed from the manifest"), "{}", run.stdout);
    for entry in std::fs::read_dir(&cache).unwrap() {
        std::fs::remove_file(entry.unwrap().path().join("axpy.ttir")).unwrap();
    }
    let run = project.run(&["check", "manifests/axpy.toml"]);
    assert!(run.code == Some(0) && run.stdout.contains(word), "{}{}", run.stdout, run.stderr);
    for (shape, variant) in [("16x3", "1  selected: `aligned(x_ptr, 16)"), ("5x3", "2  selected")] {
        let shapes = [format!("x_ptr={shape}"), format!("y_ptr={shape}")];
        let run = project.run(&["eval", "manifests/axpy.toml", "--shape", &shapes[0], "--shape", &shapes[1]]);
        assert!(run.stdout.contains(variant), "{shape}: {}{}", run.stdout, run.stderr);
    }
}

struct Compile<'a> {
    folder: &'a str,
    /// `NAME: TYPE`, with `*` for pointers.
    arguments: &'a [&'a str],
    arch: u32,
    block: u32,
    more: &'a str,
    python: &'a str,
}

const GENERAL: [&str; 4] = ["x: f32*", "y: f32*", "n: i32", "stride: i32"];

impl Compile<'_> {
    fn write(&self, project: &Project) {
        let file = |extension: &str| format!("cache/{}/k.{extension}", self.folder);
        let json = format!(
            r#"{{"name": "k", "hash": "{}", "target": {{"backend": "cuda", "arch": {}, "warp_size": 32}}, "num_warps": 4, "num_stages": 3, "shared": {}{}}}"#,
            self.folder,
            self.arch,
            self.block * 4,
            self.more
        );
        project.write(&file("json"), json);
        let mut list = Vec::new();
        let mut params = Vec::new();
        for argument in self.arguments {
            let (name, ty) = argument.split_once(": ").unwrap();
            let (ty, width) = match ty.strip_suffix('*') {
                Some(pointee) => (format!("!tt.ptr<{pointee}>"), 64),
                None => (ty.to_owned(), if ty.ends_with("64") { 64 } else { 32 }),
            };
            list.push(format!("%{name}: {ty} loc(\"{name}\"(#loc))"));
            params.push(format!(".param .u{width} k_{name}"));
        }
        params.extend([".param .u64 k_global".to_owned(), ".param .u64 k_profile".to_owned()]);
        let block = self.block;
        let text = format!(
            "#loc = loc(\"{}\":2:1)\nmodule {{\n  tt.func public @k({}) attributes {{noinline = false}} {{\n    \
             %0 = tt.make_range {{end = {block} : i32, start = 0 : i32}} : tensor<{block}xi32> loc(#loc)\n    \
             %1 = tt.splat %y : !tt.ptr<f32> -> tensor<{block}x!tt.ptr<f32>> loc(#loc)\n    \
             %2 = tt.addptr %1, %0 : tensor<{block}x!tt.ptr<f32>>, tensor<{block}xi32> loc(#loc)\n    \
             tt.store %2, %0 : tensor<{block}x!tt.ptr<f32>> loc(#loc)\n    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n",
            self.python,
            list.join(", ")
        );
        project.write(&file("ttir"), &text);
        project.write(&file("source"), &text);
        let ptx = format!(
            ".version 8.5\n.target sm_{}\n.address_size 64\n\n.visible .entry k(\n    {}\n)\n{{\n    ret;\n}}\n",
            self.arch,
            params.join(",\n    ")
        );
        project.write(&file("ptx"), ptx);
    }
}

fn compiled(project: &Project, all: &[Compile<'_>]) {
    all.iter().for_each(|compile| compile.write(project));
}

fn imported(project: &Project, arguments: &[&str]) -> String {
    let run = project.run(&[&["import", "triton", "cache"], arguments].concat());
    run.assert_ok();
    run.stdout
}

fn right(project: &Project, text: &str, words: &[(&str, &str)]) {
    project.write("filled.toml", filled(text, words));
    let run = project.run(&["check", "filled.toml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}\n{}", run.stdout, filled(text, words));
}

const USUAL: [(&str, &str); 8] = [
    ("TYPE_OF_ELEMENTS", "f32"),
    ("TENSOR_x", "x"),
    ("TENSOR_y", "y"),
    ("\"x: f32*", "\"x: const f32*"),
    ("\"SHAPE_OF_y\"", "\"x.shape\"\nlimits = { numel = \"1..=2147483647\" }"),
    ("NUMBER_OF_PROGRAMS", "ceil_div(numel(y), BLOCK)"),
    ("VALUE_OF_n", "numel(y)"),
    ("name = \"x\"\n", "name = \"x\"\nrank = 1\n"),
];

fn usual<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    USUAL.iter().chain(more).copied().collect()
}

#[test]
fn integers_that_were_one_are_not_lost() {
    let project = Project::without_tools();
    project.write("k.py", "@triton.jit\ndef k(x, y, n, stride, BLOCK: tl.constexpr):\n    pass\n");
    let python = project.path("k.py");
    let python = python.to_str().unwrap();
    let one = Compile { folder: "ONE", arguments: &GENERAL[..3], arch: 80, block: 128, more: "", python };
    compiled(&project, &[one]);
    let text = imported(&project, &["--constant", "BLOCK=128"]);
    assert!(text.contains("\"stride == CONSTANT_stride\""), "{text}");
    assert!(imported(&project, &[]).contains("\"BLOCK == CONSTANT_BLOCK\""));
    let said = imported(&project, &["--constant", "BLOCK=128", "--constant", "stride=1"]);
    assert!(said.contains("\"stride == 1\"") && said.contains("stride = \"VALUE_OF_stride\""), "{said}");
    let wrong = project.run(&["import", "triton", "cache", "--constant", "BLOK=1"]);
    assert!(wrong.stderr.contains("did you mean `BLOCK`?"), "{}", wrong.stderr);
    project.write("k.py", "# moved\n");
    let unseen = imported(&project, &["--constant", "BLOCK=128"]);
    assert!(unseen.contains("parameters besides `x`, `y`, `n`, `BLOCK`"), "{unseen}");
    let general = Compile { folder: "ANY", arguments: &GENERAL, arch: 80, block: 128, more: "", python };
    compiled(&project, &[general]);
    let text = imported(&project, &["--constant", "BLOCK=128"]);
    assert!(text.contains("\"stride == 1\"") && text.contains("\"stride: i32\""), "{text}");
    let text = text.replace("[[inputs]]", "[attributes.stride]\ntype = \"i32\"\ndefault = 1\n\n[[inputs]]");
    right(&project, &text, &usual(&[("VALUE_OF_stride", "stride")]));
    for (stride, variant) in [("1", "1  selected"), ("3", "2  selected")] {
        let attribute = format!("stride={stride}");
        let run = project.run(&["eval", "filled.toml", "--shape", "x=77", "--attr", &attribute]);
        assert!(run.stdout.contains(variant), "{stride}: {}{}", run.stdout, run.stderr);
    }
    let other = ["x: f32*", "y: f32*", "n: i32", "stride: f32*"];
    compiled(
        &project,
        &[Compile { folder: "POINTER", arguments: &other, arch: 80, block: 128, more: "", python }],
    );
    project.run(&["import", "triton", "cache"]).assert_refused("a pointer in some only");
}

#[test]
fn integers_of_several_types_are_told_apart_by_their_values() {
    let project = Project::without_tools();
    let compile =
        |folder, arguments| Compile { folder, arguments, arch: 80, block: 128, more: "", python: "none" };
    let long = ["x: f32*", "y: f32*", "n: i32", "stride: i64"];
    compiled(&project, &[compile("LONG", &long), compile("SHORT", &GENERAL)]);
    let text = imported(&project, &["--constant", "BLOCK=128"]);
    assert_eq!(text.matches("guard = ").count(), 1, "{text}");
    assert!(!text.contains("nothing determines which variant fits"), "{text}");
    let text = text.replace("[[inputs]]", "[attributes.stride]\ntype = \"i32\"\n\n[[inputs]]");
    // It binds less tightly than the surrounding operators.
    right(&project, &text, &usual(&[("VALUE_OF_stride", "65536 * stride if stride != 0 else 1")]));
    for (stride, variant) in [
        ("32767", "1  selected"),
        ("-32768", "1  selected"),
        ("32768", "2  selected"),
        ("-32769", "2  selected"),
        ("0", "1  selected"),
    ] {
        let attribute = format!("stride={stride}");
        let run = project.run(&["eval", "filled.toml", "--shape", "x=77", "--attr", &attribute]);
        assert!(run.stdout.contains(variant), "{stride}: {}{}", run.stdout, run.stderr);
    }
    let halves = ["x: f16*", "y: f32*", "n: i32", "stride: i32"];
    let other = Project::without_tools();
    compiled(&other, &[compile("LONG", &long), compile("HALVES", &halves)]);
    let text = imported(&other, &["--constant", "BLOCK=128"]);
    assert!(!text.contains("guard = "), "{text}");
    // Float values cannot select between types.
    let floats = ["x: f32*", "y: f32*", "n: i32", "stride: f32"];
    let doubles = ["x: f32*", "y: f32*", "n: i32", "stride: f64"];
    let several = Project::without_tools();
    compiled(&several, &[compile("SINGLE", &floats), compile("DOUBLE", &doubles)]);
    let text = imported(&several, &["--constant", "BLOCK=128"]);
    assert!(
        text.contains("The types of `stride` differ between variants") && !text.contains("guard = "),
        "{text}"
    );
}

#[test]
fn several_values_of_a_constant_become_variants() {
    let project = Project::without_tools();
    let compile =
        |folder, block, arch, more| Compile { folder, arguments: &GENERAL, arch, block, more, python: "" };
    compiled(
        &project,
        &[compile("AAAA", 512, 80, ""), compile("BBBB", 1024, 80, ""), compile("CCCC", 1024, 90, "")],
    );
    let unsaid = project.run(&["import", "triton", "cache"]);
    unsaid.assert_refused("which is which");
    for part in
        ["`tl.arange` of 512: `AAAA`", "`tl.arange` of 1024: `BBBB`, `CCCC`", "--constant AAAA:BLOCK=512"]
    {
        assert!(unsaid.stderr.contains(part), "{part}: {}", unsaid.stderr);
    }
    let by_size = imported(&project, &["--constant", "BLOCK=1024,512"]);
    let by_folder = imported(&project, &["--constant", "AAAA:BLOCK=512", "--constant", "BLOCK=1024"]);
    assert_eq!(by_size, by_folder);
    project.write(
        "filled.toml",
        filled(&by_size, &usual(&[("VALUE_OF_BLOCK", "BLOCK"), ("VALUE_OF_stride", "1")])),
    );
    // TensorRT-RTX does not time variants, so the first one needs a guard.
    assert_eq!(said(&project, "filled.toml"), ["C0207"]);
    for refused in [
        ["BLOCK=512,2048", ""],
        ["BLOCK=512,1024,2048", ""],
        ["ABCD:BLOCK=512", "BLOCK=1024"],
        ["AAAA:BLOCK=512", ""],
        ["n=4", ""],
        ["BLOCK=512", ""],
    ] {
        let constants = refused.iter().filter(|text| !text.is_empty()).flat_map(|text| ["--constant", text]);
        let arguments: Vec<&str> = ["import", "triton", "cache"].into_iter().chain(constants).collect();
        project.run(&arguments).assert_refused(&refused.join(" "));
    }
    compiled(&project, &[compile("DDDD", 512, 80, ", \"maxnreg\": 64")]);
    assert!(imported(&project, &["--constant", "BLOCK=1024,512"]).contains("id = 3"));
    compiled(&project, &[compile("EEEE", 512, 80, ", \"maxnreg\": 64")]);
    project.run(&["import", "triton", "cache", "--constant", "BLOCK=1024,512"]).assert_refused("twice");
}

#[test]
fn words_are_told_apart_by_a_guard() {
    let project = Project::without_tools();
    let compile =
        |folder, more| Compile { folder, arguments: &GENERAL, arch: 80, block: 128, more, python: "" };
    compiled(&project, &[compile("RELU", ""), compile("GELU", "")]);
    project.write(
        "cache/GELU/k.source",
        "%9 = math.erf %8 : f32\n%0 = tt.make_range {end = 128 : i32, start = 0 : i32}\n",
    );
    let text = imported(
        &project,
        &["--constant", "RELU:ACT=relu", "--constant", "GELU:ACT='gelu'", "--constant", "BLOCK=128"],
    );
    for part in ["guard = \"WHERE_ACT_IS_gelu\"", "guard = \"WHERE_ACT_IS_relu\""] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
    project.write("words.toml", &text);
    assert_eq!(said(&project, "words.toml"), ["C0101"]);
    std::fs::remove_dir_all(project.path("cache/GELU")).unwrap();
    let text = imported(&project, &["--constant", "ACT=relu", "--constant", "BLOCK=128"]);
    assert!(text.contains("In all of this code ACT is \"relu\""), "{text}");
}

#[test]
fn launches_that_differ_are_steps_of_their_own() {
    let project = Project::without_tools();
    let compile =
        |folder, more| Compile { folder, arguments: &GENERAL, arch: 90, block: 128, more, python: "" };
    let more = ", \"num_ctas\": 2, \"launch_cooperative_grid\": true, \"global_scratch_size\": 512";
    compiled(&project, &[compile("PLAIN", ""), compile("CLUSTER", more)]);
    let text = imported(&project, &["--constant", "BLOCK=128"]);
    let launches: Vec<&str> = text.split("[[launches]]").skip(1).collect();
    assert_eq!(launches.len(), 2, "{text}");
    for part in ["CONFIG == 1", "grid = [\"NUMBER_OF_PROGRAMS\"]", "global_scratch = 0\n"] {
        assert!(launches[0].contains(part), "{part}: {text}");
    }
    assert!(!launches[0].contains("cluster") && !launches[0].contains("cooperative"), "{text}");
    for part in [
        "CONFIG == 2",
        "grid = [\"2 * NUMBER_OF_PROGRAMS\"]",
        "cluster = [2]",
        "cooperative = true",
        "global_scratch = \"global_scratch\"",
    ] {
        assert!(launches[1].contains(part), "{part}: {text}");
    }
    let words =
        usual(&[("512 * NUMBER_OF_BLOCKS", "1024 * ceil_div(numel(y), 128)"), ("VALUE_OF_stride", "1")]);
    let text = format!("{}\n[compile]\ntargets = [\"compute_90\"]\n", filled(&text, &words));
    project.write("filled.toml", text);
    let run = project.run(&["check", "filled.toml"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}

#[test]
fn shared_memory_is_that_of_the_code_that_runs() {
    let project = Project::without_tools();
    let compile = |folder, arch, shared| Compile {
        folder,
        arguments: &GENERAL,
        arch,
        block: 128,
        more: shared,
        python: "",
    };
    compiled(&project, &[compile("OLD", 80, ""), compile("NEW", 90, "")]);
    let json = String::from_utf8(project.read("cache/NEW/k.json")).unwrap();
    project.write("cache/NEW/k.json", json.replace("\"shared\": 512", "\"shared\": 4096"));
    let text = imported(&project, &["--constant", "BLOCK=128"]);
    let expected =
        "shared_bytes = \"512 if device.capability >= 100 else 4096 if device.capability >= 90 else 512\"";
    assert!(text.contains(expected), "{text}");
    right(&project, &text, &usual(&[("VALUE_OF_stride", "1")]));
}

#[test]
fn one_of_several_kernels_is_named() {
    let project = Project::without_tools();
    compiled(
        &project,
        &[Compile { folder: "K", arguments: &GENERAL, arch: 80, block: 128, more: "", python: "" }],
    );
    for extension in ["json", "ttir", "source", "ptx"] {
        let text = String::from_utf8(project.read(&format!("cache/K/k.{extension}"))).unwrap();
        let text =
            text.replace("\"k\"", "\"other\"").replace("@k(", "@other(").replace("entry k(", "entry other(");
        project.write(&format!("cache/O/other.{extension}"), text);
    }
    let run = project.run(&["import", "triton", "cache"]);
    assert!(run.stderr.contains("`k`, `other`") && run.stderr.contains("--kernel NAME"), "{}", run.stderr);
    assert!(imported(&project, &["--kernel", "other"]).contains("kernel = \"other\""));
    project.run(&["import", "triton", "cache", "--kernel", "othr"]).assert_refused("misspelt");
    project.write("other/a/settings.json", "{}");
    let run = project.run(&["import", "triton", "other"]);
    assert!(run.stderr.contains("no Triton output in"), "{}", run.stderr);
}

#[test]
fn what_numba_compiled_becomes_a_manifest() {
    let project = Project::without_tools();
    std::fs::copy(data("code/numba/turn.ptx"), project.path("turn.ptx")).unwrap();
    let run = project.run(&["import", "ptx", "turn.ptx", "-o", "turn.toml"]);
    run.assert_ok();
    let written = String::from_utf8(project.read("turn.toml")).unwrap();
    insta::assert_snapshot!("imported_from_numba", written);
    let words = [
        ("TYPE_OF_ELEMENTS", "f32"),
        ("SHAPE_OF_y", "x.shape"),
        ("NUMBER_OF_BLOCKS", "ceil_div(numel(y), 256)"),
        ("NUMBER_OF_THREADS", "256"),
        ("TENSOR_p0", "x"),
        ("TENSOR_p1", "y"),
        ("VALUE_OF_p2", "1"),
        ("p0: f32*", "p0: const f32*"),
        ("name = \"x\"\n", "name = \"x\"\nrank = 1\n"),
    ];
    project.write("turn.toml", filled(&written, &words));
    let run = project.run(&["check", "turn.toml"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    let run = project.run(&["eval", "turn.toml", "--shape", "x=1000"]);
    run.assert_ok();
    assert!(run.stdout.contains("p1_shape0    i64     1000"), "{}", run.stdout);
}

#[test]
fn a_cluster_beyond_all_bounds_is_no_end() {
    let project = Project::without_tools();
    let head = ".version 8.5\n.target sm_90\n.address_size 64\n";
    let entry = ".visible .entry k(.param .u64 p)\n.explicitcluster\n.reqnctapercluster 8, 3, 2147483647\n{\n ret;\n}\n";
    project.write("k.ptx", format!("{head}{entry}"));
    let run = project.run(&["import", "ptx", "k.ptx"]);
    run.assert_ok();
    assert!(run.stdout.contains("8, 3, 2147483647"), "{}", run.stdout);
}

#[test]
fn kernels_of_cpp_are_named_as_people_write_them() {
    let project = Project::without_tools();
    std::fs::copy(data("code/perm.ptx"), project.path("perm.ptx")).unwrap();
    let import = |name: &str| project.run(&["import", "ptx", "perm.ptx", "--kernel", name]);
    let by_symbol = import("_Z4permIfLi1EEvPKT_PS0_x");
    by_symbol.assert_ok();
    for name in ["perm<float, 1>", "perm<float,1>"] {
        assert_eq!(import(name).stdout, by_symbol.stdout);
    }
    let refused = import("perm");
    refused.assert_refused("a name of two");
    let both = "the kernels are `perm<double, 2>` (`_Z4permIdLi2EEvPKT_PS0_x`), `perm<float, 1>` (`_Z4permIfLi1EEvPKT_PS0_x`)";
    assert!(refused.stderr.contains(both), "{}", refused.stderr);
    let manifest = |kernel: &str| {
        let text = std::fs::read_to_string(data("bad/code_of_another_instance.toml")).unwrap();
        let text = text.replace("_Z4permIdLi2EEvPKT_PS0_x", kernel).replace("../code/", "");
        project.write("perm.toml", text);
        project.run(&["check", "perm.toml"])
    };
    manifest("perm<float, 1>").assert_ok();
    manifest("perm<double, 2>").assert_refused("the wrong instance");
}

#[test]
fn cubins_and_ptx_of_one_kernel_become_a_manifest() {
    let project = Project::without_tools();
    for file in ["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx", "scale.fatbin"] {
        std::fs::copy(data("code").join(file), project.path(file)).unwrap();
    }
    let import = |arguments: &[&str]| project.run(&[&["import"], arguments].concat());
    let files = ["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx"];
    let run = import(&[&["cubin", "--kernel", "scale_f32_1"], files.as_slice()].concat());
    run.assert_ok();
    insta::assert_snapshot!("imported_from_nvcc", run.stdout);
    let nvcc = import(&[&["nvcc", "--kernel", "scale_f32_1"], files.as_slice()].concat());
    assert_eq!((nvcc.code, nvcc.stdout), (Some(0), run.stdout));
    let refused = [
        import(&["cubin", "scale.sm_80.cubin"]),
        import(&["ptx", "scale.ptx", "--kernel", "scale_f32"]),
        import(&["cubin", "scale.fatbin"]),
        import(&["ptx", "nowhere.ptx"]),
        import(&["triton", "nowhere"]),
        import(&["scale.ptx"]),
        import(&["trion"]),
        import(&["cuda"]),
        import(&["triton", "manifests"]),
    ];
    refused.iter().for_each(|run| run.assert_refused("import"));
    let shown: Vec<&str> = refused.iter().map(|run| run.stderr.as_str()).collect();
    insta::assert_snapshot!("imports_that_are_refused", shown.join("\n"));
}

/// Launches supply external shared memory; PTX beside a cubin has missing facts.
#[test]
fn shared_memory_of_the_launch_is_asked_for() {
    let project = Project::without_tools();
    for file in ["shared.sm_80.cubin", "shared.sm_90.cubin", "shared.ptx", "scale.sm_80.cubin"] {
        std::fs::copy(data("code").join(file), project.path(file)).unwrap();
    }
    let imported = |files: &[&str]| {
        let run = project.run(&[&["import", "cubin"], files].concat());
        run.assert_ok();
        run.stdout
    };
    for files in [
        &["shared.sm_80.cubin", "shared.sm_90.cubin"][..],
        &["shared.ptx"],
        &["shared.sm_90.cubin", "shared.ptx"],
    ] {
        let text = imported(files);
        assert!(text.contains("shared_bytes = \"BYTES_OF_SHARED_MEMORY\""), "{files:?}: {text}");
    }
    let none = imported(&["scale.sm_80.cubin", "--kernel", "scale_f32_1"]);
    assert!(!none.contains("shared_bytes") && !none.contains("shared memory"), "{none}");
}

fn without_notes(bytes: &[u8]) -> Vec<u8> {
    let mut bare = bytes.to_vec();
    for at in 0..bare.len() {
        if bare[at..].starts_with(b".note.nv.") {
            bare[at] = b'_';
        }
    }
    bare
}

#[test]
fn what_a_cubin_does_not_tell_is_said() {
    let project = Project::without_tools();
    let code = std::fs::read(data("code/scale.sm_90.cubin")).unwrap();
    for file in ["a.cubin", "b.cubin"] {
        std::fs::write(project.path(file), without_notes(&code)).unwrap();
    }
    std::fs::write(project.path("told.cubin"), &code).unwrap();
    let text = std::fs::read_to_string(data("bad/code_driver_too_old.toml")).unwrap();
    let text: String =
        text.lines().filter(|line| !line.starts_with("ptx =")).map(|line| format!("{line}\n")).collect();
    let check = |files: &str, driver: &str| {
        let text = text.replace("\"../code/scale.sm_80.cubin\", \"../code/scale.sm_90.cubin\"", files);
        project.write("scale.toml", text.replace("min_driver = \"550\"", driver));
        project.run(&["check", "scale.toml", "--target", "sm_90"])
    };
    let unknown = check("\"a.cubin\"", "min_driver = \"590\"");
    unknown.assert_refused("a driver that it cannot be held against");
    assert!(
        unknown.stderr.contains("error[C0602]: unknown driver requirement of this cubin"),
        "{}",
        unknown.stderr
    );
    check("\"a.cubin\"", "").assert_ok();
    check("\"told.cubin\"", "min_driver = \"590\"").assert_ok();
    check("\"a.cubin\", \"told.cubin\"", "").assert_ok();
    let twice = check("\"a.cubin\", \"b.cubin\"", "");
    twice.assert_refused("two files for one architecture");
    let note = "each of them does not record whether it was compiled only for 9.0, which is assumed";
    assert!(twice.stderr.contains(note), "{}", twice.stderr);
}
