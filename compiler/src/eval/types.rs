//! Which element types a node has.
//!
//! A model knows rows of types; the names of type parameters are in the rows' labels (`T=f16 VEC=4`), which the resolver writes.

use cubinder_bundle::launch;
use cubinder_bundle::{DataType, Plugin, Value, Variant};

use super::node::unknown;
use super::query::{Mistake, Part, Query};
use super::report::TypeReport;
use crate::diagnostic::{Diagnostic, suggest};

/// The variant whose types and formats the tensors have: the first that has the types that `query` names, of those that were compiled
/// for the attributes where there are such. None where there is a mistake.
pub(super) fn choose<'p>(
    plugin: &'p Plugin,
    attributes: &[Value],
    query: &Query,
    mistakes: &mut Vec<Mistake>,
) -> Option<(&'p Variant, Vec<TypeReport>)> {
    let parameters = names(plugin.variants.iter().flat_map(parameters));
    let tensors: Vec<&str> =
        (0..plugin.tensor_count()).filter_map(|index| plugin.tensor_name(index)).collect();
    let before = mistakes.len();
    let mut wanted = Vec::new();
    for (name, ty) in &query.types {
        match named(plugin, &parameters, &tensors, name, ty) {
            Ok(ty) => wanted.push((name.as_str(), ty)),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.len() > before {
        return None;
    }
    let suits = |variant: &&Variant| wanted.iter().all(|(name, ty)| of(plugin, variant, name) == Some(*ty));
    let compiled_for = |variant: &&Variant| launch::is_compiled_for(variant, attributes);
    let suiting = || plugin.variants.iter().filter(suits);
    // Where there is no code for the attributes the checks say so.
    let Some(chosen) = suiting().find(compiled_for).or_else(|| suiting().next()) else {
        let asked: Vec<String> = query.types.iter().map(|(name, ty)| format!("{name}={ty}")).collect();
        let mut rows = names(plugin.variants.iter().map(|variant| (types_text(plugin, variant), ())));
        rows.truncate(16);
        let diagnostic = Diagnostic::error(format!("no variant has the types {}", asked.join(", ")))
            .note(format!("there are {}", rows.join("; ")));
        let name = query.types.first().map(|(name, _)| name.clone()).unwrap_or_default();
        mistakes.push(Mistake { part: Part::Type, name, diagnostic });
        return None;
    };
    let report = |name: &String| {
        let ty = of(plugin, chosen, name)?;
        let others = plugin.variants.iter().filter_map(|variant| of(plugin, variant, name));
        let mut list: Vec<&'static str> = Vec::new();
        for other in others.filter(|other| *other != ty).map(DataType::name) {
            if !list.contains(&other) {
                list.push(other);
            }
        }
        Some(TypeReport { name: name.clone(), ty: ty.name(), others: list })
    };
    Some((chosen, parameters.iter().filter_map(report).collect()))
}

/// A pair of `--type`, if plugin and type are there.
fn named(
    plugin: &Plugin,
    parameters: &[String],
    tensors: &[&str],
    name: &str,
    ty: &str,
) -> Result<DataType, Mistake> {
    let known: Vec<&str> = parameters.iter().map(String::as_str).chain(tensors.iter().copied()).collect();
    if !known.contains(&name) {
        return Err(unknown(Part::Type, "type parameter or tensor", name, &known));
    }
    let mut possible: Vec<&str> = Vec::new();
    for ty in plugin.variants.iter().filter_map(|variant| of(plugin, variant, name)).map(DataType::name) {
        if !possible.contains(&ty) {
            possible.push(ty);
        }
    }
    if possible.contains(&ty)
        && let Some(ty) = DataType::from_name(ty)
    {
        return Ok(ty);
    }
    let diagnostic = Diagnostic::error(format!("`{name}` cannot be `{ty}`"))
        .note(format!("it can be `{}`", possible.join("`, `")));
    let diagnostic = match suggest(ty, possible.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    Err(Mistake { part: Part::Type, name: name.to_owned(), diagnostic })
}

/// What a type parameter or a tensor is in a variant.
fn of(plugin: &Plugin, variant: &Variant, name: &str) -> Option<DataType> {
    let parameter =
        parameters(variant).into_iter().find(|(parameter, _)| parameter == name).map(|(_, ty)| ty);
    parameter.or_else(|| {
        let index = (0..plugin.tensor_count()).find(|index| plugin.tensor_name(*index) == Some(name))?;
        variant.types.get(index).copied()
    })
}

/// The type parameters in a variant's label. Constants are numbers and booleans, which no type is called.
fn parameters(variant: &Variant) -> Vec<(String, DataType)> {
    let pair = |word: &str| {
        let (name, ty) = word.split_once('=')?;
        Some((name.to_owned(), DataType::from_name(ty)?))
    };
    variant.label.split(' ').filter_map(pair).collect()
}

fn types_text(plugin: &Plugin, variant: &Variant) -> String {
    let parameters = parameters(variant);
    if parameters.is_empty() {
        let tensor = |(index, ty): (usize, &DataType)| {
            format!("{}={}", plugin.tensor_name(index).unwrap_or("?"), ty.name())
        };
        return variant.types.iter().enumerate().map(tensor).collect::<Vec<_>>().join(" ");
    }
    parameters.iter().map(|(name, ty)| format!("{name}={}", ty.name())).collect::<Vec<_>>().join(" ")
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
