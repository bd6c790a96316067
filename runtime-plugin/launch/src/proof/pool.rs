//! Steps that proofs share.
//!
//! Each question about a domain has budgets of its own. Who asks many questions gives them a [`Pool`] beside these: what they take
//! is counted together, so that the time for all of them is bounded whatever is asked, and is the same in every run.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A question gets at most this part of what is left, so that one alone leaves something for the others.
const PART: usize = 8;

/// With less than this nothing is begun.
const LEAST: usize = 256;

/// Steps for all questions about some domains. Once they are spent every answer is [`super::Verdict::Open`].
#[derive(Debug)]
pub struct Pool {
    left: AtomicUsize,
}

impl Pool {
    /// A pool of so many steps. A step is about one operation of an expression in one case.
    #[must_use]
    pub fn new(steps: usize) -> Pool {
        Pool { left: AtomicUsize::new(steps) }
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes some off, as far as there are any.
    fn take(&self, steps: usize) {
        let less = |left: usize| Some(left.saturating_sub(steps));
        // It never fails: there is always a new value.
        let _before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// What one question may take.
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

    /// How many steps may still be taken.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Counts steps that were taken; more than are left where that was not known before.
    pub(super) fn charge(&mut self, steps: usize) {
        let Some(pool) = self.pool else { return };
        self.left = self.left.saturating_sub(steps);
        pool.take(steps);
    }
}
