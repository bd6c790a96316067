//! Searches for a refuting case, deterministically, within a budget: enumerates small regions, samples others.

use super::case::{Claim, Point, Trial, TrialOutcome};
use super::frame::Region;
use super::pool::Meter;
use super::shrink::shrink;
use super::values::{
    every, groups, integers, landmarks, literals, one_of_each_length, plainest, spread, worth_a_try,
};
use super::{Case, Domain, Verdict};
use cubinder_expr::sorted_set;
use cubinder_expr::value::Value;
use cubinder_expr::{Expr, Node};
use cubinder_model::model::Plugin;

const FEW_CASES: usize = 4096;

const ALL_STEPS: usize = 1_000_000;

/// Steps of a first sample, per frame and in total.
const LITTLE_STEPS: usize = 20_000;
const FIRST_STEPS: usize = 80_000;

const MORE_STEPS: usize = 80_000;

const SHRINK_STEPS: usize = 100_000;

pub(super) struct Search<'d, 'p> {
    domain: &'d Domain<'p>,
    trial: Trial<'d, 'p>,
    pub(super) meter: Meter<'d>,
    landmarks: Vec<i64>,
    literals: Vec<Value>,
    /// Whether each of [`Domain::choosable`] is read.
    read: Vec<bool>,
    all: usize,
    first: usize,
    best: Option<(Point, Case)>,
    open: Vec<RegionSearch>,
    enumerated: bool,
    unsure: bool,
}

impl<'d, 'p> Search<'d, 'p> {
    pub(super) fn new(domain: &'d Domain<'p>, claim: Claim<'d>, mut meter: Meter<'d>) -> Search<'d, 'p> {
        let exprs = || -> Box<dyn Iterator<Item = &Expr>> {
            let rules = domain.requirements().iter().map(|requirement| &requirement.expr);
            let shapes = domain.plugin.outputs.iter().map(|output| &output.shape);
            let sizes = domain.plugin.outputs.iter().filter_map(|output| output.size.as_ref());
            let shapes = shapes.chain(sizes.map(|size| &size.upper));
            let first = std::iter::once(claim.expr()).chain(domain.assumptions.iter().copied());
            Box::new(first.chain(rules).chain(shapes))
        };
        meter.charge(exprs().map(|expr| expr.nodes.len()).sum::<usize>() / 8);
        let mut landmarks = landmarks(exprs());
        if let Claim::Within(_, allowed) = claim {
            let beyond = [allowed.max.saturating_add(1), allowed.min.saturating_sub(1)];
            landmarks.extend([allowed.min, allowed.max].into_iter().chain(beyond));
        }
        Search {
            domain,
            trial: Trial::new(domain, claim, 0),
            meter,
            literals: literals(exprs()),
            read: read(domain.plugin, exprs()),
            landmarks,
            all: ALL_STEPS,
            first: FIRST_STEPS,
            best: None,
            open: Vec::new(),
            enumerated: false,
            unsure: false,
        }
    }

    pub(super) fn frame(&mut self, regions: &[Region]) -> bool {
        if let Some(places) = few(self.domain, &self.read, regions) {
            let given = self.give(self.all);
            self.enumerated = true;
            let finished = try_all(self.domain, &mut self.trial, &places, &mut self.best);
            self.all -= self.taken(given);
            self.unsure |= !finished;
            return self.domain.is_hasty && self.best.is_some();
        }
        if self.best.is_some() {
            return false;
        }
        if !self.domain.searches {
            self.unsure = true;
            return true;
        }
        for region in regions {
            let Some(sample) = self.sample(region) else { continue };
            let mut search = RegionSearch::new(sample);
            let given = self.give(LITTLE_STEPS.min(self.first));
            let found = search.run(&mut self.trial, Effort::Little);
            self.first -= self.taken(given);
            if let Some(point) = found {
                return self.found(point);
            }
            self.open.push(search);
        }
        self.unsure |= self.open.is_empty();
        false
    }

    fn give(&mut self, steps: usize) -> usize {
        self.trial.steps = steps.min(self.meter.left());
        self.trial.steps
    }

