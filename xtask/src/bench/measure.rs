//! Cost of commands: time, processors, memory ([`crate::measured`]: one process). Combined memory is sampled from
//! `/proc`'s `smaps_rollup`, which counts shared memory proportionally.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use fs_err as fs;

pub(super) use crate::measured::Cost;
use crate::setup::packages;
use crate::tools::Tools;
use crate::{process, workspace};

/// This program, even after a rebuild (`proc(5)`).
const THIS: &str = "/proc/self/exe";

pub(super) fn run(command: &mut Command) -> Result<(Cost, String)> {
    run_by(Path::new(THIS), command)
}

fn run_by(meter: &Path, command: &Command) -> Result<(Cost, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("cost");
    let mut metered = Command::new(meter);
    metered.arg("measured").arg(&file).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => metered.env(name, value),
            None => metered.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        metered.current_dir(folder);
    }
    let output = process::capture(&mut metered)?;
    let text = fs::read_to_string(&file).context("the cost of a command is missing")?;
    Ok((serde_json::from_str(&text).context("the cost of a command is not JSON")?, output))
}

/// Combined memory's largest sample in megabytes, or one process's higher peak.
pub(super) fn with_memory_together(command: &mut Command, every: Duration) -> Result<(Cost, f64, String)> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                // Meters' children are the commands.
                let commands = children(std::process::id()).into_iter().flat_map(children);
                most = most.max(commands.map(tree_kilobytes).sum());
                std::thread::sleep(every);
            }
            most
        });
        let result = run(command);
        ended.store(true, Ordering::Relaxed);
        let most = sampler
            .join()
            .map_err(|_| anyhow!("cannot read the memory use of `{}`", process::command_line(command)))?;
        let (cost, output) = result?;
        Ok((cost, cost.peak.max(f64::from(u32::try_from(most).unwrap_or(u32::MAX)) / 1024.0), output))
    })
}

fn tree_kilobytes(id: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok();
    let own = rollup.and_then(|text| proportional(&text)).unwrap_or(0);
    own + children(id).into_iter().map(tree_kilobytes).sum::<u64>()
}

fn children(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn proportional(rollup: &str) -> Option<u64> {
    rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok())
}

/// Returns the lower median; 0 for no values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

const LEAST_TURNS: usize = 3;

/// Turns: `most` for short work, [`LEAST_TURNS`] for long. `size`: tenths of a second.
pub(super) fn repetitions(size: usize, most: usize) -> usize {
    let most = most.max(1);
    (most * 20 / size.max(1)).clamp(LEAST_TURNS.min(most), most)
}

pub(super) fn turns(runs: usize) -> String {
    match runs {
        1 => "measured once, so a median is of one run".to_owned(),
        _ => format!("{runs} runs in turn"),
    }
}

pub(super) fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64
}

pub(super) fn machine() -> Result<String> {
    let read = |file: &str| fs::read_to_string(file);
    Ok(described(&read("/proc/cpuinfo")?, &read("/proc/loadavg")?, cores()))
}

fn described(cpuinfo: &str, loadavg: &str, cores: f64) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let load = loadavg.split_whitespace().next().unwrap_or("?");
    format!("{cores} processors ({model}), shared with other work: load {load} at the beginning")
}

pub(super) fn commit() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty= with changes", "--abbrev=12"]).current_dir(workspace::root());
    Ok(process::capture(&mut git)?.trim().to_owned())
}

pub(super) fn versions(tools: &Tools) -> Result<String> {
    let commit = commit()?;
    let libraries = process::capture(tools.python("versions.py")?.arg(tools.nvrtc()?))?;
    let nvcc = packages::nvcc().and_then(|nvcc| process::capture(Command::new(nvcc).arg("--version")));
    Ok(describe_versions(&commit, &libraries, nvcc.ok().as_deref()))
}

fn describe_versions(commit: &str, libraries: &str, nvcc: Option<&str>) -> String {
    // `Cuda compilation tools, release 13.0, V13.0.88`, then another line.
    let release = nvcc.and_then(|output| output.split(", V").nth(1)?.split_whitespace().next());
    let nvcc = release.map_or_else(String::new, |release| format!(", nvcc {release}"));
    format!("Cubinder of {}, {}{nvcc}", commit.trim(), libraries.trim())
}

pub(super) fn today() -> Result<String> {
    Ok(process::capture(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn commands_run_below_the_meter() {
        let folder = tempfile::tempdir().unwrap();
        let meter = folder.path().join("meter");
        let script = "#!/bin/sh\necho '{\"wall\": 2.5, \"cpu\": 1, \"peak\": 7}' > \"$2\"; shift 2; \"$@\"\n";
        std::fs::write(&meter, script).unwrap();
        let is_run = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&meter, is_run).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $A; pwd"]).env("A", "yes").current_dir("/");
        let (cost, output) = run_by(&meter, &command).unwrap();
        assert_eq!((cost, output.as_str()), (Cost { wall: 2.5, cpu: 1.0, peak: 7.0 }, "yes\n/\n"));
        assert!(run_by(&meter, &Command::new("false")).is_err());
        assert_eq!(proportional("Rss:  10 kB\nPss:  7 kB\n"), Some(7));
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 1.0);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn a_single_run_is_described_as_such() {
        assert_eq!([1, 2].map(turns), ["measured once, so a median is of one run", "2 runs in turn"]);
    }

    #[test]
    fn long_work_is_measured_three_times() {
        assert_eq!([1, 20, 30, 140, 8000].map(|size| repetitions(size, 7)), [7, 7, 4, 3, 3]);
        assert_eq!([1, 8000].map(|size| repetitions(size, 2)), [2, 2]);
    }

    #[test]
    fn missing_versions_are_left_out() {
        let nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\nBuild x\n";
        let libraries = "NVRTC 13.0, TensorRT-RTX 1.7.1.116\n";
        let all = "Cubinder of 0123456789ab with changes, NVRTC 13.0, TensorRT-RTX 1.7.1.116, nvcc 13.0.88";
        assert_eq!(describe_versions("0123456789ab with changes\n", libraries, Some(nvcc)), all);
        assert_eq!(
            describe_versions("a\n", libraries, None),
            "Cubinder of a, NVRTC 13.0, TensorRT-RTX 1.7.1.116"
        );
    }

    #[test]
    fn a_machine_is_described() {
        let text = described("processor : 0\nmodel name\t: Some CPU\n", "1.50 2 3 4/5 6", 2.0);
        assert_eq!(text, "2 processors (Some CPU), shared with other work: load 1.50 at the beginning");
    }
}
