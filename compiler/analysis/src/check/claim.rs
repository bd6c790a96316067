//! Conditions, their domain and fixes.

use cubinder_expr::{Expr, Interval};
use cubinder_launch::proof::{Case, Domain, Verdict};

use crate::diagnostic::{Code, Span};

#[derive(Clone)]
pub(super) struct Term {
    pub(super) subject: String,
    pub(super) expr: Expr,
    pub(super) span: Span,
    pub(super) when: When,
}

impl Term {
    pub(super) fn claim(&self, rule: Code, must: Must, predicate: Predicate) -> Claim {
        let remedy = Remedy::Limit("");
        Claim { rule, term: self.clone(), must, predicate, remedy, consequence: None }
    }

    /// `condition` ends the sentence.
    pub(super) fn within(&self, rule: Code, allowed: Interval, condition: &str) -> Claim {
        let range = match allowed {
            Interval { min: i64::MIN, max } => format!("at most {max}"),
            Interval { min, max: i64::MAX } => format!("at least {min}"),
            Interval { min, max } => format!("from {min} to {max}"),
        };
        self.claim(rule, Must::Be(range + condition), Predicate::Within(allowed))
    }

    /// `None` for a constant within the range.
    pub(super) fn limit(&self, rule: Code, allowed: Interval, condition: &str) -> Option<Claim> {
        let is_kept = self.expr.constant().is_some_and(|value| allowed.contains(value));
        (!is_kept).then(|| self.within(rule, allowed, condition))
    }
}

pub(super) struct Claim {
    pub(super) rule: Code,
    pub(super) term: Term,
    pub(super) must: Must,
    pub(super) predicate: Predicate,
    pub(super) remedy: Remedy,
    /// Consequence of a violation; `None` if it depends on the route.
    pub(super) consequence: Option<&'static str>,
}

#[derive(Clone, PartialEq)]
pub(super) enum Must {
    /// `is from 0 to 65535`.
    Be(String),
    /// `has length 3`.
    Have(String),
    /// `has no negative dimension`.
    HaveNo(&'static str),
    /// `fits an unsigned integer of 8 bits`.
    Fit(String),
}

impl std::fmt::Display for Must {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Must::Be(rest) => write!(f, "is {rest}"),
            Must::Have(rest) => write!(f, "has {rest}"),
            Must::HaveNo(rest) => write!(f, "has no {rest}"),
            Must::Fit(rest) => write!(f, "fits {rest}"),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Remedy {
    /// Limiting shapes or attributes also fixes the claim.
    Limit(&'static str),
    /// Only this text fixes the claim.
    Fix(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StepId {
    pub(super) row: usize,
    pub(super) step: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    /// The row's guard is satisfied.
    Chosen(usize),
    Launched(StepId),
    /// The step runs with a non-empty grid.
    Running(StepId),
    /// The step runs and only this axis of its grid may be 0.
    Beside(StepId, usize),
    /// The step runs with non-empty outputs and memory.
    Written(StepId),
    /// The row's guard is evaluated.
    Guarded(usize),
    /// Outputs may have no or invalid shapes.
    BeforeOutputs,
}

impl When {
    pub(super) fn step(self) -> Option<StepId> {
        match self {
            When::Launched(step) | When::Running(step) | When::Beside(step, _) | When::Written(step) => {
                Some(step)
            }
            When::Chosen(_) | When::Guarded(_) | When::BeforeOutputs => None,
        }
    }
}

#[derive(Clone, PartialEq)]
pub(super) enum Predicate {
    Within(Interval),
    /// Values within fit; others may.
    Fits(Interval),
    HasValue,
    Holds(Expr),
    /// Always false for the found value.
    Misfit(String),
}

impl Claim {
    pub(super) fn row(&self) -> Option<usize> {
        self.conditioned_row().filter(|_| !matches!(self.term.when, When::Guarded(_)))
    }

    pub(super) fn conditioned_row(&self) -> Option<usize> {
        match self.term.when {
            When::Guarded(row) | When::Chosen(row) => Some(row),
            when => when.step().map(|step| step.row),
        }
    }

    pub(super) fn verdict(&self, domain: &Domain<'_>) -> Verdict {
        let expr = &self.term.expr;
        match &self.predicate {
            Predicate::Within(allowed) => domain.within(expr, *allowed),
            Predicate::Fits(allowed) => match domain.within(expr, *allowed) {
                Verdict::Refuted(_) => Verdict::Open,
                verdict => verdict,
            },
            Predicate::HasValue => domain.has_value(expr),
            Predicate::Holds(condition) => domain.always(condition),
            Predicate::Misfit(_) => Verdict::Refuted(Case::default()),
        }
    }
}

pub(super) struct Group<'c> {
    pub(super) claim: &'c Claim,
    pub(super) rows: Vec<usize>,
    pub(super) settled: Settled,
}

#[derive(Clone)]
pub(super) struct Settled {
    pub(super) verdict: Verdict,
    pub(super) is_always_wrong: bool,
    /// TensorRT rejects all known counterexamples.
    pub(super) is_beyond: bool,
    /// Proved for tensors that TensorRT accepts.
    pub(super) is_proved_for_taken: bool,
}

impl From<Verdict> for Settled {
    fn from(verdict: Verdict) -> Settled {
        Settled { verdict, is_always_wrong: false, is_beyond: false, is_proved_for_taken: false }
    }
}
