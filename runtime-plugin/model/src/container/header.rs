//! Headers of bundles and nodes are long; those of references, which TensorRT-RTX 1.7 stores twice, short.

use super::{FORMAT_VERSION, MAGIC, REFERENCE_MAGIC, ReadError};
use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::digest::Digest;

pub(super) const LONG_BYTES: usize = 64;
pub(super) const MODEL_OFFSET: usize = 72;
pub(super) const SHORT_BYTES: usize = 22;
/// Higher versions would change the layout of headers.
const LAST_VERSION: u32 = 0xff;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bundle = 1,
    Node = 2,
    NodeReference,
}

struct HeaderLayout {
    magic: &'static [u8],
    /// Equal in all containers of a kind.
    length: usize,
    digest: std::ops::Range<usize>,
}

impl Kind {
    const fn layout(self) -> HeaderLayout {
        match self {
            Kind::Bundle | Kind::Node => HeaderLayout { magic: &MAGIC, length: 24, digest: 32..LONG_BYTES },
            Kind::NodeReference => {
                HeaderLayout { magic: &REFERENCE_MAGIC, length: 10, digest: 14..SHORT_BYTES }
            }
        }
    }
}

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
        return Err(ReadError::Malformed(format!("length {length} is shorter than the header")));
    }
    Ok(Header { kind, length })
}

pub(super) fn check_digest(kind: Kind, bytes: &[u8]) -> Result<Digest, ReadError> {
    let range = kind.layout().digest;
    let found = Digest::without(bytes, range.clone());
    let stored = bytes.get(range).unwrap_or_default();
    let computed = found.0.get(..stored.len()).unwrap_or_default();
    if !stored.is_empty() && stored == computed {
        return Ok(found);
    }
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Err(ReadError::Digest { expected: hexadecimal(stored), found: hexadecimal(computed) })
}

pub(super) fn long(kind: Kind) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(kind as u32).to_le_bytes());
    bytes.resize(LONG_BYTES, 0);
    bytes
}

pub(super) fn short() -> Vec<u8> {
    let mut bytes = REFERENCE_MAGIC.to_vec();
    bytes.extend_from_slice(&(FORMAT_VERSION as u16).to_le_bytes());
    bytes.resize(SHORT_BYTES, 0);
    bytes
}

pub(super) fn seal(kind: Kind, bytes: &mut [u8]) {
    let HeaderLayout { length, digest: range, .. } = kind.layout();
    match kind {
        Kind::Bundle | Kind::Node => put(bytes, length, &(bytes.len() as u64).to_le_bytes()),
        // TensorRT would not pass longer data.
        Kind::NodeReference => {
            put(bytes, length, &u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
    }
    let digest = Digest::without(bytes, range.clone());
    put(bytes, range.start, digest.0.get(..range.len()).unwrap_or_default());
}

pub(super) enum Start {
    /// Magic with plausible next fields.
    Plausible,
    /// Magic, version or kind is wrong.
    Damaged,
}

/// Programs and plans also contain the magic. Adds hashed bytes to `hashed`.
pub(super) fn start(bytes: &[u8], hashed: &mut usize) -> Option<Start> {
    let plausible = if bytes.starts_with(&MAGIC) {
        is_plausible(u32_at(bytes, 16)) && is_plausible(u32_at(bytes, 20))
    } else if bytes.starts_with(&REFERENCE_MAGIC) {
        let version = u16_at(bytes, 8).map(u32::from);
        let length = u32_at(bytes, 10).and_then(|length| usize::try_from(length).ok());
        version == Some(FORMAT_VERSION)
            || is_plausible(version) && length.is_some_and(|length| length >= SHORT_BYTES)
    } else {
        false
    };
    if plausible {
        return Some(Start::Plausible);
    }
    is_damaged(bytes, hashed).then_some(Start::Damaged)
}

fn is_plausible(number: Option<u32>) -> bool {
    number.is_some_and(|number| (1..=LAST_VERSION).contains(&number))
}

fn is_damaged(bytes: &[u8], hashed: &mut usize) -> bool {
    [Kind::Bundle, Kind::Node, Kind::NodeReference].into_iter().any(|kind| {
        let (mut whole, length) = match kind {
            Kind::Bundle | Kind::Node => (long(kind), u64_at(bytes, 24)),
            Kind::NodeReference => (short(), u32_at(bytes, 10).map(u64::from)),
        };
        let HeaderLayout { magic, length: from, .. } = kind.layout();
        let begun = whole.iter().zip(bytes).take(magic.len());
        if begun.filter(|(right, found)| right != found).count() > 1 {
            return false;
        }
        let found = length.and_then(|length| bytes.get(..usize::try_from(length).ok()?));
        let Some((found, kept)) = found.and_then(|found| Some((found, found.get(from..)?))) else {
            return false;
        };
        *hashed = hashed.saturating_add(found.len());
        whole.truncate(from);
        whole.extend_from_slice(kept);
        whole.len() == found.len() && check_digest(kind, &whole).is_ok()
    })
}

/// Finds the first magic, also damaged ones with four of the first eight bytes.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    let second_half = |magic: &[u8]| [magic[4], magic[5], magic[6], magic[7]];
    let (first, second) = (second_half(&MAGIC), second_half(&REFERENCE_MAGIC));
    let mut from = 0;
    loop {
        let is_one = |byte: &u8| *byte == MAGIC[0] || *byte == first[0] || *byte == second[0];
        let at = from + bytes.get(from..)?.iter().position(is_one)?;
        let found = bytes.get(at..)?;
        if found.starts_with(&MAGIC[..4]) {
            return Some(at);
        }
        if at >= 4 && (found.starts_with(&first) || found.starts_with(&second)) {
            return Some(at - 4);
        }
        from = at + 1;
    }
}
