//! `cubinder onnx list`.

use clap::Args;
use cubinder_onnx::nodes;
use cubinder_source::diagnostic::Diagnostic;

use super::Subject;
use crate::cli::output::{MessageFormat, print, print_report, show};

/// List the plugin nodes of an ONNX model with their tensors, and say what is wrong with them: what TensorRT would refuse, and what it would do
/// otherwise than the model says, without a word.
///
/// A node is for a plugin where the ONNX standard has no such operator. Types and shapes are those that the model says, and what follows from them;
/// what is not known is shown as `?` and not checked. `onnx.shape_inference` and `--dynamic-shapes` of exporters say more.
///
/// Exit code 0 where TensorRT takes every node as far as can be told, 1 otherwise. Warnings leave it at 0.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Print JSON, one object a line: the messages, then the report
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns whether TensorRT accepts every node.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (model, plugins) = arguments.subject.open()?;
    let report = nodes::list(&arguments.subject.model, &model, &plugins);
    let mut diagnostics = plugins.warnings;
    diagnostics.extend(report.diagnostics());
    // The table comes first: the messages refer to it.
    if !arguments.json {
        print(&nodes::table(&report));
        if !diagnostics.is_empty() {
            print("\n");
        }
    }
    show(&mut diagnostics, MessageFormat::new(arguments.json));
    let wrong = report.is_wrong();
    if arguments.json {
        let result = if wrong { "wrong" } else { "listed" };
        print_report(result, &report)?;
    }
    Ok(!wrong)
}
