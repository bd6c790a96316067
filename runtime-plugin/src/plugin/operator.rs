//! A plugin without TensorRT: the caller passes shapes, addresses and a stream ([`crate::interface`]).

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cubinder_expr::{DataType, Format, Value, lower};
use cubinder_launch as launch;
use cubinder_launch::{Facts, Steps};
use cubinder_model::{AUTO_TACTIC, Input, Output, Plugin};
use trt_abi::{Dims, Error, Field, PluginTensorDesc, Result, TensorFormat};

use super::Form;
use super::node::{EngineFacts, NamedNode, NodeData};
use super::run::RunState;
use super::shape_program::{InputPart, Instruction, ShapeProgram};
use crate::attributes;
use crate::definition::{Definition, OwnBundle, TensorKinds};
use crate::identity;
use crate::launch::Addresses;

/// A plugin with attributes and types, for linear tensors.
pub(crate) struct Operator {
    node: NamedNode,
    kinds: TensorKinds,
    running: Mutex<Running>,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Operator>();
};

/// Shapes, in the plugin's order; values for shape inputs.
#[derive(Clone, Copy)]
pub(crate) struct InputShapes<'a> {
    pub(crate) ranks: &'a [i32],
    /// Concatenated for all inputs.
    pub(crate) extents: &'a [i64],
}

#[derive(Default)]
struct Running {
    state: RunState,
    ranks: Vec<i32>,
    extents: Vec<i64>,
    built: EngineFacts,
    inputs: Vec<PluginTensorDesc>,
    outputs: Vec<PluginTensorDesc>,
}

#[derive(Clone, Copy)]
pub(crate) struct Workspace {
    pub(crate) address: *mut c_void,
    pub(crate) bytes: u64,
}

impl Operator {
    /// Creates the operator of `NAMESPACE::NAME` or `NAMESPACE::NAME@VERSION`. `input_types` are TensorRT's numbers.
    pub(crate) fn new(
        own: &Arc<OwnBundle>,
        plugin: &str,
        fields: &[Field<'_>],
        input_types: &[i32],
    ) -> Result<Operator> {
        let index = find(&own.bundle.plugins, plugin)?;
        let definition = Definition::Bundle { own: Arc::clone(own), index };
        let values = attributes::from_fields(definition.plugin(), fields);
        let values = values.map_err(|error| Error::invalid(format!("{plugin}: {error}")))?;
        Operator::from_definition(definition, values, input_types)
    }

    pub(crate) fn from_definition(
        definition: Definition,
        attributes: Vec<Value>,
        input_types: &[i32],
    ) -> Result<Operator> {
        let data = NodeData::new(definition, attributes, Form::Fields, identity::generic());
        let node = NamedNode::checked(data, "")?;
        let kinds = linear_kinds(&node, input_types)?.clone();
        Ok(Operator { node, kinds, running: Mutex::default() })
    }

    /// Returns TensorRT's numbers.
    pub(crate) fn output_types(&self) -> impl ExactSizeIterator<Item = i32> {
        let inputs = self.node.definition.plugin().inputs.len();
        self.kinds.types.iter().skip(inputs).map(|ty| ty.tensorrt())
    }

    /// Returns the outputs' checked shapes. Data-dependent sizes are those given, one per output, or their upper
    /// bounds.
    pub(crate) fn output_shapes(
        &self,
        given: InputShapes<'_>,
        sizes: Option<&[i64]>,
    ) -> Result<Vec<Vec<i64>>> {
        self.with_facts(given, |facts, steps| {
            let plugin = self.node.definition.plugin();
            let mut known = vec![None; plugin.inputs.len()];
            known.extend(self.bounds(facts, steps)?);
            for ((known, output), size) in
                known.iter_mut().skip(plugin.inputs.len()).zip(&plugin.outputs).zip(sizes.unwrap_or_default())
            {
                let Some(upper) = *known else { continue };
                if !(0..=upper).contains(size) {
                    let name = &output.name;
                    return Err(self
                        .node
                        .invalid(format_args!("the size `{name}` is {size}, expected 0 to {upper}")));
                }
                *known = Some(*size);
            }
            self.shapes(&Facts { sizes: &known, ..*facts }, steps)
        })
    }

    fn bounds(&self, facts: &Facts<'_>, steps: &mut Steps) -> Result<Vec<Option<i64>>> {
        let bound = |output: &Output| {
            let Some(size) = &output.size else { return Ok(None) };
            let wrong = |why: String| {
                self.node.invalid(format_args!("the greatest size of `{}`: {why}", output.name))
            };
            match steps.value(&size.upper, facts) {
                Ok(Value::Int(upper)) => Ok(Some(upper)),
                Ok(other) => Err(wrong(format!("found {other}, expected an integer"))),
                Err(error) => Err(wrong(steps.why(&error))),
            }
        };
        self.node.definition.plugin().outputs.iter().map(bound).collect()
    }

    fn shapes(&self, facts: &Facts<'_>, steps: &mut Steps) -> Result<Vec<Vec<i64>>> {
        launch::output_shapes(self.node.definition.plugin(), facts, steps)
            .map_err(|unmet| self.node.invalid(unmet))
    }

    fn with_facts<T>(
        &self,
        given: InputShapes<'_>,
        work: impl FnOnce(&Facts<'_>, &mut Steps) -> Result<T>,
    ) -> Result<T> {
        let plugin = self.node.definition.plugin();
        let parts = self.split(given)?;
        let counts: Vec<[i64; 1]> = parts.iter().map(|part| [part.len() as i64]).collect();
        let mut shapes: Vec<&[i64]> = Vec::with_capacity(parts.len());
        let mut values: Vec<&[i64]> = Vec::with_capacity(parts.len());
        for ((input, part), count) in plugin.inputs.iter().zip(parts).zip(&counts) {
            let is_shape_input = input.values.is_some();
            shapes.push(if is_shape_input { &count[..input.rank_max.min(1).into()] } else { part });
            values.push(if is_shape_input { part } else { &[] });
        }
        let facts = Facts { shapes: &shapes, values: &values, ..self.node.facts() };
        let mut steps = Steps::default();
        launch::check(plugin, launch::rules_of_shapes(plugin), &facts, &mut steps)
            .map_err(|unmet| self.node.invalid(unmet))?;
        work(&facts, &mut steps)
    }

    fn split<'a>(&self, InputShapes { ranks, extents }: InputShapes<'a>) -> Result<Vec<&'a [i64]>> {
        let inputs = &self.node.definition.plugin().inputs;
        self.check_count(ranks)?;
        let mut rest = extents;
        let mut parts = Vec::with_capacity(inputs.len());
        for (input, rank) in inputs.iter().zip(ranks) {
            let split = usize::try_from(*rank).ok().and_then(|rank| rest.split_at_checked(rank));
            let is_possible = |part: &[i64]| input.values.is_some() || part.iter().all(|extent| *extent >= 0);
            let Some((part, others)) = split.filter(|(part, _)| is_possible(part)) else {
                return Err(self.node.invalid(format_args!("the shape of `{}` is impossible", input.name)));
            };
            parts.push(part);
            rest = others;
        }
        match rest {
            [] => Ok(parts),
            _ => Err(self.node.invalid(format_args!("{} extents too many", rest.len()))),
        }
    }

