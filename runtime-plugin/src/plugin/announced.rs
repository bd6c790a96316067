//! What TensorRT announces of a node's tensors at run time, and what that stands for.
//!
//! Owns: which of the plugin's inputs is where among those that TensorRT gives ([`Announced::positions`]), the tensors' kinds, their
//! shapes as the build knew them, and the values of shape inputs ([`HostValues`]).
//! Never: no driver, no choice of what runs.
//!
//! Shape inputs: while it builds, TensorRT-RTX 1.7.1 counts every other input alone, and tells the values of shape inputs apart (seen).
//! Nobody has seen what it gives at run time. So the number of inputs that it announces decides: where they are as many as those that
//! are no shape inputs, shape inputs are not among them and their values stay unknown; where they are all, the shape inputs stand behind
//! the others, as TensorRT counts a layer's inputs, or where the plugin has them. Types, formats, ranks and limits tell which; where they
//! do not, that is refused, because the wrong one's address would be read on the host. Before an address is read the driver is asked
//! whether it is the host's.

use std::ffi::c_void;

use cubinder_bundle::expr::Node;
use cubinder_bundle::launch::{
    self, Facts, Rule, Steps, UNKNOWN_EXTENT, check_output_limits, describe, output_shape, rules_of_shapes,
    shape_text,
};
use cubinder_bundle::model::MAX_SHAPE_VALUES;
use cubinder_bundle::{DataType, Format, Input, Output, Plugin};
use trt_abi::{Dims, Error, PluginTensorDesc, TensorFormat};

use super::node::NodeData;
use super::profile;
use crate::definition::TensorKinds;
use crate::launch::{Addresses, Positions};

/// The tensors as they were announced last.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// The inputs that TensorRT gives, then the outputs.
    tensors: Vec<(Dims, trt_abi::DataType, TensorFormat)>,
    /// How many are inputs.
    inputs: usize,
}

impl Announced {
    /// Whether these are announced already.
    #[inline]
    pub(super) fn is(&self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) -> bool {
        self.inputs == inputs.len()
            && self.tensors.len() == inputs.len() + outputs.len()
            && self.tensors.iter().zip(inputs.iter().chain(outputs)).all(|((dims, ty, format), tensor)| {
                *ty == tensor.data_type
                    && *format == tensor.format
                    && dims.nb_dims == tensor.dims.nb_dims
                    && dims.as_slice() == tensor.dims.as_slice()
            })
    }

    /// Takes what is announced in place of what was.
    pub(super) fn set(&mut self, inputs: &[PluginTensorDesc], outputs: &[PluginTensorDesc]) {
        let announced = |tensor: &PluginTensorDesc| (tensor.dims, tensor.data_type, tensor.format);
        self.tensors.clear();
        self.tensors.extend(inputs.iter().chain(outputs).map(announced));
        self.inputs = inputs.len();
    }

    /// Where each of the plugin's inputs is among the announced ones; the build knew the inputs with `input_ranks`.
    ///
    /// # Errors
    /// There are more or fewer tensors than the plugin has, or it cannot be told which of them are shape inputs.
    pub(super) fn positions(&self, node: &NodeData, input_ranks: Option<&[u8]>) -> Result<Positions, Error> {
        let plugin = node.definition.plugin();
        let (all, counted) = (plugin.inputs.len(), node.counted_inputs());
        let outputs = self.tensors.len().saturating_sub(self.inputs);
        if (self.inputs != all && self.inputs != counted) || outputs != plugin.outputs.len() {
            return Err(node.invalid(format_args!(
                "the node has {} inputs and {outputs} outputs, the plugin has {all} and {}",
                self.inputs,
                plugin.outputs.len()
            )));
        }
        if self.inputs == counted {
            return Ok(self.in_order_of(plugin, false));
        }
        let behind = self.in_order_of(plugin, true);
        let own = Positions::all(all);
        if behind == own {
            return Ok(own);
        }
        match (self.fit(node, input_ranks, &behind), self.fit(node, input_ranks, &own)) {
            (true, true) => Err(ambiguous(node)),
            (false, true) => Ok(own),
            (true, false) | (false, false) => Ok(behind),
        }
    }

