//! Writing a library, to take its place when it is whole.
//!
//! Never writes over an existing library: a process may have it mapped.

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::error::{LibraryError, Problem};
use super::plan::Plan;
use super::view::{View, writing};
use cubinder_source::whole::{Draft, folder_of};

/// What to write beside the bytes of a view.
pub(super) struct Library<'a> {
    /// Where a bundle goes in: how, its bytes, and how many they are.
    pub(super) plan: Option<(&'a Plan, &'a mut dyn Read, u64)>,
    /// Of the finished file.
    pub(super) permissions: Permissions,
}

impl Library<'_> {
    /// Writes `view`, and a bundle if there is one, to a file beside `out`, and has `check` read it.
    pub(super) fn draft<R: Read + Seek>(
        self,
        view: &mut View<R>,
        out: &Path,
        check: impl FnOnce(File) -> Result<(), Problem>,
    ) -> Result<Draft, LibraryError> {
        let write = || {
            // Asked first, because the answer about the file beside it would name that one.
            fs::metadata(folder_of(out))
                .map_err(|source| Problem::Io { action: "open its folder", source })?;
            let creating =
                |source| Problem::Unwritten { action: "create a temporary file beside it", source };
            let mut draft = Draft::beside(out).map_err(creating)?;
            let file = draft.file_mut();
            view.copy(file)?;
            if let Some((plan, bundle, length)) = self.plan {
                fill(file, plan.offset.saturating_sub(view.length()))?;
                stream(bundle, length, file)?;
                finish(plan, length, file)?;
            }
            check(file.try_clone().map_err(writing)?)?;
            file.set_permissions(self.permissions).map_err(writing)?;
            Ok(draft)
        };
        write().map_err(LibraryError::at(out))
    }
}

/// Writes the section headers and the patches.
fn finish(plan: &Plan, length: u64, file: &mut File) -> Result<(), Problem> {
    if let Some(table) = &plan.sections {
        fill(file, table.offset.saturating_sub(plan.offset.saturating_add(length)))?;
        file.write_all(&table.bytes).map_err(writing)?;
    }
    for patch in &plan.patches {
        file.seek(SeekFrom::Start(patch.offset)).map_err(writing)?;
        file.write_all(&patch.bytes).map_err(writing)?;
    }
    Ok(())
}

/// Writes zeros, less than a page of them.
fn fill(file: &mut File, count: u64) -> Result<(), Problem> {
    std::io::copy(&mut std::io::repeat(0).take(count), file).map_err(writing)?;
    Ok(())
}

/// Writes the bundle, which must have exactly `length` bytes.
fn stream(bundle: &mut dyn Read, length: u64, file: &mut File) -> Result<(), Problem> {
    let mut buffer = vec![0; 64 * 1024];
    let mut found = 0_u64;
    loop {
        let count = match bundle.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Problem::Io { action: "read the bundle", source }),
        };
        found = found.saturating_add(count as u64);
        if found > length {
            return Err(Problem::BundleLength { announced: length, found: length.saturating_add(1) });
        }
        file.write_all(buffer.get(..count).unwrap_or_default()).map_err(writing)?;
    }
    if found == length { Ok(()) } else { Err(Problem::BundleLength { announced: length, found }) }
}