    fn check_count(&self, ranks: &[i32]) -> Result<()> {
        let (found, expected) = (ranks.len(), self.node.definition.plugin().inputs.len());
        if found == expected {
            return Ok(());
        }
        Err(self.node.invalid(format_args!("{found} inputs, the plugin expects {expected}")))
    }

    /// Returns the output shapes as a program, for inputs of these ranks (of shape inputs: numbers of values). See
    /// `cubinder_operator_shape_program`.
    pub(crate) fn shape_program(&self, ranks: &[i32]) -> Result<Vec<i64>> {
        let inputs = &self.node.definition.plugin().inputs;
        self.check_count(ranks)?;
        let part = |(input, rank): (&Input, &i32)| InputPart {
            length: usize::try_from(*rank).unwrap_or(0),
            has_values: input.values.is_some(),
        };
        let parts: Vec<InputPart> = inputs.iter().zip(ranks).map(part).collect();
        let rank = |(input, part): (&Input, &InputPart)| match part.has_values {
            true => input.rank_max.min(1).into(),
            false => part.length,
        };
        let ranks: Vec<usize> = inputs.iter().zip(&parts).map(rank).collect();
        let facts = Facts { ranks: &ranks, ..self.node.facts() };
        let mut program = ShapeProgram::new(parts);
        for output in &self.node.definition.plugin().outputs {
            let extents = lower(&output.shape, &facts, &mut program).map_err(|error| {
                self.node.invalid(format_args!("the shape of `{}`: {error}", output.name))
            })?;
            program.outputs.push(extents);
        }
        Ok(words(&program))
    }

    /// Launches the kernels and returns the workspace that they need; launches nothing if given less.
    ///
    /// # Safety
    /// `inputs` (without shape inputs) and `outputs` are device addresses of linear tensors of the given shapes, with
    /// data-dependent sizes at their bounds; they and the workspace are valid until the work has run. `stream` is a
    /// live or default stream of the current context, always the same.
    pub(crate) unsafe fn run(
        &self,
        given: InputShapes<'_>,
        inputs: &[*const c_void],
        outputs: &[*mut c_void],
        workspace: Workspace,
        stream: *mut c_void,
    ) -> Result<u64> {
        let mut guard = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = &mut *guard;
        if running.inputs.is_empty() && running.outputs.is_empty()
            || running.ranks != given.ranks
            || running.extents != given.extents
        {
            self.announce(running, given)?;
        }
        let Running { state, built, .. } = running;
        state.on_shape_change(
            &self.node,
            AUTO_TACTIC,
            &|| built.clone(),
            &running.inputs,
            &running.outputs,
        )?;
        // Without a context nothing is prepared.
        let needed = state.workspace_bytes(&self.node)?;
        if needed > workspace.bytes {
            return Ok(needed);
        }
        let addresses = Addresses { inputs, outputs, workspace: workspace.address };
        // SAFETY: the caller upholds the callee's contract.
        unsafe { state.enqueue(&self.node, AUTO_TACTIC, &addresses, stream) }?;
        Ok(needed)
    }

