//! Running a command and saying what it took: time, processors, memory.
//!
//! Owns how that is found out. Linux tells of processes that ended how long they used a processor, in steps of 10 ms (`/proc/self/stat`,
//! `proc(5)`), and of those that run how much memory is theirs (`smaps_rollup`; memory that several share counts for each in part).

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::process;

/// What a command took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cost {
    /// Seconds that passed.
    pub(super) wall: f64,
    /// Seconds of processors, of the command and of what it started and waited for.
    pub(super) cpu: f64,
}

/// Clock ticks of `/proc` in a second: the same on every Linux.
const TICKS: f64 = 100.0;

/// Runs the command; gives what it took, and what it printed.
///
/// # Errors
/// As [`process::capture`].
pub(super) fn run(command: &mut Command) -> Result<(Cost, String)> {
    let before = children_seconds()?;
    let started = Instant::now();
    let said = process::capture(command)?;
    let wall = started.elapsed().as_secs_f64();
    Ok((Cost { wall, cpu: children_seconds()? - before }, said))
}

/// Runs the command as [`run`] does, and looks at the memory of all that this process started, again and again: megabytes.
///
/// # Errors
/// As [`run`].
pub(super) fn with_peak(command: &mut Command, every: Duration) -> Result<(Cost, f64, String)> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(children(std::process::id()).into_iter().map(tree_kilobytes).sum());
                std::thread::sleep(every);
            }
            most
        });
        let result = run(command);
        ended.store(true, Ordering::Relaxed);
        let most = sampler
            .join()
            .map_err(|_| anyhow!("looking at the memory of `{}` failed", process::command_line(command)))?;
        let (cost, said) = result?;
        Ok((cost, f64::from(u32::try_from(most).unwrap_or(u32::MAX)) / 1024.0, said))
    })
}

/// Of all processes that this one started and waited for.
fn children_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    seconds_of_children(&stat).context("/proc/self/stat is not as proc(5) says")
}

/// `cutime` and `cstime`, the 16th and 17th of `stat`; the second is a name in brackets, which may hold anything.
fn seconds_of_children(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// Memory of a process and of all below it; of what has just ended, none.
fn tree_kilobytes(id: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok();
    let own = rollup.and_then(|text| proportional(&text)).unwrap_or(0);
    own + children(id).into_iter().map(tree_kilobytes).sum::<u64>()
}

/// What the threads of a process have started and what has not ended.
fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn proportional(rollup: &str) -> Option<u64> {
    rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok())
}

/// The middle one; of an even number the lower of the two in the middle. 0 of none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// How often something is measured: as often as `most` says where it is short, once where it is long. `size` counts units of work of
/// tenths of a second.
pub(super) fn repetitions(size: usize, most: usize) -> usize {
    (most * 20 / size.max(1)).clamp(1, most.max(1))
}

/// How many processors this process may use.
#[allow(clippy::cast_precision_loss)] // a few hundred
pub(super) fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64
}

/// What is to be said of this machine: its processors, and how busy they were before anything was measured.
///
/// # Errors
/// When `/proc` cannot be read.
pub(super) fn machine() -> Result<String> {
    let read = |file: &str| std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"));
    Ok(described(&read("/proc/cpuinfo")?, &read("/proc/loadavg")?, cores()))
}

fn described(cpuinfo: &str, loadavg: &str, cores: f64) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    let load = loadavg.split_whitespace().next().unwrap_or("?");
    format!("{cores} processors ({model}), shared with other work: load {load} at the beginning")
}

/// Today, in UTC.
///
/// # Errors
/// When there is no program `date`.
pub(super) fn today() -> Result<String> {
    Ok(process::capture(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_measured() {
        let mut command = Command::new("sh");
        let (cost, said) = run(command.args(["-c", "echo yes"])).unwrap();
        assert_eq!(said, "yes\n");
        assert!(cost.wall > 0.0 && cost.cpu >= 0.0, "{cost:?}");
        let mut command = Command::new("sh");
        let (_, peak, _) =
            with_peak(command.args(["-c", "sleep 0.05; exit 0"]), Duration::from_millis(1)).unwrap();
        assert!(peak > 0.0, "{peak} MB");
        assert!(with_peak(&mut Command::new("false"), Duration::from_millis(1)).is_err());
    }

    #[test]
    fn processors_of_children_stand_behind_the_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 250 50 20 0";
        assert_eq!(seconds_of_children(stat), Some(3.0));
        assert_eq!(seconds_of_children("7 (sh) S 1"), None);
        assert_eq!(proportional("Rss:  10 kB\nPss:  7 kB\n"), Some(7));
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 1.0);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn what_is_long_is_measured_once() {
        assert_eq!([1, 20, 40, 140, 8000].map(|size| repetitions(size, 7)), [7, 7, 3, 1, 1]);
    }

    #[test]
    fn a_machine_is_described() {
        let text = described("processor : 0\nmodel name\t: Some CPU\n", "1.50 2 3 4/5 6", 2.0);
        assert_eq!(text, "2 processors (Some CPU), shared with other work: load 1.50 at the beginning");
    }
}
