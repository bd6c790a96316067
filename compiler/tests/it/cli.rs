use std::fs;

use cubinder_expr::{DataType, Format};
use cubinder_launch::Signature;
use cubinder_model::container::{self, Container};
use cubinder_model::fit::ComputeCapability;
use cubinder_node::tuning;
use serde_json::Value;

use crate::support::{self, CONFIG, KERNEL, MANIFEST, Project};

fn without_figures(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_figure = |text: &str| text.parse::<f64>().is_ok();
        let unit = word.trim_end_matches([',', ')', '\n']);
        let before = words.last_mut();
        match before {
            Some(figure) if ["ms", "s"].contains(&unit) && is_figure(figure) => "[TIME]".clone_into(figure),
            Some(figure) if unit == "bytes:" && is_figure(figure.trim_start_matches('(')) => {
                "([SIZE]".clone_into(figure);
            }
            _ => {}
        }
        words.push(word.to_owned());
    }
    words.join(" ")
}

#[test]
fn the_summary_says_what_was_done() {
    let Some(project) = Project::new() else { return };
    let mut text = String::new();
    for arguments in [&["--jobs", "1"][..], &[], &["--embed"], &["--no-cache", "--target", "sm_80"]] {
        text.push_str(&format!("$ cubinder compile {}\n", arguments.join(" ")));
        let run = project.run(&[&["compile"], arguments].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        text.push_str(&without_figures(&run.stdout));
        text.push_str(&run.stderr);
    }
    insta::assert_snapshot!(project.plain(&text));
}

fn names(library: &[u8], text: &[u8]) -> bool {
    let bundles = container::scan(library).filter_map(|(_, found)| match found.unwrap().container {
        Container::Bundle(bundle) => Some(bundle),
        _ => None,
    });
    let mut code = bundles.flat_map(|bundle| bundle.code);
    code.any(|object| object.raw().unwrap().windows(text.len()).any(|bytes| bytes == text))
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let Some(project) = Project::new() else { return };
    let Some(other) = Project::new() else { return };
    for project in [&project, &other] {
        project.edit("kernels/scale.cu", "if (index", "if (index == 7 && factor == 7)\n        y[7] = static_cast<T>(static_cast<float>(__FILE__[count]));\n    if (index");
    }
    assert!(project.compile(&["--embed"]).stdout.contains("NVRTC calls, "));
    let first = ["build/libscale.so", "build/libscale-code.so"].map(|name| project.read(name));
    let again = project.compile(&["--embed"]);
    assert!(again.stdout.contains("(all cached, no NVRTC calls)"), "{}", again.stdout);
    assert!(names(&first[0], b"kernels/scale.cu"), "the code holds the name of its file");
    let same = |project: &Project, folder: &str, what: &str| {
        let names = [format!("{folder}/libscale.so"), format!("{folder}/libscale-code.so")];
        assert!(names.map(|name| project.read(&name)) == first, "{what}");
    };
    same(&project, "build", "with a warm cache");
    project.compile(&["--embed", "--no-cache", "--jobs", "1", "--out-dir", "one job"]);
    same(&project, "one job", "with one job and no cache");
    let config = other.path("cubinder.toml");
    let mut command = other.command(&["compile", "--embed", "--quiet", "--config"]);
    let done = command.arg(&config).current_dir(other.outer("home")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    same(&other, "build", "in another folder");
}

#[test]
fn another_input_gives_other_bytes() {
    let Some(project) = Project::new() else { return };
    project.compile(&[]);
    let first = project.read("build/libscale.so");
    project.write("kernels/scale.cu", KERNEL.replace("* factor", "/ factor"));
    assert!(!project.compile(&[]).stdout.contains("no NVRTC calls"));
    assert!(project.read("build/libscale.so") != first, "the kernel's text changed");
}

#[test]
fn the_form_decides_the_files() {
    let Some(project) = Project::new() else { return };
    let files = |folder: &str| {
        let mut names: Vec<_> =
            fs::read_dir(project.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    project.compile(&["--out-dir", "fields"]);
    project.compile(&["--out-dir", "embedded/deeper", "--embed", "--name", "other"]);
    project.compile(&["--output", "one/plugins.so"]);
    assert_eq!(files("one"), ["plugins.so"]);
    assert!(project.read("one/plugins.so") == project.read("fields/libscale.so"));
    for other in [&["--embed"][..], &["--name", "other"], &["--out-dir", "other"]] {
        let run = project.run(&[&["compile", "--output", "one/other.so"], other].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
    }
    assert_eq!(files("fields"), ["libscale.so"]);
    assert_eq!(files("embedded/deeper"), ["libother-code.so", "libother.so"]);
    assert!(!project.path("build").exists());
}

#[test]
fn the_configuration_is_found_from_a_folder_below() {
    let Some(project) = Project::new() else { return };
    fs::create_dir_all(project.path("a/b")).unwrap();
    let run = |arguments: &[&str]| {
        support::Run::of(project.command(arguments).current_dir(project.path("a/b")).output().unwrap())
    };
    let done = run(&["compile"]);
    done.assert_ok();
    assert!(done.stdout.contains("wrote ../../build/libscale.so ("), "{}", done.stdout);
    let below = project.read("build/libscale.so");
    project.compile(&["--out-dir", "from above"]);
    assert!(project.read("from above/libscale.so") == below, "the same bytes from wherever it is started");
    project.edit("cubinder.toml", "sm_89", "sm89");
    let refused = run(&["compile"]);
    refused.assert_refused("a mistake in it");
    assert!(refused.stderr.contains(" --> ../../cubinder.toml:3:12\n"), "{}", refused.stderr);
}

const TUNING: &str = r#"schema = 1

[device]
name = "NVIDIA H200"
capability = "9.0"
sms = 132

[[points]]
plugin = "test::scale_plugin"
version = "1"
types = { T = "f32" }
attributes = { factor = 2.0 }
shapes = { x = [64, 64] }
microseconds = { 1 = 3.5, 2 = 3.25 }
"#;

#[test]
fn what_was_measured_is_packed() {
    let Some(project) = Project::new() else { return };
    project.edit("manifests/scale.toml", "scale<T>", "scale<T, V>");
    project.edit("kernels/scale.cu", "typename T", "typename T, int V");
    let variants = "[[variants]]\nid = 1\nguard = \"numel(y) % 2 == 0\"\nconstants = { V = 1 }\n[[variants]]\nid = 2\nconstants = { V = 2 }\n[[launches]]";
    project.edit("manifests/scale.toml", "[[launches]]", variants);
    let output = |arguments: &[&str]| {
        let run = project.run(arguments);
        run.assert_ok();
        run.stdout
    };
    project.edit("cubinder.toml", "targets", "tuning = [\"tuning/*.toml\"]\ntargets");
    project.compile(&[]);
    let without = project.read("build/libscale.so");
    assert!(
        !output(&["inspect", "build/libscale.so", "--verbose"]).contains("tuned for"),
        "nothing was measured yet"
    );
    project.write("tuning/nvidia-h200.toml", TUNING);
    project.compile(&["--depfile", "scale.d"]);
    assert!(String::from_utf8(project.read("scale.d")).unwrap().contains("tuning/nvidia-h200.toml"));
    assert!(project.read("build/libscale.so") != without);
    let tuned = "tuned for NVIDIA H200 (compute capability 9.0, 132 multiprocessors): 1 node measured";
    assert!(output(&["inspect", "build/libscale.so", "--verbose"]).contains(tuned));
    let path = project.path("tuning/nvidia-h200.toml");
    project.compile(&["--tuning", path.to_str().unwrap()]);
    assert!(output(&["inspect", "build/libscale.so", "--verbose"]).contains(tuned));
    let runs = |file: &str, device: &[&str]| {
        let arguments =
            [&["eval", file, "--shape", "x=60x60", "--attr", "factor=2", "--json"], device].concat();
        let report: Value = serde_json::from_str(&output(&arguments)).unwrap();
        let variants = report["evaluations"][0]["variants"].as_array().unwrap().clone();
        let notes = report["evaluations"][0]["notes"].as_array().cloned().unwrap_or_default();
        let notes: Vec<String> = notes.iter().map(|note| note.as_str().unwrap().to_owned()).collect();
        let chosen = variants.iter().find(|variant| variant["chosen"] == true).unwrap()["id"].as_i64();
        (chosen, notes.into_iter().filter(|note| note.contains("the variants")).collect::<Vec<_>>())
    };
    for file in ["manifests/scale.toml", "build/libscale.so"] {
        let here = ["--device", "capability=90", "--device", "sms=132"];
        assert_eq!(runs(file, &here), (Some(2), vec!["the variants are ordered by their times on NVIDIA H200 (compute capability 9.0, 132 multiprocessors) for x 64x64".to_owned()]));
        assert_eq!(runs(file, &["--arch", "sm_90", "--device", "sms=132"]).0, Some(2));
        assert_eq!(runs(file, &["--device", "capability=90", "--device", "sms=114"]), (Some(1), Vec::new()));
        let told = "the variants were measured on NVIDIA H200 (compute capability 9.0, 132 multiprocessors): use `--device capability=90 --device sms=132` to show the choice there";
        assert_eq!(runs(file, &[]), (Some(1), vec![told.to_owned()]));
    }
    let said_of = |capability: &str, code: &str| {
        let keys = format!("code = \"{code}\"\nmicroseconds");
        let text = TUNING.replace("microseconds", &keys).replace("9.0", capability);
        project.write("tuning/nvidia-h200.toml", text);
        output(&["compile"])
            .contains("note: the times of `test::scale_plugin` on NVIDIA H200 are of other code (1 node)")
    };
    let said = |code: &str| said_of("8.9", code);
    assert!(said("0123456789abcdef"));
    assert!(!said_of("9.0", "0123456789abcdef"), "the library has PTX alone for it, which nobody measures");
    let library = project.read("build/libscale.so");
    let mut bundles = container::scan(&library).filter_map(|(_, found)| match found.unwrap().container {
        Container::Bundle(bundle) => Some(bundle),
        _ => None,
    });
    let bundle = bundles.next().unwrap();
    let node = Signature {
        attributes: &[cubinder_expr::Value::Float(2.0)],
        types: &[DataType::F32; 2],
        formats: &[Format::Linear; 2],
    };
    let on = |capability: (u8, u8), ids: &[i32]| {
        let (major, minor) = capability;
        let plugin = &bundle.plugins[0];
        let capability = ComputeCapability { major, minor };
        tuning::code_of(plugin, &bundle.code, &node, ids.iter().copied(), capability)
    };
    assert!(!said(&on((8, 9), &[1, 2])) && !said(&on((8, 9), &[2, 1])));
    assert!(said(&on((8, 9), &[1])), "of fewer variants");
    assert!(said(&on((9, 0), &[1, 2])), "of another GPU, which has PTX");
    project.write("tuning/nvidia-h200.toml", TUNING);
    output(&["compile"]);
    output(&["thin", "build/libscale.so", "--arch", "sm_89", "--out-dir", "thin"]);
    assert!(output(&["inspect", "thin/libscale.so", "--verbose"]).contains(tuned));
    let alone = ["compile", "manifests/scale.toml", "--target", "sm_89", "--out-dir", "alone"];
    output(&alone);
    assert!(output(&["inspect", "alone/libscale.so", "--verbose"]).contains(tuned), "as `eval` shows it");
    fs::create_dir(project.path("others")).unwrap();
    fs::copy(project.path("manifests/scale.toml"), project.path("others/scale.toml")).unwrap();
    output(&["compile", "others/scale.toml", "--out-dir", "other"]);
    let other = output(&["inspect", "other/libscale.so", "--verbose"]);
    assert!(!other.contains("tuned for"), "another plugin of the same name");
    project.edit("manifests/scale.toml", "guard = \"numel(y) % 2 == 0\"\n", "");
    let told = project.run(&["check"]).stderr;
    assert!(told.contains("this variant is never reached for 1 of its types"), "{told}");
    project.edit("tuning/nvidia-h200.toml", "2 = 3.25", "3 = 3.25");
    let stale = "warning: variant 3 of `test::scale_plugin` was measured, but no longer exists";
    let case = "manifest = \"manifests/scale.toml\"\n[[cases]]\nname = \"a\"\nshapes = { x = [64, 64] }\nattributes = { factor = 2.0 }\n";
    project.write("cases.toml", case);
    let cases = project.run(&["eval", "--cases", "cases.toml"]);
    assert_eq!((cases.code, cases.stderr.contains(stale)), (Some(0), true), "{}", cases.stderr);
    let all = [
        &["check"][..],
        &["check", "manifests/scale.toml"],
        &["compile"],
        &["compile", "manifests/scale.toml"],
    ];
    for arguments in all {
        let run = project.run(arguments);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let unreached = "warning[C0207]: this variant is never reached";
        assert!([stale, unreached].iter().all(|text| run.stderr.contains(text)), "{}", run.stderr);
    }
    fs::remove_dir_all(project.path("build")).unwrap();
    for arguments in all {
        let run = project.run(&[arguments, &["--deny-warnings"]].concat());
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let denied = "error: warnings are denied by `--deny-warnings`";
        assert!([stale, denied].iter().all(|text| run.stderr.contains(text)), "{}", run.stderr);
    }
    assert!(!project.path("build/libscale.so").exists());
}

#[test]
fn quiet_says_nothing_and_json_is_for_programs() {
    let Some(project) = Project::new() else { return };
    assert_eq!(project.compile(&["--quiet"]).stdout, "");
    let run = project.compile(&["--json"]);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{}", run.stdout);
    assert_eq!(lines[0]["result"], "compiled");
    assert_eq!(lines[0]["nvrtc_calls"], 0);
    assert_eq!(lines[0]["plugins"], 1);
    assert_eq!(lines[0]["code_objects"], 4);
    let library = &lines[0]["libraries"][0];
    assert_eq!(library["path"], "build/libscale.so");
    assert_eq!(library["bytes"], project.read("build/libscale.so").len());
    project.edit("kernels/scale.cu", "* factor", "* facctor");
    let run = project.run(&["compile", "--message-format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, messages) = lines.split_last().unwrap();
    assert!(
        !messages.is_empty() && messages.iter().all(|line| line["severity"] == "error"),
        "{}",
        run.stdout
    );
    assert_eq!(
        (&result["result"], &result["errors"]),
        (&"failed".into(), &messages.len().into()),
        "{}",
        run.stdout
    );
}

#[test]
fn what_is_proved_is_counted_and_listed() {
    let Some(project) = Project::new() else { return };
    let last =
        |run: &support::Run| -> Value { serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap() };
    let json = ["compile", "--message-format", "json"];
    let result = last(&project.run(&json));
    let verdicts = |result: &Value, verdict: &str| {
        let all = result["obligations"].as_array().unwrap();
        all.iter().filter(|one| one["verdict"] == verdict && one["beyond_tensorrt"] == false).count()
    };
    assert!(result["proved"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(result["proved"], verdicts(&result, "proved"));
    assert_eq!(result["refuted"], 0);
    let listed = project.compile(&["-v"]).stdout;
    let proved = listed.lines().filter(|line| line.starts_with("proved ")).count();
    assert_eq!(result["proved"], proved, "{listed}");
    assert!(listed.contains(&format!("\n{proved} checks proved, ")), "{listed}");
    assert_eq!(project.run(&["compile", "-v", "-q"]).code, Some(2));

    project.edit("manifests/scale.toml", "256)\"]\nblock", "256)\", \"x.shape[0]\"]\nblock");
    project.edit("manifests/scale.toml", "type = \"f32\"\n", "type = \"f32\"\ndefault = 0.5\n");
    project.edit("manifests/scale.toml", "name = \"x\"\n", "name = \"x\"\nrank = 1\n");
    for command in [&json[..], &["check", "--message-format", "json"]] {
        let run = project.run(command);
        assert_eq!(run.code, Some(0), "{}", run.stdout);
        let result = last(&run);
        assert_eq!(result["refuted"], verdicts(&result, "refuted"), "{result}");
        assert!(result["refuted"].as_u64().unwrap() > 0, "{result}");
        let all = result["obligations"].as_array().unwrap();
        let sum: u64 = ["proved", "refuted", "at_run_time", "when_built"]
            .iter()
            .map(|key| result[key].as_u64().unwrap())
            .sum();
        assert_eq!(sum, all.len() as u64);
        let one =
            all.iter().find(|one| one["verdict"] == "refuted" && one["beyond_tensorrt"] == false).unwrap();
        assert_eq!(one["case"]["shapes"]["x"], serde_json::json!([65536]), "{one}");
        assert!(one["case"]["attributes"].get("factor").is_some(), "{one}");
    }
    let run = project.run(&["check", "--deny-warnings", "--json"]);
    let result = last(&run);
    assert_eq!((run.code, &result["result"], &result["errors"]), (Some(1), &"failed".into(), &1.into()));
}

#[test]
fn what_only_a_compile_can_tell_has_a_place() {
    let project = Project::without_tools();
    project.edit("kernels/scale.cu", "__global__ void scale", "__global__ void BOUNDS scale");
    let run = project.run(&["check", "--message-format", "json"]);
    let result: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    let unsure = &result["unsure"][0];
    assert_eq!(unsure["kernel"], "scale<float>", "{}", run.stdout);
    assert_eq!(
        (&unsure["doubt"], &unsure["path"]),
        (&"it depends on the macro `BOUNDS`".into(), &"manifests/scale.toml".into())
    );
    assert!(unsure["line"].as_u64().unwrap() > 20 && unsure["column"].as_u64().is_some(), "{unsure}");
}

#[test]
fn a_manifest_that_is_named_is_checked_for_its_projects_targets() {
    let project = Project::without_tools();
    project.edit(
        "manifests/scale.toml",
        "block = [\"256\"]",
        "block = [\"256\"]\nshared_bytes = \"120 * 1024\"",
    );
    let named = ["check", "manifests/scale.toml"];
    let run = project.run(&named);
    assert!(run.code == Some(1) && run.stderr.contains("`sm_89`"), "{}{}", run.stdout, run.stderr);
    let above = support::Run::of(
        project
            .command(&["check", "project/manifests/scale.toml"])
            .current_dir(project.outer(""))
            .output()
            .unwrap(),
    );
    assert_eq!(
        (above.code, above.stderr.matches("`sm_89`").count() > 0),
        (Some(1), true),
        "{}",
        above.stderr
    );
    let run = project.run(&["check", "manifests/scale.toml", "--target", "sm_90"]);
    run.assert_ok();
    fs::remove_file(project.path("cubinder.toml")).unwrap();
    let run = project.run(&named);
    run.assert_ok();
    assert!(run.stdout.contains("GPU limits were not checked"), "{}", run.stdout);
    let run = project.run(&["check", "manifests/scale.toml", "--target", "sm_99"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("warning: unknown target `sm_99`"), "{}", run.stderr);
}

#[test]
fn what_was_meant_is_guessed() {
    let project = Project::without_tools();
    project.write("tests/scale.toml", "manifest = \"../manifests/scale.toml\"\n[[cases]]\nname = \"a\"\n");
    let cases: [(&[&str], i32); 11] = [
        (&["check", "tests/scale.toml"], 1),
        (&["compile", "tests/scale.toml"], 1),
        (&["eval", "tests/scale.toml"], 1),
        (&["check", "cubinder.toml"], 1),
        (&["check", "--config", "manifests/scale.toml"], 1),
        (&["eval", "--cases", "manifests/scale.toml"], 1),
        (&["compile", "--name", "libfoo.so"], 1),
        (&["compile", "--name", "foo.so"], 1),
        (&["compile", "--include=/nope"], 1),
        (&["compile", "manifests/scale.toml", "--target", "sm_89", "compute_80"], 1),
        (&["eval", "manifests/scale.toml", "--target", "sm_89"], 2),
    ];
    let mut text = String::new();
    for (arguments, code) in cases {
        let run = project.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", run.stderr);
        text.push_str(&format!("$ cubinder {}\n{}\n", arguments.join(" "), run.stderr));
    }
    insta::assert_snapshot!(project.plain(&text));
}

type Mistake = (&'static str, fn(&Project), &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    ("kernel_does_not_compile", |project| project.edit("kernels/scale.cu", "* factor", "* facctor"), &[]),
    ("kernel_misspelt", |project| project.edit("manifests/scale.toml", "\"scale<T>\"", "\"scael<T>\""), &[]),
    ("argument_missing", |project| project.edit("manifests/scale.toml", "factor = \"factor\"\n", ""), &[]),
    (
        "argument_too_many",
        |project| {
            project.edit(
                "manifests/scale.toml",
                "factor = \"factor\"\n",
                "factor = \"factor\"\nbias = \"1\"\n",
            );
        },
        &[],
    ),
    (
        "argument_of_another_type",
        |project| project.edit("manifests/scale.toml", "count = \"numel(y)\"", "count = \"factor\""),
        &[],
    ),
    (
        "parameter_of_another_type",
        |project| project.edit("kernels/scale.cu", "const T* x", "const double* x"),
        &[],
    ),
    ("source_missing", |project| fs::remove_file(project.path("kernels/scale.cu")).unwrap(), &[]),
    (
        "include_missing",
        |project| project.write("kernels/scale.cu", format!("#include \"helper.cuh\"\n{KERNEL}")),
        &[],
    ),
    ("no_config", |project| fs::remove_file(project.path("cubinder.toml")).unwrap(), &[]),
    ("config_not_there", |_| (), &["--config", "other/cubinder.toml"]),
    ("config_key_unknown", |project| project.edit("cubinder.toml", "targets", "tagrets"), &[]),
    ("config_target_unknown", |project| project.edit("cubinder.toml", "sm_89", "sm89"), &[]),
    ("target_too_old_for_nvrtc", |_| (), &["--target", "sm_52"]),
    ("manifest_not_there", |_| (), &["manifests/scael.toml"]),
    (
        "tuning_not_there",
        |project| project.edit("cubinder.toml", "targets", "tuning = [\"h200.toml\"]\ntargets"),
        &[],
    ),
    ("tuning_is_something_else", |_| (), &["--tuning", "manifests/scale.toml"]),
    (
        "tuning_of_a_form_that_is_not_known",
        |project| project.write("t.toml", TUNING.replace("sms", "smms")),
        &["--tuning", "t.toml"],
    ),
    ("tuning_compiled", |project| project.write("t.toml", TUNING), &["t.toml"]),
    ("manifests_match_nothing", |project| fs::remove_dir_all(project.path("manifests")).unwrap(), &[]),
    (
        "nothing_says_what_for",
        |project| fs::remove_file(project.path("cubinder.toml")).unwrap(),
        &["manifests/scale.toml"],
    ),
    (
        "arch_without_targets",
        |project| fs::remove_file(project.path("cubinder.toml")).unwrap(),
        &["manifests/scale.toml", "--arch", "sm_89"],
    ),
    ("name_is_no_name", |_| (), &["--name", "a/b"]),
    ("name_is_dots", |_| (), &["--name", ".."]),
    ("name_is_empty", |_| (), &["--name", ""]),
    ("name_of_config_is_dots", |project| project.edit("cubinder.toml", "\"scale\"", "\"..\""), &[]),
    (
        "name_of_manifest_is_no_name",
        |project| {
            fs::rename(project.path("manifests/scale.toml"), project.path("manifests/a b.toml")).unwrap();
        },
        &["manifests/a b.toml"],
    ),
    (
        "manifests_of_two_projects",
        |project| {
            project.write("other/cubinder.toml", CONFIG);
            project.write("other/scale.toml", MANIFEST);
        },
        &["manifests/scale.toml", "other/scale.toml", "--name", "both"],
    ),
    (
        "manifest_outside_of_the_project",
        |project| project.write("../outside/scale.toml", MANIFEST),
        &["manifests/scale.toml", "../outside/scale.toml", "--name", "both"],
    ),
    ("include_is_a_file", |_| (), &["--include", "kernels/scale.cu"]),
    (
        "include_of_the_project_is_not_a_folder",
        |project| {
            let text = "include = [\"nowhere\", \"kernels/scale.cu\"]\ntargets";
            project.edit("cubinder.toml", "targets", text);
        },
        &[],
    ),
    ("out_dir_is_a_library", |_| (), &["--out-dir", "build/libfoo.so"]),
    ("nvrtc_not_there", |_| (), &["--nvrtc", "/nowhere"]),
    ("runtime_library_not_there", |_| (), &["--runtime-library", "lib/libcubinder.so"]),
    ("runtime_library_is_text", |_| (), &["--runtime-library", "kernels/scale.cu"]),
    ("runtime_library_is_another", |_| (), &["--runtime-library", "/bin/sh"]),
    ("runtime_library_is_a_folder", |_| (), &["--runtime-library", "kernels"]),
    ("out_dir_is_a_file", |_| (), &["--out-dir", "kernels/scale.cu"]),
    ("output_is_a_folder", |_| (), &["--output", "kernels"]),
    ("output_is_an_input", |_| (), &["--output", "kernels/scale.cu"]),
    ("output_is_the_runtime_library", |_| (), &["--output", "build/libcubinder.so"]),
    ("library_is_a_folder", |project| fs::create_dir_all(project.path("build/libscale.so")).unwrap(), &[]),
    ("option_unknown", |_| (), &["--option", "--fast-as-possible"]),
];

#[test]
fn mistakes_are_explained() {
    let mut done = 0;
    for (name, make, arguments) in MISTAKES {
        let Some(project) = Project::new() else { return };
        make(&project);
        let run = project.run(&[&["compile"], *arguments].concat());
        run.assert_refused(name);
        assert!(!project.path("build/libscale.so").is_file(), "{name}: a library was written");
        insta::assert_snapshot!(*name, project.plain(&run.stderr));
        done += 1;
    }
    assert_eq!(done, MISTAKES.len());
}

/// NVRTC 13.0 keeps thread state: the process crashes at exit if the thread has ended.
#[test]
fn parameters_beyond_every_limit_are_an_error_and_no_crash() {
    let Some(project) = Project::new() else { return };
    project.edit("kernels/scale.cu", "float factor", "float factor, cubinder::array<int, 8188> big");
    for _ in 0..3 {
        let run = project.run(&["compile", "--no-cache", "--target", "sm_75,sm_80,sm_90,sm_100,sm_120"]);
        run.assert_refused("parameters of 32768 bytes");
        assert!(run.stderr.contains("the limit is 32764"), "{}", run.stderr);
    }
}

#[test]
fn a_compile_that_fails_shows_earlier_warnings() {
    let project = Project::without_tools();
    project.edit("manifests/scale.toml", "block = [", "when = \"x.shape[-1] > 4\"\nblock = [");
    let library = project.path("libcubinder.so");
    fs::write(&library, "any").unwrap();
    let mut command = project.command(&["compile", "--nvrtc", "/nowhere"]);
    let run = support::Run::of(command.env("CUBINDER_RUNTIME_LIBRARY", library).output().unwrap());
    run.assert_refused("no NVRTC");
    for message in ["error: ", "/nowhere", "warning[C0306]"] {
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
    }
}

#[test]
fn missing_tools_are_named() {
    let project = Project::without_tools();
    let bare = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env_remove("CUDA_HOME").env_remove("CUBINDER_NVRTC").env_remove("CUBINDER_RUNTIME_LIBRARY");
        command
    };
    let library = project.path("libcubinder.so");
    fs::write(&library, "any").unwrap();
    let toolkit =
        support::Run::of(bare(&["compile"]).env("CUBINDER_RUNTIME_LIBRARY", library).output().unwrap());
    toolkit.assert_refused("no toolkit");
    insta::assert_snapshot!("toolkit_missing", project.plain(&toolkit.stderr));
    let program = project.outer("cubinder");
    fs::copy(env!("CARGO_BIN_EXE_cubinder"), &program).unwrap();
    let mut command = std::process::Command::new(&program);
    command.arg("compile").current_dir(project.path("")).env_remove("CUBINDER_RUNTIME_LIBRARY");
    let library = support::run_copy(&mut command);
    library.assert_refused("no runtime library");
    insta::assert_snapshot!("runtime_library_missing", project.plain(&library.stderr));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let project = Project::without_tools();
    let wrong: [&[&str]; 9] = [
        &[],
        &["compile", "--tagret", "sm_89"],
        &["compile", "--target", "sm89"],
        &["compile", "--jobs", "0"],
        &["compile", "--message-format", "xml"],
        &["inspect"],
        &["comiple"],
        &["chekc"],
        &["onnx", "lsit"],
    ];
    let mut text = String::new();
    for arguments in wrong {
        let run = project.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        text.push_str(&format!("$ cubinder {}\n{}\n", arguments.join(" "), run.stderr));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_manifest_whose_name_is_not_utf8_needs_a_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(project) = Project::new() else { return };
    let manifest = project.path("manifests").join(std::ffi::OsStr::from_bytes(b"caf\xe9.toml"));
    fs::rename(project.path("manifests/scale.toml"), &manifest).unwrap();
    let run = |arguments: &[&str]| {
        support::Run::of(project.command(&["compile"]).arg(&manifest).args(arguments).output().unwrap())
    };
    let unnamed = run(&[]);
    unnamed.assert_refused("no name");
    insta::assert_snapshot!("manifest_is_not_utf8", project.plain(&unnamed.stderr));
    run(&["--name", "cafe"]).assert_ok();
    assert!(project.path("libcafe.so").is_file());
}

#[test]
fn a_named_manifest_is_compiled_as_its_project_compiles_it() {
    let Some(project) = Project::new() else { return };
    project.write("include/scale.h", "#define FACTOR factor\n");
    let config = format!("{CONFIG}include = [\"include\"]\noptions = [\"-DTIMES=*\"]\n");
    project.write("cubinder.toml", config);
    let kernel = KERNEL.replace("* factor", "TIMES FACTOR");
    project.write("kernels/scale.cu", format!("#include <scale.h>\n{kernel}"));
    project.compile(&[]);
    let library = project.read("build/libscale.so");
    let entries = |folder: &str| fs::read_dir(project.path(folder)).unwrap().count();
    let before = entries("build");
    let named = ["manifests/scale.toml", "--json"];
    let compiled = project.compile(&named);
    let checked = project.run(&[&["check"], &named[..]].concat());
    checked.assert_ok();
    let result =
        |run: &support::Run| -> Value { serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap() };
    assert_eq!(result(&checked)["targets"], serde_json::json!(["compute_80", "sm_89"]));
    assert_eq!(result(&compiled)["code_objects"], 4, "two types and two targets");
    assert!(project.read("libscale.so") == library, "the code is the project's");
    assert_eq!(entries("build"), before, "the project's library stays");
    let manifest = project.path("manifests/scale.toml");
    let mut command = project.command(&["compile", "--quiet"]);
    let outside = command.arg(&manifest).current_dir(project.outer("home")).output().unwrap();
    support::Run::of(outside).assert_ok();
    assert!(fs::read(project.outer("home/libscale.so")).unwrap() == library, "from another folder");
    let fewer = project.compile(&["manifests/scale.toml", "--json", "--arch", "sm_89"]);
    assert_eq!(result(&fewer)["code_objects"], 2);
    let other = project.compile(&["manifests/scale.toml", "--json", "--target", "sm_80"]);
    assert_eq!(result(&other)["code_objects"], 2);
    project.edit("cubinder.toml", "include = ", "includes = ");
    for command in ["check", "compile"] {
        project.run(&[command, "manifests/scale.toml"]).assert_refused("an unknown key");
    }
}

#[test]
fn output_that_has_no_room_is_a_failure() {
    for arguments in [&["schema"][..], &["explain", "C0101"], &["paths", "--json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cubinder"));
        let output = command.args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.starts_with("error: cannot write to standard output: No space left on device"),
            "{said}"
        );
    }
}

#[test]
fn output_that_nobody_reads_is_none() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cubinder"));
    let mut schema = command.arg("schema").stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(schema.stdout.take());
    assert_eq!(schema.wait().unwrap().code(), Some(0));
}
