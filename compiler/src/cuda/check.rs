//! A plugin's launches against what the reader knows of their kernels.
//!
//! Owns finding the kernel that a launch names, and which mistakes can be told without a compiler. What fits is
//! [`crate::verify`]'s to say; it is asked only about what is certain.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_bundle::{Plugin, Target};

use super::lexer::{lex, word};
use super::name::{self, Argument, Meanings, Name};
use super::source::{Open, open_source};
use super::{Certainty, Doubt, Kernel, Kernels, TemplateKind, read, undeclared};
use crate::diagnostic::{Diagnostic, Severity, Source, Span, has_errors, sort, suggest};
use crate::directives::includes_only_cuda_headers;
use crate::foreign::{self, Unheld};
use crate::manifest_names::manifest_names;
use crate::nvrtc_option::defined_names;
use crate::resolve::{ArgDraft, Resolved, Unit};
use crate::rules;
use crate::signature::{Param, ParamType, Signature};
use crate::verify::{self, Bound, Row};

/// What came of a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// What is wrong for certain, and what the author should look at; in order of place.
    pub diagnostics: Vec<Diagnostic>,
    /// The kernels about which nothing could be said, each once.
    pub unsure: Vec<Unsure>,
    /// What the manifest alone says of pointers of code that is there already, each once.
    pub unheld: Vec<Unheld>,
    /// The arguments whose parameters' types are certain: one item for each of the draft's units, in their order. None where anything
    /// is wrong.
    pub args: Vec<Bound>,
}

/// A kernel that only a compile can check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    /// The kernel as the manifest names it, for one row of types.
    pub kernel: String,
    /// Where the manifest names it.
    pub kernel_span: Span,
    /// The file that should have it.
    pub source: PathBuf,
    /// Why nothing can be said.
    pub doubt: Doubt,
}

/// Checks every launch of a plugin against the text of its kernel: that file and kernel are there, that the template
/// arguments fit, and the arguments by name and, where it is plain, by kind. `open` reads a file. The targets are those that the manifest
/// names itself.
#[must_use]
pub fn check(resolved: &Resolved, open: &Open<'_>) -> Checked {
    let own = resolved.manifest.compile.targets.iter().map(|target| target.value);
    check_for(resolved, &own.collect::<Vec<Target>>(), open)
}

/// [`check`] for a plugin that is compiled for `targets`, whatever its manifest names.
#[must_use]
pub fn check_for(resolved: &Resolved, targets: &[Target], open: &Open<'_>) -> Checked {
    let plugin = &resolved.draft.plugin;
    let mut files: HashMap<&Path, Option<(Arc<Source>, Kernels)>> = HashMap::new();
    let mut checked = Checked::default();
    let mut rows: Vec<(Row, Vec<Diagnostic>)> = Vec::new();
    let mut bound: Vec<Bound> = Vec::new();
    for unit in &resolved.draft.units {
        if unit.foreign.is_some() {
            let held = foreign::check(plugin, unit);
            bound.push(held.bound.unwrap_or_default());
            let is_known = |one: &Unheld| {
                checked.unheld.iter().any(|known| known.code == one.code && known.params == one.params)
            };
            if let Some(unheld) = held.unheld.filter(|one| !is_known(one)) {
                checked.unheld.push(unheld);
            }
            rows.push((Row::of(plugin, unit), held.diagnostics));
            continue;
        }
        if unit.source.as_os_str().is_empty() {
            continue;
        }
        let file = files.entry(unit.source.as_path()).or_insert_with(|| match open_source(unit, open) {
            Ok(source) => {
                let kernels = read(&source.text);
                Some((source, kernels))
            }
            Err(errors) => {
                checked.diagnostics.extend(errors);
                None
            }
        });
        let mut args = Bound::default();
        let Some((source, kernels)) = file.as_ref().filter(|_| !unit.kernel.is_empty()) else { continue };
        let defined = defined_by_options(resolved, kernels, source);
        let found = match find(kernels, &unit.kernel) {
            found if defined.is_some() && !matches!(found, Found::Unsure(_)) => {
                checked.unsure.push(unsure(unit, Doubt::Macro(defined.unwrap_or_default())));
                bound.push(args);
                continue;
            }
            Found::Kernel(kernel, arguments) => {
                match undeclared::find(resolved, &arguments, kernel, kernels, source) {
                    Some(name) => vec![undeclared::message(resolved, unit, &name, source, kernel)],
                    None => {
                        let own_types = &kernels.own_types;
                        let check = Check { unit, targets, source, kernel, arguments, own_types };
                        check.run(plugin, &mut args)
                    }
                }
            }
            Found::Missing => vec![missing(unit, source, kernels)],
            Found::TemplateMisfit(kernel, problem) => vec![misfit(unit, source, kernel, &problem)],
            Found::Unsure(doubt) => {
                checked.unsure.push(unsure(unit, doubt));
                bound.push(args);
                continue;
            }
        };
        bound.push(args);
        rows.push((Row::of(plugin, unit), found));
    }
    checked.unsure.dedup_by(|one, other| one.kernel_span == other.kernel_span && one.doubt == other.doubt);
    let merged = verify::merge_rows(&rows);
    let is_foreign = resolved.draft.units.iter().any(|unit| unit.foreign.is_some());
    checked.diagnostics.extend(if is_foreign { foreign::as_one(merged) } else { merged });
    if !has_errors(&checked.diagnostics) {
        checked.args = bound;
    }
    sort(&mut checked.diagnostics);
    checked
}

