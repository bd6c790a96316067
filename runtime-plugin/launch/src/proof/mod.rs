//! What holds for every node and every shape that a plugin can meet.
//!
//! Owns the cases a plugin can meet ([`Domain`]: ranks, limits, attributes' constraints, `require`, what else is assumed) and
//! verdicts about expressions over them: proved by bounds, refuted by the smallest case that was found, or open.
//! Sound: what is proved holds, and a case that refutes lies in the domain. Never guesses, and always ends: walks over bounds and
//! the search for cases have budgets.
//!
//! Cases are those that can be met: a tensor has at most as many elements as a 64-bit integer can count bytes of, lists are no longer
//! than [`cubinder_expr::ARRAY_LIMIT`], and addresses are what they are (a case does not say).

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
    /// One value for each of the plugin's attributes.
    pub attributes: Vec<Value>,
    /// The shapes of the inputs, then of the outputs.
    pub shapes: Vec<Vec<i64>>,
    /// What the shape inputs hold, by the inputs' indices; empty for an input that is none, and empty altogether where there is none.
    pub values: Vec<Vec<i64>>,
    /// What size tensors hold, by index over inputs, then outputs: the most that they can. None for every other tensor; empty where
    /// there is none.
    pub sizes: Vec<Option<i64>>,
    /// The device, where that matters.
    pub device: Option<Device>,
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
    devices: Devices,
    /// How many of the plugin's requirements hold.
    requirements: usize,
    /// Whether the outputs have shapes within their limits.
    with_outputs: bool,
    pool: Option<&'p Pool>,
    /// Cases that are tried first.
    hints: Vec<Case>,
    /// Whether any case that refutes will do.
    is_hasty: bool,
    /// Whether cases are looked for where they are too many to try all.
    searches: bool,
    /// The most elements of each tensor, which the plugin alone decides.
    caps: Arc<OnceLock<Vec<i64>>>,
    /// What cases choose beside dimensions: attributes, then what each shape input holds.
    choosable: Arc<OnceLock<Vec<Attribute>>>,
    frames: Arc<Frames<'p>>,
}

/// The parts of a domain, made when they are first needed.
#[derive(Debug, Default)]
struct Frames<'p> {
    /// The whole, with ranks left open where they are.
    coarse: OnceLock<Option<Arc<Frame<'p>>>>,
    /// One for each choice of ranks.
    fine: OnceLock<Arc<RankFrames<'p>>>,
}

#[derive(Debug)]
struct RankFrames<'p> {
    ranks: Vec<Vec<Option<usize>>>,
    /// Each made when it is first needed.
    frames: Vec<OnceLock<Option<Frame<'p>>>>,
    /// Whether they are all.
    complete: bool,
}

impl<'p> RankFrames<'p> {
    /// None where no case lies in it.
    fn frame(&self, domain: &Domain<'p>, at: usize, meter: &mut Meter<'_>) -> Option<&Frame<'p>> {
        let (ranks, frame) = (self.ranks.get(at)?, self.frames.get(at)?);
        frame.get_or_init(|| Frame::new(domain, ranks, meter)).as_ref()
    }
}

/// The most choices of ranks that are looked at one by one.
const MOST_RANKS: usize = 128;

/// The most choices of ranks that [`Domain::proves`] looks at.
const FEW_RANKS: usize = 9;

impl<'p> Domain<'p> {
    /// Everything that ranks, limits, attributes' constraints and `require` allow. The outputs' shapes have values and are within
    /// their limits: the runtime refuses every other case.
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

