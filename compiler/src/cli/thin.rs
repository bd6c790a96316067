use std::path::PathBuf;

use clap::Args;
use cubinder_compiler::thin::{Destination, ThinnedLibraries, thin};
use cubinder_library::Mode;
use cubinder_model::fit::ComputeCapability;
use cubinder_model::{ArchSuffix, Target, TargetKind};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Value, json};

use super::output::{check_file, check_folder, print};
use super::suggestions;

/// Strip code for GPUs that you do not need from a plugin library.
///
/// For each GPU in --arch, keeps the code that the runtime would choose: machine code for exactly that GPU, else for the highest lower minor version of
/// the same major version; and the PTX that it can compile. Without PTX, no other GPU can run the library. If all plugins were compiled for the same
/// targets, the result is identical to a compile for the kept targets.
///
/// A library compiled with --embed and its code library are changed together, whichever is named; both must be in the same folder. Existing engines
/// keep their embedded code library; new engines get the new one. Engines cannot be thinned: rebuild them with the thinned library.
#[derive(Args)]
pub(super) struct Arguments {
    /// Library: lib<name>.so or lib<name>-code.so
    library: PathBuf,
    /// GPU to keep code for, such as sm_90; repeat or separate with commas
    #[arg(long = "arch", value_name = "ARCH", value_delimiter = ',', required = true, value_parser = suggestions::gpu(device), hide_possible_values = true)]
    devices: Vec<ComputeCapability>,
    /// Also remove PTX
    #[arg(long)]
    no_ptx: bool,
    /// Library to write, if it has no code library [default: replace it]
    #[arg(long, short, value_name = "FILE", conflicts_with = "out_dir")]
    output: Option<PathBuf>,
    /// Folder for the libraries [default: replace them]
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let Arguments { library, devices, no_ptx, output, out_dir, json } = arguments;
    let destination = match (output, out_dir) {
        (Some(file), _) => check_file(file).map(|()| Destination::File(file))?,
        (None, Some(folder)) => check_folder(folder).map(|()| Destination::Folder(folder))?,
        (None, None) => Destination::InPlace,
    };
    let outcome = thin(library, devices, !no_ptx, destination)?;
    print(&if *json { report_json(&outcome).to_string() + "\n" } else { report(&outcome) });
    Ok(true)
}

pub(super) fn device(text: &str) -> Result<ComputeCapability, String> {
    let target: Target = text.parse().map_err(|_| "expected a GPU, such as `sm_90`".to_owned())?;
    match (target.kind, target.arch.suffix) {
        (TargetKind::Cubin, ArchSuffix::None) => {
            Ok(ComputeCapability { major: target.arch.major, minor: target.arch.minor })
        }
        (TargetKind::Ptx | TargetKind::Native, _) => {
            Err(format!("expected a GPU, such as `sm_{}{}`", target.arch.major, target.arch.minor))
        }
        (TargetKind::Cubin, _) => Err(format!(
            "expected a GPU, such as `sm_{}{}`: code for `a` and `f` is kept if that GPU can run it",
            target.arch.major, target.arch.minor
        )),
    }
}

fn report(outcome: &ThinnedLibraries) -> String {
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
    text.push_str(&format!("kept {after} of {before} code objects: {}\n", outcome.targets.join(", ")));
    let is_embedded = outcome.libraries.iter().any(|library| library.mode != Mode::Ops);
    if is_embedded && outcome.bundle.0 != outcome.bundle.1 {
        text.push_str(&format!(
            "use both together, not with earlier engines or libraries: bundle {} is now {}\n",
            outcome.bundle.0.short(),
            outcome.bundle.1.short()
        ));
    }
    text
}

fn report_json(outcome: &ThinnedLibraries) -> Value {
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
