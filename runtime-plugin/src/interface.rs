//! The C interface: a library's plugins without TensorRT. `include/cubinder_runtime.h` documents it.
//!
//! Functions return null, or an error's text that the caller frees.
//!
//! # Safety
//! Pointers are null or valid: strings end in NUL, arrays have as many elements as their counts say, results are
//! writable, operators exist.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use trt_abi::raw::PluginField;
use trt_abi::{Error, Field, Result, caught};

use crate::definition::OwnBundle;
use crate::descriptor;
use crate::plugin::{InputShapes, Operator, Workspace};

/// Changes with every incompatible change of the header.
const VERSION: u32 = 1;

/// `CUBINDER_MAX_RANK`.
const MAX_RANK: usize = 8;

fn own() -> Result<Arc<OwnBundle>> {
    static OWN: OnceLock<Result<Arc<OwnBundle>>> = OnceLock::new();
    let read = || match descriptor::attached() {
        Ok(Some((_, bytes))) => OwnBundle::read(bytes).map(Arc::new),
        Ok(None) => Err(Error::invalid(
            "this library contains no plugins: open a library that `cubinder compile` wrote",
        )),
        Err(error) => Err(Error::new(Error::FAILED_INITIALIZATION, error.to_string())),
    };
    OWN.get_or_init(read).clone()
}

fn message(body: impl FnOnce() -> Result<()>) -> *mut c_char {
    let Err(error) = caught(body) else { return std::ptr::null_mut() };
    let text = error.to_string().replace('\0', "\\0");
    CString::new(text).unwrap_or_default().into_raw()
}

/// # Safety
/// `data` is null or `count` initialized elements, unchanged for `'a`.
unsafe fn slice<'a, T>(data: *const T, count: i32, what: &str) -> Result<&'a [T]> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        // SAFETY: not null; the caller guarantees the rest.
        Ok(count) if !data.is_null() => Ok(unsafe { std::slice::from_raw_parts(data, count) }),
        _ => Err(Error::invalid(format!("{what}: a null pointer, or the count {count}"))),
    }
}

/// # Safety
/// `operator` is null, or from `cubinder_operator_create` and not destroyed during `'a`.
unsafe fn borrowed<'a>(operator: *const Operator) -> Result<&'a Operator> {
    // SAFETY: the caller guarantees a valid pointer.
    unsafe { operator.as_ref() }.ok_or_else(|| Error::invalid("the operator is null"))
}

/// Returns a place for a result.
///
/// # Safety
/// `place` is null or valid for writes during `'a`.
unsafe fn place<'a, T>(place: *mut T) -> Result<&'a mut MaybeUninit<T>> {
    // SAFETY: the caller guarantees the place; `MaybeUninit` has any content.
    unsafe { place.cast::<MaybeUninit<T>>().as_mut() }
        .ok_or_else(|| Error::invalid("a result's pointer is null"))
}

/// # Safety
/// `place` is null or room for `capacity` elements.
unsafe fn fill<T: Copy>(place: *mut T, capacity: usize, values: &[T]) -> Result<()> {
    if place.is_null() || values.len() > capacity {
        let count = values.len();
        return Err(Error::invalid(format!(
            "a result has {count} elements, but there is room for {capacity}"
        )));
    }
    // SAFETY: the caller guarantees room for `capacity` elements, which `values` does not overlap.
    unsafe { place.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    Ok(())
}

/// # Safety
/// The module's contract.
unsafe fn given<'a>(
    ranks: *const i32,
    count: i32,
    extents: *const i64,
    extent_count: i32,
) -> Result<InputShapes<'a>> {
    // SAFETY: the caller upholds this function's contract.
    let ranks = unsafe { slice(ranks, count, "ranks") }?;
    // SAFETY: as above.
    let extents = unsafe { slice(extents, extent_count, "extents") }?;
    Ok(InputShapes { ranks, extents })
}

#[unsafe(no_mangle)]
extern "C" fn cubinder_interface_version() -> u32 {
    VERSION
}

/// # Safety
/// `text` is null, or from a function of this library and not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_free_message(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `message` returned it from `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// # Safety
/// The module's contract.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_create(
    plugin: *const c_char,
    attributes: *const PluginField,
    attribute_count: i32,
    input_types: *const i32,
    input_count: i32,
    created: *mut *mut Operator,
) -> *mut c_char {
    message(|| {
        if plugin.is_null() {
            return Err(Error::invalid("the plugin's name is null"));
        }
        // SAFETY: not null; the caller guarantees a C string.
        let plugin = unsafe { CStr::from_ptr(plugin) }.to_string_lossy();
        // SAFETY: the caller guarantees the arrays.
        let attributes = unsafe { slice(attributes, attribute_count, "attributes") }?;
        // SAFETY: as above.
        let input_types = unsafe { slice(input_types, input_count, "types") }?;
        // SAFETY: the caller guarantees names and data, which outlive this call.
        let fields = attributes.iter().filter_map(|field| unsafe { Field::from_raw(field) });
        // SAFETY: the caller guarantees the place.
        let created = unsafe { place(created) }?;
        let operator = Operator::new(&own()?, &plugin, &fields.collect::<Vec<_>>(), input_types)?;
        created.write(Box::into_raw(Box::new(operator)));
        Ok(())
    })
}

