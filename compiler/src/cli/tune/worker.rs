//! The process that measures.

use std::process::ExitCode;

use cubinder_compiler::project::ProjectOptions;
use cubinder_gpu::measure::{Bench, Effort, Failure, Measured, Node, Step, Timing, Why, measure};
use cubinder_gpu::timing::{Spread, copy_rate};
use cubinder_gpu::{Code, Context, DriverError, Stream};
use cubinder_node::eval::Subject;
use cubinder_node::trial::Trial;
use cubinder_node::tuning;

use super::protocol::{Event, Job, Measurement, Timed};
use super::{Arguments, data};
use crate::cli::gpu::protocol::{Greeting, receive};
use crate::cli::gpu::shaped::{Shaped, Unshaped, slices};
use crate::cli::gpu::worker::{Events, begin, compiled, gpu, objects};

/// The bytes that are copied for the rate of copies: far more than caches hold.
const COPIED: usize = 256 << 20;
/// How often.
const COPIES: u32 = 15;

/// Measures until there is no more, or until nothing can be run any more.
pub(super) fn work(arguments: &Arguments) -> ExitCode {
    let (events, context) = match begin(arguments.device) {
        Ok(begun) => begun,
        Err(code) => return code,
    };
    let asked = ProjectOptions { is_measured: true, ..ProjectOptions::default() };
    let opened = arguments
        .open()
        .and_then(|opened| compiled(&opened, arguments.nvrtc.as_deref(), context.device(), &asked));
    let subject = match opened {
        Ok(subject) => subject,
        Err(errors) => {
            events.fail(&errors);
            return ExitCode::FAILURE;
        }
    };
    let stream = match Stream::new(&context) {
        Ok(stream) => stream,
        Err(error) => {
            events.fail(&[error.to_string()].map(cubinder_source::diagnostic::Diagnostic::error));
            return ExitCode::FAILURE;
        }
    };
    events.say(&Greeting::Ready(gpu(context.device())));
    let code = Code::new(&context, objects(&subject));
    let worker = Worker { events, context: &context, code: &code, stream: &stream, subject: &subject };
    let mut jobs = std::io::stdin().lock();
    while let Some(job) = receive(&mut jobs) {
        let event = worker.job(&job);
        let is_broken = matches!(event, Event::Failed { is_broken: true, .. });
        worker.events.say(&event);
        if is_broken {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

struct Worker<'w> {
    events: Events,
    context: &'w Context,
    code: &'w Code<'w>,
    stream: &'w Stream<'w>,
    subject: &'w Subject,
}

impl Worker<'_> {
    fn job(&self, job: &Job) -> Event {
        match job {
            Job::CopyRate => match copy_rate(self.context, self.stream, COPIED, COPIES) {
                Ok(rate) => Event::CopyRate(rate),
                Err(error) if error.is_out_of_memory() => Event::CopyRate(None),
                Err(error) => self.failed(&Failure { variant: None, why: Why::Driver(error) }),
            },
            Job::Node(trial) => match self.node(trial) {
                Ok((measured, code)) => Event::Measured(measurement(measured, code)),
                Err(failure) => self.failed(&failure),
            },
        }
    }

    /// What the variants of a node take, and which code they are.
    fn node(&self, trial: &Trial) -> Result<(Measured, String), Failure> {
        let refused = |why| Failure { variant: None, why: Why::Refused(why) };
        let device = self.context.device().facts();
        let shaped = Shaped::new(self.subject, &trial.query, device).map_err(|why| match why {
            Unshaped::Refused(why) => refused(why),
            Unshaped::Mistaken(all) => {
                refused(all.into_iter().map(|it| it.message).collect::<Vec<_>>().join("; "))
            }
        })?;
        let held = data::held(&shaped, trial).map_err(refused)?;
        let (inputs, outputs) = (slices(&shaped.resolved.inputs), slices(&shaped.outputs));
        let shapes: Vec<&[i64]> = inputs.iter().copied().chain(outputs).collect();
        let largest: Vec<&[i64]> = inputs.into_iter().chain(slices(&shaped.largest)).collect();
        let node = Node {
            plugin: shaped.plugin,
            attributes: &shaped.resolved.attributes,
            types: &shaped.resolved.types,
            formats: &shaped.resolved.formats,
            shapes: &shapes,
            largest: &largest,
            values: &slices(&shaped.resolved.values),
            device,
        };
        let bench = Bench { context: self.context, code: self.code, stream: self.stream };
        let measured = measure(bench, &node, &held, Effort::default(), &mut |step| {
            self.events.say(&match step {
                Step::Begins(variant) => Event::Begins(variant),
                Step::Round => Event::Round,
            });
        })?;
        let signature = shaped.resolved.signature();
        let ids = measured.variants.iter().map(|timing| timing.variant);
        let capability = self.context.device().capability;
        let code = tuning::code_of(shaped.plugin, objects(self.subject), &signature, ids, capability);
        Ok((measured, code))
    }

    fn failed(&self, failure: &Failure) -> Event {
        // A list of errors that last ages: one of them shows in that it comes again.
        let lasts = |error: &DriverError| error.lasts() || self.context.synchronize().is_err();
        let is_broken = matches!(&failure.why, Why::Driver(error) if lasts(error));
        Event::Failed { variant: failure.variant, why: failure.why.to_string(), is_broken }
    }
}

fn measurement(measured: Measured, code: String) -> Measurement {
    let timed = |timing: Timing| {
        let Spread { median, least, most, lower, upper } = timing.microseconds;
        Timed {
            variant: timing.variant,
            label: timing.label,
            microseconds: rounded(median),
            least: rounded(least),
            most: rounded(most),
            lower_quartile: rounded(lower),
            upper_quartile: rounded(upper),
            launches: timing.launches,
            runs: timing.runs,
        }
    };
    let Measured { variants, automatic, bytes } = measured;
    Measurement { bytes, automatic, code, variants: variants.into_iter().map(timed).collect() }
}

/// To nanoseconds: what is below is noise.
fn rounded(microseconds: f64) -> f64 {
    (microseconds * 1000.0).round() / 1000.0
}
