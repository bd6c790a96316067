//! Cache entries on disk: `<cache>/code/<2 hex digits>/<62 hex digits>`, with a magic, a digest of key and value, and
//! the value. Writes are atomic. Damaged entries and other than regular files are misses and get replaced.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Display, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cubinder_model::Digest;

use super::KeyHasher;
use crate::diagnostic::Diagnostic;
use crate::source;
use cubinder_source::atomic_file::{self, AtomicFile};

const MAGIC: &[u8; 8] = b"cubincd1";
const HEADER_BYTES: usize = MAGIC.len() + 32;
/// Far above code sizes: the path may contain anything.
const MAX_VALUE: u64 = 256 << 20;
/// Precision of an entry's modification time, its last use.
const DAY: Duration = Duration::from_secs(86_400);

cubinder_source::diagnostics! {
    struct NotStored<'a> { error: io::Error, folder: Display<'a> }
    warning "cannot cache compiled code: {error}" {
        note: "tried to write to `{folder}`";
        note: "the build continues; the next build recompiles these kernels";
        help: "set a writable folder with `CUBINDER_CACHE=<folder>`";
    }
}

/// The store; the first failed write disables writing with a warning.
#[derive(Debug)]
pub struct Cache {
    pub(super) root: Option<PathBuf>,
    /// First failure; `Some(None)` once reported.
    failure: Mutex<Option<Option<Diagnostic>>>,
    swept: Mutex<HashSet<PathBuf>>,
    touched: Mutex<HashMap<Digest, bool>>,
}

impl Cache {
    /// Opens `<cache>/code`, created by the first write.
    #[must_use]
    pub fn open(cache: &Path) -> Cache {
        Cache { root: Some(cache.join("code")), ..Cache::disabled() }
    }

    /// Returns a store that stores no entries.
    #[must_use]
    pub fn disabled() -> Cache {
        Cache { root: None, failure: Mutex::default(), swept: Mutex::default(), touched: Mutex::default() }
    }

    /// Returns whether the store keeps entries.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.root.is_some()
    }

    /// Returns the value for `key` if present and undamaged.
    #[must_use]
    pub fn get(&self, key: &Digest) -> Option<Vec<u8>> {
        let mut entry = source::open(&self.path(key)?).ok()?;
        let facts = entry.metadata().ok()?;
        if facts.len() > MAX_VALUE + HEADER_BYTES as u64 {
            return None;
        }
        mark_used(&entry, &facts);
        let mut head = [0; HEADER_BYTES];
        entry.read_exact(&mut head).ok()?;
        let (magic, digest) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return None;
        }
        let mut value = Vec::new();
        entry.take(MAX_VALUE + 1).read_to_end(&mut value).ok()?;
        (is_kept(&value) && digest == check(key, &value).0).then_some(value)
    }

    /// Marks the entry for `key` as used, once; returns whether it exists, perhaps damaged.
    #[must_use]
    pub fn touch(&self, key: &Digest) -> bool {
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        *touched.entry(*key).or_insert_with(|| {
            let entry = self.path(key).and_then(|path| source::open_file(&path).ok());
            let facts = entry.as_ref().and_then(|entry| entry.metadata().ok());
            entry.zip(facts).map(|(entry, facts)| mark_used(&entry, &facts)).is_some()
        })
    }

    /// Removes the entry for `key`, if that is possible.
    pub fn remove(&self, key: &Digest) {
        let _ = self.path(key).map(std::fs::remove_file);
    }

    /// Stores or replaces the value for `key`.
    pub fn put(&self, key: &Digest, value: &[u8]) {
        let Some(place) = self.path(key).filter(|_| is_kept(value)) else { return };
        if self.lock().is_some() {
            return;
        }
        if let Err(error) = self.write(&place, &check(key, value), value) {
            let folder = place.parent().unwrap_or(&place).display();
            self.lock().get_or_insert_with(|| Some(NotStored { error, folder }.into()));
        }
    }

    fn write(&self, place: &Path, check: &Digest, value: &[u8]) -> io::Result<()> {
        let folder = atomic_file::parent_folder(place);
        std::fs::create_dir_all(folder)?;
        if self.swept.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
            atomic_file::sweep(folder);
        }
        let mut draft = AtomicFile::in_folder(folder)?;
        draft.file_mut().write_all(MAGIC)?;
        draft.file_mut().write_all(&check.0)?;
        draft.file_mut().write_all(value)?;
        draft.persist_unsynced(place)
    }

    /// Returns the first failed write's warning once.
    #[must_use]
    pub fn take_warning(&self) -> Option<Diagnostic> {
        self.lock().as_mut()?.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Option<Diagnostic>>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self, key: &Digest) -> Option<PathBuf> {
        let name = key.to_string();
        let (shard, rest) = name.split_at_checked(2)?;
        Some(self.root.as_ref()?.join(shard).join(rest))
    }
}

fn mark_used(entry: &File, facts: &Metadata) {
    let now = SystemTime::now();
    if facts.modified().ok().and_then(|used| now.duration_since(used).ok()).is_some_and(|age| age > DAY) {
        // The folder may be read-only.
        let _ = entry.set_modified(now);
    }
}

fn is_kept(value: &[u8]) -> bool {
    value.len() as u64 <= MAX_VALUE
}

