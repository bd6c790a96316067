//! What code was made for that Triton does not write: the values of `tl.constexpr` parameters, as a person says them.
//!
//! Owns which value belongs to which compile, and the refusal where that is not said. Never guesses a value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{ADDED, Compiled, listed};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::form::list;
use crate::rules;

/// A value that a parameter was fixed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fixed {
    /// A number or a boolean, as manifests write it.
    Number(String),
    /// Anything else, which no manifest can hold against a node.
    Word(String),
}

impl std::fmt::Display for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fixed::Number(text) | Fixed::Word(text) => f.write_str(text),
        }
    }
}

/// Values that somebody says of a parameter: `BLOCK=1024`, `FOLDER:BLOCK=512`, `BLOCK=512,1024`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// Of which outputs; of all, where nothing is said.
    pub folder: Option<String>,
    /// The parameter.
    pub name: String,
    /// Its value. Of several each output has the one that is a size in it.
    pub values: Vec<Fixed>,
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
            return Err(format!("`{name}` is no name"));
        }
        if folder.as_ref().is_some_and(String::is_empty) {
            return Err(EXPECTED.to_owned());
        }
        let values: Vec<Fixed> = right.split(',').map(|value| fixed(value.trim())).collect();
        match values.iter().any(|value| *value == Fixed::Word(String::new())) {
            true => Err(EXPECTED.to_owned()),
            false => Ok(Constant { folder, name: name.to_owned(), values }),
        }
    }
}

fn fixed(text: &str) -> Fixed {
    match text {
        "True" | "true" => Fixed::Number("true".to_owned()),
        "False" | "false" => Fixed::Number("false".to_owned()),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Fixed::Number(number.to_string()),
            // As TOML writes it: a digit on both sides of the point.
            (_, Ok(number)) if number.is_finite() => Fixed::Number(format!("{number:?}")),
            _ => word(text),
        },
    }
}

fn word(text: &str) -> Fixed {
    let bare = text.trim_matches(['"', '\'']);
    Fixed::Word(bare.chars().filter(|c| !c.is_control()).collect())
}

/// The values of a compile, by name.
pub(super) type Values = BTreeMap<String, Fixed>;

/// The values of each compile, in their order.
///
/// # Errors
/// Names that no output has; folders that there are not; values that cannot be told apart, or that are not said of all.
pub(super) fn assign(all: &[Compiled], constants: &[Constant]) -> Result<Vec<Values>, Diagnostic> {
    names_are_known(all, constants)?;
    for constant in constants {
        if let Some(folder) = &constant.folder
            && !all.iter().any(|compiled| is_of(compiled, folder))
        {
            return Err(Diagnostic::error(format!("no output of Triton is in a folder `{folder}`"))
                .note("a folder is named by its name, its path, or how its name or the `hash` of its JSON begins")
                .help(format!("the folders are {}", listed(folders(all)))));
        }
    }
    let values: Vec<Values> =
        all.iter().map(|compiled| of(compiled, all, constants)).collect::<Result<_, _>>()?;
    for constant in constants {
        let has = |values: &Values| values.contains_key(&constant.name);
        let lacks = |(compiled, values): &(&Compiled, &Values)| {
            !has(values) && !compiled.names.contains(&constant.name)
        };
        if let Some((compiled, _)) = all.iter().zip(&values).find(lacks) {
            return Err(Diagnostic::error(format!(
                "`{}` is not said of `{}`, and is no parameter there",
                constant.name,
                compiled.folder()
            ))
            .help(format!(
                "say it, too: `--constant {}:{}=...`",
                compiled.folder(),
                constant.name
            )));
        }
        if let Some(value) = constant
            .values
            .iter()
            .find(|value| !values.iter().any(|values| values.get(&constant.name) == Some(value)))
        {
            return Err(Diagnostic::error(format!(
                "`{}` is {value} in none of these outputs",
                constant.name
            ))
            .help("leave that value out, or name the folder that was compiled for it"));
        }
    }
    Ok(values)
}

