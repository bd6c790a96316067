//! Finds plugins and nodes in untrusted manifests, libraries and engines, without loading their code.

use std::path::Path;
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_launch::native::is_native;
use cubinder_model::container::{self, Container, LocatedContainer};
use cubinder_model::validate::{validate_attributes, validate_ranks};
use cubinder_model::{Bundle, CodeObject, NodeReference, Plugin};

use crate::diagnostic::{Diagnostic, Source, suggest};
use crate::errors::{NoEngine, NoSuchNode, NoSuchPlugin, SeveralPlugins};
use crate::file_kind::{self, Kind};
use crate::foreign;
use crate::manifest::Route;
use crate::resolve::{self, Resolved};
use crate::source;
use crate::tables;

/// File with its evaluable contents.
#[derive(Debug, Clone)]
pub struct Subjects {
    /// File kind.
    pub kind: &'static str,
    /// Plugins or nodes, in the file's order.
    pub list: Vec<Subject>,
    /// Plugins of an engine's libraries.
    pub carried: Vec<Subject>,
    /// About the file.
    pub warnings: Vec<Diagnostic>,
}

impl Subjects {
    fn not_empty(self, name: &str) -> Result<Subjects, Vec<Diagnostic>> {
        if !self.list.is_empty() {
            return Ok(self);
        }
        let error = Diagnostic::error(format!("cannot evaluate `{name}`"))
            .note("expected a manifest (`*.toml`), a plugin library with its code, a bundle or an engine with Cubinder nodes");
        Err(std::iter::once(error).chain(self.warnings).collect())
    }
}

/// Plugin, or a node of it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Model.
    pub plugin: Plugin,
    /// Origin.
    pub origin: Origin,
    /// Engine node's number, from 1, and number of nodes.
    pub number: Option<(usize, usize)>,
    /// Node attributes; `None` for a plugin.
    pub attributes: Option<Vec<Value>>,
    /// Input ranks of an engine's node, if known.
    pub input_ranks: Option<Vec<u8>>,
    /// Overrides the manifest's route.
    pub route: Option<Route>,
}

impl Subject {
    /// Creates a subject outside of engines.
    #[must_use]
    pub fn new(plugin: Plugin, origin: Origin) -> Subject {
        Subject { plugin, origin, number: None, attributes: None, input_ranks: None, route: None }
    }

    /// Returns whether the route is native.
    #[must_use]
    pub fn is_native(&self) -> bool {
        match &self.origin {
            Origin::Manifest(resolved) => {
                self.route.unwrap_or_else(|| resolved.manifest.compile.route()) == Route::Native
            }
            Origin::Compiled(_) => is_native(&self.plugin),
        }
    }
}

/// Origin of a plugin.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Manifest, not compiled.
    Manifest(Arc<Resolved>),
    /// Library or engine, with code.
    Compiled(Arc<[CodeObject]>),
}

/// Chooses among a file's plugins and nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// Plugin name, with or without namespace.
    pub plugin: Option<String>,
    /// Node number, from 1.
    pub node: Option<usize>,
}

/// Reads a file with at least one plugin.
pub fn open(path: &Path) -> Result<Subjects, Vec<Diagnostic>> {
    read_subjects(path)?.not_empty(&path.display().to_string())
}

/// Reads a file like [`open`], but allows empty ones.
pub fn read_subjects(path: &Path) -> Result<Subjects, Vec<Diagnostic>> {
    let cannot = |why: &dyn std::fmt::Display| {
        vec![Diagnostic::error(format!("cannot read `{}`: {why}", path.display()))]
    };
    source::open_file(path).map_err(|error| cannot(&error))?;
    if path.extension().is_some_and(|extension| extension == "toml") {
        let source = source::text(path)?;
        file_kind::expect(Kind::Manifest, path, &source.text).map_err(|error| vec![error])?;
        let mut resolved = resolve::compile(&source)?;
        let mut errors = tables::read(&mut resolved);
        errors.extend(foreign::read(&mut resolved));
        return if errors.is_empty() { Ok(of_manifest(resolved)) } else { Err(errors) };
    }
    let bytes = source::read(path, source::LARGEST_BINARY).map_err(|error| cannot(&error))?;
    Ok(contents(&path.display().to_string(), &bytes))
}

/// Reads a manifest, without data files of tables.
pub fn manifest(source: &Arc<Source>) -> Result<Subjects, Vec<Diagnostic>> {
    resolve::compile(source).map(of_manifest)
}

fn of_manifest(resolved: Resolved) -> Subjects {
    let warnings = resolved.warnings.clone();
    let plugin = resolved.draft.plugin.clone();
    let origin = Origin::Manifest(Arc::new(resolved));
    Subjects { kind: "manifest", list: vec![Subject::new(plugin, origin)], carried: Vec::new(), warnings }
}

/// Reads a library, bundle or engine.
pub fn compiled(name: &str, bytes: &[u8]) -> Result<Subjects, Vec<Diagnostic>> {
    contents(name, bytes).not_empty(name)
}

