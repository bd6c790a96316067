use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cubinder_compiler::build::{Outcome, Request, build};
use cubinder_model::fit::ComputeCapability;
use cubinder_nvrtc::installation::Installation;
use cubinder_source::diagnostic::{Diagnostic, Severity, harmless};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::size;
use cubinder_tensorrt::{Choice, Kind, LogLine, Search, Step, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::{Value, json};

use super::obligations::count_of;
use super::output::{MessageFormat, fail, print, show};
use super::suggestions;
use super::thin::device;

/// Build an engine from an ONNX model, with the TensorRT or TensorRT-RTX that is installed.
///
/// Checks the model first, as `cubinder onnx list` does. TensorRT runs in another process, and the plan is replaced only if it succeeds.
///
/// TensorRT is searched in this order; --with selects another one. The program in TENSORRT_RTX_HOME, then in TENSORRT_HOME; the Python modules
/// `tensorrt_rtx` and `tensorrt`, of CUBINDER_PYTHON, or of the active environment, the environment of this program, and `python3`; `tensorrt_rtx`
/// and `trtexec` on PATH.
///
/// TensorRT-RTX needs no GPU, and by default builds for compute capability 8.0 and later. TensorRT builds for the GPU of this machine.
///
/// Exit code 0 if the plan was written, 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    /// ONNX model
    model: PathBuf,
    /// Engine to write
    #[arg(long, short, value_name = "PLAN")]
    output: PathBuf,
    /// Plugin library; repeat or separate with commas
    #[arg(long, short, value_name = "LIBRARY", value_delimiter = ',')]
    plugins: Vec<PathBuf>,
    /// Put the code of libraries compiled with --embed into the plan, which then needs no library
    #[arg(long)]
    embed: bool,
    /// Shape of a dynamic input, or its minimum, optimum and maximum: x=1x3x8x8:4x3x32x32:16x3x64x64
    #[arg(long = "shape", value_name = "NAME=MIN:OPT:MAX")]
    shapes: Vec<String>,
    /// Values of an integer input that determines shapes: size=1,1:4,8:16,16
    #[arg(long = "values", value_name = "NAME=MIN:OPT:MAX", allow_hyphen_values = true)]
    values: Vec<String>,
    /// GPU to build for, such as sm_89; repeat or separate with commas; TensorRT-RTX only
    #[arg(long = "gpu", value_name = "ARCH", value_delimiter = ',', value_parser = suggestions::gpu(device), hide_possible_values = true)]
    gpus: Vec<ComputeCapability>,
    /// Allow 16-bit floats; TensorRT only
    #[arg(long)]
    fp16: bool,
    /// Allow bfloat16; TensorRT only
    #[arg(long)]
    bf16: bool,
    /// Allow 8-bit integers; TensorRT only
    #[arg(long)]
    int8: bool,
    /// Allow 8-bit floats; TensorRT only
    #[arg(long)]
    fp8: bool,
    /// File with kernel times, read and updated, for faster builds; TensorRT only
    #[arg(long, value_name = "FILE")]
    timing_cache: Option<PathBuf>,
    /// TensorRT to use: `rtx`, `tensorrt`, a program, a Python, or the folder of a release or of a Python environment
    #[arg(long, value_name = "WHICH")]
    with: Option<OsString>,
    /// Build even if the model or the libraries have errors, or the libraries are not Cubinder's
    #[arg(long)]
    no_check: bool,
    /// Print the command that runs TensorRT, and its whole log
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON Lines: messages, then the result
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let format = MessageFormat::new(arguments.json);
    let program = Installation::of_this_program().program;
    let search = Search::from_env(program.as_deref().and_then(std::path::Path::parent));
    let mut progress = Progress::new(arguments);
    let result = build(&request(arguments), &search, &mut progress);
    progress.bar.finish_and_clear();
    let mut outcome = match result {
        Ok(outcome) => outcome,
        Err(errors) => return fail(errors, format),
    };
    outcome.warnings.extend(of_tensorrt(outcome.installation.kind, &outcome.built.warnings));
    show(&mut outcome.warnings, format);
    print(&match arguments.json {
        true => summary_json(arguments, &outcome, started.elapsed()).to_string() + "\n",
        false => summary(arguments, &outcome),
    });
    ExitCode::SUCCESS
}

