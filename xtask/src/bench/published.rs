//! What `kernel_bench` found, as it stands in the documentation: tables, and a picture for each operator.
//!
//! Owns the form of its result, and `docs/performance` with what is made of it. Never measures.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::plot::{self, Bar, Group};

/// The page, and the folder beside it: the result as it came, and the pictures.
const PAGE: &str = "docs/performance.md";
const FOLDER: &str = "docs/performance";
const RESULT: &str = "kernels.json";
const BEGIN: &str = "<!-- kernels -->";
const END: &str = "<!-- end -->";

/// A result: `kernels.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Measured {
    machine: Machine,
    date: String,
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Machine {
    name: String,
    driver: Option<String>,
    torch: String,
    triton: String,
    copy_gigabytes_per_second: f64,
}

/// A node of a plugin.
#[derive(Debug, Deserialize)]
struct Cell {
    plugin: String,
    size: String,
    what: String,
    #[serde(default)]
    types: BTreeMap<String, String>,
    /// What must be read and written; not there where the inputs could not be made.
    bytes: Option<u64>,
    ours: Outcome,
    rivals: Rivals,
}

#[derive(Debug, Deserialize)]
struct Rivals {
    torch: Outcome,
    compile: Outcome,
    triton: Outcome,
}

/// A time, or why there is none.
#[derive(Debug, Deserialize)]
struct Outcome {
    microseconds: Option<f64>,
    why: Option<String>,
    /// Where it was not measured as the others were.
    how: Option<String>,
}

