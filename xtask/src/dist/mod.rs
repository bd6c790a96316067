//! `cargo xtask dist`: an archive and a Python package. Equal sources and equal Rust yield equal bytes.

mod archive;
mod builder;
mod notices;
mod tree;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

use crate::artifacts::Artifacts;
use crate::{setup, workspace};

/// The glibc of RHEL 8, Debian 10, Ubuntu 20.04 and NVIDIA's wheels.
pub(crate) const GLIBC: &str = "2.28";

/// 1980-01-01, zip's earliest.
const EPOCH: u32 = 315_532_800;

#[derive(Debug)]
pub(crate) struct Dist {
    pub(crate) archive: PathBuf,
    pub(crate) wheel: PathBuf,
    pub(crate) artifacts: Artifacts,
}

pub(crate) fn run(out: Option<&Path>) -> Result<()> {
    let dist = build(&Checkout::this()?, &folder(out), |line| eprintln!("{line}"))?;
    for file in [&dist.archive, &dist.wheel] {
        let bytes = fs::metadata(file)?.len();
        println!("{} ({bytes} bytes)", file.display());
    }
    Ok(())
}

pub(crate) fn folder(out: Option<&Path>) -> PathBuf {
    out.map_or_else(|| workspace::root().join("build/dist"), Path::to_path_buf)
}

#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) cargo_home: PathBuf,
    pub(crate) temporary: PathBuf,
}

impl Checkout {
    /// Cached build scripts are for one linker: a separate target folder.
    pub(crate) fn this() -> Result<Self> {
        let metadata =
            cargo_metadata::MetadataCommand::new().current_dir(workspace::root()).no_deps().exec()?;
        let cargo_home = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
        Ok(Self {
            root: workspace::root(),
            target: metadata.target_directory.join("dist").into(),
            cargo_home: cargo_home.context("neither `CARGO_HOME` nor `HOME` is set")?,
            temporary: std::env::temp_dir(),
        })
    }
}

pub(crate) fn build(checkout: &Checkout, out: &Path, mut on_line: impl FnMut(&str)) -> Result<Dist> {
    let tools = setup::packaging(GLIBC)?;
    let builder = builder::Builder::new(checkout, &tools)?;
    let artifacts = builder.build(&mut on_line)?;
    fs::create_dir_all(out)?;
    let out = fs::canonicalize(out)?;
    let tree = tree::lay_out(&checkout.root, &artifacts)?;
    let archive = archive::write(&tree, &out)?;
    let wheel = wheel::write(&tree, &tools, &builder, &out, &mut on_line)?;
    Ok(Dist { archive, wheel, artifacts })
}
