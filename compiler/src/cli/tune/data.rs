//! Input data as in `cubinder test` if small, else a repeated part with the same value range, which kernels may
//! depend on.

use cubinder_launch::tensor_bytes;
use cubinder_model::Input;
use cubinder_node::trial::{InputData, Trial, layout};

use crate::cli::gpu::shaped::{Shaped, trial_data};

/// Maximum random bytes per input.
const MOST: u64 = 1 << 23;

/// Returns each input's bytes, or a part to repeat; empty for shape inputs.
pub(super) fn inputs_bytes(node: &Shaped<'_>, trial: &Trial) -> Result<Vec<Vec<u8>>, String> {
    let inputs = node.plugin.inputs.iter().enumerate();
    let all = inputs.map(|(index, input)| match input.values {
        Some(_) => Ok(Vec::new()),
        None => {
            input_bytes(node, trial, index, input).map_err(|why| format!("the input `{}`: {why}", input.name))
        }
    });
    all.collect()
}

fn input_bytes(node: &Shaped<'_>, trial: &Trial, index: usize, input: &Input) -> Result<Vec<u8>, String> {
    let (ty, format, shape) = (node.ty(index), node.format(index), node.shape(index));
    let columns = match trial_data(trial, input) {
        Some(InputData::File(_) | InputData::Numbers(_)) => None,
        // Whole rows, because ranges are per column.
        Some(InputData::Columns(_)) => Some(shape.last().copied().unwrap_or(1).max(1)),
        Some(InputData::Range(..)) | None => Some(1),
    };
    let bytes = tensor_bytes(ty, format, shape).ok_or("its size exceeds the address space")?;
    match columns.filter(|_| bytes > MOST) {
        Some(columns) => {
            // A whole number of bytes for any element size.
            let elements = i64::try_from(MOST / u64::from(ty.size().unwrap_or(1))).unwrap_or(1);
            let part = [(elements / columns).max(1), columns];
            Ok(node.data(trial, (index, input), &part)?.bytes().to_vec())
        }
        None => layout::pack(&node.data(trial, (index, input), shape)?, format),
    }
}
