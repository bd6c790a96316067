//! `cargo xtask mutants`: changes the code on which right results depend, one place at a time, and tells which changes no test notices.
//!
//! Owns what is changed, which tests are asked, and how the outcome is told. Everything else is cargo-mutants'. Never part of
//! `cargo xtask test`: each change is compiled and tested by itself, which takes seconds, and there are hundreds.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{process, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Change the code that reads bundles and fields, decides guards, proves claims, evaluates launches, keeps the cache, reads and writes files, runs a \
node and finds the logger, one place at a time, and run the tests that are about it. A change that no test notices survives: it is told, and the \
exit status says so.

Needs cargo-mutants, and says how to get it. Works in a copy of the checkout (in TMPDIR); what was found is in target/mutants/GROUP. \
A change whose tests do not end within a minute is told apart: no test failed, but none said that it is right.

Without GROUP all run, one after the other. --left tries only what the last run did not catch.";

/// A test may take so long, seconds: they take one or two, and a change may make one run forever.
const TEST_SECONDS: u32 = 60;

/// What is changed together: it is of one package, and the same tests are about it.
struct Group {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// The package whose tests are asked.
    tested_by: &'static str,
    /// What cargo builds of the package, and runs.
    programs: &'static [&'static str],
    /// What the programs run: names, and after `--skip` those that are about something else.
    tests: &'static [&'static str],
}

const GROUPS: [Group; 15] = [
    Group {
        name: "reader",
        package: "cubinder-bundle",
        files: &[
            "bundle/src/container.rs",
            "bundle/src/container/header.rs",
            "bundle/src/packed.rs",
            "bundle/src/provenance.rs",
            "bundle/src/slot.rs",
            "bundle/src/validate.rs",
            "bundle/src/validate/places.rs",
            "bundle/src/validate/tuning.rs",
        ],
        tested_by: "cubinder-bundle",
        programs: &["--lib"],
        tests: &["--skip=expr::", "--skip=launch::", "--skip=proof::"],
    },
    Group {
        name: "guards",
        package: "cubinder-bundle",
        files: &[
            "bundle/src/launch/choice.rs",
            "bundle/src/launch/facts.rs",
            "bundle/src/launch/rules.rs",
            "bundle/src/launch/steps.rs",
            "bundle/src/launch/tuned.rs",
            "bundle/src/launch/variants.rs",
        ],
        tested_by: "cubinder-bundle",
        programs: &["--lib"],
        tests: &["launch::"],
    },
    Group {
        name: "launch",
        package: "cubinder-bundle",
        files: &[
            "bundle/src/data_type.rs",
            "bundle/src/launch/numbers.rs",
            "bundle/src/launch/pack.rs",
            "bundle/src/launch/sequence.rs",
            "bundle/src/launch/workspace.rs",
            "bundle/src/model/storage.rs",
            "bundle/src/native/unproved.rs",
        ],
        tested_by: "cubinder-bundle",
        programs: &["--lib"],
        tests: &["data_type::", "launch::", "native::"],
    },
    Group {
        name: "prover",
        package: "cubinder-bundle",
        files: &[
            "bundle/src/expr/bounds/arrays.rs",
            "bundle/src/expr/bounds/narrow.rs",
            "bundle/src/expr/bounds/walk.rs",
            "bundle/src/proof/frame.rs",
        ],
        tested_by: "cubinder-bundle",
        programs: &["--lib"],
        tests: &["expr::", "proof::"],
    },
    Group {
        name: "code",
        package: "cubinder-code-object",
        files: &["compiler/code-object/src/block_limits.rs", "compiler/code-object/src/cubin/ptx/usage.rs"],
        tested_by: "cubinder-code-object",
        programs: &["--lib"],
        tests: &["block_limits::", "cubin::ptx::usage::"],
    },
    Group {
        name: "signature",
        package: "cubinder",
        files: &[
            "compiler/src/verify/args.rs",
            "compiler/src/verify/code.rs",
            "compiler/src/verify/pointee.rs",
            "compiler/src/verify/targets.rs",
        ],
        tested_by: "cubinder",
        programs: &["--lib"],
        tests: &["eval::occupancy::", "foreign::", "precompiled::", "verify::"],
    },
    Group {
        name: "cache",
        package: "cubinder",
        files: &[
            "compiler/src/cache/dependencies.rs",
            "compiler/src/nvrtc/options.rs",
            "compiler/src/nvrtc/session.rs",
            "compiler/src/nvrtc/session/entry.rs",
        ],
        tested_by: "cubinder",
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
        package: "cubinder-cuda-text",
        files: &["compiler/cuda-text/src/directives.rs"],
        tested_by: "cubinder-cuda-text",
        programs: &["--lib"],
        tests: &["directives::"],
    },
    Group {
        name: "options",
        package: "cubinder-manifest",
        files: &["compiler/manifest/src/nvrtc_option.rs"],
        tested_by: "cubinder-manifest",
        programs: &["--lib"],
        tests: &["nvrtc_option::"],
    },
    Group {
        name: "files",
        package: "cubinder-source",
        files: &["compiler/source/src/source.rs", "compiler/source/src/whole.rs"],
        tested_by: "cubinder-source",
        programs: &["--lib"],
        tests: &["source::", "whole::"],
    },
    Group {
        name: "fields",
        package: "cubinder-bundle",
        files: &["bundle/src/field.rs"],
        tested_by: "cubinder-bundle",
        programs: &["--lib"],
        tests: &["field::"],
    },
    Group {
        name: "node",
        package: "cubinder-plugin",
        files: &[
            "runtime-plugin/src/attributes.rs",
            "runtime-plugin/src/code/table.rs",
            "runtime-plugin/src/definition.rs",
            "runtime-plugin/src/launch/record.rs",
            "runtime-plugin/src/launch/step.rs",
            "runtime-plugin/src/plugin/fields.rs",
        ],
        tested_by: "cubinder-plugin",
        programs: &[
            "--lib",
            "--test=code_loading",
            "--test=launching",
            "--test=sequences",
            "--test=unloading_frees_everything",
        ],
        // Those that compile whole plugins, or measure time.
        tests: &[
            "--skip=agreement::",
            "--skip=sealed_damage",
            "--skip=timing_tests::",
            "--skip=what_an_engine_asks_for",
        ],
    },
    Group {
        name: "driver",
        package: "cubinder-driver",
        files: &[
            "runtime-plugin/driver/src/calls.rs",
            "runtime-plugin/driver/src/capture.rs",
            "runtime-plugin/driver/src/context.rs",
            "runtime-plugin/driver/src/queue.rs",
            "runtime-plugin/driver/src/sys.rs",
        ],
        tested_by: "cubinder-plugin",
        programs: &["--test=code_loading", "--test=driver_calls", "--test=launching", "--test=sequences"],
        tests: &[],
    },
    Group {
        name: "run",
        package: "cubinder-plugin",
        files: &["runtime-plugin/src/plugin/run.rs"],
        tested_by: "cubinder-plugin",
        programs: &["--lib", "--test=meaning"],
        tests: &["run_tests::", "both_names", "what_a_node_does"],
    },
    Group {
        name: "logger",
        package: "trt-abi",
        files: &[
            "runtime-plugin/abi/src/image.rs",
            "runtime-plugin/abi/src/library.rs",
            "runtime-plugin/abi/src/logger.rs",
        ],
        tested_by: "trt-abi",
        programs: &["--lib"],
        tests: &["image::", "library::", "logger::"],
    },
];

