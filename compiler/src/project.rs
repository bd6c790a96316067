//! Determines a command's manifests, targets, settings and drivers.
//!
//! Precedence: command line, manifest's `[compile]`, `cubinder.toml`. Never compiles.

mod driver;
mod plan;
mod planning;
mod targets;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_manifest::config::{self, Config, Endpoint, RemoteConfig};
use cubinder_manifest::file_kind::{self, Kind};
use cubinder_manifest::manifest::Route;
use cubinder_model::{Plugin, Target};
use cubinder_node::tuning;
use cubinder_source::diagnostic::{Diagnostic, Severity, Source, Span, dedup};
use cubinder_source::path::is_same_file;
use cubinder_source::{path, rules, source};
pub use plan::{Plan, PlannedRoute, PlannedTarget};

/// A manifest's text, if readable.
pub type ManifestText = Result<Arc<Source>, Vec<Diagnostic>>;

/// Options of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectOptions {
    /// Manifests; default: the `cubinder.toml`'s.
    pub manifests: Vec<PathBuf>,
    /// The `cubinder.toml` to use.
    pub config: Option<PathBuf>,
    /// Targets, which override configured ones.
    pub targets: Vec<Target>,
    /// Subset of targets, unless empty.
    pub only: Vec<Target>,
    /// Include folders, searched first.
    pub include: Vec<PathBuf>,
    /// NVRTC options, after all others.
    pub options: Vec<String>,
    /// Whether to force line information.
    pub line_information: bool,
    /// Route, which overrides manifests.
    pub route: Option<Route>,
    /// Tuning files, searched first.
    pub tuning: Vec<PathBuf>,
    /// Whether measuring replaces invalid tuning.
    pub is_measured: bool,
    /// Shared cache, which overrides the configured one.
    pub remote_cache: Option<Endpoint>,
    /// Server that executes compiles, which overrides the configured one.
    pub remote_executor: Option<Endpoint>,
    /// Whether nothing is compiled on this machine.
    pub remote_only: bool,
    /// Whether results are stored in the shared cache, whatever is configured.
    pub remote_upload: bool,
}

/// The manifests of one library.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// The applicable `cubinder.toml`.
    pub config: Option<Config>,
    /// Manifests in plugin order.
    pub manifests: Vec<PathBuf>,
    /// Unique tuning files.
    pub tuning: Vec<PathBuf>,
    /// Base of displayed paths.
    pub root: PathBuf,
    options: ProjectOptions,
}

impl Project {
    /// Finds the manifests: those of `options`, else the nearest `cubinder.toml`'s. `here` is the current folder.
    ///
    /// # Errors
    /// Files of other kinds, and errors in `cubinder.toml`.
    pub fn open(options: ProjectOptions, here: &Path) -> Result<Project, Vec<Diagnostic>> {
        let mut wrong: Vec<Diagnostic> =
            options.manifests.iter().filter_map(|path| check_manifest(path).err()).collect();
        wrong.extend(options.include.iter().filter_map(|folder| {
            let error = check_include(folder).err()?;
            Some(error.note("from `--include`, relative to the current folder"))
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

    /// Opens manifests, grouped by the nearest `cubinder.toml` above each, whose tuning files are for the manifests that
    /// it lists. Equals [`Project::open`] if `options` names a `cubinder.toml` or no manifest.
    ///
    /// # Errors
    /// The errors of [`Project::open`].
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
                Ok(project) => projects.push(project.with_own_tuning()),
                Err(found) => errors.extend(found),
            }
        }
        dedup(&mut errors);
        if errors.is_empty() { Ok(projects) } else { Err(errors) }
    }

    /// Drops a `cubinder.toml`'s tuning files if it does not list the manifests: equal names may mean other plugins.
    fn with_own_tuning(mut self) -> Project {
        let listed = self.config.as_ref().and_then(|config| config.manifest_paths().ok()).unwrap_or_default();
        let is_listed = |manifest: &PathBuf| listed.iter().any(|path| is_same_file(path, manifest));
        if !self.manifests.iter().all(is_listed) {
            self.tuning = each_once(self.options.tuning.iter().cloned());
        }
        self
    }

    /// Reads the manifests.
    #[must_use]
    pub fn read_manifests(&self) -> Vec<ManifestText> {
        self.manifests.iter().map(|path| source::text(path)).collect()
    }

    /// Reads tuning files; also returns errors.
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

    /// Packs a plugin's measurements ([`tuning::pack`]).
    #[must_use]
    pub fn pack_tuning(&self, files: &[tuning::File], plugin: &mut Plugin) -> Vec<Diagnostic> {
        let mut found = tuning::pack(files, plugin);
        found.retain(|found| !self.options.is_measured || found.severity != Severity::Error);
        found
    }

    pub(crate) fn is_remote_only(&self) -> bool {
        self.options.remote_only
    }

    /// Returns the shared cache, if any.
    ///
    /// # Errors
    /// The server of the command line is not encrypted, but certificates or headers are configured.
    pub fn remote(&self) -> Result<Option<RemoteConfig>, Diagnostic> {
        let configured = self.config.as_ref().and_then(|config| config.remote.clone());
        let ProjectOptions { remote_cache: cache, remote_executor: executor, .. } = &self.options;
        // An executor has a cache, too.
        let configured =
            configured.or_else(|| cache.as_ref().or(executor.as_ref()).cloned().map(RemoteConfig::new));
        let servers = |remote: RemoteConfig| remote.with_servers(cache.clone(), executor.clone());
        let remote = configured.map(servers).transpose()?;
        let can_upload = self.options.remote_upload;
        Ok(remote.map(|remote| RemoteConfig { can_upload: remote.can_upload || can_upload, ..remote }))
    }

    /// Returns whether the library has no other manifests.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.options.manifests.is_empty() || self.config.is_none()
    }
}

/// Returns the nearest `cubinder.toml` above a manifest, relative to `here`.
#[must_use]
pub fn config_above(manifest: &Path, here: &Path) -> Option<PathBuf> {
    // Output names are relative to its folder.
    if manifest.is_absolute() {
        return config::find(manifest.parent()?).ok();
    }
    // The manifest reader reports missing files.
    let found = config::find(&here.join(manifest).parent()?.canonicalize().ok()?).ok()?;
    let here = here.canonicalize().ok()?;
    Some(match found.strip_prefix(&here) {
        Ok(below) => below.to_owned(),
        Err(_) => relative_to(&here, &found),
    })
}

fn each_once(files: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    // The reader reports missing files.
    files.filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path::shown(path)))).collect()
}

/// Rejects missing include folders, which NVRTC ignores.
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
            .help("pass a manifest, or omit the argument to use the manifests in `cubinder.toml`"));
    }
    if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
        return Err(Diagnostic::error(format!("`{name}` is CUDA source, expected a manifest"))
            .help("pass the TOML file that has this source in `[[launches]]`"));
    }
    source::text(path).map_or(Ok(()), |source| file_kind::expect(Kind::Manifest, path, &source.text))
}

fn relative_to(here: &Path, file: &Path) -> PathBuf {
    let above = here.ancestors().position(|folder| Some(folder) == file.parent());
    let (Some(above), Some(name)) = (above, file.file_name()) else { return file.to_owned() };
    let mut path: PathBuf = std::iter::repeat_n("..", above).collect();
    path.push(name);
    path
}

#[cfg(test)]
mod tests;
