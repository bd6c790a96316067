//! One variant of a node on the device: with which addresses, what came of it, and what is wrong with that.
//!
//! Each choice of addresses is run twice. Before each run everything that the kernels are to write, and everything around it, holds one
//! byte, another one each time: so what is not written, what is written elsewhere, and results that depend on what memory held before
//! show.

use cubinder_gpu::{Code, Context, DriverError, Guarded, Prepared, Side, Stray, Stream, Unprepared};
use cubinder_launch as launch;
use cubinder_launch::{Facts, GuardVerdict, Steps};
use cubinder_model::{Digest, Variant};
use cubinder_node::trial::{Array, Number, Tolerance, compare, elements, is_close, layout};

use super::addresses::{Addresses, choices};
use super::node::Node;
use super::protocol::{Fault, Kind, Ran};
use crate::cli::gpu::shaped::slices;

/// What memory holds before the first run, and before the second: no numbers that a kernel is likely to write, and other bits in each
/// half of a byte, so that no element is the same in both.
const PATTERNS: [u8; 2] = [0xff, 0x5a];

/// What a run left behind.
struct Left {
    /// The bytes of each output.
    outputs: Vec<Vec<u8>>,
    faults: Vec<Fault>,
}

/// Runs a variant; `base` holds results of the variant that ran before it, where nothing else says what is right. None where its guard
/// holds for none of the addresses that are tried.
pub(super) fn variant(
    code: &Code<'_>,
    context: &Context,
    node: &Node<'_>,
    variant: &Variant,
    said: &[(String, u64)],
    base: &mut Option<(i32, Vec<Array>)>,
) -> Option<Ran> {
    let mut ran = Ran { id: variant.id, label: variant.label.clone(), ..Ran::default() };
    let sizes: Vec<u64> =
        node.shaped.resolved.types.iter().map(|ty| u64::from(ty.size().unwrap_or(1))).collect();
    for choice in choices(node.shaped.plugin, &sizes, said) {
        if !holds(node, variant, &choice) {
            continue;
        }
        ran.addresses += 1;
        let bench = Bench { code, context, node, variant, choice: &choice };
        match bench.run(&mut ran, base) {
            Ok(()) => {}
            Err(fault) => ran.faults.push(bench.with_addresses(fault)),
        }
        if ran.is_broken || !ran.faults.is_empty() {
            // What is wrong with aligned addresses is wrong with others, too.
            break;
        }
    }
    (ran.addresses > 0).then_some(ran)
}

fn holds(node: &Node<'_>, variant: &Variant, choice: &Addresses) -> bool {
    with_facts(node, choice, |facts| {
        launch::verdict(variant.guard.as_ref(), facts, &mut Steps::default()) == GuardVerdict::Holds
    })
}

/// Everything that a launch can depend on.
fn with_facts<R>(node: &Node<'_>, choice: &Addresses, work: impl FnOnce(&Facts<'_>) -> R) -> R {
    let (inputs, outputs) = (slices(&node.shaped.resolved.inputs), slices(&node.shaped.outputs));
    let shapes: Vec<&[i64]> = inputs.into_iter().chain(outputs).collect();
    let values = slices(&node.shaped.resolved.values);
    work(&Facts {
        attributes: &node.shaped.resolved.attributes,
        shapes: &shapes,
        values: &values,
        device: Some(node.shaped.device),
        alignments: &choice.0,
        ..Facts::default()
    })
}

struct Bench<'b, 'n> {
    code: &'b Code<'b>,
    context: &'b Context,
    node: &'b Node<'n>,
    variant: &'b Variant,
    choice: &'b Addresses,
}

/// The memory of a run.
struct Memory<'c> {
    /// Those of inputs; none for a shape input.
    inputs: Vec<Option<Guarded<'c>>>,
    /// Those of outputs; none for one that has its input's.
    outputs: Vec<Option<Guarded<'c>>>,
    scratch: Vec<Guarded<'c>>,
}

impl Bench<'_, '_> {
    fn fault(&self, kind: Kind, tensor: Option<&str>, text: String) -> Fault {
        let tensor = tensor.map(str::to_owned);
        self.with_addresses(Fault { kind, tensor, text, elements: None, addresses: None })
    }

    fn with_addresses(&self, fault: Fault) -> Fault {
        Fault { addresses: self.choice.text(self.node.shaped.plugin), ..fault }
    }

