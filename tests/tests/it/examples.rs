use std::fs;
use std::path::{Path, PathBuf};

use cubinder_skip::skip;
use cubinder_tests::installed::capture;
use cubinder_tests::walkthrough::{self, Needs, Step};

use crate::pages::{Python, Reader};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn examples() -> Vec<String> {
    let root = root();
    names(&root).into_iter().filter(|name| root.join(name).is_dir()).collect()
}

fn page(example: &str) -> (String, Vec<Step>) {
    let text = fs::read_to_string(root().join(example).join("README.md")).unwrap();
    let steps = walkthrough::steps(&text).unwrap_or_else(|error| panic!("{example}: {error:#}"));
    (text, steps)
}

fn copy(example: &str, folder: &Path) {
    for name in names(&root().join(example)) {
        let path = root().join(example).join(&name);
        if path.is_file() {
            fs::copy(&path, folder.join(&name)).unwrap();
        }
    }
}

fn follow(example: &str, reader: &Reader) {
    let folder = reader.installed.work(example).unwrap();
    copy(example, &folder);
    // The environments with PyTorch and with Triton have no `python3`.
    let mut variables = reader.variables.clone();
    variables.push(("PYTHON", "python".to_owned()));
    let left_out = walkthrough::follow(&page(example).1, &folder, &variables, false);
    let left_out = left_out.unwrap_or_else(|error| panic!("{example}: {error:#}"));
    assert_eq!(left_out.len(), 1, "{example}: {left_out:?}");
    assert!(folder.join("build/model.plan").is_file(), "{example}: `build/model.plan` is missing");
    let manifests: Vec<String> = names(&folder).into_iter().filter(|name| name.ends_with(".toml")).collect();
    assert!(!manifests.is_empty(), "{example} has no manifest");
    let mut command = reader.installed.command("cubinder");
    command.args(["check", "--quiet", "--deny-warnings"]).args(&manifests).current_dir(&folder);
    let said = capture(&mut command).unwrap_or_else(|error| panic!("{example}: {error:#}"));
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""), "{example}");
}

fn follow_all(python: Python, is_of_environment: impl Fn(&str) -> bool) {
    let Some(reader) = Reader::from_environment(python) else {
        return skip("the builds and packages of `cargo xtask test` are not set");
    };
    let examples: Vec<String> = examples().into_iter().filter(|name| is_of_environment(name)).collect();
    assert!(!examples.is_empty());
    examples.iter().for_each(|example| follow(example, &reader));
}

#[test]
fn every_example_has_a_short_page_with_two_commands() {
    let examples = examples();
    assert!(examples.len() >= 6, "{examples:?}");
    let contents = fs::read_to_string(root().join("README.md")).unwrap();
    for example in &examples {
        assert!(contents.contains(&format!("]({example}/README.md)")), "{example} is not in the table");
        let (text, steps) = page(example);
        let words = text.split_whitespace().count();
        assert!(words <= 150, "{example}: {words} words");
        let commands: Vec<(Needs, &str)> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Commands { needs, text, .. } => Some((*needs, text.as_str())),
                Step::File { .. } => None,
            })
            .collect();
        let expected = [(Needs::Nothing, "./build.sh\n"), (Needs::Gpu, "./run.sh\n")];
        assert_eq!(commands, expected, "{example}");
    }
}

#[test]
fn examples_of_pytorch_build() {
    follow_all(Python::PyTorch, |name| name == "pytorch");
}

#[test]
fn examples_of_triton_build() {
    follow_all(Python::Compilers, |name| name == "triton");
}

#[test]
fn other_examples_build() {
    follow_all(Python::TensorRt, |name| name != "pytorch" && name != "triton");
}
