use std::fs;

use crate::support::Project;
use crate::support::tensorrt::{FOUND, Machine};
use serde_json::Value;

fn of(report: &Value, subject: &str) -> Vec<Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["subject"] == subject).cloned().collect()
}

fn report(machine: &Machine, code: i32) -> Value {
    let run = machine.run(&["doctor", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{}", run.stdout);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["result"], if code == 0 { "ok" } else { "problem" });
    report
}

#[test]
fn missing_optional_parts_are_no_problem() {
    let Some(project) = Project::new() else { return };
    let machine = Machine::new(project);
    let found = report(&machine, 0);
    for subject in ["program", "runtime library", "NVRTC", "CUDA headers", "cache"] {
        assert_eq!(of(&found, subject)[0]["status"], "ok", "{found}");
    }
    for subject in ["TensorRT-RTX", "TensorRT"] {
        let check = &of(&found, subject)[0];
        assert_eq!(check["status"], "not_found");
        assert!(check["fix"].as_str().unwrap().starts_with(&format!("install {subject} ")), "{check}");
    }
}

#[test]
fn what_is_wrong_is_a_problem_with_a_fix() {
    let project = Project::without_tools();
    fs::write(project.outer("cache"), "a file").unwrap();
    let machine = Machine::new(project);
    let libraries = machine.project.outer("tensorrt_rtx_libs");
    fs::create_dir(&libraries).unwrap();
    fs::write(libraries.join("libtensorrt_rtx.so.1"), "").unwrap();
    let package = format!(
        r#"{{"module": "tensorrt_rtx_libs", "folder": "{}", "version": null}}]}}"#,
        libraries.display()
    );
    machine.python(&FOUND.replace("]}", &format!(", {package}")), "");
    let run = || {
        let mut command = machine.command(&["doctor"]);
        command
            .env("CUBINDER_NVRTC", "/nowhere")
            .env_remove("CUDA_HOME")
            .env("CUBINDER_RUNTIME_LIBRARY", "/none");
        let run = crate::support::run_copy(&mut command);
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
        // The driver is the machine's.
        let lines: Vec<&str> = run.stdout.split("\nCUDA driver").collect();
        let cache = run.stdout.rsplit("\ncache").next().unwrap();
        machine.project.plain(&format!("{}\ncache{cache}", lines[0]))
    };
    let mut text = run();
    machine.python(&FOUND.replace("1.7.1.116", "1.5.0.114"), "");
    text.push_str(&format!("\n# an old release\n{}", run()));
    machine.install("python3", "kill -6 $$");
    text.push_str(&format!("\n# a Python that aborts\n{}", run()));
    insta::assert_snapshot!("problems", text);
}

#[test]
fn a_module_that_cannot_be_imported_is_a_problem() {
    let Some(project) = Project::new() else { return };
    let machine = Machine::new(project);
    machine.install("python3", &format!("if [ \"$2\" = find ]; then echo '{FOUND}'; else kill -11 $$; fi"));
    let check = &of(&report(&machine, 1), "TensorRT-RTX")[0];
    assert_eq!(check["found"][1], "cannot be imported: its process was ended by SIGSEGV");
    machine.python(FOUND, "");
    assert_eq!(of(&report(&machine, 0), "TensorRT-RTX")[0]["status"], "ok");
}

#[test]
fn programs_of_nvidia_are_found_with_their_version() {
    let Some(project) = Project::new() else { return };
    let machine = Machine::new(project);
    let home = machine.project.outer("TensorRT-10.15");
    fs::create_dir_all(home.join("lib")).unwrap();
    for name in ["libnvinfer.so", "libnvinfer.so.10", "libnvinfer.so.10.15.1"] {
        fs::write(home.join("lib").join(name), "").unwrap();
    }
    machine.install("trtexec", "");
    fs::rename(machine.project.outer("bin"), home.join("bin")).unwrap();
    let mut command = machine.command(&["doctor", "--json"]);
    let run = crate::support::run_copy(command.env("TENSORRT_HOME", &home));
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let check = &of(&report, "TensorRT")[0];
    assert_eq!((&check["status"], &check["version"]), (&"ok".into(), &"10.15.1".into()));
}
