use std::fs;
use std::path::Path;

use crate::support::{Project, Run};
use cubinder_model::container::{self, Container};
use cubinder_model::{Bundle, TargetKind};
use cubinder_skip::skip;
use serde_json::Value;

fn with_ptx() -> Option<Project> {
    let project = Project::without_tools();
    if project.runtime_library.is_none() {
        skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
        return None;
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    project.write("ok/native_code.toml", fs::read(data.join("ok/native_code.toml")).unwrap());
    project.write("code/native.ptx", fs::read(data.join("code/native.ptx")).unwrap());
    Some(project)
}

const MANIFEST: &str = "ok/native_code.toml";

fn json(run: &Run) -> Value {
    serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap()
}

fn bundle(project: &Project, library: &str) -> Bundle {
    let bytes = project.read(library);
    let mut found = container::scan(&bytes).filter_map(|(_, found)| match found.ok()?.container {
        Container::Bundle(bundle) => Some(bundle),
        _ => None,
    });
    found.next().unwrap()
}

fn inspected_in_an_engine(project: &Project, text: &[u8]) -> Value {
    project.write("engine.plan", [b"ftrt\0\x01\xff".as_slice(), text, b"\0\xfe", text, b"\0"].concat());
    let run = project.run(&["inspect", "--json", "engine.plan"]);
    run.assert_ok();
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn ptx_of_another_compiler_keeps_all_but_its_name() {
    let Some(project) = with_ptx() else { return };
    let run = project.compile(&[MANIFEST, "--out-dir", "out"]);
    assert!(run.stdout.contains("TensorRT launches all kernels (experimental"), "{}", run.stdout);
    assert!(run.stdout.contains("for the builder; TensorRT stores the code"), "{}", run.stdout);
    let bundle = bundle(&project, "out/libnative_code.so");
    let [object] = bundle.code.as_slice() else { panic!("{:?}", bundle.code) };
    let raw = object.raw().unwrap();
    let given = String::from_utf8(project.read("code/native.ptx")).unwrap();
    let expected = given.replace(".entry scale_in_order(", ".entry cubinder_own__elsewhere__scale(");
    assert_eq!(String::from_utf8(raw.to_vec()).unwrap(), expected);
    assert_eq!((object.target.kind, object.target.to_string().as_str()), (TargetKind::Native, "native_80"));
    let report = inspected_in_an_engine(&project, &raw);
    let [kernel] = report["native"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(
        (&kernel["op"], &kernel["target"], kernel["offsets"].as_array().unwrap().len()),
        (&Value::from("elsewhere::scale"), &Value::from("compute_80"), 2)
    );
}

#[test]
fn who_launches_is_said_wherever_a_user_meets_it() {
    let Some(project) = with_ptx() else { return };
    let result = json(&project.compile(&[MANIFEST, "--out-dir", "out", "--json"]));
    assert_eq!((&result["native"], &result["plugins"]), (&Value::from(1), &Value::from(1)));
    let library = project.run(&["inspect", "out/libnative_code.so", "--verbose"]);
    for words in ["for the builder; TensorRT stores the code", "TensorRT launches its kernels (experimental)"]
    {
        assert!(library.stdout.contains(words), "{}", library.stdout);
    }
    for file in [MANIFEST, "out/libnative_code.so"] {
        let eval = project.run(&["eval", file, "--shape", "x=3x5"]);
        assert!(eval.stdout.contains("note: TensorRT launches the kernel (experimental)"), "{}", eval.stdout);
    }
    // Serves all GPUs from the lowest on.
    let eval = project.run(&["eval", "out/libnative_code.so", "--shape", "x=3x5", "--arch", "sm_90"]);
    assert!(!eval.stdout.contains("rejected") && eval.stdout.contains("native_80"), "{}", eval.stdout);
    // Diagnostics depend on the route; the command line overrides the manifest.
    project.write(
        "ok/much.toml",
        String::from_utf8(project.read(MANIFEST))
            .unwrap()
            .replace("ceil_div(numel(y), 256)", "x.rank + 1\", \"1 + x.rank * 99999"),
    );
    for (route, words, told) in [
        ("native", "TensorRT launches it without a check", " deferred to engine build"),
        ("plugin", "such launches are rejected at run time", " deferred to run time"),
    ] {
        let run = project.run(&["check", "ok/much.toml", "--route", route]);
        assert!(run.stderr.contains(words), "{route}: {}", run.stderr);
        assert!(run.stdout.contains(told), "{route}: {}", run.stdout);
        let eval = project.run(&["eval", MANIFEST, "--shape", "x=3x5", "--route", route]);
        assert_eq!(eval.stdout.contains("TensorRT launches the kernel (experimental)"), route == "native");
        let library = project.run(&["eval", "out/libnative_code.so", "--shape", "x=3x5", "--route", route]);
        library.assert_refused("--route");
    }
    let plugin = project.compile(&[MANIFEST, "--out-dir", "plugin", "--route", "plugin"]);
    assert!(!plugin.stdout.contains("TensorRT launches"), "{}", plugin.stdout);
    assert_eq!(bundle(&project, "plugin/libnative_code.so").code[0].target.kind, TargetKind::Ptx);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(project) = with_ptx() else { return };
    let run = project.run(&["compile", MANIFEST, "--out-dir", "out", "--embed"]);
    run.assert_refused("--embed");
    assert!(run.stderr.contains("error[C1101]: no code to embed"), "{}", run.stderr);
    assert!(!project.path("out").exists());
    let run = project.run(&["compile", MANIFEST, "--route", "both"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("expected `plugin` or `native`"), "{}", run.stderr);
}

#[test]
fn ptx_that_asks_for_clusters_is_refused() {
    let Some(project) = with_ptx() else { return };
    let text = String::from_utf8(project.read("code/native.ptx")).unwrap();
    let (head, body) = text.split_once("\n{").unwrap();
    let text = format!("{head}\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n{{{body}");
    project.write("code/native.ptx", text.replace(".target sm_80", ".target sm_90"));
    let manifest = String::from_utf8(project.read(MANIFEST)).unwrap();
    project.write(MANIFEST, manifest.replace("_80", "_90"));
    let run = project.run(&["compile", MANIFEST, "--out-dir", "out"]);
    run.assert_refused("clusters");
    assert!(run.stderr.contains("error[C1101]"), "{}", run.stderr);
    assert!(!project.path("out").exists());
}

#[test]
fn a_thinned_library_says_what_it_is() {
    let Some(project) = with_ptx() else { return };
    project.compile(&[MANIFEST, "--out-dir", "out"]);
    let run = project.run(&["thin", "out/libnative_code.so", "--arch", "sm_90", "--out-dir", "thin"]);
    run.assert_ok();
    assert!(run.stdout.contains("for the builder; TensorRT stores the code"), "{}", run.stdout);
    assert_eq!(bundle(&project, "thin/libnative_code.so"), bundle(&project, "out/libnative_code.so"));
    let run = project.run(&["thin", "out/libnative_code.so", "--arch", "sm_75", "--out-dir", "thin"]);
    run.assert_refused("no code of elsewhere::scale for sm_75");
    assert!(run.stderr.contains("also compile it for that GPU: `--target sm_75`"), "{}", run.stderr);
}

#[test]
fn a_library_has_plugins_of_both_kinds() {
    let Some(project) = with_ptx() else { return };
    project.write("ok/other.toml", {
        let text = String::from_utf8(project.read(MANIFEST)).unwrap();
        text.replace("namespace = \"elsewhere\"", "namespace = \"other\"").replace("route = \"native\"", "")
    });
    let both = [MANIFEST, "ok/other.toml", "--name", "both", "--out-dir", "out"];
    let run = project.compile(&both);
    assert!(run.stdout.contains("TensorRT launches the kernels of 1 plugin (experimental"), "{}", run.stdout);
    let result = json(&project.compile(&[&both[..], &["--json", "--embed"]].concat()));
    assert_eq!((&result["native"], &result["plugins"]), (&Value::from(1), &Value::from(2)));
}

#[test]
fn kernels_of_a_source_become_part_of_another() {
    let Some(project) = Project::new() else { return };
    project.compile(&["--route", "native", "--out-dir", "out", "--target", "sm_90,compute_80"]);
    let bundle = bundle(&project, "out/libscale.so");
    let plugin = &bundle.plugins[0];
    let symbol = cubinder_launch::native::symbol(&plugin.namespace, &plugin.name);
    let launches = plugin.variants.iter().flat_map(cubinder_model::Variant::launches);
    for code in launches.flat_map(|launch| &launch.code) {
        assert_eq!((code.target.to_string().as_str(), &code.symbol), ("native_80", &symbol));
    }
    let raw = bundle.code[0].raw().unwrap();
    let report = inspected_in_an_engine(&project, &raw);
    let op = &report["native"][0]["op"];
    assert_eq!(op, &Value::from(format!("{}::{}", plugin.namespace, plugin.name)));
}

#[test]
fn blocks_that_differ_have_kernels_of_their_own() {
    let Some(project) = Project::new() else { return };
    project.write(
        "two.cu",
        "__global__ void two(const float* x, float* y, int n)\n{\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        y[i] = x[i];\n}\n",
    );
    project.write(
        "two.toml",
        r#"
schema = 1

[plugin]
name = "two"
namespace = "sample"

[[inputs]]
name = "x"
type = "f32"
limits = { numel = "..=1000000" }

[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"

[[variants]]
id = 1
guard = "numel(y) < 1024"
constants = { BLOCK = 128 }

[[variants]]
id = 2
guard = "numel(y) < 4096"
constants = { BLOCK = 512 }

[[variants]]
id = 3
constants = { BLOCK = 512 }

[[launches]]
source = "two.cu"
kernel = "two"
grid = ["ceil_div(numel(y), BLOCK)"]
block = ["BLOCK"]
args = { x = "x", y = "y", n = "numel(y)" }
"#,
    );
    project.compile(&["two.toml", "--route", "native", "--out-dir", "out", "--target", "sm_80"]);
    let bundle = bundle(&project, "out/libtwo.so");
    let code = |id: usize| &bundle.plugins[0].variants[id - 1].launch(0).unwrap().code[0];
    let threads = |id: usize| bundle.code[code(id).code as usize].kernels[0].max_threads;
    assert_eq!([1, 2, 3].map(threads), [Some(128), Some(512), Some(512)]);
    assert_eq!(code(2).code, code(3).code);
    // Static memory counts against the default limit, so code objects contain its size.
    let source = String::from_utf8(project.read("two.cu")).unwrap();
    let tiled =
        source.replace("y[i] = x[i];", "tile[threadIdx.x % 64] = x[i], y[i] = tile[threadIdx.x % 64];");
    project.write(
        "two.cu",
        tiled.replace("{\n    const", "{\n    __shared__ volatile float tile[64];\n    const"),
    );
    project.compile(&["two.toml", "--route", "native", "--out-dir", "tiled", "--target", "sm_80"]);
    let tiled = self::bundle(&project, "tiled/libtwo.so");
    let declared =
        |bundle: &Bundle| bundle.code.iter().map(|code| code.kernels[0].shared_bytes).collect::<Vec<_>>();
    assert_eq!((declared(&bundle), declared(&tiled)), (vec![Some(0); 2], vec![Some(256); 2]));
    let text = String::from_utf8(project.read("two.toml")).unwrap();
    project.write("when.toml", text.replace("args = {", "when = \"numel(x) > 4\"\nargs = {"));
    for (route, words) in
        [("native", "TensorRT uses the uninitialized memory"), ("plugin", "such launches are rejected")]
    {
        let run = project.run(&["check", "when.toml", "--route", route]);
        assert!(
            run.stderr.contains("warning[C0306]") && run.stderr.contains(words),
            "{route}: {}",
            run.stderr
        );
    }
}

/// The limit is 48 KiB on every target.
#[test]
fn shared_memory_is_what_a_block_gets_unasked() {
    let Some(project) = with_ptx() else { return };
    let manifest = String::from_utf8(project.read(MANIFEST)).unwrap();
    project.write(
        "ok/shared.toml",
        manifest.replace("block = [256]", "block = [256]\nshared_bytes = \"x.shape[0] * 1024\""),
    );
    let refused = |route: &str, rows: u32| {
        let shape = format!("x={rows}x1");
        let run = project.run(&["eval", "ok/shared.toml", "--shape", &shape, "--route", route]);
        assert_eq!(
            run.code == Some(1),
            run.stdout.contains("dynamic shared memory in bytes is"),
            "{}",
            run.stdout
        );
        assert_eq!(
            run.code == Some(1),
            run.stdout.contains("does not request more than 49152 bytes of shared memory")
        );
        run.code == Some(1)
    };
    assert_eq!([refused("native", 48), refused("native", 49), refused("plugin", 49)], [false, true, false]);
    let check = project.run(&["check", "ok/shared.toml", "--verbose"]);
    assert!(
        check.stderr.contains("warning[C0303]") && check.stderr.contains("0 to 49152 bytes"),
        "{}",
        check.stderr
    );
}

#[test]
fn code_for_one_chip_alone_is_told() {
    let Some(project) = with_ptx() else { return };
    let text = String::from_utf8(project.read("code/native.ptx")).unwrap();
    let manifest = String::from_utf8(project.read(MANIFEST)).unwrap();
    let said = |target: &str| {
        project.write("code/native.ptx", text.replace("sm_80", &format!("sm_{target}")));
        project.write(MANIFEST, manifest.replace("_80", &format!("_{target}")));
        let run = project.compile(&[MANIFEST, "--out-dir", "out"]);
        run.stdout.lines().find(|line| line.contains(" run only on ")).map(str::to_owned)
    };
    assert_eq!(said("90"), None);
    for (target, words) in [
        ("90a", "run only on GPUs of compute capability 9.0"),
        ("100f", "run only on the GPU family of compute capability 10.0"),
    ] {
        let line = said(target).unwrap();
        assert!(line.contains(&format!("sm_{target}")) && line.contains(words), "{line}");
    }
}
