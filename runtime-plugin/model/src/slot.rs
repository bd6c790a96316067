//! The slot in a runtime library that locates its bundle.
//!
//! The runtime library has the descriptor, and a note that reserves a program header, as statics; the compiler changes
//! them in the file. A test compiles only this file and the runtime's `descriptor.rs`, so it imports only `core` and
//! `std`.
//!
//! ```text
//! offset  size  field
//!      0    16  magic
//!     16     4  version of this layout
//!     20     4  mode; 0: no bundle, and all following fields are zero
//!     24     8  delta: address of the bundle minus address of the descriptor, signed
//!     32     8  length of the bundle
//!     40     8  length of the file without the bundle; 0: cannot be undone, and the fields below are zero
//!     48     8  its `e_shoff`
//!     56     4  its `e_shnum`
//!     60     4  index of the note's program header in it
//!     64    56  that program header
//!    120    32  BLAKE3 digest of it
//!    152     8  zero
//! ```
//!
//! All numbers are little endian.

/// The section that contains only the descriptor.
pub const SECTION: &str = ".cubinder.desc";
/// The section of the note that reserves a program header.
pub const NOTE_SECTION: &str = ".note.cubinder";
/// The first bytes of a descriptor, unique in the library's file.
pub const MAGIC: [u8; 16] = *b"\x93cubinder slot\r\n";
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes of a descriptor.
pub const SIZE: usize = 160;
/// Alignment of a descriptor in memory.
pub const ALIGN: usize = 16;
/// Bytes of an ELF64 program header.
pub const PROGRAM_HEADER_SIZE: usize = 56;

/// Bytes of the note.
pub const NOTE_SIZE: usize = 16;
/// Lengths of owner and description, type `NT_VERSION` (`eu-elflint` rejects others), owner.
pub const NOTE: [u8; NOTE_SIZE] = *b"\x04\0\0\0\0\0\0\0\x01\0\0\0CBR\0";

/// The descriptor of a library without a bundle.
pub const GENERIC: [u8; SIZE] = generic();

const VERSION_AT: usize = 16;
const MODE_AT: usize = 20;
const DELTA_AT: usize = 24;
const LENGTH_AT: usize = 32;
const BASE_LENGTH_AT: usize = 40;
const SECTION_OFFSET_AT: usize = 48;
const SECTION_COUNT_AT: usize = 56;
const NOTE_INDEX_AT: usize = 60;
const NOTE_HEADER_AT: usize = 64;
const DIGEST_AT: usize = 120;
const RESERVED_AT: usize = 152;

const GENERIC_MODE: u32 = 0;

/// How a library uses its bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Registers its ops; engines get the code in serialized fields.
    Ops = 1,
    /// Registers its ops; engines get a serialized code library.
    OpsForLibrary = 2,
    /// Registers only the core for engines with code in this library.
    CodeLibrary = 3,
}

impl Mode {
    /// Returns the number in the descriptor.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// Returns the mode with this number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Mode> {
        [Mode::Ops, Mode::OpsForLibrary, Mode::CodeLibrary].into_iter().find(|mode| mode.code() == code)
    }

    /// Describes the mode. `is_native`: TensorRT launches all kernels itself.
    #[must_use]
    pub const fn title(self, is_native: bool) -> &'static str {
        match self {
            Mode::Ops if is_native => "for the builder; TensorRT stores the code",
            Mode::Ops => "for the builder; engines embed the code",
            Mode::OpsForLibrary => "for the builder; a code library has the code",
            Mode::CodeLibrary => "code library",
        }
    }
}

/// The bundle in a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Mode.
    pub mode: Mode,
    /// Address of the bundle minus address of the descriptor.
    pub delta: i64,
    /// Bytes of the bundle, at least one.
    pub length: u64,
    /// Data to restore the library, unless another tool had changed the file.
    pub undo: Option<Undo>,
}

/// The library without the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Bytes of the file, at least one.
    pub length: u64,
    /// Its `e_shoff`.
    pub section_offset: u64,
    /// Its `e_shnum`.
    pub section_count: u32,
    /// Index of the note's program header.
    pub note_index: u32,
    /// The note's program header.
    pub note_header: [u8; PROGRAM_HEADER_SIZE],
    /// BLAKE3 digest of the file.
    pub digest: [u8; 32],
}

