use super::{Bounded, Stop, Walk};
use crate::bounds::extent::Extent;
use crate::bounds::ints::{Ints, Wide, corners, floor, gcd};
use crate::bounds::term::{Term, TermId};
use crate::node::Builtin;
use crate::ops::{self, ARRAY_LIMIT, EvalError};
use crate::value::Value;

pub(super) const LONGEST: i64 = ARRAY_LIMIT as i64;

impl Walk<'_> {
    #[inline(never)]
    pub(super) fn index(&mut self, array_id: TermId, index_id: TermId) -> Bounded {
        let array = self.term(array_id)?;
        let index = self.term(index_id)?;
        let (Some(length), Some(index)) = (array.length(), index.ints()) else {
            return self.unsure(Extent::Any);
        };
        let len = self.terms.find(&Term::Call(Builtin::Len, vec![array_id]));
        let below_length = len.is_some_and(|len| self.facts.difference(index_id, len).1 < 0);
        self.total &= index.low >= -length.low && (index.high < length.low || below_length);
        let wrong = || EvalError::IndexOutOfRange {
            index: index.low,
            len: usize::try_from(length.high).unwrap_or(0),
        };
        if index.low >= length.high || index.high < -length.high {
            return Err(wrong().into());
        }
        let Some(items) = array.items() else { return array.element().ok_or_else(|| wrong().into()) };
        self.charge(items.len())?;
        let len = length.low;
        let hit = |position: i64| index.contains(position) || index.contains(position - len);
        let found = (0..len).zip(&items).filter(|(position, _)| hit(*position)).map(|(_, item)| item.clone());
        found.reduce(|all, item| all.join(&item)).ok_or_else(|| wrong().into())
    }

    fn get(&mut self, array: &Extent, index: &Extent, default: &Extent) -> Bounded {
        let (Some(length), Some(index)) = (array.length(), index.ints()) else { return Ok(Extent::Any) };
        let default = (index.low < 0 || index.high >= length.low).then(|| default.clone());
        let found = match array.items() {
            Some(items) => {
                self.charge(items.len())?;
                let hits = (0..length.low).zip(items).filter(|(position, _)| index.contains(*position));
                hits.map(|(_, item)| item).reduce(|all, item| all.join(&item))
            }
            None => array.element().filter(|_| index.high >= 0 && index.low < length.high),
        };
        match (found, default) {
            (Some(found), Some(default)) => Ok(found.join(&default)),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => Err(EvalError::Malformed.into()),
        }
    }

    #[inline(never)]
    pub(super) fn call(&mut self, builtin: Builtin, ids: &[TermId], args: &[Extent]) -> Bounded {
        if let Some(args) = Extent::all_known(args) {
            let range = Extent::Known(ops::call(builtin, &args)?);
            self.charge(range.size())?;
            return Ok(range);
        }
        let text = || {
            let shown: Vec<String> = args.iter().map(Extent::show).collect();
            format!("{}({})", builtin.name(), shown.join(", "))
        };
        match (builtin, args) {
            (Builtin::Min | Builtin::Max | Builtin::Sum | Builtin::Prod, [array]) => match array {
                Extent::List(element, length) => self.reduce_list(builtin, element, *length, text),
                array => match array.items() {
                    Some(items) => self.reduce(builtin, &items, text),
                    None => self.unsure(Extent::Any),
                },
            },
            (Builtin::Min | Builtin::Max, items) => self.reduce(builtin, items, text),
            (Builtin::Abs, [value]) => match (value.ints(), value.floats()) {
                (Some(ints), _) => {
                    let (low, high) = ints.wide();
                    let least = if low > 0 { low } else { (-high).max(i128::from(ints.nonzero)) };
                    self.fitted(((least, high.max(-low)), (1, 0)), text)
                }
                (None, Some((low, high))) => {
                    let least = if low > 0.0 { low } else { (-high).max(0.0) };
                    Ok(Extent::Float(least, high.max(-low)))
                }
                _ => Ok(Extent::Any),
            },
            (Builtin::CeilDiv, [a, b]) => match (a.ints(), b.ints()) {
                (Some(a), Some(b)) => self.quotient(a, b, |a, b| -floor(-a, b), text),
                _ => self.unsure(Extent::Any),
            },
            (Builtin::Len, [array]) => {
                let any = Ints::new(0, LONGEST).unwrap_or(Ints::ANY);
                Ok(Extent::of_ints(array.length().unwrap_or(any)))
            }
            (Builtin::Get, [array, index, default]) => self.get(array, index, default),
            (Builtin::Range, [end]) => self.range(Ints::exactly(0), end.ints(), (0, i128::MAX)),
            (Builtin::Range, [start, end]) => {
                let difference = match *ids {
                    [start, end] => self.facts.difference(end, start),
                    _ => (i128::MIN, i128::MAX),
                };
                match start.ints() {
                    Some(start) => self.range(start, end.ints(), difference),
                    None => self.unsure(Extent::Any),
                }
            }
            (Builtin::Int, [value]) => self.truncated(value),
            (Builtin::Float, [value]) => {
                Ok(value.ints().map_or(Extent::Any, |ints| Extent::Float(ints.low as f64, ints.high as f64)))
            }
            (_, [value]) => self.float_call(builtin, value),
            _ => self.unsure(Extent::Any),
        }
    }

    fn truncated(&mut self, value: &Extent) -> Bounded {
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        match value.floats() {
            Some((low, high)) if low >= -BEYOND && high < BEYOND => {
                let ends = Ints::new(low as i64, high as i64);
                Ok(Extent::of_ints(ends.ok_or(EvalError::Malformed)?))
            }
            _ => self.unsure(Extent::Int(Ints::ANY)),
        }
    }

    fn range(&mut self, start: Ints, end: Option<Ints>, difference: Wide) -> Bounded {
        let Some(end) = end else { return self.unsure(Extent::Any) };
        let ((low, high), _) = end.minus(start);
        let (low, high) = (low.max(difference.0).max(0), high.min(difference.1).max(0));
        let longest = i128::from(LONGEST);
        if low > longest {
            return Err(EvalError::ArrayTooLong(low.to_string()).into());
        }
        self.total &= high <= longest;
        let cut = |value: i128| i64::try_from(value.min(longest)).unwrap_or(LONGEST);
        let length = Ints::new(cut(low), cut(high)).ok_or(EvalError::Malformed)?;
        self.cost = self.cost.saturating_add(u64::try_from(length.high).unwrap_or(0));
        match Ints::new(start.low, end.high.saturating_sub(1)) {
            Some(element) => Ok(Extent::list(Extent::of_ints(element), length)),
            None => Ok(Extent::Known(Value::Array(Vec::new()))),
        }
    }

    fn reduce(&mut self, builtin: Builtin, items: &[Extent], text: impl FnOnce() -> String) -> Bounded {
        if builtin == Builtin::Prod {
            return self.product(items);
        }
        if builtin != Builtin::Sum && !items.is_empty() {
            let floats: Option<Vec<(f64, f64)>> = items.iter().map(Extent::floats).collect();
            if let Some(floats) = floats {
                let pick = if builtin == Builtin::Min { f64::min } else { f64::max };
                let ends = floats.into_iter().reduce(|a, b| (pick(a.0, b.0), pick(a.1, b.1)));
                return Ok(ends.map_or(Extent::Any, |(low, high)| Extent::Float(low, high)));
            }
        }
        let mut total: Option<Ints> = None;
        let mut sum = ((0, 0), (0, 0));
        for item in items {
            let Some(item) = item.ints() else { return self.unsure(Extent::Any) };
            if builtin == Builtin::Sum {
                let (ends, grid) = item.plus(Ints::exactly(0));
                sum = ((sum.0.0 + ends.0, sum.0.1 + ends.1), join_grids(sum.1, grid));
            }
            total = Some(total.map_or(item, |total| extreme(builtin, total, item)));
        }
        match total {
            _ if builtin == Builtin::Sum => self.fitted(sum, text),
            Some(total) => Ok(Extent::of_ints(total)),
            None => Err(EvalError::Undefined(text()).into()),
        }
    }

    fn reduce_list(
        &mut self,
        builtin: Builtin,
        element: &Extent,
        length: Ints,
        text: impl FnOnce() -> String,
    ) -> Bounded {
        let Some(item) = element.ints() else { return self.unsure(Extent::Any) };
        let (ends, grid) = item.plus(Ints::exactly(0));
        match builtin {
            Builtin::Sum => {
                let range = corners(ends, length.wide(), |item, count| item * count);
                self.fitted((range, (gcd(grid.0, grid.1), 0)), text)
            }
            Builtin::Min | Builtin::Max => {
                self.total &= length.low > 0;
                Ok(element.clone())
            }
            _ if ends.0 >= 0 && ends.1 <= 1 => self.fitted(((ends.0, 1), (1, 0)), text),
            _ => self.unsure(Extent::Int(Ints { low: if ends.0 >= 0 { 0 } else { i64::MIN }, ..Ints::ANY })),
        }
    }

    pub(super) fn product(&mut self, items: &[Extent]) -> Bounded {
        // Larger products fit again only after a factor of 0, which is in the range.
        const CUT: i128 = (1 << 63) + 1;
        let (mut total, mut grid) = ((1_i128, 1_i128), Some(Ints::exactly(1)));
        for item in items {
            let Some(ints) = item.ints() else { return self.unsure(Extent::Any) };
            total = corners(total, ints.wide(), |a, b| a * b);
            total = (total.0.clamp(-CUT, CUT), total.1.clamp(-CUT, CUT));
            grid = grid.and_then(|grid| {
                let (_, (modulus, rest)) = grid.times(ints);
                if modulus == 0 {
                    i64::try_from(rest).ok().map(Ints::exactly)
                } else {
                    Ints::on_grid(Ints::ANY.wide(), (modulus, rest))
                }
            });
        }
        let grid = grid.map_or((1, 0), |grid| grid.plus(Ints::exactly(0)).1);
        self.fitted((total, grid), || items.iter().map(Extent::show).collect::<Vec<String>>().join(" * "))
    }

    #[inline(never)]
    pub(super) fn comprehension(
        &mut self,
        slot: u32,
        over: TermId,
        condition: Option<TermId>,
        body: TermId,
    ) -> Bounded {
        match self.term(over)? {
            Extent::List(element, length) => self.over_list(slot, *element, length, condition, body),
            over => match over.items() {
                Some(items) => self.over_items(slot, items, condition, body),
                None => self.unsure(Extent::Any),
            },
        }
    }

    fn over_items(&mut self, slot: u32, over: Vec<Extent>, when: Option<TermId>, body: TermId) -> Bounded {
        let mut items = Vec::new();
        let mut perhaps = 0_i64;
        for item in over {
            match self.element(slot, item, when, body)? {
                Element::Kept(range) => items.push(range),
                Element::LeftOut => {}
                Element::Perhaps(range) => {
                    items.push(range);
                    perhaps += 1;
                }
            }
        }
        if perhaps == 0 {
            return Ok(Extent::array(items));
        }
        let most = i64::try_from(items.len()).map_err(|_| EvalError::Malformed)?;
        let element = items.into_iter().reduce(|all, item| all.join(&item)).unwrap_or(Extent::Any);
        let length = Ints::new(most - perhaps, most).ok_or(EvalError::Malformed)?;
        Ok(Extent::list(element, length))
    }

    fn over_list(
        &mut self,
        slot: u32,
        element: Extent,
        length: Ints,
        condition: Option<TermId>,
        body: TermId,
    ) -> Bounded {
        let (total, cost) = (self.total, self.cost);
        let found = self.element(slot, element, condition, body);
        let each = self.cost - cost;
        let times = u64::try_from(length.high).unwrap_or(0);
        self.cost = cost.saturating_add(each.saturating_mul(times));
        let none = || Extent::Known(Value::Array(Vec::new()));
        match found {
            Ok(Element::LeftOut) => Ok(none()),
            Ok(Element::Kept(range)) => Ok(Extent::list(range, length)),
            Ok(Element::Perhaps(range)) => {
                let length = Ints::new(0, length.high).ok_or(EvalError::Malformed)?;
                Ok(Extent::list(range, length))
            }
            // The array is empty.
            Err(Stop::Contradiction) if length.low == 0 => {
                self.total = total;
                Ok(none())
            }
            Err(stop) if stop.is_lazy() && length.low == 0 => self.unsure(none()),
            Err(stop) => Err(stop),
        }
    }

    pub(super) fn element(
        &mut self,
        slot: u32,
        item: Extent,
        condition: Option<TermId>,
        body: TermId,
    ) -> Result<Element, Stop> {
        let mark = self.facts.mark();
        self.locals.push((slot, item));
        let found = self.kept(condition, body);
        self.locals.pop();
        self.facts.back_to(mark);
        found
    }

    fn kept(&mut self, condition: Option<TermId>, body: TermId) -> Result<Element, Stop> {
        let Some(condition) = condition else { return self.term(body).map(Element::Kept) };
        match self.term(condition)?.bools() {
            Some(Some(true)) => return self.term(body).map(Element::Kept),
            Some(Some(false)) => return Ok(Element::LeftOut),
            _ => {}
        }
        let total = self.total;
        match self.assume(condition, true) {
            Ok(()) => {}
            Err(Stop::Contradiction) => return Ok(Element::LeftOut),
            Err(stop) if stop.is_lazy() => self.total = false,
            Err(stop) => return Err(stop),
        }
        match self.term(body) {
            Ok(range) => Ok(Element::Perhaps(range)),
            Err(Stop::Contradiction) => {
                self.total = total;
                Ok(Element::LeftOut)
            }
            Err(stop) if stop.is_lazy() => {
                self.total = false;
                Ok(Element::LeftOut)
            }
            Err(stop) => Err(stop),
        }
    }
}

pub(super) enum Element {
    Kept(Extent),
    LeftOut,
    Perhaps(Extent),
}

fn extreme(builtin: Builtin, a: Ints, b: Ints) -> Ints {
    let (low, high) = if builtin == Builtin::Min {
        (a.low.min(b.low), a.high.min(b.high))
    } else {
        (a.low.max(b.low), a.high.max(b.high))
    };
    // One of the operands, so on the union of their grids.
    let cut = Ints { low, high, ..Ints::ANY };
    a.join(b).meet(cut).unwrap_or(cut)
}

fn join_grids(a: (i128, i128), b: (i128, i128)) -> (i128, i128) {
    (gcd(a.0, b.0), a.1 + b.1)
}