/// The warnings about type parameters and constants that neither the manifest nor a kernel uses; nothing where a file cannot be
/// read or includes another, which may use all of them. `open` reads a file.
#[must_use]
pub fn unused_names(resolved: &Resolved, open: &Open<'_>) -> Vec<Diagnostic> {
    if resolved.unused_names.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let of_source = resolved.draft.units.iter().filter(|unit| unit.foreign.is_none());
    let sources: BTreeSet<&Path> = of_source.map(|unit| unit.source.as_path()).collect();
    for path in sources {
        let Ok(source) = open(path) else { return Vec::new() };
        if !includes_only_cuda_headers(&source.text) {
            return Vec::new();
        }
        names.extend(manifest_names(&source.text));
    }
    resolved.unused(&names)
}

fn unsure(unit: &Unit, doubt: Doubt) -> Unsure {
    Unsure {
        kernel: unit.kernel.clone(),
        kernel_span: unit.kernel_span.clone(),
        source: unit.source.clone(),
        doubt,
    }
}

/// A macro that the manifest's own options define, where it stands in the declaration of a kernel: the text is then not what it
/// seems.
fn defined_by_options(resolved: &Resolved, kernels: &Kernels, source: &Source) -> Option<String> {
    let options = &resolved.manifest.compile.options;
    let defined = defined_names(options.iter().map(|option| option.value.as_str()));
    let in_kernel = |name: &str| {
        kernels.kernels.iter().any(|kernel| {
            let text = source.text.get(kernel.name_range.start..kernel.params_range.end).unwrap_or_default();
            lex(text).tokens.iter().any(|token| word(text, Some(token)) == name)
        })
    };
    defined.into_iter().map(|(_, name)| name).find(|name| in_kernel(name)).map(str::to_owned)
}

/// Why a compiler knows no such kernel, where the text tells; `said` is what the compiler said about it.
#[must_use]
pub(crate) fn explain_unknown(
    kernel: &str,
    span: &Span,
    source: &Arc<Source>,
    file: &str,
    said: &[String],
) -> Diagnostic {
    let kernels = read(&source.text);
    let with_said = |diagnostic: Diagnostic| {
        said.iter().fold(diagnostic, |diagnostic, text| diagnostic.note(format!("NVRTC says: {text}")))
    };
    match find(&kernels, kernel) {
        // The compiler's words for this are noise.
        Found::Missing => missing_in(kernel, span, file, &kernels),
        Found::TemplateMisfit(found, problem) => {
            with_said(template_misfit(kernel, span, source, found, &problem))
        }
        Found::Unsure(Doubt::KernelMacro(name)) if kernels.kernels.is_empty() => with_said(
            not_a_kernel(kernel, span, file)
                .note(format!("the macro `{name}` makes kernels"))
                .help(format!("name the kernel as `{name}` spells it")),
        ),
        Found::Kernel(..) | Found::Unsure(_) => {
            let arguments = name::parse(kernel).and_then(|name| name.arguments).unwrap_or_default();
            let is_undefined = |argument: &&Argument| {
                let undefined = format!("identifier `{}` is undefined", argument.text);
                said.contains(&undefined)
            };
            with_said(match arguments.iter().find(is_undefined) {
                Some(argument) => undeclared::unknown(&argument.text, span, file, &[]),
                None => missing_in(kernel, span, file, &kernels),
            })
        }
    }
}

