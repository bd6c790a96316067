//! The grid: from 0 blocks, which launch nothing, to what CUDA takes.

use cubinder_bundle::Interval;
use cubinder_bundle::launch::MAX_GRID;

use super::claim::{Claim, What, When};
use super::formula::constant;
use super::site::Site;
use crate::rules;

pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

/// A claim for each axis that is no constant within the limits.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for launch in site.launches() {
        let axes = launch.launch.grid.iter().zip(&launch.decl.grid).zip(AXES.iter().zip(MAX_GRID));
        for (index, ((expr, text), (axis, max))) in axes.enumerate() {
            let allowed = Interval { min: 0, max };
            if constant(expr).is_some_and(|value| allowed.contains(value)) {
                continue;
            }
            claims.push(Claim {
                rule: rules::GRID_LIMIT,
                subject: format!("the grid's {axis}"),
                must: format!("is from 0 to {max}"),
                what: What::Within(allowed),
                expr: expr.clone(),
                span: site.span(text),
                when: When::Beside(launch.row, index),
            });
        }
    }
    claims
}
