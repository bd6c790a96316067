use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::{Project, Run};
use cubinder_skip::skip;

fn commands(project: &Project) -> Vec<String> {
    let help = project.run(&["help"]).stdout;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let first = |line: &str| {
        line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?.split(' ').next().map(str::to_owned)
    };
    list.lines().filter_map(first).filter(|name| name != "help").collect()
}

#[test]
fn a_new_plugin_is_right_as_it_stands() {
    let Some(project) = Project::new() else { return };
    let run = project.run(&["new", "wave", "--path", "fresh/wave"]);
    run.assert_ok();
    insta::assert_snapshot!(run.stdout.replace("  cubinder check\n", ""));
    let inside = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        Run::of(command.current_dir(project.path("fresh/wave")).output().unwrap())
    };
    if commands(&project).iter().any(|name| name == "check") {
        inside(&["check"]).assert_ok();
    }
    let cases = inside(&["eval", "--cases", "tests/wave.toml"]);
    cases.assert_ok();
    assert!(cases.stdout.ends_with("\n5 as expected\n"), "{}", cases.stdout);
    for case in ["x=4x1024", "x=3x33", "x=scalar"] {
        let shown = inside(&[
            "eval",
            "manifests/wave.toml",
            "--shape",
            case,
            "--attr",
            "factor=2",
            "--arch",
            "sm_90",
        ]);
        shown.assert_ok();
        assert!(shown.stdout.contains("64 of 64 warps"), "{}", shown.stdout);
    }
    inside(&["compile"]).assert_ok();
    assert!(project.path("fresh/wave/build/libwave.so").is_file());
}

#[test]
fn every_template_is_right_as_it_stands() {
    let Some(project) = Project::new() else { return };
    for (template, variants) in [("elementwise", 5), ("reduction", 5), ("inplace", 4), ("data-dependent", 5)]
    {
        let made = project.run(&["new", "wave", "--template", template, "--path", template]);
        made.assert_ok();
        let inside = |arguments: &[&str]| {
            let mut command = project.command(arguments);
            let run = Run::of(command.current_dir(project.path(template)).output().unwrap());
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{template}: {arguments:?}");
            run.stdout
        };
        let checked = inside(&["check", "--deny-warnings", "--json"]);
        let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
        assert_eq!(
            (&checked["refuted"], &checked["unsure"]),
            (&0.into(), &serde_json::json!([])),
            "{checked}"
        );
        let cases = inside(&["eval", "--cases", "tests/wave.toml"]);
        assert!(cases.ends_with(&format!("\n{variants} as expected\n")), "{cases}");
        let line = made.stdout.lines().find(|line| line.contains("cubinder eval manifests/")).unwrap();
        inside(&line.split_whitespace().skip(1).collect::<Vec<_>>());
        inside(&["compile", "--deny-warnings"]);
        assert!(project.path(template).join("build/libwave.so").is_file());
    }
    for template in ["reduction", "data-dependent"] {
        project.edit(&format!("{template}/manifests/wave.toml"), "BLOCK = 256", "BLOCK = 48");
        let mut command = project.command(&["compile"]);
        let run = Run::of(command.current_dir(project.path(template)).output().unwrap());
        run.assert_refused(template);
        assert!(run.stderr.contains("BLOCK must be a multiple of 32"), "{}", run.stderr);
    }
}

#[test]
fn a_plugin_is_added_to_a_project_and_overwrites_nothing() {
    let project = Project::without_tools();
    let run = project.run(&["new", "wave"]);
    run.assert_ok();
    assert!(
        run.stdout.starts_with("wrote manifests/wave.toml\nwrote kernels/wave.cu\nwrote tests/wave.toml\n"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("--plugins build/libscale.so"), "{}", run.stdout);
    fs::remove_file(project.path("tests/wave.toml")).unwrap();
    project.run(&["new", "wave"]).assert_ok();
    fs::remove_file(project.path("tests/wave.toml")).unwrap();
    project.edit("kernels/wave.cu", "// ", "// Mine: ");
    let again = project.run(&["new", "wave"]);
    again.assert_refused("a second time");
    insta::assert_snapshot!(again.stderr);
    assert!(!project.path("tests/wave.toml").exists());

    let below =
        Run::of(project.command(&["new", "tide"]).current_dir(project.path("kernels")).output().unwrap());
    below.assert_ok();
    assert!(project.path("manifests/tide.toml").is_file(), "{}", below.stdout);

    project.edit("cubinder.toml", "targets", "manifests = [\"manifests/scale.toml\"]\ntargets");
    let unnamed = project.run(&["new", "ebb"]);
    assert_eq!(unnamed.code, Some(0));
    assert!(unnamed.stderr.contains("add `manifests/ebb.toml` to its `manifests`"), "{}", unnamed.stderr);
    for name in ["a-b", "1a", "", "cubinder", "../x"] {
        project.run(&["new", name]).assert_refused(name);
    }
}

#[test]
fn completions_know_every_command() {
    let project = Project::without_tools();
    let commands = commands(&project);
    assert!(commands.len() >= 6, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = project.run(&["completions", shell]);
        run.assert_ok();
        for command in &commands {
            assert!(run.stdout.contains(command.as_str()), "{shell} lacks {command}");
        }
        // Only bash and zsh complete positional values, and only they and fish those of options.
        let values: &[&str] = match shell {
            "bash" | "zsh" => &["all-major", "sm_89", "compute_80", "data-dependent", "C0101"],
            "fish" => &["all-major", "sm_89", "compute_80", "data-dependent"],
            _ => &[],
        };
        for value in values {
            assert!(run.stdout.contains(value), "{shell} lacks {value}");
        }
    }
    let script = project.run(&["completions", "bash"]).stdout;
    project.write("complete.sh", &script);
    let check = Command::new("bash").arg("-n").arg(project.path("complete.sh")).stdin(Stdio::null()).output();
    match check {
        Ok(check) => assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr)),
        Err(error) => skip(&format!("no bash: {error}")),
    }
}

