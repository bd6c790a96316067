//! Which element types and memory layouts a node has.
//!
//! A model knows rows of types and formats; the names of parameters are in the rows' labels (`T=f16 F=hwc8 VEC=4`), which the resolver
//! writes.

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_model::{Plugin, Variant};

use super::node::unknown;
use super::report::{FormatReport, TypeReport};
use crate::diagnostic::suggest;
use crate::errors::{ImpossibleAlternative, NoSuchRow};
use crate::manifest::Alternative;
use crate::query::{Mistake, Part, Query};

/// A row of types and formats, and what the parameters are in it.
pub(super) struct Chosen<'p> {
    pub(super) variant: &'p Variant,
    pub(super) types: Vec<TypeReport>,
    pub(super) formats: Vec<FormatReport>,
}

/// What tensors are in a variant.
trait OfTensors: Alternative {
    /// What a mistake about it is about.
    const PART: Part;

    fn of_tensors(variant: &Variant) -> &[Self];
}

impl OfTensors for DataType {
    const PART: Part = Part::Type;

    fn of_tensors(variant: &Variant) -> &[DataType] {
        &variant.types
    }
}

impl OfTensors for Format {
    const PART: Part = Part::Format;

    fn of_tensors(variant: &Variant) -> &[Format] {
        &variant.formats
    }
}

/// The variant whose types and formats the tensors have: the first that has those that `query` names, of those that were compiled
/// for the attributes where there are such. None where there is a mistake.
pub(super) fn choose<'p>(
    plugin: &'p Plugin,
    attributes: &[Value],
    query: &Query,
    mistakes: &mut Vec<Mistake>,
) -> Option<Chosen<'p>> {
    let before = mistakes.len();
    let types = wanted::<DataType>(plugin, &query.types, mistakes);
    let formats = wanted::<Format>(plugin, &query.formats, mistakes);
    if mistakes.len() > before {
        return None;
    }
    let suits = |variant: &&Variant| has(plugin, variant, &types) && has(plugin, variant, &formats);
    let compiled_for = |variant: &&Variant| launch::is_compiled_for(variant, attributes);
    let suiting = || plugin.variants.iter().filter(suits);
    // Where there is no code for the attributes the checks say so.
    let Some(variant) = suiting().find(compiled_for).or_else(|| suiting().next()) else {
        mistakes.push(none_has(plugin, query));
        return None;
    };
    let types = reports::<DataType>(plugin, variant);
    let types = types.into_iter().map(|(name, ty, others)| TypeReport { name, ty, others });
    let formats = reports::<Format>(plugin, variant);
    let formats = formats.into_iter().map(|(name, format, others)| FormatReport { name, format, others });
    Some(Chosen { variant, types: types.collect(), formats: formats.collect() })
}

