//! Executes documentation pages as written.
//!
//! - A fenced block after a line that ends in a file name in backticks and a colon is that file. `sh` blocks need
//!   `.sh`.
//! - Bash runs other `sh` blocks in one folder per page; they must succeed. `sh gpu` needs a GPU, `sh elsewhere`
//!   resources that tests lack (a package index, a server).
//! - A `text` block after an `sh` block is its output: each line must occur, in order. `...` matches any lines.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A step of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes a file.
    File {
        /// Path relative to the folder.
        name: String,
        /// Its text.
        text: String,
    },
    /// Runs commands.
    Commands {
        /// Requirements of the commands.
        needs: Needs,
        /// Commands.
        text: String,
        /// Expected lines in order.
        prints: Vec<String>,
        /// Line in the page, from 1.
        line: usize,
    },
}

/// A command's requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// No further requirements.
    Nothing,
    /// A GPU.
    Gpu,
    /// Resources that tests lack.
    Elsewhere,
}

struct Block<'a> {
    before: &'a str,
    info: &'a str,
    text: String,
    line: usize,
}

/// Parses a page; fails for unterminated blocks, unknown info strings, misnamed scripts.
pub fn steps(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut follows_commands = false;
    for block in blocks(text)? {
        let (language, rest) = block.info.split_once(' ').unwrap_or((block.info, ""));
        if let Some(name) = file_name(block.before) {
            if language == "sh" && !name.ends_with(".sh") {
                bail!(
                    "line {}: commands follow the file name `{name}`: reword the line before them, or use a `.sh` name",
                    block.line
                );
            }
            steps.push(Step::File { name: name.to_owned(), text: block.text });
            follows_commands = false;
            continue;
        }
        match (language, steps.last_mut()) {
            ("sh", _) => {
                let needs = match rest {
                    "" => Needs::Nothing,
                    "gpu" => Needs::Gpu,
                    "elsewhere" => Needs::Elsewhere,
                    _ => bail!("line {}: `sh {rest}`: expected `sh`, `sh gpu` or `sh elsewhere`", block.line),
                };
                let (text, line) = (block.text, block.line);
                steps.push(Step::Commands { needs, text, prints: Vec::new(), line });
                follows_commands = true;
            }
            ("text", Some(Step::Commands { prints, .. })) if follows_commands => {
                prints.extend(block.text.lines().map(str::to_owned));
                follows_commands = false;
            }
            _ => follows_commands = false,
        }
    }
    Ok(steps)
}

fn file_name(line: &str) -> Option<&str> {
    let line = line.strip_suffix("`:")?;
    let name = &line[line.rfind('`')? + 1..];
    (name.contains('.') && !name.contains(' ')).then_some(name)
}

fn blocks(text: &str) -> Result<Vec<Block<'_>>> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            if !line.trim().is_empty() {
                before = line.trim_end();
            }
            continue;
        };
        let mut text = String::new();
        loop {
            let Some((_, line)) = lines.next() else { bail!("line {}: the block is not closed", at + 1) };
            if line == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        blocks.push(Block { before, info, text, line: at + 2 });
        before = "";
    }
    Ok(blocks)
}

/// Runs `steps` in `folder` with only `variables` and system programs; describes skipped ones. Checks output.
pub fn follow(
    steps: &[Step],
    folder: &Path,
    variables: &[(&str, String)],
    has_gpu: bool,
) -> Result<Vec<String>> {
    let mut left_out = Vec::new();
    for step in steps {
        match step {
            Step::File { name, text } => {
                let path = folder.join(name);
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                std::fs::write(&path, text).with_context(|| format!("cannot write `{name}`"))?;
            }
            Step::Commands { needs: Needs::Gpu, line, .. } if !has_gpu => {
                left_out.push(format!("the commands in line {line} need a GPU"));
            }
            Step::Commands { needs: Needs::Elsewhere, .. } => {}
            Step::Commands { text, prints, line, .. } => {
                let output = run(text, folder, variables).with_context(|| format!("line {line}"))?;
                printed(&output, prints).with_context(|| format!("line {line} printed\n{output}"))?;
            }
        }
    }
    Ok(left_out)
}

fn run(commands: &str, folder: &Path, variables: &[(&str, String)]) -> Result<String> {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{commands}")]).current_dir(folder);
    command.env_clear().env("HOME", folder.join(".home")).env("LANG", "C.UTF-8");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).output().context("cannot run bash")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{commands}\n{} with\n{text}", output.status);
    }
    Ok(text)
}

fn printed(output: &str, lines: &[String]) -> Result<()> {
    let trimmed = |text: &str| text.trim_end().to_owned();
    let found: Vec<String> = output.lines().map(trimmed).collect();
    let mut at = 0;
    for part in lines.split(|line| line.trim() == "...").filter(|part| !part.is_empty()) {
        let wanted: Vec<String> = part.iter().map(|line| trimmed(line)).collect();
        let place = found[at..].windows(wanted.len()).position(|window| window == wanted.as_slice());
        let place = place.with_context(|| format!("the output does not contain\n{}", wanted.join("\n")))?;
        at += place + wanted.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

Write `a.txt`:

```text
one
two
```

Then

```sh
cat a.txt
echo three >&2
```

It prints

```text
one
...
three
```

```sh gpu
false
```
";

    #[test]
    fn a_page_is_followed() {
        let steps = steps(PAGE).unwrap();
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[0], Step::File { name: "a.txt".to_owned(), text: "one\ntwo\n".to_owned() });
        let folder = tempfile::tempdir().unwrap();
        let path = [("PATH", std::env::var("PATH").unwrap())];
        let left_out = follow(&steps, folder.path(), &path, false).unwrap();
        assert_eq!(left_out, ["the commands in line 26 need a GPU"]);
        assert!(follow(&steps, folder.path(), &path, true).is_err());
    }

    #[test]
    fn what_is_not_printed_is_found() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        printed("a\nb  \nc\n", &lines("a\nb")).unwrap();
        printed("a\nb\nc\n", &lines("a\n...\nc")).unwrap();
        assert!(printed("a\nb\nc\n", &lines("a\nc")).is_err());
        assert!(printed("a\nb\nc\n", &lines("c\n...\na")).is_err());
    }

    #[test]
    fn pages_that_are_not_whole_are_refused() {
        assert!(steps("```sh\necho\n").is_err());
        assert!(steps("```sh root\necho\n```\n").is_err());
        assert!(steps("Run it with `a.toml`:\n\n```sh\necho\n```\n").is_err());
        assert!(steps("A script, `a.sh`:\n\n```sh\necho\n```\n").is_ok());
    }
}
