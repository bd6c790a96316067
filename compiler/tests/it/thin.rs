//! `compile --arch` and `thin` yield the bytes of a compile for those targets.

use std::fs;

use crate::support::{Project, Run};
use serde_json::Value;

const ALL: &str = "sm_80,sm_86,sm_89,sm_90,compute_80";

impl Project {
    fn compile_for(&self, folder: &str, arguments: &[&str]) {
        self.compile(&[&["--out-dir", folder, "--quiet"], arguments].concat());
    }

    fn thin(&self, arguments: &[&str]) -> Run {
        self.run(&[&["thin"], arguments].concat())
    }

    #[track_caller]
    fn assert_same(&self, first: &str, second: &str) {
        assert!(self.read(first) == self.read(second), "{first} and {second} differ");
    }
}

#[test]
fn a_thinned_library_is_what_compiling_for_its_targets_gives() {
    let Some(project) = Project::new() else { return };
    project.compile_for("all", &["--target", ALL]);
    for (archs, options, targets) in [
        ("sm_90", [].as_slice(), "sm_90,compute_80"),
        ("sm_90", &["--no-ptx"], "sm_90"),
        ("sm_80,sm_89", &["--no-ptx"], "sm_80,sm_89"),
        // 8.7 runs code for 8.6; 10.0 has only PTX.
        ("sm_87", &[], "sm_86,compute_80"),
        ("sm_100", &[], "compute_80"),
    ] {
        let run =
            project.thin(&[&["all/libscale.so", "--arch", archs, "--out-dir", "thin"], options].concat());
        run.assert_ok();
        project.compile_for("direct", &["--target", targets]);
        project.assert_same("thin/libscale.so", "direct/libscale.so");
    }
    project.thin(&["all/libscale.so", "--arch", "sm_100", "--output", "one/thin.so"]).assert_ok();
    project.assert_same("one/thin.so", "thin/libscale.so");
    let sizes = ["all/libscale.so", "thin/libscale.so"].map(|name| project.read(name).len());
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[test]
fn a_pair_of_which_one_is_thinned_is_finished() {
    let Some(project) = Project::new() else { return };
    project.compile_for("direct", &["--target", "sm_90,compute_80", "--embed"]);
    for (named, done) in [
        ("libscale.so", "libscale-code.so"),
        ("libscale-code.so", "libscale-code.so"),
        ("libscale.so", "libscale.so"),
    ] {
        project.compile_for("pair", &["--target", ALL, "--embed"]);
        fs::copy(project.path(&format!("direct/{done}")), project.path(&format!("pair/{done}"))).unwrap();
        let one = project.thin(&[&format!("pair/{named}"), "--arch", "sm_90", "-o", "one.so"]);
        assert!(one.stderr.contains("help: use `--out-dir .`"), "{}", one.stderr);
        project.thin(&[&format!("pair/{named}"), "--arch", "sm_90"]).assert_ok();
        for name in ["libscale.so", "libscale-code.so"] {
            project.assert_same(&format!("pair/{name}"), &format!("direct/{name}"));
        }
    }
}

#[test]
fn ops_and_code_library_change_together() {
    let Some(project) = Project::new() else { return };
    project.compile_for("direct", &["--target", "sm_90,compute_80", "--embed"]);
    for named in ["libscale.so", "libscale-code.so"] {
        project.compile_for("pair", &["--target", ALL, "--embed"]);
        let run = project.thin(&[&format!("pair/{named}"), "--arch", "sm_90"]);
        run.assert_ok();
        assert!(run.stdout.contains("use both together"), "{}", run.stdout);
        for name in ["libscale.so", "libscale-code.so"] {
            project.assert_same(&format!("pair/{name}"), &format!("direct/{name}"));
        }
    }
    project.compile_for("pair", &["--target", ALL, "--embed"]);
    let whole = project.read("pair/libscale.so");
    fs::copy(project.path("direct/libscale-code.so"), project.path("pair/libscale-code.so")).unwrap();
    let run = project.thin(&["pair/libscale.so", "--arch", "sm_80"]);
    run.assert_refused("another bundle");
    assert!(run.stderr.contains("`pair/libscale-code.so` is not its code library"), "{}", run.stderr);
    fs::remove_file(project.path("pair/libscale-code.so")).unwrap();
    let run = project.thin(&["pair/libscale.so", "--arch", "sm_90"]);
    run.assert_refused("cannot thin only `pair/libscale.so`");
    assert!(
        run.stderr.contains("its code library, `pair/libscale-code.so`, does not exist"),
        "{}",
        run.stderr
    );
    assert!(project.read("pair/libscale.so") == whole);
}

#[test]
fn what_cannot_be_thinned_is_refused_by_name() {
    let Some(project) = Project::new() else { return };
    project.compile_for("all", &["--target", "sm_89,compute_80"]);
    let library = project.read("all/libscale.so");
    let generic = std::env::var("CUBINDER_RUNTIME_LIBRARY").unwrap();
    let (offset, found) = cubinder_model::container::scan(&library).next().unwrap();
    let bundle = &library[offset..offset + found.unwrap().length];
    project.write("model.plan", [b"plan", bundle].concat());
    project.write("text", "text");
    let mut text = String::new();
    for arguments in [
        ["all/libscale.so", "--arch", "sm_75"].as_slice(),
        &["all/libscale.so", "--arch", "sm_90", "--no-ptx"],
        &["all/libscale.so", "--arch", "sm_90a"],
        &["all/libscale.so", "--arch", "compute_80"],
        &["model.plan", "--arch", "sm_89"],
        &[&generic, "--arch", "sm_89"],
        &["text", "--arch", "sm_89"],
        &["absent", "--arch", "sm_89"],
    ] {
        let run = project.thin(arguments);
        assert_eq!((run.stdout.as_str(), run.code.unwrap() > 0), ("", true), "{arguments:?}");
        let arguments = arguments.join(" ").replace(&generic, "[RUNTIME]");
        text.push_str(&format!("$ cubinder thin {arguments}\n{}\n", project.plain(&run.stderr)));
    }
    insta::assert_snapshot!(text);
    assert!(project.read("all/libscale.so") == library, "a rejection changes nothing");
}

#[test]
fn sizes_are_said_to_people_and_programs() {
    let Some(project) = Project::new() else { return };
    project.compile_for("all", &["--target", ALL]);
    let before = project.read("all/libscale.so").len();
    let run = project.thin(&["all/libscale.so", "--arch", "sm_89", "--out-dir", "thin"]);
    run.assert_ok();
    assert!(
        run.stdout.contains("thin/libscale.so: ") && run.stdout.contains(&format!("{before} -> ")),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("kept 4 of 10 code objects: sm_89, compute_80"), "{}", run.stdout);
    let run = project.thin(&["all/libscale.so", "--arch", "sm_89", "--out-dir", "thin", "--json"]);
    run.assert_ok();
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["libraries"][0]["bytes_before"], before);
    assert_eq!(report["libraries"][0]["bytes"], project.read("thin/libscale.so").len());
    assert_eq!((&report["code_objects_before"], &report["code_objects"]), (&10.into(), &4.into()));
    assert_eq!(report["targets"], serde_json::json!(["sm_89", "compute_80"]));
}

#[test]
fn a_subset_of_the_targets_is_compiled() {
    let Some(project) = Project::new() else { return };
    project.compile_for("some", &["--arch", "sm_89"]);
    project.compile_for("direct", &["--target", "sm_89"]);
    project.assert_same("some/libscale.so", "direct/libscale.so");
    for archs in ["sm_90", "sm_89,sm_90"] {
        let run = project.run(&["compile", "--arch", archs]);
        run.assert_refused(archs);
        assert!(run.stderr.contains("`sm_89`, `compute_80`"), "{}", run.stderr);
    }
    let run = project.run(&["compile", "--arch", "sm_89", "--target", "sm_90"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
}
