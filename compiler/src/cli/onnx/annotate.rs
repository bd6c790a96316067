//! `cubinder onnx annotate`.

use std::path::{Path, PathBuf};

use clap::Args;
use cubinder_onnx::nodes::{self, Annotated, AnnotationScope, Import, Mapping, NodeChanges, open_model};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path::is_same_file;
use cubinder_source::reported_path::ReportedPath;
use serde::Serialize;

use super::Subject;
use crate::cli::output::{MessageFormat, print, print_report, show};

/// Write into the plugin nodes of an ONNX model what TensorRT wants to read there: plugin_namespace, plugin_version, aot,
/// tensorrt_plugin_shape_input_indices, the domain, and the defaults of attributes that a node does not say. The domain is added to the operator sets
/// that the model says it uses.
///
/// Only what is missing changes, and what a plugin's own node says wrong. A node that says another namespace, domain or version than the plugin's may
/// be another's: it is reported, and stays as it is without --map or --force. Everything else comes out byte for byte, weights included; a model
/// without plugin nodes is copied. The output may be the model itself: it is replaced when all of it is written.
///
/// A default that TensorRT's parser would change on its way (integers beyond 32 bits, floats that single precision does not hold) is not written: the
/// plugin has it anyway.
///
/// Exit code 0 where every plugin node is right afterwards, as far as `cubinder onnx list` can tell; 1 otherwise. The output is written then too, and
/// it is said what is left to do.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    subject: Subject,
    /// Where to write the model; it may be the model itself
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Nodes of another name, domain or version that are for a plugin: mmcv::RoIAlign=sample::roi_align; without a domain, those of the default one; repeat it
    #[arg(long = "map", value_name = "DOMAIN::OP=PLUGIN")]
    mapping: Vec<String>,
    /// Take nodes for a plugin that have its name, and say another namespace, domain or version
    #[arg(long)]
    force: bool,
    /// Write nothing
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Print JSON, one object a line: the messages, then the changes
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
            "`--output {}` would replace `{}`, which `--plugins` names",
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
