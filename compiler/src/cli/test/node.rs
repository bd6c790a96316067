//! A node that is to be run, and its data: everything that does not depend on a variant.

use cubinder_expr::Value;
use cubinder_launch as launch;
use cubinder_launch::Device;
use cubinder_model::Plugin;
use cubinder_node::eval::Subject;
use cubinder_node::trial::reference::{Call, Python, Returned};
use cubinder_node::trial::{Array, InputData, Number, Tolerance, Trial, count, data, default_tolerance};

use super::protocol::{Fault, Kind};
use crate::cli::gpu::shaped::{Shaped, Unshaped};

/// A node with its shapes and data.
pub(super) struct Node<'a> {
    pub(super) shaped: Shaped<'a>,
    /// What the inputs hold.
    pub(super) inputs: Vec<Array>,
    /// What the outputs are to hold, and who says so.
    pub(super) expected: Vec<Option<(Array, String)>>,
    pub(super) tolerances: Vec<Tolerance>,
}

/// Why there is no such node.
pub(super) enum Unmade {
    /// The runtime would refuse it.
    Refused(String),
    /// A person's mistake.
    Wrong(Fault),
}

fn wrong(text: String) -> Unmade {
    Unmade::Wrong(Fault { kind: Kind::Data, tensor: None, text, elements: None, addresses: None })
}

impl<'a> Node<'a> {
    /// The node that `trial` describes, with its data.
    pub(super) fn new(
        subject: &'a Subject,
        trial: &Trial,
        device: Device,
        python: &mut Python,
    ) -> Result<Node<'a>, Unmade> {
        let shaped = Shaped::new(subject, &trial.query, device).map_err(|why| match why {
            Unshaped::Refused(why) => Unmade::Refused(why),
            Unshaped::Mistaken(all) => {
                wrong(all.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; "))
            }
        })?;
        check_names(shaped.plugin, trial)?;
        let mut node = Node { shaped, inputs: Vec::new(), expected: Vec::new(), tolerances: Vec::new() };
        node.inputs = node.make_inputs(trial).map_err(wrong)?;
        node.expected = node.make_expected(trial, python).map_err(wrong)?;
        node.tolerances = node.make_tolerances(trial);
        Ok(node)
    }

    fn make_inputs(&self, trial: &Trial) -> Result<Vec<Array>, String> {
        let input = |(index, input): (usize, &cubinder_model::Input)| {
            let (ty, shape) =
                (self.shaped.ty(index), self.shaped.resolved.inputs.get(index).cloned().unwrap_or_default());
            if input.values.is_some() {
                let held = self.shaped.resolved.values.get(index).into_iter().flatten();
                return Array::of_numbers(ty, shape, held.copied().map(Number::Int));
            }
            let said = trial.inputs.iter().find(|(name, _)| *name == input.name).map(|(_, data)| data);
            let seed = data::seed_of(trial.seed, &input.name);
            match said {
                Some(InputData::File(file)) => {
                    let found = file.shape()?;
                    if found != shape {
                        let (found, expected) = (launch::shape_text(&found), launch::shape_text(&shape));
                        return Err(format!("`{file}` is {found}, and the case says {expected}"));
                    }
                    file.array(ty, count(&shape).unwrap_or(0))
                }
                Some(InputData::Numbers(numbers)) => Array::of_numbers(ty, shape, numbers.iter().copied()),
                Some(InputData::Range(least, most)) => data::random(ty, &shape, (*least, *most), seed),
                Some(InputData::Columns(ranges)) => data::columns(ty, &shape, ranges, seed),
                None => data::random(ty, &shape, data::default_range(ty), seed),
            }
        };
        let named = |(index, it): (usize, &cubinder_model::Input)| {
            input((index, it)).map_err(|why| format!("the input `{}`: {why}", it.name))
        };
        self.shaped.plugin.inputs.iter().enumerate().map(named).collect()
    }

    fn make_expected(
        &self,
        trial: &Trial,
        python: &mut Python,
    ) -> Result<Vec<Option<(Array, String)>>, String> {
        let returned = match &trial.reference {
            Some(function) => Some((self.call(trial, function, python)?, function)),
            None => None,
        };
        let mut all = Vec::new();
        for (index, output) in self.shaped.plugin.outputs.iter().enumerate() {
            let (name, ty) = (&output.name, self.shaped.ty(self.shaped.tensor_of(index)));
            if let Some((_, file)) = trial.outputs.iter().find(|(known, _)| known == name) {
                let array = file.array(ty, self.most(index));
                let array = array.map_err(|why| format!("what the output `{name}` is to hold: {why}"))?;
                all.push(Some((array, file.to_string())));
                continue;
            }
            let array = returned
                .as_ref()
                .and_then(|(arrays, function)| Some((arrays.get(index)?.clone()?, function.to_string())));
            all.push(array);
        }
        Ok(all)
    }

    /// How many elements an output has at most.
    fn most(&self, output: usize) -> usize {
        self.shaped.largest.get(output).and_then(|shape| count(shape)).unwrap_or(0)
    }

    fn call(
        &self,
        trial: &Trial,
        function: &cubinder_node::trial::FunctionRef,
        python: &mut Python,
    ) -> Result<Vec<Option<Array>>, String> {
        let names = self.shaped.plugin.inputs.iter().map(|input| input.name.as_str());
        let inputs: Vec<(&str, &Array)> = names.zip(&self.inputs).collect();
        let names = self.shaped.plugin.attributes.iter().map(|attribute| attribute.name.as_str());
        let attributes: Vec<(&str, &Value)> = names.zip(&self.shaped.resolved.attributes).collect();
        let outputs = self.shaped.plugin.outputs.iter().enumerate().map(|(index, output)| Returned {
            name: &output.name,
            ty: self.shaped.ty(self.shaped.tensor_of(index)),
            most: self.most(index),
            is_size: output.size.is_some(),
            is_needed: output.size.is_none() && trial.outputs.iter().all(|(name, _)| *name != output.name),
        });
        let outputs: Vec<Returned<'_>> = outputs.collect();
        python.call(&Call { function, inputs: &inputs, attributes: &attributes, outputs: &outputs })
    }

    fn make_tolerances(&self, trial: &Trial) -> Vec<Tolerance> {
        let of = |(index, output): (usize, &cubinder_model::Output)| {
            let said = trial.tolerance.iter().find(|(name, _)| *name == output.name);
            said.map_or_else(
                || default_tolerance(self.shaped.ty(self.shaped.tensor_of(index))),
                |(_, said)| *said,
            )
        };
        self.shaped.plugin.outputs.iter().enumerate().map(of).collect()
    }
}

/// Refuses names that the plugin does not have.
fn check_names(plugin: &Plugin, trial: &Trial) -> Result<(), Unmade> {
    let inputs: Vec<&str> = plugin.inputs.iter().map(|input| input.name.as_str()).collect();
    let outputs: Vec<&str> = plugin.outputs.iter().map(|output| output.name.as_str()).collect();
    let unknown = |what: &str, name: &String, known: &[&str]| {
        (!known.contains(&name.as_str()))
            .then(|| wrong(format!("there is no {what} `{name}`; there is `{}`", known.join("`, `"))))
    };
    let of_inputs = trial.inputs.iter().find_map(|(name, _)| unknown("input", name, &inputs));
    let of_outputs = || trial.outputs.iter().find_map(|(name, _)| unknown("output", name, &outputs));
    let of_tolerances = || trial.tolerance.iter().find_map(|(name, _)| unknown("output", name, &outputs));
    match of_inputs.or_else(of_outputs).or_else(of_tolerances) {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}
