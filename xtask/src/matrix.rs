//! `cargo xtask matrix`: tries releases of NVIDIA's libraries and of Rust. [`outcome`] compares with
//! `docs/support.md`, recorded by hand.

mod outcome;

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use fs_err as fs;
use serde::Deserialize;
use serde_json::Value;

use self::outcome::{Expected, Outcome, Row, json_answer, status, summary};
use crate::setup::packages;
use crate::tools::Tools;
use crate::{files, process, workspace};

const PINNED: &str = "13.0";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Releases {
    nvrtc: Vec<Group>,
    tensorrt_rtx: Vec<Group>,
    tensorrt: Vec<Group>,
    headers: Expected,
    rust: Expected,
}

#[derive(Deserialize)]
struct Group {
    versions: Vec<String>,
    #[serde(flatten)]
    expected: Expected,
}

impl Releases {
    fn load() -> Result<Releases> {
        toml::from_str(include_str!("../matrix.toml")).context("in `xtask/matrix.toml`")
    }
}

fn releases(groups: &[Group]) -> impl Iterator<Item = (&str, &str, &Expected)> {
    groups.iter().flat_map(|Group { versions, expected }| {
        versions.iter().map(move |version| (release(version), version.as_str(), expected))
    })
}

fn release(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(end, _)| &version[..end])
}

pub(crate) fn run(headers: Option<&Path>) -> Result<ExitCode> {
    let tried = Releases::load()?;
    let tools = Tools::open()?;
    let work = tempfile::tempdir()?;
    let mut rows = Vec::new();
    println!("| what | outcome |\n|---|---|");
    let mut try_row = |what: String, expected, attempt: &dyn Fn() -> Result<Outcome>| {
        eprintln!("{what} ...");
        let row = Row { what, expected, outcome: attempt().unwrap_or_else(Outcome::from) };
        println!("{row}");
        rows.push(row);
    };
    let out = |release: &str| work.path().join(release);
    for (release, _, expected) in releases(&tried.nvrtc) {
        try_row(format!("NVRTC {release}"), expected, &|| {
            let home = home(release, &work.path().join(format!("cuda-{release}")))?;
            compile(home.as_deref(), &out(release), &tools)
        });
    }
    let library = out(PINNED).join("libcubinder_plugins.so");
    for (release, version, expected) in releases(&tried.tensorrt_rtx) {
        try_row(format!("TensorRT-RTX {version}"), expected, &|| match library.exists() {
            true => tensorrt(release, version, &library, &tools),
            false => Ok(Outcome::Failed(format!("NVRTC {PINNED} produced no library to load"))),
        });
    }
    for (release, version, expected) in releases(&tried.tensorrt) {
        try_row(format!("TensorRT {version}"), expected, &|| registry(release, &tools));
    }
    if let Some(folder) = headers {
        let what = format!("headers in `{}`", folder.display());
        try_row(what, &tried.headers, &|| conformance(folder, &tools));
    }
    let oldest = oldest_rust()?;
    try_row(format!("Rust {oldest}"), &tried.rust, &|| rust(&oldest));
    print!("{}", summary(&rows));
    Ok(ExitCode::from(status(&rows)))
}

/// Creates `CUDA_HOME` for another layout; `None` for the pinned release.
fn home(release: &str, at: &Path) -> Result<Option<PathBuf>> {
    match release {
        "13.0" => Ok(None),
        "12.9" => {
            let nvidia = packages::site_packages("cuda-12.9")?.join("nvidia");
            fs::create_dir_all(at.join("include"))?;
            symlink(nvidia.join("cuda_nvrtc/lib"), at.join("lib64"))?;
            for part in ["cuda_runtime", "cuda_cccl"] {
                for entry in fs::read_dir(nvidia.join(part).join("include"))?.flatten() {
                    let link = at.join("include").join(entry.file_name());
                    if !link.exists() {
                        symlink(entry.path(), link)?;
                    }
                }
            }
            Ok(Some(at.to_owned()))
        }
        _ => Ok(Some(packages::site_packages(&format!("cuda-{release}"))?.join("nvidia/cu13"))),
    }
}

fn compile(home: Option<&Path>, out: &Path, tools: &Tools) -> Result<Outcome> {
    let use_home = |command: &mut Command| {
        if let Some(home) = home {
            command.env("CUDA_HOME", home).env_remove("CUBINDER_NVRTC");
        }
    };
    let mut results = Vec::new();
    for arguments in [vec!["--arch".into(), "sm_89,sm_90,compute_80".into()], collection_arguments()?] {
        let mut command = tools.cubinder()?;
        command.args(["compile", "--no-cache", "--json", "--out-dir"]).arg(out).args(arguments);
        use_home(&mut command);
        match compile_outcome(&mut command)? {
            Outcome::Works(what) => results.push(what),
            other => return Ok(other),
        }
    }
    let mut command = tools.cubinder()?;
    use_home(command.args(["paths", "nvrtc"]));
    let nvrtc = process::capture(&mut command)?;
    let answer = json_answer(tools.python("matrix.py")?.arg("ptx").arg(nvrtc.trim()))?;
    let ptx = answer["ptx"].as_str().unwrap_or("?");
    Ok(Outcome::Works(format!("{}; PTX {ptx}", results.join("; "))))
}

