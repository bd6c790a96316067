use std::path::Path;

use crate::support::{self, Project};
use serde_json::Value;

fn with_sequences(project: &Project) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    for (folder, place, names) in [
        ("ok", "manifests", ["steps.toml", "cluster.toml", "cooperative.toml", "programmatic.toml"]),
        ("kernels", "kernels", ["sum.cu", "cluster.cu", "cooperative.cu", "programmatic.cu"]),
    ] {
        for name in names {
            let text = std::fs::read(data.join(folder).join(name)).unwrap();
            project.write(&format!("{place}/{name}"), text);
        }
    }
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn every_step_is_shown() {
    let project = Project::without_tools();
    with_sequences(&project);
    let eval = |arguments: &[&str]| {
        let mut command = project.command(&[&["eval"], arguments].concat());
        command.env("CUBINDER_NVRTC", "/srv/none").env_remove("CUDA_HOME");
        support::Run::of(command.output().unwrap())
    };
    let shown: Vec<String> = [
        ["manifests/steps.toml", "--type", "T=f32", "--shape", "x=100"].as_slice(),
        &["manifests/steps.toml", "--type", "T=f32", "--shape", "x=100000"],
        &["manifests/cluster.toml", "--shape", "x=1000"],
        &["manifests/programmatic.toml", "--shape", "x=0"],
    ]
    .iter()
    .map(|arguments| {
        let run = eval(arguments);
        format!("$ cubinder eval {}\n{}{}", arguments.join(" "), run.stdout, run.stderr)
    })
    .collect();
    insta::assert_snapshot!("eval", project.plain(&shown.join("\n")));
    let run = eval(&["manifests/steps.toml", "--type", "T=f32", "--shape", "x=100000", "--json"]);
    let evaluation = &json(&run.stdout)["evaluations"][0];
    let fields = ["scratch", "workspace_bytes", "steps"].map(|field| evaluation[field].clone());
    insta::assert_snapshot!("eval_json", serde_json::to_string_pretty(&fields).unwrap());
}

#[test]
fn sequences_are_compiled_and_inspected() {
    let Some(project) = Project::new() else { return };
    with_sequences(&project);
    let manifests = [
        "manifests/steps.toml",
        "manifests/cooperative.toml",
        "manifests/programmatic.toml",
        "manifests/cluster.toml",
    ];
    let run = project.run(
        &[&["compile", "--name", "s", "--target", "sm_90", "--out-dir", "out"], &manifests[..]].concat(),
    );
    run.assert_ok();
    let summary = project.run(&["inspect", "out/libs.so"]);
    summary.assert_ok();
    let rows = ["com.example::sum", "normalize", "square_and_add", "exchange"];
    for (row, line) in rows.iter().zip(summary.stdout.lines().skip(4)) {
        assert!(line.starts_with(row) && line.contains("sm_90"), "{}", summary.stdout);
    }
    assert!(summary.stdout.contains("\nruns on: GPUs of compute capability 9.0\n"), "{}", summary.stdout);
    let bundle = summary.stdout.split("bundle ").nth(1).unwrap().split_whitespace().next().unwrap();
    for (name, is_shown) in [("exchange", false), (bundle, true)] {
        let one = project.run(&["inspect", "out/libs.so", "--plugin", name]);
        one.assert_ok();
        assert!(one.stdout.contains("in clusters of 2 x 1 x 1"), "{}", one.stdout);
        assert_eq!(one.stdout.contains("square"), is_shown, "{}", one.stdout);
    }
    let none = project.run(&["inspect", "out/libs.so", "--plugin", "sums"]);
    none.assert_refused("no plugin or node `sums` in `out/libs.so`");
    let run = project.run(&["inspect", "out/libs.so", "--plugin", bundle]);
    run.assert_ok();
    let told = |line: &&str| line.starts_with("  plugin ") || line.starts_with("    ");
    let steps: Vec<&str> = run.stdout.lines().filter(told).collect();
    insta::assert_snapshot!("inspect", steps.join("\n"));
}

#[test]
fn zeros_of_two_signs_are_not_alike() {
    let Some(project) = Project::new() else { return };
    project
        .write("kernels/zero.cu", "__global__ void zero(const float* x, float* y) { y[0] = manifest::Z; }");
    project.write(
        "manifests/zero.toml",
        "schema = 1\n[plugin]\nname = \"zero\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\
         [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"[1]\"\n\
         [[variants]]\nid = 1\nguard = \"numel(x) > 1000\"\nconstants = { Z = 0.0 }\n\
         [[variants]]\nid = 2\nconstants = { Z = -0.0 }\n\
         [[launches]]\nsource = \"../kernels/zero.cu\"\nkernel = \"zero\"\ngrid = [1]\nblock = [1]\n\
         args = { x = \"x\", y = \"y\" }\n",
    );
    let arguments = ["compile", "--name", "z", "--target", "sm_90", "--message-format", "json"];
    let run = project.run(&[&arguments[..], &["manifests/zero.toml"]].concat());
    let result = json(run.stdout.lines().last().unwrap());
    assert_eq!(result["code_objects"], 2, "{}{}", run.stdout, run.stderr);
}

#[test]
fn what_is_alike_is_compiled_once() {
    let Some(project) = Project::new() else { return };
    project.write(
        "kernels/twice.cu",
        "__global__ void twice(const float* x, float* y, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }",
    );
    let manifest = |variants: &str, launches: usize| {
        let launch = "[[launches]]\nsource = \"../kernels/twice.cu\"\nkernel = \"twice\"\ngrid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]\nargs = { x = \"x\", y = \"y\", n = \"numel(y)\" }\n";
        format!(
            "schema = 1\n[plugin]\nname = \"twice\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\nlimits = {{ numel = \"..=1000000\" }}\n\
             [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n{variants}{}",
            launch.repeat(launches)
        )
    };
    let guarded = "[[variants]]\nid = 1\nguard = \"numel(x) > 1000\"\n[[variants]]\nid = 2\n";
    for (variants, launches, units) in [
        ("", 1, 1),
        ("", 3, 1),
        (guarded, 2, 1),
        (
            "[[variants]]\nid = 1\nguard = \"numel(x) > 1000\"\nconstants = { A = 1 }\n[[variants]]\nid = 2\nconstants = { A = 2 }\n",
            1,
            1,
        ),
    ] {
        project.write("manifests/twice.toml", manifest(variants, launches));
        let run = project.run(&[
            "compile",
            "--name",
            "t",
            "--target",
            "sm_80",
            "--target",
            "sm_90",
            "--out-dir",
            "out",
            "--no-cache",
            "--message-format",
            "json",
            "manifests/twice.toml",
        ]);
        let result = json(run.stdout.lines().last().unwrap());
        assert_eq!(result["result"], "compiled", "{}", run.stdout);
        // One call for parameters, one for each target's code.
        assert_eq!(result["nvrtc_calls"], units * 3, "{variants}{launches}");
        assert_eq!(result["code_objects"], units.min(1) * 2, "{variants}{launches}");
    }
}
