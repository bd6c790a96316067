use std::collections::BTreeSet;

use cubinder_model::Guard;

use super::*;
use crate::diagnostic::{Colour, render};
use crate::rules;

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
    let units: Vec<(usize, usize)> = draft.units.iter().map(|unit| (unit.variant, unit.step)).collect();
    assert_eq!(units, [(0, 0), (1, 0), (2, 0), (3, 0)]);
}

#[test]
fn instantiates_the_kernel() {
    let draft = resolved(MANIFEST).draft;
    assert_eq!(draft.units[0].kernel, "ops::scale<float, int, (4 + 1), true, T::T, int4>");
    assert_eq!(draft.units[3].kernel, "ops::scale<__half, int, ((-1) + 1), false, T::T, int4>");
    assert_eq!(draft.plugin.variants[3].launch(0).unwrap().kernel, draft.units[3].kernel);
    assert_eq!(draft.units[0].source, Path::new("dir/../kernels/scale.cu"));
}

#[test]
fn folds_constants_and_types_of_the_row() {
    let draft = resolved(MANIFEST).draft;
    let shared = |row: usize| draft.plugin.variants[row].launch(0).unwrap().shared_bytes.nodes.clone();
    assert_eq!(shared(0), [expr_node(64)]);
    assert_eq!(shared(3), [expr_node(2)]);
    let launch = draft.plugin.variants[0].launch(0).unwrap();
    assert_eq!(launch.grid[1].nodes, [expr_node(2)]);
    assert_eq!(launch.grid[2].nodes, [expr_node(1)]);
    assert!(launch.args.is_empty() && launch.code.is_empty());
}

fn expr_node(value: i64) -> cubinder_expr::Node {
    cubinder_expr::Node::Int(value)
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
fn many_unused_constants_take_linear_time() {
    const CONSTANTS: usize = 50_000;
    let more: String = (0..CONSTANTS).map(|number| format!("C{number} = 1\n")).collect();
    let started = std::time::Instant::now();
    let resolved = resolved(&MANIFEST.replace("LIMIT = 7", &format!("LIMIT = 7\n{more}")));
    assert_eq!(resolved.unused(&BTreeSet::new()).len(), CONSTANTS);
    let limit = std::time::Duration::from_secs(30);
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
}

/// Quadratic time would take 64 times as long.
#[test]
fn unknown_names_take_linear_time() {
    let function =
        |number: usize| format!("f{number} = {{ params = [\"a\"], body = \"g{number}(a) + h{number}\" }}\n");
    let seconds = |count: usize| {
        let functions: String = (0..count).map(function).collect();
        let source = Source::new("m.toml", format!("{MANIFEST}[functions]\n{functions}"));
        let once = || {
            let started = std::time::Instant::now();
            assert_eq!(compile(&source).unwrap_err().len(), 2 * count);
            started.elapsed().as_secs_f64()
        };
        (0..4).map(|_| once()).fold(f64::INFINITY, f64::min)
    };
    let (few, many) = (seconds(1000), seconds(8000));
    assert!(many < 40.0 * few, "{few} s, then {many} s");
}

#[test]
fn warns_about_what_is_never_used() {
    let text = MANIFEST
        .replace("[[inputs]]\nname = \"x\"", "[attributes.m]\ntype = \"bool\"\n[[inputs]]\nname = \"x\"")
        .replace("LIMIT = 7", "LIMIT = 7\nEPSILON = 0.5\n[functions]\nf = { params = [], body = 1 }")
        .replace("U = [\"i32\"]", "U = [\"i32\"]\nV = [\"i8\"]")
        .replace("VEC = 4,", "VEC = 4, W = 3,");
    let resolved = resolved(&text);
    assert_eq!(
        messages(&resolved.warnings),
        ["the attribute `m` is never used", "the function `f` is never used"]
    );
    let unused = |names: &[&str]| -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        resolved.unused(&names).into_iter().map(|warning| warning.message).collect()
    };
    assert_eq!(
        unused(&["OTHER"]),
        [
            "the type parameter `V` is never used",
            "the constant `EPSILON` is never used",
            "the constant `W` is never used",
        ]
    );
    assert_eq!(unused(&["V", "EPSILON", "W"]), [""; 0]);
}

