//! `cubinder test` with a stand-in driver that executes the kernels of `tests/data/testing`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{self, Run, finish, root};
use cubinder_skip::does_not_apply;
use cubinder_tests::fake_driver::{self, Age};
use serde_json::Value;

fn command(arguments: &[&str]) -> Option<Command> {
    command::command(&[&["test"], arguments].concat())
}

fn run(arguments: &[&str]) -> Option<Run> {
    command(arguments).map(|mut command| finish(&mut command))
}

fn run_again(arguments: &[&str]) -> Run {
    run(arguments).expect("as before")
}

fn kinds(case: &Value) -> Vec<String> {
    let variants = case["variants"].as_array().cloned().unwrap_or_default();
    let faults = variants.iter().flat_map(|ran| ran["faults"].as_array().cloned().unwrap_or_default());
    faults.filter_map(|fault| fault["kind"].as_str().map(str::to_owned)).collect()
}

/// Cases named after a fault have only that.
#[track_caller]
fn check(report: &Value) {
    for case in report["cases"].as_array().expect("cases") {
        let name = case["name"].as_str().expect("a name");
        match name.split_once(": ") {
            Some((kind, _)) => {
                let kinds = kinds(case);
                let is_said = case["differs"].as_array().is_some_and(|differs| !differs.is_empty());
                let is_found = !kinds.is_empty() && kinds.iter().all(|found| found == kind);
                assert!(is_found || (kind == "data" && is_said), "{name}: {case}");
                assert_eq!(case["passed"], false, "{name}");
            }
            None => assert_eq!(case["passed"], true, "{name}: {case}"),
        }
    }
}

#[test]
fn the_test_command_finds_nothing_where_all_is_right() {
    let Some(run) = run(&["tests/data/testing/right.toml"]) else { return };
    run.assert_code(0);
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn the_test_command_finds_every_planted_fault() {
    let Some(shown) = run(&["tests/data/testing/wrong.toml"]) else { return };
    shown.assert_code(1);
    insta::assert_snapshot!(shown.stdout);
    let run = run(&["tests/data/testing/wrong.toml", "--json"]).expect("as before");
    run.assert_code(1);
    check(&run.report());
    let report = run.report();
    let by_name = |part: &str| {
        let cases = report["cases"].as_array().expect("cases");
        cases.iter().find(|case| case["name"].as_str().is_some_and(|name| name.contains(part))).cloned()
    };
    let wrong = by_name("in the middle").expect("the case");
    let element = &wrong["variants"][0]["faults"][0]["elements"]["first"][0];
    assert_eq!(element["index"], serde_json::json!([5, 0]));
    let broken = by_name("an address that is none").expect("the case");
    assert_eq!(kinds(&broken), ["driver", "driver"]);
    for part in ["prints as it goes", "is of no use"] {
        let alone = by_name(part).expect("the case");
        assert_eq!(kinds(&alone).len(), 1, "{alone}");
        assert_eq!(alone["variants"][1]["faults"], serde_json::json!([]), "{alone}");
    }
    let misaligned = by_name("do not suit them").expect("the case");
    assert_eq!(kinds(&misaligned), ["driver"]);
    assert_eq!(misaligned["variants"][1]["addresses"], 7);
}

#[test]
fn the_test_command_knows_sizes_that_data_decide_and_outputs_in_place() {
    for file in ["tests/data/testing/other.toml", "tests/data/testing/in_place.toml"] {
        let Some(run) = run(&[file, "--json"]) else { return };
        run.assert_code(1);
        check(&run.report());
    }
}

#[test]
fn the_test_command_makes_random_shapes_and_the_smallest_that_fails() {
    let Some(right) = run(&["tests/data/testing/doubled.toml", "--json", "--seed", "3"]) else { return };
    right.assert_code(0);
    let report = right.report();
    assert_eq!(
        (&report["passed"], &report["not_held_against_anything"]),
        (&Value::from(20), &Value::from(20))
    );
    // `cubinder test` then compares variants.
    let node = ["tests/data/testing/planted.toml", "--shape", "x=64", "--json", "--attr", "fault=11"];
    let unlike = run(&node).expect("as before");
    unlike.assert_code(1);
    let report = unlike.report();
    assert_eq!(report["cases"][0]["variants"][1]["held_against"][0][1], "variant 1");
    assert_eq!(kinds(&report["cases"][0]), ["wrong"]);
    let mut wrong =
        command(&["tests/data/testing/wrong.toml", "--case", "in the middle", "--random", "3", "--json"])
            .expect("as before");
    let wrong = finish(&mut wrong);
    wrong.assert_code(1);
    let cases = wrong.report()["cases"].as_array().cloned().expect("cases");
    let smallest = cases.last().expect("a random one");
    let node = smallest["node"].as_str().expect("a node");
    assert!(node.contains("--attr 'fault="), "{node}");
    let shape = node.split("--shape x=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a shape");
    assert!(shape == "scalar" || shape.split('x').all(|extent| extent == "1"), "{node}");
}

#[test]
fn the_test_command_says_which_outputs_are_held_against_nothing() {
    let Some(run) = run(&["tests/data/testing/other.toml", "--json"]) else { return };
    let report = run.report();
    let unheld = |case: usize| report["cases"][case]["not_held_against_anything"].clone();
    assert_eq!((unheld(0), unheld(1)), (serde_json::json!([]), serde_json::json!([])));
    let node = ["tests/data/testing/positive.toml", "--shape", "x=64", "--json"];
    let report = run_again(&node).report();
    assert_eq!(report["cases"][0]["not_held_against_anything"], serde_json::json!(["y"]));
}

#[test]
fn a_run_of_nothing_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(none) = run(&["tests/data/testing/planted.toml", "--random", "0", "--json"]) else { return };
    none.assert_code(1);
    assert_eq!(none.report()["result"], "failed");
    let large = folder.path().join("large.toml");
    let manifest =
        std::fs::read_to_string(root().join("tests/data/testing/doubled.toml")).expect("a manifest");
    let limits = "type = \"f32\"\nrank = 2\nlimits = { dims = [\"12289\", \"4096\"] }";
    std::fs::write(&large, manifest.replace("type = \"f32\"", limits)).expect("written");
    std::fs::copy(root().join("tests/data/testing/planted.cu"), folder.path().join("planted.cu"))
        .expect("copied");
    let none = run_again(&[large.to_str().expect("UTF-8")]);
    none.assert_code(1);
    assert!(none.stdout.contains("found no random shapes"), "{}{}", none.stdout, none.stderr);
}

