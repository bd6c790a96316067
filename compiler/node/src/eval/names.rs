//! Names in a query that the plugin does not have.

use crate::diagnostic::suggest;
use crate::errors::UnknownName;
use crate::query::{Mistake, Part};

/// The error for a name that the plugin does not have.
pub(super) fn unknown(part: Part, what: &str, name: &str, known: &[&str]) -> Mistake {
    let list = match known {
        [] => format!("the plugin has no {what}s"),
        known => format!("the plugin has `{}`", known.join("`, `")),
    };
    let near = suggest(name, known.iter().copied());
    let error = UnknownName { what, name, known: list, near };
    Mistake::new(part, name, error).near(near)
}

/// The known names that unknown ones may have been meant to be.
pub(super) fn meant<'a>(given: impl Iterator<Item = &'a String>, known: &[&'a str]) -> Vec<&'a str> {
    given
        .filter(|name| !known.contains(&name.as_str()))
        .filter_map(|name| suggest(name, known.iter().copied()))
        .collect()
}
