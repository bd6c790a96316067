//! Where NVRTC and the CUDA headers are.
//!
//! Owns: the order of places, the pins, the identity of the NVRTC at hand.
//! Never: no download (that is `cargo xtask setup`), no loading of NVRTC, no environment except in
//! [`Overrides::from_env`].

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

/// What the user and the environment say about places. Read once, at the edge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--nvrtc` or `CUBINDER_NVRTC`: NVRTC's file, or a folder that holds it.
    pub nvrtc: Option<PathBuf>,
    /// `CUDA_HOME`: an installed CUDA toolkit.
    pub cuda_home: Option<PathBuf>,
    /// The folder of the Python packages that this program was installed with.
    pub packages: Option<PathBuf>,
    /// `CUBINDER_CACHE`, or `cubinder` in the user's cache folder. Absent where there is no home either.
    pub cache: Option<PathBuf>,
    /// The program whose processes call NVRTC ([`crate::nvrtc::workers`]); without one it is called in this process.
    pub workers: Option<PathBuf>,
}

impl Overrides {
    /// Reads `CUBINDER_NVRTC`, `CUDA_HOME`, `CUBINDER_CACHE`, `XDG_CACHE_HOME` and `HOME`, and looks where this program is. An empty variable counts as
    /// unset, and so does a relative `XDG_CACHE_HOME` (the XDG base directory specification says so) or `HOME`. `nvrtc` is what
    /// the command line says and goes before the environment.
    #[must_use]
    pub fn from_env(nvrtc: Option<PathBuf>) -> Overrides {
        let packages = Installation::of_this_program().python_packages();
        Overrides { packages, ..Overrides::from_variables(nvrtc, &|name| std::env::var_os(name)) }
    }

    /// `cargo xtask setup` has the same rules (`cache_folder` of its `setup` module): it fills the cache that is read here.
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

/// More than any header of CUDA has.
const MOST_OF_A_HEADER: usize = 16 << 20;

/// NVRTC and the folders of headers that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// NVRTC's file: absolute, links followed.
    pub nvrtc: PathBuf,
    /// Folders of CUDA headers, in the order of search.
    pub include: Vec<PathBuf>,
    /// Whether the headers are the pinned packages', whose contents their version tells.
    pub is_pinned: bool,
    /// Where there are no headers: why not, for the author of a kernel that includes one. Others are compiled without.
    pub without_headers: Option<Box<Diagnostic>>,
}

impl Toolkit {
    /// Finds NVRTC, then its headers.
    ///
    /// NVRTC: what `--nvrtc` or `CUBINDER_NVRTC` names, else what `CUDA_HOME` names, else the package in the Python environment that the
    /// program was installed into, else the pinned package in the cache. A place that was named and holds none is an error: the next
    /// place is not tried.
    /// Headers: `CUDA_HOME`, else beside the NVRTC that was named, else the Python environment's, where all of them are there, else the
    /// pinned packages in the cache. Where there are none, kernels that include none of them can be compiled all the same.
    ///
    /// # Errors
    /// What is missing, what it is for, and the commands that help.
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

    /// The release of CUDA that this NVRTC belongs to, without loading it: the name of the built-in headers beside it says so
    /// (`libnvrtc-builtins.so.13.0`). Nothing where there are those of several releases; then only NVRTC itself can tell.
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

    /// The release of CUDA that the headers are of, as `cuda.h` says it (`CUDA_VERSION`, 1000 a major and 10 a minor release; 13.0). Nothing where it is not
    /// there or says none.
    fn release_of_headers(&self) -> Option<(&Path, drivers::Release)> {
        let (folder, text) = self.include.iter().find_map(|folder| {
            let bytes = source::bytes(&folder.join("cuda.h"), MOST_OF_A_HEADER).ok()?;
            Some((folder, String::from_utf8_lossy(&bytes).into_owned()))
        })?;
        let version = text.lines().find_map(|line| line.strip_prefix("#define CUDA_VERSION "))?;
        let version: i32 = version.trim().parse().ok()?;
        Some((folder, (version / 1000, version % 1000 / 10)))
    }

    /// A warning where the headers are of another release than NVRTC: nobody has tried the two together.
    pub fn doubt_of_headers(&self, nvrtc: drivers::Release) -> Option<Diagnostic> {
        let (folder, headers) = self.release_of_headers().filter(|(_, headers)| *headers != nvrtc)?;
        let ((major, minor), (nvrtc_major, nvrtc_minor)) = (headers, nvrtc);
        let (folder, nvrtc) = (folder.display(), self.nvrtc.display());
        Some(OtherHeaders { major, minor, nvrtc_major, nvrtc_minor, folder, nvrtc }.into())
    }

    /// What decides how this NVRTC compiles, without loading it.
    ///
    /// # Errors
    /// Where the library's file cannot be read.
    pub fn nvrtc_identity(&self) -> Result<Digest, Diagnostic> {
        let path = &self.nvrtc;
        identity::of_nvrtc(path).map_err(|error| UnreadableNvrtc { path: path.display(), error }.into())
    }
}

