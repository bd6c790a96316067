//! Reads `cubinder.toml` ([`read`], [`load`]), and finds it ([`find`]) and its manifests
//! ([`Config::manifest_paths`]). Never compiles.

mod remote;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::Target;
use serde_json::json;

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::errors::{NoConfig, UnmatchedPattern};
use crate::file_kind::{self, Kind};
use crate::library_name::check_name;
use crate::manifest::Located;
use crate::manifest::description::Kinds;
use crate::manifest::errors::{BadPattern, EmptyArray, EmptyPath, NoLibrary, OutsideOfLibrary};
use crate::manifest::keys::parse_targets;
use crate::manifest::toml_reader::{Entry, Section, TomlReader};
use crate::manifest::value_type::{Debug, Declaration, Row, TableOf, table, value_types};
use crate::nvrtc_option::check_options;
use crate::{rules, source};

pub use remote::{Endpoint, REMOTE, RemoteConfig, WORKERS, WorkerPool};

/// The file's name.
pub const FILE_NAME: &str = "cubinder.toml";

table! {
    /// The configuration of one library.
    struct ConfigFile = pub FILE: "" as "the file" {
        /// The library.
        library: TableOf<Config> = Required;
        /// The shared cache.
        remote: TableOf<RemoteConfig> = Optional;
    }

    /// The configuration of one library. Paths are relative to the file's folder.
    struct Library = pub LIBRARY: "library" as "[library]" {
        /// The library is `lib<name>.so`. Allowed: ASCII letters, digits, `_`, `-`, `.` and `+`, starting with a
        /// letter, a digit or `_`; not a file name such as `libsample.so`, and not `cubinder`.
        name: LibraryName = Required, "\"sample\"";
        /// Paths or glob patterns of manifests; each must match. The library lists plugins in this order, and
        /// plugins of one pattern by file name.
        manifests: ManifestPatterns = Default("[\"manifests/*.toml\"]"), "[\"ops/*.toml\", \"extra.toml\"]";
        /// Architectures, each once: `sm_89` for machine code, `compute_80` for PTX.
        targets: Targets = Required, "[\"sm_89\", \"compute_80\"]";
        /// Existing folders for `#include`, searched after those of the command line and of manifests.
        include: Folders = Default("[]"), "[\"include\"]";
        /// NVRTC options. Options of manifests and of the command line follow and override them.
        options: Options = Default("[]"), "[\"--use_fast_math\"]";
        /// Adds line information for profilers.
        debug: Debug = Optional, "\"line\"";
        /// Paths or glob patterns of [tuning files](tuning.md). A pattern may match nothing.
        tuning: Patterns = Default("[]"), "[\"tuning/*.toml\"]";
        /// The folder for libraries, created if missing.
        output: Folder = Default("\"build\""), "\"build\"";
    }
}

value_types! {
    /// Library name.
    LibraryName -> String: "string", json!({ "type": "string" }), library_name;
    /// Manifest patterns, at least one.
    ManifestPatterns -> Vec<Located<String>>: "array of strings", strings(), manifest_patterns;
    /// Patterns of paths.
    Patterns -> Vec<Located<String>>: "array of strings", strings(), patterns;
    /// Distinct targets.
    Targets -> Vec<Located<Target>>: "array of strings", strings(), targets;
    /// Folders.
    Folders -> Vec<Located<String>>: "array of strings", strings(), TomlReader::strings;
    /// NVRTC options.
    Options -> Vec<String>: "array of strings", strings(), options;
    /// Folder.
    Folder -> String: "string", json!({ "type": "string" }), output;
}

