//! What stands before a model: the long header of bundles and nodes, the short one of references.
//!
//! A reference stands in an engine once for each node (TensorRT-RTX 1.7 stores it twice), and is little more than its header: so it
//! has a shorter one.

use super::{FORMAT_VERSION, MAGIC, REFERENCE_MAGIC, ReadError, u16_at, u32_at, u64_at};
use crate::digest::Digest;

/// Bytes before what the digest of a long header covers next: the length of the model.
pub(super) const LONG_BYTES: usize = 64;
/// Where the model begins after a long header.
pub(super) const MODEL_OFFSET: usize = 72;
/// Where it begins after a short one.
pub(super) const SHORT_BYTES: usize = 22;
const LONG_DIGEST: std::ops::Range<usize> = 32..LONG_BYTES;
const SHORT_DIGEST: std::ops::Range<usize> = 14..SHORT_BYTES;
/// No version is above it before the layout of headers changes altogether.
const LAST_VERSION: u32 = 0xff;
/// What TensorRT can hand over in one field: its length is an `int32_t`.
const LONGEST_REFERENCE: u32 = i32::MAX as u32;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bundle = 1,
    Node = 2,
    NodeReference,
}

/// A header whose digest was not compared yet.
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) length: usize,
}

impl Header {
    pub(super) fn read(bytes: &[u8]) -> Result<Header, ReadError> {
        if bytes.starts_with(&MAGIC) {
            read_long(bytes)
        } else if bytes.starts_with(&REFERENCE_MAGIC) {
            read_short(bytes)
        } else {
            Err(ReadError::NoMagic)
        }
    }
}

fn truncated(header: usize, bytes: &[u8]) -> ReadError {
    ReadError::Truncated { expected: header as u64, found: bytes.len() as u64 }
}

fn read_long(bytes: &[u8]) -> Result<Header, ReadError> {
    let truncated = || truncated(LONG_BYTES, bytes);
    let version = u32_at(bytes, 16).ok_or_else(truncated)?;
    if version != FORMAT_VERSION {
        return Err(ReadError::Version { found: version });
    }
    let kind = match u32_at(bytes, 20).ok_or_else(truncated)? {
        1 => Kind::Bundle,
        2 => Kind::Node,
        other => return Err(ReadError::Malformed(format!("kind {other}, expected 1 or 2"))),
    };
    let length = u64_at(bytes, 24).ok_or_else(truncated)?;
    finish(kind, length, MODEL_OFFSET, bytes)
}

fn read_short(bytes: &[u8]) -> Result<Header, ReadError> {
    let truncated = || truncated(SHORT_BYTES, bytes);
    let version = u32::from(u16_at(bytes, 8).ok_or_else(truncated)?);
    if version != FORMAT_VERSION {
        return Err(ReadError::Version { found: version });
    }
    let length = u32_at(bytes, 10).ok_or_else(truncated)?;
    finish(Kind::NodeReference, length.into(), SHORT_BYTES, bytes)
}

fn finish(kind: Kind, length: u64, least: usize, bytes: &[u8]) -> Result<Header, ReadError> {
    let expected = ReadError::Truncated { expected: length, found: bytes.len() as u64 };
    let length = usize::try_from(length).map_err(|_| expected)?;
    if length < least {
        return Err(ReadError::Malformed(format!("length {length} is less than the header's")));
    }
    Ok(Header { kind, length })
}

/// The digest of a whole container, held against the one in its header.
pub(super) fn check_digest(kind: Kind, bytes: &[u8]) -> Result<Digest, ReadError> {
    let range = digest_range(kind);
    let found = digest_of(kind, bytes);
    let said = bytes.get(range).unwrap_or_default();
    let of_digest = found.0.get(..said.len()).unwrap_or_default();
    if !said.is_empty() && said == of_digest {
        return Ok(found);
    }
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Err(ReadError::Digest { expected: hexadecimal(said), found: hexadecimal(of_digest) })
}

/// The digest of a container: of all its bytes but the digest's own.
pub(super) fn digest_of(kind: Kind, bytes: &[u8]) -> Digest {
    let range = digest_range(kind);
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytes.get(..range.start).unwrap_or_default());
    hasher.update(bytes.get(range.end..).unwrap_or_default());
    Digest(*hasher.finalize().as_bytes())
}

const fn digest_range(kind: Kind) -> std::ops::Range<usize> {
    match kind {
        Kind::Bundle | Kind::Node => LONG_DIGEST,
        Kind::NodeReference => SHORT_DIGEST,
    }
}

/// A long header whose length and digest are put right by [`seal`].
pub(super) fn long(kind: Kind) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(kind as u32).to_le_bytes());
    bytes.resize(LONG_BYTES, 0);
    bytes
}

/// A short header, likewise.
pub(super) fn short() -> Vec<u8> {
    let mut bytes = REFERENCE_MAGIC.to_vec();
    bytes.extend_from_slice(&(FORMAT_VERSION as u16).to_le_bytes());
    bytes.resize(SHORT_BYTES, 0);
    bytes
}

/// Writes length and digest into the header of a container that is complete.
pub(super) fn seal(kind: Kind, bytes: &mut [u8]) {
    match kind {
        Kind::Bundle | Kind::Node => put(bytes, 24, &(bytes.len() as u64).to_le_bytes()),
        // What is longer than that no TensorRT would hand over.
        Kind::NodeReference => {
            put(bytes, 10, &u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
    }
    let digest = digest_of(kind, bytes);
    let range = digest_range(kind);
    put(bytes, range.start, digest.0.get(..range.len()).unwrap_or_default());
}

fn put(bytes: &mut [u8], at: usize, from: &[u8]) {
    bytes.iter_mut().skip(at).zip(from).for_each(|(to, from)| *to = *from);
}

/// Whether what begins with either magic can be a container. The magic alone also stands in every program that reads containers, so in
/// every plan with a plugin library inside.
pub(super) fn plausible(bytes: &[u8]) -> bool {
    let is_version = |version: &u32| (1..=LAST_VERSION).contains(version);
    if bytes.starts_with(&MAGIC) {
        let version = u32_at(bytes, 16).as_ref().is_some_and(is_version);
        let kind = u32_at(bytes, 20).as_ref().is_some_and(is_version);
        return version && kind && u64_at(bytes, 24).is_some_and(|length| length >= MODEL_OFFSET as u64);
    }
    let lengths = SHORT_BYTES as u32..=LONGEST_REFERENCE;
    bytes.starts_with(&REFERENCE_MAGIC)
        && u16_at(bytes, 8).map(u32::from).as_ref().is_some_and(is_version)
        && u32_at(bytes, 10).is_some_and(|length| lengths.contains(&length))
}

/// Where the next bytes begin that are a magic.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let candidate = from + bytes.get(from..)?.iter().position(|byte| *byte == MAGIC[0])?;
        let found = bytes.get(candidate..)?;
        if found.starts_with(&MAGIC) || found.starts_with(&REFERENCE_MAGIC) {
            return Some(candidate);
        }
        from = candidate + 1;
    }
}
