//! Putting a bundle into a prebuilt shared library, without compiler or linker.
//!
//! The runtime library has a descriptor and a note (layout: [`cubinder_model::slot`]). The bundle goes to the end of
//! the file; the note's program header becomes a `PT_LOAD` that maps it, and the descriptor says how far from itself it
//! lies. The dynamic linker does the rest. A copy of the section headers with one more follows the bundle, so that
//! `strip` and `patchelf` carry it along.
//!
//! Owns reading and changing such files. Same inputs, same bytes: the descriptor also remembers what the library was,
//! so a bundle goes out without a trace, and replacing one gives what a fresh library would have got.
//! Never: knows what a bundle says; changes a file in place (a process may have it mapped); holds a bundle in memory.

mod elf;
mod error;
mod find;
mod plan;
mod view;
mod write;

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::ops::Range;
use std::path::Path;

use cubinder_model::Digest;
pub use cubinder_model::slot::Mode;

pub use error::{LibraryError, Problem};

use cubinder_source::source;
use cubinder_source::whole::Draft;

use elf::Elf;
use find::Slot;
use plan::{Plan, Target};
use view::View;

/// A bundle in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// What the library does with it.
    pub mode: Mode,
    /// Where it lies in the file, in bytes.
    pub range: Range<u64>,
    /// The digest of the library without it; `None` where that cannot be restored.
    pub base: Option<Digest>,
}

/// Writes the library `base` with `bundle` to `out`. A bundle that `base` has already is replaced.
///
/// # Errors
/// As [`inject_stream`].
pub fn inject(base: &Path, bundle: &[u8], mode: Mode, out: &Path) -> Result<(), LibraryError> {
    inject_stream(base, &mut { bundle }, bundle.len() as u64, mode, out)
}

/// Writes the library `base` to `out` with the `length` bytes that `bundle` gives. A bundle that `base` has already is
/// replaced: the result is what the library without it would have got, unless a tool such as `strip` changed the file in
/// between; then the new bundle is appended, and the old one's bytes stay in the file, mapped by nothing.
///
/// `out` appears whole or not at all, with the permissions of `base`, and may be `base`.
///
/// # Errors
/// `base` is no runtime library, is damaged, or has no program header to spare; `bundle` is empty, fails, or gives another
/// number of bytes; `out` cannot be written.
pub fn inject_stream(
    base: &Path,
    bundle: &mut dyn Read,
    length: u64,
    mode: Mode,
    out: &Path,
) -> Result<(), LibraryError> {
    place(draft_stream(base, bundle, length, mode, out)?, out)
}

/// As [`inject`], without putting the library into its place `out`: it lies beside it.
///
/// # Errors
/// As [`inject_stream`].
pub fn draft(base: &Path, bundle: &[u8], mode: Mode, out: &Path) -> Result<Draft, LibraryError> {
    draft_stream(base, &mut { bundle }, bundle.len() as u64, mode, out)
}

fn place(draft: Draft, out: &Path) -> Result<(), LibraryError> {
    draft.place(out).map_err(view::writing).map_err(LibraryError::at(out))
}

fn draft_stream(
    base: &Path,
    bundle: &mut dyn Read,
    length: u64,
    mode: Mode,
    out: &Path,
) -> Result<Draft, LibraryError> {
    let (mut view, permissions) = open(base)?;
    let plan = plan_injection(&mut view, mode, length).map_err(LibraryError::at(base))?;
    let library = write::Library { plan: Some((&plan, bundle, length)), permissions };
    library.draft(&mut view, out, |written| {
        let found = attached(&mut View::new(written)?)?;
        let range = plan.offset..plan.offset.saturating_add(length);
        match found {
            Some(found) if found.mode == mode && found.range == range => Ok(()),
            _ => Err(Problem::ReadBack(format!("expected a bundle at {range:?}, found {found:?}"))),
        }
    })
}

/// Writes the library `library` to `out` as it was before a bundle came in, byte for byte.
///
/// `out` appears whole or not at all, with the permissions of `library`, and may be `library`.
///
/// # Errors
/// `library` has no bundle, or a tool changed the file since the bundle came in; or as [`inject_stream`].
pub fn detach(library: &Path, out: &Path) -> Result<(), LibraryError> {
    let (mut view, permissions) = open(library)?;
    restore(&mut view).map_err(LibraryError::at(library))?;
    let draft =
        write::Library { plan: None, permissions }.draft(&mut view, out, |written| {
            match attached(&mut View::new(written)?)? {
                None => Ok(()),
                Some(found) => Err(Problem::ReadBack(format!("expected no bundle, found {found:?}"))),
            }
        })?;
    place(draft, out)
}

