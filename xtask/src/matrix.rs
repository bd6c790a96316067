//! `cargo xtask matrix`: what works with which releases of NVIDIA's libraries and of Rust.
//!
//! Owns what is tried and the table of it. The releases are in `setup::frameworks`; `xtask/python/matrix.py` asks NVIDIA's libraries. What came of it
//! is kept in `docs/support.md`, by hand and with its date.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::artifacts::{self, Artifacts};
use crate::setup::{self, Toolchain, frameworks};
use crate::{process, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Try the releases of NVRTC and TensorRT-RTX, and the oldest Rust, that docs/support.md names.

Compiles all plugins of this repository with NVRTC 12.9, 13.0 and 13.5, each with the CUDA headers of its release, and asks each which PTX it \
writes. Gives the libraries of the plugins to TensorRT-RTX 1.4, 1.5, 1.6 and 1.7: is the library taken, is a model with a plugin node parsed, \
is an engine built. Checks the workspace with the Rust that Cargo.toml names, where rustup has it. Prints a table in Markdown; exit code 1 where \
something is other than docs/support.md says.

Fetches 435 MB into the cache the first time, and takes some ten minutes on two cores. No GPU is needed.";

/// The releases of NVRTC: the name, and the PTX that each writes.
const NVRTC: [(&str, &str); 3] = [("12.9", "8.8"), ("13.0", "9.0"), ("13.5", "9.5")];

/// The releases of TensorRT-RTX, and whether each builds engines of plugin nodes.
const TENSORRT: [(&str, bool); 4] = [("1.4", false), ("1.5", false), ("1.6", false), ("1.7", true)];

/// A line of the table.
struct Row {
    what: String,
    came: String,
    is_as_said: bool,
}

/// Tries everything and prints the table.
///
/// # Errors
/// When something cannot be fetched or built. What does not work is a row.
pub(crate) fn run() -> Result<ExitCode> {
    let toolchain = setup::ensure()?;
    let artifacts = artifacts::build(|line| eprintln!("{line}"))?;
    let work = tempfile::tempdir()?;
    let mut rows = Vec::new();
    let mut library = None;
    for (release, ptx) in NVRTC {
        eprintln!("NVRTC {release} ...");
        let out = work.path().join(release);
        let home = home(release, &work.path().join(format!("cuda-{release}")))?;
        let row = compile(release, ptx, home.as_deref(), &out, &artifacts, &toolchain)?;
        // What the pinned release makes is what TensorRT gets.
        if release == "13.0" {
            library = Some(out.join("libcubinder_plugins.so"));
        }
        rows.push(row);
    }
    let library = library.context("no library was made")?;
    for (release, builds) in TENSORRT {
        eprintln!("TensorRT-RTX {release} ...");
        rows.push(tensorrt(release, builds, &library, &toolchain)?);
    }
    rows.push(rust()?);
    println!("| what | what came of it |\n|---|---|");
    for Row { what, came, is_as_said } in &rows {
        let other = if *is_as_said { "" } else { " **(not as docs/support.md says)**" };
        println!("| {what} | {came}{other} |");
    }
    Ok(if rows.iter().all(|row| row.is_as_said) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A folder as `CUDA_HOME` has it, made in `at` where the packages of a release are laid out otherwise; none for the pinned release.
fn home(release: &str, at: &Path) -> Result<Option<PathBuf>> {
    match release {
        "13.0" => Ok(None),
        "12.9" => {
            let nvidia = frameworks::packages_of("cuda-12.9")?.join("nvidia");
            std::fs::create_dir_all(at.join("include"))?;
            symlink(nvidia.join("cuda_nvrtc/lib"), at.join("lib64"))?;
            for part in ["cuda_runtime", "cuda_cccl"] {
                for entry in std::fs::read_dir(nvidia.join(part).join("include"))?.flatten() {
                    let link = at.join("include").join(entry.file_name());
                    if !link.exists() {
                        symlink(entry.path(), link)?;
                    }
                }
            }
            Ok(Some(at.to_owned()))
        }
        _ => Ok(Some(frameworks::packages_of(&format!("cuda-{release}"))?.join("nvidia/cu13"))),
    }
}

/// Compiles all plugins: those of `cubinder.toml`, and those that only `manifests/cubinder` has.
fn compile(
    release: &str,
    ptx: &str,
    home: Option<&Path>,
    out: &Path,
    artifacts: &Artifacts,
    toolchain: &Toolchain,
) -> Result<Row> {
    let collection = std::fs::read_dir(workspace::root().join("manifests/cubinder"))?;
    let mut collection: Vec<PathBuf> = collection.flatten().map(|entry| entry.path()).collect();
    collection.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    collection.sort();
    let targets = ["--target", "sm_89,sm_90,compute_80", "--name", "collection"].map(OsString::from);
    let manifests = collection.into_iter().map(PathBuf::into_os_string);
    let of_collection: Vec<OsString> = targets.into_iter().chain(manifests).collect();
    let mut said = Vec::new();
    for arguments in [vec!["--arch".into(), "sm_89,sm_90,compute_80".into()], of_collection] {
        let mut command = Command::new(&artifacts.compiler);
        command.args(["compile", "--no-cache", "--json", "--output"]).arg(out).args(arguments);
        command.current_dir(workspace::root());
        command.envs(setup::environment(toolchain)?).envs(artifacts.environment());
        if let Some(home) = home {
            command.env("CUDA_HOME", home).env_remove("CUBINDER_NVRTC");
        }
        said.push(compiled(&command.output()?.stdout));
    }
    let mut python = toolchain.python_command()?;
    python
        .arg(workspace::root().join("xtask/python/matrix.py"))
        .arg("ptx")
        .arg(nvrtc(home, artifacts, toolchain)?);
    let answer: Value = serde_json::from_str(&process::capture(&mut python)?)?;
    let found = answer["ptx"].as_str().unwrap_or_default();
    let is_as_said = found == ptx && said.iter().all(Result::is_ok);
    let said: Vec<String> = said.into_iter().map(|one| one.unwrap_or_else(|error| error)).collect();
    Ok(Row {
        what: format!("NVRTC {release}"),
        came: format!("{}; PTX {found}", said.join("; ")),
        is_as_said,
    })
}

/// What a compile came to: how much was made, or the first error.
fn compiled(stdout: &[u8]) -> Result<String, String> {
    let lines: Vec<Value> =
        String::from_utf8_lossy(stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = lines.last().cloned().unwrap_or_default();
    if last["result"] == "compiled" {
        return Ok(format!("{} plugins, {} code objects", last["plugins"], last["code_objects"]));
    }
    let error = lines.iter().find(|line| line["severity"] == "error" || line["level"] == "error");
    Err(error.map_or_else(|| "failed".to_owned(), |error| error["message"].to_string()))
}

/// The NVRTC that a compile took, as `cubinder paths` says it.
fn nvrtc(home: Option<&Path>, artifacts: &Artifacts, toolchain: &Toolchain) -> Result<PathBuf> {
    let mut command = Command::new(&artifacts.compiler);
    command.args(["paths", "nvrtc"]).envs(setup::environment(toolchain)?);
    if let Some(home) = home {
        command.env("CUDA_HOME", home).env_remove("CUBINDER_NVRTC");
    }
    Ok(process::capture(&mut command)?.trim().into())
}

/// What a release of TensorRT-RTX makes of the library.
fn tensorrt(release: &str, builds: bool, library: &Path, toolchain: &Toolchain) -> Result<Row> {
    let mut command = toolchain.python_command()?;
    if release != "1.7" {
        let packages = frameworks::packages_of(&format!("tensorrt-rtx-{release}"))?;
        let mut environment: BTreeMap<&str, OsString> = toolchain.python_environment()?.into();
        for (name, first) in
            [("PYTHONPATH", packages.clone()), ("LD_LIBRARY_PATH", packages.join("tensorrt_rtx_libs"))]
        {
            let rest = environment.remove(name).unwrap_or_default();
            let all = std::iter::once(first).chain(std::env::split_paths(&rest));
            command.env(name, std::env::join_paths(all)?);
        }
    }
    command.arg(workspace::root().join("xtask/python/matrix.py")).arg("tensorrt").arg(library);
    let answer: Value = serde_json::from_str(&process::capture(&mut command)?)?;
    let is = |what: &str| answer[what] == true;
    let refusal = answer["refusal"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
    let came = match (is("library"), is("parsed"), is("built")) {
        (false, ..) => "the library is refused".to_owned(),
        (_, false, _) => format!("the library is taken, the node is refused: \"{refusal}\""),
        (_, _, false) => format!("the node is taken, the engine is refused: \"{refusal}\""),
        _ => "the library and the node are taken, the engine is built".to_owned(),
    };
    let version = answer["version"].as_str().unwrap_or(release);
    Ok(Row { what: format!("TensorRT-RTX {version}"), came, is_as_said: is("built") == builds })
}

/// Checks the workspace with the oldest Rust that `Cargo.toml` promises.
fn rust() -> Result<Row> {
    let manifest: toml::Table =
        toml::from_str(&std::fs::read_to_string(workspace::root().join("Cargo.toml"))?)?;
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().unwrap_or_default().to_owned();
    eprintln!("Rust {oldest} ...");
    let target = workspace::root().join("target/oldest-rust");
    let mut command = Command::new("cargo");
    command.arg(format!("+{oldest}")).args(["check", "--quiet", "--workspace", "--all-targets", "--locked"]);
    // The toolchain of `cargo xtask` itself must not decide.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("CARGO");
    let status = command.arg("--target-dir").arg(target).current_dir(workspace::root()).status();
    let is_as_said = status.is_ok_and(|status| status.success());
    let came = match is_as_said {
        true => "checks the workspace, all targets".to_owned(),
        false => format!("does not check the workspace; `rustup toolchain install {oldest}` brings it"),
    };
    Ok(Row { what: format!("Rust {oldest}"), came, is_as_said })
}