    fn taken(&mut self, given: usize) -> usize {
        let taken = given - self.trial.steps;
        self.meter.charge(taken);
        taken
    }

    fn found(&mut self, point: Point) -> bool {
        let given = self.give(SHRINK_STEPS);
        self.best = shrink(self.domain, &mut self.trial, point);
        self.taken(given);
        self.best.is_some()
    }

    pub(super) fn finish(mut self, complete: bool) -> Verdict {
        let mut steps = MORE_STEPS;
        let mut open = std::mem::take(&mut self.open);
        for at in 0..open.len() {
            if self.best.is_some() {
                break;
            }
            let given = self.give(steps / (open.len() - at));
            let found = open.get_mut(at).and_then(|search| search.run(&mut self.trial, Effort::More));
            steps -= self.taken(given);
            if let Some(point) = found {
                self.found(point);
            }
        }
        // Addresses, devices, sizes are sampled.
        let exact = !(self.enumerated && self.trial.is_a_sample());
        match self.best {
            Some((_, case)) => Verdict::Refuted(case),
            None if complete && exact && open.is_empty() && !self.unsure => Verdict::Proved,
            None => Verdict::Open,
        }
    }

    fn sample(&mut self, region: &Region) -> Option<Sample> {
        let attributes = self.domain.choosable().iter().zip(&region.attributes);
        let attributes = attributes
            .map(|(attribute, extent)| worth_a_try(attribute, extent, &self.landmarks, &self.literals));
        let dims = region.dims.iter();
        let dims = dims.map(|dims| dims.iter().map(|&dim| integers(dim, &self.landmarks)).collect());
        let sample = Sample { attributes: attributes.collect(), dims: dims.collect() };
        self.meter.charge(sample.choices().sum());
        let whole = sample.choices().all(|count| count > 0);
        whole.then_some(sample)
    }
}

struct Sample {
    attributes: Vec<Vec<Value>>,
    dims: Vec<Vec<Vec<i64>>>,
}

impl Sample {
    fn count(&self) -> usize {
        self.choices().fold(1, usize::saturating_mul)
    }

    fn choices(&self) -> impl Iterator<Item = usize> {
        self.attributes.iter().map(Vec::len).chain(self.dims.iter().flatten().map(Vec::len))
    }

    fn point(&self, choices: &[usize]) -> Option<Point> {
        let mut choices = choices.iter().copied();
        let mut attributes = Vec::with_capacity(self.attributes.len());
        for values in &self.attributes {
            attributes.push(values.get(choices.next()?)?.clone());
        }
        let mut inputs = Vec::with_capacity(self.dims.len());
        for dims in &self.dims {
            let mut shape = Vec::with_capacity(dims.len());
            for values in dims {
                shape.push(*values.get(choices.next()?)?);
            }
            inputs.push(shape);
        }
        Some(Point { attributes, inputs })
    }
}

fn read<'e>(plugin: &Plugin, exprs: impl Iterator<Item = &'e Expr>) -> Vec<bool> {
    let (mut attributes, mut tensors) =
        (vec![false; plugin.attributes.len()], vec![false; plugin.inputs.len()]);
    for node in exprs.flat_map(|expr| &expr.nodes) {
        let place = match node {
            Node::Attribute(index) => attributes.get_mut(*index as usize),
            Node::Values(tensor) | Node::Shape(tensor) | Node::Numel(tensor) | Node::Rank(tensor) => {
                tensors.get_mut(*tensor as usize)
            }
            _ => None,
        };
        place.into_iter().for_each(|read| *read = true);
    }
    let of_inputs = plugin.inputs.iter().zip(tensors).filter(|(input, _)| input.values.is_some());
    attributes.into_iter().chain(of_inputs.map(|(_, read)| read)).collect()
}

