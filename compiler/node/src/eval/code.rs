//! The machine code of a launch, for its arguments' types and for occupancy: from the file, or compiled on the fly.
//!
//! Owns which code is looked at, and the one session in which a manifest's kernels are compiled. Where NVRTC is missing, or nothing says
//! what to compile for, that is a note and no error. Never decides whether a launch is right.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::{Arch, ArchSuffix, Arg, CodeObject, KernelFacts, Launch, Plugin, Target, TargetKind};

use crate::cache::Cache;
use crate::codegen;
use crate::diagnostic::Diagnostic;
use crate::loaded::Loaded;
use crate::nvrtc::{PreparedUnit, Session, Settings};
use crate::precompiled;
use crate::resolve::{ForeignCode, Resolved, Unit};
use crate::source;
use crate::toolkit::{Overrides, Toolkit};
use crate::verify;

/// Where kernels are compiled and what for.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The architecture that was asked for.
    pub arch: Option<Arch>,
    /// What the project compiles for: the first machine code among it serves where no architecture was asked for.
    pub targets: Vec<Target>,
    /// Include folders and options of NVRTC.
    pub settings: Settings,
    /// The project's folder: files are named relative to it, as `cubinder compile` does, so that both share the cache.
    pub root: PathBuf,
    /// Where NVRTC and the cache are.
    pub overrides: Overrides,
}

/// What is known of a launch's code.
#[derive(Debug, Clone, Default)]
pub(super) struct LaunchCode {
    /// The arguments with their types; none where the model has them already, or where they are not known.
    pub(super) args: Option<Vec<Arg>>,
    /// The machine code that counts.
    pub(super) machine: Vec<MachineCode>,
    /// What it would be compiled for, where it could not be: of that the limits are known.
    pub(super) uncompiled: Option<Target>,
    /// Whether there is PTX too, which runs where this machine code may not.
    pub(super) has_ptx: bool,
    /// Why nothing of it runs on the architecture that was asked for.
    pub(super) refused: Option<String>,
    /// What could not be told, and why.
    pub(super) note: Option<String>,
    /// What the compiler found wrong with the kernel or its arguments.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A kernel's code on an architecture.
#[derive(Debug, Clone)]
pub(super) struct MachineCode {
    /// Where it runs.
    pub(super) arch: Arch,
    /// What it was compiled for.
    pub(super) code: Target,
    /// What it says about the kernel.
    pub(super) facts: KernelFacts,
}

/// Finds or makes the code of launches.
#[derive(Debug)]
pub struct Compiler {
    environment: Environment,
    session: OnceCell<Result<Session, String>>,
    /// By manifest, variant and launch: cases share them.
    made: RefCell<HashMap<(PathBuf, usize, usize), LaunchCode>>,
}

impl Compiler {
    /// Nothing is looked for before it is needed.
    #[must_use]
    pub fn new(environment: Environment) -> Compiler {
        Compiler { environment, session: OnceCell::new(), made: RefCell::default() }
    }

    /// The architecture that was asked for.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        self.environment.arch
    }

    /// The code of a launch in a library or an engine.
    pub(super) fn of_compiled(&self, launch: &Launch, objects: &[CodeObject]) -> LaunchCode {
        let all = launch.code.iter().filter_map(|reference| {
            let object = objects.get(reference.code as usize)?;
            let facts = object.kernels.iter().find(|kernel| kernel.symbol == reference.symbol)?;
            (reference.target.kind == TargetKind::Cubin).then(|| MachineCode {
                arch: self.environment.arch.unwrap_or(reference.target.arch),
                code: reference.target,
                facts: facts.clone(),
            })
        });
        let all: Vec<MachineCode> = all.collect();
        let Some(arch) = self.environment.arch else {
            let has_ptx = launch.code.iter().any(|reference| reference.target.kind.is_ptx());
            return LaunchCode { machine: all, has_ptx, ..LaunchCode::default() };
        };
        match all
            .into_iter()
            .filter_map(|code| Some((fit(arch, code.code.arch)?, code)))
            .min_by_key(|(fit, _)| *fit)
        {
            Some((_, code)) => LaunchCode { machine: vec![code], ..LaunchCode::default() },
            None => {
                let targets: Vec<Target> = launch.code.iter().map(|reference| reference.target).collect();
                LaunchCode { machine: Vec::new(), ..without_machine_code(arch, &launch.kernel, &targets) }
            }
        }
    }

