//! Proofs about every node and shape of a plugin.
//!
//! Owns its cases ([`Domain`]) and sound verdicts within budgets. Tensors' bytes fit 64 bits, lists have at most
//! [`cubinder_expr::ARRAY_LIMIT`] elements, addresses are unspecified.

mod case;
mod devices;
mod frame;
mod greatest;
mod pool;
mod search;
mod shape_inputs;
mod shrink;
#[cfg(test)]
mod tests;
mod values;

use cubinder_expr::sorted;
use std::sync::{Arc, OnceLock};

use crate::Device;
use case::{Claim, Point, Trial, TrialOutcome, most_elements};
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, STEP_LIMIT};
use cubinder_model::model::{Attribute, Interval, Plugin, Requirement};
use frame::{Finding, Frame, mentions_outputs};
use pool::Meter;
use search::Search;
use shape_inputs::values_attribute;

pub use devices::Devices;
pub use greatest::Greatest;
pub use pool::Pool;

/// One node with its shapes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Case {
    /// Values, one per plugin attribute.
    pub attributes: Vec<Value>,
    /// Shapes of inputs, then outputs.
    pub shapes: Vec<Vec<i64>>,
    /// Values of shape inputs, by input.
    pub values: Vec<Vec<i64>>,
    /// Upper bounds of size tensors, by tensor.
    pub sizes: Vec<Option<i64>>,
    /// The device, if the claim reads it.
    pub device: Option<Device>,
}

/// The verdict about a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// True in every case.
    Proved,
    /// False in this case, the smallest found.
    Refuted(Case),
    /// Neither: check each case.
    Open,
}

/// The cases that claims are about.
#[derive(Debug, Clone)]
pub struct Domain<'p> {
    pub(crate) plugin: &'p Plugin,
    pub(crate) attributes: Option<&'p [Value]>,
    pub(crate) profile: Option<&'p [Vec<Interval>]>,
    pub(crate) assumptions: Vec<&'p Expr>,
    devices: Devices,
    /// Leading requirements that are assumed.
    requirements: usize,
    with_outputs: bool,
    pool: Option<&'p Pool>,
    hints: Vec<Case>,
    is_hasty: bool,
    searches: bool,
    /// Maximum elements, by tensor.
    caps: Arc<OnceLock<Vec<i64>>>,
    /// Attributes, then shape inputs' values.
    choosable: Arc<OnceLock<Vec<Attribute>>>,
    frames: Arc<Frames<'p>>,
}

#[derive(Debug, Default)]
struct Frames<'p> {
    coarse: OnceLock<Option<Arc<Frame<'p>>>>,
    fine: OnceLock<Arc<RankFrames<'p>>>,
}

#[derive(Debug)]
struct RankFrames<'p> {
    ranks: Vec<Vec<Option<usize>>>,
    frames: Vec<OnceLock<Option<Frame<'p>>>>,
    complete: bool,
}

impl<'p> RankFrames<'p> {
    fn frame(&self, domain: &Domain<'p>, at: usize, meter: &mut Meter<'_>) -> Option<&Frame<'p>> {
        let (ranks, frame) = (self.ranks.get(at)?, self.frames.get(at)?);
        frame.get_or_init(|| Frame::new(domain, ranks, meter)).as_ref()
    }
}

/// Maximum rank choices checked individually.
const MOST_RANKS: usize = 128;

/// The same for [`Domain::proves`].
const FEW_RANKS: usize = 9;

impl<'p> Domain<'p> {
    /// Creates the domain that ranks, limits, constraints and `require` allow, with outputs within limits.
    #[must_use]
    pub fn new(plugin: &'p Plugin) -> Domain<'p> {
        Domain {
            plugin,
            attributes: None,
            profile: None,
            assumptions: Vec::new(),
            devices: Devices::ANY,
            requirements: plugin.require.len(),
            with_outputs: true,
            pool: None,
            hints: Vec::new(),
            is_hasty: false,
            searches: true,
            caps: Arc::default(),
            choosable: Arc::default(),
            frames: Arc::default(),
        }
    }

    /// Fixes the attributes, one per plugin attribute.
    #[must_use]
    pub fn with_attributes(mut self, attributes: &'p [Value]) -> Domain<'p> {
        self.attributes = Some(attributes);
        self.changed()
    }

    /// Restricts inputs to ranges by input, then dimension.
    #[must_use]
    pub fn with_profile(mut self, profile: &'p [Vec<Interval>]) -> Domain<'p> {
        self.profile = Some(profile);
        self.changed()
    }

    /// Restricts cases to those where `condition` is true.
    #[must_use]
    pub fn assuming(mut self, condition: &'p Expr) -> Domain<'p> {
        self.assumptions.push(condition);
        self.changed()
    }

    /// Restricts launches to these devices.
    #[must_use]
    pub fn on_devices(mut self, devices: Devices) -> Domain<'p> {
        self.devices = devices;
        self.changed()
    }

    /// Includes cases whose outputs lack a shape or exceed limits.
    #[must_use]
    pub fn before_outputs(mut self) -> Domain<'p> {
        self.with_outputs = false;
        self.changed()
    }

    /// Assumes only the first `count` requirements.
    #[must_use]
    pub fn with_requirements(mut self, count: usize) -> Domain<'p> {
        self.requirements = count;
        self.changed()
    }

    /// Also limits proofs by this pool's steps.
    #[must_use]
    pub fn sharing(mut self, pool: &'p Pool) -> Domain<'p> {
        self.pool = Some(pool);
        self
    }

    /// Tries this case first, without shrinking it.
    #[must_use]
    pub fn trying(mut self, case: Case) -> Domain<'p> {
        self.hints.push(case);
        self
    }

    /// Accepts large refuting cases, for callers that only need proofs.
    #[must_use]
    pub fn hasty(mut self) -> Domain<'p> {
        self.is_hasty = true;
        self
    }

