//! A part of a domain with fixed or open ranks. Proves claims by bounds, or returns regions to search.

use cubinder_model::model::Attribute;
use std::sync::Arc;

use super::case::{Claim, HIGHEST_RANK};
use super::pool::Meter;
use super::{Devices, Domain};
use cubinder_expr::value::Value;
use cubinder_expr::{
    AttributeRange, DeviceFact, Environment, Expr, Extent, Facts, Ints, Node, RangeEnvironment, Stop, TermId,
    Terms, Walk, bind_within,
};
use cubinder_model::model::{Interval, Output, Plugin, ShapeLimits};

const STEPS: usize = 60_000;

const PASSES: usize = 2;

#[derive(Debug, Clone)]
struct Ranges<'p> {
    attributes: Option<&'p [Value]>,
    attribute_ranges: Vec<AttributeRange>,
    ranks: Vec<Option<usize>>,
    rank_ranges: Vec<(usize, usize)>,
    dims: Vec<Vec<(i64, i64)>>,
    numel: Vec<(i64, i64)>,
    /// Shape inputs' bounds, by input.
    values: Vec<Option<Interval>>,
    sizes: Vec<(i64, i64)>,
    devices: Devices,
}

impl RangeEnvironment for Ranges<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.attributes?.get(index as usize)
    }

    fn attribute_range(&self, index: u32) -> Option<AttributeRange> {
        self.attribute_ranges.get(index as usize).cloned()
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.ranks.get(tensor as usize).copied().flatten()
    }

    fn rank_range(&self, tensor: u32) -> (usize, usize) {
        self.rank_ranges.get(tensor as usize).copied().unwrap_or((0, HIGHEST_RANK))
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        self.dims.get(tensor as usize)?.get(axis).copied()
    }

    fn numel(&self, tensor: u32) -> Option<(i64, i64)> {
        self.numel.get(tensor as usize).copied()
    }

    fn device(&self, fact: DeviceFact) -> (i64, i64) {
        let Interval { min, max } = self.devices.fact(fact);
        (min, max)
    }

    fn values(&self, tensor: u32) -> (i64, i64) {
        let allowed = self.values.get(tensor as usize).copied().flatten();
        allowed.map_or((i64::MIN, i64::MAX), |allowed| (allowed.min, allowed.max))
    }

    fn size(&self, tensor: u32) -> (i64, i64) {
        self.sizes.get(tensor as usize).copied().unwrap_or((0, i64::MAX))
    }
}

struct NodeTime<'r>(&'r Ranges<'r>);

impl Environment for NodeTime<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.attributes?.get(index as usize)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.0.ranks.get(tensor as usize).copied().flatten()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Frame<'p> {
    ranges: Ranges<'p>,
    terms: Arc<Terms>,
    facts: Facts,
    tags: Tags,
}

#[derive(Debug, Clone, Default)]
struct Tags {
    attributes: Vec<TermId>,
    ranks: Vec<TermId>,
    numels: Vec<TermId>,
    /// Terms of dimensions, by input; empty if the rank is open.
    dims: Vec<Vec<TermId>>,
}

#[derive(Debug, Clone)]
pub(super) struct Region {
    pub(super) attributes: Vec<Extent>,
    pub(super) dims: Vec<Vec<Ints>>,
}

pub(super) enum Finding {
    Proved,
    /// Only these can contain counterexamples.
    Within(Vec<Region>),
}