/// What a kernel's name comes to.
enum Found<'k> {
    /// This kernel, with these template arguments.
    Kernel(&'k Kernel, Vec<Argument>),
    /// The text has no such kernel, for certain.
    Missing,
    /// It has the kernel, and the template arguments do not fit: why.
    TemplateMisfit(&'k Kernel, String),
    /// It cannot be told.
    Unsure(Doubt),
}

fn find<'k>(kernels: &'k Kernels, name: &str) -> Found<'k> {
    let Some(name) = name::parse(name) else { return Found::Unsure(Doubt::Syntax) };
    let named: Vec<&Kernel> = kernels.kernels.iter().filter(|kernel| kernel.is_named(&name.path)).collect();
    if named.is_empty() {
        return not_there(kernels, &name);
    }
    let doubt = named.iter().find_map(|kernel| match &kernel.certainty {
        Certainty::Unsure(doubt) => Some(doubt.clone()),
        Certainty::Exact => None,
    });
    if let Some(doubt) = doubt {
        return Found::Unsure(doubt);
    }
    let definitions = named.iter().filter(|kernel| kernel.has_body).count();
    let best = named.iter().find(|kernel| kernel.has_body).or(named.last());
    match best {
        Some(kernel) if definitions < 2 && named.iter().all(|other| is_same(kernel, other)) => {
            match template_problem(kernel, &name) {
                Some(problem) => Found::TemplateMisfit(kernel, problem),
                None => Found::Kernel(kernel, name.arguments.unwrap_or_default()),
            }
        }
        _ => Found::Unsure(Doubt::Overloaded),
    }
}

fn not_there<'k>(kernels: &Kernels, name: &Name) -> Found<'k> {
    if let Some(doubt) = kernels.doubts.first() {
        return Found::Unsure(doubt.clone());
    }
    // A kernel may have another name than the text says.
    let renamed = kernels.kernels.iter().find_map(|kernel| match &kernel.certainty {
        Certainty::Unsure(doubt @ Doubt::Macro(_)) => Some(doubt.clone()),
        _ => None,
    });
    if let Some(doubt) = renamed {
        return Found::Unsure(doubt);
    }
    let last = name.path.rsplit("::").next().unwrap_or_default();
    if kernels.has_imports && kernels.kernels.iter().any(|kernel| kernel.name == last) {
        return Found::Unsure(Doubt::Import);
    }
    Found::Missing
}

/// Whether two declarations can be of one kernel.
fn is_same(one: &Kernel, other: &Kernel) -> bool {
    let types = |kernel: &Kernel| kernel.params.iter().map(|param| param.ty.clone()).collect::<Vec<_>>();
    one.namespaces == other.namespaces
        && one.template.as_ref().map(Vec::len) == other.template.as_ref().map(Vec::len)
        && types(one) == types(other)
}

/// Why the template arguments do not fit.
fn template_problem(kernel: &Kernel, name: &Name) -> Option<String> {
    let called = kernel.path();
    let (params, arguments) = match (&kernel.template, &name.arguments) {
        (None, None) => return None,
        (None, Some(_)) => {
            return Some(format!("`{called}` is no template, and takes no template arguments"));
        }
        (Some(params), arguments) => (params, arguments.as_deref().unwrap_or_default()),
    };
    let required = params.iter().filter(|param| !param.has_default).count();
    if arguments.len() < required || arguments.len() > params.len() {
        let count = match (required, params.len()) {
            (1, 1) => "1 template argument".to_owned(),
            (least, most) if least == most => format!("{most} template arguments"),
            (least, most) => format!("{least} to {most} template arguments"),
        };
        return Some(format!("`{called}` takes {count}, and is given {}", arguments.len()));
    }
    params.iter().zip(arguments).find_map(|(param, argument)| {
        let wanted = match (param.kind, argument.kind?) {
            (TemplateKind::Type, TemplateKind::Value) => "a type",
            (TemplateKind::Value, TemplateKind::Type) => "a number",
            _ => return None,
        };
        let param = if param.name.is_empty() { String::new() } else { format!(" `{}`", param.name) };
        Some(format!(
            "the template parameter{param} of `{called}` is {wanted}, and is given `{}`",
            argument.text
        ))
    })
}

