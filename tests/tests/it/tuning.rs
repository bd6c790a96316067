//! `cubinder tune` with a stand-in driver that sets times.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::command::{Run, command, finish, root};
use serde_json::{Value, json};

/// Nanoseconds, for `tests/data/testing/planted.cu`.
const TIMES: &str = "plantedILi4E=3000,plantedILi1E=2000";

const CASES: [&str; 3] = ["tune", "tests/data/testing/tuned.toml", "--dry-run"];

fn tune(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Run> {
    let mut command = command(&[&CASES, arguments].concat())?;
    Some(finish(command.env("FAKE_TIMES", TIMES).envs(environment.iter().copied())))
}

fn cases(report: &Value) -> Vec<Value> {
    report["cases"].as_array().cloned().expect("cases")
}

#[test]
fn variants_are_ranked_by_the_clock_of_the_device() {
    let Some(shown) = tune(&[], &[]) else { return };
    shown.assert_code(0);
    insta::assert_snapshot!(shown.stdout);
    let run = tune(&["--json"], &[("FAKE_GPU_BYTES", "1000000000")]).expect("as before");
    run.assert_code(0);
    let report = run.report();
    let device = json!({"name": "Stand-In 4090", "capability": "8.9", "sms": 128, "driver": 13000});
    assert_eq!((&report["result"], &report["device"]), (&json!("tuned"), &device));
    // 256 MiB at 2 bytes per picosecond, half a microsecond per copy.
    assert_eq!(report["copy_gigabytes_per_second"], 999.1);
    let case = cases(&report).remove(0);
    assert_eq!(case["plugin"], "test::planted");
    assert_eq!((&case["shapes"], &case["attributes"]), (&json!({"x": [1000]}), &json!({"fault": 0})));
    assert_eq!((&case["bytes"], &case["automatic"]), (&json!(8000), &json!(1)));
    let variants = case["variants"].as_array().expect("variants");
    let times: Vec<(&Value, &Value)> =
        variants.iter().map(|timed| (&timed["variant"], &timed["microseconds"])).collect();
    assert_eq!(times, [(&json!(1), &json!(3.0)), (&json!(2), &json!(2.0))]);
    assert_eq!((&variants[0]["least"], &variants[0]["most"]), (&json!(3.0), &json!(3.0)));
}

struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().expect("a folder") };
        let data = root().join("tests/data/testing");
        let manifest = std::fs::read_to_string(data.join("planted.toml")).expect("a manifest");
        let manifest =
            manifest.replace("version = \"1\"\n", "version = \"1\"\ntune = \"../tests/sizes.toml\"\n");
        project.write("manifests/planted.toml", &manifest);
        let kernel = std::fs::read_to_string(data.join("planted.cu")).expect("a kernel");
        project.write("manifests/planted.cu", &kernel);
        let case = |rows: u32| format!("[[cases]]\nname = \"{rows} rows\"\nshapes = {{ x = [{rows}, 4] }}\n");
        let cases = format!("manifest = \"../manifests/planted.toml\"\n{}{}", case(7), case(300));
        project.write("tests/sizes.toml", &cases);
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).expect("it exists")
    }

    fn has(&self, path: &str) -> bool {
        self.folder.path().join(path).exists()
    }

    fn tune(&self, arguments: &[&str]) -> Option<Run> {
        let mut command = command(&[&["tune"], arguments].concat())?;
        Some(finish(command.current_dir(self.folder.path()).env("FAKE_TIMES", TIMES)))
    }
}

