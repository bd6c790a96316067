//! The binary format of bundles and nodes, found in foreign files by scanning ([`scan`]); all checks precede any use
//! ([`read`]).
//!
//! Little endian; offset, size and content in bytes. Bundles and nodes:
//! ```text
//!  0  16  MAGIC
//! 16   4  FORMAT_VERSION
//! 20   4  kind: 1 bundle, 2 node
//! 24   8  length of the container
//! 32  32  BLAKE3 of everything but these 32 bytes
//! 64   8  length of the model
//! 72      the model, in postcard's encoding
//!         code objects: compressed ones unaligned, others aligned to 64 with zero gaps
//! ```
//!
//! Node references:
//! ```text
//!  0   8  REFERENCE_MAGIC
//!  8   2  FORMAT_VERSION
//! 10   4  length of the container
//! 14   8  the first 8 bytes of the BLAKE3 of all other bytes
//! 22      the model, in postcard's encoding, to the end
//! ```
//!
//! The encoding is canonical: readers reject any other. Compressed code is copied unchanged.
//!
//! Never does I/O, panics, or allocates without bound.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bytes::u64_at;
use crate::code::{CodeObject, KernelFacts, Target};
use crate::digest::Digest;
use crate::model::{Bundle, Node, NodeReference};
use crate::packed::{CodeBytes, StoredBytes};

mod header;

use header::{Header, Kind, LONG_BYTES, MODEL_OFFSET, SHORT_BYTES, Start};

/// A bundle's or node's first bytes: invalid UTF-8, and damaged by line end conversions.
pub const MAGIC: [u8; 16] = *b"\x89CUBINDER\r\n\x1a\n\0\0\0";

/// A node reference's first bytes.
pub const REFERENCE_MAGIC: [u8; 8] = *b"\x89CUBREF\n";

/// The only supported format version.
pub const FORMAT_VERSION: u32 = 2;

/// The driver reads cubins in place.
const CODE_ALIGNMENT: usize = 64;

/// The content of a container.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // one at a time, and moved once
pub enum Container {
    /// All plugins of a plugin library.
    Bundle(Bundle),
    /// One node with its code.
    Node(Node),
    /// One node whose code is in a library.
    NodeReference(NodeReference),
}

/// A checked container and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedContainer {
    /// Start in the input, in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
    /// Checked digest from its header.
    pub digest: Digest,
    /// Content.
    pub container: Container,
}

/// Why bytes are not a container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The magic is missing.
    #[error("not a Cubinder container: it does not start with the magic bytes")]
    NoMagic,
    /// Fewer bytes than the header states.
    #[error("truncated: found {found} bytes, expected {expected}")]
    Truncated {
        /// Stated length, or the header's.
        expected: u64,
        /// Available bytes.
        found: u64,
    },
    /// Another version wrote the container.
    #[error("format version {found}, but this version of Cubinder reads only version {FORMAT_VERSION}: {}",
        if *found > FORMAT_VERSION { "use a newer libcubinder.so" } else { "compile the plugins again" })]
    Version {
        /// Version in the header.
        found: u32,
    },
    /// Wrong digest in the header.
    #[error("damaged: found the digest {found}, expected {expected}")]
    Digest {
        /// The header's digest, hexadecimal.
        expected: String,
        /// The bytes' digest, as long.
        found: String,
    },
    /// [`scan`] exceeded its work limit.
    #[error("the rest of the file was not inspected: too many false container headers")]
    TooManyBeginnings,
    /// Not canonical or not valid.
    #[error("malformed: {0}")]
    Malformed(String),
}

#[derive(Serialize, Deserialize)]
struct CodeEntry {
    target: Target,
    digest: Digest,
    kernels: Vec<KernelFacts>,
    length: u64,
    /// Stored length, if compressed.
    packed: Option<u64>,
}

impl Container {
    /// Returns its code objects.
    #[must_use]
    pub fn code(&self) -> &[CodeObject] {
        match self {
            Container::Bundle(bundle) => &bundle.code,
            Container::Node(node) => &node.code,
            Container::NodeReference(_) => &[],
        }
    }
}

/// Replaces `code` in the encoded model.
fn entries(code: &[CodeObject]) -> Vec<CodeEntry> {
    let entry = |code: &CodeObject| CodeEntry {
        target: code.target,
        digest: code.digest,
        kernels: code.kernels.clone(),
        length: code.bytes.unpacked_length() as u64,
        packed: code.bytes.is_packed().then_some(code.bytes.stored().len() as u64),
    };
    code.iter().map(entry).collect()
}