fn missing(unit: &Unit, source: &Arc<Source>, kernels: &Kernels) -> Diagnostic {
    missing_in(&unit.kernel, &unit.kernel_span, &source.path.display().to_string(), kernels)
}

fn not_a_kernel(kernel: &str, span: &Span, file: &str) -> Diagnostic {
    Diagnostic::error(format!("`{kernel}` is not a kernel of `{file}`"))
        .code(rules::KERNEL_NOT_FOUND)
        .at(span.clone(), "no such kernel")
}

fn missing_in(kernel: &str, span: &Span, file: &str, kernels: &Kernels) -> Diagnostic {
    const MOST: usize = 16;
    let diagnostic = not_a_kernel(kernel, span, file);
    let path = name::parse(kernel).map_or_else(|| kernel.to_owned(), |name| name.path);
    let mut usages: Vec<String> = Vec::new();
    for kernel in &kernels.kernels {
        let usage = kernel.usage();
        if usages.len() < MOST && !usages.contains(&usage) {
            usages.push(usage);
        }
    }
    if kernels.functions.contains(&path) {
        return diagnostic
            .note(format!("`{path}` is a function there, and no kernel"))
            .help("mark it with `__global__`");
    }
    if usages.is_empty() {
        return diagnostic
            .note("the file has no `__global__` function")
            .help("mark the kernel with `__global__`");
    }
    let listed: Vec<String> = usages.iter().map(|usage| format!("`{usage}`")).collect();
    let kernel_list = format!("the file has the kernels {}", listed.join(", "));
    let diagnostic = match usages.as_slice() {
        [only] => diagnostic.note(format!("the file has the kernel `{only}`")),
        _ => diagnostic.note(kernel_list),
    };
    match near(&path, kernels) {
        Some(kernel) => diagnostic.help(format!("did you mean `{}`?", as_written(kernel, span))),
        None => diagnostic.help("name one of them, with an argument for each of its template parameters"),
    }
}

/// A kernel with the template arguments that the manifest gives it, where their number fits.
fn as_written(kernel: &Kernel, span: &Span) -> String {
    let text = span.source.text.get(span.range.clone()).unwrap_or_default();
    let Some(name) = name::parse(text.trim_matches(['"', '\''])) else { return kernel.usage() };
    match &name.arguments {
        Some(arguments) if template_problem(kernel, &name).is_none() => {
            let arguments: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
            format!("{}<{}>", kernel.path(), arguments.join(", "))
        }
        _ => kernel.usage(),
    }
}

/// The kernel that a path was probably meant to be: in another namespace, or spelt nearly so.
fn near<'k>(path: &str, kernels: &'k Kernels) -> Option<&'k Kernel> {
    let last = path.rsplit("::").next().unwrap_or_default();
    let all = &kernels.kernels;
    if let Some(kernel) = all.iter().find(|kernel| kernel.name == last) {
        return Some(kernel);
    }
    let paths: Vec<String> = all.iter().map(Kernel::path).collect();
    let found = suggest(path, paths.iter().map(String::as_str)).map(str::to_owned);
    if let Some(found) = found {
        return all.iter().find(|kernel| kernel.path() == found);
    }
    let name = suggest(last, all.iter().map(|kernel| kernel.name.as_str()))?;
    all.iter().find(|kernel| kernel.name == name)
}

fn misfit(unit: &Unit, source: &Arc<Source>, kernel: &Kernel, problem: &str) -> Diagnostic {
    template_misfit(&unit.kernel, &unit.kernel_span, source, kernel, problem)
}

