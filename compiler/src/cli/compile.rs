use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cubinder_compiler::compile::{CompiledBundle, CompiledLibraries, Request, compile};
use cubinder_compiler::project::ProjectOptions;
use cubinder_import::foreign::FromPtx;
use cubinder_launch::native::is_native;
use cubinder_manifest::config::{Config, Endpoint};
use cubinder_manifest::library_name::check_name;
use cubinder_model::{ArchSuffix, Bundle, Target, TargetKind};
use cubinder_node::tuning::OutdatedMeasurement;
use cubinder_nvrtc::installation::Installation;
use cubinder_nvrtc::nvrtc::shared::Activity;
use cubinder_source::diagnostic::{Diagnostic, Severity};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::counted;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::obligations::{self, Tally, count_of, failed_json};
use super::output::{MessageFormat, Readers, check_file, check_folder, environment_path, print, show};
use super::project_arguments::{self, ProjectArguments, endpoint, remote_cache};

/// Compile plugin manifests and their CUDA kernels into one TensorRT plugin library, lib<name>.so.
///
/// Without MANIFESTS, compiles the project of the nearest cubinder.toml, in the current folder or above. With MANIFESTS, targets, include folders and
/// options come from the nearest cubinder.toml above them, as in `cubinder check` and `cubinder eval`, but not `name` and `output`: the library is
/// named after the manifest and written to the current folder. With --config, all keys of that cubinder.toml apply.
///
/// Needs no CUDA toolkit, C compiler, linker or GPU: NVRTC compiles the kernels, and the library is a copy of the prebuilt libcubinder.so with the
/// compiled code appended. NVRTC is searched in this order: --nvrtc or CUBINDER_NVRTC; the CUDA toolkit in CUDA_HOME; the Python environment that
/// contains cubinder (extra [cuda13] of its wheel); the package that `cargo xtask setup` fetched into the cache (CUBINDER_CACHE, or cubinder in the
/// user's cache folder). It is an error if a specified path does not exist. Kernels with 16-bit or 8-bit floats, or that include CUDA headers, also
/// need these headers: from CUDA_HOME, beside the specified NVRTC, or from the Python environment or the cache. `cubinder paths` shows what is found;
/// see docs/install.md. Compiled code is cached by content. Equal inputs produce equal bytes.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Library name: lib<NAME>.so [default: the name in cubinder.toml, or the manifest's name; required with several manifests]
    #[arg(long, conflicts_with = "output")]
    name: Option<String>,
    /// Library to write [default: lib<name>.so in --out-dir]
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["out_dir", "embed"])]
    output: Option<PathBuf>,
    /// Folder for the libraries [default: `output` of cubinder.toml, or the current folder]
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Also write lib<name>-code.so, which TensorRT serializes into the plan: engines then need no other file
    #[arg(long)]
    embed: bool,
    /// Write a depfile for Make and Ninja with all input files of the library
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// Tuning file with the variants' times on a GPU, preferred over those in cubinder.toml; repeat for more GPUs
    #[arg(long, value_name = "FILE")]
    tuning: Vec<PathBuf>,
    /// Prebuilt libcubinder.so [default: CUBINDER_RUNTIME_LIBRARY, beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    runtime_library: Option<PathBuf>,
    /// Neither read nor write the cache; also without the shared cache
    #[arg(long)]
    no_cache: bool,
    /// Shared cache, a server of the Remote Execution API: grpcs://host:port, or grpc:// without encryption [default: CUBINDER_REMOTE_CACHE, else `[remote]` of cubinder.toml]
    #[arg(long, value_name = "URL", conflicts_with = "no_cache")]
    remote_cache: Option<String>,
    /// Server whose workers compile what no cache has, with --jobs compiles at a time [default: `executor` of cubinder.toml]
    #[arg(long, value_name = "URL", conflicts_with = "no_cache")]
    remote_executor: Option<String>,
    /// Fail, instead of compiling here, if neither caches nor workers return a result
    #[arg(long, conflicts_with = "no_cache")]
    remote_only: bool,
    /// Also store results in the shared cache, as `mode = "read-write"` in cubinder.toml
    #[arg(long, conflicts_with = "no_cache")]
    remote_upload: bool,
    /// Number of parallel compiles [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    jobs: Option<NonZeroUsize>,
    /// Also list each claim about launches with its location and whether it is proved
    #[arg(long, short)]
    verbose: bool,
    /// Fail, and write nothing, if there are warnings
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    readers: Readers,
    /// Print only warnings and errors
    #[arg(long, short, conflicts_with = "verbose")]
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
                if arguments.verbose {
                    print(&obligations::list(&outcome.compiled.obligations));
                    print(&sharing(&outcome.compiled));
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
    NonZeroUsize::new(number)
        .ok_or_else(|| "expected at least 1; omit the option to use one per processor".to_owned())
}

