mod aliases;
mod containers;
mod kernels;
mod untyped;

use crate::support::{Project, Run};

const MANIFEST: &str = r#"schema = 1

[plugin]
name = "tile_plugin"
namespace = "test"
version = "2"
require = [{ expr = "len(pads) == 2", message = "`pads` must hold one pair" }]

[attributes.pads]
type = "i32[]"

[attributes.scale]
type = "f32"
default = 0.5

[[inputs]]
name = "x"
type = "T"
rank = "1..=4"
limits = { dims = "1..=65536" }

[[outputs]]
name = "y"
type = "T"
shape = "[x.shape[i] + (pads[0] + pads[1] if i == x.rank - 1 else 0) for i in range(x.rank)]"

[types]
T = ["f32", "f16"]

[constants]
BLOCK = 128

[[variants]]
id = 1
constants = { VEC = 4 }
guard = "y.shape[-1] % VEC == 0 and aligned(x, 16) and aligned(y, 16)"

[[variants]]
id = 7
constants = { VEC = 1 }

[[launches]]
source = "../kernels/tile.cu"
kernel = "tile<T, VEC>"
grid = ["ceil_div(numel(y), BLOCK * VEC)", "1 if x.rank < 4 else x.shape[0]"]
block = ["BLOCK"]
shared_bytes = "BLOCK * 4"

[launches.args]
x = "x"
y = "y"
count = "numel(y)"
pads = "pads"
scale = "scale"
extents = "[get(x.shape, i, 1) for i in range(4)]"
"#;

const KERNEL: &str = "\
template <typename T, int VEC>
__global__ void tile(const T* x, T* y, int count, cubinder::array<int, 2> pads, float scale, cubinder::array<long long, 4> extents)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count / VEC)
        y[index] = x[index % extents[0]] * static_cast<T>(scale * pads[1]);
}
";

fn with(project: &Project) {
    project.write("manifests/tile.toml", MANIFEST);
    project.write("kernels/tile.cu", KERNEL);
}

fn bare() -> Project {
    let project = Project::without_tools();
    with(&project);
    project
}

fn eval(project: &Project, arguments: &[&str]) -> Run {
    let mut command = project.command(&[&["eval"], arguments].concat());
    command.env("CUBINDER_NVRTC", "/srv/none").env_remove("CUDA_HOME");
    Run::of(command.output().unwrap())
}

fn transcript(project: &Project, lines: &[&[&str]]) -> String {
    let run = |arguments: &&[&str]| {
        let run = eval(project, arguments);
        let all = [run.stdout.as_str(), run.stderr.as_str()].concat();
        format!("$ cubinder eval {}\n{all}exit code {}\n", arguments.join(" "), run.code.unwrap())
    };
    let text: Vec<String> = lines.iter().map(run).collect();
    project.plain(&text.join("\n"))
}

const FILE: &str = "manifests/tile.toml";

#[test]
fn the_whole_of_a_launch_is_shown() {
    let project = bare();
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &[FILE, "--shape", "x=10x3x32x32", "--attr", "pads=1,3"],
            &[FILE, "--shape", "x=[2, 33]", "--attr", "pads=[0,0]", "--attr", "scale=2", "--type", "T=f16"],
            &[FILE, "--shape", "x=8", "--attr", "pads=0,0", "--aligned", "y=8"],
        ]
    ));
}

#[test]
fn what_would_be_refused_is_said_in_the_words_of_the_run_time() {
    let project = bare();
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &[FILE, "--shape", "x=8", "--attr", "pads=1"],
            &[FILE, "--shape", "x=2x70000", "--attr", "pads=0,0"],
            &[FILE, "--shape", "x=scalar", "--attr", "pads=0,0"],
            &[FILE, "--shape", "x=8", "--attr", "pads=0,-9"],
            &[FILE, "--shape", "x=65536x65536x65536x65536", "--attr", "pads=0,0"],
        ]
    ));
}

#[test]
fn a_grid_of_0_says_why_nothing_is_launched() {
    let project = bare();
    let exact = "grid = [\"ceil_div(numel(y), BLOCK * VEC)\"";
    let rounded =
        MANIFEST.replace("1..=65536", "0..=65536").replace(exact, "grid = [\"numel(y) // (BLOCK * VEC)\"");
    project.write("manifests/tile.toml", &rounded);
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &[FILE, "--shape", "x=3x0", "--attr", "pads=0,0"],
            &[FILE, "--shape", "x=3x5", "--attr", "pads=0,0"],
            &[FILE, "--shape", "x=3x0", "--attr", "pads=1,0"],
        ]
    ));
}

