use crate::support::{Project, Run};
use cubinder_skip::skip;
use serde_json::{Value, json};

struct Compile<'a> {
    folder: &'a str,
    kernel: &'a str,
    element: &'a str,
    has_n: bool,
    arch: u32,
    /// Size of `tl.arange`.
    block: u32,
    more: &'a str,
    line: u32,
    json: Value,
    scratch: usize,
}

const USUAL: Compile<'_> = Compile {
    folder: "AAAA",
    kernel: "k",
    element: "f32",
    has_n: true,
    arch: 80,
    block: 512,
    more: "",
    line: 2,
    json: Value::Null,
    scratch: 2,
};

impl Compile<'_> {
    fn write(&self, project: &Project) {
        let Compile { folder, kernel, element, block, .. } = self;
        let file = |extension: &str| format!("cache/{folder}/{kernel}.{extension}");
        let mut json = json!({
            "name": kernel, "hash": folder.to_lowercase(), "target": {"backend": "cuda", "arch": self.arch, "warp_size": 32},
            "num_warps": 4, "num_stages": 3, "shared": 0, "triton_version": "3.9.0",
        });
        for (key, value) in self.json.as_object().into_iter().flatten() {
            json.as_object_mut().unwrap().insert(key.clone(), value.clone());
        }
        project.write(&file("json"), json.to_string());
        let n = if self.has_n { ", %n: i32 loc(\"n\"(#loc))" } else { "" };
        let text = format!(
            "#loc = loc(\"{}\":{}:1)\nmodule {{\n  tt.func public @{kernel}(%x: !tt.ptr<{element}> loc(\"x\"(#loc)), %y: !tt.ptr<{element}> loc(\"y\"(#loc)){n}) \
             attributes {{noinline = false}} {{\n    %0 = tt.make_range {{end = {block} : i32, start = 0 : i32}} : tensor<{block}xi32> loc(#loc)\n    \
             %v = tt.load %x : !tt.ptr<{element}> loc(#loc)\n{}    tt.store %y, %v : !tt.ptr<{element}> loc(#loc)\n    tt.return loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n",
            project.path("k.py").display(),
            self.line,
            self.more
        );
        project.write(&file("ttir"), &text);
        project.write(&file("source"), &text);
        let width = |index: usize| if index == 2 && self.has_n { "u32" } else { "u64" };
        let params = (0..2 + usize::from(self.has_n) + self.scratch)
            .map(|index| format!("    .param .{} {kernel}_{index}", width(index)));
        let ptx = format!(
            ".version 8.5\n.target sm_{}\n.address_size 64\n\n.visible .entry {kernel}(\n{}\n)\n{{\n    ret;\n}}\n",
            self.arch,
            params.collect::<Vec<_>>().join(",\n")
        );
        project.write(&file("ptx"), ptx);
    }
}

