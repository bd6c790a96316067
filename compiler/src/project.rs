//! What a command works on: which manifests, and for each of them which targets and settings.
//!
//! Owns what goes before what: the command line, the manifest's `[compile]`, `cubinder.toml`. Shared by every command that takes
//! manifests. Never compiles anything.

pub mod kind;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_bundle::{Plugin, Target, TargetKind};

use crate::codegen;
use crate::config::{self, Config};
use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::foreign;
use crate::manifest::{CodeKind, DriverVersion, Located, Text};
use crate::nvrtc::{Settings, check_defined, check_options};
use crate::resolve::{self, Resolved};
use crate::rules;
use crate::toolkit::drivers::{self, Release};
use crate::tuning;
use crate::verify::max_shared_bytes;
use kind::Kind;

/// What the command line asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The manifests; none: those that `cubinder.toml` names.
    pub manifests: Vec<PathBuf>,
    /// The `cubinder.toml` to use.
    pub config: Option<PathBuf>,
    /// What to compile for, whatever manifests and `cubinder.toml` say; none: what they say.
    pub targets: Vec<Target>,
    /// Of what manifests and `cubinder.toml` say, compile for these alone; none: for all.
    pub only: Vec<Target>,
    /// Include folders, before all others.
    pub include: Vec<PathBuf>,
    /// Options of NVRTC, after all others.
    pub options: Vec<String>,
    /// Whether code has line information, whatever manifests and `cubinder.toml` say.
    pub line_information: bool,
    /// Files of tuning, before those that `cubinder.toml` names.
    pub tuning: Vec<PathBuf>,
    /// What is opened is measured, which mends its tuning: what is wrong with that is passed over.
    pub is_measured: bool,
}

/// The manifests of one library, and what holds for all of them. The default has none, and says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// `cubinder.toml`, where it counts.
    pub config: Option<Config>,
    /// The manifests, in the order of the library's plugins.
    pub manifests: Vec<PathBuf>,
    /// The files of tuning, each once.
    pub tuning: Vec<PathBuf>,
    /// The folder that files are named relative to, so that what is made does not depend on where it lies.
    pub root: PathBuf,
    asked: Asked,
}

/// How the kernels of one manifest are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What to compile for, each once; at least one.
    pub targets: Vec<PlannedTarget>,
    /// What was left out of them, because the command line asks for some alone.
    pub left_out: Vec<Target>,
    /// Include folders and options.
    pub settings: Arc<Settings>,
    /// The oldest driver that must be able to load the code, and where the manifest says so.
    pub min_driver: Option<(DriverVersion, Span)>,
    /// Whether PTX of other compilers stands for machine code that there is none of.
    pub ptx_serves: bool,
}

/// What came of planning.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// As much as could be made; without any target where nothing says what to compile for.
    pub plan: Plan,
    /// Every mistake in the manifest's `[compile]` that shows only together with the rest.
    pub errors: Vec<Diagnostic>,
    /// That nothing says what to compile for. It keeps a manifest from being compiled, not from being checked.
    pub no_target: Option<Diagnostic>,
}

/// A target, and the file that asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTarget {
    /// The target.
    pub target: Target,
    /// Its place; none where the command line asks for it.
    pub span: Option<Span>,
}

