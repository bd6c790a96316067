//! Attributes with values that TensorRT's ONNX parser does not hand to a plugin as they are.
//!
//! Seen in the parser of TensorRT-RTX 1.7: INT and INTS arrive as 32 bits, cut off without a word; FLOAT and FLOATS are single
//! in ONNX itself. Strings and bytes arrive whole.

use std::ops::Range;

use cubinder_expr::{Interval, Value};
use cubinder_model::AttributeElement;
use toml::de::{DeTable, DeValue};

use super::site::Site;
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::AttributeDecl;
use crate::rules;

/// What arrives of an integer.
const CARRIED: Interval = Interval { min: i32::MIN as i64, max: i32::MAX as i64 };

/// A warning for each such attribute.
pub(super) fn check(site: &Site<'_>) -> Vec<Diagnostic> {
    let inexact = site.resolved.manifest.attributes.iter().filter_map(|decl| Some((decl, harm(decl)?)));
    inexact
        .map(|(decl, harm)| {
            let range = type_range(&site.resolved.source.text, &decl.name.value);
            let span = Span::new(&site.resolved.source, range.unwrap_or_else(|| decl.name.range.clone()));
            Diagnostic::warning(format!("ONNX cannot carry every value of `{}`", decl.name.value))
                .code(rules::INEXACT_ATTRIBUTE)
                .at(span, harm.label)
                .note(harm.note)
                .help(harm.help)
        })
        .collect()
}

/// What happens to some of an attribute's values.
struct Harm {
    label: &'static str,
    note: &'static str,
    help: &'static str,
}

fn harm(decl: &AttributeDecl) -> Option<Harm> {
    let only = decl.one_of.as_ref().map(|one_of| one_of.value.as_slice());
    match decl.ty.element {
        AttributeElement::I64 => {
            let listed = only.is_some_and(|values| values.iter().all(is_carried));
            (!listed && !range_is_carried(decl)).then_some(Harm {
                label: "integers beyond 32 bits arrive as others",
                note: "TensorRT's parser hands a plugin the lower 32 bits of an ONNX integer, without a word",
                help: "take `i32`, or say with `range` or `one_of` that only values of 32 bits are meant",
            })
        }
        AttributeElement::F64 => {
            let listed = only.is_some_and(|values| values.iter().all(is_single));
            (!listed && !is_one_single(decl)).then_some(Harm {
                label: "arrives rounded to single precision",
                note: "floats of an ONNX attribute are of 32 bits",
                help: "take `f32`, which says what arrives, or list with `one_of` the values that are meant",
            })
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
