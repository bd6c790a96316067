//! Files that appear whole or not at all.
//!
//! A file is made beside its place under a name of its own, `.cubinder-XXXXXX.tmp`, and renamed when all of it is on the disk. Whatever ends the
//! process before that, what was there before is there still.
//!
//! Owns: those names, what is done with them, and taking away what a process that was killed has left: the next one that writes into that folder
//! does it ([`sweep`]). A file that is being made is locked, and the lock goes with the process, so nobody takes away what is not left.
//! Never: what is in the files. Messages are the caller's.

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

/// How often another name is tried where somebody takes away what was just made.
const TRIES: usize = 16;

/// A file that is being made. Dropped, it is gone.
#[derive(Debug)]
pub struct AtomicFile(NamedTempFile);

impl AtomicFile {
    /// An empty file beside `place`, with the permissions of a new file. What was left there is taken away first.
    ///
    /// # Errors
    /// Where the folder is not there, or cannot be written; and where `place` is a pipe, a device or a socket.
    pub fn beside(place: &Path) -> io::Result<AtomicFile> {
        may_replace(place)?;
        sweep(parent_folder(place));
        AtomicFile::in_folder(parent_folder(place))
    }

    /// The same for who has asked for [`sweep`] already.
    ///
    /// # Errors
    /// As [`AtomicFile::beside`].
    pub fn in_folder(folder: &Path) -> io::Result<AtomicFile> {
        let new = |builder: &mut tempfile::Builder<'_, '_>| {
            builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
        };
        for _ in 0..TRIES {
            let file = new(&mut named())?;
            match file.as_file().try_lock() {
                Ok(()) if is_at(file.as_file(), file.path()) => return Ok(AtomicFile(file)),
                Ok(()) | Err(fs::TryLockError::WouldBlock) => {}
                // What cannot be locked gets a name that nobody takes away.
                Err(fs::TryLockError::Error(_)) => return new(named().suffix(UNLOCKED)).map(AtomicFile),
            }
        }
        Err(io::Error::other("others take away what is made there"))
    }

    /// A file with `bytes` beside `place`.
    ///
    /// # Errors
    /// As [`AtomicFile::beside`], and where there is no room.
    pub fn with_bytes(place: &Path, bytes: &[u8]) -> io::Result<AtomicFile> {
        let mut draft = AtomicFile::beside(place)?;
        draft.file_mut().write_all(bytes)?;
        Ok(draft)
    }

    /// The file, to be written.
    pub fn file_mut(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// Puts the file into its place, over what is there.
    ///
    /// # Errors
    /// Where it does not get to the disk, or the place cannot be taken.
    pub fn persist(self, place: &Path) -> io::Result<()> {
        // Some file systems find out only now that they have no room; and what is renamed before it is on the disk may be empty after the power
        // went.
        self.file().sync_all()?;
        self.persist_unsynced(place)
    }

    /// The same for what is looked at for damage when it is read: it need not be on the disk.
    ///
    /// # Errors
    /// Where the place cannot be taken.
    pub fn persist_unsynced(self, place: &Path) -> io::Result<()> {
        self.put(place).map(drop)
    }

    fn put(self, place: &Path) -> io::Result<File> {
        may_replace(place)?;
        self.0.persist(place).map_err(|error| error.error)
    }
}

/// Why something was not put into its place.
#[derive(Debug)]
pub struct NotPersisted {
    /// The place.
    pub place: PathBuf,
    /// What the system answered.
    pub error: io::Error,
    /// Places that could not be given back what was there before.
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
            .note(format!("written before, and left so: {}", changed.join(", ")))
            .help("what belongs together is of two runs now: make it all again")
    }
}

/// Puts files into their places, over what is there: all or none, in their order, and not mixed with those of another process that writes the same. A process
/// that is killed in between leaves the first of them.
///
/// # Errors
/// The first that cannot be placed. What was there is back where it was, where the file system has hard links.
pub fn persist_all<P: AsRef<Path>>(files: Vec<(AtomicFile, P)>) -> Result<(), NotPersisted> {
    replace_files(files, |draft, place, is_last| {
        let before = match is_last {
            // Nothing behind it can fail.
            true => Before::Unknown,
            false if is_absent(place) => Before::Absent,
            false => second_name(place).map_or(Before::Unknown, |(name, file)| Before::Kept(name, file)),
        };
        Ok(Placed { file: draft.put(place)?, place: place.to_owned(), before })
    })
}

