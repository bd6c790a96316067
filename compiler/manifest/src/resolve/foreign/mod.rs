//! Kernels that other compilers made: which `[[code]]` serves a row, and what a launch of it binds.
//!
//! Owns that each row has exactly one, and what their parameters mean there. Never reads a file of code.

mod assumed;
mod parameter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cubinder_expr::{DataType, Format, Value};

use super::expression::Compiler;
use super::rows::Row;
use super::{ArgDraft, beside};
use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::kernel_signature::Signature;
use crate::loaded::Loaded;
use crate::manifest::form::list;
use crate::manifest::{
    Alternative, CodeDecl, CodeKind, LaunchDecl, Located, Manifest, ParameterKind, ServeDecl, StepDecl,
};
use crate::rules;

pub use parameter::element;

pub(super) use assumed::{assumptions, conjoined, conjuncts};

/// The code of one launch of one variant, where another compiler made it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignCode {
    /// What the manifest calls it.
    pub name: String,
    /// Where its `[[code]]` is.
    pub name_span: Span,
    /// The kernel's symbol, where the manifest says it.
    pub kernel: Option<(String, Span)>,
    /// What the manifest says of its parameters. Its kernel is the symbol, once the files are read.
    pub signature: Signature,
    /// Where each parameter is.
    pub param_spans: Vec<Span>,
    /// What made it; empty where that is not said.
    pub made_by: String,
    /// The files.
    pub files: Vec<ForeignFile>,
}

/// A file of code.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignFile {
    /// Resolved against the manifest's folder.
    pub path: std::path::PathBuf,
    /// Where the manifest names it.
    pub span: Span,
    /// Which of both the manifest says it is.
    pub kind: CodeKind,
    /// What is in it, once it is read.
    pub loaded: Option<Arc<Loaded>>,
}

/// Reports what is wrong with `[[code]]` whatever rows there are.
pub(super) fn check(manifest: &Manifest, source: &Arc<Source>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let span = |range: &std::ops::Range<usize>| Span::new(source, range.clone());
    for decl in manifest.code.iter().flat_map(|code| &code.serves) {
        found.extend(serve(manifest, decl, source));
    }
    for code in manifest.code.iter().filter(|code| !code.has_files) {
        found.push(
            Diagnostic::error(format!("the code `{}` has no files", code.name.value))
                .code(rules::MISSING_KEY)
                .at(span(&code.range), "expected `cubin = [...]` or `ptx = [...]` in this table")
                .note("`cubin` names files of machine code, `ptx` files of PTX; there can be both"),
        );
    }
    let launches = || manifest.launches.iter().filter_map(StepDecl::launch);
    let is_launched = |code: &CodeDecl| {
        launches().any(|launch| launch.code.as_ref().is_some_and(|name| name.value == code.name.value))
    };
    for code in manifest.code.iter().filter(|code| !is_launched(code)) {
        let name = &code.name.value;
        found.push(
            Diagnostic::warning(format!("the code `{name}` is never launched"))
                .code(rules::UNUSED)
                .at(span(&code.name.range), "declared here")
                .help(format!("launch it: `code = \"{name}\"` in a `[[launches]]`, or leave it out")),
        );
    }
    let names: Vec<&str> = manifest.code.iter().map(|code| code.name.value.as_str()).collect();
    for name in launches().filter_map(|launch| launch.code.as_ref()) {
        if names.contains(&name.value.as_str()) {
            continue;
        }
        let diagnostic = Diagnostic::error(format!("no `[[code]]` is called `{}`", name.value))
            .code(rules::UNKNOWN_NAME)
            .at(span(&name.range), "not declared");
        found.push(match suggest(&name.value, names.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None if names.is_empty() => diagnostic.help(
                "declare it: a `[[code]]` table with `name`, `parameters`, and `cubin` or `ptx`; `cubinder import` writes one",
            ),
            None => diagnostic.note(format!("there are {}", list(&names))),
        });
    }
    found
}

/// So many declarations of a constant are shown: each variant may have one.
const MOST_DECLARED: usize = 4;

