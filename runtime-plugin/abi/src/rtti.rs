//! Type information that keeps C++'s `dynamic_cast` and `typeid` from crashing on our objects. Never looks up or links
//! a symbol of a C++ runtime.
//!
//! TensorRT applies `dynamic_cast` to plugins' objects. `__dynamic_cast` reads the `type_info*` before the vtable's
//! slots, without a null check, and calls a virtual method of it (`__do_dyncast` in libstdc++, `search_below_dst` in
//! libc++abi). Normally that object is a `__class_type_info` with a vtable in the C++ runtime. This library links none,
//! and a look-up is unreliable: Python loads libstdc++ with local visibility, and a TensorRT linked statically with it
//! exports nothing.
//!
//! So the vtable is defined here. A class without bases answers `__dynamic_cast` with "not found" (no result, returns
//! 0), and `catch` and `typeid` with "no" (0), in libstdc++ (9 slots: D1, D0, `__is_pointer_p`, `__is_function_p`,
//! `__do_catch`, two `__do_upcast`, `__do_dyncast`, `__do_find_public_src`) and in libc++abi (8 slots: D1, D0, two
//! no-ops, `can_catch`, `search_above_dst`, `search_below_dst`, `has_unambiguous_public_base`). One function without
//! arguments that returns 0 fills all: on x86-64 and aarch64 the caller passes arguments in registers and removes its
//! stack arguments. libstdc++'s shortcut that compares type names also fails, because no C++ type has our names.

use std::ffi::{c_char, c_void};

/// More slots than `__class_type_info` has in any C++ runtime (9), in case a later one adds some.
const TYPE_INFO_SLOTS: usize = 16;

/// The two words of an Itanium `__class_type_info`: its vptr, and the mangled name of the class.
#[repr(C)]
#[derive(Debug)]
pub struct TypeInfo {
    vptr: *const unsafe extern "C" fn() -> usize,
    name: *const c_char,
}

// SAFETY: the pointers lead to constants.
unsafe impl Sync for TypeInfo {}

/// The vtable of [`TypeInfo`]. Its own `type_info*` is null, because it is never read.
#[repr(C)]
struct TypeInfoVTable {
    offset_to_top: isize,
    type_info: *const c_void,
    slots: [unsafe extern "C" fn() -> usize; TYPE_INFO_SLOTS],
}

// SAFETY: as for `TypeInfo`.
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

/// The type of all plugin objects: `trt_abi::PluginObject`, demangled. All vtables of an object share it, because
/// `__dynamic_cast` fails if a part names another type than the whole.
pub static PLUGIN: TypeInfo = TypeInfo::new(c"N7trt_abi12PluginObjectE");

/// The type of all creator objects: `trt_abi::CreatorObject`, demangled.
pub static CREATOR: TypeInfo = TypeInfo::new(c"N7trt_abi13CreatorObjectE");

/// The type of quick plugins' symbolic expressions: `trt_abi::SymExpr`, demangled.
pub static SYM_EXPR: TypeInfo = TypeInfo::new(c"N7trt_abi7SymExprE");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered_with_no() {
        for info in [&PLUGIN, &CREATOR, &SYM_EXPR] {
            // SAFETY: the vptr points at `TYPE_INFO_SLOTS` functions, with two words before them.
            unsafe {
                assert!((0..TYPE_INFO_SLOTS).all(|slot| (*info.vptr.add(slot))() == 0));
                assert_eq!(*info.vptr.cast::<usize>().sub(2), 0);
                assert!(std::ffi::CStr::from_ptr(info.name).to_bytes().starts_with(b"N7trt_abi"));
            }
        }
    }
}
