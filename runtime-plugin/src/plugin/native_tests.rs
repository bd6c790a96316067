use cubinder_expr::{BinaryOp, Expr, Node as Part};
use cubinder_expr::{DataType, Format, Interval, Value};
use cubinder_model::{
    Arch, ArchSuffix, Arg, ArgValue, CodeObject, CodeRef, Digest, Guard, KernelFacts, Node, Plugin as Model,
    Requirement, Target, TargetKind, Variant,
};
use trt_abi::{Dims, QuickPlugin, TensorFormat};

use super::built_for::BuiltFor;
use super::tests::{divides, model};
use super::*;
use super::{NativePlugin, Profile};

const OTHER: &str = "of another compiler";

const PTX: &[u8] = b".version 9.0\n";

fn variant(id: i32, guard: Option<Guard>) -> Variant {
    let mut variant = super::tests::variant(id, guard);
    variant.launch_mut(0).unwrap().grid[0] = Expr { nodes: vec![Part::Int(1)] };
    variant
}

fn native(model: Model) -> Result<NativePlugin, Error> {
    declaring(model, None)
}

fn declaring(mut model: Model, shared_bytes: Option<u32>) -> Result<NativePlugin, Error> {
    let target =
        Target { kind: TargetKind::Native, arch: Arch { major: 8, minor: 0, suffix: ArchSuffix::None } };
    for variant in &mut model.variants {
        let own = variant.label == OTHER;
        let symbol = if own {
            cubinder_launch::native::own_symbol("test", "guarded")
        } else {
            format!("kernel_{}", variant.id)
        };
        variant.launch_mut(0).unwrap().code = vec![CodeRef { target, code: 0, symbol }];
    }
    let kernel = KernelFacts {
        symbol: "kernel_1".to_owned(),
        registers: None,
        shared_bytes,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let code = CodeObject {
        target,
        digest: Digest::compute(PTX),
        kernels: vec![kernel],
        bytes: PTX.to_vec().into(),
    };
    let attributes = vec![Value::Int(3)];
    let node = Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin: model,
        attributes: attributes.clone(),
        input_ranks: None,
        code: vec![code],
    };
    let op = Identity::new(c"guarded", c"1", c"test");
    NativePlugin::new(Definition::bare(Arc::new(node)), attributes, "n", op)
}

fn plugin(model: Model) -> NativePlugin {
    native(model).unwrap()
}

fn columns(least: i64, most: i64, ty: DataType, format: Format) -> DynamicPluginTensorDesc {
    let dims = |columns| Dims::from_slice(&[4, columns]).unwrap();
    let desc = PluginTensorDesc {
        dims: dims(if least == most { most } else { -1 }),
        data_type: trt_abi::DataType(ty.tensorrt()),
        format: TensorFormat(format.tensorrt()),
        scale: 1.0,
    };
    DynamicPluginTensorDesc { desc, min: dims(least), max: dims(most), opt: dims(most) }
}

fn floats(least: i64, most: i64) -> DynamicPluginTensorDesc {
    columns(least, most, DataType::F32, Format::Linear)
}

fn offered(plugin: &NativePlugin, least: i64, most: i64) -> Result<Vec<i32>, String> {
    let x = floats(least, most);
    plugin.configure(&[x], &[x]).map_err(|error| error.text().to_owned())?;
    plugin.tactics().map_err(|error| error.text().to_owned())
}

fn required(plugin: &NativePlugin, profile: Profile) -> Result<Vec<String>, String> {
    let built_for = BuiltFor::prove(&plugin.state.node, profile).map_err(|error| error.text().to_owned())?;
    Ok(built_for.required.into_iter().map(|requirement| requirement.text).collect())
}

fn open(plugin: &NativePlugin, least: i64, most: i64) -> Vec<String> {
    let profile = Profile::from_tensors(&plugin.state.node, None, &[floats(least, most)]).unwrap();
    let built_for = BuiltFor::prove(&plugin.state.node, profile).unwrap();
    built_for.unproved(&plugin.state.node, &plugin.state.node.definition.plugin().variants[0])
}

