//! Which compiles a person means by a folder: `ABCD` in `--constant ABCD:BLOCK=512`.
//!
//! Owns the ways of naming one. What is the beginning of several names means none of them: Triton names folders by digests, and a value that
//! is taken for another compile makes a grid that is wrong without a word.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::errors::{AmbiguousFolder, NoFolder};
use super::{Compiled, listed};
use crate::diagnostic::Diagnostic;

/// The most folders that a message lists.
const MOST_SHOWN: usize = 8;

/// The folders of all compiles.
pub(super) struct Folders<'c> {
    all: &'c [Compiled],
    /// Where each compile is, without links and `..`.
    places: Vec<PathBuf>,
}

impl<'c> Folders<'c> {
    pub(super) fn of(all: &'c [Compiled]) -> Folders<'c> {
        let place = |compiled: &Compiled| {
            let path = compiled.path();
            std::fs::canonicalize(&path).unwrap_or(path)
        };
        Folders { all, places: all.iter().map(place).collect() }
    }

    /// The compiles, by their numbers, that are in the folder that is meant: that of this path, else that of this name or digest, else that whose
    /// name or digest begins so.
    ///
    /// # Errors
    /// Where there is no such folder, or where it may be any of several.
    pub(super) fn meant(&self, folder: &str) -> Result<BTreeSet<usize>, Diagnostic> {
        let path = std::fs::canonicalize(folder).ok();
        let is_at = |index: usize| path.is_some() && self.places.get(index) == path.as_ref();
        let has = |index: usize, is_it: &dyn Fn(&str) -> bool| {
            self.all.get(index).is_some_and(|it| is_it(&it.folder()) || is_it(&it.metadata.hash))
        };
        let is_called = |index: usize| has(index, &|name| name == folder);
        let begins = |index: usize| has(index, &|name| name.starts_with(folder));
        let ways: [&dyn Fn(usize) -> bool; 3] = [&is_at, &is_called, &begins];
        let found = ways.into_iter().map(|way| (0..self.all.len()).filter(|index| way(*index)).collect());
        let meant: BTreeSet<usize> =
            found.into_iter().find(|found: &BTreeSet<usize>| !found.is_empty()).unwrap_or_default();
        let places: BTreeSet<&PathBuf> = meant.iter().filter_map(|index| self.places.get(*index)).collect();
        match places.len() {
            0 => Err(NoFolder { folder, folders: shown(self.all.iter()) }.into()),
            1 => Ok(meant),
            count => {
                let folders = shown(meant.iter().filter_map(|index| self.all.get(*index)));
                Err(AmbiguousFolder { folder, count, folders }.into())
            }
        }
    }
}

/// The first of some folders, for people: by their names, or by their paths where names are there twice.
fn shown<'c>(all: impl Iterator<Item = &'c Compiled> + Clone) -> String {
    let paths: BTreeSet<String> = all.clone().map(|it| it.path().display().to_string()).collect();
    let names: BTreeSet<String> = all.map(Compiled::folder).collect();
    let best = if names.len() == paths.len() { names } else { paths };
    listed(best.into_iter().take(MOST_SHOWN))
}
