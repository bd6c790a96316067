//! The bundle in this library's file: the compiler fills in the descriptor, and turns the note's program header into
//! the bundle's segment.
//!
//! Never exports a symbol (another copy's could replace it) or compares with the magic (a second copy in the file).

#![allow(unsafe_code)]

use cubinder_model::slot::{self, Mode};

#[repr(C, align(16))]
struct Descriptor([u8; slot::SIZE]);

/// Alignment 8 separates it from the build id, which has 4.
#[repr(C, align(8))]
struct Note([u8; slot::NOTE_SIZE]);

const _: () = assert!(align_of::<Descriptor>() == slot::ALIGN && size_of::<Descriptor>() == slot::SIZE);

// Attributes need literals: `slot::SECTION` and `slot::NOTE_SECTION`.
#[used]
#[unsafe(link_section = ".cubinder.desc")]
static DESCRIPTOR: Descriptor = Descriptor(slot::GENERIC);

#[used]
#[unsafe(link_section = ".note.cubinder")]
static NOTE: Note = Note(slot::NOTE);

/// Another compiler version wrote the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownDescriptor {
    /// Unknown mode.
    pub mode: u32,
}

impl std::fmt::Display for UnknownDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the bundle has a mode that this library does not support ({})", self.mode)
    }
}

/// Returns this library's unchecked bundle and its mode; `None` in the generic library.
pub fn attached() -> Result<Option<(Mode, &'static [u8])>, UnknownDescriptor> {
    let descriptor = &raw const DESCRIPTOR.0;
    // SAFETY: statics of these types, never written in this process. Volatile: the file's bytes differ from the
    // initializers. Reading the note keeps it linked.
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
    // SAFETY: the compiler writes a read-only segment of `length` bytes (at most `isize::MAX`), mapped `delta` bytes
    // from the descriptor as long as this library, part of no Rust object.
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
