//! Finds kernels in a text by path and template arguments.

use std::sync::Arc;

use cubinder_expr::DataType;

use super::lexer::{lex, word};
use super::name::{self, Argument, Name};
use super::{Doubt, Kernel, Kernels, TemplateKind, read};
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::errors::{ManifestTypeAsArgument, NotAKernel, TemplateMisfit, UndeclaredArgument};

/// Result of a lookup.
pub enum KernelLookup<'k> {
    /// Kernel with template arguments.
    Kernel(&'k Kernel, Vec<Argument>),
    /// Certainly missing.
    Missing,
    /// Mismatched template arguments, with reason.
    TemplateMisfit(&'k Kernel, String),
    /// Uncertain.
    Unsure(Doubt),
}

/// Finds a kernel by the manifest's name.
pub fn find<'k>(kernels: &'k Kernels, name: &str) -> KernelLookup<'k> {
    let Some(name) = name::parse(name) else { return KernelLookup::Unsure(Doubt::Syntax) };
    let named: Vec<&Kernel> = kernels.kernels.iter().filter(|kernel| kernel.is_named(&name.path)).collect();
    if named.is_empty() {
        return not_there(kernels, &name);
    }
    if let Some(doubt) = named.iter().find_map(|kernel| kernel.doubt.clone()) {
        return KernelLookup::Unsure(doubt);
    }
    let definitions = named.iter().filter(|kernel| kernel.has_body).count();
    let best = named.iter().find(|kernel| kernel.has_body).or(named.last());
    match best {
        Some(kernel) if definitions < 2 && named.iter().all(|other| is_same(kernel, other)) => {
            match template_problem(kernel, &name) {
                Some(problem) => KernelLookup::TemplateMisfit(kernel, problem),
                None => KernelLookup::Kernel(kernel, name.arguments.unwrap_or_default()),
            }
        }
        _ => KernelLookup::Unsure(Doubt::Overloaded),
    }
}

fn not_there<'k>(kernels: &Kernels, name: &Name) -> KernelLookup<'k> {
    if let Some(doubt) = kernels.doubts.first() {
        return KernelLookup::Unsure(doubt.clone());
    }
    // A macro may rename kernels.
    let mut doubts = kernels.kernels.iter().filter_map(|kernel| kernel.doubt.as_ref());
    if let Some(doubt) = doubts.find(|doubt| matches!(doubt, Doubt::Macro(_))) {
        return KernelLookup::Unsure(doubt.clone());
    }
    let last = name.path.rsplit("::").next().unwrap_or_default();
    if kernels.has_imports && kernels.kernels.iter().any(|kernel| kernel.name == last) {
        return KernelLookup::Unsure(Doubt::Import);
    }
    KernelLookup::Missing
}

fn is_same(one: &Kernel, other: &Kernel) -> bool {
    let types = |kernel: &Kernel| kernel.params.iter().map(|param| param.ty.clone()).collect::<Vec<_>>();
    one.namespaces == other.namespaces
        && one.template.as_ref().map(Vec::len) == other.template.as_ref().map(Vec::len)
        && types(one) == types(other)
}

