//! Pages of `docs/` that a reader follows step by step, followed by a test.
//!
//! Owns the reading of a page into steps, and taking them in a folder of their own. Never changes what a page says: a command is run as it is
//! written, a file has the bytes that are shown.
//!
//! - A fenced block after a line that ends in a file's name in backticks and a colon, such as `snake.toml`:, is that file. One of `sh` is a
//!   file only where the name ends in `.sh`: else it is taken for commands that would never run, and is refused.
//! - A block of `sh` is run by bash, in one folder for the whole page, and must succeed. `sh gpu` needs a GPU, and `sh elsewhere` needs what
//!   tests do not have (an index of packages, a server); the info string says it after the language.
//! - A block of `text` after a block of `sh` is what that prints: each line must be there, in this order. A line `...` stands for any
//!   number of lines.
//! - Every other block is for the reader alone.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// One thing that the reader does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes a file.
    File {
        /// Its name, relative to the folder.
        name: String,
        /// What is in it.
        text: String,
    },
    /// Runs commands.
    Commands {
        /// What they need.
        needs: Needs,
        /// The lines.
        text: String,
        /// Lines that they print, in this order.
        prints: Vec<String>,
        /// Where they are in the page, from 1.
        line: usize,
    },
}

/// What commands need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing that a test does not have.
    Nothing,
    /// A GPU.
    Gpu,
    /// What no test has.
    Elsewhere,
}

/// A fenced block, and the text before it.
struct Block<'a> {
    /// The last line before it that is not empty.
    before: &'a str,
    /// What stands after the fence.
    info: &'a str,
    text: String,
    /// The first line of the text, from 1.
    line: usize,
}

/// The steps of the page `text`.
///
/// # Errors
/// When a block does not end, or a block of `sh` asks for what is unknown or would be written into a file of another kind.
pub fn steps(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut follows_commands = false;
    for block in blocks(text)? {
        let (language, rest) = block.info.split_once(' ').unwrap_or((block.info, ""));
        if let Some(name) = file_name(block.before) {
            if language == "sh" && !name.ends_with(".sh") {
                bail!(
                    "line {}: commands after the name of the file `{name}`: end the line before them otherwise, or name the file `.sh`",
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

/// The name in a line such as "The kernel, `snake.cu`:".
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
            let Some((_, line)) = lines.next() else { bail!("line {}: the block does not end", at + 1) };
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

/// Takes `steps` in `folder`. Programs are found and told by the `variables` alone, and by what every system has.
/// `has_gpu` says whether the steps that need one are taken. Gives what was left out, for people.
///
/// # Errors
/// When a command fails, or does not print what the page says.
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
                std::fs::write(&path, text).with_context(|| format!("`{name}` cannot be written"))?;
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

/// Runs `commands` in one shell, and gives what they print.
fn run(commands: &str, folder: &Path, variables: &[(&str, String)]) -> Result<String> {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{commands}")]).current_dir(folder);
    command.env_clear().env("HOME", folder.join(".home")).env("LANG", "C.UTF-8");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).output().context("bash cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{commands}\n{} with\n{text}", output.status);
    }
    Ok(text)
}

/// That each of `lines` is among those of `output`, in this order, and next to each other where no `...` is between them.
fn printed(output: &str, lines: &[String]) -> Result<()> {
    let trimmed = |text: &str| text.trim_end().to_owned();
    let found: Vec<String> = output.lines().map(trimmed).collect();
    let mut at = 0;
    for part in lines.split(|line| line.trim() == "...").filter(|part| !part.is_empty()) {
        let wanted: Vec<String> = part.iter().map(|line| trimmed(line)).collect();
        let place = found[at..].windows(wanted.len()).position(|window| window == wanted.as_slice());
        let place = place.with_context(|| format!("it does not print\n{}", wanted.join("\n")))?;
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
