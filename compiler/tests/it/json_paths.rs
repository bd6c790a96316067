//! `--json` of all commands in a folder whose name is not UTF-8.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::models;
use crate::support::{self, Project};
use serde_json::Value;

/// Returns `café` in Latin-1.
fn folder() -> &'static OsStr {
    OsStr::from_bytes(b"caf\xe9")
}

const PTX: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\nret;\n}\n";

fn project_in_folder(project: &Project) -> PathBuf {
    let root = project.path("").join(folder());
    for file in ["cubinder.toml", "manifests/scale.toml", "kernels/scale.cu"] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::copy(project.path(file), root.join(file)).unwrap();
    }
    root
}

fn commands_with_json() -> BTreeSet<String> {
    fn help(words: &[String]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_cubinder")).args(words).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
    let mut found = BTreeSet::new();
    let mut waiting = vec![Vec::new()];
    while let Some(words) = waiting.pop() {
        let text = help(&words);
        if text.contains("--json") {
            found.insert(words.join(" "));
        }
        let commands = text.split("\nCommands:\n").nth(1).unwrap_or_default();
        let commands = commands.lines().take_while(|line| !line.is_empty());
        let names = commands.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
        for name in names.filter(|name| *name != "help" && !name.starts_with('-')) {
            if !text.contains(&format!("\n  {name} ")) {
                continue;
            }
            waiting.push([words.as_slice(), &[name.to_owned()]].concat());
        }
    }
    found
}

fn odd_paths(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(fields) => {
            if let (2, Some(text), Some(bytes)) = (fields.len(), fields.get("text"), fields.get("bytes")) {
                let bytes: Vec<u8> = serde_json::from_value(bytes.clone()).unwrap();
                assert_eq!(text.as_str(), Some(String::from_utf8_lossy(&bytes).as_ref()));
                found.push(bytes);
            }
            fields.values().for_each(|value| odd_paths(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| odd_paths(value, found)),
        _ => {}
    }
}

#[test]
fn paths_that_have_to_be_text_are_errors() {
    let project = Project::without_tools();
    let root = project_in_folder(&project);
    fs::write(root.join("k.ptx"), PTX).unwrap();
    let config = root.join("cubinder.toml");
    let ptx = Path::new(folder()).join("k.ptx");
    let outside = Path::new(folder()).join("k.toml");
    let mut text = String::new();
    let run = |arguments: &[&OsStr]| support::Run::of(project.command(&[]).args(arguments).output().unwrap());
    for arguments in [
        [OsStr::new("check"), OsStr::new("--config"), config.as_os_str()],
        [OsStr::new("import"), OsStr::new("ptx"), ptx.as_os_str()],
    ] {
        let run = run(&arguments);
        run.assert_refused("not UTF-8");
        text.push_str(&project.plain(&run.stderr));
    }
    insta::assert_snapshot!(text);
    let beside = run(&[
        OsStr::new("import"),
        OsStr::new("ptx"),
        ptx.as_os_str(),
        OsStr::new("--output"),
        outside.as_os_str(),
    ]);
    assert_eq!(beside.code, Some(0), "{}", beside.stderr);
    assert!(fs::read_to_string(root.join("k.toml")).unwrap().contains("ptx = [\"k.ptx\"]"));
}

#[test]
fn every_command_names_a_folder_that_is_not_utf8() {
    let Some(project) = Project::new() else { return };
    let root = project_in_folder(&project);
    let cases = "manifest = \"../manifests/scale.toml\"\n[[cases]]\nname = \"a\"\nshapes = { x = [4] }\nattributes = { factor = 2.0 }\n";
    fs::create_dir(root.join("tests")).unwrap();
    fs::write(root.join("tests/scale.toml"), cases).unwrap();
    fs::write(root.join("model.onnx"), &models::right()[0].model).unwrap();
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let plugins = models::MANIFESTS.map(|name| manifests.join(name).display().to_string()).join(",");
    // `{}` is the folder; the number is the minimum of paths. `test` and `tune` need a GPU.
    let runs: [(&str, &[&str], usize); 21] = [
        ("compile", &["{}/manifests/scale.toml", "--out-dir", "{}/build", "--target", "sm_80,sm_90"], 1),
        ("cache export", &["{}/results.zip", "{}/manifests/scale.toml", "--target", "sm_80,sm_90"], 0),
        ("cache import", &["{}/results.zip", "{}/manifests/scale.toml", "--target", "sm_80,sm_90"], 0),
        ("cache pull", &["{}/none.toml"], 0),
        ("cache push", &["{}/none.toml"], 0),
        ("cache prune", &["--unused-for", "1"], 0),
        ("cache stats", &[], 1),
        ("check", &["{}/manifests/scale.toml", "-v"], 1),
        ("thin", &["{}/build/libscale.so", "--arch", "sm_90", "--out-dir", "{}/thin"], 1),
        ("inspect", &["{}/build/libscale.so"], 1),
        ("eval", &["{}/manifests/scale.toml", "--shape", "x=4", "--attr", "factor=2"], 1),
        ("onnx list", &["{}/model.onnx", "--plugins", &plugins], 1),
        ("onnx annotate", &["{}/model.onnx", "--plugins", &plugins, "--output", "{}/new.onnx"], 1),
        ("onnx shapes", &["{}/new.onnx", "--plugins", &plugins], 1),
        ("test", &["{}/tests/scale.toml", "--allow-no-gpu"], 0),
        ("tune", &["{}/tests/scale.toml"], 0),
        ("paths", &[], 1),
        ("doctor", &[], 1),
        ("run", &["{}/none.plan"], 0),
        ("compare", &["{}/none.plan", "--expect", "{}/model.onnx"], 0),
        ("build", &["{}/none.onnx", "--output", "{}/model.plan", "--with", "{}/bin/trtexec"], 0),
    ];
    let tried: BTreeSet<String> = runs.iter().map(|(command, ..)| (*command).to_owned()).collect();
    assert_eq!(tried, commands_with_json());
    for (words, arguments, least) in runs {
        let mut command = project.command(&words.split(' ').collect::<Vec<_>>());
        for argument in arguments {
            let mut odd = OsString::new();
            for (index, part) in argument.split("{}").enumerate() {
                if index > 0 {
                    odd.push(folder());
                }
                odd.push(part);
            }
            command.arg(odd);
        }
        if ["paths", "doctor", "cache stats"].contains(&words) {
            command.env("CUBINDER_CACHE", project.path("").join(folder()).join("cache"));
        }
        let output = command.arg("--json").output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(!stderr.contains("panicked"), "{words}: {stderr}");
        let objects = serde_json::Deserializer::from_str(&stdout).into_iter::<Value>();
        let objects: Vec<Value> = objects.map(Result::unwrap).collect();
        assert!(!objects.is_empty(), "{words}: {stderr}");
        let mut found = Vec::new();
        objects.iter().for_each(|object| odd_paths(object, &mut found));
        let odd = folder().as_bytes();
        assert!(
            found.iter().all(|path| path.windows(odd.len()).any(|part| part == odd)),
            "{words}: {stdout}"
        );
        assert!(found.len() >= least, "{words}: {stdout}{stderr}");
    }
    assert!(root.join("thin/libscale.so").is_file());
}
