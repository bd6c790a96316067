//! Each choice of addresses runs twice with different fill bytes, which reveals unwritten elements, stray writes and
//! reads of uninitialized memory.

use cubinder_gpu::{Code, Context, Guarded, NodeMemory, Prepared, RunError, Side, Stray, Stream};
use cubinder_launch as launch;
use cubinder_launch::{GuardVerdict, Steps};
use cubinder_model::{Digest, Output, Variant};
use cubinder_node::trial::{Array, Number, Tolerance, compare, elements, is_close, layout};

use super::addresses::{Addresses, choices};
use super::node::Node;
use super::protocol::{Fault, Kind, VariantResult};

/// Fill bytes of both runs: improbable results that differ in each half byte.
const PATTERNS: [u8; 2] = [0xff, 0x5a];

struct RunResult {
    outputs: Vec<Vec<u8>>,
    faults: Vec<Fault>,
}

/// Results of the previous variant, expected if no others exist.
pub(super) type Baseline = Option<(i32, Vec<Array>)>;

/// `None` if the guard rejects all addresses.
pub(super) fn variant(
    code: &Code<'_>,
    context: &Context,
    node: &Node<'_>,
    variant: &Variant,
    aligned: &[(String, u64)],
    baseline: &mut Baseline,
) -> Option<VariantResult> {
    let mut result =
        VariantResult { id: variant.id, label: variant.label.clone(), ..VariantResult::default() };
    let sizes: Vec<u64> =
        node.shaped.resolved.types.iter().map(|ty| u64::from(ty.size().unwrap_or(1))).collect();
    for choice in choices(node.shaped.plugin, &sizes, aligned) {
        let holds = node.shaped.node().with_facts(&choice.0, |facts| {
            launch::verdict(variant.guard.as_ref(), facts, &mut Steps::default()) == GuardVerdict::Holds
        });
        if !holds {
            continue;
        }
        result.addresses += 1;
        let bench = Bench { code, context, node, variant, choice: &choice };
        if let Err(why) = bench.run(&mut result, baseline) {
            let fault = bench.failure(&why, &mut result);
            result.faults.push(fault);
        }
        if result.is_broken || !result.faults.is_empty() {
            // Faults with aligned addresses recur with others.
            break;
        }
    }
    (result.addresses > 0).then_some(result)
}

struct Bench<'b, 'n> {
    code: &'b Code<'b>,
    context: &'b Context,
    node: &'b Node<'n>,
    variant: &'b Variant,
    choice: &'b Addresses,
}

impl Bench<'_, '_> {
    fn fault(&self, kind: Kind, tensor: Option<&str>, text: String) -> Fault {
        let addresses = self.choice.text(self.node.shaped.plugin);
        Fault { kind, tensor: tensor.map(str::to_owned), text, elements: None, addresses }
    }

    fn failure(&self, why: &RunError, result: &mut VariantResult) -> Fault {
        let (kind, text) = match why {
            RunError::Refused(_) => (Kind::Refused, why.to_string()),
            RunError::TooLarge => (Kind::Memory, why.to_string()),
            RunError::Driver(error) => {
                // A list of sticky errors would become outdated; they recur at synchronization.
                let lasts =
                    error.lasts() || error.call == "cuCtxSynchronize" || self.context.synchronize().is_err();
                result.is_broken |= lasts;
                match error.is_out_of_memory() {
                    true => (Kind::Memory, why.to_string()),
                    false if lasts => (Kind::Driver, format!("the driver aborted the kernel: {error}")),
                    false => (Kind::Driver, why.to_string()),
                }
            }
        };
        self.fault(kind, None, text)
    }

    fn run(&self, result: &mut VariantResult, baseline: &mut Baseline) -> Result<(), RunError> {
        let (node, alignments) = (self.node.shaped.node(), &self.choice.0);
        let prepared =
            node.with_facts(alignments, |facts| Prepared::new(self.code, node.plugin, self.variant, facts))?;
        let mut memory = NodeMemory::new(self.context, &node, alignments, PATTERNS[0])?;
        memory.extend(&prepared)?;
        let [first, second] = PATTERNS.map(|pattern| self.once(&prepared, &mut memory, pattern));
        let (first, second) = (first?, second?);
        add(&mut result.faults, first.faults);
        add(&mut result.faults, second.faults);
        // Unambiguous: lengths are equal in all runs.
        result.digests.insert(Digest::compute(&first.outputs.concat()).to_string());
        if let Err(fault) = self.judge(&first.outputs, &second.outputs, result, baseline) {
            result.faults.push(fault);
        }
        Ok(())
    }

