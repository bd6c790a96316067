use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use rayon::prelude::*;

use super::pins::{Package, Pins};
use super::python::{self, Python};
use super::store::Store;
use crate::process;

/// pip failed; its index may be unreachable.
#[derive(Debug)]
pub(crate) struct NotFetched(pub(crate) String);

impl std::fmt::Display for NotFetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot fetch `{}`; check that `python3 -m pip` runs and reaches its package index (`python3 -m pip \
             config list`), and that the disk of the cache has space (`CUBINDER_CACHE` sets another cache), then run the command again",
            self.0
        )
    }
}

pub(crate) struct Packages {
    pub(crate) cache: PathBuf,
    pub(crate) python: Python,
    pub(crate) store: Store,
    pins: Pins,
}

impl Packages {
    pub(crate) fn open() -> Result<Self> {
        super::supported(std::env::consts::OS, std::env::consts::ARCH)?;
        let pins = Pins::load()?;
        let cache = super::cache()?;
        let python = python::find(super::variable("CUBINDER_PYTHON"), &pins.python, &python::probe)?;
        Ok(Self { store: Store::new(cache.join("toolkit")), cache, python, pins })
    }

    pub(crate) fn fetch_all(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        names.par_iter().map(|name| self.fetch(name)).collect()
    }

    pub(crate) fn fetch(&self, name: &str) -> Result<PathBuf> {
        let package = self.pins.package(name)?;
        let is_environment = package.version.is_none();
        let (python, supported) = (&self.python, &self.pins.environment_python);
        ensure!(
            !is_environment || supported.contains(&python.version),
            "`{name}` needs Python {}, but `{}` is {}\n  help: set `CUBINDER_PYTHON` to another one",
            supported.join(", "),
            python.path.display(),
            python.version
        );
        let requirements = package.requirements()?;
        let recipe = if is_environment {
            format!("{requirements}{STAND_INS}")
        } else {
            format!("pip install {requirements}skip {:?}\nlinks {:?}\n", package.skip, package.links)
        };
        self.store.ensure(&package.folder(&python.tag()), &recipe, |content, scratch| {
            eprintln!("fetching {name}: {} ({:.1} MB)", package.purpose, megabytes(package.bytes));
            let start = Instant::now();
            if is_environment {
                self.fill_environment(name, &requirements, content, scratch)?;
            } else {
                self.install(name, &requirements, content, scratch)?;
                trim(package, content).with_context(|| format!("in `xtask/pins.toml`, package `{name}`"))?;
            }
            eprintln!("fetched {name} ({:.1} s)", start.elapsed().as_secs_f64());
            Ok(())
        })
    }

    fn fill_environment(&self, name: &str, requirements: &str, content: &Path, scratch: &Path) -> Result<()> {
        let mut command = Command::new(&self.python.path);
        // Debian's Python cannot add pip; that of `python` installs here.
        process::capture(command.args(["-m", "venv", "--without-pip"]).arg(content).current_dir(scratch))?;
        let packages = self.site_packages(content);
        self.install(name, requirements, &packages, scratch)?;
        if name == "pytorch" {
            let mut command = Command::new(&self.python.path);
            command.args(["-I", "-c", STAND_INS]).arg(&packages).arg(content.join("stand-ins"));
            process::capture(&mut command)
                .context("building stand-ins for NVIDIA's libraries needs g++ and readelf")?;
        }
        Ok(())
    }

    pub(crate) fn site_packages(&self, environment: &Path) -> PathBuf {
        environment.join(format!("lib/python{}/site-packages", self.python.version))
    }

    fn install(&self, name: &str, requirements: &str, target: &Path, scratch: &Path) -> Result<()> {
        let list = scratch.join("requirements.txt");
        fs::write(&list, requirements)?;
        let mut command = Command::new(&self.python.path);
        command
            .args(["-m", "pip", "install", "--no-compile", "--target"])
            .arg(target)
            .args(["--no-deps", "--only-binary=:all:", "--require-hashes"])
            // pip's cache would double the space.
            .args(["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"])
            .arg("-r")
            .arg(&list)
            .env("TMPDIR", scratch)
            // Some constraints contradict `--target`.
            .env_remove("PIP_CONSTRAINT")
            .env_remove("PIP_PREFIX")
            .env_remove("PIP_ROOT")
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            .env("PIP_USER", "0")
            .current_dir(scratch);
        process::capture(&mut command).map(drop).context(NotFetched(name.to_owned()))
    }
}

/// Linked by PyTorch but not called by tests.
const STAND_INS: &str = include_str!("../../python/stand_in_libraries.py");

fn trim(package: &Package, content: &Path) -> Result<()> {
    let folder = glob::Pattern::escape(content.to_str().context("the cache has no UTF-8 path")?);
    for pattern in &package.skip {
        for path in glob::glob(&format!("{folder}/{pattern}"))? {
            let path = path?;
            if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
        }
    }
    for (link, target) in &package.links {
        symlink(target, content.join(link)).with_context(|| format!("cannot create the link `{link}`"))?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // shown with one digit
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(crate) fn environment(name: &str) -> Result<PathBuf> {
    Packages::open()?.fetch(name)
}

pub(crate) fn site_packages(name: &str) -> Result<PathBuf> {
    let packages = Packages::open()?;
    Ok(packages.site_packages(&packages.fetch(name)?))
}

pub(crate) fn nvcc() -> Result<PathBuf> {
    let nvcc = site_packages("compilers")?.join("nvidia/cu13/bin/nvcc");
    ensure!(nvcc.is_file(), "{} is missing; `cargo xtask setup --tests` fetches it", nvcc.display());
    Ok(nvcc)
}

pub(crate) fn lean_runtime(release: &str) -> Result<PathBuf> {
    let major = release.split('.').next().unwrap_or_default();
    let packages = site_packages(&format!("tensorrt-lean-{release}"))?;
    Ok(packages.join(format!("tensorrt_lean_libs/libnvinfer_lean.so.{major}")))
}

pub(crate) fn buildbox() -> Result<PathBuf> {
    Ok(environment("buildstream")?.join("buildstream/subprojects/buildbox"))
}

pub(crate) fn test_environment() -> Result<Vec<(&'static str, OsString)>> {
    Ok(vec![
        ("CUBINDER_TEST_BUILDBOX", buildbox()?.into()),
        ("CUBINDER_TEST_COMPILERS", environment("compilers")?.into()),
        ("CUBINDER_TEST_PYTORCH", environment("pytorch")?.into()),
        ("CUBINDER_TEST_TENSORRT", lean_runtime("11.4")?.into()),
    ])
}
