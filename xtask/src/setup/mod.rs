pub(crate) mod packages;
mod pins;
mod python;
mod store;
mod tools;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use packages::Packages;
pub(crate) use tools::{BuildSystems, Packaging, build_systems, packaging};

const NVRTC: &str = "nvidia-cuda-nvrtc";
const CUDA_HEADERS: [&str; 3] = ["nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl"];
const TENSORRT: &str = "tensorrt-rtx-cu13-libs";
const PYTHON_PACKAGES: [&str; 6] =
    ["tensorrt-rtx-cu13-bindings", "onnx", "numpy", "protobuf", "typing_extensions", "ml_dtypes"];

/// Absolute paths of the tools.
#[derive(Debug)]
pub(crate) struct Toolchain {
    cache: PathBuf,
    tensorrt: PathBuf,
    python_path: Vec<PathBuf>,
    python: PathBuf,
}

pub(crate) fn run(tests: bool) -> Result<()> {
    let toolchain = ensure()?;
    println!("Packages      {}", toolchain.cache.join("toolkit").display());
    for name in ["CUBINDER_NVRTC", "CUDA_HOME"] {
        if let Some(value) = variable(name) {
            println!("{name:<14}{}", value.display());
        }
    }
    println!("TensorRT-RTX  {}", toolchain.tensorrt.display());
    println!("Python        {}", toolchain.python.display());
    if tests {
        for (variable, folder) in packages::test_environment()? {
            println!("{variable}={}", folder.display());
        }
    }
    Ok(())
}

pub(crate) fn ensure() -> Result<Toolchain> {
    let packages = Packages::open()?;
    let (has_nvrtc, has_toolkit) = (variable("CUBINDER_NVRTC").is_some(), variable("CUDA_HOME").is_some());
    let mut names = Vec::new();
    names.extend((!has_nvrtc && !has_toolkit).then_some(NVRTC));
    names.extend(CUDA_HEADERS.iter().filter(|_| !has_toolkit));
    let first_of_python = names.len();
    names.extend(PYTHON_PACKAGES);
    let named = variable("TENSORRT_RTX_HOME").map(|home| tensorrt_in(Path::new(&home))).transpose()?;
    names.extend(named.is_none().then_some(TENSORRT));
    let python_path = packages.fetch_all(&names)?.split_off(first_of_python);
    let tensorrt = match (named, python_path.last()) {
        (Some(named), _) => named,
        (None, last) => last.context("TensorRT-RTX was fetched")?.join("tensorrt_rtx_libs"),
    };
    Ok(Toolchain { cache: packages.cache, tensorrt, python_path, python: packages.python.path })
}

/// Empty variables count as unset.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn tensorrt_in(home: &Path) -> Result<PathBuf> {
    let folders = [home.to_path_buf(), home.join("lib")];
    let found = folders.iter().find(|folder| folder.join("libtensorrt_rtx.so").is_file());
    let found = found.with_context(|| {
        format!(
            "`TENSORRT_RTX_HOME` names `{}`, which has no `libtensorrt_rtx.so` or `lib/libtensorrt_rtx.so`\n  help: \
             set it to the folder of an unpacked TensorRT-RTX, or unset it to fetch TensorRT-RTX",
            home.display()
        )
    })?;
    Ok(std::path::absolute(found)?)
}

impl Toolchain {
    pub(crate) fn python_environment(&self) -> Result<[(&'static str, OsString); 2]> {
        let inherited = variable("LD_LIBRARY_PATH").unwrap_or_default();
        let libraries = std::iter::once(self.tensorrt.clone()).chain(env::split_paths(&inherited));
        let libraries = libraries.filter(|path| !path.as_os_str().is_empty());
        Ok([
            ("PYTHONPATH", env::join_paths(&self.python_path)?),
            ("LD_LIBRARY_PATH", env::join_paths(libraries)?),
        ])
    }

    pub(crate) fn python_command(&self) -> Result<Command> {
        let mut command = Command::new(&self.python);
        command.envs(self.python_environment()?).env("PYTHONNOUSERSITE", "1");
        Ok(command)
    }

    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let [(_, python_path), (_, library_path)] = self.python_environment()?;
        Ok(vec![
            ("CUBINDER_CACHE", self.cache.clone().into()),
            ("CUBINDER_TENSORRT_LIBS", self.tensorrt.clone().into()),
            ("CUBINDER_TEST_PYTHON", self.python.clone().into()),
            ("CUBINDER_TEST_PYTHONPATH", python_path),
            ("CUBINDER_TEST_LIBRARY_PATH", library_path),
        ])
    }
}

pub(crate) fn pinned_version(name: &str) -> Result<String> {
    let version = pins::Pins::load()?.package(name)?.version.clone();
    version.with_context(|| format!("`{name}` has no version"))
}

fn supported(os: &str, arch: &str) -> Result<()> {
    ensure!(
        (os, arch) == ("linux", "x86_64"),
        "the pinned packages are for x86-64 Linux, but this is {arch} {os}\n  \
         help: run it on an x86-64 Linux machine, in a container or a virtual machine"
    );
    Ok(())
}

pub(crate) fn cache() -> Result<PathBuf> {
    cache_folder(&variable)
}

/// Like the compiler's `Overrides::from_env`.
fn cache_folder(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(cache) = named("CUBINDER_CACHE") {
        return std::path::absolute(&cache)
            .with_context(|| format!("`CUBINDER_CACHE` names `{}`", cache.display()));
    }
    // XDG base directory specification: no relative paths.
    let absolute = |name: &str| named(name).filter(|folder| folder.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let base = base.context("no folder for the cache; set `HOME`, or set `CUBINDER_CACHE` to a folder")?;
    Ok(base.join("cubinder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &str)]) -> Result<String, String> {
        let lookup = |name: &str| Some(OsString::from(variables.iter().find(|(key, _)| *key == name)?.1));
        cache_folder(&lookup).map(|path| path.display().to_string()).map_err(|error| error.to_string())
    }

    /// The compiler's `toolkit` uses the same folder.
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
    fn other_machines_are_rejected() {
        supported("linux", "x86_64").unwrap();
        let error = supported("linux", "aarch64").unwrap_err().to_string();
        assert!(
            error.starts_with("the pinned packages are for x86-64 Linux, but this is aarch64 linux"),
            "{error}"
        );
    }

    #[test]
    fn a_named_tensorrt_has_its_library_in_one_of_two_folders() {
        let home = tempfile::tempdir().unwrap();
        let error = tensorrt_in(home.path()).unwrap_err().to_string();
        assert!(error.starts_with("`TENSORRT_RTX_HOME` names `"), "{error}");
        let lib = home.path().join("lib");
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("libtensorrt_rtx.so"), "").unwrap();
        assert_eq!(tensorrt_in(home.path()).unwrap(), lib);
        assert_eq!(tensorrt_in(&lib).unwrap(), lib);
    }
}
