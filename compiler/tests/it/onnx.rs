use std::path::Path;

use crate::support::models::{self, Case, Fate, MANIFESTS};
use crate::support::{Project, Run};
use serde_json::Value;

fn run(project: &Project, command: &str, case: &Case, more: &[&str]) -> Run {
    run_on(project, command, &case.model, more)
}

fn run_on(project: &Project, command: &str, model: &[u8], more: &[&str]) -> Run {
    project.write("model.onnx", model);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let plugins: Vec<String> = MANIFESTS.iter().map(|name| root.join(name).display().to_string()).collect();
    project.run(&[&["onnx", command, "model.onnx", "--plugins", &plugins.join(",")], more].concat())
}

#[test]
fn every_mistake_is_found_and_said() {
    let project = Project::without_tools();
    let mut text = String::new();
    for case in models::wrong() {
        let done = run(&project, "list", &case, &[]);
        assert_eq!(done.code, Some(1), "{}: {}{}", case.name, done.stdout, done.stderr);
        assert!(done.stderr.starts_with("error") || done.stderr.contains("\nerror"), "{}", case.name);
        text.push_str(&format!("# {}\n{}\n", case.name, done.stderr));
    }
    insta::assert_snapshot!("mistakes", project.plain(&text));
}

#[test]
fn a_rule_that_no_extent_meets_is_told_where_some_are_not_known() {
    let Some(project) = Project::new() else { return };
    let run = run_on(&project, "list", &models::never_right(), &[]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    insta::assert_snapshot!("never_right", run.stdout + &run.stderr);
}

#[test]
fn what_is_right_is_listed_without_an_error() {
    let project = Project::without_tools();
    let mut text = String::new();
    for case in models::right() {
        assert_eq!(case.fate, Fate::Right);
        let done = run(&project, "list", &case, &[]);
        assert_eq!(done.code, Some(0), "{}: {}{}", case.name, done.stdout, done.stderr);
        text.push_str(&format!("# {}\n{}{}\n", case.name, done.stdout, done.stderr));
    }
    insta::assert_snapshot!("right", project.plain(&text));
}

#[test]
fn programs_are_told_the_same() {
    let project = Project::without_tools();
    for case in models::wrong().iter().chain(&models::right()) {
        let done = run(&project, "list", case, &["--json"]);
        assert_eq!(done.stderr, "", "{}", case.name);
        let lines: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (report, messages) = lines.split_last().unwrap();
        let is_wrong = case.fate != Fate::Right;
        assert_eq!(report["result"], if is_wrong { "wrong" } else { "listed" }, "{}", case.name);
        assert_eq!(messages.iter().any(|message| message["severity"] == "error"), is_wrong, "{}", case.name);
        let findings =
            report["nodes"].as_array().unwrap().iter().filter_map(|node| node["findings"].as_array());
        assert_eq!(findings.map(Vec::len).sum::<usize>(), messages.len(), "{}", case.name);
    }
    let first = &models::right()[0];
    let done = run(&project, "list", first, &["--json"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn annotate_mends_what_it_can() {
    /// Models with another plugin's names, which are kept by default.
    const OTHERS: [&str; 4] = [
        "wrong_domain",
        "wrong_domain_and_namespace",
        "wrong_version",
        "version_of_a_plugin_without_a_namespace",
    ];
    const MENDED: [&str; 5] = [
        "default_domain_without_namespace",
        "version_that_is_no_text",
        "shape_inputs_not_said",
        "shape_inputs_said_wrong",
        "shape_inputs_where_there_are_none",
    ];
    let project = Project::without_tools();
    for case in models::wrong() {
        let is_other = OTHERS.contains(&case.name);
        if is_other {
            let done = run(&project, "annotate", &case, &["-o", "out.onnx"]);
            assert_eq!((done.code, done.stdout.as_str()), (Some(1), "nothing to change\n"), "{}", case.name);
            assert!(done.stderr.contains("cubinder onnx annotate --map "), "{}: {}", case.name, done.stderr);
            assert!(project.read("out.onnx") == case.model, "{}", case.name);
        }
        let force: &[&str] = if is_other { &["--force"] } else { &[] };
        let done = run(&project, "annotate", &case, &[&["-o", "out.onnx"], force].concat());
        let is_mended = is_other || MENDED.contains(&case.name);
        assert_eq!(done.code, Some(i32::from(!is_mended)), "{}: {}{}", case.name, done.stdout, done.stderr);
        let out = project.read("out.onnx");
        let again = run_on(&project, "list", &out, &[]);
        assert_eq!(again.code, done.code, "{}", case.name);
        assert_eq!(again.stderr, done.stderr, "{}", case.name);
        let twice = run_on(&project, "annotate", &out, &["-o", "twice.onnx"]);
        assert_eq!(twice.stdout, "nothing to change\n", "{}", case.name);
        assert!(project.read("twice.onnx") == out, "{}", case.name);
    }
}

#[test]
fn annotate_leaves_what_calls_say() {
    let project = Project::without_tools();
    for (attribute, calls) in [
        ("plugin_namespace", ["other", "sample"]),
        ("plugin_namespace", ["other", "other"]),
        ("plugin_namespace", ["sample", "sample"]),
        ("plugin_version", ["1", "2"]),
        ("plugin_version", ["2", "2"]),
        ("plugin_version", ["1", "1"]),
    ] {
        let model = models::said_by_calls(attribute, &calls);
        let map: &[&str] = &["--map", "sample::circ_pad_plugin=sample::circ_pad_plugin"];
        for more in [&[][..], &["--force"], map] {
            let done = run_on(&project, "annotate", &model, &[&["-o", "out.onnx"], more].concat());
            let place = format!("{attribute} {calls:?} {more:?}: {}{}", done.stdout, done.stderr);
            assert_eq!(done.stdout, "nothing to change\n", "{place}");
            assert!(project.read("out.onnx") == model, "{place}");
            // TensorRT also searches the domain as a namespace.
            let is_wrong = calls == ["2", "2"];
            assert_eq!(done.code, Some(i32::from(is_wrong)), "{place}");
        }
    }
}

#[test]
fn annotate_shows_what_it_changes() {
    let project = Project::without_tools();
    let model = models::foreign();
    let map = [
        "mmcv::CircPad=sample::circ_pad_plugin",
        "Add1=elemwise_add_plugin",
        "old::elemwise_add_plugin=elemwise_add_plugin",
    ];
    let map: Vec<&str> = map.into_iter().flat_map(|name| ["--map", name]).collect();
    let shown = run_on(&project, "annotate", &model, &[&map[..], &["--dry-run"]].concat());
    let written = run_on(&project, "annotate", &model, &[&map[..], &["-o", "out.onnx"]].concat());
    assert_eq!((shown.code, shown.stdout.replace("would change", "changed")), (written.code, written.stdout));
    let out = project.read("out.onnx");
    let list = run_on(&project, "list", &out, &[]);
    let json = run_on(&project, "annotate", &model, &[&map[..], &["--dry-run", "--json"]].concat());
    let json: Value = serde_json::from_str(json.stdout.lines().last().unwrap()).unwrap();
    let text = format!(
        "{}{}\n{}{}\n{}\n",
        shown.stdout,
        shown.stderr,
        list.stdout,
        list.stderr,
        serde_json::to_string_pretty(&json).unwrap()
    );
    insta::assert_snapshot!("annotate", project.plain(&text));
}

#[test]
fn the_output_may_be_the_model_itself() {
    let project = Project::without_tools();
    let cases = models::wrong();
    let case = cases.iter().find(|case| case.name == "wrong_domain").unwrap();
    run(&project, "annotate", case, &["-o", "out.onnx", "--force"]).assert_ok();
    run(&project, "annotate", case, &["-o", "model.onnx", "--force"]).assert_ok();
    assert!(project.read("model.onnx") == project.read("out.onnx") && project.read("out.onnx") != case.model);
    let names: Vec<_> =
        std::fs::read_dir(project.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{names:?}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let project = Project::without_tools();
    let right = &models::right()[0];
    let mut text = String::new();
    let mut refused = |name: &str, done: &Run| {
        assert_ne!(done.code, Some(0), "{name}");
        assert_eq!(done.stdout, "", "{name}");
        text.push_str(&format!("# {name}\n{}\n", done.stderr));
    };
    project.write("text.onnx", "schema = 1\n");
    project.write("empty.onnx", "");
    project.write("cut.onnx", &right.model[..right.model.len() - 40]);
    project.write("pointer.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n");
    for file in ["text.onnx", "empty.onnx", "cut.onnx", "pointer.onnx", "none.onnx", "manifests"] {
        refused(file, &project.run(&["onnx", "list", file]));
    }
    refused(
        "plugins",
        &project.run(&["onnx", "list", "model.onnx", "--plugins", "manifests/none.toml,text.onnx"]),
    );
    project.write("model.onnx", &right.model);
    refused(
        "plugins_that_are_others",
        &project.run(&["onnx", "list", "model.onnx", "--plugins", "model.onnx,text.onnx"]),
    );
    refused("output_that_is_no_model", &run(&project, "annotate", right, &["-o", "text.onnx"]));
    assert_eq!(project.read("text.onnx"), b"schema = 1\n");
    std::os::unix::fs::symlink("nowhere.onnx", project.path("dangling.onnx")).unwrap();
    refused("output_that_is_a_link_to_nothing", &run(&project, "annotate", right, &["-o", "dangling.onnx"]));
    let manifest = project.path("plugin.toml");
    let written = include_str!("../../../manifests/elemwise_add_plugin.toml");
    std::fs::write(&manifest, written).unwrap();
    refused(
        "output_that_has_the_plugins",
        &run(&project, "annotate", right, &["-o", "./plugin.toml", "--plugins", "plugin.toml"]),
    );
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), written);
    refused("no_output", &run(&project, "annotate", right, &[]));
    refused("folder", &run(&project, "annotate", right, &["-o", "manifests"]));
    refused(
        "map",
        &run(&project, "annotate", right, &["-o", "o.onnx", "--map", "a", "--map", "a::B=circ_pad"]),
    );
    let map = ["--map", "circ_pad_plugin=circ_pad_plugin", "--map", "a::B=circ_pad_plugin", "--dry-run"];
    refused("map_of_no_node", &run(&project, "annotate", right, &map));
    insta::assert_snapshot!("refused", project.plain(&text));
}

#[test]
fn weights_that_stay_behind_are_a_warning() {
    let project = Project::without_tools();
    let model = models::with_weights_beside_it("weights.bin");
    let inside = run_on(&project, "annotate", &model, &["-o", "out.onnx"]);
    inside.assert_ok();
    std::fs::create_dir(project.path("elsewhere")).unwrap();
    let outside = run_on(&project, "annotate", &model, &["-o", "elsewhere/out.onnx"]);
    assert_eq!(outside.code, Some(0), "{}", outside.stderr);
    let warning =
        "warning: the model's weights are in `weights.bin`, which is not beside `elsewhere/out.onnx`\n";
    assert!(outside.stderr.starts_with(warning), "{}", outside.stderr);
    assert!(project.read("elsewhere/out.onnx") == project.read("out.onnx"));
    let listed = run_on(&project, "list", &model, &["--json"]);
    listed.assert_ok();
    let report: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(report["external_files"], serde_json::json!(["weights.bin"]));
}

#[test]
fn a_model_that_is_replaced_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::without_tools();
    let right = &models::right()[0];
    project.write("out.onnx", &right.model);
    for mode in [0o664, 0o640, 0o606] {
        std::fs::set_permissions(project.path("out.onnx"), std::fs::Permissions::from_mode(mode)).unwrap();
        run(&project, "annotate", right, &["-o", "out.onnx"]).assert_ok();
        let found = std::fs::metadata(project.path("out.onnx")).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode);
    }
    project.write("out.onnx", &right.model);
    std::fs::set_permissions(project.path("out.onnx"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let refused = run(&project, "annotate", right, &["-o", "out.onnx"]);
    refused.assert_refused("a model that is read-only");
    assert!(refused.stderr.contains("error: cannot write `out.onnx`: it is read-only"), "{}", refused.stderr);
    assert!(project.read("out.onnx") == right.model);
}

#[test]
fn what_is_wrong_with_many_nodes_is_told_once() {
    let project = Project::without_tools();
    let model = models::many(121);
    project.write("model.onnx", &model);
    let done = project.run(&["onnx", "list", "model.onnx"]);
    assert_eq!((done.code, done.stdout.lines().count()), (Some(1), 3 + 121 + 1), "{}", done.stdout);
    insta::assert_snapshot!("many", project.plain(&done.stderr));
    let json = project.run(&["onnx", "list", "model.onnx", "--json"]);
    let lines: Vec<Value> = json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let nodes = lines[1]["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node["findings"].as_array().unwrap().len() == 1) && nodes.len() == 121);
}

#[test]
fn shapes_follow_through_a_model() {
    let project = Project::without_tools();
    let mut text = String::new();
    let dynamic = models::dynamic();
    let opaque = models::opaque();
    let made_dynamic = models::made_dynamic();
    let refused = models::wrong().into_iter().find(|case| case.name == "requirement").unwrap().model;
    for (model, arguments) in [
        (&dynamic, &["--shape", "x=4x3x32x64", "--dim", "half=32"][..]),
        (&dynamic, &["--dim", "batch=2", "--dim", "height=5", "--dim", "half=3"]),
        (&dynamic, &["--shape", "x=4x3x32x64", "--node", "pad", "--verbose"]),
        (&dynamic, &[]),
        (&dynamic, &["--dim", "batch=40000", "--dim", "height=5", "--dim", "half=3"]),
        (&dynamic, &["--dim", "batch=0", "--dim", "height=5", "--dim", "half=3"]),
        (&refused, &[]),
        (&made_dynamic, &["--shape", "x=8x3x4x4"]),
        (&made_dynamic, &[]),
        (&made_dynamic, &["--shape", "t=8x3x4x4"]),
        (&made_dynamic, &["--shape", "x=8x3x4x4", "--shape", "y=1x3x9x9"]),
        (&opaque, &["--shape", "x=2x4"]),
        (&opaque, &["--shape", "hidden=7x4"]),
        (&dynamic, &["--shape", "x=4x3x32"]),
        (&dynamic, &["--shape", "x=4x1x32x64"]),
        (&dynamic, &["--shape", "x=4x3x32x64", "--dim", "batch=5"]),
        (&dynamic, &["--shape", "x=4x3x32x64", "--dim", "half=5"]),
        (&dynamic, &["--shape", "z=4", "--values", "q=1", "--dim", "btach=5"]),
        (&dynamic, &["--dim", "batch", "--dim", "batch=-1"]),
        (&dynamic, &["--shape", "x=4x3x32x64", "--node", "padd"]),
        (&dynamic, &["--shape", "x=4x3x32x64", "--node", "shape"]),
    ] {
        let done = run_on(&project, "shapes", model, arguments);
        text.push_str(&format!(
            "$ cubinder onnx shapes {}\n{}{}exit {}\n\n",
            arguments.join(" "),
            done.stdout,
            done.stderr,
            done.code.unwrap()
        ));
    }
    insta::assert_snapshot!("shapes", project.plain(&text));
    let done = run_on(&project, "shapes", &dynamic, &["--shape", "x=2x3x8x8", "--json"]);
    let report: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(report["result"], "evaluated");
    assert_eq!(report["dims"], serde_json::json!([["2*half", 8], ["batch", 2], ["height", 8]]));
    assert_eq!(report["nodes"][0]["evaluation"]["launches"][0]["grid"], serde_json::json!([8, 1, 1]));
}
