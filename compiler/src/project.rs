//! What a command works on: which manifests, and for each of them which targets and settings.
//!
//! Owns what goes before what: the command line, the manifest's `[compile]`, `cubinder.toml`. Here is which manifests and files there are;
//! what is compiled for (`targets`), with what (`plan`) and for which driver (`driver`) follows from that. Shared by every command that
//! takes manifests. Never compiles anything.

mod driver;
mod plan;
mod planning;
mod targets;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_manifest::config::{self, Config};
use cubinder_manifest::file_kind::{self, Kind};
use cubinder_manifest::manifest::Route;
use cubinder_model::{Plugin, Target};
use cubinder_node::tuning;
use cubinder_source::diagnostic::{Diagnostic, Severity, Source, Span, dedup};
use cubinder_source::{path, rules, source};
pub use plan::{Plan, PlannedRoute, PlannedTarget};

/// The text of a manifest, or the reason that it cannot be read.
pub type ManifestText = Result<Arc<Source>, Vec<Diagnostic>>;

/// What the command line asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectOptions {
    /// The manifests; none: those that `cubinder.toml` names.
    pub manifests: Vec<PathBuf>,
    /// The `cubinder.toml` to use.
    pub config: Option<PathBuf>,
    /// What to compile for, whatever manifests and `cubinder.toml` say; none: what they say.
    pub targets: Vec<Target>,
    /// Of what manifests and `cubinder.toml` say, compile for these alone; none: for all.
    pub only: Vec<Target>,
    /// Include folders, before all others.
    pub include: Vec<PathBuf>,
    /// Options of NVRTC, after all others.
    pub options: Vec<String>,
    /// Whether code has line information, whatever manifests and `cubinder.toml` say.
    pub line_information: bool,
    /// Who launches the kernels, whatever manifests say.
    pub route: Option<Route>,
    /// Files of tuning, before those that `cubinder.toml` names.
    pub tuning: Vec<PathBuf>,
    /// What is opened is measured, which mends its tuning: what is wrong with that is passed over.
    pub is_measured: bool,
}

/// The manifests of one library, and what holds for all of them. The default has none, and says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// `cubinder.toml`, where it counts.
    pub config: Option<Config>,
    /// The manifests, in the order of the library's plugins.
    pub manifests: Vec<PathBuf>,
    /// The files of tuning, each once.
    pub tuning: Vec<PathBuf>,
    /// The folder that files are named relative to, so that what is made does not depend on where it lies.
    pub root: PathBuf,
    options: ProjectOptions,
}

impl Project {
    /// Finds the manifests. `here` is the current folder.
    ///
    /// For manifests without a `cubinder.toml`, [`Project::open_around`] finds it. Without manifests the nearest `cubinder.toml` names them.
    ///
    /// # Errors
    /// What is no manifest, and every mistake in `cubinder.toml`.
    pub fn open(options: ProjectOptions, here: &Path) -> Result<Project, Vec<Diagnostic>> {
        let mut wrong: Vec<Diagnostic> =
            options.manifests.iter().filter_map(|path| check_manifest(path).err()).collect();
        wrong.extend(options.include.iter().filter_map(|folder| {
            let error = check_include(folder).err()?;
            Some(error.note("`--include` names it, relative to the current folder"))
        }));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let config = match &options.config {
            Some(path) => Some(config::load(path)?),
            None if options.manifests.is_empty() => {
                Some(config::load(&relative_to(here, &config::find(here)?))?)
            }
            None => None,
        };
        if let Some(config) = &config {
            wrong.extend(config.include.iter().filter_map(|folder| {
                let error = check_include(&folder.value).err()?.code(rules::WRONG_VALUE);
                let span = Span::new(&config.source, folder.range.clone());
                Some(error.at(span, "named here").note("it is relative to this file's folder"))
            }));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let manifests = match &config {
            Some(config) if options.manifests.is_empty() => config.manifest_paths()?,
            _ => options.manifests.clone(),
        };
        let (named, wrong) = config.as_ref().map(Config::tuning_paths).unwrap_or_default();
        if !wrong.is_empty() && !options.is_measured {
            return Err(wrong);
        }
        let tuning = each_once(options.tuning.iter().cloned().chain(named));
        let of_manifest = || manifests.first().and_then(|manifest| manifest.parent()).map(Path::to_path_buf);
        let of_config = config.as_ref().map(|config| config.folder.clone());
        let root = of_config.or_else(of_manifest).unwrap_or_default();
        Ok(Project { config, manifests, tuning, root, options })
    }

    /// Opens manifests, each with the nearest `cubinder.toml` above it if there is one, so that every command sees a manifest as its
    /// project compiles it. Manifests of one project stay together. If `options` names a `cubinder.toml` or no manifest, this is
    /// [`Project::open`].
    ///
    /// # Errors
    /// As those of [`Project::open`].
    pub fn open_around(options: ProjectOptions, here: &Path) -> Result<Vec<Project>, Vec<Diagnostic>> {
        if options.config.is_some() || options.manifests.is_empty() {
            return Project::open(options, here).map(|project| vec![project]);
        }
        let mut groups: Vec<(Option<PathBuf>, Vec<PathBuf>)> = Vec::new();
        for manifest in &options.manifests {
            let config = config_above(manifest, here);
            match groups.iter_mut().find(|(known, _)| *known == config) {
                Some((_, manifests)) => manifests.push(manifest.clone()),
                None => groups.push((config, vec![manifest.clone()])),
            }
        }
        let mut projects = Vec::new();
        let mut errors = Vec::new();
        for (config, manifests) in groups {
            match Project::open(ProjectOptions { config, manifests, ..options.clone() }, here) {
                Ok(project) => projects.push(project),
                Err(found) => errors.extend(found),
            }
        }
        dedup(&mut errors);
        if errors.is_empty() { Ok(projects) } else { Err(errors) }
    }

    /// Leaves out the tuning of `cubinder.toml`, for a library that is not the project's own.
    #[must_use]
    pub fn without_project_tuning(mut self) -> Project {
        self.tuning = each_once(self.options.tuning.iter().cloned());
        self
    }

    /// Reads the manifests.
    #[must_use]
    pub fn read_manifests(&self) -> Vec<ManifestText> {
        self.manifests.iter().map(|path| source::text(path)).collect()
    }

    /// The files of tuning that can be read, and what is wrong with the others.
    #[must_use]
    pub fn read_tuning(&self) -> (Vec<tuning::File>, Vec<Diagnostic>) {
        let (mut files, mut wrong) = (Vec::new(), Vec::new());
        for path in &self.tuning {
            match tuning::open(path) {
                Ok(file) => files.push(file),
                Err(errors) => wrong.extend(errors),
            }
        }
        if self.options.is_measured {
            wrong.clear();
        }
        (files, wrong)
    }

    /// Packs what was measured of a plugin ([`tuning::pack`]).
    #[must_use]
    pub fn pack_tuning(&self, files: &[tuning::File], plugin: &mut Plugin) -> Vec<Diagnostic> {
        let mut found = tuning::pack(files, plugin);
        found.retain(|found| !self.options.is_measured || found.severity != Severity::Error);
        found
    }

    /// Whether the manifests are all that the library is made of. Where some of a project are looked at by themselves, it may have others.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.options.manifests.is_empty() || self.config.is_none()
    }
}

