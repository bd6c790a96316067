//! How much work a node may ask for.
//!
//! An expression has its own limit ([`expr::STEP_LIMIT`]); a model that was read from an engine may have a hundred thousand of them.
//! What bounds a change of shapes is what all of them take together.

use cubinder_expr as expr;
use cubinder_expr::value::Value;
use cubinder_expr::{Bounds, Environment, EvalError, Expr, RangeEnvironment};

/// The steps that all expressions of one node may take together, each time that it is evaluated. Plugins take some hundreds.
pub const NODE_STEP_LIMIT: usize = 8 * expr::STEP_LIMIT;

/// What is left of [`NODE_STEP_LIMIT`].
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
    /// The value of `expr`.
    ///
    /// # Errors
    /// As [`expr::evaluate`]; [`EvalError::TooManySteps`] also where nothing is left, see [`Steps::why`].
    pub fn value(&mut self, expr: &Expr, environment: &dyn Environment) -> Result<Value, EvalError> {
        expr::evaluate_within(expr, environment, &mut self.left)
    }

    /// The bounds of every element of an array of integers; none where its length is not known.
    ///
    /// # Errors
    /// As [`expr::bounds_each`]; [`EvalError::TooManySteps`] also where nothing is left.
    pub(super) fn bounds_each(
        &mut self,
        expr: &Expr,
        environment: &dyn RangeEnvironment,
    ) -> Result<Option<Vec<Bounds>>, EvalError> {
        self.charge(weight(&expr.nodes))?;
        expr::bounds_each_within(expr, environment, &mut self.left)
    }

    /// `expr` with everything folded that is known. Where nothing is left it comes back as it is.
    pub(super) fn bind(&mut self, expr: &Expr, environment: &dyn Environment) -> Expr {
        // Text is copied with the nodes, and costs nothing when it is evaluated.
        if self.charge(weight(&expr.nodes)).is_err() {
            return expr.clone();
        }
        expr::bind_within(expr, environment, &mut self.left)
    }

    /// Takes off what is done beside evaluating.
    ///
    /// # Errors
    /// [`EvalError::TooManySteps`] where there is not that much left.
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

    /// Whether nothing is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// The error's text, which tells whether one expression or all of them took too long.
    #[must_use]
    pub fn why(&self, error: &EvalError) -> String {
        match error {
            EvalError::TooManySteps if self.is_spent() => {
                format!("the expressions of the node take more than {NODE_STEP_LIMIT} steps together")
            }
            error => error.to_string(),
        }
    }
}

/// What a copy of an expression's nodes, or a look at all of them, costs.
pub(super) fn weight<'e>(nodes: impl IntoIterator<Item = &'e expr::Node>) -> usize {
    let of_node = |node: &expr::Node| match node {
        expr::Node::Str(text) => 1 + text.len() / 16,
        _ => 1,
    };
    nodes.into_iter().map(of_node).fold(0, usize::saturating_add)
}
