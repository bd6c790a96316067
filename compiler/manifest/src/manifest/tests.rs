use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::diagnostic::{Colour, render};

const WHOLE: &str = r#"
schema = 1
[plugin]
name = "scale"
namespace = "sample.ops"
version = "2"
summary = "Scales."
require = [{ expr = "x.rank > 0", message = "x must not be a scalar" }]
[attributes.factor]
type = "f32"
default = 0.1
doc = "what to multiply by"
[attributes.axes]
type = "i32[]"
default = [1, -1]
[[inputs]]
name = "x"
type = "T"
rank = "1..=4"
[[outputs]]
name = "y"
type = "T"
shape = "x.shape"
[types]
T = ["f32", "f16"]
[constants]
LIMIT = 0x10
[functions]
twice = { params = ["a"], body = "a * 2" }
[[variants]]
id = 3
constants = { BLOCK = 256 }
[[launches]]
source = "scale.cu"
kernel = "scale<T>"
grid = ["ceil_div(numel(y), BLOCK)", 1]
block = ["BLOCK"]
[launches.args]
x = "x"
n = "numel(y)"
half = 0.5
"#;

fn read_text(text: &str) -> ReadManifest {
    read(&Source::new("m.toml", text))
}

#[test]
fn reads_every_key() {
    let result = read_text(WHOLE);
    assert_eq!(render(&result.diagnostics, Colour::Plain), "");
    let manifest = result.manifest.expect("a tree");
    assert_eq!(manifest.plugin.name.value, "scale");
    assert_eq!(manifest.plugin.namespace, "sample.ops");
    assert_eq!(manifest.plugin.version, "2");
    assert_eq!(manifest.plugin.require.len(), 1);
    assert_eq!(manifest.attributes[0].name.value, "factor");
    assert_eq!(manifest.attributes[0].default, Some(Value::Float(f64::from(0.1_f32))));
    assert_eq!(manifest.attributes[1].default, Some(Value::Array(vec![Value::Int(1), Value::Int(-1)])));
    assert_eq!(manifest.inputs[0].rank, (1, 4));
    assert_eq!(manifest.types[0].alternatives, [DataType::F32, DataType::F16]);
    assert_eq!(manifest.constants[0].value, Value::Int(16));
    assert_eq!(manifest.variants[0].id.value, 3);
    let launch = manifest.launches[0].launch().unwrap();
    assert_eq!(launch.grid[1].value, "1");
    let args: Vec<_> = launch
        .args
        .iter()
        .flatten()
        .map(|arg| (arg.name.value.as_str(), arg.value.as_ref().unwrap().value.as_str()))
        .collect();
    assert_eq!(args, [("x", "x"), ("n", "numel(y)"), ("half", "0.5")]);
}

#[test]
fn without_variants_there_is_one() {
    let text = WHOLE.replace("[[variants]]\nid = 3\nconstants = { BLOCK = 256 }\n", "");
    let manifest = read_text(&text).manifest.expect("a tree");
    assert_eq!(manifest.variants.len(), 1);
    assert_eq!(manifest.variants[0].id.value, 1);
}

#[test]
fn an_unknown_edition_is_not_read() {
    let result = read_text(&WHOLE.replace("schema = 1", "schema = 2"));
    assert_eq!(result.manifest, None);
    assert_eq!(result.diagnostics.len(), 1);
}

#[test]
fn independent_mistakes_are_all_reported() {
    let text = WHOLE
        .replace("summary", "sumary")
        .replace("\"f32\"\ndefault", "\"f31\"\ndefault")
        .replace("1..=4", "4..=1")
        .replace("id = 3", "id = 0");
    let messages: Vec<String> =
        read_text(&text).diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
    assert_eq!(
        messages,
        [
            "unknown key `sumary` in `[plugin]`",
            "unknown attribute type `f31`",
            "`rank` must be a rank or a range of ranks from 0 to 8",
            "the `id` of a variant must be from 1 to 1000000",
        ]
    );
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let result = read_text(&text);
        prop_assert!(!result.diagnostics.is_empty());
        prop_assert!(!render(&result.diagnostics, Colour::Plain).is_empty());
    }
}

fn attribute_text() -> impl Strategy<Value = String> {
    let types: Vec<AttributeType> = AttributeType::all().collect();
    let value = prop_oneof![
        (-3_i64..300).prop_map(|value| value.to_string()),
        prop::sample::select(vec![
            "0.1",
            "-0.0",
            "2.0",
            "70000.0",
            "1e300",
            "true",
            "\"a\"",
            "\"größe\"",
            "4096"
        ])
        .prop_map(str::to_owned),
    ];
    let list =
        proptest::collection::vec(value.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", ")));
    let range = (-2_i64..6, -2_i64..300, 0..4).prop_map(|(low, high, toml)| match toml {
        0 => low.to_string(),
        1 => format!("\"{low}..={high}\""),
        2 => format!("\"{low}..\""),
        _ => format!("\"..={high}\""),
    });
    let default = prop_oneof![value, list.clone()];
    (
        prop::sample::select(types),
        option::of(default),
        option::of(range.clone()),
        option::of(range),
        option::of(list),
    )
        .prop_map(|(ty, default, length, range, one_of)| {
            let keys = [("default", default), ("length", length), ("range", range), ("one_of", one_of)];
            let lines = keys.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", value?)));
            format!("[attributes.a]\ntype = \"{}\"\n{}", ty.name(), lines.collect::<String>())
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn accepted_attributes_keep_the_runtimes_rules(attribute in attribute_text()) {
        let text = WHOLE.replace("[attributes.axes]", &format!("{attribute}[attributes.axes]"));
        let result = read_text(&text);
        if result.diagnostics.is_empty() {
            let manifest = result.manifest.expect("a tree");
            let decl = manifest.attributes.iter().find(|decl| decl.name.value == "a").expect("it is there");
            let (minimum, maximum) = decl.range.as_ref().map(|range| range.value.clone()).unwrap_or_default();
            let attribute = cubinder_model::Attribute {
                default: decl.default.clone(),
                length: decl.length.as_ref().map(|length| length.value),
                minimum,
                maximum,
                one_of: decl.one_of.as_ref().map(|values| values.value.clone()).unwrap_or_default(),
                ..cubinder_model::Attribute::new("a", decl.ty.value)
            };
            prop_assert_eq!(attribute.check_rules(), Ok(()));
        }
    }
}

#[test]
fn a_list_shows_at_most_forty_names() {
    let forty = vec!["`a`"; 40].join(", ");
    assert_eq!(super::toml_reader::list(["a"; 40]), forty);
    assert_eq!(super::toml_reader::list(["a"; 41]), format!("{forty} and 1 more"));
}