impl<'p> Frame<'p> {
    pub(super) fn new(
        domain: &Domain<'p>,
        ranks: &[Option<usize>],
        meter: &mut Meter<'_>,
    ) -> Option<Frame<'p>> {
        let plugin = domain.plugin;
        let inputs = plugin.inputs.iter().zip(ranks).enumerate();
        let dims = inputs.map(|(index, (_, rank))| {
            let dim = |axis| domain.input_dim(index, axis).map(|dim| (dim.min, dim.max));
            (0..rank.unwrap_or(HIGHEST_RANK)).map(|axis| dim(axis).unwrap_or((0, i64::MAX))).collect()
        });
        let cap = |tensor: usize, limits: &ShapeLimits| {
            let most = domain.caps().get(tensor).copied().unwrap_or(i64::MAX);
            (limits.numel.min.max(0), limits.numel.max.min(most))
        };
        let ranges = Ranges {
            attributes: domain.attributes,
            attribute_ranges: domain.choosable().iter().map(Attribute::range).collect(),
            ranks: ranks.to_vec(),
            rank_ranges: plugin
                .inputs
                .iter()
                .map(|input| (input.rank_min.into(), input.rank_max.into()))
                .collect(),
            dims: dims.collect(),
            numel: plugin
                .inputs
                .iter()
                .enumerate()
                .map(|(tensor, input)| cap(tensor, &input.limits))
                .collect(),
            values: plugin.inputs.iter().map(|input| input.values).collect(),
            sizes: Vec::new(),
            devices: domain.devices,
        };
        let mut frame =
            Frame { ranges, terms: Arc::default(), facts: Facts::default(), tags: Tags::default() };
        match frame.fill(domain, &cap, meter) {
            Ok(()) => Some(frame),
            Err(Stop::Contradiction) => None,
            // Facts only narrow, so using none is sound.
            Err(Stop::Error(_)) => Some(Frame { facts: Facts::default(), ..frame }),
        }
    }

    fn fill(
        &mut self,
        domain: &Domain<'p>,
        cap: &dyn Fn(usize, &ShapeLimits) -> (i64, i64),
        meter: &mut Meter<'_>,
    ) -> Result<(), Stop> {
        let plugin = domain.plugin;
        meter.charge(plugin.attributes.len() + self.ranges.dims.iter().map(Vec::len).sum::<usize>());
        let rank = |tensor: u32| self.ranges.rank(tensor);
        let mut terms = Terms::default();
        self.tags = tags(&mut terms, plugin, &rank)?;
        let sizes = self.sizes(domain, meter);
        let mut shapes = Vec::new();
        if domain.with_outputs {
            for (index, output) in (plugin.inputs.len()..).zip(&plugin.outputs) {
                let shape = terms.add(&self.bound(&output.shape, meter), &rank)?;
                let numel = terms.numel_of(shape)?;
                shapes.push((shape, numel, index, &output.limits));
            }
            for &(shape, _, index, _) in &shapes {
                terms.define_shape(u32::try_from(index).unwrap_or(u32::MAX), shape);
            }
        }
        let required = domain.requirements().iter().map(|requirement| &requirement.expr);
        let mut conditions = Vec::new();
        for condition in required.chain(domain.assumptions.iter().copied()) {
            conditions.push(terms.add(&self.bound(condition, meter), &rank)?);
        }
        self.terms = Arc::new(terms);
        self.ranges.sizes = sizes;
        let mut walk = Walk::new(&self.terms, &self.ranges, Facts::default(), STEPS * 4);
        let learned = self.learn(&mut walk, &conditions, &shapes, cap);
        meter.charge(STEPS * 4 - walk.left());
        learned?;
        self.facts = walk.into_facts();
        self.facts.settle();
        Ok(())
    }

    fn sizes(&self, domain: &Domain<'p>, meter: &mut Meter<'_>) -> Vec<(i64, i64)> {
        let plugin = domain.plugin;
        let any = (0, i64::MAX);
        let of = |output: &Output| {
            let Some(bound) = &output.size else { return any };
            let mut terms = Terms::default();
            let upper = self.bound(&bound.upper, meter);
            let Ok(upper) = terms.add(&upper, &|tensor| self.ranges.rank(tensor)) else { return any };
            let mut walk = Walk::new(&terms, &self.ranges, Facts::default(), STEPS);
            let found = walk.term(upper);
            meter.charge(STEPS - walk.left());
            let most = found.ok().and_then(|found| found.ints()).map_or(i64::MAX, |ints| ints.high);
            (0, most.max(0))
        };
        let inputs = plugin.inputs.iter().map(|_| any);
        inputs.chain(plugin.outputs.iter().map(of).collect::<Vec<_>>()).collect()
    }

    fn learn(
        &self,
        walk: &mut Walk<'_>,
        conditions: &[TermId],
        shapes: &[(TermId, TermId, usize, &ShapeLimits)],
        cap: &dyn Fn(usize, &ShapeLimits) -> (i64, i64),
    ) -> Result<(), Stop> {
        for _ in 0..PASSES {
            for (&numel, &(low, high)) in self.tags.numels.iter().zip(&self.ranges.numel) {
                walk.learn(numel, extent(low, high)?)?;
            }
            for &condition in conditions {
                hold(walk, condition)?;
            }
            for &(shape, numel, index, limits) in shapes {
                let (low, high) = cap(index, limits);
                let allowed = shape_extent(walk, shape, limits)?;
                walk.learn(shape, allowed)?;
                walk.learn(numel, extent(low, high)?)?;
            }
        }
        Ok(())
    }

    fn bound(&self, expr: &Expr, meter: &mut Meter<'_>) -> Expr {
        let mut left = usize::MAX;
        let bound = bind_within(expr, &NodeTime(&self.ranges), &mut left);
        meter.charge(usize::MAX - left + bound.nodes.len());
        bound
    }

    pub(super) fn ranks(&self) -> Vec<(usize, usize)> {
        let narrowed = |(index, id): (usize, &TermId)| {
            let (low, high) = match self.ranges.ranks.get(index).copied().flatten() {
                Some(rank) => (rank, rank),
                None => self.ranges.rank_range(u32::try_from(index).unwrap_or(u32::MAX)),
            };
            let known = self.facts.known(*id).and_then(Extent::ints);
            let end = |value: i64| usize::try_from(value).unwrap_or(0);
            known.map_or((low, high), |known| (low.max(end(known.low)), high.min(end(known.high))))
        };
        self.tags.ranks.iter().enumerate().map(narrowed).collect()
    }

    pub(super) fn is_fine(&self) -> bool {
        self.ranges.ranks.iter().all(Option::is_some)
    }

    pub(super) fn look_at(&self, claim: Claim<'_>, meter: &mut Meter<'_>) -> Finding {
        let mut terms = Terms::on(Arc::clone(&self.terms));
        let bound = self.bound(claim.expr(), meter);
        let Ok(root) = terms.add(&bound, &|tensor| self.ranges.rank(tensor)) else {
            return Finding::Within(vec![self.region(&self.facts)]);
        };
        let mut walk = Walk::new(&terms, &self.ranges, self.facts.clone(), STEPS);
        let found = walk.term(root);
        meter.charge(STEPS - walk.left());
        let total = found.is_ok() && walk.is_total();
        if proves(claim, &found, total) {
            return Finding::Proved;
        }
        let mut regions = Vec::new();
        // If evaluation may fail, any case can refute.
        if !total && matches!(claim, Claim::Always(_) | Claim::HasValue(_)) {
            regions.push(self.region(&self.facts));
        }
        let facts = walk.into_facts();
        let opposites = opposites(claim, found.as_ref().ok());
        if opposites.is_empty() && regions.is_empty() {
            regions.push(self.region(&self.facts));
        }
        for opposite in opposites {
            let mut walk = Walk::new(&terms, &self.ranges, facts.clone(), STEPS);
            let assumed = match opposite {
                Opposite::Is(truth) => walk.assume(root, truth),
                Opposite::In(extent) => walk.learn(root, extent),
            };
            meter.charge(STEPS - walk.left());
            match assumed {
                Ok(()) => regions.insert(0, self.region(&walk.into_facts())),
                Err(Stop::Contradiction) => {}
                Err(Stop::Error(_)) => regions.push(self.region(&self.facts)),
            }
        }
        if regions.is_empty() { Finding::Proved } else { Finding::Within(regions) }
    }

    pub(super) fn extent(&self, value: &Expr, meter: &mut Meter<'_>) -> Result<Extent, Stop> {
        let mut terms = Terms::on(Arc::clone(&self.terms));
        let root = terms.add(&self.bound(value, meter), &|tensor| self.ranges.rank(tensor))?;
        let mut walk = Walk::new(&terms, &self.ranges, self.facts.clone(), STEPS);
        let found = walk.term(root);
        meter.charge(STEPS - walk.left());
        found
    }

    pub(super) fn everywhere(&self) -> Region {
        self.region(&self.facts)
    }

    fn region(&self, facts: &Facts) -> Region {
        let attribute = |(index, id): (usize, &TermId)| {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let given = match self.ranges.attribute(index) {
                Some(value) => Extent::Known(value.clone()),
                None => self.ranges.attribute_range(index).map_or(Extent::Any, |range| range.0),
            };
            facts.known(*id).and_then(|known| given.meet(known)).unwrap_or(given)
        };
        let is_shape_input = |index: usize| self.ranges.values.get(index).is_some_and(Option::is_some);
        let dim = |index: usize, axis: usize, id: &TermId| {
            let (low, high) =
                self.ranges.dims.get(index).and_then(|dims| dims.get(axis)).copied().unwrap_or((0, 0));
            let given = Ints::new(low, high).unwrap_or(Ints::exactly(low));
            let known = facts.known(*id).and_then(Extent::ints);
            known.and_then(|known| known.meet(given)).unwrap_or(given)
        };
        Region {
            attributes: self.tags.attributes.iter().enumerate().map(attribute).collect(),
            dims: (self.tags.dims.iter().enumerate())
                .map(|(index, dims)| {
                    let dims = if is_shape_input(index) { &[] } else { dims.as_slice() };
                    dims.iter().enumerate().map(|(axis, id)| dim(index, axis, id)).collect()
                })
                .collect(),
        }
    }
}

