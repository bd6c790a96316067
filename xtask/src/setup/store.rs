//! A cache's folders are complete or absent: filled in `.staging` under a lock in `.locks`, then renamed. A marker has
//! the recipe.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;

const MARKER: &str = ".cubinder-pin";

#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns folder `name`, refilled for another recipe. `fill` receives new and temporary folders.
    pub(crate) fn ensure(
        &self,
        name: &str,
        recipe: &str,
        fill: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.root.join(name);
        let is_complete = || fs::read(folder.join(MARKER)).is_ok_and(|found| found == recipe.as_bytes());
        if !is_complete() {
            let _lock = self.lock(name).with_context(|| self.unusable())?;
            if !is_complete() {
                self.make(name, recipe, fill)?;
            }
        }
        Ok(folder)
    }

    fn make(&self, name: &str, recipe: &str, fill: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        let staging = self.root.join(".staging").join(name);
        // A killed run's children may still write; the next run cleans up.
        let _left_behind = fs::remove_dir_all(&staging);
        let prepare = || {
            fs::create_dir_all(&staging)?;
            let work = tempfile::tempdir_in(&staging)?;
            fs::create_dir(work.path().join("content"))?;
            fs::create_dir(work.path().join("scratch"))?;
            io::Result::Ok(work)
        };
        let work = prepare().with_context(|| self.unusable())?;
        let content = work.path().join("content");
        fill(&content, &work.path().join("scratch"))?;
        let publish = || {
            fs::write(content.join(MARKER), recipe)?;
            // After a power failure the rename could exist without the files.
            nix::unistd::syncfs(File::open(&content)?)?;
            let folder = self.root.join(name);
            match fs::rename(&folder, work.path().join("old")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(&content, &folder)
        };
        publish().with_context(|| self.unusable())
    }

    /// Until exit. Lock files stay: another run may use one.
    fn lock(&self, name: &str) -> io::Result<File> {
        let locks = self.root.join(".locks");
        fs::create_dir_all(&locks)?;
        let file = File::options().create(true).append(true).open(locks.join(name))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another process that creates {name}");
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        Ok(file)
    }

    fn unusable(&self) -> String {
        format!("cannot use `{}`; set `CUBINDER_CACHE` to another folder", self.root.display())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    const NAME: &str = "alpha-1";

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("toolkit"));
        (folder, store)
    }

    fn fill(content: &Path, text: &str) -> Result<()> {
        Ok(fs::write(content.join("file"), text)?)
    }

    fn read(store: &Store) -> String {
        fs::read_to_string(store.root.join(NAME).join("file")).unwrap()
    }

    fn staged(store: &Store) -> usize {
        fs::read_dir(store.root.join(".staging").join(NAME)).map_or(0, Iterator::count)
    }

    #[test]
    fn a_folder_is_made_once_for_each_recipe() {
        let (_folder, store) = store();
        let made = store.ensure(NAME, "recipe", |content, _| fill(content, "first")).unwrap();
        assert_eq!(made, store.root.join(NAME));
        store.ensure(NAME, "recipe", |_, _| bail!("filled twice")).unwrap();
        assert_eq!(read(&store), "first");
        store.ensure(NAME, "recipe 2", |content, _| fill(content, "second")).unwrap();
        assert_eq!(read(&store), "second");
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn incomplete_folders_are_replaced() {
        let (_folder, store) = store();
        let left = store.root.join(".staging").join(NAME).join(".tmpX/content");
        for folder in [store.root.join(NAME), left] {
            fs::create_dir_all(&folder).unwrap();
            fill(&folder, "half").unwrap();
        }
        store.ensure(NAME, "recipe", |content, _| fill(content, "complete")).unwrap();
        assert_eq!((read(&store).as_str(), staged(&store)), ("complete", 0));
    }

    #[test]
    fn a_failed_fill_leaves_nothing() {
        let (_folder, store) = store();
        let failed = store.ensure(NAME, "recipe", |content, _| {
            fill(content, "half")?;
            bail!("the connection broke")
        });
        assert_eq!(failed.unwrap_err().to_string(), "the connection broke");
        assert!(!store.root.join(NAME).exists());
        assert_eq!(staged(&store), 0);
    }

    #[test]
    fn a_child_that_outlives_its_run_does_not_reach_the_next_content() {
        let (_folder, store) = store();
        let mut first = PathBuf::new();
        let _failed = store.ensure(NAME, "recipe", |content, _| {
            first = content.to_path_buf();
            bail!("killed")
        });
        let second = |content: &Path, _: &Path| {
            fs::create_dir_all(&first)?;
            fill(&first, "half")?;
            fill(content, "complete")
        };
        store.ensure(NAME, "recipe", second).unwrap();
        assert_eq!(read(&store), "complete");
    }

    #[test]
    fn concurrent_runs_fill_once_and_all_see_the_complete_folder() {
        let (_folder, store) = store();
        let (fills, barrier) = (AtomicUsize::new(0), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    let slow = |content: &Path, _: &Path| {
                        fills.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(100));
                        fill(content, "complete")
                    };
                    store.ensure(NAME, "recipe", slow).unwrap();
                    assert_eq!(read(&store), "complete");
                });
            }
        });
        assert_eq!(fills.load(Ordering::SeqCst), 1);
    }
}
