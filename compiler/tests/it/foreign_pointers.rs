//! What precompiled kernels contain about their parameters: Triton's text, PTX and debug information. What `cubinder import` makes of it, and what
//! `cubinder check` compares with the manifest.

use std::ffi::OsString;
use std::path::Path;

use crate::support::{self, Project};
use nvrtc_sys::{Nvrtc, Program};

/// A cache with what Triton 3.9 said of a kernel of `tests/data/ttir/kernels.py`, and PTX with its parameters.
fn compiled(kernel: &str) -> Project {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/ttir").join(kernel);
    with_text(kernel, &std::fs::read_to_string(path.with_extension("ttir")).unwrap())
}

fn with_text(kernel: &str, text: &str) -> Project {
    let project = Project::without_tools();
    let (_, rest) = text.split_once(&format!("@{kernel}(")).unwrap();
    let (list, _) = rest.split_once(") attributes").unwrap();
    let widths = list.split(", ").map(|part| if part.contains("!tt.ptr") { 64 } else { 32 });
    let parameters: Vec<String> =
        widths.chain([64, 64]).enumerate().map(|(at, width)| format!(".param .u{width} p{at}")).collect();
    let json = format!(
        r#"{{"name": "{kernel}", "hash": "one", "target": {{"backend": "cuda", "arch": 80, "warp_size": 32}}, "num_warps": 4, "num_stages": 3, "shared": 0}}"#
    );
    let ptx = format!(
        ".version 8.5\n.target sm_80\n.address_size 64\n\n.visible .entry {kernel}({})\n{{\n    ret;\n}}\n",
        parameters.join(", ")
    );
    for (extension, text) in [("json", json.as_str()), ("ttir", text), ("source", text), ("ptx", &ptx)] {
        project.write(&format!("cache/ONE/{kernel}.{extension}"), text);
    }
    project
}

/// What `import` writes, with the words filled in that say nothing of pointers.
fn imported(project: &Project) -> String {
    imported_with(project, &[])
}

fn imported_with(project: &Project, arguments: &[&str]) -> String {
    let run = project.run(&[&["import", "triton", "cache"], arguments].concat());
    run.assert_ok();
    let words = [
        ("NUMBER_OF_PROGRAMS", "ceil_div(numel(x), 64)"),
        ("VALUE_OF_n", "min(numel(x), 1000)"),
        ("\"SHAPE_OF_y\"", "\"x.shape\""),
        ("\"SHAPE_OF_z\"", "\"x.shape\""),
    ];
    words.iter().fold(run.stdout, |text, (word, value)| text.replace(word, value))
}

