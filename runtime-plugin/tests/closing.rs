//! `dlclose` frees all memory. A separate program: it counts the process's allocated bytes.

#![allow(unsafe_code)] // opens the library as TensorRT does
#![allow(clippy::expect_used)]
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;

fn library() -> CString {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("a test lies in a folder");
    CString::new(folder.join("libcubinder.so").as_os_str().as_bytes()).expect("no NUL in a path")
}

fn allocated() -> usize {
    // SAFETY: only reads counters.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Forks: the harness's thread allocates.
#[test]
fn opening_and_closing_leaks_nothing() {
    let path = library();
    // SAFETY: the child runs only this test's functions, no destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A panic must not reach the harness.
        let grown = std::panic::catch_unwind(|| growth(&path));
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!matches!(grown, Ok(0)))) };
    }
    let mut status = 0;
    // SAFETY: `status` holds one number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "memory has grown");
}

/// Returns the growth in bytes over 100 cycles.
fn growth(path: &CStr) -> usize {
    let cycle = || {
        // SAFETY: a C string, TensorRT's signature, unused after closing.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null(), "{path:?}");
            let function = libc::dlsym(handle, c"getCreators".as_ptr());
            assert!(!function.is_null());
            let get_creators: unsafe extern "C" fn(*mut i32) -> *const *mut c_void =
                std::mem::transmute(function);
            let mut count = 0;
            get_creators(&raw mut count);
            assert_eq!((libc::dlclose(handle), count), (0, 2));
            assert!(libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD).is_null(), "unmapped");
        }
    };
    // The first cycles fill the loader's lists.
    (0..10).for_each(|_| cycle());
    let before = allocated();
    (0..100).for_each(|_| cycle());
    allocated().abs_diff(before)
}