impl Project {
    /// Finds the manifests. `here` is the current folder.
    ///
    /// Manifests that are named are taken as they are, and a `cubinder.toml` counts only where it is named too: one that happens
    /// to lie around decides nothing. Without manifests the nearest `cubinder.toml` says which there are.
    ///
    /// # Errors
    /// What is no manifest, and every mistake in `cubinder.toml`.
    pub fn open(asked: Asked, here: &Path) -> Result<Project, Vec<Diagnostic>> {
        let mut wrong: Vec<Diagnostic> =
            asked.manifests.iter().filter_map(|path| check_manifest(path).err()).collect();
        wrong.extend(asked.include.iter().filter_map(|folder| check_include(folder).err()));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let config = match &asked.config {
            Some(path) => Some(config::load(path)?),
            None if asked.manifests.is_empty() => {
                Some(config::load(&relative_to(here, &config::find(here)?))?)
            }
            None => None,
        };
        let manifests = match &config {
            Some(config) if asked.manifests.is_empty() => config.manifest_paths()?,
            _ => asked.manifests.clone(),
        };
        let (named, wrong) = config.as_ref().map(Config::tuning_paths).unwrap_or_default();
        if !wrong.is_empty() && !asked.is_measured {
            return Err(wrong);
        }
        let tuning = each_once(asked.tuning.iter().cloned().chain(named));
        let of_manifest = || manifests.first().and_then(|manifest| manifest.parent()).map(Path::to_path_buf);
        let of_config = config.as_ref().map(|config| config.folder.clone());
        let root = of_config.or_else(of_manifest).unwrap_or_default();
        Ok(Project { config, manifests, tuning, root, asked })
    }

    /// The manifests that are named, each with the nearest `cubinder.toml` above it, where there is one: for commands that only look
    /// at a manifest, and so see it as its project compiles it. Manifests of one project stay together. Where `asked` names a
    /// `cubinder.toml` or no manifest, this is [`Project::open`].
    ///
    /// # Errors
    /// As those of [`Project::open`].
    pub fn open_around(asked: Asked, here: &Path) -> Result<Vec<Project>, Vec<Diagnostic>> {
        if asked.config.is_some() || asked.manifests.is_empty() {
            return Project::open(asked, here).map(|project| vec![project]);
        }
        let mut groups: Vec<(Option<PathBuf>, Vec<PathBuf>)> = Vec::new();
        for manifest in &asked.manifests {
            let config = config_above(manifest, here);
            match groups.iter_mut().find(|(known, _)| *known == config) {
                Some((_, manifests)) => manifests.push(manifest.clone()),
                None => groups.push((config, vec![manifest.clone()])),
            }
        }
        let mut projects = Vec::new();
        let mut errors = Vec::new();
        for (config, manifests) in groups {
            match Project::open(Asked { config, manifests, ..asked.clone() }, here) {
                Ok(project) => projects.push(project),
                Err(found) => {
                    errors.extend(found.into_iter().filter(|new| !errors.contains(new)).collect::<Vec<_>>());
                }
            }
        }
        if errors.is_empty() { Ok(projects) } else { Err(errors) }
    }

    /// The files of tuning that can be read, and what is wrong with the others.
    #[must_use]
    pub fn read_tuning(&self) -> (Vec<tuning::File>, Vec<Diagnostic>) {
        let (mut files, mut wrong) = (Vec::new(), Vec::new());
        for path in &self.tuning {
            match tuning::open(path) {
                Ok(file) => files.push(file),
                Err(errors) => wrong.extend(errors),
            }
        }
        if self.asked.is_measured {
            wrong.clear();
        }
        (files, wrong)
    }

    /// Packs what was measured of a plugin ([`tuning::pack`]).
    #[must_use]
    pub fn pack_tuning(&self, files: &[tuning::File], plugin: &mut Plugin) -> Vec<Diagnostic> {
        let mut told = tuning::pack(files, plugin);
        told.retain(|told| !self.asked.is_measured || told.severity != Severity::Error);
        told
    }

