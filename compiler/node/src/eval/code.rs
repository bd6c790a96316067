//! Chooses or compiles launches' machine code. A missing NVRTC or target is a note. Never validates launches.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::fit::{self, ComputeCapability, Fit};
use cubinder_model::{Arch, Arg, CodeObject, KernelFacts, Launch, Plugin, Target, TargetKind};

use crate::cache::Cache;
use crate::codegen;
use crate::diagnostic::Diagnostic;
use crate::nvrtc::{PreparedUnit, Session, Settings, diagnostics};
use crate::precompiled;
use crate::resolve::{ForeignCode, Resolved, Unit};
use crate::source;
use crate::toolkit::{Overrides, Toolkit};
use crate::verify;

/// Folders, NVRTC and targets for compiling kernels.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Requested architecture.
    pub arch: Option<Arch>,
    /// Targets; the first machine code is the default.
    pub targets: Vec<Target>,
    /// Include folders and NVRTC options.
    pub settings: Settings,
    /// Base of file names, as in `cubinder compile`: they share a cache.
    pub root: PathBuf,
    /// Locations of NVRTC and the cache.
    pub overrides: Overrides,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LaunchCode {
    /// Typed arguments, if known but not in the model.
    pub(super) args: Option<Vec<Arg>>,
    pub(super) machine: Vec<MachineCode>,
    /// Target if compiling failed.
    pub(super) uncompiled: Option<Target>,
    /// Whether PTX exists, for other GPUs.
    pub(super) has_ptx: bool,
    /// Why the requested architecture has no code.
    pub(super) refused: Option<String>,
    /// Unknown facts, with the reason.
    pub(super) note: Option<String>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Clone)]
pub(super) struct MachineCode {
    pub(super) arch: Arch,
    pub(super) code: Target,
    pub(super) facts: KernelFacts,
}

/// Finds or compiles the code of launches.
#[derive(Debug)]
pub struct Compiler {
    environment: Environment,
    session: OnceCell<Result<Session, String>>,
    /// By manifest, variant and launch.
    compiled: RefCell<HashMap<(PathBuf, usize, usize), LaunchCode>>,
}

impl Compiler {
    /// Creates a compiler; NVRTC is found on demand.
    #[must_use]
    pub fn new(environment: Environment) -> Compiler {
        Compiler { environment, session: OnceCell::new(), compiled: RefCell::default() }
    }

    /// Returns the requested architecture.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        self.environment.arch
    }

    pub(super) fn of_compiled(&self, launch: &Launch, objects: &[CodeObject]) -> LaunchCode {
        let all = launch.code.iter().map(|reference| {
            let kernels = objects.get(reference.code as usize).map(|object| object.kernels.as_slice());
            (reference.target, facts_of(kernels.unwrap_or_default(), &reference.symbol))
        });
        self.choose(&launch.kernel, all.collect())
    }

    /// For the requested architecture, else the project's first.
    pub(super) fn of_manifest(&self, resolved: &Resolved, unit: &Unit) -> LaunchCode {
        if let Some(code) = &unit.foreign {
            return self.of_foreign(&resolved.draft.plugin, unit, code);
        }
        let machine = |target: &&Target| target.kind == TargetKind::Cubin;
        let asked = self.environment.arch.map(|arch| Target { kind: TargetKind::Cubin, arch });
        let Some(target) = asked.or_else(|| self.environment.targets.iter().find(machine).copied()) else {
            return note(
                "argument types and occupancy are unknown: no target is specified; add `--arch`, such as `--arch sm_89`",
            );
        };
        let session = match self.session.get_or_init(|| session(&self.environment)) {
            Ok(session) => session,
            Err(why) => {
                let note = note(&format!("argument types and occupancy are unknown: {why}"));
                return LaunchCode { uncompiled: Some(target), ..note };
            }
        };
        let key = (resolved.source.path.clone(), unit.variant, unit.step);
        if let Some(known) = self.compiled.borrow().get(&key) {
            return known.clone();
        }
        let compiled = compile(session, &self.environment.root, &resolved.draft.plugin, unit, target)
            .unwrap_or_else(|diagnostics| LaunchCode { diagnostics, ..LaunchCode::default() });
        self.compiled.borrow_mut().insert(key, compiled.clone());
        compiled
    }

    fn of_foreign(&self, plugin: &Plugin, unit: &Unit, code: &ForeignCode) -> LaunchCode {
        let checked = precompiled::check(plugin, unit);
        let loaded = code.files.iter().filter_map(|file| file.loaded.as_deref());
        let all = loaded.map(|loaded| (loaded.target, facts_of(&loaded.kernels, &unit.kernel)));
        LaunchCode {
            args: checked.bound.map(|bound| bound.args),
            diagnostics: checked.diagnostics,
            ..self.choose(&unit.kernel, all.collect())
        }
    }

    fn choose(&self, kernel: &str, all: Vec<(Target, Option<KernelFacts>)>) -> LaunchCode {
        let Some(arch) = self.environment.arch else {
            let has_ptx = all.iter().any(|(target, _)| target.kind.is_ptx());
            let machine = all.into_iter().filter(|(target, _)| target.kind == TargetKind::Cubin);
            let machine = machine
                .filter_map(|(code, facts)| Some(MachineCode { arch: code.arch, code, facts: facts? }));
            return LaunchCode { machine: machine.collect(), has_ptx, ..LaunchCode::default() };
        };
        let capability = ComputeCapability { major: arch.major, minor: arch.minor };
        // TensorRT launches PTX.
        let kind = |target: &Target| if target.kind.is_ptx() { TargetKind::Ptx } else { target.kind };
        let targets: Vec<Target> =
            all.iter().map(|(target, _)| Target { kind: kind(target), ..*target }).collect();
        for index in fit::order(capability, &targets) {
            let (Some((code, facts)), Some(target)) = (all.get(index), targets.get(index)) else { continue };
            match (fit::fit(capability, *target), facts) {
                (Fit::Exact | Fit::Compatible, Some(facts)) => {
                    let machine = vec![MachineCode { arch, code: *code, facts: facts.clone() }];
                    return LaunchCode { machine, ..LaunchCode::default() };
                }
                (Fit::Ptx, _) => {
                    return LaunchCode {
                        has_ptx: true,
                        ..note(&format!(
                            "the occupancy on sm_{arch} is unknown: the driver compiles the code for {code} when the engine is loaded"
                        ))
                    };
                }
                _ => {}
            }
        }
        let has: Vec<String> = all.iter().map(|(target, _)| target.to_string()).collect();
        let has = if has.is_empty() { "none".to_owned() } else { format!("for {}", has.join(", ")) };
        let why = format!("no code of `{kernel}` runs on sm_{arch}; available: {has}");
        LaunchCode { refused: Some(why), ..LaunchCode::default() }
    }
}

