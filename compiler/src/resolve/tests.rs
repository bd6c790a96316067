use super::*;
use crate::diagnostic::{Colour, render};

const MANIFEST: &str = r#"
schema = 1
[plugin]
name = "scale"
namespace = "sample"
summary = "Scales."
require = [{ expr = "n > 0", message = "`n` must be positive" }]
[attributes.n]
type = "i32"
[[inputs]]
name = "x"
type = "T"
rank = 2
[[inputs]]
name = "bias"
type = "f32"
[[outputs]]
name = "y"
type = "U"
shape = "[d + n for d in x.shape]"
[types]
T = ["f32", "f16"]
U = ["i32"]
[constants]
LIMIT = 7
[[variants]]
id = 1
constants = { VEC = 4, FAST = true }
[[variants]]
id = 2
constants = { VEC = -1, FAST = false }
[[launches]]
source = "../kernels/scale.cu"
kernel = "ops::scale<T, U, (VEC + 1), FAST, T::T, int4>"
grid = ["ceil_div(numel(y), 256)", 2]
block = [256]
shared_bytes = "VEC * VEC * sizeof(T)"
[launches.args]
out = "y"
x = "x"
limit = "LIMIT + n"
bias = "bias"
dims = "x.shape"
"#;

fn resolved(text: &str) -> Resolved {
    compile(&Source::new("dir/m.toml", text))
        .unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)))
}

fn messages(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}

#[test]
fn every_unit_knows_every_type_of_the_plugin() {
    for unit in resolved(MANIFEST).draft.units {
        assert_eq!(unit.plugin_types, [DataType::F32, DataType::F16, DataType::I32], "{}", unit.kernel);
    }
}

#[test]
fn expands_variants_and_types_in_order() {
    let draft = resolved(MANIFEST).draft;
    let rows: Vec<(i32, &str)> =
        draft.plugin.variants.iter().map(|variant| (variant.id, variant.label.as_str())).collect();
    assert_eq!(
        rows,
        [
            (1, "T=f32 U=i32 VEC=4 FAST=true"),
            (1, "T=f16 U=i32 VEC=4 FAST=true"),
            (2, "T=f32 U=i32 VEC=-1 FAST=false"),
            (2, "T=f16 U=i32 VEC=-1 FAST=false"),
        ]
    );
    assert_eq!(draft.plugin.variants[1].types, [DataType::F16, DataType::F32, DataType::I32]);
    let units: Vec<(usize, usize)> = draft.units.iter().map(|unit| (unit.variant, unit.launch)).collect();
    assert_eq!(units, [(0, 0), (1, 0), (2, 0), (3, 0)]);
}

#[test]
fn instantiates_the_kernel() {
    let draft = resolved(MANIFEST).draft;
    assert_eq!(draft.units[0].kernel, "ops::scale<float, int, (4 + 1), true, T::T, int4>");
    assert_eq!(draft.units[3].kernel, "ops::scale<__half, int, (-1 + 1), false, T::T, int4>");
    assert_eq!(draft.plugin.variants[3].launches[0].kernel, draft.units[3].kernel);
    assert_eq!(draft.units[0].source, Path::new("dir/../kernels/scale.cu"));
}

#[test]
fn folds_constants_and_types_of_the_row() {
    let draft = resolved(MANIFEST).draft;
    let shared = |row: usize| draft.plugin.variants[row].launches[0].shared_bytes.nodes.clone();
    assert_eq!(shared(0), [expr_node(64)]);
    assert_eq!(shared(3), [expr_node(2)]);
    let launch = &draft.plugin.variants[0].launches[0];
    assert_eq!(launch.grid[1].nodes, [expr_node(2)]);
    assert_eq!(launch.grid[2].nodes, [expr_node(1)]);
    assert!(launch.args.is_empty() && launch.code.is_empty());
}

fn expr_node(value: i64) -> cubinder_bundle::expr::Node {
    cubinder_bundle::expr::Node::Int(value)
}

#[test]
fn numbers_tensors_over_inputs_then_outputs() {
    let unit = &resolved(MANIFEST).draft.units[0];
    let names: Vec<&str> = unit.args.iter().map(|arg| arg.name.as_str()).collect();
    assert_eq!(names, ["out", "x", "limit", "bias", "dims"]);
    assert_eq!(unit.args[0].value, ArgDraftValue::Tensor(2));
    assert_eq!(unit.args[3].value, ArgDraftValue::Tensor(1));
    assert!(matches!(unit.args[2].value, ArgDraftValue::Expr { kind: Kind::Int, .. }));
    assert!(matches!(&unit.args[4].value, ArgDraftValue::Expr { kind, .. } if *kind == Kind::ints()));
    let span = &unit.args[2].value_span;
    assert_eq!(&span.source.text[span.range.clone()], "\"LIMIT + n\"");
}

#[test]
fn warns_about_what_is_never_used() {
    let text = MANIFEST
        .replace("[[inputs]]\nname = \"x\"", "[attributes.m]\ntype = \"bool\"\n[[inputs]]\nname = \"x\"")
        .replace("LIMIT = 7", "LIMIT = 7\nEPSILON = 0.5\n[functions]\nf = { params = [], body = 1 }")
        .replace("U = [\"i32\"]", "U = [\"i32\"]\nV = [\"i8\"]")
        .replace("VEC = 4,", "VEC = 4, W = 3,");
    let warnings = resolved(&text).warnings;
    assert_eq!(
        messages(&warnings),
        [
            "the attribute `m` is never used",
            "the type parameter `V` is never used",
            "the constant `EPSILON` is never used",
            "the function `f` is never used",
            "the constant `W` is never used",
        ]
    );
}

#[test]
fn mistakes_of_form_and_of_meaning_are_told_together() {
    let text = MANIFEST
        .replace("type = \"i32\"\n", "type = \"i33\"\n")
        .replace("LIMIT + n", "LIMIT + k")
        .replace("summary", "sumary");
    let errors = compile(&Source::new("m.toml", text)).expect_err("it is wrong");
    // `n` has no type; the expressions that use it are not to blame.
    assert_eq!(
        messages(&errors)[..2],
        ["unknown key `sumary` in `[plugin]`", "unknown attribute type `i33`"]
    );
    assert_eq!(errors.len(), 3, "{}", render(&errors, Colour::Plain));
}

#[test]
fn two_plugins_of_one_name_are_refused() {
    let first = compile(&Source::new("a.toml", MANIFEST)).expect("it is right");
    let second = compile(&Source::new("b.toml", MANIFEST)).expect("it is right");
    let third =
        compile(&Source::new("c.toml", MANIFEST.replace("\"sample\"", "\"other\""))).expect("it is right");
    assert!(check_unique(&[first.clone(), third.clone()]).is_empty());
    let errors = check_unique(&[first, third, second]);
    insta::assert_snapshot!(render(&errors, Colour::Plain));
}
