//! Resolves the folder `ABCD` of `--constant ABCD:BLOCK=512`. Ambiguity is an error: wrong values silently break the grid.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Compiled;
use super::errors::{AmbiguousFolder, NoFolder};
use crate::diagnostic::Diagnostic;
use crate::manifest::toml_reader::list;

const MOST_SHOWN: usize = 8;

/// Matches path, name, digest, or a unique prefix.
pub(super) fn meant(all: &[Compiled], folder: &str) -> Result<BTreeSet<usize>, Diagnostic> {
    let place = |compiled: &Compiled| {
        let path = compiled.path();
        std::fs::canonicalize(&path).unwrap_or(path)
    };
    let path = std::fs::canonicalize(folder).ok();
    let is_at = |compiled: &Compiled| path.is_some() && Some(place(compiled)) == path;
    let is_called = |compiled: &Compiled| compiled.folder() == folder || compiled.metadata.hash == folder;
    let starts = |compiled: &Compiled| {
        compiled.folder().starts_with(folder) || compiled.metadata.hash.starts_with(folder)
    };
    let ways: [&dyn Fn(&Compiled) -> bool; 3] = [&is_at, &is_called, &starts];
    let found = ways.into_iter().map(|way| (0..all.len()).filter(|index| way(&all[*index])).collect());
    let meant: BTreeSet<usize> =
        found.into_iter().find(|found: &BTreeSet<usize>| !found.is_empty()).unwrap_or_default();
    let places: BTreeSet<PathBuf> = meant.iter().map(|index| place(&all[*index])).collect();
    match places.len() {
        0 => Err(NoFolder { folder, folders: shown(&all.iter().collect::<Vec<_>>()) }.into()),
        1 => Ok(meant),
        count => {
            let folders = shown(&meant.iter().map(|index| &all[*index]).collect::<Vec<_>>());
            Err(AmbiguousFolder { folder, count, folders }.into())
        }
    }
}

/// Lists names, or paths if names repeat.
fn shown(all: &[&Compiled]) -> String {
    let paths: BTreeSet<String> = all.iter().map(|it| it.path().display().to_string()).collect();
    let names: BTreeSet<String> = all.iter().map(|it| it.folder()).collect();
    let best = if names.len() == paths.len() { names } else { paths };
    list(best.into_iter().take(MOST_SHOWN))
}