/// With the key, an entry under a wrong name is a miss.
fn check(key: &Digest, value: &[u8]) -> Digest {
    KeyHasher::new("entry").field(&key.0).field(value).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files_below(folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
        }
        files
    }

    #[test]
    fn what_is_put_is_got() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Digest::compute(b"one"), Digest::compute(b"two"));
        let cache = Cache::open(folder.path());
        assert_eq!(cache.get(&one), None);
        cache.put(&one, b"value");
        cache.put(&two, b"");
        assert_eq!(Cache::open(folder.path()).get(&one).as_deref(), Some(b"value".as_slice()));
        assert_eq!(cache.get(&two).as_deref(), Some(b"".as_slice()));
        assert_eq!(files_below(folder.path()).len(), 2);
        assert_eq!(cache.take_warning(), None);
        let disabled = Cache::disabled();
        disabled.put(&one, b"value");
        assert_eq!((disabled.get(&one), disabled.take_warning()), (None, None));
    }

    #[test]
    fn an_entry_under_another_name_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (Digest::compute(b"one"), Digest::compute(b"two"));
        let cache = Cache::open(folder.path());
        cache.put(&one, b"value");
        let to = cache.path(&two).unwrap();
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::rename(cache.path(&one).unwrap(), to).unwrap();
        assert_eq!(cache.get(&two), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("code"), "a file where the folder should be").unwrap();
        let cache = Cache::open(folder.path());
        cache.put(&Digest::compute(b"one"), b"value");
        cache.put(&Digest::compute(b"two"), b"value");
        let warning = cache.take_warning().unwrap();
        assert!(warning.message.starts_with("cannot cache compiled code: "), "{}", warning.message);
        assert_eq!(cache.take_warning(), None);
        assert_eq!(cache.get(&Digest::compute(b"one")), None);
    }

    #[test]
    fn many_writers_leave_one_whole_entry() {
        let folder = tempfile::tempdir().unwrap();
        let key = Digest::compute(b"key");
        let values: Vec<Vec<u8>> = (0..8_u8).map(|n| vec![n; 100_000]).collect();
        std::thread::scope(|scope| {
            for value in &values {
                scope.spawn(|| {
                    let cache = Cache::open(folder.path());
                    for _ in 0..20 {
                        cache.put(&key, value);
                        assert!(values.contains(&cache.get(&key).unwrap()));
                    }
                    assert_eq!(cache.take_warning(), None);
                });
            }
        });
        assert_eq!(files_below(folder.path()).len(), 1);
    }

    fn with_one_entry(folder: &Path) -> (Cache, Digest, PathBuf) {
        let key = Digest::compute(b"key");
        let cache = Cache::open(folder);
        cache.put(&key, b"a value");
        let place = cache.path(&key).unwrap();
        (cache, key, place)
    }

    #[test]
    fn no_flipped_bit_and_no_cut_is_a_hit() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, key, place) = with_one_entry(folder.path());
        let entry = std::fs::read(&place).unwrap();
        let flipped = (0..entry.len() * 8).map(|bit| {
            let mut entry = entry.clone();
            entry[bit / 8] ^= 1 << (bit % 8);
            entry
        });
        let cut = (0..entry.len()).map(|length| entry[..length].to_vec());
        let longer = [0_u8, 0xff].map(|byte| [entry.as_slice(), &[byte]].concat());
        for damaged in flipped.chain(cut).chain(longer) {
            std::fs::write(&place, &damaged).unwrap();
            assert_eq!(cache.get(&key), None, "{damaged:02x?}");
        }
        cache.put(&key, b"a value");
        assert_eq!(std::fs::read(&place).unwrap(), entry);
    }

    #[test]
    fn what_is_no_file_that_ends_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let (_, key, place) = with_one_entry(folder.path());
        let entry = std::fs::read(&place).unwrap();
        let longer = |path: &Path| {
            std::fs::write(path, &entry).unwrap();
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(1 << 40).unwrap();
        };
        type Make<'a> = &'a dyn Fn(&Path);
        let make: [(Make<'_>, bool); 4] = [
            (
                &|path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success()),
                false,
            ),
            (&|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(), false),
            (&|path| std::fs::create_dir(path).unwrap(), false),
            (&longer, true),
        ];
        for (make, is_replaced) in make {
            std::fs::remove_file(&place).unwrap();
            make(&place);
            let cache = Cache::open(folder.path());
            assert_eq!(cache.get(&key), None);
            cache.put(&key, b"a value");
            assert_eq!(cache.get(&key).is_some(), is_replaced);
            assert_eq!(cache.take_warning().is_none(), is_replaced);
            std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir(&place)).unwrap();
            cache.put(&key, b"a value");
            let cache = Cache::open(folder.path());
            cache.put(&key, b"a value");
            assert_eq!(cache.get(&key).as_deref(), Some(b"a value".as_slice()));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let key = Digest::compute(b"key");
        let place = Cache::open(folder.path()).path(&key).unwrap();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place.with_file_name(".cubinder-AbC123.tmp"), "half").unwrap();
        Cache::open(folder.path()).put(&key, b"value");
        assert_eq!(files_below(folder.path()), [place]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_entry_is_a_miss_and_is_replaced(value: Vec<u8>, at: prop::sample::Index, cut: bool) {
            let folder = tempfile::tempdir().unwrap();
            let key = Digest::compute(b"key");
            let cache = Cache::open(folder.path());
            cache.put(&key, &value);
            let place = cache.path(&key).unwrap();
            let mut entry = std::fs::read(&place).unwrap();
            let at = at.index(entry.len());
            if cut { entry.truncate(at) } else { entry[at] ^= 1 }
            std::fs::write(&place, entry).unwrap();
            prop_assert_eq!(cache.get(&key), None);
            cache.put(&key, &value);
            prop_assert_eq!(cache.get(&key), Some(value));
        }
    }
}