fn strings() -> serde_json::Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// Configuration of one library.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// File text.
    pub source: Arc<Source>,
    /// Base of relative paths.
    pub folder: PathBuf,
    /// Library name: `lib<name>.so`.
    pub library: String,
    /// Patterns of manifest paths, as written.
    pub manifests: Vec<Located<String>>,
    /// Distinct targets.
    pub targets: Vec<Located<Target>>,
    /// Folders for `#include`, joined to the file's folder.
    pub include: Vec<Located<PathBuf>>,
    /// Additional NVRTC options.
    pub options: Vec<String>,
    /// Whether code includes line information.
    pub line_information: bool,
    /// Patterns of tuning files, as written.
    pub tuning: Vec<Located<String>>,
    /// Output folder, joined to the file's folder.
    pub output: PathBuf,
    /// The shared cache, if any.
    pub remote: Option<RemoteConfig>,
}

/// Returns a pattern for exactly this path.
#[must_use]
pub fn escaped(path: &Path) -> String {
    glob::Pattern::escape(&path.to_string_lossy())
}

/// Finds `cubinder.toml` in `start` or the nearest parent folder.
pub fn find(start: &Path) -> Result<PathBuf, Vec<Diagnostic>> {
    let found = start.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file());
    found.ok_or_else(|| NoConfig { name: FILE_NAME, folder: start.display().to_string() }.into())
}

/// Reads a file; reports all errors.
pub fn load(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let source = source::text(path)?;
    file_kind::expect(Kind::Config, path, &source.text).map_err(|error| vec![error])?;
    read(&source)
}

/// Parses a configuration; reports all errors.
pub fn read(source: &Arc<Source>) -> Result<Config, Vec<Diagnostic>> {
    let (mut toml, document) = TomlReader::parse(source, Some(&FILE));
    let config = document.and_then(|document| {
        let mut root = toml.root(document.get_ref(), &FILE);
        if !root.has("library") {
            toml.report(NoLibrary { place: toml.span(0..0) });
        }
        root.allow_missing();
        report_root_keys(&mut toml, &mut root);
        let ConfigFile { library, remote } = Row::read_all(&mut toml, root);
        Some(Config { remote, ..library? })
    });
    let diagnostics = toml.into_diagnostics();
    match config {
        Some(config) if diagnostics.is_empty() => Ok(config),
        _ => Err(diagnostics),
    }
}

fn report_root_keys(toml: &mut TomlReader, root: &mut Section<'_>) {
    for entry in root.entries().into_iter().filter(|entry| LIBRARY.key(&entry.key).is_some()) {
        toml.report(OutsideOfLibrary { key: entry.key.clone(), place: toml.span(entry.key_range) });
        root.set_reported(&entry.key);
    }
}

impl Declaration for Config {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&LIBRARY], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<Config> {
        let source = Arc::clone(&toml.source);
        let folder = source.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let row: Library<'_> = Row::read_all(toml, section);
        let all = || vec![Located { value: "manifests/*.toml".to_owned(), range: name.range }];
        let include = row.include.unwrap_or_default().into_iter();
        Some(Config {
            library: row.name?,
            manifests: row.manifests.unwrap_or_else(all),
            targets: row.targets?,
            include: include
                .map(|path| Located { value: folder.join(path.value), range: path.range })
                .collect(),
            options: row.options.unwrap_or_default(),
            line_information: row.debug.unwrap_or_default(),
            tuning: row.tuning.unwrap_or_default(),
            output: folder.join(row.output.unwrap_or_else(|| "build".to_owned())),
            remote: None,
            folder,
            source,
        })
    }
}

fn library_name(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let name = toml.string(entry)?;
    if let Err(error) = check_name(&name.value) {
        toml.report(error.code(rules::BAD_NAME).at(toml.span(name.range), "this name"));
        return None;
    }
    Some(name.value)
}

fn manifest_patterns(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let patterns = patterns(toml, entry)?;
    if patterns.is_empty() {
        let (message, label) = ("`manifests` is empty", "expected at least one path or pattern");
        let place = toml.span(entry);
        toml.report(EmptyArray { message: message.to_owned(), label, place, note: None });
    }
    Some(patterns)
}

fn patterns(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let patterns = toml.strings(entry)?;
    for pattern in &patterns {
        if let Err(error) = glob::Pattern::new(&pattern.value) {
            let place = toml.span(pattern);
            toml.report(BadPattern { pattern: pattern.value.clone(), why: error.msg, place });
        }
    }
    Some(patterns)
}

