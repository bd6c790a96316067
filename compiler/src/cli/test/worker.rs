//! The process that runs kernels: a test of each variant that serves a node.

use std::path::PathBuf;
use std::process::ExitCode;

use cubinder_compiler::project::ProjectOptions;
use cubinder_gpu::{Code, Context};
use cubinder_launch as launch;
use cubinder_launch::Facts;
use cubinder_model::{AUTO_TACTIC, Arch, ArchSuffix};
use cubinder_node::cases::{self, Cases};
use cubinder_node::eval::{Compiler, Environment, Subject};
use cubinder_node::trial::reference::Python;

use super::node::{Node, Unmade};
use super::protocol::{Event, Job, Ran};
use super::{Arguments, run};
use crate::cli::gpu::protocol::{Greeting, receive};
use crate::cli::gpu::worker::{Events, begin, compiled, gpu, objects};

/// Runs jobs until there are no more, or until nothing can be run any more.
pub(super) fn work(arguments: &Arguments) -> ExitCode {
    let (events, context) = match begin(arguments.device) {
        Ok(begun) => begun,
        Err(code) => return code,
    };
    let compiled = arguments.open().and_then(|tested| {
        Ok((
            compiled(&tested, arguments.nvrtc.as_deref(), context.device(), &ProjectOptions::default())?,
            tested,
        ))
    });
    match compiled {
        Ok((subject, tested)) => {
            events.say(&Greeting::Ready(gpu(context.device())));
            Worker::new(arguments, (&context, events), tested.cases.as_ref(), &subject).serve();
            ExitCode::SUCCESS
        }
        Err(errors) => {
            events.fail(&errors);
            ExitCode::FAILURE
        }
    }
}

struct Worker<'w> {
    events: Events,
    context: &'w Context,
    code: Code<'w>,
    subject: &'w Subject,
    cases: Option<&'w Cases>,
    compiler: Compiler,
    facts: Vec<(String, i64)>,
    python: Python,
}

impl<'w> Worker<'w> {
    fn new(
        arguments: &Arguments,
        (context, events): (&'w Context, Events),
        cases: Option<&'w Cases>,
        subject: &'w Subject,
    ) -> Worker<'w> {
        let device = context.device();
        let capability = device.capability;
        let arch = Arch { major: capability.major, minor: capability.minor, suffix: ArchSuffix::None };
        let facts = device.facts();
        let named =
            [("sms", facts.sms), ("shared_bytes", facts.shared_bytes), ("capability", facts.capability)];
        Worker {
            events,
            context,
            code: Code::new(context, objects(subject)),
            subject,
            cases,
            compiler: Compiler::new(Environment { arch: Some(arch), ..Environment::default() }),
            facts: named.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            python: Python::new(python(arguments)),
        }
    }

    fn serve(&mut self) {
        let mut jobs = std::io::stdin().lock();
        while let Some(job) = receive(&mut jobs) {
            let is_broken = self.job(&job);
            if is_broken {
                return;
            }
            self.events.say(&Event::Done);
        }
    }

    /// Whether nothing can be run any more.
    fn job(&mut self, job: &Job) -> bool {
        if let Some((cases, index)) = self.cases.zip(job.case)
            && let Some(case) = cases.list.get(index)
            && job.skip.is_empty()
        {
            let verdict = cases::verdict(cases, case, self.subject, &self.compiler, &self.facts);
            let is_mistaken = verdict.differences.iter().any(|it| it.mistake);
            if !verdict.differences.is_empty() {
                let text = |it: cases::Difference| format!("{}: {}", it.place, it.text);
                self.events.say(&Event::Differs(verdict.differences.into_iter().map(text).collect()));
            }
            // What is misspelt cannot be run.
            if case.is_refusal() || is_mistaken {
                return false;
            }
        }
        let device = self.context.device().facts();
        let node = match Node::new(self.subject, &job.trial, device, &mut self.python) {
            Ok(node) => node,
            Err(Unmade::Refused(why)) => {
                self.events.say(&Event::Refused(why));
                return false;
            }
            Err(Unmade::Wrong(fault)) => {
                self.events.say(&Event::Ran(Ran { faults: vec![fault], ..Ran::default() }));
                return false;
            }
        };
        self.variants(&node, job)
    }

    fn variants(&self, node: &Node<'_>, job: &Job) -> bool {
        let plugin = node.shaped.plugin;
        let signature = node.shaped.resolved.signature();
        // All of them run, so it is no matter in which order.
        let tactic = job.trial.variant.unwrap_or(AUTO_TACTIC);
        let order = match launch::in_order(plugin, &signature, tactic, &Facts::default()) {
            Ok(order) => order,
            Err(why) => {
                self.events.say(&Event::Refused(why.to_string()));
                return false;
            }
        };
        let mut base = None;
        for variant in order.iter().filter_map(|index| plugin.variants.get(*index)) {
            let is_wanted = job.trial.variant.is_none_or(|id| id == variant.id);
            if !is_wanted || job.skip.contains(&variant.id) {
                continue;
            }
            self.events.say(&Event::Starts(variant.id));
            let aligned = &job.trial.query.aligned;
            let ran = run::variant(&self.code, self.context, node, variant, aligned, &mut base);
            let Some(ran) = ran else {
                self.events.say(&Event::Unfit(variant.id));
                continue;
            };
            let is_broken = ran.is_broken;
            self.events.say(&Event::Ran(ran));
            if is_broken {
                return true;
            }
        }
        false
    }
}

/// The Python that runs references.
fn python(arguments: &Arguments) -> PathBuf {
    let of_environment =
        || std::env::var_os("CUBINDER_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from);
    arguments.python.clone().or_else(of_environment).unwrap_or_else(|| PathBuf::from("python3"))
}
