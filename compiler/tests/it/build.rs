use std::fs;
use std::path::Path;

use crate::support::models;
use crate::support::tensorrt::{FOUND, Machine};
use crate::support::{Project, Run};
use serde_json::Value;

const BUILT: &str = r#"echo plan > "$plan"
echo '{"event": "built", "outputs": [["y", [-1, 8]]]}'"#;

/// A parser's error of TensorRT-RTX 1.7.1.
const NO_PLUGIN: &str = r#"echo '{"event": "log", "severity": "ERROR", "text": "ModelImporter.cpp:140: While parsing node number 0 [scale_plugin -> y]:"}'
echo '{"event": "failed", "stage": "parse", "texts": ["creator && Plugin not found, are the plugin name, version, and namespace correct?"]}'
exit 1"#;

const ABORTED: &str = "echo 'terminate called without an active exception' >&2\nkill -6 $$";

fn machine(arguments: &[&str]) -> Option<Machine> {
    let project = Project::new()?;
    project.compile(arguments);
    project.write("model.onnx", models::scale("4,8"));
    project.write("dynamic.onnx", models::scale("n,8"));
    Some(Machine::new(project))
}

fn build(machine: &Machine, model: &str, more: &[&str]) -> Run {
    let plugins: &[&str] =
        if more.contains(&"--plugins") { &[] } else { &["--plugins", "build/libscale.so"] };
    machine.run(&[&["build", model, "-o", "model.plan"], plugins, more].concat())
}

fn leftovers(machine: &Machine) -> Vec<String> {
    let names = |folder: &Path| {
        let entries =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.collect::<Vec<_>>()
    };
    let mut beside = names(&machine.project.path(""));
    beside.retain(|name| name.starts_with('.'));
    [beside, names(&machine.project.outer("tmp"))].concat()
}

