use clap::Args;
use cubinder_onnx::nodes;
use cubinder_source::diagnostic::Diagnostic;

use super::Subject;
use crate::cli::output::{MessageFormat, print, print_report, show};

/// List the plugin nodes of an ONNX model with their tensors, and report errors: nodes that TensorRT would reject, or silently treat differently than
/// the model specifies.
///
/// A node is a plugin node if the ONNX standard has no such operator. Types and shapes are read from the model or inferred; unknown ones are shown as
/// `?` and not checked. `onnx.shape_inference` and `--dynamic-shapes` of exporters add more of them.
///
/// Exit code 0 if no errors are found, 1 otherwise. Warnings do not affect it.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Print JSON Lines: messages, then the report
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns whether TensorRT accepts every node.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (model, plugins) = arguments.subject.open()?;
    let report = nodes::list(&arguments.subject.model, &model, &plugins);
    let mut diagnostics = plugins.warnings;
    diagnostics.extend(report.diagnostics());
    // Messages refer to the table.
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