    /// Disables the search, for callers that searched a larger domain.
    #[must_use]
    pub fn without_search(mut self) -> Domain<'p> {
        self.searches = false;
        self
    }

    fn changed(mut self) -> Domain<'p> {
        self.frames = Arc::default();
        self.choosable = Arc::default();
        self
    }

    /// Returns whether `condition` is proved always true; never searches.
    #[must_use]
    pub fn proves(&self, condition: &Expr) -> bool {
        let claim = Claim::Always(condition);
        let mut meter = Meter::new(self.pool);
        if meter.is_spent() {
            return false;
        }
        let Some(coarse) = self.coarse(&mut meter) else { return true };
        if self.provable(condition) && matches!(coarse.look_at(claim, &mut meter), Finding::Proved) {
            return true;
        }
        if coarse.is_fine() || !self.provable(condition) || choices(&coarse.ranks()) > FEW_RANKS {
            return false;
        }
        let fine = self.fine(&coarse);
        let proved = |at: usize| {
            !meter.is_spent()
                && fine
                    .frame(self, at, &mut meter)
                    .is_none_or(|frame| matches!(frame.look_at(claim, &mut meter), Finding::Proved))
        };
        fine.complete && (0..fine.ranks.len()).all(proved)
    }

    /// Decides whether a boolean is always true; no value refutes it.
    #[must_use]
    pub fn always(&self, condition: &Expr) -> Verdict {
        self.verdict(Claim::Always(condition))
    }

    /// Decides whether a boolean is never true.
    #[must_use]
    pub fn never(&self, condition: &Expr) -> Verdict {
        self.verdict(Claim::Never(condition))
    }

    /// Decides whether an integer, or each element, is within `allowed` where it has a value.
    #[must_use]
    pub fn within(&self, value: &Expr, allowed: Interval) -> Verdict {
        self.verdict(Claim::Within(value, allowed))
    }

    /// Decides whether evaluation always succeeds.
    #[must_use]
    pub fn has_value(&self, value: &Expr) -> Verdict {
        self.verdict(Claim::HasValue(value))
    }

    fn verdict(&self, claim: Claim<'_>) -> Verdict {
        let mut meter = Meter::new(self.pool);
        if meter.is_spent() {
            return Verdict::Open;
        }
        let Some(coarse) = self.coarse(&mut meter) else { return Verdict::Proved };
        let provable = self.provable(claim.expr());
        let look = |frame: &Frame<'p>, meter: &mut Meter<'_>| match frame.look_at(claim, meter) {
            Finding::Proved if provable => None,
            Finding::Proved => Some(vec![frame.everywhere()]),
            Finding::Within(regions) => Some(regions),
        };
        let Some(whole) = look(&coarse, &mut meter) else { return Verdict::Proved };
        if let Some(case) = self.hinted(claim, &mut meter) {
            return Verdict::Refuted(case);
        }
        let mut search = Search::new(self, claim, meter);
        if coarse.is_fine() {
            search.frame(&whole);
            return search.finish(true);
        }
        let fine = self.fine(&coarse);
        for at in 0..fine.ranks.len() {
            if search.meter.is_spent() {
                return search.finish(false);
            }
            let frame = fine.frame(self, at, &mut search.meter);
            let Some(regions) = frame.and_then(|frame| look(frame, &mut search.meter)) else { continue };
            if search.frame(&regions) {
                break;
            }
        }
        search.finish(fine.complete)
    }

    fn hinted(&self, claim: Claim<'_>, meter: &mut Meter<'_>) -> Option<Case> {
        self.hints.iter().find_map(|hint| {
            let point = Point::from_case(self.plugin, hint);
            let steps = STEP_LIMIT.min(meter.left());
            let mut trial = Trial::new(self, claim, steps);
            let tried = trial.run(&point);
            meter.charge(steps - trial.steps);
            match tried {
                TrialOutcome::Refuted(case) => Some(case),
                TrialOutcome::Outside | TrialOutcome::Holds | TrialOutcome::Unknown => None,
            }
        })
    }

    fn provable(&self, expr: &Expr) -> bool {
        self.with_outputs || !mentions_outputs(expr, self.plugin.inputs.len())
    }

    fn caps(&self) -> &[i64] {
        let cap = |tensor| most_elements(self.plugin, tensor);
        self.caps.get_or_init(|| (0..self.plugin.tensor_count()).map(cap).collect())
    }

    fn choosable(&self) -> &[Attribute] {
        let values =
            |(index, input)| values_attribute(input, self.input_dim(index, 0).unwrap_or(Interval::ANY_SIZE));
        self.choosable.get_or_init(|| {
            let of_inputs = self.plugin.inputs.iter().enumerate().filter_map(values);
            self.plugin.attributes.iter().cloned().chain(of_inputs).collect()
        })
    }

    fn coarse(&self, meter: &mut Meter<'_>) -> Option<Arc<Frame<'p>>> {
        let made = self.frames.coarse.get_or_init(|| {
            if self.is_beside_the_plugin() {
                return None;
            }
            let inputs = self.plugin.inputs.iter().enumerate();
            let fixed = inputs.map(|(index, input)| {
                self.profiled_rank(index)
                    .or_else(|| (input.rank_min == input.rank_max).then_some(usize::from(input.rank_min)))
            });
            Frame::new(self, &fixed.collect::<Vec<Option<usize>>>(), meter).map(Arc::new)
        });
        made.clone()
    }

    fn is_beside_the_plugin(&self) -> bool {
        let plugin = self.plugin;
        let attributes =
            self.attributes.is_some_and(|attributes| attributes.len() != plugin.attributes.len());
        let profile = self.profile.is_some_and(|profile| profile.len() != plugin.inputs.len());
        let ranks = plugin.inputs.iter().enumerate().any(|(index, input)| {
            let ranks = usize::from(input.rank_min)..=usize::from(input.rank_max);
            self.profiled_rank(index).is_some_and(|rank| !ranks.contains(&rank))
        });
        attributes || profile || ranks
    }

    fn fine(&self, coarse: &Frame<'p>) -> Arc<RankFrames<'p>> {
        let fine = self.frames.fine.get_or_init(|| {
            let (ranks, complete) = rank_tuples(&coarse.ranks());
            let frames = ranks.iter().map(|_| OnceLock::new()).collect();
            Arc::new(RankFrames { ranks, frames, complete })
        });
        Arc::clone(fine)
    }

    fn requirements(&self) -> &'p [Requirement] {
        self.plugin.require.get(..self.requirements).unwrap_or(&self.plugin.require)
    }

    fn profiled_rank(&self, input: usize) -> Option<usize> {
        self.profile?.get(input).map(Vec::len)
    }

    fn input_dim(&self, input: usize, axis: usize) -> Option<Interval> {
        let allowed = self.plugin.inputs.get(input)?.limits.dim(axis);
        let profiled = match self.profile {
            Some(profile) => profile.get(input)?.get(axis).copied()?,
            None => Interval::ANY_SIZE,
        };
        let both = Interval { min: allowed.min.max(profiled.min).max(0), max: allowed.max.min(profiled.max) };
        (both.min <= both.max).then_some(both)
    }
}

