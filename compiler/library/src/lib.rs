//! Writes bundles into prebuilt shared libraries and reads them, without a linker. Must not change files in place:
//! a process may have them mapped.
//!
//! The bundle is appended; the note's program header ([`cubinder_model::slot`]) becomes its `PT_LOAD`, and the
//! descriptor stores its distance and the original, for exact removal or replacement. New section headers follow,
//! so that `strip` and `patchelf` keep it.

mod elf;
mod error;
mod find;
mod plan;

use std::fs::Permissions;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use cubinder_model::Digest;
pub use cubinder_model::slot::Mode;
use cubinder_source::atomic_file::{AtomicFile, parent_folder};
use cubinder_source::source;

use elf::Elf;
pub use error::{LibraryError, Problem};
use find::Slot;
use plan::{Plan, Target};

/// A bundle in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Use of the bundle.
    pub mode: Mode,
    /// Byte range in the file.
    pub range: Range<u64>,
    /// Original's digest, if restorable.
    pub base: Option<Digest>,
}

/// Writes `base` with `bundle` to `out`, which may be `base`.
///
/// # Errors
/// The errors of [`draft`].
pub fn inject(base: &Path, bundle: &[u8], mode: Mode, out: &Path) -> Result<(), LibraryError> {
    persist(draft(base, bundle, mode, out)?, out)
}

/// Writes `base` with `bundle` to a draft beside `out`, with the permissions of `base`. A previous bundle is
/// replaced, or stays unmapped if a tool such as `strip` changed the file.
///
/// # Errors
/// `base` is damaged, not a runtime library, or without reserved program header; `bundle` is empty; `out` cannot be
/// written.
pub fn draft(base: &Path, bundle: &[u8], mode: Mode, out: &Path) -> Result<AtomicFile, LibraryError> {
    let (library, permissions) = open(base)?;
    let library = with_bundle(library, bundle, mode).map_err(LibraryError::for_file(base))?;
    write(&library, permissions, out).map_err(LibraryError::for_file(out))
}

/// Writes the original of `library` to `out`, which may be `library`.
///
/// # Errors
/// `library` has no bundle or was changed; those of [`draft`].
pub fn detach(library: &Path, out: &Path) -> Result<(), LibraryError> {
    let (attached, permissions) = open(library)?;
    let restored = restore(&attached).map_err(LibraryError::for_file(library))?;
    persist(write(&restored, permissions, out).map_err(LibraryError::for_file(out))?, out)
}

/// Returns the bundle of a library, if any.
///
/// # Errors
/// The file is unreadable, damaged, or not a runtime library ([`Problem::Kind`], [`Problem::NoDescriptor`]).
pub fn read(path: &Path) -> Result<Option<Attached>, LibraryError> {
    read_bytes(path, &read_file(path)?)
}

/// Returns the bytes for [`read_bytes`].
///
/// # Errors
/// Unreadable files and folders.
pub fn read_file(path: &Path) -> Result<Vec<u8>, LibraryError> {
    Ok(open(path)?.0)
}

/// Reads a library in memory; `path` names it in errors.
///
/// # Errors
/// The errors of [`read`].
pub fn read_bytes(path: &Path, bytes: &[u8]) -> Result<Option<Attached>, LibraryError> {
    attached(bytes).map_err(LibraryError::for_file(path))
}

fn open(path: &Path) -> Result<(Vec<u8>, Permissions), LibraryError> {
    let opening = |source| Problem::Io { action: "open it", source };
    let open = || {
        let file = source::open(path).map_err(opening)?;
        let metadata = file.metadata().map_err(opening)?;
        if !metadata.is_file() {
            return Err(Problem::Kind("it is a folder".to_owned()));
        }
        let bytes = source::read_opened(&file, source::LARGEST_BINARY);
        let bytes = bytes.map_err(|source| Problem::Io { action: "read the library", source })?;
        Ok((bytes, metadata.permissions()))
    };
    open().map_err(LibraryError::for_file(path))
}

fn write(library: &[u8], permissions: Permissions, out: &Path) -> Result<AtomicFile, Problem> {
    // Later errors would name the temporary file.
    std::fs::metadata(parent_folder(out))
        .map_err(|source| Problem::Io { action: "open its folder", source })?;
    let creating = |source| Problem::Unwritten { action: "create a temporary file beside it", source };
    let mut draft = AtomicFile::beside(out).map_err(creating)?;
    draft.file_mut().write_all(library).map_err(writing)?;
    draft.file().set_permissions(permissions).map_err(writing)?;
    Ok(draft)
}

