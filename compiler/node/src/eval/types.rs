//! Chooses element types and layouts. Row labels (`T=f16 F=hwc8 VEC=4`) have the parameters.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_model::{Plugin, Variant};

use super::names::unknown;
use super::report::{FormatReport, TypeReport};
use crate::diagnostic::suggest;
use crate::errors::{ImpossibleAlternative, NoSuchRow};
use crate::query::{Mistake, Part, Query};

pub(super) struct ChosenRow<'p> {
    pub(super) variant: &'p Variant,
    pub(super) types: Vec<TypeReport>,
    pub(super) formats: Vec<FormatReport>,
}

pub(super) fn choose<'p>(
    plugin: &'p Plugin,
    attributes: &[Value],
    query: &Query,
    mistakes: &mut Vec<Mistake>,
) -> Option<ChosenRow<'p>> {
    let before = mistakes.len();
    let types = query.types.iter().map(|pair| (Part::Type, pair));
    let wanted: Vec<(Part, &(String, String))> =
        types.chain(query.formats.iter().map(|pair| (Part::Format, pair))).collect();
    mistakes.extend(wanted.iter().filter_map(|(part, (name, value))| mistake(plugin, *part, name, value)));
    if mistakes.len() > before {
        return None;
    }
    let suits = |variant: &&Variant| {
        let mut wanted = wanted.iter();
        wanted.all(|(part, (name, value))| word_of(plugin, variant, *part, name) == Some(value.as_str()))
    };
    let compiled_for = |variant: &&Variant| launch::is_compiled_for(variant, attributes);
    let suiting = || plugin.variants.iter().filter(suits);
    // Checks report attributes without compiled variant.
    let Some(variant) = suiting().find(compiled_for).or_else(|| suiting().next()) else {
        mistakes.push(none_has(plugin, query));
        return None;
    };
    let types = reports(plugin, variant, Part::Type);
    let types = types.map(|(name, ty, others)| TypeReport { name, ty, others }).collect();
    let formats = reports(plugin, variant, Part::Format);
    let formats = formats.map(|(name, format, others)| FormatReport { name, format, others }).collect();
    Some(ChosenRow { variant, types, formats })
}

fn none_has(plugin: &Plugin, query: &Query) -> Mistake {
    let asked = query.types.iter().chain(&query.formats);
    let asked: Vec<String> = asked.map(|(name, value)| format!("{name}={value}")).collect();
    let what = if query.formats.is_empty() { "types" } else { "types and formats" };
    let mut rows = once_each(plugin.variants.iter().map(|variant| row_text(plugin, variant)));
    rows.truncate(16);
    let (part, first) = match (query.types.first(), query.formats.first()) {
        (None, Some(first)) => (Part::Format, Some(first)),
        (first, _) => (Part::Type, first),
    };
    let name = first.map_or("", |(name, _)| name);
    Mistake::new(part, name, NoSuchRow { what, asked: asked.join(", "), rows: rows.join("; ") })
}

fn reports(
    plugin: &Plugin,
    chosen: &Variant,
    part: Part,
) -> impl Iterator<Item = (String, &'static str, Vec<&'static str>)> {
    names(plugin, part).into_iter().filter_map(move |name| {
        let value = word_of(plugin, chosen, part, name)?;
        let others = possible(plugin, part, name).into_iter().filter(|other| *other != value).collect();
        Some((name.to_owned(), value, others))
    })
}

fn names(plugin: &Plugin, part: Part) -> Vec<&str> {
    once_each(plugin.variants.iter().flat_map(|variant| parameters(variant, part)).map(|(name, _)| name))
}

fn possible(plugin: &Plugin, part: Part, name: &str) -> Vec<&'static str> {
    once_each(plugin.variants.iter().filter_map(|variant| word_of(plugin, variant, part, name)))
}

fn mistake(plugin: &Plugin, part: Part, name: &str, value: &str) -> Option<Mistake> {
    let tensors = (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index));
    let known: Vec<&str> = names(plugin, part).into_iter().chain(tensors).collect();
    if !known.contains(&name) {
        let what = if part == Part::Type { "type" } else { "format" };
        return Some(unknown(part, &format!("{what} parameter or tensor"), name, &known));
    }
    let possible = possible(plugin, part, name);
    if possible.contains(&value) {
        return None;
    }
    let near = suggest(value, possible.iter().copied());
    let error = ImpossibleAlternative { name, value, possible: possible.join("`, `"), near };
    Some(Mistake::new(part, name, error).near(near))
}

fn word_of(plugin: &Plugin, variant: &Variant, part: Part, name: &str) -> Option<&'static str> {
    let parameter = parameters(variant, part).find(|(parameter, _)| *parameter == name);
    parameter.map(|(_, value)| value).or_else(|| {
        let index = (0..plugin.tensor_count()).find(|index| plugin.tensor_name(*index) == Some(name))?;
        match part {
            Part::Format => variant.formats.get(index).map(|format| format.name()),
            _ => variant.types.get(index).map(|ty| ty.name()),
        }
    })
}

/// Skips constants.
fn parameters(variant: &Variant, part: Part) -> impl Iterator<Item = (&str, &'static str)> {
    variant.label.split(' ').filter_map(move |word| {
        let (name, value) = word.split_once('=')?;
        let value = match part {
            Part::Format => Format::from_name(value)?.name(),
            _ => DataType::from_name(value)?.name(),
        };
        Some((name, value))
    })
}

fn row_text(plugin: &Plugin, variant: &Variant) -> String {
    let all = parameters(variant, Part::Type).chain(parameters(variant, Part::Format));
    let mut words: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
    if words.is_empty() {
        let tensors = variant.types.iter().enumerate();
        words.extend(
            tensors.map(|(index, ty)| format!("{}={}", plugin.tensor_name(index).unwrap_or("?"), ty.name())),
        );
    }
    words.join(" ")
}

fn once_each<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::new();
    for one in all {
        if !list.contains(&one) {
            list.push(one);
        }
    }
    list
}