    /// Whether the inputs can be these: of types and formats that the plugin takes together, of ranks and extents that it takes, and with no
    /// more values of shape inputs than TensorRT tells.
    fn fit(&self, node: &NodeData, input_ranks: Option<&[u8]>, positions: &Positions) -> bool {
        let plugin = node.definition.plugin();
        let Ok(shapes) = self.input_shapes(node, input_ranks, positions) else { return false };
        let is_tellable = |(input, shape): (&Input, &&[i64])| match (input.values, *shape) {
            (None, _) | (Some(_), []) => true,
            (Some(_), [count]) => is_count(*count),
            (Some(_), _) => false,
        };
        let was_of_rank = |(index, shape): (usize, &&[i64])| {
            let known = input_ranks.and_then(|ranks| ranks.get(index));
            known.is_none_or(|rank| usize::from(*rank) == shape.len())
        };
        let facts = Facts { shapes: &shapes, ..node.facts() };
        let of_inputs = |rule: &Rule<'_>| matches!(rule, Rule::Rank(..) | Rule::Limits(..));
        let rules = rules_of_shapes(plugin).filter(of_inputs);
        node.kinds.iter().any(|kinds| self.are(plugin, positions, kinds))
            && plugin.inputs.iter().zip(&shapes).all(is_tellable)
            && shapes.iter().enumerate().all(was_of_rank)
            && launch::check(plugin, rules, &facts, &mut Steps::default()).is_ok()
    }

    /// The inputs that are no shape inputs, then, where they are there, those that are.
    fn in_order_of(&self, plugin: &Plugin, with_shape_inputs: bool) -> Positions {
        let is_shape_input = |index: &usize| plugin.inputs.get(*index).is_some_and(|it| it.values.is_some());
        let all = || 0..plugin.inputs.len();
        let counted = all().filter(|index| !is_shape_input(index));
        let behind = all().filter(|index| with_shape_inputs && is_shape_input(index));
        let mut positions = vec![None; plugin.inputs.len()];
        for (position, index) in counted.chain(behind).enumerate() {
            if let Some(place) = positions.get_mut(index) {
                *place = Some(position);
            }
        }
        Positions::new(positions, self.inputs)
    }

    /// What was announced of a tensor, by its index over the plugin's inputs, then its outputs.
    fn tensor(
        &self,
        plugin: &Plugin,
        positions: &Positions,
        index: usize,
    ) -> Option<&(Dims, trt_abi::DataType, TensorFormat)> {
        let place = match index.checked_sub(plugin.inputs.len()) {
            None => positions.of(index)?,
            Some(output) => self.inputs.checked_add(output)?,
        };
        self.tensors.get(place)
    }

    /// Whether the announced tensors are of these kinds.
    fn are(&self, plugin: &Plugin, positions: &Positions, kinds: &TensorKinds) -> bool {
        let tensors = kinds.types.iter().zip(&kinds.formats).enumerate();
        let is_it = |(index, (ty, format)): (usize, (&DataType, &Format))| {
            self.tensor(plugin, positions, index).is_none_or(|(_, found_type, found_format)| {
                found_type.0 == ty.tensorrt() && found_format.0 == format.tensorrt()
            })
        };
        tensors.into_iter().all(is_it)
    }

    /// The variants that serve tensors of the announced types and formats, in order. A tensor that is not announced is taken for what
    /// it can be beside the others.
    ///
    /// # Errors
    /// No variant serves them.
    pub(super) fn in_order(
        &self,
        node: &NodeData,
        positions: &Positions,
        tactic: i32,
    ) -> Result<Vec<usize>, Error> {
        let plugin = node.definition.plugin();
        let known = node.kinds.iter().find(|kinds| self.are(plugin, positions, kinds));
        let (types, formats) = match known {
            Some(kinds) => (kinds.types.clone(), kinds.formats.clone()),
            // Too few where one is of no plugin.
            None => (0..plugin.tensor_count())
                .filter_map(|index| {
                    let (_, ty, format) = self.tensor(plugin, positions, index)?;
                    Some((DataType::from_tensorrt(ty.0)?, Format::from_tensorrt(format.0)?))
                })
                .unzip(),
        };
        let order = launch::in_order(plugin, &node.signature(&types, &formats), tactic);
        order.map_err(|unmet| node.invalid(unmet))
    }

