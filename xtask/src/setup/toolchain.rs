//! Where everything is that compiles kernels and builds engines.
//!
//! Owns the layout of the fetched packages and the environment that a Python with TensorRT-RTX's bindings needs. Never
//! fetches anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::existing::Existing;
use super::pins::{Choice, Pins};
use super::python::Python;
use super::store::Store;

const NVRTC: &str = "nvidia-cuda-nvrtc";
const RUNTIME: &str = "nvidia-cuda-runtime";
const CRT: &str = "nvidia-cuda-crt";
const CCCL: &str = "nvidia-cuda-cccl";
const TENSORRT_LIBS: &str = "tensorrt-rtx-cu13-libs";
const TENSORRT_BINDINGS: &str = "tensorrt-rtx-cu13-bindings";
/// `onnx` and what it imports.
const ONNX: [&str; 5] = ["onnx", "numpy", "protobuf", "typing_extensions", "ml_dtypes"];

/// Every package that this module knows how to use.
#[cfg(test)]
pub(crate) const PACKAGES: [&str; 11] = [
    NVRTC,
    RUNTIME,
    CRT,
    CCCL,
    TENSORRT_LIBS,
    TENSORRT_BINDINGS,
    ONNX[0],
    ONNX[1],
    ONNX[2],
    ONNX[3],
    ONNX[4],
];

/// NVRTC, CUDA headers, TensorRT-RTX and a Python that can use it. All paths are absolute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// The cache that holds the fetched packages.
    pub(crate) cache: PathBuf,
    /// The library.
    pub(crate) nvrtc: PathBuf,
    /// Folders with CUDA headers, in search order.
    pub(crate) include: Vec<PathBuf>,
    /// The folder with `libtensorrt_rtx.so.1`.
    pub(crate) tensorrt_libs: PathBuf,
    /// The folder with the unversioned `libtensorrt_rtx.so`; usually the same.
    pub(crate) tensorrt_link: PathBuf,
    /// Folders to import `tensorrt_rtx_bindings` and `onnx` from.
    pub(crate) python_path: Vec<PathBuf>,
    /// The interpreter.
    pub(crate) python: PathBuf,
}

/// The packages that `existing` does not stand in for.
///
/// # Errors
/// When the pins lack a package or a wheel for this Python.
pub(crate) fn needed<'a>(pins: &'a Pins, existing: &Existing, python: &Python) -> Result<Vec<Choice<'a>>> {
    let mut names = Vec::new();
    if existing.nvrtc.is_none() {
        names.push(NVRTC);
    }
    if existing.tensorrt.is_none() {
        names.push(TENSORRT_LIBS);
    }
    if existing.include.is_none() {
        names.extend([RUNTIME, CRT, CCCL]);
    }
    if existing.tensorrt.as_ref().is_none_or(|tensorrt| tensorrt.bindings.is_none()) {
        names.push(TENSORRT_BINDINGS);
    }
    names.extend(ONNX);
    names.into_iter().map(|name| pins.package(name)?.choose(python.version)).collect()
}

impl Toolchain {
    /// Puts the named tools and the fetched packages together. Looks at no file.
    ///
    /// # Errors
    /// When the pins lack a package or a wheel for this Python.
    pub(crate) fn new(
        cache: &Path,
        store: &Store,
        pins: &Pins,
        existing: &Existing,
        python: &Python,
    ) -> Result<Self> {
        let folder = |name: &str| {
            Ok::<_, anyhow::Error>(store.folder(&pins.package(name)?.choose(python.version)?.folder))
        };
        let nvrtc = match &existing.nvrtc {
            Some(nvrtc) => nvrtc.library.clone(),
            None => folder(NVRTC)?.join("nvidia/cu13/lib/libnvrtc.so.13"),
        };
        let include = match &existing.include {
            Some(include) => include.clone(),
            None => {
                let [runtime, crt, cccl] = [folder(RUNTIME)?, folder(CRT)?, folder(CCCL)?]
                    .map(|package| package.join("nvidia/cu13/include"));
                vec![runtime, crt, cccl.clone(), cccl.join("cccl")]
            }
        };
        let mut python_path = Vec::new();
        let (tensorrt_libs, tensorrt_link) = match &existing.tensorrt {
            Some(tensorrt) => {
                let link = if tensorrt.libs.join("libtensorrt_rtx.so").exists() {
                    tensorrt.libs.clone()
                } else {
                    link_folder(store, &tensorrt.libs)
                };
                (tensorrt.libs.clone(), link)
            }
            None => {
                let package = folder(TENSORRT_LIBS)?;
                let libs = package.join("tensorrt_rtx_libs");
                python_path.push(package);
                (libs.clone(), libs)
            }
        };
        let bindings = existing.tensorrt.as_ref().and_then(|tensorrt| tensorrt.bindings.clone());
        let own_bindings = if bindings.is_none() { Some(folder(TENSORRT_BINDINGS)?) } else { None };
        python_path.extend(own_bindings);
        for name in ONNX {
            python_path.push(folder(name)?);
        }
        // Last: it may hold other packages, and theirs must not shadow the pinned ones.
        python_path.extend(bindings);
        let python = python.path.clone();
        Ok(Self {
            cache: cache.to_path_buf(),
            nvrtc,
            include,
            tensorrt_libs,
            tensorrt_link,
            python_path,
            python,
        })
    }

