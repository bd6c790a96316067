//! Scratch memory: of no negative size, and of none that no GPU has.

use cubinder_bundle::Interval;

use super::claim::{Claim, What, When};
use super::site::Site;
use crate::rules;

/// The most memory of any GPU that is known, bytes: 288 GiB (NVIDIA B300, data sheet of 2025).
const MOST: i64 = 288 << 30;

/// A claim for each scratch buffer of each row that is no constant within the limits.
pub(super) fn claims(site: &Site<'_>) -> Vec<Claim> {
    let allowed = Interval { min: 0, max: MOST };
    let mut claims = Vec::new();
    for row in 0..site.plugin.variants.len() {
        for (scratch, text) in site.scratch(row) {
            if scratch.bytes.constant().is_some_and(|bytes| allowed.contains(bytes)) {
                continue;
            }
            claims.push(Claim {
                rule: rules::SCRATCH_LIMIT,
                subject: format!("the size of the scratch buffer `{}`", scratch.name),
                must: format!("is from 0 to {MOST} bytes, the most of any GPU"),
                what: What::Within(allowed),
                expr: scratch.bytes.clone(),
                span: site.span(text),
                when: When::Chosen(row),
            });
        }
    }
    claims
}
