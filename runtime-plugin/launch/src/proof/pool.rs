//! Bounds the total work of many proofs.

use std::sync::atomic::{AtomicUsize, Ordering};

const PART: usize = 8;

const LEAST: usize = 256;

/// Shared steps. Once spent, answers are [`super::Verdict::Open`].
#[derive(Debug)]
pub struct Pool {
    left: AtomicUsize,
}

impl Pool {
    /// Creates a pool; a step is about one operation in one case.
    #[must_use]
    pub fn new(steps: usize) -> Pool {
        Pool { left: AtomicUsize::new(steps) }
    }

    /// Returns the remaining steps.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    fn take(&self, steps: usize) {
        let less = |left: usize| Some(left.saturating_sub(steps));
        let _before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[derive(Debug)]
pub(super) struct Meter<'m> {
    pool: Option<&'m Pool>,
    left: usize,
}

impl Meter<'_> {
    pub(super) fn new(pool: Option<&Pool>) -> Meter<'_> {
        let share = |pool: &Pool| Some(pool.left() / PART).filter(|share| *share >= LEAST).unwrap_or(0);
        Meter { pool, left: pool.map_or(usize::MAX, share) }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Subtracts steps, possibly more than remain.
    pub(super) fn charge(&mut self, steps: usize) {
        let Some(pool) = self.pool else { return };
        self.left = self.left.saturating_sub(steps);
        pool.take(steps);
    }
}
