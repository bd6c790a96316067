//! What both kinds of plugins do in the same way.
//!
//! Owns: [`PluginBase`] and the thunks of its methods, each written once for both build interfaces. Never: no decision about types,
//! shapes or tactics.

use std::ffi::{CStr, c_char};

use super::{Build, Interface, PluginKind, code, object};
use crate::error::{Error, Result};
use crate::expr::{ExprBuilder, Shape};
use crate::identity::Identity;
use crate::logger;
use crate::raw::{DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder};
use crate::thunk::{slice, slice_to_fill};
use crate::vtable::This;

/// The methods of [`Plugin`](crate::Plugin) and [`QuickPlugin`](crate::QuickPlugin) that do not depend on the kind of plugin, without
/// pointers and without panics that matter.
///
/// TensorRT calls every method through `&self`, sometimes from another thread than the one that made the
/// object: state that changes lives in atomics or locks. `Clone` is C++'s `clone`: TensorRT makes several,
/// and the copies are independent. All of it also happens on machines without a GPU.
///
/// An `Err` or a panic becomes the failure value of the interface, after [`report`](Self::report) has run.
pub trait PluginBase: Clone + Send + Sync + 'static {
    /// The identity of the creator that an engine uses at run time. It may differ from that of the creator that made this object.
    fn identity(&self) -> &Identity;

    /// Number of outputs.
    fn output_count(&self) -> usize;

    /// Sets each output's shape. `shape_inputs` hold the values of shape tensors as extents. An output that
    /// stays unset is an error.
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<()>;

    /// Receives types, formats and the profile that the engine is built for.
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<()>;

    /// Tactics for the configured types, best first: positive and different. TensorRT-RTX takes the first
    /// without timing.
    fn tactics(&self) -> Result<Vec<i32>> {
        Ok(Vec::new())
    }

    /// Identity for the timing cache, or `None` to stay out of it. NVIDIA's Python module answers an empty text for every quick plugin
    /// that is compiled ahead of time.
    fn timing_cache_id(&self) -> Option<&CStr> {
        None
    }

    /// Text that engine inspectors show.
    fn metadata(&self) -> Option<&CStr> {
        None
    }

    /// Input whose memory this output shares.
    fn aliased_input(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// Sets the tactic that the next calls are about: one of [`tactics`](Self::tactics), or 0 if it is empty.
    fn set_tactic(&self, tactic: i32) -> Result<()>;

    /// Reports each failure before TensorRT gets its code: an `Err` of a method above, or a caught panic.
    fn report(&self, error: &Error) {
        logger::error_of(&self.identity().name, error);
    }
}

/// What an output type holds until the plugin has set it.
pub(crate) const UNSET: DataType = DataType(-1);

/// 0, or an error for an output without a type.
pub(crate) fn types_are_set(outputs: &[DataType]) -> Result<i32> {
    match outputs.iter().position(|output| *output == UNSET) {
        Some(index) => Err(Error::internal(format!("the plugin gave output {index} no type"))),
        None => Ok(0),
    }
}

pub(crate) fn count(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::internal(format!("{count} does not fit into 32 bits")))
}

pub(crate) unsafe extern "C" fn configure_plugin<K: PluginKind>(
    this: This,
    inputs: *const DynamicPluginTensorDesc,
    input_count: i32,
    outputs: *const DynamicPluginTensorDesc,
    output_count: i32,
) -> i32 {
    // SAFETY: TensorRT passes its own object, and arrays of these lengths that outlive the call.
    let (object, inputs, outputs) =
        unsafe { (object::<K, Build>(&this), slice(inputs, input_count), slice(outputs, output_count)) };
    object.call(code, |plugin| plugin.configure(inputs, outputs).map(|()| 0))
}

pub(crate) unsafe extern "C" fn get_output_shapes<K: PluginKind>(
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
            object::<K, Build>(&this),
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
        match outputs.iter().position(|output| !output.is_set()) {
            Some(index) => Err(Error::internal(format!("the plugin gave output {index} no shape"))),
            None => Ok(0),
        }
    })
}

pub(crate) unsafe extern "C" fn get_nb_outputs<K: PluginKind>(this: This) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(|_| -1, |plugin| count(plugin.output_count()))
}

/// Writes as many tactics as there is room for; fewer tactics are an error.
pub(crate) unsafe extern "C" fn get_valid_tactics<K: PluginKind>(
    this: This,
    tactics: *mut i32,
    tactic_count: i32,
) -> i32 {
    // SAFETY: as in `configure_plugin`; TensorRT hands over room for as many tactics as `getNbTactics` said,
    // or none.
    let (object, room) = unsafe { (object::<K, Build>(&this), slice_to_fill(tactics, tactic_count, 0)) };
    object.call(code, |plugin| {
        let tactics = plugin.tactics()?;
        // TensorRT-RTX also asks with no room at all, for aliased and data-dependent plugins.
        let wanted = tactics.get(..room.len()).ok_or_else(|| {
            Error::internal(format!("{} tactics were asked for, there are {}", room.len(), tactics.len()))
        })?;
        room.copy_from_slice(wanted);
        Ok(0)
    })
}

pub(crate) unsafe extern "C" fn get_nb_tactics<K: PluginKind>(this: This) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(|_| -1, |plugin| count(plugin.tactics()?.len()))
}

/// A text of the plugin's or null. It is valid as long as the plugin, which owns it and is never moved.
unsafe fn text<K: PluginKind>(this: This, text: fn(&K::Implementor) -> Option<&CStr>) -> *const c_char {
    // SAFETY: the slots below pass on what TensorRT called them with.
    let object = unsafe { object::<K, Build>(&this) };
    let failure = |_: &Error| std::ptr::null();
    object.call(failure, |plugin| Ok(text(plugin).map_or(std::ptr::null(), CStr::as_ptr)))
}

pub(crate) unsafe extern "C" fn get_timing_cache_id<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: `this` is the build interface that TensorRT was given.
    unsafe { text::<K>(this, K::Implementor::timing_cache_id) }
}

pub(crate) unsafe extern "C" fn get_metadata_string<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { text::<K>(this, K::Implementor::metadata) }
}

/// The input that an output shares memory with, or -1.
pub(crate) unsafe extern "C" fn get_aliased_input<K: PluginKind>(this: This, output: i32) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(
        |_| -1,
        |plugin| {
            let input = usize::try_from(output).ok().and_then(|output| plugin.aliased_input(output));
            input.map_or(Ok(-1), count)
        },
    )
}

/// Of the build and of the runtime interface.
pub(crate) unsafe extern "C" fn set_tactic<K: PluginKind, I: Interface>(this: This, tactic: i32) -> i32 {
    // SAFETY: TensorRT passes its own object.
    let object = unsafe { object::<K, I>(&this) };
    object.call(code, |plugin| plugin.set_tactic(tactic).map(|()| 0))
}