fn guarded() -> Model {
    model(vec![variant(1, Some(divides(4, None))), variant(2, Some(divides(2, None)))])
}

#[test]
fn its_identity_is_the_ops() {
    let some = plugin(guarded());
    let Identity { name, version, namespace } = some.identity();
    assert_eq!([name, version, namespace].map(|text| &**text), [c"guarded", c"1", c"test"]);
}

#[test]
fn tactics_are_variants_whose_guards_hold_for_the_whole_profile() {
    let some = plugin(guarded());
    assert_eq!(offered(&some, 8, 8), Ok(vec![1, 2]));
    assert_eq!(offered(&some, 6, 6), Ok(vec![2]));
    let refused = "test::guarded `n`: TensorRT launches this plugin itself, but no variant is proved for all shapes of the profile: variant 1 requires that \
                   `x.shape[-1] % 4 == 0`, variant 2 requires that `x.shape[-1] % 2 == 0`; narrow the profile, or use \
                   the plugin route, which chooses at run time";
    assert_eq!(offered(&some, 7, 7), Err(refused.to_owned()));
    assert_eq!(offered(&some, 4, 8), Err(refused.to_owned()));
    let all = plugin(model(vec![variant(1, Some(divides(4, None))), variant(2, None)]));
    assert_eq!(offered(&all, 4, 8), Ok(vec![2]));
    assert_eq!(offered(&all, 8, 8), Ok(vec![1, 2]));
}

#[test]
fn the_tactic_says_which_kernel_is_given() {
    let some = plugin(guarded());
    let x = floats(8, 8);
    some.configure(&[x], &[x]).unwrap();
    let kernel = |plugin: &NativePlugin| {
        let kernel = plugin.kernel(&[x.desc], &[x.desc]).unwrap();
        assert_eq!(kernel.code, PTX);
        kernel.name.to_str().unwrap().to_owned()
    };
    assert_eq!(kernel(&some), "kernel_1", "the first, before there is a tactic");
    some.set_tactic(2).unwrap();
    assert_eq!(kernel(&some), "kernel_2");
    assert_eq!(kernel(&some.clone()), "kernel_2", "copies have the tactic");
    let error = some.set_tactic(3).unwrap_err();
    assert_eq!(error.text(), "test::guarded `n`: variant 3 does not exist");
    assert_eq!(kernel(&some), "kernel_2", "a rejected call changes nothing");
    let x = floats(6, 6);
    some.configure(&[x], &[x]).unwrap();
    some.set_tactic(1).unwrap();
    assert!(some.kernel(&[x.desc], &[x.desc]).is_err(), "its guard is false");
}

#[test]
fn all_types_and_formats_that_there_are_variants_for_are_offered() {
    let row = |id, ty, format| Variant { types: vec![ty; 2], formats: vec![format; 2], ..variant(id, None) };
    let mixed = plugin(model(vec![
        row(1, DataType::F32, Format::Linear),
        row(2, DataType::F16, Format::Hwc8),
        row(3, DataType::F16, Format::Linear),
    ]));
    let of = |rows: Vec<Vec<PluginTensorDesc>>| -> Vec<(i32, i32)> {
        let both =
            |row: &Vec<PluginTensorDesc>| row.iter().map(|desc| (desc.data_type.0, desc.format.0)).collect();
        rows.iter()
            .map(|row| {
                let both: Vec<(i32, i32)> = both(row);
                assert_eq!((both.len(), both[0]), (2, both[1]));
                both[0]
            })
            .collect()
    };
    let kind = |ty: DataType, format: Format| (ty.tensorrt(), format.tensorrt());
    let (floats, halves) = (kind(DataType::F32, Format::Linear), kind(DataType::F16, Format::Linear));
    let x = columns(8, 8, DataType::F32, Format::Linear);
    assert_eq!(of(mixed.format_combinations(&[x, x], 1).unwrap()), [floats, halves]);
    let dims = Dims::from_slice(&[1, 8, 2, 2]).unwrap();
    let x = DynamicPluginTensorDesc {
        desc: PluginTensorDesc { dims, ..x.desc },
        min: dims,
        max: dims,
        opt: dims,
    };
    let channels = kind(DataType::F16, Format::Hwc8);
    assert_eq!(of(mixed.format_combinations(&[x, x], 1).unwrap()), [floats, channels, halves]);
    assert!(mixed.format_combinations(&[x, x, x], 1).is_err(), "one output too many");
    assert!(mixed.format_combinations(&[x, x], 2).is_err(), "one input too many");
}

