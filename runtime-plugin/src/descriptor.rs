//! The bundle that the compiler put into this library's file, if it did.
//!
//! Owns the two statics that the compiler finds in the finished file: the descriptor, which it fills in, and a note whose
//! program header it turns into the segment of the bundle. The dynamic linker maps that segment with the rest of the
//! library, so finding the bundle is one addition.
//!
//! Never: no file access, no walk over the process's libraries, no exported symbol (another library's copy could take
//! the place of ours), no comparison with the magic (its constant would be a second copy of it in the file).

// Two reads of statics whose bytes change after linking, and the placing of these statics.
#![allow(unsafe_code)]

use cubinder_model::slot::{self, Mode};

/// The descriptor, as the compiler finds it.
#[repr(C, align(16))]
struct Descriptor([u8; slot::SIZE]);

/// The note, as the linker wants it: alignment 8 keeps it apart from the build id, which has 4. Where a linker merges it
/// with others all the same, the compiler refuses the library.
#[repr(C, align(8))]
struct Note([u8; slot::NOTE_SIZE]);

const _: () = assert!(align_of::<Descriptor>() == slot::ALIGN && size_of::<Descriptor>() == slot::SIZE);

// The attributes want literals: `slot::SECTION` and `slot::NOTE_SECTION`.
#[used]
#[unsafe(link_section = ".cubinder.desc")]
static DESCRIPTOR: Descriptor = Descriptor(slot::GENERIC);

#[used]
#[unsafe(link_section = ".note.cubinder")]
static NOTE: Note = Note(slot::NOTE);

/// A library that another version of the compiler has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownDescriptor {
    /// What it says it is.
    pub mode: u32,
}

impl std::fmt::Display for UnknownDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the bundle was put in for a use that this library does not know ({})", self.mode)
    }
}

/// The bundle in this library and what the library does with it; `None` in the generic library.
///
/// # Errors
/// A descriptor that this version does not know.
///
/// The descriptor is trusted as the code beside it is: both come from one file, and whoever can change one can change
/// the other. What the bundle's bytes say is not trusted; its reader checks them.
pub fn attached() -> Result<Option<(Mode, &'static [u8])>, UnknownDescriptor> {
    let descriptor = &raw const DESCRIPTOR.0;
    // SAFETY: both pointers come from statics of exactly these types: valid, aligned, initialised and never written
    // in this process. Volatile, because the file's bytes differ from the initialisers that the optimiser sees; the read
    // of the note only keeps the linker from dropping it.
    let (words, _) = unsafe { (descriptor.read_volatile(), (&raw const NOTE.0).read_volatile()) };
    let (mode, delta, length) = slot::own_words(&words);
    if (mode, delta, length) == (0, 0, 0) {
        return Ok(None);
    }
    let unknown = UnknownDescriptor { mode };
    let mode = Mode::from_code(mode).ok_or(unknown)?;
    let length = usize::try_from(length).map_err(|_| unknown)?;
    let delta = isize::try_from(delta).map_err(|_| unknown)?;
    let start = descriptor.addr().wrapping_add_signed(delta);
    // SAFETY: a mode other than 0 is written by the compiler alone, together with a read-only segment of `length` bytes
    // (at most `isize::MAX`, it checks) that the dynamic linker maps `delta` bytes from the descriptor, for as long as
    // this library and therefore this function is mapped. No Rust object covers these bytes, so a pointer with exposed
    // provenance may read them; nobody writes them, and `u8` has no invalid value.
    let bundle = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), length) };
    Ok(Some((mode, bundle)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_without_a_bundle_has_none() {
        assert_eq!(super::attached(), Ok(None));
    }
}
