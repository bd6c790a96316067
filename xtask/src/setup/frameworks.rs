//! What tests need beside the packages of `pins.toml`: PyTorch, the compilers Triton, Numba, CuPy and nvcc, the lean runtime of full
//! TensorRT, and releases of NVIDIA's libraries for `cargo xtask matrix`.
//!
//! Owns folders of the cache, each a virtual environment with what a list of `xtask/frameworks` names, every wheel with its
//! SHA-256: these packages look for each other where Python has its packages. They are beside the packages of `pins.toml`, which
//! everybody needs: these are a gigabyte that tests alone use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use super::pins::Pins;
use super::python::{self, Python, Version};
use super::store::Store;
use super::{cache_folder, pip, supported};
use crate::process;
use crate::progress::{Progress, Task};

/// The oldest Python that PyTorch and NetworkX, which it imports, have releases for.
const OLDEST: Version = Version { major: 3, minor: 11 };

/// One folder.
struct Framework {
    /// Its name in the cache.
    name: &'static str,
    /// What it is, for people.
    label: &'static str,
    purpose: &'static str,
    /// The variable under which tests find it.
    variable: &'static str,
    /// What pip is to take.
    requirements: &'static str,
    /// Of all wheels together.
    bytes: u64,
    /// A file that must be there afterwards, among the environment's packages.
    holds: &'static str,
}

const COMPILERS: Framework = Framework {
    name: "compilers",
    label: "Triton, Numba, CuPy and nvcc",
    purpose: "compile kernels for the tests of kernels from elsewhere",
    variable: "CUBINDER_TEST_COMPILERS",
    requirements: include_str!("../../frameworks/compilers.txt"),
    bytes: 655_000_000,
    holds: "nvidia/cu13/bin/nvcc",
};

const PYTORCH: Framework = Framework {
    name: "pytorch",
    label: "PyTorch",
    purpose: "exports models for the tests of the recipes",
    variable: "CUBINDER_TEST_PYTORCH",
    requirements: include_str!("../../frameworks/pytorch.txt"),
    bytes: 600_000_000,
    holds: "torch/lib/libtorch_python.so",
};

/// The lean runtime of full TensorRT, whose registry the tests give plugin libraries to.
const LEAN: Framework = Framework {
    purpose: "loads plugin libraries in the tests",
    variable: "CUBINDER_TEST_TENSORRT",
    ..release(
        "tensorrt-lean-11.4",
        "TensorRT lean 11.4",
        include_str!("../../frameworks/releases/tensorrt-lean-11.4.txt"),
        44_375_636,
        "tensorrt_lean_libs/libnvinfer_lean.so.11",
    )
};

/// Releases of NVIDIA's libraries beside the pinned ones, for `cargo xtask matrix`.
const RELEASES: [Framework; 9] = [
    release(
        "cuda-12.9",
        "CUDA 12.9",
        include_str!("../../frameworks/releases/cuda-12.9.txt"),
        96_213_551,
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
    ),
    release(
        "cuda-13.5",
        "CUDA 13.5",
        include_str!("../../frameworks/releases/cuda-13.5.txt"),
        64_969_768,
        "nvidia/cu13/lib/libnvrtc.so.13",
    ),
    release(
        "tensorrt-rtx-1.4",
        "TensorRT-RTX 1.4",
        include_str!("../../frameworks/releases/tensorrt-rtx-1.4.txt"),
        87_700_918,
        TENSORRT,
    ),
    release(
        "tensorrt-rtx-1.5",
        "TensorRT-RTX 1.5",
        include_str!("../../frameworks/releases/tensorrt-rtx-1.5.txt"),
        90_005_693,
        TENSORRT,
    ),
    release(
        "tensorrt-rtx-1.6",
        "TensorRT-RTX 1.6",
        include_str!("../../frameworks/releases/tensorrt-rtx-1.6.txt"),
        93_597_966,
        TENSORRT,
    ),
    release(
        "tensorrt-lean-10.15",
        "TensorRT lean 10.15",
        include_str!("../../frameworks/releases/tensorrt-lean-10.15.txt"),
        47_643_457,
        "tensorrt_lean_libs/libnvinfer_lean.so.10",
    ),
    release(
        "tensorrt-lean-10.16",
        "TensorRT lean 10.16",
        include_str!("../../frameworks/releases/tensorrt-lean-10.16.txt"),
        46_408_436,
        "tensorrt_lean_libs/libnvinfer_lean.so.10",
    ),
    release(
        "tensorrt-lean-11.0",
        "TensorRT lean 11.0",
        include_str!("../../frameworks/releases/tensorrt-lean-11.0.txt"),
        46_487_384,
        "tensorrt_lean_libs/libnvinfer_lean.so.11",
    ),
    release(
        "tensorrt-lean-11.2",
        "TensorRT lean 11.2",
        include_str!("../../frameworks/releases/tensorrt-lean-11.2.txt"),
        46_533_875,
        "tensorrt_lean_libs/libnvinfer_lean.so.11",
    ),
];

