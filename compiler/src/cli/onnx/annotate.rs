use std::path::{Path, PathBuf};

use clap::Args;
use cubinder_onnx::nodes::{self, Annotated, AnnotationScope, Import, Mapping, NodeChanges, open_model};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path::is_same_file;
use cubinder_source::reported_path::ReportedPath;
use serde::Serialize;

use super::Subject;
use crate::cli::output::{MessageFormat, print, print_report, show};

/// Add the attributes that TensorRT requires to the plugin nodes of an ONNX model: plugin_namespace, plugin_version, aot,
/// tensorrt_plugin_shape_input_indices, the domain, and the defaults of missing attributes. The domain is added to the model's operator set imports.
///
/// Changes only missing values, and wrong values of nodes that are certainly the plugin's. A node with another namespace, domain or version may belong
/// to another plugin: it is reported, and not changed without --map or --force. All other bytes are kept, weights included; a model without plugin
/// nodes is copied. The output may be the model: it is replaced once the new file is complete.
///
/// Does not write defaults that TensorRT's parser would change (integers above 32 bits, floats that are not exact in single precision): the plugin
/// contains them.
///
/// Exit code 0 if `cubinder onnx list` reports no errors for the result; 1 otherwise. Then the output is still written, and the remaining errors are
/// reported.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Output model; may be the input model
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Assign nodes of another name, domain or version to a plugin: mmcv::RoIAlign=sample::roi_align; without a domain, nodes of the default domain; repeatable
    #[arg(long = "map", value_name = "DOMAIN::OP=PLUGIN")]
    mapping: Vec<String>,
    /// Assign nodes to a plugin by name, even with another namespace, domain or version
    #[arg(long)]
    force: bool,
    /// Show the changes without writing
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Print JSON Lines: messages, then the changes
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns whether the written model has no remaining problems.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let (model, plugins) = arguments.subject.open()?;
    let mapping = Mapping::parse(&arguments.mapping, &plugins)?;
    let unused = mapping.unused(&model);
    if !unused.is_empty() {
        return Err(unused);
    }
    let takes = if arguments.force { AnnotationScope::Named } else { AnnotationScope::Lacking };
    let annotated = nodes::annotate(&model, &plugins, &mapping, takes);
    let mut diagnostics = plugins.warnings.clone();
    let from = &arguments.subject.model;
    let report = match &arguments.output {
        Some(output) => {
            not_over_plugins(output, &arguments.subject.plugins)?;
            diagnostics.extend(nodes::weights_left_behind(&model, from, output));
            nodes::write(from, &annotated.edits, output)?;
            let written = open_model(output)?;
            nodes::list(output, &written, &plugins)
        }
        None => {
            let changed = nodes::changed(from, &annotated.edits)?;
            nodes::list(from, &changed, &plugins)
        }
    };
    diagnostics.extend(report.diagnostics());
    if !arguments.json {
        print(&nodes::diff(&annotated, arguments.output.is_some()));
    }
    show(&mut diagnostics, MessageFormat::new(arguments.json));
    let wrong = report.is_wrong();
    if arguments.json {
        let result = if wrong { "wrong" } else { "annotated" };
        let Annotated { nodes, imports, .. } = &annotated;
        let output = arguments.output.as_ref().map(ReportedPath::from);
        print_report(result, &Changes { output, nodes, imports })?;
    }
    Ok(!wrong)
}

fn not_over_plugins(output: &Path, plugins: &[PathBuf]) -> Result<(), Diagnostic> {
    match plugins.iter().find(|plugin| is_same_file(plugin, output)) {
        Some(plugin) => Err(Diagnostic::error(format!(
            "`--output {}` would overwrite `{}`, an input of `--plugins`",
            output.display(),
            plugin.display()
        ))),
        None => Ok(()),
    }
}

#[derive(Serialize)]
struct Changes<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<ReportedPath>,
    nodes: &'r [NodeChanges],
    imports: &'r [Import],
}
