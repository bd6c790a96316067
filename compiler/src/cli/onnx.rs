mod annotate;
mod list;
mod shapes;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cubinder_onnx::Model;
use cubinder_onnx::nodes::{Plugins, open_model};
use cubinder_source::diagnostic::Diagnostic;

use super::output::{MessageFormat, finish};

/// List, fix and evaluate the plugin nodes of an ONNX model.
///
/// Models are read as a stream, without weights and files with external data. Models above 2 GiB are supported.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(about = "Add the attributes that TensorRT requires to plugin nodes")]
    Annotate(annotate::Arguments),
    #[command(about = "List the plugin nodes of a model and their errors")]
    List(list::Arguments),
    #[command(about = "Show the plugin nodes of a model with their shapes and launches")]
    Shapes(shapes::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (json, result) = match &arguments.command {
        Command::Annotate(arguments) => (arguments.json, annotate::run(arguments)),
        Command::List(arguments) => (arguments.json, list::run(arguments)),
        Command::Shapes(arguments) => (arguments.json, shapes::run(arguments)),
    };
    finish(result, MessageFormat::new(json))
}

/// The model and the plugins to check it with.
#[derive(Args)]
struct Subject {
    /// ONNX model
    model: PathBuf,
    /// Plugin library, manifest, bundle, or engine with an embedded library; repeat or separate with commas
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