fn tags(terms: &mut Terms, plugin: &Plugin, rank: &dyn Fn(u32) -> Option<usize>) -> Result<Tags, Stop> {
    let mut tags = Tags::default();
    for attribute in (0_u32..).take(plugin.attributes.len()) {
        tags.attributes.push(terms.attribute(attribute)?);
    }
    for (tensor, _) in (0_u32..).zip(&plugin.inputs).filter(|(_, input)| input.values.is_some()) {
        tags.attributes.push(terms.values(tensor)?);
    }
    for tensor in (0_u32..).take(plugin.inputs.len()) {
        tags.ranks.push(terms.rank(tensor)?);
        tags.numels.push(terms.numel(tensor)?);
        let mut dims = Vec::new();
        for axis in (0_i64..).take(rank(tensor).unwrap_or(0)) {
            dims.extend(terms.dim_of(tensor, axis, rank)?);
        }
        tags.dims.push(dims);
    }
    Ok(tags)
}

fn hold(walk: &mut Walk<'_>, condition: TermId) -> Result<(), Stop> {
    match walk.term(condition) {
        // An always failing condition excludes all.
        Err(Stop::Error(error)) if error.is_about_values() => return Err(Stop::Contradiction),
        found => found?,
    };
    walk.assume(condition, true)
}