/// What helps where the toolkit is not there. The name on the package index is used only where pip knows this program as its own: there
/// it adds the extra to what is installed.
fn help(overrides: &Overrides) -> String {
    let packages = match overrides.packages {
        Some(_) => {
            "install NVIDIA's packages beside this program with `pip install 'cubinder[cuda13]'`, or name"
        }
        None => {
            "in a checkout, `cargo xtask setup` fetches it; elsewhere install a CUDA toolkit or NVIDIA's `nvidia-cuda-nvrtc` and `nvidia-cuda-runtime` by pip, and name"
        }
    };
    format!("{packages} it with `CUBINDER_NVRTC=<libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`")
}

/// Where an installed CUDA toolkit keeps NVRTC. This list and the next are those of `cargo xtask setup` too (its `existing`
/// module), in the same order.
const HOME_FOLDERS: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];
/// Where NVRTC is looked for in a folder that was named for it.
const NAMED_FOLDERS: [&str; 5] = ["", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib"];

fn locate_nvrtc(overrides: &Overrides) -> Result<PathBuf, Diagnostic> {
    let missing = |found: String| NoNvrtc { found, help: help(overrides) };
    if let Some(named) = &overrides.nvrtc {
        return named_nvrtc(named).ok_or_else(|| {
            let found = if named.exists() { "holds no `libnvrtc.so`" } else { "is not there" };
            let missing = missing(format!("`{}` {found}", named.display()));
            absent(&within(named, &NAMED_FOLDERS), missing)
                .note("it was named by `--nvrtc` or `CUBINDER_NVRTC`")
        });
    }
    if let Some(home) = &overrides.cuda_home {
        check_home(home)?;
        return newest_in_any(home, &HOME_FOLDERS).ok_or_else(|| {
            let missing = missing(format!("`{}` holds no `libnvrtc.so`", home.join("lib64").display()));
            absent(&within(home, &HOME_FOLDERS), missing).note("it was named by `CUDA_HOME`")
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
            .map_err(|_| not_unpacked(&place, &package, missing("NVRTC is not there".to_owned())));
    }
    Err(missing("`toolkit.toml` names no package for NVRTC".to_owned()).into())
}

fn check_home(home: &Path) -> Result<(), Diagnostic> {
    if home.is_dir() {
        return Ok(());
    }
    let error = absent(&[home.to_owned()], NoHome { home: home.display() });
    Err(error.note("where `CUDA_HOME` is set, no other CUDA toolkit is looked for"))
}

/// The error about a pinned package that is not where it belongs.
fn not_unpacked(place: &Path, package: &Package, missing: impl Into<Diagnostic>) -> Diagnostic {
    absent(&[place.to_owned()], missing).note(format!(
        "expected `{}` ({} {})",
        place.display(),
        package.name,
        package.version
    ))
}

/// The error about something that was looked for in these places: that it is missing, unless one of them cannot be inspected for another
/// reason than that it does not exist.
fn absent(places: &[PathBuf], missing: impl Into<Diagnostic>) -> Diagnostic {
    let inspect = |place: &Path| {
        if std::fs::metadata(place)?.is_dir() {
            // Whether it may be entered, and whether it may be listed.
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

/// A folder, and these in it.
fn within(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
    std::iter::once(root.to_owned()).chain(folders.iter().map(|folder| root.join(folder))).collect()
}

/// A file is taken as it is; in a folder the usual places are tried.
fn named_nvrtc(named: &Path) -> Option<PathBuf> {
    if named.is_file() {
        return std::fs::canonicalize(named).ok();
    }
    newest_in_any(named, &NAMED_FOLDERS)
}

/// The newest NVRTC in the first of the subfolders that has one.
fn newest_in_any(root: &Path, folders: &[&str]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| newest_in(&root.join(folder)))
}

/// The `libnvrtc.so*` with the highest version in its name; one without a version counts as lowest, because it is
/// a link to one of the others where there are any.
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

/// The headers of the toolkit that the user names, or that lie beside the NVRTC that the user names.
fn named_headers(overrides: &Overrides, nvrtc: &Path) -> Result<Option<Vec<PathBuf>>, Diagnostic> {
    if let Some(home) = &overrides.cuda_home {
        check_home(home)?;
        let include = home.join("include");
        return headers_in(&include).map(Some).ok_or_else(|| {
            let missing = no_headers(overrides, format!("`{}` holds no `cuda_fp16.h`", include.display()));
            absent(&within(&include, &["cuda_fp16.h"]), missing).note("it was named by `CUDA_HOME`")
        });
    }
    let beside = nvrtc.parent().and_then(Path::parent).map(|root| root.join("include"));
    Ok(overrides.nvrtc.as_ref().and(beside).as_deref().and_then(headers_in))
}

/// The headers among the Python packages that this program was installed with. Those of several packages lie in one folder, as pip
/// installs them; where one is missing they do not count, because they include each other.
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
                let missing = no_headers(overrides, "the CUDA headers are not there".to_owned());
                return Err(not_unpacked(&place, &package, missing));
            }
            include.push(place);
        }
    }
    Ok(include)
}

fn no_headers(overrides: &Overrides, found: String) -> NoHeaders {
    let help = match overrides.packages {
        Some(_) => {
            "install them beside this program with `pip install 'cubinder[cuda13]'`, or name an installed CUDA toolkit with `CUDA_HOME=<CUDA \
             toolkit>`"
        }
        None => {
            "in a checkout, `cargo xtask setup` fetches them; elsewhere name an installed CUDA toolkit with `CUDA_HOME=<CUDA toolkit>`"
        }
    };
    NoHeaders { found, help }
}

/// The include folder and the folder of the C++ headers in it.
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
