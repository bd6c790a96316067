//! Tests a shape's form: sound but incomplete. [`cubinder_expr::lower`] accepts passing shapes for all nodes.

use cubinder_expr::{Builtin, Expr, Kind, Node, NodeId};
use cubinder_model::Plugin;

#[derive(Clone, Copy, Default)]
struct Facts {
    /// Depends on dimensions.
    varies: bool,
    /// May be an array or a string.
    is_compound: bool,
    /// May be a float or contain floats.
    is_float: bool,
}

impl Facts {
    fn with(self, other: Facts) -> Facts {
        Facts {
            varies: self.varies || other.varies,
            is_compound: self.is_compound || other.is_compound,
            is_float: self.is_float || other.is_float,
        }
    }
}

/// Returns whether no float, array length or choice between arrays depends on dimensions.
pub(super) fn is_expressible(shape: &Expr, plugin: &Plugin) -> bool {
    let mut classifier = Classifier { shape, plugin, facts: Vec::with_capacity(shape.nodes.len()) };
    for node in &shape.nodes {
        match classifier.node(node) {
            Some(known) if !(known.varies && known.is_float) => classifier.facts.push(known),
            _ => return false,
        }
    }
    true
}

struct Classifier<'a> {
    shape: &'a Expr,
    plugin: &'a Plugin,
    facts: Vec<Facts>,
}

