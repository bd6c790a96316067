//! Chooses a variant: by shapes if possible, otherwise by addresses.
//!
//! Owns guards ([`GuardDecision::from_guards`]) and a decision diagram over low address bits; [`Choice::pick`] never
//! allocates, locks or hashes.

use super::steps::{NODE_STEP_LIMIT, Steps, weight};
use cubinder_expr::value::Value;
use cubinder_expr::{Environment, EvalError, Expr, Node};

/// Bounds a choice's size.
const VISIT_LIMIT: usize = 2048;

/// Guards evaluated without addresses.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardDecision {
    /// Variants that may run, in order.
    pub candidates: Vec<usize>,
    /// Chooses a candidate; `None` if one always runs.
    pub choice: Option<Choice>,
    /// Variants without a value for some addresses.
    pub without_value: Vec<(usize, EvalError)>,
}

/// Why guards cannot be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndecidedGuards {
    /// Guards combine too many questions about addresses.
    #[error(
        "the guards use `aligned` in more than {VISIT_LIMIT} combinations; use fewer tensors or fewer alignments"
    )]
    TooManyWays,
    /// Guards need too many steps.
    #[error(
        "the guards take too long: the expressions of the node exceed {NODE_STEP_LIMIT} evaluation steps"
    )]
    TooManySteps,
}

/// A decision diagram over addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Steps refer only to earlier ones.
    steps: Box<[Step]>,
    entry: Successor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Over inputs, then outputs.
    tensor: usize,
    mask: u64,
    aligned: Successor,
    otherwise: Successor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Successor {
    Step(usize),
    Take(usize),
    Nothing,
}

impl Choice {
    pub(super) fn resolve(&mut self, storage_of: impl Fn(usize) -> usize) {
        self.steps.iter_mut().for_each(|step| step.tensor = storage_of(step.tensor));
    }

    /// Returns an index in [`GuardDecision::candidates`], if a guard is true. `address` may return any equally aligned
    /// number.
    #[inline]
    #[must_use]
    pub fn pick(&self, address: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        let mut next = self.entry;
        loop {
            match next {
                Successor::Take(candidate) => return Some(candidate),
                Successor::Nothing => return None,
                Successor::Step(step) => {
                    let step = self.steps.get(step)?;
                    let is_aligned = address(step.tensor)? & step.mask == 0;
                    next = if is_aligned { step.aligned } else { step.otherwise };
                }
            }
        }
    }
}

impl GuardDecision {
    /// Decides among variants in order; absent guards are true. `environment` lacks addresses.
    pub fn from_guards<'g>(
        guards: impl IntoIterator<Item = (usize, Option<&'g Expr>)>,
        environment: &dyn Environment,
        budget: &mut Steps,
    ) -> Result<GuardDecision, UndecidedGuards> {
        let mut maker =
            DiagramBuilder { environment, budget, steps: Vec::new(), without_value: Vec::new(), visits: 0 };
        let mut candidates = Vec::new();
        let mut open = Vec::new();
        let mut below = Successor::Nothing;
        for (variant, guard) in guards {
            match maker.without_addresses(variant, guard)? {
                Verdict::Holds => {
                    below = Successor::Take(candidates.len());
                    candidates.push(variant);
                    break;
                }
                Verdict::Fails => {}
                Verdict::Open(residual) => {
                    open.push((variant, candidates.len(), residual));
                    candidates.push(variant);
                }
            }
        }
        for (variant, candidate, residual) in open.iter().rev() {
            let mut branches = GuardBranches {
                variant: *variant,
                holds: Successor::Take(*candidate),
                fails: below,
                seen: Vec::new(),
            };
            below = maker.decide(residual, &mut Vec::new(), &mut branches)?;
        }
        let mut entry = below;
        let (candidates, steps) = only_reached(&candidates, maker.steps, &mut entry);
        let choice = matches!(entry, Successor::Step(_)).then_some(Choice { steps, entry });
        Ok(GuardDecision { candidates, choice, without_value: maker.without_value })
    }

    /// Returns the variant for these addresses.
    #[must_use]
    pub fn pick(&self, address: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        let place = match &self.choice {
            Some(choice) => choice.pick(address)?,
            None => 0,
        };
        self.candidates.get(place).copied()
    }
}

enum Verdict {
    Holds,
    Fails,
    Open(Expr),
}

fn only_reached(candidates: &[usize], steps: Vec<Step>, entry: &mut Successor) -> (Vec<usize>, Box<[Step]>) {
    let mut is_reached = vec![false; steps.len()];
    let mut is_taken = vec![false; candidates.len()];
    let mut reach = |next: Successor, is_reached: &mut [bool]| {
        let mark = match next {
            Successor::Step(step) => is_reached.get_mut(step),
            Successor::Take(candidate) => is_taken.get_mut(candidate),
            Successor::Nothing => None,
        };
        mark.into_iter().for_each(|mark| *mark = true);
    };
    reach(*entry, &mut is_reached);
    for (index, step) in steps.iter().enumerate().rev() {
        if is_reached.get(index).copied().unwrap_or_default() {
            reach(step.aligned, &mut is_reached);
            reach(step.otherwise, &mut is_reached);
        }
    }
    let [step_places, candidate_places] = [&is_reached, &is_taken].map(|marks| places(marks));
    let place = |places: &[usize], old: usize| places.get(old).copied().unwrap_or(0);
    let renumbered = |next: Successor| match next {
        Successor::Step(step) => Successor::Step(place(&step_places, step)),
        Successor::Take(candidate) => Successor::Take(place(&candidate_places, candidate)),
        Successor::Nothing => Successor::Nothing,
    };
    *entry = renumbered(*entry);
    let kept = candidates.iter().zip(&is_taken).filter(|(_, is_taken)| **is_taken);
    let kept = kept.map(|(candidate, _)| *candidate).collect();
    let steps = steps.into_iter().zip(&is_reached).filter(|(_, is_reached)| **is_reached);
    let steps = steps.map(|(step, _)| Step {
        aligned: renumbered(step.aligned),
        otherwise: renumbered(step.otherwise),
        ..step
    });
    (kept, steps.collect())
}

