//! `[types]`, `[formats]`, `[constants]` and `[functions]`: names for types, numbers and expressions.

use std::ops::Range;

use cubinder_expr::Value;
use toml::de::DeValue;

use super::super::form::list;
use super::super::form::{Entry, Form};
use super::super::{Alternative, ConstantDecl, FunctionDecl, Parameter};
use super::unknown_type;
use crate::diagnostic::{Diagnostic, suggest};
use crate::rules;

/// A line of `[types]` or `[formats]`.
pub(super) fn parameter<T: Alternative>(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Parameter<T>> {
    let name = entry.name();
    form.identifier(&name, &format!("a {} parameter", T::WHAT));
    if T::EACH.iter().any(|known| known.word() == name.value) {
        let message = format!("a {} parameter cannot be called `{}`", T::WHAT, name.value);
        let diagnostic = Diagnostic::error(message)
            .code(rules::BAD_NAME)
            .at(form.span(name.range.clone()), format!("this is {}", T::ONE));
        form.report(diagnostic);
    }
    alternatives(form, entry)
}

/// A parameter with what it can be: a line of `[types]` or `[formats]`, or of a variant's or combination's `types` or `formats`. The
/// reader of names decides what the name may be.
pub(super) fn alternatives<T: Alternative>(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Parameter<T>> {
    let name = entry.name();
    let items = form.values(entry, &format!("an array of {}", T::MANY))?;
    if items.is_empty() {
        let message = format!("the {} parameter `{}` has no alternatives", T::WHAT, name.value);
        let diagnostic = Diagnostic::error(message)
            .code(rules::WRONG_VALUE)
            .at(form.span(entry.range.clone()), format!("expected at least one of the {}", T::MANY));
        form.report(diagnostic);
        return None;
    }
    let mut alternatives: Vec<(T, Range<usize>)> = Vec::new();
    let mut whole = true;
    for item in &items {
        let Some(found) = alternative::<T>(form, item) else {
            whole = false;
            continue;
        };
        if let Some((_, first)) = alternatives.iter().find(|(known, _)| *known == found) {
            let diagnostic = Diagnostic::error(format!("`{}` lists `{}` twice", name.value, found.word()))
                .code(rules::DECLARED_TWICE)
                .at(form.span(item.range.clone()), "the second time")
                .related(form.span(first.clone()), "the first time");
            form.report(diagnostic);
            continue;
        }
        alternatives.push((found, item.range.clone()));
    }
    let alternatives = alternatives.into_iter().map(|(found, _)| found).collect();
    whole.then(|| Parameter { name, alternatives, range: entry.range.clone() })
}

fn alternative<T: Alternative>(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<T> {
    let name = form.string(entry)?;
    let known = T::EACH.iter().copied().find(|known| known.word() == name.value);
    if known.is_none() {
        let names: Vec<&str> = T::EACH.iter().map(|known| known.word()).collect();
        match T::WHAT {
            "type" => unknown_type(form, &name, "element type", &names),
            _ => {
                let diagnostic =
                    unknown_format(&name.value, &names).at(form.span(name.range.clone()), "not a format");
                form.report(diagnostic);
            }
        }
    }
    known
}

/// The error for a format that there is not, without its place. `known` is what it could be.
pub(crate) fn unknown_format(name: &str, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("unknown format `{name}`"))
        .code(rules::UNKNOWN_TYPE)
        .note(format!("the formats are {}", list(known)));
    match meant_format(name).or_else(|| suggest(name, known.iter().copied())) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// The format that other tools call so: TensorRT's `kHWC8`, `trtexec`'s `fp16:hwc8`, PyTorch's `channels_last`.
fn meant_format(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let plain = lower.strip_prefix('k').unwrap_or(&lower);
    let plain = plain.rsplit_once(':').map_or(plain, |(_, format)| format);
    let ours = match plain {
        "chw" | "nchw" | "ncdhw" | "row_major" | "contiguous" => "linear",
        "nhwc" | "channels_last" => "hwc",
        "ndhwc" => "dhwc",
        plain => plain,
    };
    cubinder_expr::Format::from_name(ours).map(cubinder_expr::Format::name)
}

/// A line of `[constants]`, or of a variant's `constants`.
pub(super) fn constant(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<ConstantDecl> {
    let name = entry.name();
    form.identifier(&name, "a constant");
    let value = match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Value::Int)?,
        DeValue::Float(_) => form.float(entry).map(Value::Float)?,
        DeValue::Boolean(value) => Value::Bool(*value),
        _ => {
            let diagnostic =
                Diagnostic::error(format!("the constant `{}` must be a number or a boolean", name.value))
                    .code(rules::WRONG_VALUE)
                    .at(form.span(entry.range.clone()), format!("found {}", entry.found()));
            form.report(diagnostic);
            return None;
        }
    };
    Some(ConstantDecl { name, value, value_range: entry.range.clone() })
}

/// A line of `[functions]`.
pub(super) fn function(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<FunctionDecl> {
    let name = entry.name();
    form.identifier(&name, "a function");
    let mut section = form.table(entry, format!("functions.{}", name.value))?;
    let params = form.require(&mut section, "params", "[\"...\"]");
    let params_range = params.as_ref().map_or(0..0, |entry| entry.range.clone());
    let params = params.and_then(|entry| form.strings(&entry));
    let body = form.require(&mut section, "body", "\"...\"").and_then(|entry| form.expression(&entry));
    form.finish(&section);
    let (params, body) = (params?, body?);
    for (index, param) in params.iter().enumerate() {
        form.identifier(param, "a parameter");
        if let Some(first) = params.iter().take(index).find(|first| first.value == param.value) {
            let diagnostic =
                Diagnostic::error(format!("`{}` has two parameters `{}`", name.value, param.value))
                    .code(rules::DECLARED_TWICE)
                    .at(form.span(param.range.clone()), "the second one")
                    .related(form.span(first.range.clone()), "the first one");
            form.report(diagnostic);
        }
    }
    Some(FunctionDecl { name, params, params_range, body })
}