fn extent(low: i64, high: i64) -> Result<Extent, Stop> {
    Ints::new(low, high).map(Extent::of_ints).ok_or(Stop::Contradiction)
}

fn shape_extent(walk: &mut Walk<'_>, shape: TermId, limits: &ShapeLimits) -> Result<Extent, Stop> {
    let dim = |allowed: Interval| extent(allowed.min.max(0), allowed.max);
    match walk.term(shape)?.items() {
        Some(items) => {
            let dims =
                (0..items.len()).map(|axis| dim(limits.dim(axis))).collect::<Result<Vec<Extent>, Stop>>()?;
            if dims.len() > HIGHEST_RANK { Err(Stop::Contradiction) } else { Ok(Extent::array(dims)) }
        }
        None => {
            let every = limits.dims.iter().copied().fold(limits.every, |all, dim| Interval {
                min: all.min.min(dim.min),
                max: all.max.max(dim.max),
            });
            let ranks = Ints::new(0, i64::try_from(HIGHEST_RANK).unwrap_or(8)).ok_or(Stop::Contradiction)?;
            Ok(Extent::List(Box::new(dim(every)?), ranks))
        }
    }
}

fn proves(claim: Claim<'_>, found: &Result<Extent, Stop>, total: bool) -> bool {
    let fails = match found {
        Err(Stop::Contradiction) => return true,
        Err(Stop::Error(error)) => error.is_about_values(),
        Ok(_) => false,
    };
    match (claim, found) {
        (Claim::Always(_), Ok(found)) => total && found.bools() == Some(Some(true)),
        (Claim::Never(_), Ok(found)) => found.bools() == Some(Some(false)),
        (Claim::Within(_, allowed), Ok(found)) => within(found, allowed),
        (Claim::HasValue(_), Ok(_)) => total,
        (Claim::Never(_) | Claim::Within(..), Err(_)) => fails,
        _ => false,
    }
}

fn within(found: &Extent, allowed: Interval) -> bool {
    let fits = |ints: Ints| allowed.contains(ints.low) && allowed.contains(ints.high);
    match found {
        Extent::List(element, _) => within(element, allowed),
        found => match (found.ints(), found.items()) {
            (Some(ints), _) => fits(ints),
            (None, Some(items)) => items.iter().all(|item| item.ints().is_some_and(fits)),
            (None, None) => false,
        },
    }
}

enum Opposite {
    Is(bool),
    In(Extent),
}

fn opposites(claim: Claim<'_>, found: Option<&Extent>) -> Vec<Opposite> {
    match claim {
        Claim::Always(_) => vec![Opposite::Is(false)],
        Claim::Never(_) => vec![Opposite::Is(true)],
        Claim::Within(_, allowed) if found.is_some_and(|found| found.ints().is_some()) => {
            let below = allowed.min.checked_sub(1).and_then(|most| Ints::new(i64::MIN, most));
            let above = allowed.max.checked_add(1).and_then(|least| Ints::new(least, i64::MAX));
            below.into_iter().chain(above).map(Extent::of_ints).map(Opposite::In).collect()
        }
        Claim::Within(..) | Claim::HasValue(_) => Vec::new(),
    }
}

pub(super) fn mentions_outputs(expr: &Expr, inputs: usize) -> bool {
    expr.nodes.iter().any(|node| match node {
        Node::Shape(tensor)
        | Node::Rank(tensor)
        | Node::Numel(tensor)
        | Node::Size(tensor)
        | Node::Aligned { tensor, .. } => *tensor as usize >= inputs,
        _ => false,
    })
}