/// What is wrong with a line of `for`.
fn serve(manifest: &Manifest, decl: &ServeDecl, source: &Arc<Source>) -> Option<Diagnostic> {
    let (name, value) = (&decl.name.value, &decl.value.value);
    if manifest.broken.contains(name) {
        return None;
    }
    // The mistake may be here or there: both are shown.
    let not_one_of = |what: &str, all: &[String], declared: &[&Located<String>]| {
        let error = Diagnostic::error(format!("`{name}` is never {}", shown(value)))
            .code(rules::CODE_ROWS)
            .at(Span::new(source, decl.value.range.clone()), format!("not among its {what}"))
            .help(format!("it is one of {}", all.join(", ")));
        declared.iter().take(MOST_DECLARED).fold(error, |error, declared| {
            error.related(Span::new(source, declared.range.clone()), format!("its {what}"))
        })
    };
    if let Some(ty) = manifest.types.iter().find(|ty| ty.name.value == *name) {
        let others = alternative::<DataType>(&ty.alternatives, value);
        return others.map(|all| not_one_of("types", &all, &[&ty.name]));
    }
    if let Some(format) = manifest.formats.iter().find(|format| format.name.value == *name) {
        let others = alternative::<Format>(&format.alternatives, value);
        return others.map(|all| not_one_of("formats", &all, &[&format.name]));
    }
    let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    let constants = manifest.constants.iter().chain(of_variants).filter(|it| it.name.value == *name);
    let specialized = manifest.attributes.iter().find(|it| it.name.value == *name);
    let specialized = specialized.and_then(|it| Some((&it.name, it.specialize.as_ref()?)));
    let (values, declared): (Vec<&Value>, Vec<&Located<String>>) = match specialized {
        Some((name, values)) => (values.value.iter().collect(), vec![name]),
        None => constants.map(|it| (&it.value, &it.name)).unzip(),
    };
    if values.is_empty() {
        let names =
            manifest.types.iter().map(|it| &it.name).chain(manifest.formats.iter().map(|it| &it.name));
        let names = names.chain(manifest.constants.iter().map(|it| &it.name));
        let known: Vec<&str> = names.map(|name| name.value.as_str()).collect();
        let error =
            Diagnostic::error(format!("`{name}` tells no variants apart")).code(rules::UNKNOWN_NAME).at(
                Span::new(source, decl.name.range.clone()),
                "no type, no format, no constant and no attribute with `specialize`",
            );
        return Some(match suggest(name, known.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("leave it out, or name what the code was made for"),
        });
    }
    (!values.contains(&value)).then(|| {
        let all: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        not_one_of("values", &all, &declared)
    })
}

/// The alternatives, where the value is none of them.
fn alternative<T: Alternative>(alternatives: &[T], value: &Value) -> Option<Vec<String>> {
    let is_it = |known: &T| matches!(value, Value::Str(text) if text == known.word());
    let all = || alternatives.iter().map(|known| format!("`\"{}\"`", known.word())).collect();
    (!alternatives.iter().any(is_it)).then(all)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("`{text}`"),
        value => format!("`{value}`"),
    }
}

/// Whether a `[[code]]` is made for a row.
fn serves(code: &CodeDecl, row: &Row) -> bool {
    code.serves.iter().all(|decl| {
        let (name, value) = (&decl.name.value, &decl.value.value);
        let is_word = |word: &str| matches!(value, Value::Str(text) if text == word);
        let types = row.types.iter().any(|(known, ty)| known == name && is_word(ty.name()));
        let formats = row.formats.iter().any(|(known, format)| known == name && is_word(format.name()));
        types || formats || row.values().any(|(known, own)| known == name && own == value)
    })
}

/// The one `[[code]]` of a launch that serves a row; nothing where the name is not known, or none or several serve it.
fn of_row<'m>(
    manifest: &'m Manifest,
    launch: &LaunchDecl,
    row: &Row,
) -> Result<&'m CodeDecl, Vec<&'m CodeDecl>> {
    let name = launch.code.as_ref().map(|name| name.value.as_str());
    let named = manifest.code.iter().filter(|code| Some(code.name.value.as_str()) == name);
    let serving: Vec<&CodeDecl> = named.filter(|code| serves(code, row)).collect();
    match serving.as_slice() {
        [one] => Ok(one),
        _ => Err(serving),
    }
}

