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

use super::node::{Node, NodeError};
use super::protocol::{Event, Job, VariantResult};
use super::{Arguments, run};
use crate::cli::gpu::Opened;
use crate::cli::gpu::protocol::{Greeting, receive};
use crate::cli::gpu::worker::{Events, begin, objects};
use crate::cli::output::environment_path;

pub(super) fn work(arguments: &Arguments) -> ExitCode {
    let nvrtc = arguments.nvrtc.as_deref();
    let begun = begin(arguments.device, nvrtc, &ProjectOptions::default(), || {
        Opened::open(&arguments.file, arguments.on.as_deref(), &arguments.which)
    });
    let (events, context, opened) = match begun {
        Ok(begun) => begun,
        Err(code) => return code,
    };
    events.say(&Greeting::Ready(context.device().clone()));
    Worker::new(arguments, (&context, events), &opened).serve();
    ExitCode::SUCCESS
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
        opened: &'w Opened,
    ) -> Worker<'w> {
        let subject = &opened.subject;
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
            cases: opened.cases.as_ref(),
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

    fn job(&mut self, job: &Job) -> bool {
        if let Some((cases, index)) = self.cases.zip(job.case)
            && let Some(case) = cases.list.get(index)
            && job.skip.is_empty()
        {
            let verdict = cases::verdict(cases, case, self.subject, &self.compiler, &self.facts);
            let is_mistaken = verdict.differences.iter().any(|it| it.mistake);
            if !verdict.differences.is_empty() {
                let differences = verdict.differences.iter().map(ToString::to_string);
                self.events.say(&Event::Differs(differences.collect()));
            }
            if case.is_refusal() || is_mistaken {
                return false;
            }
        }
        let device = self.context.device().facts();
        let node = match Node::new(self.subject, &job.trial, device, &mut self.python) {
            Ok(node) => node,
            Err(NodeError::Refused(why)) => {
                self.events.say(&Event::Refused(why));
                return false;
            }
            Err(NodeError::Wrong(fault)) => {
                self.events
                    .say(&Event::Ran(VariantResult { faults: vec![fault], ..VariantResult::default() }));
                return false;
            }
        };
        self.variants(&node, job)
    }

    fn variants(&self, node: &Node<'_>, job: &Job) -> bool {
        let plugin = node.shaped.plugin;
        let signature = node.shaped.resolved.signature();
        // All variants run, so their order is irrelevant.
        let tactic = job.trial.variant.unwrap_or(AUTO_TACTIC);
        let order = match launch::in_order(plugin, &signature, tactic, &Facts::default()) {
            Ok(order) => order,
            Err(why) => {
                self.events.say(&Event::Refused(why.to_string()));
                return false;
            }
        };
        let mut baseline = None;
        for variant in order.iter().filter_map(|index| plugin.variants.get(*index)) {
            let is_wanted = job.trial.variant.is_none_or(|id| id == variant.id);
            if !is_wanted || job.skip.contains(&variant.id) {
                continue;
            }
            self.events.say(&Event::Starts(variant.id));
            let aligned = &job.trial.query.aligned;
            let ran = run::variant(&self.code, self.context, node, variant, aligned, &mut baseline);
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

fn python(arguments: &Arguments) -> PathBuf {
    let named = arguments.python.clone().or_else(|| environment_path("CUBINDER_PYTHON"));
    named.unwrap_or_else(|| PathBuf::from("python3"))
}
