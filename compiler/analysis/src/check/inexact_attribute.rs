//! Reports attributes that TensorRT's ONNX parser changes. TensorRT-RTX 1.7 silently truncates integers to 32 bits
//! (observed); ONNX floats are single precision.

use cubinder_expr::{Interval, Value};
use cubinder_model::AttributeElement;

use super::draft_view::DraftView;
use super::errors::{InexactFloat, InexactInteger};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::AttributeDecl;

const CARRIED: Interval = Interval { min: i32::MIN as i64, max: i32::MAX as i64 };

pub(super) fn check(view: &DraftView<'_>) -> Vec<Diagnostic> {
    view.resolved.manifest.attributes.iter().filter_map(|decl| inexact(view, decl)).collect()
}

fn inexact(view: &DraftView<'_>, decl: &AttributeDecl) -> Option<Diagnostic> {
    let attribute = decl.name.value.clone();
    let lists_only = |is_exact: fn(&Value) -> bool| {
        decl.one_of.as_ref().is_some_and(|one_of| one_of.value.iter().all(is_exact))
    };
    let range_is = |is_exact: fn(&Value, &Value) -> bool| match decl.range.as_ref().map(|range| &range.value)
    {
        Some((Some(least), Some(most))) => is_exact(least, most),
        _ => false,
    };
    let span = Span::new(&view.resolved.source, decl.ty.range.clone());
    match decl.ty.value.element {
        AttributeElement::I64
            if !lists_only(is_carried) && !range_is(|least, most| is_carried(least) && is_carried(most)) =>
        {
            Some(InexactInteger { attribute, span }.into())
        }
        AttributeElement::F64
            if !lists_only(is_single) && !range_is(|least, most| least == most && is_single(least)) =>
        {
            Some(InexactFloat { attribute, span }.into())
        }
        _ => None,
    }
}

fn is_carried(value: &Value) -> bool {
    value.as_int().is_some_and(|value| CARRIED.contains(value))
}

fn is_single(value: &Value) -> bool {
    #[allow(clippy::cast_possible_truncation)]
    let single = |value: f64| f64::from(value as f32);
    matches!(value, Value::Float(value) if single(*value).total_cmp(value).is_eq())
}