/// The code of a launch in a row; nothing where it is wrong, which was told.
pub(super) fn resolve(
    compiler: &mut Compiler<'_>,
    decl: &LaunchDecl,
    row: &Row,
    index: usize,
) -> Option<ForeignCode> {
    let manifest = compiler.manifest;
    let name = decl.code.as_ref()?;
    let named: Vec<&CodeDecl> = manifest.code.iter().filter(|code| code.name.value == name.value).collect();
    if named.is_empty() || named.iter().any(|code| !code.is_whole) {
        return None;
    }
    let serves = || named.iter().flat_map(|code| &code.serves);
    serves().for_each(|decl| compiler.use_name(&decl.name.value));
    // What is wrong with a line was told, and may be why there is nothing for a row.
    let is_wrong = |decl: &ServeDecl| {
        compiler.is_unclear(&decl.name.value) || serve(manifest, decl, compiler.source).is_some()
    };
    if serves().any(is_wrong) {
        return None;
    }
    let code = match of_row(manifest, decl, row) {
        Ok(code) => code,
        Err(serving) => {
            let what = if serving.is_empty() { "no code" } else { "several pieces of code" };
            let error = Diagnostic::error(format!("`{}` has {what} for {}", name.value, row.describe()))
                .code(rules::CODE_ROWS)
                .at(compiler.span(name.range.clone()), "launched here");
            let all = if serving.is_empty() { &named } else { &serving };
            let label = if serving.is_empty() { "not for it" } else { "for it" };
            let error = all
                .iter()
                .take(8)
                .fold(error, |error, code| error.related(compiler.span(code.name.range.clone()), label));
            compiler.report(
                match serving.is_empty() {
                    true => error.help("add a `[[code]]` of this name for it; or leave the types out that there is no code for"),
                    false => error.help("say in `for` which types, formats and constants each of them is made for"),
                },
                Some(index),
            );
            return None;
        }
    };
    draft(compiler, code, row, index)
}

fn draft(compiler: &mut Compiler<'_>, code: &CodeDecl, row: &Row, index: usize) -> Option<ForeignCode> {
    let (mut params, mut param_spans) = (Vec::new(), Vec::new());
    let mut is_right = true;
    for decl in &code.parameters {
        let ParameterKind::Passed(passed) = &decl.kind else { continue };
        match parameter::param(compiler, decl, passed, row) {
            Ok(param) => {
                params.push(param);
                param_spans.push(compiler.span(decl.range.clone()));
            }
            Err(error) => {
                is_right = false;
                compiler.report(*error, Some(index));
            }
        }
    }
    let span = |range: &std::ops::Range<usize>| compiler.span(range.clone());
    let files = code.files.iter().map(|(kind, path)| ForeignFile {
        path: beside(compiler.source, &path.value),
        span: span(&path.range),
        kind: *kind,
        loaded: None,
    });
    let files: Vec<ForeignFile> = files.collect();
    let kernel = code.kernel.as_ref().map(|kernel| (kernel.value.clone(), span(&kernel.range)));
    let symbol = kernel.as_ref().map_or(&code.name.value, |(symbol, _)| symbol).clone();
    (is_right && !files.is_empty()).then(|| ForeignCode {
        name: code.name.value.clone(),
        name_span: span(&code.name.range),
        kernel,
        signature: Signature { kernel: symbol, params },
        param_spans,
        made_by: code.made_by.clone(),
        files,
    })
}

/// Takes the arguments out that the kernel is not given: those of parameters that the code was made for one value of.
pub(super) fn passed(
    manifest: &Manifest,
    decl: &LaunchDecl,
    row: &Row,
    args: Vec<ArgDraft>,
) -> Vec<ArgDraft> {
    let Ok(code) = of_row(manifest, decl, row) else { return args };
    let is_fixed = |arg: &ArgDraft| {
        let fixed = code.parameters.iter().filter(|decl| matches!(decl.kind, ParameterKind::Fixed(_)));
        fixed.into_iter().any(|decl| decl.name.value == arg.name)
    };
    args.into_iter().filter(|arg| !is_fixed(arg)).collect()
}
