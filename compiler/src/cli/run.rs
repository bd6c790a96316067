use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use cubinder_compiler::run::{LoadedLibrary, Outcome, Request, Summary, Times, run as run_engine};
use cubinder_expr::Value as ElementValue;
use cubinder_node::eval::value_json;
use cubinder_node::trial::{Array, Number};
use cubinder_nvrtc::installation::Installation;
use cubinder_source::columns::{Align, columns};
use cubinder_source::diagnostic::{Diagnostic, harmless};
use cubinder_source::reported_path::ReportedPath;
use cubinder_source::words::counted;
use cubinder_tensorrt::{LogLine, Search, Watch};
use serde_json::{Value, json};

use super::build::{described, of_tensorrt, print_error, shape_text};
use super::output::{MessageFormat, fail, print, show};
use super::paths::runtime_library;

/// Run an engine on the first GPU, with the TensorRT or TensorRT-RTX that is installed, and show its inputs and outputs.
///
/// An input is read from a NumPy file, or random: floats from -1 to 1, integers from -100 to 100. Its shape is that of the file or of --shape, else the
/// optimum of the engine's profile. Loads the plugin libraries that the nodes of Cubinder need: libcubinder.so of this installation, or
/// lib<name>-code.so beside the plan.
///
/// TensorRT runs in another process, with its Python bindings, which are searched as by `cubinder build`; --with selects others. --iterations measures
/// the time on the GPU, after 10 runs that are not measured.
///
/// Exit code 0 if the engine ran, 1 otherwise.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    options: RunOptions,
}

/// Options of `run` and `compare`.
#[derive(Args)]
pub(super) struct RunOptions {
    #[command(flatten)]
    request: Request,
    /// Print JSON Lines: messages, then the result
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let options = &arguments.options;
    match options.run(&[]) {
        Ok(outcome) => {
            options.print("ran", &outcome, "", json!({}));
            ExitCode::SUCCESS
        }
        Err(errors) => fail(errors, options.format()),
    }
}

impl RunOptions {
    pub(super) fn format(&self) -> MessageFormat {
        MessageFormat::new(self.json)
    }

    /// Also shows warnings; the caller reads `others`.
    pub(super) fn run(&self, others: &[&Path]) -> Result<Outcome, Vec<Diagnostic>> {
        let installation = Installation::of_this_program();
        let search = Search::from_env(installation.program.as_deref().and_then(Path::parent));
        let library = &runtime_library(&installation);
        let outcome = run_engine(&self.request, others, library, &search, &mut Log(self.request.verbose))?;
        show(&mut of_tensorrt(outcome.installation.kind, &outcome.warnings), self.format());
        Ok(outcome)
    }

    /// Prints a result: `more` at its end, or the fields of `more_json` in it.
    pub(super) fn print(&self, result: &str, outcome: &Outcome, more: &str, more_json: Value) {
        print(&match self.format() {
            MessageFormat::Human => self.text(outcome) + &harmless(more, false),
            MessageFormat::Json => {
                let mut report = self.report(result, outcome);
                if let (Value::Object(report), Value::Object(more)) = (&mut report, more_json) {
                    report.extend(more);
                }
                report.to_string() + "\n"
            }
        });
    }

    fn text(&self, outcome: &Outcome) -> String {
        let mut text = format!("ran with {}\n", outcome.installation.describe());
        for library in &outcome.libraries.loaded {
            let nodes = library.nodes.map(|nodes| format!("for {}", counted(nodes, "node")));
            let why = nodes.unwrap_or_else(|| "(--plugins)".to_owned());
            text.push_str(&format!("loaded {} {why}\n", library.path.display()));
        }
        if outcome.libraries.carried > 0 {
            let carried = outcome.libraries.carried;
            text.push_str(&format!("the plan carries the library of {carried} of its nodes\n"));
        }
        let heading = ["", "name", "type", "shape", "min", "max", "mean", "NaN"].map(str::to_owned);
        let inputs = outcome.inputs.iter().map(|tensor| row("input", tensor));
        let rows = inputs.chain(outcome.outputs.iter().map(|tensor| row("output", tensor)));
        let rows: Vec<[String; 8]> = std::iter::once(heading).chain(rows).collect();
        let left = [Align::Left; 4];
        text.push_str(&columns(&rows, 0, &[&left[..], &[Align::Right; 4]].concat()));
        if let Some(Times { median, p99, least }) = outcome.times {
            let how = if self.request.cuda_graph { ", as a CUDA graph" } else { "" };
            text.push_str(&format!(
                "GPU time: median {median:.1} us, 99 % {p99:.1} us, min {least:.1} us ({} runs{how})\n",
                self.request.iterations
            ));
        }
        if let Some(output) = &self.request.output {
            text.push_str(&format!("wrote {}\n", output.display()));
        }
        harmless(&text, false)
    }

    fn report(&self, result: &str, outcome: &Outcome) -> Value {
        let Request { plan, output, iterations, cuda_graph, .. } = &self.request;
        let tensor = |(name, array): &(String, Array)| {
            let Summary { least, most, mean, nan } = Summary::of(array);
            let [least, most, mean] = [least, most, mean].map(|number| number.map(number_json));
            json!({
                "name": name, "type": array.ty().name(), "shape": array.shape(),
                "min": least, "max": most, "mean": mean, "nan": nan,
            })
        };
        let library = |library: &LoadedLibrary| json!({"path": ReportedPath::from(&library.path), "nodes": library.nodes});
        let times = outcome.times.map(|Times { median, p99, least }| {
            json!({"iterations": iterations, "cuda_graph": cuda_graph, "median": median, "p99": p99, "min": least})
        });
        json!({
            "result": result,
            "errors": 0,
            "warnings": outcome.warnings.len(),
            "file": ReportedPath::from(plan),
            "output": output.as_ref().map(ReportedPath::from),
            "tensorrt": described(&outcome.installation),
            "libraries": outcome.libraries.loaded.iter().map(library).collect::<Value>(),
            "inputs": outcome.inputs.iter().map(tensor).collect::<Value>(),
            "outputs": outcome.outputs.iter().map(tensor).collect::<Value>(),
            "microseconds": times,
        })
    }
}

fn row(role: &str, (name, array): &(String, Array)) -> [String; 8] {
    let Summary { least, most, mean, nan } = Summary::of(array);
    let text = |number: Option<Number>| number.map_or_else(|| "-".to_owned(), short);
    [
        role.to_owned(),
        name.clone(),
        array.ty().name().to_owned(),
        shape_text(array.shape()),
        text(least),
        text(most),
        text(mean),
        if nan == 0 { "-".to_owned() } else { nan.to_string() },
    ]
}

fn short(number: Number) -> String {
    match number {
        Number::Float(value) if value.is_finite() && value != 0.0 && !(1e-4..1e6).contains(&value.abs()) => {
            format!("{value:.3e}")
        }
        Number::Float(value) if value.is_finite() => format!("{value:.5}"),
        number => number.to_string(),
    }
}

fn number_json(number: Number) -> Value {
    value_json(&match number {
        Number::Int(value) => ElementValue::Int(value),
        Number::Float(value) => ElementValue::Float(value),
    })
}

struct Log(bool);

impl Watch for Log {
    fn log(&mut self, line: &LogLine) {
        if self.0 {
            print_error(&line.text);
        }
    }
}