impl Cell {
    fn rivals(&self) -> [(&'static str, &Outcome); 3] {
        let Rivals { torch, compile, triton } = &self.rivals;
        [("PyTorch", torch), ("torch.compile", compile), ("Triton", triton)]
    }

    /// The element type and the node.
    fn label(&self) -> String {
        let ty = self.types.get("T").map_or("f32", String::as_str);
        format!("{}, {ty}: {}", self.size, self.what)
    }
}

/// Reads a result, writes it and the pictures into the folder, and the tables into the page, all below `root`.
///
/// # Errors
/// When a file cannot be read or written, or is not as expected.
pub(super) fn publish(root: &Path, file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let measured: Measured =
        serde_json::from_str(&text).with_context(|| format!("{} is no result", file.display()))?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(folder.join(RESULT), &text)?;
    for (plugin, picture) in pictures(&measured) {
        std::fs::write(folder.join(format!("{plugin}.svg")), picture)?;
    }
    let page = root.join(PAGE);
    let before = std::fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    std::fs::write(&page, replaced(&before, &section(&measured))?)?;
    Ok(())
}

/// The page with another text between the markers.
fn replaced(page: &str, text: &str) -> Result<String> {
    let (head, rest) = page
        .split_once(BEGIN)
        .with_context(|| format!("{PAGE} has no {BEGIN}, between which and {END} the tables stand"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{PAGE} has no {END} behind {BEGIN}"))?;
    ensure!(!tail.contains(BEGIN), "{PAGE} has {BEGIN} twice");
    Ok(format!("{head}{BEGIN}\n{text}{END}{tail}"))
}

/// What stands in the page.
fn section(measured: &Measured) -> String {
    let machine = &measured.machine;
    let driver = machine.driver.as_ref().map_or_else(String::new, |driver| format!(", driver {driver}"));
    let (wins, count) = wins(&measured.cells);
    let mut text = format!(
        "{}{driver}, PyTorch {}, Triton {}, {}; a copy of 1 GiB moves {:.0} GB/s. At least as fast as {wins} of {count} rivals.\n\n",
        machine.name, machine.torch, machine.triton, measured.date, machine.copy_gigabytes_per_second
    );
    for plugin in plugins(measured) {
        text.push_str(&format!("### {plugin}\n\n"));
        text.push_str(
            "| node | moved, MB | plugin, us | of a copy's rate | PyTorch | torch.compile | Triton |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|\n");
        let cells: Vec<&Cell> = measured.cells.iter().filter(|cell| cell.plugin == plugin).collect();
        for cell in &cells {
            text.push_str(&row(cell, machine.copy_gigabytes_per_second));
        }
        let notes = notes(&cells);
        if !notes.is_empty() {
            text.push('\n');
            text.push_str(&notes);
        }
        text.push_str(&format!("\n![Times of {plugin} and its rivals, as multiples of the plugin's](performance/{plugin}.svg)\n\n"));
    }
    text
}

/// How many rivals have a time, and how many of these the plugin takes no longer than.
fn wins(cells: &[Cell]) -> (usize, usize) {
    let pairs = cells.iter().flat_map(|cell| {
        let times = cell.rivals().map(|(_, rival)| rival.microseconds);
        times.into_iter().flatten().map(|theirs| cell.ours.microseconds.is_some_and(|own| own <= theirs))
    });
    let pairs: Vec<bool> = pairs.collect();
    (pairs.iter().filter(|is_win| **is_win).count(), pairs.len())
}

/// In the order in which they were measured.
fn plugins(measured: &Measured) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for cell in &measured.cells {
        if !found.contains(&cell.plugin.as_str()) {
            found.push(&cell.plugin);
        }
    }
    found
}

fn row(cell: &Cell, copy: f64) -> String {
    let moved = cell.bytes.map_or_else(|| "-".to_owned(), |bytes| digits(megabytes(bytes)));
    let own = cell.ours.microseconds;
    let share = match (cell.bytes, own) {
        (Some(bytes), Some(own)) => format!("{:.0} %", megabytes(bytes) / own * 1e3 / copy * 100.0),
        _ => "-".to_owned(),
    };
    let time = own.map_or_else(|| "-".to_owned(), digits);
    let rivals = cell.rivals().map(|(_, rival)| against(own, rival));
    format!("| {} | {moved} | {time} | {share} | {} |\n", cell.label(), rivals.join(" | "))
}

/// A rival's time, and how many times the plugin's it is; bold where that is less.
fn against(own: Option<f64>, rival: &Outcome) -> String {
    match (own, rival.microseconds) {
        (Some(own), Some(theirs)) if own <= theirs => format!("{}, {:.2}x", digits(theirs), theirs / own),
        (Some(own), Some(theirs)) => format!("**{}, {:.2}x**", digits(theirs), theirs / own),
        (None, Some(theirs)) => digits(theirs),
        (_, None) => "-".to_owned(),
    }
}

/// Why times are missing, or were taken in another way: each reason once, with the nodes that it is about.
fn notes(cells: &[&Cell]) -> String {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in cells {
        for (name, outcome) in std::iter::once(("The plugin", &cell.ours)).chain(cell.rivals()) {
            let Some(why) = outcome.why.as_ref().or(outcome.how.as_ref()) else { continue };
            let text = format!("{name}: {}", why.replace('<', "&lt;").replace('\n', " "));
            match found.iter_mut().find(|(other, _)| *other == text) {
                Some((_, sizes)) => sizes.push(&cell.size),
                None => found.push((text, vec![&cell.size])),
            }
        }
    }
    found.iter().map(|(text, sizes)| format!("- {text} ({})\n", sizes.join(", "))).collect()
}

/// Three digits, or more in front of the point.
fn digits(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[allow(clippy::cast_precision_loss)] // to three digits
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A picture for each plugin: times as multiples of its own.
fn pictures(measured: &Measured) -> Vec<(String, String)> {
    let picture = |plugin: &str| {
        let cells = measured.cells.iter().filter(|cell| cell.plugin == plugin);
        let groups: Vec<Group> = cells.filter_map(group).collect();
        (plugin.to_owned(), plot::bars(&format!("{plugin} on {}", measured.machine.name), &groups))
    };
    plugins(measured).into_iter().map(picture).collect()
}

/// One without a time of the plugin's has nothing that others could be a multiple of.
fn group(cell: &Cell) -> Option<Group> {
    let own = cell.ours.microseconds?;
    let bar = |(name, outcome): (&'static str, &Outcome)| {
        let value = outcome.microseconds?;
        let times = value / own;
        Some(Bar { name, length: times, text: format!("{} us, {times:.2}x", digits(value)) })
    };
    let all = std::iter::once(("plugin", &cell.ours)).chain(cell.rivals());
    Some(Group { label: cell.label(), bars: all.filter_map(bar).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two operators: one with a rival that is faster, one with a rival that failed and one that was measured in another way.
    const EXAMPLE: &str = r#"{
        "machine": {"name": "NVIDIA Example", "driver": "580.1", "torch": "2.11.0", "triton": "3.6.0", "copy_gigabytes_per_second": 4000.0},
        "date": "2026-11-22",
        "cells": [
            {"plugin": "first", "size": "small", "what": "1 < 2 rows", "types": {"T": "bf16"}, "bytes": 4000000,
             "ours": {"microseconds": 2.0},
             "rivals": {"torch": {"microseconds": 9.0}, "compile": {"microseconds": 1.9, "mode": "default"}, "triton": {"microseconds": 2.0}}},
            {"plugin": "first", "size": "large", "what": "many rows", "bytes": 400000000,
             "ours": {"microseconds": 125.0},
             "rivals": {"torch": {"microseconds": 250.0}, "compile": {"why": "it took longer than 150 s"}, "triton": {"microseconds": 130.0}}},
            {"plugin": "second", "size": "small", "what": "boxes",
             "ours": {"why": "the plugin refused"},
             "rivals": {"torch": {"microseconds": 88.8, "how": "no graph"}, "compile": {"why": "no"}, "triton": {"why": "no"}}}
        ]
    }"#;

    fn example() -> Measured {
        serde_json::from_str(EXAMPLE).unwrap()
    }

    #[test]
    fn tables_and_why_a_time_is_missing() {
        insta::assert_snapshot!(section(&example()));
    }

    #[test]
    fn rivals_without_a_time_do_not_count_and_a_tie_is_a_win() {
        assert_eq!(wins(&example().cells), (4, 6));
    }

    #[test]
    fn a_picture_has_bars_for_each_node() {
        let pictures = pictures(&example());
        assert_eq!(
            pictures.iter().map(|(plugin, _)| plugin.as_str()).collect::<Vec<_>>(),
            ["first", "second"]
        );
        insta::assert_snapshot!(pictures[0].1);
    }

    #[test]
    fn a_page_keeps_what_is_around_its_tables() {
        let page = "before\n<!-- kernels -->\nold\n<!-- end -->\nafter\n";
        assert_eq!(replaced(page, "new\n").unwrap(), "before\n<!-- kernels -->\nnew\n<!-- end -->\nafter\n");
        assert!(replaced("no marker", "new").is_err());
    }

    /// What is published is what the result says.
    #[test]
    fn the_page_and_the_pictures_are_those_of_the_result() {
        let root = crate::workspace::root();
        let folder = root.join(FOLDER);
        let page = std::fs::read_to_string(root.join(PAGE)).unwrap();
        let Ok(result) = std::fs::read_to_string(folder.join(RESULT)) else {
            assert_eq!(replaced(&page, "").unwrap(), page, "tables without a result");
            return;
        };
        let measured: Measured = serde_json::from_str(&result).unwrap();
        let help = "`cargo xtask bench kernels --publish docs/performance/kernels.json` writes both anew";
        assert!(replaced(&page, &section(&measured)).unwrap() == page, "{help}");
        for (plugin, picture) in pictures(&measured) {
            let written = std::fs::read_to_string(folder.join(format!("{plugin}.svg"))).unwrap();
            assert!(written == picture, "{plugin}: {help}");
        }
    }
}
