//! A run's inputs: files, or random numbers from a seed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_expr::DataType;
use cubinder_launch::shape_text;
use cubinder_node::query::{Part, Query};
use cubinder_node::trial::{Array, DataFile, Number, count, data};
use cubinder_source::atomic_file::file_error;
use cubinder_source::diagnostic::{Diagnostic, suggest};
use cubinder_source::words::quoted;
use cubinder_tensorrt::Tensor;

use super::Request;
use super::errors::{BadData, NoFormat, NoInput, NoType, OtherShape, OutOfRange};

pub(super) struct GivenInputs<'a> {
    request: &'a Request,
    shapes: Vec<(String, Vec<i64>)>,
}

impl<'a> GivenInputs<'a> {
    pub(super) fn parse(request: &'a Request) -> Result<GivenInputs<'a>, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        for (number, (name, _)) in request.files.iter().enumerate() {
            if request.files.iter().take(number).any(|(known, _)| known == name) {
                errors.push(BadData { name, why: "expected one file, found two".to_owned() }.into());
            }
        }
        let files = request.files.iter().map(|(_, file)| &file.path).chain(&request.archive);
        let files: BTreeSet<&PathBuf> = files.collect();
        let missing = files.into_iter().filter_map(|file| Some((file, std::fs::metadata(file).err()?)));
        errors.extend(missing.map(|(file, error)| {
            file_error("read", file, &error).help("check the path after `--input` or `--inputs`")
        }));
        let with_help = |error: Diagnostic| match error.help {
            Some(_) => error,
            None => error.help("use the form `--shape x=4x256`, once for each input"),
        };
        let query = Query::parse(&[(Part::Shape, &request.shapes)]);
        let query = query.map_err(|found| errors.extend(found.into_iter().map(with_help)));
        let shapes = query.unwrap_or_default().shapes;
        if errors.is_empty() { Ok(GivenInputs { request, shapes }) } else { Err(errors) }
    }

    pub(super) fn fill(&self, tensors: &mut [Tensor]) -> Result<(), Vec<Diagnostic>> {
        let mut errors: Vec<Diagnostic> = tensors.iter().filter_map(|tensor| check(tensor).err()).collect();
        let inputs = || tensors.iter().filter(|tensor| tensor.is_input).map(|tensor| tensor.name.as_str());
        let named = self.request.files.iter().map(|(name, _)| ("--input", name));
        for (option, name) in named.chain(self.shapes.iter().map(|(name, _)| ("--shape", name))) {
            if !inputs().any(|known| known == name) {
                let near = suggest(name, inputs());
                errors.push(NoInput { option, name, inputs: quoted(inputs()), near }.into());
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for input in tensors.iter_mut().filter(|tensor| tensor.is_input) {
            match self.array(input) {
                Ok(array) => {
                    array.shape().clone_into(&mut input.shape);
                    input.bytes = array.into_bytes();
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn array(&self, input: &Tensor) -> Result<Array, Diagnostic> {
        let (ty, name) = (element_type(input)?, input.name.as_str());
        let bad = |why: String| Diagnostic::from(BadData { name, why });
        let given = self.shapes.iter().find(|(known, _)| known == name).map(|(_, shape)| shape);
        let own = self.request.files.iter().find(|(known, _)| known == name).map(|(_, file)| file.clone());
        let member = || Some(DataFile { path: self.request.archive.clone()?, member: Some(name.to_owned()) });
        if let Some(file) = own.or_else(member) {
            let shape = file.shape().map_err(bad)?;
            if let Some(given) = given.filter(|given| **given != shape) {
                let (file, given) = (shape_text(&shape), shape_text(given));
                return Err(OtherShape { name, file, given }.into());
            }
            check_shape(input, &shape)?;
            return file.array(ty, count(&shape).unwrap_or(0)).map_err(bad);
        }
        let optimum = input.profile.get(1).unwrap_or(&input.shape);
        let shape = given.unwrap_or(optimum);
        check_shape(input, shape)?;
        if input.is_host {
            let values = input
                .values
                .get(1)
                .ok_or_else(|| bad("its values determine shapes; pass them".to_owned()))?;
            return Array::of_numbers(ty, shape.clone(), values.iter().copied().map(Number::Int))
                .map_err(bad);
        }
        data::random(ty, shape, data::default_range(ty), data::seed_of(self.request.seed, name)).map_err(bad)
    }
}

/// Parses `NAME=FILE`.
pub(super) fn parse_file(text: &str) -> Result<(String, DataFile), String> {
    let pair = text.split_once('=').map(|(name, file)| (name.trim(), file.trim()));
    let pair = pair.filter(|(name, _)| !name.is_empty());
    let (name, file) = pair.ok_or("expected a name and a file: `x=x.npy` or `x=data.npz:y`")?;
    Ok((name.to_owned(), DataFile::parse(file, name, Path::new(""))?))
}

fn check(tensor: &Tensor) -> Result<(), Diagnostic> {
    element_type(tensor)?;
    match tensor.format.as_str() {
        "LINEAR" => Ok(()),
        format => Err(NoFormat { name: &tensor.name, format }.into()),
    }
}

fn check_shape(input: &Tensor, shape: &[i64]) -> Result<(), Diagnostic> {
    let (least, most) = match input.profile.as_slice() {
        [least, _, most] => (least, most),
        _ => (&input.shape, &input.shape),
    };
    let fits = |(extent, (least, most)): (&i64, (&i64, &i64))| (least..=most).contains(&extent);
    if shape.len() == least.len() && shape.iter().zip(least.iter().zip(most)).all(fits) {
        return Ok(());
    }
    let range = match least == most {
        true => shape_text(least),
        false => format!("{} to {}", shape_text(least), shape_text(most)),
    };
    Err(OutOfRange { name: &input.name, shape: shape_text(shape), range }.into())
}

pub(super) fn element_type(tensor: &Tensor) -> Result<DataType, Diagnostic> {
    Ok(match tensor.ty.as_str() {
        "FLOAT" => DataType::F32,
        "HALF" => DataType::F16,
        "BF16" => DataType::Bf16,
        "FP8" => DataType::F8,
        "INT4" => DataType::I4,
        "INT8" => DataType::I8,
        "INT32" => DataType::I32,
        "INT64" => DataType::I64,
        "UINT8" => DataType::U8,
        "BOOL" => DataType::Bool,
        ty => return Err(NoType { name: &tensor.name, ty }.into()),
    })
}