/// What a query asks for, as far as it is there.
fn wanted<'q, T: OfTensors>(
    plugin: &Plugin,
    asked: &'q [(String, String)],
    mistakes: &mut Vec<Mistake>,
) -> Vec<(&'q str, T)> {
    let mut wanted = Vec::new();
    for (name, value) in asked {
        match named::<T>(plugin, name, value) {
            Ok(value) => wanted.push((name.as_str(), value)),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    wanted
}

fn has<T: OfTensors>(plugin: &Plugin, variant: &Variant, wanted: &[(&str, T)]) -> bool {
    wanted.iter().all(|(name, value)| of::<T>(plugin, variant, name) == Some(*value))
}

/// The error for types and formats that no variant has together.
fn none_has(plugin: &Plugin, query: &Query) -> Mistake {
    let asked = query.types.iter().chain(&query.formats);
    let asked: Vec<String> = asked.map(|(name, value)| format!("{name}={value}")).collect();
    let what = if query.formats.is_empty() { "types" } else { "types and formats" };
    let mut rows = names(plugin.variants.iter().map(|variant| (row_text(plugin, variant), ())));
    rows.truncate(16);
    let (part, first) = match (query.types.first(), query.formats.first()) {
        (None, Some(first)) => (Part::Format, Some(first)),
        (first, _) => (Part::Type, first),
    };
    let name = first.map_or("", |(name, _)| name);
    Mistake::new(part, name, NoSuchRow { what, asked: asked.join(", "), rows: rows.join("; ") })
}

/// The parameters with what they are in a variant and what else they can be.
fn reports<T: OfTensors>(
    plugin: &Plugin,
    chosen: &Variant,
) -> Vec<(String, &'static str, Vec<&'static str>)> {
    let report = |name: String| {
        let value = of::<T>(plugin, chosen, &name)?;
        let others =
            possible::<T>(plugin, &name).into_iter().filter(|other| *other != value.word()).collect();
        Some((name, value.word(), others))
    };
    names(plugin.variants.iter().flat_map(parameters::<T>)).into_iter().filter_map(report).collect()
}

/// What a parameter or a tensor can be, each once.
fn possible<T: OfTensors>(plugin: &Plugin, name: &str) -> Vec<&'static str> {
    let mut possible: Vec<&'static str> = Vec::new();
    for value in plugin.variants.iter().filter_map(|variant| of::<T>(plugin, variant, name)) {
        if !possible.contains(&value.word()) {
            possible.push(value.word());
        }
    }
    possible
}

/// A pair of `--type` or `--format`, if the plugin has both.
fn named<T: OfTensors>(plugin: &Plugin, name: &str, value: &str) -> Result<T, Mistake> {
    let parameters = names(plugin.variants.iter().flat_map(parameters::<T>));
    let tensors = (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index));
    let known: Vec<&str> = parameters.iter().map(String::as_str).chain(tensors).collect();
    if !known.contains(&name) {
        return Err(unknown(T::PART, &format!("{} parameter or tensor", T::WHAT), name, &known));
    }
    let possible = possible::<T>(plugin, name);
    if possible.contains(&value)
        && let Some(value) = T::EACH.iter().copied().find(|known| known.word() == value)
    {
        return Ok(value);
    }
    let near = suggest(value, possible.iter().copied());
    let error = ImpossibleAlternative { name, value, possible: possible.join("`, `"), near };
    Err(Mistake::new(T::PART, name, error).near(near))
}

/// What a parameter or a tensor is in a variant.
fn of<T: OfTensors>(plugin: &Plugin, variant: &Variant, name: &str) -> Option<T> {
    let mut parameters = parameters::<T>(variant).into_iter();
    let parameter = parameters.find(|(parameter, _)| parameter == name).map(|(_, value)| value);
    parameter.or_else(|| {
        let index = (0..plugin.tensor_count()).find(|index| plugin.tensor_name(*index) == Some(name))?;
        T::of_tensors(variant).get(index).copied()
    })
}

/// The parameters in a variant's label. Constants are numbers and booleans, which no type or format is called.
fn parameters<T: OfTensors>(variant: &Variant) -> Vec<(String, T)> {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=')?;
        let value = T::EACH.iter().copied().find(|known| known.word() == value)?;
        Some((name.to_owned(), value))
    };
    variant.label.split(' ').filter_map(pair).collect()
}

fn row_text(plugin: &Plugin, variant: &Variant) -> String {
    let types = parameters::<DataType>(variant).into_iter().map(|(name, ty)| format!("{name}={}", ty.name()));
    let formats = parameters::<Format>(variant);
    let formats = formats.into_iter().map(|(name, format)| format!("{name}={}", format.name()));
    let words: Vec<String> = types.chain(formats).collect();
    if words.is_empty() {
        let tensor = |(index, ty): (usize, &DataType)| {
            format!("{}={}", plugin.tensor_name(index).unwrap_or("?"), ty.name())
        };
        return variant.types.iter().enumerate().map(tensor).collect::<Vec<_>>().join(" ");
    }
    words.join(" ")
}

/// The names, each once, in order.
fn names<T>(pairs: impl IntoIterator<Item = (String, T)>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for (name, _) in pairs {
        if !list.contains(&name) {
            list.push(name);
        }
    }
    list
}
