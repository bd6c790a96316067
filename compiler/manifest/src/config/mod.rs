//! `cubinder.toml`: which manifests, which targets, which options.
//!
//! Owns the file's form ([`read`]) and the search for it and for the manifests it names ([`find`], [`load`],
//! [`Config::manifest_paths`]).
//! Never compiles anything.
//!
//! ```toml
//! [library]
//! name = "sample"                              # lib<name>.so
//! manifests = ["manifests/*.toml"]             # the default
//! targets = ["sm_80", "sm_90", "compute_80"]
//! include = ["include"]                        # folders for #include
//! options = ["--use_fast_math"]                # more options for NVRTC
//! debug = "line"                               # line information in the code
//! tuning = ["tuning/*.toml"]                   # which variants are fast on which GPUs
//! output = "build"                             # the default
//! ```
//!
//! Paths are relative to the file's folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::Target;

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::file_kind::{self, Kind};
use crate::library_name::check_name;
use crate::manifest::Located;
use crate::manifest::form::{Entry, Form, Section};
use crate::nvrtc_option::check_options;
use crate::{rules, source};

/// What the file is called.
pub const FILE_NAME: &str = "cubinder.toml";

/// The keys of `[library]`.
const KEYS: [&str; 8] = ["name", "manifests", "targets", "include", "options", "debug", "tuning", "output"];

/// What one library is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file.
    pub source: Arc<Source>,
    /// Its folder, which its paths are relative to.
    pub folder: PathBuf,
    /// The library's name: `lib<name>.so`.
    pub library: String,
    /// Patterns of manifest paths, as written.
    pub manifests: Vec<Located<String>>,
    /// What to compile for; no two are equal.
    pub targets: Vec<Located<Target>>,
    /// Folders for `#include`, joined to the file's folder.
    pub include: Vec<Located<PathBuf>>,
    /// More options for NVRTC.
    pub options: Vec<String>,
    /// Whether code has line information.
    pub line_information: bool,
    /// Patterns of files of tuning, as written.
    pub tuning: Vec<Located<String>>,
    /// The folder for what is built, joined to the file's folder.
    pub output: PathBuf,
}

/// The pattern that matches a path alone.
#[must_use]
pub fn escaped(path: &Path) -> String {
    glob::Pattern::escape(&path.to_string_lossy())
}

/// The nearest `cubinder.toml`: in `start` or a folder above it.
///
/// # Errors
/// When there is none.
pub fn find(start: &Path) -> Result<PathBuf, Vec<Diagnostic>> {
    let found = start.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let diagnostic =
            Diagnostic::error(format!("no `{FILE_NAME}` in `{}` or a folder above it", start.display()))
                .help(format!("write one, or name it: `--config path/to/{FILE_NAME}`"));
        vec![diagnostic]
    })
}

/// Reads the file at `path`.
///
/// # Errors
/// When it cannot be read or is wrong: every mistake.
pub fn load(path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let source = source::text(path)?;
    file_kind::expect(Kind::Config, path, &source.text).map_err(|error| vec![error])?;
    read(&source)
}

/// Reads a configuration from its text.
///
/// # Errors
/// Every mistake.
pub fn read(source: &Arc<Source>) -> Result<Config, Vec<Diagnostic>> {
    let mut form = Form::new(source);
    let document = form.parse();
    let config = document.and_then(|document| {
        let mut root = Section::root(document.get_ref());
        let library = root.take("library");
        if library.is_none() {
            let diagnostic = Diagnostic::error("the file has no `[library]` table")
                .code(rules::MISSING_KEY)
                .at(form.span(0..0), "expected `[library]` with `name` and `targets`");
            form.report(diagnostic);
        }
        let section = library.and_then(|entry| form.table(&entry, "[library]".to_owned()));
        let config = section.and_then(|section| library_section(&mut form, section, source));
        finish_root(&mut form, &root);
        config
    });
    let diagnostics = form.into_diagnostics();
    match config {
        Some(config) if diagnostics.is_empty() => Ok(config),
        _ => Err(diagnostics),
    }
}

/// Reports unknown keys; one that belongs into `[library]` is told so.
fn finish_root(form: &mut Form<'_>, root: &Section<'_>) {
    for entry in root.entries() {
        if KEYS.contains(&entry.key.as_str()) {
            let diagnostic = Diagnostic::error(format!("`{}` stands outside of `[library]`", entry.key))
                .code(rules::UNKNOWN_KEY)
                .at(form.span(entry.key_range), "this key belongs into that table")
                .help("move it below the line `[library]`");
            form.report(diagnostic);
        }
    }
    form.finish_except(root, &KEYS);
}

fn library_section(form: &mut Form<'_>, mut section: Section<'_>, source: &Arc<Source>) -> Option<Config> {
    let folder = source.path.parent().map(Path::to_path_buf).unwrap_or_default();
    let name = form.require(&mut section, "name", "\"...\"").and_then(|entry| library_name(form, &entry));
    let manifests = match section.take("manifests") {
        Some(entry) => manifest_patterns(form, &entry),
        None => Some(vec![Located { value: "manifests/*.toml".to_owned(), range: section.range.clone() }]),
    };
    let targets = form
        .require(&mut section, "targets", "[\"sm_80\", \"compute_80\"]")
        .and_then(|entry| targets(form, &entry));
    let include = section.take("include").and_then(|entry| form.strings(&entry)).unwrap_or_default();
    let options = section.take("options").map(|entry| options(form, &entry)).unwrap_or_default();
    let line_information =
        section.take("debug").and_then(|entry| form.line_information(&entry)).unwrap_or_default();
    let tuning = section.take("tuning").and_then(|entry| patterns(form, &entry)).unwrap_or_default();
    let output = section.take("output").and_then(|entry| output(form, &entry));
    form.finish(&section);
    Some(Config {
        source: Arc::clone(source),
        library: name?,
        manifests: manifests?,
        targets: targets?,
        include: include
            .into_iter()
            .map(|path| Located { value: folder.join(path.value), range: path.range })
            .collect(),
        options,
        line_information,
        tuning,
        output: folder.join(output.unwrap_or_else(|| "build".to_owned())),
        folder,
    })
}

