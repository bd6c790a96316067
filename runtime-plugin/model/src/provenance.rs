//! The record of a bundle's or a node's inputs, in a *section* after the container, so that a bundle's digest does not
//! depend on it.
//!
//! Readers skip sections of unknown kind or edition. Little endian; offset, size and content in bytes:
//! ```text
//!  0  8  MAGIC
//!  8  2  kind: 1 the record
//! 10  2  edition of the kind: EDITION
//! 12  4  length of the section
//! 16  8  the first 8 bytes of the BLAKE3 of all other bytes
//! 24  8  the first 8 bytes of the digest of its container
//! 32     the record, in postcard's encoding, to the end
//! ```
//!
//! The encoding is canonical. Origins are ordered by use, so thinning a record equals compiling only that code.
//!
//! Never does I/O, panics, or allocates without bound.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::bytes::{put, u16_at, u32_at};
use crate::code::{CodeObject, Target};
use crate::container::{decode, encode};
use crate::digest::{Digest, ShortDigest};
use crate::model::Node;

/// A section's first bytes; scans for containers ignore them.
pub const MAGIC: [u8; 8] = *b"\x93CUBSEC\n";
/// The only supported edition.
pub const EDITION: u16 = 2;
/// Maximum size of a section in bytes.
pub const MAX_BYTES: usize = 16 << 20;

const KIND: u16 = 1;
const DIGEST: std::ops::Range<usize> = 16..24;
const HEADER_BYTES: usize = 32;

/// The inputs of a bundle or a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// Cubinder's version.
    pub cubinder: String,
    /// Compiler, if any.
    pub compiler: Option<Compiler>,
    /// Manifest of each plugin, in their order.
    pub manifests: Vec<File>,
    /// Files with measured times.
    pub tuning: Vec<File>,
    /// Origins of code, unique, in the order of `code`.
    pub origins: Vec<Origin>,
    /// Origins of each code object, as indices into `origins`.
    pub code: Vec<Vec<u32>>,
}

/// A compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    /// Name and version: `NVRTC 13.0`.
    pub name: String,
    /// Identifies its library's build.
    pub identity: Digest,
}

/// An input file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Path from the project's folder.
    pub path: String,
    /// Digest of its bytes.
    pub digest: Digest,
}

/// The origin of a code object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A compiled source text.
    Source {
        /// Text.
        file: File,
        /// Includes and tables.
        read: Read,
        /// Headers of the toolkit, included directly or not.
        headers: Option<Headers>,
        /// Whether only the preprocessor knows further includes.
        is_open: bool,
        /// Options of the project, as written.
        options: Vec<String>,
    },
    /// Precompiled code.
    Imported {
        /// File with the code.
        file: File,
        /// Producer that the manifest names.
        made_by: String,
    },
}

/// Headers of a toolkit, equal within a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// Number of files.
    pub count: u32,
    /// The [`Read::together`] digest.
    pub digest: Digest,
}

/// The files that a text includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// Each file.
    Files(Vec<File>),
    /// Their number and digest ([`Read::together`]): engines contain many nodes.
    Together(u32, Digest),
}

/// The content of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// Record.
    Provenance(Provenance),
    /// Unknown to this version.
    Unknown {
        /// Kind.
        kind: u16,
        /// Edition.
        edition: u16,
    },
}

impl Headers {
    /// Returns the headers, named as in `#include`.
    #[must_use]
    pub fn from_files(files: Vec<File>) -> Option<Headers> {
        let (count, digest) = Read::Files(files).together();
        (count > 0).then_some(Headers { count, digest })
    }
}

impl Read {
    /// Returns the number of files, and their list's BLAKE3.
    #[must_use]
    pub fn together(&self) -> (u32, Digest) {
        match self {
            Read::Files(files) => {
                (u32::try_from(files.len()).unwrap_or(u32::MAX), Digest::compute(&encode(files)))
            }
            Read::Together(count, digest) => (*count, *digest),
        }
    }
}

