use insta::assert_snapshot;

use super::*;
use crate::diagnostic::{Colour, Diagnostic, render};
use crate::resolve;
use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_launch::{Facts, Signature};
use cubinder_model::validate::MAX_TUNED_POINTS;
use cubinder_model::{AUTO_TACTIC, Plugin};

/// `mode` does not affect time, `factor` determines shapes, `axis` is specialized.
const UP: &str = r#"schema = 1
[plugin]
name = "up"
namespace = "sample"
version = "2"
timing = ["factor", "axis"]
require = [{ expr = "factor > 0", message = "`factor` must be positive" }]
[attributes.factor]
type = "i32"
[attributes.mode]
type = "string"
default = "nearest"
[attributes.axis]
type = "i32"
default = 1
specialize = [0, 1]
[[inputs]]
name = "x"
type = "T"
rank = 2
[[inputs]]
name = "target"
type = "i64"
shape_input = true
limits = { dims = 1 }
[[outputs]]
name = "y"
type = "T"
shape = "[x.shape[0] * factor, x.shape[1]]"
[types]
T = ["f32", "f16"]
[[variants]]
id = 1
guard = "numel(y) % 4 == 0"
[[variants]]
id = 2
types = { T = ["f32"] }
[[variants]]
id = 5
[[launches]]
source = "k.cu"
kernel = "k<T>"
grid = [1]
block = [256]
[launches.args]
x = "x"
y = "y"
"#;

fn plugin(text: &str) -> Plugin {
    match resolve::compile(&Source::new("up.toml", text)) {
        Ok(resolved) => resolved.draft.plugin,
        Err(errors) => panic!("{}", render(&errors, Colour::Plain)),
    }
}

fn file(name: &str, device: &str, points: &str) -> File {
    let text = format!("schema = 1\n[device]\n{device}\n{points}");
    read(&Source::new(name, text)).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)))
}

const H200: &str = "name = \"NVIDIA H200\"\ncapability = \"9.0\"\nsms = 132";

fn packed(plugin: &mut Plugin, points: &str) -> Vec<Diagnostic> {
    let files = [file("tuning/h200.toml", H200, points)];
    let mut warnings = other_versions(&files, &[plugin]);
    warnings.extend(pack(&files, plugin));
    warnings
}

fn point(keys: &[(&str, &str)]) -> String {
    let all = [
        ("plugin", "\"sample::up\""),
        ("version", "\"2\""),
        ("types", "{ T = \"f32\" }"),
        ("attributes", "{ factor = 2, mode = \"cubic\", axis = 0 }"),
        ("shapes", "{ x = [4, 16] }"),
        ("values", "{ target = [9] }"),
        ("microseconds", "{ 5 = 3.0, 2 = 2.5, 1 = 2.75 }"),
    ];
    let mut lines: Vec<(&str, &str)> = all.to_vec();
    for (key, value) in keys {
        lines.retain(|(known, _)| known != key);
        lines.push((key, value));
    }
    lines.iter().fold("[[points]]\n".to_owned(), |text, (key, value)| format!("{text}{key} = {value}\n"))
}

#[test]
fn a_point_becomes_rows_in_the_order_of_their_times() {
    let mut up = plugin(UP);
    let other = point(&[("plugin", "\"other::up\""), ("shapes", "{ nothing = [] }")]);
    let files = [
        file("a.toml", H200, &(point(&[]) + &other)),
        file(
            "b.toml",
            "name = \"NVIDIA L4\"\ncapability = \"8.9\"\nsms = 58",
            &point(&[("types", "{ T = \"f16\" }"), ("microseconds", "{ 1 = 2.0 }")]),
        ),
        file(
            "c.toml",
            "name = \"NVIDIA H200\"\ncapability = \"9.0\"\nsms = 132",
            &point(&[("shapes", "{ x = [1, 16] }"), ("attributes", "{ factor = 3 }")]),
        ),
    ];
    assert_eq!(pack(&files, &mut up), []);
    let rows = |device: usize, point: usize| -> Vec<(i32, DataType, i64)> {
        let ranking = &up.tuning[device].points[point].ranking;
        let rows = ranking.iter().map(|row| &up.variants[*row as usize]);
        rows.map(|row| (row.id, row.types[0], row.specialized[0].1.as_int().unwrap())).collect()
    };
    let f32 = DataType::F32;
    assert_eq!(rows(0, 0), [(2, f32, 0), (1, f32, 0), (5, f32, 0)]);
    assert_eq!(rows(0, 1), [(2, f32, 1), (1, f32, 1), (5, f32, 1)], "omitted attributes have their defaults");
    assert_eq!(rows(1, 0), [(1, DataType::F16, 0)]);
    let devices: Vec<_> = up.tuning.iter().map(|it| (it.name.as_str(), it.capability, it.sms)).collect();
    assert_eq!(devices, [("NVIDIA H200", 90, 132), ("NVIDIA L4", 89, 58)], "each GPU model occurs once");
    let first = &up.tuning[0].points[0];
    assert_eq!(first.attributes, [(0, Value::Int(2))], "timing attributes, without those of the row");
    assert_eq!(first.shapes, [vec![4, 16], vec![1], vec![8, 16]]);
    let facts = Facts {
        shapes: &[&[4, 16], &[1], &[8, 16]],
        device: Some(launch::Device { sms: 132, shared_bytes: 0, capability: 90 }),
        ..Facts::default()
    };
    let node = Signature {
        attributes: &[Value::Int(2), Value::Str("nearest".to_owned()), Value::Int(0)],
        types: &[f32, DataType::I64, f32],
        formats: &[Format::Linear; 3],
    };
    let order = launch::in_order(&up, &node, AUTO_TACTIC, &facts).unwrap();
    assert_eq!(order.iter().map(|row| up.variants[*row].id).collect::<Vec<_>>(), [2, 1, 5]);
    let before = up.tuning.clone();
    assert_eq!(pack(&files, &mut up), []);
    assert_eq!(up.tuning, before);
}

