use std::fs;
use std::path::Path;

use cubinder_model::{Digest, container, provenance};
use cubinder_skip::skip;
use serde_json::Value;

use crate::support::Project;

fn told(project: &Project, file: &str) -> String {
    let run = project.run(&["inspect", "--provenance", file]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    run.stdout
}

fn attached(project: &Project, file: &str) -> (Vec<u8>, usize) {
    let bytes = project.read(file);
    let range = cubinder_library::read(&project.path(file)).unwrap().unwrap().range;
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    let segment = bytes[range].to_vec();
    let (_, length) = container::digest(&segment).unwrap();
    (segment, length)
}

#[test]
fn sources_headers_tables_and_options_are_named_with_their_digests() {
    let Some(project) = Project::new() else { return };
    let outside = project.outer("elsewhere/include/lib");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("far.cuh"), "// far\n").unwrap();
    let include = outside.parent().unwrap().display().to_string();
    project.edit(
        "cubinder.toml",
        "[library]",
        "[library]\ninclude = [\"include\"]\noptions = [\"--use_fast_math\"]",
    );
    project.write("include/own.cuh", "#include \"deeper.cuh\"\n");
    project.write("include/deeper.cuh", "#include <lib/far.cuh>\n#include <cuda_fp16.h>\n");
    project.write("include/unused.cuh", "// nobody includes it\n");
    project.write("manifests/window.bin", [0_u8; 8]);
    project.edit("kernels/scale.cu", "template", "#include \"own.cuh\"\ntemplate");
    project.edit("kernels/scale.cu", "* factor)", "* factor * manifest::window[index % 2])");
    let table = "[tables.window]\ntype = \"f32\"\nfile = \"window.bin\"\n\n[types]";
    project.edit("manifests/scale.toml", "[types]", table);
    project.compile(&["--include", &include, "--option=-DMODE=4"]);

    let text = told(&project, "build/libscale.so");
    assert!(!text.contains(&project.outer("").display().to_string()) && !text.contains("unused"), "{text}");
    let has = |line: String| assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    let digest = |file: &str| Digest::compute(&project.read(file));
    has(format!("  manifest manifests/scale.toml {}", digest("manifests/scale.toml")));
    has(format!("  source kernels/scale.cu {}", digest("kernels/scale.cu")));
    has("    options --use_fast_math -DMODE=4".to_owned());
    for file in ["include/own.cuh", "include/deeper.cuh", "manifests/window.bin"] {
        has(format!("    read {file} {}", digest(file)));
    }
    has(format!("    read <lib/far.cuh> {}", Digest::compute(b"// far\n")));
    assert!(
        text.contains(&format!("  cubinder {}, format 2\n  NVRTC 1", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    assert_eq!(text.matches("    read ").count(), 4, "CUDA's own headers are not listed: {text}");
    assert!(text.contains("\n    CUDA headers: "), "but their presence is recorded: {text}");

    let run = project.run(&["inspect", "--provenance", "--json", "build/libscale.so"]);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    let bundle = &json["containers"][0];
    let code = |value: &Value| (value["target"].to_string(), value["digest"].to_string());
    let mut all: Vec<_> = bundle["code"].as_array().unwrap().iter().map(code).collect();
    let origins = bundle["provenance"]["origins"].as_array().unwrap();
    let mut made: Vec<_> = origins.iter().flat_map(|it| it["code"].as_array().unwrap()).map(code).collect();
    all.sort();
    made.sort();
    assert_eq!(made, all);
    let source = &origins[0];
    assert_eq!(
        (&source["kind"], &source["read_count"], &source["reads_more"]),
        (&"source".into(), &4.into(), &false.into())
    );
    assert!(
        source["headers_count"].as_u64().unwrap() >= 2 && source["headers_digest"].is_string(),
        "{source}"
    );
    assert_eq!(source["options"], serde_json::json!(["--use_fast_math", "-DMODE=4"]));
}

#[test]
fn a_changed_comment_is_another_record_of_the_same_bundle() {
    let Some(project) = Project::new() else { return };
    project.compile(&[]);
    let (before, length) = attached(&project, "build/libscale.so");
    project.edit("kernels/scale.cu", "Multiplies", "Multiplied");
    project.compile(&[]);
    let (after, end) = attached(&project, "build/libscale.so");
    assert!(before[..length] == after[..end], "the code is the same, and so is the bundle with its digest");
    assert!(before[length..] != after[end..], "the source is another");
}

#[test]
fn imported_code_is_named_with_its_files() {
    let project = Project::without_tools();
    if project.runtime_library.is_none() {
        return skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    for file in ["scale.sm_80.cubin", "scale.sm_90.cubin", "scale.ptx"] {
        project.write(&format!("code/{file}"), fs::read(data.join("code").join(file)).unwrap());
    }
    project.write("manifests/code.toml", fs::read(data.join("ok/code.toml")).unwrap());
    let compile = |targets: &str, out: &str| {
        let arguments = ["compile", "manifests/code.toml", "--name", "code", "--nvrtc", "nowhere"];
        project.run(&[&arguments, ["--target", targets, "--out-dir", out].as_slice()].concat()).assert_ok();
    };
    compile("sm_80,sm_90", "all");
    let text = told(&project, "all/libcode.so");
    for file in ["scale.sm_80.cubin", "scale.sm_90.cubin"] {
        let digest = Digest::compute(&project.read(&format!("code/{file}")));
        assert!(
            text.contains(&format!("imported code/{file} {digest}\n    by NVRTC 13.0\n    code sm_")),
            "{text}"
        );
    }
    assert!(!text.contains("\n  NVRTC"), "it compiled nothing: {text}");
    compile("sm_90", "direct");
    project.run(&["thin", "all/libcode.so", "--arch", "sm_90", "--out-dir", "thin"]).assert_ok();
    assert!(project.read("thin/libcode.so") == project.read("direct/libcode.so"));
    assert!(!told(&project, "thin/libcode.so").contains("sm_80"));
}

#[test]
fn what_says_nothing_is_told_so_and_works_as_before() {
    let project = Project::without_tools();
    let compat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/compat/2");
    for name in ["bundle", "node"] {
        let bytes = fs::read(compat.join(name)).unwrap();
        let (digest, _) = container::digest(&bytes).unwrap();
        let mut newer = provenance::write(&provenance::Provenance::default(), digest);
        newer[10] = 9;
        let sealed = {
            let mut hashed = newer[..16].to_vec();
            hashed.extend(&newer[24..]);
            Digest::compute(&hashed).shortened().0
        };
        newer[16..24].copy_from_slice(&sealed);
        for (file, contents) in [("old", bytes.clone()), ("newer", [bytes.clone(), newer].concat())] {
            project.write(file, contents);
            let text = told(&project, file);
            assert!(
                text.contains("no provenance: it is from a version before provenance existed, or newer"),
                "{name} {file}: {text}"
            );
            project.run(&["inspect", file]).assert_ok();
        }
        let other = provenance::write(&provenance::Provenance::default(), Digest::compute(b"other"));
        project.write("wrong", [bytes, other].concat());
        let run = project.run(&["inspect", "--provenance", "wrong"]);
        assert_eq!(run.code, Some(1), "{}", run.stdout);
        assert!(run.stdout.contains("it belongs to another bundle or node"), "{}", run.stdout);
    }
}
