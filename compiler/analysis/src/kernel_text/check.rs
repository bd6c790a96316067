//! [`crate::verify`] compares arguments with certain types.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::{Plugin, Target};

use super::source::{OpenSource, open_source};
use super::undeclared;
use crate::cuda::lookup::{KernelLookup, find, missing_in, template_misfit};
use crate::cuda::name::{self, Argument, TemplateContext};
use crate::cuda::{self, Doubt, Kernel, Kernels, lex, read, word};
use crate::diagnostic::{Diagnostic, Severity, Source, Span, has_errors, sort};
use crate::directives::includes_only_cuda_headers;
use crate::foreign::fold_file_errors;
use crate::kernel_signature::{Param, ParamType, Signature};
use crate::manifest_names::manifest_names;
use crate::nvrtc_option::defined_names;
use crate::precompiled::{self, UncheckedPointers};
use crate::resolve::{Resolved, Unit};
use crate::verify::{self, BoundArgs};

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedText {
    /// Errors and warnings by position.
    pub diagnostics: Vec<Diagnostic>,
    /// Unique kernels to check by compiling.
    pub unsure: Vec<UncheckedKernel>,
    /// Unique unchecked pointers of precompiled code.
    pub unchecked: Vec<UncheckedPointers>,
    /// Arguments by unit; empty after errors.
    pub args: Vec<BoundArgs>,
}

/// Kernel that only a compile can check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedKernel {
    /// Name for one row.
    pub kernel: String,
    /// Span of the name.
    pub kernel_span: Span,
    /// Expected file.
    pub source: PathBuf,
    /// Reason.
    pub doubt: Doubt,
}

/// Checks launches against their kernels' text: file, kernel, template arguments, and arguments by name and, if certain, kind.
#[must_use]
pub fn check(
    resolved: &Resolved,
    targets: &[Target],
    options: &[String],
    open: &OpenSource<'_>,
) -> CheckedText {
    let plugin = &resolved.draft.plugin;
    let mut files: HashMap<&Path, Option<(Arc<Source>, Kernels)>> = HashMap::new();
    let mut checked = CheckedText::default();
    let mut rows: Vec<(String, Vec<Diagnostic>)> = Vec::new();
    let mut bound: Vec<BoundArgs> = Vec::new();
    for unit in &resolved.draft.units {
        let row = verify::row_name(plugin, unit);
        if unit.foreign.is_some() {
            let code = precompiled::check(plugin, unit);
            bound.push(code.bound.unwrap_or_default());
            let is_new = |one: &UncheckedPointers| {
                let is_same =
                    |known: &UncheckedPointers| (&known.code, &known.params) == (&one.code, &one.params);
                !checked.unchecked.iter().any(is_same)
            };
            let unchecked = code.unchecked.filter(is_new);
            checked.unchecked.extend(unchecked);
            rows.push((row, code.diagnostics));
            continue;
        }
        if unit.source.as_os_str().is_empty() {
            continue;
        }
        let file = files.entry(unit.source.as_path()).or_insert_with(|| {
            let source = open_source(unit, open).map_err(|errors| checked.diagnostics.extend(errors)).ok()?;
            let kernels = read(&source.text);
            Some((source, kernels))
        });
        let Some((source, kernels)) = file.as_ref().filter(|_| !unit.kernel.is_empty()) else { continue };
        let only = |found: Diagnostic| Ok((vec![found], BoundArgs::default()));
        let found = match (find(kernels, &unit.kernel), defined_by_options(options, unit, kernels, source)) {
            (KernelLookup::Unsure(doubt), _) => Err(doubt),
            (_, Some(name)) => Err(Doubt::Macro(name)),
            (KernelLookup::Kernel(kernel, arguments), None) => {
                let undeclared = undeclared::find(resolved, &arguments, kernel, kernels, source);
                let own_types = &kernels.own_types;
                match undeclared {
                    Some(name) => only(undeclared::report(resolved, unit, &name, source, kernel)),
                    None => {
                        let check = Check { unit, targets, options, source, kernel, arguments, own_types };
                        Ok(check.run(plugin))
                    }
                }
            }
            (KernelLookup::Missing, None) => {
                let file = source.path.display().to_string();
                only(missing_in(&unit.kernel, &unit.kernel_span, &file, kernels))
            }
            (KernelLookup::TemplateMisfit(kernel, problem), None) => {
                only(template_misfit(&unit.kernel, &unit.kernel_span, source, kernel, &problem))
            }
        };
        match found {
            Ok((found, args)) => {
                bound.push(args);
                rows.push((row, found));
            }
            Err(doubt) => {
                bound.push(BoundArgs::default());
                let (kernel, kernel_span) = (unit.kernel.clone(), unit.kernel_span.clone());
                checked.unsure.push(UncheckedKernel {
                    kernel,
                    kernel_span,
                    source: unit.source.clone(),
                    doubt,
                });
            }
        }
    }
    checked.unsure.dedup_by(|one, other| one.kernel_span == other.kernel_span && one.doubt == other.doubt);
    let merged = verify::merge_rows(&rows);
    let is_foreign = resolved.draft.units.iter().any(|unit| unit.foreign.is_some());
    checked.diagnostics.extend(if is_foreign { fold_file_errors(merged) } else { merged });
    if !has_errors(&checked.diagnostics) {
        checked.args = bound;
    }
    sort(&mut checked.diagnostics);
    checked
}

