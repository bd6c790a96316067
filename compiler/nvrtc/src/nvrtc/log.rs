//! Parses the log of the EDG front end in NVRTC 12.9 and 13.0, and of `ptxas`, which has no locations.
//!
//! A message is `file(line): severity #number: text`, the source line and a caret line (byte column, tabs kept), each
//! after two spaces, then context lines and an empty line.

use super::cause::{Cause, required_arch};
use crate::diagnostic::Severity;

/// File name that NVRTC 13.0 prints for errors in name expressions.
const NAME_MAP: &str = "__nv_name_map";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) severity: Severity,
    pub(super) location: Option<Location>,
    /// Warning number: `174`.
    pub(super) number: Option<String>,
    pub(super) cause: Cause,
    /// Code is between backticks.
    pub(super) text: String,
    /// One entry per step.
    pub(super) context: Vec<Context>,
}

impl Message {
    fn new(severity: Severity, location: Option<Location>, number: Option<String>, text: &str) -> Message {
        let text = text.trim().trim_end_matches(':');
        let text = text.split(". Input name expression was").next().unwrap_or_default();
        Message {
            severity,
            location,
            number,
            cause: Cause::parse(text),
            text: ticks(text),
            context: Vec::new(),
        }
    }

    /// Compares messages without columns.
    pub(super) fn says_the_same(&self, other: &Message) -> bool {
        let line = |message: &Message| message.location.clone().map(|it| Location { excerpt: None, ..it });
        let (one, other) = [self, other].map(|it| Message { location: line(it), ..it.clone() }).into();
        one == other
    }

