//! Assigns the user's `tl.constexpr` values, which Triton does not write, to compiles. Missing ones are errors.

use std::collections::{BTreeMap, BTreeSet};

use super::errors::{
    NoParameter, NoValue, OtherConstants, OtherOptions, PassedParameter, TwoValues, UnclearValue, UnusedValue,
};
use super::folders::meant;
use super::listing::{definition_places, list_folders};
use super::options::differences;
use super::{ADDED, Compiled};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::toml_reader::list;

/// A parameter's constant value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstantValue {
    /// Number or boolean in a manifest's syntax.
    Number(String),
    /// Another value, which manifests cannot check.
    Word(String),
}

impl std::fmt::Display for ConstantValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConstantValue::Number(text) | ConstantValue::Word(text) => f.write_str(text),
        }
    }
}

/// The user's values of a parameter: `BLOCK=1024`, `FOLDER:BLOCK=512`, `BLOCK=512,1024`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// Restricts the values to this folder's outputs.
    pub folder: Option<String>,
    /// Parameter.
    pub name: String,
    /// Values; each output has the one that is a size in it.
    pub values: Vec<ConstantValue>,
}

impl std::str::FromStr for Constant {
    type Err = String;

    fn from_str(text: &str) -> Result<Constant, String> {
        const EXPECTED: &str = "expected NAME=VALUE, such as `BLOCK=1024`, or FOLDER:NAME=VALUE";
        let (left, right) = text.split_once('=').ok_or(EXPECTED)?;
        let (folder, name) = match left.rsplit_once(':') {
            Some((folder, name)) => (Some(folder.trim().trim_end_matches('/').to_owned()), name.trim()),
            None => (None, left.trim()),
        };
        let is_name = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !is_name {
            return Err(format!("`{name}` is not a name"));
        }
        if folder.as_ref().is_some_and(String::is_empty) {
            return Err(EXPECTED.to_owned());
        }
        let values: Vec<ConstantValue> = right.split(',').map(|value| fixed(value.trim())).collect();
        match values.iter().any(|value| *value == ConstantValue::Word(String::new())) {
            true => Err(EXPECTED.to_owned()),
            false => Ok(Constant { folder, name: name.to_owned(), values }),
        }
    }
}

fn fixed(text: &str) -> ConstantValue {
    match text {
        "True" | "true" => ConstantValue::Number("true".to_owned()),
        "False" | "false" => ConstantValue::Number("false".to_owned()),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => ConstantValue::Number(number.to_string()),
            // TOML requires a digit on both sides of the point.
            (_, Ok(number)) if number.is_finite() => ConstantValue::Number(format!("{number:?}")),
            _ => word(text),
        },
    }
}

fn word(text: &str) -> ConstantValue {
    let bare = text.trim_matches(['"', '\'']);
    ConstantValue::Word(bare.chars().filter(|c| !c.is_control()).collect())
}

impl Compiled {
    pub(super) fn is_size(&self, value: &ConstantValue) -> bool {
        matches!(value, ConstantValue::Number(text) if text.parse().is_ok_and(|size| self.sizes.contains(&size)))
    }
}

pub(super) type Values = BTreeMap<String, ConstantValue>;

pub(super) struct Assigned {
    /// In the order of compiles.
    pub(super) values: Vec<Values>,
    /// Compiles with values for their folder.
    scoped: BTreeSet<usize>,
}

pub(super) fn assign(all: &[Compiled], constants: &[Constant]) -> Result<Assigned, Diagnostic> {
    names_are_known(all, constants)?;
    let mut known: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for folder in constants.iter().filter_map(|constant| constant.folder.as_deref()) {
        if !known.contains_key(folder) {
            known.insert(folder, meant(all, folder)?);
        }
    }
    let of_compile = |index: usize| -> Vec<&Constant> {
        let is_of = |folder: &str| known.get(folder).is_some_and(|known| known.contains(&index));
        constants.iter().filter(|constant| constant.folder.as_deref().is_some_and(is_of)).collect()
    };
    let values = all.iter().enumerate();
    let values = values.map(|(index, compiled)| values_of(compiled, all, &of_compile(index), constants));
    let values: Vec<Values> = values.collect::<Result<_, _>>()?;
    are_said_of_all(all, &values, constants)?;
    Ok(Assigned { values, scoped: known.into_values().flatten().collect() })
}

