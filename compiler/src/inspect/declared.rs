//! Attributes and tensors for people, one line for each.

use serde_json::Value;

use super::{DeclaredReport, Detail, DimsReport, LimitsReport, Range};

/// The most values of a list that are told where not all is to be told.
const SHOWN_VALUES: usize = 16;

/// `attribute pads: i32[] = [1, 1], 2..=16 elements, each 0..=1024, before and after`; of a node `pads = [1, 1]`.
pub(super) fn attribute(declared: &DeclaredReport, detail: Detail) -> String {
    let DeclaredReport { name, types, .. } = declared;
    if let (Some(value), Detail::Short) = (&declared.value, detail) {
        return format!("{name} = {}", shown(value));
    }
    let ty = types.join(" or ");
    let is_list = ty.ends_with("[]");
    let given = declared.value.as_ref().or(declared.default.as_ref());
    let given: String = given.iter().map(|value| format!(" = {}", shown(value))).collect();
    let unit = if is_list { "elements" } else { "bytes" };
    let each = if is_list { "each " } else { "" };
    let compiled = &declared.specialize;
    // Where there is code for all that it may be, one of both says everything.
    let one_of = Some(&declared.one_of).filter(|values| !values.is_empty() && *values != compiled);
    let facts = [
        declared.length.as_ref().map(|length| format!("{length} {unit}")),
        declared.range.as_ref().map(|range| format!("{each}{range}")),
        one_of.map(|values| format!("{each}one of {}", list(values, detail))),
        (!compiled.is_empty()).then(|| format!("compiled for {}", list(compiled, detail))),
        doc(declared),
    ];
    format!("attribute {name}: {ty}{given}{}", joined(facts))
}

/// `input x: f32 or f16, linear or hwc8, rank 4, dims 1..=64, what is scaled`.
pub(super) fn tensor(declared: &DeclaredReport) -> String {
    let DeclaredReport { role, name, types, formats, .. } = declared;
    let values = declared.values.as_ref().map(|values| match (&values.min, &values.max) {
        (None, None) => "a shape input".to_owned(),
        _ => format!("a shape input of {values}"),
    });
    let size = declared.size.as_ref().map(|size| match size.upper == size.opt {
        true => format!("a size of at most {}", size.upper),
        false => format!("a size of at most {}, usually {}", size.upper, size.opt),
    });
    // An output in place has its input's shape, and a size is a single number.
    let is_said = declared.alias.is_some() || size.is_some();
    let shape = declared.shape.as_ref().filter(|_| !is_said).map(|shape| format!("shape {shape}"));
    let facts = [
        (!formats.is_empty()).then(|| formats.join(" or ")),
        declared.rank.as_ref().and_then(rank),
        declared.limits.as_ref().and_then(dims),
        declared
            .limits
            .as_ref()
            .and_then(|limits| limits.numel.as_ref())
            .map(|numel| format!("numel {numel}")),
        values,
        declared.alias.as_ref().map(|alias| format!("in the memory of {alias}")),
        size,
        shape,
        doc(declared),
    ];
    format!("{role} {name}: {}{}", types.join(" or "), joined(facts))
}

/// Nothing where it may be any rank that TensorRT has.
fn rank(rank: &Range) -> Option<String> {
    let is_any = rank.min == Some(0.into()) && rank.max == Some(cubinder_bundle::model::MAX_RANK.into());
    (!is_any).then(|| format!("rank {rank}"))
}

fn dims(limits: &LimitsReport) -> Option<String> {
    limits.dims.as_ref().map(|dims| match dims {
        DimsReport::Every(range) => format!("dims {range}"),
        DimsReport::Each(ranges) => {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            format!("dims [{}]", ranges.join(", "))
        }
    })
}

fn doc(declared: &DeclaredReport) -> Option<String> {
    Some(declared.doc.clone()).filter(|doc| !doc.is_empty())
}

fn joined<const N: usize>(facts: [Option<String>; N]) -> String {
    facts.into_iter().flatten().map(|fact| format!(", {fact}")).collect()
}

/// Values with commas between them; the first of many.
fn list(values: &[Value], detail: Detail) -> String {
    let most = if detail == Detail::Full { values.len() } else { SHOWN_VALUES };
    let mut words: Vec<String> = values.iter().take(most).map(shown).collect();
    if values.len() > most {
        words.push(format!("and {} more", values.len() - most));
    }
    words.join(", ")
}

/// A value as manifests write it.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        // A float that JSON has no number for.
        Value::Object(float) => float.values().filter_map(Value::as_str).collect(),
        value => value.to_string(),
    }
}