impl Origin {
    fn for_node(self) -> Origin {
        match self {
            Origin::Source { file, read, headers, is_open, options } if read != Read::Files(Vec::new()) => {
                let (count, digest) = read.together();
                Origin::Source { file, read: Read::Together(count, digest), headers, is_open, options }
            }
            other => other,
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let (file, read, options, made_by) = match self {
            Origin::Source { file, read: Read::Files(read), options, .. } => {
                (file, read.as_slice(), options.as_slice(), "")
            }
            Origin::Source { file, options, .. } => (file, [].as_slice(), options.as_slice(), ""),
            Origin::Imported { file, made_by } => (file, [].as_slice(), [].as_slice(), made_by.as_str()),
        };
        let files = std::iter::once(file).chain(read).map(|file| file.path.as_str());
        files.chain(options.iter().map(String::as_str)).chain([made_by])
    }
}

impl Provenance {
    /// Appends the origins of the next code object.
    pub fn add(&mut self, origins: impl IntoIterator<Item = Origin>) {
        let mut indices: Vec<u32> = Vec::new();
        for origin in origins {
            let known = self.origins.iter().position(|known| *known == origin);
            let index = known.unwrap_or(self.origins.len()) as u32;
            if known.is_none() {
                self.origins.push(origin);
            }
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        self.code.push(indices);
    }

    /// Returns the origins of a code object.
    pub fn origins_of(&self, code: usize) -> impl Iterator<Item = &Origin> {
        let indices = self.code.get(code).map_or(&[][..], Vec::as_slice);
        indices.iter().filter_map(|index| self.origins.get(*index as usize))
    }

    /// Returns the record of `some` of `all`.
    #[must_use]
    pub fn retain_code(self, all: &[CodeObject], some: &[CodeObject]) -> Provenance {
        let Provenance { origins, code, .. } = self.of_code(&places(all), some);
        Provenance { origins, code, ..self }
    }

    fn of_code(&self, places: &HashMap<Identity, usize>, some: &[CodeObject]) -> Provenance {
        let mut kept = Provenance::default();
        for code in some {
            let place = places.get(&identity(code));
            kept.add(place.into_iter().flat_map(|place| self.origins_of(*place).cloned()));
        }
        kept
    }

    fn validate(&self) -> Result<(), &'static str> {
        let mut next = 0;
        for index in self.code.iter().flatten() {
            match (*index).cmp(&next) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => next += 1,
                std::cmp::Ordering::Greater => return Err("the sources of code are out of order"),
            }
        }
        if next as usize != self.origins.len() {
            return Err("it has sources without code, or code without sources");
        }
        let files = self.manifests.iter().chain(&self.tuning).map(|file| file.path.as_str());
        let compiler = self.compiler.iter().map(|compiler| compiler.name.as_str());
        let texts = files.chain(compiler).chain([self.cubinder.as_str()]);
        let mut texts = texts.chain(self.origins.iter().flat_map(Origin::texts));
        match texts.any(|text| text.chars().any(char::is_control)) {
            true => Err("a text contains a control character"),
            false => Ok(()),
        }
    }
}

type Identity = (Target, Digest);

fn identity(code: &CodeObject) -> Identity {
    (code.target, code.digest)
}

fn places(all: &[CodeObject]) -> HashMap<Identity, usize> {
    all.iter().enumerate().rev().map(|(place, code)| (identity(code), place)).collect()
}

/// A record, parsed once for all nodes.
#[derive(Debug)]
pub struct ContainerRecord {
    record: Provenance,
    places: HashMap<Identity, usize>,
}

impl ContainerRecord {
    /// Returns the record of the container with digest `of` and code `all`, if readable.
    #[must_use]
    pub fn find(sections: &[u8], of: Digest, all: &[CodeObject]) -> Option<ContainerRecord> {
        match find(sections, of) {
            Ok(Some(Section::Provenance(mut record))) => {
                record.origins = record.origins.into_iter().map(Origin::for_node).collect();
                Some(ContainerRecord { record, places: places(all) })
            }
            _ => None,
        }
    }

