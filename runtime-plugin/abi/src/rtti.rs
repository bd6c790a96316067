//! Type information that keeps C++'s `dynamic_cast` and `typeid` from crashing on our objects.
//!
//! Owns: the `std::type_info` look-alikes that stand in our vtables. Never: no symbol of a C++ runtime is
//! looked up or linked.
//!
//! TensorRT applies `dynamic_cast` to what plugins hand it. `__dynamic_cast` takes the `type_info*` before
//! the vtable's slots, without a check for null, and calls a virtual method of it (`__do_dyncast` in
//! libstdc++, `search_below_dst` in libc++abi). Normally that object is a `__class_type_info`, whose vtable
//! lives in the C++ runtime. A library that links no C++ runtime cannot name that vtable, and looking it up
//! is not reliable: in Python, libstdc++ is loaded with local visibility, and a TensorRT linked statically
//! with it exports nothing.
//!
//! So the vtable is made here. A class without bases answers every question of `__dynamic_cast` with "not
//! found" by writing nothing into the result and returning 0, and with "no" (0) to the questions that `catch`
//! and `typeid` ask. That is the same for each slot, in libstdc++ (9 slots: D1, D0, `__is_pointer_p`,
//! `__is_function_p`, `__do_catch`, two `__do_upcast`, `__do_dyncast`, `__do_find_public_src`) and in
//! libc++abi (8 slots: D1, D0, two no-ops, `can_catch`, `search_above_dst`, `search_below_dst`,
//! `has_unambiguous_public_base`): one function that takes nothing and returns 0 fills them all. On x86-64
//! and aarch64 the caller passes arguments in registers and removes its own stack arguments, so a callee may
//! ignore them. The shortcut of libstdc++ that compares type names before it calls anything misses too, since
//! no C++ type has our names.

use std::ffi::{c_char, c_void};

/// More slots than `__class_type_info` has in any C++ runtime (9), so that a later one that adds some finds
/// the same answer.
const TYPE_INFO_SLOTS: usize = 16;

/// The two words of an Itanium `__class_type_info`: its vptr, and the mangled name of the class.
#[repr(C)]
#[derive(Debug)]
pub struct TypeInfo {
    vptr: *const unsafe extern "C" fn() -> usize,
    name: *const c_char,
}

// SAFETY: the pointers lead to constants that nothing ever writes.
unsafe impl Sync for TypeInfo {}

/// A vtable for [`TypeInfo`] itself. Its own `type_info*` is null: nobody asks for the type of a type.
#[repr(C)]
struct TypeInfoVTable {
    offset_to_top: isize,
    type_info: *const c_void,
    slots: [unsafe extern "C" fn() -> usize; TYPE_INFO_SLOTS],
}

// SAFETY: as for `TypeInfo`.
unsafe impl Sync for TypeInfoVTable {}

/// "No", "not found", "nothing to do".
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

/// The type of all plugin objects: `trt_abi::PluginObject`, demangled. One for all vtables of an object,
/// because `__dynamic_cast` gives up when a part of an object names another type than the whole.
pub static PLUGIN: TypeInfo = TypeInfo::new(c"N7trt_abi12PluginObjectE");

/// The type of all creator objects: `trt_abi::CreatorObject`, demangled.
pub static CREATOR: TypeInfo = TypeInfo::new(c"N7trt_abi13CreatorObjectE");

/// The type of the symbolic expressions that quick plugins hand over: `trt_abi::SymExpr`, demangled.
pub static SYM_EXPR: TypeInfo = TypeInfo::new(c"N7trt_abi7SymExprE");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered_with_no() {
        for info in [&PLUGIN, &CREATOR, &SYM_EXPR] {
            // SAFETY: the vptr leads to `TYPE_INFO_SLOTS` functions, with two words before them.
            unsafe {
                assert!((0..TYPE_INFO_SLOTS).all(|slot| (*info.vptr.add(slot))() == 0));
                assert_eq!(*info.vptr.cast::<usize>().sub(2), 0);
                assert!(std::ffi::CStr::from_ptr(info.name).to_bytes().starts_with(b"N7trt_abi"));
            }
        }
    }
}