    /// What an error of the driver says of the variant.
    fn driver(&self, error: &DriverError, ran: &mut Ran) -> Fault {
        // A list of errors that last ages: one of them shows in that it comes again.
        let lasts = error.lasts() || error.call == "cuCtxSynchronize" || self.context.synchronize().is_err();
        ran.is_broken |= lasts;
        match error {
            error if error.is_out_of_memory() => {
                self.fault(Kind::Memory, None, format!("the GPU has not enough memory left: {error}"))
            }
            error if lasts => self.fault(Kind::Driver, None, format!("the kernel was stopped: {error}")),
            error => self.fault(Kind::Driver, None, error.to_string()),
        }
    }

    fn run(&self, ran: &mut Ran, base: &mut Option<(i32, Vec<Array>)>) -> Result<(), Fault> {
        let prepared = with_facts(self.node, self.choice, |facts| {
            Prepared::new(self.code, self.node.shaped.plugin, self.variant, facts)
        });
        let prepared = prepared.map_err(|why| match &why {
            Unprepared::Refused(_) | Unprepared::NoCode(_) | Unprepared::Native(_) => {
                self.fault(Kind::Refused, None, why.to_string())
            }
            Unprepared::Driver(error) => self.driver(error, ran),
        })?;
        let mut memory = self.memory(&prepared).map_err(|why| why.into_fault(self, ran))?;
        let [first, second] = PATTERNS.map(|pattern| self.once(&prepared, &mut memory, pattern));
        let (first, second) = match (first, second) {
            (Err(why), _) | (_, Err(why)) => return Err(why.into_fault(self, ran)),
            (Ok(first), Ok(second)) => (first, second),
        };
        add(&mut ran.faults, first.faults);
        add(&mut ran.faults, second.faults);
        // Lengths are the same for all runs of a node.
        ran.digests.insert(Digest::of(&first.outputs.concat()).to_string());
        self.judge(&first.outputs, &second.outputs, ran, base);
        Ok(())
    }