#[test]
fn a_gpu_that_is_lost_in_the_middle_is_no_skip() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = [
        "tests/data/testing/wrong.toml",
        "--case",
        "driver: an address",
        "--random",
        "1",
        "--json",
        "--allow-no-gpu",
    ];
    let Some(mut lost) = command(&node) else { return };
    let lost = finish(lost.env("FAKE_GPU_LOST", folder.path().join("lost")));
    lost.assert_code(1);
    let report = lost.report();
    assert_eq!(kinds(&report["cases"][0]), ["driver", "gpu_lost"], "{report}");
    assert_eq!(kinds(&report["cases"][1]), ["gpu_lost"], "{report}");
}

#[test]
fn the_test_command_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (temporary, pid) = (folder.path().join("tmp"), folder.path().join("pid"));
    std::fs::create_dir(&temporary).expect("a folder");
    let node = ["tests/data/testing/planted.toml", "--shape", "x=64", "--timeout", "5", "--json"];
    for (reference, fault, code) in [
        ("planted", "0", 0),
        ("raises", "0", 1),
        ("planted", "9", 1),
        ("planted", "10", 1),
        ("endless", "0", 1),
        ("asks", "0", 0),
    ] {
        let reference = format!("tests/data/testing/reference.py:{reference}");
        let fault = format!("fault={fault}");
        let Some(mut test) = command(&[&node[..], &["--reference", &reference, "--attr", &fault]].concat())
        else {
            return;
        };
        // Temporary files exist while NVRTC compiles.
        let run = finish(test.env("TMPDIR", &temporary).env("ENDLESS_PID", &pid));
        run.assert_code(code);
        let left: Vec<_> = std::fs::read_dir(&temporary).expect("the folder").flatten().collect();
        assert!(left.is_empty(), "{reference}, {fault}: {left:?}");
    }
    assert_ends(&pid);

    std::fs::remove_file(&pid).expect("the endless function ran");
    let node = [&node[..], &["--reference", "tests/data/testing/reference.py:endless", "--attr", "fault=0"]];
    let mut test = command(&node.concat()).expect("as before");
    test.env("TMPDIR", &temporary).env("ENDLESS_PID", &pid).stdout(Stdio::null());
    let mut running = test.spawn().expect("the command starts");
    let has_begun = || std::fs::metadata(&pid).is_ok_and(|file| file.len() > 0);
    assert!(soon(has_begun), "the function did not begin");
    running.kill().expect("it is running");
    running.wait().expect("it ended");
    let left: Vec<_> = std::fs::read_dir(&temporary).expect("the folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_ends(&pid);
}

