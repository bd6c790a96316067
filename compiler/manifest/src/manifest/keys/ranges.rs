//! Parses ranges: `4`, `"1..=8"`, `"1.."`, `"..=8"`. Both ends are inclusive.

use cubinder_expr::Interval;
use toml::de::DeValue;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ends<T> {
    pub(super) min: Option<T>,
    pub(super) max: Option<T>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeError {
    pub(super) label: String,
    pub(super) meant: Option<String>,
}

impl RangeError {
    fn new(label: impl Into<String>) -> RangeError {
        RangeError { label: label.into(), meant: None }
    }
}

pub(super) fn ends<T: Clone>(
    text: &str,
    noun: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Ends<T>, RangeError> {
    let unreadable = |part: &str| RangeError::new(format!("`{}` is not a valid {noun}", part.trim()));
    let end = |part: &str| match part.trim() {
        "" => Ok(None),
        part => read(part).map(Some).ok_or_else(|| unreadable(part)),
    };
    let Some((low, high)) = text.split_once("..") else {
        return match read(text.trim()) {
            Some(value) => Ok(Ends { min: Some(value.clone()), max: Some(value) }),
            None if text.trim().is_empty() => Err(RangeError::new("this is empty")),
            None => Err(RangeError { meant: range_of_others(text, &read), ..unreadable(text) }),
        };
    };
    let min = end(low)?;
    let max = match high.trim_start().strip_prefix('=') {
        Some(high) => Some(end(high)?.ok_or_else(|| RangeError::new("nothing follows `..=`"))?),
        None => {
            if end(high)?.is_some() {
                let meant = Some(format!("{}..={}", low.trim(), high.trim()));
                return Err(RangeError { label: "expected `..=` before the end".to_owned(), meant });
            }
            None
        }
    };
    if min.is_none() && max.is_none() {
        return Err(RangeError::new("a range must have at least one end"));
    }
    Ok(Ends { min, max })
}

/// Knows `1-4`, `1:4`, `>= 1`, `4+`.
fn range_of_others<T>(text: &str, read: &impl Fn(&str) -> Option<T>) -> Option<String> {
    let number = |part: &str| read(part.trim()).map(|_| part.trim().to_owned());
    if let Some(least) = text.trim().strip_prefix(">=").or_else(|| text.trim().strip_suffix('+')) {
        return number(least).map(|least| format!("{least}.."));
    }
    if let Some(most) = text.trim().strip_prefix("<=") {
        return number(most).map(|most| format!("..={most}"));
    }
    if let Some(plain) = text.trim().strip_prefix('+') {
        return number(plain);
    }
    let (low, high) = [" to ", ":", ",", "-"].into_iter().find_map(|separator| text.split_once(separator))?;
    Some(format!("{}..={}", number(low)?, number(high)?))
}

fn size(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { integer(text) }
}

/// Allows underscores, as TOML does.
pub(super) fn integer(text: &str) -> Option<i64> {
    is_number(text, false).then(|| text.replace('_', "").parse().ok())?
}

pub(super) fn float(text: &str) -> Option<f64> {
    let value: f64 = is_number(text, true).then(|| text.replace('_', "").parse().ok())??;
    value.is_finite().then_some(value)
}

/// Excludes `inf` and `nan`.
fn is_number(text: &str, fraction: bool) -> bool {
    let digits = |part: &str| {
        !part.is_empty()
            && part.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
    };
    let unsigned = |part: &str| digits(part.strip_prefix(['+', '-']).unwrap_or(part));
    if !fraction {
        return unsigned(text);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some((whole, part)) => unsigned(whole) && digits(part),
        None => unsigned(mantissa),
    };
    mantissa && exponent.is_none_or(unsigned)
}

pub(super) fn from_two(entry: &Entry<'_>) -> Option<String> {
    let number = |entry: &Entry<'_>| match entry.value {
        DeValue::Integer(integer) => Some(integer.to_string()),
        DeValue::Float(float) => Some(float.to_string()),
        _ => None,
    };
    match entry.items()?.as_slice() {
        [low, high] => Some(format!("{}..={}", number(low)?, number(high)?)),
        _ => None,
    }
}

pub(super) fn counted(count: impl Into<i128>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { many })
}

