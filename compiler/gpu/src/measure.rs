//! How long each variant of a plugin takes on the GPU, for one node with its shapes.
//!
//! Owns the choice of the measured variants ([`measure()`]), the memory that they share (`memory`), the order of the measurements, and the
//! result ([`Measured`]). Reads no manifest and no other file, prints nothing, and does not compare results (`cubinder test` does). Errors of
//! the driver are values that name the variant.
//!
//! A time is the device's own time for a variant's whole run, with all its fills and launches; runs are queued back to back
//! ([`crate::timing`]). Caches therefore hold what the previous run left in them, as in an engine they hold the output of the previous layer.
//! The variants take turns over several rounds, so that a changing clock affects all of them alike.

#![deny(unsafe_code)]

mod failure;
mod memory;
mod node;

use std::time::{Duration, Instant};

use cubinder_launch as launch;
use cubinder_launch::{Facts, GuardVerdict, Signature, Steps};
use cubinder_model::{AUTO_TACTIC, Variant};

use self::memory::{ALIGNMENT, Memory, Places, all_bytes};
use crate::timing::{Repeated, Spread};
use crate::{Code, Context, DriverError, Prepared, Stream, Unprepared};

pub use self::failure::{Failure, Why};
pub use self::node::Node;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// What a variant takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The variant's id.
    pub variant: i32,
    /// What it is compiled for, for people.
    pub label: String,
    /// The microseconds of a run.
    pub microseconds: Spread,
    /// How many kernels a run launches.
    pub launches: usize,
    /// How many runs each time is the mean of.
    pub runs: u32,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Every valid variant, in the order of the manifest. Those that launch and fill nothing for such a node are left out.
    pub variants: Vec<Timing>,
    /// The variant that a run takes now: the first whose guard holds, in the order of what was measured before, else in that of the
    /// manifest.
    pub automatic: i32,
    /// The bytes of all inputs and outputs that lie on the device.
    pub bytes: u64,
}

/// A variant, ready to run.
struct Ready<'b> {
    variant: &'b Variant,
    prepared: Prepared<'b>,
}

/// Measures every variant that serves the node and whose guard holds with aligned addresses. `held` is what each input holds, in its
/// memory layout; what is shorter than the input is repeated. `tell` is told of each step before it is taken.
///
/// # Errors
/// The first variant that cannot be run; and where none can, or the driver refuses.
pub fn measure(
    bench: Bench<'_>,
    node: &Node<'_>,
    held: &[Vec<u8>],
    effort: Effort,
    tell: &mut dyn FnMut(Step),
) -> Result<Measured, Failure> {
    // Without facts about the device the order is that of the manifest.
    let variants = valid(node, &Facts::default())?;
    let automatic = with_facts(node, |facts| valid(node, facts))?.first().map(|variant| variant.id);
    let automatic = automatic.ok_or(Why::Refused("no variant's guard holds for it".to_owned()))?;
    let ready = prepare(bench, node, &variants)?;
    let mut memory = Memory::new(bench.context, node, held)?;
    for one in &ready {
        memory.extend(&one.prepared).map_err(|why| why.of(one.variant.id))?;
    }
    let places = memory.places(node);
    let mut queues = Vec::new();
    for one in &ready {
        tell(Step::Begins(one.variant.id));
        queues.push(queue(bench, one, &places).map_err(|error| Why::Driver(error).of(one.variant.id))?);
    }
    let times = rounds(&ready, &queues, effort, tell)?;
    let timings = ready.iter().zip(&queues).zip(&times);
    let variants = timings.filter_map(|((one, queue), times)| {
        Some(Timing {
            variant: one.variant.id,
            label: one.variant.label.clone(),
            microseconds: Spread::of(times)?,
            launches: one.prepared.launches(),
            runs: queue.runs(),
        })
    });
    Ok(Measured { variants: variants.collect(), automatic, bytes: all_bytes(node)? })
}

/// Everything that a launch can depend on.
fn with_facts<R>(node: &Node<'_>, work: impl FnOnce(&Facts<'_>) -> R) -> R {
    let alignments = vec![ALIGNMENT as u64; node.plugin.tensor_count()];
    work(&Facts {
        attributes: node.attributes,
        shapes: node.shapes,
        values: node.values,
        device: Some(node.device),
        alignments: &alignments,
        ..Facts::default()
    })
}

/// The variants that serve the node and whose guards hold, in the order in which they are asked where `order` is known.
fn valid<'n>(node: &Node<'n>, order: &Facts<'_>) -> Result<Vec<&'n Variant>, Why> {
    let Node { plugin, attributes, types, formats, .. } = *node;
    let signature = Signature { attributes, types, formats };
    let order = launch::in_order(plugin, &signature, AUTO_TACTIC, order);
    let order = order.map_err(|why| Why::Refused(why.to_string()))?;
    let holds = |variant: &&Variant| {
        with_facts(node, |facts| {
            launch::verdict(variant.guard.as_ref(), facts, &mut Steps::default()) == GuardVerdict::Holds
        })
    };
    Ok(order.iter().filter_map(|index| plugin.variants.get(*index)).filter(holds).collect())
}

/// Those of the variants that have anything to do, with their kernels loaded.
fn prepare<'b>(bench: Bench<'b>, node: &Node<'_>, valid: &[&'b Variant]) -> Result<Vec<Ready<'b>>, Failure> {
    let mut ready = Vec::new();
    for variant in valid {
        let prepared = with_facts(node, |facts| Prepared::new(bench.code, node.plugin, variant, facts));
        let prepared = prepared.map_err(|why| {
            let why = match why {
                Unprepared::Driver(error) => Why::Driver(error),
                Unprepared::Refused(_) | Unprepared::NoCode(_) | Unprepared::Native(_) => {
                    Why::Unlaunchable(why.to_string())
                }
            };
            why.of(variant.id)
        })?;
        if prepared.launches() + prepared.fills() > 0 {
            ready.push(Ready { variant, prepared });
        }
    }
    Ok(ready)
}

fn queue<'b>(
    bench: Bench<'b>,
    one: &'b Ready<'_>,
    places: &'b Places<'_>,
) -> Result<Repeated<'b, 'b, 'b>, DriverError> {
    Repeated::new(bench.stream, move || one.prepared.run(places.addresses(), bench.stream))
}

/// The times of each variant, one of each in turn.
fn rounds(
    ready: &[Ready<'_>],
    queues: &[Repeated<'_, '_, '_>],
    effort: Effort,
    tell: &mut dyn FnMut(Step),
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut round = |times: &mut [Vec<f64>]| -> Result<(), Failure> {
        tell(Step::Round);
        for ((one, queue), times) in ready.iter().zip(queues).zip(times) {
            times.push(queue.time().map_err(|error| Why::Driver(error).of(one.variant.id))?);
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