fn soon(holds: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        holds()
    })
}

#[track_caller]
fn assert_ends(pid: &Path) {
    let pid = std::fs::read_to_string(pid).expect("the endless function ran");
    let stat = Path::new("/proc").join(pid).join("stat");
    let is_over = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    assert!(soon(is_over), "Python is still running");
}

#[test]
fn the_test_command_survives_kernels_that_end_it_or_do_not_end() {
    let node = ["tests/data/testing/planted.toml", "--shape", "x=64", "--json", "--timeout", "5"];
    let Some(killed) = run(&[&node[..], &["--attr", "fault=9"]].concat()) else { return };
    killed.assert_code(1);
    assert_eq!(kinds(&killed.report()["cases"][0]), ["crash", "crash"]);
    let stuck = run(&[&node[..], &["--attr", "fault=10", "--variant", "2"]].concat()).expect("as before");
    stuck.assert_code(1);
    assert_eq!(kinds(&stuck.report()["cases"][0]), ["timeout"]);
    let mut small = command(&[&node[..4], &["--attr", "fault=0"]].concat()).expect("as before");
    let small = finish(small.env("FAKE_GPU_BYTES", "100000"));
    small.assert_code(1);
    assert_eq!(kinds(&small.report()["cases"][0]), ["memory", "memory"]);
}

#[test]
fn the_test_command_says_that_there_is_no_gpu() {
    let empty = tempfile::tempdir().expect("a folder");
    let without = |more: &[&str]| {
        let arguments = [&["tests/data/testing/right.toml"], more].concat();
        command(&arguments).map(|mut command| finish(command.env("LD_LIBRARY_PATH", empty.path())))
    };
    let Some(plain) = without(&[]) else { return };
    if plain.code == Some(0) {
        does_not_apply("there is a GPU here");
        return;
    }
    plain.assert_code(3);
    assert!(plain.stderr.contains("no GPU to test on"), "{}", plain.stderr);
    let allowed = without(&["--allow-no-gpu"]).expect("as before");
    allowed.assert_code(0);
    assert!(allowed.stderr.starts_with("skipped: no GPU, nothing was tested"), "{}", allowed.stderr);
    let json = without(&["--json"]).expect("as before");
    json.assert_code(3);
    assert_eq!(json.report()["result"], "no_gpu");
    let both = without(&["--json", "--allow-no-gpu"]).expect("as before");
    both.assert_code(0);
    assert_eq!((both.stderr.as_str(), &both.report()["allowed"]), ("", &Value::Bool(true)));
}

#[test]
fn mistakes_are_told_without_a_gpu() {
    let arguments = ["tests/data/testing/mistaken.toml", "--allow-no-gpu"];
    let Some(mut test) = command(&arguments) else { return };
    let test = finish(test.env("FAKE_INIT", "100"));
    test.assert_code(1);
    insta::assert_snapshot!(test.stderr);
    let mut eval = Command::new(std::env::var_os("CUBINDER_BIN").expect("as before"));
    let eval =
        finish(eval.current_dir(root()).args(["eval", "--cases", arguments[0], "--nvrtc", "/nowhere"]));
    eval.assert_code(1);
    insta::assert_snapshot!(eval.stdout);
    let random = ["tests/data/testing/planted.toml", "--reference", "tests/data/testing/reference.py:planed"];
    let mut random = command(&random).expect("as before");
    let random = finish(random.env("FAKE_INIT", "100"));
    random.assert_code(1);
    assert!(random.stderr.contains("does not define `planed`; did you mean `planted`?"), "{}", random.stderr);
    let with = run_again(&[arguments[0], "--json"]);
    with.assert_code(1);
    let report = with.report();
    for case in report["cases"].as_array().expect("cases") {
        assert_eq!((case["differs"].as_array().map(Vec::len), kinds(case)), (Some(1), vec![]), "{case}");
    }
}

