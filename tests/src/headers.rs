//! Where NVIDIA's TensorRT headers lie.
//!
//! Owns: fetching the crate that carries them, pinned by checksum in `tests/headers/Cargo.lock`.
//! Never: builds that crate, and never copies a header into this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The crate whose source folder holds the headers.
const CRATE: &str = "trtx-sys";

/// One release of TensorRT that the oracle plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// How tests and folders call it.
    pub name: &'static str,
    /// The folder of its headers: an absolute path, or one below `TensorRT-Headers`.
    pub folder: &'static str,
    /// File name of the oracle's library: what TensorRT's own is called, with `_oracle` behind it.
    pub library: &'static str,
    /// What `getInferLibVersion` answers; `None`: the version in the headers.
    pub version: Option<u32>,
}

/// Every release whose headers are at hand, oldest first in each product.
///
/// TensorRT 10 has no headers there. What a plugin library sees of it is laid out as in TensorRT-RTX 1.4: loggers
/// without a base class. NVIDIA's own headers of it can be tried with [`MORE`].
pub const GENERATIONS: [Generation; 7] = [
    rtx("rtx-1.3", "TRT-RTX-1.3"),
    rtx("rtx-1.4", "TRT-RTX-1.4"),
    rtx("rtx-1.5", "TRT-RTX-1.5"),
    rtx("rtx-1.6", "TRT-RTX-1.6"),
    rtx("rtx-1.7", "TRT-RTX-1.7"),
    Generation {
        name: "enterprise-10.15",
        folder: "TRT-RTX-1.4",
        library: "libnvinfer_oracle.so",
        version: Some(101_501),
    },
    Generation {
        name: "enterprise-11.4",
        folder: "TRT-Enterprise-11.4",
        library: "libnvinfer_oracle.so",
        version: None,
    },
];

/// The variable that names a folder with more headers: a folder for each release, such as `10.8`, with NVIDIA's `include` in it, as in their
/// public repository. No package registry has them.
pub const MORE: &str = "CUBINDER_TEST_HEADERS";

/// [`GENERATIONS`], and those of the folder that [`MORE`] names.
///
/// # Errors
/// When that folder cannot be read, or one in it holds no headers.
pub fn generations() -> Result<Vec<Generation>> {
    let mut all = GENERATIONS.to_vec();
    let Some(folder) = std::env::var_os(MORE).filter(|value| !value.is_empty()).map(PathBuf::from) else {
        return Ok(all);
    };
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut releases: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    releases.sort();
    for release in releases {
        let include = std::path::absolute(release.join("include"))?;
        let header = include.join("NvInferRuntime.h");
        ensure!(header.is_file(), "`{MORE}`: the header `{}` is missing", header.display());
        let name = release.file_name().and_then(|name| name.to_str()).context("a name that is not UTF-8")?;
        let include = include.to_str().context("a path that is not UTF-8")?;
        // A handful of names for the whole process.
        let [name, folder] = [format!("headers-{name}"), include.to_owned()].map(|text| &*text.leak());
        all.push(Generation { name, folder, library: "libnvinfer_oracle.so", version: None });
    }
    Ok(all)
}

/// The release that the product is built for first.
pub const RTX_1_7: Generation = GENERATIONS[4];

const fn rtx(name: &'static str, folder: &'static str) -> Generation {
    Generation { name, folder, library: "libtensorrt_rtx_oracle.so", version: None }
}

/// Fetches the crate if needed and returns its folder `TensorRT-Headers`, which also holds a `cuda_runtime_api.h` of
/// two declarations, enough for these headers.
///
/// # Errors
/// When cargo cannot fetch the crate, or the crate holds no headers.
pub fn folder() -> Result<PathBuf> {
    let manifest = manifest();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The dependencies of the crate are resolved with it, for one platform only. Nothing is compiled.
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .arg("--manifest-path")
        .arg(&manifest)
        .output()
        .context("cannot run `cargo metadata`")?;
    if !output.status.success() {
        bail!(
            "cannot fetch the crate `{CRATE}`, which carries NVIDIA's TensorRT headers\n{}help: with a connection, run \
             `cargo fetch --locked --manifest-path tests/headers/Cargo.toml`",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let package = metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|package| package["name"] == CRATE))
        .with_context(|| format!("`cargo metadata` lists no package `{CRATE}`"))?;
    let sources = package["manifest_path"]
        .as_str()
        .and_then(|path| Path::new(path).parent())
        .with_context(|| format!("`cargo metadata` names no folder for `{CRATE}`"))?;
    let headers = sources.join("TensorRT-Headers");
    for generation in GENERATIONS {
        let header = headers.join(generation.folder).join("NvInferRuntime.h");
        ensure!(header.is_file(), "the header `{}` is missing from the crate `{CRATE}`", header.display());
    }
    Ok(headers)
}

/// The manifest that pins the crate.
#[must_use]
pub fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("headers/Cargo.toml")
}