    fn once(
        &self,
        prepared: &Prepared<'_>,
        memory: &mut NodeMemory<'_>,
        pattern: u8,
    ) -> Result<RunResult, RunError> {
        let mut packed = Vec::new();
        for (index, (buffer, array)) in memory.inputs.iter_mut().zip(&self.node.inputs).enumerate() {
            let data = layout::pack(array, self.node.shaped.format(index)).map_err(|_| RunError::TooLarge)?;
            if let Some(buffer) = buffer {
                buffer.fill(pattern)?;
                buffer.write(&data)?;
            }
            packed.push(data);
        }
        for buffer in memory.outputs.iter_mut().flatten().chain(&mut memory.scratch) {
            buffer.fill(pattern)?;
        }
        let places = memory.places(self.node.shaped.plugin);
        self.context.synchronize()?;
        prepared.run(places.addresses(), &Stream::of_context(self.context))?;
        self.context.synchronize()?;
        self.collect(memory, &packed)
    }

    fn collect(&self, memory: &NodeMemory<'_>, packed: &[Vec<u8>]) -> Result<RunResult, RunError> {
        let mut result = RunResult { outputs: Vec::new(), faults: Vec::new() };
        let plugin = self.node.shaped.plugin;
        let is_alias =
            |index: usize| plugin.outputs.iter().any(|output| output.alias == u32::try_from(index).ok());
        for (index, (buffer, data)) in memory.inputs.iter().zip(packed).enumerate() {
            let Some(buffer) = buffer else { continue };
            let name = plugin.tensor_name(index).unwrap_or_default();
            result.faults.extend(self.strays(name, &buffer.strays()?));
            let found = buffer.read()?;
            if !is_alias(index) && found != *data {
                result.faults.push(self.changed(index, name, &found));
            }
        }
        for (buffer, output) in memory.outputs.iter().zip(&plugin.outputs) {
            if let Some(own) = buffer {
                result.faults.extend(self.strays(&output.name, &own.strays()?));
            }
            let alias = || memory.inputs.get(output.alias? as usize)?.as_ref();
            let read = buffer.as_ref().or_else(alias).map(Guarded::read).transpose()?;
            result.outputs.push(read.unwrap_or_default());
        }
        for (buffer, scratch) in memory.scratch.iter().zip(&self.variant.scratch) {
            result.faults.extend(self.strays(&scratch.name, &buffer.strays()?));
        }
        Ok(result)
    }

    fn strays(&self, name: &str, strays: &[Stray]) -> Vec<Fault> {
        let fault = |stray: &Stray| {
            let Stray { side, bytes, distance } = *stray;
            let (side, far) = match (side, distance) {
                (Side::Before, 0) => ("before", "directly before its first byte".to_owned()),
                (Side::Behind, 0) => ("after", "directly after its last byte".to_owned()),
                (Side::Before, far) => ("before", format!("the nearest {far} bytes before its first byte")),
                (Side::Behind, far) => ("after", format!("the nearest {far} bytes after its last byte")),
            };
            let are = if bytes == 1 { "1 byte is".to_owned() } else { format!("{bytes} bytes are") };
            self.fault(Kind::Outside, Some(name), format!("{are} written {side} `{name}`, {far}"))
        };
        strays.iter().map(fault).collect()
    }

    fn changed(&self, index: usize, name: &str, found: &[u8]) -> Fault {
        let mut fault =
            self.fault(Kind::InputChanged, Some(name), format!("the kernels changed the input `{name}`"));
        let found = self.unpack(found, index, self.node.shaped.shape(index));
        if let (Ok(found), Some(expected)) = (found, self.node.inputs.get(index)) {
            let numbers = (0..found.len()).map(|at| (at, found.code(at) != expected.code(at)));
            let differing = numbers.filter(|(_, differs)| *differs);
            fault.elements = elements(&found, differing.map(|(at, _)| (at, found.get(at), expected.get(at))));
        }
        fault
    }

