//! The store's size, and removal of its longest unused entries.

use std::fs::DirEntry;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Cache;

/// The entries of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Number.
    pub entries: u64,
    /// Space on disk, in bytes.
    pub bytes: u64,
    /// Last use of the longest unused entry, to the day.
    pub oldest: Option<SystemTime>,
}

/// Which entries stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Maximum space on disk, in bytes.
    pub bytes: Option<u64>,
    /// Maximum time since the last use.
    pub unused: Option<Duration>,
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    /// Returns the folder of the entries.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Counts the entries.
    ///
    /// # Errors
    /// The unreadable path.
    pub fn usage(&self) -> Result<Usage, (PathBuf, io::Error)> {
        Ok(usage(&self.entries()?))
    }

    /// Removes entries until the rest are within the limits; returns both. Builds may run meanwhile. `is_trial`
    /// removes nothing.
    ///
    /// # Errors
    /// The path that cannot be read or removed.
    pub fn prune(&self, limits: Limits, is_trial: bool) -> Result<(Usage, Usage), (PathBuf, io::Error)> {
        let mut entries = self.entries()?;
        entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        let now = SystemTime::now();
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let removed = entries.iter().take_while(|entry| {
            let age = now.duration_since(entry.used).unwrap_or_default();
            let is_over = limits.bytes.is_some_and(|limit| bytes > limit);
            bytes = bytes.saturating_sub(entry.bytes);
            is_over || limits.unused.is_some_and(|limit| age > limit)
        });
        let count = removed.count();
        let kept = entries.split_off(count);
        for Entry { path, .. } in entries.iter().filter(|_| !is_trial) {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((path.clone(), error)),
                _ => {}
            }
        }
        Ok((usage(&entries), usage(&kept)))
    }

    fn entries(&self) -> Result<Vec<Entry>, (PathBuf, io::Error)> {
        let mut entries = Vec::new();
        for shard in self.root.iter().flat_map(|root| list(root)) {
            let shard = shard?;
            // Links may lead to other files.
            if !is_hexadecimal(&shard, 2) || !shard.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            for entry in list(&shard.path()) {
                let entry = entry?;
                let failed = |error| (entry.path(), error);
                let facts = match entry.metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    facts => facts.map_err(failed)?,
                };
                if facts.is_file() && is_hexadecimal(&entry, 62) {
                    let used = facts.modified().map_err(failed)?;
                    // POSIX counts blocks of 512 bytes.
                    entries.push(Entry { path: entry.path(), bytes: facts.blocks() * 512, used });
                }
            }
        }
        Ok(entries)
    }
}

/// Returns nothing for a missing folder or a file.
fn list(folder: &Path) -> Vec<Result<DirEntry, (PathBuf, io::Error)>> {
    let failed = |error| (folder.to_owned(), error);
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map_err(failed)).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Vec::new()
        }
        Err(error) => vec![Err(failed(error))],
    }
}

fn is_hexadecimal(entry: &DirEntry, length: usize) -> bool {
    let name = entry.file_name();
    let name = name.as_encoded_bytes();
    name.len() == length && name.iter().all(u8::is_ascii_hexdigit)
}

fn usage(entries: &[Entry]) -> Usage {
    Usage {
        entries: entries.len() as u64,
        bytes: entries.iter().map(|entry| entry.bytes).sum(),
        oldest: entries.iter().map(|entry| entry.used).min(),
    }
}

#[cfg(test)]
mod tests {
    use cubinder_model::Digest;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// Four entries, the longest unused first.
    fn filled(folder: &Path) -> (Cache, Vec<Digest>) {
        let cache = Cache::open(folder);
        let keys: Vec<Digest> = (0..4_u8).map(|number| Digest::compute(&[number])).collect();
        for (key, days) in keys.iter().zip([40, 20, 10, 0]) {
            cache.put(key, &[0; 5000]);
            let file = std::fs::File::options().write(true).open(cache.path(key).unwrap()).unwrap();
            file.set_modified(SystemTime::now() - DAY * days).unwrap();
        }
        (cache, keys)
    }

    fn kept(cache: &Cache, keys: &[Digest]) -> Vec<bool> {
        keys.iter().map(|key| cache.path(key).unwrap().is_file()).collect()
    }

    #[test]
    fn the_least_recently_used_entries_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, keys) = filled(folder.path());
        std::fs::write(cache.path(&keys[0]).unwrap().with_file_name(".cubinder-AbC123.tmp"), "draft")
            .unwrap();
        let before = cache.usage().unwrap();
        assert!(before.entries == 4 && before.bytes >= 20_000, "{before:?}");
        let unused = Limits { unused: Some(DAY * 30), ..Limits::default() };
        let (removed, _) = cache.prune(unused, true).unwrap();
        assert_eq!((removed.entries, kept(&cache, &keys)), (1, vec![true; 4]));
        let (removed, left) = cache.prune(unused, false).unwrap();
        assert_eq!((removed.entries, left), (1, cache.usage().unwrap()));
        assert_eq!(kept(&cache, &keys), [false, true, true, true]);
        let small = Limits { bytes: Some(before.bytes / 4), ..Limits::default() };
        let (removed, left) = cache.prune(small, false).unwrap();
        assert_eq!((removed.entries, left.entries), (2, 1));
        assert_eq!(kept(&cache, &keys), [false, false, false, true]);
        let none = Limits { bytes: Some(0), ..Limits::default() };
        let foreign = ["notes.txt", "src/main.c", "ab/README"].map(|name| cache.folder().unwrap().join(name));
        for path in &foreign {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(cache.prune(none, false).unwrap().1, Usage::default());
        assert!(foreign.iter().all(|path| path.is_file()));
    }

    #[test]
    fn a_hit_is_a_use() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, keys) = filled(folder.path());
        assert!(cache.get(&keys[0]).is_some());
        let unused = Limits { unused: Some(DAY * 5), ..Limits::default() };
        cache.prune(unused, false).unwrap();
        assert_eq!(kept(&cache, &keys), [true, false, false, true]);
    }

    #[test]
    fn a_missing_cache_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Cache::open(folder.path()).usage().unwrap(), Usage::default());
        std::fs::write(folder.path().join("code"), "").unwrap();
        assert_eq!(Cache::open(folder.path()).usage().unwrap(), Usage::default());
    }
}
