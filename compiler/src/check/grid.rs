//! The grid: from 0 blocks, which launch nothing, to what CUDA takes.

use cubinder_bundle::Interval;

use super::claim::{Claim, What, When};
use super::formula::constant;
use super::site::Site;
use crate::rules;

/// The most blocks in x, y and z, for every architecture since 3.0 (CUDA C++ Programming Guide 13.0, table of technical
/// specifications).
const MOST: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];
pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

/// A claim for each axis that is no constant within the limits.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for launch in site.launches() {
        let axes = launch.launch.grid.iter().zip(&launch.decl.grid).zip(AXES.iter().zip(MOST));
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
