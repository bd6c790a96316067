//! Compares an engine's outputs with expected values: of a file, a Python function, or an ONNX model.

use std::path::{Path, PathBuf};

use cubinder_node::trial::reference::{Call, Computation, Python, Returned};
use cubinder_node::trial::{self, Array, DataFile, Element, FunctionRef, Mismatch, Tolerance};
use cubinder_node::trial::{check_reference, default_tolerance, elements, is_close, npy};
use cubinder_source::diagnostic::{Diagnostic, suggest};
use cubinder_source::source;
use cubinder_source::words::quoted;

use super::errors::{NoExpectation, NoOp, NoOutput, NoTolerance, NotComputed};
use super::{NamedArray, Outcome};

/// The source of expected outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// A `.npz` file with the outputs by name.
    File(PathBuf),
    /// A function of the inputs, in the engine's order.
    Function(FunctionRef),
    /// An ONNX model, with functions for its plugin nodes.
    Model(PathBuf, Vec<(String, FunctionRef)>),
}

impl Expectation {
    /// Parses `--reference`.
    ///
    /// # Errors
    /// Not a Python file with this function.
    pub fn function(text: &str) -> Result<Expectation, Diagnostic> {
        let what = format!("--reference {text}");
        match function(text) {
            Ok(function) => Ok(Expectation::Function(function)),
            Err(why) => {
                Err(NoExpectation { what, why, help: "use the form `--reference FILE.py:FUNCTION`" }.into())
            }
        }
    }

    /// Checks the path of a model, and parses each `--op`.
    ///
    /// # Errors
    /// An unreadable model; not an op and a Python file with this function.
    pub fn model(path: &Path, ops: &[String]) -> Result<Expectation, Vec<Diagnostic>> {
        let readable = readable("--onnx", path);
        let mut errors: Vec<Diagnostic> = readable.err().into_iter().collect();
        let mut found = Vec::new();
        for text in ops {
            let pair = text.split_once('=').ok_or_else(|| "expected an op and a function".to_owned());
            match pair.and_then(|(op, text)| Ok((op.to_owned(), function(text)?))) {
                Ok(op) => found.push(op),
                Err(why) => errors.push(NoOp { text, why }.into()),
            }
        }
        if errors.is_empty() { Ok(Expectation::Model(path.to_owned(), found)) } else { Err(errors) }
    }

    /// Checks the path of a file of outputs.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn file(path: &Path) -> Result<Expectation, Diagnostic> {
        readable("--expect", path).map(|()| Expectation::File(path.to_owned()))
    }
}

fn readable(option: &str, path: &Path) -> Result<(), Diagnostic> {
    let why = |error: std::io::Error| NoExpectation {
        what: format!("{option} {}", path.display()),
        why: format!("cannot read the file: {error}"),
        help: "check the path, and the permissions of the file",
    };
    source::open_file(path).map(drop).map_err(|error| why(error).into())
}

fn function(text: &str) -> Result<FunctionRef, String> {
    let function = FunctionRef::parse(text, Path::new(""))?;
    check_reference(&function).map_err(|why| why.trim_start_matches("`reference`: ").to_owned())?;
    Ok(function)
}

/// Tolerances of the outputs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tolerances {
    /// Absolute tolerance of all outputs.
    pub atol: Option<f64>,
    /// Relative tolerance of all outputs.
    pub rtol: Option<f64>,
    /// Tolerances of single outputs.
    pub each: Vec<(String, Tolerance)>,
}

impl Tolerances {
    /// Adds a tolerance: `y=1e-3:1e-2`.
    ///
    /// # Errors
    /// Another form.
    pub fn add(&mut self, text: &str) -> Result<(), Diagnostic> {
        let parts = text.rsplit_once('=').and_then(|(name, pair)| Some((name.trim(), pair.split_once(':')?)));
        let number = |text: &str| text.trim().parse().ok().filter(|value: &f64| *value >= 0.0);
        let found = parts.and_then(|(name, (atol, rtol))| {
            Some((name.to_owned(), Tolerance { atol: number(atol)?, rtol: number(rtol)? }))
        });
        self.each.push(found.ok_or_else(|| Diagnostic::from(NoTolerance { text }))?);
        Ok(())
    }

