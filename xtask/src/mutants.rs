//! `cargo xtask mutants`: changes code that decides results, one place at a time, and reports changes that no
//! test notices. cargo-mutants does the work.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde::Deserialize;

use crate::{process, workspace};

pub(crate) const LONG_ABOUT: &str = "\
Change the code that reads bundles and fields, decides guards, proves claims, evaluates launches, keeps the cache, reads and writes files, runs a \
node and finds the logger, one place at a time, and run the tests that are about it. A change that no test notices survives: it is told, and the \
exit status says so.

Needs cargo-mutants, and says how to get it. Works in a copy of the checkout (in TMPDIR); what was found is in target/mutants/GROUP. \
A change whose tests do not end within a minute is told apart: no test failed, but none said that it is right.

Without GROUP all run, one after the other. --left tries only what the last run did not catch.";

/// Limit of a test run, which takes one or two seconds without an endless loop.
const TEST_SECONDS: u32 = 60;

/// Files that the same tests are about.
struct Group {
    name: &'static str,
    /// The packages of the files.
    packages: &'static [&'static str],
    files: &'static [&'static str],
    /// The packages of the tests.
    tested_by: &'static [&'static str],
    /// The test programs, as cargo's arguments.
    programs: &'static [&'static str],
    /// The programs' arguments: names, and `--skip` for unrelated ones.
    tests: &'static [&'static str],
}

