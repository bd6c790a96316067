//! `dlclose` frees all memory. A separate program, because it counts the process's allocated bytes.

#![allow(unsafe_code)] // opens the library as TensorRT does
#![allow(clippy::expect_used)] // helpers of tests
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;

/// Set in the process that measures.
const ALONE: &str = "CUBINDER_TEST_ALONE";

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

/// With one test thread the harness runs the test in its main thread. Otherwise that thread waits, and allocates meanwhile.
#[test]
fn opening_and_closing_leaks_nothing() {
    if std::env::var_os(ALONE).is_none() {
        let test = std::env::current_exe().expect("a test has a path");
        let mut child = std::process::Command::new(test);
        let output = child.args(["--test-threads=1", "--nocapture"]).env(ALONE, "1").output();
        let output = output.expect("the test starts");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        return;
    }
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
    let before = allocated();
    (0..100).for_each(|_| cycle());
    assert_eq!(allocated(), before);
}
