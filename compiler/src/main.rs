//! The command line. Exit codes: 0 success, 1 user or system error, 2 wrong usage, 3 no GPU (`test` and `tune`).

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
