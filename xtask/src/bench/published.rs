//! Results of `kernel_bench` in the documentation.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde::Deserialize;

use super::charts::{self, Bar, Group};
use super::page::{self, FOLDER, PAGE};
use super::report::{self, Table, three_digits as digits};
use crate::files;

const RESULT: &str = "kernels.json";
const BEGIN: &str = "<!-- kernels -->";

const PLUGIN: &str = "plugin";

const PLUGINS: &str = "docs/plugins";
const TIMES: &str = "<!-- times -->";

#[derive(Debug, Deserialize)]
pub(super) struct KernelReport {
    /// The command; missing in old results.
    command: Option<String>,
    machine: Machine,
    date: String,
    cells: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Machine {
    name: String,
    driver: Option<String>,
    torch: String,
    triton: String,
}

#[derive(Debug, Deserialize)]
struct Node {
    plugin: String,
    size: String,
    what: String,
    #[serde(default)]
    types: BTreeMap<String, String>,
    /// Read and written; `None` if inputs could not be created.
    bytes: Option<u64>,
    /// Of equal size in the same turns, for nodes larger than all caches.
    copy_gigabytes_per_second: Option<f64>,
    ours: Outcome,
    rivals: Rivals,
}

#[derive(Debug, Deserialize)]
struct Rivals {
    torch: Outcome,
    compile: Outcome,
    triton: Outcome,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    microseconds: Option<f64>,
    middle_half: Option<[f64; 2]>,
    why: Option<String>,
    how: Option<String>,
    #[serde(default)]
    modes: BTreeMap<String, serde_json::Value>,
}

impl Outcome {
    fn against(&self, rival: &Outcome) -> Option<String> {
        let time = rival.microseconds?;
        let Some(own) = self.microseconds else { return Some(digits(time)) };
        let tie = if is_tie(self, rival) { ", tie" } else { "" };
        let text = format!("{}, {:.2}x{tie}", digits(time), time / own);
        Some(if own <= time { text } else { format!("**{text}**") })
    }

    fn remarks(&self) -> impl Iterator<Item = String> {
        let own = self.why.as_ref().or(self.how.as_ref()).cloned();
        let missing = self.modes.iter().filter_map(|(name, mode)| Some((name, mode.as_str()?)));
        let missing = missing.map(|(name, why)| format!("without `{name}`, because {why}"));
        own.into_iter().chain(missing.filter(|_| self.microseconds.is_some()))
    }
}

/// Another run could reverse the order: the middle halves overlap.
fn is_tie(own: &Outcome, rival: &Outcome) -> bool {
    own.middle_half
        .zip(rival.middle_half)
        .is_some_and(|(own, rival)| own[0] <= rival[1] && rival[0] <= own[1])
}

impl Node {
    fn rivals(&self) -> [(&'static str, &Outcome); 3] {
        let Rivals { torch, compile, triton } = &self.rivals;
        [("PyTorch", torch), ("torch.compile", compile), ("Triton", triton)]
    }

    fn share_of_copy(&self) -> Option<String> {
        let (own, copy) = (self.ours.microseconds?, self.copy_gigabytes_per_second?);
        Some(format!("{:.0} % of {copy:.0} GB/s", megabytes(self.bytes?) / own * 1e3 / copy * 100.0))
    }

    fn label(&self) -> String {
        let ty = self.types.get("T").map_or("f32", String::as_str);
        format!("{}, {ty}: {}", self.size, self.what)
    }
}

pub(super) fn publish(root: &Path, file: &Path) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let measured: KernelReport =
        serde_json::from_str(&text).with_context(|| format!("cannot parse the result {}", file.display()))?;
    let pages = pages(root, Some(&measured))?;
    let figures = figures(&measured)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(RESULT), &text)?;
    for (plugin, figure) in figures {
        fs::write(folder.join(format!("{plugin}.svg")), figure)?;
    }
    for (name, _, page) in pages {
        fs::write(root.join(name), page)?;
    }
    Ok(())
}

