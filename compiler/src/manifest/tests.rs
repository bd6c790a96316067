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

fn read_text(text: &str) -> Read {
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
    // Attributes keep the file's order, and a float is what 32 bits hold.
    assert_eq!(manifest.attributes[0].name.value, "factor");
    assert_eq!(manifest.attributes[0].default, Some(Value::Float(f64::from(0.1_f32))));
    assert_eq!(manifest.attributes[1].default, Some(Value::Array(vec![Value::Int(1), Value::Int(-1)])));
    assert_eq!(manifest.inputs[0].rank, (1, 4));
    assert_eq!(manifest.types[0].alternatives, [DataType::F32, DataType::F16]);
    assert_eq!(manifest.constants[0].value, Value::Int(16));
    assert_eq!(manifest.variants[0].id.value, 3);
    let launch = &manifest.launches[0];
    assert_eq!(launch.grid[1].value, "1");
    let args: Vec<_> =
        launch.args.iter().map(|arg| (arg.name.value.as_str(), arg.value.value.as_str())).collect();
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
            "the `id` of a variant must be at least 1 and fit into 32 bits",
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
