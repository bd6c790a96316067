//! Folders of the cache that are there as a whole or not at all.
//!
//! Owns `<cache>/toolkit`: one folder a package, each with a marker that holds the recipe it was made by; a lock file for each
//! under `.locks`; unfinished work under `.staging`. A folder is filled in `.staging`, written through to the disk and renamed
//! into place under its lock, so that a reader never meets half of one, however the writer ended.
//! Never knows what a folder holds or where it comes from.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

/// The file in each finished folder that holds its recipe.
pub(crate) const MARKER: &str = ".cubinder-pin";

/// The folders of the cache.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

/// What [`Store::ensure`] did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The folder was there, or another run finished it meanwhile.
    Present,
    /// This call made it.
    Made,
}

impl Store {
    /// The store in the folder `root`, which is made when something is stored.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the folder `name` is or will be.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether the folder `name` is finished and was made by `recipe`.
    pub(crate) fn has(&self, name: &str, recipe: &str) -> bool {
        fs::read(self.folder(name).join(MARKER)).is_ok_and(|found| found == recipe.as_bytes())
    }

    /// Makes the folder `name` by `recipe` unless it is there.
    ///
    /// `fill` gets an empty folder to work in and gives the folder inside it that becomes the content. `wait` is called
    /// before waiting for another run that is making the same folder.
    ///
    /// # Errors
    /// Those of `fill`, or when the cache cannot be written. Nothing is left behind then.
    pub(crate) fn ensure(
        &self,
        name: &str,
        recipe: &str,
        wait: impl FnOnce(),
        fill: impl FnOnce(&Path) -> Result<PathBuf>,
    ) -> Result<Outcome> {
        if self.has(name, recipe) {
            return Ok(Outcome::Present);
        }
        // Held until this function returns; the system drops it when the process dies, however it dies.
        let _lock = self.lock(name, wait)?;
        if self.has(name, recipe) {
            return Ok(Outcome::Present);
        }
        self.clear(name);
        let made = self.make(name, recipe, fill);
        self.clear(name);
        made.map(|()| Outcome::Made)
    }

    /// Fills a folder and puts it in place; the lock is held.
    fn make(&self, name: &str, recipe: &str, fill: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<()> {
        let area = self.staging(name);
        create(&area)?;
        // A new name each time: children of a killed run may live on and write to the names they know.
        let staging = tempfile::tempdir_in(&area).with_context(|| format!("in `{}`", area.display()))?;
        let work = staging.path().join("work");
        create(&work)?;
        let content = fill(&work)?;
        write(&content.join(MARKER), recipe)?;
        sync_tree(&content)
            .with_context(|| format!("`{}` could not be written to the disk", content.display()))?;
        self.publish(name, &content, &staging.path().join("old"))
    }

    /// Removes what runs that were killed have left. What another run is working on stays.
    ///
    /// # Errors
    /// When a lock file cannot be opened.
    pub(crate) fn clean(&self) -> Result<()> {
        let Ok(entries) = fs::read_dir(self.root.join(".staging")) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let lock = self.open_lock(&name)?;
            if lock.try_lock().is_ok() {
                self.clear(&name);
            }
        }
        Ok(())
    }

    fn staging(&self, name: &str) -> PathBuf {
        self.root.join(".staging").join(name)
    }

    /// Removes unfinished work on `name`, whose lock is held. What cannot be removed now, because a child of a killed run is
    /// still writing, is never used and goes when a later run cleans.
    fn clear(&self, name: &str) {
        let _left_for_a_later_run = fs::remove_dir_all(self.staging(name));
    }

    fn lock(&self, name: &str, wait: impl FnOnce()) -> Result<File> {
        let file = self.open_lock(name)?;
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                wait();
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        locked.with_context(|| format!("the cache `{}` cannot lock files", self.root.display()))?;
        Ok(file)
    }

    /// Lock files are never removed: another run may hold one that it has just opened.
    fn open_lock(&self, name: &str) -> Result<File> {
        let folder = self.root.join(".locks");
        create(&folder)?;
        let path = folder.join(name);
        let file = File::options().create(true).append(true).open(&path);
        file.map_err(|error| anyhow!("`{}` could not be opened: {error}\n  help: {HELP}", path.display()))
    }

    /// Puts `content` in the place of the folder `name`, the former content aside in `old`.
    fn publish(&self, name: &str, content: &Path, old: &Path) -> Result<()> {
        let folder = self.folder(name);
        let failed = || format!("`{}` could not be put in place", folder.display());
        match fs::rename(&folder, old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(failed),
            _ => {}
        }
        fs::rename(content, &folder).with_context(failed)?;
        File::open(&self.root).and_then(|root| root.sync_all()).with_context(failed)
    }
}

/// What to do when the cache cannot be written.
const HELP: &str = "another place for the cache can be named in `CUBINDER_CACHE`";

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|error| anyhow!("`{}` could not be made: {error}\n  help: {HELP}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("`{}` could not be written", path.display()))
}

