//! Claims about expressions: what must hold in which cases, and how to fix what a case refutes.
//!
//! Reports are [`super::report`]'s, proofs [`super::verdicts`]'s.

use cubinder_expr::{Expr, Interval};
use cubinder_launch::proof::{Case, Domain, Verdict};

use crate::diagnostic::{Code, Span};

/// An expression of the manifest that claims are about.
#[derive(Clone)]
pub(super) struct Term {
    /// How messages call it: `the grid's y`.
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

    /// The claim that all values are within a range. `condition` ends the sentence.
    pub(super) fn within(&self, rule: Code, allowed: Interval, condition: &str) -> Claim {
        let range = match allowed {
            Interval { min: i64::MIN, max } => format!("at most {max}"),
            Interval { min, max: i64::MAX } => format!("at least {min}"),
            Interval { min, max } => format!("from {min} to {max}"),
        };
        self.claim(rule, Must::Be(range + condition), Predicate::Within(allowed))
    }

    /// [`Self::within`]; `None` for a constant within the range.
    pub(super) fn limit(&self, rule: Code, allowed: Interval, condition: &str) -> Option<Claim> {
        let is_kept = self.expr.constant().is_some_and(|value| allowed.contains(value));
        (!is_kept).then(|| self.within(rule, allowed, condition))
    }
}

/// Something that must hold for every launch.
pub(super) struct Claim {
    pub(super) rule: Code,
    pub(super) term: Term,
    pub(super) must: Must,
    pub(super) predicate: Predicate,
    pub(super) remedy: Remedy,
    /// The effect of a case that refutes it, if the route does not decide that.
    pub(super) consequence: Option<&'static str>,
}

/// What must hold, as messages say it.
#[derive(Clone, PartialEq)]
pub(super) enum Must {
    /// `is from 0 to 65535`.
    Be(String),
    /// `has 3 elements`.
    Have(String),
    /// `has no dimension below 0`.
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

/// How to fix what a case refutes.
#[derive(Clone, Copy)]
pub(super) enum Remedy {
    /// Limits of shapes and attributes. The text names another fix and ends the sentence.
    Limit(&'static str),
    /// Only this.
    Fix(&'static str),
}

/// A step of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StepId {
    /// Index of the row in the table of variants.
    pub(super) row: usize,
    /// Index of the step in the row.
    pub(super) step: usize,
}

/// The cases that a claim is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    /// The guard of this row holds.
    Chosen(usize),
    /// This step is done: the guard of its row holds and its own condition.
    Launched(StepId),
    /// This step launches blocks: it is done and no axis of its grid is 0. Where one is, nothing else is computed.
    Running(StepId),
    /// This step is done and no other axis of its grid than this one is 0.
    Beside(StepId, usize),
    /// This step is done, no output is empty and nothing that it is given.
    Written(StepId),
    /// The guard of this row is evaluated: all cases that the row is compiled for.
    Guarded(usize),
    /// Also those in which the outputs have no shapes, or none within their limits: for what is said of these shapes themselves.
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

/// What is said of the expression.
#[derive(Clone, PartialEq)]
pub(super) enum Predicate {
    /// Integers are among these.
    Within(Interval),
    /// It is among these where that is proved; outside them a value may fit or not.
    Fits(Interval),
    /// There is a value.
    HasValue,
    /// A boolean about the expression holds.
    Holds(Expr),
    /// It holds in no case: what is found instead.
    Misfit(String),
}

impl Claim {
    /// The row that messages name. Claims about guards are about the manifest.
    pub(super) fn row(&self) -> Option<usize> {
        self.conditioned_row().filter(|_| !matches!(self.term.when, When::Guarded(_)))
    }

    /// The row whose nodes the claim is about.
    pub(super) fn conditioned_row(&self) -> Option<usize> {
        match self.term.when {
            When::Guarded(row) | When::Chosen(row) => Some(row),
            when => when.step().map(|step| step.row),
        }
    }

    /// Whether it holds over a domain.
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

/// Claims of several rows that are settled together.
pub(super) struct Group<'c> {
    pub(super) claim: &'c Claim,
    pub(super) rows: Vec<usize>,
    pub(super) settled: Settled,
}

/// What is known of a claim.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) verdict: Verdict,
    /// No case is as it must be.
    pub(super) is_always_wrong: bool,
    /// No case is known against it but those that TensorRT does not take.
    pub(super) is_beyond: bool,
    /// It is proved for the tensors that TensorRT takes.
    pub(super) is_proved_for_taken: bool,
}

impl From<Verdict> for Settled {
    fn from(verdict: Verdict) -> Settled {
        Settled { verdict, is_always_wrong: false, is_beyond: false, is_proved_for_taken: false }
    }
}