#[test]
fn bash_completes_targets_and_rule_codes() {
    let project = Project::without_tools();
    project.write("complete.sh", project.run(&["completions", "bash"]).stdout);
    let completed = |words: &[&str]| {
        let last = words.len() - 1;
        let script = format!(
            "source '{}'; COMP_WORDS=({}) COMP_CWORD={last}; _cubinder cubinder {} {}; echo \"${{COMPREPLY[@]}}\"",
            project.path("complete.sh").display(),
            words.join(" "),
            words[last],
            words[last - 1],
        );
        let output =
            Command::new("bash").args(["--norc", "-c", &script]).stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let Some(targets) = completed(&["cubinder", "check", "--target", "sm_8"]) else {
        return skip("no bash");
    };
    assert_eq!(targets, "sm_80 sm_86 sm_87 sm_88 sm_89");
    assert_eq!(completed(&["cubinder", "compile", "--target", "all"]).unwrap(), "all-major");
    assert_eq!(completed(&["cubinder", "explain", "C010"]).unwrap().split(' ').next(), Some("C0101"));
    let help = project.run(&["compile", "--help"]).stdout + &project.run(&["explain", "--help"]).stdout;
    assert!(!help.contains("possible values: native") && !help.contains("C0205"), "{help}");
}

#[test]
fn every_command_has_a_page() {
    let project = Project::without_tools();
    let main = project.run(&["man"]);
    main.assert_ok();
    assert!(main.stdout.contains(".TH cubinder 1"), "{}", main.stdout);
    project.run(&["man", "pages/man1"]).assert_ok();
    let commands = commands(&project);
    for command in &commands {
        let page = String::from_utf8(project.read(&format!("pages/man1/cubinder-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH cubinder-{command} 1")), "{page}");
        assert!(main.stdout.contains(&format!("cubinder\\-{command}(1)")), "{command}");
    }
    let of_cache = ["export", "import", "prune", "pull", "push", "stats"].map(|name| format!("cache-{name}"));
    let others = ["import-cubin", "import-ptx", "import-triton", "onnx-annotate", "onnx-list", "onnx-shapes"];
    for inner in others.map(str::to_owned).into_iter().chain(of_cache) {
        let page = String::from_utf8(project.read(&format!("pages/man1/cubinder-{inner}.1"))).unwrap();
        assert!(page.contains(&format!(".TH cubinder-{inner} 1")), "{page}");
    }
    let pages = || fs::read_dir(project.path("pages/man1")).unwrap().count();
    let before = pages();
    assert_eq!(before, commands.len() + 12 + 1);
    project.run(&["man", "cubinder.toml/pages"]).assert_refused("a folder below a file");
    for name in ["cubinder.1", "cubinder-new.1"] {
        project.write(&format!("pages/man1/{name}"), "mine");
    }
    let locked = project.path("pages/man1/cubinder-new.1");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
    let refused = project.run(&["man", "pages/man1"]);
    refused.assert_refused("a page that is read-only");
    let error = "error: cannot write `pages/man1/cubinder-new.1`: it is read-only";
    assert!(refused.stderr.starts_with(error), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(
            "help: make it writable with `chmod u+w pages/man1/cubinder-new.1`, or change the folder"
        )
    );
    assert_eq!(project.read("pages/man1/cubinder.1"), b"mine");
    assert_eq!(pages(), before);
}

#[test]
fn mistakes_in_the_command_line_look_like_all_others() {
    let project = Project::without_tools();
    let lines: [&[&str]; 9] = [
        &["evla"],
        &["eval"],
        &["eval", "a.toml", "--shpe", "x=1"],
        &["eval", "a.toml", "--cases", "b.toml"],
        &["eval", "a.toml", "--node", "one"],
        &["eval", "a.toml", "--arch", "90"],
        &["compile", "--message-format", "hunam"],
        &["completions", "bsh"],
        &["inspect", "a", "b"],
    ];
    let mut text = String::new();
    for arguments in lines {
        let run = project.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        text.push_str(&format!("$ cubinder {}\n{}\n", arguments.join(" "), run.stderr));
    }
    insta::assert_snapshot!(text);
    assert_eq!(project.run(&["--version"]).code, Some(0));
    assert_eq!(project.run(&["eval", "--help"]).code, Some(0));
}