    fn memory(&self, prepared: &Prepared<'_>) -> Result<Memory<'_>, Why> {
        let bytes_of = |tensor: usize, shape: &[i64]| {
            let bytes =
                launch::tensor_bytes(self.node.shaped.ty(tensor), self.node.shaped.format(tensor), shape);
            bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(Why::TooLarge)
        };
        let guarded = |tensor: usize, bytes: usize| {
            let alignment = self.choice.0.get(tensor).copied().unwrap_or(256);
            let is_exact = alignment != 256;
            Guarded::new(
                self.context,
                bytes,
                usize::try_from(alignment).unwrap_or(256),
                is_exact,
                PATTERNS[0],
            )
            .map_err(Why::Driver)
        };
        let mut memory = Memory { inputs: Vec::new(), outputs: Vec::new(), scratch: Vec::new() };
        for (index, (input, shape)) in
            self.node.shaped.plugin.inputs.iter().zip(&self.node.shaped.resolved.inputs).enumerate()
        {
            let buffer = match input.values {
                Some(_) => None,
                None => Some(guarded(index, bytes_of(index, shape)?)?),
            };
            memory.inputs.push(buffer);
        }
        for (index, (output, shape)) in
            self.node.shaped.plugin.outputs.iter().zip(&self.node.shaped.largest).enumerate()
        {
            let tensor = self.node.shaped.tensor_of(index);
            let buffer = match output.alias {
                Some(_) => None,
                None => Some(guarded(tensor, bytes_of(tensor, shape)?)?),
            };
            memory.outputs.push(buffer);
        }
        for bytes in prepared.scratch_bytes() {
            let bytes = usize::try_from(bytes).map_err(|_| Why::TooLarge)?;
            memory
                .scratch
                .push(Guarded::new(self.context, bytes, 256, false, PATTERNS[0]).map_err(Why::Driver)?);
        }
        Ok(memory)
    }

    /// Runs once, from memory that holds `pattern` in every byte but those of inputs.
    fn once(&self, prepared: &Prepared<'_>, memory: &mut Memory<'_>, pattern: u8) -> Result<Left, Why> {
        let packed: Vec<Vec<u8>> = self
            .node
            .inputs
            .iter()
            .enumerate()
            .map(|(index, array)| layout::pack(array, self.node.shaped.format(index)))
            .collect::<Result<_, _>>()
            .map_err(|_| Why::TooLarge)?;
        for (buffer, data) in memory.inputs.iter_mut().zip(&packed) {
            if let Some(buffer) = buffer {
                buffer.fill(pattern)?;
                buffer.write(data)?;
            }
        }
        for buffer in memory.outputs.iter_mut().flatten().chain(&mut memory.scratch) {
            buffer.fill(pattern)?;
        }
        let address = |buffer: &Option<Guarded<'_>>| buffer.as_ref().map_or(0, Guarded::address);
        let inputs: Vec<u64> = memory.inputs.iter().map(address).collect();
        let outputs: Vec<u64> = memory
            .outputs
            .iter()
            .zip(&self.node.shaped.plugin.outputs)
            .map(|(buffer, output)| match output.alias {
                Some(input) => inputs.get(input as usize).copied().unwrap_or(0),
                None => address(buffer),
            })
            .collect();
        let scratch: Vec<u64> = memory.scratch.iter().map(Guarded::address).collect();
        self.context.synchronize()?;
        let addresses = cubinder_gpu::Addresses { inputs: &inputs, outputs: &outputs, scratch: &scratch };
        prepared.run(addresses, &Stream::of_context(self.context))?;
        self.context.synchronize()?;
        self.collect(memory, &packed)
    }

    fn collect(&self, memory: &Memory<'_>, packed: &[Vec<u8>]) -> Result<Left, Why> {
        let mut left = Left { outputs: Vec::new(), faults: Vec::new() };
        let plugin = self.node.shaped.plugin;
        let is_alias =
            |index: usize| plugin.outputs.iter().any(|output| output.alias == u32::try_from(index).ok());
        for (index, (buffer, data)) in memory.inputs.iter().zip(packed).enumerate() {
            let Some(buffer) = buffer else { continue };
            let name = plugin.tensor_name(index).unwrap_or_default();
            left.faults.extend(self.strays(name, &buffer.strays()?));
            let found = buffer.read()?;
            if !is_alias(index) && found != *data {
                left.faults.push(self.changed(index, name, &found));
            }
        }
        for (index, (buffer, output)) in memory.outputs.iter().zip(&plugin.outputs).enumerate() {
            let alias = || memory.inputs.get(output.alias? as usize)?.as_ref();
            let Some(buffer) = buffer.as_ref().or_else(alias) else {
                left.outputs.push(Vec::new());
                continue;
            };
            if memory.outputs.get(index).is_some_and(Option::is_some) {
                left.faults.extend(self.strays(&output.name, &buffer.strays()?));
            }
            left.outputs.push(buffer.read()?);
        }
        for (buffer, scratch) in memory.scratch.iter().zip(&self.variant.scratch) {
            left.faults.extend(self.strays(&scratch.name, &buffer.strays()?));
        }
        Ok(left)
    }

    fn strays(&self, name: &str, strays: &[Stray]) -> Vec<Fault> {
        let fault = |stray: &Stray| {
            let Stray { side, bytes, distance } = *stray;
            let (side, far) = match (side, distance) {
                (Side::Before, 0) => ("before", "right before its first byte".to_owned()),
                (Side::Behind, 0) => ("behind", "right behind its last byte".to_owned()),
                (Side::Before, far) => ("before", format!("the nearest {far} bytes before its first byte")),
                (Side::Behind, far) => ("behind", format!("the nearest {far} bytes behind its last byte")),
            };
            let are = if bytes == 1 { "1 byte is".to_owned() } else { format!("{bytes} bytes are") };
            self.fault(Kind::Outside, Some(name), format!("{are} written {side} `{name}`, {far}"))
        };
        strays.iter().map(fault).collect()
    }

    fn changed(&self, index: usize, name: &str, found: &[u8]) -> Fault {
        let mut fault = self.fault(
            Kind::InputChanged,
            Some(name),
            format!("the input `{name}` is not what it was: the kernels wrote to it"),
        );
        let shape = self.node.shaped.resolved.inputs.get(index).map_or(&[][..], Vec::as_slice);
        let found = layout::unpack(found, self.node.shaped.ty(index), self.node.shaped.format(index), shape);
        if let (Ok(found), Some(expected)) = (found, self.node.inputs.get(index)) {
            let numbers = (0..found.len()).map(|at| (at, found.code(at) != expected.code(at)));
            let differing = numbers.filter(|(_, differs)| *differs);
            fault.elements = elements(&found, differing.map(|(at, _)| (at, found.get(at), expected.get(at))));
        }
        fault
    }

    /// Holds what two runs left behind against each other and against what is expected.
    fn judge(
        &self,
        first: &[Vec<u8>],
        second: &[Vec<u8>],
        ran: &mut Ran,
        base: &mut Option<(i32, Vec<Array>)>,
    ) {
        let shapes = match self.sizes(first, second) {
            Ok(shapes) => shapes,
            Err(fault) => {
                ran.faults.push(fault);
                return;
            }
        };
        let mut results = Vec::new();
        for (index, (output, shape)) in self.node.shaped.plugin.outputs.iter().zip(&shapes).enumerate() {
            let tensor = self.node.shaped.tensor_of(index);
            let array = |bytes: Option<&Vec<u8>>| {
                let bytes = bytes.map_or(&[][..], Vec::as_slice);
                layout::unpack(bytes, self.node.shaped.ty(tensor), self.node.shaped.format(tensor), shape)
            };
            let (one, other) = match (array(first.get(index)), array(second.get(index))) {
                (Ok(one), Ok(other)) => (one, other),
                (Err(why), _) | (_, Err(why)) => {
                    ran.faults.push(self.fault(
                        Kind::Shape,
                        Some(&output.name),
                        format!("`{}`: {why}", output.name),
                    ));
                    continue;
                }
            };
            let result = Written { name: &output.name, is_alias: output.alias.is_some(), one, other };
            let tolerance = self.node.tolerances.get(index).copied().unwrap_or(Tolerance::EXACT);
            let said = self.node.expected.get(index).and_then(Option::as_ref);
            let earlier = base.as_ref().and_then(|(id, arrays)| Some((*id, arrays.get(index)?)));
            self.judge_one(&result, said, earlier, tolerance, ran);
            results.push(result.one);
        }
        if base.is_none() && ran.faults.is_empty() {
            *base = Some((self.variant.id, results));
        }
    }

    fn judge_one(
        &self,
        result: &Written<'_>,
        said: Option<&(Array, String)>,
        earlier: Option<(i32, &Array)>,
        tolerance: Tolerance,
        ran: &mut Ran,
    ) {
        let name = result.name;
        let unlike = result.one.unlike(&result.other);
        let unwritten = result.unwritten(&unlike);
        let unlike: Vec<usize> =
            unlike.into_iter().filter(|at| unwritten.binary_search(at).is_err()).collect();
        let is_alike =
            unlike.iter().all(|at| is_close(result.one.get(*at), result.other.get(*at), tolerance));
        let mut fault = |kind, text: String, elements| {
            let fault = self.fault(kind, Some(name), text);
            ran.faults.push(Fault { elements, ..fault });
        };
        if !unwritten.is_empty() {
            let expected = said.map(|(array, _)| array).filter(|array| array.shape() == result.one.shape());
            let list = unwritten.iter().map(|at| {
                let expected = expected.map_or(Number::Float(f64::NAN), |array| array.get(*at));
                (*at, result.one.get(*at), expected)
            });
            let (count, of) = (unwritten.len(), result.one.len());
            let text = format!("{count} of {of} elements of `{name}` {} not written", are(count));
            fault(Kind::Unwritten, text, elements(&result.one, list));
        }
        if !is_alike {
            let list = unlike.iter().map(|at| (*at, result.other.get(*at), result.one.get(*at)));
            let text = format!(
                "{} of {} elements of `{name}` are others in a second run, where memory held something else before: the kernels \
                 read what nobody wrote, or race",
                unlike.len(),
                result.one.len()
            );
            fault(Kind::NotRepeatable, text, elements(&result.one, list));
        } else if !unlike.is_empty() {
            ran.notes.push(format!(
                "{} of {} elements of `{name}` differ between two runs, within the tolerance",
                unlike.len(),
                result.one.len()
            ));
        }
        let (expected, whose) = match (said, earlier) {
            (Some((array, whose)), _) => (array, whose.clone()),
            (None, Some((id, array))) if id == self.variant.id => {
                (array, "its own with other addresses".to_owned())
            }
            (None, Some((id, array))) => (array, format!("variant {id}")),
            (None, None) => return,
        };
        let held = (name.to_owned(), whose.clone());
        let is_own = said.is_none() && earlier.is_some_and(|(id, _)| id == self.variant.id);
        if !is_own && !ran.held_against.contains(&held) {
            ran.held_against.push(held);
        }
        if expected.shape() != result.one.shape() {
            let (found, expected) =
                (launch::shape_text(result.one.shape()), launch::shape_text(expected.shape()));
            let text = format!("`{name}` is {found}, and {whose} has {expected}");
            ran.faults.push(self.fault(Kind::Shape, Some(name), text));
            return;
        }
        let wrong = |array: &Array| compare(array, expected, tolerance, &unwritten);
        // A second run that is told to be another is not told twice.
        let second = || if is_alike { wrong(&result.other) } else { None };
        let found = match wrong(&result.one) {
            Some(found) => Some((found, "")),
            None => second().map(|found| (found, " in the second run")),
        };
        if let Some((found, when)) = found {
            let Tolerance { atol, rtol } = tolerance;
            let text = format!(
                "{} of {} elements of `{name}` {} wrong{when}, held against {whose} (atol {atol:?}, rtol {rtol:?})",
                found.count,
                found.of,
                are(found.count)
            );
            let fault = self.fault(Kind::Wrong, Some(name), text);
            ran.faults.push(Fault { elements: Some(found), ..fault });
        }
    }

    /// The outputs' shapes with the sizes that the kernels wrote.
    fn sizes(&self, first: &[Vec<u8>], second: &[Vec<u8>]) -> Result<Vec<Vec<i64>>, Fault> {
        let mut sizes = Vec::new();
        for (index, (output, bound)) in
            self.node.shaped.plugin.outputs.iter().zip(&self.node.shaped.bounds).enumerate()
        {
            let Some(bound) = bound else {
                sizes.push(None);
                continue;
            };
            let name = &output.name;
            let ty = self.node.shaped.ty(self.node.shaped.tensor_of(index));
            let held = |runs: &[Vec<u8>]| {
                let bytes = runs.get(index).cloned().unwrap_or_default();
                match Array::new(ty, Vec::new(), bytes).map(|array| array.get(0)) {
                    Ok(Number::Int(size)) => Some(size),
                    _ => None,
                }
            };
            let wrong = |text: String| Err(self.fault(Kind::Size, Some(name), text));
            match (held(first), held(second)) {
                (Some(one), Some(other)) if one != other => {
                    return wrong(format!(
                        "the size `{name}` is {one} in one run and {other} in another: it is not written, or not always the same"
                    ));
                }
                (Some(size), Some(_)) if (0..=*bound).contains(&size) => sizes.push(Some(size)),
                (Some(size), Some(_)) => {
                    return wrong(format!("the size `{name}` is {size}, expected 0 to {bound}"));
                }
                _ => return wrong(format!("the size `{name}` is no integer")),
            }
        }
        self.node.shaped.shapes_for(&sizes).map_err(|why| self.fault(Kind::Size, None, why))
    }
}

/// What two runs wrote into an output.
struct Written<'r> {
    name: &'r str,
    is_alias: bool,
    one: Array,
    other: Array,
}

