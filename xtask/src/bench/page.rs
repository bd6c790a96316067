//! The page of results, `docs/performance.md`, and texts between markers in a page.

use anyhow::{Context, Result, ensure};

/// The page, and the folder of the results and the figures.
pub(super) const PAGE: &str = "docs/performance.md";
pub(super) const FOLDER: &str = "docs/performance";
pub(super) const END: &str = "<!-- end -->";

/// The page `name` with another text between the markers.
pub(super) fn replaced(name: &str, page: &str, begin: &str, text: &str) -> Result<String> {
    let (head, rest) = page
        .split_once(begin)
        .with_context(|| format!("{name} has no {begin}, between which and {END} the tables stand"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{name} has no {END} behind {begin}"))?;
    ensure!(!tail.contains(begin), "{name} has {begin} twice");
    Ok(format!("{head}{begin}\n{text}{END}{tail}"))
}
