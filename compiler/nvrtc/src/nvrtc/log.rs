//! NVRTC's log as values.
//!
//! The format is that of the EDG front end, as NVRTC 12.9 and 13.0 write it: a line `file(line): severity #number: text`, two
//! spaces and the source line, two spaces and a caret below it (counted in bytes, tabs kept), then lines of context,
//! then an empty line. `ptxas` writes lines of its own, without a place.

/// How bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// No code comes of it.
    Error,
    /// Code comes of it.
    Warning,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) level: Level,
    /// The place, where it has one.
    pub(super) place: Option<Place>,
    /// The number of a warning: `174`.
    pub(super) number: Option<String>,
    /// What is wrong.
    pub(super) text: String,
    /// How the compiler came there, one line each.
    pub(super) context: Vec<String>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The file as NVRTC knows it.
    pub(super) file: String,
    /// From 1.
    pub(super) line: usize,
    /// The line as the log shows it and the byte in it that the caret marks.
    pub(super) excerpt: Option<(String, usize)>,
}

/// A log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) messages: Vec<Message>,
    /// Lines that are none of what is known.
    pub(super) rest: Vec<String>,
}

/// Reads a log. Any text will do: what is not understood is kept in [`Log::rest`].
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
            log.rest.push(line.trim_end().to_owned());
        }
    }
    log
}

/// Reads the excerpt and the context of a message, up to an empty line or the next message.
fn body(lines: &[&str], mut at: usize, message: &mut Message) -> usize {
    if let (Some(excerpt), Some(caret), Some(place)) = (lines.get(at), lines.get(at + 1), &mut message.place)
        && let (Some(excerpt), Some(column)) = (excerpt.strip_prefix("  "), caret.find('^'))
        && caret.trim() == "^"
        && column >= 2
    {
        place.excerpt = Some((excerpt.to_owned(), column - 2));
        at += 2;
    }
    // Whether what comes is a note about another place, such as a candidate that does not fit.
    let mut is_note = false;
    while let Some(line) = lines.get(at) {
        if is_note_header(line) {
            is_note = true;
        } else if line.trim().is_empty() || !line.starts_with(' ') {
            break;
        } else if line.trim() == "^" {
            // The line before is the excerpt, after the rest of the text.
            let excerpt = at.checked_sub(1).and_then(|before| lines.get(before)?.strip_prefix("  "));
            let column = line.find('^').and_then(|column| column.checked_sub(2));
            if !is_note {
                message.context.pop();
            }
            if let (Some(excerpt), Some(column), Some(place), false) =
                (excerpt, column, &mut message.place, is_note)
                && place.excerpt.is_none()
            {
                place.excerpt = Some((excerpt.to_owned(), column));
            }
        } else if !is_note {
            message.context.push(line.trim().to_owned());
        }
        at += 1;
    }
    at
}

/// `file(line): note #3326-D: text`.
fn is_note_header(line: &str) -> bool {
    !line.starts_with(' ') && line.split_once("): note").is_some_and(|(_, rest)| rest.starts_with([':', ' ']))
}

/// The first line of a message.
fn header(line: &str) -> Option<Message> {
    located(line).or_else(|| at_end(line)).or_else(|| from_ptxas(line)).or_else(|| from_nvrtc(line))
}

/// `At end of source: error: text`.
fn at_end(line: &str) -> Option<Message> {
    let (level, number, text) = severity(line.strip_prefix("At end of source: ")?)?;
    let text = format!("{text} at the end of the file");
    Some(Message { level, place: None, number, text, context: Vec::new() })
}

/// `file(line): error: text`. The file's name may hold anything, so the first place that fits is taken.
fn located(line: &str) -> Option<Message> {
    if line.starts_with(' ') {
        return None;
    }
    line.match_indices("): ").find_map(|(close, _)| {
        let open = line[..close].rfind('(')?;
        let number: usize = line[open + 1..close].parse().ok()?;
        let (level, number_of_warning, text) = severity(&line[close + 3..])?;
        Some(Message {
            level,
            place: Some(Place { file: line[..open].to_owned(), line: number, excerpt: None }),
            number: number_of_warning,
            text: text.to_owned(),
            context: Vec::new(),
        })
    })
}

/// `warning #174-D: text`.
fn severity(text: &str) -> Option<(Level, Option<String>, &str)> {
    let levels = [
        ("catastrophic error", Level::Error),
        ("internal error", Level::Error),
        ("error", Level::Error),
        // The code generator behind the front end.
        ("Error", Level::Error),
        ("warning", Level::Warning),
        ("remark", Level::Warning),
    ];
    levels.into_iter().find_map(|(word, level)| {
        let rest = text.strip_prefix(word)?;
        if let Some(text) = rest.strip_prefix(": ") {
            return Some((level, None, text));
        }
        let (number, text) = rest.strip_prefix(" #")?.split_once(": ")?;
        Some((level, Some(number.trim_end_matches("-D").to_owned()), text))
    })
}

/// `ptxas error   : text`.
fn from_ptxas(line: &str) -> Option<Message> {
    let (word, text) = line.strip_prefix("ptxas ")?.split_once(':')?;
    let level = match word.trim() {
        "error" | "fatal" => Level::Error,
        "warning" => Level::Warning,
        _ => return None,
    };
    Some(without_place(level, text))
}

/// `nvrtc: error: text`.
fn from_nvrtc(line: &str) -> Option<Message> {
    Some(without_place(Level::Error, line.strip_prefix("nvrtc: error: ")?))
}

fn without_place(level: Level, text: &str) -> Message {
    Message { level, place: None, number: None, text: text.trim().to_owned(), context: Vec::new() }
}

/// Lines that only count or repeat.
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
            let place = log.messages[0].place.as_ref().unwrap();
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
        assert_eq!(first.context, ["operand types are: A * B"]);
        let excerpt = first.place.as_ref().and_then(|place| place.excerpt.clone());
        assert_eq!(excerpt, Some(("    y[i] = x[i] * s;".to_owned(), 16)));
        assert_eq!(second.text, "expected a \";\" at the end of the file");
    }
}