#[test]
fn an_input_that_nothing_reads_is_told() {
    let text = MANIFEST.replace("bias = \"bias\"\n", "");
    let warnings = resolved(&text).warnings;
    assert_eq!(messages(&warnings), ["the input `bias` is never used"]);
    assert_eq!(warnings[0].code, Some(rules::UNREAD_INPUT));
    let in_a_shape = text.replace("[d + n for d in x.shape]", "[numel(bias) + n for d in x.shape]");
    assert_eq!(messages(&resolved(&in_a_shape).warnings), [""; 0]);
}

fn patched(text: &str, patch: fn(&mut Manifest)) -> Result<Resolved, Vec<Diagnostic>> {
    let source = Source::new("dir/m.toml", text);
    let mut manifest = manifest::read(&source).manifest.expect("a readable manifest");
    patch(&mut manifest);
    resolve(&manifest, &source).map_err(|unresolved| unresolved.errors)
}

fn guard(text: &str) -> Option<manifest::Text> {
    Some(manifest::Text::new("", 0..1, text.to_owned()))
}

fn restriction(manifest: &Manifest, name: &str, alternatives: &[DataType]) -> manifest::TypeDecl {
    let name = manifest::Located { value: name.to_owned(), range: manifest.variants[0].range.clone() };
    let range = name.range.clone();
    manifest::TypeDecl { name, alternatives: alternatives.to_vec(), range }
}

#[test]
fn guards_are_of_their_rows() {
    let resolved = patched(MANIFEST, |manifest| {
        manifest.variants[0].guard = guard("y.shape[-1] % VEC == 0 and n < sizeof(T) * LIMIT");
    })
    .expect("a valid manifest");
    let guards: Vec<Option<&Guard>> =
        resolved.draft.plugin.variants.iter().map(|variant| variant.guard.as_ref()).collect();
    let [Some(single), Some(half), None, None] = guards[..] else { panic!("{guards:?}") };
    assert_eq!(single.text, "y.shape[-1] % VEC == 0 and n < sizeof(T) * LIMIT");
    let holds = |guard: &Guard, number: i64| guard.expr.nodes.contains(&expr_node(number));
    assert!(holds(single, 28) && !holds(single, 14), "{single:?}");
    assert!(holds(half, 14) && !holds(half, 28), "{half:?}");
}

#[test]
fn only_a_guard_can_ask_for_addresses() {
    let text = MANIFEST
        .replace("[[variants]]\nid = 1", "[[variants]]\nid = 1\nguard = \"aligned(x, VEC * sizeof(T))\"");
    let resolved = resolved(&text);
    let guard = resolved.draft.plugin.variants[0].guard.as_ref().expect("it has one");
    assert_eq!(guard.expr.nodes, [cubinder_expr::Node::Aligned { tensor: 0, bytes: 16 }]);
    let elsewhere = MANIFEST
        .replace("\"n > 0\"", "\"n > 0 and aligned(x, 4)\"")
        .replace("[d + n for d in x.shape]", "[n if aligned(bias, 4) else d for d in x.shape]")
        .replace("block = [256]", "block = [\"4 if aligned(y, 4) else 2\"]")
        .replace("LIMIT + n", "1 if aligned(y, 4) else 2");
    let errors = compile(&Source::new("m.toml", elsewhere)).expect_err("an invalid manifest");
    assert_eq!(messages(&errors), ["only a guard can use addresses"; 4]);
    assert!(errors.iter().all(|error| error.code == Some(rules::OUT_OF_PLACE)), "{errors:?}");
}

