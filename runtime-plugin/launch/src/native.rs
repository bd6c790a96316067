//! Launches that TensorRT makes itself: one kernel per node, no plugin library at run time.
//!
//! `IPluginV3QuickAOTBuild` (`impl/NvInferPythonPlugin.h`, TensorRT Enterprise 11.4) accepts dimension expressions for
//! grid, block, dynamic shared memory and 32-bit scalars. Arguments: addresses of inputs, scalars, addresses of
//! unaliased outputs.
//!
//! Owns which launches qualify ([`obstacles`], [`argument_mismatch`]) and their expressions ([`words`], [`lower`]).

mod evaluate;
mod limits;
mod obstacles;
mod precompiled;
#[cfg(test)]
mod tests;
mod unproved;

use crate as launch;
use crate::{Limit, Problem, Role};
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::sorted_set;
use cubinder_expr::value::Value;
use cubinder_expr::{
    BinaryOp, Builtin, Environment, EvalError, Expr, LowerError, Node, ShapeBuilder, ShapeOp, Symbol,
    lower_scalar, lower_value,
};
use cubinder_model::code::TargetKind;
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_GRID, MAX_THREADS};
use cubinder_model::model::{ArgValue, Guard, Launch, Plugin, Requirement, Variant};

pub use evaluate::{NoNumber, evaluate};
pub use limits::{limits, sizes};
pub use obstacles::{Obstacle, obstacles};
pub use precompiled::{ArgumentMismatch, argument_mismatch};
pub use unproved::{Unproved, running, unproved, writes};

/// A 32-bit parameter between inputs and outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Not 0 for an empty launch: one block exits, since TensorRT rejects empty grids.
    Nothing,
    /// An argument's element, or half of one.
    Element {
        /// Index of the argument, in the kernel's order.
        arg: usize,
        /// Index in an array; 0 for a scalar.
        element: usize,
        /// The element's bits.
        part: WordPart,
    },
}

/// Bits of a value in a word; narrower values are extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordPart {
    /// All bits.
    Whole,
    /// Low 32 bits.
    Low,
    /// High 32 bits.
    High,
}

impl WordPart {
    /// Returns a type's parts, in order.
    #[must_use]
    pub fn for_type(ty: ScalarType) -> &'static [WordPart] {
        if ty.size() > 4 { &[WordPart::Low, WordPart::High] } else { &[WordPart::Whole] }
    }
}

/// Returns a wrapper kernel's words, in order.
#[must_use]
pub fn words(launch: &Launch) -> Vec<Word> {
    let elements = |value: &ArgValue| match value {
        ArgValue::Scalar { ty, .. } => Some((*ty, 1)),
        ArgValue::Array { ty, len, .. } => Some((*ty, *len as usize)),
        ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => None,
    };
    let of_args = launch.args.iter().enumerate().filter_map(|(arg, it)| Some((arg, elements(&it.value)?)));
    let of_args = of_args.flat_map(|(arg, (ty, count))| {
        (0..count).flat_map(move |element| {
            WordPart::for_type(ty).iter().map(move |part| Word::Element { arg, element, part: *part })
        })
    });
    std::iter::once(Word::Nothing).chain(of_args).collect()
}

/// Returns whether TensorRT launches the plugin's code.
#[must_use]
pub fn is_native(plugin: &Plugin) -> bool {
    let mut launches = plugin.variants.iter().flat_map(Variant::launches);
    launches.any(|launch| launch.code.iter().any(|code| code.target.kind == TargetKind::Native))
}

/// Maximum dynamic shared bytes without `cuFuncSetAttribute`, which TensorRT may omit (CUDA Programming Guide 13.0,
/// "Shared Memory").
pub const SHARED_BYTES: i64 = 48 << 10;

const AROUND: &str = "cubinder__";
const OWN: &str = "cubinder_own__";
const BETWEEN: &str = "__";

