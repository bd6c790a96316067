//! The block: each axis, and the threads in all.

use cubinder_expr::BinaryOp;
use cubinder_expr::Interval;
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_THREADS};

use super::claim::{Claim, What, When};
use super::formula::joined;
use super::grid::AXES;
use super::site::{LaunchSite, Site};
use crate::diagnostic::Span;
use crate::rules;

/// A claim for each axis that is no constant within the limits, and one for their product where it needs more than one axis.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for launch in site.launches() {
        for (axis, (expr, text)) in launch.launch.block.iter().zip(&launch.decl.block).enumerate() {
            let allowed = Interval { min: 1, max: MAX_BLOCK[axis] };
            if expr.constant().is_some_and(|value| allowed.contains(value)) {
                continue;
            }
            claims.push(Claim {
                rule: rules::BLOCK_LIMIT,
                subject: launch.of(&format!("the block's {}", AXES[axis])),
                must: format!("is from 1 to {}", allowed.max),
                otherwise: "",
                what: What::Within(allowed),
                expr: expr.clone(),
                span: site.span(text),
                when: When::Running(launch.at),
            });
        }
        claims.extend(threads(site, &launch));
    }
    claims
}

fn threads(site: &Site<'_>, launch: &LaunchSite<'_>) -> Option<Claim> {
    let block = &launch.launch.block;
    let (first, last) = (launch.decl.block.first()?, launch.decl.block.last()?);
    // With one axis that is not 1 the limit of the axis says all; constants were held against it when the manifest was read.
    let factors: Vec<_> = block.iter().filter(|axis| axis.constant() != Some(1)).collect();
    if factors.len() < 2 || factors.iter().all(|axis| axis.constant().is_some()) {
        return None;
    }
    Some(Claim {
        rule: rules::BLOCK_LIMIT,
        subject: launch.of("the number of threads of a block"),
        must: format!("is at most {MAX_THREADS}"),
        otherwise: "",
        what: What::Within(Interval { min: i64::MIN, max: MAX_THREADS }),
        expr: joined(BinaryOp::Mul, factors)?,
        span: Span::new(&site.resolved.source, first.range.start..last.range.end),
        when: When::Running(launch.at),
    })
}
