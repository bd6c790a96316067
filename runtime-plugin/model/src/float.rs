//! Rounding, and conversion between 16-bit floats and doubles. IEEE 754 binary16 has 5 exponent and 10 fraction bits;
//! bfloat16 is a binary32's upper half.

use std::ops::RangeInclusive;

/// Returns the value of IEEE half-precision bits.
#[must_use]
pub fn from_f16(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * power_of_two(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * power_of_two(exponent - 25),
    };
    sign * magnitude
}

/// Returns the value of bfloat16 bits.
#[must_use]
pub fn from_bf16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

/// Rounds to half precision, ties to even; `None` if it becomes infinite.
#[must_use]
pub fn round_to_f16(value: f64) -> Option<f64> {
    round(value, -14..=15, 10, 65504.0)
}

/// Rounds to single precision; `None` if it becomes infinite.
#[must_use]
pub fn round_to_f32(value: f64) -> Option<f64> {
    #[allow(clippy::cast_possible_truncation)] // rounded to the nearest, ties to even
    let narrow = value as f32;
    (narrow.is_infinite() == value.is_infinite()).then_some(f64::from(narrow))
}

/// Rounds to bfloat16, ties to even; `None` if it becomes infinite.
#[must_use]
pub fn round_to_bf16(value: f64) -> Option<f64> {
    round(value, -126..=127, 7, from_bf16(0x7f7f))
}

/// Returns the nearest half-precision bits; `None` unless finite.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole numbers below 2048
pub fn to_f16(value: f64) -> Option<u16> {
    let rounded = round_to_f16(value).filter(|rounded| rounded.is_finite())?;
    let sign = if rounded.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = rounded.abs();
    if magnitude < power_of_two(-14) {
        return Some(sign | (magnitude * power_of_two(24)) as u16);
    }
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    let fraction = (magnitude * power_of_two(10 - exponent)) as u16 - 1024;
    Some(sign | ((exponent + 15) as u16) << 10 | fraction)
}

/// Returns the nearest bfloat16 bits; `None` unless finite.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // exact in single precision
pub fn to_bf16(value: f64) -> Option<u16> {
    let rounded = round_to_bf16(value).filter(|rounded| rounded.is_finite())?;
    Some(((rounded as f32).to_bits() >> 16) as u16)
}

/// Ties to even; `None` above `largest`.
fn round(value: f64, exponents: RangeInclusive<i32>, fraction: i32, largest: f64) -> Option<f64> {
    if !value.is_finite() || value == 0.0 {
        return Some(value);
    }
    // Subnormals have the lowest exponent.
    let exponent = ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(*exponents.start());
    if exponent > *exponents.end() {
        return None;
    }
    let (scaled, unit) = (value * power_of_two(fraction - exponent), power_of_two(exponent - fraction));
    let rounded = scaled.round_ties_even() * unit;
    (rounded.abs() <= largest).then_some(rounded)
}

/// `exponent` is from -1022 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bits_mean_rounds_to_these_bits() {
        for bits in 0..=u16::MAX {
            let half = Some(bits).filter(|_| from_f16(bits).is_finite());
            assert_eq!(to_f16(from_f16(bits)), half, "{bits:#x}");
            let brain = Some(bits).filter(|_| from_bf16(bits).is_finite());
            assert_eq!(to_bf16(from_bf16(bits)), brain, "{bits:#x}");
        }
    }

    #[test]
    fn bfloat16_rounds_once_and_to_even() {
        assert_eq!(to_bf16(1.0 + 1.0 / 256.0), Some(0x3f80));
        assert_eq!(to_bf16(1.0 + 3.0 / 256.0), Some(0x3f82));
        // Via single precision, a tie that rounds down to even.
        assert_eq!(to_bf16(1.0 + 1.0 / 256.0 + f64::EPSILON), Some(0x3f81));
        assert_eq!(to_bf16(f64::from(f32::MAX)), None);
        assert_eq!(to_bf16(1e300), None);
    }

    fn by_definition(bits: u16) -> f64 {
        let exponent = i32::from(bits >> 10 & 31);
        let mut value = if exponent == 0 { 0.0 } else { 1.0 };
        for digit in 0..10 {
            if bits >> digit & 1 == 1 {
                value += 0.5_f64.powi(10 - digit);
            }
        }
        value *= 2.0_f64.powi(exponent.max(1) - 15);
        if bits >> 15 == 1 { -value } else { value }
    }

    #[test]
    fn every_half_is_what_its_bits_say_and_rounds_to_itself() {
        for bits in 0..=u16::MAX {
            let value = from_f16(bits);
            if bits >> 10 & 31 == 31 {
                let is_infinite = bits & 0x3ff == 0;
                assert_eq!((value.is_infinite(), value.is_nan()), (is_infinite, !is_infinite), "{bits:#06x}");
            } else {
                assert_eq!(value.to_bits(), by_definition(bits).to_bits(), "{bits:#06x}");
            }
            let rounded = round_to_f16(value).unwrap();
            assert!(rounded.to_bits() == value.to_bits() || value.is_nan(), "{bits:#06x}");
        }
    }

    #[test]
    fn between_two_halves_the_nearer_is_taken_and_the_even_one_in_the_middle() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (from_f16(bits), from_f16(bits + 1));
            let middle = (low + high) / 2.0;
            let even = if bits % 2 == 0 { low } else { high };
            for sign in [1.0, -1.0] {
                assert_eq!(round_to_f16(sign * middle), Some(sign * even), "{bits:#06x}");
                assert_eq!(round_to_f16(sign * middle.next_down()), Some(sign * low), "{bits:#06x}");
                assert_eq!(round_to_f16(sign * middle.next_up()), Some(sign * high), "{bits:#06x}");
            }
        }
    }

    #[test]
    fn what_rounds_beyond_the_largest_has_no_value() {
        assert_eq!(round_to_f16(65519.999), Some(65504.0));
        assert_eq!(round_to_f16(65520.0), None);
        assert_eq!(round_to_f16(-1e300), None);
        assert_eq!(round_to_f16(f64::INFINITY), Some(f64::INFINITY));
        assert_eq!(round_to_f16(f64::MIN_POSITIVE / 4.0), Some(0.0));
        assert_eq!(round_to_f32(3.5e38), None);
        assert_eq!(round_to_f32(f64::NEG_INFINITY), Some(f64::NEG_INFINITY));
        assert_eq!(round_to_f32(0.1), Some(f64::from(0.1_f32)));
    }

    #[test]
    fn brain_floats_are_the_upper_half_of_singles() {
        for (bits, value) in [(0x3f80, 1.0), (0xc000, -2.0), (0x0001, 2.0_f64.powi(-133)), (0x8000, -0.0)] {
            assert_eq!(from_bf16(bits).to_bits(), f64::to_bits(value), "{bits:#06x}");
        }
        for bits in 0..=u16::MAX {
            let value = from_bf16(bits);
            let is_special = bits >> 7 & 0xff == 0xff;
            assert_eq!(value.is_finite(), !is_special, "{bits:#06x}");
            if !is_special {
                #[allow(clippy::cast_possible_truncation)]
                let single = value as f32;
                assert_eq!(single.to_bits(), u32::from(bits) << 16);
            }
        }
    }
}
