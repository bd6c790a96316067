//! Bounds of finite floats where rounding is monotone.

use super::{Bounded, Walk};
use crate::bounds::extent::Extent;
use crate::node::{BinaryOp, Builtin};

impl Walk<'_> {
    pub(super) fn floats(&mut self, op: BinaryOp, left: &Extent, right: &Extent) -> Bounded {
        let (Some(a), Some(b)) = (left.floats(), right.floats()) else { return self.unsure(Extent::Any) };
        let apply: fn(f64, f64) -> f64 = match op {
            BinaryOp::Add => |a, b| a + b,
            BinaryOp::Sub => |a, b| a - b,
            BinaryOp::Mul => |a, b| a * b,
            BinaryOp::Div if b.0 > 0.0 || b.1 < 0.0 => |a, b| a / b,
            _ => return self.unsure(Extent::Any),
        };
        // Monotone even when rounded: the ends are at corners.
        self.finite(&[apply(a.0, b.0), apply(a.0, b.1), apply(a.1, b.0), apply(a.1, b.1)], &[a, b])
    }

    pub(super) fn float_call(&mut self, builtin: Builtin, value: &Extent) -> Bounded {
        let Some((low, high)) = value.floats() else { return self.unsure(Extent::Any) };
        // Library functions are not monotone to the last bit.
        let known = match builtin {
            Builtin::Sqrt if low >= 0.0 => return self.finite(&[low.sqrt(), high.sqrt()], &[(low, high)]),
            Builtin::Rsqrt if low > 0.0 => {
                return self.finite(&[1.0 / low.sqrt(), 1.0 / high.sqrt()], &[(low, high)]);
            }
            Builtin::Exp => low >= -700.0 && high <= 700.0,
            Builtin::Log => low > 0.0 && high.is_finite(),
            _ => false,
        };
        if known { Ok(Extent::Any) } else { self.unsure(Extent::Any) }
    }

    fn finite(&mut self, results: &[f64], operands: &[(f64, f64)]) -> Bounded {
        let ends = operands.iter().flat_map(|&(low, high)| [low, high]);
        if !ends.chain(results.iter().copied()).all(f64::is_finite) {
            return self.unsure(Extent::Any);
        }
        let low = results.iter().copied().fold(f64::INFINITY, f64::min);
        let high = results.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Extent::Float(low, high))
    }
}
