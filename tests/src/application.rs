//! An application of TensorRT-RTX: the Python client `clients/registry.py`, which knows nothing of Cubinder.
//!
//! Owns starting it, giving it its steps and reading its answers. Never decides what is right.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How to start Python so that it can import TensorRT-RTX's bindings and onnx.
#[derive(Debug, Clone)]
pub struct Application {
    python: PathBuf,
    python_path: PathBuf,
    library_path: PathBuf,
}

/// What TensorRT answered to one step.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The members that the client gave.
    pub members: Value,
    /// TensorRT's log during the step: severity and text.
    pub log: Vec<(String, String)>,
}

impl Application {
    /// The one that `CUBINDER_TEST_PYTHON` and its companions name, or `None` where they are not set.
    #[must_use]
    pub fn from_environment() -> Option<Application> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Some(Application {
            python: variable("CUBINDER_TEST_PYTHON")?,
            python_path: variable("CUBINDER_TEST_PYTHONPATH")?,
            library_path: variable("CUBINDER_TEST_LIBRARY_PATH")?,
        })
    }

    /// The same Python, with packages in `folder` before all others and without the libraries of `unlisted` in the search path of the loader.
    ///
    /// # Errors
    /// When a path has the separator of search paths in it.
    pub fn with_packages(&self, folder: &Path, unlisted: &Path) -> Result<Application> {
        let others = std::env::split_paths(&self.python_path);
        let python_path = std::env::join_paths(std::iter::once(folder.to_path_buf()).chain(others))?;
        let libraries = std::env::split_paths(&self.library_path).filter(|path| path != unlisted);
        let library_path = std::env::join_paths(libraries)?;
        Ok(Application {
            python: self.python.clone(),
            python_path: python_path.into(),
            library_path: library_path.into(),
        })
    }

    /// Python as [`Application::run`] starts it, without arguments.
    #[must_use]
    pub fn python_command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONPATH", &self.python_path).env("LD_LIBRARY_PATH", &self.library_path);
        command.env("PYTHONNOUSERSITE", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Runs `steps` in a process of their own and gives the answer to each.
    ///
    /// # Errors
    /// When the process fails, is killed, or prints anything but its answers: nothing that it loads may print.
    pub fn run(&self, steps: &[Value]) -> Result<Vec<Answer>> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/registry.py");
        let mut child = self
            .python_command()
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.python.display()))?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        stdin.write_all(Value::from(steps).to_string().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        if !output.status.success() || !stderr.is_empty() {
            bail!("the client: {}\n{stdout}\n{stderr}", output.status);
        }
        let answers: Vec<Value> = serde_json::from_str(&stdout)
            .with_context(|| format!("the client printed more or less than its answers:\n{stdout}"))?;
        if answers.len() != steps.len() {
            bail!("{} answers to {} steps", answers.len(), steps.len());
        }
        Ok(answers.into_iter().map(Answer::new).collect())
    }
}

impl Answer {
    fn new(members: Value) -> Answer {
        let lines = members["log"].as_array().into_iter().flatten();
        let log = lines.map(|line| (string(&line[0]), string(&line[1]))).collect();
        Answer { members, log }
    }

    /// Whether TensorRT did what it was asked for.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.members["ok"] == Value::Bool(true)
    }

    /// A member that is a list of texts.
    #[must_use]
    pub fn texts(&self, member: &str) -> Vec<String> {
        self.members[member].as_array().into_iter().flatten().map(string).collect()
    }

    /// The lines of the log that hold `part`, each after its severity.
    #[must_use]
    pub fn said(&self, part: &str) -> Vec<String> {
        let lines = self.log.iter().filter(|(_, text)| text.contains(part));
        lines.map(|(severity, text)| format!("{severity} {text}")).collect()
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
