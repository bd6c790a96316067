//! What a person should look at again: what is said of compiles and what is in them do not seem to belong together.
//!
//! Owns doubts alone, which become comments of the manifest. What is certainly wrong is refused elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::Compiled;
use super::constants::{Fixed, Values};

/// Remarks about compiles and the values that are said of their constants.
pub(super) fn remarks(all: &[Compiled], values: &[Values]) -> Vec<String> {
    sizes(all, values)
}

/// What speaks against a value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Against {
    /// Each `tl.arange` has another size.
    Sizes,
    /// The number is nowhere in the code.
    Numbers,
}

/// What speaks against a number being the value of a constant of this compile. Sizes of `tl.arange` are powers of 2
/// (`triton/language/semantic.py`, 3.9: `arange`).
fn against(compiled: &Compiled, number: u64) -> Option<Against> {
    match number {
        // Flags, and numbers that leave nothing behind.
        0 | 1 => None,
        _ if compiled.sizes.contains(&number) => None,
        _ if number.is_power_of_two() && !compiled.sizes.is_empty() => Some(Against::Sizes),
        _ => (!compiled.numbers.contains(&number)).then_some(Against::Numbers),
    }
}

/// Values that are no size of the code which they are said of: the grid would be that of other code.
fn sizes(all: &[Compiled], values: &[Values]) -> Vec<String> {
    let mut doubtful: BTreeMap<(&str, u64, Against), Vec<&Compiled>> = BTreeMap::new();
    for (compiled, values) in all.iter().zip(values) {
        for (name, value) in values {
            if let Fixed::Number(text) = value
                && let Ok(number) = text.parse()
                && let Some(against) = against(compiled, number)
            {
                doubtful.entry((name, number, against)).or_default().push(compiled);
            }
        }
    }
    let remark = |((name, number, against), all): ((&str, u64, Against), Vec<&Compiled>)| {
        let folders = named(&all);
        match against {
            Against::Numbers => format!(
                "`{name}` is said to be {number}, and no number in {folders} is: look whether the code was made for it"
            ),
            Against::Sizes => {
                let sizes: BTreeSet<u64> =
                    all.iter().flat_map(|compiled| compiled.sizes.iter().copied()).collect();
                let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
                format!(
                    "`{name}` is said to be {number}, and no `tl.arange` in {folders} has that size: there are {}. That is right where `{name}` is the size of none",
                    sizes.join(", ")
                )
            }
        }
    };
    doubtful.into_iter().map(remark).collect()
}

/// The folders of some compiles, for people.
pub(super) fn named(all: &[&Compiled]) -> String {
    const MOST: usize = 4;
    let names: Vec<String> =
        all.iter().take(MOST).map(|compiled| format!("`{}`", compiled.folder())).collect();
    let more = match all.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}
