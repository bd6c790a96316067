//! `cubinder thin`.

use std::path::PathBuf;

use clap::Args;
use cubinder_compiler::thin::{Outcome, thin};
use cubinder_library::Mode;
use cubinder_model::fit::ComputeCapability;
use cubinder_model::{ArchSuffix, Target, TargetKind};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Value, json};

use super::output::{check_folder, print};

/// Make a plugin library smaller: keep the code of the GPUs that are named, and leave the rest out.
///
/// For each GPU what stays is what the runtime would choose there: machine code for just that GPU, else for the highest lower minor of the same
/// major; and the PTX that it could compile, without which no other GPU can run the library. Where all plugins were compiled for the same targets,
/// the result is byte for byte what compiling for those that stay would have given.
///
/// A library of ops that was compiled with --embed and its code library change together, whichever of them is named: both lie beside each other.
/// Engines that were built before keep the code library that they carry; new ones get the new one. Engines themselves cannot be thinned: build them
/// with the thinned library.
#[derive(Args)]
pub(super) struct Arguments {
    /// The library: lib<name>.so, or lib<name>-code.so
    library: PathBuf,
    /// A GPU whose code stays, such as sm_90; repeat it or separate with commas
    #[arg(long = "arch", value_name = "ARCH", value_delimiter = ',', required = true, value_parser = device)]
    devices: Vec<ComputeCapability>,
    /// Leave PTX out too
    #[arg(long)]
    no_ptx: bool,
    /// The folder for what is made [default: it takes the place of the library]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let Arguments { library, devices, no_ptx, output, json } = arguments;
    output.as_deref().map_or(Ok(()), check_folder)?;
    let outcome = thin(library, devices, !no_ptx, output.as_deref())?;
    print(&if *json { report_json(&outcome).to_string() + "\n" } else { report(&outcome) });
    Ok(true)
}

/// Parses a GPU from its machine code's name.
fn device(text: &str) -> Result<ComputeCapability, String> {
    let target: Target = text.parse().map_err(|_| "expected a GPU, such as `sm_90`".to_owned())?;
    match (target.kind, target.arch.suffix) {
        (TargetKind::Cubin, ArchSuffix::None) => {
            Ok(ComputeCapability { major: target.arch.major, minor: target.arch.minor })
        }
        (TargetKind::Ptx | TargetKind::Native, _) => {
            Err("expected a GPU, such as `sm_90`; its PTX stays without being named".to_owned())
        }
        (TargetKind::Cubin, _) => Err(format!(
            "expected a GPU, such as `sm_{}{}`: code for `a` and `f` stays where that GPU would run it",
            target.arch.major, target.arch.minor
        )),
    }
}

fn report(outcome: &Outcome) -> String {
    let mut text = String::new();
    for library in &outcome.libraries {
        let (before, after) = library.bytes;
        text.push_str(&format!(
            "{}: {before} -> {after} bytes ({})\n",
            library.path.display(),
            library.mode.title(outcome.is_native)
        ));
    }
    let (before, after) = outcome.code_objects;
    text.push_str(&format!("{after} of {before} code objects stay: {}\n", outcome.targets.join(", ")));
    let is_embedded = outcome.libraries.iter().any(|library| library.mode != Mode::Ops);
    if is_embedded && outcome.bundle.0 != outcome.bundle.1 {
        text.push_str(&format!(
            "the two belong together, and not to engines or libraries from before: bundle {} is now {}\n",
            outcome.bundle.0.short(),
            outcome.bundle.1.short()
        ));
    }
    text
}

fn report_json(outcome: &Outcome) -> Value {
    let libraries = outcome.libraries.iter().map(|library| {
        let (before, after) = library.bytes;
        json!({"path": ReportedPath::from(&library.path), "mode": library.mode.title(outcome.is_native), "bytes_before": before, "bytes": after})
    });
    json!({
        "libraries": libraries.collect::<Vec<Value>>(),
        "bundle_before": outcome.bundle.0.to_string(),
        "bundle": outcome.bundle.1.to_string(),
        "code_objects_before": outcome.code_objects.0,
        "code_objects": outcome.code_objects.1,
        "targets": outcome.targets,
    })
}
