//! Compares an engine's outputs with expected values: of a file, a Python function, or an ONNX model.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use cubinder_expr::DataType;
use cubinder_node::trial::reference::{Call, Computation, Python, Returned};
use cubinder_node::trial::{self, Array, FunctionRef, Mismatch, Tolerance};
use cubinder_node::trial::{check_reference, default_tolerance, npy};
use cubinder_source::diagnostic::{Diagnostic, suggest};
use cubinder_source::source;
use cubinder_source::words::quoted;

use super::Outcome;
use super::errors::{NoExpectation, NoOutput, NotComputed};

/// Source of expected outputs.
#[derive(Debug)]
pub enum Expectation {
    /// A `.npz` file with outputs by name, opened before the run.
    File(PathBuf, npy::Archive<BufReader<File>>),
    /// A function of the inputs, in the engine's order.
    Function(FunctionRef),
    /// An ONNX model, with functions for its plugin nodes.
    Model(PathBuf, Vec<(String, FunctionRef)>),
}

impl Expectation {
    /// Opens a file of outputs.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn file(path: &Path) -> Result<Expectation, Diagnostic> {
        let archive = npy::Archive::open(BufReader::new(open("--expect", path)?));
        Ok(Expectation::File(path.to_owned(), archive.map_err(|why| unusable(path, why))?))
    }

    /// Uses a model.
    ///
    /// # Errors
    /// An unreadable model.
    pub fn model(path: &Path, ops: &[(String, FunctionRef)]) -> Result<Expectation, Diagnostic> {
        open("--onnx", path)?;
        Ok(Expectation::Model(path.to_owned(), ops.to_vec()))
    }

    /// Returns the files that are read.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Expectation::File(path, _) => vec![path],
            Expectation::Function(function) => vec![&function.path],
            Expectation::Model(path, ops) => {
                ops.iter().map(|(_, function)| &*function.path).chain([&**path]).collect()
            }
        }
    }
}

fn open(option: &str, path: &Path) -> Result<File, Diagnostic> {
    let why = |error: std::io::Error| NoExpectation {
        what: format!("{option} {}", path.display()),
        why: format!("cannot read the file: {error}"),
        help: "check the path, and the permissions of the file",
    };
    source::open_file(path).map_err(|error| why(error).into())
}

fn unusable(path: &Path, why: String) -> Diagnostic {
    let help = "write it with `cubinder run --output`, or with `numpy.savez`";
    NoExpectation { what: format!("--expect {}", path.display()), why, help }.into()
}

/// Parses `FILE.py:FUNCTION`, and finds the function.
///
/// # Errors
/// Another form; not a Python file with this function.
pub fn parse_function(text: &str) -> Result<FunctionRef, String> {
    let function = FunctionRef::parse(text, Path::new(""))?;
    check_reference(&function).map_err(|why| why.trim_start_matches("`reference`: ").to_owned())?;
    Ok(function)
}

/// Parses `DOMAIN::NAME=FILE.py:FUNCTION`.
///
/// # Errors
/// Another form; not a Python file with this function.
pub fn parse_op(text: &str) -> Result<(String, FunctionRef), String> {
    let (op, function) =
        text.split_once('=').ok_or("expected an op and a function: `mine::add_one=ops.py:add_one`")?;
    Ok((op.to_owned(), parse_function(function)?))
}

/// Tolerances of the outputs.
#[derive(Debug, Clone, PartialEq, Default, clap::Args)]
pub struct Tolerances {
    /// Absolute tolerance of all outputs [default: of the type]
    #[arg(long, value_name = "ATOL", value_parser = parse_number)]
    pub atol: Option<f64>,
    /// Relative tolerance of all outputs [default: of the type]
    #[arg(long, value_name = "RTOL", value_parser = parse_number)]
    pub rtol: Option<f64>,
    /// Tolerance of one output: y=1e-3:1e-2
    #[arg(long = "tolerance", value_name = "NAME=ATOL:RTOL", value_parser = parse_tolerance)]
    pub each: Vec<(String, Tolerance)>,
}

fn parse_number(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
    number.ok_or_else(|| "expected a finite number of at least 0".to_owned())
}

fn parse_tolerance(text: &str) -> Result<(String, Tolerance), String> {
    let parts = text.rsplit_once('=').and_then(|(name, pair)| Some((name, pair.split_once(':')?)));
    let (name, (atol, rtol)) = parts.ok_or("expected `NAME=ATOL:RTOL`, such as `y=1e-3:1e-2`")?;
    Ok((name.trim().to_owned(), Tolerance { atol: parse_number(atol)?, rtol: parse_number(rtol)? }))
}

