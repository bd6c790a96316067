//! The command line: arguments, terminal and exit codes (0 success, 1 user or system error, 2 wrong usage).

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