/// Tests the groups, or all of them.
///
/// # Errors
/// When cargo-mutants is missing, a name is no group, or the tests fail without any change. A change that survives is no error here: it
/// is told, and the exit status says so.
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

/// The groups of these names, all where there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Group>> {
    if let Some(wrong) = names.iter().find(|name| !GROUPS.iter().any(|group| group.name == **name)) {
        bail!("there is no group `{wrong}`; there are {}", GROUPS.map(|group| group.name).join(", "));
    }
    let is_chosen = |group: &&Group| names.is_empty() || names.iter().any(|name| name == group.name);
    Ok(GROUPS.iter().filter(is_chosen).collect())
}

impl Group {
    fn run(&self, left: bool) -> Result<Outcome> {
        let to = workspace::root().join("target/mutants").join(self.name);
        std::fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
        if self.package != self.tested_by {
            process::inherit(&mut self.unchanged()).context("tests fail without any change")?;
        }
        let mut command = self.command(&to, left);
        let status = command
            .status()
            .with_context(|| format!("cannot start `{}`", process::command_line(&command)))?;
        // Caught all; some survived; some ran for too long (`cargo mutants`, "Exit codes").
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("`{}` failed ({status})", process::command_line(&command));
        }
        Outcome::read(&to.join("mutants.out"))
    }

    /// The tests without any change.
    fn unchanged(&self) -> Command {
        let mut command = workspace::cargo();
        command.args(["test", "--package", self.tested_by, "--profile", "mutants"]);
        command.args(self.programs).arg("--").args(self.tests);
        command
    }

    fn command(&self, to: &Path, left: bool) -> Command {
        let mut command = workspace::cargo();
        command.args(["mutants", "--package", self.package, "--test-package", self.tested_by]);
        command.args(["--profile", "mutants"]);
        if self.package != self.tested_by {
            // Of unchanged code cargo-mutants would build the tests of the changed package (27.1).
            command.arg("--baseline=skip");
        }
        command.args(self.files.iter().flat_map(|file| ["--file", file]));
        command.arg("--timeout").arg(TEST_SECONDS.to_string()).arg("--output").arg(to);
        command.args(self.programs.iter().map(|program| format!("--cargo-arg={program}")));
        if left {
            command.arg("--iterate");
        }
        command.args(["--", "--"]).args(self.tests);
        // What fails on purpose explains itself to nobody.
        command.env("RUST_BACKTRACE", "0");
        command
    }
}

/// What became of a group's changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    counts: Counts,
    survivors: Vec<String>,
    /// Those whose tests ran into the time limit.
    endless: Vec<String>,
}

/// As `outcomes.json` of cargo-mutants has them.
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
        let read = |path: PathBuf| {
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let counts = folder.join("outcomes.json");
        // There is none where nothing was left to try.
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
    fn groups_are_of_files_that_are_there() {
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
            "there is no group `guard`; there are reader, guards, launch, prover, code, signature, cache, directives, options, files, fields, node, driver, run, logger"
        );
    }

    #[test]
    fn a_group_is_one_command() {
        let group = Group {
            name: "n",
            package: "p",
            files: &["a.rs", "b.rs"],
            tested_by: "q",
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