    /// Whether the manifests are all that the library is made of. Where some of a project are looked at by themselves, it may have others.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.asked.manifests.is_empty() || self.config.is_none()
    }

    /// How a manifest's kernels are compiled: targets are the command line's, else the manifest's, else the library's, the last
    /// two as far as `code` admits them. Include folders are searched in that order, options follow each other in the opposite
    /// one, so that the command line has the last word.
    ///
    /// # Errors
    /// Every mistake in the manifest's `[compile]` that shows only together with the rest; that nothing says what to compile for.
    pub fn plan(&self, plugin: &Resolved) -> Result<Plan, Vec<Diagnostic>> {
        let mut planning = self.planning(plugin);
        planning.errors.extend(planning.no_target);
        if planning.errors.is_empty() { Ok(planning.plan) } else { Err(planning.errors) }
    }

    /// The same for a manifest that need not be compiled, and may be wrong: as much of a plan as can be made.
    #[must_use]
    pub fn planning(&self, plugin: &Resolved) -> Planning {
        let decl = &plugin.manifest.compile;
        let span = |range: &std::ops::Range<usize>| Span::new(&plugin.source, range.clone());
        let mut errors = Vec::new();
        let configured = self.targets(plugin, &mut errors);
        let (targets, left_out): (Vec<_>, Vec<_>) = configured
            .into_iter()
            .partition(|planned| self.asked.only.is_empty() || self.asked.only.contains(&planned.target));
        let left_out: Vec<Target> = left_out.into_iter().map(|planned| planned.target).collect();
        if targets.is_empty() && !left_out.is_empty() {
            errors.push(nothing_left(plugin, &self.asked.only, &left_out));
        }
        // Where nothing says what to compile for, it is what there is code for.
        let is_open =
            targets.is_empty() && left_out.is_empty() && errors.is_empty() && !decl.targets_are_broken;
        let given = if is_open { foreign::given(&plugin.draft) } else { Vec::new() };
        let targets: Vec<PlannedTarget> = given
            .into_iter()
            .map(|(target, span)| PlannedTarget { target, span: Some(span) })
            .chain(targets)
            .collect();
        let asked: Vec<_> = targets.iter().map(|planned| (planned.target, planned.span.clone())).collect();
        let ptx_serves = self.ptx_serves(plugin);
        errors.extend(foreign::unserved(&plugin.draft, &asked, ptx_serves));
        // What could not be read may have said it.
        let is_silent =
            errors.is_empty() && targets.is_empty() && plugin.is_read && !foreign::lacks_files(&plugin.draft);
        // What is no option or no folder at all was told when it was read.
        let is_option =
            |index: usize| decl.options.get(index).is_some_and(|option| option.value.starts_with('-'));
        let refused = check_options(decl.options.iter().map(|option| option.value.as_str()));
        for (index, refused) in refused.into_iter().filter(|(index, _)| is_option(*index)) {
            let range = decl.options.get(index).map_or(0..0, |option| option.range.clone());
            errors.push(refused.at(span(&range), "leave it out"));
        }
        let own = decl.options.iter().map(|option| option.value.as_str());
        let of_config = self.config.iter().flat_map(|config| &config.options);
        let others = of_config.chain(&self.asked.options).map(String::as_str);
        let are_there = own.clone().chain(others.clone()).next().is_some();
        let (header, of_manifest) = names_of_header(plugin, are_there);
        let of_manifest = |name: &str| of_manifest.contains(name);
        for (index, refused) in check_defined(own, &header, &of_manifest) {
            let range = decl.options.get(index).map_or(0..0, |option| option.range.clone());
            errors.push(refused.at(span(&range), "this option"));
        }
        for (_, refused) in check_defined(others, &header, &of_manifest) {
            errors.push(
                refused
                    .at(plugin.name_span.clone(), "compiled for this plugin")
                    .note("the option is one of `cubinder.toml` or of the command line"),
            );
        }
        errors.extend(decl.min_driver.as_ref().and_then(|driver| version_of_cuda(plugin, driver)));
        let named = decl.include.iter().filter(|text| !text.value.trim().is_empty());
        let folders = named.filter_map(|text| match include_folder(plugin, text) {
            Ok(folder) => Some(folder),
            Err(error) => {
                errors.push(error);
                None
            }
        });
        let mut include = self.asked.include.clone();
        include.extend(folders);
        include.extend(self.config.iter().flat_map(|config| config.include.clone()));
        let mut options: Vec<String> = self.config.iter().flat_map(|config| config.options.clone()).collect();
        options.extend(decl.options.iter().map(|option| option.value.clone()));
        options.extend(self.asked.options.clone());
        let of_config = self.config.as_ref().is_some_and(|config| config.line_information);
        if decl.line_information || of_config || self.asked.line_information {
            with_line_information(&mut options);
        }
        let min_driver = decl.min_driver.as_ref().map(|driver| (driver.value, span(&driver.range)));
        if let Some((driver, place)) = &min_driver {
            errors.extend(foreign::check_driver(&plugin.draft, *driver, place));
        }
        let settings = Arc::new(Settings { include, options });
        let plan = Plan { targets, left_out, settings, min_driver, ptx_serves };
        Planning { plan, errors, no_target: is_silent.then(no_target) }
    }

    /// Holds the targets that the command line chooses against those that there are; `plans` are those of all manifests.
    ///
    /// # Errors
    /// Every one that is not configured.
    pub fn check_only(&self, plans: &[Plan]) -> Result<(), Vec<Diagnostic>> {
        let mut configured: Vec<Target> = Vec::new();
        for plan in plans {
            let all = plan.targets.iter().map(|planned| planned.target).chain(plan.left_out.iter().copied());
            configured.extend(all);
        }
        configured.sort_unstable();
        configured.dedup();
        let unknown = self.asked.only.iter().filter(|target| !configured.contains(target));
        let errors: Vec<Diagnostic> = unknown.map(|target| not_configured(*target, &configured)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Whether PTX is among the kinds of code that a manifest asks for.
    fn ptx_serves(&self, plugin: &Resolved) -> bool {
        let code = &plugin.manifest.compile.code;
        code.is_empty()
            || !self.asked.targets.is_empty()
            || code.iter().any(|kind| kind.value == CodeKind::Ptx)
    }

    fn targets(&self, plugin: &Resolved, errors: &mut Vec<Diagnostic>) -> Vec<PlannedTarget> {
        let located = |targets: &[Located<Target>], source| -> Vec<PlannedTarget> {
            let planned = |target: &Located<Target>| PlannedTarget {
                target: target.value,
                span: Some(Span::new(source, target.range.clone())),
            };
            targets.iter().map(planned).collect()
        };
        let decl = &plugin.manifest.compile;
        let targets = if !self.asked.targets.is_empty() {
            self.asked.targets.iter().map(|target| PlannedTarget { target: *target, span: None }).collect()
        } else if decl.targets_are_broken {
            located(&decl.targets, &plugin.source)
        } else if !decl.targets.is_empty() {
            of_kinds(located(&decl.targets, &plugin.source), plugin, errors)
        } else if let Some(config) = &self.config {
            of_kinds(located(&config.targets, &config.source), plugin, errors)
        } else {
            Vec::new()
        };
        let mut once: Vec<PlannedTarget> = Vec::new();
        for planned in targets {
            if once.iter().all(|known| known.target != planned.target) {
                once.push(planned);
            }
        }
        once
    }
}

/// What looks like a version of CUDA, where one of the driver is meant.
fn version_of_cuda(plugin: &Resolved, driver: &Located<DriverVersion>) -> Option<Diagnostic> {
    let [major, minor, _] = driver.value.0.map(i32::from);
    if major > drivers::newest_release().0 {
        return None;
    }
    let written = plugin.source.text.get(driver.range.clone()).unwrap_or_default();
    let error = Diagnostic::error(format!(
        "`{}` is no release of NVIDIA's driver",
        written.trim_matches(['"', '\''])
    ))
    .code(rules::DRIVER_TOO_OLD)
    .at(Span::new(&plugin.source, driver.range.clone()), "this looks like a version of CUDA")
    .note("`min_driver` is a version of the driver, as `nvidia-smi` shows it: `580.65.06`");
    Some(match drivers::oldest_for_ptx((major, minor)) {
        Some(first) => {
            error.help(format!("the first driver of CUDA {major}.{minor} is `min_driver = \"{first}\"`"))
        }
        None => error.help("name the oldest driver that must load the code"),
    })
}

/// The names of the headers that a plugin's kernels see, and those of them that the manifest declares; none where there are no
/// options that could define them.
fn names_of_header(plugin: &Resolved, are_there: bool) -> (BTreeSet<String>, BTreeSet<String>) {
    let units = if are_there { plugin.draft.units.as_slice() } else { &[] };
    let tables: BTreeSet<String> =
        units.iter().flat_map(|unit| unit.tables.iter().map(|table| table.name.clone())).collect();
    let header = units.iter().flat_map(|unit| codegen::header_names(&codegen::header(unit, &[])));
    let header = header.chain(tables.iter().cloned()).collect();
    let types = units.iter().flat_map(|unit| unit.types.iter().map(|(name, _)| name.clone()));
    let constants = units.iter().flat_map(|unit| unit.constants.iter().map(|(name, _)| name.clone()));
    (header, types.chain(constants).chain(tables).collect())
}

fn listed(targets: &[Target]) -> String {
    targets.iter().map(|target| format!("`{target}`")).collect::<Vec<_>>().join(", ")
}

fn not_configured(target: Target, configured: &[Target]) -> Diagnostic {
    Diagnostic::error(format!("`{target}` is none of the targets that this project is compiled for"))
        .note(format!("they are {}", listed(configured)))
        .help(format!(
            "`--arch` chooses among them; `--target {target}` compiles for it whatever the project says"
        ))
}

fn nothing_left(plugin: &Resolved, only: &[Target], left_out: &[Target]) -> Diagnostic {
    Diagnostic::error(format!(
        "`--arch {}` leaves nothing to compile for",
        only.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    ))
    .at(plugin.name_span.clone(), "of this plugin")
    .note(format!("it is compiled for {}", listed(left_out)))
    .help("name one of these too")
}

/// Asks NVRTC for line information, unless an option does so already: it takes each option once.
fn with_line_information(options: &mut Vec<String>) {
    let asks = |option: &String| {
        option.trim_start_matches('-').trim_end() == "lineinfo"
            || option.trim_start_matches('-').trim_end() == "generate-line-info"
    };
    if !options.iter().any(asks) {
        options.insert(0, "-lineinfo".to_owned());
    }
}

fn no_target() -> Diagnostic {
    Diagnostic::error("nothing says what to compile for").help(
        "name the GPUs: `--target sm_89` for machine code, `--target compute_80` for PTX that newer GPUs compile at load; or \
         write `targets` into the manifest's `[compile]`",
    )
}

/// The targets of the kinds that `code` names; all where it names none.
fn of_kinds(
    targets: Vec<PlannedTarget>,
    plugin: &Resolved,
    errors: &mut Vec<Diagnostic>,
) -> Vec<PlannedTarget> {
    let code = &plugin.manifest.compile.code;
    let is_of = |kind: CodeKind, planned: &PlannedTarget| match kind {
        CodeKind::Cubin => planned.target.kind == TargetKind::Cubin,
        CodeKind::Ptx => planned.target.kind == TargetKind::Ptx,
    };
    let missing: Vec<Diagnostic> = code
        .iter()
        .filter(|kind| targets.iter().all(|planned| !is_of(kind.value, planned)))
        .map(|kind| {
            let (what, example) = match kind.value {
                CodeKind::Cubin => ("machine code", "sm_89"),
                CodeKind::Ptx => ("PTX", "compute_80"),
            };
            let all: Vec<String> = targets.iter().map(|planned| format!("`{}`", planned.target)).collect();
            let error = Diagnostic::error(format!("no target gives {what}"))
                .code(rules::CODE_WITHOUT_TARGET)
                .at(Span::new(&plugin.source, kind.range.clone()), "asked for here")
                .note(format!("the targets are {}", all.join(", ")))
                .help(format!("add a target such as `{example}`, or leave this out"));
            match place_of_all(&targets) {
                Some(place) => error.related(place, "the targets"),
                None => error,
            }
        })
        .collect();
    errors.extend(missing);
    let is_asked = |planned: &PlannedTarget| code.iter().any(|kind| is_of(kind.value, planned));
    targets.into_iter().filter(|planned| code.is_empty() || is_asked(planned)).collect()
}

/// The place of all targets together, where one file has them.
fn place_of_all(targets: &[PlannedTarget]) -> Option<Span> {
    let first = targets.first()?.span.as_ref()?;
    let last = targets.last()?.span.as_ref()?;
    let is_one = first.source.path == last.source.path;
    is_one.then(|| Span::new(&first.source, first.range.start..last.range.end))
}

/// A folder of the manifest's `include`, against the manifest's own. NVRTC says nothing about folders that are not there.
fn include_folder(plugin: &Resolved, text: &Text) -> Result<PathBuf, Diagnostic> {
    let folder = resolve::beside(&plugin.source, &text.value);
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Diagnostic::error(format!("the include folder `{}` is not there", config::shown(&folder).display()))
        .code(rules::WRONG_VALUE)
        .at(Span::new(&plugin.source, text.range.clone()), "this names no folder")
        .note("it is relative to the manifest's folder"))
}

