//! Making things for the demo and for GPU tests: libraries, ONNX models, engines, references.
//!
//! Owns how the built programs and the Python clients in `xtask/python/` are called. The clients know nothing of Cubinder: they are
//! what a user of TensorRT would write. Never decides what is right; that is the callers' business.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::artifacts::{self, Artifacts};
use crate::setup::{self, Toolchain};
use crate::{process, workspace};

/// The built programs and the fetched tools, ready for use.
pub(crate) struct Workshop {
    toolchain: Toolchain,
    artifacts: Artifacts,
}

/// A test network: what `write_model.py` and `reference.py` know by the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    /// `chain`, `pad`, `add` or `vectors`; of `vectors` a reference is for one variant: `vectors-1`.
    pub(crate) kind: &'static str,
    /// `f32` or `f16`.
    pub(crate) ty: &'static str,
    /// Extents of the input; a word is a dynamic one.
    pub(crate) shape: String,
    /// For `pad`.
    pub(crate) pads: &'static str,
}

/// How an engine is to be built.
#[derive(Debug, Default)]
pub(crate) struct Engine<'a> {
    /// Plugin libraries to load, in order.
    pub(crate) plugins: &'a [&'a Path],
    /// Libraries to put into the plan.
    pub(crate) serialize: &'a [&'a Path],
    /// `MIN:OPT:MAX` of the input, where it is dynamic.
    pub(crate) profile: Option<&'a str>,
}

/// What TensorRT's builder answered.
#[derive(Debug, Deserialize)]
pub(crate) struct Built {
    /// TensorRT-RTX's version.
    pub(crate) tensorrt_rtx: String,
    /// Size of the plan in bytes.
    pub(crate) plan_bytes: u64,
    /// Warnings and errors in TensorRT's log.
    pub(crate) warnings: Vec<String>,
}

/// The shapes of a reference.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    /// Of the input.
    pub(crate) shape: Vec<u64>,
    /// Of the output.
    pub(crate) out_shape: Vec<u64>,
}

impl Workshop {
    /// Sets up and builds what is missing.
    ///
    /// # Errors
    /// When the set-up or the build fails.
    pub(crate) fn open() -> Result<Workshop> {
        let toolchain = setup::ensure()?;
        let artifacts = artifacts::build(|line| eprintln!("{line}"))?;
        Ok(Workshop { toolchain, artifacts })
    }

    /// The generic runtime library.
    pub(crate) fn runtime_library(&self) -> &Path {
        &self.artifacts.runtime_library
    }

    /// Runs `cubinder` in the root of the checkout; gives what it printed.
    ///
    /// # Errors
    /// When it refuses, with what it said.
    pub(crate) fn cubinder_says(&self, arguments: &[&str]) -> Result<String> {
        process::capture(self.cubinder()?.args(arguments))
    }

    /// Runs `cubinder compile` in the root of the checkout; gives what it printed.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub(crate) fn compile(&self, output: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = self.cubinder()?;
        command.arg("compile").arg("--output").arg(output).args(arguments);
        process::capture(&mut command)
    }

    /// What `cubinder inspect --json` says of a file.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub(crate) fn inspect(&self, file: &Path) -> Result<Value> {
        let mut command = self.cubinder()?;
        command.arg("inspect").arg("--json").arg(file);
        Ok(serde_json::from_str(&process::capture(&mut command)?)?)
    }

    /// What `cubinder inspect` shows of a file.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub(crate) fn inspect_table(&self, file: &Path) -> Result<String> {
        let mut command = self.cubinder()?;
        command.arg("inspect").arg(file);
        process::capture(&mut command)
    }

    /// Writes an ONNX model.
    ///
    /// # Errors
    /// When Python or the `onnx` package fails.
    pub(crate) fn model(&self, network: &Network, output: &Path) -> Result<()> {
        let mut command = self.python("write_model.py")?;
        command.arg(output).args(["--network", network.kind, "--type", network.ty]);
        command.arg(format!("--shape={}", network.shape)).arg(format!("--pads={}", network.pads));
        process::capture(&mut command).map(drop)
    }

    /// Has TensorRT-RTX's own builder build an engine. No GPU is needed.
    ///
    /// # Errors
    /// When TensorRT refuses, with its log.
    pub(crate) fn engine(&self, model: &Path, engine: &Engine<'_>, output: &Path) -> Result<Built> {
        let mut command = self.python("build_engine.py")?;
        command.arg("--onnx").arg(model).arg("--output").arg(output);
        command.arg("--plugins").args(engine.plugins);
        command.arg("--serialize-plugin").args(engine.serialize);
        if let Some(profile) = engine.profile {
            command.args(["--shapes", &format!("x={profile}")]);
        }
        last_line_as_json(&process::capture(&mut command)?)
    }

    /// Writes `<prefix>.in`, `<prefix>.out` and `<prefix>.json` with numpy.
    ///
    /// # Errors
    /// When Python fails.
    pub(crate) fn reference(
        &self,
        network: &Network,
        shape: &str,
        prefix: &Path,
        seed: usize,
    ) -> Result<Reference> {
        let mut command = self.python("reference.py")?;
        command.arg(prefix).args(["--network", network.kind, "--type", network.ty]);
        command.arg(format!("--shape={shape}")).arg(format!("--pads={}", network.pads));
        command.arg(format!("--seed={seed}"));
        last_line_as_json(&process::capture(&mut command)?)
    }

    /// A Python that can import TensorRT-RTX's bindings and the scripts of `xtask/python/`, about to run one of them.
    ///
    /// # Errors
    /// When a path cannot stand in a search path.
    pub(crate) fn python(&self, script: &str) -> Result<Command> {
        let mut command = self.toolchain.python_command()?;
        command.arg(scripts().join(script));
        Ok(command)
    }

    /// The variables under which the compiler finds its tools.
    ///
    /// # Errors
    /// When a path cannot stand in a search path.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let mut variables = setup::environment(&self.toolchain)?;
        let built = self.artifacts.environment();
        variables.extend(built.map(|(name, path)| (name, path.as_os_str().to_owned())));
        Ok(variables)
    }

    fn cubinder(&self) -> Result<Command> {
        let mut command = Command::new(&self.artifacts.compiler);
        command.current_dir(workspace::root()).envs(self.environment()?);
        Ok(command)
    }
}

/// The folder of the Python clients.
pub(crate) fn scripts() -> PathBuf {
    workspace::root().join("xtask/python")
}

fn last_line_as_json<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T> {
    let Some(line) = text.lines().last() else { bail!("a client printed nothing") };
    serde_json::from_str(line).with_context(|| format!("a client printed `{line}`, expected JSON"))
}
