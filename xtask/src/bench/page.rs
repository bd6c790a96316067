//! `docs/contributing/performance.md`, and texts between markers.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

pub(super) const PAGE: &str = "docs/contributing/performance.md";
pub(super) const FOLDER: &str = "docs/contributing/performance";
pub(super) const END: &str = "<!-- end -->";

pub(super) fn edited(root: &Path, name: &str, begin: &str, text: &str) -> Result<(String, String)> {
    let before = fs::read_to_string(root.join(name))?;
    let after = replaced(name, &before, begin, text)?;
    Ok((before, after))
}

pub(super) fn replaced(name: &str, page: &str, begin: &str, text: &str) -> Result<String> {
    let (head, rest) =
        page.split_once(begin).with_context(|| format!("{name} has no {begin}, which starts the tables"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{name} has no {END} after {begin}"))?;
    ensure!(!tail.contains(begin), "{name} has {begin} twice");
    Ok(format!("{head}{begin}\n{text}{END}{tail}"))
}