#[test]
fn what_is_measured_is_kept_beside_the_project() {
    let project = Project::new();
    let Some(dry) = project.tune(&["manifests/planted.toml", "--dry-run"]) else { return };
    dry.assert_code(0);
    assert!(!project.has("manifests/tuning") && !dry.stdout.contains("wrote"), "{}", dry.stdout);
    let alone = project.tune(&["manifests/planted.toml"]).expect("as before");
    alone.assert_code(0);
    let expected = "wrote manifests/tuning/stand-in-4090.toml (2 points; kept 0 others)\n";
    assert!(alone.stdout.ends_with(expected), "{}", alone.stdout);
    let packs = "note: no `cubinder.toml` lists the file: embed it with `cubinder compile manifests/planted.toml ... --tuning \
                 manifests/tuning/stand-in-4090.toml`\n";
    assert!(alone.stdout.contains(packs), "{}", alone.stdout);
    project.write(
        "cubinder.toml",
        "[library]\nname = \"planted\"\nmanifests = [\"manifests/*.toml\"]\ntargets = [\"sm_89\"]\n",
    );
    let json = project.tune(&["manifests/planted.toml", "--json"]).expect("as before");
    json.assert_code(0);
    assert_eq!(json.report()["written"], "tuning/stand-in-4090.toml");
    // Its code's digest depends on NVRTC.
    let kept = project.read("tuning/stand-in-4090.toml");
    let of_code =
        |line: &str| if line.starts_with("code = ") { "code = ...".to_owned() } else { line.to_owned() };
    insta::assert_snapshot!(kept.lines().map(of_code).collect::<Vec<_>>().join("\n"));
    let unnamed = |run: &Run| {
        let notes = run.report()["notes"].as_array().cloned().expect("notes");
        let said = notes.into_iter().map(|note| note.as_str().unwrap_or_default().to_owned());
        let mut said = said.filter_map(|note| {
            let said = note.strip_prefix("`cubinder.toml` does not list the file: embed it with `")?;
            said.strip_suffix("` in `[library]`").map(str::to_owned)
        });
        said.next()
    };
    assert_eq!(unnamed(&json).as_deref(), Some("tuning = [\"tuning/*.toml\"]"));
    let config = project.read("cubinder.toml");
    for patterns in ["[\"tuning/*.toml\"]", "[\"gone.toml\", \"tuning/*.toml\"]"] {
        project.write("cubinder.toml", &format!("{config}tuning = {patterns}\n"));
        let named = project.tune(&["manifests/planted.toml", "--json"]).expect("as before");
        assert_eq!(unnamed(&named), None);
    }
    project.write("cubinder.toml", &format!("{config}tuning = [\"tuning/*.toml\"]\n"));
    let named = project.tune(&["manifests/planted.toml", "--json"]).expect("as before");
    assert_eq!(
        (&cases(&json.report())[0]["automatic"], &cases(&named.report())[0]["automatic"]),
        (&json!(1), &json!(2))
    );
    // An equivalent GPU's times would mix in.
    let other = project.read("tuning/stand-in-4090.toml").replace("4090", "4080");
    project.write("tuning/stand-in-4080.toml", &other);
    let mixed = project.tune(&["manifests/planted.toml", "--json"]).expect("as before");
    mixed.assert_code(0);
    let notes = mixed.report()["notes"].to_string();
    assert!(
        notes.contains("`tuning/stand-in-4080.toml` is for Stand-In 4080, which matches this GPU"),
        "{notes}"
    );
    std::fs::remove_file(project.folder.path().join("tuning/stand-in-4080.toml")).expect("removed");
    for (option, out, file) in
        [("--output", "kept.toml", "kept.toml"), ("--out-dir", "kept", "kept/stand-in-4090.toml")]
    {
        let run = project.tune(&["tests/sizes.toml", option, out, "--json"]).expect("as before");
        run.assert_code(0);
        let does = unnamed(&run).expect("nothing names it");
        assert_eq!(does, format!("tuning = [\"tuning/*.toml\", \"{file}\"]"));
        assert_eq!(project.read(file), project.read("tuning/stand-in-4090.toml"));
    }

    let note = "on Stand-In 4090 are of other code (2 nodes)";
    let compiled = || {
        let run = finish(command(&["compile"]).expect("as before").current_dir(project.folder.path()));
        run.assert_code(0);
        run.stdout.contains(note)
    };
    assert!(!compiled());
    let kernel = project.read("manifests/planted.cu");
    project.write("manifests/planted.cu", &kernel.replace("blockDim.x", "(blockDim.x + 1)"));
    assert!(compiled());
}

