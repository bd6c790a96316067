//! Plugins that TensorRT can launch, by every route: equal bytes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::Run;
use crate::process;
use crate::tools::{Tools, last_line_as_json};

const CASES: &str = "native-cases";
const FOLDER: &str = "native";

/// The lowest target, for all GPUs.
const NATIVE: &str = "sm_80";
const PTX: &str = "compute_80";

const WHAT: &str = "equal bytes by the native route and by plugin libraries of PTX and of machine code";

pub(super) fn prepare(tools: &Tools, folder: &Path, targets: &[&str]) -> Result<Vec<Run>> {
    let manifests: Vec<String> = last_line_as_json(&tools.example(CASES, &[""; 0])?)?;
    manifests.iter().map(|manifest| prepare_plugin(tools, folder, targets, manifest)).collect()
}

fn prepare_plugin(tools: &Tools, folder: &Path, targets: &[&str], manifest: &str) -> Result<Run> {
    let name = manifest.trim_end_matches(".toml");
    let folder_name = format!("{FOLDER}/{}", name.replace('/', "-"));
    let inner = folder.join(&folder_name);
    let code: Vec<&str> = targets.iter().copied().chain([PTX]).collect();
    let routes = [("native", "native", vec![NATIVE]), ("ptx", "plugin", vec![PTX]), ("code", "plugin", code)];
    let file = format!("{folder_name}/cases.toml");
    let mut libraries = BTreeMap::new();
    for (library, route, targets) in routes {
        // No warnings about unsupported variants.
        tools.compile(&inner, library, &targets, &["-q", "--route", route, manifest])?;
        libraries.insert(library.to_owned(), format!("{folder_name}/lib{library}.so"));
    }
    tools.example(CASES, &[inner.join("libnative.so"), manifest.into(), folder.join(&file)])?;
    for library in libraries.values() {
        let mut command = tools.cubinder()?;
        command.args(["eval", "--cases"]).arg(folder.join(&file)).arg("--on").arg(folder.join(library));
        process::capture(&mut command).with_context(|| format!("a case of {manifest} cannot be launched"))?;
    }
    let run = Run::new(&format!("routes of {name}"), WHAT, &[&file]);
    Ok(Run { command: "routes", libraries, ..run })
}
