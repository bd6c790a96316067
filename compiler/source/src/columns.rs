//! Formats plain-text tables, without `{cell:<width$}`, which panics above 65,535 characters.

use crate::diagnostic::harmless;

/// Maximum column width in characters; longer cells shift their row.
const WIDEST: usize = 60;

/// Column alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned, for text.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// Formats rows as indented columns, two spaces apart, left-aligned without `align`. A left-aligned last cell does not widen its column.
#[must_use]
pub fn columns<Row: AsRef<[Cell]>, Cell: AsRef<str>>(rows: &[Row], indent: usize, align: &[Align]) -> String {
    let align = |column: usize| align.get(column).copied().unwrap_or(Align::Left);
    // Line ends would look like other rows.
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.as_ref().iter().map(|cell| one_line(cell.as_ref())).collect()).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (column, (cell, width)) in row.iter().zip(&mut widths).enumerate() {
            let length = cell.chars().count();
            let is_counted = column + 1 < row.len() || align(column) == Align::Right;
            if is_counted && length <= WIDEST {
                *width = length.max(*width);
            }
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = " ".repeat(indent);
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match align(column) {
                Align::Left => line.extend([cell.as_str(), &padding]),
                Align::Right => line.extend([padding.as_str(), cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn one_line(cell: &str) -> String {
    harmless(&cell.replace('\n', " "), true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["kernel", "regs", "digest"], ["add", "8", "0123456789"], ["multiply", "128", ""]];
        let text = columns(&rows, 2, &[Align::Left, Align::Right]);
        assert_eq!(text, "  kernel    regs  digest\n  add          8  0123456789\n  multiply   128\n");
        let ragged = columns(&[vec!["a", "b"], vec!["a long last cell"], vec![]], 0, &[]);
        assert_eq!(ragged, "a  b\na long last cell\n\n");
        let last = columns(&[["x", "1"], ["y", "100"]], 0, &[Align::Left, Align::Right]);
        assert_eq!(last, "x    1\ny  100\n");
    }

    #[test]
    fn a_cell_above_the_limit_of_rusts_padding_is_printed_whole() {
        let long = "x".repeat(70_000);
        for align in [Align::Left, Align::Right] {
            let text = columns(&[[long.as_str(), "a"], ["short", "b"]], 0, &[align]);
            assert_eq!(text, format!("{long}  a\nshort  b\n"));
        }
    }

    #[test]
    fn a_cell_stays_in_its_line() {
        assert_eq!(columns(&[["a\nb", "c\u{1b}[0m"]], 0, &[]), "a b  c\\u{1b}[0m\n");
    }

    fn cell() -> impl Strategy<Value = String> {
        let length = prop_oneof![8 => 0..70_usize, 1 => Just(65_535_usize), 1 => Just(65_536_usize)];
        prop_oneof![3 => any::<String>(), 2 => (any::<char>(), length).prop_map(|(c, n)| c.to_string().repeat(n))]
    }

    proptest! {
        #[test]
        fn rows_are_lines_with_their_cells(
            rows in prop::collection::vec(prop::collection::vec(cell(), 0..5), 0..5),
            indent in 0..200_usize,
            rights in prop::collection::vec(any::<bool>(), 0..5),
        ) {
            let align: Vec<Align> =
                rights.iter().map(|right| if *right { Align::Right } else { Align::Left }).collect();
            let text = columns(&rows, indent, &align);
            prop_assert_eq!(text.split('\n').count(), rows.len() + 1);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
            for (row, line) in rows.iter().zip(text.split('\n')) {
                let cells: Vec<String> = row.iter().map(|cell| one_line(cell)).collect();
                let mut rest = line;
                for cell in cells.iter().map(|cell| cell.trim()) {
                    let at = rest.find(cell);
                    prop_assert!(at.is_some(), "{cell:?} is not in {rest:?}");
                    rest = &rest[at.unwrap_or(0) + cell.len()..];
                }
                let length: usize = cells.iter().map(|cell| cell.chars().count().max(WIDEST) + 2).sum();
                prop_assert!(line.chars().count() <= indent + length);
            }
        }
    }
}
