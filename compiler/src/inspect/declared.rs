use serde_json::Value;

use super::interface::each_once;
use super::{DeclaredReport, DimsReport, LimitsReport, PluginReport, Range, VariantReport, Verbosity};

/// Maximum listed values, unless `Full`.
const SHOWN_VALUES: usize = 16;

pub(super) fn attribute(declared: &DeclaredReport, detail: Verbosity) -> String {
    let DeclaredReport { name, types, .. } = declared;
    if let (Some(value), Verbosity::Short) = (&declared.value, detail) {
        return format!("{name} = {}", shown(value));
    }
    let ty = types.join(" or ");
    let is_list = ty.ends_with("[]");
    let given = declared.value.as_ref().or(declared.default.as_ref());
    let given: String = given.iter().map(|value| format!(" = {}", shown(value))).collect();
    let unit = if is_list { "elements" } else { "bytes" };
    let each = if is_list { "each " } else { "" };
    let compiled = &declared.specialize;
    // If all allowed values have code, one list suffices.
    let one_of = Some(&declared.one_of).filter(|values| !values.is_empty() && *values != compiled);
    let facts = [
        declared.length.as_ref().map(|length| format!("{length} {unit}")),
        declared.range.as_ref().map(|range| format!("{each}{range}")),
        one_of.map(|values| format!("{each}one of {}", list(values, detail))),
        (!compiled.is_empty()).then(|| format!("compiled for {}", list(compiled, detail))),
    ];
    format!("attribute {name}: {ty}{given}{}{}", joined(facts), doc(declared))
}

pub(super) fn tensor(declared: &DeclaredReport, variants: &[VariantReport]) -> String {
    let DeclaredReport { role, name, types, formats, .. } = declared;
    let pairs = pairs(name, variants);
    let has_all = formats.is_empty() || pairs.len() == types.len() * formats.len();
    let kinds = if has_all { types.join(" or ") } else { pairs.join(" or ") };
    let values = declared.values.as_ref().map(|values| match (&values.min, &values.max) {
        (None, None) => "a shape input".to_owned(),
        _ => format!("a shape input of {values}"),
    });
    let size = declared.size.as_ref().map(|size| match size.upper == size.opt {
        true => format!("a size of at most {}", size.upper),
        false => format!("a size of at most {}, usually {}", size.upper, size.opt),
    });
    // The input's shape, or a scalar.
    let is_said = declared.alias.is_some() || size.is_some();
    let shape = declared.shape.as_ref().filter(|_| !is_said).map(|shape| format!("shape {shape}"));
    let numel = declared.limits.as_ref().and_then(|limits| limits.numel.as_ref());
    let facts = [
        (has_all && !formats.is_empty()).then(|| formats.join(" or ")),
        declared.rank.as_ref().and_then(rank),
        declared.limits.as_ref().and_then(dims),
        numel.map(|numel| format!("numel {numel}")),
        values,
        declared.alias.as_ref().map(|alias| format!("in the memory of {alias}")),
        size,
        shape,
    ];
    format!("{role} {name}: {kinds}{}{}", joined(facts), doc(declared))
}

fn pairs(tensor: &str, variants: &[VariantReport]) -> Vec<String> {
    let rows = variants.iter().flat_map(|variant| &variant.tensors);
    each_once(rows.filter(|row| row.name == tensor).map(|row| format!("{} {}", row.ty, row.format)))
}

pub(super) fn onnx_node(plugin: &PluginReport) -> String {
    let text = |value: &str| Value::from(value).to_string();
    let mut parts = vec![
        format!("op_type={}", text(&plugin.name)),
        format!("plugin_namespace={}", text(&plugin.namespace)),
        format!("plugin_version={}", text(&plugin.version)),
    ];
    let inputs = plugin.interface.iter().filter(|it| it.role == "input").enumerate();
    let shape_inputs = inputs.filter(|(_, it)| it.values.is_some()).map(|(index, _)| index.to_string());
    let shape_inputs: Vec<String> = shape_inputs.collect();
    if !shape_inputs.is_empty() {
        parts.push(format!("tensorrt_plugin_shape_input_indices=[{}]", shape_inputs.join(", ")));
    }
    let attributes = plugin.interface.iter().filter_map(|it| Some(format!("{}: {}", it.name, it.onnx?)));
    let node = format!("ONNX node: {}", parts.join(", "));
    match attributes.collect::<Vec<_>>().as_slice() {
        [] => node,
        attributes => format!("{node}; attributes {}", attributes.join(", ")),
    }
}

pub(super) fn needs(interface: &[DeclaredReport], is_to_build: bool) -> Vec<String> {
    let names = |is_meant: &dyn Fn(&DeclaredReport) -> bool| {
        let names = interface.iter().filter(|it| is_meant(it)).map(|it| it.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let aliased = names(&|it| is_to_build && it.alias.is_some());
    let found = names(&|it| it.depends_on_data);
    let needs = [
        (
            "in place",
            aliased,
            "the build requires PreviewFeature::kALIASED_PLUGIN_IO_10_03 (trtexec --preview=+aliasedPluginIO1003)",
        ),
        (
            "with a data-dependent shape",
            found,
            "the application must set an output allocator (setOutputAllocator)",
        ),
    ];
    let needs = needs.into_iter().filter(|(_, names, _)| !names.is_empty());
    needs.map(|(what, names, need)| format!("{what}: {names}; {need}")).collect()
}

/// Returns `None` if unrestricted.
fn rank(rank: &Range) -> Option<String> {
    let is_any = rank.min == Some(0.into()) && rank.max == Some(cubinder_model::model::MAX_RANK.into());
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

/// Formats the description as a manifest comment, to distinguish it from rules.
fn doc(declared: &DeclaredReport) -> String {
    if declared.doc.is_empty() { String::new() } else { format!("  # {}", declared.doc) }
}

fn joined<const N: usize>(facts: [Option<String>; N]) -> String {
    facts.into_iter().flatten().map(|fact| format!(", {fact}")).collect()
}

fn list(values: &[Value], detail: Verbosity) -> String {
    let most = if detail == Verbosity::Full { values.len() } else { SHOWN_VALUES };
    let mut words: Vec<String> = values.iter().take(most).map(shown).collect();
    if values.len() > most {
        words.push(format!("and {} more", values.len() - most));
    }
    words.join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        // A float that JSON cannot represent.
        Value::Object(float) => float.values().filter_map(Value::as_str).collect(),
        value => value.to_string(),
    }
}
