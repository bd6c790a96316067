//! `[types]`, `[constants]` and `[functions]`: names for types, numbers and expressions.

use std::ops::Range;

use cubinder_bundle::{DataType, Value};
use toml::de::DeValue;

use super::super::form::{Entry, Form};
use super::super::{ConstantDecl, FunctionDecl, TypeDecl};
use super::unknown_type;
use crate::diagnostic::Diagnostic;
use crate::rules;

/// A line of `[types]`.
pub(super) fn type_parameter(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<TypeDecl> {
    let name = entry.name();
    form.identifier(&name, "a type parameter");
    if DataType::from_name(&name.value).is_some() {
        let diagnostic = Diagnostic::error(format!("a type parameter cannot be called `{}`", name.value))
            .code(rules::BAD_NAME)
            .at(form.span(name.range.clone()), "this is an element type");
        form.report(diagnostic);
    }
    alternatives(form, entry)
}

/// A type parameter with the element types that it can be: a line of `[types]`, or of a variant's `types`. The reader of names
/// decides what the name may be.
pub(super) fn alternatives(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<TypeDecl> {
    let name = entry.name();
    let items = form.values(entry, "an array of element types")?;
    if items.is_empty() {
        let diagnostic =
            Diagnostic::error(format!("the type parameter `{}` has no alternatives", name.value))
                .code(rules::WRONG_VALUE)
                .at(form.span(entry.range.clone()), "expected at least one element type");
        form.report(diagnostic);
        return None;
    }
    let mut alternatives: Vec<(DataType, Range<usize>)> = Vec::new();
    let mut whole = true;
    for item in &items {
        let Some(ty) = element_type(form, item) else {
            whole = false;
            continue;
        };
        if let Some((_, first)) = alternatives.iter().find(|(known, _)| *known == ty) {
            let diagnostic = Diagnostic::error(format!("`{}` lists `{}` twice", name.value, ty.name()))
                .code(rules::DECLARED_TWICE)
                .at(form.span(item.range.clone()), "the second time")
                .related(form.span(first.clone()), "the first time");
            form.report(diagnostic);
            continue;
        }
        alternatives.push((ty, item.range.clone()));
    }
    let alternatives = alternatives.into_iter().map(|(ty, _)| ty).collect();
    whole.then(|| TypeDecl { name, alternatives, range: entry.range.clone() })
}

fn element_type(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<DataType> {
    let name = form.string(entry)?;
    let known = DataType::from_name(&name.value);
    if known.is_none() {
        let names: Vec<&str> = DataType::ALL.iter().map(|ty| ty.name()).collect();
        unknown_type(form, &name, "element type", &names);
    }
    known
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
