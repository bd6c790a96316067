//! Thunks of `IPluginV3OneBuildV2`.
//!
//! Owns: conversion between C++ arrays and Rust slices while an engine is built. Never: no decision about
//! types or shapes.

use std::ffi::c_char;

use super::Plugin;
use super::object::{One, PluginObject};
use crate::answer::{UNSET, aliased, count, pointer, shapes_are_set, types_are_set, write_tactics};
use crate::error::Error;
use crate::expr::{ExprBuilder, Shape};
use crate::object::{Build, code, object};
use crate::raw::{DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder};
use crate::thunk::{slice, slice_to_fill};
use crate::vtable::{BuildSlots, This, VersionedSlots};

pub(super) const fn slots<P: Plugin>(versioned: VersionedSlots) -> BuildSlots {
    BuildSlots {
        versioned,
        configure_plugin: configure_plugin::<P>,
        get_output_data_types: get_output_data_types::<P>,
        get_output_shapes: get_output_shapes::<P>,
        supports_format_combination: supports_format_combination::<P>,
        get_nb_outputs: get_nb_outputs::<P>,
        get_workspace_size: get_workspace_size::<P>,
        get_valid_tactics: get_valid_tactics::<P>,
        get_nb_tactics: get_nb_tactics::<P>,
        get_timing_cache_id: get_timing_cache_id::<P>,
        get_format_combination_limit: get_format_combination_limit::<P>,
        get_metadata_string: get_metadata_string::<P>,
        get_aliased_input: get_aliased_input::<P>,
    }
}

/// # Safety
/// `this` is the build interface of a live object of `P`.
unsafe fn this_object<P: Plugin>(this: &This) -> &PluginObject<P> {
    // SAFETY: the caller's promise.
    unsafe { object::<One<P>, Build>(this) }
}

unsafe extern "C" fn configure_plugin<P: Plugin>(
    this: This,
    inputs: *const DynamicPluginTensorDesc,
    input_count: i32,
    outputs: *const DynamicPluginTensorDesc,
    output_count: i32,
) -> i32 {
    // SAFETY: TensorRT passes its own object, and arrays of these lengths that outlive the call.
    let (object, inputs, outputs) =
        unsafe { (this_object::<P>(&this), slice(inputs, input_count), slice(outputs, output_count)) };
    object.call(code, |plugin| plugin.configure(inputs, outputs).map(|()| 0))
}

unsafe extern "C" fn get_output_data_types<P: Plugin>(
    this: This,
    outputs: *mut DataType,
    output_count: i32,
    inputs: *const DataType,
    input_count: i32,
) -> i32 {
    // SAFETY: as in `configure_plugin`; TensorRT does not touch `outputs` before the call returns.
    let (object, outputs, inputs) = unsafe {
        (this_object::<P>(&this), slice_to_fill(outputs, output_count, UNSET), slice(inputs, input_count))
    };
    object.call(code, |plugin| {
        plugin.output_types(inputs, outputs)?;
        types_are_set(outputs)
    })
}

unsafe extern "C" fn get_output_shapes<P: Plugin>(
    this: This,
    inputs: *const DimsExprs,
    input_count: i32,
    shape_inputs: *const DimsExprs,
    shape_input_count: i32,
    outputs: *mut DimsExprs,
    output_count: i32,
    builder: *mut IExprBuilder,
) -> i32 {
    // SAFETY: as in `configure_plugin`. `Shape` is transparent over `DimsExprs`; the expressions belong to
    // the builder, which outlives the call, and `'b` of the implementor's method is shorter than it.
    let (object, inputs, shape_inputs, outputs, builder) = unsafe {
        (
            this_object::<P>(&this),
            slice(inputs.cast::<Shape<'_>>(), input_count),
            slice(shape_inputs.cast::<Shape<'_>>(), shape_input_count),
            slice_to_fill(outputs.cast::<Shape<'_>>(), output_count, Shape::UNSET),
            ExprBuilder::from_raw(builder),
        )
    };
    object.call(code, |plugin| {
        let builder =
            builder.ok_or_else(|| Error::invalid("getOutputShapes was called without a builder"))?;
        plugin.output_shapes(inputs, shape_inputs, &builder, outputs)?;
        shapes_are_set(outputs)
    })
}

unsafe extern "C" fn supports_format_combination<P: Plugin>(
    this: This,
    position: i32,
    in_out: *const DynamicPluginTensorDesc,
    input_count: i32,
    output_count: i32,
) -> bool {
    // SAFETY: as in `configure_plugin`; `in_out` holds inputs and outputs.
    let (object, in_out) =
        unsafe { (this_object::<P>(&this), slice(in_out, input_count.saturating_add(output_count))) };
    object.call(
        |_| false,
        |plugin| {
            let indices = usize::try_from(position).ok().zip(usize::try_from(input_count).ok());
            let (position, input_count) =
                indices.filter(|(position, _)| *position < in_out.len()).ok_or_else(|| {
                    Error::invalid(format!("there is no tensor at position {position} of {}", in_out.len()))
                })?;
            Ok(plugin.supports(position, in_out, input_count))
        },
    )
}

unsafe extern "C" fn get_nb_outputs<P: Plugin>(this: This) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| -1, |plugin| count(plugin.output_count()))
}

/// `size_t` has no failure code; what no GPU can give is the nearest to one.
const IMPOSSIBLE_WORKSPACE: usize = isize::MAX as usize;

unsafe extern "C" fn get_workspace_size<P: Plugin>(
    this: This,
    inputs: *const DynamicPluginTensorDesc,
    input_count: i32,
    outputs: *const DynamicPluginTensorDesc,
    output_count: i32,
) -> usize {
    // SAFETY: as in `configure_plugin`.
    let (object, inputs, outputs) =
        unsafe { (this_object::<P>(&this), slice(inputs, input_count), slice(outputs, output_count)) };
    object.call(|_| IMPOSSIBLE_WORKSPACE, |plugin| plugin.workspace_bytes(inputs, outputs))
}

unsafe extern "C" fn get_valid_tactics<P: Plugin>(this: This, tactics: *mut i32, tactic_count: i32) -> i32 {
    // SAFETY: as in `configure_plugin`; TensorRT hands over room for as many tactics as `getNbTactics` said,
    // or none.
    let (object, room) = unsafe { (this_object::<P>(&this), slice_to_fill(tactics, tactic_count, 0)) };
    object.call(code, |plugin| write_tactics(&plugin.tactics()?, room))
}

unsafe extern "C" fn get_nb_tactics<P: Plugin>(this: This) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| -1, |plugin| count(plugin.tactics()?.len()))
}

unsafe extern "C" fn get_timing_cache_id<P: Plugin>(this: This) -> *const c_char {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| std::ptr::null(), |plugin| Ok(pointer(plugin.timing_cache_id())))
}

unsafe extern "C" fn get_format_combination_limit<P: Plugin>(this: This) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| 0, |plugin| Ok(plugin.format_combination_limit()))
}

unsafe extern "C" fn get_metadata_string<P: Plugin>(this: This) -> *const c_char {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| std::ptr::null(), |plugin| Ok(pointer(plugin.metadata())))
}

unsafe extern "C" fn get_aliased_input<P: Plugin>(this: This, output: i32) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { this_object::<P>(&this) };
    object.call(|_| -1, |plugin| aliased(output, |output| plugin.aliased_input(output)))
}