    fn unpack(&self, bytes: &[u8], tensor: usize, shape: &[i64]) -> Result<Array, String> {
        layout::unpack(bytes, self.node.shaped.ty(tensor), self.node.shaped.format(tensor), shape)
    }

    fn judge(
        &self,
        first: &[Vec<u8>],
        second: &[Vec<u8>],
        result: &mut VariantResult,
        baseline: &mut Baseline,
    ) -> Result<(), Fault> {
        let shapes = self.sizes(first, second)?;
        let mut arrays = Vec::new();
        let runs = self.node.shaped.outputs().zip(&shapes).zip(first.iter().zip(second)).enumerate();
        for (index, (((tensor, output), shape), (first, second))) in runs {
            let unpacked = (self.unpack(first, tensor, shape), self.unpack(second, tensor, shape));
            let (one, other) = match unpacked {
                (Ok(one), Ok(other)) => (one, other),
                (Err(why), _) | (_, Err(why)) => {
                    let text = format!("`{}`: {why}", output.name);
                    result.faults.push(self.fault(Kind::Shape, Some(&output.name), text));
                    continue;
                }
            };
            let pair = OutputPair { name: &output.name, is_alias: output.alias.is_some(), one, other };
            let tolerance = self.node.tolerances.get(index).copied().unwrap_or(Tolerance::EXACT);
            let expected = self.node.expected.get(index).and_then(Option::as_ref);
            let earlier = baseline.as_ref().and_then(|(id, arrays)| Some((*id, arrays.get(index)?)));
            self.judge_one(&pair, expected, earlier, tolerance, result);
            arrays.push(pair.one);
        }
        if baseline.is_none() && result.faults.is_empty() {
            *baseline = Some((self.variant.id, arrays));
        }
        Ok(())
    }

    fn judge_one(
        &self,
        pair: &OutputPair<'_>,
        expected: Option<&(Array, String)>,
        earlier: Option<(i32, &Array)>,
        tolerance: Tolerance,
        result: &mut VariantResult,
    ) {
        let name = pair.name;
        let unlike = pair.one.unlike(&pair.other);
        let unwritten = pair.unwritten(&unlike);
        let unlike: Vec<usize> =
            unlike.into_iter().filter(|at| unwritten.binary_search(at).is_err()).collect();
        let is_alike = unlike.iter().all(|at| is_close(pair.one.get(*at), pair.other.get(*at), tolerance));
        let mut fault = |kind, text: String, elements| {
            let fault = self.fault(kind, Some(name), text);
            result.faults.push(Fault { elements, ..fault });
        };
        if !unwritten.is_empty() {
            let right = expected.map(|(array, _)| array).filter(|array| array.shape() == pair.one.shape());
            let list = unwritten.iter().map(|at| {
                let right = right.map_or(Number::Float(f64::NAN), |array| array.get(*at));
                (*at, pair.one.get(*at), right)
            });
            let (count, of) = (unwritten.len(), pair.one.len());
            let text = format!("{count} of {of} elements of `{name}` {} not written", are(count));
            fault(Kind::Unwritten, text, elements(&pair.one, list));
        }
        if !is_alike {
            let list = unlike.iter().map(|at| (*at, pair.other.get(*at), pair.one.get(*at)));
            let text = format!(
                "{} of {} elements of `{name}` differ in a second run with other initial memory: the kernels read \
                 uninitialized memory, or have a data race",
                unlike.len(),
                pair.one.len()
            );
            fault(Kind::NotRepeatable, text, elements(&pair.one, list));
        } else if !unlike.is_empty() {
            result.notes.push(format!(
                "{} of {} elements of `{name}` differ between two runs, within the tolerance",
                unlike.len(),
                pair.one.len()
            ));
        }
        let (right, whose) = match (expected, earlier) {
            (Some((array, whose)), _) => (array, whose.clone()),
            (None, Some((id, array))) if id == self.variant.id => {
                (array, "this variant at other addresses".to_owned())
            }
            (None, Some((id, array))) => (array, format!("variant {id}")),
            (None, None) => return,
        };
        let held = (name.to_owned(), whose.clone());
        let is_own = expected.is_none() && earlier.is_some_and(|(id, _)| id == self.variant.id);
        if !is_own && !result.held_against.contains(&held) {
            result.held_against.push(held);
        }
        if right.shape() != pair.one.shape() {
            let [found, right] = [&pair.one, right].map(|array| launch::shape_text(array.shape()));
            let text = format!("`{name}` has shape {found}, but {whose} has {right}");
            result.faults.push(self.fault(Kind::Shape, Some(name), text));
            return;
        }
        let wrong = |array: &Array| compare(array, right, tolerance, &unwritten);
        // Differences of the second run are already reported.
        let second = || if is_alike { wrong(&pair.other) } else { None };
        let found = match wrong(&pair.one) {
            Some(found) => Some((found, "")),
            None => second().map(|found| (found, " in the second run")),
        };
        if let Some((found, when)) = found {
            let Tolerance { atol, rtol } = tolerance;
            let text = format!(
                "{} of {} elements of `{name}` {} wrong{when}, compared with {whose} (atol {atol:?}, rtol {rtol:?})",
                found.count,
                found.of,
                are(found.count)
            );
            let fault = self.fault(Kind::Wrong, Some(name), text);
            result.faults.push(Fault { elements: Some(found), ..fault });
        }
    }