#[test]
fn what_is_known_of_other_plugins_stays() {
    let project = Project::new();
    let device = "schema = 1\n[device]\nname = \"Stand-In 4090\"\ncapability = \"8.9\"\nsms = 128\n";
    let point = |plugin: &str, rows: u32| {
        format!(
            "[[points]]\nplugin = \"{plugin}\"\nversion = \"1\"\nattributes = {{ fault = 0 }}\nshapes = {{ x = [{rows}, 4] }}\nmicroseconds = {{ 2 = 77.0 }}\n"
        )
    };
    let known = [point("test::other", 7), point("test::planted", 7), point("test::planted", 9)].concat();
    let rows = |text: &str| {
        text.lines().filter(|line| line.starts_with("shapes")).map(str::to_owned).collect::<Vec<_>>()
    };
    project.write("known.toml", &format!("{device}{known}"));
    let Some(part) = project.tune(&["tests/sizes.toml", "--case", "7 rows", "--output", "known.toml"]) else {
        return;
    };
    part.assert_code(0);
    assert!(!part.stdout.contains("never the fastest"), "{}", part.stdout);
    assert!(part.stdout.contains("(1 point; kept 2 others)"), "{}", part.stdout);
    let text = project.read("known.toml");
    assert_eq!(
        rows(&text),
        ["shapes = { x = [7, 4] }", "shapes = { x = [7, 4] }", "shapes = { x = [9, 4] }"]
    );
    assert_eq!(text.matches("77.0").count(), 2, "{text}");
    project.tune(&["tests/sizes.toml", "--output", "known.toml"]).expect("as before").assert_code(0);
    let text = project.read("known.toml");
    assert_eq!(
        rows(&text),
        ["shapes = { x = [7, 4] }", "shapes = { x = [7, 4] }", "shapes = { x = [300, 4] }"]
    );
    assert_eq!(text.matches("77.0").count(), 1, "{text}");

    for (text, why) in [
        (device.replace("128", "130"), "`known.toml` is for another GPU"),
        (device.replace("4090", "4080"), "`known.toml` is for another GPU"),
        ("schema = 1\n[device]\n".to_owned(), "missing `name` in `[device]`"),
    ] {
        project.write("known.toml", &text);
        let refused = project.tune(&["tests/sizes.toml", "--output", "known.toml"]).expect("as before");
        refused.assert_code(1);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert_eq!(project.read("known.toml"), text);
    }
}

#[test]
fn what_is_known_of_versions_that_are_gone_goes() {
    let project = Project::new();
    let device = "schema = 1\n[device]\nname = \"Stand-In 4090\"\ncapability = \"8.9\"\nsms = 128\n";
    let point = |version: u32| {
        format!(
            "[[points]]\nplugin = \"test::planted\"\nversion = \"{version}\"\nshapes = {{ x = [7, 4] }}\nmicroseconds = {{ 2 = 77.0 }}\n"
        )
    };
    let known = format!("{device}{}{}{}", point(0), point(2), point(1));
    let versions = || {
        let text = project.read("known.toml");
        let lines = text.lines().filter_map(|line| line.strip_prefix("version = "));
        lines.map(|version| version.trim_matches('"').to_owned()).collect::<Vec<_>>().join("")
    };
    let tune = |arguments: &[&str]| {
        project.write("known.toml", &known);
        let run = project.tune(&[&["tests/sizes.toml", "--output", "known.toml"], arguments].concat());
        run.inspect(|run| run.assert_code(0))
    };
    let manifest = project.read("manifests/planted.toml").replace("version = \"1\"", "version = \"2\"");
    project.write("manifests/second.toml", &manifest);
    let Some(run) = tune(&[]) else { return };
    assert_eq!(versions(), "211");
    assert!(run.stdout.contains("removed the times of version `0`"), "{}", run.stdout);
    tune(&["--case", "7 rows"]);
    assert_eq!(versions(), "021", "one case says nothing of all");
    project.write("manifests/second.toml", &manifest.replace("rank", "rnak"));
    tune(&[]);
    assert_eq!(versions(), "0211", "it may be of any version");
    let config =
        "[library]\nname = \"planted\"\nmanifests = [\"manifests/planted.toml\"]\ntargets = [\"sm_89\"]\n";
    project.write("cubinder.toml", config);
    tune(&[]);
    assert_eq!(versions(), "11");
}

