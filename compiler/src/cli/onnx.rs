//! `cubinder onnx`: what can be done with models. One module a command.

mod annotate;
mod list;
mod shapes;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cubinder_onnx::Model;
use cubinder_onnx::nodes::{Plugins, open_model};
use cubinder_source::diagnostic::Diagnostic;
use serde::Serialize;

use super::obligations::failed_json;
use super::output::{MessageFormat, print, show};

pub(super) const LONG_ABOUT: &str = "\
Look at the plugin nodes of an ONNX model, before TensorRT does.

Models are read as a stream: weights, and the files beside a model that hold them, are never read. Files beyond 2 GiB work.";

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write into plugin nodes what TensorRT wants to read there
    #[command(long_about = annotate::LONG_ABOUT)]
    Annotate(annotate::Arguments),
    /// List the plugin nodes of a model, and say what is wrong with them
    #[command(long_about = list::LONG_ABOUT)]
    List(list::Arguments),
    /// Show the plugin nodes of a model with their shapes and launches
    #[command(long_about = shapes::LONG_ABOUT)]
    Shapes(shapes::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (json, result) = match &arguments.command {
        Command::Annotate(arguments) => (arguments.json, annotate::run(arguments)),
        Command::List(arguments) => (arguments.json, list::run(arguments)),
        Command::Shapes(arguments) => (arguments.json, shapes::run(arguments)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(errors) => failed(errors, json),
    }
}

/// The model and the plugins that it is held against: what every command takes.
#[derive(Args)]
struct Subject {
    /// The model
    model: PathBuf,
    /// A plugin library, a manifest, a bundle, or an engine that carries a library; repeat it or separate with commas
    #[arg(long, short, value_name = "FILE", value_delimiter = ',')]
    plugins: Vec<PathBuf>,
}

impl Subject {
    fn open(&self) -> Result<(Model, Plugins), Vec<Diagnostic>> {
        let plugins = Plugins::open(&self.plugins);
        match (open_model(&self.model), plugins) {
            (Ok(model), Ok(plugins)) => Ok((model, plugins)),
            (Err(error), Err(mut errors)) => {
                errors.insert(0, error);
                Err(errors)
            }
            (Err(error), Ok(_)) => Err(vec![error]),
            (Ok(_), Err(errors)) => Err(errors),
        }
    }
}

/// Messages for programs come on the stream of the report, before it.
fn format(json: bool) -> MessageFormat {
    if json { MessageFormat::Json } else { MessageFormat::Human }
}

fn failed(mut errors: Vec<Diagnostic>, json: bool) -> ExitCode {
    show(&mut errors, format(json));
    if json {
        print(&(failed_json(&errors).to_string() + "\n"));
    }
    ExitCode::FAILURE
}

/// Prints what a program reads.
fn answer(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => {
            let error = Diagnostic::error(format!("the report has no JSON form: {error}"));
            show(&mut [error], MessageFormat::Human);
        }
    }
}

/// A report, after its result in one word.
#[derive(Serialize)]
struct Answer<'r, R> {
    result: &'static str,
    #[serde(flatten)]
    report: &'r R,
}
