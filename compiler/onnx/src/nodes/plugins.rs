//! Opens the model and its plugins' files: manifests, plugin libraries, bundles, and engines with a library. Engines'
//! nodes lack parts, so they are not plugins.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::Model;
use cubinder_model::Plugin;

use super::errors::{EngineWithoutLibrary, ModelWithoutPlugins, NoPlugins, OtherPlugin};
use super::errors::{RuntimeWithoutPlugins, UnreadableModel};
use crate::diagnostic::Diagnostic;
use crate::eval::{self, Subject};
use crate::library;
use crate::source;

/// Plugins, found by name.
#[derive(Debug, Default)]
pub struct Plugins {
    list: Vec<Subject>,
    /// Indices in `list`.
    by_name: HashMap<String, Vec<usize>>,
    /// Warnings of reading the files.
    pub warnings: Vec<Diagnostic>,
}

impl Plugins {
    /// Reads files' plugins; fails if a file has none, or plugins of one name, namespace and version differ.
    pub fn open(files: &[PathBuf]) -> Result<Plugins, Vec<Diagnostic>> {
        let mut plugins = Plugins::default();
        let mut errors = Vec::new();
        for file in files {
            let found = eval::read_subjects(file);
            if found.as_ref().map_or(true, |subjects| subjects.list.is_empty())
                && let Some(error) = without_plugins(file)
            {
                errors.push(error);
                continue;
            }
            match found {
                Err(why) => errors.extend(why),
                Ok(subjects) if subjects.list.is_empty() => {
                    errors.push(NoPlugins { file: file.display().to_string() }.into());
                    errors.extend(subjects.warnings);
                }
                Ok(subjects) => {
                    let is_engine = subjects.list.iter().any(|subject| subject.number.is_some());
                    let list = if is_engine { subjects.carried } else { subjects.list };
                    if list.is_empty() {
                        errors.push(EngineWithoutLibrary { file: file.display().to_string() }.into());
                        continue;
                    }
                    plugins.warnings.extend(subjects.warnings);
                    let added = list.into_iter().try_for_each(|subject| plugins.add(subject, file));
                    errors.extend(added.err());
                }
            }
        }
        if errors.is_empty() { Ok(plugins) } else { Err(errors) }
    }

    /// Collects the plugins of one file.
    #[must_use]
    pub fn from_subjects(subjects: Vec<Subject>) -> Plugins {
        let mut plugins = Plugins::default();
        subjects.into_iter().for_each(|subject| plugins.push(subject));
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
                let (file, name) = (file.display().to_string(), plugin.full_name());
                return Err(OtherPlugin { file, name, version: &plugin.version }.into());
            }
            None => self.push(subject),
        }
        Ok(())
    }

    fn push(&mut self, subject: Subject) {
        self.by_name.entry(subject.plugin.name.clone()).or_default().push(self.list.len());
        self.list.push(subject);
    }

    /// Returns a plugin by its index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Subject> {
        self.list.get(index)
    }

    /// Returns all plugins of a name with their indices.
    pub fn named(&self, name: &str) -> impl Iterator<Item = (usize, &Subject)> {
        let indices = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        indices.iter().filter_map(|index| Some((*index, self.list.get(*index)?)))
    }

    /// Returns the names of all plugins.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|subject| subject.plugin.name.as_str())
    }

    /// Returns whether the collection is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn without_plugins(file: &Path) -> Option<Diagnostic> {
    let name = file.display().to_string();
    if !std::fs::metadata(file).ok()?.is_file() || file.extension().is_some_and(|end| end == "toml") {
        return None;
    }
    if source::open(file).is_ok_and(|opened| Model::read(opened).is_ok()) {
        return Some(ModelWithoutPlugins { file: name }.into());
    }
    let bytes = source::read(file, source::LARGEST_BINARY).ok()?;
    // A library without a bundle is the runtime library.
    let attached = library::read_bytes(file, &bytes).ok()?;
    attached.is_none().then(|| RuntimeWithoutPlugins { file: name }.into())
}

/// Reads a model.
pub fn open_model(path: &Path) -> Result<Model, Diagnostic> {
    let unreadable = |why: &dyn std::fmt::Display, help| -> Diagnostic {
        UnreadableModel { file: path.display().to_string(), why: why.to_string(), help }.into()
    };
    let file = source::open_file(path).map_err(|error| unreadable(&error, None))?;
    if file.metadata().map_err(|error| unreadable(&error, None))?.len() == 0 {
        return Err(unreadable(&"the file is empty", None));
    }
    Model::read(file).map_err(|error| match error {
        crate::Error::Io(_) => unreadable(&error, None),
        _ if begins_with(path, LFS_POINTER) => {
            unreadable(&"it is a Git LFS pointer, not a model", Some("fetch the model: `git lfs pull`"))
        }
        crate::Error::CutOff { .. } => unreadable(&error, Some("copy or download it again")),
        _ => unreadable(
            &error,
            Some("pass a binary model (`*.onnx`) as written by `torch.onnx.export` and `onnx.save`"),
        ),
    })
}

/// Start of an unfetched Git LFS file (Git LFS, `docs/spec.md`).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

fn begins_with(path: &Path, expected: &[u8]) -> bool {
    let mut first = Vec::new();
    let read = source::open(path).and_then(|file| file.take(expected.len() as u64).read_to_end(&mut first));
    read.is_ok() && first == expected
}
