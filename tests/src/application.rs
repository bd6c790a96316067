//! Runs `clients/registry.py`, a TensorRT-RTX application in Python.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Python with TensorRT-RTX and onnx.
#[derive(Debug, Clone)]
pub struct Application {
    python: PathBuf,
    python_path: PathBuf,
    library_path: PathBuf,
}

/// TensorRT's answer to one step.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The client's members.
    pub members: Value,
    /// Severity and text.
    pub log: Vec<(String, String)>,
}

impl Application {
    /// Returns the application named by `CUBINDER_TEST_PYTHON` and related variables.
    #[must_use]
    pub fn from_environment() -> Option<Application> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Some(Application {
            python: variable("CUBINDER_TEST_PYTHON")?,
            python_path: variable("CUBINDER_TEST_PYTHONPATH")?,
            library_path: variable("CUBINDER_TEST_LIBRARY_PATH")?,
        })
    }

    /// Prepends `folder` to the package path; removes `unlisted` from the loader's. Fails if either has the separator.
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

    /// Returns [`Application::run`]'s command without arguments.
    #[must_use]
    pub fn python_command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONPATH", &self.python_path).env("LD_LIBRARY_PATH", &self.library_path);
        command.env("PYTHONNOUSERSITE", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Runs `steps` in a new process.
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
            .with_context(|| format!("expected one JSON line of answers, found:\n{stdout}"))?;
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

    /// Returns whether TensorRT succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.members["ok"] == Value::Bool(true)
    }

    /// Returns a list of strings.
    #[must_use]
    pub fn texts(&self, member: &str) -> Vec<String> {
        self.members[member].as_array().into_iter().flatten().map(string).collect()
    }

    /// Returns log lines with `part`, with severity.
    #[must_use]
    pub fn said(&self, part: &str) -> Vec<String> {
        let lines = self.log.iter().filter(|(_, text)| text.contains(part));
        lines.map(|(severity, text)| format!("{severity} {text}")).collect()
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