    /// Returns the record of a node of plugin number `plugin`.
    #[must_use]
    pub fn of_node(&self, plugin: usize, node: &Node) -> Provenance {
        let whole = &self.record;
        let mut own = Provenance {
            cubinder: whole.cubinder.clone(),
            manifests: whole.manifests.get(plugin).cloned().into_iter().collect(),
            tuning: if node.plugin.tuning.is_empty() { Vec::new() } else { whole.tuning.clone() },
            ..whole.of_code(&self.places, &node.code)
        };
        if own.origins.iter().any(|origin| matches!(origin, Origin::Source { .. })) {
            own.compiler.clone_from(&whole.compiler);
        }
        own
    }

    /// Returns the section of [`ContainerRecord::of_node`].
    #[must_use]
    pub fn behind_node(&self, plugin: usize, node: &Node, digest: Digest) -> Vec<u8> {
        write(&self.of_node(plugin, node), digest)
    }
}

/// Writes the record of container `of`; empty above [`MAX_BYTES`].
#[must_use]
pub fn write(provenance: &Provenance, of: Digest) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&KIND.to_le_bytes());
    bytes.extend_from_slice(&EDITION.to_le_bytes());
    let model = encode(provenance);
    let length = HEADER_BYTES.saturating_add(model.len());
    let Some(length) = u32::try_from(length).ok().filter(|_| length <= MAX_BYTES) else { return Vec::new() };
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[0; DIGEST.end - DIGEST.start]);
    bytes.extend_from_slice(&of.shortened().0);
    bytes.extend_from_slice(&model);
    let digest = digest_of(&bytes).0;
    put(&mut bytes, DIGEST.start, &digest);
    bytes
}

fn digest_of(bytes: &[u8]) -> ShortDigest {
    Digest::without(bytes, DIGEST).shortened()
}

/// Splits `bytes` after the first section; `None` if it is incomplete.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if !bytes.starts_with(&MAGIC) {
        return None;
    }
    let length = usize::try_from(u32_at(bytes, 12)?).ok()?;
    if !(HEADER_BYTES..=MAX_BYTES).contains(&length) {
        return None;
    }
    bytes.split_at_checked(length)
}

/// Checks that `bytes` are undamaged sections of the container with digest `of`.
pub fn check(mut bytes: &[u8], of: Digest) -> Result<(), String> {
    while let Some((section, rest)) = split(bytes) {
        head(section, of)?;
        bytes = rest;
    }
    match bytes.len() {
        0 => Ok(()),
        1 => Err("1 byte follows it".to_owned()),
        more => Err(format!("{more} bytes follow it")),
    }
}

fn head(section: &[u8], of: Digest) -> Result<(u16, u16), String> {
    let head = u16_at(section, 8).zip(u16_at(section, 10)).filter(|_| section.len() >= HEADER_BYTES);
    let head = head.ok_or("it is shorter than its header")?;
    if section.get(DIGEST) != Some(&digest_of(section).0) {
        return Err("damaged: its digest does not match".to_owned());
    }
    if section.get(DIGEST.end..HEADER_BYTES) != Some(&of.shortened().0) {
        return Err("it belongs to another bundle or node".to_owned());
    }
    Ok(head)
}

/// Reads a section of the container with digest `of`.
pub fn read(section: &[u8], of: Digest) -> Result<Section, String> {
    let (kind, edition) = head(section, of)?;
    if (kind, edition) != (KIND, EDITION) {
        return Ok(Section::Unknown { kind, edition });
    }
    let provenance: Provenance = decode(section.get(HEADER_BYTES..).unwrap_or_default())
        .map_err(|error: crate::container::ReadError| error.to_string())?;
    provenance.validate().map_err(|error| format!("malformed: {error}"))?;
    Ok(Section::Provenance(provenance))
}

/// Returns the record or an unknown section. Fails as [`read`].
pub fn find(mut bytes: &[u8], of: Digest) -> Result<Option<Section>, String> {
    let mut unknown = None;
    while let Some((section, rest)) = split(bytes) {
        match read(section, of)? {
            found @ Section::Provenance(_) => return Ok(Some(found)),
            other => unknown = unknown.or(Some(other)),
        }
        bytes = rest;
    }
    Ok(unknown)
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
