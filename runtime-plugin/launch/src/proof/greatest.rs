use super::frame::Frame;
use super::pool::Meter;
use super::{Domain, FEW_RANKS, choices};
use cubinder_expr::{Expr, Stop};

/// The upper bound of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Greatest {
    /// It never has a value.
    Nothing,
    /// All values are at most this.
    Value(i64),
    /// No bound is known.
    Unknown,
}

impl Domain<'_> {
    /// Returns an integer's upper bound where it has a value; possibly not reached.
    #[must_use]
    pub fn greatest(&self, value: &Expr) -> Greatest {
        let mut meter = Meter::new(self.pool);
        if meter.is_spent() || !self.provable(value) {
            return Greatest::Unknown;
        }
        let Some(coarse) = self.coarse(&mut meter) else { return Greatest::Nothing };
        let whole = of_frame(&coarse, value, &mut meter);
        if coarse.is_fine() || choices(&coarse.ranks()) > FEW_RANKS {
            return whole;
        }
        let fine = self.fine(&coarse);
        let mut most = Greatest::Nothing;
        for at in 0..fine.ranks.len() {
            if meter.is_spent() {
                return whole;
            }
            if let Some(frame) = fine.frame(self, at, &mut meter) {
                most = most.max(of_frame(frame, value, &mut meter));
            }
        }
        if fine.complete { most.min(whole) } else { whole }
    }
}

fn of_frame(frame: &Frame<'_>, value: &Expr, meter: &mut Meter<'_>) -> Greatest {
    match frame.extent(value, meter) {
        Ok(extent) => extent.ints().map_or(Greatest::Unknown, |ints| match ints.high {
            // Saturated, so unknown.
            i64::MAX => Greatest::Unknown,
            high => Greatest::Value(high),
        }),
        Err(Stop::Contradiction) => Greatest::Nothing,
        Err(Stop::Error(error)) if error.is_about_values() => Greatest::Nothing,
        Err(Stop::Error(_)) => Greatest::Unknown,
    }
}