/// Why bytes are not a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotError {
    /// The bytes do not start with [`MAGIC`].
    Magic,
    /// The layout has another version.
    Version(u32),
    /// The mode is unknown.
    Mode(u32),
    /// A value that the compiler never writes.
    Field(&'static str),
}

impl std::fmt::Display for SlotError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SlotError::Magic => f.write_str("it does not start with the magic bytes"),
            SlotError::Version(found) => {
                write!(f, "its layout has version {found}; this compiler supports version {VERSION}")
            }
            SlotError::Mode(found) => write!(f, "its mode is {found}, expected 0 to 3"),
            SlotError::Field(name) => write!(f, "its field `{name}` has an invalid value"),
        }
    }
}

impl std::error::Error for SlotError {}

/// Returns mode, delta and length, unchecked: a library trusts its own descriptor.
#[must_use]
pub fn own_words(slot: &[u8; SIZE]) -> (u32, i64, u64) {
    (u32_at(slot, MODE_AT), i64::from_le_bytes(array_at(slot, DELTA_AT)), u64_at(slot, LENGTH_AT))
}

/// Returns the descriptor of a library with this bundle, or [`GENERIC`].
#[must_use]
pub fn encode(attachment: Option<&Attachment>) -> [u8; SIZE] {
    let mut slot = GENERIC;
    let Some(attachment) = attachment else { return slot };
    put(&mut slot, MODE_AT, &attachment.mode.code().to_le_bytes());
    put(&mut slot, DELTA_AT, &attachment.delta.to_le_bytes());
    put(&mut slot, LENGTH_AT, &attachment.length.to_le_bytes());
    if let Some(undo) = &attachment.undo {
        put(&mut slot, BASE_LENGTH_AT, &undo.length.to_le_bytes());
        put(&mut slot, SECTION_OFFSET_AT, &undo.section_offset.to_le_bytes());
        put(&mut slot, SECTION_COUNT_AT, &undo.section_count.to_le_bytes());
        put(&mut slot, NOTE_INDEX_AT, &undo.note_index.to_le_bytes());
        put(&mut slot, NOTE_HEADER_AT, &undo.note_header);
        put(&mut slot, DIGEST_AT, &undo.digest);
    }
    slot
}

/// Decodes a descriptor; `None` without a bundle.
pub fn decode(slot: &[u8; SIZE]) -> Result<Option<Attachment>, SlotError> {
    if array_at::<16>(slot, 0) != MAGIC {
        return Err(SlotError::Magic);
    }
    let version = u32_at(slot, VERSION_AT);
    if version != VERSION {
        return Err(SlotError::Version(version));
    }
    let code = u32_at(slot, MODE_AT);
    if code == GENERIC_MODE {
        return if *slot == GENERIC { Ok(None) } else { Err(SlotError::Field("mode")) };
    }
    let mode = Mode::from_code(code).ok_or(SlotError::Mode(code))?;
    let (_, delta, length) = own_words(slot);
    if length == 0 {
        return Err(SlotError::Field("length"));
    }
    if u64_at(slot, RESERVED_AT) != 0 {
        return Err(SlotError::Field("reserved"));
    }
    Ok(Some(Attachment { mode, delta, length, undo: decode_undo(slot)? }))
}

fn decode_undo(slot: &[u8; SIZE]) -> Result<Option<Undo>, SlotError> {
    let undo = Undo {
        length: u64_at(slot, BASE_LENGTH_AT),
        section_offset: u64_at(slot, SECTION_OFFSET_AT),
        section_count: u32_at(slot, SECTION_COUNT_AT),
        note_index: u32_at(slot, NOTE_INDEX_AT),
        note_header: array_at(slot, NOTE_HEADER_AT),
        digest: array_at(slot, DIGEST_AT),
    };
    if undo.length != 0 {
        return Ok(Some(undo));
    }
    let rest = slot.get(BASE_LENGTH_AT..RESERVED_AT).unwrap_or_default();
    if rest.iter().all(|&byte| byte == 0) { Ok(None) } else { Err(SlotError::Field("base length")) }
}