fn persist(draft: AtomicFile, out: &Path) -> Result<(), LibraryError> {
    draft.persist(out).map_err(writing).map_err(LibraryError::for_file(out))
}

fn writing(source: std::io::Error) -> Problem {
    Problem::Unwritten { action: "write it", source }
}

fn attached(library: &[u8]) -> Result<Option<Attached>, Problem> {
    let elf = Elf::read(library)?;
    let slot = find::slot(library, &elf)?;
    let Some(attachment) = &slot.attachment else { return Ok(None) };
    let range =
        slot.bundle_address(attachment).and_then(|address| elf.file_range(address, attachment.length));
    let range =
        range.ok_or_else(|| Problem::Malformed("no segment maps the bundle of the descriptor".to_owned()))?;
    let base = attachment.undo.as_ref().map(|undo| Digest(undo.digest));
    Ok(Some(Attached { mode: attachment.mode, range, base }))
}

fn with_bundle(library: Vec<u8>, bundle: &[u8], mode: Mode) -> Result<Vec<u8>, Problem> {
    if bundle.is_empty() {
        return Err(Problem::EmptyBundle);
    }
    let length = bundle.len() as u64;
    let (mut library, plan) = match restore(&library) {
        Ok(restored) => plan_first(restored, mode, length)?,
        Err(Problem::NoBundle) => plan_first(library, mode, length)?,
        Err(Problem::Changed(_)) => plan_append(library, mode, length)?,
        Err(problem) => return Err(problem),
    };
    let range = plan.offset..plan.offset.saturating_add(length);
    let table = plan.sections.as_ref().map(|table| (table.offset, table.bytes.as_slice()));
    for (offset, bytes) in std::iter::once((plan.offset, bundle)).chain(table) {
        library.resize(usize::try_from(offset).map_err(|_| plan::too_large())?, 0);
        library.extend_from_slice(bytes);
    }
    plan.patches.iter().for_each(|patch| patch.apply(&mut library));
    match attached(&library)? {
        Some(found) if found.mode == mode && found.range == range => Ok(library),
        found => Err(Problem::ReadBack(format!("expected a bundle at {range:?}, found {found:?}"))),
    }
}

fn plan_first(library: Vec<u8>, mode: Mode, length: u64) -> Result<(Vec<u8>, Plan), Problem> {
    let elf = Elf::read(&library)?;
    let slot = find::slot(&library, &elf)?;
    let index = find::note(&library, &elf)?;
    let target = Target { elf: &elf, slot: &slot, length: library.len() as u64, index };
    let undo = plan::undo(&target, *blake3::hash(&library).as_bytes());
    let plan = target.attach(mode, length, undo)?;
    Ok((library, plan))
}

fn plan_append(library: Vec<u8>, mode: Mode, length: u64) -> Result<(Vec<u8>, Plan), Problem> {
    let elf = Elf::read(&library)?;
    let slot = find::slot(&library, &elf)?;
    let index = slot.attachment.as_ref().and_then(|attachment| find::bundle_segment(&elf, &slot, attachment));
    let index = index.ok_or(Problem::Changed("the bundle no longer has a separate segment"))?;
    let plan =
        Target { elf: &elf, slot: &slot, length: library.len() as u64, index }.attach(mode, length, None)?;
    Ok((library, plan))
}

fn restore(library: &[u8]) -> Result<Vec<u8>, Problem> {
    let elf = Elf::read(library)?;
    let slot: Slot = find::slot(library, &elf)?;
    let Some(attachment) = &slot.attachment else { return Err(Problem::NoBundle) };
    let (length, patches) = plan::detach(&elf, &slot, library.len() as u64).map_err(Problem::Changed)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(library.len());
    let mut restored = library.get(..length).unwrap_or_default().to_vec();
    patches.iter().for_each(|patch| patch.apply(&mut restored));
    let digest = *blake3::hash(&restored).as_bytes();
    match attachment.undo.as_ref().is_some_and(|undo| undo.digest == digest) {
        true => Ok(restored),
        false => Err(Problem::Changed("bytes outside the bundle differ")),
    }
}
