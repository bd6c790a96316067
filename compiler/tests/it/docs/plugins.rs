use std::fmt::Write as _;
use std::path::PathBuf;

use cubinder_expr::{DataType, Interval, Value};
use cubinder_manifest::manifest::{self, Manifest, VariantDecl};
use cubinder_manifest::resolve::compile;
use cubinder_model::{Attribute, AttributeElement, Input, Plugin, ShapeLimits};
use cubinder_node::cases;
use cubinder_node::trial::{Tolerance, Trial, default_tolerance};
use cubinder_source::diagnostic::{Colour, render};
use cubinder_source::source;

use super::{head, hold, row};

const PLUGINS: [(&str, &str); 7] = [
    ("cubinder/rms_norm", "rms_norm"),
    ("cubinder/add_rms_norm", "add_rms_norm"),
    ("cubinder/rotary_embedding", "rotary_embedding"),
    ("cubinder/multiscale_deformable_attention", "multiscale_deformable_attention"),
    ("cubinder/pillar_scatter", "pillar_scatter"),
    ("cubinder/nms", "nms"),
    ("circ_pad_plugin", "circ_pad"),
];

struct Shipped {
    manifest: Manifest,
    plugin: Plugin,
    defaults: Trial,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn shipped((manifest, cases): (&str, &str)) -> Shipped {
    let source =
        source::text(&root().join(format!("manifests/{manifest}.toml"))).expect("the manifest exists");
    let resolved = compile(&source).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    let manifest = manifest::read(&source).manifest.expect("what compiles can be read");
    let cases = source::text(&root().join(format!("tests/data/testing/shipped/{cases}.toml")))
        .expect("the cases exist");
    let cases = cases::read(&cases).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    let defaults = cases.defaults();
    for case in &cases.list {
        let trial = cases.trial(case).expect("its data exists");
        assert_eq!(
            trial.tolerance, defaults.tolerance,
            "{}: all cases have the tolerance of the page",
            trial.name
        );
    }
    assert!(defaults.reference.is_some(), "the cases have a reference");
    Shipped { manifest, plugin: resolved.draft.plugin, defaults }
}

#[test]
fn the_plugins_tables_are_those_of_the_manifests() {
    let all = PLUGINS.map(shipped);
    hold("plugins.md", &[("<!-- plugins -->".to_owned(), index(&all))]);
    for shipped in &all {
        let mut parts = vec![("<!-- tensors -->".to_owned(), tensors(shipped))];
        if !shipped.plugin.attributes.is_empty() {
            parts.push(("<!-- attributes -->".to_owned(), attributes(&shipped.plugin)));
        }
        parts.push(("<!-- rules -->".to_owned(), requirements(&shipped.plugin)));
        parts.push(("<!-- variants -->".to_owned(), variants(shipped)));
        parts.push(("<!-- tolerances -->".to_owned(), tolerances(shipped)));
        hold(&format!("plugins/{}.md", shipped.plugin.name), &parts);
    }
}

#[test]
fn every_plugin_of_the_domain_has_a_page() {
    let entries = std::fs::read_dir(root().join("manifests/cubinder")).expect("the folder exists");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    for name in names.filter(|name| name.ends_with(".toml")) {
        let is_there =
            PLUGINS.iter().any(|(manifest, _)| format!("{manifest}.toml") == format!("cubinder/{name}"));
        assert!(is_there, "manifests/cubinder/{name} has no page in docs/plugins");
    }
}

fn index(all: &[Shipped]) -> String {
    let mut text = head(&["plugin", "domain", "types", "purpose"]);
    for Shipped { plugin, manifest, .. } in all {
        let link = format!("[`{0}`](plugins/{0}.md)", plugin.name);
        let types = manifest.types.iter().find(|ty| ty.name.value == "T").expect("the elements' type");
        let domain = format!("`{}`", plugin.namespace);
        text.push_str(&row(&[&link, &domain, &names(&types.alternatives), &plugin.summary]));
    }
    text
}

fn names(types: &[DataType]) -> String {
    types.iter().map(|ty| format!("`{}`", ty.name())).collect::<Vec<_>>().join(" ")
}

fn tensors(shipped: &Shipped) -> String {
    let Shipped { manifest, plugin, .. } = shipped;
    let mut text = head(&["tensor", "type", "shape", "meaning"]);
    for (declared, input) in manifest.inputs.iter().zip(&plugin.inputs) {
        let shape =
            [Some(rank(input)), limits(&input.limits)].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let (name, ty) = (format!("input `{}`", input.name), format!("`{}`", declared.ty.value));
        text.push_str(&row(&[&name, &ty, &shape, &input.doc]));
    }
    for (declared, output) in manifest.outputs.iter().zip(&plugin.outputs) {
        let mut shape = format!("`{}`", declared.shape.value);
        if let Some(size) = &declared.size {
            shape = format!("size, at most `{}`", size.upper.value);
            if let Some(likely) = &size.opt {
                let _ = write!(shape, "; TensorRT optimizes for `{}`", likely.value);
            }
        }
        if let Some(limits) = limits(&output.limits) {
            let _ = write!(shape, "; {limits}");
        }
        let (name, ty) = (format!("output `{}`", output.name), format!("`{}`", declared.ty.value));
        text.push_str(&row(&[&name, &ty, &shape, &output.doc]));
    }
    text.push('\n');
    for parameter in &manifest.types {
        let _ = writeln!(text, "- `{}` is one of {}", parameter.name.value, names(&parameter.alternatives));
    }
    text
}

fn rank(input: &Input) -> String {
    match input.rank_min == input.rank_max {
        true => format!("rank {}", input.rank_min),
        false => format!("rank {} to {}", input.rank_min, input.rank_max),
    }
}

fn limits(limits: &ShapeLimits) -> Option<String> {
    let mut parts = Vec::new();
    if !limits.dims.is_empty() {
        parts
            .push(format!("[{}]", limits.dims.iter().map(|dim| within(*dim)).collect::<Vec<_>>().join(", ")));
    } else if limits.every != Interval::ANY_SIZE {
        parts.push(format!("each dimension {}", within(limits.every)));
    }
    if limits.numel != Interval::ANY_SIZE {
        parts.push(format!("{} elements", within(limits.numel)));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn within(interval: Interval) -> String {
    match interval {
        Interval::ANY_SIZE => "any".to_owned(),
        Interval { min, max } if min == max => min.to_string(),
        Interval { min: 0, max } => format!("≤ {max}"),
        Interval { min, max: i64::MAX } => format!("≥ {min}"),
        Interval { min, max } => format!("{min} to {max}"),
    }
}

fn attributes(plugin: &Plugin) -> String {
    let mut text = head(&["attribute", "type", "ONNX kind", "default", "allowed", "meaning"]);
    for attribute in &plugin.attributes {
        let default =
            attribute.default.as_ref().map_or_else(|| "required".to_owned(), |value| shown(attribute, value));
        let (name, ty) = (format!("`{}`", attribute.name), format!("`{}`", attribute.ty.name()));
        let kind = attribute.ty.onnx_kind();
        text.push_str(&row(&[&name, &ty, kind, &default, &allowed(attribute), &attribute.doc]));
    }
    text
}

fn allowed(attribute: &Attribute) -> String {
    if !attribute.one_of.is_empty() {
        let values: Vec<String> = attribute.one_of.iter().map(|value| shown(attribute, value)).collect();
        return values.join(", ");
    }
    match (&attribute.minimum, &attribute.maximum) {
        (Some(least), Some(most)) => format!("{} to {}", shown(attribute, least), shown(attribute, most)),
        (Some(least), None) => format!("{} or more", shown(attribute, least)),
        (None, Some(most)) => format!("{} or less", shown(attribute, most)),
        (None, None) => String::new(),
    }
}

fn shown(attribute: &Attribute, value: &Value) -> String {
    match value {
        #[allow(clippy::cast_possible_truncation)] // the attribute's range is smaller
        Value::Float(value) if attribute.ty.element == AttributeElement::F32 => {
            format!("`{:?}`", *value as f32)
        }
        value => format!("`{value}`"),
    }
}

fn requirements(plugin: &Plugin) -> String {
    let rules: Vec<String> =
        plugin.require.iter().map(|rule| row(&[&format!("`{}`", rule.text), &rule.message])).collect();
    match rules.is_empty() {
        true => "None.\n".to_owned(),
        false => head(&["rule", "error"]) + &rules.concat(),
    }
}

fn variants(shipped: &Shipped) -> String {
    let Shipped { manifest, .. } = shipped;
    let mut text = head(&["variant", "types", "constants", "condition"]);
    for variant in &manifest.variants {
        let guard =
            variant.guard.as_ref().map_or_else(|| "none".to_owned(), |guard| format!("`{}`", guard.value));
        let cells = [variant.id.value.to_string(), types(variant), constants(variant), guard];
        text.push_str(&row(&cells.each_ref().map(String::as_str)));
    }
    text.push('\n');
    for function in &manifest.functions {
        let params: Vec<&str> = function.params.iter().map(|param| param.value.as_str()).collect();
        let _ =
            writeln!(text, "- `{}({})` is `{}`", function.name.value, params.join(", "), function.body.value);
    }
    text
}

fn types(variant: &VariantDecl) -> String {
    let named = variant.types.iter().map(|ty| names(&ty.alternatives));
    let named: Vec<String> = named.collect();
    if named.is_empty() { "all".to_owned() } else { named.join("; ") }
}

fn constants(variant: &VariantDecl) -> String {
    let constants = variant.constants.iter().map(|it| format!("`{}={}`", it.name.value, it.value));
    constants.collect::<Vec<_>>().join(" ")
}

fn tolerances(shipped: &Shipped) -> String {
    let Shipped { manifest, plugin, defaults, .. } = shipped;
    let elements = &manifest.types[0].alternatives;
    let titles: Vec<String> = elements.iter().map(|ty| format!("`{}`", ty.name())).collect();
    let mut titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    titles.insert(0, "output");
    let mut text = head(&titles);
    for (index, output) in plugin.outputs.iter().enumerate() {
        let said =
            defaults.tolerance.iter().find(|(name, _)| *name == output.name).map(|(_, tolerance)| *tolerance);
        let of = |ty: &DataType| {
            let variant = plugin.variants.iter().find(|variant| variant.types[0] == *ty).expect("a variant");
            let own = variant.types[plugin.inputs.len() + index];
            match said.unwrap_or_else(|| default_tolerance(own)) {
                Tolerance::EXACT => "exact".to_owned(),
                Tolerance { atol, rtol } => format!("{atol:?} + {rtol:?} · abs(expected)"),
            }
        };
        let cells: Vec<String> = elements.iter().map(of).collect();
        let mut cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let name = format!("`{}`", output.name);
        cells.insert(0, &name);
        text.push_str(&row(&cells));
    }
    text
}
