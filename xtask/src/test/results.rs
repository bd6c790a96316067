use std::collections::BTreeSet;

const SKIPPED: &str = "skipped: ";

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) reasons: BTreeSet<String>,
}

impl Results {
    pub(crate) fn add(&mut self, other: Self) {
        self.counts.passed += other.counts.passed;
        self.counts.failed += other.counts.failed;
        self.counts.skipped += other.counts.skipped;
        self.failures.extend(other.failures);
        self.outputs.extend(other.outputs);
        self.reasons.extend(other.reasons);
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    #[default]
    None,
    Successes,
    Failures,
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    results: Results,
    section: Section,
    program: Option<String>,
    skipped: usize,
    is_counted: bool,
}

impl Reader {
    /// Returns whether to log the line: not for passed tests.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.end_program(result);
        } else if line == "successes:" {
            self.section = Section::Successes;
        } else if line == "failures:" {
            self.section = Section::Failures;
        } else {
            match self.section {
                Section::None => self.progress(line),
                Section::Successes => return self.passed_output(line),
                Section::Failures => self.results.outputs.push(line.to_owned()),
            }
        }
        self.section != Section::Successes
    }

    fn progress(&mut self, line: &str) {
        if line.starts_with("     Running ") || line.starts_with("   Doc-tests ") {
            self.report_crash();
            self.start_program(Some(line.trim().to_owned()));
        } else if let Some(test) = line.strip_suffix(" ... FAILED") {
            let program = self.program.as_deref().unwrap_or_default();
            // libtest-mimic pads names.
            self.results.failures.push(format!("{} ({program})", test.trim_end()));
        } else if let Some((_, reason)) = line.split_once(" ... ignored") {
            // `, REASON` of libtest, ` (REASON)` of libtest-mimic.
            let mimic_reason = reason.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
            let reason = reason.strip_prefix(", ").or(mimic_reason);
            self.results.reasons.extend(reason.map(str::to_owned));
        }
    }

    fn passed_output(&mut self, line: &str) -> bool {
        if line.starts_with("---- ") {
            self.is_counted = false;
        }
        let Some(reason) = line.strip_prefix(SKIPPED) else { return false };
        self.results.reasons.insert(reason.to_owned());
        self.skipped += usize::from(!std::mem::replace(&mut self.is_counted, true));
        true
    }

    /// Reads `ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn end_program(&mut self, result: &str) {
        let words: Vec<&str> = result.split_whitespace().collect();
        let [_, passed, "passed;", failed, "failed;", ignored, "ignored;", ..] = words[..] else { return };
        let numbers = [passed, failed, ignored].map(str::parse::<usize>);
        let [Ok(passed), Ok(failed), Ok(ignored)] = numbers else { return };
        let counts = &mut self.results.counts;
        counts.passed += passed.saturating_sub(self.skipped);
        counts.failed += failed;
        counts.skipped += ignored + self.skipped;
        self.start_program(None);
    }

    fn report_crash(&mut self) {
        if let Some(program) = self.program.take() {
            self.results.counts.failed += 1;
            self.results
                .failures
                .push(format!("{program} exited without a result: it crashed or was killed"));
        }
    }

    fn start_program(&mut self, program: Option<String>) {
        let results = std::mem::take(&mut self.results);
        *self = Self { results, program, ..Self::default() };
    }

    pub(crate) fn end(mut self, success: bool) -> Results {
        self.report_crash();
        if !success && self.results.counts.failed == 0 {
            self.results.counts.failed = 1;
            self.results.failures.push("cargo failed before or after the tests".to_owned());
        }
        self.results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> Results {
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.line(line);
        }
        reader.end(success)
    }

    fn counts(passed: usize, failed: usize, skipped: usize) -> Counts {
        Counts { passed, failed, skipped }
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
    fn programs_are_summed_and_skipped_tests_are_not_passed() {
        let results = read(TWO_PROGRAMS, true);
        assert_eq!(results.counts, counts(3, 0, 2));
        assert_eq!(Vec::from_iter(results.reasons), ["and no driver", "no GPU here", "takes an hour"]);
        assert!(results.failures.is_empty() && results.outputs.is_empty());
    }

    #[test]
    fn failed_tests_are_named_with_their_output_and_not_skipped() {
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
        assert_eq!(results.counts, counts(1, 1, 0));
        assert_eq!(results.failures, ["test a (Running tests/e2e.rs (target/debug/deps/e2e-1f))"]);
        assert!(results.outputs.iter().any(|line| line == "thread 'a' panicked"));
    }

    #[test]
    fn a_program_of_libtest_mimic_is_read() {
        let text = "     Running tests/cases.rs (target/debug/deps/cases-1f)

running 3 tests
test bad/alias          ... FAILED
test bad/compiled/block ... ignored (no NVRTC or runtime library)
test ok/every_key       ... ok

failures:

---- bad/alias ----
test panicked: snapshot assertion for 'alias' failed in line 134


failures:
    bad/alias

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 26.59s

";
        let results = read(text, false);
        assert_eq!(results.counts, counts(1, 1, 1));
        assert_eq!(
            results.failures,
            ["test bad/alias (Running tests/cases.rs (target/debug/deps/cases-1f))"]
        );
        assert_eq!(Vec::from_iter(results.reasons), ["no NVRTC or runtime library"]);
    }

    #[test]
    fn output_of_passed_tests_is_hidden_but_for_skips() {
        let mut reader = Reader::default();
        let text: Vec<&str> = TWO_PROGRAMS.lines().filter(|line| reader.line(line)).collect();
        let text = text.join("\n");
        assert!(text.contains("\nskipped: no GPU here\nskipped: and no driver\n"), "{text}");
        assert!(text.contains("finished in 0.10s") && text.contains("Running unittests"), "{text}");
        assert!(!text.contains("a line about"), "{text}");
    }

    #[test]
    fn a_crashed_program_counts_as_failed() {
        let crash = "     Running unittests src/lib.rs (target/debug/deps/y-2a)
running 2 tests
test a ... error: test failed, to rerun pass `-p y --lib`
";
        let unreadable = "     Running z (z)\ntest result: ok. many passed\n";
        for text in [
            format!("{crash}{TWO_PROGRAMS}"),
            format!("{TWO_PROGRAMS}{crash}"),
            format!("{unreadable}{TWO_PROGRAMS}"),
        ] {
            let results = read(&text, false);
            assert_eq!(results.counts, counts(3, 1, 2));
            assert!(results.failures[0].contains(") exited without a result"), "{results:?}");
        }
    }

    #[test]
    fn a_build_that_fails_counts_as_failed() {
        let results = read("error[E0425]: cannot find value `x`\nerror: could not compile `y`\n", false);
        assert_eq!(results.counts, counts(0, 1, 0));
    }
}
