//! Evaluates TensorRT's launches, for tools that launch without it.

use super::{LoweringError, lower, unfit};
use crate::{EvaluatedArgument, EvaluatedLaunch, Problem, Role};
use cubinder_expr::value::Value;
use cubinder_expr::{Environment, ShapeBuilder, ShapeOp};
use cubinder_model::model::{Guard, Launch, Plugin};

/// Why a number is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoNumber {
    /// Depends on an unknown dimension.
    #[error("a dimension is unknown")]
    Dimension,
    /// Divides by zero, which TensorRT rejects.
    #[error("TensorRT rejects a division by zero")]
    Division,
}

struct Numbers<'a>(&'a dyn Environment);

impl ShapeBuilder for Numbers<'_> {
    type Dim = i64;
    type Error = NoNumber;

    fn constant(&mut self, value: i64) -> Result<i64, NoNumber> {
        Ok(value)
    }

    fn dim(&mut self, tensor: u32, axis: usize) -> Result<i64, NoNumber> {
        self.0.shape(tensor).and_then(|shape| shape.get(axis)).copied().ok_or(NoNumber::Dimension)
    }

    fn value_count(&mut self, _: u32) -> Result<usize, NoNumber> {
        Err(NoNumber::Dimension)
    }

    fn value(&mut self, _: u32, _: usize) -> Result<i64, NoNumber> {
        Err(NoNumber::Dimension)
    }

    fn size(&mut self, _: u32) -> Result<i64, NoNumber> {
        Err(NoNumber::Dimension)
    }

    fn operation(&mut self, op: ShapeOp, a: &i64, b: &i64) -> Result<i64, NoNumber> {
        op.apply(*a, *b).ok_or(NoNumber::Division)
    }
}

/// Evaluates a launch as TensorRT makes it, with one block if empty. The caller checks requirements.
pub fn evaluate(
    plugin: &Plugin,
    when: Option<&Guard>,
    launch: &Launch,
    env: &dyn Environment,
) -> Result<EvaluatedLaunch, LoweringError<NoNumber>> {
    let lowered = lower(plugin, when, &[], launch, env, &mut Numbers(env))?;
    let fits = |role: Role, value: i64| {
        let problem = Problem::TooLarge { value, most: u32::MAX.into(), limit: crate::Limit::Cuda };
        u32::try_from(value).map_err(|_| unfit(role, problem))
    };
    let each = |role: fn(char) -> Role, [x, y, z]: [i64; 3]| {
        Ok([fits(role('x'), x)?, fits(role('y'), y)?, fits(role('z'), z)?])
    };
    let (grid, block) = (each(Role::Grid, lowered.grid)?, each(Role::Block, lowered.block)?);
    let shared_bytes = fits(Role::SharedBytes, lowered.shared_bytes)?;
    let mut numbers = Vec::new();
    let mut words = Vec::new();
    for value in lowered.words {
        // TensorRT truncates, too.
        #[allow(clippy::cast_possible_truncation)]
        let word = value as i32;
        words.push(EvaluatedArgument::Numbers { start: numbers.len(), value: Value::Int(word.into()) });
        numbers.extend_from_slice(&word.to_le_bytes());
    }
    let inputs = (0..plugin.inputs.len()).map(EvaluatedArgument::Input);
    let outputs = plugin.outputs.iter().enumerate().filter(|(_, output)| output.alias.is_none());
    let args =
        inputs.chain(words).chain(outputs.map(|(index, _)| EvaluatedArgument::Output(index))).collect();
    Ok(EvaluatedLaunch { grid, block, shared_bytes, cluster: None, args, numbers })
}
