//! Measuring the variants of one node.

use std::time::{Duration, Instant};

use cubinder_bundle::launch::{self, Device, Facts, GuardVerdict, Signature, Steps};
use cubinder_bundle::{AUTO_TACTIC, DataType, Format, Plugin, Value, Variant};
use cubinder_gpu::timing::{Repeated, Spread};
use cubinder_gpu::{Code, Context, DriverError, Prepared, Stream, Unprepared};

use crate::memory::{ALIGNMENT, Memory, Places, all_bytes};

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

/// A node with its shapes, in the plugin's order: tensors are its inputs, then its outputs.
#[derive(Debug, Clone, Copy)]
pub struct Node<'n> {
    /// Its plugin.
    pub plugin: &'n Plugin,
    /// One value for each attribute.
    pub attributes: &'n [Value],
    /// The tensors' types.
    pub types: &'n [DataType],
    /// The tensors' formats.
    pub formats: &'n [Format],
    /// The tensors' shapes; a dimension that the kernels decide is `launch::UNKNOWN_EXTENT`.
    pub shapes: &'n [&'n [i64]],
    /// The tensors' shapes where the kernels write as much as they may.
    pub largest: &'n [&'n [i64]],
    /// What shape inputs hold, by input; nothing for others.
    pub values: &'n [&'n [i64]],
    /// Facts of the device.
    pub device: Device,
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

/// Why a node was not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The variant that it is about, where it is about one.
    pub variant: Option<i32>,
    /// What went wrong.
    pub why: Why,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The runtime would refuse the node.
    Refused(String),
    /// The variant cannot be launched, or there is no code of it for the device.
    Unlaunchable(String),
    /// A tensor has more bytes than memory holds.
    TooLarge,
    /// The driver's; where it lasts nothing can be run any more.
    Driver(DriverError),
}

impl From<DriverError> for Why {
    fn from(error: DriverError) -> Why {
        Why::Driver(error)
    }
}

impl Why {
    fn of(self, variant: i32) -> Failure {
        Failure { variant: Some(variant), why: self }
    }
}

impl From<Why> for Failure {
    fn from(why: Why) -> Failure {
        Failure { variant: None, why }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Refused(why) | Why::Unlaunchable(why) => f.write_str(why),
            Why::TooLarge => f.write_str("a tensor has more bytes than memory holds"),
            Why::Driver(error) if error.is_out_of_memory() => {
                write!(f, "the GPU has not enough memory left: {error}")
            }
            Why::Driver(error) => error.fmt(f),
        }
    }
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
