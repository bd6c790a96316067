mod arrays;
mod floats;
mod narrow;

use crate::bounds::extent::{Extent, at_most, equal, less};
use crate::bounds::facts::Facts;
use crate::bounds::given::RangeEnvironment;
use crate::bounds::ints::{Ints, Wide, corners, divisors, floor};
use crate::bounds::term::{Term, TermId, Terms};
use crate::node::{BinaryOp, Expr, UnaryOp};
use crate::ops::{self, EvalError, STEP_LIMIT};
use crate::value::Value;
use arrays::LONGEST;

/// Why a walk has no result. A contradiction proves that the place is never evaluated. A side's becomes `None`: only
/// outer facts can contradict.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// Evaluation always fails, or the walk cannot continue.
    Error(EvalError),
    /// The facts contradict each other.
    Contradiction,
}

impl From<EvalError> for Stop {
    fn from(error: EvalError) -> Stop {
        Stop::Error(error)
    }
}

impl Stop {
    fn is_lazy(&self) -> bool {
        match self {
            Stop::Error(error) => error.is_about_values(),
            Stop::Contradiction => true,
        }
    }
}

/// A walk with its facts.
pub struct Walk<'a> {
    terms: &'a Terms,
    env: &'a dyn RangeEnvironment,
    facts: Facts,
    locals: Vec<(u32, Extent)>,
    total: bool,
    steps: usize,
    /// Upper bound of evaluation's cost.
    cost: u64,
    depth: usize,
}

type Bounded = Result<Extent, Stop>;

