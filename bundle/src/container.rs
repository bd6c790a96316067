//! The binary format of bundles and nodes: one byte string that says what it is, how long it is and what its digest is.
//!
//! A container stands inside other people's files: the data of a shared library, the serialized fields of an engine.
//! So it can be found by scanning ([`scan`]), and nothing in it is used before all of it has been checked ([`read`]).
//!
//! Layout, little endian, offsets in bytes:
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 16 | [`MAGIC`] |
//! | 16 | 4 | [`FORMAT_VERSION`] |
//! | 20 | 4 | kind: 1 bundle, 2 node, 3 node reference |
//! | 24 | 8 | length of the container |
//! | 32 | 32 | BLAKE3 of everything but these 32 bytes |
//! | 64 | 8 | length of the model |
//! | 72 | | the model, in postcard's encoding |
//! | aligned to 64 | | code objects in order, each aligned to 64, gaps are zero |
//!
//! The encoding is canonical: equal values give equal bytes, and a reader refuses bytes that a writer would not write.
//!
//! Never: I/O; a panic or an unbounded allocation for any input.

use serde::{Deserialize, Serialize};

use crate::code::{CodeBytes, CodeObject, KernelFacts, Target};
use crate::digest::Digest;
use crate::model::{Bundle, Node, NodeReference, Plugin};
use crate::value::Value;

/// The first bytes of a container. Not valid UTF-8, and damaged by transfers that touch line ends.
pub const MAGIC: [u8; 16] = *b"\x89CUBINDER\r\n\x1a\n\0\0\0";

/// The version of the format that this crate writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 2;

const DIGEST_OFFSET: usize = 32;
const HEADER_BYTES: usize = 64;
const MODEL_OFFSET: usize = 72;
/// Code is aligned for the driver, which reads cubins as ELF structures in place.
const CODE_ALIGNMENT: usize = 64;

/// What a container holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Container {
    /// Everything one plugin library carries.
    Bundle(Bundle),
    /// One node with its code.
    Node(Node),
    /// One node whose code lies in a library.
    NodeReference(NodeReference),
}

/// A container that was found and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Where it begins, bytes from the start of what was read.
    pub offset: usize,
    /// How long it is, bytes.
    pub length: usize,
    /// The digest in its header, which is right.
    pub digest: Digest,
    /// What it holds.
    pub container: Container,
}

/// Why bytes are not a container that this version can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The magic is not there.
    #[error("not a Cubinder container: it does not begin with the magic bytes")]
    NoMagic,
    /// There are fewer bytes than the header promises.
    #[error("truncated: {found} bytes where the container has {expected}")]
    Truncated {
        /// What the header says, or the size of the header.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// Another version wrote it.
    #[error("format version {found}, and this version of Cubinder reads version {FORMAT_VERSION} only: {}",
        if *found > FORMAT_VERSION { "use a newer libcubinder.so" } else { "compile the plugins again" })]
    Version {
        /// The version that the header says.
        found: u32,
    },
    /// The digest in the header is not that of the bytes.
    #[error("damaged: the digest of the bytes is {found}, the header says {expected}")]
    Digest {
        /// From the header.
        expected: Digest,
        /// Of the bytes.
        found: Digest,
    },
    /// The digest is right, and the contents still are not what a writer would write.
    #[error("malformed: {0}")]
    Malformed(String),
}

#[derive(Serialize, Deserialize)]
struct BundleModel {
    producer: String,
    plugins: Vec<Plugin>,
    code: Vec<CodeEntry>,
}

#[derive(Serialize, Deserialize)]
struct NodeModel {
    producer: String,
    plugin: Plugin,
    attributes: Vec<Value>,
    input_ranks: Option<Vec<u8>>,
    workspace_bytes: Option<u64>,
    code: Vec<CodeEntry>,
}

/// A code object without its bytes, which follow the model.
#[derive(Serialize, Deserialize)]
struct CodeEntry {
    target: Target,
    digest: Digest,
    kernels: Vec<KernelFacts>,
    length: u64,
}

impl From<&CodeObject> for CodeEntry {
    fn from(code: &CodeObject) -> CodeEntry {
        CodeEntry {
            target: code.target,
            digest: code.digest,
            kernels: code.kernels.clone(),
            length: code.bytes.len() as u64,
        }
    }
}

/// Writes a bundle.
#[must_use]
pub fn write_bundle(bundle: &Bundle) -> Vec<u8> {
    let model = BundleModel {
        producer: bundle.producer.clone(),
        plugins: bundle.plugins.clone(),
        code: bundle.code.iter().map(CodeEntry::from).collect(),
    };
    write(Kind::Bundle, &encode(&model), &bundle.code)
}