fn perform(arguments: &Arguments, request: &Request) -> Result<CompiledLibraries, Vec<Diagnostic>> {
    let threads = arguments.jobs.map_or(0, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| {
        let error = Diagnostic::error(format!("cannot start threads: {error}"));
        vec![error.help("reduce `--jobs`, or raise the limit of the user or the container (`ulimit -u`)")]
    })?;
    let bar = progress_bar(arguments.quiet || arguments.readers.format() == MessageFormat::Json);
    pool.install(|| compile(request, &bar))
}

fn request(arguments: &Arguments) -> Result<Request, Vec<Diagnostic>> {
    let overrides = arguments.project.overrides();
    let options = ProjectOptions {
        tuning: arguments.tuning.clone(),
        remote_cache: remote_cache(arguments.remote_cache.as_deref())?,
        remote_executor: remote_executor(arguments)?,
        remote_only: arguments.remote_only,
        remote_upload: arguments.remote_upload,
        ..arguments.project.options(&overrides)?
    };
    let project = project_arguments::open(options)?;
    let needs_server =
        [("--remote-only", arguments.remote_only), ("--remote-upload", arguments.remote_upload)];
    if let Some((option, _)) = needs_server.iter().find(|(_, is_given)| *is_given)
        && project.remote()?.is_none()
    {
        let error = Diagnostic::error(format!("`{option}` needs a server"));
        let help =
            "specify `--remote-cache URL` or `--remote-executor URL`, or add `[remote]` to `cubinder.toml`";
        return Err(error.help(help).into());
    }
    // A library of selected manifests must not replace the project's.
    let is_of_project = arguments.project.config.is_some() || arguments.project.manifests.is_empty();
    let config = project.config.as_ref().filter(|_| is_of_project);
    Ok(Request {
        library: library(arguments, config)?,
        embed: arguments.embed,
        depfile: arguments.depfile.clone(),
        runtime_library: runtime_library(arguments)?,
        overrides,
        use_cache: !arguments.no_cache,
        deny_warnings: arguments.deny_warnings,
        project,
    })
}

fn remote_executor(arguments: &Arguments) -> Result<Option<Endpoint>, Diagnostic> {
    arguments.remote_executor.as_ref().map(|url| endpoint("--remote-executor", url)).transpose()
}

fn library(arguments: &Arguments, config: Option<&Config>) -> Result<PathBuf, Diagnostic> {
    if let Some(file) = &arguments.output {
        check_file(file)?;
        if file.file_name().is_some_and(|name| name == "libcubinder.so") {
            check_name("cubinder")?;
        }
        return Ok(file.clone());
    }
    arguments.out_dir.as_deref().map_or(Ok(()), check_folder)?;
    let folder = arguments.out_dir.as_deref().or(config.map(|config| config.output.as_path()));
    Ok(folder.unwrap_or(Path::new(".")).join(format!("lib{}.so", name(arguments, config)?)))
}

fn name(arguments: &Arguments, config: Option<&Config>) -> Result<String, Diagnostic> {
    let help = "specify `--name NAME` or `--output FILE`";
    if let Some(name) = &arguments.name {
        check_name(name)?;
        return Ok(name.clone());
    }
    if let Some(config) = config {
        return Ok(config.library.clone());
    }
    let unnamed = || Diagnostic::error("the library has no name").help(help);
    let [manifest] = arguments.project.manifests.as_slice() else {
        return Err(unnamed().note("a library of several manifests cannot be named after a manifest"));
    };
    let stem = manifest.file_stem().unwrap_or_default();
    let Some(name) = stem.to_str() else {
        let manifest = manifest.display();
        return Err(unnamed()
            .note(format!("the default is the manifest's name, but the name of `{manifest}` is not UTF-8")));
    };
    let named_after = format!("the library is named after its manifest, `{}`", manifest.display());
    check_name(name).map_err(|error| error.note(named_after).help(help))?;
    Ok(name.to_owned())
}

