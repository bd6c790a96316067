//! `cubinder compile`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cubinder_bundle::Target;
use cubinder_compiler::compile::{Outcome, Progress, Request, compile};
use cubinder_compiler::config::{self, Config};
use cubinder_compiler::diagnostic::Diagnostic;
use cubinder_compiler::nvrtc::Settings;
use cubinder_compiler::toolkit::Overrides;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::output::{MessageFormat, print, show};

pub(super) const LONG_ABOUT: &str = "\
Compile plugin manifests and their CUDA kernels into one TensorRT plugin library, lib<name>.so.

Without manifests everything is taken from cubinder.toml, which is looked for in the current folder and the folders above it. With \
manifests nothing is taken from it, unless --config names it: --target says what for, and the library is called after the manifest and \
written to the current folder.

No CUDA toolkit, C compiler, linker or GPU is needed: kernels are compiled with NVRTC, and the library is made from the prebuilt \
libcubinder.so. Compiled code is cached by its content. The same inputs give the same bytes.";

#[derive(Args)]
pub(super) struct Arguments {
    /// Manifests to compile; without any, those that cubinder.toml names
    manifests: Vec<PathBuf>,
    /// The cubinder.toml to use
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The library's name: lib<NAME>.so
    #[arg(long)]
    name: Option<String>,
    /// What to compile for: sm_89 for machine code, compute_80 for PTX; repeat it or separate with commas
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',')]
    targets: Vec<Target>,
    /// The folder for the libraries
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Make engines self-sufficient: write lib<name>-code.so as well, to be serialized into the plan
    #[arg(long)]
    embed: bool,
    /// A folder for #include, before those of cubinder.toml
    #[arg(long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// An option for NVRTC, after those of cubinder.toml
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// The prebuilt libcubinder.so [default: CUBINDER_RUNTIME_LIBRARY, beside this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    runtime_library: Option<PathBuf>,
    /// NVRTC's library, or the folder that holds it [default: CUBINDER_NVRTC, CUDA_HOME, then the cache]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
    /// Compile everything again, and keep nothing
    #[arg(long)]
    no_cache: bool,
    /// How many compiles run side by side [default: one for each processor]
    #[arg(long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Who reads the messages
    #[arg(long, value_enum, default_value = "human")]
    message_format: MessageFormat,
    /// Say nothing where nothing is wrong
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let format = arguments.message_format;
    match request(arguments).and_then(|request| perform(arguments, &request)) {
        Ok(mut outcome) => {
            show(&mut outcome.warnings, format);
            if format == MessageFormat::Json {
                print(&(summary_json(&outcome, started.elapsed()).to_string() + "\n"));
            } else if !arguments.quiet {
                print(&summary(&outcome, started.elapsed()));
            }
            ExitCode::SUCCESS
        }
        Err(mut diagnostics) => {
            show(&mut diagnostics, format);
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: &Arguments, request: &Request) -> Result<Outcome, Vec<Diagnostic>> {
    let threads = arguments.jobs.map_or(0, std::num::NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| vec![Diagnostic::error(format!("cannot start threads: {error}"))])?;
    let bar = Bar::new(arguments.quiet || arguments.message_format == MessageFormat::Json);
    pool.install(|| compile(request, &bar))
}

fn request(arguments: &Arguments) -> Result<Request, Vec<Diagnostic>> {
    check_manifests(&arguments.manifests)?;
    let config = find_config(arguments)?;
    let manifests = match &config {
        Some(config) if arguments.manifests.is_empty() => config.manifest_paths()?,
        _ => arguments.manifests.clone(),
    };
    let of_config = |value: fn(&Config) -> Vec<String>| config.as_ref().map(value).unwrap_or_default();
    let mut include = arguments.include.clone();
    include.extend(config.iter().flat_map(|config| config.include.clone()));
    let mut options = of_config(|config| config.options.clone());
    options.extend(arguments.options.clone());
    let one = |error: Diagnostic| vec![error];
    Ok(Request {
        name: name(arguments, config.as_ref()).map_err(one)?,
        targets: targets(arguments, config.as_ref()).map_err(one)?,
        settings: Settings { include, options },
        root: root(config.as_ref(), &manifests),
        output: arguments.output.clone().unwrap_or_else(|| {
            config.as_ref().map_or_else(|| PathBuf::from("."), |config| config.output.clone())
        }),
        embed: arguments.embed,
        runtime_library: runtime_library(arguments).map_err(one)?,
        overrides: Overrides::from_env(arguments.nvrtc.clone()),
        use_cache: !arguments.no_cache,
        manifests,
    })
}

/// What is plainly no manifest is said to be so before it is read as one.
fn check_manifests(paths: &[PathBuf]) -> Result<(), Vec<Diagnostic>> {
    let wrong = |path: &PathBuf| {
        let shown = path.display();
        if let Err(error) = std::fs::metadata(path) {
            return Some(Diagnostic::error(format!("cannot read `{shown}`: {error}")));
        }
        if path.is_dir() {
            let error = Diagnostic::error(format!("`{shown}` is a folder, expected a manifest"));
            return Some(
                error.help("name the manifest; without arguments `cubinder.toml` says which there are"),
            );
        }
        let is_code = path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh");
        is_code.then(|| {
            Diagnostic::error(format!("`{shown}` is CUDA source, expected a manifest"))
                .help("name the TOML file that has this source in `[[launches]]`")
        })
    };
    let errors: Vec<Diagnostic> = paths.iter().filter_map(wrong).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The configuration that was named, or the one that is found where nothing else says what to compile. A file that happens to
/// lie around decides nothing about manifests that were named.
fn find_config(arguments: &Arguments) -> Result<Option<Config>, Vec<Diagnostic>> {
    if let Some(path) = &arguments.config {
        return config::load(path).map(Some);
    }
    if !arguments.manifests.is_empty() {
        return Ok(None);
    }
    let here = std::env::current_dir()
        .map_err(|error| vec![Diagnostic::error(format!("cannot tell which folder this is: {error}"))])?;
    let found = config::find(&here)?;
    config::load(&relative_to(&here, &found)).map(Some)
}

/// The path of a file above the current folder, as a person would type it.
fn relative_to(here: &Path, file: &Path) -> PathBuf {
    let above = here.ancestors().position(|folder| Some(folder) == file.parent());
    let (Some(above), Some(name)) = (above, file.file_name()) else { return file.to_owned() };
    let mut path: PathBuf = std::iter::repeat_n("..", above).collect();
    path.push(name);
    path
}

/// The folder that files are named relative to: the configuration's, else the first manifest's.
fn root(config: Option<&Config>, manifests: &[PathBuf]) -> PathBuf {
    let of_manifest = || manifests.first().and_then(|manifest| manifest.parent()).map(Path::to_path_buf);
    config.map(|config| config.folder.clone()).or_else(of_manifest).unwrap_or_default()
}

fn targets(arguments: &Arguments, config: Option<&Config>) -> Result<Vec<Target>, Diagnostic> {
    let mut targets: Vec<Target> = Vec::new();
    let asked = match config {
        Some(config) if arguments.targets.is_empty() => &config.targets,
        _ => &arguments.targets,
    };
    for target in asked {
        if !targets.contains(target) {
            targets.push(*target);
        }
    }
    if targets.is_empty() {
        return Err(Diagnostic::error("nothing says what to compile for")
            .help("name the GPUs: `--target sm_89` for machine code, `--target compute_80` for PTX that newer GPUs compile at load"));
    }
    Ok(targets)
}

fn name(arguments: &Arguments, config: Option<&Config>) -> Result<String, Diagnostic> {
    let of_manifest = || match arguments.manifests.as_slice() {
        [manifest] => Some(manifest.file_stem()?.to_str()?.to_owned()),
        _ => None,
    };
    let name =
        arguments.name.clone().or_else(|| config.map(|config| config.library.clone())).or_else(of_manifest);
    let name = name
        .ok_or_else(|| Diagnostic::error("the library has no name").help("give it one with `--name NAME`"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(Diagnostic::error(format!("`{name}` cannot name a library"))
            .note("letters, digits, `_`, `-`, `.` and `+` can stand in `lib<name>.so`"));
    }
    if name == "cubinder" {
        return Err(Diagnostic::error("a plugin library cannot be called `cubinder`")
            .note("`libcubinder.so` is the library that runs engines"));
    }
    Ok(name)
}

fn runtime_library(arguments: &Arguments) -> Result<PathBuf, Diagnostic> {
    const FILE: &str = "libcubinder.so";
    let of_environment = || std::env::var_os("CUBINDER_RUNTIME_LIBRARY").filter(|path| !path.is_empty());
    if let Some(path) = arguments.runtime_library.clone().or_else(|| of_environment().map(PathBuf::from)) {
        return Ok(path);
    }
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let places: Vec<PathBuf> =
        folder.into_iter().flat_map(|folder| [folder.join(FILE), folder.join("../lib").join(FILE)]).collect();
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|path| format!("`{}`", path.display())).collect();
        Diagnostic::error("the prebuilt runtime library `libcubinder.so` is not there")
            .note(format!("it was looked for at {}", places.join(" and ")))
            .note("plugin libraries are made from it")
            .help("name it with `--runtime-library FILE`; in a checkout, `cargo build --release -p cubinder-plugin` makes it")
    })
}