fn targets(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<Target>>> {
    let names = toml.strings(entry)?;
    if names.is_empty() {
        let label = "expected at least one target, such as `\"sm_80\"`";
        let (message, place) = ("`targets` is empty".to_owned(), toml.span(entry));
        toml.report(EmptyArray { message, label, place, note: None });
    }
    let targets = parse_targets(toml, names);
    Some(toml.each_once(targets, |target| format!("duplicate target `{target}`")))
}

fn options(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<String>> {
    let options = toml.strings(entry)?;
    for (index, refused) in check_options(options.iter().map(|option| option.value.as_str())) {
        let range = options.get(index).map_or(0..0, |option| option.range.clone());
        toml.report(refused.at(toml.span(range), "remove this"));
    }
    Some(options.into_iter().map(|option| option.value).collect())
}

fn output(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<String> {
    let output = toml.string(entry)?;
    if output.value.is_empty() {
        let (key, what) = (entry.key.clone(), "a folder");
        toml.report(EmptyPath { key, what, place: toml.span(&output), help: None });
    }
    Some(output.value)
}

impl Config {
    /// Returns matching manifests once; fails for a pattern without match.
    pub fn manifest_paths(&self) -> Result<Vec<PathBuf>, Vec<Diagnostic>> {
        let (paths, wrong) = self.paths(&self.manifests, "manifest", |_| false);
        if wrong.is_empty() { Ok(paths) } else { Err(wrong) }
    }

    /// Returns tuning files, and errors about unreadable paths.
    #[must_use]
    pub fn tuning_paths(&self) -> (Vec<PathBuf>, Vec<Diagnostic>) {
        self.paths(&self.tuning, "tuning file", |pattern| pattern.contains(['*', '?', '[']))
    }

    fn paths(
        &self,
        patterns: &[Located<String>],
        what: &str,
        may_be_empty: impl Fn(&str) -> bool,
    ) -> (Vec<PathBuf>, Vec<Diagnostic>) {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut wrong = Vec::new();
        for pattern in patterns {
            match self.expand(pattern, what) {
                Ok(found) if found.is_empty() && !may_be_empty(&pattern.value) => {
                    wrong.push(self.matches_nothing(pattern, what));
                }
                Ok(found) => {
                    for path in found {
                        if !paths.contains(&path) {
                            paths.push(path);
                        }
                    }
                }
                Err(diagnostic) => wrong.push(*diagnostic),
            }
        }
        (paths, wrong)
    }

    fn expand(&self, pattern: &Located<String>, what: &str) -> Result<Vec<PathBuf>, Box<Diagnostic>> {
        let span = Span::new(&self.source, pattern.range.clone());
        let refuse = |message: String| Box::new(Diagnostic::error(message).at(span.clone(), ""));
        let Some(folder) = self.folder.to_str() else {
            let folder = self.folder.display();
            let why = format!("cannot search for a {what} in `{folder}`: the folder's name is not UTF-8");
            return Err(Box::new(refuse(why).help("run `cubinder` in that folder, without `--config`")));
        };
        let folder = glob::Pattern::escape(folder);
        let full = Path::new(&folder).join(&pattern.value);
        let matches = glob::glob(&full.to_string_lossy())
            .map_err(|error| refuse(format!("invalid glob pattern `{}`: {}", pattern.value, error.msg)))?;
        let mut paths = Vec::new();
        for path in matches {
            let path = path.map_err(|error| refuse(format!("cannot search for a {what}: {error}")))?;
            if path.is_file() {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    fn matches_nothing(&self, pattern: &Located<String>, what: &str) -> Diagnostic {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let (folder, place) = (folder.display().to_string(), Span::new(&self.source, pattern.range.clone()));
        UnmatchedPattern { what, pattern: &pattern.value, place, folder }.into()
    }
}

#[cfg(test)]
mod tests;