#[test]
fn attributes_that_the_plugin_refuses_make_no_node() {
    let mut strict = guarded();
    let expr = Expr { nodes: vec![Part::Bool(false)] };
    strict.require.push(Requirement {
        expr,
        text: "k > 3".to_owned(),
        message: "`k` is too small".to_owned(),
    });
    let error = native(strict).unwrap_err();
    assert!(error.text().contains("`k` is too small"), "{error}");
}

fn requires_vectors() -> Model {
    let divides = divides(4, None);
    let requirement =
        Requirement { expr: divides.expr, text: divides.text, message: "rows are of vectors".to_owned() };
    Model { require: vec![requirement], ..model(vec![variant(1, None)]) }
}

#[test]
fn what_is_required_of_shapes_is_held_against_the_profile() {
    let strict = plugin(requires_vectors());
    assert_eq!(offered(&strict, 8, 8), Ok(vec![1]));
    let error = offered(&strict, 7, 7).unwrap_err();
    assert!(error.contains("rows are of vectors"), "{error}");
    let error = offered(&strict, 1, 3).unwrap_err();
    assert!(
        error.contains("`x.shape[-1] % 4 == 0` is false for all shapes of the profile: rows are of vectors"),
        "{error}"
    );
    let unproved = |plugin: &NativePlugin, least, most| {
        let profile = Profile::from_tensors(&plugin.state.node, None, &[floats(least, most)]).unwrap();
        required(plugin, profile)
    };
    assert_eq!(unproved(&strict, 4, 8), Ok(vec!["x.shape[-1] % 4 == 0".to_owned()]));
    assert_eq!(offered(&strict, 4, 8), Ok(vec![1]), "a warning, not an error");
    let mut limited = model(vec![variant(1, None)]);
    limited.inputs[0].limits.numel = Interval { min: 1, max: 1 << 20 };
    let limited = plugin(limited);
    assert_eq!(unproved(&limited, 1, 8), Ok(vec![]));
    assert_eq!(unproved(&limited, 0, 8), Ok(vec!["numel(x) >= 1".to_owned()]));
    assert!(unproved(&limited, 0, 0).is_err(), "every tensor is empty");
}

/// `y` has 8 rows for 1 and for 8 columns, but 20 for 4.
#[test]
fn limits_of_outputs_are_held_inside_the_profile() {
    let limited = |most| {
        let mut limited = model(vec![variant(1, None)]);
        limited.outputs[0].limits.dims = vec![Interval { min: 0, max: most }];
        limited.outputs[0].shape = Expr {
            nodes: vec![
                Part::Shape(0),
                Part::Int(1),
                Part::Index { array: 0, index: 1 },
                Part::Int(9),
                Part::Shape(0),
                Part::Int(1),
                Part::Index { array: 4, index: 5 },
                Part::Binary(BinaryOp::Sub, 3, 6),
                Part::Binary(BinaryOp::Mul, 2, 7),
                Part::Array(vec![8]),
            ],
        };
        plugin(limited)
    };
    let unproved = |most_rows, least, most| {
        let limited = limited(most_rows);
        let profile = Profile::from_tensors(&limited.state.node, None, &[floats(least, most)]).unwrap();
        required(&limited, profile)
    };
    assert_eq!(unproved(10, 1, 8), Ok(vec!["y.shape[0] <= 10".to_owned()]));
    assert_eq!(unproved(10, 1, 1), Ok(vec![]));
    assert_eq!(unproved(100, 1, 8), Ok(vec![]));
    let error = unproved(10, 4, 4).unwrap_err();
    assert!(error.contains("dimension 0 of `y` is 20"), "{error}");
    let error = unproved(10, 2, 7).unwrap_err();
    assert!(error.contains("dimension 0 of `y` is 14"), "{error}");
}