/// Puts files into places where nothing is: all or none, in their order.
///
/// # Errors
/// The first that cannot be placed, also because something is there.
pub fn persist_all_new<P: AsRef<Path>>(files: Vec<(AtomicFile, P)>) -> Result<(), NotPersisted> {
    replace_files(files, |draft, place, _| {
        Ok(Placed { file: put_new(draft, place)?, place: place.to_owned(), before: Before::Absent })
    })
}

/// Puts a file where nothing is: by a rename that refuses to replace, or a second name in the place of the first (`persist_noclobber` has both); where the
/// file system has neither, as 9P under Windows, by [`claim`].
fn put_new(draft: AtomicFile, place: &Path) -> io::Result<File> {
    draft.0.persist_noclobber(place).or_else(|refused| put_otherwise(refused, place))
}

/// Falls back to [`claim`] if the file system lacks the calls.
fn put_otherwise(refused: PersistError, place: &Path) -> io::Result<File> {
    match is_unknown_there(&refused.error) {
        true => claim(AtomicFile(refused.file), place),
        false => Err(refused.error),
    }
}

/// Whether a file system knows no such call, by what link(2) and rename(2) of Linux say of it. `EPERM` may be a right that is missing: then the next call
/// says so, too.
fn is_unknown_there(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unknown = [Errno::PERM, Errno::NOSYS, Errno::OPNOTSUPP, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|error| unknown.contains(&error))
}

/// Takes the name with an empty file, which only one can make, and puts the draft over it. A process that is killed in between leaves the empty file.
fn claim(draft: AtomicFile, place: &Path) -> io::Result<File> {
    let claim = File::create_new(place)?;
    draft.put(place).map_err(|error| match is_at(&claim, place) && fs::remove_file(place).is_err() {
        true => io::Error::new(error.kind(), format!("{error}; an empty file is left there")),
        false => error,
    })
}

/// What was placed, and what was there before.
struct Placed {
    file: File,
    place: PathBuf,
    before: Before,
}

enum Before {
    Absent,
    /// Under a second name, which nobody takes away while the file is locked.
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

/// Gives a place back what was there before; the place where that cannot be. What another process has put there since is its own.
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

/// Refuses to replace anything but a regular file: a rename over a device such as `/dev/null` takes it from every other program. A link to such a thing is
/// refused too, because `/dev/stdout` is one. Other links are replaced, and not what they name.
fn may_replace(place: &Path) -> io::Result<()> {
    // `/dev/stdout` and its kind, whatever they are redirected to.
    if fs::read_link(place).is_ok_and(|named| named.starts_with("/proc")) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular));
    }
    match fs::metadata(place) {
        // A folder cannot be replaced with a file, which the system says.
        Ok(facts) if !facts.is_file() && !facts.is_dir() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegular))
        }
        _ => Ok(()),
    }
}

/// The error of [`may_replace`].
#[derive(Debug, thiserror::Error)]
#[error("a pipe, a device or a socket is there, and only regular files are replaced")]
struct NotRegular;

/// How often other processes are waited for that have locked folders to place files there, for [`PAUSE`] each, 5 s in all: placing takes
/// milliseconds, unless the process is stopped.
const PAUSES: usize = 1000;

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks folders against others that place several files there, for as long as what it gives is held. Where a folder cannot be locked, or another
/// holds it too long, it goes without: files are whole all the same.
fn alone_in<'p>(folders: impl Iterator<Item = &'p Path>) -> Vec<File> {
    // In one order, so that no two wait for each other.
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

/// Makes files under names that [`sweep`] knows.
fn named() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(BEFORE).suffix(BEHIND).rand_bytes(RANDOM);
    builder
}

