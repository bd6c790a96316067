//! The plugin's rules about nodes and outputs' shapes.

use cubinder_expr::{Expr, Node};
use cubinder_model::{Output, Requirement, ShapeLimits, SizeBound};

use super::{Compiler, Expected, ExtraNames, constant};
use crate::manifest::{Located, SizeDecl};
use crate::resolve::errors::{RuleAlwaysFails, RuleAlwaysHolds};

impl Compiler<'_> {
    /// Invalid rules are `true`; also returns whether all are valid.
    pub(in crate::resolve) fn require(&mut self) -> (Vec<Requirement>, bool) {
        let scope = self.shared_scope();
        let mut requirements = Vec::new();
        let mut are_right = true;
        for rule in &self.declared.manifest.plugin.require {
            let typed = self.expression(&rule.expr, "expr", Expected::Bool, &scope);
            let span = self.span(&rule.expr.range);
            let mut expr = typed.map(|typed| typed.expr);
            match expr.as_ref().map(|expr| expr.nodes.as_slice()) {
                Some([Node::Bool(true)]) => self.report(RuleAlwaysHolds { span }, None),
                Some([Node::Bool(false)]) => {
                    self.report(RuleAlwaysFails { span }, None);
                    expr = None;
                }
                _ => {}
            }
            are_right &= expr.is_some();
            let expr = expr.unwrap_or_else(|| Expr { nodes: vec![Node::Bool(true)] });
            let (text, message) = (rule.expr.value.clone(), rule.message.clone());
            requirements.push(Requirement { expr, text, message });
        }
        (requirements, are_right)
    }

    /// Invalid shapes have one element; also returns whether all are valid.
    pub(in crate::resolve) fn outputs(&mut self) -> (Vec<Output>, bool) {
        let scope = self.scope_with(None, ExtraNames::Sizes);
        let mut outputs = Vec::new();
        let mut are_right = true;
        for decl in &self.declared.manifest.outputs {
            let alias = decl.alias.as_ref().map(|alias| self.shared_input(alias));
            let shape = match alias {
                Some(None) => {
                    self.unshared_outputs.insert(&decl.name.value);
                    None
                }
                Some(Some(_)) | None => self.expression(&decl.shape, "shape", Expected::Ints, &scope),
            };
            let (shape, limits) = match shape {
                Some(typed) => (typed.expr, decl.limits.limits.clone()),
                None => {
                    self.broken_outputs.insert(&decl.name.value);
                    (Expr { nodes: vec![Node::Array(Vec::new())] }, ShapeLimits::default())
                }
            };
            let size = decl.size.as_ref().map(|size| self.size(size));
            are_right &= !matches!(size, Some(None));
            let zero = || SizeBound { upper: constant(0), opt: constant(0) };
            outputs.push(Output {
                name: decl.name.value.clone(),
                shape,
                limits,
                alias: alias.flatten(),
                size: size.map(|size| size.unwrap_or_else(zero)),
                doc: decl.doc.clone(),
            });
        }
        (outputs, are_right && self.broken_outputs.is_empty())
    }

    fn shared_input(&mut self, alias: &Located<String>) -> Option<u32> {
        self.use_name(&alias.value);
        let mut inputs = (0..).zip(&self.declared.manifest.inputs);
        inputs.find(|(_, it)| it.name.value == alias.value && it.values.is_none()).map(|(index, _)| index)
    }

    fn size(&mut self, decl: &SizeDecl) -> Option<SizeBound> {
        let scope = self.shared_scope();
        let upper = self.expression(&decl.upper, "upper", Expected::Int, &scope);
        let opt = match &decl.opt {
            Some(opt) => self.expression(opt, "opt", Expected::Int, &scope),
            None => upper.clone(),
        };
        Some(SizeBound { upper: upper?.expr, opt: opt?.expr })
    }
}
