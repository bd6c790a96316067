//! Type information that keeps C++'s `dynamic_cast` and `typeid` from crashing on our objects, without a C++ runtime
//! (it may be hidden or static).
//!
//! TensorRT applies `dynamic_cast` to plugins' objects; `__dynamic_cast` calls a virtual method of the `type_info`
//! before the vtable's slots, unchecked. All methods of `__class_type_info` in libstdc++ (9 slots) and libc++abi (8
//! slots) return 0 for "not found", so one function without arguments fills all our slots: the caller removes stack
//! arguments (x86-64, aarch64).

use std::ffi::{c_char, c_void};

/// More functions than any C++ runtime's `__class_type_info` has (9).
const TYPE_INFO_SLOTS: usize = 16;

/// An Itanium `__class_type_info`: vptr and mangled name.
#[repr(C)]
#[derive(Debug)]
pub struct TypeInfo {
    vptr: *const unsafe extern "C" fn() -> usize,
    name: *const c_char,
}

// SAFETY: the pointers refer to constants.
unsafe impl Sync for TypeInfo {}

/// Its `type_info*` is never read.
#[repr(C)]
struct TypeInfoVTable {
    offset_to_top: isize,
    type_info: *const c_void,
    slots: [unsafe extern "C" fn() -> usize; TYPE_INFO_SLOTS],
}

// SAFETY: the pointers refer to constants.
unsafe impl Sync for TypeInfoVTable {}

unsafe extern "C" fn no() -> usize {
    0
}

static TYPE_INFO_VTABLE: TypeInfoVTable =
    TypeInfoVTable { offset_to_top: 0, type_info: std::ptr::null(), slots: [no; TYPE_INFO_SLOTS] };

impl TypeInfo {
    const fn new(mangled_name: &'static std::ffi::CStr) -> Self {
        Self { vptr: (&raw const TYPE_INFO_VTABLE.slots).cast(), name: mangled_name.as_ptr() }
    }
}

/// The type of plugin objects, `trt_abi::PluginObject`; `__dynamic_cast` compares the parts' types with the whole's.
pub static PLUGIN: TypeInfo = TypeInfo::new(c"N7trt_abi12PluginObjectE");

/// The type of creator objects, `trt_abi::CreatorObject`.
pub static CREATOR: TypeInfo = TypeInfo::new(c"N7trt_abi13CreatorObjectE");

/// The type of symbolic expressions, `trt_abi::SymExpr`.
pub static SYM_EXPR: TypeInfo = TypeInfo::new(c"N7trt_abi7SymExprE");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered_with_no() {
        for info in [&PLUGIN, &CREATOR, &SYM_EXPR] {
            // SAFETY: the vptr points at `TYPE_INFO_SLOTS` functions after two words.
            unsafe {
                assert!((0..TYPE_INFO_SLOTS).all(|slot| (*info.vptr.add(slot))() == 0));
                assert_eq!(*info.vptr.cast::<usize>().sub(2), 0);
                assert!(std::ffi::CStr::from_ptr(info.name).to_bytes().starts_with(b"N7trt_abi"));
            }
        }
    }
}