/// The codes and messages of what `check` says.
fn said(project: &Project, manifest: &str) -> Vec<String> {
    project.write("filled.toml", manifest);
    let run = project.run(&["check", "--message-format", "json", "filled.toml"]);
    let lines = run.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let shown = |line: serde_json::Value| {
        Some(format!("{} {}", line.get("code")?.as_str()?, line.get("message")?.as_str()?))
    };
    lines.filter_map(shown).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn functions_of_libdevice_and_loops_hide_no_pointer() {
    for kernel in ["gelu", "persist", "moving"] {
        let project = compiled(kernel);
        let text = imported(&project);
        for part in
            ["\"x: const f32*\"", "\"y: f32*\"", "[[inputs]]\nname = \"x\"", "[[outputs]]\nname = \"y\""]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(said(&project, &text), NOTHING, "{text}");
    }
}

#[test]
fn what_is_changed_in_place_is_an_input_with_an_output_in_its_memory() {
    for kernel in ["add_to", "total"] {
        let project = compiled(kernel);
        let text = imported(&project);
        for part in [
            "\"x: const f32*\"",
            "\"y: f32*\"",
            "[[inputs]]\nname = \"y\"\ntype = \"f32\"\n",
            "[[outputs]]\nname = \"y_out\"\nalias = \"y\"",
            "\ny = \"y\"\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(said(&project, &text), NOTHING, "{text}");
        // An output of its own holds whatever the memory held, until something fills it.
        let own = text
            .replace("[[inputs]]\nname = \"y\"\ntype = \"f32\"\n", "")
            .replace("name = \"y_out\"\nalias = \"y\"", "name = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"");
        assert_eq!(said(&project, &own), ["C0306 the output `y` is read before anything wrote it"], "{own}");
        let filled = own.replacen("[[launches]]", "[[launches]]\nmemset = \"y\"\n\n[[launches]]", 1);
        assert_eq!(said(&project, &filled), NOTHING, "{filled}");
        // An input without an output in its memory is another layer's.
        let input = text.replace(
            "[[outputs]]\nname = \"y_out\"\nalias = \"y\"",
            "[[outputs]]\nname = \"z\"\ntype = \"f32\"\nshape = \"x.shape\"",
        );
        let input = input.replacen("[[launches]]", "[[launches]]\nmemset = \"z\"\n\n[[launches]]", 1);
        assert_eq!(said(&project, &input), ["C0409 the kernel could write to the input `y`"], "{input}");
    }
}

#[test]
fn what_is_not_told_is_asked_for_and_held_against_nothing() {
    // Whether it reads what it wrote itself, nobody knows: both ways are right.
    let project = compiled("softmax");
    let text = imported(&project);
    assert!(text.contains("y = \"TENSOR_y\"") && text.contains("\"y: f32*\","), "{text}");
    assert_eq!(said(&project, &text).len(), 1, "{text}");
    let output = "[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n";
    let in_place =
        "[[inputs]]\nname = \"y\"\ntype = \"f32\"\n\n[[outputs]]\nname = \"y_out\"\nalias = \"y\"\n";
    let first = text.find("[[outputs]]").unwrap();
    let rest = &text[first + text[first..].find("\n\n").unwrap()..];
    for tensors in [output, in_place] {
        let filled = format!("{}{tensors}{rest}", &text[..first]).replace("TENSOR_y", "y");
        assert_eq!(said(&project, &filled), NOTHING, "{filled}");
    }
    // What another function does with a pointer is not followed.
    let project = compiled("called");
    let text = imported(&project);
    assert!(
        text.contains("z = \"TENSOR_z\"") && text.contains("# nothing tells whether it is written"),
        "{text}"
    );
    let as_output = text.replace(
        "[[outputs]]",
        "[[outputs]]\nname = \"z\"\ntype = \"f32\"\nshape = \"x.shape\"\n\n[[outputs]]",
    );
    let as_input = text
        .replacen("[[inputs]]", "[[inputs]]\nname = \"z\"\ntype = \"f32\"\n\n[[inputs]]", 1)
        .replace("\"z: f32*\"", "\"z: const f32*\"");
    for filled in [as_output, as_input] {
        let filled = filled.replace("TENSOR_z", "z");
        assert_eq!(said(&project, &filled), NOTHING, "{filled}");
    }
}

#[test]
fn locks_are_scratch_memory_that_something_fills() {
    let project = compiled("locked");
    let text = imported(&project);
    assert!(text.contains("name = \"locks_out\"\nalias = \"locks\""), "{text}");
    let (before, rest) = text.split_once("[[inputs]]\nname = \"locks\"").unwrap();
    let (_, rest) = rest.split_once("[[code]]").unwrap();
    let tensors =
        "[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\n[scratch.locks]\nbytes = 8\n";
    let scratch = format!("{before}{tensors}\n[[code]]{rest}").replace("TENSOR_y", "y");
    assert_eq!(
        said(&project, &scratch),
        ["C0310 the scratch buffer `locks` is read before anything wrote it"],
        "{scratch}"
    );
    let run = project.run(&["check", "filled.toml"]);
    insta::assert_snapshot!("locks_that_nothing_fills", run.stderr);
    let filled = scratch.replacen("[[launches]]", "[[launches]]\nmemset = \"locks\"\n\n[[launches]]", 1);
    assert_eq!(said(&project, &filled), NOTHING, "{filled}");
}

#[test]
fn what_a_kernel_does_is_held_against_what_the_manifest_says() {
    let project = compiled("gelu");
    let text = imported(&project);
    let constant = text.replace("\"y: f32*\"", "\"y: const f32*\"");
    assert_eq!(said(&project, &constant), ["C0405 the output `y` is bound to a pointer to `const`"]);
    let lent = constant.replace("\ny = \"y\"\n", "\ny = \"x\"\n").replacen(
        "[[launches]]",
        "[[launches]]\nmemset = \"y\"\n\n[[launches]]",
        1,
    );
    assert_eq!(said(&project, &lent), ["C0903 `y` is `const f32*`, and the kernel writes there"]);
    // Those of the two tensors that were confused.
    let exchanged = text.replace("\nx = \"x\"\ny = \"y\"\n", "\nx = \"y\"\ny = \"x\"\n");
    let exchanged = exchanged.replace("\"x: const f32*\"", "\"x: f32*\"");
    let found = said(&project, &exchanged);
    let never = "C0903 `x` gets the output `y`, and the kernel never writes there: `!tt.ptr<f32>`";
    assert!(found.iter().any(|one| one == never), "{found:?}");
    let both = exchanged.replace("\"y: f32*\"", "\"y: const f32*\"");
    assert_eq!(said(&project, &both), [never]);
    let run = project.run(&["check", "filled.toml"]);
    assert!(run.stderr.contains("note: `y` does not fit either"), "{}", run.stderr);
}

#[test]
fn floats_of_8_bits_are_of_several_kinds() {
    for (theirs, is_right) in [("f8E4M3FN", true), ("f8E5M2", false), ("f8E4M3FNUZ", false)] {
        let text = "#loc = loc(\"k.py\":2:1)\nmodule {\n  tt.func public @k(%x: !tt.ptr<KIND>, %y: !tt.ptr<KIND>, %n: i32) attributes {noinline = false} {\n    \
            %0 = tt.load %x : !tt.ptr<KIND>\n    tt.store %y, %0 : !tt.ptr<KIND>\n    tt.return\n  }\n}\n";
        let project = with_text("k", &text.replace("KIND", theirs));
        let imported = imported(&project).replace(theirs, "f8");
        let found = said(&project, &imported);
        match is_right {
            true => assert_eq!(found, NOTHING),
            false => assert_eq!(
                found,
                [format!("C0903 `x` is `const f8*`, and the kernel takes `!tt.ptr<{theirs}>` there")]
            ),
        }
        // No tensor has such elements: their bytes are passed.
        let bytes = imported.replace("f8*", "u8*").replace("\"f8\"", "\"u8\"");
        assert_eq!(said(&project, &bytes).is_empty(), !is_right, "{bytes}");
        let unsaid = imported.replace("f8*", "void*");
        assert_eq!(said(&project, &unsaid).is_empty(), is_right, "{unsaid}");
    }
}

#[test]
fn a_kernel_of_several_kinds_of_code_asks_what_all_of_it_needs() {
    let project = compiled("add_to");
    let text = String::from_utf8(project.read("cache/ONE/add_to.ttir")).unwrap();
    // Faster code for the same arguments, of which less is known.
    let dark = text.replace("tt.return", "tt.call @more(%y) : (!tt.ptr<f32>) -> () loc(#loc)\n    tt.return");
    let dark = dark.replace("tt.store", "strange.store");
    for extension in ["ttir", "source"] {
        project.write(&format!("cache/TWO/add_to.{extension}"), &dark);
    }
    for extension in ["json", "ptx"] {
        let text = String::from_utf8(project.read(&format!("cache/ONE/add_to.{extension}"))).unwrap();
        let text = text.replace("\"num_warps\": 4", "\"num_warps\": 8").replace("one", "two");
        project.write(&format!("cache/TWO/add_to.{extension}"), text);
    }
    let text = imported_with(&project, &["--constant", "ONE:FAST=0", "--constant", "TWO:FAST=1"]);
    assert!(text.contains("alias = \"y\"") && !text.contains("TENSOR_y"), "{text}");
}

/// PTX as NVRTC 13.0 writes it, without `.ptr`: a kernel that reads through one parameter and writes through another.
fn copy(target: &str, order: [&str; 3]) -> String {
    let params: Vec<String> = order.iter().map(|name| format!("\t.param .u64 copy_{name}")).collect();
    format!(
        ".version 8.5\n.target {target}\n.address_size 64\n\n.visible .entry copy(\n{}\n)\n{{\n\
         \t.reg .pred %p<2>;\n\t.reg .f32 %f<2>;\n\t.reg .b32 %r<2>;\n\t.reg .b64 %rd<10>;\n\n\
         \tld.param.u64 %rd1, [copy_x];\n\tld.param.u64 %rd2, [copy_y];\n\tld.param.u64 %rd3, [copy_n];\n\
         \tmov.u32 %r1, %tid.x;\n\tcvt.u64.u32 %rd4, %r1;\n\tsetp.ge.u64 %p1, %rd4, %rd3;\n\t@%p1 bra $L__BB0_2;\n\
         \tcvta.to.global.u64 %rd5, %rd1;\n\tshl.b64 %rd6, %rd4, 2;\n\tadd.s64 %rd7, %rd5, %rd6;\n\
         \tld.global.f32 %f1, [%rd7];\n\tcvta.to.global.u64 %rd8, %rd2;\n\tadd.s64 %rd9, %rd8, %rd6;\n\
         \tst.global.f32 [%rd9], %f1;\n\n$L__BB0_2:\n\tret;\n}}\n",
        params.join(",\n")
    )
}

/// The codes and messages of what `check` says of these parameters and arguments, with files of these orders.
fn said_of_copy(orders: &[[&str; 3]], parameters: [&str; 3], args: &str) -> Vec<String> {
    let project = Project::without_tools();
    let mut files = Vec::new();
    for (order, target) in orders.iter().zip(["sm_80", "sm_90"]) {
        let name = format!("copy.{target}.ptx");
        project.write(&name, copy(target, *order));
        files.push(name);
    }
    let manifest = format!(
        "schema = 1\n[plugin]\nname = \"copy\"\nnamespace = \"sample\"\n\
         [[inputs]]\nname = \"x\"\ntype = \"f32\"\nlimits = {{ numel = \"..=1000\" }}\n\
         [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
         [[code]]\nname = \"copy\"\nkernel = \"copy\"\nparameters = {parameters:?}\nptx = {files:?}\n\
         [[launches]]\ncode = \"copy\"\ngrid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]\nargs = {{ {args} }}\n"
    );
    said(&project, &manifest)
}

#[test]
fn the_loads_and_stores_of_ptx_tell_pointers_from_numbers() {
    const XYN: [&str; 3] = ["x", "y", "n"];
    const ARGS: &str = "x = \"x\", y = \"y\", n = \"numel(y)\"";
    let right = ["x: const f32*", "y: f32*", "n: u64"];
    assert_eq!(said_of_copy(&[XYN], right, ARGS), NOTHING);
    // A number for an address.
    let number = said_of_copy(
        &[XYN],
        ["x: u64", "y: f32*", "n: u64"],
        "x = \"numel(x)\", y = \"y\", n = \"numel(y)\"",
    );
    assert_eq!(number, ["C0903 the kernel reads `x` as an address, and gets a number"]);
    // 0 is a null pointer.
    let null =
        said_of_copy(&[XYN], ["x: u64", "y: f32*", "n: u64"], "x = \"0\", y = \"y\", n = \"numel(y)\"");
    assert!(null.iter().all(|said| !said.starts_with("C0903")), "{null:?}");
    // A number and a pointer exchanged.
    let numbers = said_of_copy(&[XYN], ["n: u64", "y: f32*", "x: const f32*"], ARGS);
    assert_eq!(numbers, ["C0903 the kernel reads `n` as an address, and gets a number"]);
    // Two pointers exchanged.
    let pointers = said_of_copy(&[XYN], ["y: f32*", "x: const f32*", "n: u64"], ARGS);
    assert_eq!(pointers, ["C0903 `x` is `const f32*`, and the kernel writes there"]);
    // In one of two files.
    for (other, expected) in [
        (["y", "x", "n"], "C0903 `x` is `const f32*`, and the kernel writes there"),
        (["x", "n", "y"], "C0903 the kernel reads `n` as an address, and gets a number"),
    ] {
        assert_eq!(said_of_copy(&[XYN, other], right, ARGS), [expected]);
        assert_eq!(said_of_copy(&[XYN, XYN], right, ARGS), NOTHING);
    }
}

#[test]
fn the_names_of_debug_information_tell_exchanged_parameters() {
    let Some(toolkit) = support::toolkit() else { return };
    let nvrtc = Nvrtc::load(&toolkit.nvrtc).unwrap();
    let source = "extern \"C\" __global__ void lerp(const float* x, float* y, int first, int last)\n\
                  { y[threadIdx.x] = x[threadIdx.x] * (last - first); }\n";
    let options = ["--gpu-architecture=sm_89", "--device-debug"].map(OsString::from);
    let program = Program { source, name: "lerp.cu", options: &options, ..Program::default() };
    let project = Project::without_tools();
    // Its targets are not those of this code.
    std::fs::remove_file(project.path("cubinder.toml")).unwrap();
    project.write("lerp.cubin", nvrtc.compile(&program).unwrap().cubin);
    let said_of = |parameters: [&str; 4]| {
        let manifest = format!(
            "schema = 1\n[plugin]\nname = \"lerp\"\nnamespace = \"sample\"\n\
             [[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 1\n\
             [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
             [[code]]\nname = \"lerp\"\nkernel = \"lerp\"\nparameters = {parameters:?}\ncubin = [\"lerp.cubin\"]\n\
             [[launches]]\ncode = \"lerp\"\ngrid = [1]\nblock = [32]\nargs = {{ {} }}\n",
            parameters
                .map(|parameter| {
                    let name = parameter.split(':').next().unwrap();
                    let value = if ["x", "y"].contains(&name) { name } else { "1" };
                    format!("{name} = \"{value}\"")
                })
                .join(", ")
        );
        said(&project, &manifest)
    };
    assert_eq!(said_of(["x: const f32*", "y: f32*", "first: i32", "last: i32"]), NOTHING);
    // The manifest may give parameters other names.
    assert_eq!(said_of(["x: const f32*", "y: f32*", "low: i32", "high: i32"]), NOTHING);
    assert_eq!(said_of(["x: const f32*", "y: f32*", "first: i32", "count: i32"]), NOTHING);
    let exchanged = said_of(["x: const f32*", "y: f32*", "last: i32", "first: i32"]);
    let expected = "C0903 the parameters `first` and `last` may be exchanged: the kernel has both names, at other places";
    assert_eq!(exchanged, [expected]);
}
