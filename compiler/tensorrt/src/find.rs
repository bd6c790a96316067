//! Finds the installed releases: programs in `TENSORRT_RTX_HOME` and `TENSORRT_HOME`, Python bindings, programs on
//! `PATH`.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cubinder_source::diagnostic::Diagnostic;

use crate::errors::{HomeWithoutProgram, NotATensorRt, NothingOfKind};
use crate::installation::{Installation, Kind, Route};
use crate::log::Modules;
use crate::python::Client;
use crate::version::Version;

/// The value of `--with`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Any installation of a product.
    Kind(Kind),
    /// A program, Python interpreter, unpacked release, or Python environment.
    Path(PathBuf),
}

impl From<OsString> for Choice {
    fn from(text: OsString) -> Choice {
        let kind = Kind::ALL.into_iter().find(|kind| text == kind.key());
        kind.map_or_else(|| Choice::Path(text.into()), Choice::Kind)
    }
}

/// Where to search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// `TENSORRT_RTX_HOME` and `TENSORRT_HOME`.
    pub homes: Vec<(Kind, PathBuf)>,
    /// Python interpreters, best first.
    pub pythons: Vec<PathBuf>,
    /// Folders of `PATH`.
    pub path: Vec<PathBuf>,
}

impl Search {
    /// Reads the environment. `beside` is this program's folder, which may be in a Python environment.
    #[must_use]
    pub fn from_env(beside: Option<&Path>) -> Search {
        Search::from_variables(beside, &|name| std::env::var_os(name))
    }

