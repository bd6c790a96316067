//! Runs programs. Errors have command line, exit status and last lines.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

const TAIL_LINES: usize = 20;

/// Merges both outputs into lines without newlines, invalid UTF-8 replaced.
pub(crate) fn stream(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<ExitStatus> {
    let line = command_line(command);
    let (reader, writer) = std::io::pipe().context("cannot create a pipe")?;
    let second = writer.try_clone().context("cannot create a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(second)
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    // Closes the command's pipe ends, so that reading ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let read = read_lines(reader, &mut on_line);
    let status = child.wait().with_context(|| format!("cannot wait for `{line}`"))?;
    read.with_context(|| format!("cannot read the output of `{line}`"))?;
    Ok(status)
}

fn read_lines(reader: impl Read, on_line: &mut impl FnMut(&str)) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        on_line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
        bytes.clear();
    }
    Ok(())
}

pub(crate) fn follow(command: &mut Command, on_line: impl FnMut(&str)) -> Result<()> {
    let status = stream(command, on_line)?;
    ensure!(status.success(), "`{}` failed ({status})", command_line(command));
    Ok(())
}

pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let mut output = String::new();
    let status = stream(command, |line| {
        output.push_str(line);
        output.push('\n');
    })?;
    ensure!(status.success(), "{}", failure(command, status, &output));
    Ok(output)
}

pub(crate) fn inherit(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(())
}

fn failure(command: &Command, status: ExitStatus, output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    let last: String = last.iter().map(|line| format!("\n    {line}")).collect();
    let separator = if last.is_empty() { "" } else { "; last output:" };
    format!("`{}` failed ({status}){separator}{last}", command_line(command))
}

pub(crate) fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_arrive_in_order() {
        let output = capture(&mut shell("echo one; echo two >&2; printf three")).unwrap();
        assert_eq!(output, "one\ntwo\nthree\n");
    }

    #[test]
    fn a_failure_names_command_status_and_last_lines() {
        let error = capture(&mut shell("seq 30; exit 3")).unwrap_err().to_string();
        assert!(
            error.starts_with("`sh -c 'seq 30; exit 3'` failed (exit status: 3); last output:\n    11\n"),
            "{error}"
        );
        assert!(error.ends_with("\n    30"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = format!("{:#}", capture(&mut Command::new("/no/such program")).unwrap_err());
        assert!(error.starts_with("cannot start `'/no/such program'`: "), "{error}");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quote("--only-binary=:all:"), "--only-binary=:all:");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
