//! Runs steps and prints a summary. A filter selects checks and suites.

use std::io::{IsTerminal, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::results::{Reader, Results};
use crate::process;

pub(crate) struct Report<W> {
    out: W,
    filter: Option<String>,
    results: Results,
    matched: usize,
    start: Instant,
}

impl<W: Write> Report<W> {
    pub(crate) fn new(out: W, filter: Option<&str>) -> Self {
        let filter = filter.map(str::to_owned);
        Self { out, filter, results: Results::default(), matched: 0, start: Instant::now() }
    }

    /// Ignores the filter, counts as one.
    pub(crate) fn prepare<T>(
        &mut self,
        name: &str,
        step: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T>,
    ) -> Option<T> {
        print(&mut self.out, &format!("\n== {name}"));
        let start = Instant::now();
        let result = step(&mut |line: &str| print(&mut self.out, line));
        let time = duration(start.elapsed());
        match &result {
            Ok(_) => {
                self.results.counts.passed += 1;
                print(&mut self.out, &format!("-- {name}: ok in {time}"));
            }
            Err(error) => {
                self.results.counts.failed += 1;
                let error = format!("{error:#}");
                print(&mut self.out, &format!("-- {name}: failed after {time}: {error}"));
                self.results.failures.push(format!("{name}: {}", error.lines().next().unwrap_or_default()));
            }
        }
        result.ok()
    }

    /// A check, which the filter may skip, counts as one test.
    pub(crate) fn verify(&mut self, name: &str, step: impl FnOnce(&mut dyn FnMut(&str)) -> Result<()>) {
        if self.filter.as_deref().is_none_or(|filter| name.contains(filter)) {
            self.matched += 1;
            self.prepare(name, step);
        }
    }

    pub(crate) fn check(&mut self, name: &str, command: &mut Command) {
        if std::io::stdout().is_terminal() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        self.verify(name, |echo| {
            let status = process::stream(command, echo)?;
            ensure!(status.success(), "`{}` failed", process::command_line(command));
            Ok(())
        });
    }

    pub(crate) fn suite(&mut self, name: &str, make: impl FnOnce(Option<&str>) -> Command) {
        print(&mut self.out, &format!("\n== {name}"));
        let start = Instant::now();
        let mut reader = Reader::default();
        let all = self.filter.is_some();
        let mut command = make(self.filter.as_deref());
        let status = process::stream(&mut command, |line| {
            if reader.line(line) || all {
                print(&mut self.out, line);
            }
        });
        let mut suite = reader.end(status.as_ref().is_ok_and(std::process::ExitStatus::success));
        if let Err(error) = status {
            suite.failures = vec![format!("{name}: {error:#}")];
        }
        print(&mut self.out, &format!("-- {name}: {} in {}", suite.counts, duration(start.elapsed())));
        self.matched += suite.counts.passed + suite.counts.failed + suite.counts.skipped;
        self.results.add(suite);
    }

    pub(crate) fn finish(&mut self, note: Option<&str>) -> ExitCode {
        let Self { out, filter, results, matched, start } = self;
        if let Some(filter) = filter.as_ref().filter(|_| *matched == 0) {
            results.counts.failed += 1;
            results.failures.push(format!("no check or test matches `{filter}`"));
        }
        print(out, &format!("\n== summary, after {}", duration(start.elapsed())));
        for reason in &results.reasons {
            print(out, &format!("skipped: {reason}"));
        }
        for line in &results.outputs {
            print(out, line);
        }
        for failure in &results.failures {
            print(out, &format!("failed: {failure}"));
        }
        note.iter().for_each(|note| print(out, note));
        print(out, &results.counts.to_string());
        if results.counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 120.0 { format!("{seconds:.1} s") } else { format!("{:.0} minutes", seconds / 60.0) }
}

/// Ignores closed pipes: later steps determine the exit status.
fn print(out: &mut impl Write, line: &str) {
    let _reader_gone = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::super::results::Counts;
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
        let lost: Option<()> = report.prepare("build", |_| Err(anyhow::anyhow!("it broke\nhere")));
        report.check("good", &mut shell("true"));
        report.check("bad", &mut shell("exit 3"));
        report.suite("tests", |_| {
            shell("echo '     Running x (y)'; echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured'")
        });
        report.suite("gone", |_| Command::new("/no/such/program"));
        assert_eq!((made, lost), (Some(7), None));
        assert_eq!(report.results.counts, Counts { passed: 4, failed: 3, skipped: 1 });
        assert_eq!(report.results.failures[..2], ["build: it broke", "bad: `sh -c 'exit 3'` failed"]);
        assert!(report.results.failures[2].starts_with("gone: cannot start `/no/such/program`"));
        assert_eq!(report.finish(Some("not run: matrix")), ExitCode::FAILURE);
        let text = String::from_utf8(report.out).unwrap();
        assert!(text.ends_with("(os error 2)\nnot run: matrix\n4 passed, 3 failed, 1 skipped\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("failed: ")).count(), 3);
    }

    #[test]
    fn the_summary_repeats_failures_only() {
        let script = "printf '     Running x (y)\\ntest a ... FAILED\\n\\nsuccesses:\\n\\n---- b stdout ----\\nchatter\\n\\nsuccesses:\\n    b\\n\\n\
            failures:\\n\\n---- a stdout ----\\nwhy\\n\\nfailures:\\n    a\\n\\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\\n'; exit 1";
        let text = |filter| {
            let mut report = report(filter);
            report.suite("tests", |_| shell(script));
            assert_eq!(report.finish(None), ExitCode::FAILURE);
            String::from_utf8(report.out).unwrap()
        };
        let all = text(None);
        assert!(!all.contains("chatter"), "{all}");
        assert!(all.contains("---- a stdout ----\nwhy\n"), "{all}");
        assert!(all.ends_with("\nfailed: test a (Running x (y))\n1 passed, 1 failed, 0 skipped\n"), "{all}");
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
        assert_eq!(report.results.counts, Counts { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(report.finish(None), ExitCode::SUCCESS);
    }

    #[test]
    fn a_filter_that_matches_nothing_fails() {
        let mut report = report(Some("nonsense"));
        report.prepare("setup", |_| Ok(()));
        report.check("clippy", &mut shell("true"));
        assert_eq!(report.finish(None), ExitCode::FAILURE);
    }
}
