use serde_json::Value;

use crate::support::{Project, Run};

#[test]
fn all_major_is_each_major_version_of_nvrtc() {
    let Some(project) = Project::new() else { return };
    let checked = project.run(&["check", "--target", "all-major", "--json"]);
    checked.assert_ok();
    let result: Value = serde_json::from_str(checked.stdout.lines().last().unwrap()).unwrap();
    let mut targets: Vec<&str> =
        result["targets"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    targets.sort_by_key(|target| (target.starts_with("compute_"), target.len(), *target));
    let (ptx, code) = targets.split_last().unwrap();
    assert!(["sm_80", "sm_90", "sm_100", "sm_120"].iter().all(|target| code.contains(target)), "{targets:?}");
    assert!(["sm_86", "sm_89", "sm_121"].iter().all(|target| !code.contains(target)), "{targets:?}");
    assert_eq!(Some(ptx.replace("compute_", "sm_").as_str()), code.last().copied());
    let compiled = project.compile(&["--target", "all-major,sm_80", "--json"]);
    let result: Value = serde_json::from_str(compiled.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["code_objects"], 2 * targets.len(), "two types");
    let mut command = project.command(&["check", "--target", "all-major"]);
    let missing = Run::of(command.env("CUBINDER_NVRTC", "/nowhere").output().unwrap());
    missing.assert_refused("no NVRTC");
}

#[test]
fn macros_and_include_folders_have_short_options() {
    let Some(project) = Project::new() else { return };
    project.edit("kernels/scale.cu", "* factor", "* FACTOR");
    project.write("include/factor.h", "#define FACTOR OTHER(factor)\n");
    let kernel = project.read("kernels/scale.cu");
    project.write("kernels/scale.cu", [b"#include <factor.h>\n", kernel.as_slice()].concat());
    project.run(&["compile", "-q"]).assert_refused("no header");
    project.run(&["compile", "-q", "-I", "include"]).assert_refused("no macro");
    let done = project.compile(&["-q", "-j", "1", "-Iinclude", "-DOTHER(x)=x"]);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    for wrong in ["", "=1", "-x", "1"] {
        assert_eq!(project.run(&["compile", "-D", wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn colour_is_chosen_for_messages_and_help() {
    let project = Project::without_tools();
    let has_colour = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = project.command(arguments);
        let run = Run::of(command.envs(environment.iter().copied()).output().unwrap());
        format!("{}{}", run.stdout, run.stderr).contains('\u{1b}')
    };
    for command in [&["check", "nowhere.toml"][..], &["check", "--help"], &["check", "--nowhere"]] {
        let with = |choice: &[&'static str]| [command, choice].concat();
        assert!(!has_colour(command, &[]), "no terminal");
        assert!(has_colour(&with(&["--color", "always"]), &[("NO_COLOR", "1")]), "{command:?}");
        assert!(has_colour(&[&["--color=always"], command].concat(), &[]), "{command:?}");
        assert!(has_colour(command, &[("CLICOLOR_FORCE", "1")]), "{command:?}");
        assert!(!has_colour(&with(&["--color=never"]), &[("CLICOLOR_FORCE", "1")]), "{command:?}");
    }
    assert_eq!(project.run(&["check", "--color", "often"]).code, Some(2));
}
