//! Selects a row's only `[[code]]` and binds its launch. Never reads code files.

mod code_assumptions;
mod parameter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cubinder_expr::Value;

use super::declarations::{Declarations, nearest};
use super::errors::{
    CodeNeverLaunched, CodeWithoutFiles, NoCodeForRow, NoneOfItsValues, SeveralCodesForRow,
    TellsNoVariantsApart, UnknownCode,
};
use super::expression::Compiler;
use super::rows::Row;
use super::{ArgDraft, beside};
use crate::diagnostic::{Diagnostic, Span};
use crate::kernel_signature::Signature;
use crate::loaded::LoadedCode;
use crate::manifest::toml_reader::list;
use crate::manifest::{
    Alternative, CodeDecl, CodeKind, LaunchDecl, Located, Manifest, Parameter, ParameterKind, ServeDecl,
};

pub use parameter::element;

pub(super) use code_assumptions::{assumptions, conjoined, conjuncts};

/// Precompiled code of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignCode {
    /// Name in the manifest.
    pub name: String,
    /// Span of its `[[code]]`.
    pub name_span: Span,
    /// Kernel symbol, if declared.
    pub kernel: Option<(String, Span)>,
    /// Declared parameters.
    pub signature: Signature,
    /// Span of each parameter.
    pub param_spans: Vec<Span>,
    /// Tool that compiled it; may be empty.
    pub made_by: String,
    /// Files.
    pub files: Vec<ForeignFile>,
}

/// Code file.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignFile {
    /// Path, resolved against the manifest's folder.
    pub path: std::path::PathBuf,
    /// Span in the manifest.
    pub span: Span,
    /// Declared kind.
    pub kind: CodeKind,
    /// Contents, once read.
    pub loaded: Option<Arc<LoadedCode>>,
}

pub(super) fn check(declared: Declarations<'_>) -> Vec<Diagnostic> {
    let manifest = declared.manifest;
    let serves = manifest.code.iter().flat_map(|code| &code.serves);
    let mut found: Vec<Diagnostic> = serves.filter_map(|decl| check_serves(declared, decl)).collect();
    let launched = manifest.launches.iter().filter_map(|step| step.launch()?.code.as_ref());
    for code in &manifest.code {
        let name = code.name.value.as_str();
        if !code.has_files {
            found.push(CodeWithoutFiles { name, span: declared.span(&code.range) }.into());
        }
        if !launched.clone().any(|launched| launched.value == name) {
            found.push(CodeNeverLaunched { name, span: declared.span(&code.name.range) }.into());
        }
    }
    let names = manifest.code.iter().map(|code| &code.name);
    let all: Vec<&str> = names.clone().map(|name| name.value.as_str()).collect();
    for name in launched.filter(|name| !all.contains(&name.value.as_str())) {
        let near = nearest(&name.value, names.clone()).map(|near| &near.value);
        let none = all.is_empty().then_some("declare it");
        let known = Some(list(&all)).filter(|_| near.is_none() && none.is_none());
        found.push(
            UnknownCode { name: &name.value, span: declared.span(&name.range), near, none, known }.into(),
        );
    }
    found
}

/// Maximum declared targets per variant.
const MAX_DECLARED: usize = 4;

fn check_serves(declared: Declarations<'_>, decl: &ServeDecl) -> Option<Diagnostic> {
    let (manifest, name, value) = (declared.manifest, decl.name.value.as_str(), &decl.value.value);
    if declared.is_broken(name) {
        return None;
    }
    let types = alternatives("types", &manifest.types, name);
    let parameter = types.or_else(|| alternatives("formats", &manifest.formats, name));
    let (what, values, places) = parameter.unwrap_or_else(|| {
        let specialize = declared.attribute(name).and_then(|it| Some((&it.name, it.specialize.as_ref()?)));
        let constants = declared.constants().filter(|constant| constant.name.value == name);
        let (values, places) = match specialize {
            Some((name, values)) => (values.value.clone(), vec![name]),
            None => constants.map(|constant| (constant.value.clone(), &constant.name)).unzip(),
        };
        ("values", values, places)
    });
    if values.is_empty() {
        let formats = manifest.formats.iter().map(|it| &it.name);
        let names = manifest.types.iter().map(|it| &it.name).chain(formats);
        let near = nearest(name, names.chain(manifest.constants.iter().map(|it| &it.name)));
        let (span, near) = (declared.span(&decl.name.range), near.map(|near| &near.value));
        return Some(TellsNoVariantsApart { name, span, near }.into());
    }
    (!values.contains(value)).then(|| {
        let all: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let places = places.iter().take(MAX_DECLARED).map(|name| &name.range);
        let shown = match value {
            Value::Str(text) => text.clone(),
            value => value.to_string(),
        };
        let (span, places, all) = (declared.span(&decl.value.range), declared.spans(places), all.join(", "));
        NoneOfItsValues { name, shown, span, what, places, all }.into()
    })
}

