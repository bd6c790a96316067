//! Builds and runs the checks of `tests/fake-driver` with a stand-in driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::compiled::Pair;
use crate::cxx;
use crate::headers::{self, RTX_1_7};
use crate::oracle::{self, Run};

const HOST: [&str; 8] = [
    "report.cpp",
    "host.cpp",
    "library.cpp",
    "fields.cpp",
    "expressions.cpp",
    "cases.cpp",
    "general_cases.cpp",
    "subject.cpp",
];

const C_OPTIONS: [&str; 7] = ["-x", "c", "-std=c11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"];

const DRIVER_SOURCES: [&str; 5] = ["cuda.c", "code.c", "memory.c", "kernels.c", "graphs.c"];

const DRIVER: &str = "libcuda.so.1";
const DRIVER_NAME: &str = "-Wl,-soname,libcuda.so.1";

const TOOL: &str = "libtool.so";

/// The simulated driver release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// CUDA 13.0.
    New,
    /// CUDA 12.0, without `cuFuncLoad` and `cuKernelGetParamInfo`.
    Old,
}

impl Age {
    fn folder(self) -> &'static str {
        match self {
            Age::New => "new",
            Age::Old => "old",
        }
    }
}

/// The checks to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `circ_pad_plugin`, `elemwise_add_plugin` and those of `tests/data/run`.
    Plugins,
    /// The tiles of `tests/data/run` for `sm_75` and `sm_90a`.
    OtherDevices,
    /// [`Subject::Plugins`] with a profiler; with `EXPECTED_WARNING`, no ranges and that warning.
    Ranges,
    /// The tiles, vectors and steps of `tests/data/run`, and `everything_plugin`.
    Faults,
    /// [`Subject::Faults`], closed during a capture.
    Captures,
    /// [`Subject::Faults`] in many threads.
    Threads,
    /// [`Subject::Faults`]; the process exits while they work.
    Ends,
    /// Plugins of `tests/conformance/general_cases.cpp`.
    General,
}

/// The program and both drivers.
#[derive(Clone, Debug)]
pub struct Checks {
    folder: PathBuf,
}

impl Checks {
    /// Builds the checks, or reuses a cached build.
    pub fn build() -> Result<Checks> {
        let headers = headers::folder()?;
        let own = cxx::sources(&folder())?;
        let host = cxx::sources(&oracle::folder())?;
        let lock = std::fs::read(headers::manifest().with_file_name("Cargo.lock"))?;
        let options = cxx::options(&headers, RTX_1_7);
        let described = format!("{options:?} {C_OPTIONS:?} {DRIVER_NAME} {:?}", cxx::compiler_version());
        let interface = std::fs::read(folder().join("../../runtime-plugin/include/cubinder_runtime.h"))?;
        let mut key: Vec<&[u8]> = vec![described.as_bytes(), &lock, &interface];
        for (path, bytes) in host.iter().chain(&own) {
            key.extend([path.as_os_str().as_encoded_bytes(), bytes]);
        }
        let mut sources: Vec<PathBuf> = HOST.iter().map(|name| oracle::folder().join(name)).collect();
        sources.extend(own.iter().map(|(path, _)| path.clone()));
        let sources: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
        let folder = cxx::cached("fake-driver", &key, |out| {
            build_driver(Age::New, out)?;
            build_driver(Age::Old, out)?;
            build_tool(out)?;
            oracle::build_library(RTX_1_7, &options, &sources, out)?;
            oracle::build_program(RTX_1_7, &options, &out.join("run"))
        })?;
        Ok(Checks { folder })
    }

    /// Checks a pair of libraries.
    pub fn run(&self, subject: Subject, pair: &Pair, age: Age) -> Result<Run> {
        self.run_with(subject, pair, age, &[])
    }

    /// Runs as [`Checks::run`], with more variables.
    pub fn run_with(
        &self,
        subject: Subject,
        pair: &Pair,
        age: Age,
        environment: &[(&str, &str)],
    ) -> Result<Run> {
        let option = match subject {
            Subject::Plugins => "--library",
            Subject::OtherDevices => "--other",
            Subject::Ranges => "--ranges",
            Subject::Faults => "--faults",
            Subject::Captures => "--captures",
            Subject::Threads => "--threads",
            Subject::Ends => "--ends",
            Subject::General => "--general",
        };
        let mut command = Command::new(self.folder.join("run"));
        command.arg(option).arg(&pair.plugins).arg("--runtime-library").arg(&pair.runtime);
        let driver = self.folder.join(age.folder());
        Run::of(command.env("LD_LIBRARY_PATH", driver).envs(environment.iter().copied()))
    }

    /// Returns the stand-in profiler for `NVTX_INJECTION64_PATH`.
    #[must_use]
    pub fn tool(&self) -> PathBuf {
        self.folder.join(TOOL)
    }

    /// Returns the stand-in driver of CUDA 13.0.
    #[must_use]
    pub fn driver(&self) -> PathBuf {
        self.folder.join(Age::New.folder()).join(DRIVER)
    }

    /// Runs with the machine's driver, if any.
    pub fn run_without(&self, arguments: &[&str]) -> Result<Run> {
        Run::of(Command::new(self.folder.join("run")).args(arguments).env_remove("LD_LIBRARY_PATH"))
    }
}

/// Returns the stand-in driver's folder for `LD_LIBRARY_PATH`. Needs no NVIDIA headers.
pub fn driver_folder(age: Age) -> Result<PathBuf> {
    let own = cxx::sources(&folder())?;
    let described = format!("{C_OPTIONS:?} {DRIVER_SOURCES:?} {:?}", cxx::compiler_version());
    let mut key: Vec<&[u8]> = vec![described.as_bytes()];
    for (path, bytes) in &own {
        key.extend([path.as_os_str().as_encoded_bytes(), bytes]);
    }
    let folder = cxx::cached(&format!("fake-gpu-{}", age.folder()), &key, |out| build_driver(age, out))?;
    Ok(folder.join(age.folder()))
}

/// Returns the sources' folder.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-driver")
}

fn build_driver(age: Age, out: &Path) -> Result<()> {
    let driver = out.join(age.folder());
    std::fs::create_dir(&driver)?;
    let mut arguments: Vec<OsString> = C_OPTIONS.map(OsString::from).to_vec();
    arguments.push(DRIVER_NAME.into());
    if age == Age::Old {
        arguments.push("-DOLD_DRIVER".into());
    }
    // Here `-x` applies only to the next file.
    arguments.extend(DRIVER_SOURCES.iter().flat_map(|source| ["-x", "c", source]).map(OsString::from));
    arguments.extend(["-o".into(), driver.join(DRIVER).into()]);
    cxx::compile(&folder(), &arguments).context("cannot build the stand-in for the CUDA driver")
}

fn build_tool(out: &Path) -> Result<()> {
    let mut arguments: Vec<OsString> = C_OPTIONS.map(OsString::from).to_vec();
    arguments.extend(["tool.c".into(), "-o".into(), out.join(TOOL).into()]);
    cxx::compile(&folder(), &arguments).context("cannot build the stand-in for a profiler")
}