/// Returns an op's wrapper kernel: `cubinder__sample__circ_pad_plugin`.
#[must_use]
pub fn symbol(namespace: &str, name: &str) -> String {
    symbol_of(AROUND, namespace, name)
}

/// Returns the symbol of a precompiled kernel without wrapper.
#[must_use]
pub fn own_symbol(namespace: &str, name: &str) -> String {
    symbol_of(OWN, namespace, name)
}

fn symbol_of(begin: &str, namespace: &str, name: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    format!("{begin}{}{BETWEEN}{}", plain(namespace), plain(name))
}

/// Returns a symbol's op, `sample::circ_pad_plugin`, if any.
#[must_use]
pub fn op_of_symbol(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix(OWN).or_else(|| symbol.strip_prefix(AROUND))?;
    let (namespace, name) = rest.split_once(BETWEEN)?;
    Some(if namespace.is_empty() { name.to_owned() } else { format!("{namespace}::{name}") })
}

/// Returns whether the kernel has no wrapper, hence no [`Word::Nothing`].
#[must_use]
pub fn is_own(launch: &Launch) -> bool {
    launch.code.iter().any(|code| code.symbol.starts_with(OWN))
}

/// A launch as TensorRT's dimension expressions.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered<D> {
    /// Blocks, at least 1 each.
    pub grid: [D; 3],
    /// Threads of a block.
    pub block: [D; 3],
    /// Bytes.
    pub shared_bytes: D,
    /// The values of [`words`], except those of [`Word::Nothing`] if [`is_own`].
    pub words: Vec<D>,
}

/// A part that cannot be lowered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{role}{cause}")]
pub struct LoweringError<E> {
    /// Part.
    pub role: Role,
    /// Reason.
    pub cause: LoweringProblem<E>,
}

/// Why a part cannot be lowered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoweringProblem<E> {
    /// TensorRT's operations lack the part, or the builder failed.
    #[error(": {0}")]
    Lower(LowerError<E>),
    /// The part has an invalid value.
    #[error(" {0}")]
    Value(Problem),
}

/// Lowers a launch that runs if `when` is true or absent; empty if a requirement in `required` is false. `env` has
/// attributes and ranks, `builder` the dimensions. Stream order satisfies programmatic waits.
pub fn lower<B: ShapeBuilder>(
    plugin: &Plugin,
    when: Option<&Guard>,
    required: &[&Requirement],
    launch: &Launch,
    env: &dyn Environment,
    builder: &mut B,
) -> Result<Lowered<B::Dim>, LoweringError<B::Error>> {
    let mut lowering = Lowering { env, builder, spared: None };
    let left_out = when.map(|when| lowering.unmet(&when.expr, &when.text)).transpose()?;
    if matches!(left_out, Some(Truth::Known(true))) {
        return lowering.idle(launch).map_err(of_grid);
    }
    let left_out = left_out.and_then(Truth::dim);
    let empty = lowering.emptiness(plugin, launch).map_err(of_grid)?;
    lowering.spared = lowering.either(empty, left_out.clone()).map_err(of_grid)?;
    let grid = lowering.extents(&launch.grid, Role::Grid, 0, MAX_GRID)?;
    if grid.iter().any(|extent| matches!(extent, Extent::Known(0))) {
        return lowering.idle(launch).map_err(of_grid);
    }
    let mut nothing = lowering.empty(&grid, left_out).map_err(of_grid)?;
    for requirement in required {
        let broken = match lowering.unmet(&requirement.expr, &requirement.text)? {
            Truth::Known(false) => continue,
            Truth::Known(true) => return lowering.idle(launch).map_err(of_grid),
            Truth::Dim(broken) => Some(broken),
        };
        nothing = lowering.either(nothing, broken).map_err(of_grid)?;
    }
    let block = lowering.extents(&launch.block, Role::Block, 1, MAX_BLOCK)?;
    threads(&block)?;
    let shared_bytes = lowering.extent(&launch.shared_bytes, Role::SharedBytes, 0, SHARED_BYTES)?;
    // Known extents are also valid for one block.
    let grid = lowering.selected(&grid, nothing.as_ref(), Role::Grid, |_| true)?;
    let block = lowering.selected(&block, nothing.as_ref(), Role::Block, |extent| !extent.is_known())?;
    let instead = nothing.as_ref().filter(|_| !shared_bytes.is_known());
    let shared_bytes = lowering.select(&shared_bytes, instead, 0).map_err(fault(Role::SharedBytes))?;
    let mut words = Vec::new();
    if !is_own(launch) {
        words.push(match nothing {
            Some(nothing) => nothing,
            None => lowering.constant(0).map_err(of_grid)?,
        });
    }
    for arg in &launch.args {
        match &arg.value {
            ArgValue::Scalar { ty, expr } => {
                let role = || Role::Argument(arg.name.clone());
                let value = lowering.value(expr, role())?;
                lowering.append(&mut words, *ty, value, &role)?;
            }
            ArgValue::Array { ty, len, expr } => {
                let value = lowering.value(expr, Role::Argument(arg.name.clone()))?;
                for (index, item) in items(value, *len, &arg.name)?.into_iter().enumerate() {
                    lowering.append(&mut words, *ty, item, &|| Role::Element(arg.name.clone(), index))?;
                }
            }
            ArgValue::Tensor(_) | ArgValue::ReadTensor(_) | ArgValue::Scratch(_) => {}
        }
    }
    Ok(Lowered { grid, block, shared_bytes, words })
}

