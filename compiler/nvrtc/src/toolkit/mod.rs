//! Locates and identifies NVRTC and the CUDA headers. Never downloads (`cargo xtask setup` does), loads NVRTC, or
//! reads the environment except in [`Overrides::from_env`].

pub mod drivers;
mod errors;
mod identity;
mod pins;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use pins::{Package, Role, packages};

use crate::diagnostic::Diagnostic;
use crate::installation::Installation;
use crate::source;
use cubinder_model::Digest;
use errors::{Inaccessible, NoCache, NoHeaders, NoHome, NoNvrtc, OtherHeaders, UnreadableNvrtc};

/// Paths from the command line and the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--nvrtc` or `CUBINDER_NVRTC`: NVRTC's file or folder.
    pub nvrtc: Option<PathBuf>,
    /// `CUDA_HOME`: an installed CUDA toolkit.
    pub cuda_home: Option<PathBuf>,
    /// Python packages of this installation.
    pub packages: Option<PathBuf>,
    /// `CUBINDER_CACHE`, or `cubinder` in the user's cache folder, if any.
    pub cache: Option<PathBuf>,
    /// Program of worker processes ([`crate::nvrtc::workers`]); `None`: this process.
    pub workers: Option<PathBuf>,
}

impl Overrides {
    /// Reads `CUBINDER_NVRTC`, `CUDA_HOME`, `CUBINDER_CACHE`, `XDG_CACHE_HOME`, `HOME` and the program's path. Ignores
    /// empty variables, and a relative `XDG_CACHE_HOME` (XDG base directory specification) or `HOME`. The command
    /// line's `nvrtc` takes precedence.
    #[must_use]
    pub fn from_env(nvrtc: Option<PathBuf>) -> Overrides {
        let packages = Installation::of_this_program().python_packages();
        Overrides { packages, ..Overrides::from_variables(nvrtc, &|name| std::env::var_os(name)) }
    }

    /// Keep equal to `cache_folder` of `cargo xtask setup`, which fills this cache.
    fn from_variables(nvrtc: Option<PathBuf>, variables: &dyn Fn(&str) -> Option<OsString>) -> Overrides {
        let var = |name: &str| variables(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| var(name).filter(|folder| folder.is_absolute());
        let cache = var("CUBINDER_CACHE")
            .or_else(|| absolute("XDG_CACHE_HOME").map(|folder| folder.join("cubinder")))
            .or_else(|| absolute("HOME").map(|folder| folder.join(".cache/cubinder")));
        let nvrtc = nvrtc.or_else(|| var("CUBINDER_NVRTC"));
        Overrides { nvrtc, cuda_home: var("CUDA_HOME"), packages: None, cache, workers: None }
    }
}

/// In bytes, above any CUDA header.
const MOST_OF_A_HEADER: usize = 16 << 20;

/// NVRTC and its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// NVRTC's absolute path with links resolved.
    pub nvrtc: PathBuf,
    /// CUDA include folders in search order.
    pub include: Vec<PathBuf>,
    /// Whether the headers are pinned, so that their version identifies them.
    pub is_pinned: bool,
    /// Why headers are missing; kernels without CUDA headers still compile.
    pub without_headers: Option<Box<Diagnostic>>,
}

impl Toolkit {
    /// Finds NVRTC and its headers. Errors state what is missing, its purpose, and commands that help.
    ///
    /// NVRTC: `--nvrtc` or `CUBINDER_NVRTC`, `CUDA_HOME`, this installation's Python environment, the cache's pinned
    /// package. A named path without NVRTC is an error. Headers, which some kernels need: `CUDA_HOME`, beside a
    /// named NVRTC, the Python environment if complete, the cache.
    pub fn locate(overrides: &Overrides) -> Result<Toolkit, Diagnostic> {
        let nvrtc = locate_nvrtc(overrides)?;
        let installed = match named_headers(overrides, &nvrtc)? {
            None => headers_of_packages(overrides)?,
            named => named,
        };
        let is_pinned = installed.is_none();
        let (include, why) = match installed.map_or_else(|| pinned_headers(overrides), Ok) {
            Ok(include) => (include, None),
            Err(why) => (Vec::new(), Some(Box::new(why))),
        };
        Ok(Toolkit { nvrtc, include, is_pinned: is_pinned && why.is_none(), without_headers: why })
    }