#[test]
fn what_was_written_while_it_was_measured_stays() {
    let project = Project::new();
    let known = "schema = 1\n[device]\nname = \"Stand-In 4090\"\ncapability = \"8.9\"\nsms = 128\n";
    project.write("known.toml", known);
    let Some(mut command) = command(&["tune", "tests/sizes.toml", "--output", "known.toml"]) else { return };
    command.current_dir(project.folder.path()).env("FAKE_TIMES", TIMES);
    let mut measuring = command.stdout(Stdio::piped()).spawn().expect("the command starts");
    // The file is read before naming the GPU.
    let mut lines = BufReader::new(measuring.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.contains("Stand-In 4090"), "{first}");
    let other =
        "[[points]]\nplugin = \"test::other\"\nversion = \"1\"\nshapes = {}\nmicroseconds = { 2 = 77.0 }\n";
    project.write("new.toml", &format!("{known}{other}"));
    std::fs::rename(project.folder.path().join("new.toml"), project.folder.path().join("known.toml"))
        .expect("renamed");
    let last = lines.map_while(Result::ok).last().expect("more lines");
    assert!(measuring.wait().expect("it ends").success(), "{last}");
    assert_eq!(last, "wrote known.toml (2 points; kept 1 other)");
    assert!(project.read("known.toml").contains("test::other"), "{}", project.read("known.toml"));
}

#[test]
fn a_project_is_measured_whatever_its_tuning_is() {
    let project = Project::new();
    let library =
        "[library]\nname = \"planted\"\nmanifests = [\"manifests/*.toml\"]\ntargets = [\"sm_89\"]\n";
    project.write(
        "cubinder.toml",
        &format!("{library}tuning = [\"tuning/stand-in-4090.toml\", \"tuning/o*.toml\"]\n"),
    );
    let device = "[device]\nname = \"Stand-In 4090\"\ncapability = \"8.9\"\nsms = 128\n";
    let point = "[[points]]\nplugin = \"test::planted\"\nversion = \"1\"\nattributes = { fault = 0 }\nshapes = { x = [7, 4] }\nmicroseconds = { 2 = 77.0 }\n";
    project.write("tuning/other.toml", &format!("schema = 2\n{device}"));
    let Some(first) = project.tune(&["manifests/planted.toml"]) else { return };
    first.assert_code(0);
    project.write("tuning/stand-in-4090.toml", &format!("schema = 1\n{device}{}", point.repeat(4097)));
    let many = project.tune(&["manifests/planted.toml"]).expect("as before");
    many.assert_code(0);
    assert!(many.stdout.contains("(2 points; kept 0 others)"), "{}", many.stdout);
    // A newer edition's data would be lost.
    let newer = format!("schema = 2\n{device}");
    project.write("tuning/stand-in-4090.toml", &newer);
    let edition = project.tune(&["manifests/planted.toml"]).expect("as before");
    edition.assert_code(1);
    assert!(edition.stderr.contains("move the file and measure again"), "{}", edition.stderr);
    assert_eq!(project.read("tuning/stand-in-4090.toml"), newer);
}

#[test]
fn a_library_is_measured_in_the_place_of_the_manifest() {
    let project = Project::new();
    let Some(mut compile) = command(&[
        "compile",
        "manifests/planted.toml",
        "manifests/doubled.toml",
        "--target",
        "sm_89",
        "--name",
        "both",
        "--out-dir",
        ".",
    ]) else {
        return;
    };
    let data = root().join("tests/data/testing/doubled.toml");
    project.write("manifests/doubled.toml", &std::fs::read_to_string(data).expect("a manifest"));
    finish(compile.current_dir(project.folder.path())).assert_code(0);
    let arguments = ["manifests/planted.toml", "--on", "libboth.so", "--dry-run", "--json"];
    let on = project.tune(&arguments).expect("as before");
    on.assert_code(0);
    assert_eq!(cases(&on.report()).len(), 2);
    project.write(
        "tests/sizes.toml",
        &project.read("tests/sizes.toml").replace("manifests/planted.toml", "libboth.so"),
    );
    let note = |tuning: &str| {
        let library =
            "[library]\nname = \"both\"\nmanifests = [\"manifests/*.toml\"]\ntargets = [\"sm_89\"]\n";
        project.write("cubinder.toml", &format!("{library}{tuning}\n"));
        let run = project.tune(&["tests/sizes.toml", "--plugin", "planted"]).expect("as before");
        run.assert_code(0);
        assert!(
            run.stdout.ends_with("wrote tests/tuning/stand-in-4090.toml (2 points; kept 0 others)\n"),
            "{}",
            run.stdout
        );
        run.stdout.lines().find(|line| line.contains("cubinder.toml")).map(str::to_owned)
    };
    assert!(
        note("")
            .expect("a note")
            .contains("embed it with `tuning = [\"tests/tuning/stand-in-4090.toml\"]` in `[library]`")
    );
    assert_eq!(note("tuning = [\"*/tuning/*.toml\"]"), None);
    std::fs::remove_file(project.folder.path().join("cubinder.toml")).expect("removed");
    let alone = project.tune(&["tests/sizes.toml", "--plugin", "planted"]).expect("as before");
    assert!(
        alone
            .stdout
            .contains("embed it with `cubinder compile ... --tuning tests/tuning/stand-in-4090.toml`"),
        "{}",
        alone.stdout
    );
    let other = project.tune(&["libboth.so", "--plugin", "planted"]).expect("as before");
    other.assert_code(1);
    assert!(other.stderr.contains("`--on libboth.so`"), "{}", other.stderr);
}

