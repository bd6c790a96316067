//! Precompiled kernels that TensorRT launches without a wrapper.

use cubinder_model::model::{Arg, ArgValue, Plugin};

/// Why parameters differ from TensorRT's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentMismatch {
    /// Not the address that TensorRT passes.
    #[error(
        "TensorRT passes the address of `{tensor}` as argument {number}, but the kernel expects {}",
        found.as_ref().map_or("fewer".to_owned(), |name| format!("`{name}` there"))
    )]
    Address {
        /// From 1; one more than the last if missing.
        number: usize,
        /// Tensor of the address.
        tensor: String,
        /// The kernel's parameter.
        found: Option<String>,
    },
    /// Not 32 bits, or several numbers.
    #[error("`{name}` has {bytes} byte{}, but TensorRT passes 4-byte integers", if *bytes == 1 { "" } else { "s" })]
    Number {
        /// The parameter's name.
        name: String,
        /// The parameter's size.
        bytes: u64,
    },
    /// A parameter after the outputs.
    #[error("TensorRT passes no arguments after the outputs, but the kernel expects `{name}` there")]
    Extra {
        /// The parameter's name.
        name: String,
    },
}

/// Returns the first mismatch of arguments, in the kernel's order.
#[must_use]
pub fn argument_mismatch(plugin: &Plugin, args: &[Arg]) -> Option<ArgumentMismatch> {
    let own = plugin.outputs.iter().enumerate().filter(|(_, output)| output.alias.is_none());
    let outputs: Vec<(usize, &str)> =
        own.map(|(index, output)| (plugin.inputs.len() + index, output.name.as_str())).collect();
    let inputs = plugin.inputs.iter().map(|input| input.name.as_str()).enumerate();
    let is = |arg: &Arg, tensor: usize| arg.value.tensor().is_some_and(|it| it as usize == tensor);
    let missing = |at: usize, tensor: &str| {
        let found = args.get(at).map(|arg| arg.name.clone());
        ArgumentMismatch::Address { number: at + 1, tensor: tensor.to_owned(), found }
    };
    for (index, name) in inputs {
        if !args.get(index).is_some_and(|arg| is(arg, index)) {
            return Some(missing(index, name));
        }
    }
    let behind = args.get(plugin.inputs.len()..).unwrap_or_default();
    let numbers =
        behind.iter().take_while(|arg| matches!(arg.value, ArgValue::Scalar { .. } | ArgValue::Array { .. }));
    let numbers: Vec<&Arg> = numbers.collect();
    if let Some(wrong) = numbers.iter().find_map(|arg| number(arg)) {
        return Some(wrong);
    }
    let first = plugin.inputs.len() + numbers.len();
    for (at, (tensor, name)) in (first..).zip(&outputs) {
        if !args.get(at).is_some_and(|arg| is(arg, *tensor)) {
            return Some(missing(at, name));
        }
    }
    let extra = args.get(first + outputs.len())?;
    Some(ArgumentMismatch::Extra { name: extra.name.clone() })
}

fn number(arg: &Arg) -> Option<ArgumentMismatch> {
    let bytes = match &arg.value {
        ArgValue::Scalar { ty, .. } => u64::from(ty.size()),
        ArgValue::Array { ty, len, .. } => u64::from(ty.size()) * u64::from(*len),
        ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => return None,
    };
    let is_array = matches!(arg.value, ArgValue::Array { .. });
    (bytes != 4 || is_array).then(|| ArgumentMismatch::Number { name: arg.name.clone(), bytes })
}