#[test]
fn what_is_stale_is_a_warning_at_its_place() {
    let points = [
        point(&[("version", "\"1\"")]),
        point(&[("types", "{ U = \"f32\" }")]),
        point(&[("types", "{ T = \"bf16\" }")]),
        point(&[("formats", "{ x = \"hwc8\" }")]),
        point(&[("attributes", "{ factr = 2 }")]),
        point(&[("attributes", "{ factor = \"two\" }")]),
        point(&[("attributes", "{ factor = -1 }")]),
        point(&[("attributes", "{ factor = 1, axis = 3 }")]),
        point(&[("attributes", "{}")]),
        point(&[("shapes", "{ z = [4, 16] }")]),
        point(&[("shapes", "{ x = [4, 16], target = [1] }")]),
        point(&[("shapes", "{ x = [4] }")]),
        point(&[("shapes", "{ x = [9223372036854775807, 16] }")]),
        point(&[("values", "{}")]),
        point(&[("microseconds", "{ 1 = 1.0, 3 = 0.5 }")]),
        point(&[("shapes", "{ x = [8, 16] }"), ("microseconds", "{ 1 = 1.0, 3 = 0.5 }")]),
        point(&[("types", "{ T = \"f16\" }")]),
        point(&[("microseconds", "{ 7 = 1.0 }")]),
    ];
    let mut up = plugin(UP);
    let diagnostics = packed(&mut up, &points.concat());
    assert_snapshot!(render(&diagnostics, Colour::Plain));
    assert_eq!(up.tuning[0].points.len(), 3, "points with a remaining variant");
}

#[test]
fn versions_are_told_apart() {
    let mut up = plugin(UP);
    let files = [file("a.toml", H200, &point(&[("version", "\"1\"")]))];
    let mut older = Plugin { version: "1".to_owned(), ..up.clone() };
    assert_eq!(pack(&files, &mut up), []);
    assert_eq!(pack(&files, &mut older), []);
    assert_eq!((up.tuning.len(), older.tuning.len()), (0, 1));
    assert_eq!(other_versions(&files, &[&up, &older]), []);
    assert_eq!(other_versions(&files, &[&up]).len(), 1);
}

#[test]
fn gpus_that_count_as_one_are_told_apart() {
    let mut up = plugin(UP);
    let h100 = H200.replace("H200", "H100");
    let other = point(&[("plugin", "\"sample::other\"")]);
    let files = [
        file("tuning/other.toml", &H200.replace("H200", "GH200"), &other),
        file("tuning/h200.toml", H200, &point(&[])),
        file("tuning/more.toml", H200, &point(&[("shapes", "{ x = [1, 16] }")])),
        file("tuning/h100.toml", &h100, &(other.clone() + &point(&[("shapes", "{ x = [2, 16] }")]))),
    ];
    assert_snapshot!(render(&pack(&files, &mut up), Colour::Plain));
    assert_eq!(up.tuning.len(), 1);
    assert_eq!(up.tuning[0].points.len(), 3);
}

#[test]
fn a_plugin_carries_no_more_than_is_read() {
    let mut up = plugin(UP);
    let diagnostics = packed(&mut up, &point(&[]).repeat(MAX_TUNED_POINTS + 1));
    assert_snapshot!(render(&diagnostics, Colour::Plain));
    assert_eq!(up.tuning[0].points.len(), MAX_TUNED_POINTS);
}

#[test]
fn of_times_that_are_alike_the_first_of_the_manifest_goes_first() {
    let of = |times: &[(u32, f64)]| super::pack::ranked(times.to_vec());
    assert_eq!(of(&[(2, 1.0), (0, 1.009), (1, 1.02)]), [0, 2, 1]);
    assert_eq!(
        of(&[(0, 1.011), (2, 1.0), (1, 1.019)]),
        [2, 0, 1],
        "similar to each other, not to the fastest"
    );
    assert_eq!(of(&[]), [0_u32; 0]);
}