/// Each compile must have each constant; each value must be used.
fn are_said_of_all(all: &[Compiled], values: &[Values], constants: &[Constant]) -> Result<(), Diagnostic> {
    for constant in constants {
        let has = |values: &Values| values.contains_key(&constant.name);
        let lacks = |(compiled, values): &(&Compiled, &Values)| {
            !has(values) && !compiled.names.contains(&constant.name)
        };
        if let Some((compiled, _)) = all.iter().zip(values).find(lacks) {
            return Err(NoValue { name: &constant.name, folder: compiled.folder() }.into());
        }
        let is_of_none =
            |value: &&ConstantValue| !values.iter().any(|values| values.get(&constant.name) == Some(*value));
        if let Some(value) = constant.values.iter().find(is_of_none) {
            return Err(UnusedValue { name: &constant.name, value: value.to_string() }.into());
        }
    }
    Ok(())
}

fn names_are_known(all: &[Compiled], constants: &[Constant]) -> Result<(), Diagnostic> {
    for Constant { name, .. } in constants {
        if ADDED.contains(&name.as_str()) || all.iter().all(|compiled| compiled.names.contains(name)) {
            return Err(PassedParameter { name }.into());
        }
        let signatures: Option<Vec<_>> = all.iter().map(|compiled| compiled.signature.as_ref()).collect();
        let Some(signatures) = signatures else { continue };
        let known: BTreeSet<&str> =
            signatures.into_iter().flatten().map(|parameter| parameter.name.as_str()).collect();
        if !known.contains(name.as_str()) {
            let near = suggest(name, known.iter().copied());
            let parameters = near.is_none().then(|| list(&known));
            return Err(NoParameter { name, parameters, near }.into());
        }
    }
    Ok(())
}

/// Its folder's values take precedence.
fn values_of(
    compiled: &Compiled,
    all: &[Compiled],
    of_folder: &[&Constant],
    constants: &[Constant],
) -> Result<Values, Diagnostic> {
    let is_overridden = |name: &str| of_folder.iter().any(|own| own.name == name);
    let general = constants.iter().filter(|it| it.folder.is_none() && !is_overridden(&it.name));
    let mut values = Values::new();
    for constant in of_folder.iter().copied().chain(general) {
        let name = &constant.name;
        if compiled.names.contains(name) {
            continue;
        }
        let value = chosen(compiled, all, constant)?;
        if let Some(one) = values.insert(name.clone(), value.clone()).filter(|one| *one != value) {
            let (one, other, folder) = (one.to_string(), value.to_string(), compiled.folder());
            return Err(TwoValues { name, one, other, folder }.into());
        }
    }
    Ok(values)
}

fn chosen(compiled: &Compiled, all: &[Compiled], constant: &Constant) -> Result<ConstantValue, Diagnostic> {
    if let [one] = constant.values.as_slice() {
        return Ok(one.clone());
    }
    let fitting: Vec<&ConstantValue> =
        constant.values.iter().filter(|value| compiled.is_size(value)).collect();
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        fitting => {
            let found = match fitting {
                [] => "no value is".to_owned(),
                _ => format!("{} values are", fitting.len()),
            };
            let (name, folder) = (constant.name.as_str(), compiled.folder());
            Err(UnclearValue { name, folder, found, described: described(all) }.into())
        }
    }
}

/// Omits parameters that some compiles pass.
pub(super) fn of_constexpr(all: &[Compiled], values: &[Values]) -> Vec<Vec<String>> {
    let passed: BTreeSet<&String> = all.iter().flat_map(|compiled| &compiled.names).collect();
    let of = |values: &Values| {
        let own = values.iter().filter(|(name, _)| !passed.contains(name));
        own.map(|(name, value)| format!("{name}={value}")).collect()
    };
    values.iter().map(of).collect()
}