fn cache(all: &[Compile<'_>]) -> Project {
    let project = Project::without_tools();
    all.iter().for_each(|compile| compile.write(&project));
    project
}

fn import(project: &Project, constants: &[&str]) -> Run {
    let constants = constants.iter().flat_map(|constant| ["--constant", constant]);
    project.run(&["import", "triton", "cache"].into_iter().chain(constants).collect::<Vec<_>>())
}

fn imported(project: &Project, constants: &[&str]) -> (String, String) {
    let run = import(project, constants);
    run.assert_ok();
    let remarks: Vec<&str> = run.stdout.lines().take_while(|line| line.starts_with('#')).collect();
    (remarks.join("\n"), run.stdout.clone())
}

fn refused(project: &Project, constants: &[&str], words: &[&str]) {
    let run = import(project, constants);
    run.assert_refused(&constants.join(" "));
    for part in words {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

fn checked(project: &Project, text: &str) -> Run {
    let words = [
        ("TYPE_OF_ELEMENTS", "f32"),
        ("TENSOR_", ""),
        ("\"x: f32*", "\"x: const f32*"),
        ("\"SHAPE_OF_y\"", "\"x.shape\"\nlimits = { numel = \"1..=2147483647\" }"),
        ("NUMBER_OF_PROGRAMS", "ceil_div(numel(y), BLOCK)"),
        ("VALUE_OF_n", "numel(y)"),
    ];
    let text = words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value));
    project.write("filled.toml", text);
    project.run(&["check", "filled.toml"])
}

#[test]
fn a_folder_is_meant_by_what_it_alone_is_called() {
    let other = |folder| Compile { folder, element: "f16", block: 1024, ..USUAL };
    let both = "`A1`, `A2`";
    let project = cache(&[Compile { folder: "A1", ..USUAL }, other("A2")]);
    refused(&project, &["A:BLOCK=1024"], &["`A` matches 2 folders", both]);
    for around in ["cac", "cache"] {
        refused(&project, &[&format!("{around}:BLOCK=1024")], &["no Triton output in a folder"]);
    }
    refused(&project, &["A1:BLOCK=1024", "A2:BLOCK=1024"], &["were compiled for different values"]);
    // Exact names take precedence; paths and digests' prefixes match.
    let project = cache(&[Compile { folder: "A1", ..USUAL }, other("A10")]);
    let (_, text) = imported(&project, &["A1:BLOCK=512", "A10:BLOCK=1024"]);
    for more in ["cache/A10:BLOCK=1024", "./cache/A10/:BLOCK=1024", "a10:BLOCK=1024"] {
        assert_eq!(imported(&project, &["A1:BLOCK=512", more]).1, text, "{more}");
    }
    std::fs::create_dir(project.path("other")).unwrap();
    std::fs::rename(project.path("cache/A10"), project.path("other/A1")).unwrap();
    let run = project.run(&["import", "triton", "cache", "other", "--constant", "A1:BLOCK=512"]);
    run.assert_refused("two folders of one name");
    assert!(run.stderr.contains("`cache/A1`, `other/A1`"), "{}", run.stderr);
    let constants = ["--constant", "cache/A1:BLOCK=512", "--constant", "other/A1:BLOCK=1024"];
    project.run(&[["import", "triton", "cache", "other"].as_slice(), &constants].concat()).assert_ok();
}

#[test]
fn folders_of_any_name_can_be_remarked_on() {
    let project = cache(&[Compile { folder: "A\n[plugin]\n\u{7f}", ..USUAL }]);
    let (remarks, text) = imported(&project, &["BLOCK=1024"]);
    assert!(remarks.contains("in `A [plugin]  ` has that size"), "{remarks}");
    let run = checked(&project, &text);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn a_value_that_is_no_size_is_remarked_on() {
    let project = cache(&[USUAL]);
    let (remarks, _) = imported(&project, &["BLOCK=1024"]);
    let expected =
        "`BLOCK` is specified as 1024, but no `tl.arange` in `AAAA` has that size: the sizes are 512";
    assert!(remarks.contains(expected), "{remarks}");
    // Impossible sizes prove nothing; nor do booleans, floats and 1.
    let group = "    %c = arith.constant 132 : i32 loc(#loc)\n";
    let project = cache(&[Compile { more: group, ..USUAL }]);
    let constants = ["BLOCK=512", "SMS=132", "EVEN=True", "SCALE=0.5", "stride=1", "KIND=relu"];
    assert!(!imported(&project, &constants).0.contains("is specified as"));
    let (remarks, _) = imported(&project, &["BLOCK=512", "SMS=108"]);
    assert!(remarks.contains("`SMS` is specified as 108, but no number in `AAAA` equals it"), "{remarks}");
}

#[test]
fn shared_memory_is_what_can_be_had() {
    let compile =
        |folder, arch, shared: u32| Compile { folder, arch, json: json!({ "shared": shared }), ..USUAL };
    // 8.6 and 12.0 have 99 KiB.
    for arch in [86, 120] {
        let project = cache(&[compile("OLD", 80, 131_072), compile("NEW", arch, 65536)]);
        let (_, text) = imported(&project, &["BLOCK=512"]);
        let run = checked(&project, &format!("{text}\n[compile]\ntargets = [\"sm_80\", \"sm_{arch}\"]\n"));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{arch}: {}", run.stdout);
    }
}

#[test]
fn scratch_parameters_are_those_that_the_code_has() {
    // Triton 3.1 adds none, 3.2 and 3.3 one, later ones two.
    for (scratch, added) in
        [(0, ""), (1, "global_scratch = 0\n"), (2, "global_scratch = 0\nprofile_scratch = 0\n")]
    {
        let project = cache(&[Compile { scratch, ..USUAL }]);
        let (_, text) = imported(&project, &["BLOCK=512"]);
        assert!(text.contains(&format!("n = \"VALUE_OF_n\"\n{added}BLOCK = ")), "{scratch}: {text}");
        let run = checked(&project, &text);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{scratch}: {}", run.stdout);
    }
    let words = ["has 6 parameters", "`k.ttir` has 3", "at most 2"];
    refused(&cache(&[Compile { scratch: 3, ..USUAL }]), &[], &words);
    let few = cache(&[Compile { scratch: 0, ..USUAL }]);
    few.edit("cache/AAAA/k.ptx", ",\n    .param .u32 k_2", "");
    refused(&few, &[], &["has 2 parameters", "`k.ttir` has 3"]);
    let project = cache(&[USUAL, Compile { folder: "BBBB", arch: 90, scratch: 0, ..USUAL }]);
    let words = ["`AAAA` takes 2 (Triton 3.9.0)", "`BBBB` takes 0", "one Triton version"];
    refused(&project, &["BLOCK=512"], &words);
    let nulls = json!({ "global_scratch_size": null, "profile_scratch_size": null, "launch_pdl": null, "num_ctas": null });
    let (_, text) = imported(&cache(&[Compile { json: nulls, ..USUAL }]), &["BLOCK=512"]);
    assert_eq!(text, imported(&cache(&[USUAL]), &["BLOCK=512"]).1);
}

#[test]
fn outputs_that_nobody_asked_for_do_not_matter() {
    let hip = |kernel| Compile {
        folder: "HIP",
        kernel,
        json: json!({ "target": {"backend": "hip", "arch": "gfx942", "warp_size": 64}, "shared": null }),
        ..USUAL
    };
    // Triton 2 wrote no target.
    let old = |kernel| Compile { folder: "OLD", kernel, json: json!({ "target": null }), ..USUAL };
    let alone = imported(&cache(&[USUAL]), &["BLOCK=512"]).1;
    for others in [vec![hip("other"), old("other")], vec![hip("k")], vec![old("other")]] {
        let project = cache(&others);
        USUAL.write(&project);
        let (remarks, text) = imported(&project, &["BLOCK=512"]);
        let outputs =
            if others.len() == 1 { "1 output is ignored, such as" } else { "2 outputs are ignored, such as" };
        assert!(remarks.contains(outputs), "{remarks}");
        let text: Vec<&str> = text.lines().filter(|line| !line.contains(" ignored, such as")).collect();
        assert_eq!(text, alone.lines().collect::<Vec<_>>());
        let named = ["import", "triton", "cache", "--kernel", "k", "--constant", "BLOCK=512"];
        project.run(&named).assert_ok();
    }
    let project = cache(&[USUAL, old("k")]);
    refused(&project, &[], &["OLD/k.json", "is not Triton metadata: invalid type: null"]);
    let words = ["HIP/k.json", "it is for `hip`, not for NVIDIA GPUs"];
    refused(&cache(&[hip("k")]), &[], &words);
    let project = cache(&[hip("k"), Compile { folder: "BBBB", kernel: "other", ..USUAL }]);
    let run = project.run(&["import", "triton", "cache", "--kernel", "k"]);
    assert!(run.stderr.contains("it is for `hip`"), "{}", run.stderr);
}

#[test]
fn all_versions_that_made_code_are_named() {
    let other = Compile { folder: "BBBB", arch: 90, json: json!({ "triton_version": "3.8.1" }), ..USUAL };
    let (_, text) = imported(&cache(&[USUAL, other]), &["BLOCK=512"]);
    assert!(text.contains("made_by = \"triton 3.8.1, 3.9.0\""), "{text}");
    let none = Compile { json: json!({ "triton_version": null }), ..USUAL };
    assert!(imported(&cache(&[none]), &["BLOCK=512"]).1.contains("made_by = \"triton\""));
}

#[test]
fn what_triton_says_of_code_decides_about_a_compile() {
    if std::env::var_os("CUBINDER_RUNTIME_LIBRARY").is_none() {
        skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
        return;
    }
    let project = cache(&[USUAL]);
    let (_, text) = imported(&project, &["BLOCK=512"]);
    checked(&project, &text).assert_ok();
    let compile = || {
        let arguments =
            ["compile", "filled.toml", "--name", "k", "--target", "compute_80", "--depfile", "k.d"];
        project.run(&arguments).assert_ok();
        String::from_utf8(project.read("k.d")).unwrap()
    };
    assert!(compile().contains(" cache/AAAA/k.ttir"), "{}", compile());
    std::fs::remove_file(project.path("cache/AAAA/k.ttir")).unwrap();
    assert!(!compile().contains("k.ttir"));
}

#[test]
fn a_parameter_that_was_none_is_said_to_be() {
    let project = cache(&[USUAL]);
    project.write("k.py", "@triton.jit\ndef k(x, y, n, bias, BLOCK: tl.constexpr):\n    pass\n");
    let (_, text) = imported(&project, &["BLOCK=512"]);
    let line =
        "\"bias == CONSTANT_bias\",    # a constant in this code: 1, None (then use `--constant bias=None`)";
    assert!(text.contains(line), "{text}");
    let (remarks, text) = imported(&project, &["BLOCK=512", "bias=None"]);
    assert!(remarks.contains("bias is \"None\"") && !text.contains("CONSTANT_bias"), "{text}");
    let run = checked(&project, &text);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn clusters_are_those_that_a_launch_can_have() {
    let of = |ctas: u32| Compile { arch: 90, json: json!({ "num_ctas": ctas }), ..USUAL };
    imported(&cache(&[of(8)]), &[]);
    for ctas in [0, 16] {
        let words =
            [format!("a cluster of {ctas} blocks (num_ctas)"), "a cluster must have 1 to 8".to_owned()];
        refused(&cache(&[of(ctas)]), &[], &[&words[0], &words[1]]);
    }
}

const TWICE: &str = "    %w = arith.addf %v, %v : f32 loc(#loc)\n";

#[test]
fn code_of_an_older_source_is_remarked_on() {
    let half = |more| Compile { folder: "HALF", element: "f16", more, ..USUAL };
    let folded = |more| Compile { folder: "FOLDED", has_n: false, more, ..USUAL };
    let doubt = "differ in more than types and constants";
    let remarks = |all: &[Compile<'_>]| imported(&cache(all), &["BLOCK=512"]).0;
    for all in [[USUAL, half(TWICE)], [USUAL, folded(TWICE)]] {
        let found = remarks(&all);
        assert!(found.contains(doubt) && found.contains("compiled from an older source"), "{found}");
        assert!(found.contains("`AAAA`") && found.contains(&format!("`{}`", all[1].folder)), "{found}");
    }
    // Conversions depend on types, integer arithmetic on constants.
    let conversion = "    %w = arith.extf %v : f16 to f32 loc(#loc)\n";
    let integers = "    %c = arith.constant 1 : i32 loc(#loc)\n    %m = arith.muli %c, %c : i32 loc(#loc)\n";
    for all in [[USUAL, half(conversion)], [USUAL, folded(integers)]] {
        assert!(!remarks(&all).contains(doubt));
    }
    assert!(remarks(&[USUAL, half(integers)]).contains(doubt));
    let whole = Compile { folder: "WHOLE", element: "i32", more: TWICE, ..USUAL };
    assert!(!remarks(&[USUAL, whole]).contains(doubt));
    let moved = remarks(&[USUAL, Compile { line: 7, ..half("") }]);
    assert!(moved.contains("was defined at `k.py:2` in `AAAA`, and at `k.py:7` in `HALF`"), "{moved}");
    assert!(!remarks(&[USUAL, half("")]).contains("was defined"));
    // Different code may come from an older source.
    let project = cache(&[USUAL, Compile { folder: "BBBB", line: 7, more: TWICE, ..USUAL }]);
    refused(&project, &["BLOCK=512"], &["for different values", "and at `k.py:7` in `BBBB`"]);
}

#[test]
fn options_that_change_the_code_are_no_constants() {
    let of = |folder, arch, json| Compile { folder, arch, json, ..USUAL };
    let fused = |folder, arch, is_fused: bool| of(folder, arch, json!({ "enable_fp_fusion": is_fused }));
    let both = "`enable_fp_fusion` is false in `BBBB`, and true in `AAAA`";
    let project = cache(&[fused("AAAA", 80, true), fused("BBBB", 80, false)]);
    refused(&project, &["BLOCK=512"], &["the outputs were compiled with different options", both]);
    // If operations differ, constants may, too.
    let other = Compile { more: TWICE, ..fused("BBBB", 80, false) };
    refused(
        &cache(&[fused("AAAA", 80, true), other]),
        &["BLOCK=512"],
        &["for different values of tl.constexpr", both],
    );
    let again = of("BBBB", 80, json!({ "triton_version": "3.8.0" }));
    let versions = "`triton_version` is \"3.8.0\" in `BBBB`, and \"3.9.0\" in `AAAA`";
    refused(&cache(&[USUAL, again]), &["BLOCK=512"], &["with different options", versions]);
    let project = cache(&[fused("AAAA", 80, true), fused("BBBB", 90, false)]);
    let (remarks, _) = imported(&project, &["BLOCK=512"]);
    assert!(remarks.contains(both), "{remarks}");
    // Ignores keys determined by the architecture, library paths, and missing keys.
    let library = |path: &str| json!([["libdevice", path]]);
    let one = json!({ "arch": "sm80", "tmem_size": 0, "extern_libs": library("/a/libdevice.10.bc"), "debug": false });
    let other = json!({ "arch": "sm90", "tmem_size": 4, "extern_libs": library("/b/libdevice.10.bc") });
    let (remarks, _) = imported(&cache(&[of("AAAA", 80, one), of("BBBB", 90, other)]), &["BLOCK=512"]);
    assert!(!remarks.contains(" is specified as ") && !remarks.contains("`BBBB`"), "{remarks}");
}