#[test]
fn a_python_with_tensorrt_builds_the_plan() {
    let Some(machine) = machine(&[]) else { return };
    let log = machine.project.outer("log");
    let record = format!("echo \"$LD_LIBRARY_PATH\" > {}\n{BUILT}", log.display());
    machine.python(FOUND, &record);
    let run = build(&machine, "dynamic.onnx", &["--shape", "x=1x8:4x8:16x8"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    insta::assert_snapshot!("built", machine.project.plain(&run.stdout));
    assert_eq!(machine.project.read("model.plan"), b"plan\n");
    assert_eq!(fs::read_to_string(&log).unwrap(), "\n", "no link is missing");
    assert_eq!(leftovers(&machine), [""; 0]);
}

#[test]
fn a_missing_link_is_added_for_the_child_alone() {
    let Some(machine) = machine(&[]) else { return };
    let libraries = machine.project.outer("tensorrt_rtx_libs");
    fs::create_dir(&libraries).unwrap();
    fs::write(libraries.join("libtensorrt_rtx.so.1"), "library").unwrap();
    let package = format!(
        r#"{{"module": "tensorrt_rtx_libs", "folder": "{}", "version": null}}]}}"#,
        libraries.display()
    );
    let found = FOUND.replace("]}", &format!(", {package}"));
    let log = machine.project.outer("log");
    machine.python(
        &found,
        &format!(
            "read -r line < \"$LD_LIBRARY_PATH/libtensorrt_rtx.so\"; echo \"$line\" > {}\n{BUILT}",
            log.display()
        ),
    );
    build(&machine, "model.onnx", &[]).assert_ok();
    assert_eq!(fs::read_to_string(&log).unwrap(), "library\n");
    assert!(!libraries.join("libtensorrt_rtx.so").exists());
    assert_eq!(leftovers(&machine), [""; 0]);
    fs::write(libraries.join("libtensorrt_rtx.so"), "").unwrap();
    machine.python(&found, &format!("echo \"$LD_LIBRARY_PATH\" > {}\n{BUILT}", log.display()));
    build(&machine, "model.onnx", &[]).assert_ok();
    assert_eq!(fs::read_to_string(&log).unwrap(), "\n");
}

#[test]
fn programs_get_the_options_of_nvidia() {
    let Some(machine) = machine(&["--embed"]) else { return };
    let log = machine.project.outer("log");
    let script = format!(
        "printf '%s\\n' \"$0\" \"$@\" > {}\nfor word in \"$@\"; do case \"$word\" in --saveEngine=*) echo plan > \"${{word#*=}}\";; esac; done",
        log.display()
    );
    machine.install("trtexec", &script);
    machine.install("tensorrt_rtx", &script);
    let embed = ["--embed", "--shape", "x=1x8:4x8:16x8"];
    let mut text = String::new();
    for more in [
        &["--with", "tensorrt", "--fp16", "--int8", "--timing-cache", "times"][..],
        &["--gpu", "sm_89,sm_120", "-v"],
    ] {
        let run = build(&machine, "dynamic.onnx", &[&embed[..], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let arguments: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
        text.push_str(&format!(
            "# {}\n{}\n{}{}",
            more.join(" "),
            arguments.join("\n"),
            run.stderr,
            run.stdout
        ));
    }
    let draft = text.split("--saveEngine=").nth(1).unwrap().lines().next().unwrap();
    assert!(draft.contains("/.") || draft.starts_with('.') || draft.contains(".cubinder"), "{draft}");
    let plain: Vec<String> = machine.project.plain(&text).lines().map(without_random_names).collect();
    insta::assert_snapshot!("programs", plain.join("\n"));
}

fn without_random_names(line: &str) -> String {
    match line.split_once("--saveEngine=").filter(|(before, _)| before.is_empty()) {
        Some(_) => "--saveEngine=[DRAFT]".to_owned(),
        None => match line.split_once("cubinder-build-") {
            Some((before, after)) => {
                format!("{before}cubinder-build-[RANDOM]{}", after.get(6..).unwrap_or_default())
            }
            None => line.to_owned(),
        },
    }
}

#[test]
fn the_printed_command_can_be_repeated() {
    let Some(machine) = machine(&[]) else { return };
    machine.python(FOUND, BUILT);
    let run = build(&machine, "model.onnx", &["--verbose"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let command = run.stderr.lines().find(|line| line.contains("builder.py build")).unwrap();
    fs::remove_file(machine.project.path("model.plan")).unwrap();
    let again = std::process::Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(machine.project.path(""))
        .output();
    assert!(again.unwrap().status.success(), "{command}");
    assert_eq!(machine.project.read("model.plan"), b"plan\n");
    assert!(run.stdout.contains("kept "), "{}", run.stdout);
    assert_eq!(leftovers(&machine).len(), 1);
}

#[test]
fn every_mistake_has_a_cause_and_a_remedy() {
    let Some(machine) = machine(&[]) else { return };
    let project = &machine.project;
    let mut text = String::new();
    let mut fails = |name: &str, run: &Run| {
        assert!(matches!(run.code, Some(1 | 2)), "{name}: {:?} {}{}", run.code, run.stdout, run.stderr);
        assert_eq!(run.stdout, "", "{name}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains("help: "), "{name}: {}", run.stderr);
        assert!(!project.path("model.plan").exists(), "{name}");
        assert_eq!(leftovers(&machine), [""; 0], "{name}");
        text.push_str(&format!("# {name}\n{}\n", run.stderr));
    };
    project.write("text.onnx", "schema = 1\n");
    project.write("broken.so", "\x7fELF");
    let run = |model: &str, more: &[&str]| build(&machine, model, more);
    fails("no TensorRT", &run("model.onnx", &[]));
    fails("no full TensorRT", &run("model.onnx", &["--with", "tensorrt"]));
    fails("no such installation", &run("model.onnx", &["--with", "/nowhere/trtexec"]));
    fails("an unsuitable installation", &run("model.onnx", &["--with", "manifests"]));
    let mut home =
        machine.command(&["build", "model.onnx", "-o", "model.plan", "--plugins", "build/libscale.so"]);
    fails("a home without TensorRT", &crate::support::run_copy(home.env("TENSORRT_RTX_HOME", "/nowhere")));
    machine.install("python3", "echo 'Fatal Python error: init_fs_encoding' >&2; exit 1");
    fails("a broken Python", &run("model.onnx", &[]));
    machine.python(&FOUND.replace("1.7.1.116", "1.6.1.120"), BUILT);
    fails("an old release", &run("model.onnx", &[]));
    machine.python(FOUND, ABORTED);
    fails("a Python that aborts", &run("model.onnx", &[]));
    machine.python(FOUND, "kill -9 $$");
    fails("a Python that is killed", &run("model.onnx", &[]));
    machine.python(FOUND, "echo 'Traceback:' >&2; echo 'AttributeError: Builder' >&2; exit 1");
    fails("an exception", &run("model.onnx", &[]));
    machine.python(FOUND, NO_PLUGIN);
    fails("a plugin that is not found", &run("model.onnx", &["--no-check"]));
    machine.python(
        FOUND,
        r#"echo '{"event": "failed", "stage": "missing", "texts": ["SM103", "SM80, SM89"]}'; exit 1"#,
    );
    fails("an unknown GPU", &run("model.onnx", &["--gpu", "sm_103"]));
    machine.python(FOUND, r#"echo '{"event": "failed", "stage": "import", "texts": ["libnvinfer.so.10: cannot open shared object file"]}'; exit 1"#);
    fails("a module without its libraries", &run("model.onnx", &[]));
    machine.python(
        FOUND,
        r#"echo '{"event": "failed", "stage": "write", "texts": ["No space left on device"]}'; exit 1"#,
    );
    fails("a full disk", &run("model.onnx", &[]));
    machine.python(FOUND, "exit 0");
    fails("no plan", &run("model.onnx", &[]));
    machine.install("trtexec", "echo '[11/28/2026-05:29:53] [E] [TRT] Target GPU SM 70 is not supported by this TensorRT release.'; echo '&&&& FAILED TensorRT.trtexec'; exit 1");
    fails("an unsupported GPU", &run("model.onnx", &["--with", "tensorrt"]));
    machine.python(FOUND, BUILT);
    fails("a missing shape", &run("dynamic.onnx", &[]));
    fails("a wrong rank", &run("dynamic.onnx", &["--shape", "x=1x8x1"]));
    fails("ranks that differ", &run("dynamic.onnx", &["--shape", "x=1x8:4x8:16"]));
    fails("no range", &run("dynamic.onnx", &["--shape", "x=8x8:4x8:16x8"]));
    fails("a fixed dimension", &run("dynamic.onnx", &["--shape", "x=1x9"]));
    fails("an unknown input", &run("dynamic.onnx", &["--shape", "X=1x8", "--shape", "x=1x8"]));
    fails("a shape twice", &run("dynamic.onnx", &["--shape", "x=1x8", "--shape", "x=2x8"]));
    fails("no shape at all", &run("dynamic.onnx", &["--shape", "x=1xbatch", "--shape", "1x8"]));
    fails("values of floats", &run("dynamic.onnx", &["--values", "x=1", "--shape", "x=1x8"]));
    fails("an unreadable model", &run("text.onnx", &[]));
    fails("a model that does not exist", &run("none.onnx", &[]));
    fails("a library of others", &run("model.onnx", &["--plugins", "broken.so"]));
    fails("a library that does not exist", &run("model.onnx", &["--plugins", "none.so"]));
    fails("a manifest", &run("model.onnx", &["--plugins", "manifests/scale.toml"]));
    fails("no library", &machine.run(&["build", "model.onnx", "-o", "model.plan"]));
    fails("a library that cannot be embedded", &run("model.onnx", &["--embed"]));
    fails("a GPU without code", &run("model.onnx", &["--gpu", "sm_75"]));
    fails("a type of TensorRT alone", &run("model.onnx", &["--fp16", "--timing-cache", "times"]));
    fails("a GPU for TensorRT", &run("model.onnx", &["--with", "tensorrt", "--gpu", "sm_89"]));
    fails("no GPU", &run("model.onnx", &["--gpu", "ampere"]));
    fails(
        "no folder",
        &machine.run(&["build", "model.onnx", "-o", "a/model.plan", "--plugins", "build/libscale.so"]),
    );
    fails(
        "a folder",
        &machine.run(&["build", "model.onnx", "-o", "manifests", "--plugins", "build/libscale.so"]),
    );
    fails("no output", &machine.run(&["build", "model.onnx"]));
    project.write("weights.onnx", models::with_weights_beside_it("weights.bin"));
    for file in ["times", "weights.bin", "build/libscale-code.so"] {
        project.write(file, "");
    }
    for (model, read) in [
        ("model.onnx", "model.onnx"),
        ("model.onnx", "manifests/../model.onnx"),
        ("model.onnx", "build/libscale.so"),
        ("model.onnx", "times"),
        ("weights.onnx", "weights.bin"),
    ] {
        let options = ["build", model, "--plugins", "build/libscale.so", "--no-check", "-o", read];
        let with_cache = [&options[..], &["--timing-cache", "times", "--with", "rtx"]].concat();
        fails(&format!("an output that is read: {read}"), &machine.run(&with_cache));
        assert_eq!(project.read("weights.bin"), b"");
    }
    machine.python(FOUND, r#"echo '{"event": "log", "severity": "ERROR", "text": "IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (Optimization profile 0 is missing values for shape input tensor size.)"}'; exit 1"#);
    fails("missing values", &run("model.onnx", &[]));
    fails(
        "an absent library that is not checked",
        &run("model.onnx", &["--no-check", "--plugins", "none.so"]),
    );
    insta::assert_snapshot!("mistakes", project.plain(&text));
}

#[test]
fn libraries_that_belong_together_are_compared() {
    let Some(machine) = machine(&["--embed"]) else { return };
    let project = &machine.project;
    machine.python(FOUND, BUILT);
    build(&machine, "model.onnx", &["--embed"]).assert_ok();
    let mut text = String::new();
    let mut fails = |name: &str, run: &Run| {
        run.assert_refused(name);
        text.push_str(&format!("# {name}\n{}\n", run.stderr));
    };
    fails("without --embed", &build(&machine, "model.onnx", &[]));
    fails(
        "the code library",
        &build(&machine, "model.onnx", &["--plugins", "build/libscale-code.so", "--embed"]),
    );
    project.compile(&["--embed", "--target", "sm_80", "--out-dir", "other"]);
    fs::copy(project.path("other/libscale-code.so"), project.path("build/libscale-code.so")).unwrap();
    fails("of another compile", &build(&machine, "model.onnx", &["--embed"]));
    fs::remove_file(project.path("build/libscale-code.so")).unwrap();
    fails("a missing code library", &build(&machine, "model.onnx", &["--embed"]));
    insta::assert_snapshot!("embed", project.plain(&text));
}

#[test]
fn a_failure_keeps_the_previous_plan() {
    let Some(machine) = machine(&[]) else { return };
    machine.project.write("model.plan", "previous");
    machine.python(FOUND, &format!("echo half > \"$plan\"\n{ABORTED}"));
    build(&machine, "model.onnx", &[]).assert_refused("a crash");
    assert_eq!(machine.project.read("model.plan"), b"previous");
    assert_eq!(leftovers(&machine), [""; 0]);
}

#[test]
fn several_installations_are_named() {
    let Some(machine) = machine(&[]) else { return };
    machine.python(FOUND, BUILT);
    machine.install("trtexec", "exit 1");
    machine.install("tensorrt_rtx", "exit 1");
    let run = build(&machine, "model.onnx", &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    insta::assert_snapshot!("several", machine.project.plain(&run.stdout));
    let home = machine.project.outer("home");
    fs::create_dir(home.join("bin")).unwrap();
    fs::rename(machine.program("tensorrt_rtx"), home.join("bin/tensorrt_rtx")).unwrap();
    let mut command =
        machine.command(&["build", "model.onnx", "-o", "a.plan", "--plugins", "build/libscale.so"]);
    let named = crate::support::run_copy(command.env("TENSORRT_RTX_HOME", &home));
    named.assert_refused("the home comes first, and its program fails");
}

#[test]
fn warnings_of_tensorrt_are_warnings() {
    let Some(machine) = machine(&[]) else { return };
    let warning = r#"echo '{"event": "log", "severity": "WARNING", "text": "slow"}'"#;
    machine.python(FOUND, &format!("{warning}\n{warning}\n{BUILT}"));
    let run = build(&machine, "model.onnx", &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), "warning: TensorRT-RTX: slow\n\n"));
    // Its text is longer; without `aot`, checked libraries' plugins run, too.
    let aot = r#"echo '{"event": "log", "severity": "WARNING", "text": "Attribute aot not found in plugin node!"}'"#;
    machine.python(FOUND, &format!("{aot}\n{BUILT}"));
    assert_eq!(build(&machine, "model.onnx", &[]).stderr, "");
    assert!(build(&machine, "model.onnx", &["--no-check"]).stderr.contains("Attribute aot not found"));
}

#[test]
fn programs_read_the_result() {
    let Some(machine) = machine(&[]) else { return };
    machine.python(FOUND, BUILT);
    machine.install("trtexec", "exit 1");
    let run = build(&machine, "model.onnx", &["--json"]);
    let mut result: Value = serde_json::from_str(&run.stdout).unwrap();
    let page = include_str!("../../../docs/json.md");
    let section = page.split("\n## `build`").nth(1).unwrap().split("\n## ").next().unwrap();
    for field in result.as_object().unwrap().keys().chain(result["tensorrt"].as_object().unwrap().keys()) {
        let is_common = ["result", "errors", "warnings"].contains(&field.as_str());
        assert!(is_common || section.contains(&format!("`{field}`")), "docs/json.md lacks `{field}`");
    }
    result["wall_ms"] = 0.into();
    insta::assert_snapshot!("json", machine.project.plain(&serde_json::to_string_pretty(&result).unwrap()));
    machine.python(FOUND, NO_PLUGIN);
    let run = build(&machine, "model.onnx", &["--json", "--no-check"]);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, run.stderr.as_str(), lines.len()), (Some(1), "", 2));
    assert_eq!((&lines[0]["severity"], &lines[1]["result"]), (&"error".into(), &"failed".into()));
}
