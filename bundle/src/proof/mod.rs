//! What holds for every node and every shape that a plugin can meet.
//!
//! Owns the cases a plugin can meet ([`Domain`]: ranks, limits, attributes' constraints, `require`, what else is assumed) and
//! verdicts about expressions over them: proved by interval bounds, refuted by the smallest case that was found, or open.
//! Sound: what is proved holds, and a case that refutes lies in the domain. Never guesses, and always ends: the search for cases
//! has a budget.

use crate::expr::Expr;
use crate::model::{Interval, Plugin};
use crate::value::Value;

/// One node with its shapes.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// One value for each of the plugin's attributes.
    pub attributes: Vec<Value>,
    /// The shapes of the inputs, then of the outputs.
    pub shapes: Vec<Vec<i64>>,
}

/// What is known of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It holds in every case.
    Proved,
    /// It does not hold in this case, the smallest that was found.
    Refuted(Case),
    /// Neither is known: it has to be checked for each case.
    Open,
}

/// The cases of a plugin that statements are about.
#[derive(Debug, Clone)]
pub struct Domain<'p> {
    /// What the cases are of.
    pub(crate) plugin: &'p Plugin,
    pub(crate) attributes: Option<&'p [Value]>,
    pub(crate) profile: Option<&'p [Vec<Interval>]>,
    pub(crate) assumptions: Vec<&'p Expr>,
}

impl<'p> Domain<'p> {
    /// Everything that ranks, limits, attributes' constraints and `require` allow.
    #[must_use]
    pub fn of(plugin: &'p Plugin) -> Domain<'p> {
        Domain { plugin, attributes: None, profile: None, assumptions: Vec::new() }
    }

    /// Only nodes with these attributes, one for each of the plugin's.
    #[must_use]
    pub fn with_attributes(mut self, attributes: &'p [Value]) -> Domain<'p> {
        self.attributes = Some(attributes);
        self
    }

    /// Only inputs of these shapes: for each input its dimensions, each from the profile's least to its greatest.
    #[must_use]
    pub fn with_profile(mut self, profile: &'p [Vec<Interval>]) -> Domain<'p> {
        self.profile = Some(profile);
        self
    }

    /// Only cases in which a boolean holds, such as the guard of the variant that is looked at.
    #[must_use]
    pub fn assuming(mut self, condition: &'p Expr) -> Domain<'p> {
        self.assumptions.push(condition);
        self
    }

    /// Whether a boolean is proved to hold in every case, without a search for one in which it does not: cheap.
    #[must_use]
    pub fn proves(&self, _condition: &Expr) -> bool {
        false
    }

    /// Whether a boolean holds in every case. Refuted by a case in which it is false or has no value.
    #[must_use]
    pub fn always(&self, _condition: &Expr) -> Verdict {
        Verdict::Open
    }

    /// Whether a boolean holds in no case. Refuted by a case in which it holds.
    #[must_use]
    pub fn never(&self, _condition: &Expr) -> Verdict {
        Verdict::Open
    }

    /// Whether an integer, or every element of an array of integers, is within `allowed` in every case. Refuted by a case in which it
    /// is not, not by one in which it has no value.
    #[must_use]
    pub fn within(&self, _value: &Expr, _allowed: Interval) -> Verdict {
        Verdict::Open
    }

    /// Whether an expression has a value in every case: no overflow, no division by zero, no index out of range.
    #[must_use]
    pub fn has_value(&self, _value: &Expr) -> Verdict {
        Verdict::Open
    }
}