fn runtime_library(arguments: &Arguments) -> Result<PathBuf, Diagnostic> {
    match arguments.runtime_library.clone().or_else(|| environment_path("CUBINDER_RUNTIME_LIBRARY")) {
        Some(path) => Ok(path),
        None => Installation::of_this_program().runtime_library(),
    }
}

fn summary(outcome: &CompiledLibraries, elapsed: Duration) -> String {
    let CompiledBundle { bundle, statistics, obligations, from_ptx, measured_otherwise, .. } =
        &outcome.compiled;
    let native = native_plugins(bundle);
    let mut text = format!(
        "compiled {}, {} in {}",
        counted(bundle.plugins.len(), "plugin"),
        counted(bundle.code.len(), "code object"),
        milliseconds(elapsed)
    );
    let counts =
        [(statistics.shared_hits, "from the shared cache"), (statistics.executed, "by remote workers")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let shared: String = counts.map(|(count, origin)| format!(", {count} {origin}")).collect();
    let results = statistics.cache_hits + statistics.shared_hits + statistics.executed;
    if statistics.nvrtc_calls == 0 && results == 0 {
        text.push_str(" (all precompiled, no NVRTC calls)\n");
    } else if statistics.nvrtc_calls == 0 {
        let cached = if statistics.executed == 0 { "all cached" } else { "nothing compiled here" };
        text.push_str(&format!(" ({cached}{shared}, no NVRTC calls)\n"));
    } else {
        // Finding parameter names needs another compile per kernel.
        text.push_str(&format!(
            " ({}, {} in total, including those for parameters; {} cached{shared})\n",
            counted(statistics.nvrtc_calls, "NVRTC call"),
            milliseconds(statistics.nvrtc_time),
            statistics.cache_hits
        ));
    }
    text.push_str(&format!("{}\n", Tally::count(obligations)));
    if native > 0 {
        let which = match native {
            all if all == bundle.plugins.len() => "all kernels".to_owned(),
            some => format!("the kernels of {}", counted(some, "plugin")),
        };
        text.push_str(&format!(
            "note: TensorRT launches {which} (experimental, full TensorRT only): unproved claims are reported when an engine is built, and not checked when \
             it runs (docs/how-it-works.md)\n"
        ));
    }
    for target in native_alone(bundle) {
        let which = match target.arch.suffix {
            ArchSuffix::Family => "the GPU family",
            _ => "GPUs",
        };
        let arch = target.arch;
        text.push_str(&format!(
            "note: PTX for sm_{arch}, and engines that contain it, run only on {which} of compute capability {}.{}\n",
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
            "note: the times of `{plugin}` on {device} are of other code ({}): measure again with `cubinder tune`\n",
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

fn sharing(compiled: &CompiledBundle) -> String {
    let Activity { by_worker, cached, .. } = &compiled.workers;
    let workers = by_worker.iter().map(|(name, count)| match name.as_str() {
        "" => ("unnamed worker".to_owned(), *count),
        name => (format!("worker `{name}`"), *count),
    });
    let executed = workers.chain((*cached > 0).then(|| ("the executor's cache".to_owned(), *cached)));
    let executed = executed.map(|(name, count)| format!("{name}: {}\n", counted(count, "action")));
    let unshared = compiled.unshared.iter().map(|(reason, count)| {
        format!("not in the shared cache: {}: {reason}\n", counted(*count, "compile"))
    });
    executed.chain(unshared).collect()
}

fn native_plugins(bundle: &Bundle) -> usize {
    bundle.plugins.iter().filter(|plugin| is_native(plugin)).count()
}

/// Returns the native-route targets of one chip or family (`a`, `f`).
fn native_alone(bundle: &Bundle) -> BTreeSet<Target> {
    let targets = bundle.code.iter().map(|code| code.target);
    let is_alone =
        |target: &Target| target.kind == TargetKind::Native && target.arch.suffix != ArchSuffix::None;
    targets.filter(is_alone).collect()
}

fn summary_json(outcome: &CompiledLibraries, elapsed: Duration) -> Value {
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
        "shared_hits": compiled.statistics.shared_hits,
        "executed": compiled.statistics.executed,
        "workers": compiled.workers.by_worker,
        "unshared": compiled.unshared.values().sum::<u64>(),
        "wall_ms": elapsed.as_secs_f64() * 1e3,
    });
    obligations::add_json(&mut result, &compiled.obligations);
    result
}

pub(super) fn milliseconds(time: Duration) -> String {
    if time.as_secs() >= 10 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} ms", time.as_millis())
    }
}

pub(super) fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
