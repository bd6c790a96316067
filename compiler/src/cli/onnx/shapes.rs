//! `cubinder onnx shapes`.

use clap::Args;
use cubinder_model::Target;
use cubinder_node::eval::{Compiler, Environment};
use cubinder_node::query::{Part, Query};
use cubinder_onnx::nodes::{self, NetworkShapes};
use cubinder_source::diagnostic::Diagnostic;

use super::Subject;
use crate::cli::eval::arch;
use crate::cli::output::{MessageFormat, print, print_report, show};

/// Show the plugin nodes of an ONNX model with their shapes and launches, without a GPU: `cubinder eval` for a whole model.
///
/// Names of dimensions are bound by the shapes that are given for the network's inputs, or by --dim. The rest follows: through plugins as they
/// compute their outputs' shapes, and through the ONNX operators whose shapes are simple. Where that does not suffice it is said which tensor is not
/// known; its shape can be given with --shape too.
///
/// Exit code 0 where every plugin node can be launched, 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// The shape of an input of the network, or of any other tensor: x=10x3x32x32, x=10,3 or x=scalar
    #[arg(long = "shape", value_name = "NAME=SHAPE")]
    shapes: Vec<String>,
    /// What the name of a dimension stands for: batch=4
    #[arg(long = "dim", value_name = "NAME=EXTENT")]
    dims: Vec<String>,
    /// What a tensor of integers holds from which shapes follow: target=4,8
    #[arg(long = "values", value_name = "NAME=INTEGERS", allow_hyphen_values = true)]
    values: Vec<String>,
    /// What is known of the GPU: sms=132, shared_bytes=232448 or capability=90 [default: what --arch says]
    #[arg(long, value_name = "NAME=INTEGER")]
    device: Vec<String>,
    /// The GPU: sm_90
    #[arg(long, value_name = "ARCH")]
    arch: Option<Target>,
    /// The node of that name alone
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Show the whole of every launch, as `cubinder eval` does
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON, one object a line: the messages, then the report
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns whether every plugin node can be launched.
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
