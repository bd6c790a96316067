//! Locates NVIDIA's TensorRT headers in a crate pinned by `tests/headers/Cargo.lock`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

const CRATE: &str = "trtx-sys";

/// A simulated TensorRT release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Name in tests and folders.
    pub name: &'static str,
    /// Folder of the headers: absolute, or relative to `TensorRT-Headers`.
    pub folder: &'static str,
    /// TensorRT's file name with the suffix `_oracle`.
    pub library: &'static str,
    /// Result of `getInferLibVersion`; `None`: the headers'.
    pub version: Option<u32>,
}

/// Releases with headers, oldest first per product. TensorRT 10 has none; to plugin libraries it looks like
/// TensorRT-RTX 1.4 (loggers without a base class).
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

/// Variable: a folder of further releases (`10.8`), each with NVIDIA's `include`.
pub const MORE: &str = "CUBINDER_TEST_HEADERS";

/// Returns [`GENERATIONS`] and those in [`MORE`].
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
        let [name, folder] = [format!("headers-{name}"), include.to_owned()].map(|text| &*text.leak());
        all.push(Generation { name, folder, library: "libnvinfer_oracle.so", version: None });
    }
    Ok(all)
}

/// Primary release.
pub const RTX_1_7: Generation = GENERATIONS[4];

const fn rtx(name: &'static str, folder: &'static str) -> Generation {
    Generation { name, folder, library: "libtensorrt_rtx_oracle.so", version: None }
}

/// Fetches the crate if needed; returns its `TensorRT-Headers`, with a minimal `cuda_runtime_api.h`.
pub fn folder() -> Result<PathBuf> {
    let manifest = manifest();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
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
            "cannot fetch the crate `{CRATE}`, which contains NVIDIA's TensorRT headers\n{}help: run `cargo fetch \
             --locked --manifest-path tests/headers/Cargo.toml`",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` did not print JSON")?;
    let package = metadata["packages"]
        .as_array()
        .and_then(|packages| packages.iter().find(|package| package["name"] == CRATE))
        .with_context(|| format!("`cargo metadata` does not list the package `{CRATE}`"))?;
    let sources = package["manifest_path"]
        .as_str()
        .and_then(|path| Path::new(path).parent())
        .with_context(|| format!("`cargo metadata` does not print a folder for `{CRATE}`"))?;
    let headers = sources.join("TensorRT-Headers");
    for generation in GENERATIONS {
        let header = headers.join(generation.folder).join("NvInferRuntime.h");
        ensure!(header.is_file(), "the header `{}` is missing from the crate `{CRATE}`", header.display());
    }
    Ok(headers)
}

/// Returns the pinning manifest.
#[must_use]
pub fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("headers/Cargo.toml")
}
