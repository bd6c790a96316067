//! What is wrong with a trial, as far as that can be told without a GPU and without running anybody's code.

use cubinder_launch::{Facts, Steps, UNKNOWN_EXTENT, output_shapes, shape_text};
use cubinder_model::Plugin;

use super::array::count;
use super::data;
use super::spec::{DataFile, FunctionRef, InputData, Trial};
use crate::diagnostic::suggest;
use crate::eval::Stated;
use crate::source;

/// The most of a file of Python that is read, bytes.
const MOST: usize = 1 << 24;

/// Everything that is wrong with what a trial says of data: names that the plugin does not have, files that are not there or hold no such
/// tensor, shapes that are others, functions that are not there.
#[must_use]
pub fn mistakes(plugin: &Plugin, stated: &Stated, trial: &Trial) -> Vec<String> {
    let mut found: Vec<String> = names(plugin, trial).collect();
    for (name, data) in &trial.inputs {
        let index = plugin.inputs.iter().position(|input| input.name == *name);
        let shape = index.and_then(|index| stated.inputs.get(index));
        let Some(shape) = shape else { continue };
        let why = match data {
            InputData::File(file) => of_file(file, Some(shape)),
            InputData::Numbers(numbers) => of_numbers(numbers.len(), shape),
            InputData::Range(..) => None,
            InputData::Columns(ranges) => data::columns_mistake(ranges.len(), shape),
        };
        found.extend(why.map(|why| format!("the input `{name}`: {why}")));
    }
    let outputs = outputs(plugin, stated);
    for (name, file) in &trial.outputs {
        if let Some(index) = plugin.outputs.iter().position(|output| output.name == *name) {
            let shape = outputs.as_ref().and_then(|shapes| shapes.get(index));
            let shape = shape.filter(|shape| !shape.contains(&UNKNOWN_EXTENT));
            found.extend(
                of_file(file, shape).map(|why| format!("what the output `{name}` is to hold: {why}")),
            );
        }
    }
    found.extend(trial.reference.as_ref().and_then(function_mistake));
    found
}

/// The names that the plugin does not have.
fn names<'a>(plugin: &'a Plugin, trial: &'a Trial) -> impl Iterator<Item = String> + 'a {
    let inputs = || plugin.inputs.iter().map(|input| input.name.as_str());
    let outputs = || plugin.outputs.iter().map(|output| output.name.as_str());
    let of_inputs = trial.inputs.iter().filter_map(move |(name, _)| unknown("input", name, inputs()));
    let of_outputs = trial.outputs.iter().filter_map(move |(name, _)| unknown("output", name, outputs()));
    let of_tolerances = trial
        .tolerance
        .iter()
        .filter_map(move |(name, _)| Some(format!("`tolerance`: {}", unknown("output", name, outputs())?)));
    of_inputs.chain(of_outputs).chain(of_tolerances)
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    let known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return None;
    }
    let hint = suggest(name, known.iter().copied());
    let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(format!("there is no {what} `{name}`; there is `{}`{hint}", known.join("`, `")))
}

/// The outputs' shapes; none where the runtime would refuse the node, which is told elsewhere.
fn outputs(plugin: &Plugin, stated: &Stated) -> Option<Vec<Vec<i64>>> {
    let shapes: Vec<&[i64]> = stated.inputs.iter().map(Vec::as_slice).collect();
    let values: Vec<&[i64]> = stated.values.iter().map(Vec::as_slice).collect();
    let facts =
        Facts { attributes: &stated.attributes, shapes: &shapes, values: &values, ..Facts::default() };
    output_shapes(plugin, &facts, &mut Steps::default()).ok()
}

fn of_file(file: &DataFile, shape: Option<&Vec<i64>>) -> Option<String> {
    match (file.shape(), shape) {
        (Err(why), _) => Some(why),
        (Ok(found), Some(shape)) if found != *shape => {
            Some(format!("`{file}` is {}, and the tensor is {}", shape_text(&found), shape_text(shape)))
        }
        (Ok(_), _) => None,
    }
}

fn of_numbers(numbers: usize, shape: &[i64]) -> Option<String> {
    let is_are = if numbers == 1 { "1 number is".to_owned() } else { format!("{numbers} numbers are") };
    (count(shape) != Some(numbers))
        .then(|| format!("{is_are} given, and the tensor is {}", shape_text(shape)))
}

/// How a file defines names that do not stand in it.
const OPEN: [&str; 7] = ["import *", "globals(", "setattr(", "vars(", "exec(", "__dict__", "__getattr__"];

/// What is wrong with a reference, as far as its file tells it.
///
/// A name that stands nowhere in the file is defined nowhere in it, but where everything of another is imported or names are computed. That
/// it stands there proves nothing: then Python says whether it is defined.
#[must_use]
pub fn function_mistake(function: &FunctionRef) -> Option<String> {
    let cannot = |why: String| Some(format!("`reference`: cannot read `{}`: {why}", function.path.display()));
    let read = source::open_file(&function.path).and_then(|_| source::read(&function.path, MOST));
    let text = match read {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => return None,
        Err(error) => return cannot(error.to_string()),
    };
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_there = text.split(|letter| !is_part(letter)).any(|word| word == function.function);
    let is_open = OPEN.iter().any(|way| text.contains(way));
    (!is_there && !is_open).then(|| {
        let defined = text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
        let hint = suggest(&function.function, defined);
        let hint = hint.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("`reference`: `{}` defines no `{}`{hint}", function.path.display(), function.function)
    })
}
