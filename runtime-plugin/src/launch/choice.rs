//! Which of several variants runs: decided as far as shapes allow, and for the rest by the tensors' addresses.
//!
//! Owns: what guards come to when everything but addresses is known ([`Decided::of`]), and the small program that is left for
//! enqueue ([`Choice::pick`]): a decision diagram whose steps each look at the low bits of one address. It is built from the guards
//! by trying both answers to each question that is left, so it needs no interpreter and takes at most as many steps as there are
//! questions; parts that come to the same are shared.
//!
//! Never: in `pick` no allocation, no lock, no hashing. Never picks a variant whose guard is not true: one that is false and one
//! that has no value (a division by zero) both leave the choice to the next variant.

use std::ffi::c_void;

use cubinder_bundle::Value;
use cubinder_bundle::expr::{Environment, EvalError, Expr, Node, bind, evaluate};

/// The most residual guards that are looked at for one choice, which bounds its size and the time to make it. A guard with 16
/// questions that all must hold takes 33.
const VISIT_LIMIT: usize = 2048;

/// Guards, with everything known but addresses.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The indices of the guards that can hold, in order.
    pub candidates: Vec<usize>,
    /// Chooses among the candidates; none where that does not depend on addresses: then the one candidate runs.
    pub choice: Option<Choice>,
    /// Guards that have no value, at least for some addresses, and why.
    pub without_value: Vec<(usize, EvalError)>,
}

/// Guards ask about addresses in too many ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyWays;

impl std::fmt::Display for TooManyWays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the guards ask for `aligned` in more than {VISIT_LIMIT} ways; ask for fewer tensors or fewer alignments"
        )
    }
}

impl std::error::Error for TooManyWays {}

/// The program that chooses among candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Each refers to steps before it only, so that it ends.
    steps: Box<[Step]>,
    entry: Next,
    inputs: usize,
}

/// Looks at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Index over inputs, then outputs.
    tensor: usize,
    /// The bits that are zero in an aligned address.
    mask: usize,
    aligned: Next,
    otherwise: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The step with this index.
    Step(usize),
    /// The candidate with this index runs.
    Take(usize),
    /// None may run.
    Nothing,
}

impl Choice {
    /// The index of the candidate that runs, among [`Decided::candidates`]; none where no guard holds.
    #[inline]
    #[must_use]
    pub fn pick(&self, inputs: &[*const c_void], outputs: &[*mut c_void]) -> Option<usize> {
        let mut next = self.entry;
        loop {
            match next {
                Next::Take(candidate) => return Some(candidate),
                Next::Nothing => return None,
                Next::Step(step) => {
                    let step = self.steps.get(step)?;
                    let address = match step.tensor.checked_sub(self.inputs) {
                        None => inputs.get(step.tensor)?.addr(),
                        Some(output) => outputs.get(output)?.addr(),
                    };
                    next = if address & step.mask == 0 { step.aligned } else { step.otherwise };
                }
            }
        }
    }
}

impl Decided {
    /// Decides among variants with these guards, in order of preference; `None` always holds. `environment` knows attributes and
    /// shapes and no addresses, of a plugin with so many inputs.
    ///
    /// # Errors
    /// Guards that ask about addresses in too many ways.
    pub fn of<'g>(
        guards: impl IntoIterator<Item = Option<&'g Expr>>,
        environment: &dyn Environment,
        inputs: usize,
    ) -> Result<Decided, TooManyWays> {
        let mut maker = Maker { environment, steps: Vec::new(), without_value: Vec::new(), visits: 0 };
        let mut candidates = Vec::new();
        let mut open = Vec::new();
        let mut below = Next::Nothing;
        for (index, guard) in guards.into_iter().enumerate() {
            let residual = guard.map(|guard| bind(guard, &Known { environment, facts: &[] }));
            match residual {
                Some(residual) if !is_true(&residual) => {
                    if !is_false(&residual) {
                        open.push((index, candidates.len(), residual));
                        candidates.push(index);
                    }
                }
                _ => {
                    below = Next::Take(candidates.len());
                    candidates.push(index);
                    break;
                }
            }
        }
        for (guard, candidate, residual) in open.iter().rev() {
            let mut way =
                Way { guard: *guard, holds: Next::Take(*candidate), fails: below, seen: Vec::new() };
            below = maker.decide(residual, &mut Vec::new(), &mut way)?;
        }
        let mut steps = maker.steps.into_boxed_slice();
        let mut entry = below;
        let candidates = renumber(&candidates, &mut steps, &mut entry);
        let choice = matches!(entry, Next::Step(_)).then_some(Choice { steps, entry, inputs });
        Ok(Decided { candidates, choice, without_value: maker.without_value })
    }
}

