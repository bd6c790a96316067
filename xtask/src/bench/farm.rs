//! A client of remote execution against a simulated farm (`compiler/remote/benches/farm.rs`).

use anyhow::Result;
use clap::Args;
use serde::Deserialize;

use super::curves::Curve;
use super::report::{Cell, Plot, Report, Table};
use crate::tools::last_line_as_json;
use crate::{process, workspace};

const COUNTS: [usize; 4] = [1_000, 2_000, 5_000, 10_000];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of workers
    #[arg(long, value_name = "N", default_value_t = 100)]
    workers: usize,
    /// Maximum number of units
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    largest: usize,
    /// Fail if workers are busy for less than N percent of the largest build
    #[arg(long, value_name = "N")]
    limit_busy: Option<f64>,
}

/// What the client's process prints.
#[derive(Debug, Clone, Deserialize)]
struct Build {
    units: f64,
    threads: f64,
    wall: f64,
    cpu: f64,
    peak: f64,
    /// Share of the time in which workers executed.
    busy: f64,
    /// Mean run time of a unit in seconds.
    mean: f64,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench farm --workers {} --largest {}", self.workers, self.largest)
    }
}

pub(super) fn measure(options: &Options) -> Result<(Report, Vec<String>)> {
    let report = Report::of_commit("farm", options.command())?;
    let counts = COUNTS.into_iter().filter(|count| *count <= options.largest);
    let mut all: Vec<Build> =
        counts.map(|count| build(count, options.workers, options.workers)).collect::<Result<_>>()?;
    let plots = plots(&all);
    let least = options.limit_busy.unwrap_or(0.0);
    let exceeded = all.last().filter(|build| build.busy * 100.0 < least).map(|build| {
        let busy = build.busy * 100.0;
        format!("{} units: workers were busy for {busy:.1} % of the time, expected {least} %", build.units)
    });
    // A queue hides the time between a result and the next action.
    all.push(build(options.largest, options.workers, options.workers * 2)?);
    let tables = vec![table(&all, options.workers)];
    Ok((Report { tables, plots, ..report }, exceeded.into_iter().collect()))
}

fn build(units: usize, workers: usize, threads: usize) -> Result<Build> {
    let mut command = workspace::cargo();
    command.args(["bench", "--quiet", "--package", "cubinder-remote", "--bench", "farm", "--"]);
    command.args([units, workers, threads].map(|number| number.to_string()));
    last_line_as_json(&process::capture(&mut command)?)
}

fn table(all: &[Build], workers: usize) -> Table {
    let mean = all.first().map_or(0.0, |build| build.mean * 1e3);
    let text = format!(
        "One process executes all units on a server in another process on the same machine, over the loopback interface, without TLS. Its {workers} workers sleep for the time of \
         a unit, {mean:.0} ms in the mean: the NVRTC calls of the shipped manifests for two architectures (`TIMES` in `compiler/remote/benches/farm.rs`). Each unit adds a text and three messages, shares 1,000 headers with all units, and returns 20 kB of code. Each thread waits for one unit. The last row has two threads for each worker. Memory is the peak of the client."
    );
    Table::new(
        "Units on workers",
        text,
        all,
        &[
            ("units", |build| Cell::from(build.units)),
            ("threads", |build| build.threads.into()),
            ("wall, s", |build| build.wall.into()),
            ("workers busy", |build| build.busy.into()),
            ("processor, s", |build| build.cpu.into()),
            ("processor time / time of workers", |build| (build.cpu / build.units / build.mean).into()),
            ("memory, MB", |build| build.peak.into()),
        ],
    )
}

fn plots(all: &[Build]) -> Vec<Plot> {
    let curve = |name: &str, value: fn(&Build) -> f64| {
        let points = all.iter().map(|build| [build.units, value(build)]);
        Curve { name: name.to_owned(), points: points.collect() }
    };
    let curves = vec![curve("processor, s", |build| build.cpu), curve("memory, MB", |build| build.peak)];
    vec![Plot::new("growth", "processor time and memory of the client", "units", "s, MB", curves)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_compared_with_the_workers() {
        let printed =
            r#"{"busy":0.9,"cpu":2,"mean":0.1,"peak":30,"threads":100,"units":1000,"wall":1,"workers":100}"#;
        let build: Build = last_line_as_json(printed).unwrap();
        let table = table(&[build], 100);
        let row = &table.rows[0];
        assert_eq!((&row[3], &row[5]), (&Cell::Number(0.9), &Cell::Number(0.02)));
    }
}
