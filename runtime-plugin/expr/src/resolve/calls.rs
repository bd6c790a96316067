use super::errors::{NotAFunction, Recursion, UnknownFunction, WrongCount};
use super::{Argument, Operand, Resolver};
use crate::error::ExprError;
use crate::error::Span;
use crate::foreign;
use crate::node::{Builtin, Node, NodeId};
use crate::scope::{BUILTIN_FORMS, Entity, Function, Kind};
use crate::syntax::{Syntax, SyntaxKind};

impl Resolver<'_> {
    pub(super) fn call(&mut self, function: &str, name_span: &Span, args: &[Syntax], span: &Span) -> Operand {
        match function {
            "numel" => self.numel(args, span),
            "sizeof" => self.size_of(args, span),
            "aligned" => self.aligned(args, span),
            _ => {
                if let Some(builtin) = Builtin::from_name(function) {
                    let args = args.iter().map(|arg| self.value(arg)).collect();
                    return self.builtin(builtin, args, span);
                }
                if self.inlining.iter().any(|caller| caller == function) {
                    return self.reject(Recursion { name: function }.with_span(span), span);
                }
                match self.scope.helper(function) {
                    Some((name, helper)) => self.inline(name, helper, args, span),
                    None => {
                        self.unknown_function(function, name_span);
                        // The intended function may accept a tensor.
                        args.iter().for_each(|arg| {
                            self.argument(arg);
                        });
                        self.nothing(span)
                    }
                }
            }
        }
    }

    fn unknown_function(&mut self, function: &str, span: &Span) {
        let known = self.entity(function).is_some() || self.locals.iter().any(|local| local.name == function);
        let error = if known {
            let error = NotAFunction { name: function }.with_span(span);
            match self.entity(function) {
                Some(Entity::Attribute { kind: Kind::Array(_), .. }) => {
                    error.help(format!("write `{function}[i]` for an element"))
                }
                Some(Entity::Tensor { .. }) => {
                    error.help(format!("write `{function}.shape[i]` for a dimension"))
                }
                _ => error,
            }
        } else {
            let error = UnknownFunction { name: function }.with_span(span);
            let builtins =
                Builtin::ALL.into_iter().map(|builtin| -> &str { builtin.name() }).chain(BUILTIN_FORMS);
            let names = builtins.chain(self.scope.helpers());
            match foreign::function(function) {
                Some(help) if self.scope.helper(function).is_none() => error.help(help),
                _ => {
                    let error = error.did_you_mean(function, names.clone());
                    if error.help.is_some() { error } else { error.help(listed_functions(names)) }
                }
            }
        };
        self.error(error);
    }

    fn inline(&mut self, name: &str, function: &Function, args: &[Syntax], span: &Span) -> Operand {
        let args: Vec<Argument> = args.iter().map(|arg| self.argument(arg)).collect();
        if args.len() != function.params.len() {
            let wanted = function.params.len();
            let usage = format!("`{name}({})`", function.params.join(", "));
            let error = wrong_count(name, (wanted, wanted), args.len(), &usage, span);
            return self.reject(error.about(name), span);
        }
        let params = function.params.iter().cloned().zip(args).collect();
        let outer_params = std::mem::replace(&mut self.params, params);
        let outer_locals = std::mem::take(&mut self.locals);
        // A separately checked function has no call: spans are its body's.
        let outermost = self.call_span.is_none();
        if outermost {
            self.call_span = Some(span.clone());
        }
        self.inlining.push(name.to_owned());
        let value = self.value(&function.body);
        self.inlining.pop();
        if outermost {
            self.call_span = None;
        }
        self.locals = outer_locals;
        self.params = outer_params;
        Operand { span: span.clone(), ..value }
    }

    fn argument(&mut self, arg: &Syntax) -> Argument {
        if let SyntaxKind::Name(name) = &arg.kind {
            if self.is_anything(name) {
                return Argument::Anything;
            }
            if let Some(entity @ (Entity::Tensor { .. } | Entity::Type(_))) = self.entity(name) {
                return Argument::Entity(entity);
            }
        }
        let start = self.nodes.len();
        let value = self.value(arg);
        let (nodes, spans, heights) = self.taken(start);
        Argument::Value { nodes, spans, heights, ty: value.ty }
    }

    pub(super) fn taken(&mut self, start: usize) -> (Vec<Node>, Vec<Span>, Vec<usize>) {
        let base = NodeId::try_from(start).unwrap_or(NodeId::MAX);
        let nodes = self.nodes.split_off(start);
        let nodes = nodes.iter().map(|node| node.map_children(|child| child.saturating_sub(base))).collect();
        (nodes, self.spans.split_off(start), self.heights.split_off(start))
    }
}

fn listed_functions<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.take(40).map(|name| format!("`{name}`")).collect();
    format!("the functions are {}", names.join(", "))
}

pub(super) fn wrong_count(
    name: &str,
    wanted: (usize, usize),
    found: usize,
    usage: &str,
    span: &Span,
) -> ExprError {
    let wanted = match wanted {
        (1, 1) => "1 argument".to_owned(),
        (least, most) if least == most => format!("{least} arguments"),
        (least, usize::MAX) => format!("at least {least} argument"),
        (least, most) => format!("{least} to {most} arguments"),
    };
    WrongCount { name, wanted, found, usage }.with_span(span)
}