fn names_are_known(all: &[Compiled], constants: &[Constant]) -> Result<(), Diagnostic> {
    for Constant { name, .. } in constants {
        if ADDED.contains(&name.as_str()) || all.iter().all(|compiled| compiled.names.contains(name)) {
            return Err(Diagnostic::error(format!(
                "`{name}` is passed to the kernel, and is no constant of it"
            ))
            .help(format!("leave `--constant {name}=...` out")));
        }
        let signatures: Option<Vec<_>> = all.iter().map(|compiled| compiled.signature.as_ref()).collect();
        let Some(signatures) = signatures else { continue };
        let known: BTreeSet<&str> =
            signatures.into_iter().flatten().map(|parameter| parameter.name.as_str()).collect();
        if !known.contains(name.as_str()) {
            let error = Diagnostic::error(format!("the kernel has no parameter `{name}`"));
            return Err(match suggest(name, known.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.note(format!("it has {}", list(&known.into_iter().collect::<Vec<_>>()))),
            });
        }
    }
    Ok(())
}

/// Whether a person means this compile by a folder.
fn is_of(compiled: &Compiled, folder: &str) -> bool {
    let path = compiled.json.parent().unwrap_or(Path::new(""));
    let is_component =
        path.components().any(|component| component.as_os_str().to_string_lossy().starts_with(folder));
    is_component || path.starts_with(folder) || compiled.metadata.hash.starts_with(folder)
}

fn folders(all: &[Compiled]) -> Vec<String> {
    let found: BTreeSet<String> = all.iter().map(Compiled::folder).collect();
    found.into_iter().take(8).collect()
}

/// The values of one compile: what is said of its folder comes before what is said of all.
fn of(compiled: &Compiled, all: &[Compiled], constants: &[Constant]) -> Result<Values, Diagnostic> {
    let mut values = Values::new();
    let mut said: BTreeSet<&str> = BTreeSet::new();
    let scoped = |constant: &&Constant| constant.folder.is_some();
    let (scoped, general): (Vec<&Constant>, Vec<&Constant>) = constants.iter().partition(scoped);
    for constant in scoped {
        let is_here = constant.folder.as_ref().is_some_and(|folder| is_of(compiled, folder));
        if is_here && !compiled.names.contains(&constant.name) {
            let value = chosen(compiled, all, constant)?;
            said.insert(&constant.name);
            insert(&mut values, compiled, constant, &value)?;
        }
    }
    for constant in general {
        if !said.contains(constant.name.as_str()) && !compiled.names.contains(&constant.name) {
            let value = chosen(compiled, all, constant)?;
            insert(&mut values, compiled, constant, &value)?;
        }
    }
    Ok(values)
}

fn insert(
    values: &mut Values,
    compiled: &Compiled,
    constant: &Constant,
    value: &Fixed,
) -> Result<(), Diagnostic> {
    match values.insert(constant.name.clone(), value.clone()) {
        Some(other) if other != *value => Err(Diagnostic::error(format!(
            "`{}` is said to be {other} and {value} in `{}`",
            constant.name,
            compiled.folder()
        ))
        .help("say one value of each folder")),
        _ => Ok(()),
    }
}

/// The value among those said that is a size in this compile.
fn chosen(compiled: &Compiled, all: &[Compiled], constant: &Constant) -> Result<Fixed, Diagnostic> {
    if let [one] = constant.values.as_slice() {
        return Ok(one.clone());
    }
    let is_size = |value: &&Fixed| matches!(value, Fixed::Number(text) if text.parse().is_ok_and(|size| compiled.sizes.contains(&size)));
    let fitting: Vec<&Fixed> = constant.values.iter().filter(is_size).collect();
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        fitting => {
            let found = match fitting {
                [] => "none of these values is".to_owned(),
                _ => format!("{} of these values are", fitting.len()),
            };
            let error = Diagnostic::error(format!(
                "it cannot be told what `{}` is in `{}`: {found} the size of a `tl.arange` there",
                constant.name,
                compiled.folder()
            ));
            let error = described(all).into_iter().fold(error, Diagnostic::note);
            Err(error.help(format!(
                "say it for each folder: `--constant {}:{}=...`",
                compiled.folder(),
                constant.name
            )))
        }
    }
}

