use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use fs_err as fs;
use serde::Deserialize;

use super::curves::Curve;
use super::generated;
use super::measure::{self, Cost, median};
use super::report::{Plot, Report, Table};
use crate::files;
use crate::setup::packages;
use crate::tools::{Tools, last_line_as_json};

pub(super) const ARCHITECTURES: [&str; 8] =
    ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"];

const SIZES: [(usize, usize); 9] =
    [(1, 1), (1, 2), (1, 4), (1, 8), (10, 1), (100, 1), (100, 8), (1000, 1), (1000, 8)];

/// `MEMORY` of `compiler/nvrtc/src/nvrtc/workers.rs` (a test compares). NVRTC runs with and without.
const MEMORY: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TRIM_THRESHOLD_", "1099511627776"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
];

/// A sample costs milliseconds of a processor.
const TIMED_SAMPLING: Duration = Duration::from_secs(2);
const UNTIMED_SAMPLING: Duration = Duration::from_millis(5);
/// Maximum kernels of compiles repeated to measure memory.
const MAX_UNTIMED_KERNELS: usize = 200;

#[derive(Debug, Default)]
struct CompileRuns {
    variants: usize,
    architectures: usize,
    cold: Vec<Cost>,
    warm: Vec<Cost>,
    peak: f64,
    calls: f64,
    bare: Vec<Bare>,
    /// Compiles without Cubinder, measured with [`MEMORY`].
    bare_alike: Vec<Bare>,
    nvcc: Vec<Cost>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Bare {
    /// First to last call, on all processors.
    wall: f64,
    /// Processor seconds.
    cpu: f64,
    pub(super) bytes: f64,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Maximum number of measurements of each
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Maximum of variants times architectures
    #[arg(long, value_name = "N", default_value_t = 8000)]
    largest: usize,
    /// Fail if a cold compile of 100 or more variants takes longer than N times NVRTC alone
    #[arg(long, value_name = "N")]
    limit_bare: Option<f64>,
    /// Fail if a cold compile takes longer than N times nvcc
    #[arg(long, value_name = "N")]
    limit_nvcc: Option<f64>,
    /// Fail if a warm compile for one architecture takes longer than N seconds
    #[arg(long, value_name = "N")]
    limit_warm: Option<f64>,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench compile --runs {} --largest {}", self.runs, self.largest)
    }
}

/// Starting processes hardly counts from here on.
const MIN_LIMITED_VARIANTS: usize = 100;

pub(super) fn measure(tools: &Tools, options: &Options) -> Result<(Report, Vec<String>)> {
    let report = Report::start(tools, "compile", options.command())?;
    let nvcc = packages::nvcc()?;
    let mut all = Vec::new();
    for (variants, architectures) in
        SIZES.into_iter().filter(|(variants, architectures)| variants * architectures <= options.largest)
    {
        eprintln!("{variants} variants for {architectures} architectures");
        all.push(measure_size(tools, &nvcc, options.runs, variants, &ARCHITECTURES[..architectures])?);
    }
    let report = Report { tables: vec![table(&all, measure::cores())], plots: plots(&all), ..report };
    Ok((report, exceeded(&all, options)))
}

fn exceeded(all: &[CompileRuns], options: &Options) -> Vec<String> {
    let exceeded = |runs: &CompileRuns| {
        let what = format!("{} variants for {} architectures", runs.variants, runs.architectures);
        let bare = options.limit_bare.filter(|_| runs.variants >= MIN_LIMITED_VARIANTS);
        let warm = options.limit_warm.filter(|_| runs.architectures == 1);
        let limits = [
            ("cold / bare", runs.against_bare(), bare),
            ("cold / nvcc", runs.against_nvcc(), options.limit_nvcc),
            ("warm, s,", wall(&runs.warm), warm),
        ];
        limits.into_iter().filter_map(move |(name, value, limit)| {
            let limit = limit.filter(|limit| value > *limit)?;
            Some(format!("{what}: {name} is {value:.3}, the limit is {limit}"))
        })
    };
    all.iter().flat_map(exceeded).collect()
}

