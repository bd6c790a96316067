//! Writes files atomically, by renaming a synced draft `.cubinder-XXXXXX.tmp` beside the target. Drafts are locked;
//! [`sweep`] deletes the unlocked ones of killed processes. Must not know contents or write messages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FsWord;
use tempfile::{NamedTempFile, PersistError, TempPath};

use crate::diagnostic::Diagnostic;

const BEFORE: &str = ".cubinder-";
const BEHIND: &str = ".tmp";
const UNLOCKED: &str = ".part";
const RANDOM: usize = 6;

/// Attempts if another process deletes the draft.
const TRIES: usize = 16;

/// Draft, deleted on drop.
#[derive(Debug)]
pub struct AtomicFile(NamedTempFile);

impl AtomicFile {
    /// Sweeps the folder and creates an empty draft beside `place`: not a pipe, device or socket.
    pub fn beside(place: &Path) -> io::Result<AtomicFile> {
        may_replace(place)?;
        sweep(parent_folder(place));
        AtomicFile::in_folder(parent_folder(place))
    }

    /// Creates a draft without checking its target or sweeping.
    pub fn in_folder(folder: &Path) -> io::Result<AtomicFile> {
        let new = |builder: &mut tempfile::Builder<'_, '_>| {
            builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
        };
        for _ in 0..TRIES {
            let file = new(&mut named())?;
            match file.as_file().try_lock() {
                Ok(()) if is_at(file.as_file(), file.path()) => return Ok(AtomicFile(file)),
                Ok(()) | Err(fs::TryLockError::WouldBlock) => {}
                // Never swept, because it is unlockable.
                Err(fs::TryLockError::Error(_)) => return new(named().suffix(UNLOCKED)).map(AtomicFile),
            }
        }
        Err(io::Error::other("another process removes new files in this folder"))
    }

    /// Creates a draft with `bytes`, as [`AtomicFile::beside`].
    pub fn with_bytes(place: &Path, bytes: &[u8]) -> io::Result<AtomicFile> {
        let mut draft = AtomicFile::beside(place)?;
        draft.file_mut().write_all(bytes)?;
        Ok(draft)
    }

