//! The inputs of a run: files, or random numbers from a seed.

use std::path::{Path, PathBuf};

use cubinder_expr::DataType;
use cubinder_launch::shape_text;
use cubinder_node::query::{Part, Query};
use cubinder_node::trial::{Array, DataFile, Number, count, data};
use cubinder_source::diagnostic::{Diagnostic, suggest};
use cubinder_source::words::quoted;
use cubinder_tensorrt::Tensor;

use super::Request;
use super::errors::{BadData, NoData, NoFormat, NoInput, NoType, OtherShape, OutOfRange};

pub(super) struct GivenInputs<'a> {
    /// Names with files.
    files: Vec<(&'a str, DataFile)>,
    shapes: Vec<(String, Vec<i64>)>,
    archive: Option<&'a PathBuf>,
    seed: u64,
}

impl<'a> GivenInputs<'a> {
    pub(super) fn parse(request: &'a Request) -> Result<GivenInputs<'a>, Vec<Diagnostic>> {
        let query = Query::parse(&[(Part::Shape, &request.shapes)]);
        let mut errors = Vec::new();
        let mut files: Vec<(&str, DataFile)> = Vec::new();
        for text in &request.inputs {
            match file(text) {
                Ok((name, _)) if files.iter().any(|(known, _)| *known == name) => {
                    errors.push(NoData { text, why: format!("`{name}` has a file already") }.into());
                }
                Ok(file) => files.push(file),
                Err(why) => errors.push(NoData { text, why }.into()),
            }
        }
        let with_help = |error: Diagnostic| match error.help {
            Some(_) => error,
            None => error.help("use the form `--shape x=4x256`, once for each input"),
        };
        let query = query.map_err(|found| errors.extend(found.into_iter().map(with_help)));
        let shapes = query.unwrap_or_default().shapes;
        let archive = request.archive.as_ref();
        if errors.is_empty() {
            Ok(GivenInputs { files, shapes, archive, seed: request.seed })
        } else {
            Err(errors)
        }
    }

    /// Returns the arrays of the engine's inputs.
    pub(super) fn arrays(&self, tensors: &[Tensor]) -> Result<Vec<Array>, Vec<Diagnostic>> {
        let mut errors: Vec<Diagnostic> = tensors.iter().filter_map(|tensor| check(tensor).err()).collect();
        let inputs: Vec<&Tensor> = tensors.iter().filter(|tensor| tensor.is_input).collect();
        let named = self.files.iter().map(|(name, _)| ("--input", *name));
        let shaped = self.shapes.iter().map(|(name, _)| ("--shape", name.as_str()));
        for (option, name) in named.chain(shaped) {
            let names = || inputs.iter().map(|input| input.name.as_str());
            if !names().any(|known| known == name) {
                let inputs = quoted(names());
                errors.push(NoInput { option, name, inputs, near: suggest(name, names()) }.into());
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut arrays = Vec::new();
        for input in inputs {
            match self.array(input) {
                Ok(array) => arrays.push(array),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(arrays) } else { Err(errors) }
    }

    fn array(&self, input: &Tensor) -> Result<Array, Diagnostic> {
        let (ty, name) = (element_type(input)?, input.name.as_str());
        let bad = |why: String| Diagnostic::from(BadData { name, why });
        let given = self.shapes.iter().find(|(known, _)| known == name).map(|(_, shape)| shape);
        let own = self.files.iter().find(|(known, _)| *known == name).map(|(_, file)| file.clone());
        let member = || DataFile { path: self.archive?.clone(), member: Some(name.to_owned()) }.into();
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
        data::random(ty, shape, data::default_range(ty), data::seed_of(self.seed, name)).map_err(bad)
    }
}

fn file(text: &str) -> Result<(&str, DataFile), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, file) = pair.ok_or("expected `NAME=FILE`")?;
    let name = name.trim();
    Ok((name, DataFile::parse(file.trim(), name, Path::new(""))?))
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

/// Returns the type of TensorRT's name.
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
