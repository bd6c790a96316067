//! The process that runs kernels: it reads jobs from standard input and says what comes of them on what was standard output. Kernels, the
//! driver and other libraries print to standard error in its place: what they print is for people.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_bundle::launch::{self, Facts, Signature};
use cubinder_bundle::{AUTO_TACTIC, Arch, ArchSuffix, CodeObject, Target, TargetKind, fit};
use cubinder_compiler::compile::{self, Progress};
use cubinder_compiler::diagnostic::{Colour, Diagnostic, render, to_json_lines};
use cubinder_compiler::eval::cases::{self, Cases};
use cubinder_compiler::eval::{Compiler, Environment, Subject, SubjectOrigin};
use cubinder_compiler::project::{Asked, Project};
use cubinder_compiler::resolve::Resolved;
use cubinder_compiler::rules;
use cubinder_compiler::toolkit::Overrides;
use cubinder_compiler::trial::reference::Python;
use cubinder_gpu::{Code, Context, DeviceInfo, Driver};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::node::{Node, Unmade};
use super::protocol::{Event, Gpu, Job, Ran, receive};
use super::{Arguments, Tested, run};

/// Runs jobs until there are no more, or until nothing can be run any more.
pub(super) fn work(arguments: &Arguments) -> ExitCode {
    let Ok(events) = Events::take() else { return ExitCode::FAILURE };
    // Where the command is ended nobody would end this process, and a kernel may not end by itself. Where that cannot be had, it ends
    // when it asks for the next job.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let context = match Driver::load().and_then(|driver| Context::open(driver, arguments.device)) {
        Ok(context) => context,
        Err(why) if why.is_absence() => {
            events.say(&Event::NoGpu(why.to_string()));
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            events.fail(&[Diagnostic::error(why.to_string())]);
            return ExitCode::FAILURE;
        }
    };
    match Tested::open(arguments).and_then(|tested| {
        let compiled = compiled(arguments, &tested, context.device())?;
        Ok((tested, compiled))
    }) {
        Ok((tested, subject)) => {
            events.say(&Event::Ready(gpu(context.device())));
            Worker::new(arguments, (&context, events), tested.cases.as_ref(), &subject).serve();
            ExitCode::SUCCESS
        }
        Err(errors) => {
            events.fail(&errors);
            ExitCode::FAILURE
        }
    }
}

/// Where events go.
struct Events(File);

impl Events {
    /// What is standard output, for events alone; what is printed goes to standard error from now on.
    fn take() -> std::io::Result<Events> {
        // No process that is started from here has it.
        let own = std::io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Events(own.into()))
    }

    /// What nobody hears needs no saying: the command has ended, and so will this process.
    fn say(&self, event: &Event) {
        if let Ok(text) = serde_json::to_string(event) {
            let _ = (&self.0).write_all((text + "\n").as_bytes());
        }
    }

    fn fail(&self, errors: &[Diagnostic]) {
        self.say(&Event::Failed {
            human: render(errors, Colour::Plain),
            json: to_json_lines(errors).unwrap_or_default(),
        });
    }
}

fn gpu(device: &DeviceInfo) -> Gpu {
    let facts = device.facts();
    Gpu {
        name: device.name.clone(),
        capability: device.capability.to_string(),
        sms: facts.sms,
        shared_bytes: facts.shared_bytes,
        number: facts.capability,
        driver: format!("{}.{}", device.driver / 1000, device.driver % 1000 / 10),
    }
}

/// What is tested, with code for the device.
fn compiled(arguments: &Arguments, tested: &Tested, device: &DeviceInfo) -> Result<Subject, Vec<Diagnostic>> {
    if matches!(tested.subject.origin, SubjectOrigin::Compiled(_)) {
        return Ok(tested.subject.clone());
    }
    let made = compile_for(arguments, &tested.path, &tested.subject, device)?;
    let code: Vec<CodeObject> = made.bundle.code;
    let plugin = made.bundle.plugins.into_iter().next();
    let plugin = plugin.ok_or_else(|| vec![Diagnostic::error("nothing was compiled")])?;
    Ok(Subject { plugin, origin: SubjectOrigin::Compiled(code.into()), ..tested.subject.clone() })
}

/// Compiles a manifest for the device alone: for what the project has for just this device (`sm_90a`), else for its architecture.
fn compile_for(
    arguments: &Arguments,
    path: &Path,
    subject: &Subject,
    device: &DeviceInfo,
) -> Result<compile::Made, Vec<Diagnostic>> {
    let here = std::env::current_dir()
        .map_err(|error| vec![Diagnostic::error(format!("cannot tell which folder this is: {error}"))])?;
    let open = |targets: Vec<Target>| {
        let asked = Asked { manifests: vec![path.to_owned()], targets, ..Asked::default() };
        let project = Project::open_around(asked, &here)?.pop();
        project.ok_or_else(|| vec![Diagnostic::error("there is no manifest")])
    };
    let overrides = Overrides::from_env(arguments.nvrtc.clone());
    let targets: Vec<Target> = match &subject.origin {
        // Where all code is there already, it is for the GPUs that it is for.
        SubjectOrigin::Manifest(resolved) if is_all_there(resolved) => {
            return compile::bundle(&open(Vec::new())?, &overrides, true, &Silent);
        }
        SubjectOrigin::Manifest(resolved) => {
            open(Vec::new())?.planning(resolved).plan.targets.iter().map(|planned| planned.target).collect()
        }
        SubjectOrigin::Compiled(_) => Vec::new(),
    };
    let capability = device.capability;
    let own = fit::order(capability, &targets).first().and_then(|index| targets.get(*index).copied());
    let own = own.filter(|target| fit::fit(capability, *target) == fit::Fit::Exact);
    let plain = Arch { major: capability.major, minor: capability.minor, suffix: ArchSuffix::None };
    let target = own.unwrap_or(Target { kind: TargetKind::Cubin, arch: plain });
    let made = compile::bundle(&open(vec![target])?, &overrides, true, &Silent);
    made.map_err(|errors| errors.into_iter().map(|error| for_device(error, target)).collect())
}

/// Nobody asked for the target by name.
fn for_device(error: Diagnostic, target: Target) -> Diagnostic {
    match error.code == Some(rules::CODE_TARGETS) {
        true => error.note(format!("`{target}` is the GPU at hand")),
        false => error,
    }
}

/// Whether there is nothing to compile.
fn is_all_there(manifest: &Resolved) -> bool {
    let units = &manifest.draft.units;
    !units.is_empty() && units.iter().all(|unit| unit.foreign.is_some())
}

/// Nobody watches.
struct Silent;

impl Progress for Silent {
    fn begin(&self, _: usize) {}
    fn step(&self, _: &str) {}
    fn end(&self) {}
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
        let objects: &[CodeObject] = match &subject.origin {
            SubjectOrigin::Compiled(objects) => objects,
            SubjectOrigin::Manifest(_) => &[],
        };
        let device = context.device();
        let capability = device.capability;
        let arch = Arch { major: capability.major, minor: capability.minor, suffix: ArchSuffix::None };
        let facts = device.facts();
        let named =
            [("sms", facts.sms), ("shared_bytes", facts.shared_bytes), ("capability", facts.capability)];
        Worker {
            events,
            context,
            code: Code::new(context, objects),
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
        let plugin = node.plugin;
        let stated = &node.stated;
        let signature =
            Signature { attributes: &stated.attributes, types: &stated.types, formats: &stated.formats };
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
