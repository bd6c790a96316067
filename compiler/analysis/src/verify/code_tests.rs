use super::tests::{INT, draft, draft_with, with_tensors};
use super::*;
use crate::cubin::{Cluster, Dynamic, LaunchRules};
use crate::diagnostic::{Colour, Severity, render};
use crate::resolve::{ForeignCode, PluginDraft};
use cubinder_expr::ScalarType;
use cubinder_model::{Arg, ArgValue, KernelFacts, KernelParam, Target};

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

/// `struct alignas(16) A { float d[4]; }` after an `int`: 12 bytes of padding.
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

pub(super) fn constant() -> cubinder_expr::Expr {
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
        // 17 warps count as 20.
        check("block = [544]", &args, "sm_80", &KernelFacts { registers: Some(120), ..two.clone() }),
    ];
    let shown: Vec<String> = cases.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!("code_that_disagrees", shown.join("\n"));
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
    let most = LaunchRules { max_cluster: Some(4), ..LaunchRules::default() };
    let beyond = check_with("block = [64]\ncluster = [4, 2]", &args, "sm_90", &facts, most).unwrap_err();
    assert!(beyond.contains("the launch has clusters of 8 blocks, but the kernel allows 4"), "{beyond}");
    for launch in ["block = [64]\ncluster = [2, 2]", "block = [64]\ncluster = [\"x.rank\"]", "block = [64]"] {
        assert_eq!(check_with(launch, &args, "sm_90", &facts, most), Ok(()), "{launch}");
    }
    let too_large =
        check_with("block = [64]", &args, "sm_90", &facts, clusters(Cluster::Of([4, 2, 2]))).unwrap_err();
    assert!(too_large.contains("clusters of 16 blocks, the limit is 8"), "{too_large}");
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

#[test]
fn ptx_is_held_against_the_shared_memory_that_it_declares() {
    let args = [tensor("x", 0), tensor("y", 1)];
    let facts = KernelFacts { shared_bytes: None, registers: None, ..facts(&[(0, 8), (8, 8)]) };
    let declares = |shared_bytes| LaunchRules { shared_bytes, ..LaunchRules::default() };
    let launch = "block = [64]\nshared_bytes = 200_000";
    let refused = check_with("block = [64]", &args, "compute_80", &facts, declares(49_153)).unwrap_err();
    assert!(refused.contains("49153 bytes of static shared memory, the limit is 49152"), "{refused}");
    assert_eq!(check_with(launch, &args, "compute_80", &facts, declares(49_152)), Ok(()));
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
    assert!(message.ends_with("uses dynamic shared memory, but is launched with 0 bytes"), "{message}");
    assert_eq!(found(none, Dynamic::NotTold), None);
    assert_eq!(found(none, Dynamic::No), None);
    for some in ["block = [256]\nshared_bytes = 16", "block = [256]\nshared_bytes = \"numel(x)\""] {
        assert_eq!(found(some, Dynamic::Yes), None);
    }
}

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
        assert!(error.contains(&format!("the limit is {} per block", most * 1024)), "{error}");
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