fn put(slot: &mut [u8; SIZE], at: usize, bytes: &[u8]) {
    slot.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
}

fn array_at<const N: usize>(slot: &[u8; SIZE], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(slot.iter().skip(at)).for_each(|(to, from)| *to = *from);
    bytes
}

fn u32_at(slot: &[u8; SIZE], at: usize) -> u32 {
    u32::from_le_bytes(array_at(slot, at))
}

fn u64_at(slot: &[u8; SIZE], at: usize) -> u64 {
    u64::from_le_bytes(array_at(slot, at))
}

const fn generic() -> [u8; SIZE] {
    const_put(const_put([0; SIZE], 0, &MAGIC), VERSION_AT, &VERSION.to_le_bytes())
}

const fn const_put<const N: usize, const M: usize>(mut whole: [u8; N], at: usize, part: &[u8; M]) -> [u8; N] {
    let mut i = 0;
    while i < M {
        whole[at + i] = part[i];
        i += 1;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mode() -> impl Strategy<Value = Mode> {
        prop_oneof![Just(Mode::Ops), Just(Mode::OpsForLibrary), Just(Mode::CodeLibrary)]
    }

    prop_compose! {
        fn undo()(
            length in 1_u64..,
            section_offset: u64,
            section_count: u32,
            note_index: u32,
            header in proptest::collection::vec(any::<u8>(), PROGRAM_HEADER_SIZE),
            digest: [u8; 32],
        ) -> Undo {
            let note_header = header.try_into().unwrap();
            Undo { length, section_offset, section_count, note_index, note_header, digest }
        }
    }

    prop_compose! {
        fn attachment()(
            mode in mode(),
            delta: i64,
            length in 1_u64..,
            undo in proptest::option::of(undo()),
        ) -> Attachment {
            Attachment { mode, delta, length, undo }
        }
    }

    proptest! {
        #[test]
        fn a_descriptor_survives_a_round_trip(attachment in attachment()) {
            let slot = encode(Some(&attachment));
            prop_assert_eq!(own_words(&slot), (attachment.mode.code(), attachment.delta, attachment.length));
            prop_assert_eq!(decode(&slot), Ok(Some(attachment)));
        }

        #[test]
        fn every_byte_counts(attachment in attachment(), at in 0..SIZE, with: u8) {
            let mut slot = encode(Some(&attachment));
            slot[at] = with;
            if let Ok(found) = decode(&slot) {
                prop_assert_eq!(encode(found.as_ref()), slot);
            }
        }
    }

    #[test]
    fn a_library_without_a_bundle_has_the_generic_descriptor() {
        assert_eq!(encode(None), GENERIC);
        assert_eq!(decode(&GENERIC), Ok(None));
        assert_eq!(own_words(&GENERIC), (0, 0, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let damaged = |at: usize, byte: u8| {
            let mut slot = GENERIC;
            slot[at] = byte;
            decode(&slot).unwrap_err().to_string()
        };
        assert_eq!(damaged(0, 0), "it does not start with the magic bytes");
        assert_eq!(damaged(16, 7), "its layout has version 7; this compiler supports version 1");
        assert_eq!(damaged(20, 9), "its mode is 9, expected 0 to 3");
        assert_eq!(damaged(20, 1), "its field `length` has an invalid value");
        assert_eq!(damaged(159, 1), "its field `mode` has an invalid value");
    }

    #[test]
    fn modes_are_named() {
        let named = [Mode::Ops, Mode::OpsForLibrary, Mode::CodeLibrary].map(|mode| mode.title(false));
        assert_eq!(
            named,
            [
                "for the builder; engines embed the code",
                "for the builder; a code library has the code",
                "code library"
            ]
        );
        assert_eq!(Mode::Ops.title(true), "for the builder; TensorRT stores the code");
    }

    #[test]
    fn the_note_is_as_elf_wants_it() {
        assert_eq!(&NOTE, b"\x04\0\0\0\0\0\0\0\x01\0\0\0CBR\0");
    }
}
