//! The kernel that a name means: found in a text by path and template arguments, or why it is not found.

use std::sync::Arc;

use cubinder_expr::DataType;

use super::lexer::{lex, word};
use super::name::{self, Argument, Name};
use super::{Certainty, Doubt, Kernel, Kernels, TemplateKind, read};
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::rules;

/// The result of a lookup.
pub enum Found<'k> {
    /// This kernel, with these template arguments.
    Kernel(&'k Kernel, Vec<Argument>),
    /// The text has no such kernel, for certain.
    Missing,
    /// It has the kernel, and the template arguments do not fit: why.
    TemplateMisfit(&'k Kernel, String),
    /// The text does not decide it.
    Unsure(Doubt),
}

/// Looks a kernel up by the name that a manifest gives.
pub fn find<'k>(kernels: &'k Kernels, name: &str) -> Found<'k> {
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
            return Some(format!("`{called}` is not a template, and takes no template arguments"));
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

/// Why a compiler knows no such kernel, where the text tells; `said` is what the compiler said about it.
#[must_use]
pub fn explain_unknown(
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
                Some(argument) => unknown(&argument.text, span, file, &[]),
                None => missing_in(kernel, span, file, &kernels),
            })
        }
    }
}

/// The error for a kernel that the text does not have.
pub fn missing_in(kernel: &str, span: &Span, file: &str, kernels: &Kernels) -> Diagnostic {
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

fn not_a_kernel(kernel: &str, span: &Span, file: &str) -> Diagnostic {
    Diagnostic::error(format!("`{kernel}` is not a kernel of `{file}`"))
        .code(rules::KERNEL_NOT_FOUND)
        .at(span.clone(), "no such kernel")
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

/// The error for template arguments that do not fit.
pub fn template_misfit(
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

/// A template argument that nothing declares. `declared` is what a kernel's template arguments can name of the manifest.
pub fn unknown(name: &str, span: &Span, file: &str, declared: &[&str]) -> Diagnostic {
    let at = word_in(span, name);
    let ty = DataType::from_name(name).map(DataType::cuda_name);
    let message = match ty {
        Some(_) => format!("`{name}` is not a C++ name, and `{file}` does not declare it"),
        None => format!("`{name}` is declared neither in the manifest nor in `{file}`"),
    };
    let error = Diagnostic::error(message).code(rules::KERNEL_NOT_FOUND).at(at, "this template argument");
    if let Some(ty) = ty {
        return error.note(format!("`{name}` is called `{ty}` in C++")).help(format!(
            "declare a type parameter, `T = [\"{name}\"]` under `[types]`, and write `T` here; or write `{ty}`"
        ));
    }
    let listed: Vec<String> = declared.iter().map(|name| format!("`{name}`")).collect();
    let error = match listed.as_slice() {
        [] => error,
        listed => error.note(format!("the manifest declares {}", listed.join(", "))),
    };
    match suggest(name, declared.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("declare it under `[types]` or `[constants]`, or write what it stands for"),
    }
}

/// The place of a word in a place; all of it where it is not there.
pub fn word_in(span: &Span, name: &str) -> Span {
    let text = span.source.text.get(span.range.clone()).unwrap_or_default();
    let lexed = lex(text.trim_matches(['"', '\'']));
    let shift = text.len() - text.trim_start_matches(['"', '\'']).len();
    let inner = text.trim_matches(['"', '\'']);
    let token = lexed.tokens.iter().rev().find(|token| word(inner, Some(token)) == name);
    match token {
        Some(token) => {
            let start = span.range.start + shift + token.range.start;
            Span::new(&span.source, start..start + name.len())
        }
        None => span.clone(),
    }
}
