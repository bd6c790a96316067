//! What TensorRT launches itself: one kernel of a node, without any plugin library beside the engine.
//!
//! TensorRT's ahead-of-time interface (`IPluginV3QuickAOTBuild`, `impl/NvInferPythonPlugin.h`, TensorRT Enterprise 11.4) takes a kernel's
//! code, its grid, block and dynamic shared memory, and scalars, all of them expressions of the inputs' dimensions; and it passes the
//! inputs' addresses, then the scalars as 32-bit integers, then the outputs' addresses, an output that shares an input's memory left out.
//!
//! Owns: which launches can go that way ([`obstacles`]), how the author's arguments become such integers ([`words`]), and the expressions
//! of a launch ([`lower`]). The compiler writes a wrapper kernel by it, which puts the arguments together again, and the runtime library
//! gives TensorRT the expressions, so that both count alike. Never: no CUDA text, no TensorRT, no number that was cut to fit.

mod obstacles;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::data_type::ScalarType;
use crate::expr::{
    BinaryOp, Builtin, Environment, EvalError, Expr, LowerError, Node, ShapeBuilder, ShapeOp, Symbol,
    lower_scalar, lower_value,
};
use crate::launch::{self, Problem, Role};
use crate::model::{ArgValue, Launch, Plugin};
use crate::value::Value;

pub use obstacles::{Obstacle, obstacles};

/// One of the 32-bit integers that TensorRT passes between the inputs and the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Other than 0 where there is nothing to do: TensorRT launches a grid of one block then, since it takes none of 0.
    Nothing,
    /// An element of an argument, or half of one.
    Element {
        /// The argument, by its index in the kernel's order.
        arg: usize,
        /// Which element of an array; 0 of a scalar.
        element: usize,
        /// Which part of it.
        part: Part,
    },
}

/// Which bits of a value a word has. A value of fewer than 32 bits is a whole number of 32, with its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    Whole,
    /// The low 32 of 64.
    Low,
    /// The high 32 of 64.
    High,
}

impl Part {
    /// The parts of a value of this type, in the order in which they are passed.
    #[must_use]
    pub fn of(ty: ScalarType) -> &'static [Part] {
        if ty.size() > 4 { &[Part::Low, Part::High] } else { &[Part::Whole] }
    }
}

/// The words of a launch, in the order in which TensorRT passes them.
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
            Part::of(ty).iter().map(move |part| Word::Element { arg, element, part: *part })
        })
    });
    std::iter::once(Word::Nothing).chain(of_args).collect()
}

/// What TensorRT is told of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered<D> {
    /// Blocks in x, y and z, at least 1 each.
    pub grid: [D; 3],
    /// Threads of a block in x, y and z.
    pub block: [D; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: D,
    /// What [`words`] says, in that order.
    pub words: Vec<D>,
}

/// Why a part of a launch cannot be told to TensorRT.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault<E> {
    /// The part.
    pub role: Role,
    /// What is wrong with it.
    pub cause: Cause<E>,
}

/// What is wrong with a part of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause<E> {
    /// TensorRT's operations cannot say it, or the builder refused.
    Lower(LowerError<E>),
    /// Its value does not do.
    Value(Problem),
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Lower(error) => write!(f, "{}: {error}", self.role),
            Cause::Value(problem) => write!(f, "{} {problem}", self.role),
        }
    }
}

/// The expressions of a launch. `env` gives attributes and ranks; `builder` gives the dimensions of inputs and outputs.
///
/// # Errors
/// Where a part has no value for any shape, a value that the kernel does not take, or one that TensorRT's operations cannot say.
pub fn lower<B: ShapeBuilder>(
    plugin: &Plugin,
    launch: &Launch,
    env: &dyn Environment,
    builder: &mut B,
) -> Result<Lowered<B::Dim>, Fault<B::Error>> {
    let mut lowering = Lowering { env, builder, spared: None };
    lowering.spared = lowering.emptiness(plugin, launch).map_err(fault(Role::Grid('x')))?;
    let grid = [
        lowering.extent(&launch.grid[0], Role::Grid('x'))?,
        lowering.extent(&launch.grid[1], Role::Grid('y'))?,
        lowering.extent(&launch.grid[2], Role::Grid('z'))?,
    ];
    let nothing = lowering.is_nothing(&grid).map_err(fault(Role::Grid('x')))?;
    let one_at_least = |lowering: &mut Lowering<'_, B>, extent: &B::Dim, axis| {
        let one = lowering.constant(1);
        one.and_then(|one| lowering.operation(ShapeOp::Max, extent, &one)).map_err(fault(Role::Grid(axis)))
    };
    let grid = [
        one_at_least(&mut lowering, &grid[0], 'x')?,
        one_at_least(&mut lowering, &grid[1], 'y')?,
        one_at_least(&mut lowering, &grid[2], 'z')?,
    ];
    let block = [
        lowering.extent(&launch.block[0], Role::Block('x'))?,
        lowering.extent(&launch.block[1], Role::Block('y'))?,
        lowering.extent(&launch.block[2], Role::Block('z'))?,
    ];
    let shared_bytes = lowering.extent(&launch.shared_bytes, Role::SharedBytes)?;
    let mut words = vec![nothing];
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

