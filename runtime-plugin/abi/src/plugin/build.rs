//! Thunks of `IPluginV3OneBuildV2`. Never decides about types or shapes.

use super::{Plugin, PluginObject, V3One};
use crate::error::Error;
use crate::object::base::{self, UNSET, types_are_set};
use crate::object::{Build, code, object};
use crate::raw::{DataType, DynamicPluginTensorDesc};
use crate::thunk::{slice, slice_to_fill};
use crate::vtable::{BuildSlots, This, VersionedSlots};

pub(super) const fn slots<P: Plugin>(versioned: VersionedSlots) -> BuildSlots {
    BuildSlots {
        versioned,
        configure_plugin: base::configure_plugin::<V3One<P>>,
        get_output_data_types: get_output_data_types::<P>,
        get_output_shapes: base::get_output_shapes::<V3One<P>>,
        supports_format_combination: supports_format_combination::<P>,
        get_nb_outputs: base::get_nb_outputs::<V3One<P>>,
        get_workspace_size: get_workspace_size::<P>,
        get_valid_tactics: base::get_valid_tactics::<V3One<P>>,
        get_nb_tactics: base::get_nb_tactics::<V3One<P>>,
        get_timing_cache_id: base::get_timing_cache_id::<V3One<P>>,
        get_format_combination_limit: get_format_combination_limit::<P>,
        get_metadata_string: base::get_metadata_string::<V3One<P>>,
        get_aliased_input: base::get_aliased_input::<V3One<P>>,
    }
}

/// # Safety
/// As [`object`].
unsafe fn this_object<P: Plugin>(this: &This) -> &PluginObject<P> {
    // SAFETY: the caller upholds the callee's contract.
    unsafe { object::<V3One<P>, Build>(this) }
}

unsafe extern "C" fn get_output_data_types<P: Plugin>(
    this: This,
    outputs: *mut DataType,
    output_count: i32,
    inputs: *const DataType,
    input_count: i32,
) -> i32 {
    // SAFETY: `this` is live; the arrays are null or have these lengths, and only this call uses them.
    let (object, outputs, inputs) = unsafe {
        (this_object::<P>(&this), slice_to_fill(outputs, output_count, UNSET), slice(inputs, input_count))
    };
    object.call(code, |plugin| {
        plugin.output_types(inputs, outputs)?;
        types_are_set(outputs)
    })
}

unsafe extern "C" fn supports_format_combination<P: Plugin>(
    this: This,
    position: i32,
    in_out: *const DynamicPluginTensorDesc,
    input_count: i32,
    output_count: i32,
) -> bool {
    // SAFETY: `this` is live, as in `get_output_data_types`, and `in_out` has all inputs and outputs.
    let (object, in_out) =
        unsafe { (this_object::<P>(&this), slice(in_out, input_count.saturating_add(output_count))) };
    object.call(
        |_| false,
        |plugin| {
            let indices = usize::try_from(position).ok().zip(usize::try_from(input_count).ok());
            let (position, input_count) =
                indices.filter(|(position, _)| *position < in_out.len()).ok_or_else(|| {
                    Error::invalid(format!("no tensor at position {position} of {}", in_out.len()))
                })?;
            Ok(plugin.supports(position, in_out, input_count))
        },
    )
}

/// `size_t` has no failure value.
const IMPOSSIBLE_WORKSPACE: usize = isize::MAX as usize;

unsafe extern "C" fn get_workspace_size<P: Plugin>(
    this: This,
    inputs: *const DynamicPluginTensorDesc,
    input_count: i32,
    outputs: *const DynamicPluginTensorDesc,
    output_count: i32,
) -> usize {
    // SAFETY: `this` is live and the arrays have these lengths, as in `get_output_data_types`.
    let (object, inputs, outputs) =
        unsafe { (this_object::<P>(&this), slice(inputs, input_count), slice(outputs, output_count)) };
    object.call(|_| IMPOSSIBLE_WORKSPACE, |plugin| plugin.workspace_bytes(inputs, outputs))
}

unsafe extern "C" fn get_format_combination_limit<P: Plugin>(this: This) -> i32 {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| 0, |plugin| Ok(plugin.format_combination_limit()))
}
