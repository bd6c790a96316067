//! Arguments of the commands and what they print. One module a command.

mod check;
mod compile;
mod explain;
mod inspect;
mod output;

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
    /// Check plugin manifests without compiling anything
    #[command(long_about = check::LONG_ABOUT)]
    Check(check::Arguments),
    /// Compile plugin manifests into a TensorRT plugin library
    #[command(long_about = compile::LONG_ABOUT)]
    Compile(compile::Arguments),
    /// Show what a plugin library, a bundle, a cubin or an engine contains
    #[command(long_about = inspect::LONG_ABOUT)]
    Inspect(inspect::Arguments),
    /// Explain a rule by the code that its messages carry
    #[command(long_about = explain::LONG_ABOUT)]
    Explain(explain::Arguments),
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
    }
}
