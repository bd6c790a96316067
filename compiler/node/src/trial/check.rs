//! Checks trials without a GPU or user code.

use cubinder_launch::{UNKNOWN_EXTENT, shape_text};
use cubinder_model::Plugin;

use super::array::count;
use super::data;
use super::spec::{DataFile, FunctionRef, InputData, Trial};
use crate::diagnostic::suggest;
use crate::eval::ResolvedQuery;
use crate::source;

const MAX_PYTHON_BYTES: usize = 1 << 24;

/// Returns all errors in a trial's data.
#[must_use]
pub fn check(plugin: &Plugin, resolved: &ResolvedQuery, trial: &Trial) -> Vec<String> {
    let mut found = unknown_names(plugin, trial);
    for (name, data) in &trial.inputs {
        let index = plugin.inputs.iter().position(|input| input.name == *name);
        let shape = index.and_then(|index| resolved.inputs.get(index));
        let Some(shape) = shape else { continue };
        let why = match data {
            InputData::File(file) => check_file(file, Some(shape)),
            InputData::Numbers(numbers) => check_count(numbers.len(), shape),
            InputData::Range(..) => Ok(()),
            InputData::Columns(ranges) => data::check_columns(ranges.len(), shape),
        };
        found.extend(why.err().map(|why| format!("the input `{name}`: {why}")));
    }
    let outputs = resolved.outputs(plugin).ok();
    for (name, file) in &trial.outputs {
        if let Some(index) = plugin.outputs.iter().position(|output| output.name == *name) {
            let shape = outputs.as_ref().and_then(|shapes| shapes.get(index));
            let why = check_file(file, shape.filter(|shape| !shape.contains(&UNKNOWN_EXTENT))).err();
            found.extend(why.map(|why| format!("the expected values of the output `{name}`: {why}")));
        }
    }
    found.extend(trial.reference.as_ref().and_then(|function| check_reference(function).err()));
    found
}

/// Returns errors about unknown names.
#[must_use]
pub fn unknown_names(plugin: &Plugin, trial: &Trial) -> Vec<String> {
    let inputs: Vec<&str> = plugin.inputs.iter().map(|input| input.name.as_str()).collect();
    let outputs: Vec<&str> = plugin.outputs.iter().map(|output| output.name.as_str()).collect();
    let of_inputs = trial.inputs.iter().map(|(name, _)| ("", "input", name, &inputs));
    let of_outputs = trial.outputs.iter().map(|(name, _)| ("", "output", name, &outputs));
    let of_tolerances = trial.tolerance.iter().map(|(name, _)| ("`tolerance`: ", "output", name, &outputs));
    let all = of_inputs.chain(of_outputs).chain(of_tolerances);
    let unknown = all.filter(|(_, _, name, known)| !known.contains(&name.as_str()));
    let text = |(key, what, name, known): (&str, &str, &String, &Vec<&str>)| {
        let list = known.join("`, `");
        format!("{key}unknown {what} `{name}`; expected `{list}`{}", hint(name, known.iter().copied()))
    };
    unknown.map(text).collect()
}

fn hint<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    suggest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn check_file(file: &DataFile, shape: Option<&Vec<i64>>) -> Result<(), String> {
    let found = file.shape()?;
    match shape.filter(|shape| found != **shape) {
        Some(shape) => Err(format!(
            "`{file}` has shape {}, but the tensor has {}",
            shape_text(&found),
            shape_text(shape)
        )),
        None => Ok(()),
    }
}

fn check_count(numbers: usize, shape: &[i64]) -> Result<(), String> {
    if count(shape) == Some(numbers) {
        return Ok(());
    }
    let count = if numbers == 1 { "1 number".to_owned() } else { format!("{numbers} numbers") };
    Err(format!("found {count}, but the tensor has shape {}", shape_text(shape)))
}

/// Text that may define missing names.
const OPEN: [&str; 7] = ["import *", "globals(", "setattr(", "vars(", "exec(", "__dict__", "__getattr__"];

/// Checks a reference without running its file. Fails if unreadable, or without the function and computed or imported names.
pub fn check_reference(function: &FunctionRef) -> Result<(), String> {
    let path = function.path.display();
    let read = source::open_file(&function.path).and_then(|_| source::read(&function.path, MAX_PYTHON_BYTES));
    let text = match read {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => return Ok(()),
        Err(error) => return Err(format!("`reference`: cannot read `{path}`: {error}")),
    };
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_there = text.split(|letter| !is_part(letter)).any(|word| word == function.function);
    if is_there || OPEN.iter().any(|way| text.contains(way)) {
        return Ok(());
    }
    let defined = text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
    let hint = hint(&function.function, defined);
    Err(format!("`reference`: `{path}` does not define `{}`{hint}", function.function))
}
