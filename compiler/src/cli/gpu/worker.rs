//! Starts a worker process: jobs come from stdin, events go to the original stdout, all other output to stderr.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_compiler::compile::{CompiledBundle, compile_bundle};
use cubinder_compiler::project::ProjectOptions;
use cubinder_gpu::{Context, DeviceInfo, Driver};
use cubinder_manifest::resolve::Resolved;
use cubinder_model::{Arch, ArchSuffix, CodeObject, Target, TargetKind, fit};
use cubinder_node::eval::{Subject, SubjectOrigin};
use cubinder_source::diagnostic::{Diagnostic, Sink};
use cubinder_source::rules;
use indicatif::ProgressBar;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::Serialize;

use super::Opened;
use super::protocol::Greeting;
use crate::cli::nvrtc;
use crate::cli::output::open_project;

/// Errors are reported and returned as an exit code.
pub(in crate::cli) fn begin(
    device: u32,
    nvrtc: Option<&Path>,
    asked: &ProjectOptions,
    open: impl FnOnce() -> Result<Opened, Vec<Diagnostic>>,
) -> Result<(Events, Context, Opened), ExitCode> {
    let events = Events::take().map_err(|_| ExitCode::FAILURE)?;
    // A kernel may never end, so the worker dies with the command.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let context = match Driver::load().and_then(|driver| Context::open(driver, device)) {
        Ok(context) => context,
        Err(why) if why.is_absence() => {
            events.say(&Greeting::NoGpu(why.to_string()));
            return Err(ExitCode::SUCCESS);
        }
        Err(why) => return Err(events.fail(&[Diagnostic::error(why.to_string())])),
    };
    let compiled = open().and_then(|opened| {
        let subject = compiled(&opened, nvrtc, context.device(), asked)?;
        Ok(Opened { subject, ..opened })
    });
    match compiled {
        Ok(opened) => Ok((events, context, opened)),
        Err(errors) => Err(events.fail(&errors)),
    }
}

pub(in crate::cli) fn objects(subject: &Subject) -> &[CodeObject] {
    match &subject.origin {
        SubjectOrigin::Compiled(objects) => objects,
        SubjectOrigin::Manifest(_) => &[],
    }
}

pub(in crate::cli) struct Events(File);

impl Events {
    fn take() -> std::io::Result<Events> {
        // Child processes do not inherit the duplicate.
        let own = std::io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Events(own.into()))
    }

    /// Ignores errors: this process ends with the command.
    pub(in crate::cli) fn say(&self, event: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(event) {
            let _ = (&self.0).write_all((text + "\n").as_bytes());
        }
    }

    pub(in crate::cli) fn fail(&self, errors: &[Diagnostic]) -> ExitCode {
        self.say(&Greeting::Failed(errors.into()));
        ExitCode::FAILURE
    }
}

fn compiled(
    opened: &Opened,
    nvrtc: Option<&Path>,
    device: &DeviceInfo,
    asked: &ProjectOptions,
) -> Result<Subject, Vec<Diagnostic>> {
    if matches!(opened.subject.origin, SubjectOrigin::Compiled(_)) {
        return Ok(opened.subject.clone());
    }
    let bundle = compile_for(nvrtc.map(Path::to_owned), &opened.path, &opened.subject, device, asked)?.bundle;
    let code: Vec<CodeObject> = bundle.code;
    let plugin = bundle.plugins.into_iter().next();
    let plugin = plugin.ok_or_else(|| Diagnostic::error("nothing was compiled"))?;
    Ok(Subject { plugin, origin: SubjectOrigin::Compiled(code.into()), ..opened.subject.clone() })
}

/// Compiles a manifest for the device's exact target (`sm_90a`), else its architecture.
fn compile_for(
    nvrtc: Option<PathBuf>,
    path: &Path,
    subject: &Subject,
    device: &DeviceInfo,
    asked: &ProjectOptions,
) -> Result<CompiledBundle, Vec<Diagnostic>> {
    let open = |targets: Vec<Target>| {
        let asked = ProjectOptions { manifests: vec![path.to_owned()], targets, ..asked.clone() };
        open_project(asked)?.ok_or_else(|| vec![Diagnostic::error("no manifest")])
    };
    let overrides = nvrtc::overrides(nvrtc);
    let targets: Vec<Target> = match &subject.origin {
        // Precompiled code has its own targets.
        SubjectOrigin::Manifest(resolved) if is_all_there(resolved) => {
            return compile_bundle(&open(Vec::new())?, &overrides, true, &ProgressBar::hidden());
        }
        SubjectOrigin::Manifest(resolved) => {
            open(Vec::new())?.plan(resolved, false, &Sink::default()).targets()
        }
        SubjectOrigin::Compiled(_) => Vec::new(),
    };
    let capability = device.capability;
    let own = fit::order(capability, &targets).first().and_then(|index| targets.get(*index).copied());
    let own = own.filter(|target| fit::fit(capability, *target) == fit::Fit::Exact);
    let plain = Arch { major: capability.major, minor: capability.minor, suffix: ArchSuffix::None };
    let target = own.unwrap_or(Target { kind: TargetKind::Cubin, arch: plain });
    // The command line does not name the target.
    let explained = |error: Diagnostic| match error.code == Some(rules::CODE_TARGETS) {
        true => error.note(format!("`{target}` is the target of the selected GPU")),
        false => error,
    };
    let compiled = compile_bundle(&open(vec![target])?, &overrides, true, &ProgressBar::hidden());
    compiled.map_err(|errors| errors.into_iter().map(explained).collect())
}

fn is_all_there(manifest: &Resolved) -> bool {
    let units = &manifest.draft.units;
    !units.is_empty() && units.iter().all(|unit| unit.foreign.is_some())
}