impl Plan {
    /// What to compile for.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        self.targets.iter().map(|planned| planned.target).collect()
    }

    /// A warning for each architecture whose limits are not known, so that launches are not held against them.
    #[must_use]
    pub fn unknown_targets(&self) -> Vec<Diagnostic> {
        let unknown = self.targets.iter().filter(|planned| max_shared_bytes(planned.target.arch).is_none());
        let warning = |planned: &PlannedTarget| {
            let warning =
                Diagnostic::warning(format!("this version of cubinder does not know `{}`", planned.target))
                    .note("its limits are not known, so nothing is held against them; whether NVRTC compiles for it shows when it is compiled");
            match &planned.span {
                Some(span) => warning.at(span.clone(), "asked for here"),
                None => warning,
            }
        };
        unknown.map(warning).collect()
    }

    /// Whether the oldest driver that the manifest names loads what an NVRTC of this release makes.
    ///
    /// # Errors
    /// Where it does not, or where it is not known.
    pub fn check_driver(&self, release: Release) -> Result<(), Diagnostic> {
        let Some((driver, span)) = &self.min_driver else { return Ok(()) };
        let has = |kind: TargetKind| self.targets.iter().any(|planned| planned.target.kind == kind);
        let (cubins, ptx) = (has(TargetKind::Cubin), has(TargetKind::Ptx));
        let (major, minor) = release;
        let needs = |is_there: bool, oldest: Option<DriverVersion>| match oldest {
            _ if !is_there => Load::Loads,
            None => Load::Unknown,
            Some(oldest) if drivers::reaches(*driver, oldest) => Load::Loads,
            Some(oldest) => Load::From(oldest),
        };
        let of_cubins = needs(cubins, drivers::oldest_for_cubins(release));
        let of_ptx = needs(ptx, drivers::oldest_for_ptx(release));
        if of_cubins == Load::Loads && of_ptx == Load::Loads {
            return Ok(());
        }
        let is_unknown = of_cubins == Load::Unknown || of_ptx == Load::Unknown;
        let message = match is_unknown {
            true => format!("it is not known which drivers load what NVRTC {major}.{minor} makes"),
            false => format!("driver {driver} does not load what NVRTC {major}.{minor} makes"),
        };
        let mut error = Diagnostic::error(message)
            .code(rules::DRIVER_TOO_OLD)
            .at(span.clone(), "this driver must be able to");
        if let Load::From(oldest) = of_cubins {
            error = error.note(format!("cubins of CUDA {major} load from driver {oldest} on"));
        }
        if let Load::From(oldest) = of_ptx {
            error = error.note(format!("PTX of CUDA {major}.{minor} loads from driver {oldest} on"));
        }
        if is_unknown {
            error = error.note("this version of cubinder was made before that release");
        }
        let mut ways: Vec<String> = Vec::new();
        if of_cubins == Load::Loads && cubins {
            ways.push("leave the PTX out: `code = [\"cubin\"]`".to_owned());
        }
        if let Some((major, minor)) = drivers::newest_for(*driver, cubins, ptx) {
            ways.push(format!(
                "use NVRTC {major}.{minor} or an older one: `--nvrtc <libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`"
            ));
        }
        if !is_unknown {
            ways.push("raise `min_driver`".to_owned());
        }
        Err(error.help(ways.join("; or ")))
    }
}

