//! Counting tests from what `cargo test` prints.
//!
//! Owns the reading of that text, line by line: cargo's `Running` and `Doc-tests` lines begin a program, libtest's
//! `test result:` line ends it. A program that ends without that line has crashed and counts as one failed test. Text in, counts
//! out; never runs anything.

use std::collections::{BTreeSet, VecDeque};

/// What a test that cannot run here begins a line with.
const SKIP: &str = "skipped: ";

/// Numbers of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(crate) fn total(self) -> usize {
        self.passed + self.failed + self.skipped
    }
}

/// A reader that is fed line by line.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    counts: Counts,
    /// The program that is running.
    program: Option<String>,
    part: Part,
    /// The test whose output is being shown there.
    test: Option<String>,
    /// Tests of this program that said they were skipped.
    skips: BTreeSet<String>,
    problems: Vec<String>,
    /// The lines of each failed test, the last [`MOST_REPEATED`].
    outputs: Vec<(String, VecDeque<String>)>,
    reasons: BTreeSet<String>,
}

/// Where in libtest's text a line stands.
///
/// `successes:` begins the output of the tests that passed, the same line again begins the list of their names; so does
/// `failures:`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Plain,
    PassedOutput,
    FailedOutput,
}

impl Part {
    fn next(self, line: &str) -> Option<Self> {
        match (line, self) {
            ("successes:", Self::Plain) => Some(Self::PassedOutput),
            ("failures:", Self::Plain) => Some(Self::FailedOutput),
            ("successes:", Self::PassedOutput) | ("failures:", Self::FailedOutput) => Some(Self::Plain),
            _ => None,
        }
    }
}

/// The most lines of a failed test's output that the summary repeats: the last ones say what was wrong.
const MOST_REPEATED: usize = 60;

/// A line that cargo or a test program printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// Something to see in any log.
    Shown,
    /// Output of a test that passed, for those who asked for that test.
    Passed,
}

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    pub(crate) counts: Counts,
    /// Failed tests and crashed programs, for the summary.
    pub(crate) problems: Vec<String>,
    /// What each failed test printed, under a line with its name.
    pub(crate) outputs: Vec<String>,
    /// Why tests were skipped.
    pub(crate) reasons: Vec<String>,
}

impl Reader {
    /// Takes the next line of `cargo test -- --show-output`, standard output and standard error together, and says what it is.
    pub(crate) fn line(&mut self, line: &str) -> Line {
        let line = strip_colour(line);
        let before = self.part;
        match (before.next(&line), before) {
            (Some(part), _) => self.part = part,
            // What a test printed is not looked at for anything else: it may hold the output of another test run.
            (None, Part::PassedOutput) => self.skip(&line),
            (None, Part::FailedOutput) => self.failed(&line),
            (None, Part::Plain) => self.plain(&line),
        }
        let passed = [before, self.part].contains(&Part::PassedOutput);
        if passed && !line.starts_with(SKIP) { Line::Passed } else { Line::Shown }
    }

    fn plain(&mut self, line: &str) {
        if let Some(program) = begun(line) {
            self.end_program();
            self.program = Some(program);
        } else if let Some(result) = result(line) {
            self.result(result);
        } else if let Some((test, verdict)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            let program = self.program.as_deref().unwrap_or("?");
            if verdict == "FAILED" {
                self.problems.push(format!("{test} ({program})"));
            } else if let Some(reason) = verdict.strip_prefix("ignored, ") {
                self.reasons.insert(reason.to_owned());
            }
        }
    }

    /// The end of the output. `success` is how cargo ended.
    pub(crate) fn end(mut self, success: bool) -> Results {
        self.end_program();
        if !success && self.counts.failed == 0 {
            self.counts.failed = 1;
            self.problems.push("cargo failed before or after the tests".to_owned());
        }
        let output = |(name, lines): (String, VecDeque<String>)| {
            let text: String = lines.iter().map(|line| format!("\n{line}")).collect();
            format!("---- {name}{}", text.trim_end())
        };
        Results {
            counts: self.counts,
            problems: self.problems,
            outputs: self.outputs.into_iter().map(output).collect(),
            reasons: self.reasons.into_iter().collect(),
        }
    }

    fn failed(&mut self, line: &str) {
        if let Some(test) = shown(line) {
            self.outputs.push((test.to_owned(), VecDeque::new()));
        } else if let Some((_, lines)) = self.outputs.last_mut() {
            if lines.len() == MOST_REPEATED {
                lines.pop_front();
            }
            lines.push_back(line.to_owned());
        }
    }

    fn skip(&mut self, line: &str) {
        if let Some(test) = shown(line) {
            self.test = Some(test.to_owned());
        }
        let Some(reason) = line.strip_prefix(SKIP) else { return };
        if let Some(test) = &self.test {
            self.skips.insert(test.clone());
            self.reasons.insert(reason.trim().to_owned());
        }
    }

    fn result(&mut self, result: Numbers) {
        // libtest counts a test that says it skips itself as passed.
        let skips = self.skips.len().min(result.passed);
        let skipped = result.ignored + skips;
        self.counts.add(Counts { passed: result.passed - skips, failed: result.failed, skipped });
        self.program = None;
        self.leave();
    }

    /// A program that is still open here never printed its result.
    fn end_program(&mut self) {
        if let Some(program) = self.program.take() {
            self.counts.failed += 1;
            self.problems.push(format!("{program} ended without a result: it crashed or was killed"));
        }
        self.leave();
    }

