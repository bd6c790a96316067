//! Attributes with values that TensorRT's ONNX parser does not hand to a plugin as they are.
//!
//! Seen in the parser of TensorRT-RTX 1.7: INT and INTS arrive as 32 bits, cut off without a word; FLOAT and FLOATS are single
//! in ONNX itself. Strings and bytes arrive whole.

use std::ops::Range;

use cubinder_expr::{Interval, Value};
use cubinder_model::AttributeElement;
use toml::de::{DeTable, DeValue};

use super::draft_view::DraftView;
use super::errors::{InexactFloat, InexactInteger};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::AttributeDecl;

/// What arrives of an integer.
const CARRIED: Interval = Interval { min: i32::MIN as i64, max: i32::MAX as i64 };

/// A warning for each such attribute.
pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    view.resolved.manifest.attributes.iter().filter_map(|decl| inexact(view, decl)).collect()
}

fn inexact(view: &DraftView<'_>, decl: &AttributeDecl) -> Option<Diagnostic> {
    let attribute = decl.name.value.clone();
    let lists_only = |is_exact: fn(&Value) -> bool| {
        decl.one_of.as_ref().is_some_and(|one_of| one_of.value.iter().all(is_exact))
    };
    let span = || {
        let range = type_range(&view.resolved.source.text, &decl.name.value);
        Span::new(&view.resolved.source, range.unwrap_or_else(|| decl.name.range.clone()))
    };
    match decl.ty.element {
        AttributeElement::I64 if !lists_only(is_carried) && !range_is_carried(decl) => {
            Some(InexactInteger { attribute, span: span() }.into())
        }
        AttributeElement::F64 if !lists_only(is_single) && !is_one_single(decl) => {
            Some(InexactFloat { attribute, span: span() }.into())
        }
        _ => None,
    }
}

fn range_is_carried(decl: &AttributeDecl) -> bool {
    let Some((Some(least), Some(most))) = decl.range.as_ref().map(|range| &range.value) else { return false };
    is_carried(least) && is_carried(most)
}

/// Whether the range leaves one number, which single precision has.
fn is_one_single(decl: &AttributeDecl) -> bool {
    let Some((Some(least), Some(most))) = decl.range.as_ref().map(|range| &range.value) else { return false };
    least == most && is_single(least)
}

fn is_carried(value: &Value) -> bool {
    value.as_int().is_some_and(|value| CARRIED.contains(value))
}

fn is_single(value: &Value) -> bool {
    #[allow(clippy::cast_possible_truncation)]
    let single = |value: f64| f64::from(value as f32);
    matches!(value, Value::Float(value) if single(*value).total_cmp(value).is_eq())
}

/// Where the type of an attribute stands in the manifest.
fn type_range(text: &str, name: &str) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let DeValue::Table(attributes) = document.get_ref().get("attributes")?.get_ref() else { return None };
    let DeValue::Table(attribute) = attributes.get(name)?.get_ref() else { return None };
    Some(attribute.get("type")?.span())
}
