//! NVTX ranges: what every node queues shows in the timeline of a profiler, under the node's name.
//!
//! Owns: whether ranges are asked for ([`VARIABLE`]), attaching the profiler that the process runs under, once for each copy of the
//! library, and the ranges themselves ([`Range`]).
//!
//! Never: no link against a library of NVTX; no failure of inference where a profiler cannot be had, but one message; no allocation
//! and no lock when a range is entered; nothing at all where none are asked for.
//!
//! A profiler names its library in [`TOOL_VARIABLE`]; a program that uses NVTX loads it and hands it tables to fill: `nvtxInit.h` of
//! NVTX 3.1.0 (NVIDIA/NVTX, `c/include/nvtx3/nvtxDetail`), whose order of steps this keeps.

#![allow(unsafe_code)] // loads a profiler's library and calls it

mod tables;

use std::ffi::{CStr, CString, OsStr, OsString, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use trt_abi::{Severity, logger};

use crate::driver::last_loader_error;

/// The environment variable that asks for ranges: `1`. It is read once, when a launch is first prepared.
pub(crate) const VARIABLE: &str = "CUBINDER_NVTX";
/// Where a 64-bit profiler names its library: `nvtxInit.h`.
const TOOL_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// What that library is entered by: `nvtxInit.h`.
const ENTRY: &CStr = c"InitializeInjectionNvtx2";

/// `NvtxInitializeInjectionNvtxFunc_t`: 0 is failure.
type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

/// A range of a profiler's timeline. It exists only where a profiler takes ranges.
#[derive(Debug)]
pub(crate) struct Range(CString);

/// As long as it lives, the calling thread is in a range.
pub(crate) struct Entered {
    /// It ends in the thread where it began.
    _not_send: PhantomData<*const ()>,
}

impl Range {
    /// A range of this name; `None` where none are asked for or no profiler takes them.
    pub(crate) fn new(name: impl FnOnce() -> String) -> Option<Range> {
        takes_ranges().then(|| Range(CString::new(name().replace('\0', "\\0")).unwrap_or_default()))
    }

    /// Begins it in the calling thread.
    #[inline]
    pub(crate) fn enter(&self) -> Entered {
        // SAFETY: the slots are empty, or a profiler has filled them; whoever names its library is trusted with the process.
        unsafe { tables::push(self.0.as_ptr()) };
        Entered { _not_send: PhantomData }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as for `push`, which came before in this thread.
        unsafe { tables::pop() };
    }
}

/// Whether a profiler takes ranges. The first caller attaches it, and tells the log what stands in the way.
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

/// Attaches the profiler whose library is `tool`, where `asked` asks for ranges.
fn attached(asked: Option<&OsStr>, tool: Option<OsString>) -> Result<(), Unavailable> {
    match asked.map(OsStr::as_encoded_bytes) {
        None | Some(b"" | b"0") => return Err(Unavailable::NotAsked),
        Some(b"1") => {}
        Some(other) => return Err(Unavailable::Value(String::from_utf8_lossy(other).into_owned())),
    }
    let tool = tool.filter(|tool| !tool.is_empty()).ok_or(Unavailable::NoTool)?;
    let path = CString::new(tool.into_vec()).map_err(|_| Unavailable::NoTool)?;
    let shown = || path.to_string_lossy().into_owned();
    // SAFETY: a C string. Loading runs the library's initializers: whoever sets the variable wants that, in every program with NVTX.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return Err(Unavailable::NotLoaded { path: shown(), text: last_loader_error() });
    }
    // SAFETY: an open handle and a C string.
    let entry = unsafe { libc::dlsym(library, ENTRY.as_ptr()) };
    let is_attached = !entry.is_null() && {
        // SAFETY: a function of this name has this type in every library that the variable names.
        let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(entry) };
        // SAFETY: it is given what it is made for. The tables are never freed.
        unsafe { initialize(tables::export_table) != 0 }
    };
    if !is_attached {
        // SAFETY: opened above; it has said that it is not attached, or could not be asked, so none of its functions is called.
        unsafe { libc::dlclose(library) };
        return Err(if entry.is_null() {
            Unavailable::NoEntry(shown())
        } else {
            Unavailable::Failed(shown())
        });
    }
    // The library stays: its functions are in the tables.
    if tables::takes_ranges() { Ok(()) } else { Err(Unavailable::NoRanges(shown())) }
}

/// Why there are no ranges.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unavailable {
    #[error("no NVTX ranges: {VARIABLE} is not 1")]
    NotAsked,
    /// The variable has another value than 0 and 1.
    #[error("no NVTX ranges: {VARIABLE} is `{0}`; 1 asks for them, 0 does not")]
    Value(String),
    /// No profiler asks for them.
    #[error("no NVTX ranges: {VARIABLE} is 1, and no profiler asks for them ({TOOL_VARIABLE} is not set)")]
    NoTool,
    #[error("{}cannot be loaded: {text}", library(path))]
    NotLoaded {
        path: String,
        /// The loader's own words.
        text: String,
    },
    #[error(
        "{}has no function `InitializeInjectionNvtx2`: it is none of a profiler for NVTX 2 or newer",
        library(_0)
    )]
    NoEntry(String),
    #[error("{}refuses to be attached: `InitializeInjectionNvtx2` returned 0", library(_0))]
    Failed(String),
    /// It is attached, and takes other things.
    #[error("{}is attached, and takes no ranges", library(_0))]
    NoRanges(String),
}

fn library(path: &str) -> String {
    format!("no NVTX ranges: the profiler's library `{path}`, which {TOOL_VARIABLE} names, ")
}

impl Unavailable {
    /// Logs the reason, unless no ranges were asked for.
    fn log(&self) {
        match self {
            Unavailable::NotAsked => {}
            // As it should be in a process that runs without a profiler.
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