#[test]
fn mistakes_of_the_command_line_are_told_together() {
    let project = bare();
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &[FILE],
            &[FILE, "--shape", "X=1", "--attr", "pad=1", "--type", "T=f61", "--aligned", "z=4"],
            &[FILE, "--shape", "y=1", "--attr", "pads=a", "--type", "U=f16"],
            &[FILE, "--shape", "x=1xa", "--attr", "pads"],
            &[FILE, "--shape", "x=1", "--attr", "pads=1,1", "--type", "x=f16", "--type", "y=f32"],
            &[FILE, "--shape", "x=1", "--attr", "pads=1,1", "--arch", "compute_90"],
            &[FILE, "--shape", "x=1", "--attr", "pads=1,1", "--plugin", "tile", "--node", "1"],
            &[FILE, "--shape", "x=1", "--attr", "pads=1,1", "--node", "1"],
            &["manifests/none.toml"],
            &["kernels/tile.cu"],
            &["manifests"],
        ]
    ));
}

#[test]
fn programs_get_json() {
    let project = bare();
    let run = eval(&project, &[FILE, "--shape", "x=2x6", "--attr", "pads=1,1", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    insta::assert_snapshot!(indented(&run.stdout));
    let run =
        eval(&project, &[FILE, "--shape", "x=2x6", "--attr", "pads=1,1", "--attr", "scale=inf", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let scale = &report["evaluations"][0]["attributes"][1];
    assert_eq!(scale["value"], serde_json::json!({"float": "inf"}), "{scale}");
    let run = eval(&project, &[FILE, "--shape", "x=2x6", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["severity"], &lines[1]["result"]), (&"error".into(), &"failed".into()));
    let run = eval(&project, &[FILE, "--shape", "x=2", "--attr", "pads=1", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &report["result"]), (Some(1), &"refused".into()));
}

fn indented(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

const CASES: &str = r#"manifest = "../manifests/tile.toml"

[[cases]]
name = "a right one"
shapes = { x = [2, 6] }
attributes = { pads = [1, 1], scale = 1 }
types = { T = "f16" }
expect = { shapes = { y = [2, 8] }, variant = 1, grid = [1], block = [128], shared_bytes = 512, args = { x = "x", count = 16, scale = 1, pads = [1, 1] } }

[[cases]]
name = "a refused one"
shapes = { x = [2] }
attributes = { pads = [1] }
expect = { error = "must hold one pair" }

[[cases]]
name = "one that lacks an attribute"
shapes = { x = [2] }
expect = { error = "missing attribute `pads` (`i32[]`), which has no default" }
"#;

#[test]
fn cases_are_held_against_what_they_expect() {
    let project = bare();
    project.write("tests/tile.toml", CASES);
    project.write(
        "tests/wrong.toml",
        r#"manifest = "../manifests/tile.toml"

[[cases]]
name = "everything differs"
shapes = { x = [2, 6] }
attributes = { pads = [1, 1] }
aligned = { x = 4 }
[cases.expect]
shapes = { y = [2, 7], z = [1] }
variant = 1
grid = [2]
block = [128, 2]
shared_bytes = 0
args = { count = 17, x = "y", cuont = 1 }
error = "of any kind"

[[cases]]
name = "refused against expectation"
shapes = { x = [2, 6] }
attributes = { pads = [1] }
expect = { variant = 1 }

[[cases]]
name = "refused for another reason"
shapes = { x = [2, 6] }
attributes = { pads = [1] }
expect = { error = "no such words" }

[[cases]]
name = "names that are not there"
shapes = { X = [2, 6] }
attributes = { pads = "1" }
types = { T = "f61" }
"#,
    );
    project.write(
        "tests/malformed.toml",
        "manifset = \"a\"\n[[cases]]\nshapes = { x = [2, -1] }\naligned = { x = 3 }\nexpect = { grid = [1, 2, 3, 4], gird = 1 }\n",
    );
    insta::assert_snapshot!(transcript(
        &project,
        &[
            &["--cases", "tests/tile.toml"],
            &["--cases", "tests/tile.toml", "--json"],
            &["--cases", "tests/wrong.toml"],
            &["--cases", "tests/malformed.toml"],
        ]
    ));
}

#[test]
fn strange_files_are_refused() {
    let project = bare();
    project.write("empty", "");
    project.write("text.toml", "x");
    project.write("tests/none.toml", "manifest = \"nowhere.toml\"\n[[cases]]\nname = \"a\"\n");
    for arguments in [
        &["empty"][..],
        &["text.toml"],
        &["/dev/zero"],
        &["--cases", "tests/none.toml"],
        &["--cases", "empty"],
    ] {
        eval(&project, arguments).assert_refused(&arguments.join(" "));
    }
}

const STRETCH: &str = r#"schema = 1

[plugin]
name = "stretch"

[[inputs]]
name = "x"
type = "f32"
rank = 1

[[inputs]]
name = "target"
shape_input = true
type = "i64"
rank = 0
values = "1..=4096"

[[outputs]]
name = "y"
type = "f32"
shape = "[target.values[0]]"

[[launches]]
source = "stretch.cu"
kernel = "stretch"
grid = ["min(device.sms, ceil_div(numel(y), 256))"]
block = [256]

[launches.args]
x = "x"
y = "y"
capability = "device.capability"
"#;

#[test]
fn what_shape_inputs_hold_and_the_device_is_asked_for() {
    let project = Project::without_tools();
    project.write("stretch.toml", STRETCH);
    let text = |arguments: &[&str]| {
        let run = eval(&project, &[&["stretch.toml"], arguments].concat());
        format!("{}{}", run.stdout, run.stderr)
    };
    let missing = text(&["--shape", "x=3"]);
    assert!(missing.contains("missing values of the shape input `target`"), "{missing}");
    assert!(
        missing.contains("depends on `device.sms`") && missing.contains("depends on `device.capability`"),
        "{missing}"
    );
    let asked = ["--shape", "x=3", "--values", "target=4000", "--arch", "sm_90", "--device", "sms=8"];
    let found = text(&asked);
    assert!(
        found.contains("8 x 1 x 1") && found.contains("capability  90  from the architecture"),
        "{found}"
    );
    let beyond = text(&["--shape", "x=3", "--values", "target=0", "--arch", "sm_90", "--device", "sms=8"]);
    let why = "value 0 of the shape input `target` is 0; the manifest limits it to 1..=4096";
    assert!(beyond.contains(why), "{beyond}");
    project.write(
        "cases.toml",
        "manifest = \"stretch.toml\"\n[[cases]]\nname = \"two\"\nshapes = { x = [3] }\nvalues = { target = [600] }\n\
         device = { sms = 2, capability = 90 }\nexpect = { shapes = { y = [600] }, grid = [2, 1, 1] }\n",
    );
    let cases = eval(&project, &["--cases", "cases.toml"]);
    assert!(cases.stdout.contains("1 as expected"), "{}{}", cases.stdout, cases.stderr);
}

#[test]
fn values_devices_and_formats_are_shown() {
    let project = bare();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    for name in ["shape_inputs", "devices", "formats", "in_place"] {
        let text = std::fs::read(data.join(format!("ok/{name}.toml"))).unwrap();
        project.write(&format!("ok/{name}.toml"), text);
    }
    let lines: [&[&str]; 4] = [
        &["ok/shape_inputs.toml", "--shape", "x=4x8", "--values", "target=6,9", "--values", "times=2"],
        &["ok/devices.toml", "--shape", "x=100000", "--device", "sms=20", "--arch", "sm_90"],
        &[
            "ok/formats.toml",
            "--shape",
            "x=2x5x4x4",
            "--shape",
            "volume=1x8x2x2",
            "--shape",
            "weights=5",
            "--format",
            "F=hwc8",
            "--type",
            "T=f16",
        ],
        &["ok/in_place.toml", "--shape", "x=4x8", "--shape", "state=1", "--attr", "delta=1"],
    ];
    insta::assert_snapshot!("values_devices_and_formats", transcript(&project, &lines));
    let of = |line: &[&str], fields: [&str; 3]| {
        let run = eval(&project, &[line, &["--json"]].concat());
        let result: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
        let evaluation = &result["evaluations"][0];
        fields.map(|field| serde_json::to_string(&evaluation[field]).unwrap()).join("\n")
    };
    let shown = lines.map(|line| of(line, ["device", "formats", "tensors"])).join("\n\n");
    insta::assert_snapshot!("values_devices_and_formats_json", shown);
}

#[test]
fn the_page_names_every_option() {
    let page =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/eval.md"))
            .unwrap();
    let help = bare().run(&["eval", "--help"]).stdout;
    let words = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
    let options: std::collections::BTreeSet<&str> =
        words.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphabetic())).collect();
    assert!(options.len() >= 10, "{options:?}");
    let missing: Vec<&str> = options
        .into_iter()
        .filter(|option| {
            !["--help", "--config", "--color"].contains(option) && !page.contains(&format!("`{option}"))
        })
        .collect();
    assert_eq!(missing, [""; 0]);
}
