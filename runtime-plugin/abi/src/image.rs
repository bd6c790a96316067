//! Images in this process: the program and the shared libraries, as the dynamic loader knows them.
//!
//! Owns: finding the image that holds an address, and keeping an image mapped. Never: loads an image.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

/// The program or a shared library, by its file and its place in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    file: CString,
    base: usize,
}

/// A reference to an image: it stays mapped until this value is dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The program, which is never unmapped and has no handle.
    Program {
        base: usize,
    },
    Library {
        handle: NonNull<c_void>,
        base: usize,
    },
}

// SAFETY: handles of the loader may be used on any thread.
unsafe impl Send for Pin {}
// SAFETY: as above; the loader has its own lock.
unsafe impl Sync for Pin {}

const WITHOUT_LOADING: c_int = libc::RTLD_NOLOAD | libc::RTLD_LAZY;

impl Image {
    /// Returns the image that holds `address`, or `None` for memory of another kind.
    pub(crate) fn holding(address: *const c_void) -> Option<Self> {
        let info = place_of(address)?;
        // SAFETY: `place_of` has checked that the name is not null; the loader owns it as long as the image is mapped, which the
        // caller's use of `address` implies.
        let file = unsafe { CStr::from_ptr(info.dli_fname) }.to_owned();
        Some(Self { file, base: info.dli_fbase.addr() })
    }

    /// Returns whether `address` lies in this image.
    pub(crate) fn contains(&self, address: *const c_void) -> bool {
        base_of(address) == Some(self.base)
    }

    /// Keeps the image mapped. Returns `None` if it was unloaded, or belongs to another namespace of the loader.
    pub(crate) fn pin(&self) -> Option<Pin> {
        // SAFETY: the name is a C string. `RTLD_NOLOAD` runs no code and only counts a reference.
        let handle = unsafe { libc::dlopen(self.file.as_ptr(), WITHOUT_LOADING) };
        let Some(handle) = NonNull::new(handle) else {
            return (program_base() == Some(self.base)).then_some(Pin::Program { base: self.base });
        };
        let pin = Pin::Library { handle, base: self.base };
        // The file may have been unloaded and loaded again elsewhere.
        (base_of_handle(handle) == Some(self.base)).then_some(pin)
    }
}

impl Pin {
    /// Looks up a symbol that this image defines. A symbol of the same name in another image, of which `dlsym` knows more than it is
    /// asked for, is not returned.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let (handle, base) = match self {
            Self::Program { base } => (libc::RTLD_DEFAULT, *base),
            Self::Library { handle, base } => (handle.as_ptr(), *base),
        };
        // SAFETY: a live handle or a constant, and a C string.
        let symbol = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })?;
        (base_of(symbol.as_ptr()) == Some(base)).then_some(symbol)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Self::Library { handle, .. } = self {
            // SAFETY: releases the reference that `Image::pin` took.
            unsafe { libc::dlclose(handle.as_ptr()) };
        }
    }
}

/// Asks the loader about an address. The name in the result is not null.
fn place_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: `Dl_info` consists of pointers, for which null is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` only compares the address; `info` is writable, and stays as it is if no image holds the address.
    unsafe { libc::dladdr(address, &raw mut info) };
    (!info.dli_fname.is_null()).then_some(info)
}

/// Returns where the image that holds `address` begins in memory.
pub(crate) fn base_of(address: *const c_void) -> Option<usize> {
    place_of(address).map(|info| info.dli_fbase.addr())
}

/// Returns where the program begins: it holds its program headers, which the kernel reports (`getauxval(3)`).
fn program_base() -> Option<usize> {
    // SAFETY: it accepts a number and returns one, 0 if the kernel reports nothing.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    base_of(ptr::without_provenance(usize::try_from(headers).ok()?))
}

/// The public part of `struct link_map` in `<link.h>`.
#[repr(C)]
struct LinkMap {
    _address: usize,
    _name: *const c_char,
    dynamic: *const c_void,
}

/// Returns where the image behind a handle begins.
fn base_of_handle(handle: NonNull<c_void>) -> Option<usize> {
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: a live handle; the request writes one pointer, or nothing if it fails.
    unsafe { libc::dlinfo(handle.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    // SAFETY: null, or the loader's entry of the image that the handle keeps mapped.
    unsafe { map.as_ref() }.and_then(|map| base_of(map.dynamic))
}

/// Calls `is_found` with the image of each function on the call stack, the nearest caller first, until it returns true.
pub(crate) fn search_callers(is_found: &mut dyn FnMut(&Image) -> bool) {
    /// Frames above the first are this crate's and the plugin's; TensorRT calls the plugin directly.
    const DEEPEST: usize = 64;
    struct Search<'a> {
        is_found: &'a mut dyn FnMut(&Image) -> bool,
        left: usize,
    }
    unsafe extern "C" fn visit(context: *mut c_void, search: *mut c_void) -> c_int {
        // SAFETY: `_Unwind_Backtrace` passes on the pointer that it got below, and a context for this call.
        let (search, address) = unsafe { (&mut *search.cast::<Search<'_>>(), _Unwind_GetIP(context)) };
        search.left -= 1;
        // A return address may be the first byte behind the call's function.
        let image = Image::holding(ptr::without_provenance(address.saturating_sub(1)));
        c_int::from(search.left == 0 || image.is_some_and(|image| (search.is_found)(&image)))
    }
    let mut search = Search { is_found, left: DEEPEST };
    // SAFETY: `search` outlives the call; `visit` returns 0 to go on, and anything else ends the walk.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
}

// Itanium C++ ABI, level 1, and GCC's extension for backtraces, which every unwinder on Linux has and Rust's own backtraces use.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_libraries_are_told_apart() {
        static OWN: u8 = 0;
        let own = Image::holding((&raw const OWN).cast()).unwrap();
        assert!(matches!(own.pin(), Some(Pin::Program { .. })));
        let library = Image::holding(libc::malloc as *const c_void).unwrap();
        let pin = library.pin().unwrap();
        assert!(matches!(pin, Pin::Library { .. }));
        assert!(library.contains(pin.symbol(c"malloc").unwrap().as_ptr()));
        assert!(!own.contains(libc::malloc as *const c_void));
        assert_eq!(Image::holding(ptr::null()), None);
        let local = 0_u8;
        assert_eq!(Image::holding((&raw const local).cast()), None);
    }

    #[test]
    fn symbols_of_other_images_are_not_found() {
        static OWN: u8 = 0;
        let own = Image::holding((&raw const OWN).cast()).unwrap().pin().unwrap();
        // `dlsym` finds it for the program, in the C library.
        assert_eq!(own.symbol(c"malloc"), None);
    }

    #[test]
    fn an_image_of_another_namespace_cannot_be_pinned() {
        // It has a name for `dladdr` and, with nothing of that name here, no handle.
        let library = c"libm.so.6";
        // SAFETY: glibc's own library, and one of its functions, which is not called.
        let foreign = unsafe {
            assert!(libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY).is_null());
            let handle = libc::dlmopen(libc::LM_ID_NEWLM, library.as_ptr(), libc::RTLD_LAZY);
            libc::dlsym(handle, c"nan".as_ptr())
        };
        assert_eq!(Image::holding(foreign).unwrap().pin(), None);
    }

    #[test]
    fn the_own_image_is_the_nearest_caller() {
        static OWN: u8 = 0;
        let own = Image::holding((&raw const OWN).cast()).unwrap();
        let mut seen = Vec::new();
        search_callers(&mut |image| {
            seen.push(image.clone());
            seen.len() == 2
        });
        assert_eq!(seen, [own.clone(), own]);
    }
}