#[test]
fn the_test_command_runs_code_from_elsewhere() {
    let Some(mut cases) = command(&["tests/data/testing/code.toml", "--random", "10", "--json"]) else {
        return;
    };
    let run = finish(cases.env("CUBINDER_NVRTC", "/nowhere"));
    run.assert_code(0);
    let report = run.report();
    let ids = |case: usize| -> Vec<Option<i64>> {
        let variants = report["cases"][case]["variants"].as_array().cloned().unwrap_or_default();
        variants.iter().map(|ran| ran["id"].as_i64()).collect()
    };
    assert_eq!((ids(0), ids(1)), (vec![Some(1), Some(2)], vec![Some(2)]), "{report}");
    assert_eq!(report["passed"], 14, "{report}");
    let wrong = [
        "tests/data/ok/code.toml",
        "--shape",
        "x=64",
        "--json",
        "--reference",
        "tests/data/testing/reference.py:doubled_whatever",
    ];
    let wrong = run_again(&wrong);
    wrong.assert_code(1);
    assert_eq!(kinds(&wrong.report()["cases"][0]), ["wrong"]);
}

#[test]
fn the_test_command_runs_code_from_elsewhere_beside_its_own() {
    let Some(run) = run(&["tests/data/testing/both.toml", "--random", "3", "--json"]) else { return };
    run.assert_code(0);
    assert_eq!(run.report()["passed"], 5, "{}", run.stdout);
    let folder = tempfile::tempdir().expect("a folder");
    let data = root().join("tests/data");
    let manifest = std::fs::read_to_string(data.join("testing/mixed.toml")).expect("a manifest");
    let cubin = std::fs::read(data.join("code/scale.sm_90.cubin")).expect("a cubin");
    let lines = manifest.lines().filter(|line| !line.starts_with("ptx"));
    let lines = lines.map(|line| if line.starts_with("cubin") { "cubin = [\"scale.cubin\"]" } else { line });
    let path = folder.path().join("mixed.toml");
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).expect("written");
    std::fs::write(folder.path().join("scale.cubin"), cubin).expect("written");
    std::fs::copy(data.join("testing/planted.cu"), folder.path().join("planted.cu")).expect("copied");
    let none = run_again(&[path.to_str().expect("UTF-8"), "--shape", "x=64"]);
    none.assert_code(1);
    for part in [
        "no code of `scale` supports `sm_89`",
        "the available code is for `sm_90`",
        "the target of the selected GPU",
    ] {
        assert!(none.stderr.contains(part), "{part}: {}", none.stderr);
    }
}

#[test]
fn the_test_command_runs_the_library_that_on_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = root().join("tests/data/testing");
    for file in ["planted.cu", "doubled.toml", "reference.py"] {
        std::fs::copy(data.join(file), folder.path().join(file)).expect("copied");
    }
    let manifest = std::fs::read_to_string(data.join("planted.toml")).expect("a manifest");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let case = "[[cases]]\nname = \"a vector\"\nshapes = { x = [4096] }\n";
    write(
        "cases.toml",
        &format!("manifest = \"planted.toml\"\nreference = \"reference.py:planted\"\n{case}"),
    );
    let in_folder = |arguments: &[&str]| {
        command::command(arguments).map(|mut command| finish(command.current_dir(folder.path())))
    };
    for (name, count) in [("short", "numel(y) // 2"), ("whole", "numel(y)")] {
        write("planted.toml", &manifest.replace("count = \"numel(y)\"", &format!("count = \"{count}\"")));
        let arguments = [
            "compile",
            "doubled.toml",
            "planted.toml",
            "--target",
            "sm_89",
            "--name",
            name,
            "--out-dir",
            ".",
        ];
        let Some(compiled) = in_folder(&arguments) else { return };
        compiled.assert_code(0);
    }
    in_folder(&["test", "cases.toml"]).expect("as before").assert_code(0);
    in_folder(&["test", "cases.toml", "--on", "libwhole.so"]).expect("as before").assert_code(0);
    let short = in_folder(&["test", "cases.toml", "--on", "libshort.so", "--json"]).expect("as before");
    short.assert_code(1);
    let report = short.report();
    assert_eq!(kinds(&report["cases"][0]), ["unwritten", "unwritten"], "{report}");
}

