//! Validates trees from engines, except for kinds.

use super::node::{Expr, Node, NodeId, height_of};

/// Why a list of nodes is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidExpr {
    /// No root.
    #[error("the expression is empty")]
    Empty,
    /// Above [`Expr::NODE_LIMIT`].
    #[error("the expression has {0} nodes, more than {limit}", limit = Expr::NODE_LIMIT)]
    TooManyNodes(usize),
    /// Above [`Expr::DEPTH_LIMIT`].
    #[error("node {0} is the root of more than {limit} levels", limit = Expr::DEPTH_LIMIT)]
    TooDeep(usize),
    /// A child after its parent.
    #[error("node {node} refers to node {child}, which does not precede it")]
    Order {
        /// Parent.
        node: usize,
        /// Child.
        child: NodeId,
    },
    /// Every node but the root has one parent.
    #[error("node {0} does not have exactly one parent")]
    NotATree(usize),
    /// The plugin has no such attribute.
    #[error("node {node} refers to attribute {attribute} of {count}")]
    Attribute {
        /// Node.
        node: usize,
        /// Attribute.
        attribute: u32,
        /// Number of attributes.
        count: usize,
    },
    /// The plugin has no such tensor.
    #[error("node {node} refers to tensor {tensor} of {count}")]
    Tensor {
        /// Node.
        node: usize,
        /// Tensor.
        tensor: u32,
        /// Number of tensors.
        count: usize,
    },
    /// Not a power of two, or above [`Node::ALIGNMENT_LIMIT`].
    #[error("node {node}: {bytes} bytes are not an alignment")]
    Alignment {
        /// Node.
        node: usize,
        /// Alignment.
        bytes: u32,
    },
    /// A slot of two comprehensions, or a variable outside.
    #[error("node {node}: slot {slot} is not the variable of exactly one comprehension around it")]
    Slot {
        /// Node.
        node: usize,
        /// Slot.
        slot: u32,
    },
}

impl Expr {
    /// Bounds recursion.
    pub const DEPTH_LIMIT: usize = 200;

    /// Maximum nodes of a tree.
    pub const NODE_LIMIT: usize = 16_384;

    pub(super) fn root(&self) -> NodeId {
        NodeId::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(NodeId::MAX)
    }

    /// Checks an untrusted tree: one parent per node, after its children; [`Expr::DEPTH_LIMIT`],
    /// [`Expr::NODE_LIMIT`]; indices below `attributes` and `tensors`; variables inside comprehensions.
    pub fn validate(&self, attributes: usize, tensors: usize) -> Result<(), InvalidExpr> {
        self.check_tree()?;
        check_references(&self.nodes, attributes, tensors)?;
        check_slots(&self.nodes)
    }

    pub(super) fn check_tree(&self) -> Result<(), InvalidExpr> {
        if self.nodes.is_empty() {
            return Err(InvalidExpr::Empty);
        }
        if self.nodes.len() > Expr::NODE_LIMIT {
            return Err(InvalidExpr::TooManyNodes(self.nodes.len()));
        }
        check_tree(&self.nodes)
    }
}

fn check_tree(nodes: &[Node]) -> Result<(), InvalidExpr> {
    let mut heights: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut parents = vec![0_usize; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        for child in node.children() {
            match parents.get_mut(child as usize) {
                Some(count) if (child as usize) < index => *count += 1,
                _ => return Err(InvalidExpr::Order { node: index, child }),
            }
        }
        let height = height_of(node, &heights);
        if height > Expr::DEPTH_LIMIT {
            return Err(InvalidExpr::TooDeep(index));
        }
        heights.push(height);
    }
    let root = nodes.len() - 1;
    match parents.iter().enumerate().find(|&(index, &count)| count != usize::from(index != root)) {
        Some((index, _)) => Err(InvalidExpr::NotATree(index)),
        None => Ok(()),
    }
}

