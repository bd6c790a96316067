//! `cargo xtask setup`: everything that compiling kernels and building engines needs, in a cache outside the checkout.
//!
//! Owns the order: look at what is named, find a Python, fetch what is missing, check that it works. The parts:
//! [`pins`] what is fetched, [`existing`] what need not be, [`python`] the interpreter, [`store`] folders that are whole or not
//! there, [`pip`] one wheel, [`toolchain`] where everything is, [`tools`] what packs and tests the result. Installs nothing on the machine.

mod existing;
pub(crate) mod frameworks;
mod pins;
mod pip;
mod python;
mod store;
mod toolchain;
mod tools;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};

use crate::process;
use crate::progress::Progress;
use existing::{Existing, Variables};
use pins::{Choice, Pins};
use python::Python;
use store::Store;
pub(crate) use toolchain::Toolchain;
pub(crate) use tools::{BuildSystems, Packaging, build_systems, packaging};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Fetch NVRTC, the CUDA headers, TensorRT-RTX and onnx into a cache outside the checkout.

The packages are downloaded with pip, pinned by version and SHA-256, and unpacked; nothing is installed. \
The other commands do this by themselves.

Environment:
  CUBINDER_CACHE     the cache; otherwise $XDG_CACHE_HOME/cubinder or $HOME/.cache/cubinder
  CUBINDER_PYTHON    the Python interpreter to use; otherwise `python3`, or another supported one on the path
  CUBINDER_NVRTC     a libnvrtc.so.*, or the folder that holds it, to use instead of fetching it
  CUDA_HOME          folder of a CUDA toolkit to use for NVRTC and headers instead of fetching them
  TENSORRT_RTX_HOME  folder of a TensorRT-RTX to use instead of fetching it";

/// How many wheels are fetched at the same time.
const PARALLEL: usize = 3;

/// Sets up and says where everything is; with `tests`, also what tests alone need.
///
/// # Errors
/// As [`ensure`] and [`frameworks::environment`].
pub(crate) fn run(tests: bool) -> Result<()> {
    let toolchain = ensure()?;
    println!("NVRTC         {}", toolchain.nvrtc.display());
    for folder in &toolchain.include {
        println!("CUDA headers  {}", folder.display());
    }
    println!("TensorRT-RTX  {}", toolchain.tensorrt_libs.display());
    println!("Python        {}", toolchain.python.display());
    if tests {
        for (variable, folder) in frameworks::environment()? {
            println!("{variable}={}", folder.display());
        }
    }
    Ok(())
}

/// The toolchain; what is missing is fetched first.
///
/// # Errors
/// When the machine is not supported, something named in the environment is not there, there is no Python with pip, or a
/// package cannot be fetched. The message says what helps.
pub(crate) fn ensure() -> Result<Toolchain> {
    let place = Workplace::open()?;
    let Workplace { cache, store, python, progress } = &place;
    let pins = Pins::load()?;
    let existing = Existing::find(&|name| env::var_os(name))?;
    let toolchain = Toolchain::new(cache, store, &pins, &existing, python)?;
    announce(&existing, &toolchain, progress);
    let choices = toolchain::needed(&pins, &existing, python)?;
    let missing: Vec<_> =
        choices.into_iter().filter(|choice| !store.has(&choice.folder, &choice.recipe())).collect();
    if !missing.is_empty() {
        python.require_pip()?;
        fetch_all(&missing, store, python, progress)?;
    }
    link(&toolchain, store)?;
    check(&toolchain, python, store)?;
    Ok(toolchain)
}

/// The version of a pinned package.
///
/// # Errors
/// When the pins do not hold it.
pub(crate) fn pinned_version(name: &str) -> Result<String> {
    Ok(Pins::load()?.package(name)?.version.clone())
}

/// Where packages are fetched to, and by what.
struct Workplace {
    cache: PathBuf,
    store: Store,
    python: Python,
    progress: Progress,
}

impl Workplace {
    fn open() -> Result<Self> {
        supported(env::consts::OS, env::consts::ARCH)?;
        let variables = |name: &str| env::var_os(name);
        let cache = cache_folder(&variables)?;
        let named = variables(python::VARIABLE).filter(|value| !value.is_empty());
        let python = python::find(named, &Pins::load()?.python)?;
        let store = Store::new(cache.join("toolkit"));
        store.clean()?;
        Ok(Self { cache, store, python, progress: Progress::new() })
    }
}