/// The elements of an array argument: exactly `len`.
fn items<D: Clone, E>(value: Symbol<D>, len: u32, name: &str) -> Result<Vec<Symbol<D>>, Fault<E>> {
    let wrong = |problem| Fault { role: Role::Argument(name.to_owned()), cause: Cause::Value(problem) };
    let items = match value {
        Symbol::Known(Value::Array(items)) => items.into_iter().map(Symbol::Known).collect(),
        Symbol::Array(items) => items,
        Symbol::Known(found) => return Err(wrong(Problem::Kind { found, expected: "an array" })),
        Symbol::Int(_) | Symbol::Bool(_) => {
            return Err(wrong(Problem::NoValue("it is no array".to_owned())));
        }
    };
    match u32::try_from(items.len()) {
        Ok(found) if found == len => Ok(items),
        _ => Err(wrong(Problem::Length { found: items.len(), expected: len })),
    }
}

/// Whether the expression divides by what is no number of the manifest's.
fn divides(expr: &Expr) -> bool {
    let is_number = |divisor: u32| matches!(expr.nodes.get(divisor as usize), Some(Node::Int(_)));
    expr.nodes.iter().any(|node| match node {
        Node::Binary(BinaryOp::FloorDiv | BinaryOp::Mod, _, divisor) => !is_number(*divisor),
        Node::Call(Builtin::CeilDiv, operands) => operands.get(1).is_some_and(|divisor| !is_number(*divisor)),
        _ => false,
    })
}

fn fault<E>(role: Role) -> impl FnOnce(LowerError<E>) -> Fault<E> {
    move |error| Fault { role, cause: Cause::Lower(error) }
}

struct Lowering<'a, B: ShapeBuilder> {
    env: &'a dyn Environment,
    builder: &'a mut B,
    /// See [`lower_value`]: 1 where a tensor of the launch is empty, so that its grid may be 0.
    spared: Option<B::Dim>,
}

type Answer<B, T> = Result<T, LowerError<<B as ShapeBuilder>::Error>>;

