//! The program and shared libraries of this process. Never loads one. Uses `dl_iterate_phdr`: `dladdr` needs the lock
//! under which glibc runs destructors, which may wait for a thread that calls it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::{self, NonNull};

use crate::thunk::slice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    file: CString,
    base: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The program itself, which is never unmapped.
    Program {
        base: usize,
    },
    Library {
        handle: NonNull<c_void>,
        base: usize,
    },
}

// SAFETY: loader handles may be used and closed in any thread.
unsafe impl Send for Pin {}
// SAFETY: the loader synchronizes calls with one handle from several threads.
unsafe impl Sync for Pin {}

const WITHOUT_LOADING: c_int = libc::RTLD_NOLOAD | libc::RTLD_LAZY;

impl Image {
    /// `None` for other memory and other loader namespaces.
    pub(crate) fn holding(address: *const c_void) -> Option<Self> {
        find_listed(address).map(|listed| listed.image())
    }

    pub(crate) fn contains(&self, address: *const c_void) -> bool {
        base_of(address) == Some(self.base)
    }

    /// Keeps the image mapped; `None` if unloaded. Waits for other threads' destructors.
    pub(crate) fn pin(&self) -> Option<Pin> {
        // The program's name is empty (`dl_iterate_phdr(3)`).
        if self.file.is_empty() {
            return Some(Pin::Program { base: self.base });
        }
        // SAFETY: the name is a C string, and with `RTLD_NOLOAD` no initializer runs.
        let handle = NonNull::new(unsafe { libc::dlopen(self.file.as_ptr(), WITHOUT_LOADING) })?;
        let pin = Pin::Library { handle, base: self.base };
        // The file may have been reloaded at another address.
        (base_of_handle(handle) == Some(self.base)).then_some(pin)
    }
}

impl Pin {
    /// Rejects other images' symbols, which `dlsym` may find.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let (handle, base) = match self {
            Self::Program { base } => (libc::RTLD_DEFAULT, *base),
            Self::Library { handle, base } => (handle.as_ptr(), *base),
        };
        // SAFETY: a live handle and a C string.
        let symbol = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })?;
        (base_of(symbol.as_ptr()) == Some(base)).then_some(symbol)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Self::Library { handle, .. } = self {
            // SAFETY: releases the reference of `Image::pin`.
            unsafe { libc::dlclose(handle.as_ptr()) };
        }
    }
}

struct ListedImage {
    file: *const c_char,
    base: usize,
    segment: Range<usize>,
}

impl ListedImage {
    fn image(&self) -> Image {
        // SAFETY: `file` is not null, and the name lives while the image is mapped.
        Image { file: unsafe { CStr::from_ptr(self.file) }.to_owned(), base: self.base }
    }
}

fn find_listed(address: *const c_void) -> Option<ListedImage> {
    struct Search {
        address: usize,
        place: Option<ListedImage>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid entry and our `Search`, which no one else uses.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the program headers are mapped during the call; the loader states their number.
        let headers = unsafe { slice(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let place = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let segments = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let mut segments = segments.map(|header| {
            let start = place(info.dlpi_addr.wrapping_add(header.p_vaddr));
            start..start.saturating_add(place(header.p_memsz))
        });
        // ELF segments are in ascending order.
        let Some(base) = segments.clone().next().map(|first| first.start) else { return 0 };
        let Some(segment) = segments.find(|segment| segment.contains(&search.address)) else { return 0 };
        if !info.dlpi_name.is_null() {
            search.place = Some(ListedImage { file: info.dlpi_name, base, segment });
        }
        1
    }
    let mut search = Search { address: address.addr(), place: None };
    // SAFETY: `search` outlives the call, and `visit` expects a pointer to it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.place
}

pub(crate) fn base_of(address: *const c_void) -> Option<usize> {
    find_listed(address).map(|image| image.base)
}

/// Part of `struct link_map` (`<link.h>`).
#[repr(C)]
struct LinkMap {
    _address: usize,
    _name: *const c_char,
    dynamic: *const c_void,
}

fn base_of_handle(handle: NonNull<c_void>) -> Option<usize> {
    let mut map: *const LinkMap = ptr::null();
    // SAFETY: a live handle; the request writes one pointer.
    unsafe { libc::dlinfo(handle.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    // SAFETY: `map` is null, or the loader's entry of the pinned image, which stays valid.
    unsafe { map.as_ref() }.and_then(|map| base_of(map.dynamic))
}

/// Passes the images on the call stack, nearest first; consecutive frames of one image count once.
pub(crate) fn search_callers(is_found: &mut dyn FnMut(&Image) -> bool) {
    /// TensorRT calls the plugin directly, so few frames precede it.
    const DEEPEST: usize = 64;
    struct Search<'a> {
        is_found: &'a mut dyn FnMut(&Image) -> bool,
        left: usize,
        /// Of the previous frame: most are in the same.
        segment: Range<usize>,
    }
    unsafe extern "C" fn visit(context: *mut c_void, search: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes a live context and our `Search`, which no one else uses.
        let (search, address) = unsafe { (&mut *search.cast::<Search<'_>>(), _Unwind_GetIP(context)) };
        search.left -= 1;
        // A return address may be just after the function.
        let address = address.saturating_sub(1);
        let mut is_end = search.left == 0;
        if !search.segment.contains(&address)
            && let Some(listed) = find_listed(ptr::without_provenance(address))
        {
            is_end |= (search.is_found)(&listed.image());
            search.segment = listed.segment;
        }
        c_int::from(is_end)
    }
    let mut search = Search { is_found, left: DEEPEST, segment: 0..0 };
    // SAFETY: `search` outlives the call, and `visit` expects a pointer to it.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
}

// Itanium C++ ABI, level 1, and GCC's backtrace extension.
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
        assert_eq!(own.symbol(c"malloc"), None);
    }

    #[test]
    fn images_of_other_namespaces_are_not_found() {
        let library = c"libm.so.6";
        // SAFETY: the library is glibc's own, and the function is not called.
        let foreign = unsafe {
            assert!(libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY).is_null());
            let handle = libc::dlmopen(libc::LM_ID_NEWLM, library.as_ptr(), libc::RTLD_LAZY);
            libc::dlsym(handle, c"nan".as_ptr())
        };
        assert!(!foreign.is_null());
        assert_eq!(Image::holding(foreign), None);
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
        assert_eq!(seen.first(), Some(&own));
        assert_ne!(seen.get(1), Some(&own), "frames of one image in a row are one caller");
    }
}