/// What a driver does with code of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// There is none, or it loads it.
    Loads,
    /// It is too old: this one is the first.
    From(DriverVersion),
    /// The table does not say.
    Unknown,
}

/// The nearest `cubinder.toml` above a manifest, seen from the folder `here`.
#[must_use]
pub fn config_above(manifest: &Path, here: &Path) -> Option<PathBuf> {
    // Files are named relative to its folder, so it is named as the manifest is.
    if manifest.is_absolute() {
        return config::find(manifest.parent()?).ok();
    }
    // What is not there is told by who reads the manifest.
    let found = config::find(&here.join(manifest).parent()?.canonicalize().ok()?).ok()?;
    let here = here.canonicalize().ok()?;
    Some(match found.strip_prefix(&here) {
        Ok(below) => below.to_owned(),
        Err(_) => relative_to(&here, &found),
    })
}

/// The files, each where it is named first, however it is named.
fn each_once(files: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    // What is not there is told by who reads it.
    files.filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| config::shown(path)))).collect()
}

/// NVRTC says nothing about folders that are not there.
fn check_include(folder: &Path) -> Result<(), Diagnostic> {
    if folder.is_dir() {
        return Ok(());
    }
    let name = config::shown(folder);
    Err(Diagnostic::error(format!("the include folder `{}` is not there", name.display()))
        .note("`--include` names it, relative to the current folder"))
}

