//! Thunks of `IPluginV3OneRuntime`. `enqueue` never allocates or locks here.

use std::ffi::c_void;
use std::ptr;

use super::{Opaque, Plugin, PluginObject, V3One, attach};
use crate::object::base::set_tactic;
use crate::object::{Runtime, code, object};
use crate::raw::{PluginField, PluginFieldCollection, PluginFieldType, PluginTensorDesc};
use crate::thunk::{Foreign, slice};
use crate::vtable::{RuntimeSlots, This, VersionedSlots};

pub(super) const fn slots<P: Plugin>(versioned: VersionedSlots) -> RuntimeSlots {
    RuntimeSlots {
        versioned,
        set_tactic: set_tactic::<V3One<P>, Runtime>,
        on_shape_change: on_shape_change::<P>,
        enqueue: enqueue::<P>,
        attach_to_context: attach_to_context::<P>,
        get_fields_to_serialize: get_fields_to_serialize::<P>,
    }
}

/// # Safety
/// As [`object`].
#[inline]
unsafe fn this_object<P: Plugin>(this: &This) -> &PluginObject<P> {
    // SAFETY: the caller upholds the callee's contract.
    unsafe { object::<V3One<P>, Runtime>(this) }
}

unsafe extern "C" fn on_shape_change<P: Plugin>(
    this: This,
    inputs: *const PluginTensorDesc,
    input_count: i32,
    outputs: *const PluginTensorDesc,
    output_count: i32,
) -> i32 {
    // SAFETY: `this` is live, and the arrays are null or have these lengths (TensorRT's contract).
    let (object, inputs, outputs) =
        unsafe { (this_object::<P>(&this), slice(inputs, input_count), slice(outputs, output_count)) };
    object.state.set(input_count, output_count);
    object.call(code, |plugin| plugin.on_shape_change(inputs, outputs).map(|()| 0))
}

unsafe extern "C" fn enqueue<P: Plugin>(
    this: This,
    input_descs: *const PluginTensorDesc,
    output_descs: *const PluginTensorDesc,
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    workspace: Opaque,
    stream: Opaque,
) -> i32 {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { this_object::<P>(&this) };
    object.call(code, |plugin| {
        let (input_count, output_count) = object.state.get()?;
        // SAFETY: the arrays have the counts of the last `onShapeChange`, and TensorRT guarantees valid pointers.
        unsafe {
            plugin.enqueue(
                slice(input_descs, input_count),
                slice(output_descs, output_count),
                slice(inputs, input_count),
                slice(outputs, output_count),
                workspace,
                stream,
            )
        }
        .map(|()| 0)
    })
}

unsafe extern "C" fn attach_to_context<P: Plugin>(this: This, _context: Opaque) -> This {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { this_object::<P>(&this) };
    attach(object)
}

unsafe extern "C" fn get_fields_to_serialize<P: Plugin>(this: This) -> *const PluginFieldCollection {
    // SAFETY: as above.
    let object = unsafe { this_object::<P>(&this) };
    object.call(
        |_| &raw const REFUSED.0,
        |plugin| plugin.fields_to_serialize().map(|fields| ptr::from_ref(fields.as_raw())),
    )
}

/// For a failed `getFieldsToSerialize`. Null would silently build an engine without fields (seen with RTX 1.7); an
/// unknown field type fails the build.
static REFUSED: Foreign<PluginFieldCollection> =
    Foreign(PluginFieldCollection { nb_fields: 1, fields: &raw const REFUSED_FIELD.0 });

static REFUSED_FIELD: Foreign<PluginField> = Foreign(PluginField {
    name: c"failed".as_ptr(),
    data: c"failed".as_ptr().cast(),
    field_type: PluginFieldType(99),
    length: 1,
});