fn places(marks: &[bool]) -> Vec<usize> {
    let count_before = |count: &mut usize, mark: &bool| {
        let before = *count;
        *count += usize::from(*mark);
        Some(before)
    };
    marks.iter().scan(0, count_before).collect()
}

#[derive(Debug, Clone, Copy)]
struct AlignmentAnswer {
    tensor: u32,
    bytes: u32,
    is_aligned: bool,
}

struct AlignmentEnvironment<'a> {
    environment: &'a dyn Environment,
    facts: &'a [AlignmentAnswer],
}

impl Environment for AlignmentEnvironment<'_> {
    fn base(&self) -> Option<&dyn Environment> {
        Some(self.environment)
    }

    /// 16 implies 8.
    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let answers = self.facts.iter().filter(|fact| fact.tensor == tensor);
        let answer = answers
            .copied()
            .find(|fact| if fact.is_aligned { bytes <= fact.bytes } else { bytes >= fact.bytes });
        answer.map(|fact| fact.is_aligned).or_else(|| (bytes == 1).then_some(true))
    }
}

struct DiagramBuilder<'a> {
    environment: &'a dyn Environment,
    budget: &'a mut Steps,
    steps: Vec<Step>,
    without_value: Vec<(usize, EvalError)>,
    visits: usize,
}

struct GuardBranches {
    variant: usize,
    holds: Successor,
    fails: Successor,
    seen: Vec<(Expr, Successor)>,
}

impl DiagramBuilder<'_> {
    fn spend(&mut self, steps: usize) -> Result<(), UndecidedGuards> {
        self.budget.charge(steps).map_err(|_| UndecidedGuards::TooManySteps)
    }

    fn without_addresses(&mut self, index: usize, guard: Option<&Expr>) -> Result<Verdict, UndecidedGuards> {
        let Some(guard) = guard else { return Ok(Verdict::Holds) };
        self.spend(1)?;
        let known = AlignmentEnvironment { environment: self.environment, facts: &[] };
        let residual = match self.budget.value(guard, &known) {
            Ok(Value::Bool(true)) => return Ok(Verdict::Holds),
            Ok(_) => return Ok(Verdict::Fails),
            Err(EvalError::UnknownAddress(_)) => self.budget.bind(guard, &known),
            Err(error) => return self.fails_with(index, error).map(|()| Verdict::Fails),
        };
        Ok(Verdict::Open(residual))
    }

    fn fails_with(&mut self, variant: usize, error: EvalError) -> Result<(), UndecidedGuards> {
        if self.budget.is_spent() {
            return Err(UndecidedGuards::TooManySteps);
        }
        if !self.without_value.iter().any(|(known, _)| *known == variant) {
            self.without_value.push((variant, error));
        }
        Ok(())
    }

    fn decide(
        &mut self,
        residual: &Expr,
        facts: &mut Vec<AlignmentAnswer>,
        branches: &mut GuardBranches,
    ) -> Result<Successor, UndecidedGuards> {
        self.visits += 1;
        if self.visits > VISIT_LIMIT {
            return Err(UndecidedGuards::TooManyWays);
        }
        let weight = weight(&residual.nodes);
        self.spend(weight)?;
        let known = AlignmentEnvironment { environment: self.environment, facts };
        let questions = residual.nodes.iter().filter_map(|node| match *node {
            Node::Aligned { tensor, bytes } => Some((tensor, bytes, known.aligned(tensor, bytes).is_none())),
            _ => None,
        });
        let (mut first, mut is_folded) = (None, true);
        for (tensor, bytes, is_open) in questions {
            is_folded &= is_open;
            first = first.or(is_open.then_some((tensor, bytes)));
        }
        let Some((tensor, bytes)) = first else {
            return match self.budget.value(residual, &known) {
                Ok(Value::Bool(true)) => Ok(branches.holds),
                Ok(_) => Ok(branches.fails),
                Err(error) => self.fails_with(branches.variant, error).map(|()| branches.fails),
            };
        };
        // Only the residual determines the successor.
        if is_folded {
            let alike = |(seen, _): &&(Expr, Successor)| seen.nodes.len() == residual.nodes.len();
            self.spend(branches.seen.iter().filter(alike).count().saturating_mul(weight))?;
            if let Some((_, next)) = branches.seen.iter().find(|(seen, _)| seen == residual) {
                return Ok(*next);
            }
        }
        let [aligned, otherwise] = [true, false].map(|is_aligned| {
            facts.push(AlignmentAnswer { tensor, bytes, is_aligned });
            let rest =
                self.budget.bind(residual, &AlignmentEnvironment { environment: self.environment, facts });
            let next = self.spend(1).and_then(|()| self.decide(&rest, facts, branches));
            facts.pop();
            next
        });
        let (aligned, otherwise) = (aligned?, otherwise?);
        let next = if aligned == otherwise {
            aligned
        } else {
            let mask = u64::from(bytes.saturating_sub(1));
            self.steps.push(Step { tensor: tensor as usize, mask, aligned, otherwise });
            Successor::Step(self.steps.len() - 1)
        };
        if is_folded {
            branches.seen.push((residual.clone(), next));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