/// That the pinned packages exist for this machine.
fn supported(os: &str, arch: &str) -> Result<()> {
    if (os, arch) == ("linux", "x86_64") {
        return Ok(());
    }
    bail!(
        "the pinned packages are for x86-64 Linux, and this is {arch} {os}\n  \
         help: run it on an x86-64 Linux machine, in a container or a virtual machine"
    )
}

/// The cache of this user.
///
/// # Errors
/// When the environment names no place for it.
pub(crate) fn cache() -> Result<PathBuf> {
    cache_folder(&|name: &str| env::var_os(name))
}

/// `CUBINDER_CACHE`, or `cubinder` in the user's cache folder; absolute. The compiler has the same rules
/// (`Overrides::from_env`): it reads the cache that is filled here.
fn cache_folder(variables: Variables<'_>) -> Result<PathBuf> {
    let named = |name: &str| variables(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(cache) = named("CUBINDER_CACHE") {
        return std::path::absolute(&cache)
            .with_context(|| format!("`CUBINDER_CACHE` names `{}`", cache.display()));
    }
    // The XDG base directory specification: a relative path there is to be ignored.
    let base = named("XDG_CACHE_HOME").filter(|base| base.is_absolute());
    let base =
        base.or_else(|| named("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".cache")));
    let base =
        base.context("there is no place for the cache: set `HOME`, or name a folder in `CUBINDER_CACHE`")?;
    Ok(base.join("cubinder"))
}

/// Says what is used instead of a pinned package.
fn announce(existing: &Existing, toolchain: &Toolchain, progress: &Progress) {
    if let Some(nvrtc) = &existing.nvrtc {
        progress.say(&format!("using `{}` (`{}` names it)", nvrtc.library.display(), nvrtc.variable));
    }
    if let Some(folder) = existing.include.as_ref().and_then(|folders| folders.first()) {
        progress.say(&format!("using the CUDA headers in `{}`, of that toolkit", folder.display()));
    }
    if let Some(tensorrt) = &existing.tensorrt {
        let libs = toolchain.tensorrt_libs.display();
        progress.say(&format!("using TensorRT-RTX in `{libs}` (`TENSORRT_RTX_HOME` names it)"));
        if tensorrt.bindings.is_none() {
            progress.say(
                "it has no Python package `tensorrt_rtx_bindings` inside or beside: the pinned one is used",
            );
        }
    }
}

/// Fetches every one of `missing`, several at the same time. After a failure no new one is begun.
fn fetch_all(missing: &[Choice<'_>], store: &Store, python: &Python, progress: &Progress) -> Result<()> {
    let queue = Mutex::new(missing.iter());
    let failures = Mutex::new(Vec::new());
    // A poisoned lock means a panic elsewhere, which the scope passes on; what it guards stays sound.
    let next = || {
        let failed = !failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_empty();
        if failed { None } else { queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next() }
    };
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL.min(missing.len()) {
            scope.spawn(|| {
                while let Some(choice) = next() {
                    if let Err(error) = fetch(choice, store, python, progress) {
                        failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(error);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter();
    let Some(first) = failures.next() else { return Ok(()) };
    // Begun at the same time, they nearly always fail for the same reason: one is told in full.
    let told = first.to_string();
    let others: Vec<String> =
        failures.map(|error| error.to_string()).filter(|other| *other != told).collect();
    if others.is_empty() { Err(first) } else { Err(anyhow!("{first:#}\n  also: {}", others.join("; "))) }
}

fn fetch(choice: &Choice<'_>, store: &Store, python: &Python, progress: &Progress) -> Result<()> {
    let label = choice.package.label();
    let wait = || progress.say(&format!("waiting for another run that is fetching {label}"));
    let fill = |work: &Path| {
        let task = progress.download(&label, &choice.package.purpose, choice.wheel.bytes);
        let content = pip::fetch(python, choice, work, &task)?;
        task.finish("fetched");
        Ok(content)
    };
    store.ensure(&choice.folder, &choice.recipe(), wait, fill)?;
    Ok(())
}

/// Makes the unversioned name of a named TensorRT-RTX library where its own folder has none.
fn link(toolchain: &Toolchain, store: &Store) -> Result<()> {
    if toolchain.tensorrt_link == toolchain.tensorrt_libs {
        return Ok(());
    }
    let name = toolchain.tensorrt_link.file_name().unwrap_or_default().to_string_lossy();
    let target = toolchain.tensorrt_libs.join("libtensorrt_rtx.so.1");
    let fill = |work: &Path| {
        std::os::unix::fs::symlink(&target, work.join("libtensorrt_rtx.so"))?;
        Ok(work.to_path_buf())
    };
    store.ensure(&name, &format!("link {}\n", target.display()), || {}, fill)?;
    Ok(())
}

/// That Python can import what is there, once for each set of folders: an error here says more than one from the middle of a
/// test. That it could is remembered in the store.
fn check(toolchain: &Toolchain, python: &Python, store: &Store) -> Result<()> {
    let mut recipe =
        format!("python {}\nlibraries {}\n", python.path.display(), toolchain.tensorrt_libs.display());
    for folder in &toolchain.python_path {
        recipe.push_str(&format!("import {}\n", folder.display()));
    }
    let fill = |work: &Path| {
        let mut command = toolchain.python_command()?;
        command.args(["-c", "import tensorrt_rtx_bindings, onnx"]).current_dir(work);
        process::capture(&mut command).with_context(|| {
            "TensorRT-RTX's bindings and `onnx` do not work here; they need the C++ runtime library (`apt install \
             libstdc++6`) and, where `TENSORRT_RTX_HOME` is set, release 1.7 there with bindings for this Python"
        })?;
        Ok(work.to_path_buf())
    };
    let name = format!("imports-cp{}{}", python.version.major, python.version.minor);
    store.ensure(&name, &recipe, || {}, fill)?;
    Ok(())
}

/// Variables under which the compiler and the tests find this toolchain. `CUDA_HOME` and `CUBINDER_NVRTC` are not among them: the
/// compiler reads what the user set, and looks in the cache otherwise.
///
/// # Errors
/// When a path holds the separator `:`.
pub(crate) fn environment(toolchain: &Toolchain) -> Result<Vec<(&'static str, OsString)>> {
    let [(_, python_path), (_, library_path)] = toolchain.python_environment()?;
    Ok(vec![
        ("CUBINDER_CACHE", toolchain.cache.clone().into()),
        ("CUBINDER_TENSORRT_LIBS", toolchain.tensorrt_libs.clone().into()),
        ("CUBINDER_TEST_PYTHON", toolchain.python.clone().into()),
        ("CUBINDER_TEST_PYTHONPATH", python_path),
        ("CUBINDER_TEST_LIBRARY_PATH", library_path),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &str)]) -> Result<String, String> {
        let lookup = |name: &str| Some(OsString::from(variables.iter().find(|(key, _)| *key == name)?.1));
        cache_folder(&lookup).map(|path| path.display().to_string()).map_err(|error| error.to_string())
    }

    /// The compiler has to look in the same folder: its `toolkit` module has this test too.
    #[test]
    fn the_cache_is_where_the_user_says() {
        let home = ("HOME", "/users/me");
        assert_eq!(cache(&[home]).unwrap(), "/users/me/.cache/cubinder");
        assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/xdg")]).unwrap(), "/xdg/cubinder");
        assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "relative")]).unwrap(), "/users/me/.cache/cubinder");
        assert_eq!(cache(&[home, ("CUBINDER_CACHE", "/mine"), ("XDG_CACHE_HOME", "/xdg")]).unwrap(), "/mine");
        assert_eq!(cache(&[home, ("CUBINDER_CACHE", "")]).unwrap(), "/users/me/.cache/cubinder");
        assert!(cache(&[("HOME", "relative")]).is_err());
        assert!(cache(&[]).unwrap_err().contains("`CUBINDER_CACHE`"));
    }

    #[test]
    fn other_machines_are_told() {
        supported("linux", "x86_64").unwrap();
        let error = supported("linux", "aarch64").unwrap_err().to_string();
        assert!(
            error.starts_with("the pinned packages are for x86-64 Linux, and this is aarch64 linux"),
            "{error}"
        );
    }
}
