use std::path::{Path, PathBuf};

use cubinder_skip::skip;
use cubinder_tests::installed::{Installed, capture};
use cubinder_tests::walkthrough::{self, Step};

pub(crate) struct Reader {
    pub(crate) installed: Installed,
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Reader {
    pub(crate) fn from_environment(which: Python) -> Option<Reader> {
        let variable = |name| std::env::var(name).ok();
        let compilers = variable("CUBINDER_TEST_COMPILERS")?;
        let pytorch = variable("CUBINDER_TEST_PYTORCH")?;
        let python = variable("CUBINDER_TEST_PYTHON")?;
        let python_path = variable("CUBINDER_TEST_PYTHONPATH")?;
        let libraries = variable("CUBINDER_TEST_LIBRARY_PATH")?;
        let trtexec = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/trtexec");
        let installed = Installed::linked_wheel().unwrap()?;
        let programs = installed.work("programs").unwrap();
        let script = |name: &str, line: &str| {
            write_program(&programs.join(name), &format!("#!/bin/sh\n{line} \"$@\"\n"));
        };
        // One path would mix the Pythons' libraries.
        match which {
            Python::PyTorch => {
                // With `cubinder.torch`.
                let own = installed.packages().unwrap();
                let variables =
                    format!("LD_LIBRARY_PATH='{pytorch}/stand-ins' PYTHONPATH='{}'", own.display());
                script("python", &format!("{variables} exec '{pytorch}/bin/python'"));
            }
            Python::TensorRt => {
                // The package `tensorrt_rtx` has this module beside its bindings.
                let module = programs.join("tensorrt_rtx.py");
                std::fs::write(module, "from tensorrt_rtx_bindings import *\n").unwrap();
                let modules = format!("{}:{python_path}", programs.display());
                // `cubinder build` looks for `python3`.
                for name in ["python", "python3"] {
                    script(
                        name,
                        &format!("LD_LIBRARY_PATH='{libraries}' PYTHONPATH='{modules}' exec '{python}'"),
                    );
                }
            }
            Python::Compilers => {
                script("python", &format!("PYTHONPATH='{python_path}' exec '{compilers}/bin/python'"));
                let packages = std::fs::read_dir(Path::new(&compilers).join("lib")).unwrap().flatten();
                let nvcc = packages
                    .map(|entry| entry.path().join("site-packages/nvidia/cu13/bin/nvcc"))
                    .find(|path| path.is_file())
                    .unwrap();
                script("nvcc", &format!("exec '{}'", nvcc.display()));
            }
        }
        let environment = format!("LD_LIBRARY_PATH='{libraries}' PYTHONPATH='{python_path}'");
        script("trtexec", &format!("{environment} exec '{python}' '{trtexec}'"));
        let bin = installed.prefix().join("bin");
        let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", programs.display(), bin.display());
        Some(Reader { installed, variables: vec![("PATH", path)] })
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Python {
    PyTorch,
    TensorRt,
    Compilers,
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn page(name: &str) -> Vec<Step> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    walkthrough::steps(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn follow(name: &str, which: Python) {
    let Some(reader) = Reader::from_environment(which) else {
        return skip("the builds and packages of `cargo xtask test` are not set");
    };
    follow_in(name, &reader, &reader.installed.work("empty").unwrap());
}

fn follow_in(name: &str, reader: &Reader, folder: &Path) {
    let left_out = walkthrough::follow(&page(name), folder, &reader.variables, false);
    for reason in left_out.unwrap_or_else(|error| panic!("{name}: {error:#}")) {
        println!("{name}: {reason}");
    }
}

fn pages_in(folder: &str) -> Vec<String> {
    let entries =
        std::fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}"));
    pages.collect()
}

fn command_lines(text: &str, program: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut in_commands = false;
    let mut is_continued = false;
    for line in text.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            in_commands = !in_commands && info.split(' ').next() == Some("sh");
            is_continued = false;
        } else if in_commands && is_continued {
            let last = lines.last_mut().unwrap();
            last.push_str(line);
            is_continued = line.ends_with('\\');
        } else if in_commands && line.strip_prefix(program).is_some_and(|rest| rest.starts_with(' ')) {
            lines.push(line.to_owned());
            is_continued = line.ends_with('\\');
        }
    }
    lines.into_iter().map(|line| line.replace('\\', " ")).collect()
}

#[test]
fn commands_are_taken_out_of_pages() {
    let page = "trtexec --a\n```sh gpu\ncubinder x\ntrtexec --b \\\n  --c=$(d)\ntrtexec --e\n```\n```toml\ntrtexec --f\n```\n";
    assert_eq!(command_lines(page, "trtexec"), ["trtexec --b    --c=$(d)", "trtexec --e"]);
}

#[test]
fn every_trtexec_command_of_the_pages_is_one() {
    let Some(reader) = Reader::from_environment(Python::PyTorch) else {
        return skip("the builds and packages of `cargo xtask test` are not set");
    };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = [pages_in("docs"), pages_in("docs/plugins"), vec!["README.md".to_owned()]].concat();
    let mut count = 0;
    for page in pages.into_iter().map(|name| root.join(name)) {
        for line in command_lines(&std::fs::read_to_string(&page).unwrap(), "trtexec") {
            let mut command = reader.installed.command("bash");
            command.args(["-c", &line]).envs(reader.variables.iter().cloned()).env("TRTEXEC_PARSE_ONLY", "1");
            capture(&mut command).unwrap_or_else(|error| panic!("{}: {line}: {error:#}", page.display()));
            count += 1;
        }
    }
    assert!(count >= 10, "{count} commands were found");
    let mut command = reader.installed.command("bash");
    command.args(["-c", "trtexec --loadEngine=a --noSuchOption"]).envs(reader.variables.iter().cloned());
    assert!(capture(command.env("TRTEXEC_PARSE_ONLY", "1")).is_err(), "unknown options are rejected");
}

#[test]
fn the_readme_can_be_followed() {
    follow("README.md", Python::PyTorch);
}

#[test]
fn the_quickstart_can_be_followed_and_continued() {
    let Some(reader) = Reader::from_environment(Python::TensorRt) else {
        return skip("the builds and packages of `cargo xtask test` are not set");
    };
    let folder = reader.installed.work("empty").unwrap();
    for page in ["docs/quickstart.md", "docs/build.md", "docs/run.md"] {
        follow_in(page, &reader, &folder);
    }
}

#[test]
fn the_tutorial_can_be_followed() {
    follow("docs/tutorial.md", Python::PyTorch);
}

#[test]
fn the_reduction_tutorial_can_be_followed() {
    follow("docs/tutorial-reduction.md", Python::TensorRt);
}

#[test]
fn the_recipes_for_models_can_be_followed() {
    follow("docs/pytorch.md", Python::PyTorch);
}

#[test]
fn the_page_about_triton_can_be_followed() {
    follow("docs/triton.md", Python::Compilers);
}

#[test]
fn the_page_about_precompiled_kernels_can_be_followed() {
    follow("docs/precompiled-kernels.md", Python::Compilers);
}

#[test]
fn the_pages_about_testing_and_tuning_can_be_followed() {
    for page in ["docs/eval.md", "docs/testing.md", "docs/tuning.md"] {
        follow(page, Python::PyTorch);
    }
}

#[test]
fn the_pages_of_the_plugins_can_be_followed() {
    let Some(reader) = Reader::from_environment(Python::PyTorch) else {
        return skip("the builds and packages of `cargo xtask test` are not set");
    };
    let root = std::fs::canonicalize(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let names = [pages_in("docs/plugins"), vec!["docs/plugins.md".to_owned()]].concat();
    assert!(names.len() > 7, "{names:?}");
    for name in names {
        let folder = reader.installed.work(&name).unwrap();
        for part in ["manifests", "kernels"] {
            std::os::unix::fs::symlink(root.join(part), folder.join(part)).unwrap();
        }
        let has_commands = page(&name).iter().any(|step| matches!(step, Step::Commands { .. }));
        assert!(has_commands, "{name} has an example");
        follow_in(&name, &reader, &folder);
    }
}