/// Writes a node.
#[must_use]
pub fn write_node(node: &Node) -> Vec<u8> {
    let model = NodeModel {
        producer: node.producer.clone(),
        plugin: node.plugin.clone(),
        attributes: node.attributes.clone(),
        input_ranks: node.input_ranks.clone(),
        workspace_bytes: node.workspace_bytes,
        code: node.code.iter().map(CodeEntry::from).collect(),
    };
    write(Kind::Node, &encode(&model), &node.code)
}

/// Writes a reference to a node.
#[must_use]
pub fn write_node_reference(reference: &NodeReference) -> Vec<u8> {
    write(Kind::NodeReference, &encode(reference), &[])
}

/// Reads the container at the start of `bytes`; what follows it is left alone.
///
/// # Errors
/// Every way in which the bytes are not what a writer of this version would write.
pub fn read(bytes: &[u8]) -> Result<Found, ReadError> {
    read_with(bytes, &|code| CodeBytes::from(code.to_vec()))
}

/// As [`read`], for bytes that stay where they are: code objects are not copied.
///
/// # Errors
/// As [`read`].
pub fn read_mapped(bytes: &'static [u8]) -> Result<Found, ReadError> {
    let start = bytes.as_ptr().addr();
    read_with(bytes, &|code| {
        let offset = code.as_ptr().addr().wrapping_sub(start);
        let mapped = bytes.get(offset..offset.wrapping_add(code.len()));
        mapped.map_or_else(|| CodeBytes::from(code.to_vec()), CodeBytes::Mapped)
    })
}

/// The digest of the container at the start of `bytes`, once it was found to be right: equal digests are equal containers.
///
/// # Errors
/// Where there is no container, or a damaged one.
pub fn digest(bytes: &[u8]) -> Result<Digest, ReadError> {
    checked(bytes).map(|(header, _)| header.digest)
}

/// The header and the bytes of the container, which have the digest that the header says.
fn checked(bytes: &[u8]) -> Result<(Header, &[u8]), ReadError> {
    let header = Header::read(bytes)?;
    let bytes = bytes
        .get(..header.length)
        .ok_or(ReadError::Truncated { expected: header.length as u64, found: bytes.len() as u64 })?;
    let found = digest_of(bytes);
    if found != header.digest {
        return Err(ReadError::Digest { expected: header.digest, found });
    }
    Ok((header, bytes))
}

fn read_with(bytes: &[u8], hold: &dyn Fn(&[u8]) -> CodeBytes) -> Result<Found, ReadError> {
    let (header, bytes) = checked(bytes)?;
    let body = Body::split(bytes)?;
    let container = match header.kind {
        Kind::Bundle => {
            let model: BundleModel = decode(body.model)?;
            let code = body.code_objects(model.code, hold)?;
            Container::Bundle(Bundle { producer: model.producer, plugins: model.plugins, code })
        }
        Kind::Node => {
            let model: NodeModel = decode(body.model)?;
            let code = body.code_objects(model.code, hold)?;
            Container::Node(Node {
                producer: model.producer,
                plugin: model.plugin,
                attributes: model.attributes,
                input_ranks: model.input_ranks,
                workspace_bytes: model.workspace_bytes,
                code,
            })
        }
        Kind::NodeReference => {
            body.code_objects(Vec::new(), hold)?;
            Container::NodeReference(decode(body.model)?)
        }
    };
    container.validate().map_err(ReadError::Malformed)?;
    Ok(Found { offset: 0, length: header.length, digest: header.digest, container })
}

/// Finds every container in a file, such as an engine. A place that begins as a container and is none is reported with
/// its offset, since it may be one that was damaged.
pub fn scan(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<Found, ReadError>)> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let offset = from + find(bytes.get(from..)?, &MAGIC)?;
            let candidate = bytes.get(offset..)?;
            from = offset + MAGIC.len();
            if plausible(candidate) {
                let found = read(candidate).map(|found| Found { offset, ..found });
                from = offset + found.as_ref().map_or(MAGIC.len(), |found| found.length);
                return Some((offset, found));
            }
        }
    })
}

/// Whether what follows the magic can be a header. The magic alone also stands in every program that reads containers,
/// so in every plan with a plugin library inside.
fn plausible(bytes: &[u8]) -> bool {
    let version = u32_at(bytes, 16).is_some_and(|version| (1..=0xffff).contains(&version));
    let kind = u32_at(bytes, 20).is_some_and(|kind| (1..=0xffff).contains(&kind));
    version && kind && u64_at(bytes, 24).is_some_and(|length| length >= MODEL_OFFSET as u64)
}