fn measure_size(
    tools: &Tools,
    nvcc: &Path,
    runs: usize,
    variants: usize,
    architectures: &[&str],
) -> Result<CompileRuns> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let manifest = generated::variants(folder, variants)?;
    let (source, instances) = generated::instantiated(variants);
    // The usual way: one file, and one call for all architectures.
    let all_kernels = folder.join("nvcc.cu");
    files::write(&all_kernels, format!("{source}{instances}"))?;
    let compile = |cache: &Path| -> Result<Command> {
        let mut command = tools.cubinder()?;
        command.env("CUBINDER_CACHE", cache).env("CUBINDER_NVRTC", tools.nvrtc()?);
        command.args(["compile", "--json", "--target", &architectures.join(",")]);
        command.arg("--out-dir").arg(folder).arg(&manifest);
        Ok(command)
    };
    let objects = variants * architectures.len();
    let mut measured = CompileRuns { variants, architectures: architectures.len(), ..CompileRuns::default() };
    for turn in 0..measure::repetitions(objects, runs) {
        let cache = folder.join(format!("cache-{turn}"));
        let (cost, peak, output) = measure::with_memory_together(&mut compile(&cache)?, TIMED_SAMPLING)?;
        measured.cold.push(cost);
        measured.calls = result_number(&output, "nvrtc_calls")?;
        measured.peak = measured.peak.max(peak);
        for _ in 0..3 {
            measured.warm.push(measure::run(&mut compile(&cache)?)?.0);
        }
        let mut bare = bare(tools, folder, source, Some(&instances), architectures)?;
        bare.arg("--together");
        measured.bare.push(run_bare(&mut bare)?);
        measured.bare_alike.push(run_bare(bare.envs(MEMORY))?);
        let mut nvcc = fatbin(nvcc, &all_kernels, &folder.join("nvcc.fatbin"), architectures);
        measured.nvcc.push(measure::run(&mut nvcc)?.0);
        fs::remove_dir_all(&cache)?;
    }
    if objects <= MAX_UNTIMED_KERNELS {
        let mut command = compile(&folder.join("cache-peak"))?;
        measured.peak = measured.peak.max(measure::with_memory_together(&mut command, UNTIMED_SAMPLING)?.1);
    }
    Ok(measured)
}

fn result_number(output: &str, name: &str) -> Result<f64> {
    let result: serde_json::Value = last_line_as_json(output)?;
    result[name].as_f64().with_context(|| format!("`cubinder compile --json` printed no `{name}`"))
}

pub(super) fn bare(
    tools: &Tools,
    folder: &Path,
    source: &str,
    instances: Option<&str>,
    architectures: &[&str],
) -> Result<Command> {
    let mut command = tools.python("bare_nvrtc.py")?;
    for (name, _) in MEMORY {
        command.env_remove(name);
    }
    let file = folder.join("bare.cu");
    files::write(&file, source)?;
    command.arg(tools.nvrtc()?).arg("--source").arg(file);
    if let Some(instances) = instances {
        let file = folder.join("bare.instances");
        files::write(&file, instances)?;
        command.arg("--instances").arg(file);
    }
    command.args(architectures.iter().flat_map(|arch| ["--arch", arch]));
    command.args(["--processes", &measure::cores().to_string()]);
    Ok(command)
}

pub(super) fn run_bare(command: &mut Command) -> Result<Bare> {
    last_line_as_json(&measure::run(command)?.1)
}

pub(super) fn fatbin(nvcc: &Path, source: &Path, output: &Path, architectures: &[&str]) -> Command {
    let mut command = Command::new(nvcc);
    command.args(["-fatbin", "--threads", &measure::cores().to_string(), "-o"]).arg(output).arg(source);
    for arch in architectures {
        let number = arch.trim_start_matches("sm_");
        command.args(["-gencode", &format!("arch=compute_{number},code=sm_{number}")]);
    }
    command
}

impl CompileRuns {
    fn warm_processor(&self) -> f64 {
        self.warm.iter().map(|cost| cost.cpu).sum::<f64>() / self.warm.len().max(1) as f64
    }