fn collection_arguments() -> Result<Vec<OsString>> {
    let mut collection = files::list(&workspace::root().join("manifests/cubinder"))?;
    collection.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    let targets = ["--target", "sm_89,sm_90,compute_80", "--name", "collection"].map(OsString::from);
    Ok(targets.into_iter().chain(collection.into_iter().map(PathBuf::into_os_string)).collect())
}

fn compile_outcome(command: &mut Command) -> Result<Outcome, Outcome> {
    let lines = outcome::json_lines(command)?;
    let messages = |severity: &'static str| {
        let matching = lines.iter().filter(move |line| line["severity"] == severity);
        matching.filter_map(|line| line["message"].as_str())
    };
    Ok(match lines.iter().find(|line| line["result"] == "compiled") {
        Some(result) => {
            let counts = format!("{} plugins, {} code objects", result["plugins"], result["code_objects"]);
            let warnings = messages("warning").map(|message| format!(", warning: {message}"));
            Outcome::Works(counts + &warnings.collect::<String>())
        }
        None => Outcome::Refused(messages("error").next().unwrap_or("no reason reported").to_owned()),
    })
}

fn tensorrt(release: &str, version: &str, library: &Path, tools: &Tools) -> Result<Outcome> {
    let mut command = tools.python("matrix.py")?;
    if release != "1.7" {
        let packages = packages::site_packages(&format!("tensorrt-rtx-{release}"))?;
        let libraries = packages.join("tensorrt_rtx_libs");
        for ((name, rest), first) in
            tools.toolchain.python_environment()?.into_iter().zip([packages, libraries])
        {
            let all = std::iter::once(first).chain(std::env::split_paths(&rest));
            command.env(name, std::env::join_paths(all)?);
        }
    }
    let answer = json_answer(command.arg("tensorrt").arg(library))?;
    Ok(match answer["version"] == version {
        true => engine_outcome(&answer),
        false => Outcome::Failed(format!("expected {version}, found {}", answer["version"])),
    })
}

