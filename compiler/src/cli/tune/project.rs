//! The project of the measured manifest: its other manifests and files of measured times.

use std::path::{Path, PathBuf};

use cubinder_compiler::project::{Project, ProjectOptions, config_above};
use cubinder_manifest::config;
use cubinder_manifest::file_kind::Kind;
use cubinder_node::eval;
use cubinder_node::tuning::{Point, Tuning};
use cubinder_source::{path, source};

use crate::cli::output::{current_folder, open_project};

/// The folder of files of tuning, beside `cubinder.toml` or a manifest.
pub(super) const FOLDER: &str = "tuning";

/// The measured manifest, if it exists, with its project.
pub(super) struct MeasuredProject {
    manifest: Option<PathBuf>,
    project: Project,
}

/// Why nothing packs a file.
#[derive(Debug, PartialEq)]
pub(super) enum Unpacked {
    /// The project's `cubinder.toml` does not name it, and would with these patterns.
    Unnamed { config: PathBuf, patterns: Vec<String> },
    /// There is no `cubinder.toml`. The manifest, where there is one.
    Alone(Option<PathBuf>),
}

impl MeasuredProject {
    /// Without a manifest the project is that of the cases. `None` if it cannot be opened.
    pub(super) fn open(manifest: Option<&Path>, cases: &Path) -> Option<MeasuredProject> {
        let project = match manifest {
            Some(manifest) => {
                opened(ProjectOptions { manifests: vec![manifest.to_owned()], ..ProjectOptions::default() })?
            }
            None => match config_above(cases, &current_folder().unwrap_or_default()) {
                Some(config) => opened(ProjectOptions { config: Some(config), ..ProjectOptions::default() })?,
                None => Project::default(),
            },
        };
        Some(MeasuredProject { manifest: manifest.map(Path::to_owned), project })
    }

    /// The versions of a plugin that there are: those of the project's manifests; without a project those of the manifests that lie beside
    /// the one that was measured. None where one of them cannot be read, because it may be of any version, and where there is no manifest.
    pub(super) fn versions(&self, plugin: &str) -> Option<Vec<String>> {
        let manifest = self.manifest.as_deref()?;
        let paths = match &self.project.config {
            Some(config) => config.manifest_paths().ok()?,
            None => beside(manifest)?,
        };
        let mut versions = Vec::new();
        for path in paths {
            let plugins = eval::manifest(&source::text(&path).ok()?).ok()?.list;
            let own = plugins.into_iter().map(|subject| subject.plugin);
            versions.extend(own.filter(|own| own.full_name() == plugin).map(|own| own.version));
        }
        Some(versions)
    }

    /// Why nothing packs the file; none where something does.
    pub(super) fn unpacked(&self, path: &Path) -> Option<Unpacked> {
        let Some(config) = &self.project.config else { return Some(Unpacked::Alone(self.manifest.clone())) };
        let file = path.canonicalize().ok()?;
        let is_it = |named: &PathBuf| named.canonicalize().is_ok_and(|named| named == file);
        if self.project.tuning.iter().any(is_it) {
            return None;
        }
        let known = config.tuning.iter().map(|pattern| pattern.value.clone());
        let patterns = known.chain([pattern(&file, &config.folder)]).collect();
        Some(Unpacked::Unnamed { config: config.source.path.clone(), patterns })
    }

    /// The project's files of other GPUs whose points mix with those of the file, with the GPUs' names.
    pub(super) fn alike(&self, path: &Path, own: &Tuning) -> Vec<(PathBuf, String)> {
        let is_of_plugin = |point: &Point| own.points.iter().any(|known| known.plugin == point.plugin);
        let (files, _) = self.project.read_tuning();
        let files = files.into_iter().filter(|file| {
            let device = &file.tuning.device;
            let is_other = device.is_alike(&own.device) && device.name != own.device.name;
            is_other && file.source.path != path && file.tuning.points.iter().any(is_of_plugin)
        });
        files.map(|file| (path::shown(&file.source.path), file.tuning.device.name)).collect()
    }
}

fn opened(asked: ProjectOptions) -> Option<Project> {
    open_project(ProjectOptions { is_measured: true, ..asked }).ok()?
}

/// The manifests in the folder of one.
fn beside(manifest: &Path) -> Option<Vec<PathBuf>> {
    let folder = manifest.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut manifests = Vec::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()? {
        let path = entry.ok()?.path();
        let is_named_so = path.extension().is_some_and(|extension| extension == "toml") && path.is_file();
        if is_named_so && Kind::detect(&source::text(&path).ok()?.text) == Some(Kind::Manifest) {
            manifests.push(path);
        }
    }
    Some(manifests)
}

/// What names a file in a `cubinder.toml`: all in the folder of such files, and the file alone elsewhere.
fn pattern(file: &Path, folder: &Path) -> String {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let below =
        folder.canonicalize().ok().and_then(|folder| file.strip_prefix(folder).ok().map(Path::to_owned));
    let named = below.as_deref().unwrap_or(file);
    match named.parent() == Some(Path::new(FOLDER)) {
        true => format!("{FOLDER}/*.toml"),
        false => config::escaped(named),
    }
}
