//! Prints manifests, or their errors, without NVRTC.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cubinder_analysis::check::check;
use cubinder_analysis::kernel_text;
use cubinder_compiler::project::{Plan, Project, ProjectOptions};
use cubinder_manifest::resolve::{PluginDraft, Resolved, compile};
use cubinder_manifest::tables;
use cubinder_node::tuning;
use cubinder_nvrtc::codegen;
use cubinder_source::diagnostic::{Diagnostic, Label, Severity, Sink, Source, has_errors};
use cubinder_source::source;
use toml::de::DeTable;

use super::damage::Damage;

/// For manifests without targets.
pub(crate) const CONFIG: &str = "[library]\nname = \"mutants\"\ntargets = [\"sm_89\"]\n";

const NVRTC: (i32, i32) = (13, 0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Print {
    /// See `the_bundle_holds_the_model`.
    pub(crate) model: String,
    pub(crate) code: String,
    pub(crate) plan: String,
}

pub(crate) struct Subject {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    project: Project,
    checked: OnceLock<String>,
}

impl Subject {
    pub(crate) fn new(path: &Path, config: &Path) -> Subject {
        let asked = ProjectOptions {
            manifests: vec![path.to_owned()],
            config: Some(config.to_owned()),
            ..ProjectOptions::default()
        };
        let project = Project::open(asked, Path::new("/")).expect("a project");
        let text = source::text(path).expect("a text").text.clone();
        Subject { path: path.to_owned(), text, project, checked: OnceLock::new() }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).expect("a plain name")
    }

    pub(crate) fn print(&self, text: &str) -> Result<Print, Vec<Diagnostic>> {
        let mut resolved = compile(&Source::new(&self.path, text))?;
        let unread = unread(&mut resolved);
        if !unread.is_empty() {
            return Err(unread);
        }
        let plan = self.plan(&resolved)?;
        let plan_print = format!("{:?}", PlanPrint::of(&plan));
        let essence = format!("{} {plan_print}", essence(&resolved.draft));
        if self.checked.get() != Some(&essence) {
            let targets: Vec<_> = plan.targets.iter().map(|planned| planned.target).collect();
            let mut found = check(&resolved, &targets, plan.route.route).diagnostics;
            let options = &plan.settings.options;
            found.extend(kernel_text::check(&resolved, &targets, options, &source::text).diagnostics);
            found.extend(plan.check_driver(NVRTC).err());
            if has_errors(&found) {
                return Err(found);
            }
            self.checked.get_or_init(|| essence);
        }
        Ok(Print { model: model(&resolved.draft), code: self.code(&resolved), plan: plan_print })
    }

    pub(crate) fn said(&self) -> Vec<Diagnostic> {
        let mut resolved = match compile(&Source::new(&self.path, &*self.text)) {
            Ok(resolved) => resolved,
            Err(found) => return found,
        };
        let unread = unread(&mut resolved);
        if !unread.is_empty() {
            return unread;
        }
        let plan = match self.plan(&resolved) {
            Ok(plan) => plan,
            Err(found) => return found,
        };
        let mut found = check(&resolved, &plan.targets(), plan.route.route).diagnostics;
        let options = &plan.settings.options;
        found.extend(kernel_text::check(&resolved, &plan.targets(), options, &source::text).diagnostics);
        found.extend(resolved.warnings);
        found
    }

    fn plan(&self, resolved: &Resolved) -> Result<Plan, Vec<Diagnostic>> {
        let errors = Sink::default();
        let plan = self.project.plan(resolved, true, &errors);
        errors.into_result().map(|()| plan)
    }

    fn code(&self, resolved: &Resolved) -> String {
        let mut units = Vec::new();
        for unit in &resolved.draft.units {
            if let Some(foreign) = &unit.foreign {
                units.push(format!("{foreign:?}"));
                continue;
            }
            let source = source::text(&unit.source).expect("it was read before");
            let name = codegen::display_name(&unit.source, &self.project.root);
            let unit = codegen::translation_unit(unit, source, &name, None);
            units.push(format!(
                "{} {} {} {:?} {}",
                unit.name, unit.kernel, unit.prelude.text, unit.folder, unit.text
            ));
        }
        units.join("\n")
    }
}

