use std::ffi::{CStr, c_char};

use super::{Build, Interface, PluginKind, code, object};
use crate::error::{Error, Result};
use crate::expr::{ExprBuilder, Shape};
use crate::identity::Identity;
use crate::logger;
use crate::raw::{DataType, DimsExprs, DynamicPluginTensorDesc, IExprBuilder};
use crate::thunk::{slice, slice_to_fill};
use crate::vtable::This;

/// The methods of [`Plugin`](crate::Plugin) and [`QuickPlugin`](crate::QuickPlugin).
///
/// TensorRT calls them from any thread, without a GPU, so state is atomic or locked. `Clone` is C++'s `clone`; copies
/// are independent. An `Err` or a panic becomes the interface's failure value after [`report`](Self::report).
pub trait PluginBase: Clone + Send + Sync + 'static {
    /// Returns the identity of its creator in an engine.
    fn identity(&self) -> &Identity;

    /// Returns the number of outputs.
    fn output_count(&self) -> usize;

    /// Sets each output's shape. Extents of `shape_inputs` are shape tensors' values.
    fn output_shapes<'b>(
        &self,
        inputs: &[Shape<'b>],
        shape_inputs: &[Shape<'b>],
        builder: &ExprBuilder<'b>,
        outputs: &mut [Shape<'b>],
    ) -> Result<()>;

    /// Receives the build's types, formats and profile.
    fn configure(
        &self,
        inputs: &[DynamicPluginTensorDesc],
        outputs: &[DynamicPluginTensorDesc],
    ) -> Result<()>;

    /// Returns the tactics for the configured types, best first: positive, distinct. TensorRT-RTX uses the first.
    fn tactics(&self) -> Result<Vec<i32>> {
        Ok(Vec::new())
    }

    /// Returns the identity for the timing cache; `None` disables it.
    fn timing_cache_id(&self) -> Option<&CStr> {
        None
    }

    /// Returns the string for engine inspectors.
    fn metadata(&self) -> Option<&CStr> {
        None
    }

    /// Returns the input whose memory this output shares.
    fn aliased_input(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// Sets the tactic of later calls: one of [`tactics`](Self::tactics), or 0.
    fn set_tactic(&self, tactic: i32) -> Result<()>;

    /// Receives errors and caught panics before TensorRT does.
    fn report(&self, error: &Error) {
        logger::error_of(&self.identity().name, error);
    }
}

pub(crate) const UNSET: DataType = DataType(-1);

pub(crate) fn types_are_set(outputs: &[DataType]) -> Result<i32> {
    match outputs.iter().position(|output| *output == UNSET) {
        Some(index) => Err(Error::internal(format!("the plugin set no type for output {index}"))),
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
    // SAFETY: `this` is live, and the arrays are null or have these lengths (TensorRT's contract).
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
    // SAFETY: as in `configure_plugin`; `Shape` is transparent over `DimsExprs`; builder and expressions live during
    // the call.
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
            Some(index) => Err(Error::internal(format!("the plugin set no shape for output {index}"))),
            None => Ok(0),
        }
    })
}

pub(crate) unsafe extern "C" fn get_nb_outputs<K: PluginKind>(this: This) -> i32 {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(|_| -1, |plugin| count(plugin.output_count()))
}

/// Implements `getValidTactics`. Fails if TensorRT requests too many.
pub(crate) unsafe extern "C" fn get_valid_tactics<K: PluginKind>(
    this: This,
    tactics: *mut i32,
    tactic_count: i32,
) -> i32 {
    // SAFETY: `this` is live, and `tactics` is null or has room for `tactic_count` tactics.
    let (object, room) = unsafe { (object::<K, Build>(&this), slice_to_fill(tactics, tactic_count, 0)) };
    object.call(code, |plugin| {
        let tactics = plugin.tactics()?;
        // TensorRT-RTX also passes an empty array.
        let wanted = tactics.get(..room.len()).ok_or_else(|| {
            Error::internal(format!(
                "TensorRT requested {} tactics, the plugin has {}",
                room.len(),
                tactics.len()
            ))
        })?;
        room.copy_from_slice(wanted);
        Ok(0)
    })
}

pub(crate) unsafe extern "C" fn get_nb_tactics<K: PluginKind>(this: This) -> i32 {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(|_| -1, |plugin| count(plugin.tactics()?.len()))
}

/// The plugin owns the string and never moves it.
unsafe fn text<K: PluginKind>(this: This, text: fn(&K::Implementor) -> Option<&CStr>) -> *const c_char {
    // SAFETY: as above.
    let object = unsafe { object::<K, Build>(&this) };
    let failure = |_: &Error| std::ptr::null();
    object.call(failure, |plugin| Ok(text(plugin).map_or(std::ptr::null(), CStr::as_ptr)))
}

pub(crate) unsafe extern "C" fn get_timing_cache_id<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { text::<K>(this, K::Implementor::timing_cache_id) }
}

pub(crate) unsafe extern "C" fn get_metadata_string<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { text::<K>(this, K::Implementor::metadata) }
}

pub(crate) unsafe extern "C" fn get_aliased_input<K: PluginKind>(this: This, output: i32) -> i32 {
    // SAFETY: as above.
    let object = unsafe { object::<K, Build>(&this) };
    object.call(
        |_| -1,
        |plugin| {
            let input = usize::try_from(output).ok().and_then(|output| plugin.aliased_input(output));
            input.map_or(Ok(-1), count)
        },
    )
}

pub(crate) unsafe extern "C" fn set_tactic<K: PluginKind, I: Interface>(this: This, tactic: i32) -> i32 {
    // SAFETY: as above.
    let object = unsafe { object::<K, I>(&this) };
    object.call(code, |plugin| plugin.set_tactic(tactic).map(|()| 0))
}