#[test]
fn mistakes_in_guards_are_told_once() {
    let errors = patched(MANIFEST, |manifest| {
        manifest.variants[0].guard = guard("1 // (VEC - 4) == 0");
        manifest.variants[1].guard = guard("VEC");
    })
    .expect_err("an invalid manifest");
    let told: Vec<(&str, Option<crate::diagnostic::Code>, Vec<String>)> =
        errors.iter().map(|error| (error.message.as_str(), error.code, error.notes.clone())).collect();
    let note = |text: &str| vec![text.to_owned()];
    assert_eq!(
        told,
        [
            (
                "division by zero: 1 // 0",
                Some(rules::NO_VALUE),
                note("in variant 1 (T=f32 U=i32 VEC=4 FAST=true) and 1 more")
            ),
            (
                "`guard` must be a boolean",
                Some(rules::WRONG_KIND),
                note("in variant 2 (T=f32 U=i32 VEC=-1 FAST=false) and 1 more")
            ),
        ]
    );
}

#[test]
fn a_mistake_that_names_a_constant_is_told_once() {
    let text = MANIFEST
        .replace("grid = [\"ceil_div(numel(y), 256)\", 2]", "grid = [\"VEC * 0\", \"1000000 * VEC\"]");
    let errors = compile(&Source::new("m.toml", text)).expect_err("an invalid manifest");
    assert_eq!(
        messages(&errors),
        ["`grid.x` must be from 1 to 2147483647", "`grid.y` must be from 1 to 65535"]
    );
    assert_eq!(errors[1].notes, ["in variant 1 (T=f32 U=i32 VEC=4 FAST=true) and 3 more"]);
    assert!(errors.iter().all(|error| error.code == Some(rules::GRID_LIMIT)));
}

#[test]
fn a_variant_serves_the_types_that_it_names() {
    let resolved = patched(MANIFEST, |manifest| {
        let types = restriction(manifest, "T", &[DataType::F16]);
        manifest.variants[0].types.push(types);
    })
    .expect("a valid manifest");
    let labels: Vec<&str> =
        resolved.draft.plugin.variants.iter().map(|variant| variant.label.as_str()).collect();
    assert_eq!(
        labels,
        ["T=f16 U=i32 VEC=4 FAST=true", "T=f32 U=i32 VEC=-1 FAST=false", "T=f16 U=i32 VEC=-1 FAST=false"]
    );
    let units: Vec<usize> = resolved.draft.units.iter().map(|unit| unit.variant).collect();
    assert_eq!(units, [0, 1, 2]);
}

#[test]
fn restrictions_name_what_there_is() {
    let errors = patched(MANIFEST, |manifest| {
        let wrong = [
            restriction(manifest, "t", &[DataType::F16]),
            restriction(manifest, "T", &[DataType::Bf16, DataType::F32]),
        ];
        manifest.variants[0].types.extend(wrong);
    })
    .expect_err("an invalid manifest");
    assert_eq!(messages(&errors), ["unknown type parameter `t`", "`T` cannot be `bf16`"]);
    let helps: Vec<Option<&str>> = errors.iter().map(|error| error.help.as_deref()).collect();
    assert_eq!(helps, [Some("did you mean `T`?"), Some("did you mean `f16`?")]);
    assert_eq!([errors[0].code, errors[1].code], [Some(rules::UNKNOWN_NAME), Some(rules::UNKNOWN_TYPE)]);
}

#[test]
fn an_alternative_without_a_variant_is_told() {
    let resolved = patched(MANIFEST, |manifest| {
        for index in 0..2 {
            let types = restriction(manifest, "T", &[DataType::F16]);
            manifest.variants[index].types.push(types);
        }
    })
    .expect("a valid manifest");
    assert_eq!(messages(&resolved.warnings), ["no variant supports `T` = `f32`"]);
}