fn engine_outcome(answer: &Value) -> Outcome {
    let is = |what: &str| answer[what] == true;
    let refusal = answer["refusal"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
    match (is("library"), is("creator"), is("parsed"), is("built")) {
        (false, ..) => Outcome::Refused("the library is refused".to_owned()),
        (_, false, ..) => {
            Outcome::Refused("the library is loaded, its plugins are not registered".to_owned())
        }
        (_, _, false, _) => {
            Outcome::Refused(format!("the library is loaded, the node is refused: \"{refusal}\""))
        }
        (_, _, _, false) => {
            Outcome::Refused(format!("the node is accepted, the engine is refused: \"{refusal}\""))
        }
        _ => Outcome::Works("the library is loaded, the node is accepted, the engine is built".to_owned()),
    }
}

fn registry(release: &str, tools: &Tools) -> Result<Outcome> {
    let mut libraries = vec![packages::lean_runtime(release)?];
    if release != "11.4" {
        libraries.push(packages::lean_runtime("11.4")?);
    }
    let variable = ("CUBINDER_TEST_TENSORRT", std::env::join_paths(libraries)?);
    tests_pass("registry::", variable, "loads, creates and unloads plugins of both routes", tools)
}

fn conformance(headers: &Path, tools: &Tools) -> Result<Outcome> {
    let names =
        fs::read_dir(headers)?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let works = format!("plugins pass with the headers {}", names.join(", "));
    let variable = ("CUBINDER_TEST_HEADERS", std::path::absolute(headers)?.into_os_string());
    tests_pass("with_every_release", variable, &works, tools)
}

fn tests_pass(filter: &str, variable: (&str, OsString), works: &str, tools: &Tools) -> Result<Outcome> {
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--package", "cubinder-tests", "--test", "it", filter]);
    command.envs(tools.environment()?);
    command.env(variable.0, variable.1).env("CUBINDER_REQUIRE_TOOLKIT", "1");
    let (status, stdout, stderr) = outcome::run(&mut command)?;
    Ok(if status.success() && has_passed_tests(&stdout) {
        Outcome::Works(works.to_owned())
    } else if status.success() {
        Outcome::Failed(format!("no test matches `{filter}`"))
    } else {
        let is_reason =
            |line: &&str| ["thread '", "assertion", "error"].iter().any(|start| line.starts_with(start));
        let why: Vec<&str> = stdout.lines().chain(stderr.lines()).filter(is_reason).take(2).collect();
        Outcome::Failed(if why.is_empty() { "no reason reported".to_owned() } else { why.join(": ") })
    })
}

/// Whether tests ran: libtest succeeds without a match.
fn has_passed_tests(stdout: &str) -> bool {
    let mut results = stdout.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.any(|result| !result.starts_with("0 passed"))
}

fn oldest_rust() -> Result<String> {
    let manifest: toml::Table = toml::from_str(&fs::read_to_string(workspace::root().join("Cargo.toml"))?)?;
    Ok(manifest["workspace"]["package"]["rust-version"].as_str().unwrap_or_default().to_owned())
}

fn rust(oldest: &str) -> Result<Outcome> {
    let mut is_there = Command::new("rustup");
    if let Err(why) = process::capture(is_there.args(["run", oldest, "rustc", "--version"])) {
        let first = format!("{why:#}").lines().next().unwrap_or_default().to_owned();
        return Ok(Outcome::NotTried(format!(
            "{first}; install it with `rustup toolchain install {oldest}`"
        )));
    }
    let target = workspace::root().join("target/oldest-rust");
    let mut command = Command::new("rustup");
    command.args(["run", oldest, "cargo", "check", "--quiet", "--workspace", "--all-targets", "--locked"]);
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("CARGO");
    command.arg("--target-dir").arg(target).current_dir(workspace::root());
    let (status, _, stderr) = outcome::run(&mut command)?;
    let error = stderr.lines().find(|line| line.starts_with("error")).unwrap_or("no reason reported");
    Ok(match status.success() {
        true => Outcome::Works("checks the workspace, all targets".to_owned()),
        false => Outcome::Refused(error.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_without_tests_is_no_success() {
        let result = |passed| format!("running {passed} tests\ntest result: ok. {passed} passed; 0 failed\n");
        assert!(has_passed_tests(&result(6)) && has_passed_tests(&result(10)));
        assert!(!has_passed_tests(&result(0)) && !has_passed_tests(""));
    }

    #[test]
    fn expectations_are_texts_of_the_page() {
        let page = std::fs::read_to_string(workspace::root().join("docs/support.md")).unwrap();
        let tried = Releases::load().unwrap();
        let groups = [&tried.nvrtc, &tried.tensorrt_rtx, &tried.tensorrt];
        let texts = groups.into_iter().flat_map(|groups| releases(groups));
        let texts = texts.flat_map(|(_, version, expected)| [version, expected.page.as_str()]);
        let rust = format!("Rust {}", oldest_rust().unwrap());
        for text in texts.chain([tried.headers.page.as_str(), &tried.rust.page, &rust]) {
            assert!(page.contains(text), "docs/support.md does not contain `{text}`");
        }
    }

    #[test]
    fn an_answer_about_an_engine_is_one_result() {
        let outcome = |text: &str| engine_outcome(&serde_json::from_str(text).unwrap());
        let all = r#"{"library": true, "creator": true, "parsed": true, "built": true}"#;
        assert!(matches!(outcome(all), Outcome::Works(_)));
        let refused = outcome(
            r#"{"library": true, "creator": true, "parsed": false, "refusal": "Op type x is not supported in TensorRT-RTX.\nmore"}"#,
        );
        let text =
            "the library is loaded, the node is refused: \"Op type x is not supported in TensorRT-RTX.\"";
        assert_eq!(refused, Outcome::Refused(text.to_owned()));
        let expected = &Releases::load().unwrap().tensorrt_rtx[0].expected;
        assert_eq!(Row { what: String::new(), expected, outcome: refused }.difference(), None);
        assert_eq!(outcome("{}"), Outcome::Refused("the library is refused".to_owned()));
        let bare = outcome(r#"{"library": true, "creator": false}"#);
        assert_eq!(
            bare,
            Outcome::Refused("the library is loaded, its plugins are not registered".to_owned())
        );
    }

    #[test]
    fn a_compile_is_one_result() {
        let outcome = |script: &str| {
            compile_outcome(Command::new("sh").args(["-c", script])).unwrap_or_else(|outcome| outcome)
        };
        let warned = r#"echo '{"severity":"warning","message":"w"}'; echo '{"result":"compiled","plugins":4,"code_objects":21}'"#;
        assert_eq!(outcome(warned), Outcome::Works("4 plugins, 21 code objects, warning: w".to_owned()));
        let refused = r#"echo '{"severity":"error","message":"no such header"}'; exit 1"#;
        assert_eq!(outcome(refused), Outcome::Refused("no such header".to_owned()));
        assert!(matches!(outcome("kill -SEGV $$"), Outcome::Crashed(_)));
    }
}