    /// The shape that was announced of a tensor, if one was.
    fn shape<'a>(
        &'a self,
        node: &NodeData,
        positions: &Positions,
        index: usize,
    ) -> Result<Option<&'a [i64]>, Error> {
        let tensor = self.tensor(node.definition.plugin(), positions, index);
        tensor.map(|(dims, ..)| profile::announced(node, dims)).transpose()
    }

    /// The shapes of the inputs as the build knew them; of a shape input that is not announced the rank alone.
    fn input_shapes<'a>(
        &'a self,
        node: &NodeData,
        input_ranks: Option<&[u8]>,
        positions: &Positions,
    ) -> Result<Vec<&'a [i64]>, Error> {
        let plugin = node.definition.plugin();
        let mut shapes: Vec<&[i64]> = Vec::with_capacity(plugin.tensor_count());
        for (index, input) in plugin.inputs.iter().enumerate() {
            let is_scalar = profile::was_scalar(input, index, input_ranks);
            shapes.push(match self.shape(node, positions, index)? {
                Some([1]) if is_scalar => &[],
                Some(shape) => shape,
                None if is_scalar => &[],
                None => &[UNKNOWN_EXTENT],
            });
        }
        Ok(shapes)
    }

    /// The shapes as the build knew them, held against what the plugin takes and gives: a kernel that was launched for other
    /// shapes would write somewhere else. Of a shape input that is not announced only the rank is told.
    ///
    /// TensorRT-RTX 1.7 announces a 0-d tensor as one of shape [1]: that is undone here, for inputs by the rank that the build
    /// knew, for outputs by the shape that the plugin gives.
    ///
    /// # Errors
    /// The first rule that the inputs break, and the first output with another shape than the plugin gives it.
    pub(super) fn shapes<'a>(
        &'a self,
        node: &NodeData,
        input_ranks: Option<&[u8]>,
        positions: &Positions,
        values: &[&[i64]],
        steps: &mut Steps,
    ) -> Result<Vec<&'a [i64]>, Error> {
        let plugin = node.definition.plugin();
        let mut shapes = self.input_shapes(node, input_ranks, positions)?;
        let facts = Facts { shapes: &shapes, values, ..node.facts() };
        let is_told = |rule: &Rule<'_>| match rule {
            Rule::Rank(index, _) | Rule::Limits(index, _) => positions.of(*index).is_some(),
            Rule::Attribute(..) | Rule::Specialized | Rule::Require(_) | Rule::Values(..) => true,
        };
        launch::check(plugin, rules_of_shapes(plugin).filter(is_told), &facts, steps)
            .map_err(|unmet| node.invalid(unmet))?;
        let mut outputs: Vec<&[i64]> = Vec::with_capacity(plugin.outputs.len());
        for (index, output) in (plugin.inputs.len()..).zip(&plugin.outputs) {
            let found = self.shape(node, positions, index)?.unwrap_or_default();
            outputs.push(true_output(node, output, found, &facts, steps)?);
        }
        shapes.extend(outputs);
        Ok(shapes)
    }
}

/// The error where types, formats, ranks and limits leave it open which inputs are the shape inputs.
#[cold]
fn ambiguous(node: &NodeData) -> Error {
    let inputs = &node.definition.plugin().inputs;
    let names = inputs.iter().filter(|input| input.values.is_some()).map(|input| format!("`{}`", input.name));
    node.invalid(format_args!(
        "TensorRT announces all {} inputs, and by their types, ranks and limits the values of {} can be in two places; list shape inputs \
         behind the other inputs in the manifest, or limit the others to shapes that tell them apart",
        inputs.len(),
        names.collect::<Vec<_>>().join(", ")
    ))
}