fn summary(outcome: &Outcome, elapsed: Duration) -> String {
    let statistics = outcome.statistics;
    let mut text = format!(
        "{}, {} in {}",
        count(outcome.plugins as u64, "plugin"),
        count(outcome.code_objects as u64, "code object"),
        milliseconds(elapsed)
    );
    if statistics.nvrtc_calls == 0 {
        text.push_str(" (all from the cache, NVRTC not called)\n");
    } else {
        text.push_str(&format!(
            " ({} of {} in all, {} from the cache)\n",
            count(statistics.nvrtc_calls, "NVRTC call"),
            milliseconds(statistics.nvrtc_time),
            statistics.cache_hits
        ));
    }
    for library in &outcome.libraries {
        text.push_str(&format!(
            "wrote {} ({} bytes: {})\n",
            library.path.display(),
            library.bytes,
            library.mode
        ));
    }
    text
}

fn summary_json(outcome: &Outcome, elapsed: Duration) -> serde_json::Value {
    let libraries: Vec<_> = outcome
        .libraries
        .iter()
        .map(
            |library| json!({"path": library.path, "bytes": library.bytes, "mode": library.mode.to_string()}),
        )
        .collect();
    json!({
        "result": "compiled",
        "libraries": libraries,
        "bundle": outcome.bundle.to_string(),
        "bundle_bytes": outcome.bundle_bytes,
        "plugins": outcome.plugins,
        "code_objects": outcome.code_objects,
        "nvrtc_calls": outcome.statistics.nvrtc_calls,
        "nvrtc_ms": outcome.statistics.nvrtc_time.as_secs_f64() * 1e3,
        "cache_hits": outcome.statistics.cache_hits,
        "wall_ms": elapsed.as_secs_f64() * 1e3,
    })
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn milliseconds(time: Duration) -> String {
    if time.as_secs() >= 10 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} ms", time.as_millis())
    }
}

/// A bar on a terminal, from a quarter of a second on; nothing elsewhere: the summary says it all.
struct Bar {
    bar: ProgressBar,
    started: Instant,
}

impl Bar {
    fn new(quiet: bool) -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if !quiet {
            // indicatif shows nothing where stderr is no terminal.
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar { bar, started: Instant::now() }
    }
}

impl Progress for Bar {
    fn begin(&self, steps: usize) {
        self.bar.set_length(steps as u64);
    }

    fn step(&self, what: &str) {
        if self.started.elapsed() < Duration::from_millis(250) {
            self.bar.update(|state| state.set_pos(state.pos() + 1));
        } else {
            self.bar.inc(1);
            self.bar.set_message(what.to_owned());
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_above_are_named_as_a_person_would() {
        let here = Path::new("/a/b/c");
        assert_eq!(relative_to(here, Path::new("/a/b/c/cubinder.toml")), Path::new("cubinder.toml"));
        assert_eq!(relative_to(here, Path::new("/a/cubinder.toml")), Path::new("../../cubinder.toml"));
        assert_eq!(relative_to(here, Path::new("/x/cubinder.toml")), Path::new("/x/cubinder.toml"));
    }
}
