use std::process::ExitCode;

use cubinder_compiler::project::ProjectOptions;
use cubinder_gpu::measure::{Bench, Effort, Failure, measure};
use cubinder_gpu::timing::copy_rate;
use cubinder_gpu::{Code, Context, DriverError, RunError, Stream};
use cubinder_node::eval::Subject;
use cubinder_node::trial::Trial;
use cubinder_node::tuning;
use cubinder_source::diagnostic::Diagnostic;

use super::protocol::{Event, Job};
use super::{Arguments, data};
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::{Greeting, receive};
use crate::cli::gpu::shaped::Shaped;
use crate::cli::gpu::worker::{Events, begin, objects};

/// Far above cache sizes.
const COPIED: usize = 256 << 20;
const COPIES: u32 = 15;

pub(super) fn work(arguments: &Arguments) -> ExitCode {
    let asked = ProjectOptions { is_measured: true, ..ProjectOptions::default() };
    let begun = begin(arguments.device, arguments.nvrtc.as_deref(), &asked, || {
        Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)
    });
    let (events, context, Opened { subject, .. }) = match begun {
        Ok(begun) => begun,
        Err(code) => return code,
    };
    let stream = match Stream::new(&context) {
        Ok(stream) => stream,
        Err(error) => return events.fail(&[Diagnostic::error(error.to_string())]),
    };
    events.say(&Greeting::Ready(context.device().clone()));
    let code = Code::new(&context, objects(&subject));
    let worker = Worker { events, context: &context, code: &code, stream: &stream, subject: &subject };
    let mut jobs = std::io::stdin().lock();
    while let Some(job) = receive(&mut jobs) {
        let event = worker.job(&job).unwrap_or_else(|failure| worker.failed(&failure));
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
    fn job(&self, job: &Job) -> Result<Event, Failure> {
        match job {
            Job::CopyRate => match copy_rate(self.context, self.stream, COPIED, COPIES) {
                Err(error) if error.is_out_of_memory() => Ok(Event::CopyRate(None)),
                rate => Ok(Event::CopyRate(rate?)),
            },
            Job::Node(trial) => self.node(trial),
        }
    }

    fn node(&self, trial: &Trial) -> Result<Event, Failure> {
        let device = self.context.device();
        let shaped = Shaped::new(self.subject, &trial.query, device.facts());
        let shaped = shaped.map_err(|why| RunError::Refused(why.text()))?;
        let held = data::inputs_bytes(&shaped, trial).map_err(RunError::Refused)?;
        let bench = Bench { context: self.context, code: self.code, stream: self.stream };
        let measured = measure(bench, &shaped.node(), &held, Effort::default(), &mut |step| {
            self.events.say(&Event::Step(step));
        })?;
        let ids = measured.variants.iter().map(|timing| timing.variant);
        let signature = shaped.resolved.signature();
        let code = tuning::code_of(shaped.plugin, objects(self.subject), &signature, ids, device.capability);
        Ok(Event::Measured { measured, code })
    }

    fn failed(&self, failure: &Failure) -> Event {
        let lasts = |error: &DriverError| error.lasts() || self.context.synchronize().is_err();
        let is_broken = matches!(&failure.why, RunError::Driver(error) if lasts(error));
        Event::Failed { variant: failure.variant, why: failure.why.to_string(), is_broken }
    }
}