const TENSORRT: &str = "tensorrt_rtx_libs/libtensorrt_rtx.so.1";

const fn release(
    name: &'static str,
    label: &'static str,
    requirements: &'static str,
    bytes: u64,
    holds: &'static str,
) -> Framework {
    Framework { name, label, purpose: "a row of the matrix", variable: "", requirements, bytes, holds }
}

/// The folder in PyTorch's environment with stand-ins for what it links (`stand_in_libraries.py`).
const STAND_INS: &str = "stand-ins";

/// Fetches what is missing, and gives the variables under which tests find it.
///
/// # Errors
/// When the machine or the Python is not supported, or pip fails. The message says what helps.
pub(crate) fn environment() -> Result<Vec<(&'static str, OsString)>> {
    let place = |framework: &Framework| Ok((framework.variable, ensure(framework)?.into()));
    let folders: Result<Vec<_>> = [COMPILERS, PYTORCH].iter().map(place).collect();
    let mut variables = folders?;
    variables.push((LEAN.variable, lean_runtime("11.4")?.into()));
    Ok(variables)
}

/// The library of the lean runtime of full TensorRT `release`; fetched first if it is missing.
///
/// # Errors
/// As [`packages_of`].
pub(crate) fn lean_runtime(release: &str) -> Result<PathBuf> {
    let name = format!("tensorrt-lean-{release}");
    let framework = RELEASES.iter().chain([&LEAN]).find(|framework| framework.name == name);
    let framework = framework.with_context(|| format!("no release is called `{name}`"))?;
    Ok(packages_in(framework)?.join(framework.holds))
}

/// The environment with Triton, Numba, CuPy and nvcc; fetched first where it is missing.
///
/// # Errors
/// As [`environment`].
pub(crate) fn compilers() -> Result<PathBuf> {
    ensure(&COMPILERS)
}

/// Stands in an error where pip did not get the packages, which may be on an index that cannot be reached.
#[derive(Debug)]
pub(crate) struct NotFetched(String);

impl NotFetched {
    /// With what helps.
    pub(crate) fn with_help(help: &str) -> NotFetched {
        NotFetched(help.to_owned())
    }
}

impl std::fmt::Display for NotFetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The folder with the packages of one of [`RELEASES`], by its name; fetched first where it is missing.
///
/// # Errors
/// As [`environment`], and where none is called so. Where pip did not get the packages, a [`NotFetched`] is among its causes.
pub(crate) fn packages_of(name: &str) -> Result<PathBuf> {
    let found = RELEASES.iter().find(|release| release.name == name);
    packages_in(found.with_context(|| format!("no release is called `{name}`"))?)
}

fn packages_in(framework: &Framework) -> Result<PathBuf> {
    let folder = ensure(framework)?;
    let holds = |lib: PathBuf| lib.join("site-packages").join(framework.holds).exists();
    let libs = fs::read_dir(folder.join("lib"))?.flatten().map(|entry| entry.path());
    let lib = libs.into_iter().find(|lib| holds(lib.clone()));
    lib.map(|lib| lib.join("site-packages"))
        .with_context(|| format!("`{}` holds no packages", folder.display()))
}