    /// What `PYTHONPATH` and `LD_LIBRARY_PATH` must be for a Python that imports `tensorrt_rtx_bindings` and `onnx`.
    ///
    /// # Errors
    /// When a path holds the separator `:`.
    pub(crate) fn python_environment(&self) -> Result<[(&'static str, OsString); 2]> {
        let mut libraries = vec![self.tensorrt_libs.clone()];
        if self.tensorrt_link != self.tensorrt_libs {
            libraries.push(self.tensorrt_link.clone());
        }
        let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        libraries.extend(std::env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty()));
        Ok([("PYTHONPATH", join(&self.python_path)?), ("LD_LIBRARY_PATH", join(&libraries)?)])
    }

    /// A Python that imports the pinned packages first and none of the user's own site.
    ///
    /// # Errors
    /// As [`Toolchain::python_environment`].
    pub(crate) fn python_command(&self) -> Result<Command> {
        let mut command = Command::new(&self.python);
        command.envs(self.python_environment()?).env("PYTHONNOUSERSITE", "1");
        Ok(command)
    }
}

/// A folder for the unversioned name of a library in a folder that is not ours.
fn link_folder(store: &Store, libs: &Path) -> PathBuf {
    let name: String =
        libs.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    store.folder(&format!("link{name}"))
}

fn join(paths: &[PathBuf]) -> Result<OsString> {
    std::env::join_paths(paths).context("a folder with `:` in its name cannot stand in a search path")
}

#[cfg(test)]
mod tests {
    use super::super::existing::{Nvrtc, TensorRt};
    use super::super::python::Version;
    use super::*;

    fn python() -> Python {
        Python { path: "/bin/python3".into(), version: Version { major: 3, minor: 12 } }
    }

    fn toolchain(existing: &Existing) -> Toolchain {
        let store = Store::new("/cache/toolkit".into());
        Toolchain::new(Path::new("/cache"), &store, &Pins::load().unwrap(), existing, &python()).unwrap()
    }

    fn names(existing: &Existing) -> Vec<String> {
        let pins = Pins::load().unwrap();
        needed(&pins, existing, &python()).unwrap().iter().map(|choice| choice.package.name.clone()).collect()
    }

    #[test]
    fn nothing_named_needs_everything_from_the_cache() {
        assert_eq!(names(&Existing::default()).len(), PACKAGES.len());
        let toolchain = toolchain(&Existing::default());
        let nvrtc = "/cache/toolkit/nvidia-cuda-nvrtc-13.0.88/nvidia/cu13/lib/libnvrtc.so.13";
        assert_eq!(toolchain.nvrtc, Path::new(nvrtc));
        assert_eq!(toolchain.tensorrt_link, toolchain.tensorrt_libs);
        assert!(toolchain.python_path.iter().any(|path| path.ends_with("onnx-1.23.2-cp312")));
    }

    #[test]
    fn named_tools_are_used_and_not_fetched() {
        let existing = Existing {
            nvrtc: Some(Nvrtc { library: "/cuda/lib64/libnvrtc.so.13".into(), variable: "CUDA_HOME" }),
            include: Some(vec!["/cuda/include".into()]),
            tensorrt: Some(TensorRt { libs: "/trt/lib".into(), bindings: Some("/trt/python".into()) }),
        };
        assert_eq!(names(&existing), ONNX);
        let toolchain = toolchain(&existing);
        assert_eq!(toolchain.nvrtc, Path::new("/cuda/lib64/libnvrtc.so.13"));
        assert_eq!(toolchain.include, [Path::new("/cuda/include")]);
        assert_eq!(toolchain.python_path.last().unwrap(), Path::new("/trt/python"));
        // `/trt/lib` holds no unversioned name (it is not there at all), and is not written to.
        assert_eq!(toolchain.tensorrt_link, Path::new("/cache/toolkit/link-trt-lib"));
        let [(_, python_path), (_, libraries)] = toolchain.python_environment().unwrap();
        assert!(python_path.to_string_lossy().ends_with(":/trt/python"));
        assert!(libraries.to_string_lossy().starts_with("/trt/lib:/cache/toolkit/link-trt-lib"));
    }

    #[test]
    fn bindings_are_fetched_when_the_named_tensorrt_has_none() {
        let tensorrt = Some(TensorRt { libs: "/trt/lib".into(), bindings: None });
        let names = names(&Existing { tensorrt, ..Existing::default() });
        assert!(names.iter().any(|name| name == TENSORRT_BINDINGS));
        assert!(!names.iter().any(|name| name == TENSORRT_LIBS));
    }
}
