//! Measures the device times of a node's variants, queued back to back ([`crate::timing`]) with warm caches.
//! Variants take turns, so that clock changes affect all equally. Never reads files, prints, or compares results.

#![deny(unsafe_code)]

use std::time::{Duration, Instant};

use cubinder_launch as launch;
use cubinder_launch::{Facts, GuardVerdict, Signature, Steps};
use cubinder_model::{AUTO_TACTIC, Variant};
use serde::{Deserialize, Serialize};

use crate::timing::{Repeated, Spread};
use crate::{
    ALIGNMENT, Code, Context, DriverError, Node, NodeAddresses, NodeMemory, Prepared, RunError, Stream,
};

/// Why a node was not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Failed variant, if any.
    pub variant: Option<i32>,
    /// Error.
    pub why: RunError,
}

impl<E: Into<RunError>> From<E> for Failure {
    fn from(why: E) -> Failure {
        Failure { variant: None, why: why.into() }
    }
}

fn failure<E: Into<RunError>>(variant: &Variant) -> impl Fn(E) -> Failure {
    let variant = Some(variant.id);
    move |why| Failure { variant, why: why.into() }
}

/// Environment of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'b> {
    /// Device.
    pub context: &'b Context,
    /// Plugin code.
    pub code: &'b Code<'b>,
    /// Capturing stream.
    pub stream: &'b Stream<'b>,
}

/// Next step of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A variant's first run.
    Begins(i32),
    /// Run of each variant.
    Round,
}

/// Extent of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Uncounted warm-up, because idle devices are slow.
    pub warm_up: Duration,
    /// Times per variant.
    pub rounds: u32,
    /// Maximum time after [`Effort::FEW`] rounds.
    pub limit: Duration,
}

impl Effort {
    /// Minimum rounds.
    pub const FEW: u32 = 5;
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { warm_up: Duration::from_millis(100), rounds: 25, limit: Duration::from_secs(10) }
    }
}

/// A variant's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Variant id.
    pub variant: i32,
    /// Types, formats and constants.
    pub label: String,
    /// Microseconds per run.
    #[serde(flatten)]
    pub microseconds: Spread,
    /// Kernels per run.
    pub launches: usize,
    /// Runs averaged per time.
    pub runs: u32,
}

/// Result of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes of device inputs and outputs.
    pub bytes: u64,
    /// The runtime's current choice.
    pub automatic: i32,
    /// Valid, non-empty variants in manifest order.
    pub variants: Vec<Timing>,
}

struct Ready<'b> {
    variant: &'b Variant,
    prepared: Prepared<'b>,
}

/// Measures all variants that serve the node with aligned addresses. `held` is each input's data, repeated if
/// shorter. Calls `report` before each step. Fails if a variant cannot run, or none is valid.
pub fn measure(
    bench: Bench<'_>,
    node: &Node<'_>,
    held: &[Vec<u8>],
    effort: Effort,
    report: &mut dyn FnMut(Step),
) -> Result<Measured, Failure> {
    let alignments = vec![ALIGNMENT as u64; node.plugin.tensor_count()];
    let variants = valid(node, &alignments, &Facts::default())?;
    let automatic = node.with_facts(&alignments, |facts| valid(node, &alignments, facts))?;
    let automatic = automatic.first().map(|variant| variant.id);
    let automatic =
        automatic.ok_or_else(|| RunError::Refused("no variant's guard is satisfied".to_owned()))?;
    let mut ready = Vec::new();
    for variant in variants {
        let prepare = |facts: &Facts<'_>| Prepared::new(bench.code, node.plugin, variant, facts);
        let prepared = node.with_facts(&alignments, prepare).map_err(failure(variant))?;
        if prepared.launches() + prepared.fills() > 0 {
            ready.push(Ready { variant, prepared });
        }
    }
    let mut memory = NodeMemory::new(bench.context, node, &alignments, 0)?;
    for (buffer, held) in memory.inputs.iter_mut().zip(held) {
        buffer.as_mut().map_or(Ok(()), |buffer| buffer.repeat(held))?;
    }
    bench.context.synchronize()?;
    for Ready { variant, prepared } in &ready {
        memory.extend(prepared).map_err(failure(variant))?;
    }
    let places = memory.places(node.plugin);
    let mut queues = Vec::new();
    for one in &ready {
        report(Step::Begins(one.variant.id));
        queues.push(queue(bench, one, &places).map_err(failure(one.variant))?);
    }
    let times = rounds(&ready, &queues, effort, report)?;
    let timings = ready.iter().zip(&queues).zip(&times);
    let variants = timings.filter_map(|((one, queue), times)| {
        Some(Timing {
            variant: one.variant.id,
            label: one.variant.label.clone(),
            microseconds: Spread::from_times(times)?.rounded(),
            launches: one.prepared.launches(),
            runs: queue.runs(),
        })
    });
    Ok(Measured { bytes: node.all_bytes()?, automatic, variants: variants.collect() })
}

fn valid<'n>(node: &Node<'n>, alignments: &[u64], order: &Facts<'_>) -> Result<Vec<&'n Variant>, RunError> {
    let Node { plugin, attributes, types, formats, .. } = *node;
    let signature = Signature { attributes, types, formats };
    let order = launch::in_order(plugin, &signature, AUTO_TACTIC, order);
    let order = order.map_err(|why| RunError::Refused(why.to_string()))?;
    let holds = |variant: &&Variant| {
        node.with_facts(alignments, |facts| {
            launch::verdict(variant.guard.as_ref(), facts, &mut Steps::default()) == GuardVerdict::Holds
        })
    };
    Ok(order.iter().filter_map(|index| plugin.variants.get(*index)).filter(holds).collect())
}

fn queue<'b>(
    bench: Bench<'b>,
    one: &'b Ready<'_>,
    places: &'b NodeAddresses<'_>,
) -> Result<Repeated<'b, 'b, 'b>, DriverError> {
    Repeated::new(bench.stream, move || one.prepared.run(places.addresses(), bench.stream))
}

fn rounds(
    ready: &[Ready<'_>],
    queues: &[Repeated<'_, '_, '_>],
    effort: Effort,
    report: &mut dyn FnMut(Step),
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut round = |times: &mut [Vec<f64>]| -> Result<(), Failure> {
        report(Step::Round);
        for ((one, queue), times) in ready.iter().zip(queues).zip(times) {
            times.push(queue.time().map_err(failure(one.variant))?);
        }
        Ok(())
    };
    let empty = || vec![Vec::new(); queues.len()];
    if queues.is_empty() {
        return Ok(empty());
    }
    let start = Instant::now();
    while start.elapsed() < effort.warm_up {
        round(&mut empty())?;
    }
    let (start, mut times) = (Instant::now(), empty());
    for number in 0..effort.rounds.max(Effort::FEW) {
        if number >= Effort::FEW && start.elapsed() > effort.limit {
            break;
        }
        round(&mut times)?;
    }
    Ok(times)
}