    fn against_bare(&self) -> f64 {
        ratio(&self.cold, &self.bare, |cold, bare| cold.wall / bare.wall)
    }

    fn against_nvcc(&self) -> f64 {
        ratio(&self.cold, &self.nvcc, |cold, nvcc| cold.wall / nvcc.wall)
    }

    fn processor_against_bare(&self) -> f64 {
        ratio(&self.cold, &self.bare, |cold, bare| cold.cpu / bare.cpu)
    }
}

fn wall(costs: &[Cost]) -> f64 {
    median(costs.iter().map(|cost| cost.wall))
}

/// Median ratio to the turn's cold compile, which cancels other load.
fn ratio<T>(cold: &[Cost], others: &[T], ratio: fn(&Cost, &T) -> f64) -> f64 {
    median(cold.iter().zip(others).map(|(cold, other)| ratio(cold, other)))
}

fn table(all: &[CompileRuns], cores: f64) -> Table {
    let settings = MEMORY.map(|(name, value)| format!("`{name}={value}`")).join(", ");
    let text = format!(
        "One plugin whose variants differ in a constant of a short kernel. Cold starts with an empty cache; warm repeats the compile. Times are wall times of the whole process, medians of as many turns as the table shows (warm: three runs per turn). \
             Each turn also measures two rivals. Bare NVRTC: all kernels in one program for each architecture, or in {cores} programs for a single one, in {cores} processes, without their start. nvcc 13.0: one call for one file with all kernels, `--threads {cores}`. \
             Cubinder makes one more NVRTC call for up to 128 variants to find the parameters of their kernels. Its NVRTC processes run with malloc settings that keep freed memory ({settings}). Columns with equal malloc settings compare with NVRTC calls with the same settings. \
             Memory is the peak of all processes together, sampled every {} s, and every {} ms in an untimed run of up to {MAX_UNTIMED_KERNELS} kernels, so short peaks of longer compiles can be missed.",
        TIMED_SAMPLING.as_secs(),
        UNTIMED_SAMPLING.as_millis()
    );
    Table::new(
        "Variants and architectures",
        text,
        all,
        &[
            ("variants", |runs| runs.variants as f64),
            ("architectures", |runs| runs.architectures as f64),
            ("turns", |runs| runs.cold.len() as f64),
            ("cold, s", |runs| wall(&runs.cold)),
            ("processors used", |runs| median(runs.cold.iter().map(|cost| cost.cpu / cost.wall))),
            ("memory, MB", |runs| runs.peak),
            ("NVRTC calls", |runs| runs.calls),
            ("bare NVRTC, s", |runs| median(runs.bare.iter().map(|bare| bare.wall))),
            ("cold / bare", CompileRuns::against_bare),
            ("processor time / bare", CompileRuns::processor_against_bare),
            ("cold / bare, equal malloc settings", |runs| {
                ratio(&runs.cold, &runs.bare_alike, |cold, bare| cold.wall / bare.wall)
            }),
            ("processor time / bare, equal malloc settings", |runs| {
                ratio(&runs.cold, &runs.bare_alike, |cold, bare| cold.cpu / bare.cpu)
            }),
            ("nvcc, s", |runs| wall(&runs.nvcc)),
            ("cold / nvcc", CompileRuns::against_nvcc),
            ("warm, s", |runs| wall(&runs.warm)),
            ("warm / cold", |runs| wall(&runs.warm) / wall(&runs.cold)),
            ("warm, processor s", CompileRuns::warm_processor),
        ],
    )
}

