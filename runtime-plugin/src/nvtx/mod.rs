//! NVTX ranges: the work of each node in a profiler's timeline, under the node's name.
//!
//! Never fails inference without a profiler, or allocates or locks when a range starts.
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

/// Ends the range when dropped.
pub(crate) struct Entered {
    /// A range ends in the thread that started it.
    _not_send: PhantomData<*const ()>,
}

impl Range {
    /// Returns `None` if ranges are disabled or not supported.
    pub(crate) fn new(name: impl FnOnce() -> String) -> Option<Range> {
        takes_ranges().then(|| Range(CString::new(name().replace('\0', "\\0")).unwrap_or_default()))
    }

    #[inline]
    pub(crate) fn enter(&self) -> Entered {
        // SAFETY: the slots are empty, or filled by a profiler, which the user trusts.
        unsafe { tables::push(self.0.as_ptr()) };
        Entered { _not_send: PhantomData }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as for `push`, which this thread called before.
        unsafe { tables::pop() };
    }
}

/// The first call attaches the profiler, or logs why it cannot.
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
    // SAFETY: a C string; the user intends the initializers to run.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return Err(Unavailable::NotLoaded { path: shown(), text: last_loader_error() });
    }
    // SAFETY: an open handle and a C string.
    let entry = unsafe { libc::dlsym(library, ENTRY.as_ptr()) };
    let is_attached = !entry.is_null() && {
        // SAFETY: NVTX defines the type of this function.
        let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(entry) };
        // SAFETY: NVTX defines this argument.
        unsafe { initialize(tables::export_table) != 0 }
    };
    if !is_attached {
        // SAFETY: opened above, and its functions are not called.
        unsafe { libc::dlclose(library) };
        return Err(if entry.is_null() {
            Unavailable::NoEntry(shown())
        } else {
            Unavailable::Failed(shown())
        });
    }
    // The library stays loaded: the tables contain its functions.
    if tables::takes_ranges() { Ok(()) } else { Err(Unavailable::NoRanges(shown())) }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unavailable {
    #[error("no NVTX ranges: {VARIABLE} is not 1")]
    NotAsked,
    #[error("no NVTX ranges: {VARIABLE} is `{0}`; 1 asks for them, 0 does not")]
    Value(String),
    #[error("no NVTX ranges: {VARIABLE} is 1, and no profiler asks for them ({TOOL_VARIABLE} is not set)")]
    NoTool,
    #[error("{}cannot be loaded: {text}", library(path))]
    NotLoaded {
        path: String,
        /// The loader's error.
        text: String,
    },
    #[error(
        "{}has no function `InitializeInjectionNvtx2`: it is none of a profiler for NVTX 2 or newer",
        library(_0)
    )]
    NoEntry(String),
    #[error("{}refuses to be attached: `InitializeInjectionNvtx2` returned 0", library(_0))]
    Failed(String),
    #[error("{}is attached, and takes no ranges", library(_0))]
    NoRanges(String),
}

fn library(path: &str) -> String {
    format!("no NVTX ranges: the profiler's library `{path}`, which {TOOL_VARIABLE} names, ")
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
