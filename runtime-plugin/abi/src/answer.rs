//! How an implementor's answers become those of an interface, where both kinds of plugins are asked the same.
//!
//! Owns: counts, optional texts, tactics and aliases as C++ has them, and the check that every output was answered. Never: no call of
//! an implementor.

use std::ffi::{CStr, c_char};

use crate::error::Error;
use crate::expr::Shape;
use crate::raw::DataType;

/// What an output type holds until the plugin has set it.
pub(crate) const UNSET: DataType = DataType(-1);

/// 0, or an error for an output without a type.
pub(crate) fn types_are_set(outputs: &[DataType]) -> Result<i32, Error> {
    match outputs.iter().position(|output| *output == UNSET) {
        Some(index) => Err(Error::internal(format!("the plugin gave output {index} no type"))),
        None => Ok(0),
    }
}

/// 0, or an error for an output without a shape.
pub(crate) fn shapes_are_set(outputs: &[Shape<'_>]) -> Result<i32, Error> {
    match outputs.iter().position(|output| !output.is_set()) {
        Some(index) => Err(Error::internal(format!("the plugin gave output {index} no shape"))),
        None => Ok(0),
    }
}

/// Writes as many tactics as there is room for; an error where there are fewer.
pub(crate) fn write_tactics(tactics: &[i32], room: &mut [i32]) -> Result<i32, Error> {
    // TensorRT-RTX also asks with no room at all, for aliased and data-dependent plugins.
    if tactics.len() < room.len() {
        return Err(Error::internal(format!(
            "{} tactics were asked for, there are {}",
            room.len(),
            tactics.len()
        )));
    }
    room.copy_from_slice(&tactics[..room.len()]);
    Ok(0)
}

/// The input that an output shares memory with, or -1.
pub(crate) fn aliased(output: i32, input_of: impl FnOnce(usize) -> Option<usize>) -> Result<i32, Error> {
    usize::try_from(output).ok().and_then(input_of).map_or(Ok(-1), count)
}

pub(crate) fn count(count: usize) -> Result<i32, Error> {
    i32::try_from(count).map_err(|_| Error::internal(format!("{count} does not fit into 32 bits")))
}

/// Valid as long as the plugin, which owns the text and is never moved.
pub(crate) fn pointer(text: Option<&CStr>) -> *const c_char {
    text.map_or(std::ptr::null(), CStr::as_ptr)
}