fn few(domain: &Domain<'_>, read: &[bool], regions: &[Region]) -> Option<Vec<Sample>> {
    let plain = domain.plugin.attributes.len();
    let limit = u128::try_from(FEW_CASES).ok()?;
    let mut places = Vec::with_capacity(regions.len());
    let mut count = 0_usize;
    for region in regions {
        if region.dims.iter().flatten().any(|dim| dim.count() > limit) {
            return None;
        }
        let all = region.dims.iter().flatten().fold(1_u128, |all, dim| all.saturating_mul(dim.count()));
        if all > limit {
            return None;
        }
        let attributes = domain.choosable().iter().zip(&region.attributes).zip(read).enumerate();
        let attributes = attributes.map(|(index, ((attribute, extent), read))| match read {
            true => every(attribute, extent),
            false if index < plain => plainest(attribute, extent),
            false => one_of_each_length(attribute, extent),
        });
        let dims = region.dims.iter().map(|dims| dims.iter().map(|dim| dim.members().collect()).collect());
        let place = Sample { attributes: attributes.collect::<Option<_>>()?, dims: dims.collect() };
        count = count.saturating_add(place.count());
        if count > FEW_CASES {
            return None;
        }
        places.push(place);
    }
    Some(places)
}

/// Keeps the smallest refuting point. False if steps ran out.
fn try_all(
    domain: &Domain<'_>,
    trial: &mut Trial<'_, '_>,
    places: &[Sample],
    best: &mut Option<(Point, Case)>,
) -> bool {
    for place in places {
        let sizes: Vec<usize> = place.choices().collect();
        if sizes.contains(&0) {
            continue;
        }
        let mut choices = vec![0; sizes.len()];
        loop {
            let Some(point) = place.point(&choices) else { return false };
            let least =
                best.as_ref().is_none_or(|(best, _)| point.key(domain.plugin) < best.key(domain.plugin));
            if least {
                match trial.run(&point) {
                    TrialOutcome::Refuted(case) => *best = Some((point, case)),
                    TrialOutcome::Unknown => return false,
                    TrialOutcome::Outside | TrialOutcome::Holds => {}
                }
            }
            if !advance(&mut choices, &sizes) {
                break;
            }
        }
    }
    true
}

fn advance(choices: &mut [usize], sizes: &[usize]) -> bool {
    for (choice, size) in choices.iter_mut().zip(sizes).rev() {
        *choice += 1;
        if *choice < *size {
            return true;
        }
        *choice = 0;
    }
    false
}

#[derive(Clone, Copy, PartialEq)]
enum Effort {
    Little,
    More,
}

struct RegionSearch {
    sample: Sample,
    base: Vec<usize>,
    anchors: Vec<Vec<usize>>,
    random: u64,
}

/// `Err`: a refuting point, or `None` if steps ran out.
type AttemptResult = Result<(), Option<Point>>;

impl RegionSearch {
    fn new(sample: Sample) -> RegionSearch {
        let least = |values: &Vec<i64>| values.iter().position(|&value| value > 0).unwrap_or(0);
        let attributes = sample.attributes.iter().map(|_| 0);
        let base = attributes.chain(sample.dims.iter().flatten().map(least)).collect();
        RegionSearch { sample, base, anchors: Vec::new(), random: 0x9E37_79B9_7F4A_7C15 }
    }

    fn run(&mut self, trial: &mut Trial<'_, '_>, effort: Effort) -> Option<Point> {
        let found = if effort == Effort::Little { self.little(trial) } else { self.more(trial) };
        found.err().flatten()
    }

    fn attempt(&mut self, trial: &mut Trial<'_, '_>, choices: &[usize]) -> AttemptResult {
        const MOST: usize = 6;
        let Some(point) = self.sample.point(choices) else { return Ok(()) };
        match trial.run(&point) {
            TrialOutcome::Refuted(_) => Err(Some(point)),
            TrialOutcome::Unknown => Err(None),
            TrialOutcome::Holds
                if self.anchors.len() < MOST && !self.anchors.iter().any(|anchor| anchor == choices) =>
            {
                self.anchors.push(choices.to_vec());
                Ok(())
            }
            TrialOutcome::Holds | TrialOutcome::Outside => Ok(()),
        }
    }