/// Compiles must differ in types, options or constants, so that a launch can choose.
pub(super) fn are_told_apart(all: &[Compiled], said: &Assigned) -> Result<(), Diagnostic> {
    let mut sources: BTreeMap<(String, Vec<String>), &Compiled> = BTreeMap::new();
    let mut sizes: BTreeMap<Vec<String>, (usize, &Compiled)> = BTreeMap::new();
    let mut same: BTreeMap<(String, Vec<String>, String), &Compiled> = BTreeMap::new();
    let own = of_constexpr(all, &said.values);
    for (index, ((compiled, values), own)) in all.iter().zip(&said.values).zip(own).enumerate() {
        let class = compiled.class();
        let of_source = *sources.entry((class.clone(), own.clone())).or_insert(compiled);
        let (first, of_sizes) = *sizes.entry(own.clone()).or_insert((index, compiled));
        // Sizes may depend on types if values are per folder and no size is exclusive.
        let is_scoped = said.scoped.contains(&first) && said.scoped.contains(&index);
        let are_sizes_right = of_sizes.sizes == compiled.sizes
            || is_scoped && values.values().all(|value| of_sizes.is_size(value) == compiled.is_size(value));
        if of_source.source != compiled.source || !are_sizes_right {
            let other = if of_source.source == compiled.source { of_sizes } else { of_source };
            return Err(other_constants(all, other, compiled));
        }
        if let Some(other) = same.insert((class, own, compiled.options()), compiled) {
            return Err(other_constants(all, other, compiled));
        }
    }
    Ok(())
}

fn other_constants(all: &[Compiled], one: &Compiled, other: &Compiled) -> Diagnostic {
    let constexprs = one.signature.iter().flatten().filter(|parameter| parameter.is_constexpr);
    let names: Vec<&str> = constexprs.map(|parameter| parameter.name.as_str()).collect();
    let mut differences = differences(&[one, other]);
    if !differences.is_empty() && one.source == other.source && one.sizes == other.sizes {
        return OtherOptions { differences }.into();
    }
    differences.extend(definition_places(all));
    OtherConstants {
        one: one.json.display(),
        other: other.json.display(),
        parameters: (!names.is_empty()).then(|| list(&names)),
        described: described(all),
        differences,
        example: names.first().copied().unwrap_or("BLOCK"),
        folder: one.folder(),
    }
    .into()
}

type ByClass<'c> = BTreeMap<String, Vec<&'c Compiled>>;

fn described(all: &[Compiled]) -> Vec<String> {
    const MOST: usize = 12;
    let mut groups: BTreeMap<(u32, u32, Vec<u64>), ByClass<'_>> = BTreeMap::new();
    for compiled in all {
        let key = (
            compiled.metadata.launch.num_warps,
            compiled.metadata.launch.num_stages,
            compiled.sizes.iter().copied().collect(),
        );
        groups.entry(key).or_default().entry(compiled.class()).or_default().push(compiled);
    }
    let mut lines = Vec::new();
    for ((warps, stages, sizes), classes) in groups {
        let what = format!("{warps} warps, {stages} stages{}", of_sizes(&sizes));
        let is_one_source = classes
            .values()
            .all(|all| all.iter().all(|one| all.first().is_none_or(|first| first.source == one.source)));
        if is_one_source {
            let all: Vec<&Compiled> = classes.into_values().flatten().collect();
            lines.push(format!("{what}: {}", list_folders(&all)));
            continue;
        }
        for (class, all) in classes {
            let mut by_source: BTreeMap<&str, Vec<&Compiled>> = BTreeMap::new();
            for compiled in all {
                by_source.entry(&compiled.source).or_default().push(compiled);
            }
            lines.extend(
                by_source.into_values().map(|all| format!("{what}, ({class}): {}", list_folders(&all))),
            );
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn of_sizes(sizes: &[u64]) -> String {
    match sizes {
        [] => String::new(),
        sizes => {
            let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
            format!(", `tl.arange` of {}", sizes.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read() {
        let read = |text: &str| text.parse::<Constant>();
        let number = |text: &str| ConstantValue::Number(text.to_owned());
        let found = read("cache/AB:BLOCK = 512, 1024").unwrap();
        assert_eq!((found.folder.as_deref(), found.name.as_str()), (Some("cache/AB"), "BLOCK"));
        assert_eq!(found.values, [number("512"), number("1024")]);
        assert_eq!(read("ACT='relu'").unwrap().values, [ConstantValue::Word("relu".to_owned())]);
        assert_eq!(read("LOG=True").unwrap().values, [number("true")]);
        assert_eq!(read("ALPHA=.5").unwrap().values, [number("0.5")]);
        for text in ["", "BLOCK", "=1", "1A=2", "A=", ":A=1", "A=1,", "a b=1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
