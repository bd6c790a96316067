//! A shared library that reports its bundle. Includes the runtime's sources by path, for plain rustc.

extern crate self as cubinder_model;

#[path = "../../../../runtime-plugin/src/descriptor.rs"]
pub mod descriptor;
#[path = "../../../../runtime-plugin/model/src/slot.rs"]
pub mod slot;

/// Returns the mode's number, 0 without a bundle.
#[unsafe(no_mangle)]
pub extern "C" fn probe_mode() -> u32 {
    descriptor::attached().ok().flatten().map_or(0, |(mode, _)| mode.code())
}

/// Returns the bundle's bytes.
#[unsafe(no_mangle)]
pub extern "C" fn probe_length() -> usize {
    descriptor::attached().ok().flatten().map_or(0, |(_, bundle)| bundle.len())
}

#[unsafe(no_mangle)]
pub extern "C" fn probe_bundle() -> *const u8 {
    descriptor::attached().ok().flatten().map_or(std::ptr::null(), |(_, bundle)| bundle.as_ptr())
}
