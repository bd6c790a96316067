//! Cubinder from `CUBINDER_TEST_ARCHIVE` or `CUBINDER_TEST_WHEEL`, offline: NVIDIA's packages come from `cargo xtask
//! setup`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use cubinder_nvrtc::toolkit::{Package, packages};
use tempfile::TempDir;

/// A program's output.
#[derive(Debug)]
pub struct Said {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// An installation with an empty home.
#[derive(Debug)]
pub struct Installed {
    folder: TempDir,
    prefix: PathBuf,
}

impl Installed {
    /// Unpacks the archive, if named.
    pub fn archive() -> Result<Option<Installed>> {
        let Some(archive) = std::env::var_os("CUBINDER_TEST_ARCHIVE") else { return Ok(None) };
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("tar");
        capture(command.arg("-xzf").arg(&archive).current_dir(folder.path()))?;
        let mut entries = std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.path());
        let (Some(prefix), None) = (entries.next(), entries.next()) else {
            bail!("`{}` does not contain exactly one folder", Path::new(&archive).display());
        };
        Installed::with_home(folder, prefix).map(Some)
    }

    /// Creates a Python environment with the wheel, optionally its extra `cuda13`.
    pub fn wheel(with_cuda: bool) -> Result<Option<Installed>> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (Some(wheel), Some(python)) = (variable("CUBINDER_TEST_WHEEL"), variable("CUBINDER_TEST_PYTHON"))
        else {
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let prefix = folder.path().join("a venv");
        // Debian packages `ensurepip` separately.
        capture(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&prefix))?;
        let wheels = folder.path().join("wheels");
        std::fs::create_dir(&wheels)?;
        let name = wheel.file_name().context("a wheel has a name")?;
        std::fs::copy(&wheel, wheels.join(name))?;
        if with_cuda {
            packages()
                .map_err(|error| anyhow::anyhow!("{}", error.message))?
                .iter()
                .try_for_each(|package| pack(&python, package, &wheels))?;
        }
        let extra = if with_cuda { "cubinder[cuda13]" } else { "cubinder" };
        let pip = capture(
            Command::new(&python)
                .args(["-c", "import os, pip; print(os.path.dirname(os.path.dirname(pip.__file__)))"]),
        )?;
        let mut command = Command::new(prefix.join("bin/python"));
        command.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--disable-pip-version-check",
            "--find-links",
        ]);
        command
            .arg(&wheels)
            .arg(extra)
            .env("PYTHONPATH", pip.stdout.trim())
            .env("PIP_CONFIG_FILE", "/dev/null");
        capture(&mut command)?;
        Installed::with_home(folder, prefix).map(Some)
    }

    /// Creates the environment with links to NVIDIA's packages, three times as fast as [`Installed::wheel`].
    pub fn linked_wheel() -> Result<Option<Installed>> {
        let Some(installed) = Installed::wheel(false)? else { return Ok(None) };
        let site = installed.packages()?;
        for package in packages().map_err(|error| anyhow::anyhow!("{}", error.message))? {
            link(&unpacked(&package)?, &site)?;
        }
        Ok(Some(installed))
    }

    fn with_home(folder: TempDir, prefix: PathBuf) -> Result<Installed> {
        std::fs::create_dir(folder.path().join("empty home"))?;
        Ok(Installed { folder, prefix })
    }

    /// Returns the folder with `bin` and `lib`.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the folder of the wheel's Python modules.
    pub fn packages(&self) -> Result<PathBuf> {
        let mut versions = std::fs::read_dir(self.prefix.join("lib"))?.flatten();
        let packages = versions.find_map(|version| {
            let packages = version.path().join("site-packages");
            packages.join("cubinder").is_dir().then_some(packages)
        });
        packages.context("the environment has no package `cubinder`")
    }

    /// Creates a folder deleted with the installation.
    pub fn work(&self, name: &str) -> Result<PathBuf> {
        let work = self.folder.path().join(name);
        std::fs::create_dir_all(&work)?;
        Ok(work)
    }

    /// Returns a command with a fresh environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let bin = self.prefix.join("bin");
        let own = bin.join(program.as_ref());
        let mut command = if own.is_file() { Command::new(own) } else { Command::new(program) };
        command.env_clear().env("HOME", self.folder.path().join("empty home")).env("LANG", "C.UTF-8");
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        command
    }
}

fn pack(python: &Path, package: &Package, wheels: &Path) -> Result<()> {
    const SCRIPT: &str = "\
import pathlib, sys, zipfile
folder, wheel = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(wheel, 'w', zipfile.ZIP_STORED) as archive:
    for path in sorted(folder.rglob('*')):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.startswith('.'):
            continue
        if name.endswith('.dist-info/RECORD'):
            lines = [line for line in path.read_text().splitlines() if (folder / line.rsplit(',', 2)[0]).is_file()]
            archive.writestr(name, '\\n'.join(lines) + '\\n')
        else:
            archive.write(path, name)
";
    let folder = unpacked(package)?;
    let wheel = format!("{}-{}-py3-none-any.whl", package.name.replace('-', "_"), package.version);
    capture(Command::new(python).args(["-c", SCRIPT]).arg(folder).arg(wheels.join(wheel))).map(drop)
}

/// Unpacked by `cargo xtask setup`.
fn unpacked(package: &Package) -> Result<PathBuf> {
    let cache = std::env::var_os("CUBINDER_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache/cubinder")));
    let folder = cache.context("no cache folder")?.join("toolkit").join(package.folder());
    ensure!(folder.is_dir(), "`{}` does not exist; run `cargo xtask setup`", folder.display());
    Ok(folder)
}

fn link(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)?.flatten() {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            std::fs::create_dir_all(&place)?;
            link(&path, &place)?;
        } else if !place.exists() {
            std::os::unix::fs::symlink(&path, &place)?;
        }
    }
    Ok(())
}

/// Runs a program that must succeed; errors have its output.
pub fn capture(command: &mut Command) -> Result<Said> {
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot run `{}`", command.get_program().display()))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let said = Said { stdout: text(stdout), stderr: text(stderr) };
    ensure!(status.success(), "`{command:?}` failed ({status})\n{}\n{}", said.stdout, said.stderr);
    Ok(said)
}