fn items<D: Clone, E>(value: Symbol<D>, len: u32, name: &str) -> Result<Vec<Symbol<D>>, LoweringError<E>> {
    let wrong = |problem| LoweringError {
        role: Role::Argument(name.to_owned()),
        cause: LoweringProblem::Value(problem),
    };
    let items = match value {
        Symbol::Known(Value::Array(items)) => items.into_iter().map(Symbol::Known).collect(),
        Symbol::Array(items) => items,
        Symbol::Known(found) => return Err(wrong(Problem::Kind { found, expected: "an array" })),
        Symbol::Int(_) | Symbol::Bool(_) => {
            return Err(wrong(Problem::NoValue("it is not an array".to_owned())));
        }
    };
    match u32::try_from(items.len()) {
        Ok(found) if found == len => Ok(items),
        _ => Err(wrong(Problem::Length { found: items.len(), expected: len })),
    }
}

fn divides(expr: &Expr) -> bool {
    let is_number = |divisor: u32| matches!(expr.nodes.get(divisor as usize), Some(Node::Int(_)));
    expr.nodes.iter().any(|node| match node {
        Node::Binary(BinaryOp::FloorDiv | BinaryOp::Mod, _, divisor) => !is_number(*divisor),
        Node::Call(Builtin::CeilDiv, operands) => operands.get(1).is_some_and(|divisor| !is_number(*divisor)),
        _ => false,
    })
}

fn threads<D, E>(block: &[Extent<D>; 3]) -> Result<(), LoweringError<E>> {
    let [Extent::Known(x), Extent::Known(y), Extent::Known(z)] = block else { return Ok(()) };
    let value = x.saturating_mul(*y).saturating_mul(*z);
    if value <= MAX_THREADS {
        return Ok(());
    }
    let problem = Problem::TooLarge { value, most: MAX_THREADS, limit: Limit::Cuda };
    Err(unfit(Role::Threads, problem))
}

fn unfit<E>(role: Role, problem: Problem) -> LoweringError<E> {
    LoweringError { role, cause: LoweringProblem::Value(problem) }
}

fn fault<E>(role: Role) -> impl FnOnce(LowerError<E>) -> LoweringError<E> {
    move |error| LoweringError { role, cause: LoweringProblem::Lower(error) }
}