fn find(bytes: &[u8], needle: &[u8; 16]) -> Option<usize> {
    let mut from = 0;
    loop {
        let candidate = from + bytes.get(from..)?.iter().position(|byte| *byte == needle[0])?;
        if bytes.get(candidate..candidate + needle.len())? == needle {
            return Some(candidate);
        }
        from = candidate + 1;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bundle = 1,
    Node = 2,
    NodeReference = 3,
}

struct Header {
    kind: Kind,
    length: usize,
    digest: Digest,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, ReadError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(ReadError::NoMagic);
        }
        let truncated = || ReadError::Truncated { expected: HEADER_BYTES as u64, found: bytes.len() as u64 };
        let version = u32_at(bytes, 16).ok_or_else(truncated)?;
        if version != FORMAT_VERSION {
            return Err(ReadError::Version { found: version });
        }
        let kind = match u32_at(bytes, 20).ok_or_else(truncated)? {
            1 => Kind::Bundle,
            2 => Kind::Node,
            3 => Kind::NodeReference,
            other => return Err(ReadError::Malformed(format!("kind {other}, expected 1, 2 or 3"))),
        };
        let length = u64_at(bytes, 24).ok_or_else(truncated)?;
        let digest = bytes
            .get(DIGEST_OFFSET..HEADER_BYTES)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Digest)
            .ok_or_else(truncated)?;
        let expected = ReadError::Truncated { expected: length, found: bytes.len() as u64 };
        let length = usize::try_from(length).map_err(|_| expected)?;
        if length < MODEL_OFFSET {
            return Err(ReadError::Malformed(format!("length {length} is less than the header's")));
        }
        Ok(Header { kind, length, digest })
    }
}

/// The part of a container after its header.
struct Body<'a> {
    model: &'a [u8],
    bytes: &'a [u8],
    code_offset: usize,
}

impl<'a> Body<'a> {
    fn split(bytes: &'a [u8]) -> Result<Body<'a>, ReadError> {
        let malformed = || ReadError::Malformed("the model does not fit the container".to_owned());
        let length = u64_at(bytes, HEADER_BYTES).ok_or_else(malformed)?;
        let length = usize::try_from(length).map_err(|_| malformed())?;
        let end = MODEL_OFFSET.checked_add(length).ok_or_else(malformed)?;
        let model = bytes.get(MODEL_OFFSET..end).ok_or_else(malformed)?;
        Ok(Body { model, bytes, code_offset: end })
    }

    fn code_objects(
        &self,
        entries: Vec<CodeEntry>,
        hold: &dyn Fn(&[u8]) -> CodeBytes,
    ) -> Result<Vec<CodeObject>, ReadError> {
        let malformed = |what: &str| ReadError::Malformed(what.to_owned());
        let mut offset = self.code_offset;
        let mut objects = Vec::with_capacity(entries.len().min(1024));
        for entry in entries {
            let start = offset.next_multiple_of(CODE_ALIGNMENT);
            let length = usize::try_from(entry.length).ok();
            let end = length.and_then(|length| start.checked_add(length));
            let code = end.and_then(|end| self.bytes.get(start..end));
            let (Some(code), Some(gap)) = (code, self.bytes.get(offset..start)) else {
                return Err(malformed("a code object does not fit the container"));
            };
            if gap.iter().any(|byte| *byte != 0) {
                return Err(malformed("the gap before a code object is not zero"));
            }
            if Digest::of(code) != entry.digest {
                return Err(malformed("a code object does not have its digest"));
            }
            objects.push(CodeObject {
                target: entry.target,
                digest: entry.digest,
                kernels: entry.kernels,
                bytes: hold(code),
            });
            offset = start + code.len();
        }
        if offset != self.bytes.len() {
            return Err(malformed("bytes follow the last code object"));
        }
        Ok(objects)
    }
}

fn write(kind: Kind, model: &[u8], code: &[CodeObject]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(
        MODEL_OFFSET + model.len() + code.iter().map(|code| code.bytes.len() + CODE_ALIGNMENT).sum::<usize>(),
    );
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(kind as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 8 + 32]);
    bytes.extend_from_slice(&(model.len() as u64).to_le_bytes());
    bytes.extend_from_slice(model);
    for object in code {
        bytes.resize(bytes.len().next_multiple_of(CODE_ALIGNMENT), 0);
        bytes.extend_from_slice(&object.bytes);
    }
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[24..32].copy_from_slice(&length);
    let digest = digest_of(&bytes);
    bytes[DIGEST_OFFSET..HEADER_BYTES].copy_from_slice(&digest.0);
    bytes
}

/// The digest of a container: of all its bytes but the digest's own.
fn digest_of(bytes: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..DIGEST_OFFSET]);
    hasher.update(&bytes[HEADER_BYTES..]);
    Digest(*hasher.finalize().as_bytes())
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// Encoding into memory fails only where a value has no encoding, and none of these types is of that kind; an empty
/// model would be refused by every reader.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Refuses what a writer would write in other bytes, such as a number in more bytes than it needs.
fn decode<'a, T: Serialize + Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    let malformed = |what: &dyn std::fmt::Display| ReadError::Malformed(format!("the model: {what}"));
    let value: T = postcard::from_bytes(bytes).map_err(|error| malformed(&error))?;
    if encode(&value) == bytes { Ok(value) } else { Err(malformed(&"not as a writer encodes it")) }
}

#[cfg(test)]
#[path = "container_tests.rs"]
pub(crate) mod tests;
