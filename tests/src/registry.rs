//! Plugin registries of full TensorRT, driven by a program in C++ (`tests/registry`).
//!
//! Owns: where the libraries of full TensorRT are, building the program, and running it. Never: fetches anything.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cxx;
use crate::headers::{self, GENERATIONS, Generation};

/// The variable that names libraries of full TensorRT, separated by colons.
pub const LIBRARIES: &str = "CUBINDER_TEST_TENSORRT";

/// The headers that have quick plugins.
const ENTERPRISE_11_4: Generation = GENERATIONS[6];

/// The libraries that [`LIBRARIES`] names; empty if it is not set.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    let named = std::env::var_os(LIBRARIES).unwrap_or_default();
    std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The program.
#[derive(Debug)]
pub struct Registry {
    program: PathBuf,
}

/// What the program printed for a list of commands.
#[derive(Debug)]
pub struct Session {
    /// Its lines on standard output.
    pub answers: Vec<String>,
    /// What it and the plugin libraries wrote to standard error.
    pub errors: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl Registry {
    /// Builds the program.
    ///
    /// # Errors
    /// When the headers or the C++ compiler are missing.
    pub fn build() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry");
        let mut arguments = cxx::options(&headers::folder()?, ENTERPRISE_11_4);
        let compiler = cxx::compiler_version().context("the C++ compiler cannot be run")?;
        let source = std::fs::read(folder.join("registry.cpp"))?;
        let options = arguments.join(&OsString::from("\n"));
        let key = [source.as_slice(), options.as_encoded_bytes(), compiler.as_bytes()];
        let built = cxx::cached("registry", &key, |work| {
            let own = ["-O1", "registry.cpp", "-ldl", "-o"];
            arguments.extend(own.map(OsString::from));
            arguments.push(work.join("registry").into());
            cxx::compile(&folder, &arguments).context("cannot build the program that drives registries")
        })?;
        Ok(Self { program: built.join("registry") })
    }

    /// Runs commands, which `registry.cpp` lists, in a process of their own.
    ///
    /// # Errors
    /// When the program cannot be run or does not accept a command. A crash is reported in the result.
    pub fn run(&self, commands: &str) -> Result<Session> {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run the program that drives registries")?;
        // A few lines, which fit into the pipe; a program that has crashed does not read them.
        let written = child.stdin.take().context("no standard input")?.write_all(commands.as_bytes());
        let output = child.wait_with_output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let signal = output.status.signal();
        ensure!(
            signal.is_some() || (output.status.success() && written.is_ok()),
            "{}: {errors}",
            output.status
        );
        let answers = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        Ok(Session { answers, errors, signal })
    }
}