/// What is plainly no manifest is said to be so before it is read as one.
fn check_manifest(path: &Path) -> Result<(), Diagnostic> {
    let name = config::shown(path);
    let name = name.display();
    if let Err(error) = std::fs::metadata(path) {
        let error = Diagnostic::error(format!("cannot read `{name}`: {error}"));
        return Err(match name.to_string().parse::<Target>() {
            Ok(target) => error
                .help(format!("targets are separated by commas, without spaces: `--target sm_89,{target}`")),
            Err(_) => error,
        });
    }
    if path.is_dir() {
        return Err(Diagnostic::error(format!("`{name}` is a folder, expected a manifest"))
            .help("name the manifest; without arguments `cubinder.toml` says which there are"));
    }
    if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
        return Err(Diagnostic::error(format!("`{name}` is CUDA source, expected a manifest"))
            .help("name the TOML file that has this source in `[[launches]]`"));
    }
    // What cannot be read now is told by who reads it.
    config::open(path).map_or(Ok(()), |source| kind::expect(Kind::Manifest, path, &source.text))
}

/// The path of a file above the current folder, as a person would type it.
fn relative_to(here: &Path, file: &Path) -> PathBuf {
    let above = here.ancestors().position(|folder| Some(folder) == file.parent());
    let (Some(above), Some(name)) = (above, file.file_name()) else { return file.to_owned() };
    let mut path: PathBuf = std::iter::repeat_n("..", above).collect();
    path.push(name);
    path
}

#[cfg(test)]
mod tests;
