//! A shared cache and one worker, served by BuildBox on this machine, compared with this machine alone.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use fs_err as fs;

use super::compile::ARCHITECTURES;
use super::generated;
use super::measure::{self, Cost, median};
use super::report::{Cell, Report, Table};
use crate::setup::{self, packages};
use crate::tools::{Tools, last_line_as_json};
use crate::{files, workspace};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of measurements of each
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Number of generated plugins
    #[arg(long, value_name = "N", default_value_t = 125)]
    plugins: usize,
    /// Fail if results of the shared cache take longer than N times those of the local one
    #[arg(long, value_name = "N")]
    limit_cache: Option<f64>,
    /// Fail if one worker takes longer than N times this machine with one compile at a time
    #[arg(long, value_name = "N")]
    limit_worker: Option<f64>,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench remote --runs {} --plugins {}", self.runs, self.plugins)
    }
}

#[derive(Debug, Default)]
struct Project {
    name: String,
    results: f64,
    here: Vec<Cost>,
    warm: Vec<Cost>,
    shared: Vec<Cost>,
    worker: Vec<Cost>,
}

/// BuildBox's server, stopped on drop.
struct Server {
    url: String,
    process: Child,
    _store: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(folder: &Path) -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let store = tempfile::tempdir()?;
        let mut command = Command::new(folder.join("buildbox-casd"));
        command.arg(format!("--bind=127.0.0.1:{port}")).arg("--jobs=1");
        command.arg(format!("--buildbox-run={}", folder.join("buildbox-run").display()));
        command
            .args(["/usr", "/lib", "/lib64"].map(|path| format!("--runner-arg=--bind-mount={path}:{path}")));
        command.arg(store.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let server =
            Server { url: format!("grpc://127.0.0.1:{port}"), process: command.spawn()?, _store: store };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(start.elapsed() < Duration::from_secs(20), "BuildBox does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

pub(super) fn measure(tools: &Tools, options: &Options) -> Result<(Report, Vec<String>)> {
    let report = Report::start(tools, "remote", options.command())?;
    let buildbox = packages::buildbox()?;
    let folder = tempfile::tempdir()?;
    let ops = generated::adding(options.plugins);
    let generated = generated::plugins(folder.path(), "many", &ops, &ARCHITECTURES)?;
    let shipped = folder.path().join("shipped");
    for part in ["manifests", "kernels"] {
        files::copy_tree(&workspace::root().join(part), &shipped.join(part), &[])?;
    }
    let shipped = shipped.join("cubinder.toml");
    let targets = ARCHITECTURES.join("\", \"");
    let manifests = "manifests/*.toml\", \"manifests/cubinder/*.toml";
    let text =
        format!("[library]\nname = \"shipped\"\nmanifests = [\"{manifests}\"]\ntargets = [\"{targets}\"]\n");
    files::write(&shipped, text)?;
    let projects = [
        (format!("{} generated plugins", options.plugins), generated.as_path()),
        ("all shipped plugins".to_owned(), shipped.as_path()),
    ];
    let mut all = Vec::new();
    for (name, config) in projects {
        eprintln!("{name}");
        let mut project = Project { name, ..Project::default() };
        for _ in 0..options.runs {
            measure_once(tools, &buildbox, config, &mut project)?;
        }
        all.push(project);
    }
    Ok((Report { tables: vec![table(&all)], ..report }, exceeded(&all, options)))
}

fn measure_once(tools: &Tools, buildbox: &Path, config: &Path, project: &mut Project) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    fs::create_dir(&cache)?;
    // The machines have equal packages.
    std::os::unix::fs::symlink(setup::cache()?.join("toolkit"), cache.join("toolkit"))?;
    let command = |words: &[&str]| -> Result<Command> {
        let mut command = tools.cubinder()?;
        command.args(words).arg("--config").arg(config).arg("--json");
        command.env("CUBINDER_CACHE", &cache).env_remove("CUBINDER_NVRTC");
        Ok(command)
    };
    let out = folder.path().display().to_string();
    let compile = |words: &[&str]| -> Result<(Cost, String)> {
        measure::run(&mut command(&[&["compile", "--out-dir", &out], words].concat())?)
    };
    project.here.push(compile(&["--jobs", "1"])?.0);
    let (warm, _) = compile(&[])?;
    project.warm.push(warm);
    let server = Server::start(buildbox)?;
    let pushed = measure::run(&mut command(&["cache", "push", "--remote-cache", &server.url])?)?.1;
    let pushed: serde_json::Value = last_line_as_json(&pushed)?;
    project.results = pushed["copied"].as_f64().unwrap_or_default();
    fs::remove_dir_all(cache.join("code"))?;
    let (shared, printed) = compile(&["--remote-cache", &server.url])?;
    check(&printed, "shared_hits")?;
    project.shared.push(shared);
    fs::remove_dir_all(cache.join("code"))?;
    let server = Server::start(buildbox)?;
    let (worker, printed) = compile(&["--remote-executor", &server.url, "--remote-only", "--jobs", "1"])?;
    check(&printed, "executed")?;
    project.worker.push(worker);
    Ok(())
}

fn check(printed: &str, origin: &str) -> Result<()> {
    let result: serde_json::Value = last_line_as_json(printed)?;
    ensure!(result["nvrtc_calls"] == 0 && result[origin] != 0, "not all results are {origin}: {result}");
    Ok(())
}

impl Project {
    fn ratio(part: &[Cost], whole: &[Cost]) -> f64 {
        median(part.iter().zip(whole).map(|(part, whole)| part.wall / whole.wall))
    }

    fn against_cache(&self) -> f64 {
        Project::ratio(&self.shared, &self.warm)
    }

    fn against_here(&self) -> f64 {
        Project::ratio(&self.worker, &self.here)
    }
}

fn exceeded(all: &[Project], options: &Options) -> Vec<String> {
    let exceeded = |project: &Project| {
        let limits = [
            ("shared / local cache", project.against_cache(), options.limit_cache),
            ("one worker / here", project.against_here(), options.limit_worker),
        ];
        let name = project.name.clone();
        limits.into_iter().filter_map(move |(what, value, limit)| {
            let limit = limit.filter(|limit| value > *limit)?;
            Some(format!("{name}: {what} is {value:.3}, the limit is {limit}"))
        })
    };
    all.iter().flat_map(exceeded).collect()
}

fn wall(costs: &[Cost]) -> f64 {
    median(costs.iter().map(|cost| cost.wall))
}

fn table(all: &[Project]) -> Table {
    let text = format!(
        "Compiles for {} architectures, and the server BuildBox on the same machine, without TLS. A result is the code of a program for one architecture, or the parameters of its kernels. Shared cache: \
         the local cache is empty, and the files of NVRTC are digested again. One worker: an empty server, which also gets the files of NVRTC, and batches of compiles in a sandbox; compared with \
         one compile at a time here. Times are wall times of the whole process, medians.",
        ARCHITECTURES.len()
    );
    Table::new(
        "Shared cache and workers",
        text,
        all,
        &[
            ("project", |project| Cell::Text(project.name.clone())),
            ("results", |project| project.results.into()),
            ("here, one at a time, s", |project| wall(&project.here).into()),
            ("one worker, s", |project| wall(&project.worker).into()),
            ("one worker / here", |project| project.against_here().into()),
            ("local cache, s", |project| wall(&project.warm).into()),
            ("shared cache, s", |project| wall(&project.shared).into()),
            ("shared / local cache", |project| project.against_cache().into()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeded_limits_are_reported() {
        let cost = |wall| vec![Cost { wall, cpu: wall, peak: 1.0 }];
        let project = Project {
            name: "a".to_owned(),
            results: 10.0,
            here: cost(4.0),
            worker: cost(5.0),
            warm: cost(0.5),
            shared: cost(1.0),
        };
        let limits = |limit_cache, limit_worker| Options { runs: 1, plugins: 1, limit_cache, limit_worker };
        let all = [project];
        assert!(exceeded(&all, &limits(Some(2.0), Some(1.3))).is_empty());
        let found = exceeded(&all, &limits(Some(1.9), Some(1.2)));
        assert_eq!(found[0], "a: shared / local cache is 2.000, the limit is 1.9");
        assert_eq!(found[1], "a: one worker / here is 1.250, the limit is 1.2");
        assert_eq!(table(&all).rows[0][4], Cell::Number(1.25));
    }
}