/// Whether TensorRT tells so many values of a shape input.
fn is_count(count: i64) -> bool {
    (0..=MAX_SHAPE_VALUES).contains(&count)
}

/// The shape of an output that was announced with `found`.
fn true_output<'a>(
    node: &NodeData,
    output: &Output,
    found: &'a [i64],
    facts: &Facts<'_>,
    steps: &mut Steps,
) -> Result<&'a [i64], Error> {
    let plugin = node.definition.plugin();
    let invalid = |unmet| node.invalid(unmet);
    let needs_values = output.shape.nodes.iter().any(|node| matches!(node, Node::Values(_)));
    if needs_values && facts.values.is_empty() {
        // TensorRT has the values, and the expression for the shape.
        check_output_limits(output, found, "").map_err(invalid)?;
        return Ok(found);
    }
    let expected = output_shape(plugin, output, facts, steps).map_err(invalid)?;
    check_output_limits(output, &expected, "").map_err(invalid)?;
    match expected.as_slice() {
        [] if *found == [1] => Ok(&[]),
        expected if fits(expected, found) => Ok(found),
        expected => {
            let (found, expected) = (shape_text(found), shape_text(expected));
            Err(node.invalid(format_args!(
                "the shape of `{}`: found {found}, expected {expected}{}",
                output.name,
                describe(plugin, facts)
            )))
        }
    }
}

/// Whether an output can be announced with `found`. TensorRT-RTX 1.7 says -1 of a dimension that depends on data, and 0 where that
/// is the most that it can be (seen with an empty input).
fn fits(expected: &[i64], found: &[i64]) -> bool {
    let fits = |(expected, found): (&i64, &i64)| {
        expected == found || (*expected == UNKNOWN_EXTENT && *found >= UNKNOWN_EXTENT)
    };
    expected.len() == found.len() && expected.iter().zip(found).all(fits)
}

/// The values of the shape inputs that TensorRT gives, as they were read last.
#[derive(Debug, Default)]
pub(super) struct HostValues {
    inputs: Vec<HostInput>,
    /// Whether they were read since the shapes changed.
    are_known: bool,
}

#[derive(Debug)]
struct HostInput {
    /// Among the plugin's inputs.
    index: usize,
    /// Among those that TensorRT gives.
    position: usize,
    is_wide: bool,
    values: Vec<i64>,
    /// The address that was found to be the host's; 0 before there is one.
    of_host: usize,
}

impl HostValues {
    /// Forgets them, as others are announced.
    pub(super) fn clear(&mut self) {
        self.inputs.clear();
        self.are_known = false;
    }

    /// Makes room for the shape inputs that are announced; their values are not known yet.
    ///
    /// # Errors
    /// One that has no shape, another type than integers, or more values than TensorRT tells of any.
    pub(super) fn expect(
        &mut self,
        node: &NodeData,
        announced: &Announced,
        positions: &Positions,
    ) -> Result<(), Error> {
        let plugin = node.definition.plugin();
        self.clear();
        for (index, input) in plugin.inputs.iter().enumerate().filter(|(_, input)| input.values.is_some()) {
            let Some(position) = positions.of(index) else { continue };
            let Some((dims, ty, _)) = announced.tensor(plugin, positions, index) else { continue };
            let count = match profile::announced(node, dims)? {
                [] => 1,
                [count] => *count,
                _ => -1,
            };
            let count = usize::try_from(count).ok().filter(|_| is_count(count));
            let is_wide = match DataType::from_tensorrt(ty.0) {
                Some(DataType::I64) => Some(true),
                Some(DataType::I32) => Some(false),
                _ => None,
            };
            let (Some(count), Some(is_wide)) = (count, is_wide) else {
                return Err(node.invalid(format_args!(
                    "the shape input `{}` is announced as {ty:?} of shape {}, expected at most {MAX_SHAPE_VALUES} 32-bit or 64-bit \
                     integers in one dimension or none",
                    input.name,
                    shape_text(dims.as_slice())
                )));
            };
            self.inputs.push(HostInput { index, position, is_wide, values: vec![0; count], of_host: 0 });
        }
        Ok(())
    }

