use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cubinder_compiler::run::{
    Comparison, Expectation, Tolerances, Verdict, compare, parse_function, parse_op,
};
use cubinder_node::trial::{Element, FunctionRef, Mismatch, Tolerance};
use cubinder_source::diagnostic::Diagnostic;
use serde_json::{Value, json};

use super::build::shape_text;
use super::output::{environment_path, fail};
use super::run::RunOptions;

/// Run an engine as `cubinder run` does, and compare its outputs with expected values.
///
/// The expected values are those of a Python function (--reference), of the ONNX model, evaluated by the package onnx (--onnx), or of a file (--expect).
/// Functions are called with NumPy arrays. They return an array or a PyTorch tensor, a tuple of them in the order of the outputs, or a dictionary by name.
///
/// An output passes if |found - expected| <= ATOL + RTOL * |expected| for each element. The defaults depend on its type: see docs/testing.md.
///
/// Exit code 0 if all outputs pass, 1 otherwise.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("expected").required(true).args(["reference", "onnx", "expect"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    options: RunOptions,
    /// Python function that computes the outputs from the inputs, in the engine's order
    #[arg(long, value_name = "FILE:FUNCTION", value_parser = parse_function)]
    reference: Option<FunctionRef>,
    /// ONNX model that computes the outputs
    #[arg(long, value_name = "MODEL")]
    onnx: Option<PathBuf>,
    /// Python function for the nodes of a plugin in the model, called with their inputs, and attributes by name: mine::add_one=ops.py:add_one
    #[arg(long = "op", value_name = "OP=FILE:FUNCTION", value_parser = parse_op, requires = "onnx")]
    ops: Vec<(String, FunctionRef)>,
    /// `.npz` file with the outputs by name, such as one of `cubinder run --output`
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    #[command(flatten)]
    tolerances: Tolerances,
    /// Python with NumPy that computes the expected outputs [default: CUBINDER_PYTHON, else python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    match perform(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(errors) => fail(errors, arguments.options.format()),
    }
}

fn perform(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let Arguments { options, reference, onnx, ops, expect, tolerances, python } = arguments;
    let mut expectation = match (reference, onnx, expect) {
        (Some(function), _, _) => Expectation::Function(function.clone()),
        (_, Some(path), _) => Expectation::model(path, ops)?,
        (_, _, Some(path)) => Expectation::file(path)?,
        (None, None, None) => return Err(Diagnostic::error("no source of expected outputs").into()),
    };
    let outcome = options.run(&expectation.files())?;
    let python = python.clone().or_else(|| environment_path("CUBINDER_PYTHON"));
    let python = python.unwrap_or_else(|| PathBuf::from("python3"));
    let comparisons = compare(&outcome, &mut expectation, tolerances, python)?;
    let is_right = comparisons.iter().all(|one| one.verdict.is_right());
    let result = if is_right { "as_expected" } else { "not_as_expected" };
    let lines: String = comparisons.iter().map(comparison_text).collect();
    let list: Value = comparisons.iter().map(comparison_json).collect();
    options.print(result, &outcome, &lines, json!({"comparisons": list}));
    Ok(is_right)
}

fn comparison_text(comparison: &Comparison) -> String {
    let Comparison { name, tolerance: Tolerance { atol, rtol }, verdict } = comparison;
    let within = format!("(atol {atol:?}, rtol {rtol:?})");
    match verdict {
        Verdict::Equal => format!("ok      {name}: equal\n"),
        Verdict::Close(largest) => {
            format!("ok      {name}: largest difference {largest:e}, within the tolerance {within}\n")
        }
        Verdict::Wrong(Mismatch { count, of, first, worst, .. }) => {
            let first = first.first().filter(|first| *first != worst);
            let first = first.map(|first| element("first", first)).unwrap_or_default();
            let worst = element("worst", worst);
            format!(
                "WRONG   {name}: {count} of {of} elements differ more than the tolerance {within}\n{first}{worst}"
            )
        }
        Verdict::Shape(found, expected) => {
            let [found, expected] = [found, expected].map(|shape| shape_text(shape));
            format!("WRONG   {name}: its shape is {found}, expected {expected}\n")
        }
        Verdict::Missing => format!("WRONG   {name}: no expected values\n"),
    }
}

fn element(which: &str, element: &Element) -> String {
    let Element { index, found, expected, difference } = element;
    let difference = difference.map(|difference| format!(", difference {difference:e}")).unwrap_or_default();
    format!("        {which} at {index:?}: found {found}, expected {expected}{difference}\n")
}

fn comparison_json(comparison: &Comparison) -> Value {
    let Comparison { name, tolerance, verdict } = comparison;
    let (kind, more) = match verdict {
        Verdict::Equal => ("equal", json!({})),
        Verdict::Close(largest) => ("within_tolerance", json!({"largest": largest})),
        Verdict::Wrong(mismatch) => ("wrong", json!({"elements": mismatch})),
        Verdict::Shape(_, expected) => ("shape", json!({"expected_shape": expected})),
        Verdict::Missing => ("missing", json!({})),
    };
    let mut fields = json!({"name": name, "verdict": kind, "atol": tolerance.atol, "rtol": tolerance.rtol});
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}