/// # Safety
/// `operator` is null, or from `cubinder_operator_create`, not destroyed and not in use.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_destroy(operator: *mut Operator) {
    if !operator.is_null() {
        let _silent = caught(|| {
            // SAFETY: `cubinder_operator_create` returned it from `Box::into_raw`.
            drop(unsafe { Box::from_raw(operator) });
            Ok(())
        });
    }
}

/// # Safety
/// The module's contract.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_output_types(
    operator: *const Operator,
    types: *mut i32,
    count: i32,
) -> *mut c_char {
    message(|| {
        // SAFETY: the caller guarantees the operator.
        let operator = unsafe { borrowed(operator) }?;
        let found: Vec<i32> = operator.output_types().collect();
        // SAFETY: the caller guarantees the room.
        unsafe { fill(types, usize::try_from(count).unwrap_or(0), &found) }
    })
}

/// # Safety
/// The module's contract; `output_extents` has room for eight times `output_count` elements.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_output_shapes(
    operator: *const Operator,
    ranks: *const i32,
    count: i32,
    extents: *const i64,
    extent_count: i32,
    sizes: *const i64,
    output_ranks: *mut i32,
    output_extents: *mut i64,
    output_count: i32,
) -> *mut c_char {
    message(|| {
        // SAFETY: the caller guarantees the operator.
        let operator = unsafe { borrowed(operator) }?;
        // SAFETY: the caller guarantees the arrays.
        let given = unsafe { given(ranks, count, extents, extent_count) }?;
        let sizes = match sizes.is_null() {
            true => None,
            // SAFETY: the pointer is not null; the caller guarantees the elements.
            false => Some(unsafe { slice(sizes, output_count, "sizes") }?),
        };
        let shapes = operator.output_shapes(given, sizes)?;
        let (mut ranks, mut extents) = (Vec::new(), Vec::new());
        for shape in &shapes {
            ranks.push(i32::try_from(shape.len()).unwrap_or(0));
            extents.extend((0..MAX_RANK).map(|axis| shape.get(axis).copied().unwrap_or(0)));
        }
        let capacity = usize::try_from(output_count).unwrap_or(0);
        // SAFETY: the caller guarantees the room.
        unsafe { fill(output_ranks, capacity, &ranks) }?;
        // SAFETY: as above.
        unsafe { fill(output_extents, capacity.saturating_mul(MAX_RANK), &extents) }
    })
}

/// # Safety
/// The module's contract.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_shape_program(
    operator: *const Operator,
    ranks: *const i32,
    count: i32,
    words: *mut i64,
    capacity: i32,
    length: *mut i32,
) -> *mut c_char {
    message(|| {
        // SAFETY: the caller guarantees the operator.
        let operator = unsafe { borrowed(operator) }?;
        // SAFETY: the caller guarantees the array.
        let program = operator.shape_program(unsafe { slice(ranks, count, "ranks") }?)?;
        // SAFETY: the caller guarantees the place.
        unsafe { place(length) }?.write(i32::try_from(program.len()).unwrap_or(i32::MAX));
        let capacity = usize::try_from(capacity).unwrap_or(0);
        if capacity < program.len() {
            return Ok(());
        }
        // SAFETY: the caller guarantees the room.
        unsafe { fill(words, capacity, &program) }
    })
}

/// `CubinderCall`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Call {
    ranks: *const i32,
    extents: *const i64,
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    workspace: *mut c_void,
    workspace_bytes: u64,
    stream: *mut c_void,
    rank_count: i32,
    extent_count: i32,
    input_count: i32,
    output_count: i32,
}

/// # Safety
/// The module's contract; addresses, workspace and stream are what [`Operator::run`] requires.
#[unsafe(no_mangle)]
unsafe extern "C" fn cubinder_operator_run(
    operator: *const Operator,
    call: *const Call,
    needed: *mut u64,
) -> *mut c_char {
    message(|| {
        // SAFETY: the caller guarantees the operator.
        let operator = unsafe { borrowed(operator) }?;
        // SAFETY: the caller guarantees the call.
        let call = unsafe { call.as_ref() }.ok_or_else(|| Error::invalid("the call is null"))?;
        // SAFETY: the caller guarantees the arrays.
        let given = unsafe { given(call.ranks, call.rank_count, call.extents, call.extent_count) }?;
        // SAFETY: as above.
        let inputs = unsafe { slice(call.inputs, call.input_count, "inputs") }?;
        // SAFETY: as above.
        let outputs = unsafe { slice(call.outputs, call.output_count, "outputs") }?;
        let workspace = Workspace { address: call.workspace, bytes: call.workspace_bytes };
        // SAFETY: the caller guarantees the place.
        let needed = unsafe { place(needed) }?;
        // SAFETY: the caller upholds the callee's contract.
        needed.write(unsafe { operator.run(given, inputs, outputs, workspace, call.stream) }?);
        Ok(())
    })
}