    fn uniform(&self, from: &[usize], size: i64) -> Vec<usize> {
        let mut choices = from.to_vec();
        let dims = self.sample.dims.iter().flatten();
        for (choice, values) in choices.iter_mut().skip(self.sample.attributes.len()).zip(dims) {
            *choice = values.partition_point(|&value| value < size).min(values.len() - 1);
        }
        choices
    }

    fn little(&mut self, trial: &mut Trial<'_, '_>) -> AttemptResult {
        let base = self.base.clone();
        self.attempt(trial, &base)?;
        for size in [0, 2, 1, 3, 4, 5, 8, 32, 256, i64::MAX, 1 << 16, 1 << 31] {
            let choices = self.uniform(&base, size);
            self.attempt(trial, &choices)?;
        }
        self.each_alone(trial, &base, 12)?;
        for size in [8, 1 << 31, 1 << 40] {
            let mut large = base.clone();
            if let (Some(last), Some(values)) = (large.last_mut(), self.sample.dims.iter().flatten().last()) {
                *last = values.partition_point(|&value| value < size).min(values.len() - 1);
                self.each_alone(trial, &large, 10)?;
            }
        }
        Ok(())
    }

    fn each_alone(&mut self, trial: &mut Trial<'_, '_>, from: &[usize], most: usize) -> AttemptResult {
        let sizes: Vec<usize> = self.sample.choices().collect();
        for (place, &size) in sizes.iter().enumerate().rev() {
            for choice in spread(size, most) {
                let mut choices = from.to_vec();
                if let Some(at) = choices.get_mut(place) {
                    *at = choice;
                }
                self.attempt(trial, &choices)?;
            }
        }
        Ok(())
    }

    fn more(&mut self, trial: &mut Trial<'_, '_>) -> AttemptResult {
        if self.anchors.is_empty() {
            self.at_random(trial, 300)?;
        }
        let anchors = if self.anchors.is_empty() { vec![self.base.clone()] } else { self.anchors.clone() };
        for (number, anchor) in anchors.iter().enumerate() {
            self.each_alone(trial, anchor, if number == 0 { usize::MAX } else { 16 })?;
            self.groups(trial, anchor, if number == 0 { 48 } else { 12 })?;
        }
        self.at_random(trial, 400)
    }

    /// Varies dimensions together: one axis of every input, pairs, all.
    fn groups(&mut self, trial: &mut Trial<'_, '_>, from: &[usize], most: usize) -> AttemptResult {
        let values: Vec<i64> = {
            let values = sorted_set(self.sample.dims.iter().flatten().flatten().copied().collect());
            spread(values.len(), most).into_iter().filter_map(|at| values.get(at).copied()).collect()
        };
        for group in groups(&self.sample.dims.iter().map(Vec::len).collect::<Vec<usize>>()) {
            for &value in &values {
                let mut choices = from.to_vec();
                let dims = self.sample.dims.iter().flatten().enumerate();
                for (place, values) in dims.filter(|(place, _)| group.contains(place)) {
                    let choice = values.partition_point(|&other| other < value).min(values.len() - 1);
                    if let Some(at) = choices.get_mut(self.sample.attributes.len() + place) {
                        *at = choice;
                    }
                }
                self.attempt(trial, &choices)?;
            }
        }
        Ok(())
    }

    fn at_random(&mut self, trial: &mut Trial<'_, '_>, tries: usize) -> AttemptResult {
        let sizes: Vec<usize> = self.sample.choices().collect();
        for _ in 0..tries {
            let mut choices = self.base.clone();
            for (choice, &size) in choices.iter_mut().zip(&sizes) {
                let [keep, pick] = [self.next(), self.next()];
                let limit = if pick & 1 == 0 { size.min(8) } else { size };
                if keep % 4 != 0 {
                    *choice = (pick >> 1) % limit.max(1);
                }
            }
            self.attempt(trial, &choices)?;
        }
        Ok(())
    }

    /// Marsaglia's xorshift.
    fn next(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap_or(0)
    }
}
