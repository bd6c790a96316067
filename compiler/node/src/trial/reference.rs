//! Calls Python reference functions with NumPy inputs in the node's order and attributes by name; they return an array,
//! a tuple, or a dictionary by name. Evaluates ONNX models with them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cubinder_expr::{DataType, Value};
use serde_json::json;

use super::array::Array;
use super::npy;
use super::spec::FunctionRef;
use crate::eval::value_json;
use crate::reported_path::ReportedPath;

const SCRIPT: &str = include_str!("reference.py");

/// Python process, started at the first call.
#[derive(Debug)]
pub struct Python {
    program: PathBuf,
    running: Option<PythonProcess>,
}

#[derive(Debug)]
struct PythonProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What computes the outputs.
#[derive(Debug, Clone, Copy)]
pub enum Computation<'a> {
    /// Function.
    Function(&'a FunctionRef),
    /// ONNX model, with functions for nodes of some ops: `domain::name`.
    Model(&'a Path, &'a [(String, FunctionRef)]),
}

impl std::fmt::Display for Computation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Computation::Function(function) => function.fmt(f),
            Computation::Model(path, _) => path.display().fmt(f),
        }
    }
}

/// Arguments of a call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Function or model.
    pub computation: Computation<'a>,
    /// Inputs by name, in the node's order.
    pub inputs: &'a [(&'a str, &'a Array)],
    /// Attributes by name.
    pub attributes: &'a [(&'a str, &'a Value)],
    /// Outputs, in the node's order.
    pub outputs: &'a [Returned<'a>],
}

/// Result expected for an output.
#[derive(Debug, Clone, Copy)]
pub struct Returned<'a> {
    /// Output name.
    pub name: &'a str,
    /// Type.
    pub ty: DataType,
    /// Maximum number of elements.
    pub most: usize,
    /// Whether tuples may omit it as a size tensor.
    pub is_size: bool,
    /// Whether no other source determines it.
    pub is_needed: bool,
}

const GRACE: Duration = Duration::from_secs(1);

/// Path for other processes (proc(5), `/proc/pid/fd`).
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

impl Python {
    /// Uses the Python with this name or path.
    #[must_use]
    pub fn new(program: PathBuf) -> Python {
        Python { program, running: None }
    }

    /// Calls a function; outputs may be omitted. Fails without Python or NumPy, if the function raises, or for
    /// invalid results.
    pub fn call(&mut self, call: &Call<'_>) -> Result<Vec<Option<Array>>, String> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => PythonProcess::start(&self.program)?,
        };
        let result = running.call(call);
        if running.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.running = Some(running);
        }
        result.map_err(|why| format!("`{}`: {why}", call.computation))
    }
}

impl PythonProcess {
    fn start(program: &Path) -> Result<PythonProcess, String> {
        let cannot = |error: io::Error| {
            format!(
                "cannot start `{}`: {error}; select another with `--python` or CUBINDER_PYTHON",
                program.display()
            )
        };
        let mut child = Command::new(program)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or("Python has no standard output")?;
        Ok(PythonProcess { child, requests, answers: BufReader::new(answers) })
    }

    fn call(&mut self, call: &Call<'_>) -> Result<Vec<Option<Array>>, String> {
        let text = |error: io::Error| error.to_string();
        let file =
            || tempfile::tempfile().map_err(|error| format!("cannot create a temporary file: {error}"));
        let (input_file, output_file) = (file()?, file()?);
        let to = BufWriter::new(&input_file);
        npy::write_archive(call.inputs.iter().copied(), to)?.flush().map_err(text)?;
        let names: Vec<&str> = call.inputs.iter().map(|(name, _)| *name).collect();
        let attributes: serde_json::Map<String, serde_json::Value> =
            call.attributes.iter().map(|(name, value)| ((*name).to_owned(), value_json(value))).collect();
        let named = |keep: fn(&Returned<'_>) -> bool| -> Vec<&str> {
            call.outputs.iter().filter(|output| keep(output)).map(|output| output.name).collect()
        };
        let absolute =
            |path: &Path| std::path::absolute(path).map(|path| ReportedPath::from(&path)).map_err(text);
        let (path, what) = match call.computation {
            Computation::Function(FunctionRef { path, function }) => {
                (path.as_path(), ("function", json!(function)))
            }
            Computation::Model(path, ops) => {
                let op = |(op, FunctionRef { path, function }): &(String, FunctionRef)| {
                    Ok(json!({"op": op, "path": absolute(path)?, "function": function}))
                };
                (path, ("ops", ops.iter().map(op).collect::<Result<_, String>>()?))
            }
        };
        let request = json!({
            "path": absolute(path)?, "shown": ReportedPath::from(path).to_string(), what.0: what.1, "inputs": path_of(&input_file), "names": names,
            "attributes": attributes, "outputs": named(|_| true), "without_sizes": named(|output| !output.is_size),
            "needed": named(|output| output.is_needed), "to": path_of(&output_file),
        });
        // An exited process may have answered.
        if let Some(requests) = &mut self.requests {
            let _ = writeln!(requests, "{request}");
        }
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(text)?;
        if line.is_empty() {
            let status =
                self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("Python exited without a result ({status})"));
        }
        let answer: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| format!("invalid output of Python: {}", line.trim()))?;
        match answer.get("error").and_then(serde_json::Value::as_str) {
            Some(why) => Err(why.to_owned()),
            None => returned(call, output_file),
        }
    }
}

fn returned(call: &Call<'_>, file: File) -> Result<Vec<Option<Array>>, String> {
    let mut archive = npy::Archive::open(BufReader::new(file))?;
    let names = archive.names();
    let mut array = |(index, output): (usize, &Returned<'_>)| {
        let member = index.to_string();
        if !names.contains(&member) {
            return Ok(None);
        }
        let stored = archive.tensor(&member).and_then(|stored| stored.within(output.most)?.array(output.ty));
        stored.map(Some).map_err(|why| format!("`{}`: {why}", output.name))
    };
    call.outputs.iter().enumerate().map(&mut array).collect()
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        // Makes it exit, unless user code never returns.
        self.requests = None;
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
