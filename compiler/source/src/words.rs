//! Formats lists and numbers.

use std::fmt::Display;

/// Formats names in backticks: `` `a`, `b` ``.
#[must_use]
pub fn quoted<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Formats `1 plugin`, `2 plugins`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<bool> + Copy>(number: N, noun: &str) -> String {
    let plural = if number == N::from(true) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats bytes in the largest unit with at least 1: `1.5 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // One decimal rounds 1023.95 to 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_size_that_rounds_to_the_next_unit_is_in_that_unit() {
        let sizes = [0, 1023, 1024, 1_048_524, 1_048_525, 1_048_575, 1_048_576, u64::MAX];
        let texts = ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "1.0 MiB", "1.0 MiB", "1.0 MiB", "16.0 EiB"];
        assert_eq!(sizes.map(size), texts);
    }
}
