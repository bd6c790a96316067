//! `builder.py` and `runner.py`, run by the Python that has TensorRT's bindings.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use cubinder_source::diagnostic::Diagnostic;
use tempfile::TempDir;

use crate::ending::ending;
use crate::errors::{BrokenPython, NoTemporaryFolder};
use crate::installation::{Installation, Kind, MissingLink, Route};
use crate::log::{Event, FoundModule, Modules};

const SCRIPTS: [(&str, &str); 3] = [
    ("client.py", include_str!("client.py")),
    ("builder.py", include_str!("builder.py")),
    ("runner.py", include_str!("runner.py")),
];

pub(crate) const BUILDER: &str = "builder.py";
pub(crate) const RUNNER: &str = "runner.py";

/// Temporary folder with the scripts and the links of child processes.
#[derive(Debug)]
pub struct Client {
    folder: TempDir,
}

impl Modules {
    pub(crate) fn folder(&self, name: &str) -> Option<&Path> {
        self.named(name).map(|module| module.folder.as_path())
    }

    pub(crate) fn version(&self, name: &str) -> Option<&str> {
        self.named(name)?.version.as_deref()
    }

    fn named(&self, name: &str) -> Option<&FoundModule> {
        self.modules.iter().find(|module| module.module == name)
    }
}

impl Client {
    /// Writes the scripts; fails if the temporary folder is full or read-only.
    pub fn new() -> Result<Client, Diagnostic> {
        let write = || {
            let folder = tempfile::Builder::new().prefix("cubinder-").tempdir()?;
            for (name, text) in SCRIPTS {
                std::fs::write(folder.path().join(name), text)?;
            }
            Ok(Client { folder })
        };
        write().map_err(no_folder)
    }

    /// Keeps the folder, for the printed command; returns its path.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Python's path starts with the script's folder, not the current one.
    pub(crate) fn call(&self, python: &Path, script: &str, command: &str) -> Command {
        let mut call = Command::new(python);
        call.arg(self.folder.path().join(script)).arg(command).stdin(Stdio::null());
        // The scripts import `client.py` from their folder.
        call.env_remove("PYTHONSAFEPATH");
        call
    }

    pub(crate) fn tensors(&self) -> Result<PathBuf, Diagnostic> {
        let folder = self.folder.path().join("tensors");
        std::fs::create_dir_all(&folder).map_err(no_folder)?;
        Ok(folder)
    }

    pub(crate) fn link(&self, missing: &MissingLink) -> Result<PathBuf, Diagnostic> {
        let folder = self.folder.path().join("lib");
        let link = || {
            std::fs::create_dir_all(&folder)?;
            std::os::unix::fs::symlink(
                std::path::absolute(&missing.target)?,
                folder.join(missing.link.file_name().unwrap_or_default()),
            )
        };
        link().map_err(no_folder)?;
        Ok(folder)
    }

    pub(crate) fn find(&self, python: &Path) -> Result<Modules, Diagnostic> {
        let kinds = Kind::ALL;
        let modules =
            kinds.into_iter().flat_map(|kind| kind.modules().into_iter().chain([kind.library_package()]));
        match answer(self.call(python, BUILDER, "find").args(modules)) {
            Ok(Event::Found(modules)) => Ok(modules),
            Ok(_) => Err(broken(python, "its answer has another form".to_owned())),
            Err(why) => Err(broken(python, why)),
        }
    }

    /// Returns why an installation's module cannot be imported, tried in a child process.
    #[must_use]
    pub fn import_error(&self, installation: &Installation) -> Option<String> {
        let Route::Python { interpreter, module } = &installation.route else { return None };
        match answer(self.call(interpreter, BUILDER, "load").arg(module)) {
            Ok(Event::Loaded) => None,
            Ok(Event::Failed { texts, .. }) => Some(texts.join("; ")),
            Ok(_) => Some("its answer has another form".to_owned()),
            Err(why) => Some(why),
        }
    }
}

fn no_folder(error: std::io::Error) -> Diagnostic {
    NoTemporaryFolder { error }.into()
}

fn broken(python: &Path, why: String) -> Diagnostic {
    BrokenPython { python: python.display().to_string(), why }.into()
}

fn answer(call: &mut Command) -> Result<Event, String> {
    let output = call.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let event = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    event.ok_or_else(|| last_words(output.status, &String::from_utf8_lossy(&output.stderr)))
}

fn last_words(status: ExitStatus, stderr: &str) -> String {
    let last = stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
    let ending = ending(status);
    last.map_or_else(|| ending.clone(), |last| format!("{ending}: {last}"))
}