fn contents(name: &str, bytes: &[u8]) -> Subjects {
    let mut all: Vec<LocatedContainer> = Vec::new();
    let mut warnings = Vec::new();
    for (offset, found) in container::scan(bytes) {
        match found {
            // Identical containers are one node.
            Ok(found) if all.iter().any(|known| known.digest == found.digest) => {}
            Ok(found) => all.push(found),
            Err(error) => warnings.push(Diagnostic::warning(format!(
                "damaged container at byte {offset} of `{name}`: {error}"
            ))),
        }
    }
    let nodes = nodes(name, &all, &mut warnings);
    let is_engine = all.iter().any(|found| !matches!(found.container, Container::Bundle(_)));
    let (kind, list, carried) = match bytes.starts_with(&container::MAGIC) {
        _ if is_engine => ("engine", nodes, plugins(&all)),
        true => ("bundle", plugins(&all), Vec::new()),
        false => ("plugin library", plugins(&all), Vec::new()),
    };
    Subjects { kind, list, carried, warnings }
}

fn plugins(all: &[LocatedContainer]) -> Vec<Subject> {
    let mut list = Vec::new();
    for found in all {
        let Container::Bundle(bundle) = &found.container else { continue };
        let code: Arc<[CodeObject]> = bundle.code.clone().into();
        let origin = || Origin::Compiled(Arc::clone(&code));
        list.extend(bundle.plugins.iter().map(|plugin| Subject::new(plugin.clone(), origin())));
    }
    list
}

fn nodes(name: &str, all: &[LocatedContainer], warnings: &mut Vec<Diagnostic>) -> Vec<Subject> {
    let is_node = |found: &&LocatedContainer| !matches!(found.container, Container::Bundle(_));
    let count = all.iter().filter(is_node).count();
    let mut list = Vec::new();
    for (index, found) in all.iter().filter(is_node).enumerate() {
        match node(found, all) {
            Ok(subject) => list.push(Subject { number: Some((index + 1, count)), ..subject }),
            Err(why) => warnings.push(Diagnostic::warning(format!(
                "cannot evaluate node {} of {count} in `{name}`: {why}",
                index + 1
            ))),
        }
    }
    list
}

fn node(found: &LocatedContainer, all: &[LocatedContainer]) -> Result<Subject, String> {
    match &found.container {
        Container::Bundle(_) => Err("it is a bundle".to_owned()),
        Container::Node(node) => {
            Ok(of_node(node.plugin.clone(), &node.code, &node.attributes, node.input_ranks.as_ref()))
        }
        Container::NodeReference(reference) => {
            let (plugin, bundle) = referred_plugin(reference, all)?.ok_or_else(|| {
                format!("its code is in bundle {}, which is not in this file", reference.bundle)
            })?;
            validate_ranks(&plugin, reference.input_ranks.as_deref())?;
            Ok(of_node(plugin, &bundle.code, &reference.attributes, reference.input_ranks.as_ref()))
        }
    }
}

fn of_node(plugin: Plugin, code: &[CodeObject], attributes: &[Value], ranks: Option<&Vec<u8>>) -> Subject {
    let (attributes, input_ranks) = (Some(attributes.to_vec()), ranks.cloned());
    Subject { attributes, input_ranks, ..Subject::new(plugin, Origin::Compiled(code.into())) }
}

/// Returns a reference's plugin, with its types' variants, and its bundle, if present.
pub fn referred_plugin<'a>(
    reference: &NodeReference,
    all: &'a [LocatedContainer],
) -> Result<Option<(Plugin, &'a Bundle)>, String> {
    let bundle = all.iter().find_map(|found| match &found.container {
        Container::Bundle(bundle) if found.digest.shortened() == reference.bundle => Some(bundle),
        _ => None,
    });
    let Some(bundle) = bundle else { return Ok(None) };
    let plugin = bundle.plugins.get(reference.plugin as usize).ok_or_else(|| {
        format!("it refers to plugin {}, but the bundle has {}", reference.plugin, bundle.plugins.len())
    })?;
    validate_attributes(plugin, &reference.attributes)?;
    let mut plugin = plugin.clone();
    plugin.keep_row(reference.row)?;
    Ok(Some((plugin, bundle)))
}

/// Returns the chosen subject; fails if absent or ambiguous.
pub fn choose(subjects: Vec<Subject>, choice: &Choice) -> Result<Vec<Subject>, Diagnostic> {
    let full = |subject: &Subject| subject.plugin.full_name();
    let mut names: Vec<String> = Vec::new();
    for name in subjects.iter().map(full) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let list = names.join("`, `");
    let mut chosen = subjects;
    if let Some(wanted) = &choice.plugin {
        chosen.retain(|subject| subject.plugin.name == *wanted || full(subject) == *wanted);
        if chosen.is_empty() {
            let short = names.iter().map(|name| name.rsplit("::").next().unwrap_or(name));
            let near = suggest(wanted, names.iter().map(String::as_str).chain(short));
            return Err(NoSuchPlugin { wanted, list, near }.into());
        }
    }
    if let Some(wanted) = choice.node {
        let number = |subject: &Subject| Some(format!("{} ({})", subject.number?.0, full(subject)));
        let numbers: Vec<String> = chosen.iter().filter_map(number).collect();
        if numbers.is_empty() {
            return Err(NoEngine {}.into());
        }
        chosen.retain(|subject| subject.number.is_some_and(|(number, _)| number == wanted));
        if chosen.is_empty() {
            return Err(NoSuchNode { wanted, list: numbers.join(", ") }.into());
        }
    }
    if chosen.len() > 1 && chosen.iter().all(|subject| subject.number.is_none()) {
        let first = names.first().map_or("NAME", String::as_str);
        return Err(SeveralPlugins { list, first }.into());
    }
    Ok(chosen)
}
