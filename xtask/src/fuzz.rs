use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use rayon::prelude::*;

use crate::{files, process, workspace};

const MAX_FILES: usize = 300;
const MAX_BYTES: u64 = 1 << 20;

/// Limits for endless inputs; targets enforce one second more exactly.
const LIMITS: [&str; 4] = ["-timeout=30", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=16384"];

const REPORT_INTERVAL: Duration = Duration::from_secs(15);

/// The address sanitizer finds little in safe Rust at half the speed.
const BUILD: [&str; 4] = ["--release", "--debug-assertions", "--sanitizer", "none"];

pub(crate) fn run(names: &[String], seconds: u64, jobs: usize) -> Result<ExitCode> {
    let fuzz = workspace::root().join("tests/fuzz");
    let names = select_targets(&targets(&fuzz)?, names)?;
    check_tools()?;
    let programs = fuzz.join("target").join(host()?).join("release");
    let targets: Vec<Target> = names.into_iter().map(|name| Target::new(&fuzz, &programs, name)).collect();
    for target in &targets {
        target.prepare()?;
    }
    println!("building {} targets", targets.len());
    process::inherit(cargo_fuzz("build").arg("--fuzz-dir").arg(&fuzz).args(BUILD))?;

    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build()?;
    let passed: Vec<bool> =
        pool.install(|| targets.par_iter().map(|target| target.fuzz(seconds)).collect::<Result<_>>())?;
    Ok(if passed.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn targets(fuzz: &Path) -> Result<BTreeSet<String>> {
    let programs = files::list(&fuzz.join("fuzz_targets"))?;
    Ok(programs.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect())
}

fn select_targets(targets: &BTreeSet<String>, names: &[String]) -> Result<Vec<String>> {
    crate::check_names("target", names, targets)?;
    let is_chosen = |name: &&String| names.is_empty() || names.contains(*name);
    Ok(targets.iter().filter(is_chosen).cloned().collect())
}

fn check_tools() -> Result<()> {
    let runs = |command: &mut Command| process::capture(command).is_ok();
    ensure!(
        runs(Command::new("rustup").arg("--version")),
        "fuzzing needs a nightly compiler next to the stable one; install rustup: https://rustup.rs"
    );
    ensure!(
        runs(Command::new("rustup").args(["run", "nightly", "rustc", "--version"])),
        "fuzzing needs a nightly compiler; install it with `rustup toolchain install nightly --profile minimal`"
    );
    ensure!(
        runs(&mut cargo_fuzz("--version")),
        "fuzzing needs cargo-fuzz and a C++ compiler for libFuzzer; install cargo-fuzz with `cargo install cargo-fuzz`"
    );
    Ok(())
}

fn host() -> Result<String> {
    let text = process::capture(Command::new("rustup").args(["run", "nightly", "rustc", "-vV"]))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` prints no host")
}

fn cargo_fuzz(command: &str) -> Command {
    let mut cargo = Command::new("rustup");
    cargo.args(["run", "nightly", "cargo", "fuzz", command]);
    cargo.current_dir(workspace::root());
    cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

struct Target {
    fuzz: PathBuf,
    program: PathBuf,
    name: String,
}

impl Target {
    fn new(fuzz: &Path, programs: &Path, name: String) -> Target {
        Target { fuzz: fuzz.to_path_buf(), program: programs.join(&name), name }
    }

    fn folder(&self, kind: &str) -> PathBuf {
        self.fuzz.join(kind).join(&self.name)
    }

    /// Git ignores it; `found` has inputs that reached new code.
    fn work(&self, folder: &str) -> PathBuf {
        self.folder("work").join(folder)
    }

    fn prepare(&self) -> Result<()> {
        for folder in [self.work("found"), self.folder("corpus"), self.folder("artifacts")] {
            fs::create_dir_all(folder)?;
        }
        let seeds = self.work("seeds");
        files::create_empty(&seeds)?;
        let mut command = workspace::cargo();
        command.args(["run", "--quiet", "--package", "cubinder-fuzz-targets", "--bin", "fuzz-seeds", "--"]);
        process::inherit(command.arg(&self.name).arg(&seeds))
    }

    /// `cargo fuzz run` would rebuild after a change.
    fn libfuzzer(&self, folders: &[PathBuf], options: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(workspace::root()).args(folders);
        let dictionary = self.fuzz.join("dictionaries").join(format!("{}.dict", self.name));
        command.arg(format!("-dict={}", dictionary.display()));
        command.arg(format!("-artifact_prefix={}/", self.folder("artifacts").display()));
        command.args(LIMITS).args(options);
        command
    }

    fn fuzz(&self, seconds: u64) -> Result<bool> {
        let before: BTreeSet<PathBuf> = files::list(&self.folder("artifacts"))?.into_iter().collect();
        let folders = [self.work("found"), self.folder("corpus"), self.work("seeds")];
        let options = [format!("-max_total_time={seconds}"), "-print_final_stats=1".to_owned()];
        let name = &self.name;
        let inputs = folders.iter().flat_map(|folder| files::list(folder)).flatten().count();
        println!("{name}: {seconds} s, {inputs} inputs at the start");
        let started = Instant::now();
        let mut last_report = started;
        let (mut progress, mut tail) = (Progress::default(), VecDeque::new());
        let status = process::stream(&mut self.libfuzzer(&folders, &options), |line| {
            progress.read(line);
            tail.push_back(line.to_owned());
            if tail.len() > 40 {
                tail.pop_front();
            }
            if last_report.elapsed() >= REPORT_INTERVAL {
                last_report = Instant::now();
                println!("{name}: {} s, {progress}", started.elapsed().as_secs());
            }
        })?;
        if status.success() {
            println!("{name}: {} s, {progress}", started.elapsed().as_secs());
            return self.update_corpus().map(|()| true);
        }
        let tail: Vec<String> = tail.into();
        println!("{name}: failed\n{}", tail.join("\n"));
        for input in files::list(&self.folder("artifacts"))?.into_iter().filter(|path| !before.contains(path))
        {
            println!("{name}: failing input: {}", input.display());
        }
        self.update_corpus().map(|()| false)
    }

    fn update_corpus(&self) -> Result<()> {
        let merged = self.work("merged");
        files::create_empty(&merged)?;
        files::copy_all(&self.work("seeds"), &merged)?;
        let seeds: BTreeSet<PathBuf> = files::list(&merged)?.into_iter().collect();
        let corpus = self.folder("corpus");
        let folders = [merged.clone(), corpus.clone(), self.work("found")];
        // Counters would keep thousands of inputs.
        let options = ["-set_cover_merge=1", "-use_counters=0"].map(str::to_owned);
        process::capture(&mut self.libfuzzer(&folders, &options))?;
        let mut new: Vec<(u64, PathBuf)> = Vec::new();
        for path in files::list(&merged)?.into_iter().filter(|path| !seeds.contains(path)) {
            new.push((fs::metadata(&path)?.len(), path));
        }
        let reached = new.len();
        let kept = select_inputs(new);
        let [new, before] = ["kept", "before"].map(|name| self.work(name));
        files::create_empty(&new)?;
        for (_, path) in &kept {
            fs::copy(path, new.join(files::name(path)?))?;
        }
        files::create_empty(&before)?;
        fs::rename(&corpus, &before)?;
        fs::rename(&new, &corpus)?;
        let bytes: u64 = kept.iter().map(|(length, _)| length).sum();
        println!("{}: {} of {reached} inputs kept, {bytes} bytes", self.name, kept.len());
        Ok(())
    }
}

/// Evenly by size: the smallest inputs reach the least code.
fn select_inputs(mut inputs: Vec<(u64, PathBuf)>) -> Vec<(u64, PathBuf)> {
    inputs.sort();
    let all = inputs.len();
    let mut rank = 0;
    inputs.retain(|_| {
        rank += 1;
        all <= MAX_FILES || rank * MAX_FILES / all > (rank - 1) * MAX_FILES / all
    });
    let mut bytes = 0;
    inputs.retain(|(length, _)| {
        bytes += length;
        bytes <= MAX_BYTES
    });
    inputs
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    runs: u64,
    branches: u64,
    inputs: u64,
}

impl Progress {
    /// Reads a line of libFuzzer's log.
    fn read(&mut self, line: &str) {
        if let Some(runs) = line.strip_prefix("stat::number_of_executed_units:") {
            self.runs = runs.trim().parse().unwrap_or(self.runs);
            return;
        }
        let Some(rest) = line.strip_prefix('#') else { return };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let after = |key: &str| {
            let position = words.iter().position(|word| *word == key)?;
            words.get(position + 1)?.split('/').next()?.parse().ok()
        };
        let (Some(branches), Some(inputs)) = (after("cov:"), after("corp:")) else { return };
        let runs = words.first().and_then(|runs| runs.parse().ok());
        *self = Progress { runs: runs.unwrap_or(self.runs), branches, inputs };
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} runs, {} branches reached, {} inputs", self.runs, self.branches, self.inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn progress_is_read() {
        let mut progress = Progress::default();
        progress.read("INFO: Seed: 1");
        progress.read("#2\tINITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 40Mb");
        progress.read("#123\tNEW    cov: 1200 ft: 3400 corp: 56/7Kb lim: 4096 exec/s: 800 rss: 50Mb L: 3/9 MS: 1 Custom-");
        assert_eq!(progress.to_string(), "123 runs, 1200 branches reached, 56 inputs");
        progress.read("#0x12 is another line");
        progress.read("stat::number_of_executed_units: 130");
        assert_eq!(progress, Progress { runs: 130, branches: 1200, inputs: 56 });
    }

    #[test]
    fn the_corpus_stays_small() {
        let input = |length: u64, number: usize| (length, PathBuf::from(format!("{number}")));
        let many: Vec<_> = (0..400).map(|number| input(number, 0)).collect();
        let kept = select_inputs(many);
        assert_eq!(kept.len(), MAX_FILES);
        assert_eq!(kept.iter().filter(|(length, _)| *length >= 200).count(), MAX_FILES / 2);
        let large = vec![input(MAX_BYTES, 0), input(5, 1), input(MAX_BYTES - 5, 2)];
        assert_eq!(select_inputs(large), [input(5, 1), input(MAX_BYTES - 5, 2)]);
    }

    const FAILING: &str = r#"#!/bin/sh
first=$1; found=$3
case "$*" in
*-set_cover_merge=1*) cp "$found"/* "$first";;
*) printf new > "$1/new"
   for word; do case $word in -artifact_prefix=*) printf bad > "${word#-artifact_prefix=}crash-1";; esac; done
   echo '#9 NEW cov: 5 ft: 6 corp: 1/1b'; exit 77;;
esac
"#;

    #[test]
    fn inputs_found_before_a_failure_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("programs");
        let target = Target::new(&folder.path().join("fuzz"), &programs, "t".to_owned());
        let (corpus, artifacts) = (target.folder("corpus"), target.folder("artifacts"));
        for folder in [&programs, &target.work("seeds"), &target.work("found"), &corpus, &artifacts] {
            fs::create_dir_all(folder).unwrap();
        }
        let program = &target.program;
        std::fs::write(program, FAILING).unwrap();
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(corpus.join("old"), "reached less").unwrap();
        assert!(!target.fuzz(1).unwrap());
        let names = |folder: &Path| {
            let paths = files::list(folder).unwrap();
            paths.iter().map(|path| files::name(path).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&corpus), ["new"]);
        assert_eq!(names(&artifacts), ["crash-1"]);
        assert_eq!(names(&target.work("before")), ["old"]);
    }

    #[test]
    fn targets_are_those_of_the_programs() {
        let all = targets(&workspace::root().join("tests/fuzz")).unwrap();
        assert!(all.contains("expression") && all.contains("container"), "{all:?}");
        assert_eq!(select_targets(&all, &[]).unwrap().len(), all.len());
        assert_eq!(select_targets(&all, &names(&["cuda"])).unwrap(), ["cuda"]);
        let error = select_targets(&all, &names(&["cuda", "cud"])).unwrap_err().to_string();
        assert!(error.starts_with("unknown target `cud`; expected one of cases, config, "), "{error}");
    }
}
