use super::errors::{DeviceAsValue, DeviceInShape, FieldOfValue, ShapeFromData, SizeInExpression};
use super::errors::{TensorAsValue, TypeAsValue, TypesCompared, UnknownFact, UnknownField, UnknownVariable};
use super::errors::{UnseenShapeInput, ValuesOfTensor};
use super::types::Type;
use super::{Argument, ERROR_LIMIT, Operand, Resolver};
use crate::data_type::DataType;
use crate::error::Span;
use crate::error::{ErrorClass, ExprError, listed, nearest};
use crate::node::{Builtin, DeviceFact, Node, NodeId};
use crate::print::Names;
use crate::scope::{BUILTIN_FORMS, DEVICE, Entity, TensorKind};
use crate::syntax::{Syntax, SyntaxKind};
use crate::value::Value;

impl Resolver<'_> {
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

    pub(super) fn is_anything(&self, name: &str) -> bool {
        !self.locals.iter().any(|local| local.name == name)
            && self.params.iter().any(|(param, arg)| param == name && matches!(arg, Argument::Anything))
    }

    fn is_variable(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local.name == name)
            || self.params.iter().any(|(param, _)| param == name)
    }

    pub(super) fn name(&mut self, name: &str, span: &Span) -> Operand {
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
                self.reject(SizeInExpression { name }.with_span(span), span)
            }
            Some(Entity::Tensor { kind, .. }) => {
                let help = match kind {
                    TensorKind::ShapeInput => format!("write `{name}.values[0]` for one of its values"),
                    TensorKind::UnseenShapeInput => "use its values only in shapes of outputs".to_owned(),
                    _ => format!("write `{name}.shape`, `{name}.rank` or `numel({name})`"),
                };
                self.reject(TensorAsValue { name, help }.with_span(span), span)
            }
            Some(Entity::Type(_)) => self.reject(TypeAsValue { name }.with_span(span), span),
            None if name == DEVICE => {
                self.reject(DeviceAsValue { facts: DEVICE_FACTS }.with_span(span), span)
            }
            None => {
                self.unknown_name(name, span);
                self.nothing(span)
            }
        }
    }

    fn device(&mut self, name: &str, name_span: &Span, span: &Span) -> Operand {
        let Some(fact) = DeviceFact::from_name(name) else {
            let error = UnknownFact { name }.with_span(name_span);
            let near = nearest(name, DeviceFact::ALL.into_iter().map(DeviceFact::name));
            return self.reject(error.help_near(near, DEVICE_FACTS), span);
        };
        if !self.device {
            return self.reject(DeviceInShape { fact }.with_span(span), span);
        }
        self.emit(Node::Device(fact), Type::Int, span)
    }

    pub(super) fn shape_of_data(&mut self, tensor: u32, ty: Type, span: &Span) -> Operand {
        let name = Names::tensor(self.scope, tensor).unwrap_or("it");
        self.error(ShapeFromData { name }.with_span(span));
        self.anything(ty, span)
    }

    pub(super) fn unseen(&mut self, tensor: u32, ty: Type, span: &Span) -> Operand {
        let name = Names::tensor(self.scope, tensor).unwrap_or("it");
        self.error(UnseenShapeInput { name }.with_span(span));
        self.anything(ty, span)
    }

    fn unknown_name(&mut self, name: &str, span: &Span) {
        let mut error = UnknownVariable { name }.with_span(span);
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

    fn paste(&mut self, nodes: &[Node], spans: &[Span], heights: &[usize], ty: Type, span: &Span) -> Operand {
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

    fn literal(&mut self, value: &Value, ty: &Type, span: &Span) -> Operand {
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

    pub(super) fn field(&mut self, object: &Syntax, name: &str, name_span: &Span, span: &Span) -> Operand {
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
                let help = if kind == TensorKind::Plain {
                    "declare it as a shape input, which has few integers: `shape_input = true`"
                } else {
                    "use only values of shape inputs"
                };
                self.error(ValuesOfTensor { name: text, help }.with_span(span));
                self.anything(Type::array(Type::Int), span)
            }
            ("shape" | "values" | "padded", None) => self.anything(Type::array(Type::Int), span),
            ("format" | "vector" | "padded", Some((tensor, ..))) => {
                self.layout(tensor, name, name_span, span)
            }
            ("format", None) => self.anything(Type::Str, span),
            ("vector" | "rank", None) => self.anything(Type::Int, span),
            (_, tensor) => {
                let has_values = tensor.is_none_or(|(_, kind, _)| kind == TensorKind::ShapeInput);
                let fields = ["shape", "rank", "format", "vector", "padded"].into_iter();
                let near = nearest(name, fields.chain(has_values.then_some("values")));
                let help = "use `shape` or `rank`, or `numel(x)` for the number of elements";
                self.reject(UnknownField { name }.with_span(name_span).help_near(near, help), span)
            }
        }
    }

    fn field_of_value(&mut self, object: &Syntax, name: &str, span: &Span) -> Operand {
        let before = self.errors.len();
        let value = self.value(object);
        if self.errors.len() == before {
            let error = FieldOfValue { name, found: &value.ty }.with_span(span);
            self.error(if value.ty.is_array() {
                error.help("use `len(a)` for the length of an array")
            } else {
                error
            });
        }
        self.nothing(span)
    }

    pub(super) fn is_type(&self, syntax: &Syntax) -> bool {
        match &syntax.kind {
            SyntaxKind::Name(name) => matches!(self.entity(name), Some(Entity::Type(_))),
            _ => false,
        }
    }

    /// Variants select types, expressions do not.
    pub(super) fn types_compared(&mut self, left: &Syntax, right: &Syntax, span: &Span) -> Operand {
        let name = |syntax: &Syntax| match &syntax.kind {
            SyntaxKind::Name(name) | SyntaxKind::Str(name) => Some(name.clone()),
            _ => None,
        };
        let (parameter, ty) =
            if self.is_type(left) { (name(left), name(right)) } else { (name(right), name(left)) };
        let parameter = parameter.unwrap_or_default();
        let ty = ty.filter(|ty| DataType::from_name(ty).is_some()).unwrap_or_else(|| "f16".to_owned());
        self.error(TypesCompared { parameter, ty }.with_span(span));
        self.anything(Type::Bool, span)
    }

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
            error.help = Some(format!("write a string in quotes: `'{name}'`"));
        }
    }
}

const DEVICE_FACTS: &str = "use `device.sms` (multiprocessors), `device.shared_bytes` (maximum dynamic shared memory of a block) or \
     `device.capability` (90 for 9.0)";