/// Warns about unused names, unless a file is unreadable or includes another.
#[must_use]
pub fn unused_names(resolved: &Resolved, open: &OpenSource<'_>) -> Vec<Diagnostic> {
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

/// Returns an option's macro that makes a kernel's declaration or name unreliable.
fn defined_by_options(options: &[String], unit: &Unit, kernels: &Kernels, source: &Source) -> Option<String> {
    let declarations = kernels
        .kernels
        .iter()
        .map(|kernel| source.text.get(kernel.name_range.start..kernel.params_range.end).unwrap_or_default());
    let texts: Vec<&str> = declarations.chain([unit.kernel.as_str()]).collect();
    let has = |text: &str, name: &str| lex(text).tokens.iter().any(|token| word(text, Some(token)) == name);
    let mut names = defined_names(options.iter().map(String::as_str)).into_iter().map(|(_, name)| name);
    names.find(|name| texts.iter().any(|text| has(text, name))).map(str::to_owned)
}

pub(super) struct Check<'a> {
    pub(super) unit: &'a Unit,
    pub(super) targets: &'a [Target],
    pub(super) options: &'a [String],
    pub(super) source: &'a Arc<Source>,
    pub(super) kernel: &'a Kernel,
    arguments: Vec<Argument>,
    own_types: &'a [String],
}

impl Check<'_> {
    fn run(&self, plugin: &Plugin) -> (Vec<Diagnostic>, BoundArgs) {
        let meanings = TemplateContext {
            kernel: self.kernel,
            arguments: &self.arguments,
            types: &self.unit.types,
            constants: &self.unit.constants,
            own_types: self.own_types,
        };
        let resolved = self.kernel.params.iter().map(|param| name::resolve(&param.ty, meanings));
        let resolved: Vec<name::Resolved> = resolved.collect();
        let param = |(param, resolved): (&cuda::Param, &name::Resolved)| {
            let unknown = || ParamType::Other { name: resolved.spelling.clone(), size: 0 };
            let ty = resolved.ty.clone().unwrap_or_else(unknown);
            Param { name: param.name.clone(), ty, spelling: resolved.spelling.clone() }
        };
        let params = self.kernel.params.iter().zip(&resolved).map(param).collect();
        let signature = Signature { kernel: self.unit.kernel.clone(), params };
        let list = Span::new(self.source, self.kernel.params_range.clone());
        let names = match self.unit.args_are_known {
            true => verify::check_names(self.unit, &signature),
            false => Vec::new(),
        };
        let names = names.into_iter();
        let mut found: Vec<Diagnostic> =
            names.map(|diagnostic| diagnostic.related(list.clone(), "the kernel's parameters")).collect();
        let mut args = BoundArgs::default();
        let params = self.kernel.params.iter().zip(&resolved).zip(&signature.params);
        for ((param, resolved), bound) in params.filter(|((_, resolved), _)| resolved.ty.is_some()) {
            let arg = self.unit.args.iter().find(|arg| arg.name == param.name);
            let Some(arg) = arg.filter(|arg| arg.broken.is_none()) else { continue };
            let problem = match verify::bind_argument(plugin, self.unit, &signature, arg, bound) {
                Ok(arg) => {
                    let is_read_only = resolved.knows_pointee
                        && matches!(bound.ty, ParamType::Pointer { is_const: true, .. });
                    args.read_only.extend(is_read_only.then(|| arg.name.clone()));
                    args.args.push(arg);
                    None
                }
                Err(problem) => Some(problem),
            };
            let writable = verify::writable_input(plugin, self.unit, arg, bound);
            let reported = problem.into_iter().chain(writable.filter(|_| resolved.knows_pointee));
            let place = Span::new(self.source, param.range.clone());
            found.extend(reported.map(|diagnostic| diagnostic.related(place.clone(), "the parameter")));
        }
        found.extend(self.without_wait(plugin).into_iter().chain(self.restricted(plugin)));
        if has_errors(&found) {
            // Errors may cause the warnings.
            found.retain(|diagnostic| diagnostic.severity == Severity::Error);
        }
        (found, args)
    }
}