    fn from_variables(beside: Option<&Path>, variables: &dyn Fn(&str) -> Option<OsString>) -> Search {
        let variable = |name: &str| variables(name).filter(|value| !value.is_empty());
        let home = |kind: Kind| Some((kind, PathBuf::from(variable(kind.home())?)));
        let path: Vec<PathBuf> =
            variable("PATH").map_or_else(Vec::new, |path| std::env::split_paths(&path).collect());
        let pythons = match variable("CUBINDER_PYTHON") {
            Some(named) => vec![on_path(&path, Path::new(&named)).unwrap_or_else(|| named.into())],
            None => {
                let active = variable("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin"));
                let folders = active.into_iter().chain(beside.map(Path::to_owned));
                let mut pythons: Vec<PathBuf> = folders.map(|folder| folder.join("python3")).collect();
                pythons.retain(|python| is_program(python));
                pythons.extend(on_path(&path, Path::new("python3")));
                distinct(pythons)
            }
        };
        Search { homes: Kind::ALL.into_iter().filter_map(home).collect(), pythons, path }
    }

    /// Finds a choice's installations, in order of use; fails without any, or for an unusable path.
    pub fn find(
        &self,
        choice: Option<&Choice>,
        client: &Client,
    ) -> Result<Vec<Installation>, Vec<Diagnostic>> {
        let (found, searched) = match choice {
            Some(Choice::Path(path)) => return Ok(self.at(path, client)?),
            Some(Choice::Kind(kind)) => self.of_kinds(&[*kind], client)?,
            None => self.of_kinds(&Kind::ALL, client)?,
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let (kind, install) = match choice {
            Some(Choice::Kind(kind)) => (kind.name(), kind.install()),
            _ => ("TensorRT or TensorRT-RTX", Kind::Rtx.install()),
        };
        Err(NothingOfKind { kind, searched, install }.into())
    }

    /// Finds products' installations, in order of use, and what was searched in vain. Fails for a home without its
    /// program, or without any if Python cannot run.
    pub fn of_kinds(
        &self,
        kinds: &[Kind],
        client: &Client,
    ) -> Result<(Vec<Installation>, Vec<String>), Vec<Diagnostic>> {
        let (mut found, mut searched, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        for (kind, home) in self.homes.iter().filter(|(kind, _)| kinds.contains(kind)) {
            let program = program_in(home, *kind);
            let missing = || HomeWithoutProgram {
                variable: kind.home(),
                home: home.display().to_string(),
                program: kind.program(),
            };
            found.push(of_program(program.ok_or_else(|| Diagnostic::from(missing()))?, *kind));
        }
        for python in &self.pythons {
            match client.find(python) {
                Ok(modules) => {
                    searched.push(without_modules(python, &modules, kinds));
                    found.extend(kinds.iter().filter_map(|kind| of_python(python, &modules, *kind)));
                }
                Err(error) => broken.push(error),
            }
        }
        if self.pythons.is_empty() {
            searched.push("no `python3` on `PATH`, and `CUBINDER_PYTHON` is not set".to_owned());
        }
        for kind in kinds {
            let program = on_path(&self.path, Path::new(kind.program()));
            searched.extend(
                program
                    .is_none()
                    .then(|| format!("no `{}` on `PATH`, and `{}` is not set", kind.program(), kind.home())),
            );
            found.extend(program.map(|program| of_program(program, *kind)));
        }
        match found.is_empty() && !broken.is_empty() {
            true => Err(broken),
            false => Ok((distinct(found), searched)),
        }
    }

    fn at(&self, path: &Path, client: &Client) -> Result<Vec<Installation>, Diagnostic> {
        let unusable = |why: String| Diagnostic::from(NotATensorRt { path: path.display().to_string(), why });
        if path.is_dir() {
            let programs =
                Kind::ALL.into_iter().filter_map(|kind| Some(of_program(program_in(path, kind)?, kind)));
            let programs: Vec<Installation> = programs.collect();
            let python = path.join("bin/python3");
            return match programs.is_empty() {
                false => Ok(programs),
                true if is_program(&python) => self.with_python(&python, client),
                true => Err(unusable(
                    "it contains neither `bin/tensorrt_rtx`, `bin/trtexec` nor `bin/python3`".to_owned(),
                )),
            };
        }
        let program = on_path(&self.path, path).ok_or_else(|| {
            unusable(if path.exists() {
                "it is not an executable file".to_owned()
            } else {
                "it does not exist".to_owned()
            })
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("python") {
            return self.with_python(&program, client);
        }
        let kind = if name.contains("rtx") { Kind::Rtx } else { Kind::Full };
        Ok(vec![of_program(program, kind)])
    }

    fn with_python(&self, python: &Path, client: &Client) -> Result<Vec<Installation>, Diagnostic> {
        let modules = client.find(python)?;
        let found: Vec<_> =
            Kind::ALL.into_iter().filter_map(|kind| of_python(python, &modules, kind)).collect();
        match found.is_empty() {
            false => Ok(found),
            true => {
                let why = without_modules(python, &modules, &Kind::ALL);
                Err(NotATensorRt { path: python.display().to_string(), why }.into())
            }
        }
    }
}

fn without_modules(python: &Path, modules: &Modules, kinds: &[Kind]) -> String {
    let wanted: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.modules()[0])).collect();
    format!("`{}` (Python {}) has no module {}", python.display(), modules.python, wanted.join(" or "))
}

fn distinct<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

fn of_program(program: PathBuf, kind: Kind) -> Installation {
    let real = std::fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
    let prefix = real.parent().and_then(Path::parent);
    let folder = prefix.map(|prefix| prefix.join("lib")).filter(|lib| lib.join(kind.library()).exists());
    let version = folder.as_deref().and_then(|folder| Version::of_library(folder, kind.library()));
    Installation { kind, route: Route::Program(program), version, libraries: folder }
}

fn of_python(python: &Path, modules: &Modules, kind: Kind) -> Option<Installation> {
    let module = kind.modules().into_iter().find(|name| modules.folder(name).is_some())?;
    let version = kind.modules().into_iter().find_map(|name| modules.version(name));
    let libraries = modules.folder(kind.library_package()).map(Path::to_owned);
    let route = Route::Python { interpreter: python.to_owned(), module: module.to_owned() };
    Some(Installation { kind, route, version: version.and_then(Version::parse), libraries })
}

/// Its libraries can be named instead.
fn program_in(home: &Path, kind: Kind) -> Option<PathBuf> {
    let places = [home.join("bin"), home.to_owned()].map(|folder| folder.join(kind.program()));
    places.into_iter().find(|program| is_program(program))
}

/// Does not search for paths with a folder.
fn on_path(path: &[PathBuf], program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_program(program).then(|| program.to_owned());
    }
    // Empty entries mean the current folder.
    let folders = path.iter().filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