    fn announce(&self, running: &mut Running, given: InputShapes<'_>) -> Result<()> {
        let plugin = self.node.definition.plugin();
        let (ranks, inputs, outputs) = self.with_facts(given, |facts, steps| {
            let outputs = self.shapes(facts, steps)?;
            let types = self.kinds.types.iter();
            let kinds = types.clone().zip(facts.shapes).zip(&plugin.inputs);
            let counted = kinds.filter(|(_, input)| input.values.is_none());
            let inputs = counted.map(|((ty, shape), _)| self.desc(*ty, shape)).collect::<Result<Vec<_>>>()?;
            let outputs = types.skip(plugin.inputs.len()).zip(&outputs);
            let outputs = outputs.map(|(ty, shape)| self.desc(*ty, shape)).collect::<Result<Vec<_>>>()?;
            let ranks: Vec<u8> = facts.shapes.iter().map(|shape| shape.len() as u8).collect();
            Ok((ranks, inputs, outputs))
        })?;
        running.built = EngineFacts {
            kinds: self.node.index_of_kinds(&self.kinds),
            input_ranks: Some(ranks.into()),
            // The caller provides it.
            workspace_bytes: Some(u64::MAX),
        };
        (running.inputs, running.outputs) = (inputs, outputs);
        (running.ranks, running.extents) = (given.ranks.to_vec(), given.extents.to_vec());
        Ok(())
    }

    fn desc(&self, ty: DataType, shape: &[i64]) -> Result<PluginTensorDesc> {
        let dims = Dims::from_slice(shape).ok_or_else(|| self.node.impossible_rank(shape.len() as i32))?;
        let format = TensorFormat(Format::Linear.tensorrt());
        Ok(PluginTensorDesc { dims, data_type: trt_abi::DataType(ty.tensorrt()), format, scale: 1.0 })
    }
}

fn find(plugins: &[Plugin], name: &str) -> Result<usize> {
    let with_version = |plugin: &Plugin| format!("{}@{}", plugin.full_name(), plugin.version);
    let is_it = |(_, plugin): &(usize, &Plugin)| plugin.full_name() == name || with_version(plugin) == name;
    let mut found = plugins.iter().enumerate().filter(is_it);
    let listed = || plugins.iter().map(with_version).collect::<Vec<_>>().join(", ");
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(Error::invalid(format!("this library has no plugin `{name}`; it has {}", listed()))),
        (Some(_), Some(_)) => {
            Err(Error::invalid(format!("`{name}` has several versions: name one of {}", listed())))
        }
    }
}

fn linear_kinds<'n>(node: &'n NamedNode, input_types: &[i32]) -> Result<&'n TensorKinds> {
    let inputs = node.definition.plugin().inputs.len();
    let types: Option<Vec<DataType>> = input_types.iter().map(|ty| DataType::from_tensorrt(*ty)).collect();
    let types = types.ok_or_else(|| node.invalid("unknown type of an input"))?;
    let is_linear = |kinds: &&TensorKinds| kinds.formats.iter().all(|format| *format == Format::Linear);
    let mut linear = node.kinds.iter().filter(is_linear);
    if linear.clone().next().is_none() {
        return Err(node.invalid("it has no variant for linear tensors"));
    }
    let fits = |kinds: &&TensorKinds| kinds.types.get(..inputs) == Some(&types);
    let formats = vec![Format::Linear; types.len()];
    linear.find(fits).ok_or_else(|| {
        let signature = node.signature(&types, &formats);
        node.invalid(launch::no_variant(node.definition.plugin(), &signature))
    })
}

/// Encodes a program: number of instructions, three words each, per output its rank and its extents' instructions.
fn words(program: &ShapeProgram) -> Vec<i64> {
    let instruction = |instruction: &Instruction| match *instruction {
        Instruction::Constant(value) => [-1, value, 0],
        Instruction::Extent { input, index } => [-2, input as i64, index as i64],
        Instruction::Size { output } => [-3, output as i64, 0],
        Instruction::Operation(op, first, second) => [op as i64, first as i64, second as i64],
    };
    let mut words = vec![program.instructions.len() as i64];
    words.extend(program.instructions.iter().flat_map(instruction));
    for extents in &program.outputs {
        words.push(extents.len() as i64);
        words.extend(extents.iter().map(|index| *index as i64));
    }
    words
}

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
