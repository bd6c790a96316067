use super::{Stop, Walk};
use crate::bounds::extent::Extent;
use crate::bounds::ints::{Ints, Wide, floor};
use crate::bounds::term::{Term, TermId};
use crate::node::{BinaryOp, Builtin, Expr, UnaryOp};
use crate::value::Value;

type Learned = Result<(), Stop>;

const END: i128 = 1 << 66;

impl Walk<'_> {
    fn deeper(&mut self, work: impl FnOnce(&mut Self) -> Learned) -> Learned {
        let cost = self.cost;
        self.charge(1)?;
        if self.depth >= Expr::DEPTH_LIMIT {
            self.cost = cost;
            return Ok(());
        }
        self.depth += 1;
        let learned = work(self);
        self.depth -= 1;
        self.cost = cost;
        learned
    }

    /// Assumes that a condition is `truth`, hence has a value; [`Stop::Contradiction`] if impossible.
    pub fn assume(&mut self, id: TermId, truth: bool) -> Learned {
        self.deeper(|walk| {
            walk.record(id, Extent::Known(Value::Bool(truth)))?;
            walk.follow(id, truth)
        })
    }

    #[inline(never)]
    fn follow(&mut self, id: TermId, truth: bool) -> Learned {
        let terms = self.terms;
        match terms.get(id) {
            Some(Term::Unary(UnaryOp::Not, operand)) => self.assume(*operand, !truth),
            Some(Term::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right)) => {
                let (left, right, decides) = (*left, *right, *op == BinaryOp::Or);
                if truth != decides {
                    self.assume(left, truth)?;
                    return self.assume(right, truth);
                }
                self.alternatives(&[(left, truth)], &[(left, !truth), (right, truth)])
            }
            Some(Term::Binary(
                op @ (BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne),
                left,
                right,
            )) => {
                self.has_value(*left)?;
                self.has_value(*right)?;
                self.compare(*op, *left, *right, truth)
            }
            Some(Term::Conditional(condition, then, otherwise)) => {
                let (condition, then, otherwise) = (*condition, *then, *otherwise);
                self.alternatives(
                    &[(condition, true), (then, truth)],
                    &[(condition, false), (otherwise, truth)],
                )
            }
            _ => Ok(()),
        }
    }

    fn alternatives(&mut self, first: &[(TermId, bool)], second: &[(TermId, bool)]) -> Learned {
        match (self.in_scope(first), self.in_scope(second)) {
            (None, None) => Err(Stop::Contradiction),
            (None, Some(_)) => second.iter().try_for_each(|&(id, truth)| self.assume(id, truth)),
            (Some(_), None) => first.iter().try_for_each(|&(id, truth)| self.assume(id, truth)),
            (Some(one), Some(other)) => {
                for (id, extent) in one {
                    let same =
                        other.binary_search_by_key(&id, |(id, _)| *id).ok().and_then(|at| other.get(at));
                    if let Some((_, also)) = same {
                        self.charge(extent.size())?;
                        self.record(id, extent.join(also))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Facts by term; `None` if contradictory. Failing or expensive conditions imply none.
    fn in_scope(&mut self, conditions: &[(TermId, bool)]) -> Option<Vec<(TermId, Extent)>> {
        let mark = self.facts.mark();
        let learned = conditions.iter().try_for_each(|&(id, truth)| self.assume(id, truth));
        let facts = self.facts.learned_since(mark);
        self.facts.back_to(mark);
        match learned {
            Ok(()) => Some(facts),
            Err(Stop::Contradiction) => None,
            Err(Stop::Error(_)) => Some(Vec::new()),
        }
    }

    fn record(&mut self, id: TermId, extent: Extent) -> Result<bool, Stop> {
        self.charge(extent.size())?;
        let met = match self.facts.known(id) {
            Some(known) => known.meet(&extent).ok_or(Stop::Contradiction)?,
            None => extent,
        };
        let met = match self.facts.seen(id) {
            Some(seen) => met.meet(seen).ok_or(Stop::Contradiction)?,
            None => met,
        };
        if self.facts.known(id) == Some(&met) {
            return Ok(false);
        }
        self.facts.set(id, met);
        Ok(true)
    }

    /// Assumes that a term is within `extent`, hence has a value; [`Stop::Contradiction`] if impossible.
    pub fn learn(&mut self, id: TermId, extent: Extent) -> Learned {
        self.has_value(id)?;
        self.narrow(id, extent)
    }

    fn narrow(&mut self, id: TermId, extent: Extent) -> Learned {
        self.deeper(|walk| {
            if !walk.record(id, extent)? {
                return Ok(());
            }
            match walk.facts.known(id).cloned() {
                Some(Extent::Known(Value::Bool(truth))) => walk.follow(id, truth),
                Some(extent) => walk.refine(id, &extent),
                None => Ok(()),
            }
        })
    }

    fn narrow_ints(&mut self, id: TermId, ends: Wide) -> Learned {
        self.narrow_grid(id, (ends, (1, 0)))
    }

    fn narrow_grid(&mut self, id: TermId, (ends, grid): (Wide, Wide)) -> Learned {
        let ints = Ints::on_grid(ends, grid).ok_or(Stop::Contradiction)?;
        if ints == Ints::ANY { Ok(()) } else { self.narrow(id, Extent::of_ints(ints)) }
    }

    /// Assumes that a term, and so its strict operands, has a value.
    pub fn has_value(&mut self, id: TermId) -> Learned {
        if self.facts.known(id).is_some() {
            return Ok(());
        }
        self.deeper(|walk| {
            walk.record(id, Extent::Any)?;
            walk.parts_have_values(id)
        })
    }

    #[inline(never)]
    fn parts_have_values(&mut self, id: TermId) -> Learned {
        let terms = self.terms;
        match terms.get(id) {
            Some(Term::Unary(_, operand)) => self.has_value(*operand),
            Some(Term::Binary(BinaryOp::And | BinaryOp::Or, left, _)) => self.has_value(*left),
            Some(Term::Binary(op, left, right)) => {
                self.has_value(*left)?;
                self.has_value(*right)?;
                if let BinaryOp::FloorDiv | BinaryOp::Mod = op { self.not_zero(*right) } else { Ok(()) }
            }
            Some(Term::Conditional(condition, ..)) => self.has_value(*condition),
            Some(Term::Index(array, index)) => {
                self.has_value(*array)?;
                self.has_value(*index)?;
                let Some(length) = self.glance(*array)?.length() else { return Ok(()) };
                let most = i128::from(length.high);
                self.narrow_ints(*index, (-most, most - 1))
            }
            Some(Term::Array(items)) => items.iter().try_for_each(|&item| self.has_value(item)),
            Some(Term::Call(builtin, args)) => {
                args.iter().try_for_each(|&arg| self.has_value(arg))?;
                let [_, divisor] = args.as_slice() else { return Ok(()) };
                if *builtin == Builtin::CeilDiv { self.not_zero(*divisor) } else { Ok(()) }
            }
            Some(Term::Comprehension { over, .. }) => self.has_value(*over),
            _ => Ok(()),
        }
    }

    fn not_zero(&mut self, id: TermId) -> Learned {
        self.narrow(id, Extent::Int(Ints { nonzero: true, ..Ints::ANY }))
    }

    fn compare(&mut self, op: BinaryOp, left: TermId, right: TermId, truth: bool) -> Learned {
        let (opposite, first, second) = match op {
            BinaryOp::Eq => (BinaryOp::Ne, left, right),
            BinaryOp::Ne => (BinaryOp::Eq, left, right),
            BinaryOp::Lt => (BinaryOp::Le, right, left),
            _ => (BinaryOp::Lt, right, left),
        };
        let (a, b) = (self.glance(left)?, self.glance(right)?);
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let integers = a.ints().is_some() || b.ints().is_some();
        if (equality || integers)
            && let Some(id) = self.terms.comparison(opposite, first, second)
        {
            self.record(id, Extent::Known(Value::Bool(!truth)))?;
        }
        match (op, truth) {
            (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => self.same(left, &a, right, &b),
            (BinaryOp::Eq, false) | (BinaryOp::Ne, true) => self.different(left, &a, right, &b),
            (BinaryOp::Lt, true) => self.less(left, &a, right, &b, integers, 1),
            (BinaryOp::Le, true) => self.less(left, &a, right, &b, integers, 0),
            (BinaryOp::Lt, false) if integers => self.less(right, &b, left, &a, integers, 0),
            (_, false) if integers => self.less(right, &b, left, &a, integers, 1),
            // If neither operand is NaN, the opposite comparison is true.
            (_, false) if a.floats().is_some() && b.floats().is_some() => {
                self.less(right, &b, left, &a, false, 0)
            }
            _ => Ok(()),
        }
    }

    fn same(&mut self, left: TermId, a: &Extent, right: TermId, b: &Extent) -> Learned {
        if a.ints().is_some() || b.ints().is_some() {
            self.facts.differ(left, right, (0, 0));
        }
        // Zeros are equal, so equality does not identify a float.
        let loose = |extent: &Extent| match extent.floats() {
            Some((low, high)) => Extent::Float(low, high),
            None => extent.clone(),
        };
        self.narrow(left, loose(b))?;
        self.narrow(right, loose(a))
    }

    fn different(&mut self, left: TermId, a: &Extent, right: TermId, b: &Extent) -> Learned {
        if let (Some(a), Some(b)) = (a.bools(), b.bools()) {
            for (id, other) in [(left, b), (right, a)] {
                if let Some(value) = other {
                    self.narrow(id, Extent::Known(Value::Bool(!value)))?;
                }
            }
            return Ok(());
        }
        if let (Some(a), Some(b)) = (a.texts(), b.texts()) {
            for (id, texts, other) in [(left, &a, &b), (right, &b, &a)] {
                if let [other] = other.as_slice() {
                    let others = texts.iter().filter(|text| *text != other).cloned().collect();
                    self.narrow(id, Extent::of_texts(others).ok_or(Stop::Contradiction)?)?;
                }
            }
            return Ok(());
        }
        let (Some(a), Some(b)) = (a.ints(), b.ints()) else { return Ok(()) };
        for (id, ints, other) in [(left, a, b), (right, b, a)] {
            match other.single() {
                Some(0) => self.not_zero(id)?,
                Some(value) if value == ints.low => {
                    self.narrow_ints(id, (i128::from(value) + 1, END))?;
                }
                Some(value) if value == ints.high => {
                    self.narrow_ints(id, (-END, i128::from(value) - 1))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Narrows both sides by `left + by <= right`; floats by `left <= right`.
    fn less(
        &mut self,
        left: TermId,
        a: &Extent,
        right: TermId,
        b: &Extent,
        integers: bool,
        by: i128,
    ) -> Learned {
        if integers {
            self.facts.differ(left, right, (-END, -by));
            if let Some(b) = b.ints() {
                self.narrow_ints(left, (-END, i128::from(b.high) - by))?;
            }
            return match a.ints() {
                Some(a) => self.narrow_ints(right, (i128::from(a.low) + by, END)),
                None => Ok(()),
            };
        }
        if let Some((_, high)) = b.floats() {
            self.narrow(left, Extent::Float(f64::NEG_INFINITY, high))?;
        }
        match a.floats() {
            Some((low, _)) => self.narrow(right, Extent::Float(low, f64::INFINITY)),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn refine(&mut self, id: TermId, extent: &Extent) -> Learned {
        let terms = self.terms;
        let Some(term) = terms.get(id) else { return Ok(()) };
        match term {
            Term::Unary(UnaryOp::Neg, operand) => {
                extent.ints().map_or(Ok(()), |ints| self.narrow_grid(*operand, ints.negated()))
            }
            Term::Binary(op, left, right) => {
                extent.ints().map_or(Ok(()), |ints| self.refine_binary(*op, *left, *right, ints))
            }
            Term::Conditional(condition, then, otherwise) => {
                // A side without a value is not taken.
                for (side, other, truth) in [(*then, *otherwise, false), (*otherwise, *then, true)] {
                    if self.glance_lazily(side)?.is_none_or(|side| side.meet(extent).is_none()) {
                        self.assume(*condition, truth)?;
                        return self.learn(other, extent.clone());
                    }
                }
                Ok(())
            }
            Term::Array(items) => {
                let known = items.iter().zip(extent.items().unwrap_or_default());
                known.into_iter().try_for_each(|(&item, known)| self.narrow(item, known))
            }
            Term::Shape(tensor) => {
                for (axis, dim) in (0_u32..).zip(extent.items().unwrap_or_default()) {
                    if let Some(id) = self.terms.find(&Term::Dim(*tensor, axis)) {
                        self.narrow(id, dim)?;
                    }
                }
                Ok(())
            }
            Term::Numel(tensor) => match (extent.ints(), self.glance(id)?.ints()) {
                (Some(ints), Some(_)) => self.refine_numel(*tensor, ints),
                _ => Ok(()),
            },
            Term::Index(array, index) => self.refine_index(*array, *index, extent),
            Term::Call(builtin, args) => self.refine_call(*builtin, args, extent),
            Term::Comprehension { slot, over, condition, .. } => {
                self.refine_comprehension(*slot, *over, *condition, extent)
            }
            _ => Ok(()),
        }
    }

    fn glance_lazily(&mut self, id: TermId) -> Result<Option<Extent>, Stop> {
        match self.glance(id) {
            Ok(extent) => Ok(Some(extent)),
            Err(stop) if stop.is_lazy() => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    fn refine_binary(&mut self, op: BinaryOp, left: TermId, right: TermId, ints: Ints) -> Learned {
        let (Some(a), Some(b)) = (self.glance(left)?.ints(), self.glance(right)?.ints()) else {
            return Ok(());
        };
        match op {
            BinaryOp::Add => {
                self.narrow_grid(left, ints.minus(b))?;
                self.narrow_grid(right, ints.minus(a))
            }
            BinaryOp::Sub => {
                self.narrow_grid(left, ints.plus(b))?;
                self.narrow_grid(right, a.minus(ints))?;
                self.facts.differ(left, right, ints.wide());
                Ok(())
            }
            BinaryOp::Mul => {
                self.factor(left, ints, b.wide())?;
                self.factor(right, ints, a.wide())
            }
            BinaryOp::FloorDiv => match b.single().map(i128::from) {
                Some(by) if by > 0 => {
                    let (low, high) = ints.wide();
                    self.narrow_ints(left, (low * by, high * by + by - 1))
                }
                _ => Ok(()),
            },
            BinaryOp::Mod => match (b.single(), ints.single()) {
                (Some(by), Some(rest)) if by != 0 => {
                    self.narrow_grid(left, ((-END, END), (i128::from(by).abs(), rest.into())))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Narrows a factor of a product; `other` bounds the other factors' product.
    fn factor(&mut self, id: TermId, product: Ints, other: (i128, i128)) -> Learned {
        if !product.contains(0) {
            self.not_zero(id)?;
        }
        if other.0 < 1 {
            return Ok(());
        }
        let ceil = |a: i128, b: i128| -floor(-a, b);
        let (low, high) = product.wide();
        let low = if low > 0 { ceil(low, other.1) } else { ceil(low, other.0) };
        let high = if high >= 0 { floor(high, other.0) } else { floor(high, other.1) };
        self.narrow_ints(id, (low, high))
    }

    fn refine_numel(&mut self, tensor: u32, numel: Ints) -> Learned {
        let Some(rank) = self.env.rank(tensor).and_then(|rank| u32::try_from(rank).ok()) else {
            return Ok(());
        };
        for axis in 0..rank {
            let Some(id) = self.terms.find(&Term::Dim(tensor, axis)) else { continue };
            let others = (0..rank).filter(|&other| other != axis);
            let others = cut_product(others.map(|other| self.range_of_dim(tensor, other)));
            self.factor(id, numel, others)?;
        }
        Ok(())
    }

    fn range_of_dim(&self, tensor: u32, axis: u32) -> Wide {
        let (low, high) = self.env.dim(tensor, axis as usize).unwrap_or((0, i64::MAX));
        let known = self.terms.find(&Term::Dim(tensor, axis)).and_then(|id| self.facts.known(id)?.ints());
        let low = known.map_or(low, |known| known.low.max(low)).max(0);
        let high = known.map_or(high, |known| known.high.min(high)).max(0);
        (low.into(), high.into())
    }

    fn refine_index(&mut self, array: TermId, index: TermId, extent: &Extent) -> Learned {
        let (whole, index) = (self.glance(array)?, self.glance(index)?);
        let (Some(items), Some(index)) = (whole.items(), index.ints().and_then(Ints::single)) else {
            return Ok(());
        };
        let Some(at) = crate::ops::position(items.len(), index) else { return Ok(()) };
        self.charge(items.len())?;
        let mut known = vec![Extent::Any; items.len()];
        if let Some(place) = known.get_mut(at) {
            *place = extent.clone();
        }
        self.narrow(array, Extent::Array(known))
    }

    fn refine_call(&mut self, builtin: Builtin, args: &[TermId], extent: &Extent) -> Learned {
        if let (Builtin::Len, [array]) = (builtin, args) {
            let length = extent.ints();
            return length.map_or(Ok(()), |length| self.narrow(*array, Extent::list(Extent::Any, length)));
        }
        let Some(ints) = extent.ints() else { return Ok(()) };
        let (low, high) = ints.wide();
        let at_least = Extent::Int(Ints { low: ints.low, ..Ints::ANY });
        let at_most = Extent::Int(Ints { high: ints.high, ..Ints::ANY });
        match (builtin, args) {
            (Builtin::Min, [array]) => self.every_element(*array, at_least),
            (Builtin::Max, [array]) => self.every_element(*array, at_most),
            (Builtin::Min, args) => args.iter().try_for_each(|&arg| self.narrow(arg, at_least.clone())),
            (Builtin::Max, args) => args.iter().try_for_each(|&arg| self.narrow(arg, at_most.clone())),
            (Builtin::Abs, [operand]) => self.narrow_ints(*operand, (-high, high)),
            (Builtin::CeilDiv, [dividend, divisor]) => {
                match self.glance(*divisor)?.ints().and_then(Ints::single).map(i128::from) {
                    Some(by) if by > 0 => self.narrow_ints(*dividend, ((low - 1) * by + 1, high * by)),
                    _ => Ok(()),
                }
            }
            (Builtin::Prod, [array]) => self.refine_product(*array, ints),
            _ => Ok(()),
        }
    }

    fn every_element(&mut self, array: TermId, element: Extent) -> Learned {
        let length = self.glance(array)?.length();
        length.map_or(Ok(()), |length| self.narrow(array, Extent::List(Box::new(element), length)))
    }

    fn refine_product(&mut self, array: TermId, product: Ints) -> Learned {
        const MOST: usize = 64;
        let Some(Term::Array(items)) = self.terms.get(array) else { return Ok(()) };
        let extents = self.glance(array)?.items().unwrap_or_default();
        let ranges: Vec<Ints> = extents.iter().map_while(Extent::ints).collect();
        if ranges.len() > MOST || ranges.len() != items.len() || ranges.iter().any(|range| range.low < 0) {
            return Ok(());
        }
        self.charge(ranges.len() * ranges.len())?;
        for (at, &item) in items.iter().enumerate() {
            let others = ranges.iter().enumerate().filter(|(other, _)| *other != at);
            self.factor(item, product, cut_product(others.map(|(_, range)| range.wide())))?;
        }
        Ok(())
    }

    /// Narrows a comprehension's array. Without a condition lengths are equal; if the comprehension is empty, all
    /// elements fail the condition.
    fn refine_comprehension(
        &mut self,
        slot: u32,
        over: TermId,
        condition: Option<TermId>,
        extent: &Extent,
    ) -> Learned {
        let Some(length) = extent.length() else { return Ok(()) };
        let Some(condition) = condition else {
            return self.narrow(over, Extent::list(Extent::Any, length));
        };
        let whole = self.glance(over)?;
        if length.low > 0 {
            let most = whole.length().map_or(i64::MAX, |length| length.high);
            let some = Ints::new(length.low, most).ok_or(Stop::Contradiction)?;
            return self.narrow(over, Extent::List(Box::new(Extent::Any), some));
        }
        if length.single() != Some(0) {
            return Ok(());
        }
        if let Extent::List(element, all) = whole {
            return match self.failing(slot, *element, condition)? {
                Some(element) => self.narrow(over, Extent::list(element, all)),
                None => self.narrow(over, Extent::Known(Value::Array(Vec::new()))),
            };
        }
        let Some(items) = whole.items() else { return Ok(()) };
        let mut failing = Vec::with_capacity(items.len());
        for item in items {
            failing.push(self.failing(slot, item, condition)?.ok_or(Stop::Contradiction)?);
        }
        self.narrow(over, Extent::array(failing))
    }

    /// Bounds elements that fail a condition; `None` if impossible.
    fn failing(&mut self, slot: u32, item: Extent, condition: TermId) -> Result<Option<Extent>, Stop> {
        let Some(local) = self.terms.find(&Term::Local(slot)) else { return Ok(Some(item)) };
        let mark = self.facts.mark();
        self.locals.push((slot, item.clone()));
        let assumed = self.assume(condition, false);
        let known = self.facts.known(local).cloned();
        self.locals.pop();
        self.facts.back_to(mark);
        match assumed {
            Ok(()) => Ok(known.map_or(Some(item.clone()), |known| item.meet(&known))),
            Err(Stop::Contradiction) => Ok(None),
            Err(stop) if stop.is_lazy() => Ok(Some(item)),
            Err(stop) => Err(stop),
        }
    }
}

fn cut_product(ranges: impl Iterator<Item = Wide>) -> Wide {
    const CUT: i128 = 1 << 63;
    ranges.fold((1, 1), |all, range| ((all.0 * range.0).min(CUT), (all.1 * range.1).min(CUT)))
}
