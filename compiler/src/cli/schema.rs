use clap::Args;
use cubinder_manifest::manifest::json_schema::json_schema;
use cubinder_source::diagnostic::Diagnostic;

use super::output::print_pretty;

/// Print the JSON Schema (draft 7) of plugin manifests, for completion and checks in editors.
///
/// Write it beside the manifests and reference it in their first line, for a TOML language server such as taplo (Even Better TOML in VS Code):
///   cubinder schema > cubinder.schema.json
///   #:schema ./cubinder.schema.json
///
/// The schema covers syntax and types; `cubinder check` reports all errors.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {}

pub(super) fn run() -> Result<bool, Vec<Diagnostic>> {
    print_pretty(&json_schema(), "schema")?;
    Ok(true)
}
