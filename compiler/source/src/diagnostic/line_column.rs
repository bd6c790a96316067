use std::ops::Range;
use std::sync::OnceLock;

/// Editor position; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Character, from 1; a tab is one.
    pub column: usize,
}

/// Cached: texts may have many messages.
#[derive(Debug, Default)]
pub(super) struct Lines(OnceLock<Vec<usize>>);

/// Derived from the text, so all are equal.
impl PartialEq for Lines {
    fn eq(&self, _: &Lines) -> bool {
        true
    }
}

impl Eq for Lines {}

impl Lines {
    pub(super) fn line_column(&self, text: &str, byte: usize) -> LineColumn {
        let starts = self.0.get_or_init(|| {
            let after = |(at, byte): (usize, u8)| (byte == b'\n').then_some(at + 1);
            std::iter::once(0).chain(text.bytes().enumerate().filter_map(after)).collect()
        });
        let byte = floor(text, byte);
        let line = starts.partition_point(|&start| start <= byte);
        let start = line.checked_sub(1).and_then(|line| starts.get(line)).copied().unwrap_or(0);
        let column = text.get(start..byte).map_or(0, |line| line.chars().count()) + 1;
        LineColumn { line, column }
    }
}

/// Clamps to the text and character boundaries.
pub(super) fn clamp(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = floor(text, range.start);
    let end = ceil(text, range.end).max(start);
    start..end
}

/// Returns the part on the first line. At the text's end, moves to the last line's end.
pub(super) fn on_one_line(text: &str, range: &Range<usize>) -> Range<usize> {
    let range = clamp(text, range);
    let mut start = range.start;
    if start == text.len() {
        start = trim_line_end(text, start);
    }
    let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let line_end = text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| start + at);
    let line_end = if text.get(line_start..line_end).is_some_and(|line| line.ends_with('\r')) {
        line_end - 1
    } else {
        line_end
    };
    let start = start.min(line_end);
    start..range.end.clamp(start, line_end)
}

fn trim_line_end(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    let before = before.strip_suffix('\n').unwrap_or(before);
    before.strip_suffix('\r').unwrap_or(before).len()
}

fn floor(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

fn ceil(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte += 1;
    }
    byte
}