#[test]
fn a_variant_can_decide_a_type_that_no_tensor_has() {
    let text =
        MANIFEST.replace("U = [\"i32\"]", "U = [\"i32\"]\nA = [\"f32\", \"f16\"]").replace(", int4>", ", A>");
    let undecided = compile(&Source::new("m.toml", text.clone())).expect_err("`A` is undetermined");
    assert_eq!(messages(&undecided), ["cannot determine `A`: no input has this type"]);
    let decided = patched(&text, |manifest| {
        for (index, ty) in [DataType::F32, DataType::F16].into_iter().enumerate() {
            let types = restriction(manifest, "A", &[ty]);
            manifest.variants[index].types.push(types);
        }
    })
    .expect("each variant determines it");
    assert_eq!(decided.draft.units[0].kernel, "ops::scale<float, int, (4 + 1), true, T::T, float>");
    assert_eq!(decided.draft.units[3].kernel, "ops::scale<__half, int, ((-1) + 1), false, T::T, __half>");
    let error = patched(&text, |manifest| {
        manifest.outputs[0].ty.value = "A".to_owned();
        for (index, ty) in [DataType::F32, DataType::F16].into_iter().enumerate() {
            let types = restriction(manifest, "A", &[ty]);
            manifest.variants[index].types.push(types);
        }
    })
    .expect_err("the output's type is undetermined");
    assert_eq!(error[0].code, Some(rules::UNDECIDED_TYPE));
}

#[test]
fn names_that_cpp_keeps_are_refused() {
    let text = MANIFEST
        .replace("LIMIT", "NULL")
        .replace("VEC", "int")
        .replace("U = [", "_U = [")
        .replace("\"U\"", "\"_U\"");
    let errors = compile(&Source::new("m.toml", text)).expect_err("they are reserved");
    let told: Vec<(&str, Option<crate::diagnostic::Code>)> =
        errors.iter().map(|error| (error.message.as_str(), error.code)).collect();
    assert_eq!(
        told,
        [
            ("a type parameter cannot be named `_U`", Some(rules::BAD_NAME)),
            ("a constant cannot be named `NULL`", Some(rules::BAD_NAME)),
            ("a constant cannot be named `int`", Some(rules::BAD_NAME)),
        ]
    );
}

#[test]
fn what_follows_from_a_name_of_two_things_is_not_told() {
    let text = MANIFEST.replace("[constants]", "[constants]\nx = true");
    let errors = compile(&Source::new("m.toml", text)).expect_err("an invalid manifest");
    assert_eq!(messages(&errors), ["the name `x` is declared twice"]);
    assert_eq!(errors[0].code, Some(rules::DECLARED_TWICE));
}

#[test]
fn mistakes_of_form_and_of_meaning_are_told_together() {
    let text = MANIFEST
        .replace("type = \"i32\"\n", "type = \"i33\"\n")
        .replace("LIMIT + n", "LIMIT + k")
        .replace("summary", "sumary");
    let errors = compile(&Source::new("m.toml", text)).expect_err("an invalid manifest");
    assert_eq!(
        messages(&errors)[..2],
        ["unknown key `sumary` in `[plugin]`", "unknown attribute type `i33`"]
    );
    assert_eq!(errors.len(), 3, "{}", render(&errors, Colour::Plain));
}

#[test]
fn two_plugins_of_one_name_are_refused() {
    let first = compile(&Source::new("a.toml", MANIFEST)).expect("a valid manifest");
    let second = compile(&Source::new("b.toml", MANIFEST)).expect("a valid manifest");
    let third = compile(&Source::new("c.toml", MANIFEST.replace("\"sample\"", "\"other\"")))
        .expect("a valid manifest");
    assert!(check_unique(&[first.clone(), third.clone()]).is_empty());
    let errors = check_unique(&[first, third, second]);
    insta::assert_snapshot!(render(&errors, Colour::Plain));
}

