//! The command line. Exit codes: 0 success, 1 user or system error, 2 wrong usage.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