    /// Returns the draft's path, for another process that writes it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the open draft.
    pub fn file_mut(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// Returns the open draft.
    #[must_use]
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// Syncs the draft and replaces `place`.
    pub fn persist(self, place: &Path) -> io::Result<()> {
        // Some file systems detect full disks only now; unsynced files may be empty after power failure.
        self.file().sync_all()?;
        self.persist_unsynced(place)
    }

    /// Replaces `place` without syncing, for contents that readers verify.
    pub fn persist_unsynced(self, place: &Path) -> io::Result<()> {
        self.put(place).map(drop)
    }

    fn put(self, place: &Path) -> io::Result<File> {
        may_replace(place)?;
        self.0.persist(place).map_err(|error| error.error)
    }
}

/// Failed placement.
#[derive(Debug)]
pub struct NotPersisted {
    /// Its path.
    pub place: PathBuf,
    /// System error.
    pub error: io::Error,
    /// Paths that could not be restored.
    pub changed: Vec<PathBuf>,
}

impl From<NotPersisted> for Diagnostic {
    fn from(found: NotPersisted) -> Diagnostic {
        let error = file_error("write", &found.place, &found.error);
        if found.changed.is_empty() {
            return error;
        }
        let changed: Vec<String> =
            found.changed.iter().map(|place| format!("`{}`", place.display())).collect();
        error
            .note(format!("already written and not restored: {}", changed.join(", ")))
            .help("the files are from two different runs: generate all of them again")
    }
}

/// Replaces all files or none, in order, never interleaved with another process. Returns the first failure, restoring
/// previous files by hard links if possible. A killed process leaves the first ones replaced.
pub fn persist_all<P: AsRef<Path>>(files: Vec<(AtomicFile, P)>) -> Result<(), NotPersisted> {
    replace_files(files, |draft, place, is_last| {
        let before = match is_last {
            // The last replacement is never undone.
            true => Before::Unknown,
            false if is_absent(place) => Before::Absent,
            false => second_name(place).map_or(Before::Unknown, |(name, file)| Before::Kept(name, file)),
        };
        Ok(Placed { file: draft.put(place)?, place: place.to_owned(), before })
    })
}

/// Creates all files or none, in order. Returns the first failure, including existing files.
pub fn persist_all_new<P: AsRef<Path>>(files: Vec<(AtomicFile, P)>) -> Result<(), NotPersisted> {
    replace_files(files, |draft, place, _| {
        Ok(Placed { file: put_new(draft, place)?, place: place.to_owned(), before: Before::Absent })
    })
}

/// Renames without replacing, or links (`persist_noclobber`); else, as on 9P under Windows, uses [`claim`].
fn put_new(draft: AtomicFile, place: &Path) -> io::Result<File> {
    draft.0.persist_noclobber(place).or_else(|refused| put_otherwise(refused, place))
}

fn put_otherwise(refused: PersistError, place: &Path) -> io::Result<File> {
    match is_unknown_there(&refused.error) {
        true => claim(AtomicFile(refused.file), place),
        false => Err(refused.error),
    }
}

/// Unsupported calls (link(2), rename(2)), or a missing permission, for which the next call fails too.
fn is_unknown_there(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unknown = [Errno::PERM, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|error| unknown.contains(&error))
}

/// Reserves the name with an empty file, then replaces it. A killed process leaves it.
fn claim(draft: AtomicFile, place: &Path) -> io::Result<File> {
    let claim = File::create_new(place)?;
    draft.put(place).map_err(|error| match is_at(&claim, place) && fs::remove_file(place).is_err() {
        true => io::Error::new(error.kind(), format!("{error}; an empty file remains")),
        false => error,
    })
}

struct Placed {
    file: File,
    place: PathBuf,
    before: Before,
}

enum Before {
    Absent,
    /// Locked file, which is never swept.
    Kept(TempPath, File),
    Unknown,
}

fn replace_files<P: AsRef<Path>>(
    files: Vec<(AtomicFile, P)>,
    one: impl Fn(AtomicFile, &Path, bool) -> io::Result<Placed>,
) -> Result<(), NotPersisted> {
    let not_placed =
        |place: &Path, error| NotPersisted { place: place.to_owned(), error, changed: Vec::new() };
    for (draft, place) in &files {
        let place = place.as_ref();
        may_replace(place).map_err(|error| not_placed(place, error))?;
        draft.file().sync_all().map_err(|error| not_placed(place, error))?;
    }
    let _alone = alone_in(files.iter().map(|(_, place)| parent_folder(place.as_ref())));
    let mut done: Vec<Placed> = Vec::new();
    let last = files.len().saturating_sub(1);
    for (index, (draft, place)) in files.into_iter().enumerate() {
        let place = place.as_ref();
        match one(draft, place, index == last) {
            Ok(placed) => done.push(placed),
            Err(error) => {
                let changed = done.into_iter().rev().filter_map(undo).collect();
                return Err(NotPersisted { changed, ..not_placed(place, error) });
            }
        }
    }
    Ok(())
}

/// Returns the path on failure. Keeps other processes' newer files.
fn undo(placed: Placed) -> Option<PathBuf> {
    let Placed { file, place, before } = placed;
    if !is_at(&file, &place) {
        return None;
    }
    let is_undone = match before {
        Before::Absent => fs::remove_file(&place).is_ok(),
        Before::Kept(old, _locked) => old.persist(&place).is_ok(),
        Before::Unknown => false,
    };
    (!is_undone).then_some(place)
}

/// Rejects pipes, devices, sockets, and links to them: replacing `/dev/null` affects all programs. Replaces other links themselves.
fn may_replace(place: &Path) -> io::Result<()> {
    if fs::read_link(place).is_ok_and(|named| named.starts_with("/proc")) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular));
    }
    match fs::metadata(place) {
        // The system reports folders.
        Ok(facts) if !facts.is_file() && !facts.is_dir() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it is a pipe, a device or a socket, and only regular files are replaced")]
struct NotRegular;

/// Waits of [`PAUSE`] for a folder's lock, 5 s in total.
const PAUSES: usize = 1000;

const PAUSE: Duration = Duration::from_millis(5);

/// Excludes other processes that place several files, until dropped. Continues unlocked on failure: single files are atomic.
fn alone_in<'p>(folders: impl Iterator<Item = &'p Path>) -> Vec<File> {
    // A fixed order prevents deadlocks.
    let folders: BTreeSet<PathBuf> = folders.filter_map(|folder| folder.canonicalize().ok()).collect();
    let mut pauses = std::iter::repeat_n(PAUSE, PAUSES);
    let locked = |folder: PathBuf| {
        let file = File::open(folder).ok()?;
        loop {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(pauses.next()?),
                Err(fs::TryLockError::Error(_)) => return None,
            }
        }
    };
    folders.into_iter().filter_map(locked).collect()
}

fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(BEFORE).suffix(BEHIND).rand_bytes(RANDOM);
    builder
}

fn is_absent(place: &Path) -> bool {
    fs::symlink_metadata(place).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// For restoring the file.
fn second_name(place: &Path) -> io::Result<(TempPath, File)> {
    let file = OpenOptions::new().read(true).custom_flags(nonblock()).open(place)?;
    // If this fails, `sweep_one` keeps the file, which it cannot lock either.
    let _ = file.try_lock();
    let link = named().make_in(parent_folder(place), |name| fs::hard_link(place, name))?;
    Ok((link.into_temp_path(), file))
}

/// Deletes drafts of ended processes.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_of_draft(&entry.file_name()) && is_file() {
            sweep_one(&entry.path(), &SHARED);
        }
    }
}

fn sweep_one(path: &Path, shared: &[FsWord]) {
    // Network locks need writable files.
    let open =
        |can_write: bool| OpenOptions::new().read(true).write(can_write).custom_flags(nonblock()).open(path);
    let Ok(file) = open(true).or_else(|_| open(false)) else { return };
    let is_ours =
        |file: &File| file.metadata().is_ok_and(|facts| facts.uid() == rustix::process::geteuid().as_raw());
    if is_ours(&file) && is_left(&file, shared) && file.try_lock().is_ok() && is_at(&file, path) {
        let _ = fs::remove_file(path);
    }
}

/// A pipe may have replaced the file.
fn nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// Minimum age if other machines' locks are invisible.
const LONG_AGO: Duration = Duration::from_secs(3600);

/// File systems with possibly local locks, by `f_type` of statfs(2): NFS, FUSE, 9P, Lustre, CIFS and SMB 2, CephFS,
/// GPFS, AFS (Linux 6.12, `include/uapi/linux/magic.h` and their headers).
const SHARED: [FsWord; 9] = [
    0x6969,
    0x6573_5546,
    0x0102_1997,
    0x0bd0_0bd0,
    0xff53_4d42,
    0xfe53_4d42,
    0x00c3_6400,
    0x4750_4653,
    0x5346_414f,
];

/// Returns whether an unlocked file is abandoned.
fn is_left(file: &File, shared: &[FsWord]) -> bool {
    let is_shared = rustix::fs::fstatfs(file).is_ok_and(|facts| shared.contains(&facts.f_type));
    let age = file.metadata().and_then(|facts| facts.modified()).map(|time| time.elapsed());
    !is_shared || matches!(age, Ok(Ok(age)) if age > LONG_AGO)
}

fn is_of_draft(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(BEFORE)?.strip_suffix(BEHIND));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (file.dev(), file.ino()) == (there.dev(), there.ino())
}

/// Describes a failed write with a fix.
#[must_use]
pub fn file_error(action: &str, path: &Path, error: &io::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("cannot {action} `{}`: {error}", path.display()));
    match write_help(error) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// Returns a failed write's fix.
#[must_use]
pub fn write_help(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free disk space, or write to another location; the previous file is unchanged")
        }
        io::ErrorKind::ReadOnlyFilesystem => Some("the file system is read-only: write to another location"),
        io::ErrorKind::PermissionDenied => {
            Some("grant the user of `cubinder` write permission, or write to another location")
        }
        _ if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotRegular>) => {
            Some("specify a file, or remove the option")
        }
        _ => None,
    }
}

/// Rejects pipes, devices, sockets, and files that are read-only or another user's: a rename would replace them.
/// Messages contain `shown`, and `other` as an alternative. Like linkers, does not check libraries.
pub fn check_replaceable(place: &Path, shown: &Path, other: &str) -> Result<(), Diagnostic> {
    may_replace(place).map_err(|error| file_error("write", shown, &error))?;
    let Some(facts) = fs::metadata(place).ok().filter(fs::Metadata::is_file) else { return Ok(()) };
    let name = shown.display();
    if facts.permissions().readonly() {
        let error = Diagnostic::error(format!("cannot write `{name}`: it is read-only"));
        return Err(error.help(format!("make it writable with `chmod u+w {name}`, or change {other}")));
    }
    match OpenOptions::new().write(true).custom_flags(nonblock()).open(place) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(file_error("write", shown, &error))
        }
        _ => Ok(()),
    }
}

/// Returns a file's folder, or `.`.
#[must_use]
pub fn parent_folder(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[path = "atomic_file_tests.rs"]
mod tests;