fn check_references(nodes: &[Node], attributes: usize, tensors: usize) -> Result<(), InvalidExpr> {
    for (index, node) in nodes.iter().enumerate() {
        if let Some(tensor) = node.tensor().filter(|tensor| *tensor as usize >= tensors) {
            return Err(InvalidExpr::Tensor { node: index, tensor, count: tensors });
        }
        match *node {
            Node::Attribute(attribute) if attribute as usize >= attributes => {
                return Err(InvalidExpr::Attribute { node: index, attribute, count: attributes });
            }
            Node::Aligned { bytes, .. } if !Node::is_alignment(bytes) => {
                return Err(InvalidExpr::Alignment { node: index, bytes });
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_slots(nodes: &[Node]) -> Result<(), InvalidExpr> {
    // The innermost comprehension whose condition or body contains the node.
    let mut around: Vec<Option<NodeId>> = vec![None; nodes.len()];
    let mut taken = vec![false; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        let outer = around.get(index).copied().flatten();
        let (mut outside, mut inside) = (None, outer);
        match *node {
            Node::Local(slot) => {
                let mut scopes =
                    std::iter::successors(outer, |scope| around.get(*scope as usize).copied().flatten());
                let declares = |scope: NodeId| match nodes.get(scope as usize) {
                    Some(Node::Comprehension { slot: found, .. }) => *found == slot,
                    _ => false,
                };
                if !scopes.any(declares) {
                    return Err(InvalidExpr::Slot { node: index, slot });
                }
            }
            Node::Comprehension { slot, over, .. } => {
                match taken.get_mut(slot as usize) {
                    Some(taken) if !*taken => *taken = true,
                    _ => return Err(InvalidExpr::Slot { node: index, slot }),
                }
                (outside, inside) = (Some(over), NodeId::try_from(index).ok());
            }
            _ => {}
        }
        for child in node.children() {
            if let Some(scope) = around.get_mut(child as usize) {
                *scope = if Some(child) == outside { outer } else { inside };
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::InvalidExpr;
    use crate::{BinaryOp, Expr, Node, UnaryOp};

    fn check(nodes: Vec<Node>) -> Result<(), InvalidExpr> {
        Expr { nodes }.validate(1, 1)
    }

    fn comprehension(slot: u32, over: u32, body: u32) -> Node {
        Node::Comprehension { slot, over, condition: None, body }
    }

    #[test]
    fn a_tree_is_accepted() {
        assert_eq!(check(vec![Node::Int(1), Node::Int(2), Node::Binary(BinaryOp::Add, 0, 1)]), Ok(()));
        assert_eq!(check(vec![Node::Shape(0), Node::Local(0), comprehension(0, 0, 1)]), Ok(()));
    }

    #[test]
    fn hostile_lists_are_refused() {
        assert_eq!(check(vec![]), Err(InvalidExpr::Empty));
        assert_eq!(check(vec![Node::Unary(UnaryOp::Neg, 0)]), Err(InvalidExpr::Order { node: 0, child: 0 }));
        assert_eq!(check(vec![Node::Int(1), Node::Int(2)]), Err(InvalidExpr::NotATree(0)));
        assert_eq!(
            check(vec![Node::Int(1), Node::Binary(BinaryOp::Add, 0, 0)]),
            Err(InvalidExpr::NotATree(0))
        );
        assert!(matches!(check(vec![Node::Attribute(1)]), Err(InvalidExpr::Attribute { .. })));
        assert!(matches!(check(vec![Node::Numel(u32::MAX)]), Err(InvalidExpr::Tensor { .. })));
    }

    #[test]
    fn variables_stay_inside_their_comprehension() {
        assert_eq!(check(vec![Node::Local(0)]), Err(InvalidExpr::Slot { node: 0, slot: 0 }));
        let in_its_own_array = vec![Node::Local(0), Node::Int(1), comprehension(0, 0, 1)];
        assert_eq!(check(in_its_own_array), Err(InvalidExpr::Slot { node: 0, slot: 0 }));
        let twice = vec![
            Node::Shape(0),
            Node::Shape(0),
            Node::Local(0),
            comprehension(0, 1, 2),
            comprehension(0, 0, 3),
        ];
        assert_eq!(check(twice), Err(InvalidExpr::Slot { node: 3, slot: 0 }));
        let huge = vec![Node::Shape(0), Node::Int(0), comprehension(u32::MAX, 0, 1)];
        assert_eq!(check(huge), Err(InvalidExpr::Slot { node: 2, slot: u32::MAX }));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let mut deep = vec![Node::Bool(true)];
        for index in 0..Expr::DEPTH_LIMIT as u32 {
            assert_eq!(check(deep.clone()), Ok(()));
            deep.push(Node::Unary(UnaryOp::Not, index));
        }
        assert_eq!(check(deep), Err(InvalidExpr::TooDeep(Expr::DEPTH_LIMIT)));
        let large = vec![Node::Int(0); Expr::NODE_LIMIT + 1];
        assert_eq!(check(large), Err(InvalidExpr::TooManyNodes(Expr::NODE_LIMIT + 1)));
    }
}