impl Written<'_> {
    /// The elements that hold in both runs what memory held before them. They are among those that are `unlike` in the two runs, since
    /// memory held something else before each.
    fn unwritten(&self, unlike: &[usize]) -> Vec<usize> {
        if self.is_alias {
            return Vec::new();
        }
        let before = PATTERNS.map(|pattern| Blank::of(self.one.ty(), pattern));
        let [Some(first), Some(second)] = before else { return Vec::new() };
        let is_left =
            |at: &usize| self.one.code(*at) == first.code(*at) && self.other.code(*at) == second.code(*at);
        unlike.iter().copied().filter(is_left).collect()
    }
}

/// An output that nothing was written to.
struct Blank([u64; 2]);

impl Blank {
    /// Where memory held `pattern` in every byte.
    fn of(ty: cubinder_expr::DataType, pattern: u8) -> Option<Blank> {
        // Two elements may share a byte.
        let bytes = usize::try_from(ty.bytes(2)?).ok()?;
        let two = Array::new(ty, vec![2], vec![pattern; bytes]).ok()?;
        Some(Blank([two.code(0), two.code(1)]))
    }

    fn code(&self, at: usize) -> u64 {
        let Blank([even, odd]) = self;
        if at.is_multiple_of(2) { *even } else { *odd }
    }
}

/// Why a run did not come to a result.
enum Why {
    Driver(DriverError),
    TooLarge,
}

impl From<DriverError> for Why {
    fn from(error: DriverError) -> Why {
        Why::Driver(error)
    }
}

impl Why {
    fn into_fault(self, bench: &Bench<'_, '_>, ran: &mut Ran) -> Fault {
        match self {
            Why::Driver(error) => bench.driver(&error, ran),
            Why::TooLarge => {
                bench.fault(Kind::Memory, None, "a tensor has more bytes than memory holds".to_owned())
            }
        }
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Adds what is not there yet: two runs find most things twice.
fn add(faults: &mut Vec<Fault>, new: Vec<Fault>) {
    for fault in new {
        let is_known = faults.iter().any(|known| known.kind == fault.kind && known.tensor == fault.tensor);
        if !is_known {
            faults.push(fault);
        }
    }
}
