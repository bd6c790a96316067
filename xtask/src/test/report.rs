//! Running steps one after the other and summing them up.
//!
//! Owns what is printed around a step and the last line. All of it goes to standard output, so that the order holds in a log.
//! Never stops at a failed step.

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::results::{Counts, Line, Reader, Results};
use crate::process;
use crate::progress::duration;

/// Steps so far.
pub(crate) struct Report<W> {
    out: W,
    filter: Option<String>,
    counts: Counts,
    /// What failed, for the summary.
    problems: Vec<String>,
    /// What failed tests printed.
    outputs: Vec<String>,
    reasons: Vec<String>,
    /// Checks and tests that the filter let through.
    matched: usize,
    start: Instant,
}

impl<W: Write> Report<W> {
    /// A report of nothing yet, told to `out`. Checks and suites look at `filter`.
    pub(crate) fn new(out: W, filter: Option<&str>) -> Self {
        Self {
            out,
            filter: filter.map(str::to_owned),
            counts: Counts::default(),
            problems: Vec::new(),
            outputs: Vec::new(),
            reasons: Vec::new(),
            matched: 0,
            start: Instant::now(),
        }
    }

    /// A step that makes something for later ones: always runs, counts as one.
    pub(crate) fn prepare<T>(
        &mut self,
        name: &str,
        step: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T>,
    ) -> Option<T> {
        let start = self.begin(name);
        let result = step(&mut |line: &str| print(&mut self.out, line));
        let error = result.as_ref().err().map(|error| format!("{error:#}"));
        self.one(name, start.elapsed(), error);
        result.ok()
    }

    /// A command that must succeed: counts as one.
    pub(crate) fn check(&mut self, name: &str, command: &mut Command) {
        if self.filter.as_deref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        self.matched += 1;
        let start = self.begin(name);
        let error = run(command, |line| print(&mut self.out, line)).and_then(|success| {
            if success { Ok(()) } else { Err(anyhow!("`{}` failed", process::command_line(command))) }
        });
        self.one(name, start.elapsed(), error.err().map(|error| format!("{error:#}")));
    }

    /// Something that must hold: counts as one.
    pub(crate) fn verify(&mut self, name: &str, step: impl FnOnce(&mut dyn FnMut(&str)) -> Result<()>) {
        if self.filter.as_deref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        self.matched += 1;
        self.prepare(name, step);
    }

    /// Test programs, run by the command that `make` gives for a filter: each test counts.
    pub(crate) fn suite(&mut self, name: &str, make: impl FnOnce(Option<&str>) -> Command) {
        let mut command = make(self.filter.as_deref());
        let start = self.begin(name);
        let mut reader = Reader::default();
        // Hundreds of tests say what they do: who names one wants to see it, in the log of all it hides what failed.
        let all = self.filter.is_some();
        let status = run(&mut command, |line| {
            if reader.line(line) == Line::Shown || all {
                print(&mut self.out, line);
            }
        });
        let results = match status {
            Ok(success) => reader.end(success),
            Err(error) => Results {
                counts: Counts { failed: 1, ..Counts::default() },
                problems: vec![format!("{name}: {error:#}")],
                ..Results::default()
            },
        };
        self.matched += results.counts.total();
        let verdict = line(results.counts);
        print(&mut self.out, &format!("-- {name}: {verdict} in {}", duration(start.elapsed())));
        self.counts.add(results.counts);
        self.problems.extend(results.problems);
        self.outputs.extend(results.outputs);
        self.reasons.extend(results.reasons);
    }

