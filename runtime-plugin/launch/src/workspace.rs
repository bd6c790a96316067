//! A node's maximum workspace, reserved at build time: the largest variant's.

use crate::proof::{Domain, Greatest};
use cubinder_expr::{Expr, Node, UnaryOp};
use cubinder_model::model::{SCRATCH_ALIGNMENT, Variant};

/// A scratch buffer's range in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchRange {
    /// A multiple of [`SCRATCH_ALIGNMENT`], in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
}

pub(super) fn reserved(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(SCRATCH_ALIGNMENT).filter(|bytes| i64::try_from(*bytes).is_ok())
}

/// A scratch buffer without an upper bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the size of the scratch buffer `{scratch}` of variant {variant} has no upper bound that fits a GPU over these \
     shapes; limit the shapes, or bound the size with `min`"
)]
pub struct Unbounded {
    /// The variant's id.
    pub variant: i32,
    /// The buffer's name.
    pub scratch: String,
}

/// A GPU's address space.
const MOST: u64 = 1 << 48;

/// Returns the maximum workspace of `variants` over `domain` in bytes, without provably unused ones.
pub fn workspace_bound<'p>(
    domain: &Domain<'p>,
    variants: impl IntoIterator<Item = &'p Variant>,
) -> Result<u64, Unbounded> {
    let with_scratch = variants.into_iter().filter(|variant| !variant.scratch.is_empty());
    with_scratch.map(|variant| of_variant(domain, variant)).try_fold(0, |most, bytes| Ok(bytes?.max(most)))
}

fn of_variant<'p>(domain: &Domain<'p>, variant: &'p Variant) -> Result<u64, Unbounded> {
    let mut domain = domain.clone();
    if let Some(guard) = &variant.guard {
        if domain.proves(&not(&guard.expr)) {
            return Ok(0);
        }
        domain = domain.assuming(&guard.expr);
    }
    let mut sum = 0_u64;
    for scratch in &variant.scratch {
        let bytes = match domain.greatest(&scratch.bytes) {
            // Invalid sizes are rejected before a launch.
            Greatest::Nothing => Some(0),
            Greatest::Value(value) => reserved(u64::try_from(value).unwrap_or(0)),
            Greatest::Unknown => None,
        };
        let end = bytes.and_then(|bytes| sum.checked_add(bytes)).filter(|sum| *sum <= MOST);
        sum = end.ok_or_else(|| Unbounded { variant: variant.id, scratch: scratch.name.clone() })?;
    }
    Ok(sum)
}

fn not(expr: &Expr) -> Expr {
    let mut nodes = expr.nodes.clone();
    let root = u32::try_from(nodes.len().saturating_sub(1)).unwrap_or(u32::MAX);
    nodes.push(Node::Unary(UnaryOp::Not, root));
    Expr { nodes }
}