fn pages(root: &Path, measured: Option<&KernelReport>) -> Result<Vec<(String, String, String)>> {
    let names = plugin_pages(root)?;
    let measured_plugins = measured.map(plugins).unwrap_or_default();
    if let Some(without) = measured_plugins.iter().find(|plugin| !names.iter().any(|name| name == *plugin)) {
        bail!("{PLUGINS} has no page {without}.md for the times of `{without}`");
    }
    let mut texts = vec![(PAGE.to_owned(), BEGIN, measured.map_or_else(String::new, section))];
    texts.extend(names.iter().map(|name| (format!("{PLUGINS}/{name}.md"), TIMES, times(name, measured))));
    let edited = texts.into_iter().map(|(name, begin, text)| {
        let (before, after) = page::edited(root, &name, begin, &text)?;
        Ok((name, before, after))
    });
    edited.collect()
}

fn plugin_pages(root: &Path) -> Result<Vec<String>> {
    let names = files::list(&root.join(PLUGINS))?
        .into_iter()
        .filter_map(|path| Some(files::name(&path).ok()?.strip_suffix(".md")?.to_owned()));
    Ok(names.collect())
}

fn times(plugin: &str, measured: Option<&KernelReport>) -> String {
    let measured = measured.filter(|measured| plugins(measured).contains(&plugin));
    let Some(measured) = measured else { return "None are published.\n".to_owned() };
    let about = "Device time beside other implementations of the same operator; [Performance](../contributing/performance.md#kernels) describes the method.";
    format!(
        "{about} {}\n\n{}",
        machine(&measured.machine, &measured.date),
        table(measured, plugin, "../contributing/performance")
    )
}

fn section(measured: &KernelReport) -> String {
    let command = measured.command.as_ref().map_or_else(String::new, |command| format!("`{command}`. "));
    let mut text =
        format!("{command}{} {}\n\n", machine(&measured.machine, &measured.date), score(&measured.cells));
    for plugin in plugins(measured) {
        let table = table(measured, plugin, "performance");
        text.push_str(&format!("### {plugin}\n\n{table}\n"));
    }
    text
}

fn machine(machine: &Machine, date: &str) -> String {
    let driver = machine.driver.as_ref().map_or_else(String::new, |driver| format!(", driver {driver}"));
    format!("{}{driver}, PyTorch {}, Triton {}, {date}.", machine.name, machine.torch, machine.triton)
}

fn table(measured: &KernelReport, plugin: &str, folder: &str) -> String {
    let cells: Vec<&Node> = measured.cells.iter().filter(|cell| cell.plugin == plugin).collect();
    let table = Table::new(
        "",
        String::new(),
        &cells,
        &[
            ("node", |cell| report::Cell::from(cell.label())),
            ("moved, MB", |cell| cell.bytes.map(|bytes| digits(megabytes(bytes))).into()),
            ("plugin, us", |cell| cell.ours.microseconds.map(digits).into()),
            ("of a copy's rate", |cell| cell.share_of_copy().into()),
            ("PyTorch", |cell| cell.ours.against(&cell.rivals.torch).into()),
            ("torch.compile", |cell| cell.ours.against(&cell.rivals.compile).into()),
            ("Triton", |cell| cell.ours.against(&cell.rivals.triton).into()),
        ],
    );
    let notes = notes(&cells);
    let separator = if notes.is_empty() { "" } else { "\n" };
    format!(
        "{}{separator}{notes}\n![Times of {plugin} and its rivals, as multiples of the plugin's]({folder}/{plugin}.svg)\n",
        table.grid()
    )
}

fn score(cells: &[Node]) -> String {
    let pairs = cells.iter().flat_map(|cell| cell.rivals().map(|(_, rival)| (&cell.ours, rival)));
    let pairs = pairs.filter(|(_, rival)| rival.microseconds.is_some());
    let (wins, losses): (Vec<_>, Vec<_>) =
        pairs.partition(|(own, rival)| own.microseconds.is_some_and(|own| Some(own) <= rival.microseconds));
    let ties =
        |pairs: &[(&Outcome, &Outcome)]| pairs.iter().filter(|(own, rival)| is_tie(own, rival)).count();
    format!(
        "At least as fast as {wins} of {rivals} rivals. Ties, where the middle halves of both times overlap: {} of these {wins}, and {} of the faster rivals.",
        ties(&wins),
        ties(&losses),
        wins = wins.len(),
        rivals = wins.len() + losses.len()
    )
}