    /// Returns NVRTC's release from the name of its built-in headers (`libnvrtc-builtins.so.13.0`), unless ambiguous.
    #[must_use]
    pub fn release(&self) -> Option<drivers::Release> {
        let entries = std::fs::read_dir(self.nvrtc.parent()?).ok()?;
        let release = |name: &str| {
            let (major, minor) = name.strip_prefix("libnvrtc-builtins.so.")?.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut found: Vec<drivers::Release> = names.filter_map(|name| release(&name)).collect();
        found.dedup();
        match found.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Returns the headers' folder and release: `CUDA_VERSION` of `cuda.h` (1000 * major + 10 * minor; 13.0).
    #[must_use]
    pub fn release_of_headers(&self) -> Option<(&Path, drivers::Release)> {
        let (folder, text) = self.include.iter().find_map(|folder| {
            let bytes = source::bytes(&folder.join("cuda.h"), MOST_OF_A_HEADER).ok()?;
            Some((folder, String::from_utf8_lossy(&bytes).into_owned()))
        })?;
        let version = text.lines().find_map(|line| line.strip_prefix("#define CUDA_VERSION "))?;
        let version: i32 = version.trim().parse().ok()?;
        Some((folder, (version / 1000, version % 1000 / 10)))
    }

    /// Warns about headers of another release than NVRTC (untested).
    pub fn doubt_of_headers(&self, nvrtc: drivers::Release) -> Option<Diagnostic> {
        let (folder, headers) = self.release_of_headers().filter(|(_, headers)| *headers != nvrtc)?;
        let ((major, minor), (nvrtc_major, nvrtc_minor)) = (headers, nvrtc);
        let (folder, nvrtc) = (folder.display(), self.nvrtc.display());
        Some(OtherHeaders { major, minor, nvrtc_major, nvrtc_minor, folder, nvrtc }.into())
    }

    /// Returns NVRTC's identity without loading it.
    pub fn nvrtc_identity(&self) -> Result<Digest, Diagnostic> {
        let path = &self.nvrtc;
        identity::of_nvrtc(path).map_err(|error| UnreadableNvrtc { path: path.display(), error }.into())
    }

    /// Returns NVRTC and its built-in headers.
    pub fn nvrtc_files(&self) -> std::io::Result<Vec<PathBuf>> {
        identity::files(&self.nvrtc)
    }
}

/// Suggests NVIDIA's packages instead of the extra `cuda13`: PyPI's `cubinder` is unrelated.
fn help(overrides: &Overrides) -> String {
    let pip = pip_install();
    let packages = match overrides.packages {
        Some(_) => format!("install NVIDIA's packages beside this program with `{pip}`, or"),
        None => format!(
            "in a checkout, run `cargo xtask setup`; otherwise install a CUDA toolkit, or NVIDIA's packages with `{pip}`, and"
        ),
    };
    format!(
        "{packages} specify it with `CUBINDER_NVRTC=<libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`"
    )
}

fn pip_install() -> String {
    let packages = packages().unwrap_or_default();
    let pinned = packages.iter().map(|package| format!(" {}=={}", package.name, package.version));
    format!("pip install{}", pinned.collect::<String>())
}

/// Keep this list and the next equal to `docs/install.md`.
const HOME_FOLDERS: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];
const NAMED_FOLDERS: [&str; 5] = ["", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib"];

fn locate_nvrtc(overrides: &Overrides) -> Result<PathBuf, Diagnostic> {
    let missing = |found: String| NoNvrtc { found, help: help(overrides) };
    if let Some(named) = &overrides.nvrtc {
        return named_nvrtc(named).ok_or_else(|| {
            let found = if named.exists() { "contains no `libnvrtc.so`" } else { "does not exist" };
            let missing = NoNvrtc {
                found: format!("`{}` {found}", named.display()),
                help: "correct the path, or unset it to search the default locations, which docs/install.md lists".to_owned(),
            };
            absent(&within(named, &NAMED_FOLDERS), missing).note("specified by `--nvrtc` or `CUBINDER_NVRTC`")
        });
    }
    if let Some(home) = &overrides.cuda_home {
        check_home(home)?;
        return newest_in_any(home, &HOME_FOLDERS).ok_or_else(|| {
            let missing = missing(format!("`{}` contains no `libnvrtc.so`", home.join("lib64").display()));
            absent(&within(home, &HOME_FOLDERS), missing).note("specified by `CUDA_HOME`")
        });
    }
    for package in packages()?.into_iter().filter(|package| package.role == Role::Nvrtc) {
        let Some(library) = &package.library else { continue };
        let installed = overrides.packages.as_ref().map(|folder| folder.join(library));
        if let Some(installed) = installed.and_then(|place| std::fs::canonicalize(place).ok()) {
            return Ok(installed);
        }
        let place = package_folder(overrides, &package)?.join(library);
        return std::fs::canonicalize(&place)
            .map_err(|_| not_unpacked(overrides, &place, &package, missing("cannot find NVRTC".to_owned())));
    }
    Err(missing("`toolkit.toml` has no package for NVRTC".to_owned()).into())
}

fn check_home(home: &Path) -> Result<(), Diagnostic> {
    if home.is_dir() {
        return Ok(());
    }
    let error = absent(&[home.to_owned()], NoHome { home: home.display() });
    Err(error.note("if `CUDA_HOME` is set, no other CUDA toolkit is searched"))
}

/// Names the place in the cache, which only `cargo xtask setup` fills.
fn not_unpacked(
    overrides: &Overrides,
    place: &Path,
    package: &Package,
    missing: impl Into<Diagnostic>,
) -> Diagnostic {
    let error = absent(&[place.to_owned()], missing);
    let note = format!("expected `{}` ({} {})", place.display(), package.name, package.version);
    if overrides.packages.is_some() { error } else { error.note(note) }
}

/// Reports why a path cannot be inspected, else `missing`.
fn absent(places: &[PathBuf], missing: impl Into<Diagnostic>) -> Diagnostic {
    let inspect = |place: &Path| {
        if std::fs::metadata(place)?.is_dir() {
            // Tests permission to enter and list.
            std::fs::metadata(place.join("."))?;
            std::fs::read_dir(place)?;
        }
        Ok(())
    };
    let inaccessible = places.iter().find_map(|place| {
        let error: std::io::Error = inspect(place).err()?;
        let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        (!is_absent).then(|| Inaccessible { path: place.display(), error }.into())
    });
    inaccessible.unwrap_or_else(|| missing.into())
}

fn within(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
    std::iter::once(root.to_owned()).chain(folders.iter().map(|folder| root.join(folder))).collect()
}

fn named_nvrtc(named: &Path) -> Option<PathBuf> {
    if named.is_file() {
        return std::fs::canonicalize(named).ok();
    }
    newest_in_any(named, &NAMED_FOLDERS)
}

fn newest_in_any(root: &Path, folders: &[&str]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| newest_in(&root.join(folder)))
}

/// No version, usually a link, is lowest.
fn newest_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let versions = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let rest = path.file_name()?.to_str()?.strip_prefix("libnvrtc.so")?;
        let version: Option<Vec<u32>> = match rest.strip_prefix('.') {
            Some(version) => version.split('.').map(|part| part.parse().ok()).collect(),
            None => rest.is_empty().then(Vec::new),
        };
        Some((version?, path))
    });
    let (_, newest) = versions.filter(|(_, path)| path.is_file()).max()?;
    std::fs::canonicalize(newest).ok()
}

