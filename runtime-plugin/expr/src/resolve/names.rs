//! What names and fields stand for: variables, parameters, attributes, constants, tensors and types.
//!
//! Owns what is said of those that are not known or are no values.

use std::ops::Range;

use super::types::Type;
use super::{Argument, ERROR_LIMIT, Operand, Resolver};
use crate::data_type::DataType;
use crate::error::{ErrorClass, ExprError, listed, nearest};
use crate::node::{Builtin, DeviceFact, Node, NodeId};
use crate::print::Names;
use crate::scope::{BUILTIN_FORMS, DEVICE, Entity, TensorKind};
use crate::syntax::{Syntax, SyntaxKind};
use crate::value::Value;

impl Resolver<'_> {
    /// What a name stands for, a tensor or a type: the innermost of variables, parameters and the scope's names.
    pub(super) fn entity(&self, name: &str) -> Option<Entity> {
        if self.locals.iter().any(|local| local.name == name) {
            return None;
        }
        match self.params.iter().find(|(param, _)| param == name) {
            Some((_, Argument::Entity(entity))) => Some(entity.clone()),
            Some(_) => None,
            None => self.scope.entity(name).cloned(),
        }
    }

    /// Whether a name is a parameter of a function that is checked on its own.
    pub(super) fn is_anything(&self, name: &str) -> bool {
        !self.locals.iter().any(|local| local.name == name)
            && self.params.iter().any(|(param, arg)| param == name && matches!(arg, Argument::Anything))
    }

    /// Whether a name is a variable or a parameter.
    fn is_variable(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local.name == name)
            || self.params.iter().any(|(param, _)| param == name)
    }

    pub(super) fn name(&mut self, name: &str, span: &Range<usize>) -> Operand {
        if let Some(local) = self.locals.iter().rev().find(|local| local.name == name) {
            let (slot, ty) = (local.slot, local.ty.clone());
            return self.emit(Node::Local(slot), ty, span);
        }
        if self.is_anything(name) {
            return self.nothing(span);
        }
        let argument = self.params.iter().find(|(param, _)| param == name).map(|(_, arg)| arg.clone());
        if let Some(Argument::Value { nodes, spans, heights, ty }) = argument {
            return self.paste(&nodes, &spans, &heights, ty, span);
        }
        match self.entity(name) {
            Some(Entity::Attribute { index, kind }) => {
                self.emit(Node::Attribute(index), Type::of_kind(&kind), span)
            }
            Some(Entity::Constant(value)) => self.literal(&value, &Type::of_value(&value), span),
            Some(Entity::Tensor { index, kind: TensorKind::Size, .. }) => {
                if self.sizes {
                    return self.emit(Node::Size(index), Type::Int, span);
                }
                let message = format!("the size that `{name}` holds is not known here");
                let error = ExprError::out_of_place(span.clone(), message, "known once the kernels have run");
                self.reject(
                    error.help("it can only be a dimension in the `shape` of an output"),
                    Type::Unknown,
                    span,
                )
            }
            Some(Entity::Tensor { kind, .. }) => {
                let error =
                    ExprError::wrong_kind(span.clone(), format!("`{name}` is a tensor"), "not a value");
                self.reject(
                    error.help(match kind {
                        TensorKind::ShapeInput => format!("one of its values is `{name}.values[0]`"),
                        TensorKind::UnseenShapeInput => {
                            "its values are known to the shapes of outputs alone".to_owned()
                        }
                        _ => format!("write `{name}.shape`, `{name}.rank` or `numel({name})`"),
                    }),
                    Type::Unknown,
                    span,
                )
            }
            Some(Entity::Type(_)) => {
                let error = ExprError::wrong_kind(span.clone(), format!("`{name}` is a type"), "not a value");
                self.reject(error.help(format!("its size in bytes is `sizeof({name})`")), Type::Unknown, span)
            }
            None if name == DEVICE => {
                let message = "`device` is not a value";
                let error = ExprError::wrong_kind(span.clone(), message, "needs a field");
                self.reject(error.help(DEVICE_FACTS), Type::Unknown, span)
            }
            None => {
                self.unknown_name(name, span);
                self.nothing(span)
            }
        }
    }

    /// `device.sms`.
    fn device(&mut self, name: &str, name_span: &Range<usize>, span: &Range<usize>) -> Operand {
        let Some(fact) = DeviceFact::from_name(name) else {
            let message = format!("nothing is known of a device by the name `{name}`");
            let error = ExprError::unknown_name(name_span.clone(), message, "unknown field");
            let near = nearest(name, DeviceFact::ALL.into_iter().map(DeviceFact::name));
            return self.reject(
                match near {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help(DEVICE_FACTS),
                },
                Type::Unknown,
                span,
            );
        };
        if !self.device {
            let message = format!("`{fact}` is not known here");
            let error = ExprError::out_of_place(span.clone(), message, "known when a kernel is launched");
            return self.reject(
                error.help("it can stand in guards and launches; shapes are the same on every device"),
                Type::Unknown,
                span,
            );
        }
        self.emit(Node::Device(fact), Type::Int, span)
    }

    /// Reports a look at the shape of an output that depends on data.
    pub(super) fn shape_of_data(&mut self, tensor: u32, ty: Type, span: &Range<usize>) -> Operand {
        let name = Names::tensor(self.scope, tensor).unwrap_or("it").to_owned();
        let message = format!("the shape of `{name}` depends on data: it is not known here");
        let error = ExprError::out_of_place(span.clone(), message, "known once the kernels have run");
        let help =
            format!("its rank is `{name}.rank`, and no dimension is larger than the `upper` of its size");
        self.reject(error.help(help), ty, span)
    }

    /// Reports a look at a shape input where launches are made.
    pub(super) fn unseen(&mut self, tensor: u32, ty: Type, span: &Range<usize>) -> Operand {
        let name = Names::tensor(self.scope, tensor).unwrap_or("it");
        let message = format!("what `{name}` holds is not known when kernels are launched");
        let error = ExprError::out_of_place(span.clone(), message, "known to the shapes of outputs alone");
        let help = "TensorRT uses shape inputs for shapes and keeps them from what runs: ask for an extent that follows from them, such as `y.shape[0]`";
        self.reject(error.help(help), ty, span)
    }

    fn unknown_name(&mut self, name: &str, span: &Range<usize>) {
        let mut error =
            ExprError::unknown_name(span.clone(), format!("unknown name `{name}`"), "not known here");
        let is_function = Builtin::from_name(name).is_some()
            || BUILTIN_FORMS.contains(&name)
            || self.scope.helper(name).is_some();
        if is_function {
            error = error.help(format!("`{name}` is a function: write `{name}(...)`"));
        } else if self.errors.len() < ERROR_LIMIT {
            let locals = self.locals.iter().map(|local| local.name.as_str());
            let params = self.params.iter().map(|(name, _)| name.as_str());
            let count = self.locals.len() + self.params.len() + self.scope.names().len();
            let names = locals.chain(params).chain(self.scope.names());
            error = error.did_you_mean(name, names.clone().chain(["true", "false", DEVICE]));
            if error.about.is_empty() {
                error = error.help(listed(names, count));
            }
            let variable = self.locals.iter().rev().find(|local| error.about.contains(&local.name));
            if let Some(local) = variable {
                error = error.also(local.span.clone(), format!("the variable `{}`", local.name));
            }
        }
        self.error(error);
    }

    /// Copies an argument to where its parameter is used.
    fn paste(
        &mut self,
        nodes: &[Node],
        spans: &[Range<usize>],
        heights: &[usize],
        ty: Type,
        span: &Range<usize>,
    ) -> Operand {
        let mut root = Operand { id: 0, ty: Type::Unknown, span: span.clone() };
        let base = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        for ((node, span), &height) in nodes.iter().zip(spans).zip(heights) {
            root = self.push(
                node.map_children(|child| child.saturating_add(base)),
                height,
                span.clone(),
                Type::Unknown,
            );
        }
        Operand { ty, span: span.clone(), ..root }
    }

    fn literal(&mut self, value: &Value, ty: &Type, span: &Range<usize>) -> Operand {
        let node = match value {
            Value::Int(value) if *ty == Type::Float => Node::Float(*value as f64),
            Value::Int(value) => Node::Int(*value),
            Value::Float(value) => Node::Float(*value),
            Value::Bool(value) => Node::Bool(*value),
            Value::Str(value) => Node::Str(value.clone()),
            Value::Array(items) => {
                let element = ty.element();
                let items = items.iter().map(|item| self.literal(item, &element, span).id).collect();
                Node::Array(items)
            }
        };
        self.emit(node, ty.clone(), span)
    }

    pub(super) fn field(
        &mut self,
        object: &Syntax,
        name: &str,
        name_span: &Range<usize>,
        span: &Range<usize>,
    ) -> Operand {
        let tensor = match &object.kind {
            SyntaxKind::Name(object) if self.is_anything(object) => None,
            SyntaxKind::Name(text) => match self.entity(text) {
                Some(Entity::Tensor { index, kind, .. }) => Some((index, kind, text)),
                None if text == DEVICE && !self.is_variable(text) => {
                    return self.device(name, name_span, span);
                }
                _ => return self.field_of_value(object, name, span),
            },
            _ => return self.field_of_value(object, name, span),
        };
        match (name, tensor) {
            ("shape" | "padded", Some((tensor, TensorKind::DataDependent, _))) => {
                self.shape_of_data(tensor, Type::array(Type::Int), span)
            }
            ("shape" | "padded" | "values", Some((tensor, TensorKind::UnseenShapeInput, _))) => {
                self.unseen(tensor, Type::array(Type::Int), span)
            }
            ("shape", Some((tensor, ..))) => self.emit(Node::Shape(tensor), Type::array(Type::Int), span),
            ("rank", Some((tensor, ..))) => self.emit(Node::Rank(tensor), Type::Int, span),
            ("values", Some((tensor, TensorKind::ShapeInput, _))) => {
                self.emit(Node::Values(tensor), Type::array(Type::Int), span)
            }
            ("values", Some((_, kind, text))) => {
                let message = format!("the values of `{text}` are not known when shapes are");
                let error = ExprError::out_of_place(span.clone(), message, "not a shape input");
                self.reject(if kind == TensorKind::Plain {
                    error.help(
                        "only those of a shape input are, an input of a few integers: say `shape_input = true` where it is declared",
                    )
                } else {
                    error.help("only those of a shape input are")
                }, Type::array(Type::Int), span)
            }
            ("shape" | "values" | "padded", None) => self.anything(Type::array(Type::Int), span),
            ("format" | "vector" | "padded", Some((tensor, ..))) => {
                self.layout(tensor, name, name_span, span)
            }
            ("format", None) => self.anything(Type::Str, span),
            ("vector" | "rank", None) => self.anything(Type::Int, span),
            (_, tensor) => {
                let message = format!("a tensor has no field `{name}`");
                let error = ExprError::unknown_name(name_span.clone(), message, "unknown field");
                let has_values = tensor.is_none_or(|(_, kind, _)| kind == TensorKind::ShapeInput);
                let fields = ["shape", "rank", "format", "vector", "padded"].into_iter();
                self.reject(
                    match nearest(name, fields.chain(has_values.then_some("values"))) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error
                            .help("a tensor has `shape` and `rank`; its number of elements is `numel(x)`"),
                    },
                    Type::Unknown,
                    span,
                )
            }
        }
    }

    /// Only tensors have fields.
    fn field_of_value(&mut self, object: &Syntax, name: &str, span: &Range<usize>) -> Operand {
        let before = self.errors.len();
        let value = self.value(object);
        if self.errors.len() == before {
            let message = format!("only a tensor has fields, found {}", value.ty);
            let error = ExprError::wrong_kind(span.clone(), message, format!("no field `{name}`"));
            self.error(if value.ty.is_array() {
                error.help("the length of an array is `len(a)`")
            } else {
                error
            });
        }
        self.nothing(span)
    }

    /// Whether a part names a type.
    pub(super) fn is_type(&self, syntax: &Syntax) -> bool {
        match &syntax.kind {
            SyntaxKind::Name(name) => matches!(self.entity(name), Some(Entity::Type(_))),
            _ => false,
        }
    }

    /// Types are chosen by variants, not by expressions.
    pub(super) fn types_compared(&mut self, left: &Syntax, right: &Syntax, span: &Range<usize>) -> Operand {
        let name = |syntax: &Syntax| match &syntax.kind {
            SyntaxKind::Name(name) | SyntaxKind::Str(name) => Some(name.clone()),
            _ => None,
        };
        let (parameter, ty) =
            if self.is_type(left) { (name(left), name(right)) } else { (name(right), name(left)) };
        let parameter = parameter.unwrap_or_default();
        let ty = ty.filter(|ty| DataType::from_name(ty).is_some()).unwrap_or_else(|| "f16".to_owned());
        let error = ExprError::wrong_kind(span.clone(), "types cannot be compared", "not values");
        self.reject(
            error.help(format!(
                "a variant says which types it serves: `types = {{ {parameter} = [\"{ty}\"] }}`"
            )),
            Type::Bool,
            span,
        )
    }

    /// A name that is not known and like none that is, beside a string that has a name: its quotes are missing.
    pub(super) fn missing_quotes(&mut self, side: &Syntax, other: &Operand) {
        let SyntaxKind::Name(name) = &side.kind else { return };
        let unknown = |error: &&mut ExprError| {
            error.class == ErrorClass::UnknownName && error.span == side.span && error.about.is_empty()
        };
        let is_literal = matches!(self.nodes.get(other.id as usize), Some(Node::Str(_)));
        if other.ty == Type::Str
            && !is_literal
            && let Some(error) = self.errors.iter_mut().rev().find(unknown)
        {
            error.help = Some(format!("a string stands in quotes: `'{name}'`"));
        }
    }
}

/// What is known of a device.
const DEVICE_FACTS: &str = "of a device are known `device.sms` (multiprocessors), `device.shared_bytes` (the most dynamic shared memory of \
     a block) and `device.capability` (90 for 9.0)";