#[test]
fn kernels_of_other_compilers_run_only_what_is_proved() {
    let other = |id, guard| Variant { label: OTHER.to_owned(), ..variant(id, guard) };
    let alone = plugin(Model { variants: vec![other(1, None)], ..requires_vectors() });
    assert_eq!(offered(&alone, 8, 8), Ok(vec![1]));
    let error = offered(&alone, 4, 8).unwrap_err();
    assert!(error.contains("variant 1 requires that `x.shape[-1] % 4 == 0`;"), "{error}");
    let beside = plugin(Model { variants: vec![other(1, None), variant(2, None)], ..requires_vectors() });
    assert_eq!(offered(&beside, 8, 8), Ok(vec![1, 2]));
    assert_eq!(offered(&beside, 4, 8), Ok(vec![2]));
}

/// Requests `x.shape[0] * 4096 * x.shape[1]` bytes of shared memory; the limit is 48 KiB.
fn hungry(id: i32) -> Variant {
    let mut hungry = variant(id, None);
    let dim = |axis, base| [Part::Shape(0), Part::Int(axis), Part::Index { array: base, index: base + 1 }];
    let more = [Part::Binary(BinaryOp::Mul, 2, 5), Part::Int(4096), Part::Binary(BinaryOp::Mul, 6, 7)];
    let nodes = [&dim(0, 0)[..], &dim(1, 3), &more].concat();
    hungry.launch_mut(0).unwrap().shared_bytes = Expr { nodes };
    hungry
}

#[test]
fn launches_that_no_shape_of_the_profile_fits_are_not_offered() {
    let alone = plugin(model(vec![hungry(1)]));
    assert_eq!(offered(&alone, 3, 3), Ok(vec![1]));
    let error = offered(&alone, 4, 4).unwrap_err();
    assert!(
        error.contains("variant 1 requires that dynamic shared memory in bytes is in 0..=49152;"),
        "{error}"
    );
    assert!(offered(&alone, 4, 9).is_err());
    assert_eq!(offered(&alone, 3, 4), Ok(vec![1]));
    assert_eq!(open(&alone, 1, 3), Vec::<String>::new());
    assert_eq!(open(&alone, 3, 4), ["dynamic shared memory in bytes is in 0..=49152"]);
    let both = plugin(model(vec![hungry(1), variant(2, None)]));
    assert_eq!(offered(&both, 4, 4), Ok(vec![2]));
    // Static shared memory counts, too.
    let full = declaring(model(vec![hungry(1)]), Some(1)).unwrap();
    assert_eq!(open(&full, 1, 3), ["dynamic shared memory in bytes is in 0..=49151"]);
    assert!(offered(&full, 3, 3).is_err());
    assert_eq!(offered(&full, 2, 2), Ok(vec![1]));
    let mut idle = hungry(1);
    idle.launch_mut(0).unwrap().grid[0] = Expr { nodes: vec![Part::Int(0)] };
    assert_eq!(offered(&plugin(model(vec![idle])), 4, 4), Ok(vec![1]));
}

