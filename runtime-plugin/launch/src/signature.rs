use cubinder_expr::data_type::DataType;
use cubinder_expr::format::Format;
use cubinder_expr::value::Value;
use cubinder_model::attribute_check::Unmet;
use cubinder_model::model::{Plugin, Variant};

/// A node without shapes, which determines variants.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Signature<'a> {
    /// Values, one per plugin attribute.
    pub attributes: &'a [Value],
    /// Types of inputs, then outputs; possibly incomplete.
    pub types: &'a [DataType],
    /// Formats, likewise.
    pub formats: &'a [Format],
}

impl Signature<'_> {
    /// Returns whether `variant` serves exactly this.
    #[must_use]
    pub fn is_served_by(&self, variant: &Variant) -> bool {
        variant.types == self.types
            && variant.formats == self.formats
            && is_compiled_for(variant, self.attributes)
    }

    pub(super) fn has_special_formats(&self) -> bool {
        self.formats.iter().any(is_special)
    }
}

/// Returns whether `variant`'s code fits these attributes.
#[must_use]
pub fn is_compiled_for(variant: &Variant, attributes: &[Value]) -> bool {
    variant.specialized.iter().all(|(index, value)| attributes.get(*index as usize) == Some(value))
}

/// Returns a node's variants, in the manifest's order.
#[must_use]
pub fn serving(plugin: &Plugin, node: &Signature<'_>) -> Vec<usize> {
    let fitting = plugin.variants.iter().enumerate().filter(|(_, variant)| node.is_served_by(variant));
    fitting.map(|(index, _)| index).collect()
}

/// Returns the error for unsupported types and formats.
#[must_use]
pub fn no_variant(plugin: &Plugin, node: &Signature<'_>) -> Unmet {
    if let Err(unmet) = check_specialized(plugin, node.attributes) {
        return unmet;
    }
    let serving = || plugin.variants.iter().filter(|variant| is_compiled_for(variant, node.attributes));
    let offered_formats = serving().flat_map(|variant| &variant.formats);
    let shows_formats =
        !node.formats.is_empty() && node.formats.iter().chain(offered_formats).any(is_special);
    let list = |types: &[DataType], formats: &[Format]| {
        let tensor = |(index, ty): (usize, &DataType)| match formats.get(index) {
            Some(format) if shows_formats && is_special(format) => format!("{} {}", ty.name(), format.name()),
            _ => ty.name().to_owned(),
        };
        format!("({})", types.iter().enumerate().map(tensor).collect::<Vec<_>>().join(", "))
    };
    let offered = shown(serving().map(|variant| list(&variant.types, &variant.formats)));
    let what = if shows_formats { "types and formats" } else { "types" };
    Unmet(format!(
        "no variant supports the {what} {}; the plugin supports {offered}",
        list(node.types, node.formats)
    ))
}

fn is_special(format: &Format) -> bool {
    *format != Format::Linear
}

/// Checks attributes against compiled code's values, if present.
pub fn check_specialized(plugin: &Plugin, attributes: &[Value]) -> Result<(), Unmet> {
    let mut left: Vec<&Variant> = plugin.variants.iter().collect();
    for (index, (attribute, value)) in (0_u32..).zip(plugin.attributes.iter().zip(attributes)) {
        let compiled_for = |variant: &&Variant| {
            variant.specialized.iter().find(|(of, _)| *of == index).map(|(_, value)| value.clone())
        };
        let serves = |variant: &&Variant| compiled_for(variant).is_none_or(|compiled| compiled == *value);
        let (serving, others): (Vec<_>, Vec<_>) = left.into_iter().partition(serves);
        if serving.is_empty() {
            let values = shown(others.iter().filter_map(compiled_for).map(|value| format!("`{value}`")));
            return Err(Unmet(format!(
                "the attribute `{}` is `{value}`, but the code is specialized for {values}",
                attribute.name
            )));
        }
        left = serving;
    }
    Ok(())
}

fn shown(texts: impl Iterator<Item = String>) -> String {
    const MOST: usize = 32;
    let mut list: Vec<String> = Vec::new();
    for text in texts {
        if list.len() > MOST {
            break;
        }
        if !list.contains(&text) {
            list.push(text);
        }
    }
    if list.len() > MOST {
        list.truncate(MOST);
        list.push("...".to_owned());
    }
    list.join(", ")
}
