//! `import` reads parameters from Triton's text, PTX and debug information; `check` compares them.

use std::ffi::OsString;

use crate::support::{self, Project};
use nvrtc_sys::{Nvrtc, Program};

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

fn imported(project: &Project) -> String {
    let run = project.run(&["import", "triton", "cache"]);
    run.assert_ok();
    let words = [
        ("NUMBER_OF_PROGRAMS", "ceil_div(numel(x), 64)"),
        ("VALUE_OF_n", "min(numel(x), 1000)"),
        ("SHAPE_OF_y", "x.shape"),
        ("TYPE_OF_ELEMENTS", "f8"),
        ("TENSOR_", ""),
        ("\"x: ", "\"x: const "),
    ];
    words.iter().fold(run.stdout, |text, (word, value)| text.replace(word, value))
}

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
                [format!("C0903 `x` is `const f8*`, but the kernel expects `!tt.ptr<{theirs}>`")]
            ),
        }
        // No tensor has such elements.
        let bytes = imported.replace("f8*", "u8*").replace("\"f8\"", "\"u8\"");
        assert_eq!(said(&project, &bytes).is_empty(), !is_right, "{bytes}");
        let unsaid = imported.replace("f8*", "void*");
        assert_eq!(said(&project, &unsaid).is_empty(), is_right, "{unsaid}");
    }
}

/// Returns PTX that accesses parameters without `.ptr`, as NVRTC 13.0 writes it.
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
    let number = said_of_copy(
        &[XYN],
        ["x: u64", "y: f32*", "n: u64"],
        "x = \"numel(x)\", y = \"y\", n = \"numel(y)\"",
    );
    assert_eq!(number, ["C0903 the kernel uses `x` as an address, but receives a number"]);
    // 0 is a null pointer.
    let null =
        said_of_copy(&[XYN], ["x: u64", "y: f32*", "n: u64"], "x = \"0\", y = \"y\", n = \"numel(y)\"");
    assert!(null.iter().all(|said| !said.starts_with("C0903")), "{null:?}");
    let numbers = said_of_copy(&[XYN], ["n: u64", "y: f32*", "x: const f32*"], ARGS);
    assert_eq!(numbers, ["C0903 the kernel uses `n` as an address, but receives a number"]);
    let pointers = said_of_copy(&[XYN], ["y: f32*", "x: const f32*", "n: u64"], ARGS);
    assert_eq!(pointers, ["C0903 `x` is `const f32*`, but the kernel writes through it"]);
    for (other, expected) in [
        (["y", "x", "n"], "C0903 `x` is `const f32*`, but the kernel writes through it"),
        (["x", "n", "y"], "C0903 the kernel uses `n` as an address, but receives a number"),
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
    let options = ["--gpu-architecture=sm_89", "--device-debug"].map(OsString::from).into();
    let program =
        Program { source: source.to_owned(), name: "lerp.cu".to_owned(), options, ..Program::default() };
    let project = Project::without_tools();
    // Its targets differ from the code's.
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
    assert_eq!(said_of(["x: const f32*", "y: f32*", "low: i32", "high: i32"]), NOTHING);
    assert_eq!(said_of(["x: const f32*", "y: f32*", "first: i32", "count: i32"]), NOTHING);
    let exchanged = said_of(["x: const f32*", "y: f32*", "last: i32", "first: i32"]);
    let expected = "C0903 the parameters `first` and `last` may be swapped: the kernel has both names in other positions";
    assert_eq!(exchanged, [expected]);
}
