//! A small shared library with the runtime's own slot, for the tests of `library`: it tells what it finds in itself.
//! The tests compile it with rustc alone, so the runtime's sources are included by path.

extern crate self as cubinder_model;

#[path = "../../../../runtime-plugin/src/descriptor.rs"]
pub mod descriptor;
#[path = "../../../../runtime-plugin/model/src/slot.rs"]
pub mod slot;

/// The mode's number, 0 without a bundle.
#[unsafe(no_mangle)]
pub extern "C" fn probe_mode() -> u32 {
    descriptor::attached().ok().flatten().map_or(0, |(mode, _)| mode.code())
}

/// Bytes of the bundle.
#[unsafe(no_mangle)]
pub extern "C" fn probe_length() -> usize {
    descriptor::attached().ok().flatten().map_or(0, |(_, bundle)| bundle.len())
}

/// Where the bundle lies.
#[unsafe(no_mangle)]
pub extern "C" fn probe_bundle() -> *const u8 {
    descriptor::attached().ok().flatten().map_or(std::ptr::null(), |(_, bundle)| bundle.as_ptr())
}