    /// The code of a manifest's launch, compiled for the architecture that was asked for, else for the project's first.
    pub(super) fn of_manifest(&self, resolved: &Resolved, unit: &Unit) -> LaunchCode {
        if let Some(code) = &unit.foreign {
            return self.of_foreign(&resolved.draft.plugin, unit, code);
        }
        let machine = |target: &&Target| target.kind == TargetKind::Cubin;
        let asked = self.environment.arch.map(|arch| Target { kind: TargetKind::Cubin, arch });
        let Some(target) = asked.or_else(|| self.environment.targets.iter().find(machine).copied()) else {
            return note(
                "the arguments' types and the occupancy are not known: nothing says what to compile for; name a GPU, such as `--arch sm_89`",
            );
        };
        let session = match self.session.get_or_init(|| session(&self.environment)) {
            Ok(session) => session,
            Err(why) => {
                let note = note(&format!("the arguments' types and the occupancy are not known: {why}"));
                return LaunchCode { uncompiled: Some(target), ..note };
            }
        };
        let key = (resolved.source.path.clone(), unit.variant, unit.step);
        if let Some(known) = self.made.borrow().get(&key) {
            return known.clone();
        }
        let made = make(session, &self.environment.root, &resolved.draft.plugin, unit, target)
            .unwrap_or_else(|diagnostics| LaunchCode { diagnostics, ..LaunchCode::default() });
        self.made.borrow_mut().insert(key, made.clone());
        made
    }
}

impl Compiler {
    /// The code of a launch that another compiler made: that of the architecture that was asked for, else all machine code.
    fn of_foreign(&self, plugin: &Plugin, unit: &Unit, code: &ForeignCode) -> LaunchCode {
        let held = precompiled::check(plugin, unit);
        let args = held.bound.map(|bound| bound.args);
        let loaded = || code.files.iter().filter_map(|file| file.loaded.as_deref());
        let is_cubin = |loaded: &&Loaded| loaded.target.kind == TargetKind::Cubin;
        let machine = loaded().filter(is_cubin).filter_map(|loaded| {
            let facts = loaded.kernels.iter().find(|kernel| kernel.symbol == unit.kernel)?;
            let arch = self.environment.arch.unwrap_or(loaded.target.arch);
            Some(MachineCode { arch, code: loaded.target, facts: facts.clone() })
        });
        let has_ptx = loaded().any(|loaded| !is_cubin(&loaded));
        let known = LaunchCode { args, diagnostics: held.diagnostics, ..LaunchCode::default() };
        let Some(arch) = self.environment.arch else {
            return LaunchCode { machine: machine.collect(), has_ptx, ..known };
        };
        let fitting = machine.filter_map(|code| Some((fit(arch, code.code.arch)?, code)));
        if let Some((_, code)) = fitting.min_by_key(|(fit, _)| *fit) {
            return LaunchCode { machine: vec![code], ..known };
        }
        let targets: Vec<Target> = loaded().map(|loaded| loaded.target).collect();
        let LaunchCode { has_ptx, note, refused, .. } = without_machine_code(arch, &unit.kernel, &targets);
        LaunchCode { has_ptx, note, refused, ..known }
    }
}

/// What there is to say of a launch without machine code for an architecture: that its PTX is compiled there, or that nothing runs.
fn without_machine_code(arch: Arch, kernel: &str, targets: &[Target]) -> LaunchCode {
    let targets = || targets.iter().copied();
    // The driver takes the newest that it can.
    let ptx = targets().filter(|target| target.kind.is_ptx() && runs_from_ptx(arch, target.arch));
    match ptx.max_by_key(|target| (target.arch.major, target.arch.minor)) {
        Some(ptx) => LaunchCode {
            has_ptx: true,
            ..note(&format!(
                "the occupancy on sm_{arch} is not known: the driver compiles the code for {ptx} when the engine is loaded"
            ))
        },
        None => {
            let has: Vec<String> = targets().map(|target| target.to_string()).collect();
            let has = if has.is_empty() { "none".to_owned() } else { format!("for {}", has.join(", ")) };
            let why = format!("no code of `{kernel}` runs on sm_{arch}; there is {has}");
            LaunchCode { refused: Some(why), ..LaunchCode::default() }
        }
    }
}

fn note(text: &str) -> LaunchCode {
    LaunchCode { note: Some(text.to_owned()), ..LaunchCode::default() }
}