fn of_grid<E>(error: LowerError<E>) -> LoweringError<E> {
    LoweringError { role: Role::Grid('x'), cause: LoweringProblem::Lower(error) }
}

enum Folded<V, D> {
    Known(V),
    Dim(D),
}

type Truth<D> = Folded<bool, D>;
type Extent<D> = Folded<i64, D>;

impl<V, D> Folded<V, D> {
    fn is_known(&self) -> bool {
        matches!(self, Folded::Known(_))
    }

    fn dim(self) -> Option<D> {
        match self {
            Folded::Known(_) => None,
            Folded::Dim(dim) => Some(dim),
        }
    }
}

struct Lowering<'a, B: ShapeBuilder> {
    env: &'a dyn Environment,
    builder: &'a mut B,
    /// 1 if one of the launch's tensors is empty (see [`lower_value`]).
    spared: Option<B::Dim>,
}

type Answer<B, T = <B as ShapeBuilder>::Dim> = Result<T, LowerError<<B as ShapeBuilder>::Error>>;

impl<B: ShapeBuilder> Lowering<'_, B> {
    fn constant(&mut self, value: i64) -> Answer<B> {
        self.builder.constant(value).map_err(LowerError::Builder)
    }

    fn operation(&mut self, op: ShapeOp, a: &B::Dim, b: &B::Dim) -> Answer<B> {
        self.builder.operation(op, a, b).map_err(LowerError::Builder)
    }

    fn with_constant(&mut self, op: ShapeOp, a: &B::Dim, b: i64) -> Answer<B> {
        let b = self.constant(b)?;
        self.operation(op, a, &b)
    }

    /// Returns 1 if an output or argument is empty, otherwise 0; `None` if no divisor depends on shapes.
    fn emptiness(&mut self, plugin: &Plugin, launch: &Launch) -> Answer<B, Option<B::Dim>> {
        if !launch.exprs().any(divides) {
            return Ok(None);
        }
        let outputs = plugin.inputs.len()..plugin.tensor_count();
        let outputs = outputs.filter_map(|index| u32::try_from(index).ok());
        let tensors = launch.args.iter().filter_map(|arg| arg.value.tensor()).chain(outputs);
        let tensors: Vec<u32> = sorted_set(tensors.collect());
        let mut dims = Vec::new();
        for tensor in tensors {
            let rank = self.env.rank(tensor);
            for axis in 0..rank.ok_or(LowerError::Evaluate(EvalError::UnknownTensor(tensor)))? {
                dims.push(self.builder.dim(tensor, axis).map_err(LowerError::Builder)?);
            }
        }
        self.has_zero(dims)
    }

    fn has_zero(&mut self, extents: Vec<B::Dim>) -> Answer<B, Option<B::Dim>> {
        let mut extents = extents.into_iter();
        let Some(mut least) = extents.next() else { return Ok(None) };
        for extent in extents {
            least = self.operation(ShapeOp::Min, &least, &extent)?;
        }
        self.with_constant(ShapeOp::Equal, &least, 0).map(Some)
    }

    fn unmet(&mut self, condition: &Expr, text: &str) -> Result<Truth<B::Dim>, LoweringError<B::Error>> {
        let lowered = self.negated(condition);
        lowered.map_err(fault(Role::Condition(text.to_owned())))
    }

    fn negated(&mut self, condition: &Expr) -> Answer<B, Truth<B::Dim>> {
        match lower_value(condition, self.env, self.builder, None)? {
            Symbol::Known(Value::Bool(holds)) => Ok(Truth::Known(!holds)),
            Symbol::Bool(holds) => {
                let one = self.constant(1)?;
                self.operation(ShapeOp::Sub, &one, &holds).map(Truth::Dim)
            }
            Symbol::Known(_) | Symbol::Int(_) | Symbol::Array(_) => {
                Err(LowerError::Evaluate(EvalError::Malformed))
            }
        }
    }

    fn idle(&mut self, launch: &Launch) -> Answer<B, Lowered<B::Dim>> {
        let (zero, one) = (self.constant(0)?, self.constant(1)?);
        let ones = || [one.clone(), one.clone(), one.clone()];
        let passed = words(launch).into_iter().filter(|word| *word != Word::Nothing || !is_own(launch));
        let words =
            passed.map(|word| if word == Word::Nothing { one.clone() } else { zero.clone() }).collect();
        Ok(Lowered { grid: ones(), block: ones(), shared_bytes: zero.clone(), words })
    }

    fn either(&mut self, one: Option<B::Dim>, other: Option<B::Dim>) -> Answer<B, Option<B::Dim>> {
        match (one, other) {
            (Some(one), Some(other)) => self.operation(ShapeOp::Max, &one, &other).map(Some),
            (one, other) => Ok(one.or(other)),
        }
    }

    /// Returns 1 if skipped or with a 0 in the grid; `None` if impossible.
    fn empty(&mut self, grid: &[Extent<B::Dim>; 3], left_out: Option<B::Dim>) -> Answer<B, Option<B::Dim>> {
        let mut extents = Vec::new();
        for extent in grid {
            match extent {
                Extent::Known(1..) => {}
                Extent::Known(value) => extents.push(self.constant(*value)?),
                Extent::Dim(dim) => extents.push(dim.clone()),
            }
        }
        let is_empty = self.has_zero(extents)?;
        self.either(is_empty, left_out)
    }

    fn selected(
        &mut self,
        extents: &[Extent<B::Dim>; 3],
        nothing: Option<&B::Dim>,
        role: fn(char) -> Role,
        chosen: fn(&Extent<B::Dim>) -> bool,
    ) -> Result<[B::Dim; 3], LoweringError<B::Error>> {
        let mut one = |extent: &Extent<B::Dim>, axis| {
            self.select(extent, nothing.filter(|_| chosen(extent)), 1).map_err(fault(role(axis)))
        };
        let [x, y, z] = extents;
        Ok([one(x, 'x')?, one(y, 'y')?, one(z, 'z')?])
    }

    fn select(&mut self, extent: &Extent<B::Dim>, nothing: Option<&B::Dim>, instead: i64) -> Answer<B> {
        let dim = match (extent, nothing) {
            (Extent::Known(value), None) => return self.constant(*value),
            (Extent::Known(value), Some(_)) if *value == instead => return self.constant(*value),
            (Extent::Known(value), Some(_)) => self.constant(*value)?,
            (Extent::Dim(dim), None) => return Ok(dim.clone()),
            (Extent::Dim(dim), Some(_)) => dim.clone(),
        };
        let Some(nothing) = nothing else { return Ok(dim) };
        let one = self.constant(1)?;
        let something = self.operation(ShapeOp::Sub, &one, nothing)?;
        let kept = self.operation(ShapeOp::Prod, &dim, &something)?;
        match instead {
            0 => Ok(kept),
            _ => self.operation(ShapeOp::Sum, &kept, nothing),
        }
    }

    fn value(&mut self, expr: &Expr, role: Role) -> Result<Symbol<B::Dim>, LoweringError<B::Error>> {
        let spared = self.spared.clone();
        lower_value(expr, self.env, self.builder, spared.as_ref()).map_err(fault(role))
    }

    fn extents(
        &mut self,
        exprs: &[Expr; 3],
        role: fn(char) -> Role,
        least: i64,
        most: [i64; 3],
    ) -> Result<[Extent<B::Dim>; 3], LoweringError<B::Error>> {
        Ok([
            self.extent(&exprs[0], role('x'), least, most[0])?,
            self.extent(&exprs[1], role('y'), least, most[1])?,
            self.extent(&exprs[2], role('z'), least, most[2])?,
        ])
    }

    /// Known extents are not checked later.
    fn extent(
        &mut self,
        expr: &Expr,
        role: Role,
        least: i64,
        most: i64,
    ) -> Result<Extent<B::Dim>, LoweringError<B::Error>> {
        let wrong = |role, problem| Err(unfit(role, problem));
        match self.value(expr, role.clone())? {
            Symbol::Int(dim) => Ok(Extent::Dim(dim)),
            Symbol::Known(Value::Int(value)) if value < least => {
                wrong(role, Problem::TooSmall { value, least })
            }
            Symbol::Known(Value::Int(value)) if value > most => {
                wrong(role, Problem::TooLarge { value, most, limit: Limit::Cuda })
            }
            Symbol::Known(Value::Int(value)) => Ok(Extent::Known(value)),
            Symbol::Known(found) => wrong(role, Problem::Kind { found, expected: "an integer" }),
            Symbol::Bool(_) | Symbol::Array(_) => {
                lower_scalar(expr, self.env, self.builder).map(Extent::Dim).map_err(fault(role))
            }
        }
    }

    fn append(
        &mut self,
        words: &mut Vec<B::Dim>,
        ty: ScalarType,
        value: Symbol<B::Dim>,
        role: &dyn Fn() -> Role,
    ) -> Result<(), LoweringError<B::Error>> {
        let problem = |problem| unfit(role(), problem);
        let dim = match (value, ty) {
            (Symbol::Known(value), _) => {
                for word in known_words(ty, &value).map_err(problem)? {
                    words.push(self.constant(word.into()).map_err(fault(role()))?);
                }
                return Ok(());
            }
            (
                Symbol::Int(dim),
                ScalarType::Int { .. } | ScalarType::UInt { .. } | ScalarType::Natural { .. },
            ) => dim,
            (Symbol::Bool(dim), ScalarType::Bool) => dim,
            (Symbol::Int(_), ScalarType::F32 | ScalarType::F64) => {
                return Err(problem(Problem::NoValue(
                    "it is a float that depends on shapes, but TensorRT evaluates only integers".to_owned(),
                )));
            }
            (Symbol::Int(_) | Symbol::Bool(_) | Symbol::Array(_), _) => {
                return Err(problem(Problem::NoValue("it differs in kind from the parameter".to_owned())));
            }
        };
        let failed = |error| fault(role())(error);
        match ty {
            ScalarType::UInt { bytes: 4 } => words.push(self.low(&dim).map_err(failed)?),
            _ if ty.size() > 4 => {
                words.push(self.low(&dim).map_err(failed)?);
                words.push(self.with_constant(ShapeOp::FloorDiv, &dim, WORDS).map_err(failed)?);
            }
            _ => words.push(dim),
        }
        Ok(())
    }

    fn low(&mut self, dim: &B::Dim) -> Answer<B> {
        let high = self.with_constant(ShapeOp::FloorDiv, dim, WORDS)?;
        let above = self.with_constant(ShapeOp::Prod, &high, WORDS)?;
        let rest = self.operation(ShapeOp::Sub, dim, &above)?;
        let is_negative = self.with_constant(ShapeOp::FloorDiv, &rest, WORDS / 2)?;
        let less = self.with_constant(ShapeOp::Prod, &is_negative, WORDS)?;
        self.operation(ShapeOp::Sub, &rest, &less)
    }
}

const WORDS: i64 = 1 << 32;

fn known_words(ty: ScalarType, value: &Value) -> Result<Vec<i32>, Problem> {
    let mut bytes = Vec::new();
    launch::append(&mut bytes, ty, value)?;
    if let ([_] | [_, _], Value::Int(value)) = (bytes.as_slice(), value) {
        // Cannot fail: `append` checked 16 bits.
        return Ok(i32::try_from(*value).into_iter().collect());
    }
    if let [one] = bytes.as_slice() {
        return Ok(vec![i32::from(*one)]);
    }
    let words = bytes.chunks_exact(4).filter_map(|chunk| chunk.try_into().ok());
    Ok(words.map(i32::from_le_bytes).collect())
}