/// Writes a bundle.
#[must_use]
pub fn write_bundle(bundle: &Bundle) -> Vec<u8> {
    let Bundle { producer, plugins, code } = bundle;
    write(Kind::Bundle, &encode(&(producer, plugins, entries(code))), code)
}

/// Writes a node.
#[must_use]
pub fn write_node(node: &Node) -> Vec<u8> {
    let Node { producer, plugin, attributes, input_ranks, workspace_bytes, code } = node;
    let model = (producer, plugin, attributes, input_ranks, workspace_bytes, entries(code));
    write(Kind::Node, &encode(&model), code)
}

/// Writes a reference to a node.
#[must_use]
pub fn write_node_reference(reference: &NodeReference) -> Vec<u8> {
    let mut bytes = header::short();
    bytes.extend_from_slice(&encode(reference));
    header::seal(Kind::NodeReference, &mut bytes);
    bytes
}

/// Reads the container at the start of `bytes`; unpacks all code to check it.
pub fn read(bytes: &[u8]) -> Result<LocatedContainer, ReadError> {
    let found = read_with(bytes, &|range| StoredBytes::owned(bytes.get(range).unwrap_or_default()))?;
    for code in found.container.code() {
        code.raw().map_err(|error| {
            ReadError::Malformed(format!("the {} code object {}: {error}", code.target, code.digest.short()))
        })?;
    }
    Ok(found)
}

/// Reads like [`read`], but shares `bytes` and leaves compressed code, mostly unused, to [`CodeBytes::unpack`].
pub fn read_shared(bytes: &Arc<[u8]>) -> Result<LocatedContainer, ReadError> {
    read_with(bytes, &|range| StoredBytes::Shared(Arc::clone(bytes), range))
}

/// Reads like [`read_shared`], but borrows the code.
pub fn read_mapped(bytes: &'static [u8]) -> Result<LocatedContainer, ReadError> {
    read_with(bytes, &|range| StoredBytes::Mapped(bytes.get(range).unwrap_or_default()))
}

/// Returns the checked digest and length of the container at the start of `bytes`.
pub fn digest(bytes: &[u8]) -> Result<(Digest, usize), ReadError> {
    checked(bytes).map(|(header, digest, _)| (digest, header.length))
}

fn checked(bytes: &[u8]) -> Result<(Header, Digest, &[u8]), ReadError> {
    let header = Header::read(bytes)?;
    let bytes = bytes
        .get(..header.length)
        .ok_or(ReadError::Truncated { expected: header.length as u64, found: bytes.len() as u64 })?;
    let digest = header::check_digest(header.kind, bytes)?;
    Ok((header, digest, bytes))
}

fn read_with(
    bytes: &[u8],
    hold: &dyn Fn(Range<usize>) -> StoredBytes,
) -> Result<LocatedContainer, ReadError> {
    let (header, digest, bytes) = checked(bytes)?;
    let container = match header.kind {
        Kind::Bundle => {
            let body = Body::split(bytes)?;
            let (producer, plugins, entries) = decode(body.model)?;
            let code = body.code_objects(entries, hold)?;
            Container::Bundle(Bundle { producer, plugins, code })
        }
        Kind::Node => {
            let body = Body::split(bytes)?;
            let (producer, plugin, attributes, input_ranks, workspace_bytes, entries) = decode(body.model)?;
            let code = body.code_objects(entries, hold)?;
            Container::Node(Node { producer, plugin, attributes, input_ranks, workspace_bytes, code })
        }
        Kind::NodeReference => {
            Container::NodeReference(decode(bytes.get(SHORT_BYTES..).unwrap_or_default())?)
        }
    };
    container.validate().map_err(ReadError::Malformed)?;
    Ok(LocatedContainer { offset: 0, length: header.length, digest, container })
}

/// Bytes hashed in vain, as a multiple of the file's size.
const MOST_IN_VAIN: usize = 16;

/// Finds every container in a file. Reports damaged ones; after too much work, ends with
/// [`ReadError::TooManyBeginnings`].
pub fn scan(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<LocatedContainer, ReadError>)> + '_ {
    // Only hashing disproves a start that claims the file's length.
    let most = bytes.len().saturating_mul(MOST_IN_VAIN).max(1 << 20);
    let (mut from, mut in_vain) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let offset = from + header::find(bytes.get(from..)?)?;
            let candidate = bytes.get(offset..)?;
            if in_vain > most {
                from = bytes.len();
                return Some((offset, Err(ReadError::TooManyBeginnings)));
            }
            from = offset + 1;
            let found = match header::start(candidate, &mut in_vain) {
                None => continue,
                Some(Start::Plausible) => read(candidate).map(|found| LocatedContainer { offset, ..found }),
                Some(Start::Damaged) => Err(malformed("its first bytes are damaged")),
            };
            if let (Err(_), Ok(header)) = (&found, Header::read(candidate))
                && header.length <= candidate.len()
            {
                in_vain = in_vain.saturating_add(header.length);
            }
            from = offset + found.as_ref().map_or(REFERENCE_MAGIC.len(), |found| found.length);
            return Some((offset, found));
        }
    })
}