    fn leave(&mut self) {
        self.part = Part::Plain;
        self.test = None;
        self.skips.clear();
    }
}

/// `     Running unittests src/lib.rs (target/debug/deps/x-1f)` and `   Doc-tests x`: what cargo starts.
fn begun(line: &str) -> Option<String> {
    if !line.starts_with("   ") {
        return None;
    }
    let line = line.trim_start();
    let running = line.strip_prefix("Running ").filter(|rest| rest.ends_with(')'));
    running
        .map(str::to_owned)
        .or_else(|| line.strip_prefix("Doc-tests ").map(|name| format!("doc-tests of {name}")))
}

/// `---- path::of::test stdout ----`
fn shown(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    passed: usize,
    failed: usize,
    ignored: usize,
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn result(line: &str) -> Option<Numbers> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, numbers) = rest.split_once(". ")?;
    let number = |name: &str| {
        let part = numbers.split("; ").find_map(|part| part.strip_suffix(name))?;
        part.trim().parse().ok()
    };
    Some(Numbers { passed: number(" passed")?, failed: number(" failed")?, ignored: number(" ignored")? })
}

/// `line` without terminal colours.
fn strip_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> Results {
        let mut reader = Reader::default();
        text.lines().for_each(|line| {
            reader.line(line);
        });
        reader.end(success)
    }

    const TWO_PROGRAMS: &str = "   Compiling x v0.1.0
     Running unittests src/lib.rs (target/debug/deps/x-1f)

running 4 tests
test a ... ok
test b ... ok
test c ... ignored, takes an hour
test d ... ok

successes:

---- a stdout ----
skipped: no GPU here
skipped: and no driver

---- d stdout ----
a line about something skipped: not this one
     Running another (in/the/output)
test result: ok. 100 passed; 0 failed; 0 ignored; 0 measured

successes:
    a
    b
    d

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s

   Doc-tests x

running 1 test
test src/lib.rs - f (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
";

    #[test]
    fn programs_are_summed_and_skips_are_not_passes() {
        let results = read(TWO_PROGRAMS, true);
        assert_eq!(results.counts, Counts { passed: 3, failed: 0, skipped: 2 });
        assert_eq!(results.reasons, ["and no driver", "no GPU here", "takes an hour"]);
        assert!(results.problems.is_empty());
    }

    #[test]
    fn failures_are_named_and_their_output_is_no_skip() {
        let text = "     Running tests/e2e.rs (target/debug/deps/e2e-1f)
test a ... FAILED
test b ... ok

failures:

---- a stdout ----
skipped: printed before it failed
thread 'a' panicked

failures:
    a

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let results = read(text, false);
        assert_eq!(results.counts, Counts { passed: 1, failed: 1, skipped: 0 });
        assert_eq!(results.problems, ["a (tests/e2e.rs (target/debug/deps/e2e-1f))"]);
        assert_eq!(results.outputs, ["---- a\nskipped: printed before it failed\nthread 'a' panicked"]);
    }

    #[test]
    fn the_summary_repeats_the_end_of_a_long_output() {
        let lines: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let text = format!(
            "     Running x (y)\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n{lines}failures:\n    a\n"
        );
        let results = read(&text, false);
        let [output] = &results.outputs[..] else { panic!("{results:?}") };
        assert!(output.starts_with("---- a\nline 940\n") && output.ends_with("\nline 999"), "{output}");
    }

    #[test]
    fn what_passing_tests_print_is_told_apart() {
        let mut reader = Reader::default();
        let shown = |line: &&str| reader.line(line) == Line::Shown;
        let lines: Vec<&str> = TWO_PROGRAMS.lines().filter(shown).collect();
        let text = lines.join("\n");
        assert!(text.contains("\nskipped: no GPU here\nskipped: and no driver\n"), "{text}");
        assert!(text.contains("finished in 0.10s") && text.contains("Running unittests"), "{text}");
        assert!(!text.contains("a line about") && !text.contains("100 passed"), "{text}");
    }

    #[test]
    fn a_crashed_program_counts_as_failed() {
        let crash = "     Running unittests src/lib.rs (target/debug/deps/y-2a)
running 2 tests
test a ... error: test failed, to rerun pass `-p y --lib`

Caused by:
  process didn't exit successfully: `y-2a` (signal: 6, SIGABRT: process abort signal)
";
        let results = read(&format!("{crash}{TWO_PROGRAMS}"), false);
        assert_eq!(results.counts, Counts { passed: 3, failed: 1, skipped: 2 });
        assert!(results.problems[0].contains("y-2a) ended without a result"), "{results:?}");
        let last = read(&format!("{TWO_PROGRAMS}{crash}"), false);
        assert_eq!(last.counts, results.counts);
    }

    #[test]
    fn a_build_that_fails_counts_as_failed() {
        let results = read("error[E0425]: cannot find value `x`\nerror: could not compile `y`\n", false);
        assert_eq!(results.counts, Counts { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn colours_do_not_matter() {
        let text = "\u{1b}[1m\u{1b}[32m     Running\u{1b}[0m unittests src/lib.rs (target/x-1)
test result: \u{1b}[32mok\u{1b}[0m. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(read(text, true).counts, Counts { passed: 2, failed: 0, skipped: 0 });
    }

    #[test]
    fn lines_that_only_look_alike_are_no_results() {
        assert_eq!(result("test result: unknown"), None);
        assert_eq!(result("test result: ok. many passed; 0 failed; 0 ignored"), None);
        assert_eq!(begun("Running late (again)"), None);
    }
}
