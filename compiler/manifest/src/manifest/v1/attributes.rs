//! `[attributes.NAME]`: what a node can say.

use cubinder_model::AttributeType;

use super::super::form::{Form, Section};
use super::super::{AttributeDecl, Located};
use super::constraints::{self, Subject};
use super::{doc, unknown_type};
use crate::diagnostic::Diagnostic;
use crate::rules;

/// Names of ONNX attributes that TensorRT's ONNX parser keeps for itself (TensorRT-RTX 1.7).
pub(in super::super) const RESERVED: [&str; 4] =
    ["aot", "plugin_namespace", "plugin_version", "tensorrt_plugin_shape_input_indices"];

pub(super) fn read(
    form: &mut Form<'_>,
    name: Located<String>,
    mut section: Section<'_>,
) -> Option<AttributeDecl> {
    form.identifier(&name, "an attribute");
    if RESERVED.contains(&name.value.as_str()) {
        let diagnostic = Diagnostic::error(format!("an attribute cannot be called `{}`", name.value))
            .code(rules::BAD_NAME)
            .at(form.span(name.range.clone()), "TensorRT's ONNX parser gives this name a meaning of its own");
        form.report(diagnostic);
    }
    let ty = attribute_type(form, &mut section);
    let default = section.take("default");
    let keys = constraints::take(&mut section);
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let ty = ty?;
    let subject = Subject { name: &name.value, ty: ty.value, type_range: &ty.range };
    let constraints = keys.read(form, subject);
    let default = default.and_then(|entry| constraints::default(form, &entry, subject, &constraints));
    let constraints::Constraints { length, range, one_of, specialize } = constraints;
    Some(AttributeDecl { name, ty: ty.value, default, length, range, one_of, specialize, doc })
}

fn attribute_type(form: &mut Form<'_>, section: &mut Section<'_>) -> Option<Located<AttributeType>> {
    let ty = form.require(section, "type", "\"i32\"")?;
    if let Some(first) = ty.items().and_then(|items| items.first()?.value().as_str().map(str::to_owned)) {
        let diagnostic = form.misfit(&ty, "a string");
        form.report(
            diagnostic.help(format!("write `type = \"{}[]\"` for a list", first.trim_end_matches("[]"))),
        );
        return None;
    }
    let ty = form.string(&ty)?;
    let known = AttributeType::from_name(&ty.value);
    if known.is_none() {
        let names: Vec<&str> = AttributeType::all().map(AttributeType::name).collect();
        unknown_type(form, &ty, "attribute type", &names);
    }
    known.map(|value| Located { value, range: ty.range })
}