impl<B: ShapeBuilder> Lowering<'_, B> {
    fn constant(&mut self, value: i64) -> Answer<B, B::Dim> {
        self.builder.constant(value).map_err(LowerError::Builder)
    }

    fn operation(&mut self, op: ShapeOp, a: &B::Dim, b: &B::Dim) -> Answer<B, B::Dim> {
        self.builder.operation(op, a, b).map_err(LowerError::Builder)
    }

    fn with_constant(&mut self, op: ShapeOp, a: &B::Dim, b: i64) -> Answer<B, B::Dim> {
        let b = self.constant(b)?;
        self.operation(op, a, &b)
    }

    /// 1 where an output is empty, or a tensor that the launch is given; none where the launch divides nowhere by what depends on shapes.
    fn emptiness(&mut self, plugin: &Plugin, launch: &Launch) -> Answer<B, Option<B::Dim>> {
        let exprs = launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]);
        let exprs = exprs.chain(launch.args.iter().filter_map(|arg| arg.value.expr()));
        if !exprs.into_iter().any(divides) {
            return Ok(None);
        }
        let outputs = plugin.inputs.len()..plugin.tensor_count();
        let outputs = outputs.filter_map(|index| u32::try_from(index).ok());
        let mut tensors: Vec<u32> =
            launch.args.iter().filter_map(|arg| arg.value.tensor()).chain(outputs).collect();
        tensors.sort_unstable();
        tensors.dedup();
        let mut least: Option<B::Dim> = None;
        for tensor in tensors {
            let rank = self.env.rank(tensor);
            let rank = rank.ok_or(LowerError::Evaluate(EvalError::UnknownTensor(tensor)))?;
            for axis in 0..rank {
                let dim = self.builder.dim(tensor, axis).map_err(LowerError::Builder)?;
                least = Some(match least {
                    Some(least) => self.operation(ShapeOp::Min, &least, &dim)?,
                    None => dim,
                });
            }
        }
        least.map(|least| self.with_constant(ShapeOp::Equal, &least, 0)).transpose()
    }

    /// 1 where an extent is 0.
    fn is_nothing(&mut self, extents: &[B::Dim; 3]) -> Answer<B, B::Dim> {
        let least = self.operation(ShapeOp::Min, &extents[0], &extents[1])?;
        let least = self.operation(ShapeOp::Min, &least, &extents[2])?;
        self.with_constant(ShapeOp::Equal, &least, 0)
    }

    fn value(&mut self, expr: &Expr, role: Role) -> Result<Symbol<B::Dim>, Fault<B::Error>> {
        let spared = self.spared.clone();
        lower_value(expr, self.env, self.builder, spared.as_ref()).map_err(fault(role))
    }

    fn extent(&mut self, expr: &Expr, role: Role) -> Result<B::Dim, Fault<B::Error>> {
        match self.value(expr, role.clone())? {
            Symbol::Int(dim) => Ok(dim),
            Symbol::Known(Value::Int(value)) => self.constant(value).map_err(fault(role)),
            Symbol::Known(found) => {
                let problem = Problem::Kind { found, expected: "an integer" };
                Err(Fault { role, cause: Cause::Value(problem) })
            }
            // Says in its own words that this is no integer.
            Symbol::Bool(_) | Symbol::Array(_) => {
                lower_scalar(expr, self.env, self.builder).map_err(fault(role))
            }
        }
    }

    /// Appends the words of one value of type `ty`.
    fn append(
        &mut self,
        words: &mut Vec<B::Dim>,
        ty: ScalarType,
        value: Symbol<B::Dim>,
        role: &dyn Fn() -> Role,
    ) -> Result<(), Fault<B::Error>> {
        let problem = |problem| Fault { role: role(), cause: Cause::Value(problem) };
        let dim = match (value, ty) {
            (Symbol::Known(value), _) => {
                for word in known_words(ty, &value).map_err(problem)? {
                    words.push(self.constant(word.into()).map_err(fault(role()))?);
                }
                return Ok(());
            }
            (Symbol::Int(dim), ScalarType::Int { .. } | ScalarType::UInt { .. }) => dim,
            (Symbol::Bool(dim), ScalarType::Bool) => dim,
            (Symbol::Int(_), ScalarType::F32 | ScalarType::F64) => {
                return Err(problem(Problem::NoValue(
                    "it is a float that depends on shapes, and TensorRT computes integers alone".to_owned(),
                )));
            }
            (Symbol::Int(_) | Symbol::Bool(_) | Symbol::Array(_), _) => {
                return Err(problem(Problem::NoValue("it is of another kind than the parameter".to_owned())));
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

    /// The low 32 bits as a signed number: all that goes through a 32-bit integer unchanged.
    fn low(&mut self, dim: &B::Dim) -> Answer<B, B::Dim> {
        let high = self.with_constant(ShapeOp::FloorDiv, dim, WORDS)?;
        let above = self.with_constant(ShapeOp::Prod, &high, WORDS)?;
        let rest = self.operation(ShapeOp::Sub, dim, &above)?;
        let is_negative = self.with_constant(ShapeOp::FloorDiv, &rest, WORDS / 2)?;
        let less = self.with_constant(ShapeOp::Prod, &is_negative, WORDS)?;
        self.operation(ShapeOp::Sub, &rest, &less)
    }
}

/// How many numbers 32 bits hold.
const WORDS: i64 = 1 << 32;

/// The words of a value that is known.
fn known_words(ty: ScalarType, value: &Value) -> Result<Vec<i32>, Problem> {
    let mut bytes = Vec::new();
    launch::append(&mut bytes, ty, value)?;
    if let ([_] | [_, _], Value::Int(value)) = (bytes.as_slice(), value) {
        // It fits 16 bits, or it would have been refused.
        return Ok(i32::try_from(*value).into_iter().collect());
    }
    if let [one] = bytes.as_slice() {
        return Ok(vec![i32::from(*one)]);
    }
    let words = bytes.chunks_exact(4).filter_map(|chunk| chunk.try_into().ok());
    Ok(words.map(i32::from_le_bytes).collect())
}
