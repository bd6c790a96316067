use std::path::Path;

use cubinder_source::diagnostic::Diagnostic;

use crate::build_failures::not_built;
use crate::command::{Request, for_shell};
use crate::explain::Failure;
use crate::installation::{Installation, Route};
use crate::log::Event;
use crate::process::{Watch, follow};
use crate::python::Client;

/// An output of the network.
pub type Output = (String, Vec<i64>);

/// A finished build.
#[derive(Debug)]
pub struct Built {
    /// Outputs with shapes (-1: dynamic), if reported.
    pub outputs: Vec<Output>,
    /// TensorRT's warnings.
    pub warnings: Vec<String>,
}

/// Builds an engine into `request.plan`, shown as `plan`; fails if TensorRT does.
pub fn build(
    installation: &Installation,
    request: &Request,
    client: &Client,
    plan: &Path,
    watch: &mut dyn Watch,
) -> Result<Built, Vec<Diagnostic>> {
    let mut command = request.command(installation, client)?;
    watch.command(&for_shell(&command, &request.plan, plan));
    let is_python = matches!(installation.route, Route::Python { .. });
    let mut built = None;
    let ended = follow(&mut command, is_python, watch, &mut |event| {
        if let Event::Built { outputs } = event {
            built = Some(outputs);
        }
        None
    })?;
    let warnings = ended.warnings();
    let has_plan = std::fs::metadata(&request.plan).is_ok_and(|facts| facts.len() > 0);
    match built {
        Some(outputs) if has_plan => Ok(Built { outputs, warnings }),
        None if !is_python && ended.status.success() && has_plan => {
            Ok(Built { outputs: Vec::new(), warnings })
        }
        _ => Err(not_built(installation.kind, request, &Failure::of(ended)).into()),
    }
}
