//! `cubinder compile`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cubinder_compiler::compile::{CompiledBundle, Outcome, Request, compile};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_import::foreign::FromPtx;
use cubinder_launch::native::is_native;
use cubinder_manifest::config::Config;
use cubinder_manifest::library_name::check_name;
use cubinder_manifest::manifest::Route;
use cubinder_model::{ArchSuffix, Bundle, Target, TargetKind};
use cubinder_node::tuning::OutdatedMeasurement;
use cubinder_nvrtc::installation::Installation;
use cubinder_source::diagnostic::{Diagnostic, Severity};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::nvrtc;
use super::obligations::{self, Tally, count_of, failed_json};
use super::output::{MessageFormat, Readers, check_folder, current_folder, environment_path, print, show};

/// Compile plugin manifests and their CUDA kernels into one TensorRT plugin library, lib<name>.so.
///
/// Without manifests everything comes from the nearest cubinder.toml, in the current folder or above it. With manifests, targets, include folders and
/// options come from the nearest cubinder.toml above them, as in `cubinder check` and `cubinder eval`; its `name`, `output` and `tuning` are for the
/// project's library only: this one is named after the manifest and written to the current folder. --config names another cubinder.toml, which
/// applies with all its keys.
///
/// No CUDA toolkit, C compiler, linker or GPU is needed: kernels are compiled with NVRTC, and the library is made from the prebuilt libcubinder.so.
/// NVRTC is what --nvrtc or CUBINDER_NVRTC names, else that of the CUDA toolkit that CUDA_HOME names, else that of the Python environment that
/// cubinder is installed in (the extra [cuda13] of its wheel), else the package that `cargo xtask setup` fetched into the cache (CUBINDER_CACHE, or
/// cubinder in the user's cache folder); what is named and not there is an error. Kernels with 16-bit or 8-bit floats, and those that include CUDA's
/// headers, need these too: CUDA_HOME's, those beside the NVRTC that is named, or those of the Python environment or the cache. `cubinder paths` says
/// what is found, docs/install.md says more. Compiled code is cached by its content. The same inputs give the same bytes.
#[derive(Args)]
pub(super) struct Arguments {
    /// Manifests to compile; without any, those that cubinder.toml names
    manifests: Vec<PathBuf>,
    /// The cubinder.toml to use
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The library's name: lib<NAME>.so [default: the name in cubinder.toml, or the manifest's own name; several manifests need
    /// one]
    #[arg(long)]
    name: Option<String>,
    /// What to compile for: sm_89 for machine code, compute_80 for PTX; repeat it or separate with commas. Replaces the targets of
    /// manifests (`targets`, `code`) and of cubinder.toml
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',')]
    targets: Vec<Target>,
    /// Compile only for these of the targets that manifests and cubinder.toml name, for a quick build or a small deployment; without
    /// such targets, use --target
    #[arg(long = "arch", value_name = "TARGET", value_delimiter = ',', conflicts_with = "targets")]
    archs: Vec<Target>,
    /// The folder for the libraries
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Make engines self-sufficient: write lib<name>-code.so as well, to be serialized into the plan
    #[arg(long)]
    embed: bool,
    /// Who launches the kernels, whatever manifests say: a plugin library, or TensorRT itself (experimental, full TensorRT alone)
    #[arg(long, value_name = "ROUTE", value_parser = route)]
    route: Option<Route>,
    /// Write a rule for Make and Ninja that names every file that the library is made from
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// A folder for #include, before those of manifests and cubinder.toml
    #[arg(long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// An option for NVRTC, after those of cubinder.toml and manifests
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// A file of measured times of variants on a GPU, before those that cubinder.toml names; repeat it for more GPUs
    #[arg(long, value_name = "FILE")]
    tuning: Vec<PathBuf>,
    /// Put line information into the code, for profilers, whatever manifests and cubinder.toml say
    #[arg(long, value_name = "KIND", value_parser = ["line"])]
    debug: Option<String>,
    /// The prebuilt libcubinder.so [default: CUBINDER_RUNTIME_LIBRARY, beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    runtime_library: Option<PathBuf>,
    /// NVRTC's library, or the folder that holds it [default: CUBINDER_NVRTC; where that is not set, CUDA_HOME; where
    /// neither is, NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// Compile everything again, and keep nothing
    #[arg(long)]
    no_cache: bool,
    /// How many compiles run side by side [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<NonZeroUsize>,
    /// List everything that must hold for every launch, with its place and whether it is proved
    #[arg(long, short = 'v')]
    proofs: bool,
    #[command(flatten)]
    readers: Readers,
    /// Say nothing where nothing is wrong
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let format = arguments.readers.format();
    match request(arguments).and_then(|request| perform(arguments, &request)) {
        Ok(mut outcome) => {
            show(&mut outcome.compiled.warnings, format);
            if format == MessageFormat::Json {
                print(&(summary_json(&outcome, started.elapsed()).to_string() + "\n"));
            } else {
                if arguments.proofs {
                    print(&obligations::list(&outcome.compiled.obligations));
                }
                if !arguments.quiet {
                    print(&summary(&outcome, started.elapsed()));
                }
            }
            ExitCode::SUCCESS
        }
        Err(mut diagnostics) => {
            show(&mut diagnostics, format);
            if format == MessageFormat::Json {
                let mut result = failed_json(&diagnostics);
                result["wall_ms"] = (started.elapsed().as_secs_f64() * 1e3).into();
                print(&(result.to_string() + "\n"));
            }
            ExitCode::FAILURE
        }
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse::<usize>().map_err(|_| "expected a number".to_owned())?;
    NonZeroUsize::new(number).ok_or_else(|| {
        "nothing would be compiled; without the option there is one for each processor".to_owned()
    })
}