impl Classifier<'_> {
    fn facts(&self, id: NodeId) -> Option<Facts> {
        self.facts.get(id as usize).copied()
    }

    fn merged(&self, ids: &[NodeId]) -> Option<Facts> {
        ids.iter().try_fold(Facts::default(), |known, &id| Some(known.with(self.facts(id)?)))
    }

    fn node(&self, node: &Node) -> Option<Facts> {
        Some(match node {
            Node::Int(_) | Node::Bool(_) | Node::Rank(_) => Facts::default(),
            Node::Float(_) => Facts { is_float: true, ..Facts::default() },
            Node::Str(_) => Facts { is_compound: true, ..Facts::default() },
            Node::Attribute(index) => {
                let ty = self.plugin.attributes.get(*index as usize)?.ty;
                let is_compound = matches!(ty.kind(), Kind::Array(_) | Kind::Str);
                Facts { varies: false, is_compound, is_float: ty.element.is_float() }
            }
            Node::Shape(_) => Facts { varies: true, is_compound: true, is_float: false },
            Node::Numel(_) => Facts { varies: true, ..Facts::default() },
            Node::Values(_) => Facts { varies: true, is_compound: true, is_float: false },
            Node::Size(_) => Facts { varies: true, ..Facts::default() },
            Node::Aligned { .. } | Node::Device(_) => return None,
            Node::Local(slot) => self.element(self.over(*slot)?, Facts::default())?,
            Node::Array(items) => Facts { is_compound: true, ..self.merged(items)? },
            Node::Unary(_, operand) => self.facts(*operand)?,
            Node::Binary(_, left, right) => {
                let both = self.facts(*left)?.with(self.facts(*right)?);
                if both.varies && both.is_compound {
                    return None;
                }
                Facts { is_compound: false, ..both }
            }
            Node::Conditional { condition, then, otherwise } => {
                let (condition, sides) =
                    (self.facts(*condition)?, self.facts(*then)?.with(self.facts(*otherwise)?));
                if condition.varies && sides.is_compound {
                    return None;
                }
                Facts { varies: condition.varies || sides.varies, ..sides }
            }
            Node::Index { array, index } => self.element(*array, self.facts(*index)?)?,
            Node::Call(builtin, args) => self.call(*builtin, args)?,
            Node::Comprehension { over, condition, body, .. } => {
                self.facts(*over)?;
                let filter = condition.map_or(Some(Facts::default()), |condition| self.facts(condition))?;
                if filter.varies {
                    return None;
                }
                Facts { is_compound: true, ..self.facts(*body)? }
            }
        })
    }

    fn call(&self, builtin: Builtin, args: &[NodeId]) -> Option<Facts> {
        let all = self.merged(args)?;
        Some(match builtin {
            Builtin::Range if all.varies => return None,
            Builtin::Range => Facts { is_compound: true, ..all },
            Builtin::Len => Facts::default(),
            Builtin::Get => {
                let [array, index, default] = args else { return None };
                self.element(*array, self.facts(*index)?)?.with(self.facts(*default)?)
            }
            Builtin::Min | Builtin::Max | Builtin::Abs | Builtin::CeilDiv | Builtin::Sum | Builtin::Prod => {
                Facts { is_compound: false, ..all }
            }
            Builtin::Sqrt | Builtin::Rsqrt | Builtin::Exp | Builtin::Log | Builtin::Float => {
                Facts { is_float: true, is_compound: false, ..all }
            }
            // Varying floats were rejected above.
            Builtin::Int => Facts { is_float: false, is_compound: false, ..all },
        })
    }

    fn element(&self, array: NodeId, index: Facts) -> Option<Facts> {
        let elements = self.facts(array)?;
        let is_compound = self.has_compound_elements(array)?;
        if index.varies && (is_compound || elements.is_float) {
            return None;
        }
        Some(Facts { varies: elements.varies || index.varies, is_compound, is_float: elements.is_float })
    }

    /// False only if elements are certainly numbers or booleans.
    fn has_compound_elements(&self, array: NodeId) -> Option<bool> {
        Some(match self.shape.nodes.get(array as usize)? {
            Node::Shape(_) | Node::Values(_) | Node::Call(Builtin::Range, _) => false,
            Node::Attribute(index) => {
                let kind = self.plugin.attributes.get(*index as usize)?.ty.kind();
                !matches!(kind, Kind::Array(item) if matches!(*item, Kind::Int | Kind::Float | Kind::Bool))
            }
            Node::Array(items) => self.merged(items)?.is_compound,
            Node::Comprehension { body, .. } => self.facts(*body)?.is_compound,
            _ => true,
        })
    }

    fn over(&self, slot: u32) -> Option<NodeId> {
        self.shape.nodes.iter().find_map(|node| match node {
            Node::Comprehension { slot: own, over, .. } if *own == slot => Some(*over),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::{Scope, compile};
    use cubinder_model::{Attribute, AttributeType};

    use super::*;

    #[test]
    fn forms_that_are_expressible_and_forms_that_may_not_be() {
        let float = AttributeType::from_name("f32").expect("valid type");
        let plugin = Plugin {
            timing: None,
            tuning: Vec::new(),
            name: String::new(),
            namespace: String::new(),
            version: String::new(),
            summary: String::new(),
            attributes: vec![
                Attribute::new("n", AttributeType::I32),
                Attribute::new("pads", AttributeType::I32_LIST),
                Attribute::new("scale", float),
            ],
            inputs: Vec::new(),
            outputs: Vec::new(),
            require: Vec::new(),
            variants: Vec::new(),
        };
        let scope = Scope::new()
            .attribute("n", 0, Kind::Int)
            .attribute("pads", 1, Kind::ints())
            .attribute("scale", 2, Kind::Float)
            .tensor("x", 0, 1, 4);
        let is = |text: &str| is_expressible(&compile(text, &scope).expect("valid expression").expr, &plugin);
        for text in [
            "x.shape",
            "[]",
            "[d * n for d in x.shape]",
            "[x.shape[i] + get(pads, 2 * i, 0) for i in range(x.rank)]",
            "[max(x.shape) // 2, numel(x) if n > 0 else 0, x.shape[0] if x.shape[0] < n else n]",
            "[int(scale * 2.0), x.shape[0]]",
            "[x.shape[i] for i in range(n)]",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "[int(float(x.shape[0]) * 0.5)]",
            "[int(float(x.shape[0]) * scale)]",
            "[1 for i in range(x.shape[0])]",
            "[d for d in x.shape if d > 1]",
            "x.shape if numel(x) > n else [1]",
            "[1 if scale > float(numel(x)) else 2]",
        ] {
            assert!(!is(text), "{text}");
        }
    }
}
