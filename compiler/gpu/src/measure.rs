//! How long each variant of a plugin takes on the GPU, for one node with its shapes.
//!
//! Owns the choice of the measured variants ([`measure()`]), the order of the measurements, and the result ([`Measured`]). Reads no manifest and no other file, prints nothing, and does not compare results (`cubinder test` does). Errors of
//! the driver are values that name the variant.
//!
//! A time is the device's own time for a variant's whole run, with all its fills and launches; runs are queued back to back
//! ([`crate::timing`]). Caches therefore hold what the previous run left in them, as in an engine they hold the output of the previous layer.
//! The variants take turns over several rounds, so that a changing clock affects all of them alike.

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
    /// The variant that it is about, if it is about one.
    pub variant: Option<i32>,
    /// What went wrong.
    pub why: RunError,
}

impl<E: Into<RunError>> From<E> for Failure {
    fn from(why: E) -> Failure {
        Failure { variant: None, why: why.into() }
    }
}

/// The error of a variant.
fn failure<E: Into<RunError>>(variant: &Variant) -> impl Fn(E) -> Failure {
    let variant = Some(variant.id);
    move |why| Failure { variant, why: why.into() }
}

/// Where variants are measured.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'b> {
    /// The device.
    pub context: &'b Context,
    /// The plugin's code.
    pub code: &'b Code<'b>,
    /// A stream that captures.
    pub stream: &'b Stream<'b>,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The variant with this id runs for the first time.
    Begins(i32),
    /// All variants run in turn, which they have done before.
    Round,
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// For how long all variants take turns before anything counts: a device that was idle is slow at first.
    pub warm_up: Duration,
    /// How many times of each variant are taken, one a round.
    pub rounds: u32,
    /// After how long the rounds may end early, once there are [`Effort::FEW`].
    pub limit: Duration,
}

impl Effort {
    /// The fewest rounds.
    pub const FEW: u32 = 5;
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { warm_up: Duration::from_millis(100), rounds: 25, limit: Duration::from_secs(10) }
    }
}

/// The times of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The variant's id.
    pub variant: i32,
    /// Types, formats and constants, for people.
    pub label: String,
    /// The microseconds of a run.
    #[serde(flatten)]
    pub microseconds: Spread,
    /// How many kernels a run launches.
    pub launches: usize,
    /// How many runs each time is the mean of.
    pub runs: u32,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The bytes of all inputs and outputs on the device.
    pub bytes: u64,
    /// The variant that a run takes now: the first whose guard is satisfied, in the order of earlier measurements, else of the manifest.
    pub automatic: i32,
    /// Every valid variant, in the order of the manifest, without those that launch and fill nothing for such a node.
    pub variants: Vec<Timing>,
}

/// A variant, ready to run.
struct Ready<'b> {
    variant: &'b Variant,
    prepared: Prepared<'b>,
}

/// Measures every variant that serves the node and whose guard is satisfied with aligned addresses. `held` is the data of each input, in
/// its memory layout; data shorter than the input is repeated. `report` is called before each step.
///
/// # Errors
/// The first variant that cannot be run; if none can; and the driver's.
pub fn measure(
    bench: Bench<'_>,
    node: &Node<'_>,
    held: &[Vec<u8>],
    effort: Effort,
    report: &mut dyn FnMut(Step),
) -> Result<Measured, Failure> {
    let alignments = vec![ALIGNMENT as u64; node.plugin.tensor_count()];
    // Without facts about the device the order is that of the manifest.
    let variants = valid(node, &alignments, &Facts::default())?;
    let automatic = node.with_facts(&alignments, |facts| valid(node, &alignments, facts))?;
    let automatic = automatic.first().map(|variant| variant.id);
    let automatic =
        automatic.ok_or_else(|| RunError::Refused("no variant's guard holds for it".to_owned()))?;
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

/// The variants that serve the node and whose guards are satisfied, in the order in which the runtime tries them given `order`.
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

/// The times of each variant, one of each in turn.
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