/// Writes every file and folder below `folder` through to the disk: without it the rename could survive a power cut that
/// the files do not.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("toolkit"));
        (folder, store)
    }

    /// Fills a folder with one file.
    fn fill(work: &Path, text: &str) -> Result<PathBuf> {
        let content = work.join("content");
        fs::create_dir(&content)?;
        fs::write(content.join("file"), text)?;
        Ok(content)
    }

    fn read(store: &Store) -> String {
        fs::read_to_string(store.folder("alpha-1").join("file")).unwrap()
    }

    fn staged(store: &Store) -> usize {
        fs::read_dir(store.root.join(".staging")).map_or(0, Iterator::count)
    }

    #[test]
    fn a_folder_is_made_once() {
        let (_folder, store) = store();
        let made = store.ensure("alpha-1", "recipe", || {}, |work| fill(work, "first")).unwrap();
        let again = store.ensure("alpha-1", "recipe", || {}, |_| bail!("filled twice")).unwrap();
        assert_eq!((made, again), (Outcome::Made, Outcome::Present));
        assert_eq!(read(&store), "first");
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn another_recipe_makes_it_anew() {
        let (_folder, store) = store();
        store.ensure("alpha-1", "recipe", || {}, |work| fill(work, "first")).unwrap();
        assert!(!store.has("alpha-1", "recipe 2"));
        store.ensure("alpha-1", "recipe 2", || {}, |work| fill(work, "second")).unwrap();
        assert_eq!(read(&store), "second");
    }

    #[test]
    fn a_folder_without_its_marker_is_never_used() {
        let (_folder, store) = store();
        fs::create_dir_all(store.folder("alpha-1")).unwrap();
        fs::write(store.folder("alpha-1").join("file"), "half").unwrap();
        assert!(!store.has("alpha-1", "recipe"));
        store.ensure("alpha-1", "recipe", || {}, |work| fill(work, "whole")).unwrap();
        assert_eq!(read(&store), "whole");
    }

    #[test]
    fn a_failed_fill_leaves_nothing() {
        let (_folder, store) = store();
        let failed = store.ensure(
            "alpha-1",
            "recipe",
            || {},
            |work| {
                fill(work, "half")?;
                bail!("the line went dead")
            },
        );
        assert_eq!(failed.unwrap_err().to_string(), "the line went dead");
        assert!(!store.folder("alpha-1").exists());
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_not_used() {
        let (_folder, store) = store();
        let left = store.root.join(".staging/alpha-1/.tmpX/work/content");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("file"), "half").unwrap();
        fs::write(left.join(MARKER), "recipe").unwrap();
        assert!(!store.has("alpha-1", "recipe"));
        store.ensure("alpha-1", "recipe", || {}, |work| fill(work, "whole")).unwrap();
        assert_eq!(read(&store), "whole");
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn a_child_that_outlives_its_run_cannot_reach_the_next_runs_work() {
        let (_folder, store) = store();
        let (mut first, mut second) = (PathBuf::new(), PathBuf::new());
        let _failed = store.ensure(
            "alpha-1",
            "recipe",
            || {},
            |work| {
                first = work.to_path_buf();
                bail!("killed")
            },
        );
        store
            .ensure(
                "alpha-1",
                "recipe",
                || {},
                |work| {
                    second = work.to_path_buf();
                    // The child of the first run goes on where it was.
                    fs::create_dir_all(first.join("content"))?;
                    fs::write(first.join("content/file"), "half")?;
                    fill(work, "whole")
                },
            )
            .unwrap();
        assert_ne!(first, second);
        assert_eq!(read(&store), "whole");
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn cleaning_spares_what_another_run_works_on() {
        let (_folder, store) = store();
        for name in ["alpha-1", "beta-1"] {
            fs::create_dir_all(store.root.join(".staging").join(name)).unwrap();
        }
        let held = store.lock("beta-1", || {}).unwrap();
        store.clean().unwrap();
        assert!(!store.root.join(".staging/alpha-1").exists());
        assert!(store.root.join(".staging/beta-1").exists());
        drop(held);
        store.clean().unwrap();
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn racing_runs_fill_once_and_all_see_the_whole() {
        let (_folder, store) = store();
        let (fills, waits, barrier) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let wait = || {
                        waits.fetch_add(1, Ordering::SeqCst);
                    };
                    let slow = |work: &Path| {
                        fills.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(100));
                        fill(work, "whole")
                    };
                    store.ensure("alpha-1", "recipe", wait, slow).unwrap();
                    assert_eq!(read(&store), "whole");
                });
            }
        });
        assert_eq!(fills.load(Ordering::SeqCst), 1);
        assert!(waits.load(Ordering::SeqCst) >= 1);
    }

    #[test]
    fn the_next_in_line_takes_over_from_one_that_fails() {
        let (_folder, store) = store();
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            let store = &store;
            scope.spawn(move || {
                let failed = store.ensure(
                    "alpha-1",
                    "recipe",
                    || {},
                    |_| {
                        send.send(()).unwrap();
                        std::thread::sleep(Duration::from_millis(100));
                        bail!("the line went dead")
                    },
                );
                assert!(failed.is_err());
            });
            receive.recv().unwrap();
            let outcome = store.ensure("alpha-1", "recipe", || {}, |work| fill(work, "whole")).unwrap();
            assert_eq!(outcome, Outcome::Made);
        });
        assert_eq!(read(&store), "whole");
    }
}
