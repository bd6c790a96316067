mod copy;

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use cubinder_nvrtc::cache::{Cache, Limits, Usage};
use cubinder_source::columns::columns;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::{counted, size};
use serde_json::json;

use super::nvrtc;
use super::output::{MessageFormat, finish, print};

/// Measure, prune, share, export and import the cache of compiled code.
///
/// The local cache is the folder `code` in CUBINDER_CACHE, else in the folder cubinder of the user's cache folder. `cubinder compile` reads and writes
/// it. `push`, `pull`, `export` and `import` compile nothing: they copy the results of a project's compiles, with the options of `cubinder compile`.
/// Results are only valid for the same release of cubinder, NVRTC and CUDA headers. See docs/cache.md.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(
        about = "Write the results of a project's compiles in the local cache to a file",
        long_about = "Write the results of a project's compiles in the local cache to a file\n\nFails if results are missing."
    )]
    Export(copy::FileArguments),
    #[command(
        about = "Copy the results of a project's compiles from a file to the local cache",
        long_about = "Copy the results of a project's compiles from a file to the local cache\n\nFails if results are missing."
    )]
    Import(copy::FileArguments),
    #[command(about = "Remove entries of the local cache, the longest unused first")]
    Prune(PruneArguments),
    #[command(
        about = "Copy the results of a project's compiles from the shared cache to the local one",
        long_about = "Copy the results of a project's compiles from the shared cache to the local one\n\nFails if results are missing."
    )]
    Pull(copy::ServerArguments),
    #[command(
        about = "Copy the results of a project's compiles from the local cache to the shared one",
        long_about = "Copy the results of a project's compiles from the local cache to the shared one\n\nFails if results are missing."
    )]
    Push(copy::ServerArguments),
    #[command(about = "Show the size of the local cache")]
    Stats(StatsArguments),
}

/// Show the size of the local cache.
#[derive(Args)]
struct StatsArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Remove entries of the local cache, the longest unused first.
///
/// Builds may run at the same time: they compile again what they miss.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("limits").required(true).multiple(true).args(["max_size", "unused_for", "all"]))]
struct PruneArguments {
    /// Remove entries until the cache takes at most this space: 500M, 2G, 1.5GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_size: Option<u64>,
    /// Remove entries that were not used for this number of days
    #[arg(long, value_name = "DAYS")]
    unused_for: Option<u32>,
    /// Remove all entries
    #[arg(long, conflicts_with_all = ["max_size", "unused_for"])]
    all: bool,
    /// Only show how many entries the limits remove
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (json, result) = match &arguments.command {
        Command::Export(arguments) => (arguments.json, copy::export(arguments)),
        Command::Import(arguments) => (arguments.json, copy::import(arguments)),
        Command::Prune(arguments) => (arguments.json, prune(arguments)),
        Command::Pull(arguments) => (arguments.json, copy::pull(arguments)),
        Command::Push(arguments) => (arguments.json, copy::push(arguments)),
        Command::Stats(arguments) => (arguments.json, stats(arguments)),
    };
    finish(result.map(|()| true), MessageFormat::new(json))
}

fn open() -> Result<Cache, Diagnostic> {
    let folder = nvrtc::overrides(None).cache;
    folder.map(|folder| Cache::open(&folder)).ok_or_else(|| {
        Diagnostic::error("the cache folder is unknown: neither `CUBINDER_CACHE` nor `HOME` is set")
            .help("set `CUBINDER_CACHE` to a writable folder")
    })
}

fn failed((path, error): (std::path::PathBuf, std::io::Error)) -> Diagnostic {
    Diagnostic::error(format!("cannot read or change the cache entry `{}`: {error}", path.display()))
}

fn stats(arguments: &StatsArguments) -> Result<(), Vec<Diagnostic>> {
    let cache = open()?;
    let usage = cache.usage().map_err(failed)?;
    let folder = cache.folder().unwrap_or(std::path::Path::new(""));
    let days = usage.oldest.map(days_since);
    if arguments.json {
        let Usage { entries, bytes, .. } = usage;
        let path = ReportedPath::from(folder);
        let report = json!({"folder": path, "entries": entries, "bytes": bytes, "longest_unused_days": days});
        print(&(report.to_string() + "\n"));
        return Ok(());
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("folder", folder.display().to_string()),
        row("entries", usage.entries.to_string()),
        row("size", size(usage.bytes)),
    ];
    rows.extend(days.map(|days| row("longest unused", counted(days, "day"))));
    print(&columns(&rows, 0, &[]));
    Ok(())
}

fn days_since(time: SystemTime) -> u64 {
    SystemTime::now().duration_since(time).unwrap_or_default().as_secs() / DAY
}

/// Seconds.
const DAY: u64 = 86_400;

fn prune(arguments: &PruneArguments) -> Result<(), Vec<Diagnostic>> {
    let limits = Limits {
        bytes: if arguments.all { Some(0) } else { arguments.max_size },
        unused: arguments.unused_for.map(|days| Duration::from_secs(u64::from(days) * DAY)),
    };
    let (removed, left) = open()?.prune(limits, arguments.dry_run).map_err(failed)?;
    if arguments.json {
        let usage = |it: Usage| json!({"entries": it.entries, "bytes": it.bytes});
        let report = json!({"removed": usage(removed), "left": usage(left), "dry_run": arguments.dry_run});
        print(&(report.to_string() + "\n"));
        return Ok(());
    }
    let verb = if arguments.dry_run { "would remove" } else { "removed" };
    let entries = |it: Usage| match it.entries {
        1 => format!("1 entry ({})", size(it.bytes)),
        number => format!("{number} entries ({})", size(it.bytes)),
    };
    print(&format!("{verb} {}; {} left\n", entries(removed), entries(left)));
    Ok(())
}

/// Parses `500M`, `2G`, `1.5GiB` or a number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a size such as `500M`, `2G` or `1.5GiB`";
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| EXPECTED)?;
    let unit = unit.to_ascii_lowercase();
    let (unit, base) = match unit.strip_suffix("ib") {
        Some(unit) if !unit.is_empty() => (unit, 1024_f64),
        _ => (unit.strip_suffix('b').unwrap_or(&unit), 1000.0),
    };
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(EXPECTED.to_owned()),
    };
    let bytes = number * base.powi(power);
    // Far above all disks, and exact in `f64` to the unit.
    if bytes < 1e18 { Ok(bytes as u64) } else { Err(EXPECTED.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        let sizes = ["0", "12", "500M", "2G", "1.5GiB", "3kb", "1TB", "2KiB", "7b"];
        let expected = [0, 12, 500_000_000, 2_000_000_000, 1_610_612_736, 3000, 1_000_000_000_000, 2048, 7];
        assert_eq!(sizes.map(|text| bytes(text).unwrap()), expected);
        for text in ["", "G", "-1", "1X", "1 G", "1..2M", "1iB", "9999999999T", "NaN", "1e3"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
