//! Native plugins of this repository, and the program in TensorRT's role (`tests/native-route`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cubinder_model::container::{self, Container};
use cubinder_model::{Bundle, Plugin};
use cubinder_node::trial::shapes::Sizes;

use crate::cxx;
use crate::headers::{self, GENERATIONS};
use crate::oracle;

/// The last has another compiler's PTX.
pub const MANIFESTS: [&str; 18] = [
    "manifests/circ_pad_plugin.toml",
    "manifests/elemwise_add_plugin.toml",
    "manifests/elemwise_add_plugin_.toml",
    "manifests/cubinder/rms_norm.toml",
    "manifests/cubinder/add_rms_norm.toml",
    "manifests/cubinder/rotary_embedding.toml",
    "manifests/cubinder/multiscale_deformable_attention.toml",
    "tests/data/run/attributes.toml",
    "tests/data/run/circ_pad_plugin.toml",
    "tests/data/run/flip.toml",
    "tests/data/run/pack.toml",
    "tests/data/run/reverse.toml",
    "tests/data/run/split.toml",
    "tests/data/run/tiles.toml",
    "tests/data/run/unpack.toml",
    "tests/data/run/vectors.toml",
    "tests/data/run/weigh.toml",
    "tests/data/ok/native_code.toml",
];

/// Returns valid nodes of plugins with dependent shapes.
#[must_use]
pub fn known(plugin: &Plugin) -> Vec<Sizes> {
    match plugin.name.as_str() {
        "multiscale_deformable_attention" => vec![Sizes {
            shapes: vec![vec![1, 30, 2, 8], vec![2, 2], vec![2], vec![1, 5, 2, 2, 4, 2], vec![1, 5, 2, 2, 4]],
            values: vec![Vec::new(); 5],
            attributes: Vec::new(),
            row: 0,
        }],
        _ => Vec::new(),
    }
}

/// Reads a plugin library's bundle.
pub fn bundle(library: &Path) -> Result<Bundle> {
    let bytes = std::fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    let found = container::scan(&bytes).find_map(|(_, found)| match found.ok()?.container {
        Container::Bundle(bundle) => Some(bundle),
        _ => None,
    });
    found.with_context(|| format!("{} has no bundle", library.display()))
}

/// Builds the program, or reuses a cached build.
pub fn build() -> Result<PathBuf> {
    let generation = GENERATIONS.into_iter().find(|generation| generation.name == "enterprise-11.4");
    let generation = generation.context("the headers of TensorRT Enterprise 11.4 are missing")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("native-route");
    let options = cxx::options(&headers::folder()?, generation);
    let mut sources = cxx::sources(&folder)?;
    sources.extend(cxx::sources(&oracle::folder())?);
    let described = format!("{options:?} {}", cxx::compiler_version().unwrap_or_default());
    let mut key: Vec<&[u8]> = vec![described.as_bytes()];
    key.extend(sources.iter().map(|(_, bytes)| bytes.as_slice()));
    let made = cxx::cached("native-route", &key, |out| {
        let player = folder.join("native_route.cpp");
        let is_shared = |path: &&Path| !oracle::SEPARATE.iter().any(|name| path.ends_with(name));
        let paths = sources.iter().map(|(path, _)| path.as_path()).filter(|path| !path.starts_with(&folder));
        let paths: Vec<&Path> = paths.filter(is_shared).chain([player.as_path()]).collect();
        oracle::build_library(generation, &options, &paths, out)?;
        let mut arguments = options.clone();
        arguments.push(oracle::folder().join("heap.cpp").into());
        arguments.extend(["main.cpp", "-Wl,-rpath,$ORIGIN", "-o"].map(OsString::from));
        arguments.push(out.join("native-route").into());
        arguments.extend(["-L".into(), out.into(), format!("-l:{}", generation.library).into()]);
        cxx::compile(&folder, &arguments).context("cannot build the program that simulates TensorRT")
    })?;
    Ok(made.join("native-route"))
}
