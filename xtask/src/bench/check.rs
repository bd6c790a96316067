use anyhow::Result;
use clap::Args;

use super::curves::Curve;
use super::generated;
use super::measure::{self, Cost, median};
use super::report::{Cell, Plot, Report, Table};
use crate::tools::Tools;

const COUNTS: [usize; 4] = [1, 10, 100, 1000];
const TARGETS: [&str; 2] = ["sm_80", "sm_90"];

const SHIPPED: [(&str, &[&str]); 5] = [
    ("all shipped manifests", &[]),
    ("`circ_pad_plugin`", &["manifests/circ_pad_plugin.toml"]),
    ("`elemwise_add_plugin`", &["manifests/elemwise_add_plugin.toml"]),
    ("`elemwise_add_plugin_`", &["manifests/elemwise_add_plugin_.toml"]),
    ("`non_zero_plugin`", &["manifests/non_zero_plugin.toml"]),
];

#[derive(Debug)]
struct CheckRuns {
    name: String,
    count: Option<usize>,
    words: Vec<String>,
    costs: Vec<Cost>,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of measurements of each
    #[arg(long, default_value_t = 25)]
    runs: usize,
    /// Fail if the median check of the shipped manifests takes longer than N milliseconds
    #[arg(long, value_name = "N")]
    limit_ms: Option<f64>,
    /// Fail if the median check of 1,000 generated manifests takes longer than N milliseconds
    #[arg(long, value_name = "N")]
    limit_generated_ms: Option<f64>,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench check --runs {}", self.runs)
    }
}

pub(super) fn measure(tools: &Tools, options: &Options) -> Result<(Report, Vec<String>)> {
    let report = Report::start(tools, "check", options.command())?;
    let folder = tempfile::tempdir()?;
    let mut measured = vec![CheckRuns::new("startup only", None, &["--version"])];
    for (name, manifests) in SHIPPED {
        measured.push(CheckRuns::new(name, None, &[&["check", "--quiet"], manifests].concat()));
    }
    for count in COUNTS {
        let name = count.to_string();
        let project = generated::checked(&folder.path().join(&name), count, &TARGETS)?;
        let project = project.display().to_string();
        measured.push(CheckRuns::new(&name, Some(count), &["check", "--quiet", "--config", &project]));
    }
    for _ in 0..options.runs {
        for runs in &mut measured {
            runs.costs.push(measure::run(tools.cubinder()?.args(&runs.words))?.0);
        }
    }
    let report = Report { tables: vec![table(&measured, options.runs)], plots: plots(&measured), ..report };
    Ok((report, exceeded(&measured, options)))
}

impl CheckRuns {
    fn new(name: &str, count: Option<usize>, words: &[&str]) -> CheckRuns {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        CheckRuns { name: name.to_owned(), count, words, costs: Vec::new() }
    }

    fn label(&self) -> String {
        self.count.map_or_else(|| self.name.clone(), |count| format!("{count} generated"))
    }

    fn milliseconds(&self) -> f64 {
        median(self.costs.iter().map(|cost| cost.wall)) * 1e3
    }

    /// Returns the shortest time: other work only adds time.
    fn best(&self) -> f64 {
        self.costs.iter().map(|cost| cost.wall).fold(f64::INFINITY, f64::min) * 1e3
    }

    fn peak(&self) -> f64 {
        self.costs.iter().map(|cost| cost.peak).fold(0.0, f64::max)
    }

    fn processor(&self) -> f64 {
        self.costs.iter().map(|cost| cost.cpu).sum::<f64>() / self.costs.len().max(1) as f64 * 1e3
    }
}

fn table(measured: &[CheckRuns], runs: usize) -> Table {
    let alone = measured.first().map_or(0.0, CheckRuns::milliseconds);
    let rows: Vec<(&CheckRuns, f64)> = measured.iter().map(|one| (one, alone)).collect();
    let text = format!(
        "`cubinder check` of whole projects, {}: wall time of the process (median and best), processor time (mean), and peak memory (`ru_maxrss`). The generated manifests have two element types, an attribute with \
             a rule, two guarded variants and a kernel file each, and are checked for {} and {}. The last column excludes the start of the process.",
        measure::turns(runs),
        TARGETS[0],
        TARGETS[1]
    );
    Table::new(
        "Manifests",
        text,
        &rows,
        &[
            ("manifests", |(one, _)| Cell::Text(one.label())),
            ("wall, ms", |(one, _)| one.milliseconds().into()),
            ("best, ms", |(one, _)| one.best().into()),
            ("processor, ms", |(one, _)| one.processor().into()),
            ("/ startup", |(one, alone)| (one.milliseconds() / alone).into()),
            ("memory, MB", |(one, _)| one.peak().into()),
            ("ms per manifest", |(one, alone)| {
                one.count.map(|count| (one.milliseconds() - alone) / count as f64).into()
            }),
        ],
    )
}

fn plots(measured: &[CheckRuns]) -> Vec<Plot> {
    let curve = |name: &str, value: fn(&CheckRuns) -> f64| {
        let points = measured.iter().filter_map(|one| Some([one.count? as f64, value(one)]));
        Curve { name: name.to_owned(), points: points.collect() }
    };
    let curves = vec![curve("wall, ms", CheckRuns::milliseconds), curve("memory, MB", CheckRuns::peak)];
    vec![Plot::new("growth", "time and memory of a check", "manifests", "ms, MB", curves)]
}

fn exceeded(measured: &[CheckRuns], options: &Options) -> Vec<String> {
    let above = |one: &CheckRuns| {
        let limit = if one.count.is_some() { options.limit_generated_ms } else { options.limit_ms }?;
        let (name, time) = (one.label(), one.milliseconds());
        (time > limit).then(|| format!("{name}: median {time:.1} ms exceeds the limit of {limit} ms"))
    };
    measured.iter().skip(1).filter_map(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, count: Option<usize>, milliseconds: f64) -> CheckRuns {
        let cost = Cost { wall: milliseconds / 1e3, cpu: 0.0, peak: 5.0 };
        CheckRuns { costs: vec![cost], ..CheckRuns::new(name, count, &[]) }
    }

    #[test]
    fn medians_above_their_limit_are_reported() {
        let measured =
            [one("alone", None, 99.0), one("a", None, 12.0), one("b", None, 31.0), one("9", Some(9), 99.0)];
        let found = |limit_ms, limit_generated_ms| {
            exceeded(&measured, &Options { runs: 1, limit_ms, limit_generated_ms })
        };
        assert!(found(None, None).is_empty() && found(Some(31.5), Some(99.5)).is_empty());
        assert_eq!(found(Some(30.0), None), ["b: median 31.0 ms exceeds the limit of 30 ms"]);
        assert_eq!(found(None, Some(98.0)), ["9 generated: median 99.0 ms exceeds the limit of 98 ms"]);
    }

    #[test]
    fn the_time_of_a_manifest_excludes_the_process() {
        let table = table(&[one("alone", None, 2.0), one("10", Some(10), 12.0)], 1);
        assert_eq!(table.rows[1].last(), Some(&Cell::Number(1.0)));
        assert_eq!(table.rows[0].last(), Some(&Cell::Nothing(())));
    }
}
