//! Shrinks refuting cases: each step has a smaller key.

use super::case::{Point, Trial, TrialOutcome};
use super::values::groups;
use super::{Case, Domain};
use cubinder_expr::value::Value;

pub(super) fn shrink<'p>(
    domain: &Domain<'p>,
    trial: &mut Trial<'_, 'p>,
    point: Point,
) -> Option<(Point, Case)> {
    let TrialOutcome::Refuted(case) = trial.run(&point) else { return None };
    if domain.is_hasty {
        return Some((point, case));
    }
    let mut shrinker = Shrinker { domain, trial, best: point, case };
    const ROUNDS: usize = 16;
    for _ in 0..ROUNDS {
        let before = shrinker.best.clone();
        shrinker.round();
        if shrinker.best == before {
            break;
        }
    }
    Some((shrinker.best, shrinker.case))
}

struct Shrinker<'s, 'd, 'p> {
    domain: &'s Domain<'p>,
    trial: &'s mut Trial<'d, 'p>,
    best: Point,
    case: Case,
}

impl Shrinker<'_, '_, '_> {
    fn is_spent(&self) -> bool {
        self.trial.steps == 0
    }

    fn take(&mut self, point: Point) -> bool {
        let plugin = self.domain.plugin;
        if self.is_spent() {
            return false;
        }
        self.trial.steps = self.trial.steps.saturating_sub(point.size() / 8);
        if point.key(plugin).partial_cmp(&self.best.key(plugin)) != Some(std::cmp::Ordering::Less) {
            return false;
        }
        match self.trial.run(&point) {
            TrialOutcome::Refuted(case) => {
                self.best = point;
                self.case = case;
                true
            }
            TrialOutcome::Outside | TrialOutcome::Holds | TrialOutcome::Unknown => false,
        }
    }

    fn round(&mut self) {
        self.drop_axes();
        let ranks: Vec<usize> = self.best.inputs.iter().map(Vec::len).collect();
        let count: usize = ranks.iter().sum();
        let singles = (0..count).map(|place| vec![place]);
        for group in groups(&ranks).into_iter().chain(singles) {
            self.lower(&group);
        }
        self.move_sizes(count);
        let given = self.domain.attributes.map_or(0, <[Value]>::len);
        for index in given..self.best.attributes.len() {
            self.plainer(index);
        }
    }

    fn drop_axes(&mut self) {
        let highest = self.best.inputs.iter().map(Vec::len).max().unwrap_or(0);
        for axis in 0..highest {
            if self.is_spent() {
                return;
            }
            let mut point = self.best.clone();
            for shape in point.inputs.iter_mut().filter(|shape| axis < shape.len()) {
                shape.remove(axis);
            }
            self.take(point);
            for input in 0..self.best.inputs.len() {
                if self.is_spent() {
                    return;
                }
                let mut point = self.best.clone();
                if let Some(shape) = point.inputs.get_mut(input).filter(|shape| axis < shape.len()) {
                    shape.remove(axis);
                    self.take(point);
                }
            }
        }
    }

    fn sizes(&self) -> Vec<i64> {
        self.best.inputs.iter().flatten().copied().collect()
    }

    fn try_sizes(&mut self, sizes: &[i64]) -> bool {
        let mut point = self.best.clone();
        for (old, &size) in point.inputs.iter_mut().flatten().zip(sizes) {
            *old = size;
        }
        self.take(point)
    }

    fn cut(&mut self, group: &[usize], size: i64) -> bool {
        if self.is_spent() {
            return false;
        }
        let mut sizes = self.sizes();
        for &place in group {
            if let Some(at) = sizes.get_mut(place).filter(|at| **at > size) {
                *at = size;
            }
        }
        self.try_sizes(&sizes)
    }

    /// Lowers a group's sizes by binary search, assuming monotonicity.
    fn lower(&mut self, group: &[usize]) {
        let largest = |shrinker: &Self| {
            let sizes = shrinker.sizes();
            group.iter().filter_map(|&place| sizes.get(place).copied()).max().unwrap_or(0)
        };
        if (0..4).any(|size| size < largest(self) && self.cut(group, size)) {
            return;
        }
        // Sizes are often multiples of powers of two.
        let start = largest(self);
        let step = 1_i64 << start.trailing_zeros().min(12);
        let mut steps = vec![step, 16, 4, 2, 1];
        steps.retain(|&other| other <= step.max(1));
        for step in steps {
            let (mut low, mut high) = (0, largest(self) / step);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if self.cut(group, middle.saturating_mul(step)) { high = middle } else { low = middle }
            }
        }
        let least = largest(self);
        for less in 1..4 {
            self.cut(group, least - less);
        }
    }

    fn move_sizes(&mut self, count: usize) {
        for first in 0..count {
            for second in first + 1..count {
                if self.is_spent() {
                    return;
                }
                let mut sizes = self.sizes();
                let (Some(&a), Some(&b)) = (sizes.get(first), sizes.get(second)) else { continue };
                sizes.swap(first, second);
                self.try_sizes(&sizes);
                if let Some(both) = a.checked_mul(b) {
                    let mut sizes = self.sizes();
                    for (place, size) in [(first, 1), (second, both)] {
                        if let Some(at) = sizes.get_mut(place) {
                            *at = size;
                        }
                    }
                    self.try_sizes(&sizes);
                }
            }
        }
    }

    fn try_attribute(&mut self, index: usize, value: Value) -> bool {
        let mut point = self.best.clone();
        if let Some(old) = point.attributes.get_mut(index) {
            *old = value;
        }
        self.take(point)
    }

    fn plainer(&mut self, index: usize) {
        let default =
            self.domain.plugin.attributes.get(index).and_then(|attribute| attribute.default.clone());
        if default.is_some_and(|default| self.try_attribute(index, default)) {
            return;
        }
        match self.best.attributes.get(index).cloned() {
            Some(Value::Int(value)) => {
                self.lower_integer(value, &|shrinker, value| {
                    shrinker.try_attribute(index, Value::Int(value))
                });
            }
            Some(Value::Bool(true)) => {
                self.try_attribute(index, Value::Bool(false));
            }
            Some(Value::Float(_)) => {
                for value in [0.0, 1.0, -1.0] {
                    self.try_attribute(index, Value::Float(value));
                }
            }
            Some(Value::Array(items)) => self.plainer_list(index, items.len()),
            _ => {}
        }
    }

    /// Returns the accepted integer nearest to 0, assuming monotonicity.
    fn lower_integer(&mut self, value: i64, take: &dyn Fn(&mut Self, i64) -> bool) {
        for small in [0, 1, -1, 2, 3, 4] {
            if i128::from(small).abs() < i128::from(value).abs() && take(self, small) {
                return;
            }
        }
        let (mut low, mut high) = (0, value);
        while (i128::from(high) - i128::from(low)).abs() > 1 {
            let middle = low + (high / 2 - low / 2);
            if middle == low {
                break;
            }
            if take(self, middle) { high = middle } else { low = middle }
        }
    }

    fn items(&self, index: usize) -> Vec<Value> {
        match self.best.attributes.get(index) {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn plainer_list(&mut self, index: usize, length: usize) {
        const MOST: usize = 32;
        for shorter in (0..length).take(MOST) {
            let items = self.items(index);
            let first = items.iter().take(shorter).cloned().collect();
            let last = items.iter().skip(items.len().saturating_sub(shorter)).cloned().collect();
            if self.try_attribute(index, Value::Array(first)) || self.try_attribute(index, Value::Array(last))
            {
                break;
            }
        }
        for place in 0..self.items(index).len().min(MOST) {
            if let Some(&Value::Int(value)) = self.items(index).get(place) {
                self.lower_integer(value, &|shrinker, value| {
                    let mut items = shrinker.items(index);
                    if let Some(item) = items.get_mut(place) {
                        *item = Value::Int(value);
                    }
                    shrinker.try_attribute(index, Value::Array(items))
                });
            }
        }
    }
}