fn ensure(framework: &Framework) -> Result<PathBuf> {
    supported(env::consts::OS, env::consts::ARCH)?;
    let variables = |name: &str| env::var_os(name);
    let progress = Progress::new();
    let named = variables(python::VARIABLE).filter(|value| !value.is_empty());
    let python = python::find(named, &Pins::load()?.python)?;
    let version = python.version;
    ensure!(
        version >= OLDEST,
        "the tests with PyTorch, Triton, Numba and CuPy need Python {OLDEST} or newer, and `{}` is {version}\n  \
         help: name another one in `{}`",
        python.path.display(),
        python::VARIABLE
    );
    let store = Store::new(cache_folder(&variables)?.join("toolkit"));
    store.clean()?;
    ensure_folder(framework, &store, &python, &progress)
}

fn ensure_folder(
    framework: &Framework,
    store: &Store,
    python: &Python,
    progress: &Progress,
) -> Result<PathBuf> {
    let name = format!("{}-cp{}{}", framework.name, python.version.major, python.version.minor);
    let recipe = format!("{}{}", framework.requirements, include_str!("../../python/stand_in_libraries.py"));
    let wait = || progress.say(&format!("waiting for another run that is fetching {}", framework.label));
    let fill = |work: &Path| {
        python.require_pip()?;
        let task = progress.download(framework.label, framework.purpose, framework.bytes);
        let content = install(framework, python, work, &task)
            .with_context(|| format!("{} could not be fetched", framework.label))?;
        task.finish("fetched");
        Ok(content)
    };
    store.ensure(&name, &recipe, wait, fill)?;
    Ok(store.folder(&name))
}

/// Makes an environment and has pip put all packages of the list into it.
fn install(framework: &Framework, python: &Python, work: &Path, task: &Task<'_>) -> Result<PathBuf> {
    let content = work.join("content");
    // Without pip: that of `python` works here too, and Debian's Python makes none with it.
    let mut command = Command::new(&python.path);
    command.args(["-m", "venv", "--without-pip"]).arg(&content).current_dir(work);
    process::capture(&mut command)?;
    let packages = packages(&content, python.version);
    let asked = pip::Asked { to: pip::To::Packages(&packages), requirements: framework.requirements };
    pip::run(python, &asked, work, task, |wheels| wheels.iter().sum()).map_err(|error| {
        let text = error.to_string();
        let help = pip::help(&text);
        error.context(NotFetched::with_help(&format!("help: {help}")))
    })?;
    ensure!(packages.join(framework.holds).exists(), "the packages hold no `{}`", framework.holds);
    if framework.name == PYTORCH.name {
        task.phase("linking");
        let script = work.join("stand_in_libraries.py");
        fs::write(&script, include_str!("../../python/stand_in_libraries.py"))?;
        let mut command = Command::new(&python.path);
        command.arg("-I").arg(&script).arg(&packages).arg(content.join(STAND_INS));
        process::capture(&mut command)
            .context("the stand-ins for NVIDIA's libraries need g++ and readelf")?;
    }
    Ok(content)
}

/// Where the environment `folder` has its packages.
fn packages(folder: &Path, python: Version) -> PathBuf {
    folder.join(format!("lib/python{python}/site-packages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// pip takes a list with hashes only where every line has one.
    #[test]
    fn every_package_is_pinned() {
        for framework in [COMPILERS, PYTORCH, LEAN].into_iter().chain(RELEASES) {
            let entries: Vec<&str> =
                framework.requirements.lines().filter(|line| line.contains("==")).collect();
            assert!(!entries.is_empty(), "{}", framework.name);
            for entry in entries {
                let (name, version) = entry.trim_end_matches(" \\").split_once("==").unwrap();
                assert!(!name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{entry}");
                assert!(entry.ends_with(" \\"), "{entry} has no hash");
            }
        }
    }
}
