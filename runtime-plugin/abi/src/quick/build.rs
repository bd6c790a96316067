//! Thunks of `IPluginV3QuickAOTBuild`. Never decides about types, shapes or launches.

use std::ffi::c_char;

use super::launch::Receiver;
use super::{Quick, QuickKernel, QuickObject, QuickPlugin};
use crate::error::{Error, Result};
use crate::expr::{ExprBuilder, Shape};
use crate::object::base::{self, UNSET, count, types_are_set};
use crate::object::{Build, code, object};
use crate::raw::{
    DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder, IKernelLaunchParams, ISymExprs,
    PluginTensorDesc,
};
use crate::thunk::{slice, slice_to_fill};
use crate::vtable::{QuickBuildSlots, This, VersionedSlots};

pub(super) const fn slots<P: QuickPlugin>(versioned: VersionedSlots) -> QuickBuildSlots {
    QuickBuildSlots {
        versioned,
        get_output_data_types: get_output_data_types::<P>,
        get_output_shapes: base::get_output_shapes::<Quick<P>>,
        configure_plugin: base::configure_plugin::<Quick<P>>,
        get_nb_supported_format_combinations: get_nb_supported_format_combinations::<P>,
        get_supported_format_combinations: get_supported_format_combinations::<P>,
        get_nb_outputs: base::get_nb_outputs::<Quick<P>>,
        get_aliased_input: base::get_aliased_input::<Quick<P>>,
        get_valid_tactics: base::get_valid_tactics::<Quick<P>>,
        get_nb_tactics: base::get_nb_tactics::<Quick<P>>,
        get_timing_cache_id: base::get_timing_cache_id::<Quick<P>>,
        get_metadata_string: base::get_metadata_string::<Quick<P>>,
        get_launch_params: get_launch_params::<P>,
        get_kernel: get_kernel::<P>,
        set_tactic: base::set_tactic::<Quick<P>, Build>,
    }
}

/// # Safety
/// As [`object`].
unsafe fn this_object<P: QuickPlugin>(this: &This) -> &QuickObject<P> {
    // SAFETY: the caller upholds the callee's contract.
    unsafe { object::<Quick<P>, Build>(this) }
}

/// The tensors of a call. Too few are an error: implementors split the array.
struct InOut<'a> {
    tensors: &'a [DynamicPluginTensorDesc],
    input_count: usize,
}

impl<'a> InOut<'a> {
    /// # Safety
    /// As [`slice()`], for an array with the sum of both counts.
    unsafe fn from_raw(
        in_out: *const DynamicPluginTensorDesc,
        input_count: i32,
        output_count: i32,
    ) -> Result<Self> {
        let counts = usize::try_from(input_count).ok().zip(usize::try_from(output_count).ok());
        // SAFETY: the caller upholds the callee's contract.
        let tensors = unsafe { slice(in_out, input_count.saturating_add(output_count)) };
        match counts {
            Some((inputs, outputs)) if tensors.len() == inputs.saturating_add(outputs) => {
                Ok(Self { tensors, input_count: inputs })
            }
            _ => Err(Error::invalid(format!(
                "expected {input_count} inputs and {output_count} outputs, found {} tensors",
                tensors.len()
            ))),
        }
    }
}

unsafe extern "C" fn get_output_data_types<P: QuickPlugin>(
    this: This,
    outputs: *mut DataType,
    output_count: i32,
    inputs: *const DataType,
    input_ranks: *const i32,
    input_count: i32,
) -> i32 {
    // SAFETY: `this` is live; the arrays are null or have these lengths, and only this call uses them.
    let (object, outputs, inputs, ranks) = unsafe {
        (
            this_object::<P>(&this),
            slice_to_fill(outputs, output_count, UNSET),
            slice(inputs, input_count),
            slice(input_ranks, input_count),
        )
    };
    object.call(code, |plugin| {
        plugin.output_types(inputs, ranks, outputs)?;
        types_are_set(outputs)
    })
}

/// NVIDIA's Python module returns it on errors (`python/src/infer/pyPlugin.cpp`, TensorRT 10).
const NO_COMBINATION: i32 = -1;

unsafe extern "C" fn get_nb_supported_format_combinations<P: QuickPlugin>(
    this: This,
    in_out: *const DynamicPluginTensorDesc,
    input_count: i32,
    output_count: i32,
) -> i32 {
    // SAFETY: `this` is live, as in `get_output_data_types`, and `in_out` has all inputs and outputs.
    let (object, in_out) =
        unsafe { (this_object::<P>(&this), InOut::from_raw(in_out, input_count, output_count)) };
    object.call(|_| NO_COMBINATION, |plugin| count(rows(plugin, &in_out?)?.len()))
}

