//! Optimization profiles: parses `--shape` and `--values`, and compares them with the network's inputs.

use cubinder_node::query;
use cubinder_onnx::nodes::{Dim, NetworkInput};
use cubinder_source::diagnostic::{Diagnostic, suggest};
use cubinder_source::words::{counted, quoted};
use cubinder_tensorrt::InputRange;

use super::errors::{NoRange, NoShape, NotIntegers, OtherShape, RangeTwice, UnknownInput};

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Shape,
    Values,
}

impl Part {
    fn option(self) -> &'static str {
        match self {
            Part::Shape => "--shape",
            Part::Values => "--values",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Part::Shape => "x=1x3x8x8:4x3x32x32:16x3x64x64",
            Part::Values => "size=1,1:4,8:16,16",
        }
    }

    fn parse(self, text: &str) -> Result<Vec<i64>, String> {
        match self {
            Part::Shape => query::shape(text),
            Part::Values => query::integers(text),
        }
    }
}

/// Rejects malformed, contradictory and missing ranges.
pub(super) fn ranges(
    inputs: &[NetworkInput],
    shapes: &[String],
    values: &[String],
) -> Result<(Vec<InputRange>, Vec<InputRange>), Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let shapes = all(Part::Shape, shapes, inputs, &mut errors);
    let values = all(Part::Values, values, inputs, &mut errors);
    // A malformed option is not missing.
    if errors.is_empty() {
        let is_given = |name: &String| shapes.iter().any(|range| range.name == *name);
        let missing = inputs.iter().filter(|input| is_dynamic(input) && !is_given(&input.name));
        errors.extend(missing.map(|input| no_shape(input).into()));
    }
    if errors.is_empty() { Ok((shapes, values)) } else { Err(errors) }
}

fn all(
    part: Part,
    texts: &[String],
    inputs: &[NetworkInput],
    errors: &mut Vec<Diagnostic>,
) -> Vec<InputRange> {
    let mut found: Vec<InputRange> = Vec::new();
    for text in texts {
        match range(part, text).and_then(|range| compared(part, text, range, inputs)) {
            Ok(range) if found.iter().any(|known| known.name == range.name) => {
                errors.push(RangeTwice { option: part.option(), name: &range.name }.into());
            }
            Ok(range) => found.push(range),
            Err(error) => errors.push(error),
        }
    }
    found
}

fn range(part: Part, text: &str) -> Result<InputRange, Diagnostic> {
    let malformed =
        |why: String| Diagnostic::from(NoRange { option: part.option(), text, why, example: part.example() });
    // Names may contain `=` and `:`; extents do not.
    let pair = text.rsplit_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, list) =
        pair.ok_or_else(|| malformed("expected `NAME=SHAPE` or `NAME=MIN:OPT:MAX`".to_owned()))?;
    let parts = list.split(':').map(|part_text| part.parse(part_text)).collect::<Result<Vec<_>, _>>();
    let extents: [Vec<i64>; 3] = match <[_; 3]>::try_from(parts.map_err(malformed)?) {
        Ok(three) => three,
        Err(mut one) => match (one.pop(), one.is_empty()) {
            (Some(only), true) => [only.clone(), only.clone(), only],
            (_, _) => return Err(malformed("expected one shape, or three separated by `:`".to_owned())),
        },
    };
    let [min, opt, max] = &extents;
    if min.len() != opt.len() || opt.len() != max.len() {
        let why = format!(
            "minimum, optimum and maximum differ in rank: {}, {}, {}",
            min.len(),
            opt.len(),
            max.len()
        );
        return Err(malformed(why));
    }
    let mut positions = min.iter().zip(opt).zip(max);
    if let Some(at) = positions.position(|((min, opt), max)| min > opt || opt > max) {
        return Err(malformed(format!("expected minimum <= optimum <= maximum at position {at}")));
    }
    Ok(InputRange { name: name.trim().to_owned(), extents })
}

fn compared(
    part: Part,
    text: &str,
    range: InputRange,
    inputs: &[NetworkInput],
) -> Result<InputRange, Diagnostic> {
    let (option, name) = (part.option(), range.name.as_str());
    let names = || inputs.iter().map(|input| input.name.as_str());
    let Some(input) = inputs.iter().find(|input| input.name == name) else {
        let inputs = quoted(names().take(16));
        return Err(UnknownInput { option, name, inputs, near: suggest(name, names()) }.into());
    };
    if part == Part::Values && !input.is_integer {
        return Err(NotIntegers { name }.into());
    }
    let Some(dims) = &input.dims else { return Ok(range) };
    let found = range.extents[0].len();
    let differs = |why: String| {
        let help = match part {
            Part::Shape => "change the shape, or export the model with other dimensions".to_owned(),
            Part::Values => format!("use the form `--values {}`, with all elements", part.example()),
        };
        OtherShape { option, text, name, shape: shape_text(input), why, help }
    };
    match part {
        Part::Values => {
            let count: Option<i64> = dims.iter().map(known).product();
            if let Some(count) = count.filter(|count| usize::try_from(*count) != Ok(found)) {
                return Err(differs(format!("{}, expected {count}", counted(found, "value"))).into());
            }
        }
        Part::Shape => {
            if found != dims.len() {
                return Err(differs(format!("rank {found}, expected {}", dims.len())).into());
            }
            let fixed = dims.iter().enumerate().filter_map(|(at, dim)| Some((at, known(dim)?)));
            let other =
                fixed.into_iter().find(|(at, fixed)| range.extents.iter().any(|shape| shape[*at] != *fixed));
            if let Some((at, fixed)) = other {
                return Err(differs(format!("the dimension at position {at} must be {fixed}")).into());
            }
        }
    }
    Ok(range)
}

fn known(dim: &Dim) -> Option<i64> {
    if let Dim::Known(extent) = dim { Some(*extent) } else { None }
}

fn is_dynamic(input: &NetworkInput) -> bool {
    input.dims.as_ref().is_none_or(|dims| dims.iter().any(|dim| known(dim).is_none()))
}

fn shape_text(input: &NetworkInput) -> String {
    match input.dims.as_deref() {
        None => "unknown".to_owned(),
        Some([]) => "scalar".to_owned(),
        Some(dims) => dims.iter().map(Dim::to_string).collect::<Vec<_>>().join("x"),
    }
}

fn no_shape(input: &NetworkInput) -> NoShape {
    let with = |extent: i64| {
        let dims = input.dims.iter().flatten().map(|dim| known(dim).unwrap_or(extent).to_string());
        dims.collect::<Vec<_>>().join("x")
    };
    let example = match &input.dims {
        Some(_) => [1, 4, 16].map(with).join(":"),
        None => "1x3x8x8:4x3x32x32:16x3x64x64".to_owned(),
    };
    NoShape { name: input.name.clone(), shape: shape_text(input), example }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