const GROUPS: [Group; 15] = [
    Group {
        name: "reader",
        packages: &["cubinder-model"],
        files: &[
            "runtime-plugin/model/src/container.rs",
            "runtime-plugin/model/src/container/header.rs",
            "runtime-plugin/model/src/packed.rs",
            "runtime-plugin/model/src/provenance.rs",
            "runtime-plugin/model/src/slot.rs",
            "runtime-plugin/model/src/validate.rs",
            "runtime-plugin/model/src/validate/places.rs",
            "runtime-plugin/model/src/validate/tuning.rs",
        ],
        tested_by: &["cubinder-model"],
        programs: &["--lib"],
        tests: &[],
    },
    Group {
        name: "guards",
        packages: &["cubinder-launch"],
        files: &[
            "runtime-plugin/launch/src/choice.rs",
            "runtime-plugin/launch/src/facts.rs",
            "runtime-plugin/launch/src/rules.rs",
            "runtime-plugin/launch/src/signature.rs",
            "runtime-plugin/launch/src/steps.rs",
            "runtime-plugin/launch/src/tuned.rs",
            "runtime-plugin/launch/src/variants.rs",
        ],
        tested_by: &["cubinder-launch"],
        programs: &["--lib"],
        tests: &["--skip=native::", "--skip=proof::"],
    },
    Group {
        name: "launch",
        packages: &["cubinder-expr", "cubinder-launch", "cubinder-model"],
        files: &[
            "runtime-plugin/expr/src/data_type.rs",
            "runtime-plugin/launch/src/numbers.rs",
            "runtime-plugin/launch/src/pack.rs",
            "runtime-plugin/launch/src/sequence.rs",
            "runtime-plugin/launch/src/workspace.rs",
            "runtime-plugin/model/src/model/storage.rs",
            "runtime-plugin/launch/src/native/unproved.rs",
        ],
        tested_by: &["cubinder-expr", "cubinder-launch", "cubinder-model"],
        programs: &["--lib"],
        tests: &["--skip=proof::"],
    },
    Group {
        name: "prover",
        packages: &["cubinder-expr", "cubinder-launch"],
        files: &[
            "runtime-plugin/expr/src/bounds/walk/arrays.rs",
            "runtime-plugin/expr/src/bounds/walk/narrow.rs",
            "runtime-plugin/expr/src/bounds/walk/mod.rs",
            "runtime-plugin/launch/src/proof/frame.rs",
        ],
        tested_by: &["cubinder-expr", "cubinder-launch"],
        programs: &["--lib"],
        tests: &[],
    },
    Group {
        name: "code",
        packages: &["cubinder-code-object"],
        files: &["compiler/code-object/src/block_limits.rs", "compiler/code-object/src/cubin/ptx/usage.rs"],
        tested_by: &["cubinder-code-object"],
        programs: &["--lib"],
        tests: &["block_limits::", "cubin::ptx::usage::"],
    },
    Group {
        name: "signature",
        packages: &["cubinder"],
        files: &[
            "compiler/src/verify/args.rs",
            "compiler/src/verify/code.rs",
            "compiler/src/verify/pointee.rs",
            "compiler/src/verify/targets.rs",
        ],
        tested_by: &["cubinder", "cubinder-import"],
        programs: &["--lib"],
        tests: &["eval::occupancy::", "foreign::", "precompiled::", "verify::"],
    },
    Group {
        name: "cache",
        packages: &["cubinder-nvrtc"],
        files: &[
            "compiler/nvrtc/src/cache/dependencies.rs",
            "compiler/nvrtc/src/nvrtc/options.rs",
            "compiler/nvrtc/src/nvrtc/session.rs",
            "compiler/nvrtc/src/nvrtc/session/entry.rs",
        ],
        tested_by: &["cubinder-nvrtc"],
        programs: &["--lib"],
        tests: &[
            "cache::",
            "nvrtc::options::",
            "nvrtc::session::builds::",
            "nvrtc::session::include_graphs::a_file_before",
            "nvrtc::session::tests::",
            "nvrtc::tests::",
        ],
    },
    Group {
        name: "directives",
        packages: &["cubinder-cuda-text"],
        files: &["compiler/cuda-text/src/directives.rs"],
        tested_by: &["cubinder-cuda-text"],
        programs: &["--lib"],
        tests: &["directives::"],
    },
    Group {
        name: "options",
        packages: &["cubinder-manifest"],
        files: &["compiler/manifest/src/nvrtc_option.rs"],
        tested_by: &["cubinder-manifest"],
        programs: &["--lib"],
        tests: &["nvrtc_option::"],
    },
    Group {
        name: "files",
        packages: &["cubinder-source"],
        files: &["compiler/source/src/source.rs", "compiler/source/src/whole.rs"],
        tested_by: &["cubinder-source"],
        programs: &["--lib"],
        tests: &["source::", "whole::"],
    },
    Group {
        name: "fields",
        packages: &["cubinder-model"],
        files: &["runtime-plugin/model/src/field.rs"],
        tested_by: &["cubinder-model"],
        programs: &["--lib"],
        tests: &["field::"],
    },
    Group {
        name: "node",
        packages: &["cubinder-plugin"],
        files: &[
            "runtime-plugin/src/attributes.rs",
            "runtime-plugin/src/code/table.rs",
            "runtime-plugin/src/definition.rs",
            "runtime-plugin/src/launch/addresses.rs",
            "runtime-plugin/src/launch/record.rs",
            "runtime-plugin/src/launch/step.rs",
            "runtime-plugin/src/plugin/fields.rs",
        ],
        tested_by: &["cubinder-plugin"],
        programs: &["--lib", "--test=it", "--test=unloading_frees_everything"],
        // Without tests that compile whole plugins or measure time.
        tests: &[
            "--skip=agreement::",
            "--skip=driver_calls::",
            "--skip=sealed_damage",
            "--skip=several_devices::",
            "--skip=timing_tests::",
            "--skip=what_an_engine_asks_for",
        ],
    },
    Group {
        name: "driver",
        packages: &["cubinder-driver"],
        files: &[
            "runtime-plugin/driver/src/calls.rs",
            "runtime-plugin/driver/src/capture.rs",
            "runtime-plugin/driver/src/context.rs",
            "runtime-plugin/driver/src/queue.rs",
            "runtime-plugin/driver/src/sys.rs",
        ],
        tested_by: &["cubinder-plugin"],
        programs: &["--test=it"],
        tests: &["--skip=several_devices::"],
    },
    Group {
        name: "run",
        packages: &["cubinder-plugin"],
        files: &["runtime-plugin/src/plugin/run.rs"],
        tested_by: &["cubinder-plugin"],
        programs: &["--lib", "--test=meaning"],
        tests: &[
            "run_tests::",
            "plugin::tests::",
            "both_names",
            "what_a_node_does",
            "--skip=what_an_engine_asks_for",
        ],
    },
    Group {
        name: "logger",
        packages: &["trt-abi"],
        files: &[
            "runtime-plugin/abi/src/image.rs",
            "runtime-plugin/abi/src/library.rs",
            "runtime-plugin/abi/src/logger.rs",
        ],
        tested_by: &["trt-abi"],
        programs: &["--lib"],
        tests: &["image::", "library::", "logger::"],
    },
];

