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

/// Formats bytes with at most three digits before the unit: `1.5 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}