fn choices(ranks: &[(usize, usize)]) -> usize {
    ranks.iter().fold(1, |all: usize, (low, high)| all.saturating_mul((high + 1).saturating_sub(*low)))
}

/// Returns choices of ranks, and whether they are all; otherwise ranks are equally far from their lowest.
fn rank_tuples(ranks: &[(usize, usize)]) -> (Vec<Vec<Option<usize>>>, bool) {
    if choices(ranks) > MOST_RANKS {
        let most = ranks.iter().map(|(low, high)| high.saturating_sub(*low)).max().unwrap_or(0);
        let along = |step: usize| ranks.iter().map(|&(low, high)| Some((low + step).min(high))).collect();
        return ((0..=most).map(along).collect(), false);
    }
    let mut tuples: Vec<Vec<Option<usize>>> = vec![Vec::new()];
    for &(low, high) in ranks {
        let longer = tuples
            .iter()
            .flat_map(|tuple| (low..=high).map(|rank| tuple.iter().copied().chain([Some(rank)]).collect()));
        tuples = longer.collect();
    }
    // Equal sums keep their order.
    let numbered = tuples.into_iter().enumerate();
    let keyed = numbered.map(|(number, tuple)| (tuple.iter().flatten().sum::<usize>(), number, tuple));
    (sorted(keyed.collect()).into_iter().map(|(.., tuple)| tuple).collect(), true)
}
