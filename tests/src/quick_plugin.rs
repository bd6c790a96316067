//! Builds `tests/quick-plugin`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const EXAMPLE: &str = "quick-plugin";

/// Builds with the cargo that runs the tests.
pub fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--message-format",
            "json-render-diagnostics",
            "--example",
            EXAMPLE,
            "--manifest-path",
        ])
        .arg(&manifest)
        .output()
        .context("cannot run `cargo build`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot build the example `{EXAMPLE}`\n{errors}");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == EXAMPLE)
        .find_map(|message| message["filenames"][0].as_str().map(PathBuf::from))
        .with_context(|| format!("`cargo build` does not print a file of the example `{EXAMPLE}`"))
}
