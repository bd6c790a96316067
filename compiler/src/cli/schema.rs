//! `cubinder schema`.

use clap::Args;
use cubinder_manifest::manifest::json_schema::json_schema;
use cubinder_source::diagnostic::Diagnostic;

use super::output::print_pretty;

/// Print the JSON Schema (draft 7) of plugin manifests, with which editors complete and check them.
///
/// Write it beside the manifests and name it in their first line, for a TOML language server such as taplo (Even Better TOML in VS Code):
///   cubinder schema > cubinder.schema.json
///   #:schema ./cubinder.schema.json
///
/// It tells mistakes of form only; `cubinder check` tells all of them.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {}

pub(super) fn run() -> Result<bool, Vec<Diagnostic>> {
    print_pretty(&json_schema(), "schema")?;
    Ok(true)
}
