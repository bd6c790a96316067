//! Thunks of `IPluginV3QuickRuntime`: the plugin cannot run.

use std::ffi::c_void;

use super::{Quick, QuickPlugin};
use crate::error::Error;
use crate::object::base::set_tactic;
use crate::object::{Runtime, code, object};
use crate::raw::{Dims, PluginFieldCollection, PluginTensorDesc};
use crate::thunk::Foreign;
use crate::vtable::{QuickRuntimeSlots, This, VersionedSlots};

pub(super) const fn slots<P: QuickPlugin>(versioned: VersionedSlots) -> QuickRuntimeSlots {
    QuickRuntimeSlots {
        versioned,
        set_tactic: set_tactic::<Quick<P>, Runtime>,
        enqueue: enqueue::<P>,
        get_fields_to_serialize,
    }
}

unsafe extern "C" fn enqueue<P: QuickPlugin>(
    this: This,
    _input_descs: *const PluginTensorDesc,
    _output_descs: *const PluginTensorDesc,
    _inputs: *const *const c_void,
    _outputs: *const *mut c_void,
    _input_strides: *const Dims,
    _output_strides: *const Dims,
    _input_count: i32,
    _output_count: i32,
    _stream: *mut c_void,
) -> i32 {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { object::<Quick<P>, Runtime>(&this) };
    object.call(code, |_| {
        Err(Error::new(
            Error::INVALID_STATE,
            "enqueue was called on an ahead-of-time plugin, whose kernel TensorRT launches; request an ahead-of-time \
             plugin when you create the network",
        ))
    })
}

/// The engine keeps the kernel instead.
unsafe extern "C" fn get_fields_to_serialize(_this: This) -> *const PluginFieldCollection {
    &raw const NONE.0
}

static NONE: Foreign<PluginFieldCollection> =
    Foreign(PluginFieldCollection { nb_fields: 0, fields: std::ptr::null() });