impl<'a> Walk<'a> {
    /// Creates a walk under `facts`, limited to `steps`.
    pub fn new(terms: &'a Terms, env: &'a dyn RangeEnvironment, facts: Facts, steps: usize) -> Walk<'a> {
        Walk { terms, env, facts, locals: Vec::new(), total: true, steps, cost: 0, depth: 0 }
    }

    /// Returns whether evaluation never fails under the facts.
    pub fn is_total(&self) -> bool {
        self.total && self.cost <= STEP_LIMIT as u64
    }

    /// Returns the remaining steps.
    pub fn left(&self) -> usize {
        self.steps
    }

    /// Returns the learned facts.
    pub fn into_facts(self) -> Facts {
        self.facts
    }

    fn charge(&mut self, steps: usize) -> Result<(), Stop> {
        self.cost = self.cost.saturating_add(steps as u64);
        self.steps = self.steps.checked_sub(steps).ok_or(EvalError::TooManySteps)?;
        Ok(())
    }

    fn unsure(&mut self, range: Extent) -> Bounded {
        self.total = false;
        Ok(range)
    }

    /// Bounds a term.
    pub fn term(&mut self, id: TermId) -> Bounded {
        self.charge(1)?;
        if self.depth >= Expr::DEPTH_LIMIT {
            return Err(EvalError::Malformed.into());
        }
        let total = self.total;
        self.depth += 1;
        let found = self.dispatch(id);
        self.depth -= 1;
        self.with_facts(id, found, total)
    }

    fn with_facts(&mut self, id: TermId, found: Bounded, total: bool) -> Bounded {
        let range = match (found, self.facts.known(id)) {
            (Ok(range), None) => range,
            (Ok(range), Some(known)) => {
                self.total = total;
                match known {
                    Extent::Any => range,
                    known => range.meet(known).ok_or(Stop::Contradiction)?,
                }
            }
            (Err(stop), Some(_)) if stop.is_lazy() => return Err(Stop::Contradiction),
            (Err(stop), _) => return Err(stop),
        };
        self.charge(range.size() - 1)?;
        if let Extent::List(..) = range
            && let Some(Term::Attribute(_) | Term::Local(_) | Term::Shape(_) | Term::Values(_)) =
                self.terms.get(id)
        {
            // Evaluation copies the value.
            self.cost = self.cost.saturating_add(range.most_values());
        }
        self.facts.see(id, range.clone());
        Ok(range)
    }

    /// Uses an earlier result: cheap, possibly too wide.
    fn glance(&mut self, id: TermId) -> Bounded {
        if let Some(seen) = self.facts.seen(id) {
            let seen = seen.clone();
            self.charge(seen.size())?;
            return match self.facts.known(id) {
                Some(known) => seen.meet(known).ok_or(Stop::Contradiction),
                None => Ok(seen),
            };
        }
        let (total, cost) = (self.total, self.cost);
        let range = self.term(id);
        (self.total, self.cost) = (total, cost);
        range
    }

    fn dispatch(&mut self, id: TermId) -> Bounded {
        let terms = self.terms;
        match terms.get(id).ok_or(EvalError::Malformed)? {
            Term::Array(items) => self.extents(items).map(Extent::array),
            Term::Unary(op, operand) => {
                let operand = self.term(*operand)?;
                self.unary(*op, &operand)
            }
            Term::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                self.logical(*op, *left, *right)
            }
            Term::Binary(op, left, right) => self.binary(*op, *left, *right),
            Term::Conditional(condition, then, otherwise) => self.conditional(*condition, *then, *otherwise),
            Term::Index(array, index) => self.index(*array, *index),
            Term::Call(builtin, args) => {
                let ranges = self.extents(args)?;
                self.call(*builtin, args, &ranges)
            }
            Term::Comprehension { slot, over, condition, body } => {
                self.comprehension(*slot, *over, *condition, *body)
            }
            leaf => self.leaf(leaf),
        }
    }

    fn extents(&mut self, items: &[TermId]) -> Result<Vec<Extent>, Stop> {
        // Iterator adapters use more stack.
        let mut ranges = Vec::with_capacity(items.len());
        for &item in items {
            ranges.push(self.term(item)?);
        }
        Ok(ranges)
    }

    #[inline(never)]
    fn leaf(&mut self, term: &Term) -> Bounded {
        match term {
            Term::Int(value) => Ok(Extent::Known(Value::Int(*value))),
            Term::Float(bits) => Ok(Extent::Known(Value::Float(f64::from_bits(*bits)))),
            Term::Bool(value) => Ok(Extent::Known(Value::Bool(*value))),
            Term::Str(value) => Ok(Extent::Known(Value::Str(value.clone()))),
            Term::Attribute(attribute) => match self.env.attribute(*attribute) {
                Some(value) => Ok(Extent::Known(value.clone())),
                None => match self.env.attribute_range(*attribute) {
                    Some(range) => Ok(range.0),
                    None => self.unsure(Extent::Any),
                },
            },
            Term::Rank(tensor) => Ok(Extent::of_ints(self.rank(*tensor))),
            Term::Shape(tensor) => self.shape(*tensor),
            Term::Dim(tensor, axis) => self.dim(*tensor, *axis),
            Term::Numel(tensor) => self.numel(*tensor),
            Term::Aligned(_, bytes) => Ok(Extent::of_bool((*bytes <= 1).then_some(true))),
            Term::Device(fact) => between(self.env.device(*fact)),
            Term::Values(tensor) => self.values(*tensor),
            Term::Size(tensor) => between(self.env.size(*tensor)),
            Term::Local(slot) => {
                let found = self.locals.iter().rev().find(|(found, _)| found == slot);
                Ok(found.map(|(_, range)| range.clone()).ok_or(EvalError::Malformed)?)
            }
            _ => Err(EvalError::Malformed.into()),
        }
    }

    fn rank(&self, tensor: u32) -> Ints {
        let (low, high) = self.env.rank(tensor).map_or(self.env.rank_range(tensor), |rank| (rank, rank));
        let wide = |rank: usize| i64::try_from(rank).unwrap_or(i64::MAX);
        Ints::new(wide(low), wide(high)).unwrap_or(Ints::exactly(wide(low)))
    }

    fn shape(&mut self, tensor: u32) -> Bounded {
        let Some(rank) = self.env.rank(tensor) else {
            let mut rank = self.rank(tensor);
            if let Some(known) =
                self.terms.find(&Term::Rank(tensor)).and_then(|id| self.facts.known(id)?.ints())
            {
                rank = rank.meet(known).ok_or(Stop::Contradiction)?;
            }
            let any = (0..HIGHEST_AXIS).map(|axis| self.env.dim(tensor, axis).unwrap_or((0, i64::MAX)));
            let dim = any.fold((i64::MAX, 0), |all, dim| (all.0.min(dim.0), all.1.max(dim.1)));
            return Ok(Extent::list(between(dim)?, rank));
        };
        self.charge(rank)?;
        let mut dims = Vec::with_capacity(rank);
        for axis in 0..rank {
            dims.push(self.dim(tensor, u32::try_from(axis).map_err(|_| EvalError::Malformed)?)?);
        }
        Ok(Extent::array(dims))
    }

    /// Also uses facts about the whole shape.
    fn dim(&mut self, tensor: u32, axis: u32) -> Bounded {
        let mut dim = between(self.env.dim(tensor, axis as usize).unwrap_or((0, i64::MAX)))?;
        if let Some(known) = self.terms.find(&Term::Dim(tensor, axis)).and_then(|id| self.facts.known(id)) {
            dim = dim.meet(known).ok_or(Stop::Contradiction)?;
        }
        let shape = self.terms.find(&Term::Shape(tensor)).and_then(|id| self.facts.known(id));
        if let Some(Extent::Array(dims)) = shape
            && let Some(known) = dims.get(axis as usize)
        {
            dim = dim.meet(known).ok_or(Stop::Contradiction)?;
        }
        Ok(dim)
    }

    fn numel(&mut self, tensor: u32) -> Bounded {
        let given = self.env.numel(tensor);
        let total = self.total;
        let product = match self.shape(tensor)?.items() {
            Some(dims) => self.product(&dims)?,
            None => self.unsure(Extent::Int(Ints { low: 0, ..Ints::ANY }))?,
        };
        let Some(given) = given else { return Ok(product) };
        self.total = total;
        product.meet(&between(given)?).ok_or(Stop::Contradiction)
    }

    fn values(&mut self, tensor: u32) -> Bounded {
        let value = between(self.env.values(tensor))?;
        let total = self.total;
        let count = self.numel(tensor)?;
        // Evaluation counts values without multiplying extents.
        self.total = total;
        let count = count.ints().ok_or(EvalError::Malformed)?;
        self.total &= count.high <= LONGEST;
        let most = Ints::new(0, LONGEST).ok_or(EvalError::Malformed)?;
        let wrong = || EvalError::ArrayTooLong(count.low.to_string());
        Ok(Extent::list(value, count.meet(most).ok_or_else(wrong)?))
    }

    fn fitted(&mut self, (ends, grid): (Wide, (i128, i128)), text: impl FnOnce() -> String) -> Bounded {
        let fits = |end: i128| i64::try_from(end).is_ok();
        self.total &= fits(ends.0) && fits(ends.1);
        match Ints::on_grid(ends, grid) {
            Some(ints) => Ok(Extent::of_ints(ints)),
            None => Err(EvalError::Overflow { kind: "integer", operation: text() }.into()),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Extent) -> Bounded {
        match (op, operand) {
            (_, Extent::Known(value)) => Ok(ops::unary(op, value).map(Extent::Known)?),
            (UnaryOp::Neg, Extent::Int(ints)) => {
                self.fitted(ints.negated(), || format!("-{}", operand.show()))
            }
            (UnaryOp::Neg, Extent::Float(low, high)) => Ok(Extent::Float(-high, -low)),
            (UnaryOp::Not, _) => Ok(Extent::Bool),
            // Negating a float never fails.
            (UnaryOp::Neg, _) => Ok(Extent::Any),
        }
    }

    fn logical(&mut self, op: BinaryOp, left: TermId, right: TermId) -> Bounded {
        let decides = op == BinaryOp::Or;
        match self.term(left)?.bools() {
            Some(Some(value)) if value == decides => return Ok(Extent::Known(Value::Bool(value))),
            Some(Some(_)) => return self.term(right),
            _ => {}
        }
        match self.given(left, !decides, right) {
            Ok(Some(Extent::Known(Value::Bool(value)))) if value == decides => {
                Ok(Extent::Known(Value::Bool(value)))
            }
            Ok(Some(_)) => Ok(Extent::Bool),
            // The left side decides if it has a value, which was recorded.
            Ok(None) => Ok(Extent::Known(Value::Bool(decides))),
            Err(stop) if stop.is_lazy() => self.unsure(Extent::Known(Value::Bool(decides))),
            Err(stop) => Err(stop),
        }
    }

    /// Bounds a term where a condition is `truth`; `None` if never.
    fn given(&mut self, condition: TermId, truth: bool, id: TermId) -> Result<Option<Extent>, Stop> {
        let (mark, total) = (self.facts.mark(), self.total);
        let range = self.assume(condition, truth).and_then(|()| self.term(id));
        self.facts.back_to(mark);
        match range {
            Err(Stop::Contradiction) => {
                self.total = total;
                Ok(None)
            }
            range => range.map(Some),
        }
    }

    fn conditional(&mut self, condition: TermId, then: TermId, otherwise: TermId) -> Bounded {
        let before = std::mem::replace(&mut self.total, true);
        let found = self.term(condition);
        let always_decides = self.total;
        self.total &= before;
        if let Some(Some(value)) = found?.bools() {
            return self.term(if value { then } else { otherwise });
        }
        let then = match self.given(condition, true, then) {
            Err(stop) if !stop.is_lazy() => return Err(stop),
            then => then,
        };
        match (then, self.given(condition, false, otherwise)) {
            (_, Err(stop)) if !stop.is_lazy() => Err(stop),
            (Ok(Some(then)), Ok(Some(otherwise))) => {
                self.charge(then.size())?;
                Ok(then.join(&otherwise))
            }
            (Ok(None), Ok(Some(side))) | (Ok(Some(side)), Ok(None)) => Ok(side),
            (Ok(None), Ok(None)) if always_decides => Err(Stop::Contradiction),
            (Ok(None), Ok(None)) => Err(EvalError::Undefined("the value of the condition".into()).into()),
            (Err(_), Ok(Some(side))) | (Ok(Some(side)), Err(_)) => self.unsure(side),
            (Err(stop), _) | (_, Err(stop)) => Err(stop),
        }
    }

    #[inline(never)]
    fn binary(&mut self, op: BinaryOp, left_id: TermId, right_id: TermId) -> Bounded {
        let left = self.term(left_id)?;
        let right = self.term(right_id)?;
        if let (Extent::Known(left), Extent::Known(right)) = (&left, &right) {
            return Ok(ops::binary(op, left, right).map(Extent::Known)?);
        }
        if let BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge = op {
            self.charge(left.size())?;
            return Ok(Extent::of_bool(self.compared(op, (left_id, &left), (right_id, &right))));
        }
        let (Some(a), Some(b)) = (left.ints(), right.ints()) else { return self.floats(op, &left, &right) };
        let text = || format!("{} {} {}", left.show(), op.symbol(), right.show());
        match op {
            BinaryOp::Add => self.fitted(a.plus(b), text),
            BinaryOp::Sub => {
                let (ends, grid) = a.minus(b);
                let known = self.facts.difference(left_id, right_id);
                let ends = (ends.0.max(known.0), ends.1.min(known.1));
                if ends.0 > ends.1 { Err(Stop::Contradiction) } else { self.fitted((ends, grid), text) }
            }
            BinaryOp::Mul => self.fitted(a.times(b), text),
            BinaryOp::FloorDiv => self.quotient(a, b, floor, text),
            BinaryOp::Mod => self.remainder(a, b, text),
            _ => Err(EvalError::Kind { operation: op.symbol(), found: text() }.into()),
        }
    }

    fn compared(&self, op: BinaryOp, left: (TermId, &Extent), right: (TermId, &Extent)) -> Option<bool> {
        let by_range = match op {
            BinaryOp::Eq => equal(left.1, right.1),
            BinaryOp::Ne => equal(left.1, right.1).map(|same| !same),
            BinaryOp::Lt => less(left.1, right.1),
            // Terms contain no `>` or `>=`.
            _ => at_most(left.1, right.1),
        };
        if by_range.is_some() || left.1.ints().is_none() {
            return by_range;
        }
        let (low, high) = self.facts.difference(left.0, right.0);
        let decided = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        let apart = low > 0 || high < 0;
        match op {
            BinaryOp::Eq => decided(low == 0 && high == 0, apart),
            BinaryOp::Ne => decided(apart, low == 0 && high == 0),
            BinaryOp::Lt => decided(high < 0, low >= 0),
            _ => decided(high <= 0, low > 0),
        }
    }

    fn quotient(
        &mut self,
        a: Ints,
        b: Ints,
        divide: fn(i128, i128) -> i128,
        text: impl FnOnce() -> String,
    ) -> Bounded {
        let range = divisors(b.wide()).map(|part| corners(a.wide(), part, divide)).reduce(hull);
        self.total &= !b.contains(0);
        let Some(range) = range else { return Err(EvalError::DivisionByZero(text()).into()) };
        let exact = a.divided(b);
        // Rounding up keeps only exact grids.
        let rounds_alike = divide(1, 2) == 0 || exact.0 > 1 && a.rest % b.high == 0;
        self.fitted((range, if rounds_alike { exact } else { (1, 0) }), text)
    }

    fn remainder(&mut self, a: Ints, b: Ints, text: impl FnOnce() -> String) -> Bounded {
        let dividend = a.wide();
        let range = divisors(b.wide()).map(|part| {
            if part.0 == part.1 && floor(dividend.0, part.0) == floor(dividend.1, part.0) {
                // No multiple of the divisor is between the ends: the remainder is monotone.
                let base = floor(dividend.0, part.0) * part.0;
                (dividend.0 - base, dividend.1 - base)
            } else if part.0 > 0 && dividend.0 >= 0 {
                let low = if dividend.1 < part.0 { dividend.0 } else { 0 };
                (low, dividend.1.min(part.1 - 1))
            } else if part.0 > 0 {
                (0, part.1 - 1)
            } else {
                (part.0 + 1, 0)
            }
        });
        let range = range.reduce(hull);
        self.total &= !b.contains(0);
        match range {
            Some(range) => self.fitted((range, a.remaining(b)), text),
            None => Err(EvalError::DivisionByZero(text()).into()),
        }
    }
}

fn between((low, high): (i64, i64)) -> Bounded {
    Ints::new(low, high).map(Extent::of_ints).ok_or(Stop::Contradiction)
}

fn hull(one: Wide, other: Wide) -> Wide {
    (one.0.min(other.0), one.1.max(other.1))
}

const HIGHEST_AXIS: usize = crate::bounds::given::HIGHEST_RANK;
