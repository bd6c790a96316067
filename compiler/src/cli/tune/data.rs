//! What inputs hold while variants are measured: as `cubinder test` has it where that is small, and otherwise a part of it again and again.
//!
//! Nothing is held against a reference, and the time of a kernel seldom depends on values; where it does (`range` of coordinates), the part
//! has them too.

use cubinder_launch::tensor_bytes;
use cubinder_node::trial::{Array, InputData, Trial, count, data, layout};

use crate::cli::gpu::shaped::Shaped;

/// The most bytes of random numbers that are made for an input. What is larger holds them again and again.
const MOST: u64 = 1 << 23;

/// The bytes of each input in its memory layout, or as many as are to be repeated; none of a shape input.
///
/// # Errors
/// What a case says that cannot be held.
pub(super) fn held(node: &Shaped<'_>, trial: &Trial) -> Result<Vec<Vec<u8>>, String> {
    let inputs = node.plugin.inputs.iter().enumerate();
    let all = inputs.map(|(index, input)| match input.values {
        Some(_) => Ok(Vec::new()),
        None => {
            one(node, trial, index, &input.name).map_err(|why| format!("the input `{}`: {why}", input.name))
        }
    });
    all.collect()
}

fn one(node: &Shaped<'_>, trial: &Trial, index: usize, name: &str) -> Result<Vec<u8>, String> {
    let (ty, format) = (node.ty(index), node.format(index));
    let shape = node.resolved.inputs.get(index).cloned().unwrap_or_default();
    let said = trial.inputs.iter().find(|(known, _)| known == name).map(|(_, data)| data);
    let ranges = match said {
        Some(InputData::File(file)) => {
            return layout::pack(&file.array(ty, count(&shape).unwrap_or(0))?, format);
        }
        Some(InputData::Numbers(numbers)) => {
            return layout::pack(&Array::of_numbers(ty, shape, numbers.iter().copied())?, format);
        }
        Some(InputData::Columns(ranges)) => Some(ranges),
        Some(InputData::Range(..)) | None => None,
    };
    let range = match said {
        Some(InputData::Range(least, most)) => (*least, *most),
        _ => data::default_range(ty),
    };
    let random = |shape: &[i64], seed| match ranges {
        Some(ranges) => data::columns(ty, shape, ranges, seed),
        None => data::random(ty, shape, range, seed),
    };
    let seed = data::seed_of(trial.seed, name);
    match tensor_bytes(ty, format, &shape) {
        Some(bytes) if bytes <= MOST => layout::pack(&random(&shape, seed)?, format),
        Some(_) => {
            // Whole bytes of elements of any size.
            let elements = i64::try_from(MOST / u64::from(ty.size().unwrap_or(1))).unwrap_or(1);
            // And whole rows, where columns have ranges of their own.
            let columns = match ranges {
                Some(_) => shape.last().copied().unwrap_or(1).max(1),
                None => 1,
            };
            Ok(random(&[(elements / columns).max(1), columns], seed)?.bytes().to_vec())
        }
        None => Err("it has more bytes than memory holds".to_owned()),
    }
}