fn plots(all: &[CompileRuns]) -> Vec<Plot> {
    type Value = fn(&CompileRuns) -> f64;
    let curve = |name: &str, architectures: usize, value: Value| {
        let points = all.iter().filter(|measured| measured.architectures == architectures);
        let points = points.map(|measured| [measured.variants as f64, value(measured)]);
        Curve { name: format!("{name}, {architectures} archs"), points: points.collect() }
    };
    let values: [(&str, Value); 4] = [
        ("cold", |measured| median(measured.cold.iter().map(|cost| cost.cpu))),
        ("warm", CompileRuns::warm_processor),
        ("bare NVRTC", |measured| median(measured.bare.iter().map(|bare| bare.cpu))),
        ("nvcc", |measured| median(measured.nvcc.iter().map(|cost| cost.cpu))),
    ];
    let both = |(name, value): (&'static str, Value)| [1, 8].map(|archs| curve(name, archs, value));
    let plot = |name, title, y, curves| Plot::new(name, title, "variants", y, curves);
    vec![
        plot("time", "processor time of a compile", "seconds", values.into_iter().flat_map(both).collect()),
        plot("memory", "memory of a compile", "MB", both(("cold", |measured| measured.peak)).to_vec()),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::report::Cell;
    use super::*;

    fn measured() -> CompileRuns {
        let cost = |wall| Cost { wall, cpu: 2.0 * wall, peak: 1.0 };
        CompileRuns {
            variants: 10,
            architectures: 1,
            cold: vec![cost(3.0), cost(2.0)],
            warm: vec![cost(0.1)],
            peak: 100.0,
            calls: 20.0,
            bare: vec![Bare { wall: 1.0, cpu: 2.0, bytes: 0.0 }; 2],
            bare_alike: vec![Bare { wall: 0.5, cpu: 1.0, bytes: 0.0 }; 2],
            nvcc: vec![cost(1.0), cost(0.5)],
        }
    }

    #[test]
    fn ratios_are_those_of_a_turn() {
        let row = &table(&[measured()], 2.0).rows[0];
        let number = |cell: &Cell| if let Cell::Number(number) = cell { *number } else { f64::NAN };
        let numbers: Vec<f64> = row.iter().map(number).collect();
        assert_eq!((numbers[2], numbers[4]), (2.0, 2.0), "turns, processors");
        assert_eq!(numbers[8..10], [2.0, 2.0], "bare: time, processor time");
        assert_eq!(numbers[10..12], [4.0, 4.0], "bare with the same settings: time, processor time");
        assert_eq!(numbers[13], 3.0, "nvcc");
    }

    #[test]
    fn the_settings_are_those_of_the_compiler() {
        let file = crate::workspace::root().join("compiler/nvrtc/src/nvrtc/workers.rs");
        let text = std::fs::read_to_string(file).unwrap();
        let (_, behind) = text.split_once("const MEMORY: [(&str, &str); 3] = [").unwrap();
        let list = behind.split("];").next().unwrap();
        let written: Vec<String> =
            list.lines().map(|line| line.trim().to_owned()).filter(|line| line.starts_with('(')).collect();
        assert_eq!(written, MEMORY.map(|(name, value)| format!("({name:?}, {value:?}),")));
        let text = table(&[measured()], 2.0).text;
        assert!(text.contains("`MALLOC_ARENA_MAX=1`"), "{text}");
    }

    #[test]
    fn exceeded_limits_are_reported() {
        let all = [
            measured(),
            CompileRuns { variants: 100, ..measured() },
            CompileRuns { architectures: 8, ..measured() },
        ];
        let found = |limit_bare, limit_nvcc, limit_warm| {
            exceeded(&all, &Options { runs: 1, largest: 1, limit_bare, limit_nvcc, limit_warm })
        };
        assert!(found(None, None, None).is_empty() && found(Some(2.0), Some(3.0), Some(0.1)).is_empty());
        let bare = "100 variants for 1 architectures: cold / bare is 2.000, the limit is 1.1";
        assert_eq!(found(Some(1.1), None, None), [bare], "of few the start counts");
        assert_eq!(found(None, Some(1.0), None).len(), 3);
        assert_eq!(found(None, None, Some(0.05)).len(), 2);
    }

    #[test]
    fn nvcc_makes_code_for_each_architecture() {
        let command =
            fatbin(Path::new("nvcc"), Path::new("a.cu"), Path::new("a.fatbin"), &["sm_80", "sm_90"]);
        let line = crate::process::command_line(&command);
        assert!(
            line.ends_with("-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"),
            "{line}"
        );
    }
}
