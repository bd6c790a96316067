use std::str::FromStr as _;

use clap::Args;
use cubinder_model::Target;
use cubinder_node::eval::{Compiler, Environment};
use cubinder_node::query::{Part, Query};
use cubinder_onnx::nodes::{self, NetworkShapes};
use cubinder_source::diagnostic::Diagnostic;

use super::Subject;
use crate::cli::eval::arch;
use crate::cli::output::{MessageFormat, print, print_report, show};
use crate::cli::suggestions;

/// Show the plugin nodes of an ONNX model with their shapes and launches, without a GPU: `cubinder eval` for a model.
///
/// The shapes of network inputs, or --dim, bind the names of dimensions. Other shapes are inferred through plugins and common ONNX operators. If the
/// shape of a tensor cannot be inferred, the message names the tensor; specify its shape with --shape.
///
/// Exit code 0 if all plugin nodes can be launched, 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Shape of a network input or another tensor: x=10x3x32x32, x=10,3 or x=scalar
    #[arg(long = "shape", value_name = "NAME=SHAPE")]
    shapes: Vec<String>,
    /// Extent of a named dimension: batch=4
    #[arg(long = "dim", value_name = "NAME=EXTENT")]
    dims: Vec<String>,
    /// Values of an integer tensor that determines shapes: target=4,8
    #[arg(long = "values", value_name = "NAME=INTEGERS", allow_hyphen_values = true)]
    values: Vec<String>,
    /// GPU property: sms=132, shared_bytes=232448 or capability=90 [default: from --arch]
    #[arg(long, value_name = "NAME=INTEGER")]
    device: Vec<String>,
    /// GPU architecture: sm_90
    #[arg(long, value_name = "ARCH", value_parser = suggestions::gpu(Target::from_str), hide_possible_values = true)]
    arch: Option<Target>,
    /// Only the node with this name
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Show the details of each launch, as `cubinder eval` does
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON Lines: messages, then the report
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (model, plugins) = arguments.subject.open()?;
    let mut query = Query::parse(&[
        (Part::Shape, &arguments.shapes),
        (Part::Values, &arguments.values),
        (Part::Device, &arguments.device),
    ])?;
    let given = NetworkShapes {
        shapes: std::mem::take(&mut query.shapes),
        values: std::mem::take(&mut query.values),
        dims: NetworkShapes::dims(&arguments.dims)?,
    };
    let arch = arch(arguments.arch)?;
    let compiler = Compiler::new(Environment { arch, ..Environment::default() });
    let mut report = nodes::shapes(&arguments.subject.model, &model, &plugins, &given, &query, &compiler)?;
    if let Some(name) = &arguments.node {
        nodes::only(&mut report, &model, name)?;
    }
    let mut diagnostics = plugins.warnings;
    diagnostics.extend(report.diagnostics());
    if !arguments.json {
        print(&nodes::shapes_table(&report, arguments.verbose));
        if !diagnostics.is_empty() {
            print("\n");
        }
    }
    show(&mut diagnostics, MessageFormat::new(arguments.json));
    let is_right = report.is_right();
    if arguments.json {
        let result = if is_right { "evaluated" } else { "wrong" };
        print_report(result, &report)?;
    }
    Ok(is_right)
}
