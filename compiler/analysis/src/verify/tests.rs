use super::code_tests::constant;
use super::*;
use crate::diagnostic::{Colour, Diagnostic, render};
use crate::kernel_signature::{Leaf, Param, ParamType, Signature};
use crate::resolve::PluginDraft;
use crate::test_support::{Sample, resolved};
use cubinder_expr::ScalarType;
use cubinder_model::{Arg, ArgValue, Target};

pub(super) const INT: ScalarType = ScalarType::Int { bytes: 4 };

pub(super) fn draft(args: &str) -> PluginDraft {
    draft_with("block = [256]", args)
}

pub(super) fn draft_with(launch: &str, args: &str) -> PluginDraft {
    let tables =
        "[attributes.factor]\ntype = \"f32\"\n[attributes.mode]\ntype = \"string\"\n[types]\nT = [\"f16\"]";
    let sample = Sample { element: "T", tables, kernel: "scale<T>", launch, args, ..Sample::PLAIN };
    resolved("m.toml", &sample.text()).draft
}

fn pointer(pointee: &str, size: Option<u32>, is_const: bool, leaf: Leaf) -> ParamType {
    ParamType::Pointer { pointee: pointee.to_owned(), pointee_size: size, is_const, leaf }
}

fn half(is_const: bool) -> ParamType {
    pointer("__half", Some(2), is_const, Leaf::Half)
}

fn signature(params: &[(&str, &str, ParamType)]) -> Signature {
    let params = params.iter().map(|(spelling, name, ty)| Param {
        name: (*name).to_owned(),
        ty: ty.clone(),
        spelling: (*spelling).to_owned(),
    });
    Signature { kernel: "scale<__half>".to_owned(), params: params.collect() }
}

pub(super) fn with_tensors(params: &[(&str, &str, ParamType)]) -> Signature {
    let mut all = vec![("const __half*", "x", half(true)), ("__half*", "y", half(false))];
    all.extend(params.iter().cloned());
    signature(&all)
}

fn bind(args: &str, signature: &Signature) -> Result<Vec<Arg>, Vec<Diagnostic>> {
    let draft = draft(args);
    bind_args(&draft.plugin, &draft.units[0], signature)
}

fn refused(arg: &str, param: (&str, &str, ParamType)) -> String {
    let errors = bind(&format!("x = \"x\"\ny = \"y\"\n{arg}"), &with_tensors(&[param])).unwrap_err();
    render(&errors, Colour::Plain)
}

#[test]
fn arguments_come_in_the_kernels_order() {
    let signature = signature(&[
        ("int", "n", ParamType::Scalar(ScalarType::Int { bytes: 4 })),
        ("__half*", "y", half(false)),
        ("array<int, 8>", "shape", ParamType::Array { element: INT, len: 8 }),
        ("double", "factor", ParamType::Scalar(ScalarType::F64)),
        ("const __half*", "x", half(true)),
        ("float", "whole", ParamType::Scalar(ScalarType::F32)),
        ("bool", "wide", ParamType::Scalar(ScalarType::Bool)),
    ]);
    let args = bind(
        "x = \"x\"\ny = \"y\"\nn = \"numel(x)\"\nshape = \"x.shape\"\nfactor = \"factor\"\nwhole = \"x.rank\"\n\
         wide = \"x.rank > 2\"",
        &signature,
    )
    .unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    let names: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
    assert_eq!(names, ["n", "y", "shape", "factor", "x", "whole", "wide"]);
    assert_eq!(args[1].value, ArgValue::Tensor(1));
    assert!(matches!(args[2].value, ArgValue::Array { ty: INT, len: 8, .. }));
    assert!(matches!(args[5].value, ArgValue::Scalar { ty: ScalarType::F32, .. }));
}

fn bind_two(args: &str, one: &Signature, other: &Signature) -> Result<BoundArgs, String> {
    let draft = draft(args);
    let signatures = [("sm_80".parse::<Target>().unwrap(), one), ("sm_90".parse().unwrap(), other)];
    bind_targets(&draft.plugin, &draft.units[0], &signatures).map_err(|errors| render(&errors, Colour::Plain))
}

