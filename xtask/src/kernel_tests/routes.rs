//! The plugins that TensorRT can launch itself, each compiled for every route: a GPU is to get the same bytes by all of them.
//!
//! Owns which libraries these are and that each takes the cases. Which plugins and which nodes, `cubinder_tests::native_cases` says.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::Run;
use crate::process;
use crate::workshop::{Workshop, last_line_as_json};

/// The example that knows the plugins and writes their cases.
const CASES: &str = "native-cases";
/// The folder in that of all runs.
const FOLDER: &str = "native";

/// What the native route has its PTX for, and the plugin route's library of PTX: the lowest of the targets, which all GPUs take.
const NATIVE: &str = "sm_80";
const PTX: &str = "compute_80";

const WHAT: &str = "the same bytes by the native route as by plugin libraries of PTX and of machine code";

/// Writes a folder for each plugin: its cases, and a library for each route. `targets` are what there is machine code for.
pub(super) fn prepare(workshop: &Workshop, folder: &Path, targets: &[&str]) -> Result<Vec<Run>> {
    let manifests: Vec<String> = last_line_as_json(&workshop.example(CASES, &[""; 0])?)?;
    manifests.iter().map(|manifest| one(workshop, folder, targets, manifest)).collect()
}

fn one(workshop: &Workshop, folder: &Path, targets: &[&str], manifest: &str) -> Result<Run> {
    let name = manifest.trim_end_matches(".toml");
    let place = format!("{FOLDER}/{}", name.replace('/', "-"));
    let inner = folder.join(&place);
    let code: Vec<&str> = targets.iter().copied().chain([PTX]).collect();
    let routes = [("native", "native", vec![NATIVE]), ("ptx", "plugin", vec![PTX]), ("code", "plugin", code)];
    let file = format!("{place}/cases.toml");
    let mut libraries = BTreeMap::new();
    for (library, route, targets) in routes {
        // A warning names the variants that cannot go this way, or code of another compiler that there is as PTX alone.
        workshop.compile(&inner, library, &targets, &["-q", "--route", route, manifest])?;
        libraries.insert(library.to_owned(), format!("{place}/lib{library}.so"));
    }
    workshop.example(CASES, &[inner.join("libnative.so"), manifest.into(), folder.join(&file)])?;
    for library in libraries.values() {
        let mut command = workshop.cubinder()?;
        command.args(["eval", "--cases"]).arg(folder.join(&file)).arg("--on").arg(folder.join(library));
        process::capture(&mut command).with_context(|| format!("a case of {manifest} cannot be launched"))?;
    }
    let run = Run::new(&format!("routes of {name}"), WHAT, &[&file]);
    Ok(Run { command: "routes", libraries, ..run })
}