unsafe extern "C" fn get_supported_format_combinations<P: QuickPlugin>(
    this: This,
    in_out: *const DynamicPluginTensorDesc,
    input_count: i32,
    output_count: i32,
    combinations: *mut PluginTensorDesc,
    combination_count: i32,
) -> i32 {
    // SAFETY: as above.
    let (object, in_out) =
        unsafe { (this_object::<P>(&this), InOut::from_raw(in_out, input_count, output_count)) };
    object.call(code, |plugin| {
        let in_out = in_out?;
        let rows = rows(plugin, &in_out)?;
        let wanted = usize::try_from(combination_count)
            .ok()
            .filter(|wanted| *wanted <= rows.len() && (*wanted == 0 || !combinations.is_null()))
            .ok_or_else(|| refused_room(combination_count, combinations, rows.len()))?;
        for (index, desc) in rows[..wanted].iter().flatten().enumerate() {
            // SAFETY: the buffer has room for `wanted` rows of `in_out`'s length, also that of the plugin's rows.
            unsafe { combinations.add(index).write(*desc) };
        }
        Ok(0)
    })
}

#[cold]
fn refused_room(wanted: i32, room: *const PluginTensorDesc, there: usize) -> Error {
    let place = if room.is_null() { " in a null buffer" } else { "" };
    Error::internal(format!("TensorRT requested {wanted} format combinations{place}, the plugin has {there}"))
}

fn rows<P: QuickPlugin>(plugin: &P, in_out: &InOut<'_>) -> Result<Vec<Vec<PluginTensorDesc>>> {
    let rows = plugin.format_combinations(in_out.tensors, in_out.input_count)?;
    match rows.iter().position(|row| row.len() != in_out.tensors.len()) {
        Some(index) => Err(Error::internal(format!(
            "format combination {index} has {} tensors, expected {}",
            rows[index].len(),
            in_out.tensors.len()
        ))),
        None => Ok(rows),
    }
}

unsafe extern "C" fn get_launch_params<P: QuickPlugin>(
    this: This,
    inputs: *const DimsExprs,
    in_out: *const DynamicPluginTensorDesc,
    input_count: i32,
    output_count: i32,
    params: *mut IKernelLaunchParams,
    scalars: *mut ISymExprs,
    builder: *mut IExprBuilder,
) -> i32 {
    // SAFETY: `this` is live, and arrays, builder and expressions are valid during the call, as in
    // `base::get_output_shapes`; so are `params` and `scalars`.
    let (object, inputs, in_out, receiver, builder) = unsafe {
        (
            this_object::<P>(&this),
            slice(inputs.cast::<Shape<'_>>(), input_count),
            InOut::from_raw(in_out, input_count, output_count),
            Receiver::from_raw(params, scalars),
            ExprBuilder::from_raw(builder),
        )
    };
    object.call(code, |plugin| {
        let (in_out, receiver) = (in_out?, receiver?);
        let builder =
            builder.ok_or_else(|| Error::invalid("getLaunchParams was called without a builder"))?;
        let builder = builder.with_purpose("a launch parameter or scalar argument");
        let launch = plugin.launch(inputs, in_out.tensors, in_out.input_count, &builder)?;
        receiver.take(&launch, &object.state).map(|()| 0)
    })
}

unsafe extern "C" fn get_kernel<P: QuickPlugin>(
    this: This,
    inputs: *const PluginTensorDesc,
    input_count: i32,
    outputs: *const PluginTensorDesc,
    output_count: i32,
    name: *mut *const c_char,
    compiled: *mut *mut c_char,
    size: *mut i32,
) -> i32 {
    // SAFETY: `this` is live and the arrays have these lengths, as in `get_output_data_types`; the last three
    // pointers are null or valid.
    let (object, inputs, outputs, name, compiled, size) = unsafe {
        (
            this_object::<P>(&this),
            slice(inputs, input_count),
            slice(outputs, output_count),
            slice_to_fill(name, 1, std::ptr::null()),
            slice_to_fill(compiled, 1, std::ptr::null_mut()),
            slice_to_fill(size, 1, 0),
        )
    };
    object.call(code, |plugin| {
        let ([name], [compiled], [size]) = (name, compiled, size) else {
            return Err(Error::invalid("getKernel was called with a null pointer for name, code or size"));
        };
        let kernel = plugin.kernel(inputs, outputs)?;
        *size = code_size(&kernel)?;
        *name = kernel.name.as_ptr();
        // Not const in C++, but possibly read-only memory: TensorRT must not write.
        *compiled = kernel.code.as_ptr().cast_mut().cast();
        Ok(0)
    })
}

fn code_size(kernel: &QuickKernel<'_>) -> Result<i32> {
    let bytes = kernel.code.len();
    if bytes == 0 {
        return Err(Error::internal(format!("kernel {:?} has no code", kernel.name)));
    }
    i32::try_from(bytes).map_err(|_| {
        Error::internal(format!(
            "the code of kernel {:?} has {bytes} bytes, TensorRT supports at most {}",
            kernel.name,
            i32::MAX
        ))
    })
}
