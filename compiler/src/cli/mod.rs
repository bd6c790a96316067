//! Arguments and output of the commands, one module each.

mod build;
mod cache;
mod check;
mod compare;
mod compile;
mod completions;
mod doctor;
mod eval;
mod explain;
mod extract;
mod gpu;
mod import;
mod inspect;
mod man;
mod new;
mod node;
mod nvrtc;
mod obligations;
mod onnx;
mod output;
mod paths;
mod project_arguments;
mod run;
mod schema;
mod suggestions;
mod test;
mod thin;
mod tune;
mod usage;
mod workers;

use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use output::{MessageFormat, choose_colour, finish, show};

/// Bind compiled CUDA kernels into TensorRT engines.
#[derive(Parser)]
#[command(name = "cubinder", version, about, max_term_width = 100)]
#[command(
    after_help = "Pages named docs/... in help and messages are in the folder that `cubinder paths documentation` prints."
)]
struct Arguments {
    /// Use of colour in messages and help; `auto`: on terminals, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t, display_order = 1000)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(about = "Build an engine from an ONNX model with the installed TensorRT")]
    Build(build::Arguments),
    #[command(about = "Measure, prune, share, export and import the cache of compiled code")]
    Cache(cache::Arguments),
    #[command(about = "Check manifests against their kernels, without NVRTC")]
    Check(check::Arguments),
    #[command(about = "Run an engine and compare its outputs with NumPy, PyTorch or ONNX")]
    Compare(compare::Arguments),
    #[command(about = "Compile plugin manifests into a TensorRT plugin library")]
    Compile(compile::Arguments),
    #[command(about = "Print completions for a shell")]
    Completions(completions::Arguments),
    #[command(about = "Check NVRTC, headers, TensorRT, driver, GPU and cache on this machine")]
    Doctor(doctor::Arguments),
    #[command(about = "Simulate a launch without a GPU: shapes, variant, grid, block, arguments, occupancy")]
    Eval(eval::Arguments),
    /// Explain the rule with the code of a message
    #[command(long_about = explain::LONG_ABOUT)]
    Explain(explain::Arguments),
    #[command(about = "Write the machine code or PTX in a library, a bundle or an engine")]
    Extract(extract::Arguments),
    #[command(about = "Write a manifest for precompiled kernels")]
    Import(import::Arguments),
    #[command(about = "Show the contents of a plugin library, a bundle, a cubin or an engine")]
    Inspect(inspect::Arguments),
    #[command(about = "Print the manual page, or write all of them into a folder")]
    Man(man::Arguments),
    #[command(about = "Create a working plugin project: a manifest, a kernel and a test")]
    New(new::Arguments),
    #[command(about = "List, fix and evaluate the plugin nodes of an ONNX model")]
    Onnx(onnx::Arguments),
    #[command(
        about = "Print the paths of files that cubinder uses: the runtime library, the CMake package, NVRTC"
    )]
    Paths(paths::Arguments),
    #[command(about = "Run an engine, show its inputs and outputs, and measure its time")]
    Run(run::Arguments),
    #[command(about = "Print the JSON Schema of manifests, for editors")]
    Schema(schema::Arguments),
    #[command(
        about = "Run a plugin's kernels on a GPU and compare the outputs with data or a NumPy function"
    )]
    Test(test::Arguments),
    #[command(about = "Strip code for GPUs that you do not need from a plugin library")]
    Thin(thin::Arguments),
    #[command(about = "Measure the time of each variant of a plugin on a GPU")]
    Tune(tune::Arguments),
}

pub(crate) fn run() -> ExitCode {
    if let Some(code) = nvrtc::as_worker().or_else(workers::as_worker) {
        return code;
    }
    let parser = Arguments::command().color(choose_colour(std::env::args_os()));
    let parsed = parser.try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    let command = match parsed {
        Ok(arguments) => arguments.command,
        Err(error) => return refuse(&error),
    };
    output::ending(perform(command))
}

fn perform(command: Command) -> ExitCode {
    let result = match command {
        Command::Build(arguments) => return build::run(&arguments),
        Command::Cache(arguments) => return cache::run(&arguments),
        Command::Check(arguments) => return check::run(&arguments),
        Command::Compare(arguments) => return compare::run(&arguments),
        Command::Compile(arguments) => return compile::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Eval(arguments) => return eval::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Extract(arguments) => extract::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
        Command::New(arguments) => new::run(&arguments, &Arguments::command()),
        Command::Onnx(arguments) => return onnx::run(&arguments),
        Command::Paths(arguments) => paths::run(&arguments),
        Command::Run(arguments) => return run::run(&arguments),
        Command::Schema(_) => schema::run(),
        Command::Test(arguments) => return test::run(&arguments),
        Command::Thin(arguments) => thin::run(&arguments),
        Command::Tune(arguments) => return tune::run(&arguments),
    };
    finish(result, MessageFormat::Human)
}

fn refuse(error: &clap::Error) -> ExitCode {
    let Some(diagnostic) = usage::diagnostic(error) else { error.exit() };
    show(&mut [diagnostic], MessageFormat::Human);
    ExitCode::from(2)
}

#[cfg(test)]
#[path = "../../tests/support/path_arguments.rs"]
mod path_arguments;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn paths_of(command: &clap::Command, name: &str) -> Vec<(String, String)> {
        let is_path = |argument: &&clap::Arg| {
            argument.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>()
        };
        let own = command.get_arguments().filter(is_path);
        let mut found: Vec<_> =
            own.map(|argument| (name.to_owned(), argument.get_id().to_string())).collect();
        for inner in command.get_subcommands() {
            found.extend(paths_of(inner, format!("{name} {}", inner.get_name()).trim()));
        }
        found
    }

    /// Collects options with a short form, and others of the same long names.
    fn options(command: &clap::Command, found: &mut BTreeSet<(Option<char>, String)>) {
        const LONG: [&str; 7] = ["define", "include", "jobs", "output", "plugins", "quiet", "verbose"];
        let named =
            command.get_arguments().filter_map(|argument| Some((argument.get_short(), argument.get_long()?)));
        let named = named.filter(|(short, long)| short.is_some() || LONG.contains(long));
        found.extend(named.map(|(short, long)| (short, long.to_owned())));
        command.get_subcommands().for_each(|inner| options(inner, found));
    }

    #[test]
    fn a_short_option_means_the_same_in_all_commands() {
        let mut found = BTreeSet::new();
        options(&Arguments::command(), &mut found);
        let found: Vec<String> = found.iter().map(|(short, long)| format!("{short:?} {long}")).collect();
        let expected = ["D define", "I include", "j jobs", "o output", "p plugins", "q quiet", "v verbose"];
        assert_eq!(found, expected.map(|option| format!("Some('{}') {}", &option[..1], &option[2..])));
    }

    #[test]
    fn every_argument_that_is_a_path_is_tried_with_special_files() {
        let mut defined = paths_of(&Arguments::command(), "");
        let listed = path_arguments::PATH_ARGUMENTS.iter();
        let mut listed: Vec<_> =
            listed.map(|argument| (argument.command.to_owned(), argument.name.to_owned())).collect();
        defined.sort();
        listed.sort();
        assert_eq!(defined, listed);
        for argument in path_arguments::PATH_ARGUMENTS {
            assert!(
                argument.call.starts_with(argument.command) && argument.call.contains("{}"),
                "{}",
                argument.call
            );
            assert!(argument.used != path_arguments::Use::Reads || !argument.call.contains("--output {}"));
        }
    }
}