#[test]
fn parameters_that_one_target_has_in_another_order_are_refused() {
    let int = ParamType::Scalar(ScalarType::Int { bytes: 4 });
    let args = "x = \"x\"\ny = \"y\"\nn = \"numel(x)\"\nm = \"x.rank\"";
    let (n, m) = (("int", "n", int.clone()), ("int", "m", int.clone()));
    let (x, y) = (("const __half*", "x", half(true)), ("__half*", "y", half(false)));
    let usual = signature(&[x.clone(), y.clone(), n.clone(), m.clone()]);
    let bound = bind_two(args, &usual, &usual).unwrap();
    assert_eq!(bound.args, bind(args, &usual).unwrap());
    assert_eq!(bound.read_only, ["x"]);
    let numbers = signature(&[x.clone(), y.clone(), m.clone(), n.clone()]);
    let pointers = signature(&[y.clone(), x.clone(), n.clone(), m.clone()]);
    let constness = signature(&[("__half*", "x", half(false)), y.clone(), n.clone(), m.clone()]);
    let wider = signature(&[
        x.clone(),
        y.clone(),
        ("long", "n", ParamType::Scalar(ScalarType::Int { bytes: 8 })),
        m.clone(),
    ]);
    let renamed = signature(&[x.clone(), y.clone(), ("int", "count", int.clone()), m.clone()]);
    for other in [&numbers, &pointers, &constness, &wider, &renamed] {
        for (one, other) in [(&usual, other), (other, &usual)] {
            let error = bind_two(args, one, other).unwrap_err();
            assert!(error.starts_with("error[C0501]"), "{error}");
            for text in [format!("for `sm_80` it is `{one}`"), format!("for `sm_90` it is `{other}`")] {
                assert!(error.contains(&text), "{error}");
            }
            assert!(
                !error.contains("` is a pointer to `f16`") && !error.contains("` is `i32` for"),
                "{error}"
            );
        }
    }
    let count = |ty: ParamType| signature(&[x.clone(), y.clone(), ("Count", "n", ty), m.clone()]);
    let (narrow, long) = (count(int), count(ParamType::Scalar(ScalarType::Int { bytes: 8 })));
    let error = bind_two(args, &narrow, &long).unwrap_err();
    assert!(error.contains("`n` is `i32` for `sm_80` and `i64` for `sm_90`"), "{error}");
    let output = |leaf, size| {
        signature(&[x.clone(), ("Out*", "y", pointer("Out", Some(size), false, leaf)), n.clone(), m.clone()])
    };
    let (half, double) = (output(Leaf::Half, 2), output(Leaf::Scalar(ScalarType::F64), 8));
    let error = bind_two(args, &half, &double).unwrap_err();
    let pointers =
        "`y` is a pointer to `f16` (2 bytes) for `sm_80` and a pointer to `f64` (8 bytes) for `sm_90`";
    assert!(error.contains(pointers), "{error}");
    let wide = pointer("__half2", Some(4), true, Leaf::Half);
    let vectors = signature(&[("const __half2*", "x", wide), y, n, m]);
    assert_eq!(bind_two(args, &usual, &vectors), Ok(bound));
}

#[test]
fn an_argument_that_no_target_accepts_is_reported_once() {
    let args = "x = \"x\"\ny = \"y\"\nn = \"factor\"";
    let int = with_tensors(&[("int", "n", ParamType::Scalar(ScalarType::Int { bytes: 4 }))]);
    let long = with_tensors(&[("long", "n", ParamType::Scalar(ScalarType::Int { bytes: 8 }))]);
    let alike = bind_two(args, &int, &int).unwrap_err();
    assert_eq!(alike.matches("error[C0405]").count(), 1, "{alike}");
    assert!(!alike.contains("only for"), "{alike}");
    let different = bind_two(args, &int, &long).unwrap_err();
    assert!(different.contains("only for `sm_80`") && different.contains("only for `sm_90`"), "{different}");
}

#[test]
fn names_that_do_not_match_are_said() {
    let signature = with_tensors(&[
        ("int", "count", ParamType::Scalar(ScalarType::Int { bytes: 4 })),
        ("float", "factor", ParamType::Scalar(ScalarType::F32)),
        ("int", "", ParamType::Scalar(ScalarType::Int { bytes: 4 })),
    ]);
    let errors =
        bind("x = \"x\"\ny = \"y\"\ncuont = \"numel(x)\"\nwholly_else = \"1\"", &signature).unwrap_err();
    insta::assert_snapshot!("wrong_names", render(&errors, Colour::Plain));
}

/// `template <class... Ts> __global__ void k(..., Ts... n)` with two types.
#[test]
fn parameters_of_one_name_are_refused() {
    let int = ParamType::Scalar(ScalarType::Int { bytes: 4 });
    let signature = with_tensors(&[("int", "n", int.clone()), ("int", "n", int.clone())]);
    let errors = bind("x = \"x\"\ny = \"y\"\nn = \"1\"", &signature).unwrap_err();
    insta::assert_snapshot!("parameters_of_one_name", render(&errors, Colour::Plain));
    let signature = with_tensors(&[("int", "", int.clone()), ("int", "", int)]);
    let errors = bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err();
    assert!(errors[0].message.contains("number 3"), "{errors:?}");
}

