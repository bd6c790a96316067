use super::*;
use crate::cubin::{Cluster, Dynamic, LaunchRules};
use crate::diagnostic::{Colour, Diagnostic, Severity, render};
use crate::kernel_signature::{Leaf, Param, ParamType, Signature};
use crate::resolve::{ForeignCode, PluginDraft};
use crate::test_support::{Sample, resolved};
use cubinder_expr::ScalarType;
use cubinder_model::{Arg, ArgValue, KernelFacts, KernelParam, Target};

const INT: ScalarType = ScalarType::Int { bytes: 4 };

/// A plugin with the input `x` (f16), the output `y` (f16), and these arguments.
fn draft(args: &str) -> PluginDraft {
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

/// `x` and `y`, then these.
fn with_tensors(params: &[(&str, &str, ParamType)]) -> Signature {
    let mut all = vec![("const __half*", "x", half(true)), ("__half*", "y", half(false))];
    all.extend(params.iter().cloned());
    signature(&all)
}

fn bind(args: &str, signature: &Signature) -> Result<Vec<Arg>, Vec<Diagnostic>> {
    let draft = draft(args);
    bind_args(&draft.plugin, &draft.units[0], signature)
}

/// The errors of binding `x`, `y` and one more argument to one more parameter.
fn refused(arg: &str, param: (&str, &str, ParamType)) -> String {
    let errors = bind(&format!("x = \"x\"\ny = \"y\"\n{arg}"), &with_tensors(&[param])).unwrap_err();
    render(&errors, Colour::Plain)
}

#[test]
fn arguments_come_in_the_kernels_order() {
    let signature = signature(&[
        ("int", "n", ParamType::Int { bytes: 4 }),
        ("__half*", "y", half(false)),
        ("array<int, 8>", "shape", ParamType::Array { element: INT, len: 8 }),
        ("double", "factor", ParamType::F64),
        ("const __half*", "x", half(true)),
        ("float", "whole", ParamType::F32),
        ("bool", "wide", ParamType::Bool),
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

/// The arguments for two targets, and what is reported.
fn bind_two(args: &str, one: &Signature, other: &Signature) -> Result<Bound, String> {
    let draft = draft(args);
    let signatures = [("sm_80".parse::<Target>().unwrap(), one), ("sm_90".parse().unwrap(), other)];
    bind_targets(&draft.plugin, &draft.units[0], &signatures).map_err(|errors| render(&errors, Colour::Plain))
}

#[test]
fn parameters_that_one_target_has_in_another_order_are_refused() {
    let int = ParamType::Int { bytes: 4 };
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
    let wider = signature(&[x.clone(), y.clone(), ("long", "n", ParamType::Int { bytes: 8 }), m.clone()]);
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
    // The texts of these are the same.
    let count = |ty: ParamType| signature(&[x.clone(), y.clone(), ("Count", "n", ty), m.clone()]);
    let (narrow, long) = (count(int), count(ParamType::Int { bytes: 8 }));
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
    // What a pointer points to may differ.
    let wide = pointer("__half2", Some(4), true, Leaf::Half);
    let vectors = signature(&[("const __half2*", "x", wide), y, n, m]);
    assert_eq!(bind_two(args, &usual, &vectors), Ok(bound));
}

#[test]
fn an_argument_that_no_target_accepts_is_reported_once() {
    let args = "x = \"x\"\ny = \"y\"\nn = \"factor\"";
    let int = with_tensors(&[("int", "n", ParamType::Int { bytes: 4 })]);
    let long = with_tensors(&[("long", "n", ParamType::Int { bytes: 8 })]);
    let alike = bind_two(args, &int, &int).unwrap_err();
    assert_eq!(alike.matches("error[C0405]").count(), 1, "{alike}");
    assert!(!alike.contains("only for"), "{alike}");
    let different = bind_two(args, &int, &long).unwrap_err();
    assert!(different.contains("only for `sm_80`") && different.contains("only for `sm_90`"), "{different}");
}

#[test]
fn names_that_do_not_match_are_said() {
    let signature = with_tensors(&[
        ("int", "count", ParamType::Int { bytes: 4 }),
        ("float", "factor", ParamType::F32),
        ("int", "", ParamType::Int { bytes: 4 }),
    ]);
    let errors =
        bind("x = \"x\"\ny = \"y\"\ncuont = \"numel(x)\"\nwholly_else = \"1\"", &signature).unwrap_err();
    insta::assert_snapshot!("wrong_names", render(&errors, Colour::Plain));
}

/// `template <class... Ts> __global__ void k(..., Ts... n)` with two types.
#[test]
fn parameters_of_one_name_are_refused() {
    let int = ParamType::Int { bytes: 4 };
    let signature = with_tensors(&[("int", "n", int.clone()), ("int", "n", int.clone())]);
    let errors = bind("x = \"x\"\ny = \"y\"\nn = \"1\"", &signature).unwrap_err();
    insta::assert_snapshot!("parameters_of_one_name", render(&errors, Colour::Plain));
    // Parameters without a name are not of one name.
    let signature = with_tensors(&[("int", "", int.clone()), ("int", "", int)]);
    let errors = bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err();
    assert!(errors[0].message.contains("number 3"), "{errors:?}");
}

#[test]
fn values_that_do_not_fit_are_said() {
    let int = ParamType::Int { bytes: 4 };
    let array = ParamType::Array { element: INT, len: 4 };
    let other = |name: &str| ParamType::Other { name: name.to_owned(), size: 2 };
    let shown = [
        refused("n = \"factor\"", ("int", "n", int.clone())),
        refused("n = \"x.rank > 1\"", ("int", "n", int.clone())),
        refused("n = \"x.shape\"", ("int", "n", int.clone())),
        refused("n = \"x\"", ("int", "n", int)),
        refused("flag = \"x.rank\"", ("bool", "flag", ParamType::Bool)),
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
    // An input may be bound to either.
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

fn check(launch: &str, args: &[Arg], target: &str, kernel: &KernelFacts) -> Result<(), String> {
    check_with(launch, args, target, kernel, LaunchRules::default())
}

fn check_with(
    launch: &str,
    args: &[Arg],
    target: &str,
    kernel: &KernelFacts,
    rules: LaunchRules,
) -> Result<(), String> {
    let draft = draft_with(launch, "x = \"x\"\ny = \"y\"");
    let check = CodeCheck {
        unit: &draft.units[0],
        launch: draft.plugin.variants[0].launch(0).unwrap(),
        args,
        signature: &with_tensors(&[]),
        target: target.parse::<Target>().unwrap(),
        kernel,
        rules,
    };
    check_code(&check).map_err(|errors| render(&errors, Colour::Plain))
}

fn tensor(name: &str, index: u32) -> Arg {
    Arg { name: name.to_owned(), value: ArgValue::Tensor(index) }
}

pub(super) fn facts(params: &[(u32, u32)]) -> KernelFacts {
    KernelFacts {
        symbol: "k".to_owned(),
        registers: Some(32),
        shared_bytes: Some(0),
        local_bytes: Some(0),
        max_threads: None,
        params: params.iter().map(|&(offset, size)| KernelParam { offset, size }).collect(),
    }
}

#[test]
fn code_that_agrees_passes() {
    let args = [
        tensor("x", 0),
        Arg { name: "b".to_owned(), value: ArgValue::Scalar { ty: ScalarType::Bool, expr: constant() } },
        Arg { name: "a".to_owned(), value: ArgValue::Array { ty: INT, len: 3, expr: constant() } },
        tensor("y", 1),
    ];
    assert_eq!(check("block = [256]", &args, "sm_80", &facts(&[(0, 8), (8, 1), (12, 12), (24, 8)])), Ok(()));
}

/// `struct alignas(16) A { float d[4]; }` behind an `int`: 12 bytes further than its numbers ask for.
#[test]
fn a_struct_may_be_aligned_to_more_than_its_numbers() {
    let args = [
        tensor("x", 0),
        Arg { name: "q".to_owned(), value: ArgValue::Scalar { ty: INT, expr: constant() } },
        Arg {
            name: "a".to_owned(),
            value: ArgValue::Array { ty: ScalarType::F32, len: 4, expr: constant() },
        },
    ];
    assert_eq!(check("block = [256]", &args, "sm_80", &facts(&[(0, 8), (8, 4), (16, 16)])), Ok(()));
    assert_eq!(check("block = [256]", &args, "sm_80", &facts(&[(0, 8), (8, 4), (32, 16)])), Ok(()));
    for (offset, size) in [(8, 16), (14, 16), (16, 32)] {
        assert!(check("block = [256]", &args, "sm_80", &facts(&[(0, 8), (8, 4), (offset, size)])).is_err());
    }
}

fn constant() -> cubinder_expr::Expr {
    cubinder_expr::Expr { nodes: vec![cubinder_expr::Node::Int(1)] }
}

#[test]
fn code_that_disagrees_is_said() {
    let args = [tensor("x", 0), tensor("y", 1)];
    let two = facts(&[(0, 8), (8, 8)]);
    let wide = [Arg {
        name: "table".to_owned(),
        value: ArgValue::Array { ty: ScalarType::F32, len: 8192, expr: constant() },
    }];
    let cases = [
        check("block = [256]", &args, "sm_80", &facts(&[(0, 8)])),
        check("block = [256]", &args, "sm_80", &facts(&[(0, 8), (8, 4)])),
        check("block = [256]", &wide, "sm_80", &facts(&[(0, 32_768)])),
        check("block = [256]", &args, "sm_80", &KernelFacts { shared_bytes: Some(49_156), ..two.clone() }),
        check(
            "block = [256]\nshared_bytes = 100_000",
            &args,
            "sm_89",
            &KernelFacts { shared_bytes: Some(4000), ..two.clone() },
        ),
        check("block = [32, 16]", &args, "sm_80", &KernelFacts { max_threads: Some(256), ..two.clone() }),
        check("block = [1024]", &args, "sm_80", &KernelFacts { registers: Some(65), ..two.clone() }),
        // 17 warps, which count as 20.
        check("block = [544]", &args, "sm_80", &KernelFacts { registers: Some(120), ..two.clone() }),
    ];
    let shown: Vec<String> = cases.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!("code_that_disagrees", shown.join("\n"));
    // What is only known at launch, or fits exactly, is no error here.
    assert_eq!(
        check("block = [\"numel(x)\"]", &args, "sm_80", &KernelFacts { registers: Some(255), ..two.clone() }),
        Ok(())
    );
    for (launch, registers) in [("block = [1024]", 64), ("block = [512]", 128), ("block = [544]", 96)] {
        let kernel = KernelFacts { registers: Some(registers), ..two.clone() };
        assert_eq!(check(launch, &args, "sm_80", &kernel), Ok(()));
    }
    assert_eq!(check("block = [256]\nshared_bytes = 100_000", &args, "sm_80", &two), Ok(()));
}

#[test]
fn a_launch_heeds_what_the_kernel_demands() {
    let args = [tensor("x", 0), tensor("y", 1)];
    let facts = KernelFacts { max_threads: Some(64), ..facts(&[(0, 8), (8, 8)]) };
    let blocks = LaunchRules { block: Some([8, 4, 2]), ..LaunchRules::default() };
    let clusters = |cluster| LaunchRules { cluster: Some(cluster), ..LaunchRules::default() };
    let refused = [
        // As many threads, fewer, and a number that is not known yet.
        check_with("block = [64]", &args, "sm_90", &facts, blocks),
        check_with("block = [8, 4]", &args, "sm_90", &facts, blocks),
        check_with("block = [8, 4, \"x.rank\"]", &args, "sm_90", &facts, blocks),
        check_with("block = [64]\ncluster = [4]", &args, "sm_90", &facts, clusters(Cluster::Of([2, 1, 1]))),
        check_with(
            "block = [64]\ncluster = [\"x.rank\"]",
            &args,
            "sm_90",
            &facts,
            clusters(Cluster::Of([2, 1, 1])),
        ),
        check_with("block = [64]", &args, "sm_90", &facts, clusters(Cluster::AtLaunch)),
        check_with(
            "block = [8, 4, 2]\ncluster = [2]",
            &args,
            "sm_90",
            &facts,
            LaunchRules { cluster: Some(Cluster::Of([2, 1, 1])), ..blocks },
        ),
    ];
    let shown: Vec<String> = refused.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!("launch_rules", shown.join("\n"));
    // More than the kernel was made for.
    let most = LaunchRules { max_cluster: Some(4), ..LaunchRules::default() };
    let beyond = check_with("block = [64]\ncluster = [4, 2]", &args, "sm_90", &facts, most).unwrap_err();
    assert!(beyond.contains("the launch has clusters of 8 blocks, the kernel allows 4"), "{beyond}");
    for launch in ["block = [64]\ncluster = [2, 2]", "block = [64]\ncluster = [\"x.rank\"]", "block = [64]"] {
        assert_eq!(check_with(launch, &args, "sm_90", &facts, most), Ok(()), "{launch}");
    }
    // More blocks than a launch can have.
    let too_large =
        check_with("block = [64]", &args, "sm_90", &facts, clusters(Cluster::Of([4, 2, 2]))).unwrap_err();
    assert!(too_large.contains("clusters of 16 blocks, and a launch has at most 8"), "{too_large}");
    let largest = check_with("block = [64]", &args, "sm_90", &facts, clusters(Cluster::Of([4, 2, 1])));
    assert_eq!(largest, Ok(()));
    assert_eq!(check_with("block = [8, 4, 2]", &args, "sm_90", &facts, blocks), Ok(()));
    for (launch, cluster) in [
        ("block = [64]", Cluster::Of([2, 1, 1])),
        ("block = [64]\ncluster = [2]", Cluster::Of([2, 1, 1])),
        ("block = [64]\ncluster = [4]", Cluster::AtLaunch),
    ] {
        assert_eq!(check_with(launch, &args, "sm_90", &facts, clusters(cluster)), Ok(()), "{launch}");
    }
}

/// What the driver makes of PTX is not known; what the text declares is there in any case.
#[test]
fn ptx_is_held_against_the_shared_memory_that_it_declares() {
    let args = [tensor("x", 0), tensor("y", 1)];
    let facts = KernelFacts { shared_bytes: None, registers: None, ..facts(&[(0, 8), (8, 8)]) };
    let declares = |shared_bytes| LaunchRules { shared_bytes, ..LaunchRules::default() };
    let launch = "block = [64]\nshared_bytes = 200_000";
    let refused = check_with("block = [64]", &args, "compute_80", &facts, declares(49_153)).unwrap_err();
    assert!(refused.contains("49153 bytes of static shared memory, the limit is 49152"), "{refused}");
    // It runs on GPUs that have more than 8.0.
    assert_eq!(check_with(launch, &args, "compute_80", &facts, declares(49_152)), Ok(()));
}

/// The kernel of every target reads the same memory, so all sizes are kept.
#[test]
fn the_numbers_behind_pointers_are_those_of_all_targets() {
    let with_x = |x: ParamType| {
        signature(&[("T", "x", x), ("__half*", "y", half(false)), ("int", "n", ParamType::Int { bytes: 4 })])
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
    assert_eq!(warnings(None), ["the kernel could write to the input `x`"]);
    assert_eq!(warnings(Some(0)), [""; 0]);
}

/// Another step may write what this kernel only reads, under either name of the memory.
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
    let of_input = "`x` shares the memory of the output `y`, and is bound to a pointer to `const`";
    assert_eq!(errors(Some(0), &[]), [of_input, error]);
    assert_eq!(errors(Some(0), &[1]), [""; 0]);
    let mut draft = draft("x = \"x\"\ny = \"y\"");
    draft.plugin.outputs[0].alias = Some(0);
    let errors = bind_args(&draft.plugin, &draft.units[0], &both).err().unwrap();
    let helps: Vec<_> = errors.iter().map(|error| error.help.as_deref().unwrap()).collect();
    assert_eq!(
        helps,
        ["make the parameter `__half* x`", "make the parameter `__half* y`, or bind an input to it"]
    );
}

#[test]
fn the_help_for_an_array_of_const_elements_is_no_type() {
    let array = pointer("float [4]", Some(8), true, Leaf::Half);
    let signature = signature(&[("const __half*", "x", half(true)), ("const T*", "y", array)]);
    let error = render(&bind("x = \"x\"\ny = \"y\"", &signature).unwrap_err(), Colour::Plain);
    assert!(error.contains("take `const` out of the parameter, or bind an input to it"), "{error}");
}

#[test]
fn dynamic_shared_memory_needs_bytes() {
    let found = |launch: &str, dynamic_shared: Dynamic| {
        let draft = draft_with(launch, "x = \"x\"\ny = \"y\"");
        let rules = LaunchRules { dynamic_shared, ..LaunchRules::default() };
        let launch = draft.plugin.variants[0].launch(0).unwrap();
        let found = no_shared(&draft.units[0], launch, rules);
        found.map(|found| (found.severity, found.message))
    };
    let none = "block = [256]";
    let (severity, message) = found(none, Dynamic::Yes).unwrap();
    assert_eq!(severity, Severity::Warning);
    assert!(message.ends_with("uses dynamic shared memory, but is launched with 0 bytes of it"), "{message}");
    assert_eq!(found(none, Dynamic::NotTold), None);
    assert_eq!(found(none, Dynamic::No), None);
    for some in ["block = [256]\nshared_bytes = 16", "block = [256]\nshared_bytes = \"numel(x)\""] {
        assert_eq!(found(some, Dynamic::Yes), None);
    }
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
    let plain = "take it as `const __half* x`";
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
    assert!(errors[0].1.contains("`block` is a key of"), "{errors:?}");
}

#[test]
fn an_input_and_an_output_that_changed_places_are_named() {
    let exchanged = signature(&[("__half*", "x", half(false)), ("const __half*", "y", half(true))]);
    let errors = bind("x = \"x\"\ny = \"y\"", &exchanged).unwrap_err();
    assert_eq!(errors[0].help.as_deref(), Some("`y` and `x` may have changed places"));
}

#[test]
fn an_array_of_the_right_length_is_passed() {
    let array = ParamType::Array { element: INT, len: 4 };
    let signature = with_tensors(&[("array<int, 4>", "s", array)]);
    let args = bind("x = \"x\"\ny = \"y\"\ns = \"[1, 2, 3, 4]\"", &signature).unwrap();
    assert!(matches!(args[2].value, ArgValue::Array { ty: INT, len: 4, .. }));
}

/// As the release notes of CUDA 12.1 and NVRTC 13.0 have them.
#[test]
fn the_bytes_of_parameters_are_limited_by_the_architecture() {
    let of = |target: &str, len: u32| {
        let value = ArgValue::Array { ty: ScalarType::F32, len, expr: constant() };
        let table = [Arg { name: "table".to_owned(), value }];
        check("block = [256]", &table, target, &facts(&[(0, 4 * len)]))
    };
    for (target, most) in [("sm_61", 1024), ("sm_70", 8191), ("sm_80", 8191)] {
        assert_eq!(of(target, most), Ok(()), "{target}");
        let error = of(target, most + 1).unwrap_err();
        assert!(error.contains(&format!("the limit is {}", 4 * most)), "{error}");
    }
}

/// A block may have exactly as much shared memory as the architecture has.
#[test]
fn shared_memory_may_be_used_up() {
    let args = [tensor("x", 0), tensor("y", 1)];
    let of = |target: &str, fixed: u32, dynamic: u32| {
        let launch = format!("block = [256]\nshared_bytes = {dynamic}");
        let facts = KernelFacts { shared_bytes: Some(fixed), ..facts(&[(0, 8), (8, 8)]) };
        check(&launch, &args, target, &facts)
    };
    for (target, most) in [("sm_70", 96), ("sm_75", 64), ("sm_80", 163), ("sm_89", 99), ("sm_90", 227)] {
        assert_eq!(of(target, 1024, (most - 1) * 1024), Ok(()), "{target}");
        let error = of(target, 1024, (most - 1) * 1024 + 1).unwrap_err();
        assert!(error.contains(&format!("of at most {} a block", most * 1024)), "{error}");
    }
    assert_eq!(of("sm_80", 48 * 1024, 0), Ok(()));
}

#[test]
fn precompiled_code_is_not_said_to_be_compiled() {
    let mut draft = draft("x = \"x\"\ny = \"y\"");
    let args = [tensor("x", 0), tensor("y", 1)];
    let label = |draft: &PluginDraft| {
        let check = CodeCheck {
            unit: &draft.units[0],
            launch: draft.plugin.variants[0].launch(0).unwrap(),
            args: &args,
            signature: &with_tensors(&[]),
            target: "sm_80".parse().unwrap(),
            kernel: &facts(&[(0, 8)]),
            rules: LaunchRules::default(),
        };
        check_code(&check).unwrap_err().remove(0).primary.unwrap().text
    };
    assert_eq!(label(&draft), "compiled for this kernel");
    let unit = &mut draft.units[0];
    let code = ForeignCode {
        name: "k".to_owned(),
        name_span: unit.kernel_span.clone(),
        kernel: None,
        signature: with_tensors(&[]),
        param_spans: Vec::new(),
        made_by: String::new(),
        files: Vec::new(),
    };
    unit.foreign = Some(code);
    assert_eq!(label(&draft), "this code");
}
