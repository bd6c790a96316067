//! The grid: from 0 blocks, which launch nothing and so must leave nothing to write, to what CUDA takes.

use cubinder_expr::Interval;
use cubinder_model::cuda_limits::MAX_GRID;

use super::claim::{Claim, What, When};
use super::site::Site;
use crate::rules;

pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

/// Claims for each axis that is no constant within the limits. Which outputs are empty is not asked where the shape of one is wrong
/// already: `inexpressible`.
pub(super) fn claims(site: &Site<'_>, inexpressible: &[usize]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for launch in site.launches() {
        let axes = launch.launch.grid.iter().zip(&launch.decl.grid).zip(AXES.iter().zip(MAX_GRID));
        for (index, ((expr, text), (axis, max))) in axes.enumerate() {
            let from = |min, max, must: String, when| {
                let allowed = Interval { min, max };
                let is_right = expr.constant().is_some_and(|value| allowed.contains(value));
                (!is_right).then(|| Claim {
                    rule: rules::GRID_LIMIT,
                    subject: launch.of(&format!("the grid's {axis}")),
                    must,
                    otherwise: "",
                    what: What::Within(allowed),
                    expr: expr.clone(),
                    span: site.span(text),
                    when,
                })
            };
            claims.extend(from(0, max, format!("is from 0 to {max}"), When::Beside(launch.at, index)));
            let written = "is at least 1 where no output and no argument is empty".to_owned();
            let written = from(1, i64::MAX, written, When::Written(launch.at));
            claims.extend(written.filter(|_| inexpressible.is_empty()));
        }
    }
    claims
}