#[test]
fn a_manifest_has_to_say_its_shapes() {
    let project = Project::new();
    let text = project.read("manifests/planted.toml");
    for (tune, why) in [
        ("", "no cases with shapes to measure"),
        ("tune = \"../tests/size.toml\"\n", "cannot read `tests/size.toml`"),
        (
            "tune = \"../tests/other.toml\"\n",
            "the cases in `tests/other.toml` are for `manifests/other.toml`",
        ),
    ] {
        project.write("tests/other.toml", &project.read("tests/sizes.toml").replace("planted", "other"));
        project.write("manifests/planted.toml", &text.replace("tune = \"../tests/sizes.toml\"\n", tune));
        let Some(refused) = project.tune(&["manifests/planted.toml"]) else { return };
        refused.assert_code(1);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn times_that_are_far_apart_are_told() {
    let Some(unsteady) = tune(&["--case", "a vector"], &[("FAKE_UNSTEADY", "1")]) else { return };
    unsteady.assert_code(0);
    let expected =
        "note: in 1 of 1 cases a variant's quartiles differ by more than 5 %, at most 50 %, in `a vector`";
    assert!(unsteady.stdout.contains(expected), "{}", unsteady.stdout);
}

#[test]
fn everything_that_a_variant_does_counts() {
    let Some(mut sized) = command(&["tune", "tests/data/testing/tuned_positive.toml", "--dry-run", "--json"])
    else {
        return;
    };
    let sized = finish(sized.env("FAKE_TIMES", "positive=5000"));
    sized.assert_code(0);
    let case = cases(&sized.report()).remove(0);
    assert_eq!((&case["variants"][0]["microseconds"], &case["bytes"]), (&json!(5.5), &json!(2004)));
}

#[test]
fn a_variant_that_cannot_be_measured_is_named() {
    for (fault, why) in
        [("6", "variant 1: "), ("9", "variant 1: the process that measures exited"), ("14", "variant 1: ")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cases.toml");
        let manifest = root().join("tests/data/testing/planted.toml");
        let text = format!(
            "manifest = {manifest:?}\n[[cases]]\nname = \"one\"\nshapes = {{ x = [64] }}\nattributes = {{ fault = {fault} }}\n\
             [[cases]]\nname = \"another\"\nshapes = {{ x = [64] }}\n"
        );
        std::fs::write(&path, text).expect("written");
        let out = folder.path().to_str().expect("UTF-8");
        let arguments = ["tune", path.to_str().expect("UTF-8"), "--timeout", "10", "--out-dir", out];
        let Some(mut failed) = command(&arguments) else { return };
        let failed = finish(&mut failed);
        failed.assert_code(1);
        let expected = format!("cannot measure the case `one`: {why}");
        assert!(failed.stderr.contains(&expected), "{fault}: {}", failed.stderr);
        assert!(failed.stdout.contains("note: no file was written: "), "{fault}: {}", failed.stdout);
        let files = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 1, "the cases alone");
    }
}

#[test]
fn what_hangs_is_named_where_it_is_known() {
    // Too small for copies whose launches do not count.
    let small = ("FAKE_GPU_BYTES", "100000000");
    let hangs = |launch: &str| {
        let arguments = ["--case", "a vector", "--timeout", "2"];
        let run = tune(&arguments, &[small, ("FAKE_HANGS", launch)])?;
        run.assert_code(1);
        Some(run.stderr)
    };
    let Some(first) = hangs("3") else { return };
    assert!(
        first.contains("cannot measure the case `a vector`: variant 1: timed out after 2 s\n"),
        "{first}"
    );
    let round = hangs("60").expect("as before");
    assert!(round.contains("cannot measure the case `a vector`: timed out after 2 s\n"), "{round}");
    let long = tune(&["--case", "a vector", "--timeout", "2"], &[small, ("FAKE_NAP", "30")]);
    long.expect("as before").assert_code(0);
}

#[test]
fn what_was_measured_is_shown_where_the_rest_was_not() {
    let project = Project::new();
    let broken = "[[cases]]\nname = \"broken\"\nshapes = { x = [64] }\nattributes = { fault = 14 }\n";
    let after = "[[cases]]\nname = \"after\"\nshapes = { x = [64] }\n";
    let cases = project.read("tests/sizes.toml");
    project.write("tests/sizes.toml", &format!("{cases}{broken}{after}"));
    let Some(failed) = project.tune(&["tests/sizes.toml", "--json"]) else { return };
    failed.assert_code(1);
    let report = failed.report();
    assert_eq!((&report["result"], &report["errors"]), (&json!("failed"), &json!(1)));
    let measured: Vec<Value> = self::cases(&report).into_iter().map(|mut case| case["case"].take()).collect();
    assert_eq!((measured, &report["written"]), (vec![json!("7 rows"), json!("300 rows")], &Value::Null));
    let notes = report["notes"].to_string();
    assert!(notes.contains("no file was written") && notes.contains("`after` was not measured"), "{notes}");
    assert!(!notes.contains("never the fastest"), "{notes}");
    let message: Value = serde_json::from_str(failed.stdout.lines().next().expect("a line")).expect("JSON");
    assert!(message["message"].to_string().contains("cannot measure the case `broken`"), "{message}");
    let shown = project.tune(&["tests/sizes.toml"]).expect("as before");
    assert!(
        shown.stdout.contains("300 rows: x 300x4") && !shown.stdout.contains("wrote"),
        "{}",
        shown.stdout
    );
    assert!(!project.has("manifests/tuning/stand-in-4090.toml"));
}

#[test]
fn where_nothing_is_launched_nothing_is_written() {
    let project = Project::new();
    let empty =
        "manifest = \"../manifests/planted.toml\"\n[[cases]]\nname = \"empty\"\nshapes = { x = [0] }\n";
    project.write("tests/sizes.toml", empty);
    let Some(done) = project.tune(&["tests/sizes.toml"]) else { return };
    done.assert_code(0);
    let expected = "note: no file was written: no case launches a kernel\n";
    assert!(done.stdout.ends_with(expected), "{}", done.stdout);
    assert!(!project.has("manifests/tuning/stand-in-4090.toml"));
}

#[test]
fn where_nothing_can_be_written_nothing_is_measured() {
    let project = Project::new();
    project.write("notes.txt", "mine");
    let folder = "`--output tests` names a folder, expected a file";
    let file = "`--out-dir notes.txt` names a file, expected a folder";
    for (option, out, why) in [
        ("--output", "tests", folder),
        ("--out-dir", "notes.txt", file),
        ("--output", "notes.txt/a.toml", "cannot write"),
    ] {
        let Some(refused) = project.tune(&["tests/sizes.toml", option, out]) else { return };
        refused.assert_code(1);
        assert!(refused.stderr.contains(why) && refused.stdout.is_empty(), "{}", refused.stderr);
    }
    assert_eq!(project.read("notes.txt"), "mine");
}

#[test]
fn what_cannot_be_measured_is_told_before_anything_is() {
    let Some(no_such) = tune(&["--case", "nowhere"], &[]) else { return };
    no_such.assert_code(1);
    assert!(no_such.stderr.contains("no case whose name contains `nowhere`"), "{}", no_such.stderr);
    let mut plain = command(&["tune", "tests/data/testing/planted.toml"]).expect("as before");
    let plain = finish(&mut plain);
    plain.assert_code(1);
    assert!(plain.stderr.contains("no cases with shapes to measure"), "{}", plain.stderr);
    let mut mistaken = command(&["tune", "tests/data/testing/mistaken.toml"]).expect("as before");
    let mistaken = finish(mistaken.env("FAKE_INIT", "100"));
    mistaken.assert_code(1);
    let none = tune(&[], &[("FAKE_INIT", "100")]).expect("as before");
    none.assert_code(3);
    assert!(none.stderr.contains("no GPU to measure on"), "{}", none.stderr);
    let none = tune(&["--json"], &[("FAKE_INIT", "100")]).expect("as before");
    none.assert_code(3);
    assert_eq!(none.report()["result"], "no_gpu");
}
