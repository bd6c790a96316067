//! Arguments of the commands and what they print. One module a command.

mod compile;
mod explain;
mod inspect;
mod output;
mod schema;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Bind compiled CUDA kernels into TensorRT engines.
#[derive(Parser)]
#[command(name = "cubinder", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile plugin manifests into a TensorRT plugin library
    #[command(long_about = compile::LONG_ABOUT)]
    Compile(compile::Arguments),
    /// Show what a plugin library, a bundle, a cubin or an engine contains
    #[command(long_about = inspect::LONG_ABOUT)]
    Inspect(inspect::Arguments),
    /// Explain a rule by the code that its messages carry
    #[command(long_about = explain::LONG_ABOUT)]
    Explain(explain::Arguments),
    /// Print the JSON Schema of manifests, for editors
    #[command(long_about = schema::LONG_ABOUT)]
    Schema(schema::Arguments),
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    match Arguments::parse().command {
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
    }
}