/// TensorRT continues with the old contents.
#[test]
fn outputs_that_stay_unwritten_are_told_and_those_that_always_do_are_refused() {
    let writing = |nodes: Vec<Part>| {
        let mut writing = variant(1, None);
        let launch = writing.launch_mut(0).unwrap();
        launch.args = vec![Arg { name: "y".to_owned(), value: ArgValue::Tensor(1) }];
        launch.grid[0] = Expr { nodes };
        plugin(model(vec![writing]))
    };
    // `x.shape[1] // 4` blocks.
    let columns = [Part::Shape(0), Part::Int(1), Part::Index { array: 0, index: 1 }];
    let some = writing([&columns[..], &[Part::Int(4), Part::Binary(BinaryOp::FloorDiv, 2, 3)]].concat());
    assert_eq!(open(&some, 4, 9), Vec::<String>::new());
    assert_eq!(open(&some, 3, 9), ["`y` is written"]);
    assert_eq!(open(&some, 0, 9), ["`y` is written"]);
    assert_eq!(offered(&some, 3, 9), Ok(vec![1]));
    let error = offered(&some, 1, 3).unwrap_err();
    assert!(error.contains("variant 1 requires that `y` is written;"), "{error}");
    assert_eq!(offered(&some, 0, 0), Ok(vec![1]));
    let always = writing(columns.to_vec());
    assert_eq!(open(&always, 0, 9), Vec::<String>::new());
}

fn shaped(make: impl Fn(Vec<Part>) -> Vec<Part>) -> NativePlugin {
    let mut model = model(vec![variant(1, None)]);
    let columns = vec![Part::Shape(0), Part::Int(1), Part::Index { array: 0, index: 1 }];
    let mut nodes = make(columns);
    let last = u32::try_from(nodes.len() - 1).unwrap();
    nodes.push(Part::Array(vec![last]));
    model.outputs[0].shape = Expr { nodes };
    model.outputs[0].limits.dims = vec![Interval { min: 0, max: 100 }];
    plugin(model)
}

/// Output shapes are not checked at run time.
#[test]
fn outputs_without_a_shape_somewhere_in_the_profile_keep_their_limits() {
    let of = |plugin: &NativePlugin, least, most| {
        required(plugin, Profile::from_tensors(&plugin.state.node, None, &[floats(least, most)]).unwrap())
    };
    let limits = || Ok(vec!["y.shape[0] >= 0".to_owned(), "y.shape[0] <= 100".to_owned()]);
    let quotient = shaped(|columns| {
        let moved = columns.into_iter().map(|part| match part {
            Part::Index { .. } => Part::Index { array: 2, index: 3 },
            part => part,
        });
        let mut nodes = vec![Part::Int(840), Part::Int(40)];
        nodes.extend(moved);
        nodes.extend([Part::Binary(BinaryOp::Sub, 1, 4), Part::Binary(BinaryOp::FloorDiv, 0, 5)]);
        nodes
    });
    assert_eq!(of(&quotient, 0, 20), Ok(vec![]));
    assert_eq!(of(&quotient, 0, 40), limits());
    assert!(of(&quotient, 39, 39).is_err() && of(&quotient, 40, 40).is_err());
    let difference =
        shaped(|columns| [columns, vec![Part::Int(4), Part::Binary(BinaryOp::Sub, 2, 3)]].concat());
    assert_eq!(of(&difference, 4, 9), Ok(vec![]));
    assert_eq!(of(&difference, 1, 9), Ok(vec!["y.shape[0] >= 0".to_owned()]));
    for (least, most) in [(1, 3), (3, 3)] {
        assert!(of(&difference, least, most).is_err(), "{least} to {most}");
    }
}

#[test]
fn outputs_in_place_are_warned_about() {
    let said = |alias: Option<u32>| {
        let mut model = guarded();
        model.outputs[0].alias = alias;
        plugin(model).uncopied()
    };
    assert_eq!(said(None), None);
    let warning = said(Some(0)).unwrap();
    for part in ["`y` of `x`", "bind both to one address", "route = \"native\""] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}