#[test]
fn values_that_do_not_fit_are_said() {
    let int = ParamType::Scalar(ScalarType::Int { bytes: 4 });
    let array = ParamType::Array { element: INT, len: 4 };
    let other = |name: &str| ParamType::Other { name: name.to_owned(), size: 2 };
    let shown = [
        refused("n = \"factor\"", ("int", "n", int.clone())),
        refused("n = \"x.rank > 1\"", ("int", "n", int.clone())),
        refused("n = \"x.shape\"", ("int", "n", int.clone())),
        refused("n = \"x\"", ("int", "n", int)),
        refused("flag = \"x.rank\"", ("bool", "flag", ParamType::Scalar(ScalarType::Bool))),
        refused("s = \"x.rank\"", ("array<int, 4>", "s", array.clone())),
        refused("s = \"[1, 2, 3]\"", ("array<int, 4>", "s", array.clone())),
        refused("s = \"[1.0, 2.0, 3.0, 4.0]\"", ("array<int, 4>", "s", array)),
        refused("p = \"x.rank\"", ("int*", "p", pointer("int", Some(4), false, Leaf::Scalar(INT)))),
        refused("h = \"factor\"", ("__half", "h", other("__half"))),
        refused("t = \"x.rank\"", ("Two", "t", other("Two"))),
    ];
    insta::assert_snapshot!("values_that_do_not_fit", shown.join("\n"));
}

#[test]
fn an_enumeration_is_passed_as_its_integers() {
    let types = [
        ScalarType::Natural { bits: 1 },
        ScalarType::Natural { bits: 7 },
        ScalarType::Int { bytes: 1 },
        ScalarType::UInt { bytes: 1 },
    ];
    for expected in types {
        let mode = ("Mode", "mode", ParamType::Enum(expected));
        for value in ["200", "-3", "x.rank"] {
            let args = format!("x = \"x\"\ny = \"y\"\nmode = \"{value}\"");
            let args = bind(&args, &with_tensors(std::slice::from_ref(&mode)))
                .unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
            assert!(matches!(args[2].value, ArgValue::Scalar { ty, .. } if ty == expected), "{args:?}");
        }
        assert!(refused("mode = \"factor\"", mode).contains("convert it with `int(...)`"));
    }
}

#[test]
fn an_output_is_not_bound_to_const() {
    let signature = signature(&[("const __half*", "x", half(true)), ("const __half*", "y", half(true))]);
    let errors = bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err();
    insta::assert_snapshot!("output_to_const", render(&errors, Colour::Plain));
    let signature = super::tests::signature(&[("__half*", "x", half(false)), ("__half*", "y", half(false))]);
    assert!(bind("x = \"x\"\ny = \"y\"", &signature).is_ok());
}

#[test]
fn a_tensor_of_another_type_is_refused() {
    let double = pointer("double", Some(8), true, Leaf::Scalar(ScalarType::F64));
    let signature = signature(&[("const double*", "x", double), ("__half*", "y", half(false))]);
    let errors = bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err();
    insta::assert_snapshot!("tensor_of_another_type", render(&errors, Colour::Plain));
    let rows = pointer("const __half*", Some(8), false, Leaf::Address);
    let signature = super::tests::signature(&[("const __half**", "x", rows), ("__half*", "y", half(false))]);
    let errors = bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err();
    insta::assert_snapshot!("tensor_to_pointers", render(&errors, Colour::Plain));
}

#[test]
fn the_numbers_behind_pointers_are_those_of_all_targets() {
    let with_x = |x: ParamType| {
        signature(&[
            ("T", "x", x),
            ("__half*", "y", half(false)),
            ("int", "n", ParamType::Scalar(ScalarType::Int { bytes: 4 })),
        ])
    };
    let halves = with_x(half(true));
    let words = with_x(pointer("uint4", Some(16), true, Leaf::Scalar(ScalarType::UInt { bytes: 4 })));
    let unknown = with_x(pointer("void", None, true, Leaf::Opaque));
    let bytes = |one: &Signature, other: &Signature| {
        let bound = bind_two("x = \"x\"\ny = \"y\"\nn = \"numel(x)\"", one, other).unwrap();
        bound.number_bytes.into_iter().map(|(name, bytes)| format!("{name}: {bytes}")).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&halves, &words), ["x: 2", "x: 4", "y: 2"]);
    assert_eq!(bytes(&words, &unknown), ["x: 4", "y: 2"]);
    assert_eq!(bytes(&unknown, &unknown), ["y: 2"]);
}