fn template_misfit(
    name: &str,
    span: &Span,
    source: &Arc<Source>,
    kernel: &Kernel,
    problem: &str,
) -> Diagnostic {
    let usage = kernel.usage();
    let help = match &kernel.template {
        Some(params) if !params.is_empty() => format!(
            "the kernel is `{usage}`: write a type parameter, a constant or a number of yours for each of its template parameters"
        ),
        _ => format!("write `{usage}`"),
    };
    Diagnostic::error(problem)
        .code(rules::KERNEL_NOT_FOUND)
        .at(span.clone(), format!("this is `{name}`"))
        .related(Span::new(source, kernel.name_range.clone()), "the kernel")
        .help(help)
}

/// One unit and the kernel that it launches.
pub(super) struct Check<'a> {
    pub(super) unit: &'a Unit,
    /// What is compiled for, as far as it is known.
    pub(super) targets: &'a [Target],
    pub(super) source: &'a Arc<Source>,
    pub(super) kernel: &'a Kernel,
    arguments: Vec<Argument>,
    own_types: &'a [String],
}

impl Check<'_> {
    /// What is wrong; `bound_args` gets the arguments whose parameters' types are certain.
    fn run(&self, plugin: &Plugin, bound_args: &mut Bound) -> Vec<Diagnostic> {
        let meanings = Meanings {
            kernel: self.kernel,
            arguments: &self.arguments,
            unit: self.unit,
            own_types: self.own_types,
        };
        let resolve = |ty| name::resolve(ty, meanings);
        let resolved: Vec<name::Resolved> =
            self.kernel.params.iter().map(|param| resolve(&param.ty)).collect();
        let params = self.kernel.params.iter().zip(&resolved);
        let signature = Signature {
            kernel: self.unit.kernel.clone(),
            params: params
                .map(|(param, resolved)| Param {
                    name: param.name.clone(),
                    ty: resolved
                        .ty
                        .clone()
                        .unwrap_or_else(|| ParamType::Other { name: resolved.spelling.clone(), size: 0 }),
                    spelling: resolved.spelling.clone(),
                })
                .collect(),
        };
        let list = Span::new(self.source, self.kernel.params_range.clone());
        let names = match self.unit.args_are_known {
            true => verify::check_names(self.unit, &signature),
            false => Vec::new(),
        };
        let names = names.into_iter();
        let mut found: Vec<Diagnostic> =
            names.map(|diagnostic| diagnostic.related(list.clone(), "the kernel's parameters")).collect();
        // Of several arguments with one name the first counts.
        let drafts: HashMap<&str, &ArgDraft> =
            self.unit.args.iter().rev().map(|arg| (arg.name.as_str(), arg)).collect();
        for (position, (param, resolved)) in self.kernel.params.iter().zip(&resolved).enumerate() {
            let (Some(arg), Some(bound), true) = (
                drafts.get(param.name.as_str()).copied().filter(|arg| arg.broken.is_none()),
                signature.params.get(position),
                resolved.ty.is_some(),
            ) else {
                continue;
            };
            let here = Span::new(self.source, param.range.clone());
            let problem = match verify::bind_argument(plugin, self.unit, &signature, arg, bound) {
                Ok(arg) => {
                    let is_read_only = resolved.knows_pointee
                        && matches!(bound.ty, ParamType::Pointer { is_const: true, .. });
                    bound_args.read_only.extend(is_read_only.then(|| arg.name.clone()));
                    bound_args.args.push(arg);
                    None
                }
                Err(problem) => Some(problem),
            };
            let writable = resolved
                .knows_pointee
                .then(|| verify::writable_input(plugin, self.unit, arg, bound))
                .flatten();
            let told = problem.into_iter().chain(writable);
            found.extend(told.map(|diagnostic| diagnostic.related(here.clone(), "the parameter")));
        }
        let accumulated = self.kernel.accumulated.iter();
        bound_args.accumulated.extend(accumulated.map(|it| verify::Accumulated {
            parameter: it.parameter.clone(),
            place: Span::new(self.source, it.range.clone()),
            evidence: verify::Evidence::Atomic,
        }));
        found.extend(self.of_text(plugin));
        if has_errors(&found) {
            // A warning may follow from the mistakes: of two arguments that have changed places one is an input.
            found.retain(|diagnostic| diagnostic.severity == Severity::Error);
        }
        found
    }
}
