//! `dlclose` frees all memory. A separate program, because it counts the process's allocated bytes.

#![allow(unsafe_code)] // opens the library as TensorRT does
#![allow(clippy::expect_used)] // helpers of tests
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;

/// Returns the library that cargo built beside this test.
fn library() -> CString {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("a test lies in a folder");
    CString::new(folder.join("libcubinder.so").as_os_str().as_bytes()).expect("no NUL in a path")
}

/// Returns the process's allocated bytes.
fn allocated() -> usize {
    // SAFETY: `mallinfo2` only reads counters.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

#[test]
fn opening_and_closing_leaks_nothing() {
    let path = library();
    let cycle = || {
        // SAFETY: a C string, TensorRT's signature, and no use after closing.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null(), "{path:?}");
            let function = libc::dlsym(handle, c"getCreators".as_ptr());
            assert!(!function.is_null());
            let get_creators: unsafe extern "C" fn(*mut i32) -> *const *mut c_void =
                std::mem::transmute(function);
            let mut count = 0;
            get_creators(&raw mut count);
            // One creator for current engines, and one that rejects older formats.
            assert_eq!((libc::dlclose(handle), count), (0, 2));
            assert!(libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD).is_null(), "unmapped");
        }
    };
    // The first cycles fill the loader's lists.
    (0..10).for_each(|_| cycle());
    let growth = || {
        let before = allocated();
        (0..100).for_each(|_| cycle());
        allocated().abs_diff(before)
    };
    // The thread that waits for this one allocates, too, some time after the start. What the library leaks grows in every round.
    let rounds: Vec<usize> = (0..5).map(|_| growth()).collect();
    assert!(rounds.contains(&0), "{rounds:?} bytes");
}
