//! Constants that seem to mismatch their compiles; certain errors were rejected.

use std::collections::{BTreeMap, BTreeSet};

use super::constants::{ConstantValue, Values, of_constexpr};
use super::listing::{OLDER, definition_places, list_folders};
use super::{Compiled, options};

pub(super) fn remarks(all: &[Compiled], values: &[Values]) -> Vec<String> {
    let mut remarks = sizes(all, values);
    remarks.extend(sources(all, values));
    remarks.extend(definition_places(all));
    remarks.extend(options::remarks(all));
    remarks
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    /// Every `tl.arange` has another size.
    Sizes,
    Numbers,
}

/// Sizes of `tl.arange` are powers of 2 (`triton/language/semantic.py`, 3.9: `arange`).
fn doubt(compiled: &Compiled, number: u64) -> Option<Doubt> {
    match number {
        // Flags, and numbers that leave no trace.
        0 | 1 => None,
        _ if compiled.sizes.contains(&number) => None,
        _ if number.is_power_of_two() && !compiled.sizes.is_empty() => Some(Doubt::Sizes),
        _ => (!compiled.numbers.contains(&number)).then_some(Doubt::Numbers),
    }
}

/// Reports sizes that the code lacks: the grid would be wrong.
fn sizes(all: &[Compiled], values: &[Values]) -> Vec<String> {
    let mut doubtful: BTreeMap<(&str, u64, Doubt), Vec<&Compiled>> = BTreeMap::new();
    for (compiled, values) in all.iter().zip(values) {
        for (name, value) in values {
            if let ConstantValue::Number(text) = value
                && let Ok(number) = text.parse()
                && let Some(against) = doubt(compiled, number)
            {
                doubtful.entry((name, number, against)).or_default().push(compiled);
            }
        }
    }
    let remark = |((name, number, against), all): ((&str, u64, Doubt), Vec<&Compiled>)| {
        let folders = list_folders(&all);
        match against {
            Doubt::Numbers => format!(
                "`{name}` is specified as {number}, but no number in {folders} equals it: check that the code was compiled for it"
            ),
            Doubt::Sizes => {
                let sizes: BTreeSet<u64> =
                    all.iter().flat_map(|compiled| compiled.sizes.iter().copied()).collect();
                let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
                format!(
                    "`{name}` is specified as {number}, but no `tl.arange` in {folders} has that size: the sizes are {}. This is correct if `{name}` is not such a size",
                    sizes.join(", ")
                )
            }
        }
    };
    doubtful.into_iter().map(remark).collect()
}

fn sources(all: &[Compiled], values: &[Values]) -> Vec<String> {
    let mut classes: BTreeMap<Vec<String>, BTreeMap<String, &Compiled>> = BTreeMap::new();
    for (compiled, own) in all.iter().zip(of_constexpr(all, values)) {
        // Operations of a class are equal.
        classes.entry(own).or_default().entry(compiled.class()).or_insert(compiled);
    }
    let differing = classes.values().find_map(|classes| {
        let classes: Vec<&Compiled> = classes.values().copied().collect();
        classes.iter().enumerate().find_map(|(index, one)| {
            let first = classes.iter().take(index).find_map(|first| Some((first, do_the_same(first, one)?)));
            first.filter(|(_, is_same)| !is_same).map(|(first, _)| list_folders(&[*first, *one]))
        })
    });
    let remark = |folders: String| {
        format!(
            "The operations in {folders} differ in more than types and constants, which is correct if the kernel tests these. {OLDER}"
        )
    };
    differing.map(remark).into_iter().collect()
}

/// Ignores types and constant integers; `None` if unknown.
fn do_the_same(one: &Compiled, other: &Compiled) -> Option<bool> {
    let of_other = |name: &String| {
        let at = other.names.iter().position(|known| known == name)?;
        other.function.arguments.get(at)
    };
    let mut are_numbers_same = one.names.len() == other.names.len();
    for (name, argument) in one.names.iter().zip(&one.function.arguments) {
        match of_other(name) {
            Some(known) if known.is_pointer && argument.is_pointer => {
                // Integer and float additions are different operations.
                if known.ty != argument.ty && !(is_float(&known.ty) && is_float(&argument.ty)) {
                    return None;
                }
            }
            known => are_numbers_same &= known.is_some_and(|known| known.ty == argument.ty),
        }
    }
    Some(match are_numbers_same {
        true => one.fingerprint.without_types == other.fingerprint.without_types,
        false => one.fingerprint.without_integers == other.fingerprint.without_integers,
    })
}

fn is_float(ty: &str) -> bool {
    ty.starts_with('f') || ty == "bf16"
}