fn library_name(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<String> {
    let name = form.string(entry)?;
    if let Err(error) = check_name(&name.value) {
        form.report(error.code(rules::BAD_NAME).at(form.span(name.range), "this name"));
        return None;
    }
    Some(name.value)
}

fn manifest_patterns(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let patterns = patterns(form, entry)?;
    if patterns.is_empty() {
        let diagnostic = Diagnostic::error("`manifests` names no manifest")
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), "expected at least one path or pattern");
        form.report(diagnostic);
    }
    Some(patterns)
}

fn patterns(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    let patterns = form.strings(entry)?;
    for pattern in &patterns {
        if let Err(error) = glob::Pattern::new(&pattern.value) {
            let diagnostic = Diagnostic::error(format!("`{}` is no pattern of paths", pattern.value))
                .code(rules::WRONG_VALUE)
                .at(form.span(pattern.range.clone()), error.msg.to_owned());
            form.report(diagnostic);
        }
    }
    Some(patterns)
}

fn targets(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Located<Target>>> {
    let names = form.strings(entry)?;
    if names.is_empty() {
        let diagnostic = Diagnostic::error("`targets` is empty")
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), "expected at least one target, such as `\"sm_80\"`");
        form.report(diagnostic);
    }
    let mut targets: Vec<Located<Target>> = Vec::new();
    for name in names {
        match name.value.parse::<Target>() {
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string())
                    .code(rules::WRONG_VALUE)
                    .at(form.span(name.range), "this is no target");
                form.report(diagnostic);
            }
            Ok(target) => match targets.iter().find(|known| known.value == target) {
                Some(first) => {
                    let diagnostic = Diagnostic::error(format!("the target `{target}` is listed twice"))
                        .code(rules::DECLARED_TWICE)
                        .at(form.span(name.range), "the second time")
                        .related(form.span(first.range.clone()), "the first time");
                    form.report(diagnostic);
                }
                None => targets.push(Located { value: target, range: name.range }),
            },
        }
    }
    Some(targets)
}

fn options(form: &mut Form<'_>, entry: &Entry<'_>) -> Vec<String> {
    let options = form.strings(entry).unwrap_or_default();
    for (index, refused) in check_options(options.iter().map(|option| option.value.as_str())) {
        let range = options.get(index).map_or(0..0, |option| option.range.clone());
        form.report(refused.at(form.span(range), "leave it out"));
    }
    options.into_iter().map(|option| option.value).collect()
}

fn output(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<String> {
    let output = form.string(entry)?;
    if output.value.is_empty() {
        let diagnostic = Diagnostic::error("`output` must name a folder")
            .code(rules::WRONG_VALUE)
            .at(form.span(output.range.clone()), "this is empty");
        form.report(diagnostic);
    }
    Some(output.value)
}

impl Config {
    /// The manifests that the patterns name, each once, pattern by pattern and in each by name.
    ///
    /// # Errors
    /// When a pattern matches no file or a folder cannot be read.
    pub fn manifest_paths(&self) -> Result<Vec<PathBuf>, Vec<Diagnostic>> {
        let (paths, wrong) = self.paths(&self.manifests, "manifest", |_| false);
        if wrong.is_empty() { Ok(paths) } else { Err(wrong) }
    }

    /// The files of tuning that the patterns name, likewise, and what is wrong with the patterns: that a folder cannot be read, or that a path
    /// is of no file. A pattern may match nothing, because nothing may have been measured yet.
    #[must_use]
    pub fn tuning_paths(&self) -> (Vec<PathBuf>, Vec<Diagnostic>) {
        self.paths(&self.tuning, "file of tuning", |pattern| pattern.contains(['*', '?', '[']))
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
            let why = format!("cannot look for a {what} in `{folder}`: the name of the folder is not UTF-8");
            return Err(Box::new(refuse(why).help("run `cubinder` in that folder, without `--config`")));
        };
        // The folder is a place, not a pattern: its own brackets and stars mean themselves.
        let folder = glob::Pattern::escape(folder);
        let full = Path::new(&folder).join(&pattern.value);
        let matches = glob::glob(&full.to_string_lossy())
            .map_err(|error| refuse(format!("`{}` is no pattern of paths: {}", pattern.value, error.msg)))?;
        let mut paths = Vec::new();
        for path in matches {
            let path = path.map_err(|error| refuse(format!("cannot look for a {what}: {error}")))?;
            if path.is_file() {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    fn matches_nothing(&self, pattern: &Located<String>, what: &str) -> Diagnostic {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        Diagnostic::error(format!("no {what} matches `{}`", pattern.value))
            .at(Span::new(&self.source, pattern.range.clone()), "nothing was found")
            .note(format!("paths are relative to `{}`", folder.display()))
    }
}

#[cfg(test)]
mod tests;
