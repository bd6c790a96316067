//! Limits a node's work: engines may have 100,000 expressions.

use cubinder_expr as expr;
use cubinder_expr::value::Value;
use cubinder_expr::{Bounds, Environment, EvalError, Expr, RangeEnvironment};

/// Maximum steps per node; typical plugins use hundreds.
pub const NODE_STEP_LIMIT: usize = 8 * expr::STEP_LIMIT;

/// The remainder of [`NODE_STEP_LIMIT`].
#[derive(Debug, Clone)]
pub struct Steps {
    left: usize,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { left: NODE_STEP_LIMIT }
    }
}

impl Steps {
    /// Evaluates `expr`. [`EvalError::TooManySteps`] also if the node's steps are spent ([`Steps::why`]).
    pub fn value(&mut self, expr: &Expr, environment: &dyn Environment) -> Result<Value, EvalError> {
        expr::evaluate_within(expr, environment, &mut self.left)
    }

    /// `None` for an unknown length.
    pub(super) fn bounds_each(
        &mut self,
        expr: &Expr,
        environment: &dyn RangeEnvironment,
    ) -> Result<Option<Vec<Bounds>>, EvalError> {
        self.charge(weight(&expr.nodes))?;
        expr::bounds_each_within(expr, environment, &mut self.left)
    }

    pub(super) fn bind(&mut self, expr: &Expr, environment: &dyn Environment) -> Expr {
        if self.charge(weight(&expr.nodes)).is_err() {
            return expr.clone();
        }
        expr::bind_within(expr, environment, &mut self.left)
    }

    /// Subtracts steps of other work.
    pub fn charge(&mut self, steps: usize) -> Result<(), EvalError> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvalError::TooManySteps)
            }
        }
    }

    /// Returns whether no steps remain.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns the error's text with its limit.
    #[must_use]
    pub fn why(&self, error: &EvalError) -> String {
        match error {
            EvalError::TooManySteps if self.is_spent() => {
                format!("the expressions of the node exceed {NODE_STEP_LIMIT} evaluation steps")
            }
            error => error.to_string(),
        }
    }
}

pub(super) fn weight<'e>(nodes: impl IntoIterator<Item = &'e expr::Node>) -> usize {
    let of_node = |node: &expr::Node| match node {
        expr::Node::Str(text) => 1 + text.len() / 16,
        _ => 1,
    };
    nodes.into_iter().map(of_node).fold(0, usize::saturating_add)
}
