//! Evaluates membership: refutations do not depend on bounds.

use super::shape_inputs::{shape_of_values, values_by_input};
use super::{Case, Domain};
use crate::{Device, Facts};
use cubinder_expr::value::Value;
use cubinder_expr::{DeviceFact, EvalError, Expr, Node, evaluate_within};
use cubinder_model::model::{Interval, Plugin, ShapeLimits};

pub(super) const HIGHEST_RANK: usize = cubinder_model::model::MAX_RANK as usize;

#[derive(Debug, Clone, Copy)]
pub(super) enum Claim<'e> {
    Always(&'e Expr),
    Never(&'e Expr),
    /// Within limits, or without a value.
    Within(&'e Expr, Interval),
    HasValue(&'e Expr),
}

impl<'e> Claim<'e> {
    pub(super) fn expr(self) -> &'e Expr {
        match self {
            Claim::Always(expr) | Claim::Never(expr) | Claim::Within(expr, _) | Claim::HasValue(expr) => expr,
        }
    }

    fn is_refuted_by(self, value: &Result<Value, EvalError>) -> bool {
        match (self, value) {
            (Claim::Always(_), value) => *value != Ok(Value::Bool(true)),
            (Claim::Never(_), value) => *value == Ok(Value::Bool(true)),
            (Claim::Within(_, allowed), Ok(value)) => match value {
                Value::Array(items) => {
                    items.iter().any(|item| item.as_int().is_some_and(|item| !allowed.contains(item)))
                }
                value => value.as_int().is_some_and(|value| !allowed.contains(value)),
            },
            (Claim::Within(..), Err(_)) => false,
            (Claim::HasValue(_), value) => value.is_err(),
        }
    }
}

type Lists = Vec<Vec<i64>>;

pub(super) enum TrialOutcome {
    Outside,
    Holds,
    Refuted(Case),
    Unknown,
}

/// Attributes, shape inputs' values, other shapes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// Values of attributes, in the order of [`Domain::choosable`].
    pub(super) attributes: Vec<Value>,
    pub(super) inputs: Vec<Vec<i64>>,
}

impl Point {
    pub(super) fn from_case(plugin: &Plugin, case: &Case) -> Point {
        let is_shape_input = |index: usize| plugin.inputs.get(index).is_some_and(|it| it.values.is_some());
        let list = |values: &Vec<i64>| Value::Array(values.iter().copied().map(Value::Int).collect());
        let values = case.values.iter().enumerate().filter(|(index, _)| is_shape_input(*index));
        let shapes = case.shapes.iter().take(plugin.inputs.len()).enumerate();
        Point {
            attributes: case.attributes.iter().cloned().chain(values.map(|(_, it)| list(it))).collect(),
            inputs: shapes
                .map(|(index, shape)| if is_shape_input(index) { Vec::new() } else { shape.clone() })
                .collect(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.attributes.len() + self.inputs.iter().map(|shape| shape.len() + 1).sum::<usize>()
    }

    /// Orders by elements, ranks, shapes, distance from defaults.
    pub(super) fn key(&self, plugin: &Plugin) -> impl PartialOrd + use<> {
        let count = |shape: &Vec<i64>| shape.iter().fold(1_i128, |all, &dim| all.saturating_mul(dim.into()));
        let elements = self.inputs.iter().fold(0_i128, |all, shape| all.saturating_add(count(shape)));
        let ranks: usize = self.inputs.iter().map(Vec::len).sum();
        let defaults = plugin.attributes.iter().map(|attribute| attribute.default.as_ref());
        let defaults = defaults.chain(std::iter::repeat(None));
        let weights: Vec<_> =
            self.attributes.iter().zip(defaults).map(|(value, default)| weight(value, default)).collect();
        (elements, ranks, self.inputs.clone(), weights)
    }
}

pub(super) fn weight(value: &Value, default: Option<&Value>) -> (bool, usize, u128, String) {
    let size = |value: &Value| match value {
        Value::Int(value) => u128::from(value.unsigned_abs()) * 2 + u128::from(*value < 0),
        Value::Bool(value) => u128::from(*value),
        Value::Float(value) => u128::from(*value != 0.0),
        Value::Str(_) | Value::Array(_) => 0,
    };
    let (length, total) = match value {
        Value::Array(items) => {
            (items.len(), items.iter().fold(0_u128, |total, item| total.saturating_add(size(item))))
        }
        Value::Str(text) => (text.len(), 0),
        value => (0, size(value)),
    };
    (default != Some(value), length, total, value.to_string())
}

fn slices(lists: &[Vec<i64>]) -> Vec<&[i64]> {
    lists.iter().map(Vec::as_slice).collect()
}

pub(super) struct Trial<'d, 'p> {
    domain: &'d Domain<'p>,
    claim: Claim<'d>,
    /// Addresses to try; 0 satisfies every alignment.
    alignments: &'static [u64],
    devices: Vec<Option<Device>>,
    /// Whether an output's size is data-dependent; only the largest is tried.
    has_sizes: bool,
    caps: &'d [i64],
    pub(super) steps: usize,
}

impl<'d, 'p> Trial<'d, 'p> {
    pub(super) fn new(domain: &'d Domain<'p>, claim: Claim<'d>, steps: usize) -> Trial<'d, 'p> {
        let exprs = || std::iter::once(claim.expr()).chain(domain.assumptions.iter().copied());
        let (asks, asks_device) = (exprs().any(looks_at_addresses), exprs().any(looks_at_device));
        Trial {
            domain,
            claim,
            alignments: if asks { &[0, 1] } else { &[0] },
            devices: if asks_device { domain.devices.tried() } else { vec![None] },
            has_sizes: domain.plugin.outputs.iter().any(|output| output.size.is_some()),
            caps: domain.caps(),
            steps,
        }
    }

    pub(super) fn is_a_sample(&self) -> bool {
        self.alignments.len() > 1 || self.devices.len() > 1 || self.has_sizes
    }

    pub(super) fn run(&mut self, point: &Point) -> TrialOutcome {
        if self.steps == 0 {
            return TrialOutcome::Unknown;
        }
        self.steps = self.steps.saturating_sub(1 + point.size() / 8);
        let Some((values, inputs)) = self.inputs(point) else { return TrialOutcome::Outside };
        let attributes = point.attributes.get(..self.domain.plugin.attributes.len()).unwrap_or_default();
        let Some((shapes, sizes)) = self.shapes(attributes, &values, inputs) else {
            return if self.steps == 0 { TrialOutcome::Unknown } else { TrialOutcome::Outside };
        };
        let mut result = TrialOutcome::Outside;
        let (tensors, held) = (slices(&shapes), slices(&values));
        let count = self.domain.plugin.tensor_count();
        let alignments: Vec<Vec<u64>> = self.alignments.iter().map(|&all| vec![all; count]).collect();
        let devices = self.devices.iter();
        let worlds = devices.flat_map(|&device| alignments.iter().map(move |all| (device, all)));
        for (device, alignments) in worlds {
            let world = Facts {
                attributes,
                shapes: &tensors,
                values: &held,
                sizes: &sizes,
                device,
                alignments,
                ..Facts::default()
            };
            let assumed = self.domain.assumptions.iter();
            if !assumed.copied().all(|assumption| holds(assumption, &world, &mut self.steps)) {
                continue;
            }
            let value = evaluate_within(self.claim.expr(), &world, &mut self.steps);
            if self.steps == 0 {
                return TrialOutcome::Unknown;
            }
            if self.claim.is_refuted_by(&value) {
                let has_values = values.iter().any(|values| !values.is_empty());
                return TrialOutcome::Refuted(Case {
                    attributes: attributes.to_vec(),
                    values: if has_values { values } else { Vec::new() },
                    shapes,
                    sizes: if self.has_sizes { sizes } else { Vec::new() },
                    device,
                });
            }
            result = TrialOutcome::Holds;
        }
        if self.steps == 0 { TrialOutcome::Unknown } else { result }
    }

    fn inputs(&self, point: &Point) -> Option<(Lists, Lists)> {
        let plugin = self.domain.plugin;
        let choosable = self.domain.choosable();
        let sound = point.inputs.len() == plugin.inputs.len()
            && point.attributes.len() == choosable.len()
            && choosable.iter().zip(&point.attributes).all(|(it, value)| it.check(value).is_ok());
        if !sound {
            return None;
        }
        let values = values_by_input(plugin, point.attributes.get(plugin.attributes.len()..)?)?;
        let inputs = plugin.inputs.iter().zip(point.inputs.iter().zip(&values));
        let shapes: Vec<Vec<i64>> = inputs
            .map(|(input, (chosen, values))| match input.values {
                Some(_) => shape_of_values(input, values),
                None => chosen.clone(),
            })
            .collect();
        let fits = |(index, shape): (usize, &Vec<i64>)| {
            let Some(input) = plugin.inputs.get(index) else { return false };
            let ranks = usize::from(input.rank_min)..=usize::from(input.rank_max);
            let within = |(axis, &dim): (usize, &i64)| {
                self.domain.input_dim(index, axis).is_some_and(|allowed| allowed.contains(dim))
            };
            ranks.contains(&shape.len())
                && shape.len() <= HIGHEST_RANK
                && self.domain.profiled_rank(index).is_none_or(|rank| rank == shape.len())
                && shape.iter().enumerate().all(within)
                && self.fits_numel(index, shape, &input.limits)
        };
        shapes.iter().enumerate().all(fits).then_some((values, shapes))
    }

    fn shapes(
        &mut self,
        attributes: &[Value],
        values: &[Vec<i64>],
        inputs: Vec<Vec<i64>>,
    ) -> Option<(Lists, Vec<Option<i64>>)> {
        let plugin = self.domain.plugin;
        let (tensors, held) = (slices(&inputs), slices(values));
        let alignments = vec![0; plugin.tensor_count()];
        let nothing = Facts {
            attributes,
            shapes: &tensors,
            values: &held,
            alignments: &alignments,
            ..Facts::default()
        };
        let steps = &mut self.steps;
        if !self.domain.requirements().iter().all(|requirement| holds(&requirement.expr, &nothing, steps)) {
            return None;
        }
        let mut sizes = vec![None; plugin.inputs.len()];
        for output in &plugin.outputs {
            let upper = output.size.as_ref().map(|bound| evaluate_within(&bound.upper, &nothing, steps));
            sizes.push(upper.and_then(|upper| upper.ok()?.as_int()).filter(|upper| *upper >= 0));
        }
        let world = Facts { sizes: &sizes, ..nothing };
        let mut shapes = inputs.clone();
        for output in &plugin.outputs {
            let shape = evaluate_within(&output.shape, &world, steps).ok().and_then(|value| value.as_ints());
            match shape.filter(|shape| shape.len() <= HIGHEST_RANK && shape.iter().all(|&dim| dim >= 0)) {
                Some(shape) => shapes.push(shape),
                None if self.domain.with_outputs => return None,
                None => return Some((inputs, sizes)),
            }
        }
        if !self.domain.with_outputs {
            return Some((shapes, sizes));
        }
        let first = plugin.inputs.len();
        let fits = |(index, output): (usize, &cubinder_model::model::Output)| {
            let shape = shapes.get(first + index)?;
            let within = shape.iter().enumerate().all(|(axis, &dim)| output.limits.dim(axis).contains(dim));
            (within && self.fits_numel(first + index, shape, &output.limits)).then_some(())
        };
        plugin.outputs.iter().enumerate().all(|output| fits(output).is_some()).then_some((shapes, sizes))
    }

    fn fits_numel(&self, tensor: usize, shape: &[i64], limits: &ShapeLimits) -> bool {
        let count = shape.iter().try_fold(1_i64, |count, &dim| count.checked_mul(dim));
        // A 0 makes the count 0 despite overflows.
        let count = if shape.contains(&0) { Some(0) } else { count };
        count.is_some_and(|count| {
            limits.numel.contains(count) && self.caps.get(tensor).is_some_and(|&cap| count <= cap)
        })
    }
}

fn holds(condition: &Expr, world: &Facts<'_>, steps: &mut usize) -> bool {
    evaluate_within(condition, world, steps) == Ok(Value::Bool(true))
}

fn looks_at_device(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| matches!(node, Node::Device(_)))
}

fn looks_at_addresses(expr: &Expr) -> bool {
    expr.nodes.iter().any(|node| matches!(node, Node::Aligned { bytes, .. } if *bytes > 1))
}

/// Returns the most elements whose bytes, in the smallest type, fit 64 bits.
pub(super) fn most_elements(plugin: &Plugin, tensor: usize) -> i64 {
    let bits = plugin.variants.iter().filter_map(|variant| variant.types.get(tensor)).map(|ty| ty.bits());
    let most = i128::from(i64::MAX) * 8 / i128::from(bits.min().unwrap_or(8).max(1));
    i64::try_from(most).unwrap_or(i64::MAX)
}

impl Case {
    /// Describes it: `x = [1, 65536], target.values = [2]`.
    #[must_use]
    pub fn describe(&self, plugin: &Plugin) -> String {
        let is_plain = |input: &usize| plugin.inputs.get(*input).is_some_and(|input| input.values.is_none());
        let mut parts = self.shapes_text(plugin, (0..plugin.inputs.len()).filter(is_plain));
        for (index, input) in plugin.inputs.iter().enumerate().filter(|(_, input)| input.values.is_some()) {
            let values = self.values.get(index).map_or(&[][..], Vec::as_slice);
            parts.push(format!("{}.values = {values:?}", input.name));
        }
        let attributes = plugin.attributes.iter().zip(&self.attributes);
        parts.extend(attributes.map(|(attribute, value)| format!("{} = {}", attribute.name, short(value))));
        let facts =
            self.device.iter().flat_map(|device| DeviceFact::ALL.map(|fact| (fact, device.fact(fact))));
        parts.extend(facts.map(|(fact, value)| format!("{fact} = {value}")));
        parts.join(", ")
    }

    fn shapes_text(&self, plugin: &Plugin, tensors: impl Iterator<Item = usize>) -> Vec<String> {
        let shape = |tensor: usize| {
            let (name, shape) = (plugin.tensor_name(tensor)?, self.shapes.get(tensor)?);
            Some(format!("{name} = {shape:?}"))
        };
        tensors.filter_map(shape).collect()
    }
}

fn short(value: &Value) -> String {
    const SHOWN: usize = 8;
    match value {
        Value::Array(items) if items.len() > SHOWN => {
            let first: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
            format!("[{}, ... {} more]", first.join(", "), items.len() - SHOWN)
        }
        value => value.to_string(),
    }
}
