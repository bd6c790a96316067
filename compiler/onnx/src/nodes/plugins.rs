//! The plugins that a model is held against, and the model itself.
//!
//! Owns what kinds of files have them: manifests, plugin libraries, bundles, and engines that carry a library. A node in an engine is no plugin any
//! more: what its build has decided has been left out of it.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::Model;
use cubinder_model::Plugin;

use crate::diagnostic::Diagnostic;
use crate::eval::{self, Subject};
use crate::library;
use crate::source;

/// Plugins by their names.
#[derive(Debug, Default)]
pub struct Plugins {
    list: Vec<Subject>,
    by_name: HashMap<String, Vec<usize>>,
    /// What the reader of the files should know.
    pub warnings: Vec<Diagnostic>,
}

impl Plugins {
    /// Those of some files.
    ///
    /// # Errors
    /// Where one cannot be read, or has no plugins; and where two have the same name, namespace and version and differ.
    pub fn open(files: &[PathBuf]) -> Result<Plugins, Vec<Diagnostic>> {
        let mut plugins = Plugins::default();
        let mut errors = Vec::new();
        for file in files {
            match eval::open(file) {
                Ok(subjects) => {
                    let is_engine = subjects.list.iter().any(|subject| subject.number.is_some());
                    let list = if is_engine { subjects.carried } else { subjects.list };
                    if list.is_empty() {
                        errors.push(of_an_engine(file));
                        continue;
                    }
                    plugins.warnings.extend(subjects.warnings);
                    let added = list.into_iter().try_for_each(|subject| plugins.add(subject, file));
                    errors.extend(added.err());
                }
                Err(why) => match without_plugins(file) {
                    Some(error) => errors.push(error),
                    None => errors.extend(why.into_iter().map(|error| of_nothing(file, error))),
                },
            }
        }
        if errors.is_empty() { Ok(plugins) } else { Err(errors) }
    }

    /// Those of one file that was read.
    #[must_use]
    pub fn of(subjects: Vec<Subject>) -> Plugins {
        let mut plugins = Plugins::default();
        for subject in subjects {
            plugins.push(subject);
        }
        plugins
    }

    fn add(&mut self, subject: Subject, file: &Path) -> Result<(), Diagnostic> {
        let plugin = &subject.plugin;
        let key = |plugin: &Plugin| (plugin.namespace.clone(), plugin.version.clone());
        let same = |known: &Plugin| (key(known) == key(plugin)).then(|| known == plugin);
        let known = self.named(&plugin.name).find_map(|(_, known)| same(&known.plugin));
        match known {
            Some(true) => {}
            Some(false) => {
                let name = plugin.full_name();
                let (file, version) = (file.display(), &plugin.version);
                let message =
                    format!("`{file}` has another `{name}` of version {version} than a file before it");
                return Err(
                    Diagnostic::error(message).help("name the library that TensorRT gets, and no other")
                );
            }
            None => self.push(subject),
        }
        Ok(())
    }

    fn push(&mut self, subject: Subject) {
        self.by_name.entry(subject.plugin.name.clone()).or_default().push(self.list.len());
        self.list.push(subject);
    }

    /// A plugin by its place.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Subject> {
        self.list.get(index)
    }

    /// The plugins of a name, in every namespace and version, with their places.
    pub fn named(&self, name: &str) -> impl Iterator<Item = (usize, &Subject)> {
        let places = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| Some((*place, self.list.get(*place)?)))
    }

    /// The names of all plugins.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|subject| subject.plugin.name.as_str())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// What is said of a file that is something else than what has plugins; none where it is not known what.
fn without_plugins(file: &Path) -> Option<Diagnostic> {
    let name = file.display();
    if !std::fs::metadata(file).ok()?.is_file() || file.extension().is_some_and(|end| end == "toml") {
        return None;
    }
    if source::open(file).is_ok_and(|opened| Model::read(opened).is_ok()) {
        let error = Diagnostic::error(format!("`{name}` is an ONNX model, and has no plugins"));
        return Some(error.help("name the library or the manifest that has them"));
    }
    let bytes = source::read(file, source::LARGEST_BINARY).ok()?;
    // Without a bundle it is the library that runs engines.
    let attached = library::read_bytes(file, &bytes).ok()?;
    attached.is_none().then(|| {
        Diagnostic::error(format!("`{name}` is the library that runs engines, and has no plugins"))
            .help("name the library that `cubinder compile` made, or its manifest")
    })
}

/// What is said of a file in which there is nothing, without the word that [`eval`] has for it.
fn of_nothing(file: &Path, error: Diagnostic) -> Diagnostic {
    let name = file.display();
    if error.message == format!("nothing in `{name}` can be evaluated") {
        return Diagnostic { message: format!("`{name}` has no plugins"), ..error };
    }
    error
}

fn of_an_engine(file: &Path) -> Diagnostic {
    Diagnostic::error(format!(
        "`{}` is an engine that carries no library, and its nodes are no plugins",
        file.display()
    ))
    .note("a node keeps of its plugin what its own attributes and types need")
    .help("name the manifest or the library that the engine was built with")
}

/// Reads a model.
///
/// # Errors
/// Where there is no such file, or it is no model.
pub fn open_model(path: &Path) -> Result<Model, Diagnostic> {
    let cannot =
        |why: &dyn std::fmt::Display| Diagnostic::error(format!("cannot read `{}`: {why}", path.display()));
    let file = source::open_file(path).map_err(|error| cannot(&error))?;
    if file.metadata().map_err(|error| cannot(&error))?.len() == 0 {
        return Err(cannot(&"the file is empty"));
    }
    Model::read(file).map_err(|error| match error {
        crate::Error::Io(_) => cannot(&error),
        _ if begins_with(path, LFS_POINTER) => cannot(&"it is a pointer of Git LFS in the place of a model")
            .help("fetch the model: `git lfs pull`"),
        crate::Error::CutOff { .. } => cannot(&error).help("copy or download it again"),
        _ => cannot(&error).help(
            "expected a model as `torch.onnx.export` and `onnx.save` write it: the binary form, `*.onnx`",
        ),
    })
}

/// How the file begins that Git leaves where the large one is not fetched (Git LFS, `docs/spec.md`).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

fn begins_with(path: &Path, expected: &[u8]) -> bool {
    let mut first = Vec::new();
    let read = source::open(path).and_then(|file| file.take(expected.len() as u64).read_to_end(&mut first));
    read.is_ok() && first == expected
}