struct Body<'a> {
    model: &'a [u8],
    bytes: &'a [u8],
    code_offset: usize,
}

impl<'a> Body<'a> {
    fn split(bytes: &'a [u8]) -> Result<Body<'a>, ReadError> {
        let malformed = || ReadError::Malformed("the model does not fit the container".to_owned());
        let length = u64_at(bytes, LONG_BYTES).ok_or_else(malformed)?;
        let length = usize::try_from(length).map_err(|_| malformed())?;
        let end = MODEL_OFFSET.checked_add(length).ok_or_else(malformed)?;
        let model = bytes.get(MODEL_OFFSET..end).ok_or_else(malformed)?;
        Ok(Body { model, bytes, code_offset: end })
    }

    fn code_objects(
        &self,
        entries: Vec<CodeEntry>,
        hold: &dyn Fn(Range<usize>) -> StoredBytes,
    ) -> Result<Vec<CodeObject>, ReadError> {
        let mut offset = self.code_offset;
        let mut objects = Vec::with_capacity(entries.len().min(1024));
        for entry in entries {
            let (bytes, end) = self.code_bytes(&entry, offset, hold).map_err(malformed)?;
            objects.push(CodeObject {
                target: entry.target,
                digest: entry.digest,
                kernels: entry.kernels,
                bytes,
            });
            offset = end;
        }
        if offset != self.bytes.len() {
            return Err(malformed("bytes follow the last code object"));
        }
        Ok(objects)
    }

    fn code_bytes(
        &self,
        entry: &CodeEntry,
        offset: usize,
        hold: &dyn Fn(Range<usize>) -> StoredBytes,
    ) -> Result<(CodeBytes, usize), &'static str> {
        const DOES_NOT_FIT: &str = "a code object does not fit the container";
        let start = if entry.packed.is_some() { offset } else { offset.next_multiple_of(CODE_ALIGNMENT) };
        let stored = usize::try_from(entry.packed.unwrap_or(entry.length)).map_err(|_| DOES_NOT_FIT)?;
        let end = start.checked_add(stored).ok_or(DOES_NOT_FIT)?;
        let code = self.bytes.get(start..end).ok_or(DOES_NOT_FIT)?;
        let held = hold(start..end);
        let gap = self.bytes.get(offset..start).ok_or(DOES_NOT_FIT)?;
        if gap.iter().any(|byte| *byte != 0) {
            return Err("the gap before a code object is not zero");
        }
        if entry.packed.is_some() {
            let length = usize::try_from(entry.length).ok();
            let packed = length.and_then(|length| CodeBytes::packed(held, length));
            return Ok((packed.ok_or("a code object is compressed although it should not be")?, end));
        }
        if Digest::compute(code) != entry.digest {
            return Err("the digest of a code object does not match");
        }
        Ok((CodeBytes::plain(held), end))
    }
}

fn malformed(what: &str) -> ReadError {
    ReadError::Malformed(what.to_owned())
}

fn write(kind: Kind, model: &[u8], code: &[CodeObject]) -> Vec<u8> {
    let mut bytes = header::long(kind);
    bytes.extend_from_slice(&(model.len() as u64).to_le_bytes());
    bytes.extend_from_slice(model);
    for object in code {
        if !object.bytes.is_packed() {
            bytes.resize(bytes.len().next_multiple_of(CODE_ALIGNMENT), 0);
        }
        bytes.extend_from_slice(object.bytes.stored());
    }
    header::seal(kind, &mut bytes);
    bytes
}

/// Encodes a value; empty on failure, which readers reject.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Rejects encodings that are not canonical.
pub(crate) fn decode<'a, T: Serialize + Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    let malformed = |what: &dyn std::fmt::Display| ReadError::Malformed(format!("the model: {what}"));
    let value: T = postcard::from_bytes(bytes).map_err(|error| malformed(&error))?;
    if encode(&value) == bytes { Ok(value) } else { Err(malformed(&"not the canonical encoding")) }
}

#[cfg(test)]
pub(crate) mod tests;