#[test]
fn only_a_gpu_that_is_not_there_is_no_gpu() {
    let arguments = ["tests/data/testing/right.toml", "--allow-no-gpu", "--json"];
    let Some(mut none) = command(&arguments) else { return };
    let none = finish(none.env("FAKE_INIT", "100"));
    none.assert_code(0);
    assert_eq!(none.report()["result"], "no_gpu");
    let broken = finish(command(&arguments).expect("as before").env("FAKE_INIT", "999"));
    broken.assert_code(1);
    assert_eq!(broken.report()["result"], "failed");
    let other = run_again(&[&arguments[..], &["--device", "7"]].concat());
    other.assert_code(1);
    assert!(other.stdout.contains("unknown GPU 7: "), "{}", other.stdout);
}

/// Drivers before CUDA 12.4 lack `cuKernelGetParamInfo`; newer ones have unknown errors.
#[test]
fn the_test_command_runs_above_older_and_newer_drivers() {
    let arguments = ["tests/data/testing/right.toml"];
    let Some(mut older) = command(&arguments) else { return };
    let driver = fake_driver::driver_folder(Age::Old).expect("the fake driver is built");
    finish(older.env("LD_LIBRARY_PATH", driver)).assert_code(0);
    let newer = finish(command(&arguments).expect("as before").env("FAKE_INIT", "4711"));
    newer.assert_code(1);
    let expected = "cannot initialize the CUDA driver: `cuInit` returned an unknown error (4711)";
    assert!(newer.stderr.contains(expected), "{}", newer.stderr);
}

#[test]
fn the_test_command_runs_what_the_new_command_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut test) = command(&["tests/wave.toml"]) else { return };
    let mut new = Command::new(std::env::var_os("CUBINDER_BIN").expect("as before"));
    let made = new.args(["new", "wave", "--path", "."]).current_dir(folder.path()).output().expect("starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let run = finish(test.current_dir(folder.path()).args(["--random", "5"]));
    run.assert_code(0);
    assert!(run.stdout.ends_with("10 passed, 0 failed\n"), "{}", run.stdout);
}

#[test]
fn the_test_command_runs_in_a_folder_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(mut test) = command(&[]) else { return };
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).expect("a new folder");
    for name in ["right.toml", "planted.toml", "planted.cu", "reference.py", "numbers.npz"] {
        std::fs::copy(root().join("tests/data/testing").join(name), folder.join(name)).expect("copied");
    }
    let run = finish(test.arg(folder.join("right.toml")).arg("--json").current_dir(above.path()));
    run.assert_code(0);
    let report = run.report();
    assert_eq!(report["result"], "passed", "{report}");
    let path = folder.join("planted.toml");
    assert_eq!(report["file"]["bytes"], serde_json::json!(path.as_os_str().as_bytes()));
}

#[test]
fn the_native_target_is_the_gpu_of_this_machine() {
    let check = |environment: (&str, &str)| {
        let arguments = ["check", "tests/data/testing/doubled.toml", "--target", "native", "--json"];
        command::command(&arguments).map(|mut command| finish(command.env(environment.0, environment.1)))
    };
    let Some(found) = check(("FAKE_INIT", "0")) else { return };
    found.assert_code(0);
    assert_eq!(found.report()["targets"], serde_json::json!(["sm_89"]));
    let none = check(("FAKE_INIT", "100")).expect("as before");
    none.assert_code(1);
    assert!(none.stdout.contains("`--target native` requires a GPU in this machine"), "{}", none.stdout);
}