    pub(super) fn is_of_name(&self) -> bool {
        self.location.as_ref().is_some_and(|location| location.file == NAME_MAP)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// File as NVRTC names it.
    pub(super) file: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// Logged line, and the caret's byte.
    pub(super) excerpt: Option<(String, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    /// Code is between backticks.
    pub(super) text: String,
    pub(super) location: Option<Location>,
}

impl Context {
    /// Parses `instantiation of "void k(T *) [with T=float]" at line 3 of kernels/a.cu`.
    fn parse(line: &str) -> Option<Context> {
        if line == "detected during:" {
            return None;
        }
        let line = line.strip_prefix("detected during ").unwrap_or(line);
        let line = line.split(" (declared at line ").next().unwrap_or(line);
        let located = line.rsplit_once(" at line ").and_then(|(text, location)| {
            let (number, file) = location.split_once(" of ")?;
            let file = file.trim_matches('"').to_owned();
            Some((text, Location { file, line: number.parse().ok()?, excerpt: None }))
        });
        Some(match located {
            Some((text, location)) => Context { text: ticks(text), location: Some(location) },
            None => Context { text: ticks(line), location: None },
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) messages: Vec<Message>,
    /// Unrecognized lines.
    pub(super) rest: Vec<String>,
    pub(super) required_arch: Option<u32>,
}

impl Log {
    /// Removes messages without location that name other kernels of `symbols`, not `symbol`.
    pub(super) fn of_kernel(&self, symbol: &str, symbols: &[String]) -> Log {
        let names = |message: &Message, symbol: &str| {
            let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            message.text.split(|c| !is_word(c)).any(|word| word == symbol)
        };
        let is_of_other = |message: &&Message| {
            message.location.is_none()
                && symbols.iter().any(|other| names(message, other))
                && !names(message, symbol)
        };
        let messages = self.messages.iter().filter(|message| !is_of_other(message)).cloned().collect();
        Log { messages, ..self.clone() }
    }
}

/// Unrecognized lines are [`Log::rest`].
pub(super) fn parse(text: &str) -> Log {
    let mut log = Log::default();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        if let Some(mut message) = header(line) {
            at = body(&lines, at, &mut message);
            log.messages.push(message);
        } else if !line.trim().is_empty() && !is_summary(line) {
            log.required_arch = log.required_arch.max(required_arch(line.trim_end()));
            log.rest.push(line.trim_end().to_owned());
        }
    }
    log
}

/// Parses a body, up to an empty line or the next message.
fn body(lines: &[&str], mut at: usize, message: &mut Message) -> usize {
    if let (Some(excerpt), Some(caret), Some(location)) =
        (lines.get(at), lines.get(at + 1), &mut message.location)
        && let (Some(excerpt), Some(column)) = (excerpt.strip_prefix("  "), caret.find('^'))
        && caret.trim() == "^"
        && column >= 2
    {
        location.excerpt = Some((excerpt.to_owned(), column - 2));
        at += 2;
    }
    // Notes have other locations.
    let mut is_note = false;
    let mut context: Vec<&str> = Vec::new();
    while let Some(line) = lines.get(at) {
        if is_note_header(line) {
            is_note = true;
        } else if line.trim().is_empty() || !line.starts_with(' ') {
            break;
        } else if line.trim() == "^" {
            let excerpt = at.checked_sub(1).and_then(|before| lines.get(before)?.strip_prefix("  "));
            let column = line.find('^').and_then(|column| column.checked_sub(2));
            if !is_note {
                context.pop();
            }
            if let (Some(excerpt), Some(column), Some(location), false) =
                (excerpt, column, &mut message.location, is_note)
                && location.excerpt.is_none()
            {
                location.excerpt = Some((excerpt.to_owned(), column));
            }
        } else if !is_note {
            context.push(line.trim());
        }
        at += 1;
    }
    message.context = context.into_iter().filter_map(Context::parse).collect();
    at
}

/// Matches `file(line): note #3326-D: text`.
fn is_note_header(line: &str) -> bool {
    !line.starts_with(' ') && line.split_once("): note").is_some_and(|(_, rest)| rest.starts_with([':', ' ']))
}

fn header(line: &str) -> Option<Message> {
    located(line).or_else(|| at_end(line)).or_else(|| from_ptxas(line)).or_else(|| from_nvrtc(line))
}

/// Parses `At end of source: error: text`.
fn at_end(line: &str) -> Option<Message> {
    let (severity, number, text) = severity(line.strip_prefix("At end of source: ")?)?;
    let text = format!("{text} at the end of the file");
    Some(Message { cause: Cause::EndOfFile, ..Message::new(severity, None, number, &text) })
}

/// Parses `file(line): error: text`. File names may contain anything: the first match counts.
fn located(line: &str) -> Option<Message> {
    if line.starts_with(' ') {
        return None;
    }
    line.match_indices("): ").find_map(|(close, _)| {
        let open = line[..close].rfind('(')?;
        let location = Location {
            file: line[..open].to_owned(),
            line: line[open + 1..close].parse().ok()?,
            excerpt: None,
        };
        let (severity, number, text) = severity(&line[close + 3..])?;
        Some(Message::new(severity, Some(location), number, text))
    })
}

/// Parses `warning #174-D: text`.
fn severity(text: &str) -> Option<(Severity, Option<String>, &str)> {
    let levels = [
        ("catastrophic error", Severity::Error),
        ("internal error", Severity::Error),
        ("error", Severity::Error),
        // Written by the code generator.
        ("Error", Severity::Error),
        ("warning", Severity::Warning),
        ("remark", Severity::Warning),
    ];
    levels.into_iter().find_map(|(word, severity)| {
        let rest = text.strip_prefix(word)?;
        if let Some(text) = rest.strip_prefix(": ") {
            return Some((severity, None, text));
        }
        let (number, text) = rest.strip_prefix(" #")?.split_once(": ")?;
        Some((severity, Some(number.trim_end_matches("-D").to_owned()), text))
    })
}

/// Parses `ptxas error   : text`.
fn from_ptxas(line: &str) -> Option<Message> {
    let (word, text) = line.strip_prefix("ptxas ")?.split_once(':')?;
    let severity = match word.trim() {
        "error" | "fatal" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return None,
    };
    Some(Message::new(severity, None, None, text))
}

/// Parses `nvrtc: error: text`.
fn from_nvrtc(line: &str) -> Option<Message> {
    Some(Message::new(Severity::Error, None, None, line.strip_prefix("nvrtc: error: ")?))
}

fn ticks(text: &str) -> String {
    let text = match text.strip_prefix("Entry function '").and_then(|rest| rest.split_once('\'')) {
        Some((symbol, rest)) => &format!("entry function `{symbol}`{rest}"),
        None => text,
    };
    if text.matches('"').count().is_multiple_of(2) { text.replace('"', "`") } else { text.to_owned() }
}

/// `None` for the architecture.
pub(super) fn rejected_option(log: &str) -> Option<&str> {
    (!log.contains("--gpu-architecture")).then(|| log.trim().trim_start_matches("nvrtc: error: "))
}

/// Matches counts and repetitions.
fn is_summary(line: &str) -> bool {
    line.contains(" detected in the compilation of \"")
        || line.starts_with("Compilation terminated.")
        || line.starts_with("Remark: The warnings can be suppressed with")
        || line.starts_with("ptxas info")
        || line.starts_with("Error limit reached.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_log_is_read() {
        let log = parse(concat!(
            "kernels/a (1).cu(3): warning #174-D: expression has no effect\n",
            "    y[0]; *q;\n",
            "          ^\n",
            "\n",
            "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n",
            "\n",
            "inc/h.h(7): error: static assertion failed with \"only eight\"\n",
            "  \tstatic_assert(false);\n",
            "  \t^\n",
            "          detected during:\n",
            "            instantiation of \"T f(T) [with T=float]\" at line 3 of kernels/a.cu\n",
            "\n",
            "ptxas error   : Entry function 'k' uses too much shared data (0x13880 bytes, 0xc000 max)\n",
            "ptxas info    : 3 registers\n",
            "something new\n",
            "2 errors detected in the compilation of \"kernels/a.cu\".\n",
        ));
        insta::assert_debug_snapshot!("a_log", log);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z(): \\n^#0-9\t-]{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn every_place_is_found(file in "[a-z/][a-z/ ().]{0,20}\\.cu", line in 1_usize..1_000_000, text in "[a-z ]{1,20}") {
            let log = parse(&format!("{file}({line}): error: {text}\n"));
            let place = log.messages[0].location.as_ref().unwrap();
            prop_assert_eq!((&place.file, place.line), (&file, line));
        }
    }

    #[test]
    fn candidates_and_carets_are_no_context() {
        let log = parse(
            "k.cu(5): error: more than one operator \"*\" matches these operands:\n            operand types are: A * B\n\
             \x20     y[i] = x[i] * s;\n                  ^\n\
             a.h(7): note #3326-D: function \"f\" does not match\n  int f(int);\n      ^\n\n\
             At end of source: error: expected a \";\"\n",
        );
        assert_eq!(log.rest, [""; 0]);
        let [first, second] = log.messages.as_slice() else { panic!("{log:?}") };
        assert_eq!(
            first.context.iter().map(|line| &line.text).collect::<Vec<_>>(),
            ["operand types are: A * B"]
        );
        let excerpt = first.location.as_ref().and_then(|location| location.excerpt.clone());
        assert_eq!(excerpt, Some(("    y[i] = x[i] * s;".to_owned(), 16)));
        assert_eq!(second.text, "expected a `;` at the end of the file");
        assert_eq!(second.cause, Cause::EndOfFile);
    }
}