fn unread(resolved: &mut Resolved) -> Vec<Diagnostic> {
    let mut unread = tables::read(resolved);
    unread.extend(tuning::cases(resolved).and_then(Result::err).into_iter().flatten());
    unread
}

/// Without descriptions. Equal drafts are checked once.
fn essence(draft: &PluginDraft) -> String {
    let mut draft = draft.clone();
    let plugin = &mut draft.plugin;
    plugin.summary.clear();
    plugin.require.iter_mut().for_each(|rule| rule.message.clear());
    plugin.attributes.iter_mut().for_each(|attribute| attribute.doc.clear());
    plugin.inputs.iter_mut().for_each(|input| input.doc.clear());
    plugin.outputs.iter_mut().for_each(|output| output.doc.clear());
    let units = draft.units.iter();
    let units = units.map(|unit| (&unit.source, &unit.kernel, &unit.types, &unit.formats, &unit.constants));
    format!("{} {:?}", model(&draft), units.collect::<Vec<_>>())
}

/// Arguments by name; the kernel decides their order.
pub(crate) fn model(draft: &PluginDraft) -> String {
    let args = |unit: &cubinder_manifest::resolve::Unit| -> BTreeMap<String, String> {
        unit.args.iter().map(|arg| (arg.name.clone(), format!("{:?}", arg.value))).collect()
    };
    let args: Vec<_> = draft.units.iter().map(args).collect();
    format!("{:?} {args:?}", draft.plugin)
}

#[derive(Debug)]
#[allow(dead_code, reason = "it is compared as a text")]
struct PlanPrint {
    targets: Vec<String>,
    include: Vec<PathBuf>,
    options: Vec<String>,
    min_driver: Option<[u16; 3]>,
}

impl PlanPrint {
    fn of(plan: &Plan) -> PlanPrint {
        PlanPrint {
            targets: plan.targets.iter().map(|planned| planned.target.to_string()).collect(),
            include: plan.settings.include.clone(),
            options: plan.settings.options.clone(),
            min_driver: plan.min_driver.as_ref().map(|(driver, _)| driver.0),
        }
    }
}

/// Returns whether an error leads to the damage. Either it points
///
/// - at the damage, or at a place that it explains;
/// - at a use of the damaged name, directly or through functions;
///
/// or it contains the damaged value with its name, `VEC=3`, as errors within kernels do.
pub(crate) fn is_on(diagnostic: &Diagnostic, path: &Path, damage: &Damage, text: &str) -> bool {
    let place = damage.place();
    let uses = damage.name.as_ref().map(|name| uses(name, text)).unwrap_or_default();
    let shows = |label: &Label| {
        let range = &label.span.range;
        let touches = range.start <= place.end && place.start <= range.end;
        label.span.source.path == path
            && (touches
                || label.span.source.text.get(range.clone()).is_some_and(|shown| has_any(shown, &uses)))
    };
    let says = |note: &String| {
        let said = damage.name.as_ref().map(|name| format!("{name}={}", damage.replacement));
        said.is_some_and(|said| {
            words(note, |c| is_word(c) || matches!(c, '=' | '-')).any(|word| word == said)
        })
    };
    diagnostic.severity == Severity::Error
        && (diagnostic.primary.iter().chain(&diagnostic.related).any(shows)
            || diagnostic.notes.iter().any(says))
}

fn uses(name: &str, text: &str) -> Vec<String> {
    let mut uses = vec![name.to_owned()];
    let Ok(document) = DeTable::parse(text) else { return uses };
    let functions = document.get_ref().get("functions").and_then(|functions| functions.get_ref().as_table());
    let functions: Vec<(&str, &str)> = functions
        .into_iter()
        .flatten()
        .map(|(function, body)| (function.get_ref().as_ref(), &text[body.span()]))
        .collect();
    // Reaches every call chain.
    for _ in 0..functions.len() {
        for (function, body) in &functions {
            if has_any(body, &uses) && !uses.iter().any(|used| used == function) {
                uses.push((*function).to_owned());
            }
        }
    }
    uses
}

fn has_any(text: &str, names: &[String]) -> bool {
    words(text, is_word).any(|word| names.iter().any(|name| name == word))
}

fn words(text: &str, belongs: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |c| !belongs(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn manifests() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths: Vec<PathBuf> = ["tests/data/ok", "manifests"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("the folder exists"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    paths
}
