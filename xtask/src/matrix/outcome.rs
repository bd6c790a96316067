//! Rows' outcomes, compared with `docs/support.md`.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use serde::Deserialize;
use serde_json::Value;

use crate::setup::packages::NotFetched;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Works(String),
    Refused(String),
    /// Without an answer.
    Crashed(String),
    /// An earlier step failed.
    Failed(String),
    NotTried(String),
}

impl From<anyhow::Error> for Outcome {
    fn from(error: anyhow::Error) -> Outcome {
        match error.downcast() {
            Ok(outcome) => outcome,
            Err(error) if error.is::<NotFetched>() => Outcome::NotTried(format!("{error:#}")),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Expected {
    pub(super) page: String,
    #[serde(default)]
    refused: bool,
    with: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) what: String,
    pub(super) expected: &'a Expected,
    pub(super) outcome: Outcome,
}

impl std::error::Error for Outcome {}

impl Row<'_> {
    pub(super) fn difference(&self) -> Option<String> {
        let Row { what, expected: Expected { page, refused, with }, outcome } = self;
        let is_as_expected = match outcome {
            Outcome::Works(text) => !refused && with.iter().all(|part| text.contains(part)),
            Outcome::Refused(text) => *refused && with.iter().all(|part| text.contains(part)),
            Outcome::Crashed(_) | Outcome::Failed(_) => false,
            Outcome::NotTried(_) => true,
        };
        (!is_as_expected).then(|| format!("{what}: {outcome}; docs/support.md: {page}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (how, text) = match self {
            Outcome::Works(text) => ("works", text),
            Outcome::Refused(text) => ("**refused**", text),
            Outcome::Crashed(text) => ("**crashed**", text),
            Outcome::Failed(text) => ("**failed**", text),
            Outcome::NotTried(text) => ("not tried", text),
        };
        write!(f, "{how}: {}", text.replace('\n', " "))
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { what, outcome, .. } = self;
        let cell = outcome.to_string().replace('|', "\\|");
        write!(f, "| {what} | {cell} |")
    }
}

/// clap exits with 2.
const DIFFERENT: u8 = 1;
const INCOMPLETE: u8 = 3;

pub(super) fn status(rows: &[Row<'_>]) -> u8 {
    let is_not_tried = |row: &Row<'_>| matches!(row.outcome, Outcome::NotTried(_));
    match (rows.iter().any(|row| row.difference().is_some()), rows.iter().any(is_not_tried)) {
        (true, _) => DIFFERENT,
        (false, true) => INCOMPLETE,
        (false, false) => 0,
    }
}

pub(super) fn summary(rows: &[Row<'_>]) -> String {
    let differences: Vec<String> = rows.iter().filter_map(Row::difference).collect();
    let skipped = rows.iter().filter(|row| matches!(row.outcome, Outcome::NotTried(_)));
    let skipped: Vec<&str> = skipped.map(|row| row.what.as_str()).collect();
    let mut text = match differences.is_empty() {
        true => format!("\nthe {} rows that were tried match docs/support.md", rows.len() - skipped.len()),
        false => format!(
            "\n{} of {} rows differ from docs/support.md",
            differences.len(),
            rows.len() - skipped.len()
        ),
    };
    text.push('\n');
    text.extend(differences.iter().map(|difference| format!("- {difference}\n")));
    if !skipped.is_empty() {
        text.push_str(&format!("not tried: {}\n", skipped.join(", ")));
    }
    text
}

pub(super) fn run(command: &mut Command) -> Result<(ExitStatus, String, String), Outcome> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().map_err(|error| Outcome::Failed(format!("cannot start `{program}`: {error}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match output.status.signal() {
        Some(signal) => Err(Outcome::Crashed(format!("signal {signal}{}", last_words(&stderr)))),
        None => Ok((output.status, stdout, stderr)),
    }
}

pub(super) fn json_lines(command: &mut Command) -> Result<Vec<Value>, Outcome> {
    let (status, stdout, stderr) = run(command)?;
    let lines: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() { Err(no_answer(status, &stderr)) } else { Ok(lines) }
}

pub(super) fn json_answer(command: &mut Command) -> Result<Value, Outcome> {
    let (status, stdout, stderr) = run(command)?;
    let answer = stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
    answer.filter(|_| status.success()).ok_or_else(|| no_answer(status, &stderr))
}

fn no_answer(status: ExitStatus, stderr: &str) -> Outcome {
    Outcome::Crashed(format!("no answer ({status}){}", last_words(stderr)))
}

fn last_words(stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(String::new, |line| format!("; last output: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn expected(refused: bool, with: &[&str]) -> Expected {
        let with = with.iter().map(|&part| part.to_owned()).collect();
        Expected { page: "PAGE".to_owned(), refused, with }
    }

    fn row<'a>(what: &str, expected: &'a Expected, outcome: Outcome) -> Row<'a> {
        Row { what: what.to_owned(), expected, outcome }
    }

    #[test]
    fn a_programs_end_is_a_result() {
        assert_eq!(json_answer(&mut shell("echo noise; echo '{\"a\": 1}'")).unwrap()["a"], 1);
        let crashed = |script: &str| json_answer(&mut shell(script)).unwrap_err().to_string();
        assert_eq!(crashed("echo oh >&2; kill -ABRT $$"), "**crashed**: signal 6; last output: oh");
        assert_eq!(
            crashed("echo oh >&2; exit 3"),
            "**crashed**: no answer (exit status: 3); last output: oh"
        );
        assert_eq!(crashed("echo '{}'; exit 3"), "**crashed**: no answer (exit status: 3)");
        assert_eq!(crashed("echo noise"), "**crashed**: no answer (exit status: 0)");
        let absent = json_answer(&mut Command::new("/no/such/program")).unwrap_err();
        assert!(
            matches!(&absent, Outcome::Failed(why) if why.starts_with("cannot start `/no/such/program`"))
        );
    }

    #[test]
    fn all_statements_of_the_page_are_compared() {
        let text = |text: &str| text.to_owned();
        let works = &expected(false, &["PTX 8.8", "warning"]);
        let refused = &expected(true, &["not supported"]);
        let cases = [
            (works, Outcome::Works(text("PTX 8.8, warning: w")), true),
            (works, Outcome::Works(text("PTX 8.8")), false),
            (works, Outcome::Refused(text("PTX 8.8, warning: w")), false),
            (works, Outcome::Crashed(text("signal 11")), false),
            (works, Outcome::NotTried(text("no rustup")), true),
            (works, Outcome::Failed(text("no such folder")), false),
            (refused, Outcome::Failed(text("not supported")), false),
            (refused, Outcome::Refused(text("x is not supported")), true),
            (refused, Outcome::Refused(text("another reason")), false),
            (refused, Outcome::Works(text("not supported")), false),
        ];
        for (expected, outcome, is_as_expected) in cases {
            let row = row("a", expected, outcome);
            assert_eq!(row.difference().is_none(), is_as_expected, "{row:?}");
        }
    }

    #[test]
    fn only_rows_without_packages_are_not_tried() {
        let unreachable = anyhow::anyhow!("no route to host").context(NotFetched("x".to_owned()));
        let unreachable = Outcome::from(unreachable.context("while trying"));
        assert!(
            matches!(&unreachable, Outcome::NotTried(why) if why.ends_with("no route to host")),
            "{unreachable:?}"
        );
        let ours = anyhow::anyhow!("no such folder").context("cannot list it");
        assert_eq!(Outcome::from(ours), Outcome::Failed("cannot list it: no such folder".to_owned()));
    }

    #[test]
    fn differences_determine_the_status_before_untried_rows() {
        let expected = &expected(false, &["1"]);
        let well = || row("a", expected, Outcome::Works("1".to_owned()));
        let failed = || row("b", expected, Outcome::Failed("no such folder".to_owned()));
        let skipped = || row("c", expected, Outcome::NotTried("no rustup".to_owned()));
        assert_eq!(failed().to_string(), "| b | **failed**: no such folder |");
        for (rows, expected) in
            [(vec![well()], 0), (vec![well(), skipped()], 3), (vec![skipped(), failed()], 1), (vec![], 0)]
        {
            assert_eq!(status(&rows), expected, "{rows:?}");
        }
    }

    #[test]
    fn differences_and_untried_rows_are_at_the_end() {
        let expected = &expected(false, &["1"]);
        let well = row("a", expected, Outcome::Works("1".to_owned()));
        let other = row("b", expected, Outcome::Crashed("signal 11 | x".to_owned()));
        let skipped = row("c", expected, Outcome::NotTried("no rustup".to_owned()));
        assert_eq!(other.to_string(), "| b | **crashed**: signal 11 \\| x |");
        let all = [well, other, skipped];
        assert_eq!(
            summary(&all),
            "\n1 of 2 rows differ from docs/support.md\n\
             - b: **crashed**: signal 11 | x; docs/support.md: PAGE\nnot tried: c\n"
        );
        assert_eq!(summary(&all[..1]), "\nthe 1 rows that were tried match docs/support.md\n");
    }
}
