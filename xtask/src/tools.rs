//! Builds libraries, ONNX models, engines and references. The Python clients in `xtask/python/` do not know Cubinder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifacts::{self, Artifacts};
use crate::setup::{self, Toolchain};
use crate::{process, workspace};

pub(crate) struct Tools {
    pub(crate) toolchain: Toolchain,
    pub(crate) artifacts: Artifacts,
}

/// A network of `networks.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    /// `chain`, or `vectors-1` for one variant's references.
    pub(crate) kind: String,
    pub(crate) ty: &'static str,
    /// Shape of every input; words are dynamic dimensions.
    pub(crate) shape: String,
    /// JSON by name: `pads` is `[1,1]`.
    pub(crate) set: Vec<(&'static str, String)>,
}

impl Network {
    pub(crate) fn new(kind: impl Into<String>, ty: &'static str, shape: impl Into<String>) -> Network {
        Network { kind: kind.into(), ty, shape: shape.into(), set: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Network {
        self.set.push((name, value.into()));
        self
    }

    pub(crate) fn stem(&self) -> String {
        let mut stem = format!("{}-{}-{}", self.kind, self.ty, self.shape.replace(',', "x"));
        for (name, value) in &self.set {
            let value: String =
                value.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, ',' | '-')).collect();
            stem.push_str(&format!("-{name}{}", value.replace(',', "x")));
        }
        stem
    }

    pub(crate) fn options(&self, shape: &str) -> Vec<String> {
        let mut options = vec!["--network".to_owned(), self.kind.clone()];
        options.extend(["--type".to_owned(), self.ty.to_owned(), format!("--shape={shape}")]);
        options.extend(self.set.iter().map(|(name, value)| format!("--set={name}={value}")));
        options
    }
}

#[derive(Debug, Default)]
pub(crate) struct Engine<'a> {
    pub(crate) plugins: &'a [&'a Path],
    pub(crate) serialize: &'a [&'a Path],
    /// For each profile, each dynamic input's `NAME=MIN:OPT:MAX`.
    pub(crate) profiles: &'a [Vec<String>],
    pub(crate) aliased: bool,
    pub(crate) verbose: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Built {
    pub(crate) tensorrt_rtx: String,
    pub(crate) plan_bytes: u64,
    pub(crate) warnings: Vec<String>,
}

/// `PREFIX.NAME` of `reference.py`, with `PREFIX.NAME.json` for outputs.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) alias: Option<String>,
    pub(crate) data_dependent: bool,
    pub(crate) host: bool,
}

impl Tools {
    pub(crate) fn open() -> Result<Tools> {
        let toolchain = setup::ensure()?;
        let artifacts = artifacts::build(|line| eprintln!("{line}"))?;
        Ok(Tools { toolchain, artifacts })
    }

    pub(crate) fn nvrtc(&self) -> Result<String> {
        let path = process::capture(self.cubinder()?.args(["paths", "nvrtc"]))?;
        Ok(path.trim_end().to_owned())
    }

    pub(crate) fn compile<A: AsRef<OsStr>>(
        &self,
        output: &Path,
        name: &str,
        targets: &[&str],
        arguments: &[A],
    ) -> Result<String> {
        let mut command = self.cubinder()?;
        command.arg("compile").arg("--out-dir").arg(output).args(["--name", name]);
        if !targets.is_empty() {
            command.args(["--target", &targets.join(",")]);
        }
        process::capture(command.args(arguments))
    }

    pub(crate) fn example<A: AsRef<OsStr>>(&self, name: &str, arguments: &[A]) -> Result<String> {
        let mut command = workspace::cargo();
        command.args(["run", "--quiet", "--package", "cubinder-tests", "--example", name, "--"]);
        process::capture(command.args(arguments).envs(self.environment()?))
    }

    pub(crate) fn inspect(&self, file: &Path) -> Result<Value> {
        let text = process::capture(self.cubinder()?.args(["inspect", "--json"]).arg(file))?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) fn inspect_summary(&self, file: &Path) -> Result<String> {
        process::capture(self.cubinder()?.arg("inspect").arg(file))
    }

    pub(crate) fn model(&self, network: &Network, output: &Path) -> Result<()> {
        let mut command = self.python("write_model.py")?;
        command.arg(output).args(network.options(&network.shape));
        process::capture(&mut command).map(drop)
    }

    pub(crate) fn engine(&self, model: &Path, engine: &Engine<'_>, output: &Path) -> Result<Built> {
        let mut command = self.python("build_engine.py")?;
        command.arg("--onnx").arg(model).arg("--output").arg(output);
        command.arg("--plugins").args(engine.plugins);
        command.arg("--serialize-plugin").args(engine.serialize);
        for profile in engine.profiles {
            command.arg("--profile").args(profile);
        }
        command.args(engine.aliased.then_some("--aliased"));
        command.args(engine.verbose.then_some("--verbose"));
        let output_text = process::capture(&mut command)?;
        if engine.verbose {
            output_text.lines().filter(|line| line.starts_with('[')).for_each(|line| println!("{line}"));
        }
        last_line_as_json(&output_text)
    }

    pub(crate) fn python(&self, script: &str) -> Result<Command> {
        let mut command = self.toolchain.python_command()?;
        command.arg(scripts().join(script));
        Ok(command)
    }

    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let mut variables = self.toolchain.environment()?;
        let built = self.artifacts.environment();
        variables.extend(built.map(|(name, path)| (name, path.as_os_str().to_owned())));
        Ok(variables)
    }

    pub(crate) fn cubinder(&self) -> Result<Command> {
        let mut command = Command::new(&self.artifacts.compiler);
        command.current_dir(workspace::root()).envs(self.environment()?);
        Ok(command)
    }
}

pub(crate) fn scripts() -> PathBuf {
    workspace::root().join("xtask/python")
}

pub(crate) fn last_line_as_json<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T> {
    let Some(line) = text.lines().last() else { bail!("a client printed nothing") };
    serde_json::from_str(line).with_context(|| format!("a client printed `{line}`, expected JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_named_by_all_settings() {
        let network = Network::new("pad", "f16", "n,3").with("pads", "[1, 2]").with("delta", "-3");
        assert_eq!(network.stem(), "pad-f16-nx3-pads1x2-delta-3");
        let options =
            ["--network", "pad", "--type", "f16", "--shape=5,3", "--set=pads=[1, 2]", "--set=delta=-3"];
        assert_eq!(network.options("5,3"), options);
    }
}