    /// Prints the summary, the last line alone at its end, and gives the exit status.
    pub(crate) fn finish(&mut self) -> ExitCode {
        if let Some(filter) = self.filter.as_ref().filter(|_| self.matched == 0) {
            self.counts.failed += 1;
            self.problems.push(format!("no check and no test has `{filter}` in its name"));
        }
        print(&mut self.out, &format!("\n== summary, after {}", duration(self.start.elapsed())));
        self.reasons.sort();
        self.reasons.dedup();
        for reason in &self.reasons {
            print(&mut self.out, &format!("skipped: {reason}"));
        }
        for output in &self.outputs {
            print(&mut self.out, output);
        }
        for problem in &self.problems {
            print(&mut self.out, &format!("failed: {problem}"));
        }
        print(&mut self.out, &line(self.counts));
        if self.counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn begin(&mut self, name: &str) -> Instant {
        print(&mut self.out, &format!("\n== {name}"));
        Instant::now()
    }

    fn one(&mut self, name: &str, time: Duration, error: Option<String>) {
        let time = duration(time);
        match error {
            None => {
                self.counts.passed += 1;
                print(&mut self.out, &format!("-- {name}: ok in {time}"));
            }
            Some(error) => {
                self.counts.failed += 1;
                print(&mut self.out, &format!("-- {name}: failed after {time}: {error}"));
                self.problems.push(
                    error.lines().next().map_or_else(|| name.to_owned(), |line| format!("{name}: {line}")),
                );
            }
        }
    }
}

/// The line that everything ends with.
fn line(counts: Counts) -> String {
    format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}

/// Runs `command`, each line of its output given to `on_line`. Says whether it succeeded.
fn run(command: &mut Command, on_line: impl FnMut(&str)) -> Result<bool> {
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    Ok(process::stream(command, on_line)?.success())
}

/// Prints a line. When nobody reads any more, the steps run on: the exit status still says how they ended.
fn print(out: &mut impl Write, line: &str) {
    let _reader_gone = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn report(filter: Option<&str>) -> Report<Vec<u8>> {
        Report::new(Vec::new(), filter)
    }

    #[test]
    fn every_step_runs_and_counts() {
        let mut report = report(None);
        let made = report.prepare("setup", |_| Ok(7));
        let lost: Option<()> = report.prepare("build", |_| Err(anyhow!("it broke\nhere")));
        report.check("good", &mut shell("true"));
        report.check("bad", &mut shell("exit 3"));
        report.suite("tests", |_| {
            shell("echo '     Running x (y)'; echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured'")
        });
        report.suite("gone", |_| Command::new("/no/such/program"));
        assert_eq!((made, lost), (Some(7), None));
        assert_eq!(report.counts, Counts { passed: 4, failed: 3, skipped: 1 });
        assert_eq!(report.problems[..2], ["build: it broke", "bad: `sh -c 'exit 3'` failed"]);
        assert!(report.problems[2].starts_with("gone: `/no/such/program` could not be started"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
        let text = String::from_utf8(report.out).unwrap();
        assert!(text.ends_with("(os error 2)\n4 passed, 3 failed, 1 skipped\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("failed: ")).count(), 3);
    }

    #[test]
    fn the_summary_says_again_what_failed_and_leaves_out_what_passed() {
        let script = "printf '     Running x (y)\\ntest a ... FAILED\\n\\nsuccesses:\\n\\n---- b stdout ----\\nchatter\\n\\nsuccesses:\\n    b\\n\\n\
            failures:\\n\\n---- a stdout ----\\nwhy\\n\\nfailures:\\n    a\\n\\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\\n'; exit 1";
        let text = |filter| {
            let mut report = report(filter);
            report.suite("tests", |_| shell(script));
            assert_eq!(report.finish(), ExitCode::FAILURE);
            String::from_utf8(report.out).unwrap()
        };
        let all = text(None);
        assert!(!all.contains("chatter"), "{all}");
        assert!(all.ends_with("---- a\nwhy\nfailed: a (x (y))\n1 passed, 1 failed, 0 skipped\n"), "{all}");
        assert!(text(Some("b")).contains("chatter"));
    }

    #[test]
    fn a_filter_chooses_checks_and_goes_to_suites() {
        let mut report = report(Some("fmt"));
        report.check("rustfmt", &mut shell("true"));
        report.check("clippy", &mut shell("exit 1"));
        report.suite("tests", |filter| {
            assert_eq!(filter, Some("fmt"));
            shell("true")
        });
        assert_eq!(report.counts, Counts { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(report.finish(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_filter_that_matches_nothing_fails() {
        let mut report = report(Some("nonsense"));
        report.prepare("setup", |_| Ok(()));
        report.check("clippy", &mut shell("true"));
        assert_eq!(report.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn the_last_line_has_its_form() {
        assert_eq!(line(Counts { passed: 10, failed: 0, skipped: 2 }), "10 passed, 0 failed, 2 skipped");
    }
}