type DeclaredValues<'m> = (&'static str, Vec<Value>, Vec<&'m Located<String>>);

fn alternatives<'m, T: Alternative>(
    what: &'static str,
    parameters: &'m [Parameter<T>],
    name: &str,
) -> Option<DeclaredValues<'m>> {
    let parameter = parameters.iter().find(|parameter| parameter.name.value == name)?;
    let words = parameter.alternatives.iter().map(|known| Value::Str(known.word().into())).collect();
    Some((what, words, vec![&parameter.name]))
}

fn serves(code: &CodeDecl, row: &Row) -> bool {
    code.serves.iter().all(|decl| {
        let (name, value) = (&decl.name.value, &decl.value.value);
        let is_word = |word: &str| matches!(value, Value::Str(text) if text == word);
        let types = row.types.iter().any(|(known, ty)| known == name && is_word(ty.name()));
        let formats = row.formats.iter().any(|(known, format)| known == name && is_word(format.name()));
        types || formats || row.values().any(|(known, own)| known == name && own == value)
    })
}

fn code_for_row<'m>(
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

pub(super) fn resolve(compiler: &mut Compiler<'_>, decl: &LaunchDecl, row: &Row) -> Option<ForeignCode> {
    let declared = compiler.declared;
    let name = decl.code.as_ref()?;
    let named: Vec<&CodeDecl> =
        declared.manifest.code.iter().filter(|code| code.name.value == name.value).collect();
    if named.is_empty() || named.iter().any(|code| !code.is_whole) {
        return None;
    }
    let serves = || named.iter().flat_map(|code| &code.serves);
    serves().for_each(|decl| compiler.use_name(&decl.name.value));
    // Its error may be the cause.
    if serves().any(|decl| compiler.is_unclear(&decl.name.value) || check_serves(declared, decl).is_some()) {
        return None;
    }
    match code_for_row(declared.manifest, decl, row) {
        Ok(code) => draft(compiler, code, row),
        Err(serving) => {
            let all = if serving.is_empty() { &named } else { &serving };
            let codes = declared.spans(all.iter().take(8).map(|code| &code.name.range));
            let (span, name, row_name) = (declared.span(&name.range), name.value.as_str(), row.describe());
            let error: Diagnostic = match serving.is_empty() {
                true => NoCodeForRow { name, row: row_name, span, codes }.into(),
                false => SeveralCodesForRow { name, row: row_name, span, codes }.into(),
            };
            compiler.report(error, Some(row.index));
            None
        }
    }
}

fn draft(compiler: &mut Compiler<'_>, code: &CodeDecl, row: &Row) -> Option<ForeignCode> {
    let (mut params, mut param_spans) = (Vec::new(), Vec::new());
    let mut is_right = true;
    for decl in &code.parameters {
        let ParameterKind::Passed(passed) = &decl.kind else { continue };
        match parameter::param(compiler, decl, passed, row) {
            Ok(param) => {
                params.push(param);
                param_spans.push(compiler.span(&decl.range));
            }
            Err(error) => {
                is_right = false;
                compiler.report(*error, Some(row.index));
            }
        }
    }
    let files = code.files.iter().map(|(kind, path)| ForeignFile {
        path: beside(compiler.declared.source, &path.value),
        span: compiler.span(&path.range),
        kind: *kind,
        loaded: None,
    });
    let files: Vec<ForeignFile> = files.collect();
    let kernel = code.kernel.as_ref().map(|kernel| (kernel.value.clone(), compiler.span(&kernel.range)));
    let symbol = kernel.as_ref().map_or(&code.name.value, |(symbol, _)| symbol).clone();
    (is_right && !files.is_empty()).then(|| ForeignCode {
        name: code.name.value.clone(),
        name_span: compiler.span(&code.name.range),
        kernel,
        signature: Signature { kernel: symbol, params },
        param_spans,
        made_by: code.made_by.clone(),
        files,
    })
}

pub(super) fn passed(
    manifest: &Manifest,
    decl: &LaunchDecl,
    row: &Row,
    mut args: Vec<ArgDraft>,
) -> Vec<ArgDraft> {
    if let Ok(code) = code_for_row(manifest, decl, row) {
        let fixed = || code.parameters.iter().filter(|decl| matches!(decl.kind, ParameterKind::Fixed(_)));
        args.retain(|arg| !fixed().any(|decl| decl.name.value == arg.name));
    }
    args
}
