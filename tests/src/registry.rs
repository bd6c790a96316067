//! Plugin registries of full TensorRT, driven by `tests/registry`.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cxx;
use crate::headers::{self, GENERATIONS, Generation};

/// Variable: libraries of full TensorRT, separated by colons.
pub const LIBRARIES: &str = "CUBINDER_TEST_TENSORRT";

const ENTERPRISE_11_4: Generation = GENERATIONS[6];

/// Returns the libraries in [`LIBRARIES`].
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

/// The program's output.
#[derive(Debug)]
pub struct Session {
    /// Standard output.
    pub answers: Vec<String>,
    /// Standard error, also of plugin libraries.
    pub errors: String,
    /// Signal that ended the program, if any.
    pub signal: Option<i32>,
}

impl Registry {
    /// Builds the program.
    pub fn build() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry");
        let mut arguments = cxx::options(&headers::folder()?, ENTERPRISE_11_4);
        let compiler = cxx::compiler_version().context("cannot run the C++ compiler")?;
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

    /// Runs commands (see `registry.cpp`) in a new process; a crash is a result.
    pub fn run(&self, commands: &str) -> Result<Session> {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run the program that drives registries")?;
        // They fit into the pipe.
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