fn is_absent(place: &Path) -> bool {
    fs::symlink_metadata(place).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Gives what is at `place` a second name, under which it can come back.
fn second_name(place: &Path) -> io::Result<(TempPath, File)> {
    let file = OpenOptions::new().read(true).custom_flags(nonblock()).open(place)?;
    // Where it cannot be locked, nobody takes away what is locked by nobody either: see `sweep_one`.
    let _ = file.try_lock();
    let link = named().make_in(parent_folder(place), |name| fs::hard_link(place, name))?;
    Ok((link.into_temp_path(), file))
}

/// Takes away what processes that are no more have left in a folder. What cannot be taken away stays.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_of_draft(&entry.file_name()) && is_file() {
            sweep_one(&entry.path(), &SHARED);
        }
    }
}

fn sweep_one(path: &Path, shared: &[FsWord]) {
    // Locks of network file systems ask for a file that can be written.
    let open =
        |can_write: bool| OpenOptions::new().read(true).write(can_write).custom_flags(nonblock()).open(path);
    let Ok(file) = open(true).or_else(|_| open(false)) else { return };
    let is_ours =
        |file: &File| file.metadata().is_ok_and(|facts| facts.uid() == rustix::process::geteuid().as_raw());
    if is_ours(&file) && is_left(&file, shared) && file.try_lock().is_ok() && is_at(&file, path) {
        let _ = fs::remove_file(path);
    }
}

/// Without it a pipe that took a name meanwhile would be waited for.
fn nonblock() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// How old a file has to be where a lock may be unknown to other machines.
const LONG_AGO: Duration = Duration::from_secs(3600);

/// File systems where a lock may be one machine's own, by `f_type` of statfs(2): NFS, FUSE, 9P, Lustre, CIFS and SMB 2, CephFS, GPFS, AFS (Linux 6.12,
/// `include/uapi/linux/magic.h` and the file systems' own headers).
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

/// Whether a file that is not locked is one that somebody left, by the types of file systems that several machines share.
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

/// Whether an open file is still the one of that name.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (file.dev(), file.ino()) == (there.dev(), there.ino())
}

/// What is said where something cannot be written: ``cannot write `PATH`: No space left on device``, and what to do about it.
#[must_use]
pub fn file_error(action: &str, path: &Path, error: &io::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("cannot {action} `{}`: {error}", path.display()));
    match write_help(error) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// What to do where something cannot be written.
#[must_use]
pub fn write_help(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("make room there, or write to another place; what was there before is unchanged")
        }
        io::ErrorKind::ReadOnlyFilesystem => Some("the file system is read-only: write to another place"),
        io::ErrorKind::PermissionDenied => {
            Some("who runs `cubinder` has to be allowed to write there; else write to another place")
        }
        _ if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<NotRegular>) => {
            Some("name a file, or leave the option out")
        }
        _ => None,
    }
}

/// Refuses to replace a pipe, a device or a socket, and a file that may not be written, which is to stay as it is: a rename asks for nothing but its folder. `shown` is what the
/// file is called, `other` what names another one. Libraries alone are replaced all the same, as a linker does it: they have the permissions of what they
/// are made from.
///
/// # Errors
/// Where it is there and no regular file, read-only, or another's.
pub fn check_replaceable(place: &Path, shown: &Path, other: &str) -> Result<(), Diagnostic> {
    may_replace(place).map_err(|error| file_error("write", shown, &error))?;
    let Some(facts) = fs::metadata(place).ok().filter(fs::Metadata::is_file) else { return Ok(()) };
    let name = shown.display();
    if facts.permissions().readonly() {
        let error = Diagnostic::error(format!("cannot write `{name}`: it is read-only"));
        return Err(
            error.help(format!("`chmod u+w {name}` lets it be written, and {other} names another file"))
        );
    }
    match OpenOptions::new().write(true).custom_flags(nonblock()).open(place) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(file_error("write", shown, &error))
        }
        _ => Ok(()),
    }
}

/// The folder of a file that is named, perhaps without one.
#[must_use]
pub fn parent_folder(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[path = "atomic_file_tests.rs"]
mod tests;
