use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde::Deserialize;

use crate::{process, workspace};

/// A test run takes one or two seconds.
const TEST_SECONDS: u32 = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Groups {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    packages: Vec<String>,
    files: Vec<String>,
    tested_by: Vec<String>,
    programs: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
}

pub(crate) fn run(names: &[String], left: bool) -> Result<ExitCode> {
    let groups = select_groups(names)?;
    let version = process::capture(workspace::cargo().args(["mutants", "--version"]));
    ensure!(
        version.is_ok(),
        "cargo-mutants is missing; install it with `cargo install cargo-mutants --locked`"
    );
    let mut outcomes = Vec::new();
    for group in groups {
        println!("{}: {}", group.name, group.files.join(", "));
        let outcome = group.run(left)?;
        outcomes.push((group.name, outcome));
    }
    for (name, outcome) in &outcomes {
        println!("{name}: {outcome}");
        for endless in &outcome.endless {
            println!("{name}: tests did not end: {endless}");
        }
        for survivor in &outcome.survivors {
            println!("{name}: survived: {survivor}");
        }
    }
    let is_well = outcomes.iter().all(|(_, outcome)| outcome.survivors.is_empty());
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn select_groups(names: &[String]) -> Result<Vec<Group>> {
    let Groups { mut group } =
        toml::from_str(include_str!("../mutants.toml")).context("in `xtask/mutants.toml`")?;
    crate::check_names("group", names, group.iter().map(|group| &group.name))?;
    group.retain(|group| names.is_empty() || names.contains(&group.name));
    Ok(group)
}

impl Group {
    fn run(&self, left: bool) -> Result<Outcome> {
        let to = workspace::root().join("target/mutants").join(&self.name);
        fs::create_dir_all(&to)?;
        if self.packages != self.tested_by {
            process::inherit(&mut self.unchanged()).context("tests fail without a mutation")?;
        }
        let mut command = self.command(&to, left);
        let status = command
            .status()
            .with_context(|| format!("cannot start `{}`", process::command_line(&command)))?;
        // Caught, survived, timed out (`cargo mutants`, "Exit codes").
        let has_ended = matches!(status.code(), Some(0 | 2 | 3));
        ensure!(has_ended, "`{}` failed ({status})", process::command_line(&command));
        Outcome::read(&to.join("mutants.out"))
    }

    fn unchanged(&self) -> Command {
        let mut command = workspace::cargo();
        command.arg("test").args(flags("--package", &self.tested_by));
        command.args(["--profile", "mutants"]);
        command.args(&self.programs).arg("--").args(&self.tests);
        command
    }

    fn command(&self, to: &Path, left: bool) -> Command {
        let mut command = workspace::cargo();
        command.arg("mutants").args(flags("--package", &self.packages));
        command.args(flags("--test-package", &self.tested_by));
        command.args(["--profile", "mutants"]);
        if self.packages != self.tested_by {
            // cargo-mutants 27.1 would run the changed packages' tests.
            command.arg("--baseline=skip");
        }
        command.args(flags("--file", &self.files));
        command.arg("--timeout").arg(TEST_SECONDS.to_string()).arg("--output").arg(to);
        command.args(self.programs.iter().map(|program| format!("--cargo-arg={program}")));
        if left {
            command.arg("--iterate");
        }
        command.args(["--", "--"]).args(&self.tests);
        command.env("RUST_BACKTRACE", "0");
        command
    }
}

fn flags<'a>(flag: &'a str, values: &'a [String]) -> impl Iterator<Item = &'a str> {
    values.iter().flat_map(move |value| [flag, value])
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    counts: Counts,
    survivors: Vec<String>,
    endless: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
struct Counts {
    total_mutants: usize,
    caught: usize,
    timeout: usize,
    unviable: usize,
}

impl Outcome {
    fn read(folder: &Path) -> Result<Outcome> {
        let read = |path: PathBuf| fs::read_to_string(&path);
        let counts = folder.join("outcomes.json");
        // The file is missing if no change remained.
        let counts = match counts.exists() {
            true => {
                serde_json::from_str(&read(counts)?).context("cannot parse outcomes.json of cargo-mutants")?
            }
            false => Counts::default(),
        };
        let named = |file: &str| {
            read(folder.join(file)).map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        };
        Ok(Outcome { counts, survivors: named("missed.txt")?, endless: named("timeout.txt")? })
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { total_mutants, caught, timeout, unviable } = self.counts;
        write!(
            f,
            "{total_mutants} mutants, {caught} caught by a failed test, {timeout} without a result within \
             {TEST_SECONDS} s, {unviable} that do not compile, {} survived",
            self.survivors.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_groups_exist() {
        let all = select_groups(&[]).unwrap();
        for file in all.iter().flat_map(|group| &group.files) {
            assert!(workspace::root().join(file).is_file(), "{file}");
        }
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let one: Vec<String> =
            select_groups(&names(&["guards"])).unwrap().into_iter().map(|group| group.name).collect();
        assert_eq!(one, ["guards"]);
        let error = select_groups(&names(&["guards", "guard"])).err().unwrap().to_string();
        assert_eq!(
            error,
            "unknown group `guard`; expected one of reader, guards, launch, prover, code, signature, cache, directives, options, files, fields, node, driver, run, logger"
        );
    }

    #[test]
    fn a_group_is_one_command() {
        let group = r#"
            name = "n"
            packages = ["p"]
            files = ["a.rs", "b.rs"]
            tested_by = ["q"]
            programs = ["--lib"]
            tests = ["t::", "u::"]
        "#;
        let group: Group = toml::from_str(group).unwrap();
        let line = |left| process::command_line(&group.command(Path::new("out"), left));
        assert!(
            line(false).ends_with(
                " mutants --package p --test-package q --profile mutants --baseline=skip --file a.rs --file b.rs --timeout 60 --output out --cargo-arg=--lib -- -- t:: u::"
            ),
            "{}",
            line(false)
        );
        assert!(line(true).contains(" --cargo-arg=--lib --iterate -- "), "{}", line(true));
    }

    #[test]
    fn outcomes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert!(format!("{:#}", Outcome::read(folder.path()).unwrap_err()).contains("missed.txt"));
        write("missed.txt", "");
        assert!(format!("{:#}", Outcome::read(folder.path()).unwrap_err()).contains("timeout.txt"));
        write("timeout.txt", "");
        assert_eq!(Outcome::read(folder.path()).unwrap(), Outcome::default());
        write("missed.txt", "a.rs:1:2: replace f with 0\n");
        write("timeout.txt", "a.rs:3:4: replace < with <=\n");
        write(
            "outcomes.json",
            r#"{"outcomes": [], "total_mutants": 9, "missed": 1, "caught": 5, "timeout": 1, "unviable": 2}"#,
        );
        let outcome = Outcome::read(folder.path()).unwrap();
        assert_eq!(outcome.survivors, ["a.rs:1:2: replace f with 0"]);
        assert_eq!(outcome.endless, ["a.rs:3:4: replace < with <="]);
        assert_eq!(
            outcome.to_string(),
            "9 mutants, 5 caught by a failed test, 1 without a result within 60 s, 2 that do not compile, 1 survived"
        );
        write("outcomes.json", "no JSON");
        assert!(Outcome::read(folder.path()).is_err());
    }
}