#[test]
fn a_writable_input_is_warned_about_unless_an_output_shares_its_memory() {
    let both = signature(&[("__half*", "x", half(false)), ("__half*", "y", half(false))]);
    let warnings = |alias: Option<u32>| {
        let mut draft = draft("x = \"x\"\ny = \"y\"");
        draft.plugin.outputs[0].alias = alias;
        let found = writable_inputs(&draft.plugin, &draft.units[0], &both);
        found.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    assert_eq!(warnings(None), ["the kernel may write to the input `x`"]);
    assert_eq!(warnings(Some(0)), [""; 0]);
}

#[test]
fn an_output_may_be_bound_to_const_if_another_step_writes_it() {
    let both = signature(&[("const __half*", "x", half(true)), ("const __half*", "y", half(true))]);
    let errors = |alias: Option<u32>, shared: &[u32]| {
        let mut draft = draft("x = \"x\"\ny = \"y\"");
        draft.plugin.outputs[0].alias = alias;
        draft.units[0].shared_outputs = shared.to_vec();
        let errors = bind_args(&draft.plugin, &draft.units[0], &both).err().unwrap_or_default();
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    let error = "the output `y` is bound to a pointer to `const`";
    assert_eq!(errors(None, &[]), [error]);
    assert_eq!(errors(None, &[0]), [error]);
    assert_eq!(errors(None, &[1]), [""; 0]);
    let of_input = "`x`, which shares the memory of the output `y`, is bound to a pointer to `const`";
    assert_eq!(errors(Some(0), &[]), [of_input, error]);
    assert_eq!(errors(Some(0), &[1]), [""; 0]);
    let mut draft = draft("x = \"x\"\ny = \"y\"");
    draft.plugin.outputs[0].alias = Some(0);
    let errors = bind_args(&draft.plugin, &draft.units[0], &both).err().unwrap();
    let helps: Vec<_> = errors.iter().map(|error| error.help.as_deref().unwrap()).collect();
    assert_eq!(
        helps,
        ["declare the parameter as `__half* x`", "declare the parameter as `__half* y`, or pass an input"]
    );
}

#[test]
fn the_help_for_an_array_of_const_elements_is_no_type() {
    let array = pointer("float [4]", Some(8), true, Leaf::Half);
    let signature = signature(&[("const __half*", "x", half(true)), ("const T*", "y", array)]);
    let error = render(&bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err(), Colour::Plain);
    assert!(error.contains("remove `const` from the parameter, or pass an input"), "{error}");
}

#[test]
fn an_input_that_is_changed_in_place_may_share_an_output() {
    let x = signature(&[("__half*", "x", half(false))]);
    let help = |change: &dyn Fn(&mut PluginDraft)| {
        let mut draft = draft("x = \"x\"\ny = \"y\"");
        draft.units[0].args.retain(|arg| arg.name == "x");
        change(&mut draft);
        writable_inputs(&draft.plugin, &draft.units[0], &x).remove(0).help.unwrap_or_default()
    };
    let plain = "declare it as `const __half* x`";
    let in_place = help(&|_| {});
    assert!(
        in_place.starts_with(plain) && in_place.contains("`alias = \"x\"` of the output `y`"),
        "{in_place}"
    );
    let passed = super::tests::draft("x = \"x\"\ny = \"y\"").units[0].args.clone();
    assert_eq!(help(&|draft| draft.units[0].args.clone_from(&passed)), plain);
    assert_eq!(help(&|draft| draft.plugin.variants[0].types[1] = cubinder_expr::DataType::F32), plain);
    assert_eq!(help(&|draft| draft.plugin.outputs[0].shape = constant()), plain);
    assert_eq!(help(&|draft| draft.plugin.outputs[0].alias = Some(1)), plain);
}

#[test]
fn names_are_checked_without_types() {
    let signature = with_tensors(&[("T", "n", ParamType::Other { name: "T".to_owned(), size: 0 })]);
    let check = |args: &str| {
        let draft = draft(args);
        let found = check_names(&draft.units[0], &signature);
        found.into_iter().map(|error| (error.message, error.help.unwrap_or_default())).collect::<Vec<_>>()
    };
    assert_eq!(check("x = \"x\"\ny = \"y\"\nn = \"1\""), []);
    let errors = check("x = \"x\"\ny = \"y\"\nn = \"1\"\nblock = \"1\"");
    assert_eq!(errors[0].0, "the kernel `scale<__half>` has no parameter `block`");
    assert!(errors[0].1.contains("move `block`, a key of"), "{errors:?}");
}

#[test]
fn an_input_and_an_output_that_changed_places_are_named() {
    let exchanged = signature(&[("__half*", "x", half(false)), ("const __half*", "y", half(true))]);
    let errors = bind("x = \"x\"\ny = \"y\"", &exchanged).unwrap_err();
    assert_eq!(errors[0].help.as_deref(), Some("did you swap `y` and `x`?"));
}

#[test]
fn an_array_of_the_right_length_is_passed() {
    let array = ParamType::Array { element: INT, len: 4 };
    let signature = with_tensors(&[("array<int, 4>", "s", array)]);
    let args = bind("x = \"x\"\ny = \"y\"\ns = \"[1, 2, 3, 4]\"", &signature).unwrap();
    assert!(matches!(args[2].value, ArgValue::Array { ty: INT, len: 4, .. }));
}