impl Tolerances {
    fn of(&self, output: &str, ty: DataType) -> Tolerance {
        let own = self.each.iter().rfind(|(name, _)| name == output).map(|(_, own)| *own);
        own.unwrap_or_else(|| {
            let Tolerance { atol, rtol } = default_tolerance(ty);
            Tolerance { atol: self.atol.unwrap_or(atol), rtol: self.rtol.unwrap_or(rtol) }
        })
    }
}

/// An output and its expected values.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Output name.
    pub name: String,
    /// Tolerance.
    pub tolerance: Tolerance,
    /// Result.
    pub verdict: Verdict,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// All elements are equal.
    Equal,
    /// Within tolerance; with the largest absolute difference.
    Close(f64),
    /// Elements exceed the tolerance.
    Wrong(Mismatch),
    /// Found and expected shape.
    Shape(Vec<i64>, Vec<i64>),
    /// No values are expected.
    Missing,
}

impl Verdict {
    /// Returns whether the output is as expected.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(self, Verdict::Equal | Verdict::Close(_))
    }
}

/// Compares all outputs.
///
/// # Errors
/// Expected values that cannot be computed or read; tolerances of unknown outputs.
pub fn compare(
    outcome: &Outcome,
    expectation: &mut Expectation,
    tolerances: &Tolerances,
    python: PathBuf,
) -> Result<Vec<Comparison>, Diagnostic> {
    let names = || outcome.outputs.iter().map(|(name, _)| name.as_str());
    if let Some((name, _)) = tolerances.each.iter().find(|(name, _)| !names().any(|known| known == name)) {
        return Err(NoOutput { name, outputs: quoted(names()), near: suggest(name, names()) }.into());
    }
    let expected = expected(outcome, expectation, python)?;
    let one = |((name, found), expected): (&(String, Array), Option<Array>)| {
        let tolerance = tolerances.of(name, found.ty());
        let verdict = expected.map_or(Verdict::Missing, |expected| verdict(found, &expected, tolerance));
        Comparison { name: name.clone(), tolerance, verdict }
    };
    Ok(outcome.outputs.iter().zip(expected).map(one).collect())
}

fn expected(
    outcome: &Outcome,
    expectation: &mut Expectation,
    python: PathBuf,
) -> Result<Vec<Option<Array>>, Diagnostic> {
    let (computation, help) = match expectation {
        Expectation::File(path, archive) => {
            let known = archive.names();
            let array = |(name, array): &(String, Array)| {
                if !known.contains(name) {
                    return Ok(None);
                }
                let read = archive.tensor(name).and_then(|stored| stored.array(array.ty()));
                read.map(Some).map_err(|why| unusable(path, format!("`{name}`: {why}")))
            };
            return outcome.outputs.iter().map(array).collect();
        }
        Expectation::Function(function) => (
            Computation::Function(function),
            "correct the function; it is called with the engine's inputs, in order, as NumPy arrays",
        ),
        Expectation::Model(path, ops) => (
            Computation::Model(path, ops),
            "compute each plugin node with `--op DOMAIN::NAME=FILE.py:FUNCTION`; `--python` selects a Python with onnx",
        ),
    };
    let inputs: Vec<(&str, &Array)> =
        outcome.inputs.iter().map(|(name, array)| (name.as_str(), array)).collect();
    let outputs = outcome.outputs.iter().map(|(name, array)| Returned {
        name,
        ty: array.ty(),
        most: usize::MAX,
        is_size: false,
        is_needed: false,
    });
    let outputs: Vec<Returned<'_>> = outputs.collect();
    let call = Call { computation, inputs: &inputs, attributes: &[], outputs: &outputs };
    // The package onnx adds a node's text to its messages.
    let first_line = |why: String| why.lines().next().unwrap_or_default().to_owned();
    Python::new(python).call(&call).map_err(|why| NotComputed { why: first_line(why), help }.into())
}

pub(super) fn verdict(found: &Array, expected: &Array, tolerance: Tolerance) -> Verdict {
    if found.shape() != expected.shape() {
        return Verdict::Shape(found.shape().to_vec(), expected.shape().to_vec());
    }
    match trial::compare(found, expected, tolerance, &[]) {
        Some(mismatch) => Verdict::Wrong(mismatch),
        None => match trial::compare(found, expected, Tolerance::EXACT, &[]) {
            Some(differing) => Verdict::Close(differing.largest.unwrap_or(0.0)),
            None => Verdict::Equal,
        },
    }
}
