use cubinder_model::{Arg, Plugin, Target};

use super::args::scalar_of;
use super::errors::SignatureDiffers;
use super::{BoundArgs, bind_args, number_bytes, read_only};
use crate::diagnostic::Diagnostic;
use crate::kernel_signature::{Leaf, ParamType, Signature};
use crate::nvrtc::merge_targets;
use crate::resolve::Unit;

/// Returns arguments in the kernel's order, equal for all targets; pointees may differ if the arguments fit all. Fails
/// as [`bind_args`] if no signature accepts the arguments, else names two targets.
pub fn bind_targets(
    plugin: &Plugin,
    unit: &Unit,
    signatures: &[(Target, &Signature)],
) -> Result<BoundArgs, Vec<Diagnostic>> {
    let bind =
        |signature: &Signature| bind_args(plugin, unit, signature).map(|args| (args, read_only(signature)));
    let Some((first, rest)) = signatures.split_first() else {
        return Err(vec![Diagnostic::error(format!("`{}` has no target", unit.kernel))]);
    };
    let result = bind(first.1);
    let mut failed: Vec<(Target, Vec<Diagnostic>)> =
        vec![(first.0, result.clone().err().unwrap_or_default())];
    for other in rest {
        let bound = if other.1 == first.1 { result.clone() } else { bind(other.1) };
        match (&result, bound) {
            (Ok(expected), Ok(found)) if *expected == found => {}
            (Err(_), Err(errors)) => failed.push((other.0, errors)),
            _ => return Err(vec![different(unit, first, other)]),
        }
    }
    let (args, read_only): (Vec<Arg>, Vec<String>) = result.map_err(|_| merge_targets(&failed))?;
    let mut bytes: Vec<(String, u32)> =
        signatures.iter().flat_map(|(_, found)| number_bytes(found)).collect();
    bytes.sort();
    bytes.dedup();
    Ok(BoundArgs { args, read_only, number_bytes: bytes })
}

fn different(unit: &Unit, one: &(Target, &Signature), other: &(Target, &Signature)) -> Diagnostic {
    let (target, other_target) = (one.0.to_string(), other.0.to_string());
    let signatures = [one, other].map(|(target, signature)| format!("for `{target}` it is `{signature}`"));
    // A typedef may differ between targets.
    let params = one.1.params.iter().zip(&other.1.params);
    let hidden = params.filter(|(one, other)| one.spelling == other.spelling && one.ty != other.ty);
    let types = hidden.map(|(param, in_other)| {
        let (ty, other) = (resolved(&param.ty), resolved(&in_other.ty));
        format!("`{}` is {ty} for `{target}` and {other} for `{other_target}`", param.name)
    });
    let (kernel, types, span) = (&unit.kernel, types.collect(), unit.kernel_span.clone());
    SignatureDiffers { kernel, types, signatures: signatures.into(), target, other: other_target, span }
        .into()
}

fn resolved(ty: &ParamType) -> String {
    match ty {
        ParamType::Pointer { pointee, pointee_size, is_const, leaf } => {
            let access = if *is_const { "a read-only pointer" } else { "a pointer" };
            let target = match leaf {
                Leaf::Scalar(scalar) => format!("`{scalar}`"),
                Leaf::Half => "`f16`".to_owned(),
                Leaf::Bfloat16 => "`bf16`".to_owned(),
                Leaf::Float8 => "`f8`".to_owned(),
                Leaf::Enum { .. } => format!("the enumeration `{pointee}`"),
                Leaf::Address => "pointers".to_owned(),
                Leaf::OtherFloat8 | Leaf::Opaque => format!("`{pointee}`"),
            };
            let size = pointee_size.map_or_else(String::new, |size| format!(" ({})", super::bytes(size)));
            format!("{access} to {target}{size}")
        }
        ParamType::Array { element, len } => format!("an array of {len} `{element}`"),
        ParamType::Other { name, size } => format!("`{name}` ({})", super::bytes(*size)),
        ty => scalar_of(ty).map_or_else(String::new, |scalar| format!("`{scalar}`")),
    }
}