/// The nearest `cubinder.toml` above a manifest, seen from the folder `here`.
#[must_use]
pub fn config_above(manifest: &Path, here: &Path) -> Option<PathBuf> {
    // Files are named relative to its folder, so it is named as the manifest is.
    if manifest.is_absolute() {
        return config::find(manifest.parent()?).ok();
    }
    // What is not there is told by who reads the manifest.
    let found = config::find(&here.join(manifest).parent()?.canonicalize().ok()?).ok()?;
    let here = here.canonicalize().ok()?;
    Some(match found.strip_prefix(&here) {
        Ok(below) => below.to_owned(),
        Err(_) => relative_to(&here, &found),
    })
}

/// The files, each where it is named first, however it is named.
fn each_once(files: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    // What is not there is told by who reads it.
    files.filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path::shown(path)))).collect()
}

/// Checks an include folder: NVRTC ignores what it cannot open.
fn check_include(folder: &Path) -> Result<(), Diagnostic> {
    let name = path::shown(folder);
    let name = name.display();
    let message = match std::fs::metadata(folder) {
        Ok(facts) if facts.is_dir() => return Ok(()),
        Ok(_) => format!("the include path `{name}` is not a folder"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("the include folder `{name}` does not exist")
        }
        Err(error) => format!("cannot open the include folder `{name}`: {error}"),
    };
    Err(Diagnostic::error(message))
}

/// What is plainly no manifest is said to be so before it is read as one.
fn check_manifest(path: &Path) -> Result<(), Diagnostic> {
    let name = path::shown(path);
    let name = name.display();
    if let Err(error) = std::fs::metadata(path) {
        let error = Diagnostic::error(format!("cannot read `{name}`: {error}"));
        return Err(match name.to_string().parse::<Target>() {
            Ok(target) => error
                .help(format!("targets are separated by commas, without spaces: `--target sm_89,{target}`")),
            Err(_) => error,
        });
    }
    if path.is_dir() {
        return Err(Diagnostic::error(format!("`{name}` is a folder, expected a manifest"))
            .help("name the manifest; without arguments `cubinder.toml` says which there are"));
    }
    if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
        return Err(Diagnostic::error(format!("`{name}` is CUDA source, expected a manifest"))
            .help("name the TOML file that has this source in `[[launches]]`"));
    }
    // What cannot be read now is told by who reads it.
    source::text(path).map_or(Ok(()), |source| file_kind::expect(Kind::Manifest, path, &source.text))
}

/// The path of a file above the current folder, as a person would type it.
fn relative_to(here: &Path, file: &Path) -> PathBuf {
    let above = here.ancestors().position(|folder| Some(folder) == file.parent());
    let (Some(above), Some(name)) = (above, file.file_name()) else { return file.to_owned() };
    let mut path: PathBuf = std::iter::repeat_n("..", above).collect();
    path.push(name);
    path
}

#[cfg(test)]
mod tests;