/// The session, or in one line why there is none.
fn session(environment: &Environment) -> Result<Session, String> {
    let why = |error: Diagnostic| error.message;
    let toolkit = Toolkit::locate(&environment.overrides).map_err(why)?;
    let cache = environment.overrides.cache.as_deref().map_or_else(Cache::disabled, Cache::open);
    Session::new(toolkit, environment.settings.clone(), cache)
        .map(|session| session.in_processes_of(environment.overrides.workers.clone()))
        .map_err(|errors| errors.into_iter().next().map_or_else(String::new, why))
}

fn make(
    session: &Session,
    root: &Path,
    plugin: &Plugin,
    unit: &Unit,
    target: Target,
) -> Result<LaunchCode, Vec<Diagnostic>> {
    let prepared = prepare(session, root, unit)?;
    let signature = session.signature(&prepared, target)?;
    let args = verify::bind_args(plugin, unit, &signature)?;
    let compiled = session.compile(&prepared, target)?;
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
    let source = source::text(&unit.source).map_err(|errors| {
        errors
            .into_iter()
            .map(|error| error.at(unit.source_span.clone(), "the manifest names it here"))
            .collect::<Vec<_>>()
    })?;
    let name = codegen::display_name(&unit.source, root);
    let prepare = |names: Option<&BTreeSet<String>>| {
        session.prepare(codegen::translation_unit(unit, Arc::clone(&source), &name, names))
    };
    // As it is compiled for a library, so that the cache has it.
    let whole = prepare(None);
    let names = codegen::names_needed(unit, session.names_taken(&whole).as_ref());
    Ok(names.map_or(whole, |names| prepare(Some(&names))))
}

/// How well machine code fits an architecture, the best least: exactly, else the same major with the highest lower minor. It is the order of
/// the runtime (CUDA C++ programming guide 13.0, "compute capabilities"). None where it does not run there.
fn fit(asked: Arch, code: Arch) -> Option<(u8, u8)> {
    let same_number = (asked.major, asked.minor) == (code.major, code.minor);
    if same_number {
        let specificity = match code.suffix {
            ArchSuffix::Specific => 0,
            ArchSuffix::Family => 1,
            ArchSuffix::None => 2,
        };
        return Some((0, specificity));
    }
    let runs = code.suffix != ArchSuffix::Specific && code.major == asked.major && code.minor < asked.minor;
    runs.then(|| (asked.minor - code.minor, 0))
}

/// Whether a driver can make code for an architecture of this PTX: of an older one or the same; PTX for features of one architecture
/// or family serves nothing else (CUDA C++ programming guide 13.0, "compute capabilities").
fn runs_from_ptx(asked: Arch, ptx: Arch) -> bool {
    let (of_asked, of_ptx) = ((asked.major, asked.minor), (ptx.major, ptx.minor));
    match ptx.suffix {
        ArchSuffix::None => of_ptx <= of_asked,
        ArchSuffix::Family => asked.major == ptx.major && of_ptx <= of_asked,
        ArchSuffix::Specific => of_ptx == of_asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_chosen_as_the_runtime_does() {
        let arch = |text: &str| text.parse::<Target>().unwrap().arch;
        let best = |asked: &str, codes: &[&str]| {
            let fits =
                codes.iter().filter_map(|code| Some((fit(arch(asked), arch(code))?, (*code).to_owned())));
            fits.min().map(|(_, code)| code)
        };
        assert_eq!(best("sm_89", &["sm_80", "sm_86", "sm_90"]).as_deref(), Some("sm_86"));
        assert_eq!(best("sm_89", &["sm_80", "sm_89"]).as_deref(), Some("sm_89"));
        assert_eq!(best("sm_90", &["sm_90", "sm_90a"]).as_deref(), Some("sm_90a"));
        assert_eq!(best("sm_121", &["sm_120a"]), None);
        assert_eq!(best("sm_75", &["sm_80"]), None);
    }

    #[test]
    fn ptx_runs_on_what_is_newer() {
        let arch = |text: &str| text.parse::<Target>().unwrap().arch;
        let runs = |asked: &str, ptx: &str| runs_from_ptx(arch(asked), arch(ptx));
        assert!(runs("sm_80", "compute_80") && runs("sm_120", "compute_80") && runs("sm_90", "compute_90a"));
        assert!(runs("sm_103", "compute_100f"));
        assert!(!runs("sm_75", "compute_80") && !runs("sm_100", "compute_90a"));
        assert!(!runs("sm_120", "compute_100f"));
    }
}