fn facts_of(kernels: &[KernelFacts], symbol: &str) -> Option<KernelFacts> {
    kernels.iter().find(|kernel| kernel.symbol == symbol).cloned()
}

fn note(text: &str) -> LaunchCode {
    LaunchCode { note: Some(text.to_owned()), ..LaunchCode::default() }
}

fn session(environment: &Environment) -> Result<Session, String> {
    let why = |error: Diagnostic| error.message;
    let toolkit = Toolkit::locate(&environment.overrides).map_err(why)?;
    let cache = environment.overrides.cache.as_deref().map_or_else(Cache::disabled, Cache::open);
    Session::new(toolkit, environment.settings.clone(), cache)
        .map(|session| session.in_processes_of(environment.overrides.workers.clone()))
        .map_err(|errors| errors.into_iter().next().map_or_else(String::new, why))
}

fn compile(
    session: &Session,
    root: &Path,
    plugin: &Plugin,
    unit: &Unit,
    target: Target,
) -> Result<LaunchCode, Vec<Diagnostic>> {
    let prepared = prepare(session, root, unit)?;
    let signature = session.signature(&prepared, target).map_err(diagnostics)?;
    let args = verify::bind_args(plugin, unit, &signature)?;
    let compiled = session.compile(&prepared, target).map_err(diagnostics)?;
    let facts = compiled.object.kernels.iter().find(|kernel| kernel.symbol == compiled.symbol);
    let machine = facts.map(|facts| MachineCode { arch: target.arch, code: target, facts: facts.clone() });
    Ok(LaunchCode {
        args: Some(args),
        machine: machine.into_iter().collect(),
        diagnostics: compiled.warnings,
        ..LaunchCode::default()
    })
}

fn prepare(session: &Session, root: &Path, unit: &Unit) -> Result<PreparedUnit, Vec<Diagnostic>> {
    let located = |error: Diagnostic| error.at(unit.source_span.clone(), "the manifest names it here");
    let located = |errors: Vec<Diagnostic>| errors.into_iter().map(located).collect::<Vec<_>>();
    let source = source::text(&unit.source).map_err(located)?;
    let name = codegen::display_name(&unit.source, root);
    let prepare = |names: Option<&BTreeSet<String>>| {
        session.prepare(codegen::translation_unit(unit, Arc::clone(&source), &name, names))
    };
    // Shares a library compile's cache.
    let whole = prepare(None);
    let names = codegen::names_needed(unit, session.names_taken(&whole).as_ref());
    Ok(names.map_or(whole, |names| prepare(Some(&names))))
}
