//! NVTX ranges: each node's work in a profiler's timeline. Without a profiler, inference never fails; starting a
//! range never allocates or locks.
//!
//! A profiler names its library in [`TOOL_VARIABLE`]; we load it and pass the tables, as `nvtxInit.h` of NVTX 3.1.0
//! does (NVIDIA/NVTX, `c/include/nvtx3/nvtxDetail`).

#![allow(unsafe_code)] // loads a profiler's library and calls it

mod tables;

use std::ffi::{CStr, CString, OsStr, OsString, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use trt_abi::{Severity, logger};

use crate::driver::last_loader_error;

/// Enables ranges with `1`; read once.
pub(crate) const VARIABLE: &str = "CUBINDER_NVTX";
/// A 64-bit profiler's library: `nvtxInit.h`.
const TOOL_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// Its entry point: `nvtxInit.h`.
const ENTRY: &CStr = c"InitializeInjectionNvtx2";

/// `NvtxInitializeInjectionNvtxFunc_t`: 0 is failure.
type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

#[derive(Debug)]
pub(crate) struct Range(CString);

pub(crate) struct Entered {
    /// Ends in the thread that started it.
    _not_send: PhantomData<*const ()>,
}

impl Range {
    /// `None` if ranges are disabled or not supported.
    pub(crate) fn new(name: impl FnOnce() -> String) -> Option<Range> {
        takes_ranges().then(|| Range(CString::new(name().replace('\0', "\\0")).unwrap_or_default()))
    }

    #[inline]
    pub(crate) fn enter(&self) -> Entered {
        // SAFETY: the slots are empty or from a profiler that the user trusts; the name is a C string.
        unsafe { tables::push(self.0.as_ptr()) };
        Entered { _not_send: PhantomData }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread called `push`; the slots are trusted as there.
        unsafe { tables::pop() };
    }
}

/// Returns whether a profiler accepts ranges. The first call attaches it, or logs why not.
fn takes_ranges() -> bool {
    static TAKES: OnceLock<bool> = OnceLock::new();
    *TAKES.get_or_init(|| {
        match attached(std::env::var_os(VARIABLE).as_deref(), std::env::var_os(TOOL_VARIABLE)) {
            Ok(()) => true,
            Err(why) => {
                why.log();
                false
            }
        }
    })
}

fn attached(asked: Option<&OsStr>, tool: Option<OsString>) -> Result<(), Unavailable> {
    match asked.map(OsStr::as_encoded_bytes) {
        None | Some(b"" | b"0") => return Err(Unavailable::NotAsked),
        Some(b"1") => {}
        Some(other) => return Err(Unavailable::Value(String::from_utf8_lossy(other).into_owned())),
    }
    let tool = tool.filter(|tool| !tool.is_empty()).ok_or(Unavailable::NoTool)?;
    let path = CString::new(tool.into_vec()).map_err(|_| Unavailable::NoTool)?;
    let shown = || path.to_string_lossy().into_owned();
    // SAFETY: the path is a C string; by naming the library, the user allows its initializers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return Err(Unavailable::NotLoaded { path: shown(), text: last_loader_error() });
    }
    // SAFETY: the handle is open, and the name is a C string.
    let entry = unsafe { libc::dlsym(library, ENTRY.as_ptr()) };
    let is_attached = !entry.is_null() && {
        // SAFETY: the function has this type in NVTX.
        let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(entry) };
        // SAFETY: NVTX passes the same argument: a function that returns export tables.
        unsafe { initialize(tables::export_table) != 0 }
    };
    if !is_attached {
        // SAFETY: the handle is open, and the library's functions are not called later.
        unsafe { libc::dlclose(library) };
        return Err(if entry.is_null() {
            Unavailable::NoEntry(shown())
        } else {
            Unavailable::Failed(shown())
        });
    }
    // Its functions are in the tables.
    if tables::takes_ranges() { Ok(()) } else { Err(Unavailable::NoRanges(shown())) }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unavailable {
    #[error("no NVTX ranges: {VARIABLE} is not 1")]
    NotAsked,
    #[error("no NVTX ranges: {VARIABLE} is `{0}`, expected 0 or 1")]
    Value(String),
    #[error("no NVTX ranges: {VARIABLE} is 1, but no profiler is attached ({TOOL_VARIABLE} is not set)")]
    NoTool,
    #[error("{}cannot be loaded: {text}", library(path))]
    NotLoaded {
        path: String,
        /// The loader's error.
        text: String,
    },
    #[error("{}has no function `InitializeInjectionNvtx2`: it does not support NVTX 2 or later", library(_0))]
    NoEntry(String),
    #[error("{}cannot be attached: `InitializeInjectionNvtx2` returned 0", library(_0))]
    Failed(String),
    #[error("{}is attached but records no ranges", library(_0))]
    NoRanges(String),
}

fn library(path: &str) -> String {
    format!("no NVTX ranges: the profiler's library `{path}` ({TOOL_VARIABLE}) ")
}

impl Unavailable {
    fn log(&self) {
        match self {
            Unavailable::NotAsked => {}
            Unavailable::NoTool | Unavailable::NoRanges(_) => logger::verbose(|| format!("cubinder: {self}")),
            _ => logger::log(Severity::WARNING, &format!("cubinder: {self}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_made_only_where_they_are_asked_for() {
        let tool = || Some(OsString::from("/nowhere/libtool.so"));
        for off in [None, Some(""), Some("0")] {
            assert_eq!(attached(off.map(OsStr::new), tool()), Err(Unavailable::NotAsked), "{off:?}");
        }
        for none in [None, Some(OsString::new())] {
            assert_eq!(attached(Some(OsStr::new("1")), none), Err(Unavailable::NoTool));
        }
        assert!(matches!(attached(Some(OsStr::new("1")), tool()), Err(Unavailable::NotLoaded { .. })));
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let path = || "/opt/tool/libtool.so".to_owned();
        let all = [
            Unavailable::NotAsked,
            Unavailable::Value("yes".to_owned()),
            Unavailable::NoTool,
            Unavailable::NotLoaded { path: path(), text: "file too short".to_owned() },
            Unavailable::NoEntry(path()),
            Unavailable::Failed(path()),
            Unavailable::NoRanges(path()),
        ];
        insta::assert_snapshot!(all.map(|why| why.to_string()).join("\n"));
    }
}