/// That each compile is told apart from the others by its types, its options and what is said of its constants.
///
/// # Errors
/// Where two are not: a launch could not tell them apart, and a grid would be right for one of them alone.
pub(super) fn are_told_apart(
    all: &[Compiled],
    values: &[Values],
    constants: &[Constant],
) -> Result<(), Diagnostic> {
    let mut sources: BTreeMap<(String, Vec<String>), &Compiled> = BTreeMap::new();
    let mut sizes: BTreeMap<Vec<String>, &Compiled> = BTreeMap::new();
    let mut same: BTreeMap<(String, Vec<String>, String), &Compiled> = BTreeMap::new();
    let is_scoped = |compiled: &Compiled| {
        constants
            .iter()
            .any(|constant| constant.folder.as_ref().is_some_and(|folder| is_of(compiled, folder)))
    };
    for (compiled, values) in all.iter().zip(values) {
        // What is a parameter in some and a constant in others is no value of a `tl.constexpr`.
        let passed = |name: &String| all.iter().any(|other| other.names.contains(name));
        let said: Vec<String> = values
            .iter()
            .filter(|(name, _)| !passed(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let class = compiled.class();
        let of_source = *sources.entry((class.clone(), said.clone())).or_insert(compiled);
        let of_sizes = *sizes.entry(said.clone()).or_insert(compiled);
        let whole = (class, said, compiled.options());
        if of_source.source != compiled.source
            || of_sizes.sizes != compiled.sizes && !(is_scoped(of_sizes) && is_scoped(compiled))
        {
            let other = if of_source.source == compiled.source { of_sizes } else { of_source };
            return Err(other_constants(all, other, compiled));
        }
        if let Some(other) = same.insert(whole, compiled) {
            return Err(other_constants(all, other, compiled));
        }
    }
    Ok(())
}

fn other_constants(all: &[Compiled], one: &Compiled, other: &Compiled) -> Diagnostic {
    let names: Vec<&str> = one
        .signature
        .iter()
        .flatten()
        .filter(|parameter| parameter.is_constexpr)
        .map(|parameter| parameter.name.as_str())
        .collect();
    let example = names.first().copied().unwrap_or("BLOCK");
    let error = Diagnostic::error("these were compiled for other values of tl.constexpr parameters")
        .code(rules::CODE_FILE)
        .note(format!("`{}` and `{}`, for instance", one.json.display(), other.json.display()));
    let error = match names.as_slice() {
        [] => error,
        names => error.note(format!("such parameters are {}", list(names))),
    };
    let error = described(all).into_iter().fold(error, Diagnostic::note);
    error.note("Triton does not write which values they are, and the grid depends on them").help(format!(
        "say the values: `--constant {example}=512,1024` where the sizes of `tl.arange` tell them apart, else of each folder: `--constant {}:{example}=512`, where the beginning of its name is enough; or import some of the folders only",
        one.folder()
    ))
}

/// Compiles by their class.
type ByClass<'c> = BTreeMap<String, Vec<&'c Compiled>>;

/// Lines that say what tells compiles apart.
fn described(all: &[Compiled]) -> Vec<String> {
    const MOST: usize = 12;
    let mut groups: BTreeMap<(u32, u32, Vec<u64>), ByClass<'_>> = BTreeMap::new();
    for compiled in all {
        let key = (
            compiled.metadata.num_warps,
            compiled.metadata.num_stages,
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
            lines.push(format!("{what}: {}", named(&all)));
            continue;
        }
        for (class, all) in classes {
            let mut by_source: BTreeMap<&str, Vec<&Compiled>> = BTreeMap::new();
            for compiled in all {
                by_source.entry(&compiled.source).or_default().push(compiled);
            }
            lines.extend(by_source.into_values().map(|all| format!("{what}, ({class}): {}", named(&all))));
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

fn named(all: &[&Compiled]) -> String {
    const MOST: usize = 4;
    let names: Vec<String> =
        all.iter().take(MOST).map(|compiled| format!("`{}`", compiled.folder())).collect();
    let more = match all.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read() {
        let read = |text: &str| text.parse::<Constant>();
        let number = |text: &str| Fixed::Number(text.to_owned());
        let found = read("cache/AB:BLOCK = 512, 1024").unwrap();
        assert_eq!((found.folder.as_deref(), found.name.as_str()), (Some("cache/AB"), "BLOCK"));
        assert_eq!(found.values, [number("512"), number("1024")]);
        assert_eq!(read("ACT='relu'").unwrap().values, [Fixed::Word("relu".to_owned())]);
        assert_eq!(read("LOG=True").unwrap().values, [number("true")]);
        assert_eq!(read("ALPHA=.5").unwrap().values, [number("0.5")]);
        for text in ["", "BLOCK", "=1", "1A=2", "A=", ":A=1", "A=1,", "a b=1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