/// Says whether the library at `path` has a bundle, and where; `None` for a runtime library without one.
///
/// # Errors
/// The file cannot be read, is no runtime library ([`Problem::Kind`], [`Problem::NoDescriptor`]) or is damaged.
pub fn read(path: &Path) -> Result<Option<Attached>, LibraryError> {
    let (mut view, _) = open(path)?;
    attached(&mut view).map_err(LibraryError::at(path))
}

/// As [`read`], for a library in memory; `path` names it in errors.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(path: &Path, bytes: &[u8]) -> Result<Option<Attached>, LibraryError> {
    let view = View::new(Cursor::new(bytes));
    view.and_then(|mut view| attached(&mut view)).map_err(LibraryError::at(path))
}

fn open(path: &Path) -> Result<(View<File>, std::fs::Permissions), LibraryError> {
    let opening = |source| Problem::Io { action: "open it", source };
    let open = || {
        let file = source::open(path).map_err(opening)?;
        let metadata = file.metadata().map_err(opening)?;
        if !metadata.is_file() {
            return Err(Problem::Kind("it is a folder".to_owned()));
        }
        Ok((View::new(file)?, metadata.permissions()))
    };
    open().map_err(LibraryError::at(path))
}

fn attached<R: Read + Seek>(view: &mut View<R>) -> Result<Option<Attached>, Problem> {
    let elf = Elf::read(view)?;
    let slot = find::slot(view, &elf)?;
    let Some(attachment) = &slot.attachment else { return Ok(None) };
    let range =
        slot.bundle_address(attachment).and_then(|address| elf.file_range(address, attachment.length));
    let range = range.ok_or_else(|| {
        Problem::Malformed("the descriptor names a bundle that no segment maps from the file".to_owned())
    })?;
    let base = attachment.undo.as_ref().map(|undo| Digest(undo.digest));
    Ok(Some(Attached { mode: attachment.mode, range, base }))
}

/// Plans for what `view` shows; where it has a bundle that can go out, `view` afterwards shows the library without.
fn plan_injection<R: Read + Seek>(view: &mut View<R>, mode: Mode, length: u64) -> Result<Plan, Problem> {
    if length == 0 {
        return Err(Problem::EmptyBundle);
    }
    match restore(view) {
        Ok(()) | Err(Problem::NoBundle) => plan_first(view, mode, length),
        Err(Problem::Changed(_)) => plan_append(view, mode, length),
        Err(problem) => Err(problem),
    }
}

fn plan_first<R: Read + Seek>(view: &mut View<R>, mode: Mode, length: u64) -> Result<Plan, Problem> {
    let elf = Elf::read(view)?;
    let slot = find::slot(view, &elf)?;
    let index = find::note(view, &elf)?;
    let target = Target { elf: &elf, slot: &slot, length: view.length(), index };
    let undo = plan::undo(&target, view.digest()?);
    target.attach(mode, length, undo)
}

/// For a library that a tool changed after it got its bundle: the segment is taken over, the old bytes stay.
fn plan_append<R: Read + Seek>(view: &mut View<R>, mode: Mode, length: u64) -> Result<Plan, Problem> {
    let elf = Elf::read(view)?;
    let slot = find::slot(view, &elf)?;
    let index = slot.attachment.as_ref().and_then(|attachment| find::bundle_segment(&elf, &slot, attachment));
    let index = index.ok_or(Problem::Changed("the bundle has no segment of its own any more"))?;
    Target { elf: &elf, slot: &slot, length: view.length(), index }.attach(mode, length, None)
}

/// Makes `view` show the library without its bundle. Where that is impossible, it goes on showing the file.
fn restore<R: Read + Seek>(view: &mut View<R>) -> Result<(), Problem> {
    let elf = Elf::read(view)?;
    let slot: Slot = find::slot(view, &elf)?;
    let Some(attachment) = &slot.attachment else { return Err(Problem::NoBundle) };
    let (length, patches) = plan::detach(&elf, &slot, view.length()).map_err(Problem::Changed)?;
    view.show(length, patches);
    let digest = view.digest()?;
    if attachment.undo.as_ref().is_some_and(|undo| undo.digest == digest) {
        return Ok(());
    }
    view.show_file();
    Err(Problem::Changed("other bytes than the bundle's differ"))
}