/// Tests the groups. Survivors are reported, and the exit status is not zero.
pub(crate) fn run(names: &[String], left: bool) -> Result<ExitCode> {
    let groups = chosen(names)?;
    if process::capture(workspace::cargo().args(["mutants", "--version"])).is_err() {
        bail!("this needs cargo-mutants: `cargo install cargo-mutants --locked`");
    }
    let mut outcomes = Vec::new();
    for group in groups {
        println!("{}: {}", group.name, group.files.join(", "));
        outcomes.push((group.name, group.run(left)?));
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

/// The groups with these names, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static Group>> {
    if let Some(wrong) = names.iter().find(|name| !GROUPS.iter().any(|group| group.name == **name)) {
        bail!("`{wrong}` is not a group; the groups are {}", GROUPS.map(|group| group.name).join(", "));
    }
    let is_chosen = |group: &&Group| names.is_empty() || names.iter().any(|name| name == group.name);
    Ok(GROUPS.iter().filter(is_chosen).collect())
}

impl Group {
    fn run(&self, left: bool) -> Result<Outcome> {
        let to = workspace::root().join("target/mutants").join(self.name);
        fs::create_dir_all(&to)?;
        if self.packages != self.tested_by {
            process::inherit(&mut self.unchanged()).context("tests fail without any change")?;
        }
        let mut command = self.command(&to, left);
        let status = command
            .status()
            .with_context(|| format!("cannot start `{}`", process::command_line(&command)))?;
        // All caught, some survived, some ran too long (`cargo mutants`, "Exit codes").
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("`{}` failed ({status})", process::command_line(&command));
        }
        Outcome::read(&to.join("mutants.out"))
    }

    /// The tests without any change.
    fn unchanged(&self) -> Command {
        let mut command = workspace::cargo();
        command.arg("test").args(self.tested_by.iter().flat_map(|package| ["--package", package]));
        command.args(["--profile", "mutants"]);
        command.args(self.programs).arg("--").args(self.tests);
        command
    }

    fn command(&self, to: &Path, left: bool) -> Command {
        let mut command = workspace::cargo();
        command.arg("mutants").args(self.packages.iter().flat_map(|package| ["--package", package]));
        command.args(self.tested_by.iter().flat_map(|package| ["--test-package", package]));
        command.args(["--profile", "mutants"]);
        if self.packages != self.tested_by {
            // cargo-mutants 27.1 would run the tests of the changed packages.
            command.arg("--baseline=skip");
        }
        command.args(self.files.iter().flat_map(|file| ["--file", file]));
        command.arg("--timeout").arg(TEST_SECONDS.to_string()).arg("--output").arg(to);
        command.args(self.programs.iter().map(|program| format!("--cargo-arg={program}")));
        if left {
            command.arg("--iterate");
        }
        command.args(["--", "--"]).args(self.tests);
        command.env("RUST_BACKTRACE", "0");
        command
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    counts: Counts,
    survivors: Vec<String>,
    /// Changes whose tests ran into the time limit.
    endless: Vec<String>,
}

/// Numbers in `outcomes.json` of cargo-mutants.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
struct Counts {
    total_mutants: usize,
    caught: usize,
    timeout: usize,
    unviable: usize,
}

impl Outcome {
    /// Reads cargo-mutants' folder.
    fn read(folder: &Path) -> Result<Outcome> {
        let read = |path: PathBuf| fs::read_to_string(&path);
        let counts = folder.join("outcomes.json");
        // Missing if nothing was left to try.
        let counts = match counts.exists() {
            true => serde_json::from_str(&read(counts)?)
                .context("cannot understand outcomes.json of cargo-mutants")?,
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
            "{total_mutants} mutants, {caught} caught by a test that failed, {timeout} whose tests did not end within {TEST_SECONDS} s, {unviable} that do not compile, {} survived",
            self.survivors.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_groups_exist() {
        for file in GROUPS.iter().flat_map(|group| group.files) {
            assert!(workspace::root().join(file).is_file(), "{file}");
        }
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&[]).unwrap().len(), GROUPS.len());
        let one: Vec<&str> = chosen(&names(&["guards"])).unwrap().iter().map(|group| group.name).collect();
        assert_eq!(one, ["guards"]);
        let error = chosen(&names(&["guards", "guard"])).err().unwrap().to_string();
        assert_eq!(
            error,
            "`guard` is not a group; the groups are reader, guards, launch, prover, code, signature, cache, directives, options, files, fields, node, driver, run, logger"
        );
    }

    #[test]
    fn a_group_is_one_command() {
        let group = Group {
            name: "n",
            packages: &["p"],
            files: &["a.rs", "b.rs"],
            tested_by: &["q"],
            programs: &["--lib"],
            tests: &["t::", "u::"],
        };
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
            "9 mutants, 5 caught by a test that failed, 1 whose tests did not end within 60 s, 2 that do not compile, 1 survived"
        );
        write("outcomes.json", "no JSON");
        assert!(Outcome::read(folder.path()).is_err());
    }
}