    fn of(&self, output: &NamedArray) -> Tolerance {
        let own = self.each.iter().rfind(|(name, _)| *name == output.name).map(|(_, own)| *own);
        own.unwrap_or_else(|| {
            let Tolerance { atol, rtol } = default_tolerance(output.array.ty());
            Tolerance { atol: self.atol.unwrap_or(atol), rtol: self.rtol.unwrap_or(rtol) }
        })
    }
}

/// An output and its expected values.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The output's name.
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
    /// All elements are within the tolerance; with the largest absolute difference.
    Close(f64),
    /// Elements exceed the tolerance; with the one that differs most.
    Wrong(Mismatch, Element),
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
    expectation: &Expectation,
    tolerances: &Tolerances,
    python: PathBuf,
) -> Result<Vec<Comparison>, Diagnostic> {
    let names = || outcome.outputs.iter().map(|output| output.name.as_str());
    if let Some((name, _)) = tolerances.each.iter().find(|(name, _)| !names().any(|known| known == name)) {
        return Err(NoOutput { name, outputs: quoted(names()), near: suggest(name, names()) }.into());
    }
    let expected = expected(outcome, expectation, python)?;
    let one = |(output, expected): (&NamedArray, Option<Array>)| {
        let tolerance = tolerances.of(output);
        let verdict =
            expected.map_or(Verdict::Missing, |expected| verdict(&output.array, &expected, tolerance));
        Comparison { name: output.name.clone(), tolerance, verdict }
    };
    Ok(outcome.outputs.iter().zip(expected).map(one).collect())
}

fn expected(
    outcome: &Outcome,
    expectation: &Expectation,
    python: PathBuf,
) -> Result<Vec<Option<Array>>, Diagnostic> {
    let (computation, help) = match expectation {
        Expectation::File(path) => return of_file(outcome, path),
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
        outcome.inputs.iter().map(|input| (input.name.as_str(), &input.array)).collect();
    let outputs = outcome.outputs.iter().map(|output| Returned {
        name: &output.name,
        ty: output.array.ty(),
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

fn of_file(outcome: &Outcome, path: &Path) -> Result<Vec<Option<Array>>, Diagnostic> {
    let unreadable = |why: String| {
        Diagnostic::from(NoExpectation {
            what: format!("--expect {}", path.display()),
            why,
            help: "write it with `cubinder run --output`, or with `numpy.savez`",
        })
    };
    let file = source::open_file(path).map_err(|error| unreadable(error.to_string()))?;
    let known = npy::Archive::open(std::io::BufReader::new(file)).map_err(unreadable)?.names();
    let array = |output: &NamedArray| {
        if !known.contains(&output.name) {
            return Ok(None);
        }
        let file = DataFile { path: path.to_owned(), member: Some(output.name.clone()) };
        file.array(output.array.ty(), usize::MAX).map(Some).map_err(unreadable)
    };
    outcome.outputs.iter().map(array).collect()
}

pub(super) fn verdict(found: &Array, expected: &Array, tolerance: Tolerance) -> Verdict {
    if found.shape() != expected.shape() {
        return Verdict::Shape(found.shape().to_vec(), expected.shape().to_vec());
    }
    match trial::compare(found, expected, tolerance, &[]).zip(worst(found, expected, tolerance)) {
        Some((mismatch, worst)) => Verdict::Wrong(mismatch, worst),
        None => match trial::compare(found, expected, Tolerance::EXACT, &[]) {
            Some(differing) => Verdict::Close(differing.largest.unwrap_or(0.0)),
            None => Verdict::Equal,
        },
    }
}

/// Returns the element outside the tolerance that differs most; NaN and infinity differ more than all numbers.
fn worst(found: &Array, expected: &Array, tolerance: Tolerance) -> Option<Element> {
    let pairs = found.unlike(expected).into_iter().map(|at| (at, found.get(at), expected.get(at)));
    let wrong = pairs.filter(|(_, found, expected)| !is_close(*found, *expected, tolerance));
    let far = |found: f64, expected: f64| {
        let difference = (found - expected).abs();
        if difference.is_finite() { difference } else { f64::INFINITY }
    };
    let worst = wrong.reduce(|worst, one| {
        let [most, new] = [worst, one].map(|(_, found, expected)| far(found.as_f64(), expected.as_f64()));
        if new > most { one } else { worst }
    })?;
    elements(found, std::iter::once(worst))?.first.pop()
}
