use cubinder_expr::Value;
use cubinder_launch::Device;
use cubinder_model::Input;
use cubinder_node::eval::Subject;
use cubinder_node::trial::reference::{Call, Computation, Python, Returned};
use cubinder_node::trial::{Array, FunctionRef, Number, Tolerance, Trial, default_tolerance, unknown_names};

use super::protocol::{Fault, Kind};
use crate::cli::gpu::shaped::{ShapeError, Shaped};

pub(super) struct Node<'a> {
    pub(super) shaped: Shaped<'a>,
    pub(super) inputs: Vec<Array>,
    pub(super) expected: Vec<Option<(Array, String)>>,
    pub(super) tolerances: Vec<Tolerance>,
}

pub(super) enum NodeError {
    Refused(String),
    Wrong(Fault),
}

fn wrong(text: String) -> NodeError {
    NodeError::Wrong(Fault::new(Kind::Data, text))
}

impl<'a> Node<'a> {
    pub(super) fn new(
        subject: &'a Subject,
        trial: &Trial,
        device: Device,
        python: &mut Python,
    ) -> Result<Node<'a>, NodeError> {
        let shaped = Shaped::new(subject, &trial.query, device).map_err(|why| match why {
            ShapeError::Refused(why) => NodeError::Refused(why),
            mistaken @ ShapeError::Mistaken(_) => wrong(mistaken.text()),
        })?;
        if let Some(unknown) = unknown_names(shaped.plugin, trial).into_iter().next() {
            return Err(wrong(unknown));
        }
        let inputs = shaped.plugin.inputs.iter().enumerate().map(|it| input(&shaped, trial, it));
        let inputs = inputs.collect::<Result<Vec<Array>, String>>().map_err(wrong)?;
        let expected = expected(&shaped, &inputs, trial, python).map_err(wrong)?;
        let tolerance = |(tensor, output): (usize, &cubinder_model::Output)| {
            let given = trial.tolerance.iter().find(|(name, _)| *name == output.name);
            given.map_or_else(|| default_tolerance(shaped.ty(tensor)), |(_, given)| *given)
        };
        let tolerances = shaped.outputs().map(tolerance).collect();
        Ok(Node { shaped, inputs, expected, tolerances })
    }
}

fn input(shaped: &Shaped<'_>, trial: &Trial, (index, input): (usize, &Input)) -> Result<Array, String> {
    let shape = shaped.shape(index);
    let array = if input.values.is_some() {
        let values = shaped.resolved.values.get(index).into_iter().flatten();
        Array::of_numbers(shaped.ty(index), shape.to_vec(), values.copied().map(Number::Int))
    } else {
        shaped.data(trial, (index, input), shape)
    };
    array.map_err(|why| format!("the input `{}`: {why}", input.name))
}

fn expected(
    shaped: &Shaped<'_>,
    inputs: &[Array],
    trial: &Trial,
    python: &mut Python,
) -> Result<Vec<Option<(Array, String)>>, String> {
    let returned = match &trial.reference {
        Some(function) => Some((call(shaped, inputs, trial, function, python)?, function)),
        None => None,
    };
    let of_output = |(index, (tensor, output)): (usize, (usize, &cubinder_model::Output))| {
        let name = &output.name;
        if let Some((_, file)) = trial.outputs.iter().find(|(known, _)| known == name) {
            let array = file.array(shaped.ty(tensor), shaped.max_elements(tensor));
            let array = array.map_err(|why| format!("the expected values of the output `{name}`: {why}"))?;
            return Ok(Some((array, file.to_string())));
        }
        let returned = returned.as_ref();
        Ok(returned.and_then(|(arrays, function)| Some((arrays.get(index)?.clone()?, function.to_string()))))
    };
    shaped.outputs().enumerate().map(of_output).collect()
}

fn call(
    shaped: &Shaped<'_>,
    inputs: &[Array],
    trial: &Trial,
    function: &FunctionRef,
    python: &mut Python,
) -> Result<Vec<Option<Array>>, String> {
    let names = shaped.plugin.inputs.iter().map(|input| input.name.as_str());
    let inputs: Vec<(&str, &Array)> = names.zip(inputs).collect();
    let names = shaped.plugin.attributes.iter().map(|attribute| attribute.name.as_str());
    let attributes: Vec<(&str, &Value)> = names.zip(&shaped.resolved.attributes).collect();
    let outputs = shaped.outputs().map(|(tensor, output)| Returned {
        name: &output.name,
        ty: shaped.ty(tensor),
        most: shaped.max_elements(tensor),
        is_size: output.size.is_some(),
        is_needed: output.size.is_none() && trial.outputs.iter().all(|(name, _)| *name != output.name),
    });
    let outputs: Vec<Returned<'_>> = outputs.collect();
    let computation = Computation::Function(function);
    python.call(&Call { computation, inputs: &inputs, attributes: &attributes, outputs: &outputs })
}