    /// Whether there are any that have not been read.
    pub(super) fn are_missing(&self) -> bool {
        !self.inputs.is_empty() && !self.are_known
    }

    /// Whether there are any.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Reads them, and says whether they are others than before. Allocates nothing. `is_of_host` says whether the host may read what lies
    /// at an address; it is asked once for each new one.
    ///
    /// # Errors
    /// An address that is null, or that the host may not read.
    ///
    /// # Safety
    /// `at` holds the addresses of the inputs for which [`HostValues::expect`] made room, in that order, each of as many bytes as was
    /// announced. Where `is_of_host` says so of an address, the host can read there.
    pub(super) unsafe fn read(
        &mut self,
        node: &NodeData,
        at: &Addresses<'_>,
        is_of_host: impl Fn(usize) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut is_new = !self.are_known;
        for input in &mut self.inputs {
            let address = at.inputs.get(input.position).copied().unwrap_or(std::ptr::null());
            if address.is_null() && !input.values.is_empty() {
                self.are_known = false;
                return Err(node.invalid("enqueue without the values of a shape input"));
            }
            if address.addr() != input.of_host && !input.values.is_empty() {
                self.are_known = false;
                if !is_of_host(address.addr())? {
                    return Err(of_device(node, input.index, address.addr()));
                }
                input.of_host = address.addr();
            }
            for (place, value) in input.values.iter_mut().enumerate() {
                // SAFETY: the caller's promise: the memory holds as many integers of that type as were announced.
                let found = unsafe { integer(address, place, input.is_wide) };
                is_new |= found != *value;
                *value = found;
            }
        }
        self.are_known = true;
        Ok(is_new)
    }

    /// The values by the plugin's inputs, empty for those that are no shape inputs; nothing where they are not known.
    ///
    /// # Errors
    /// A value that the plugin does not take.
    pub(super) fn by_input(&self, node: &NodeData) -> Result<Vec<&[i64]>, Error> {
        if self.inputs.is_empty() || !self.are_known {
            return Ok(Vec::new());
        }
        let plugin = node.definition.plugin();
        let mut all: Vec<&[i64]> = vec![&[]; plugin.inputs.len()];
        for input in &self.inputs {
            let of = plugin.inputs.get(input.index);
            if let Some((of, allowed)) = of.and_then(|of| Some((of, of.values?)))
                && let Some((place, value)) =
                    input.values.iter().enumerate().find(|(_, value)| !allowed.contains(**value))
            {
                return Err(node.invalid(format_args!(
                    "value {place} of the shape input `{}` is {value}, and the manifest limits that to {allowed}",
                    of.name
                )));
            }
            if let Some(place) = all.get_mut(input.index) {
                *place = &input.values;
            }
        }
        Ok(all)
    }
}

/// The error for values of a shape input in memory of a device.
#[cold]
fn of_device(node: &NodeData, index: usize, address: usize) -> Error {
    let name = node.definition.plugin().tensor_name(index).unwrap_or_default();
    node.invalid(format_args!(
        "the values of the shape input `{name}` are at {address:#x}, which is memory of a GPU; TensorRT gives those of shape inputs in memory of \
         the host, and what is bound to one has to lie there"
    ))
}

/// # Safety
/// `place + 1` integers of 8 bytes, or of 4 where it is not wide, lie at `address`.
unsafe fn integer(address: *const c_void, place: usize, is_wide: bool) -> i64 {
    // SAFETY: the caller's promise; nothing is said of the alignment.
    unsafe {
        if is_wide {
            address.cast::<i64>().add(place).read_unaligned()
        } else {
            i64::from(address.cast::<i32>().add(place).read_unaligned())
        }
    }
}
