//! A code object's bytes in a container: deflated by the compiler if smaller.
//!
//! Deflate (RFC 1951, without frames) shrinks cubins to a quarter, as Zstandard does; inflating takes about a tenth of
//! the driver's load time. LZ4 is four times faster but 50 % larger.
//!
//! Never allocates more than [`MAX_RATIO`] times the stored bytes or [`MAX_BYTES`].

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::digest::Digest;

/// Maximum expansion of packed, untrusted code; cubins have 3 to 8.
pub const MAX_RATIO: usize = 64;

/// Maximum bytes of packed code. The largest known cubins have tens of megabytes.
pub const MAX_BYTES: usize = 256 << 20;

/// Deflate's best: every engine reads it.
const LEVEL: u8 = 10;

/// The bytes of a code object.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeBytes {
    held: StoredBytes,
    unpacked: Option<usize>,
}

#[derive(Clone)]
pub(crate) enum StoredBytes {
    Mapped(&'static [u8]),
    /// A range of these bytes.
    Shared(Arc<[u8]>, Range<usize>),
}

/// Why stored bytes do not unpack to the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCode {
    /// Not a deflate stream, or another length.
    #[error("it does not decompress to {expected} bytes")]
    Packed {
        /// Length in the container.
        expected: usize,
    },
    /// Memory is insufficient.
    #[error("cannot allocate the {bytes} bytes that it decompresses to")]
    Memory {
        /// Length of the code.
        bytes: usize,
    },
    /// The digest differs.
    #[error("its digest does not match")]
    Digest,
}

impl CodeBytes {
    /// Returns the form in which containers store these bytes.
    #[must_use]
    pub fn pack(raw: Vec<u8>) -> CodeBytes {
        let packed = compress_to_vec(&raw, LEVEL);
        CodeBytes::packed(StoredBytes::owned(packed), raw.len()).unwrap_or_else(|| CodeBytes::from(raw))
    }

    /// Inverts [`CodeBytes::stored`] and [`CodeBytes::unpacked_length`]; `None` if impossible.
    #[must_use]
    pub fn from_stored(stored: Vec<u8>, unpacked: Option<usize>) -> Option<CodeBytes> {
        let held = StoredBytes::owned(stored);
        match unpacked {
            None => Some(CodeBytes::plain(held)),
            Some(length) => CodeBytes::packed(held, length),
        }
    }

    pub(crate) fn plain(held: StoredBytes) -> CodeBytes {
        CodeBytes { held, unpacked: None }
    }

    /// Wraps compressed code; `None` if writers would not compress it.
    pub(crate) fn packed(held: StoredBytes, length: usize) -> Option<CodeBytes> {
        let stored = held.as_slice().len();
        let is_smaller = stored < length && length <= stored.saturating_mul(MAX_RATIO);
        (is_smaller && length <= MAX_BYTES).then_some(CodeBytes { held, unpacked: Some(length) })
    }

    /// Returns the length of the code.
    #[must_use]
    pub fn unpacked_length(&self) -> usize {
        self.unpacked.unwrap_or(self.stored().len())
    }

    /// Returns the bytes in a container.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        self.held.as_slice()
    }

    /// Returns whether they are deflated.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.unpacked.is_some()
    }

    /// Returns the code. Checks only deflated bytes' digest: others were checked when read.
    pub fn unpack(&self, digest: Digest) -> Result<Cow<'_, [u8]>, BadCode> {
        let Some(length) = self.unpacked else { return Ok(Cow::Borrowed(self.stored())) };
        let room = zeroed(length).ok_or(BadCode::Memory { bytes: length })?;
        let raw = inflate(self.stored(), room).ok_or(BadCode::Packed { expected: length })?;
        if Digest::compute(&raw) == digest { Ok(Cow::Owned(raw)) } else { Err(BadCode::Digest) }
    }
}

fn zeroed(length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).ok()?;
    bytes.resize(length, 0);
    Some(bytes)
}

/// Decompresses; stream and code must end together.
fn inflate(stored: &[u8], mut raw: Vec<u8>) -> Option<Vec<u8>> {
    let mut state = Box::<DecompressorOxide>::default();
    let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, read, written) = decompress(&mut state, stored, &mut raw, 0, flags);
    (status == TINFLStatus::Done && read == stored.len() && written == raw.len()).then_some(raw)
}

