//! Builds bundles from manifests with placeholder code and one measured node.

use cubinder_expr::Kind;
use cubinder_expr::ScalarType;
use cubinder_manifest::resolve::{ArgDraft, ArgDraftValue, Resolved};
use cubinder_model::{
    Arch, ArchSuffix, Arg, ArgValue, Bundle, CodeBytes, CodeObject, CodeRef, Digest, KernelFacts,
    KernelParam, Plugin, Target, TargetKind, TunedDevice, TunedPoint,
};

pub(crate) const CODE: &[u8] = b"code";
const LONG_CODE: &[u8] = &[b'c'; 64];
const SYMBOL: &str = "kernel";
const TARGET: Target =
    Target { kind: TargetKind::Cubin, arch: Arch { major: 8, minor: 9, suffix: ArchSuffix::None } };

pub(crate) fn bundle(resolved: &Resolved, with_args: bool) -> Bundle {
    let mut plugin = resolved.draft.plugin.clone();
    for unit in &resolved.draft.units {
        let variant = plugin.variants.get_mut(unit.variant);
        let Some(launch) = variant.and_then(|variant| variant.launch_mut(unit.step)) else {
            continue;
        };
        launch.code = vec![CodeRef { target: TARGET, code: 0, symbol: SYMBOL.to_owned() }];
        if with_args {
            launch.args = unit.args.iter().map(argument).collect();
        }
    }
    plugin.tuning = vec![measured(&plugin)];
    Bundle { producer: "fuzz".to_owned(), plugins: vec![plugin], code: vec![code()] }
}

fn measured(plugin: &Plugin) -> TunedDevice {
    let inputs = plugin.inputs.iter().map(|input| vec![2; input.rank_min.into()]);
    let outputs = plugin.outputs.iter().map(|_| vec![2]);
    let point =
        TunedPoint { attributes: Vec::new(), shapes: inputs.chain(outputs).collect(), ranking: vec![0] };
    TunedDevice { name: "a GPU".to_owned(), capability: 89, sms: 58, points: vec![point] }
}

pub(crate) fn packed_code() -> CodeObject {
    CodeObject { digest: Digest::compute(LONG_CODE), bytes: CodeBytes::pack(LONG_CODE.to_vec()), ..code() }
}

fn code() -> CodeObject {
    let kernel = KernelFacts {
        symbol: SYMBOL.to_owned(),
        registers: Some(16),
        shared_bytes: Some(0),
        local_bytes: None,
        max_threads: Some(256),
        params: vec![KernelParam { offset: 0, size: 8 }],
    };
    CodeObject {
        target: TARGET,
        digest: Digest::compute(CODE),
        kernels: vec![kernel],
        bytes: CODE.to_vec().into(),
    }
}

fn argument(draft: &ArgDraft) -> Arg {
    let scalar = |kind: &Kind| match kind {
        Kind::Float => ScalarType::F32,
        Kind::Bool => ScalarType::Bool,
        _ => ScalarType::Int { bytes: 4 },
    };
    let value = match &draft.value {
        ArgDraftValue::Tensor(index) => ArgValue::Tensor(*index),
        ArgDraftValue::Scratch(index) => ArgValue::Scratch(*index),
        ArgDraftValue::Expr { expr, kind: Kind::Array(element) } => {
            ArgValue::Array { ty: scalar(element), len: 4, expr: expr.clone() }
        }
        ArgDraftValue::Expr { expr, kind } => ArgValue::Scalar { ty: scalar(kind), expr: expr.clone() },
    };
    Arg { name: draft.name.clone(), value }
}
