use std::path::{Path, PathBuf};

use cubinder_compiler::project::{Project, ProjectOptions, config_above};
use cubinder_manifest::config;
use cubinder_manifest::file_kind::Kind;
use cubinder_node::eval;
use cubinder_node::tuning::{Point, Tuning};
use cubinder_source::{path, source};

use crate::cli::output::{current_folder, open_project};

/// Beside `cubinder.toml` or a manifest.
pub(super) const FOLDER: &str = "tuning";

pub(super) struct MeasuredProject {
    manifest: Option<PathBuf>,
    project: Project,
}

/// Why no project packs the tuning file.
#[derive(Debug, PartialEq)]
pub(super) enum Unpacked {
    /// These `cubinder.toml` patterns would match it.
    Unnamed { config: PathBuf, patterns: Vec<String> },
    /// No `cubinder.toml`; the manifest, if any.
    Alone(Option<PathBuf>),
}

impl MeasuredProject {
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

    /// Returns the plugin's versions in the project, else in neighboring manifests. `None` if any is unreadable or
    /// none exists.
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

    /// Returns other GPUs' files whose points mix with this file's.
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

/// Returns the tuning folder's pattern if it contains the file, else the file's path.
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
