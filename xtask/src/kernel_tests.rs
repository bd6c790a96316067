//! `kernel_tests.py` on a GPU: planted faults, shipped plugins, test plugins, [every route](routes). Compiles
//! everything beforehand: that machine may lack NVRTC.

mod routes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use serde::Serialize;

use crate::tools::{Tools, scripts};
use crate::{files, workspace};

pub(crate) const FOLDER: &str = "kernels";

const SCRIPT: &str = "kernel_tests.py";

const OTHERS: [(&str, &str); 12] = [
    ("aligned", "aligned_plugin"),
    ("exchange", "exchange_plugin"),
    ("flip", "flip_plugin"),
    ("neighbours", "neighbours_plugin"),
    ("normalize", "normalize_plugin"),
    ("pack", "pack_plugin"),
    ("reverse", "reverse_plugin"),
    ("split", "split_plugin"),
    ("stretch", "stretch"),
    ("sum", "sum_plugin"),
    ("unpack", "unpack_plugin"),
    ("weigh", "weigh_plugin"),
];

const PLANTED: [(&str, &str); 4] =
    [("right", "planted"), ("wrong", "planted"), ("other", "positive"), ("in_place", "doubled")];
const SHIPPED: [(&str, &str); 10] = [
    ("circ_pad", "circ_pad_plugin"),
    ("add", "elemwise_add_plugin"),
    ("add_in_place", "elemwise_add_plugin_"),
    ("non_zero", "non_zero_plugin"),
    ("rms_norm", "cubinder/rms_norm"),
    ("add_rms_norm", "cubinder/add_rms_norm"),
    ("rotary_embedding", "cubinder/rotary_embedding"),
    ("pillar_scatter", "cubinder/pillar_scatter"),
    ("multiscale_deformable_attention", "cubinder/multiscale_deformable_attention"),
    ("nms", "cubinder/nms"),
];

const MEASURED: [&str; 2] = ["rms_norm", "pillar_scatter"];

/// Compilers whose plugins are circular padding up to rank 4.
const EXTERNAL_COMPILERS: [&str; 4] = ["nvcc", "cupy", "numba", "triton"];

#[derive(Debug, Serialize)]
struct Run {
    name: String,
    what: String,
    /// `test`, `tune`, or `routes`: `test` with each library.
    command: &'static str,
    arguments: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    libraries: BTreeMap<String, String>,
}

impl Run {
    fn new(name: &str, what: &str, arguments: &[&str]) -> Run {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let (name, what) = (name.to_owned(), what.to_owned());
        Run { name, what, command: "test", arguments, libraries: BTreeMap::new() }
    }

    fn tuning(name: &str, what: &str, arguments: &[&str]) -> Run {
        let arguments = [arguments, &["--dry-run"]].concat();
        Run { command: "tune", ..Run::new(name, what, &arguments) }
    }
}

/// `elsewhere`: results of [`Maker::compile_external`](crate::cases::Maker::compile_external).
pub(crate) fn prepare(tools: &Tools, folder: &Path, targets: &[&str]) -> Result<()> {
    let inner = create_folder(tools, folder)?;
    let data = workspace::root().join("tests/data/testing");
    files::copy_all(&data, &inner)?;
    files::copy_all(&data.join("shipped"), &inner.join("shipped"))?;
    let mut runs = Vec::new();
    let planted = ["planted", "doubled", "positive"].map(|name| format!("tests/data/testing/{name}.toml"));
    tools.compile(&inner, "planted", targets, &planted)?;
    for (file, plugin) in PLANTED {
        let cases = format!("{file}.toml");
        let arguments = [cases.as_str(), "--on", "libplanted.so", "--plugin", plugin];
        runs.push(Run::new(&format!("planted {file}"), "only planted faults are found", &arguments));
    }
    let shipped: Vec<String> =
        SHIPPED.iter().map(|(_, manifest)| format!("manifests/{manifest}.toml")).collect();
    tools.compile(&inner, "shipped", targets, &shipped)?;
    for (file, manifest) in SHIPPED {
        let plugin = manifest.rsplit('/').next().unwrap_or(manifest);
        let cases = format!("shipped/{file}.toml");
        let arguments = [cases.as_str(), "--on", "libshipped.so", "--plugin", plugin, "--random", "50"];
        runs.push(Run::new(plugin, "compared with NumPy or PyTorch, 50 random shapes", &arguments));
    }
    runs.extend(tuning(&inner)?);
    let (clusters, others): (Vec<_>, Vec<_>) = OTHERS.iter().partition(|(file, _)| *file == "exchange");
    for (name, list, targets) in [("others", others, targets), ("clusters", clusters, &[][..])] {
        let manifests: Vec<String> =
            list.iter().map(|(file, _)| format!("tests/data/run/{file}.toml")).collect();
        tools.compile(&inner, name, targets, &manifests)?;
        let library = format!("lib{name}.so");
        for (_, plugin) in list {
            let arguments = [library.as_str(), "--plugin", plugin, "--random", "20"];
            runs.push(Run::new(plugin, "20 random shapes, variants compared with each other", &arguments));
        }
    }
    for compiler in EXTERNAL_COMPILERS {
        let manifest = format!("../other_compilers/{compiler}.toml");
        let arguments = ["shipped/circ_pad_4.toml", "--on", manifest.as_str(), "--random", "20"];
        let what = "its compiled kernels, compared with NumPy, 20 random shapes";
        runs.push(Run::new(compiler, what, &arguments));
    }
    runs.extend(routes::prepare(tools, &inner, targets)?);
    write_runs(&inner, &runs)
}

pub(crate) fn prepare_routes(tools: &Tools, folder: &Path, targets: &[&str]) -> Result<()> {
    let inner = create_folder(tools, folder)?;
    write_runs(&inner, &routes::prepare(tools, &inner, targets)?)
}

fn create_folder(tools: &Tools, folder: &Path) -> Result<PathBuf> {
    let inner = folder.join(FOLDER);
    fs::create_dir_all(&inner)?;
    fs::copy(scripts().join(SCRIPT), folder.join(SCRIPT))?;
    fs::copy(&tools.artifacts.compiler, inner.join("cubinder"))?;
    Ok(inner)
}

fn write_runs(folder: &Path, runs: &[Run]) -> Result<()> {
    fs::write(folder.join("runs.json"), serde_json::to_string_pretty(runs)?)?;
    Ok(())
}

fn tuning(inner: &Path) -> Result<Vec<Run>> {
    files::copy_all(&workspace::root().join("manifests/cubinder/cases"), &inner.join("cases"))?;
    let planted = [("tuned", "planted"), ("tuned_positive", "positive")].map(|(file, plugin)| {
        let cases = format!("{file}.toml");
        let arguments = [cases.as_str(), "--on", "libplanted.so", "--plugin", plugin];
        Run::tuning(&format!("tuning {plugin}"), "each variant has a time", &arguments)
    });
    let shipped = MEASURED.map(|plugin| {
        let cases = format!("cases/{plugin}.toml");
        let arguments = [cases.as_str(), "--on", "libshipped.so", "--plugin", plugin];
        Run::tuning(&format!("tuning {plugin}"), "each variant has a time", &arguments)
    });
    Ok(planted.into_iter().chain(shipped).collect())
}