fn plugins(measured: &KernelReport) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for cell in &measured.cells {
        if !found.contains(&cell.plugin.as_str()) {
            found.push(&cell.plugin);
        }
    }
    found
}

fn notes(cells: &[&Node]) -> String {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells {
        for (name, outcome) in std::iter::once(("The plugin", &cell.ours)).chain(cell.rivals()) {
            for remark in outcome.remarks() {
                let text = format!("{name}: {}", remark.replace('<', "&lt;").replace('\n', " "));
                match found.iter_mut().find(|(other, _)| *other == text) {
                    Some((_, nodes)) => nodes.push(cell.label()),
                    None => found.push((text, vec![cell.label()])),
                }
            }
        }
    }
    found.iter().map(|(text, nodes)| format!("- {text} ({})\n", nodes.join("; "))).collect()
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn figures(measured: &KernelReport) -> Result<Vec<(String, String)>> {
    let figure = |plugin: &str| {
        let cells = measured.cells.iter().filter(|cell| cell.plugin == plugin);
        let groups: Vec<Group> = cells.filter_map(group).collect();
        Ok((plugin.to_owned(), charts::bars(&format!("{plugin} on {}", measured.machine.name), &groups)?))
    };
    plugins(measured).into_iter().map(figure).collect()
}

fn group(cell: &Node) -> Option<Group> {
    let own = cell.ours.microseconds?;
    let bar = |(name, outcome): (&'static str, &Outcome)| {
        let value = outcome.microseconds?;
        let times = value / own;
        let tie = if name != PLUGIN && is_tie(&cell.ours, outcome) { ", tie" } else { "" };
        Some(Bar {
            name: name.to_owned(),
            length: times,
            text: format!("{} us, {times:.2}x{tie}", digits(value)),
        })
    };
    let all = std::iter::once((PLUGIN, &cell.ours)).chain(cell.rivals());
    Some(Group { label: cell.label(), bars: all.filter_map(bar).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::page::{END, replaced};
    use super::*;

    const EXAMPLE: &str = r#"{
        "machine": {"name": "NVIDIA Example", "driver": "580.1", "torch": "2.11.0", "triton": "3.6.0"},
        "date": "2026-11-22",
        "cells": [
            {"plugin": "first", "size": "small", "what": "1 < 2 rows", "types": {"T": "bf16"}, "bytes": 4000000,
             "ours": {"microseconds": 2.0, "middle_half": [1.9, 2.1]},
             "rivals": {"torch": {"microseconds": 9.0}, "compile": {"microseconds": 1.9, "middle_half": [1.88, 1.95], "mode": "default", "modes": {"default": 1.9, "max": "no time was left for it"}}, "triton": {"microseconds": 2.0}}},
            {"plugin": "first", "size": "large", "what": "many rows", "bytes": 400000000, "copy_gigabytes_per_second": 4000.0,
             "ours": {"microseconds": 125.0, "middle_half": [124.0, 126.5]},
             "rivals": {"torch": {"microseconds": 250.0, "middle_half": [249.0, 251.0]}, "compile": {"why": "it took longer than 150 s"}, "triton": {"microseconds": 130.0, "middle_half": [126.5, 131.0]}}},
            {"plugin": "second", "size": "small", "what": "boxes",
             "ours": {"why": "the plugin refused"},
             "rivals": {"torch": {"microseconds": 88.8, "how": "no graph"}, "compile": {"why": "no"}, "triton": {"why": "no"}}}
        ]
    }"#;

    fn example() -> KernelReport {
        serde_json::from_str(EXAMPLE).unwrap()
    }

    #[test]
    fn tables_and_why_a_time_is_missing() {
        insta::assert_snapshot!(section(&example()));
    }

    #[test]
    fn rivals_without_a_time_do_not_count() {
        let score = score(&example().cells);
        assert!(score.starts_with("At least as fast as 4 of 6 rivals."), "{score}");
        assert!(score.ends_with(": 1 of these 4, and 1 of the faster rivals."), "{score}");
    }

    #[test]
    fn a_tie_is_where_middle_halves_overlap() {
        let outcome =
            |half: &str| serde_json::from_str::<Outcome>(&format!(r#"{{"middle_half": {half}}}"#)).unwrap();
        let is_tied = |own: &str, rival: &str| is_tie(&outcome(own), &outcome(rival));
        assert!(is_tied("[1, 2]", "[2, 3]") && is_tied("[2, 3]", "[1, 2]") && is_tied("[1, 9]", "[2, 3]"));
        assert!(!is_tied("[1, 2]", "[2.1, 3]") && !is_tied("[3, 4]", "[1, 2]"));
        assert!(!is_tied("null", "[1, 2]") && !is_tied("[1, 2]", "null"));
    }

    #[test]
    fn a_picture_has_bars_for_each_node() {
        let figures = figures(&example()).unwrap();
        assert_eq!(
            figures.iter().map(|(plugin, _)| plugin.as_str()).collect::<Vec<_>>(),
            ["first", "second"]
        );
        insta::assert_snapshot!(figures[0].1);
    }

    #[test]
    fn a_page_keeps_what_is_around_its_tables() {
        let page = "before\n<!-- kernels -->\nold\n<!-- end -->\nafter\n";
        let after = replaced("page.md", page, BEGIN, "new\n").unwrap();
        assert_eq!(after, "before\n<!-- kernels -->\nnew\n<!-- end -->\nafter\n");
        assert!(replaced("page.md", "no marker", BEGIN, "new").is_err());
        assert!(replaced("page.md", page, TIMES, "new").is_err());
    }

    #[test]
    fn the_page_of_a_plugin_has_its_own_times() {
        let measured = example();
        let text = times("first", Some(&measured));
        assert!(text.contains("| small, bf16: 1 < 2 rows |") && !text.contains("boxes"), "{text}");
        assert!(
            text.contains("](../contributing/performance/first.svg)") && text.contains("NVIDIA Example"),
            "{text}"
        );
        assert_eq!(times("third", Some(&measured)), times("first", None));
    }

    #[test]
    fn times_of_a_plugin_without_a_page_are_not_published() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(PLUGINS)).unwrap();
        std::fs::create_dir_all(root.path().join(PAGE).parent().unwrap()).unwrap();
        std::fs::write(root.path().join(PAGE), format!("{BEGIN}\n{END}\n")).unwrap();
        let page = |name: &str| root.path().join(format!("{PLUGINS}/{name}.md"));
        std::fs::write(page("first"), format!("{TIMES}\n{END}\n")).unwrap();
        let result = root.path().join("kernels.json");
        std::fs::write(&result, EXAMPLE).unwrap();
        let refused = publish(root.path(), &result).unwrap_err().to_string();
        assert_eq!(refused, "docs/plugins has no page second.md for the times of `second`");
        assert!(!root.path().join(FOLDER).exists(), "nothing is written");
        std::fs::write(page("second"), format!("{TIMES}\n{END}\n")).unwrap();
        publish(root.path(), &result).unwrap();
        assert!(
            std::fs::read_to_string(page("second"))
                .unwrap()
                .contains("../contributing/performance/second.svg")
        );
        assert!(root.path().join(FOLDER).join("second.svg").is_file());
    }

    #[test]
    fn the_pages_and_the_pictures_are_those_of_the_result() {
        let root = crate::workspace::root();
        let folder = root.join(FOLDER);
        let result = std::fs::read_to_string(folder.join(RESULT)).ok();
        let measured: Option<KernelReport> = result.map(|text| serde_json::from_str(&text).unwrap());
        let help = "`cargo xtask bench kernels --publish docs/contributing/performance/kernels.json` regenerates them";
        for (name, before, after) in pages(&root, measured.as_ref()).unwrap() {
            assert!(before == after, "{name}: {help}");
        }
        for (plugin, figure) in measured.iter().flat_map(|measured| figures(measured).unwrap()) {
            let written = std::fs::read_to_string(folder.join(format!("{plugin}.svg"))).unwrap();
            assert!(written == figure, "{plugin}: {help}");
        }
    }
}