pub(super) fn route(text: &str) -> Result<Route, String> {
    Route::from_name(text).ok_or_else(|| "expected `plugin` or `native`".to_owned())
}

fn perform(arguments: &Arguments, request: &Request) -> Result<Outcome, Vec<Diagnostic>> {
    let threads = arguments.jobs.map_or(0, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool =
        pool.map_err(|error| {
            let error = Diagnostic::error(format!("cannot start threads: {error}"));
            vec![error.help(
                "ask for fewer with `--jobs`, or let the user or the container have more (`ulimit -u`)",
            )]
        })?;
    let bar = progress_bar(arguments.quiet || arguments.readers.format() == MessageFormat::Json);
    pool.install(|| compile(request, &bar))
}

fn request(arguments: &Arguments) -> Result<Request, Vec<Diagnostic>> {
    let here = current_folder()?;
    let options = ProjectOptions {
        manifests: arguments.manifests.clone(),
        config: arguments.config.clone(),
        targets: arguments.targets.clone(),
        only: arguments.archs.clone(),
        include: arguments.include.clone(),
        options: arguments.options.clone(),
        line_information: arguments.debug.is_some(),
        tuning: arguments.tuning.clone(),
        route: arguments.route,
        is_measured: false,
    };
    let project = one_project(Project::open_around(options, &here)?)?;
    // A library of selected manifests must not replace the project's.
    let is_of_project = arguments.config.is_some() || arguments.manifests.is_empty();
    let project = if is_of_project { project } else { project.without_project_tuning() };
    let config = project.config.as_ref().filter(|_| is_of_project);
    arguments.output.as_deref().map_or(Ok(()), check_folder)?;
    Ok(Request {
        name: name(arguments, config)?,
        output: arguments
            .output
            .clone()
            .unwrap_or_else(|| config.map_or_else(|| PathBuf::from("."), |config| config.output.clone())),
        embed: arguments.embed,
        depfile: arguments.depfile.clone(),
        runtime_library: runtime_library(arguments)?,
        overrides: nvrtc::overrides(arguments.nvrtc.clone()),
        use_cache: !arguments.no_cache,
        project,
    })
}

/// A library has one list of targets, options and include folders.
fn one_project(mut projects: Vec<Project>) -> Result<Project, Diagnostic> {
    match (projects.pop(), projects.as_slice()) {
        (Some(only), []) => Ok(only),
        (last, others) => {
            let error = Diagnostic::error("the manifests of one library must belong to the same project");
            let notes = others.iter().chain(&last).map(|project| {
                let manifest = project.manifests.first().map(|path| path.display().to_string());
                let manifest = manifest.unwrap_or_default();
                match &project.config {
                    Some(config) => format!("`{manifest}` belongs to `{}`", config.source.path.display()),
                    None => format!("no `cubinder.toml` lies above `{manifest}`"),
                }
            });
            let error = notes.fold(error, Diagnostic::note);
            Err(error
                .help("name one for all manifests with `--config FILE`, or compile each project separately"))
        }
    }
}

fn name(arguments: &Arguments, config: Option<&Config>) -> Result<String, Diagnostic> {
    let help = "give it one with `--name NAME`";
    if let Some(name) = &arguments.name {
        check_name(name)?;
        return Ok(name.clone());
    }
    if let Some(config) = config {
        return Ok(config.library.clone());
    }
    let unnamed = || Diagnostic::error("the library has no name").help(help);
    let [manifest] = arguments.manifests.as_slice() else {
        return Err(
            unnamed().note("several manifests make one library, so it cannot be named after its manifest")
        );
    };
    let stem = manifest.file_stem().unwrap_or_default();
    let Some(name) = stem.to_str() else {
        let manifest = manifest.display();
        return Err(unnamed().note(format!(
            "it would be called after its manifest, and the name of `{manifest}` is not UTF-8"
        )));
    };
    let named_after = format!("the library is called after its manifest, `{}`", manifest.display());
    check_name(name).map_err(|error| error.note(named_after).help(help))?;
    Ok(name.to_owned())
}

fn runtime_library(arguments: &Arguments) -> Result<PathBuf, Diagnostic> {
    match arguments.runtime_library.clone().or_else(|| environment_path("CUBINDER_RUNTIME_LIBRARY")) {
        Some(path) => Ok(path),
        None => Installation::of_this_program().runtime_library(),
    }
}

fn summary(outcome: &Outcome, elapsed: Duration) -> String {
    let CompiledBundle { bundle, statistics, obligations, from_ptx, measured_otherwise, .. } =
        &outcome.compiled;
    let native = native_plugins(bundle);
    let mut text = format!(
        "{}, {} in {}",
        counted(bundle.plugins.len(), "plugin"),
        counted(bundle.code.len(), "code object"),
        milliseconds(elapsed)
    );
    if statistics.nvrtc_calls == 0 && statistics.cache_hits == 0 {
        text.push_str(" (all from files, NVRTC not called)\n");
    } else if statistics.nvrtc_calls == 0 {
        text.push_str(" (all from the cache, NVRTC not called)\n");
    } else {
        // Finding parameter names needs another compile per kernel.
        text.push_str(&format!(
            " ({} with those for parameters: {} of {} in all, {} from the cache)\n",
            counted(statistics.nvrtc_calls + statistics.cache_hits, "compile"),
            counted(statistics.nvrtc_calls, "NVRTC call"),
            milliseconds(statistics.nvrtc_time),
            statistics.cache_hits
        ));
    }
    text.push_str(&format!("{}\n", Tally::count(obligations)));
    if native > 0 {
        let which = match native {
            all if all == bundle.plugins.len() => "the kernels".to_owned(),
            some => format!("the kernels of {}", counted(some, "plugin")),
        };
        text.push_str(&format!(
            "note: TensorRT launches {which} itself (experimental, full TensorRT alone): what is not proved for the shapes of an engine is told when it is built, and nobody checks \
             it when the engine runs (docs/how-it-works.md)\n"
        ));
    }
    for target in native_alone(bundle) {
        let which = match target.arch.suffix {
            ArchSuffix::Family => "the family of GPUs",
            _ => "GPUs",
        };
        let arch = target.arch;
        text.push_str(&format!(
            "note: PTX for sm_{arch} runs on {which} of compute capability {}.{} alone, and so do engines with it\n",
            arch.major, arch.minor
        ));
    }
    for FromPtx { code, target, ptx } in from_ptx {
        text.push_str(&format!(
            "note: `{code}` has no machine code for {target}: the driver compiles its PTX for {ptx} when an engine is loaded\n"
        ));
    }
    for OutdatedMeasurement { plugin, device, points } in measured_otherwise {
        text.push_str(&format!(
            "note: `{plugin}` was measured on {device} with other code ({}): `cubinder tune` measures again\n",
            counted(*points, "node")
        ));
    }
    let is_native = native > 0 && native == bundle.plugins.len();
    for library in &outcome.libraries {
        text.push_str(&format!(
            "wrote {} ({} bytes: {})\n",
            library.path.display(),
            library.bytes,
            library.mode.title(is_native)
        ));
    }
    text
}

fn native_plugins(bundle: &Bundle) -> usize {
    bundle.plugins.iter().filter(|plugin| is_native(plugin)).count()
}

/// Returns native-route targets of one chip or family (`a`, `f`).
fn native_alone(bundle: &Bundle) -> BTreeSet<Target> {
    let targets = bundle.code.iter().map(|code| code.target);
    let is_alone =
        |target: &Target| target.kind == TargetKind::Native && target.arch.suffix != ArchSuffix::None;
    targets.filter(is_alone).collect()
}

fn summary_json(outcome: &Outcome, elapsed: Duration) -> Value {
    let compiled = &outcome.compiled;
    let plugins = compiled.bundle.plugins.len();
    let native = native_plugins(&compiled.bundle);
    let is_native = native > 0 && native == plugins;
    let libraries = outcome.libraries.iter().map(|library| {
        json!({"path": ReportedPath::from(&library.path), "bytes": library.bytes, "mode": library.mode.title(is_native)})
    });
    let from_ptx = compiled.from_ptx.iter().map(|FromPtx { code, target, ptx }| {
        json!({"code": code, "target": target.to_string(), "ptx": ptx.to_string()})
    });
    let mut result = json!({
        "result": "compiled",
        "errors": 0,
        "warnings": count_of(&compiled.warnings, Severity::Warning),
        "libraries": libraries.collect::<Vec<_>>(),
        "bundle": outcome.digest.to_string(),
        "bundle_bytes": outcome.bundle_bytes,
        "plugins": plugins,
        "native": native,
        "code_objects": compiled.bundle.code.len(),
        "from_ptx": from_ptx.collect::<Vec<_>>(),
        "measured_otherwise": compiled.measured_otherwise,
        "nvrtc_calls": compiled.statistics.nvrtc_calls,
        "nvrtc_ms": compiled.statistics.nvrtc_time.as_secs_f64() * 1e3,
        "cache_hits": compiled.statistics.cache_hits,
        "wall_ms": elapsed.as_secs_f64() * 1e3,
    });
    obligations::add_json(&mut result, &compiled.obligations);
    result
}

fn milliseconds(time: Duration) -> String {
    if time.as_secs() >= 10 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} ms", time.as_millis())
    }
}

fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    // indicatif hides the bar if stderr is not a terminal.
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
