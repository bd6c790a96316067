//! What made a bundle or a node: a record that stands behind the container, where nobody who runs code looks.
//!
//! A container may be followed by *sections*. Whoever reads the container needs none of them and knows from their headers where they end and whether they are
//! damaged, so a section of a kind or an edition that a reader does not know is passed over. The record is the one kind that there is. It is no part of the container:
//! the digest of a bundle says which code and rules it has, whoever made it from whatever text.
//!
//! Layout of a section, little endian, offsets in bytes:
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 2 | kind: 1 the record |
//! | 10 | 2 | edition of the kind: [`EDITION`] |
//! | 12 | 4 | length of the section |
//! | 16 | 8 | the first 8 bytes of the BLAKE3 of everything but these 8 bytes: they tell damage |
//! | 24 | 8 | the first 8 bytes of the digest of the container that it is of |
//! | 32 | | the record, in postcard's encoding, to the end |
//!
//! The encoding is canonical, as that of containers is. What code was made from stands in it once, in the order in which code needs it; so the record
//! of some of the code is what making that code alone would have given.
//!
//! Never: I/O; a panic or an unbounded allocation for any input.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::bytes::{put, u16_at, u32_at};
use crate::code::{CodeObject, Target};
use crate::container::{decode, encode};
use crate::digest::{Digest, ShortDigest};
use crate::model::Node;

/// The first bytes of a section. Unlike those of containers from the first on, so that no scan for these takes one for a damaged container.
pub const MAGIC: [u8; 8] = *b"\x93CUBSEC\n";
/// The edition of the record that this crate writes, and the only one that it reads.
pub const EDITION: u16 = 2;
/// The most bytes of a section: thousands of files with long names.
pub const MAX_BYTES: usize = 16 << 20;

const KIND: u16 = 1;
const DIGEST: std::ops::Range<usize> = 16..24;
const HEADER_BYTES: usize = 32;

/// What made a bundle or a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// Cubinder's version.
    pub cubinder: String,
    /// The compiler of what was compiled from text; none where nothing was.
    pub compiler: Option<Compiler>,
    /// The manifest of each plugin, in their order.
    pub manifests: Vec<File>,
    /// What was measured of the plugins.
    pub tuning: Vec<File>,
    /// What code was made from, each once, in the order of `code`.
    pub origins: Vec<Origin>,
    /// For each code object of the container, in order, what it was made from, by indices into `origins`; several where the same code came of several texts.
    pub code: Vec<Vec<u32>>,
}

/// A compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    /// What it is called, with its version: `NVRTC 13.0`.
    pub name: String,
    /// Stands for its library: equal ones are the same build of it.
    pub identity: Digest,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its name from the project's folder on.
    pub path: String,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// What code was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Text that was compiled.
    Source {
        /// The text.
        file: File,
        /// What it includes, and the tables that it uses.
        read: Read,
        /// What it includes of the compiler's toolkit, with what that includes; none where it includes nothing of it.
        headers: Option<Headers>,
        /// Whether it includes more, under names that only the preprocessor could tell.
        is_open: bool,
        /// The options of the project, as they were given.
        options: Vec<String>,
    },
    /// Code that another compiler made.
    Imported {
        /// The file with the code.
        file: File,
        /// What made it, as far as the manifest says it.
        made_by: String,
    },
}

/// Headers of a toolkit: they are many, and the same for all who have its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// How many.
    pub count: u32,
    /// One digest for all: [`Read::together`] of their names in the toolkit and the digests of their bytes.
    pub digest: Digest,
}

/// The files that a text brings with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// Each.
    Files(Vec<File>),
    /// How many, and one digest for all ([`Read::together`]): nodes stand in an engine in great numbers.
    Together(u32, Digest),
}

/// What a section holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// The record.
    Provenance(Provenance),
    /// Something that this version does not know.
    Unknown {
        /// Its kind.
        kind: u16,
        /// Its edition.
        edition: u16,
    },
}

impl Headers {
    /// Of these files, named as `#include` names them.
    #[must_use]
    pub fn from_files(files: Vec<File>) -> Option<Headers> {
        let (count, digest) = Read::Files(files).together();
        (count > 0).then_some(Headers { count, digest })
    }
}