fn named_headers(overrides: &Overrides, nvrtc: &Path) -> Result<Option<Vec<PathBuf>>, Diagnostic> {
    if let Some(home) = &overrides.cuda_home {
        check_home(home)?;
        let include = home.join("include");
        return headers_in(&include).map(Some).ok_or_else(|| {
            let missing = no_headers(overrides, format!("`{}` contains no `cuda_fp16.h`", include.display()));
            absent(&within(&include, &["cuda_fp16.h"]), missing).note("specified by `CUDA_HOME`")
        });
    }
    let beside = nvrtc.parent().and_then(Path::parent).map(|root| root.join("include"));
    Ok(overrides.nvrtc.as_ref().and(beside).as_deref().and_then(headers_in))
}

/// pip installs all headers into one folder. Ignores incomplete sets, as they include each other.
fn headers_of_packages(overrides: &Overrides) -> Result<Option<Vec<PathBuf>>, Diagnostic> {
    let Some(folder) = &overrides.packages else { return Ok(None) };
    let mut include: Vec<PathBuf> = Vec::new();
    for package in packages()?.into_iter().filter(|package| package.role == Role::Headers) {
        let places: Vec<PathBuf> = package.include.iter().map(|part| folder.join(part)).collect();
        let has_marker = |marker: &PathBuf| folder.join(marker).is_file();
        if !package.marker.as_ref().is_some_and(has_marker) {
            return Ok(None);
        }
        include.extend(places.into_iter().filter(|place| !include.contains(place)).collect::<Vec<_>>());
    }
    Ok(Some(include))
}

fn pinned_headers(overrides: &Overrides) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut include = Vec::new();
    for package in packages()?.into_iter().filter(|package| package.role == Role::Headers) {
        let folder = package_folder(overrides, &package)?;
        for part in &package.include {
            let place = folder.join(part);
            if !place.is_dir() {
                let missing = no_headers(overrides, "cannot find the CUDA headers".to_owned());
                return Err(not_unpacked(overrides, &place, &package, missing));
            }
            include.push(place);
        }
    }
    Ok(include)
}

fn no_headers(overrides: &Overrides, found: String) -> NoHeaders {
    let help = match overrides.packages {
        Some(_) => format!("install them beside this program with `{}`, or", pip_install()),
        None => "in a checkout, run `cargo xtask setup`; otherwise".to_owned(),
    };
    let help = format!("{help} specify an installed CUDA toolkit with `CUDA_HOME=<CUDA toolkit>`");
    NoHeaders { found, help }
}

fn headers_in(include: &Path) -> Option<Vec<PathBuf>> {
    if !include.join("cuda_fp16.h").is_file() {
        return None;
    }
    let mut folders = vec![include.to_owned()];
    folders.extend(Some(include.join("cccl")).filter(|folder| folder.is_dir()));
    Some(folders)
}

fn package_folder(overrides: &Overrides, package: &Package) -> Result<PathBuf, Diagnostic> {
    let Some(cache) = &overrides.cache else { return Err(NoCache { help: help(overrides) }.into()) };
    Ok(cache.join("toolkit").join(package.folder()))
}

#[cfg(test)]
mod tests;