    /// Only nodes with these attributes, one for each of the plugin's.
    #[must_use]
    pub fn with_attributes(mut self, attributes: &'p [Value]) -> Domain<'p> {
        self.attributes = Some(attributes);
        self.changed()
    }

    /// Only inputs of these shapes: for each input its dimensions, each from the profile's least to its greatest.
    #[must_use]
    pub fn with_profile(mut self, profile: &'p [Vec<Interval>]) -> Domain<'p> {
        self.profile = Some(profile);
        self.changed()
    }

    /// Only cases in which a boolean holds, such as the guard of the variant that is looked at.
    #[must_use]
    pub fn assuming(mut self, condition: &'p Expr) -> Domain<'p> {
        self.assumptions.push(condition);
        self.changed()
    }

    /// Only launches on these devices.
    #[must_use]
    pub fn on_devices(mut self, devices: Devices) -> Domain<'p> {
        self.devices = devices;
        self.changed()
    }

    /// Also cases whose outputs have no shapes, or none within their limits: for statements about the outputs' shapes themselves,
    /// which hold by definition everywhere else. Cases then hold the shapes of the outputs only where all have one.
    #[must_use]
    pub fn before_outputs(mut self) -> Domain<'p> {
        self.with_outputs = false;
        self.changed()
    }

    /// Also cases in which only the first `count` requirements hold: for statements about the requirement that follows them.
    #[must_use]
    pub fn with_requirements(mut self, count: usize) -> Domain<'p> {
        self.requirements = count;
        self.changed()
    }

    /// Proofs take their steps from this pool too.
    #[must_use]
    pub fn sharing(mut self, pool: &'p Pool) -> Domain<'p> {
        self.pool = Some(pool);
        self
    }

    /// Tries this case before others are looked for. Where it refutes it is the answer as it is.
    #[must_use]
    pub fn trying(mut self, case: Case) -> Domain<'p> {
        self.hints.push(case);
        self
    }

    /// A case that refutes need not be small: for who asks only whether something is proved.
    #[must_use]
    pub fn hasty(mut self) -> Domain<'p> {
        self.is_hasty = true;
        self
    }

    /// Looks for no case where they are too many to try all: for who looked in vain among more cases than these.
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

    /// Whether a boolean is proved to hold in every case, without a search for one in which it does not: cheap.
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

    /// Whether a boolean holds in every case. Refuted by a case in which it is false or has no value.
    #[must_use]
    pub fn always(&self, condition: &Expr) -> Verdict {
        self.verdict(Claim::Always(condition))
    }

    /// Whether a boolean holds in no case. Refuted by a case in which it holds.
    #[must_use]
    pub fn never(&self, condition: &Expr) -> Verdict {
        self.verdict(Claim::Never(condition))
    }

    /// Whether an integer, or every element of an array of integers, is within `allowed` in every case. Refuted by a case in which it
    /// is not, not by one in which it has no value.
    #[must_use]
    pub fn within(&self, value: &Expr, allowed: Interval) -> Verdict {
        self.verdict(Claim::Within(value, allowed))
    }

    /// Whether an expression has a value in every case: no overflow, no division by zero, no index out of range.
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

    /// The first of the cases that are to be tried which refutes.
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

    /// Whether bounds know all that an expression looks at.
    fn provable(&self, expr: &Expr) -> bool {
        self.with_outputs || !mentions_outputs(expr, self.plugin.inputs.len())
    }

    /// The most elements of each tensor whose bytes can be counted.
    fn caps(&self) -> &[i64] {
        let cap = |tensor| most_elements(self.plugin, tensor);
        self.caps.get_or_init(|| (0..self.plugin.tensor_count()).map(cap).collect())
    }

    /// Attributes, then what each shape input holds, as if that were an attribute: a list.
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

    /// Whether attributes or profile are of another plugin, or of ranks that it does not take: no case is.
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

    /// The requirements that hold.
    fn requirements(&self) -> &'p [Requirement] {
        self.plugin.require.get(..self.requirements).unwrap_or(&self.plugin.require)
    }

    /// The rank that the profile gives an input.
    fn profiled_rank(&self, input: usize) -> Option<usize> {
        self.profile?.get(input).map(Vec::len)
    }

    /// What a dimension of an input can be; none where it can be nothing.
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

/// How many choices of ranks there are.
fn choices(ranks: &[(usize, usize)]) -> usize {
    ranks.iter().fold(1, |all: usize, (low, high)| all.saturating_mul((high + 1).saturating_sub(*low)))
}

/// Choices of ranks, lowest first, and whether they are all. Where there are too many only those in which all are equally far from
/// their lowest.
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
    tuples.sort_by_key(|tuple| tuple.iter().flatten().sum::<usize>());
    (tuples, true)
}