impl StoredBytes {
    pub(crate) fn owned(bytes: impl Into<Arc<[u8]>>) -> StoredBytes {
        let bytes = bytes.into();
        let range = 0..bytes.len();
        StoredBytes::Shared(bytes, range)
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            StoredBytes::Mapped(bytes) => bytes,
            StoredBytes::Shared(bytes, range) => bytes.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl PartialEq for StoredBytes {
    fn eq(&self, other: &StoredBytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for StoredBytes {}

impl From<Vec<u8>> for CodeBytes {
    fn from(raw: Vec<u8>) -> CodeBytes {
        CodeBytes::plain(StoredBytes::owned(raw))
    }
}

impl std::fmt::Debug for CodeBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.unpacked {
            None => write!(f, "{} bytes", self.stored().len()),
            Some(length) => write!(f, "{length} bytes in {}", self.stored().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(stored: &[u8], length: usize) -> Option<CodeBytes> {
        CodeBytes::packed(StoredBytes::owned(stored), length)
    }

    #[test]
    fn what_becomes_smaller_is_packed() {
        let text: Vec<u8> =
            (0..200).flat_map(|line| format!("add.s32 %r{line}, 1;\n").into_bytes()).collect();
        let bytes = CodeBytes::pack(text.clone());
        assert!(bytes.is_packed() && bytes.stored().len() * 3 < text.len(), "{bytes:?}");
        assert_eq!(bytes.unpacked_length(), text.len());
        assert_eq!(*bytes.unpack(Digest::compute(&text)).unwrap(), *text);
    }

    #[test]
    fn what_is_kept_elsewhere_comes_back() {
        for raw in [Vec::new(), b"code".to_vec(), b"add.s32 %r1, 1;\n".repeat(30)] {
            let bytes = CodeBytes::pack(raw.clone());
            let length = bytes.is_packed().then(|| bytes.unpacked_length());
            let again = CodeBytes::from_stored(bytes.stored().to_vec(), length).unwrap();
            assert_eq!(again, bytes);
            assert_eq!(*again.unpack(Digest::compute(&raw)).unwrap(), *raw);
        }
        assert_eq!(CodeBytes::from_stored(b"code".to_vec(), Some(4)), None, "it is not smaller");
        assert_eq!(CodeBytes::from_stored(b"code".to_vec(), Some(4 * MAX_RATIO + 1)), None, "a bomb");
    }

    #[test]
    fn what_does_not_become_smaller_or_far_too_small_stays() {
        for raw in [Vec::new(), b"code".to_vec(), vec![0; 1 << 20]] {
            let bytes = CodeBytes::pack(raw.clone());
            assert!(!bytes.is_packed());
            assert_eq!(*bytes.unpack(Digest::compute(&raw)).unwrap(), *raw);
        }
    }

    #[test]
    fn a_bomb_is_refused_before_anything_is_allocated() {
        let bomb = compress_to_vec(&vec![0; 1 << 20], LEVEL);
        assert_eq!(packed(&bomb, 1 << 20), None);
        assert_eq!(packed(&bomb, usize::MAX), None);
        let claimed = bomb.len() * MAX_RATIO;
        let bytes = packed(&bomb, claimed).unwrap();
        assert_eq!(bytes.unpack(Digest::compute(b"")), Err(BadCode::Packed { expected: claimed }));
    }

    #[test]
    fn an_engine_cannot_ask_for_all_memory() {
        let stored = vec![0; MAX_BYTES / MAX_RATIO + 1];
        assert_eq!(packed(&stored, MAX_BYTES + 1), None);
        assert!(packed(&stored, MAX_BYTES).is_some());
        assert_eq!(zeroed(1 << 62), None);
        assert_eq!(zeroed(usize::MAX), None);
        assert_eq!(zeroed(3), Some(vec![0; 3]));
    }

    #[test]
    fn only_what_becomes_smaller_and_not_too_small_is_kept_packed() {
        assert_eq!([3, 4].map(|length| packed(&[0; 4], length)), [None, None]);
        assert!([5, 256].iter().all(|length| packed(&[0; 4], *length).is_some()));
        assert_eq!(packed(&[0; 4], 257), None);
        let bytes = packed(&[0; 4], 5).unwrap();
        assert_eq!(format!("{bytes:?}, {:?}", CodeBytes::from(vec![0; 3])), "5 bytes in 4, 3 bytes");
    }

    #[test]
    fn equal_bytes_are_equal_wherever_they_lie() {
        let mapped = CodeBytes::plain(StoredBytes::Mapped(b"code"));
        assert_eq!(mapped, CodeBytes::from(b"code".to_vec()));
        assert_ne!(mapped, CodeBytes::from(b"cod2".to_vec()));
        assert_ne!(packed(b"code", 5), packed(b"cod2", 5));
        assert_ne!(packed(b"code", 5), packed(b"code", 6));
    }

    #[test]
    fn a_stream_of_another_length_or_with_more_behind_it_is_refused() {
        let raw = [b"the same words, ".repeat(40), b"and others".to_vec()].concat();
        let good = CodeBytes::pack(raw.clone());
        let digest = Digest::compute(&raw);
        let refused = |stored: &[u8], length| packed(stored, length).unwrap().unpack(digest).unwrap_err();
        for length in [raw.len() - 1, raw.len() + 1] {
            assert_eq!(refused(good.stored(), length), BadCode::Packed { expected: length });
        }
        assert_eq!(
            refused(&[good.stored(), b"\0"].concat(), raw.len()),
            BadCode::Packed { expected: raw.len() }
        );
        for cut in 16..good.stored().len() {
            assert_eq!(refused(&good.stored()[..cut], raw.len()), BadCode::Packed { expected: raw.len() });
        }
        assert_eq!(good.unpack(Digest::compute(b"other")), Err(BadCode::Digest));
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(raw in proptest::collection::vec(0_u8..4, 0..2000)) {
            let bytes = CodeBytes::pack(raw.clone());
            prop_assert_eq!(bytes.unpacked_length(), raw.len());
            prop_assert_eq!(&*bytes.unpack(Digest::compute(&raw)).unwrap(), &*raw);
        }

        #[test]
        fn garbage_is_refused(stored in proptest::collection::vec(any::<u8>(), 1..300), ratio in 2_usize..64) {
            let bytes = packed(&stored, stored.len() * ratio).unwrap();
            prop_assert!(bytes.unpack(Digest::compute(b"")).is_err());
        }
    }
}