fn template_problem(kernel: &Kernel, name: &Name) -> Option<String> {
    let called = kernel.path();
    let (params, arguments) = match (&kernel.template, &name.arguments) {
        (None, None) => return None,
        (None, Some(_)) => {
            return Some(format!("`{called}` is not a template and has no template parameters"));
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
        return Some(format!("`{called}` expects {count}, found {}", arguments.len()));
    }
    params.iter().zip(arguments).find_map(|(param, argument)| {
        let wanted = match (param.kind, argument.kind?) {
            (TemplateKind::Type, TemplateKind::Value) => "a type",
            (TemplateKind::Value, TemplateKind::Type) => "a number",
            _ => return None,
        };
        let param = if param.name.is_empty() { String::new() } else { format!(" `{}`", param.name) };
        Some(format!("the template parameter{param} of `{called}` is {wanted}, found `{}`", argument.text))
    })
}

/// Explains a kernel that the compiler did not find.
#[must_use]
pub fn explain_unknown(
    kernel: &str,
    span: &Span,
    source: &Arc<Source>,
    file: &str,
    messages: &[String],
    undefined: &[&str],
) -> Diagnostic {
    let kernels = read(&source.text);
    let diagnostic = match find(&kernels, kernel) {
        KernelLookup::Missing => return missing_in(kernel, span, file, &kernels),
        KernelLookup::TemplateMisfit(found, problem) => {
            template_misfit(kernel, span, source, found, &problem)
        }
        KernelLookup::Unsure(Doubt::KernelMacro(name)) if kernels.kernels.is_empty() => {
            let note = format!("the macro `{name}` defines kernels");
            let help = format!("use the name that `{name}` expands to");
            NotAKernel { kernel, file, span: span.clone(), note, help, near: None }.into()
        }
        KernelLookup::Kernel(..) | KernelLookup::Unsure(_) => {
            let arguments = name::parse(kernel).and_then(|name| name.arguments).unwrap_or_default();
            let is_undefined = |argument: &&Argument| undefined.contains(&argument.text.as_str());
            match arguments.iter().find(is_undefined) {
                Some(argument) => unknown(&argument.text, span, file, &[]),
                None => missing_in(kernel, span, file, &kernels),
            }
        }
    };
    messages.iter().fold(diagnostic, |diagnostic, text| diagnostic.note(format!("NVRTC reports: {text}")))
}

/// Reports a missing kernel.
pub fn missing_in(kernel: &str, span: &Span, file: &str, kernels: &Kernels) -> Diagnostic {
    const MAX_LISTED: usize = 16;
    let path = name::parse(kernel).map_or_else(|| kernel.to_owned(), |name| name.path);
    let error = |note: String, help: &str, near: Option<String>| -> Diagnostic {
        NotAKernel { kernel, file, span: span.clone(), note, help: help.to_owned(), near }.into()
    };
    if kernels.functions.contains(&path) {
        let note = format!("`{path}` is a function, not a kernel");
        return error(note, "mark it with `__global__`", None);
    }
    let mut usages: Vec<String> = Vec::new();
    for kernel in &kernels.kernels {
        let usage = kernel.usage();
        if usages.len() < MAX_LISTED && !usages.contains(&usage) {
            usages.push(usage);
        }
    }
    let existing = match usages.as_slice() {
        [] => {
            let note = "the file has no `__global__` function".to_owned();
            return error(note, "mark the kernel with `__global__`", None);
        }
        [only] => format!("the file has the kernel `{only}`"),
        usages => format!("the file has the kernels {}", quoted(usages)),
    };
    let near = near(&path, kernels).map(|kernel| as_written(kernel, span));
    error(existing, "use one of them, with an argument for each of its template parameters", near)
}

fn quoted<T: std::fmt::Display>(names: &[T]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

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

fn near<'k>(path: &str, kernels: &'k Kernels) -> Option<&'k Kernel> {
    let last = path.rsplit("::").next().unwrap_or_default();
    let all = &kernels.kernels;
    let nearly = |word: &str, names: Vec<String>| {
        let found = suggest(word, names.iter().map(String::as_str))?;
        all.iter().zip(&names).find(|(_, name)| *name == found).map(|(kernel, _)| kernel)
    };
    all.iter()
        .find(|kernel| kernel.name == last)
        .or_else(|| nearly(path, all.iter().map(Kernel::path).collect()))
        .or_else(|| nearly(last, all.iter().map(|kernel| kernel.name.clone()).collect()))
}

/// Reports mismatched template arguments.
pub fn template_misfit(
    name: &str,
    span: &Span,
    source: &Arc<Source>,
    kernel: &Kernel,
    problem: &str,
) -> Diagnostic {
    let (usage, kernel_span) = (kernel.usage(), Span::new(source, kernel.name_range.clone()));
    let has_parameters = kernel.template.as_ref().is_some_and(|params| !params.is_empty());
    let parameters = Some(usage.as_str()).filter(|_| has_parameters);
    let or = if kernel.template.is_none() { ", or make the kernel a template" } else { "" };
    let span = span.clone();
    TemplateMisfit { problem, name, span, kernel: kernel_span, usage: &usage, or, parameters }.into()
}

/// Reports an undeclared template argument.
pub fn unknown(name: &str, span: &Span, file: &str, declared: &[&str]) -> Diagnostic {
    let span = word_in(span, name);
    if let Some(ty) = DataType::from_name(name).map(DataType::cuda_name) {
        return ManifestTypeAsArgument { name, file, span, ty }.into();
    }
    let near = suggest(name, declared.iter().copied());
    let declared = (!declared.is_empty()).then(|| quoted(declared));
    UndeclaredArgument { name, file, span, declared, near }.into()
}

/// Returns a word's span in a span, else the span.
pub fn word_in(span: &Span, name: &str) -> Span {
    let text = span.source.text.get(span.range.clone()).unwrap_or_default();
    let inner = text.trim_start_matches(['"', '\'']);
    let start = span.range.start + text.len() - inner.len();
    let inner = inner.trim_end_matches(['"', '\'']);
    let lexed = lex(inner);
    let token = lexed.tokens.iter().rev().find(|token| word(inner, Some(token)) == name);
    token.map_or_else(
        || span.clone(),
        |token| Span::new(&span.source, start + token.range.start..start + token.range.end),
    )
}