#[test]
fn scratch_memory_is_of_the_rows_that_use_it() {
    let text = r#"schema = 1
[plugin]
name = "sum"
[[inputs]]
name = "x"
type = "f32"
[[outputs]]
name = "y"
type = "f32"
shape = "[1]"
[scratch.parts]
bytes = "SPLITS * 4"
[[variants]]
id = 1
guard = "numel(x) > 100"
constants = { SPLIT = true, SPLITS = 16 }
[[variants]]
id = 2
constants = { SPLIT = false }
[[launches]]
when = "SPLIT"
memset = "parts"
[[launches]]
source = "k.cu"
kernel = "add"
grid = [1]
block = [256]
when = "SPLIT"
args = { x = "x", p = "parts", y = "y" }
[[launches]]
source = "k.cu"
kernel = "plain"
grid = [1]
block = [256]
when = "not SPLIT"
args = { x = "x", y = "y" }
"#;
    let draft = resolved(text).draft;
    let buffers: Vec<usize> = draft.plugin.variants.iter().map(|variant| variant.scratch.len()).collect();
    assert_eq!(buffers, [1, 0]);
    let unused = text.replace("[scratch.parts]", "[scratch.none]\nbytes = \"FOUR * 4\"\n[scratch.parts]");
    let errors = compile(&Source::new("m.toml", unused)).unwrap_err();
    assert_eq!(messages(&errors), ["unknown name `FOUR`"]);
}

#[test]
fn guards_leave_values_out_in_any_order() {
    let text = r#"schema = 1
[plugin]
name = "cast"
[attributes.to]
type = "i32"
specialize = [1, 10]
[[inputs]]
name = "x"
type = "f32"
[[outputs]]
name = "y"
type = "U"
shape = "x.shape"
[types]
U = ["f32", "f16"]
[[variants]]
id = 1
types = { U = ["f32"] }
guard = "to == 1"
[[variants]]
id = 2
types = { U = ["f16"] }
guard = "GUARD"
[[launches]]
source = "cast.cu"
kernel = "cast<U>"
grid = [1]
block = [32]
args = { x = "x", y = "y" }
"#;
    for guard in [
        "to == 10 and x.shape[1] > 2",
        "x.shape[1] > 2 and to == 10",
        "aligned(x, 16) and (to == 10 or to == 11)",
        "x.shape[0] % 4 == 0 and to == 10 or x.shape[0] % 4 == 1 and to == 10",
    ] {
        let resolved = resolved(&text.replace("GUARD", guard));
        assert_eq!(resolved.draft.plugin.variants.len(), 2, "{guard}");
    }
    let errors = compile(&Source::new("m.toml", text.replace("GUARD", "x.shape[1] > 2 or to == 10")))
        .expect_err("the type is undetermined");
    assert_eq!(errors[0].code, Some(rules::UNDECIDED_TYPE));
}

/// Functions call the previous one twice: 2^200 paths.
fn chain(first: &str, second: &str) -> Vec<String> {
    let mut functions = format!(
        "[functions]\nf0 = {{ params = [\"a\"], body = \"{first}\" }}\nf1 = {{ params = [\"a\"], body = \"{second}\" }}\n"
    );
    for n in 2..200 {
        functions.push_str(&format!("f{n} = {{ params = [\"a\"], body = \"f{0}(a) + f{0}(a)\" }}\n", n - 1));
    }
    let text = MANIFEST.replace("[constants]\n", &format!("{functions}[constants]\n"));
    let text = text.replace("limit = \"LIMIT + n\"", "limit = \"f199(LIMIT) + n\"");
    let diagnostics = compile(&Source::new("dir/m.toml", &text)).expect_err("a function is wrong");
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    diagnostics.iter().filter(is_error).map(|diagnostic| diagnostic.message.clone()).collect()
}

#[test]
fn a_mistake_in_a_function_is_told_once_however_many_call_it() {
    let twice = "f0(a) + f0(a)";
    assert_eq!(chain("a +", twice), ["expected an expression, found the end"]);
    assert_eq!(chain("a + true", twice), ["`+` expects numbers, found anything and boolean"]);
    assert_eq!(chain("f0 + a", twice).len(), 1);
    let own = chain("a + true", "f0(a) + f0(a) + other");
    assert_eq!(own, ["`+` expects numbers, found anything and boolean", "unknown name `other`"]);
}
