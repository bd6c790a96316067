use std::sync::Arc;

use cubinder_expr::DataType;

use super::errors::{AttributeAsTemplateArgument, ConstantOfOtherVariants, UndecidedTemplateParameter};
use crate::cuda::lookup::{unknown, word_in};
use crate::cuda::name::Argument;
use crate::cuda::{Kernel, Kernels, lex, word};
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::directives::directives;
use crate::resolve::{Resolved, Unit};

/// Returns a bare name of the manifest that no include could declare.
pub(super) fn find(
    resolved: &Resolved,
    arguments: &[Argument],
    kernel: &Kernel,
    kernels: &Kernels,
    source: &Source,
) -> Option<String> {
    const KNOWN: [&str; 4] = ["cubinder.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h"];
    let is_like_ours = |argument: &&Argument| {
        let name = argument.text.as_str();
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_led = name.bytes().next().is_some_and(|first| first.is_ascii_uppercase());
        let is_ours = is_led || DataType::from_name(name).is_some() || declaration(resolved, name).is_some();
        argument.kind.is_none() && is_word && is_ours && !resolved.manifest.broken.contains(&argument.text)
    };
    let is_word = |text: &str| text.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_');
    let name = arguments.iter().find(is_like_ours)?.text.clone();
    let includes_nothing = directives(&source.text)
        .iter()
        .all(|directive| directive.name().is_some_and(|name| KNOWN.contains(&name)));
    let lexed = lex(&source.text);
    let is_name = |at: usize| word(&source.text, lexed.tokens.get(at)) == name;
    let around = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| word(&source.text, lexed.tokens.get(before)));
        (before, word(&source.text, lexed.tokens.get(at + 1)))
    };
    let in_template = |at: usize| {
        let before = lexed.tokens.iter().take(at).rev().map(|token| word(&source.text, Some(token)));
        before.take_while(|text| !matches!(*text, ";" | "{" | "}")).any(|text| text == "template")
    };
    let is_own = kernel.template.iter().flatten().any(|param| param.name == name);
    // Parameters are not declared outside.
    let is_inner = |at: usize| {
        let (before, after) = around(at);
        let is_named = matches!(before, "typename" | "class") || matches!(after, "*" | "&" | ">");
        let is_used = is_own
            && matches!(before, "(" | "<" | "+" | "-" | "*" | "/" | "%" | "[" | "return")
            && after != "=";
        is_named || is_used || (is_own && is_word(before) && matches!(after, "," | ")") && in_template(at))
    };
    let in_lines = lexed.directives.iter().flat_map(|line| &line.tokens);
    let is_macro = in_lines.into_iter().any(|token| word(&source.text, Some(token)) == name);
    let is_other = (0..lexed.tokens.len()).filter(|at| is_name(*at)).any(|at| !is_inner(at));
    (kernels.doubts.is_empty() && includes_nothing && !is_macro && !is_other).then_some(name)
}

pub(super) fn report(
    resolved: &Resolved,
    unit: &Unit,
    name: &str,
    source: &Arc<Source>,
    kernel: &Kernel,
) -> Diagnostic {
    let manifest = &resolved.manifest;
    let in_kernel = Span::new(source, kernel.name_range.clone());
    let argument = word_in(&unit.kernel_span, name);
    let declared = declaration(resolved, name);
    if manifest.attributes.iter().any(|decl| decl.name.value == name) {
        return AttributeAsTemplateArgument { name, argument, in_kernel, declared }.into();
    }
    let mut of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    if of_variants.any(|decl| decl.name.value == name) {
        return ConstantOfOtherVariants { name, argument, in_kernel, declared }.into();
    }
    let types = unit.types.iter().map(|(name, _)| name.as_str());
    let formats = unit.formats.iter().map(|(name, _)| name.as_str());
    let constants = unit.constants.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = types.chain(formats).chain(constants).collect();
    let near = suggest(name, names.iter().copied());
    let is_own = kernel.template.iter().flatten().any(|param| param.name == name);
    if is_own && near.is_none() {
        return UndecidedTemplateParameter { name, argument, in_kernel }.into();
    }
    let error = unknown(name, &unit.kernel_span, &source.path.display().to_string(), &names);
    let error = error.related(in_kernel, "the kernel");
    match near.and_then(|near| Some((near, declaration(resolved, near)?))) {
        Some((near, place)) => error.related(place, format!("`{near}` is declared here")),
        None => error,
    }
}

fn declaration(resolved: &Resolved, name: &str) -> Option<Span> {
    let manifest = &resolved.manifest;
    let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    let constants = manifest.constants.iter().chain(of_variants).map(|decl| &decl.name);
    let names = manifest.types.iter().map(|decl| &decl.name).chain(constants);
    let names = names.chain(manifest.formats.iter().map(|decl| &decl.name));
    let mut names = names.chain(manifest.attributes.iter().map(|decl| &decl.name));
    let found = names.find(|known| known.value == name)?;
    Some(Span::new(&resolved.source, found.range.clone()))
}
