//! A program whose n-th call that changes files fails, or which is killed before it; or one that can start no thread.
//!
//! Owns: the build of `tests/fault-shim`, and running a command with a fault.
//! Never: judges what became of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use crate::cxx;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The process is killed before it, with a signal that it cannot catch.
    Killed,
    /// The call fails with an error's number, and later ones do not.
    Once(i32),
    /// The call and all later ones fail.
    Lasting(i32),
}

/// `EIO`, `EACCES`, `ENOSPC` and `EROFS` of Linux.
pub const DAMAGED: i32 = 5;
/// Who asks may not write there.
pub const DENIED: i32 = 13;
/// There is no room.
pub const FULL: i32 = 28;
/// The file system is read-only.
pub const READ_ONLY: i32 = 30;

/// The processes whose calls count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// That which was started.
    Program,
    /// Those that it starts of itself, for NVRTC and for a GPU, each for itself.
    Workers,
}

/// What becomes of writes to standard output, standard error and pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// They are made, and not counted: what is said of a fault arrives, however long the fault lasts.
    Spared,
    /// They count and fail as all others.
    Counted,
}

/// A fault to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose calls count.
    pub who: Who,
    /// Which calls count beside those about files.
    pub streams: Streams,
    /// The number of the call, counted from 1; with 0 none fails.
    pub at: usize,
    /// What happens to it.
    pub kind: Kind,
}

/// The libraries that make calls fail.
#[derive(Clone, Debug)]
pub struct Shim {
    folder: PathBuf,
}

const CALLS: &str = "faults.c";
const THREADS: &str = "threads.c";

fn library(folder: &Path, source: &str) -> PathBuf {
    folder.join(source).with_extension("so")
}

/// What a command did.
#[derive(Debug)]
pub struct Done {
    /// How it ended, and what it said.
    pub output: Output,
    /// The calls that changed files, in their order: `openat /folder/file`; `say 1` is a write to a stream.
    pub calls: Vec<String>,
}

impl Shim {
    /// Builds it.
    ///
    /// # Errors
    /// Where there is no compiler, or it refuses the source.
    pub fn build() -> Result<Shim> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("fault-shim");
        let read = |name: &str| std::fs::read(sources.join(name)).context("cannot read the shim's source");
        let texts = [read(CALLS)?, read(THREADS)?];
        let folder = cxx::cached("fault-shim", &texts.each_ref().map(Vec::as_slice), |folder| {
            for name in [CALLS, THREADS] {
                let options = ["-x", "c", "-std=gnu11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra"];
                let mut arguments: Vec<std::ffi::OsString> = options.map(Into::into).to_vec();
                arguments.extend([name.into(), "-o".into(), library(folder, name).into()]);
                cxx::compile(&sources, &arguments)?;
            }
            Ok(())
        })?;
        let folder = std::fs::canonicalize(&folder).context("cannot tell where the shim is")?;
        Ok(Shim { folder })
    }

    /// Lets a command start so many threads and no more.
    pub fn limit_threads(&self, command: &mut Command, threads: usize) {
        command.env("LD_PRELOAD", library(&self.folder, THREADS)).env("FAULT_THREADS", threads.to_string());
    }

    /// Runs a command with a fault.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn run(&self, command: &mut Command, fault: Fault) -> Result<Done> {
        let Fault { who, streams, at, kind } = fault;
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("calls");
        let who = match who {
            Who::Program => "program",
            Who::Workers => "workers",
        };
        command.env("LD_PRELOAD", library(&self.folder, CALLS)).env("FAULT_LOG", &log).env("FAULT_WHO", who);
        command.env("FAULT_AT", at.to_string()).env_remove("FAULT_LASTS");
        match streams {
            Streams::Spared => command.env_remove("FAULT_STREAMS"),
            Streams::Counted => command.env("FAULT_STREAMS", "1"),
        };
        match kind {
            Kind::Killed => command.env("FAULT_KIND", "kill"),
            Kind::Once(number) => command.env("FAULT_KIND", number.to_string()),
            Kind::Lasting(number) => command.env("FAULT_KIND", number.to_string()).env("FAULT_LASTS", "1"),
        };
        let output = command.output().context("the command does not start")?;
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        let call = |line: &str| line.split_once(' ').map_or("", |(_, call)| call).to_owned();
        Ok(Done { output, calls: log.lines().map(call).collect() })
    }
}