/// Leaves out the candidates that nothing leads to.
fn renumber(candidates: &[usize], steps: &mut [Step], entry: &mut Next) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (old, candidate) in candidates.iter().enumerate() {
        let mut is_taken = false;
        let nexts = steps.iter_mut().flat_map(|step| [&mut step.aligned, &mut step.otherwise]);
        for next in nexts.chain([&mut *entry]).filter(|next| **next == Next::Take(old)) {
            *next = Next::Take(kept.len());
            is_taken = true;
        }
        if is_taken {
            kept.push(*candidate);
        }
    }
    kept
}

fn is_true(expr: &Expr) -> bool {
    expr.nodes == [Node::Bool(true)]
}

fn is_false(expr: &Expr) -> bool {
    expr.nodes == [Node::Bool(false)]
}

/// An answer about an address.
#[derive(Debug, Clone, Copy)]
struct Fact {
    tensor: u32,
    bytes: u32,
    is_aligned: bool,
}

/// What is known, with some answers about addresses.
struct Known<'a> {
    environment: &'a dyn Environment,
    facts: &'a [Fact],
}

impl Environment for Known<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.environment.attribute(index)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.environment.shape(tensor)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.environment.rank(tensor)
    }

    /// What is a multiple of 16 is one of 8, and what is none of 8 is none of 16.
    fn aligned(&self, tensor: u32, bytes: u32) -> Option<bool> {
        let told = self.facts.iter().filter(|fact| fact.tensor == tensor);
        let told = told
            .copied()
            .find(|fact| if fact.is_aligned { bytes <= fact.bytes } else { bytes >= fact.bytes });
        told.map(|fact| fact.is_aligned).or_else(|| (bytes == 1).then_some(true))
    }
}

struct Maker<'a> {
    environment: &'a dyn Environment,
    steps: Vec<Step>,
    without_value: Vec<(usize, EvalError)>,
    visits: usize,
}

/// Where the parts of one guard lead.
struct Way {
    guard: usize,
    holds: Next,
    fails: Next,
    /// Residual guards that were seen before, and what they came to.
    seen: Vec<(Expr, Next)>,
}

impl Maker<'_> {
    /// What a guard comes to after the answers `facts`, which are those that led to it: at most one for each of its questions, and
    /// so is the depth of the recursion.
    fn decide(&mut self, residual: &Expr, facts: &mut Vec<Fact>, way: &mut Way) -> Result<Next, TooManyWays> {
        self.visits += 1;
        if self.visits > VISIT_LIMIT {
            return Err(TooManyWays);
        }
        let known = Known { environment: self.environment, facts };
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
            return Ok(match evaluate(residual, &known) {
                Ok(Value::Bool(true)) => way.holds,
                Ok(_) => way.fails,
                Err(error) => {
                    if !self.without_value.iter().any(|(guard, _)| *guard == way.guard) {
                        self.without_value.push((way.guard, error));
                    }
                    way.fails
                }
            });
        };
        // A residual that holds no answered question any more says by itself what it comes to.
        if is_folded && let Some((_, next)) = way.seen.iter().find(|(seen, _)| seen == residual) {
            return Ok(*next);
        }
        let [aligned, otherwise] = [true, false].map(|is_aligned| {
            facts.push(Fact { tensor, bytes, is_aligned });
            let rest = bind(residual, &Known { environment: self.environment, facts });
            let next = self.decide(&rest, facts, way);
            facts.pop();
            next
        });
        let (aligned, otherwise) = (aligned?, otherwise?);
        let next = if aligned == otherwise {
            aligned
        } else {
            let mask = bytes.saturating_sub(1) as usize;
            self.steps.push(Step { tensor: tensor as usize, mask, aligned, otherwise });
            Next::Step(self.steps.len() - 1)
        };
        if is_folded {
            way.seen.push((residual.clone(), next));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests;
