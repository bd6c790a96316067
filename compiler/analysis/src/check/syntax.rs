use cubinder_expr::{Syntax, SyntaxKind};

/// In the order of resolution.
pub(super) fn children(syntax: &Syntax) -> Vec<&Syntax> {
    match &syntax.kind {
        SyntaxKind::Array(items) | SyntaxKind::Call { args: items, .. } => items.iter().collect(),
        SyntaxKind::Unary(_, operand) | SyntaxKind::Field { object: operand, .. } => vec![operand],
        SyntaxKind::Binary(_, left, right) | SyntaxKind::Index { array: left, index: right } => {
            vec![left, right]
        }
        SyntaxKind::Conditional { condition, then, otherwise } => vec![condition, then, otherwise],
        SyntaxKind::Comprehension { over, condition, body, .. } => {
            [over].into_iter().chain(condition).chain([body]).map(AsRef::as_ref).collect()
        }
        _ => Vec::new(),
    }
}

/// Children come first.
pub(super) fn parts(syntax: &Syntax) -> Vec<&Syntax> {
    let inner = children(syntax).into_iter().flat_map(parts);
    inner.chain([syntax]).collect()
}