    fn sizes(&self, first: &[Vec<u8>], second: &[Vec<u8>]) -> Result<Vec<Vec<i64>>, Fault> {
        let bounds = self.node.shaped.outputs().zip(&self.node.shaped.bounds);
        let size = |(((tensor, output), bound), (first, second)): (((usize, &Output), &Option<i64>), _)| {
            let Some(bound) = *bound else { return Ok(None) };
            let name = &output.name;
            let held =
                |bytes: &Vec<u8>| match Array::new(self.node.shaped.ty(tensor), Vec::new(), bytes.clone())
                    .map(|array| array.get(0))
                {
                    Ok(Number::Int(size)) => Some(size),
                    _ => None,
                };
            let why = match (held(first), held(second)) {
                (Some(one), Some(other)) if one != other => {
                    format!(
                        "is {one} in one run and {other} in another: it is not written, or not reproducible"
                    )
                }
                (Some(size), Some(_)) if (0..=bound).contains(&size) => return Ok(Some(size)),
                (Some(size), Some(_)) => format!("is {size}, expected 0 to {bound}"),
                _ => "is not an integer".to_owned(),
            };
            Err(self.fault(Kind::Size, Some(name), format!("the size `{name}` {why}")))
        };
        let sizes = bounds.zip(first.iter().zip(second)).map(size).collect::<Result<Vec<_>, Fault>>()?;
        self.node.shaped.shapes_for(&sizes).map_err(|why| self.fault(Kind::Size, None, why))
    }
}

struct OutputPair<'r> {
    name: &'r str,
    is_alias: bool,
    one: Array,
    other: Array,
}

impl OutputPair<'_> {
    /// Returns elements among `unlike` that kept the fill in both runs.
    fn unwritten(&self, unlike: &[usize]) -> Vec<usize> {
        if self.is_alias {
            return Vec::new();
        }
        let ty = self.one.ty();
        // Two elements may share a byte.
        let blank =
            |pattern| Array::new(ty, vec![2], vec![pattern; usize::try_from(ty.bytes(2)?).ok()?]).ok();
        let [Some(first), Some(second)] = PATTERNS.map(blank) else { return Vec::new() };
        let is_blank = |at: &usize| {
            self.one.code(*at) == first.code(at % 2) && self.other.code(*at) == second.code(at % 2)
        };
        unlike.iter().copied().filter(is_blank).collect()
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Skips duplicates: both runs find most faults.
fn add(faults: &mut Vec<Fault>, new: Vec<Fault>) {
    for fault in new {
        let is_known = faults.iter().any(|known| known.kind == fault.kind && known.tensor == fault.tensor);
        if !is_known {
            faults.push(fault);
        }
    }
}