fn request(arguments: &Arguments) -> Request {
    let precisions = [
        (arguments.fp16, "--fp16"),
        (arguments.bf16, "--bf16"),
        (arguments.int8, "--int8"),
        (arguments.fp8, "--fp8"),
    ];
    Request {
        model: arguments.model.clone(),
        output: arguments.output.clone(),
        plugins: arguments.plugins.clone(),
        embed: arguments.embed,
        unchecked: arguments.no_check,
        shapes: arguments.shapes.clone(),
        values: arguments.values.clone(),
        gpus: arguments.gpus.clone(),
        precisions: precisions.into_iter().filter(|(is_set, _)| *is_set).map(|(_, one)| one).collect(),
        timing_cache: arguments.timing_cache.clone(),
        choice: arguments.with.clone().map(Choice::from),
        verbose: arguments.verbose,
    }
}

/// Removes duplicates.
pub(super) fn of_tensorrt(kind: Kind, warnings: &[String]) -> Vec<Diagnostic> {
    let product = kind.name();
    let mut texts: Vec<&String> = Vec::new();
    for text in warnings {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
        .into_iter()
        .map(|text| Diagnostic::warning(format!("{product}: {}", text.replace('\n', " "))))
        .collect()
}

fn summary(arguments: &Arguments, outcome: &Outcome) -> String {
    let mut text = format!("built with {}\n", outcome.installation.describe());
    let mut kinds = vec![outcome.installation.kind];
    for other in &outcome.others {
        // The first of its kind has a short name.
        let selector = match kinds.contains(&other.kind) {
            true => other.selector().display().to_string(),
            false => other.kind.key().to_owned(),
        };
        kinds.push(other.kind);
        text.push_str(&format!(
            "note: also found {}; select it with `--with {selector}`\n",
            other.describe()
        ));
    }
    for (name, shape) in &outcome.built.outputs {
        text.push_str(&format!("output {name} {}\n", shape_text(shape)));
    }
    text.push_str(&format!("wrote {} ({})\n", arguments.output.display(), size(outcome.bytes)));
    if let Some(kept) = &outcome.kept {
        text.push_str(&format!("kept {} for the printed command\n", kept.display()));
    }
    harmless(&text, false)
}

/// Formats a shape: `?x8`, `scalar`.
pub(super) fn shape_text(shape: &[i64]) -> String {
    let dims: Vec<String> =
        shape.iter().map(|dim| if *dim < 0 { "?".to_owned() } else { dim.to_string() }).collect();
    if dims.is_empty() { "scalar".to_owned() } else { dims.join("x") }
}

pub(super) fn described(installation: &cubinder_tensorrt::Installation) -> Value {
    json!({
        "product": installation.kind.name(),
        "version": installation.version.as_ref().map(ToString::to_string),
        "path": ReportedPath::from(installation.selector()),
        "module": installation.module(),
    })
}

fn summary_json(arguments: &Arguments, outcome: &Outcome, elapsed: Duration) -> Value {
    json!({
        "result": "built",
        "errors": 0,
        "warnings": count_of(&outcome.warnings, Severity::Warning),
        "file": ReportedPath::from(&arguments.model),
        "output": ReportedPath::from(&arguments.output),
        "bytes": outcome.bytes,
        "tensorrt": described(&outcome.installation),
        "others": outcome.others.iter().map(described).collect::<Vec<_>>(),
        "outputs": outcome.built.outputs.iter().map(|(name, shape)| json!({"name": name, "shape": shape})).collect::<Vec<_>>(),
        "wall_ms": elapsed.as_secs_f64() * 1e3,
    })
}

/// Ignores a closed stderr.
pub(super) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(text, false));
}

struct Progress {
    bar: ProgressBar,
    is_verbose: bool,
}

impl Progress {
    fn new(arguments: &Arguments) -> Progress {
        // indicatif hides the bar if stderr is not a terminal.
        let bar = match arguments.json || arguments.verbose {
            true => ProgressBar::hidden(),
            false => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
        };
        bar.set_message("checking the model");
        Progress { bar, is_verbose: arguments.verbose }
    }
}

impl Watch for Progress {
    fn command(&mut self, text: &str) {
        self.bar.set_message("starting TensorRT");
        if self.is_verbose {
            print_error(text);
        }
    }

    fn log(&mut self, line: &LogLine) {
        if self.is_verbose {
            print_error(&line.text);
        }
    }

    fn step(&mut self, step: &Step) {
        let Step { name, step, steps } = step;
        self.bar.set_message(format!("{} ({step}/{steps})", harmless(name, false)));
    }
}
