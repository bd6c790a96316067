//! Runs programs with a failing file call, killed before one, without new threads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use crate::cxx;

/// The effect on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SIGKILL before the call.
    Killed,
    /// This call fails with an errno.
    Once(i32),
    /// This and all later calls fail.
    Lasting(i32),
}

/// `EIO`.
pub const DAMAGED: i32 = 5;
/// `EACCES`.
pub const DENIED: i32 = 13;
/// `ENOSPC`.
pub const FULL: i32 = 28;
/// `EROFS`.
pub const READ_ONLY: i32 = 30;

/// The processes whose calls count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The started process.
    Program,
    /// Workers for NVRTC and GPUs.
    Workers,
}

/// Writes to streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Uncounted: errors are always reported.
    Spared,
    /// Counted, and may fail.
    Counted,
}

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose calls count.
    pub who: Who,
    /// How writes to streams count.
    pub streams: Streams,
    /// The call, from 1; 0: no fault.
    pub at: usize,
    /// Its effect.
    pub kind: Kind,
}

/// The fault injection libraries.
#[derive(Clone, Debug)]
pub struct Shim {
    folder: PathBuf,
}

const CALLS: &str = "faults.c";
const THREADS: &str = "threads.c";

fn library(folder: &Path, source: &str) -> PathBuf {
    folder.join(source).with_extension("so")
}

/// A finished command.
#[derive(Debug)]
pub struct Done {
    /// Status and output.
    pub output: Output,
    /// Calls in order: `openat /folder/file`; `say 1` writes to a stream.
    pub calls: Vec<String>,
}

impl Shim {
    /// Builds the libraries.
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
        let folder = std::fs::canonicalize(&folder).context("cannot find the shim")?;
        Ok(Shim { folder })
    }

    /// Limits a command's new threads.
    pub fn limit_threads(&self, command: &mut Command, threads: usize) {
        command.env("LD_PRELOAD", library(&self.folder, THREADS)).env("FAULT_THREADS", threads.to_string());
    }

    /// Runs a command with a fault.
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
