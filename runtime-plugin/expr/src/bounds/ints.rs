//! Sets of integers; operations return supersets.

/// Integers from `low` to `high`, both included, that equal `rest` modulo `modulus`. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ints {
    /// Minimum.
    pub low: i64,
    /// Maximum.
    pub high: i64,
    /// The modulus, at least 1.
    pub modulus: i64,
    /// Less than `modulus`.
    pub rest: i64,
    /// Whether 0, between the ends, is excluded.
    pub nonzero: bool,
}

/// Modulus and rest; modulus 0 is a single number.
type Grid = (i128, i128);

pub(super) type Wide = (i128, i128);

impl Ints {
    /// All integers.
    pub const ANY: Ints = Ints { low: i64::MIN, high: i64::MAX, modulus: 1, rest: 0, nonzero: false };

    /// Returns a single integer.
    pub const fn exactly(value: i64) -> Ints {
        Ints { low: value, high: value, modulus: 1, rest: 0, nonzero: false }
    }

    /// Returns a range; `None` if empty.
    pub fn new(low: i64, high: i64) -> Option<Ints> {
        Ints { low, high, ..Ints::ANY }.normal()
    }

    pub(super) fn on_grid((low, high): Wide, (modulus, rest): Grid) -> Option<Ints> {
        let cut =
            |value: i128| i64::try_from(value.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or(i64::MAX);
        if low > i128::from(i64::MAX) || high < i128::from(i64::MIN) || low > high {
            return None;
        }
        let modulus = i64::try_from(modulus).ok().filter(|&modulus| modulus > 0).unwrap_or(1);
        let rest = cut(rest.rem_euclid(modulus.into()));
        Ints { low: cut(low), high: cut(high), modulus, rest, nonzero: false }.normal()
    }

    fn normal(mut self) -> Option<Ints> {
        let modulus = i128::from(self.modulus);
        let up =
            |value: i64| i128::from(value) + (i128::from(self.rest) - i128::from(value)).rem_euclid(modulus);
        let down =
            |value: i64| i128::from(value) - (i128::from(value) - i128::from(self.rest)).rem_euclid(modulus);
        let (mut low, mut high) = (up(self.low), down(self.high));
        if self.nonzero && low == 0 {
            low += modulus;
        }
        if self.nonzero && high == 0 {
            high -= modulus;
        }
        self.low = i64::try_from(low).ok()?;
        self.high = i64::try_from(high).ok()?;
        if self.low > self.high {
            return None;
        }
        self.nonzero &= self.low < 0 && 0 < self.high && self.rest == 0;
        if self.low == self.high { Some(Ints::exactly(self.low)) } else { Some(self) }
    }

    /// Returns the integer, if single.
    pub fn single(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Returns whether `value` is a member.
    pub fn contains(self, value: i64) -> bool {
        self.low <= value
            && value <= self.high
            && (i128::from(value) - i128::from(self.rest)).rem_euclid(self.modulus.into()) == 0
            && !(self.nonzero && value == 0)
            || self.single() == Some(value)
    }

    /// Returns the number of members.
    pub fn count(self) -> u128 {
        if self.low == self.high {
            return 1;
        }
        let steps = (i128::from(self.high) - i128::from(self.low)) / i128::from(self.modulus);
        steps.unsigned_abs() + 1 - u128::from(self.nonzero)
    }

    /// Iterates over members in order; possibly 2^64.
    pub fn members(self) -> impl Iterator<Item = i64> {
        let next = move |&value: &i64| value.checked_add(self.modulus).filter(|&next| next <= self.high);
        std::iter::successors(Some(self.low), next).filter(move |&value| self.contains(value))
    }

    pub(super) fn wide(self) -> Wide {
        (self.low.into(), self.high.into())
    }

    fn grid(self) -> Grid {
        if self.low == self.high { (0, self.low.into()) } else { (self.modulus.into(), self.rest.into()) }
    }

    pub(super) fn without_zero(self) -> Option<Ints> {
        Ints { nonzero: true, ..self }.normal_or_single()
    }

    fn normal_or_single(self) -> Option<Ints> {
        match self.single() {
            Some(0) if self.nonzero => None,
            Some(value) => Some(Ints::exactly(value)),
            None => self.normal(),
        }
    }

    pub(super) fn join(self, other: Ints) -> Ints {
        let ((m, a), (n, b)) = (self.grid(), other.grid());
        let (low, high) = (self.low.min(other.low), self.high.max(other.high));
        let nonzero = !self.contains(0) && !other.contains(0);
        let modulus = gcd(gcd(m, n), a - b);
        let joined = Ints::on_grid((low.into(), high.into()), (modulus, a));
        let joined = joined.unwrap_or(Ints { low, high, ..Ints::ANY });
        if nonzero { joined.without_zero().unwrap_or(joined) } else { joined }
    }

    /// Returns the intersection; `None` if empty.
    pub fn meet(self, other: Ints) -> Option<Ints> {
        if let Some(value) = self.single().or(other.single()) {
            return (self.contains(value) && other.contains(value)).then(|| Ints::exactly(value));
        }
        let ((m, a), (n, b)) = (self.grid(), other.grid());
        let ends = (i128::from(self.low.max(other.low)), i128::from(self.high.min(other.high)));
        let met = Ints::on_grid(ends, both(m, a, n, b)?)?;
        if self.nonzero || other.nonzero { met.without_zero() } else { Some(met) }
    }

    pub(super) fn negated(self) -> (Wide, Grid) {
        let (modulus, rest) = self.grid();
        ((-i128::from(self.high), -i128::from(self.low)), (modulus, -rest))
    }

    pub(super) fn plus(self, other: Ints) -> (Wide, Grid) {
        let ((m, a), (n, b)) = (self.grid(), other.grid());
        let (x, y) = (self.wide(), other.wide());
        ((x.0 + y.0, x.1 + y.1), (gcd(m, n), a + b))
    }

    pub(super) fn minus(self, other: Ints) -> (Wide, Grid) {
        let ((m, a), (n, b)) = (self.grid(), other.grid());
        let (x, y) = (self.wide(), other.wide());
        ((x.0 - y.1, x.1 - y.0), (gcd(m, n), a - b))
    }

    pub(super) fn times(self, other: Ints) -> (Wide, Grid) {
        let ((m, a), (n, b)) = (self.grid(), other.grid());
        let ends = corners(self.wide(), other.wide(), |a, b| a * b);
        (ends, (gcd(gcd(m * n, m * b), n * a), a * b))
    }

    pub(super) fn divided(self, divisor: Ints) -> Grid {
        let (m, a) = self.grid();
        match divisor.single().map(i128::from) {
            Some(by) if by > 0 && m > 0 && m % by == 0 => (m / by, floor(a, by)),
            _ => (1, 0),
        }
    }

    pub(super) fn remaining(self, divisor: Ints) -> Grid {
        let ((m, a), (n, b)) = (self.grid(), divisor.grid());
        // A remainder differs from the dividend by a multiple of the divisor.
        (gcd(m, gcd(n, b)), a)
    }
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns the congruence of the integers that satisfy both, if any. Moduli are positive.
fn both(m: i128, a: i128, n: i128, b: i128) -> Option<Grid> {
    let common = gcd(m, n).max(1);
    if (b - a) % common != 0 {
        return None;
    }
    let least = m / common * n;
    if least > i128::from(i64::MAX) {
        return Some(if m >= n { (m, a) } else { (n, b) });
    }
    // `a + m * k` equals `b` modulo `n`.
    let by = n / common;
    let k = ((b - a) / common % by * inverse((m / common) % by, by)).rem_euclid(by);
    Some((least, a + m * k))
}

fn inverse(value: i128, modulus: i128) -> i128 {
    let (mut r, mut next) = (modulus, value.rem_euclid(modulus.max(1)));
    let (mut t, mut next_t) = (0_i128, 1_i128);
    while next != 0 {
        let quotient = r / next;
        (t, next_t) = (next_t, t - quotient * next_t);
        (r, next) = (next, r - quotient * next);
    }
    t
}

/// For operations that are monotone in each operand.
pub(super) fn corners(a: Wide, b: Wide, apply: impl Fn(i128, i128) -> i128) -> Wide {
    let all = [apply(a.0, b.0), apply(a.0, b.1), apply(a.1, b.0), apply(a.1, b.1)];
    let least = all.iter().copied().fold(all[0], i128::min);
    let most = all.iter().copied().fold(all[0], i128::max);
    (least, most)
}

pub(super) fn divisors((low, high): Wide) -> impl Iterator<Item = Wide> {
    let negative = (low < 0).then_some((low, high.min(-1)));
    let positive = (high > 0).then_some((low.max(1), high));
    negative.into_iter().chain(positive)
}

/// Operands fit 64 bits; `b` is not 0.
pub(super) fn floor(a: i128, b: i128) -> i128 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(low: i64, length: i64, modulus: i64, rest: i64, nonzero: bool) -> Option<Ints> {
        let ints = Ints::on_grid((low.into(), (low + length).into()), (modulus.into(), rest.into()))?;
        if nonzero { ints.without_zero() } else { Some(ints) }
    }

    fn members(ints: Ints) -> impl Iterator<Item = i64> {
        (-60..60).filter(move |&value| ints.contains(value))
    }

    fn sets() -> impl Strategy<Value = Ints> {
        (-20_i64..20, 0_i64..25, 1_i64..9, 0_i64..9, any::<bool>())
            .prop_filter_map("empty", |(low, length, modulus, rest, nonzero)| {
                set(low, length, modulus, rest, nonzero)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn operations_hold_every_result(a in sets(), b in sets()) {
            prop_assert_eq!(members(a).count() as u128, a.count());
            prop_assert!(a.contains(a.low) && a.contains(a.high));
            let joined = a.join(b);
            let met = a.meet(b);
            for value in -60..60 {
                prop_assert!(!(a.contains(value) || b.contains(value)) || joined.contains(value), "{value} in {joined:?}");
                prop_assert_eq!(a.contains(value) && b.contains(value), met.is_some_and(|met| met.contains(value)), "{} in {:?}", value, met);
            }
            let made = |(ends, grid)| Ints::on_grid(ends, grid).unwrap();
            let (sum, difference, product, negative) =
                (made(a.plus(b)), made(a.minus(b)), made(a.times(b)), made(a.negated()));
            for x in members(a) {
                prop_assert!(negative.contains(-x));
                for y in members(b) {
                    prop_assert!(sum.contains(x + y) && difference.contains(x - y) && product.contains(x * y));
                    if y != 0 {
                        let quotient = floor(x.into(), y.into());
                        let (modulus, rest) = a.divided(b);
                        prop_assert!((quotient - rest) % modulus == 0);
                        let (modulus, rest) = a.remaining(b);
                        let remainder = i128::from(x) - quotient * i128::from(y);
                        prop_assert_eq!((remainder - rest).checked_rem(modulus).unwrap_or(remainder - rest), 0);
                    }
                }
            }
        }
    }
}