pub(super) struct Sizes {
    /// In errors: `a rank or a range of ranks`.
    pub(super) expected: &'static str,
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Sizes {
    pub(super) const fn new(expected: &'static str) -> Sizes {
        Sizes { expected, least: 0, most: i64::MAX }
    }

    pub(super) fn read(&self, toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<Interval>> {
        let ends = match entry.value {
            DeValue::Integer(_) => {
                toml.integer(entry).map(|size| Ok(Ends { min: Some(size), max: Some(size) }))?
            }
            DeValue::String(text) => ends(text, "integer", size),
            _ => {
                let example =
                    from_two(entry).map_or_else(|| entry.example.to_owned(), |meant| format!("\"{meant}\""));
                let help = Some(format!("write `{} = {example}`", entry.key));
                toml.report(WrongType { help, ..toml.wrong_type(entry, self.expected) });
                return None;
            }
        };
        match ends.and_then(|ends| self.interval(ends)) {
            Ok(value) => Some(Located { value, range: entry.range.clone() }),
            Err(error) => {
                let (key, expected, place) = (entry.key.clone(), self.expected.to_owned(), toml.span(entry));
                let meant = error.meant.map(|meant| format!("\"{meant}\""));
                let example = meant.unwrap_or_else(|| entry.example.to_owned());
                toml.report(BadRange { key, expected, label: error.label, example, place });
                None
            }
        }
    }

    fn interval(&self, ends: Ends<i64>) -> Result<Interval, RangeError> {
        let interval = Interval { min: ends.min.unwrap_or(self.least), max: ends.max.unwrap_or(self.most) };
        let Interval { min, max } = interval;
        match (min.min(max), min.max(max)) {
            (low, _) if low < self.least && self.least == 0 => Err(RangeError::new("must not be negative")),
            (low, _) if low < self.least => {
                Err(RangeError::new(format!("{low} is less than {}", self.least)))
            }
            (_, high) if high > self.most => {
                Err(RangeError::new(format!("{high} is greater than {}", self.most)))
            }
            _ if min > max => {
                let meant = Some(format!("{max}..={min}"));
                Err(RangeError { label: format!("empty: {min} is greater than {max}"), meant })
            }
            _ => Ok(interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ints(text: &str) -> Result<(Option<i64>, Option<i64>), String> {
        ends(text, "integer", integer).map(|ends| (ends.min, ends.max)).map_err(|error| error.label)
    }

    #[test]
    fn ranges_have_one_end_or_two() {
        assert_eq!(ints("4"), Ok((Some(4), Some(4))));
        assert_eq!(ints(" 2 ..= 16 "), Ok((Some(2), Some(16))));
        assert_eq!(ints("1.."), Ok((Some(1), None)));
        assert_eq!(ints("..=-8"), Ok((None, Some(-8))));
        assert_eq!(ints("0..=2_147_483_647"), Ok((Some(0), Some(2_147_483_647))));
    }

    #[test]
    fn what_is_no_range_says_why() {
        assert_eq!(ints(""), Err("this is empty".to_owned()));
        assert_eq!(ints(".."), Err("a range must have at least one end".to_owned()));
        assert_eq!(ints("1..="), Err("nothing follows `..=`".to_owned()));
        assert_eq!(ints("1..=x"), Err("`x` is not a valid integer".to_owned()));
        assert_eq!(ints("1__0"), Err("`1__0` is not a valid integer".to_owned()));
        assert_eq!(
            ints("99999999999999999999"),
            Err("`99999999999999999999` is not a valid integer".to_owned())
        );
        let meant = |text: &str| ends(text, "integer", size).unwrap_err().meant;
        for (text, range) in [
            ("1..8", "1..=8"),
            ("1-4", "1..=4"),
            ("1 : 4", "1..=4"),
            (">= 1", "1.."),
            ("<=4", "..=4"),
            ("4+", "4.."),
            ("+4", "4"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(range), "{text}");
        }
        assert_eq!(meant("a-b"), None);
    }

    #[test]
    fn floats_are_those_of_toml() {
        assert_eq!(ends("-0.5..=1e3", "number", float), Ok(Ends { min: Some(-0.5), max: Some(1000.0) }));
        for text in ["1.", ".5", "inf", "nan", "1e", "1e999", "0x10", "1_", ""] {
            assert_eq!(float(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[-+0-9._=e ]{0,12}") {
            let _ = ends(&text, "integer", integer);
            let _ = ends(&text, "number", float);
        }

        #[test]
        fn what_is_printed_is_read(a in any::<i64>(), b in any::<i64>()) {
            let (min, max) = (a.min(b), a.max(b));
            let printed = Interval { min, max }.to_string();
            let read = ends(&printed, "integer", integer).unwrap();
            prop_assert_eq!((read.min, read.max.unwrap_or(i64::MAX)), (Some(min), max));
        }
    }
}