impl Read {
    /// The number of the files, and the BLAKE3 of the encoding of their list.
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
    /// Says what the next code object was made from.
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

    /// What a code object was made from.
    pub fn origins_of(&self, code: usize) -> impl Iterator<Item = &Origin> {
        let indices = self.code.get(code).map_or(&[][..], Vec::as_slice);
        indices.iter().filter_map(|index| self.origins.get(*index as usize))
    }

    /// The record of some of the code objects `all` that it is of.
    #[must_use]
    pub fn retain_code(self, all: &[CodeObject], some: &[CodeObject]) -> Provenance {
        let Provenance { origins, code, .. } = self.of_code(&places(all), some);
        Provenance { origins, code, ..self }
    }

    /// The origins of `some` of the code objects, whose places are `places`.
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
                std::cmp::Ordering::Greater => return Err("what code was made from is out of order"),
            }
        }
        if next as usize != self.origins.len() {
            return Err("it names what no code was made from, or code of what it does not name");
        }
        let files = self.manifests.iter().chain(&self.tuning).map(|file| file.path.as_str());
        let compiler = self.compiler.iter().map(|compiler| compiler.name.as_str());
        let texts = files.chain(compiler).chain([self.cubinder.as_str()]);
        let mut texts = texts.chain(self.origins.iter().flat_map(Origin::texts));
        match texts.any(|text| text.chars().any(char::is_control)) {
            true => Err("a text holds a control character"),
            false => Ok(()),
        }
    }
}

/// What tells a code object from others.
type Identity = (Target, Digest);

fn identity(code: &CodeObject) -> Identity {
    (code.target, code.digest)
}

/// Where each code object is. Of two that are the same, the first.
fn places(all: &[CodeObject]) -> HashMap<Identity, usize> {
    all.iter().enumerate().rev().map(|(place, code)| (identity(code), place)).collect()
}

/// The record of a bundle or a node, for who makes nodes of it: read once, so that what a node takes is up to the node and not to what else there is.
#[derive(Debug)]
pub struct ContainerRecord {
    /// With its origins as nodes have them.
    record: Provenance,
    places: HashMap<Identity, usize>,
}

impl ContainerRecord {
    /// The record among the `sections` behind the container with the digest `of`, whose code objects are `all`. Nothing where there is none that reads.
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

    /// The record of a node of plugin number `plugin`, whose code is some of the container's.
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

    /// What to put behind a node with the digest `digest`: see [`ContainerRecord::of_node`].
    #[must_use]
    pub fn behind_node(&self, plugin: usize, node: &Node, digest: Digest) -> Vec<u8> {
        write(&self.of_node(plugin, node), digest)
    }
}

/// Writes the record of the container with the digest `of`; nothing where it would be larger than any reader takes.
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

/// The section at the start of `bytes`, and what follows it; none where there is no section that ends in them. Looks at the header alone.
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

/// Looks whether undamaged sections of the container with the digest `of` fill `bytes`, of whatever kinds: for who does not need any of them.
///
/// # Errors
/// What is no section; damage; a section of another container.
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

/// The kind and the edition of a section of the container with the digest `of`.
fn head(section: &[u8], of: Digest) -> Result<(u16, u16), String> {
    let head = u16_at(section, 8).zip(u16_at(section, 10)).filter(|_| section.len() >= HEADER_BYTES);
    let head = head.ok_or("it is shorter than its header")?;
    if section.get(DIGEST) != Some(&digest_of(section).0) {
        return Err("damaged: it does not have the digest that it says".to_owned());
    }
    if section.get(DIGEST.end..HEADER_BYTES) != Some(&of.shortened().0) {
        return Err("it is of another bundle or node".to_owned());
    }
    Ok(head)
}

/// Reads a section of the container with the digest `of`.
///
/// # Errors
/// Damage; a section of another container; what no writer of this edition would write.
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

/// The record among the sections at the start of `bytes`, of the container with the digest `of`. What follows the sections is left alone.
///
/// # Errors
/// As [`read`], for the first section that is wrong; of which `None` tells that there is no record, and no section that this version does not know.
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
