use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;
use fs_err as fs;
use serde::Deserialize;

use super::compile::{self, ARCHITECTURES};
use super::contenders;
use super::curves::Curve;
use super::generated::{self, Op};
use super::measure::{self, median};
use super::report::{Plot, Report, Table};
use crate::tools::{Tools, last_line_as_json};

const COUNTS: [usize; 3] = [1, 100, 1000];

#[derive(Debug, Clone, Copy, Deserialize)]
struct Load {
    ms: f64,
    /// Private memory and mapped files.
    own_mb: f64,
    file_mb: f64,
    creators: usize,
}

#[derive(Debug)]
struct Library {
    megabytes: f64,
    loads: Vec<Load>,
}

#[derive(Debug)]
struct LibraryRuns {
    count: usize,
    code_megabytes: f64,
    cubinder: Library,
    cpp: Library,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of loads of each
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Maximum number of plugins
    #[arg(long, value_name = "N", default_value_t = 1000)]
    largest: usize,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench library --runs {} --largest {}", self.runs, self.largest)
    }
}

pub(super) fn measure(tools: &Tools, options: &Options) -> Result<Report> {
    let report = Report::start(tools, "library", options.command())?;
    let mut all = Vec::new();
    for count in COUNTS.into_iter().filter(|count| *count <= options.largest) {
        eprintln!("{count} plugins for {} architectures", ARCHITECTURES.len());
        all.push(measure_count(tools, options.runs, count)?);
    }
    Ok(Report { tables: vec![table(&all, options.runs)], plots: plots(&all), ..report })
}

fn measure_count(tools: &Tools, runs: usize, count: usize) -> Result<LibraryRuns> {
    let folder = tempfile::tempdir()?;
    let ops = generated::adding(count);
    let cubinder = contenders::cubinder(tools, folder.path(), "many", &ops, &ARCHITECTURES, false)?;
    let code = contenders::fatbin(folder.path(), &ops, &ARCHITECTURES)?;
    let cpp = contenders::cpp(tools, folder.path(), &ops, &code)?;
    let code_megabytes = bare_code(tools, folder.path(), &ops)?;
    let library =
        |file: &Path| Ok::<_, anyhow::Error>(Library { megabytes: megabytes(file)?, loads: Vec::new() });
    let mut both = LibraryRuns { count, code_megabytes, cubinder: library(&cubinder)?, cpp: library(&cpp)? };
    for _ in 0..runs {
        both.cubinder.loads.push(load(tools, &cubinder)?);
        both.cpp.loads.push(load(tools, &cpp)?);
    }
    let mut loads = both.cubinder.loads.iter().chain(&both.cpp.loads);
    ensure!(
        loads.all(|one| one.creators == count),
        "expected {count} creators in both libraries, found {both:?}"
    );
    Ok(both)
}

/// One plugin's code size times their number: only a constant differs.
fn bare_code(tools: &Tools, folder: &Path, ops: &[Op]) -> Result<f64> {
    let first = ops.first().context("there is a plugin")?.kernel();
    let mut bare = compile::bare(tools, folder, &first, None, &ARCHITECTURES)?;
    Ok(compile::run_bare(&mut bare)?.bytes / 1e6 * ops.len() as f64)
}

fn load(tools: &Tools, library: &Path) -> Result<Load> {
    last_line_as_json(&measure::run(tools.python("bench_load.py")?.arg(library))?.1)
}

fn megabytes(file: &Path) -> Result<f64> {
    Ok(fs::metadata(file)?.len() as f64 / 1e6)
}

impl LibraryRuns {
    fn load_ratio(&self) -> f64 {
        median(self.cubinder.loads.iter().zip(&self.cpp.loads).map(|(own, rival)| own.ms / rival.ms))
    }
}

impl Library {
    fn median(&self, value: fn(&Load) -> f64) -> f64 {
        median(self.loads.iter().map(value))
    }

    fn memory(&self) -> f64 {
        self.median(|load| load.own_mb + load.file_mb)
    }
}

fn table(all: &[LibraryRuns], runs: usize) -> Table {
    let title = format!("Plugins, each for {} architectures", ARCHITECTURES.len());
    let text = format!(
        "Element-wise plugins with one kernel each, beside a hand-written C++ library with as many plugins (`tests/rival-plugin`), which check nothing and have no attributes, and a fat binary from nvcc. \
             The column of its code divides by the size of NVRTC's machine code. Loading is `load_library` of TensorRT-RTX's registry in a new process, {} for each library, medians. Memory is the growth of the process; private memory excludes pages of the file.",
        measure::turns(runs)
    );
    Table::new(
        title,
        text,
        all,
        &[
            ("plugins", |one| one.count as f64),
            ("size, MB", |one| one.cubinder.megabytes),
            ("/ its code", |one| one.cubinder.megabytes / one.code_megabytes),
            ("C++: size, MB", |one| one.cpp.megabytes),
            ("size / C++", |one| one.cubinder.megabytes / one.cpp.megabytes),
            ("load, ms", |one| one.cubinder.median(|load| load.ms)),
            ("C++: load, ms", |one| one.cpp.median(|load| load.ms)),
            ("load / C++", LibraryRuns::load_ratio),
            ("memory, MB", |one| one.cubinder.memory()),
            ("private, MB", |one| one.cubinder.median(|load| load.own_mb)),
            ("C++: memory, MB", |one| one.cpp.memory()),
        ],
    )
}

fn plots(all: &[LibraryRuns]) -> Vec<Plot> {
    let curve = |name: &str, value: fn(&LibraryRuns) -> f64| {
        let points = all.iter().map(|one| [one.count as f64, value(one)]).collect();
        Curve { name: name.to_owned(), points }
    };
    let curves = vec![
        curve("size, MB", |one| one.cubinder.megabytes),
        curve("C++: size, MB", |one| one.cpp.megabytes),
        curve("load, ms", |one| one.cubinder.median(|load| load.ms)),
        curve("C++: load, ms", |one| one.cpp.median(|load| load.ms)),
        curve("memory, MB", |one| one.cubinder.memory()),
        curve("C++: memory, MB", |one| one.cpp.memory()),
    ];
    vec![Plot::new("growth", "size, load time and memory of a library", "plugins", "MB, ms", curves)]
}

#[cfg(test)]
mod tests {
    use super::super::report::Cell;
    use super::*;

    #[test]
    fn loads_are_compared_turn_by_turn() {
        let library = |megabytes, times: [f64; 3]| {
            let load = |ms| Load { ms, own_mb: 1.0, file_mb: 2.0, creators: 1 };
            Library { megabytes, loads: times.map(load).to_vec() }
        };
        let measured = LibraryRuns {
            count: 1,
            code_megabytes: 4.0,
            cubinder: library(2.0, [3.0, 30.0, 4.0]),
            cpp: library(1.0, [1.0, 10.0, 1.0]),
        };
        let table = table(&[measured], 3);
        assert_eq!(table.rows[0][7], Cell::Number(3.0));
        assert_eq!(table.rows[0][2], Cell::Number(0.5));
    }
}
